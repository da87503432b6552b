//! Programs: declarations and routines, as data. Nothing here says whether a program is right; `verify` does.

use std::hash::{Hash, Hasher};

use perpetua_ir::hash::StableHasher;
use perpetua_ir::ir::Scalar;

use crate::error::{Error, Result};
use crate::instruction::Instruction;

/// A program: what it takes, and its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Program {
    /// Its name: an identifier.
    pub name: String,
    /// The file that line numbers refer to; empty where there is none.
    pub source: String,
    /// Size of a block, where the program needs one.
    pub block: Option<[u32; 3]>,
    /// Buffers, memory of a block, tables of constants; in the order in which a launch binds the buffers.
    pub memories: Vec<Memory>,
    /// Values that a launch passes.
    pub parameters: Vec<Parameter>,
    /// Code: the first routine is where lanes begin.
    pub routines: Vec<Routine>,
}

/// A memory of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Memory {
    /// Its name.
    pub name: String,
    /// Type of its elements.
    pub element: Scalar,
    /// What it is.
    pub kind: MemoryKind,
}

/// What a memory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Elements in device memory, shared by all lanes.
    Buffer {
        /// Whether the program may store to it.
        writable: bool,
        /// The executor's handle, where the program names it itself.
        handle: Option<u64>,
    },
    /// Elements that the lanes of one block share. What they hold when the block begins is not specified.
    Shared {
        /// Their number.
        len: u32,
    },
    /// Constants: their bits, zero-extended.
    Constants(Vec<u64>),
    /// Memory of which lanes take blocks: 32-bit words that the executor keeps beyond the program's end.
    Pool {
        /// The executor's handle, where the program names it itself.
        handle: Option<u64>,
    },
}

impl MemoryKind {
    // The handle of what a launch binds.
    fn handle_mut(&mut self) -> Option<&mut Option<u64>> {
        match self {
            MemoryKind::Buffer { handle, .. } | MemoryKind::Pool { handle } => Some(handle),
            MemoryKind::Shared { .. } | MemoryKind::Constants(_) => None,
        }
    }
}

/// Without handles: programs that differ in handles alone are one kernel.
impl Hash for MemoryKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            MemoryKind::Buffer { writable, .. } => writable.hash(state),
            MemoryKind::Shared { len } => len.hash(state),
            MemoryKind::Constants(data) => data.hash(state),
            MemoryKind::Pool { .. } => {}
        }
    }
}

/// A value that a launch passes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Scalar,
}

/// A run of instructions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Routine {
    /// Its name; empty for the program's own code.
    pub name: String,
    /// What it does.
    pub code: Vec<Instruction>,
    /// Places in the code.
    pub labels: Vec<Label>,
    /// The line of each instruction in the source; empty where that is not known.
    pub lines: Vec<u32>,
}

/// A place in a routine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// Its name.
    pub name: String,
    /// Number of the instruction that it stands in front of; the code's length for its end.
    pub at: u32,
}

impl Program {
    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.routines.iter().map(|routine| routine.code.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The buffers, in the order in which a launch binds them.
    pub fn buffers(&self) -> impl Iterator<Item = &Memory> {
        let is_buffer = |memory: &&Memory| matches!(memory.kind, MemoryKind::Buffer { .. });
        self.memories.iter().filter(is_buffer)
    }

    /// The memory of this name.
    pub fn memory(&self, name: &str) -> Option<&Memory> {
        self.memories.iter().find(|memory| memory.name == name)
    }

    /// Whether all that has a name has one that can be written, so that the program's text says what it holds; what the verifier passes has.
    pub fn is_legible(&self) -> bool {
        let memories = self.memories.iter().map(|memory| &memory.name);
        let parameters = self.parameters.iter().map(|parameter| &parameter.name);
        let labels = self.routines.iter().flat_map(|routine| &routine.labels);
        let routines = self.routines.iter().skip(1).map(|routine| &routine.name);
        let names = memories.chain(parameters).chain(routines);
        names
            .chain(labels.map(|label| &label.name))
            .chain([&self.name])
            .all(|name| is_name(name))
    }

    /// A name that none of its memories and parameters has: this one, or one that begins so.
    pub(crate) fn unused_name(&self, name: &str) -> String {
        let mut name = String::from(name);
        let parameter = |name: &str| self.parameters.iter().any(|parameter| parameter.name == name);
        while parameter(&name) || self.memory(&name).is_some() {
            name.push('_');
        }
        name
    }

    /// The same program without what only messages need: source and lines.
    pub fn stripped(mut self) -> Program {
        self.source.clear();
        for routine in &mut self.routines {
            routine.lines.clear();
        }
        self
    }

    /// The same program, in which a buffer or pool is the executor's of this handle.
    ///
    /// # Errors
    /// [`Error::NoMemory`], if it has no buffer or pool of this name.
    pub fn with_buffer(mut self, name: &str, handle: u64) -> Result<Program> {
        let mut named = self.memories.iter_mut().filter(|memory| memory.name == name);
        match named.find_map(|memory| memory.kind.handle_mut()) {
            Some(bound) => {
                *bound = Some(handle);
                Ok(self)
            }
            None => Err(Error::NoMemory {
                program: self.name,
                name: name.into(),
            }),
        }
    }

    /// Whether they are one kernel: equal but for the handles of their buffers.
    pub(crate) fn is_same_kernel(&self, other: &Program) -> bool {
        let alike = |a: &Memory, b: &Memory| {
            let kinds = match (&a.kind, &b.kind) {
                (MemoryKind::Buffer { writable: a, .. }, MemoryKind::Buffer { writable: b, .. }) => a == b,
                (MemoryKind::Pool { .. }, MemoryKind::Pool { .. }) => true,
                (a, b) => a == b,
            };
            kinds && a.name == b.name && a.element == b.element
        };
        (&self.name, &self.source, self.block) == (&other.name, &other.source, other.block)
            && (&self.parameters, &self.routines) == (&other.parameters, &other.routines)
            && self.memories.len() == other.memories.len()
            && self
                .memories
                .iter()
                .zip(&other.memories)
                .all(|(a, b)| alike(a, b))
    }

    /// What tells programs apart, but for the handles of their buffers.
    pub fn id(&self) -> u128 {
        StableHasher::of(self)
    }
}

/// Whether a name can stand in every text form.
pub(crate) fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= 255
        && name != "_"
}
