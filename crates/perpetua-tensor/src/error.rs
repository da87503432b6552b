//! What can be wrong with an operation, as data: the operation, its operands, the rule, and the line that recorded it.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// Result of what looks at tensors.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no such tensor.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The operands do not fit the operation.
    #[error("{at}: `{operation}` of {operands}: {rule}")]
    Rule {
        /// The operation.
        operation: &'static str,
        /// The operands' types and shapes, as `f32[2, 3] and f32[4]`.
        operands: String,
        /// The rule that they break, and what to do.
        rule: String,
        /// Where it was recorded.
        at: At,
    },
    /// An operation has no derivative.
    #[error("{at}: `{operation}` has no gradient: {reason}")]
    NoGradient {
        /// The operation.
        operation: String,
        /// Why, and what to do.
        reason: String,
        /// Where it was recorded.
        at: At,
    },
    /// The first NaN, where one is looked for ([`detect_anomaly`](crate::detect_anomaly)).
    #[error("{at}: `{operation}` of {operands} gave NaN, first at {index}: no operand has one")]
    Anomaly {
        /// The operation.
        operation: String,
        /// The operands' types and shapes.
        operands: String,
        /// The place of the first one.
        index: String,
        /// Where it was recorded.
        at: At,
    },
    /// The device could not do it.
    #[error("{at}: `{operation}`: {cause}")]
    Device {
        /// The operation whose value was asked for.
        operation: String,
        /// What the device says.
        cause: Arc<perpetua_device::Error>,
        /// Where it was recorded.
        at: At,
    },
    /// A device could not be opened, or similar, before there was a tensor.
    #[error(transparent)]
    Opening(#[from] perpetua_device::Error),
    /// The tables have no such operator.
    #[error(
        "there is no operator `{name}`: `perpetua_tensor::table` lists all, by the names of their methods"
    )]
    NoOperator {
        /// The name.
        name: String,
    },
    /// There is no GPU.
    #[error("No suitable GPU adapter found: {0}")]
    NoAdapter(Arc<perpetua_device::Error>),
    /// A file could not be read or written.
    #[error("{path}: {cause}")]
    File {
        /// The file.
        path: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A generated kernel is not a kernel: a mistake in this library.
    #[error(
        "{at}: the kernel generated for `{operation}` is not valid: {message}; this is a mistake in Perpetua, please report it"
    )]
    Generated {
        /// The operation that it was to compute.
        operation: String,
        /// What the verifier says.
        message: String,
        /// Where it was recorded.
        at: At,
    },
}

perpetua_device::debug_as_display!(Error);

/// A line of the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct At(pub &'static Location<'static>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0.file(), self.0.line())
    }
}

impl fmt::Debug for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
