//! What can be wrong with a launch of a library kernel, as data; text lives only in `Display`. Must not know the kernels.

/// Result of a launch.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a library kernel cannot be launched.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Too few or too many arguments.
    #[error("`{kernel}` takes {expected} buffers ({names}), {given} given")]
    ArgumentCount {
        /// The kernel.
        kernel: &'static str,
        /// How many it takes.
        expected: usize,
        /// Their names.
        names: String,
        /// How many were given.
        given: usize,
    },
    /// A value where a buffer is expected.
    #[error("`{kernel}`: `{operand}` is a value of type {given}; pass a buffer of shape {shape}")]
    NotABuffer {
        /// The kernel.
        kernel: &'static str,
        /// The operand's name.
        operand: &'static str,
        /// The value's type.
        given: String,
        /// The shape that the kernel expects.
        shape: String,
    },
    /// A buffer that is too short for its shape.
    #[error(
        "`{kernel}`: `{operand}` of shape {shape} takes {needed} elements, but the buffer has {found} of type {element}; pass a longer buffer, or another shape or pitch"
    )]
    TooShort {
        /// The kernel.
        kernel: &'static str,
        /// The operand's name.
        operand: &'static str,
        /// Its shape, with its pitch where rows lie apart.
        shape: String,
        /// Elements that the shape takes.
        needed: usize,
        /// Elements that there are.
        found: u64,
        /// The buffer's element type.
        element: String,
    },
    /// Numbers of a type that the kernel does not compute with.
    #[error(
        "`{kernel}` does not compute with {element:?}, but with {takes}; choose one of them, or another kernel"
    )]
    Element {
        /// The kernel.
        kernel: &'static str,
        /// The type.
        element: crate::element::Element,
        /// What it computes with.
        takes: &'static str,
    },
    /// A buffer of another type than that of the numbers.
    #[error(
        "`{kernel}`: `{operand}` is a buffer of {found}, but the kernel was made for {element}; pass a buffer of that, or make it with `with_element` or `with_factors`"
    )]
    Stored {
        /// The kernel.
        kernel: &'static str,
        /// The operand's name.
        operand: &'static str,
        /// The buffer's element type.
        found: String,
        /// The type.
        element: String,
    },
    /// Scales of integers.
    #[error(
        "`{kernel}`: products of integers are multiplied with alpha 1 and added to C times beta 0 or 1, not {alpha} and {beta}; scale C in another kernel"
    )]
    Scales {
        /// The kernel.
        kernel: &'static str,
        /// What products were to be multiplied with.
        alpha: f32,
        /// What C before was to be multiplied with.
        beta: f32,
    },
    /// A bound of scores that is none.
    #[error("`{kernel}`: scores are capped by {cap}; give a positive number")]
    Cap {
        /// The kernel.
        kernel: &'static str,
        /// The bound.
        cap: f32,
    },
    /// A part that is none.
    #[error("`{kernel}`: labels are smoothed by {smoothing}; give a number from 0 to 1")]
    Smoothing {
        /// The kernel.
        kernel: &'static str,
        /// The part.
        smoothing: f32,
    },
    /// A probability that is none.
    #[error(
        "`{kernel}`: numbers are dropped with a probability of {probability}; give one from 0 to below 1"
    )]
    Probability {
        /// The kernel.
        kernel: &'static str,
        /// The probability.
        probability: f32,
    },
    /// Rows that would overlap.
    #[error(
        "`{kernel}`: rows of `{operand}` have {columns} elements, but lie {pitch} apart; the pitch must be at least {columns}"
    )]
    Pitch {
        /// The kernel.
        kernel: &'static str,
        /// The operand's name.
        operand: &'static str,
        /// Elements of a row.
        columns: usize,
        /// Elements from one row to the next.
        pitch: usize,
    },
    /// A shape that no memory holds.
    #[error(
        "`{kernel}`: `{operand}` of shape {shape} has more elements than the kernel can count; make it smaller"
    )]
    TooLarge {
        /// The kernel.
        kernel: &'static str,
        /// The operand's name.
        operand: &'static str,
        /// Its shape.
        shape: String,
    },
    /// Weights that are no whole number of blocks.
    #[error(
        "{weights} weights are no whole number of blocks of {block}, as {format} has them; pad the rows with zeros"
    )]
    Blocks {
        /// The format.
        format: &'static str,
        /// Weights, of a row where rows are to be whole.
        weights: usize,
        /// Weights of a block.
        block: usize,
    },
    /// A number that a kernel does not take.
    #[error("`{kernel}`: {what} is {found}; it must be {needed}")]
    Range {
        /// The kernel.
        kernel: &'static str,
        /// What.
        what: &'static str,
        /// Its value.
        found: usize,
        /// What it must be.
        needed: String,
    },
    /// A file of choices that cannot be read or written.
    #[error(
        "choices of products are not kept in `{path}`: {cause}; mend the file, remove it, or name another one (`PERPETUA_CHOICES`)"
    )]
    Choices {
        /// The file.
        path: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A product whose tiles are given by its kernel, its options or its shape.
    #[error(
        "`{kernel}` leaves nothing to choose; tune products of `GemmKernel::staged` and `GemmKernel::tensor_core` without tiles and slices of their own, of at least a row, column and depth, and, by tensor cores, of more than 16 rows and columns"
    )]
    NothingToChoose {
        /// The kernel.
        kernel: &'static str,
    },
    /// What the device layer says.
    #[error(transparent)]
    Device(#[from] perpetua_device::Error),
}

perpetua_device::debug_as_display!(Error);
