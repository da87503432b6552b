//! Why a launch failed, as data.

use std::fmt;
use std::sync::Arc;

use perpetua_ir::fault::Fault;
use perpetua_ir::ir::TypeError;

/// Why a launch in the interpreter failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterpError {
    /// A lane faulted; the others ran to their end. Of several faults, the first of the lowest block.
    #[error(transparent)]
    Fault(Box<Fault>),
    /// Two lanes raced; the launch stopped there. Only where races are looked for.
    #[error(transparent)]
    Race(Box<Race>),
    /// A barrier that some lanes of a block reached and others did not.
    #[error(
        "kernel `{kernel}`{}: in block {} thread {} is not among the {arrived} of {lanes} lanes at the barrier; \
         move the barrier to where all lanes come", at_line(*.line), Triple(*.block), Triple(*.missing)
    )]
    DivergentBarrier {
        /// Kernel's name.
        kernel: String,
        /// Source line of the barrier, 0 when unknown.
        line: u32,
        /// Block index.
        block: [u32; 3],
        /// A lane that is not there.
        missing: [u32; 3],
        /// Lanes that are.
        arrived: u32,
        /// Lanes in all that should be.
        lanes: u32,
    },
    /// Teams of lanes that multiply in stages wait for each other, and nobody goes on.
    #[error(
        "kernel `{kernel}`{}: in block {} all teams of lanes wait for ever: {who} for a stage that is {for_what}; \
         fill as many stages as each of the other teams multiplies", at_line(*.line), Triple(*.block)
    )]
    Deadlock {
        /// Kernel's name.
        kernel: String,
        /// Source line of the operation that waits, 0 when unknown.
        line: u32,
        /// Block index.
        block: [u32; 3],
        /// Who waits: the last one that came.
        who: &'static str,
        /// What it waits for.
        for_what: &'static str,
    },
    /// The step budget is spent.
    #[error("kernel `{kernel}` ran more than {budget} steps; raise the budget if it is not hanging")]
    Deadline {
        /// Kernel's name.
        kernel: String,
        /// The budget.
        budget: u64,
    },
    /// The caller cancelled the launch.
    #[error("the launch of kernel `{kernel}` was cancelled")]
    Cancelled {
        /// Kernel's name.
        kernel: String,
    },
    /// An argument does not fit its parameter.
    #[error("argument {index} (`{parameter}`) of kernel `{kernel}`: {problem}")]
    Argument {
        /// Kernel's name.
        kernel: String,
        /// Index of the argument.
        index: usize,
        /// Name of the parameter, empty when there is none.
        parameter: String,
        /// What is wrong, with the values.
        problem: String,
    },
    /// The launch's shape is not possible.
    #[error("launch of kernel `{kernel}`: {problem}")]
    Shape {
        /// Kernel's name.
        kernel: String,
        /// What is wrong, with the values.
        problem: String,
    },
    /// The kernel is not what the verifier lets pass.
    #[error("kernel `{kernel}` is malformed: {cause}")]
    Malformed {
        /// Kernel's name.
        kernel: String,
        /// What was met.
        cause: TypeError,
    },
}

fn at_line(line: u32) -> String {
    if line == 0 {
        String::new()
    } else {
        format!(", line {line}")
    }
}

/// Coordinates, for messages.
struct Triple([u32; 3]);

impl fmt::Display for Triple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "({x}, {y}, {z})")
    }
}

/// Which memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Buffers.
    Global,
    /// Shared variables.
    Shared,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// A plain load.
    Load,
    /// A plain store.
    Store,
    /// An atomic load.
    AtomicLoad,
    /// An atomic store.
    AtomicStore,
    /// An atomic read-modify-write or compare-and-exchange.
    AtomicUpdate,
}

impl fmt::Display for AccessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::AtomicLoad => "atomic load",
            AccessKind::AtomicStore => "atomic store",
            AccessKind::AtomicUpdate => "atomic read-modify-write",
        })
    }
}

/// One side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RacingAccess {
    /// What it does.
    pub kind: AccessKind,
    /// Source line, 0 when unknown.
    pub line: u32,
    /// Block index.
    pub block: [u32; 3],
    /// Lane index in the block.
    pub thread: [u32; 3],
}

impl fmt::Display for RacingAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (block, thread) = (Triple(self.block), Triple(self.thread));
        write!(
            f,
            "{} by lane {thread} of block {block}{}",
            self.kind,
            at_line(self.line)
        )
    }
}

/// Two accesses to one place, one of them not a read, not both atomic (or atomic at a scope that does not hold
/// both), that nothing orders.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Race {
    /// Kernel's name.
    pub kernel: String,
    /// Source file, empty when unknown.
    pub source: Arc<str>,
    /// Which memory.
    pub space: Space,
    /// The buffer or shared variable that the second access names.
    pub subject: String,
    /// The element raced for, from the start of the subject. Elements as declared: of an array its elements.
    pub element: u64,
    /// The first byte raced for, from the start of the subject.
    pub byte: u64,
    /// The earlier access.
    pub first: RacingAccess,
    /// The later access.
    pub second: RacingAccess,
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = match self.space {
            Space::Global => "",
            Space::Shared => " (shared memory)",
        };
        write!(
            f,
            "race for `{}`[{}]{space} in kernel `{}`: {}, and then, with no order between them, {}",
            self.subject, self.element, self.kernel, self.first, self.second
        )
    }
}

impl std::error::Error for Race {}
