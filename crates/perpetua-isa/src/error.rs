//! What can go wrong with programs, as data; text lives in `Display` alone.

use perpetua_ir::ir::Scalar;

use crate::fault::Fault;

/// Result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a program, or of its execution.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no program.
    #[error(transparent)]
    Assemble(#[from] crate::diagnostic::AssembleError),
    /// A program that was built in Rust is not right.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// No program is equal to a kernel.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// Programs that cannot be one.
    #[error(transparent)]
    Fuse(#[from] FuseError),
    /// The bytes are no program.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The program is not right.
    #[error(transparent)]
    Verify(#[from] Box<VerifyError>),
    /// The program breaks a rule that holds for every kernel, as that all lanes of a block come to a barrier.
    #[error("{program}: {at}: {message}")]
    Kernel {
        /// Its name.
        program: String,
        /// The instruction, where there is one.
        at: Box<At>,
        /// The verifier's words.
        message: String,
    },
    /// The device layer failed.
    #[error(transparent)]
    Device(#[from] perpetua_device::Error),
    /// There is no such buffer.
    #[error("there is no buffer with the handle {handle}: it was never allocated here, or has been freed")]
    NoBuffer {
        /// The handle.
        handle: u64,
    },
    /// There is no such pool.
    #[error("there is no pool with the handle {handle}: it was never allocated here, or has been freed")]
    NoPool {
        /// The handle.
        handle: u64,
    },
    /// There is no such block.
    #[error("pool {pool} has no block with the handle {block}: it was never allocated, or has been freed")]
    NoBlock {
        /// The pool.
        pool: u64,
        /// The handle.
        block: u32,
    },
    /// A buffer or pool of the program has no memory.
    #[error(
        "`{name}` of {program} is bound to nothing: write `= HANDLE` behind its declaration, or call \
         `program.with_buffer(\"{name}\", handle)`"
    )]
    Unbound {
        /// The program.
        program: String,
        /// The buffer or pool.
        name: String,
    },
    /// The library has no such program.
    #[error("the library has no program `{name}`: {help}")]
    NoProgram {
        /// The name.
        name: String,
        /// What is there instead.
        help: String,
    },
    /// A parameter has no value, or one of another type.
    #[error("the parameter `{name}` of {program} takes {expected}; {found}")]
    Parameter {
        /// The program.
        program: String,
        /// The parameter.
        name: String,
        /// Its type.
        expected: Scalar,
        /// What was given.
        found: String,
    },
    /// An access of the host lies outside a buffer or pool.
    #[error("{operation} of {len} bytes at byte {offset} of handle {handle}, which has {size}")]
    Range {
        /// What was tried.
        operation: &'static str,
        /// The buffer or pool.
        handle: u64,
        /// Where it begins.
        offset: u64,
        /// How many bytes.
        len: u64,
        /// Its bytes.
        size: u64,
    },
    /// An instruction that untrusted programs may not have.
    #[error("{program}: {at}: an untrusted program may not have this: {why}")]
    Untrusted {
        /// Its name.
        program: String,
        /// The instruction.
        at: Box<At>,
        /// Why not.
        why: &'static str,
    },
    /// More than an executor for untrusted programs allows.
    #[error("{what}: {found}, at most {limit} are allowed here")]
    Limit {
        /// Of what.
        what: &'static str,
        /// How much.
        found: u64,
        /// How much may be.
        limit: u64,
    },
    /// A program that is larger than an untrusted one may be.
    #[error("{program}: {at}: {what}: {found}, an untrusted program may have {limit}")]
    Large {
        /// Its name.
        program: String,
        /// The instruction at which there is too much.
        at: Box<At>,
        /// Of what.
        what: &'static str,
        /// How much.
        found: u64,
        /// How much may be.
        limit: u64,
    },
    /// The program has no such memory.
    #[error("{program} has no buffer or pool `{name}`")]
    NoMemory {
        /// The program.
        program: String,
        /// The name.
        name: String,
    },
    /// A backend's name that says nothing.
    #[error("there is no backend `{name}`: choose cpu, metal, cuda or wgpu")]
    NoBackend {
        /// The name.
        name: String,
    },
    /// Metal on a machine that is not Apple's.
    #[error("Metal backend only available on Apple platforms")]
    NotApple,
    /// This program was built without CUDA.
    #[error("CUDA backend requires 'cuda' feature to be enabled: {0}")]
    CudaNotBuilt(perpetua_device::Error),
    /// There is no device for CUDA, or it does not start.
    #[error("CUDA device not found or initialization failed: {0}")]
    NoCuda(perpetua_device::Error),
}

perpetua_device::debug_as_display!(Error);

/// What is wrong with a program that a [`ProgramBuilder`](crate::ProgramBuilder) was told to build: the first thing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: `{call}`: {message}")]
pub struct BuildError {
    /// The instruction or declaration.
    pub call: String,
    /// The source file of the call.
    pub file: String,
    /// Its line there.
    pub line: u32,
    /// Its column.
    pub column: u32,
    /// What is wrong.
    pub message: String,
}

/// A kernel that no program is equal to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kernel}{}: {what} cannot be captured: {why}", match line {
    0 => String::new(),
    line => format!(", line {line}"),
})]
pub struct CaptureError {
    /// The kernel's name.
    pub kernel: String,
    /// The line in its source, 0 where that is not known.
    pub line: u32,
    /// What programs have nothing equal to.
    pub what: String,
    /// Why not, and what to write instead.
    pub why: &'static str,
}

/// Why programs are not fused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{program} is not fused with its neighbours: {place}{why}")]
pub struct FuseError {
    /// The program.
    pub program: String,
    /// The instruction, with `: ` behind it; empty where it is the program as a whole.
    pub place: String,
    /// Why not.
    pub why: &'static str,
}

/// What the verifier finds wrong with a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{program}: {at}: {fault}")]
pub struct VerifyError {
    /// The program's name.
    pub program: String,
    /// Where.
    pub at: At,
    /// What is wrong.
    pub fault: Fault,
}

/// A place in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The routine; empty for the program's own code.
    pub routine: String,
    /// Number of the instruction in it, from 0; `None` for a declaration.
    pub instruction: Option<usize>,
    /// The source; empty where that is not known.
    pub file: String,
    /// Line in the source, 0 where that is not known.
    pub line: u32,
    /// The instruction's text.
    pub text: String,
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.instruction {
            None => return f.write_str("declarations"),
            Some(at) if self.line == 0 => write!(f, "instruction {at}")?,
            Some(_) if self.file.is_empty() => write!(f, "line {}", self.line)?,
            Some(_) => write!(f, "{}:{}", self.file, self.line)?,
        }
        if !self.routine.is_empty() {
            write!(f, ", in `{}`", self.routine)?;
        }
        write!(f, " (`{}`)", self.text)
    }
}

/// Bytes that are no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes begin otherwise.
    #[error("these bytes are no program: they do not begin with `PISA`")]
    Magic,
    /// A version that this decoder does not know.
    #[error("the program has version {found} of the binary form; this decoder knows {known}")]
    Version {
        /// The version.
        found: u16,
        /// What the decoder knows.
        known: u16,
    },
    /// The content is not what was written.
    #[error("the checksum is {found:#010x}, not {expected:#010x}: the program is damaged")]
    Checksum {
        /// What the header says.
        expected: u32,
        /// What the content has.
        found: u32,
    },
    /// The bytes end too early.
    #[error("the program ends at byte {at}, in {what}")]
    End {
        /// Their number.
        at: usize,
        /// What was being read.
        what: &'static str,
    },
    /// A value that means nothing.
    #[error("byte {at}: {value} is not {what}")]
    Value {
        /// Where.
        at: usize,
        /// The value.
        value: u64,
        /// What it should be.
        what: &'static str,
    },
    /// An opcode that this version does not know.
    #[error("byte {at}: there is no instruction {name:?} here: a later version may have it")]
    Opcode {
        /// Where its name ends.
        at: usize,
        /// The name.
        name: String,
    },
    /// More bytes than the program has.
    #[error("{count} bytes follow the program's end")]
    More {
        /// How many.
        count: usize,
    },
}
