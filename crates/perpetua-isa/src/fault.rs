//! What can be wrong with a declaration or an instruction, as data.

use perpetua_ir::ir::Scalar;

/// What is wrong with an instruction or a declaration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A name is used twice, or is none.
    #[error("{what} cannot be called `{name}`: {why}")]
    Name {
        /// What.
        what: &'static str,
        /// The name.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// Too much of something.
    #[error("{what}: {found}, at most {limit} can be")]
    Limit {
        /// Of what.
        what: &'static str,
        /// How much.
        found: u64,
        /// How much may be.
        limit: u64,
    },
    /// A declaration of nothing.
    #[error("{what} has at least one {of}")]
    Empty {
        /// What is declared.
        what: String,
        /// What it has none of.
        of: &'static str,
    },
    /// A declaration of another type.
    #[error("`{name}` has {expected}, not {found}")]
    Declared {
        /// What is declared.
        name: String,
        /// What it may have.
        expected: String,
        /// What it has.
        found: String,
    },
    /// A type that the opcode does not work on.
    #[error("`{opcode}` works on {expected}, not on {found}")]
    Type {
        /// The opcode.
        opcode: String,
        /// What it works on.
        expected: String,
        /// The type.
        found: String,
    },
    /// A type behind an opcode that has none.
    #[error("`{opcode}` has no type of its own: leave `{found}` out")]
    Typed {
        /// The opcode.
        opcode: String,
        /// The type.
        found: Scalar,
    },
    /// A conversion between types that it does not go between.
    #[error("`{opcode}` does not go from {from} to {to}: {why}")]
    Conversion {
        /// The opcode.
        opcode: String,
        /// The result's type.
        to: &'static str,
        /// The operand's.
        from: &'static str,
        /// Why not, and what to write instead.
        why: &'static str,
    },
    /// The wrong number of operands.
    #[error("`{opcode}` takes {expected} operands, not {found}")]
    Operands {
        /// The opcode.
        opcode: String,
        /// How many.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// An operand of the wrong kind.
    #[error("operand {number} must be {expected}")]
    Operand {
        /// Its number, from 1.
        number: usize,
        /// What it must be.
        expected: String,
    },
    /// A register is read that not every way to here has written.
    #[error(
        "{register} is read, but not every way to here has written it: write it first, outside of guards and branches or under both a guard \
         and its opposite"
    )]
    Unwritten {
        /// The register.
        register: String,
    },
    /// A register holds another type.
    #[error("{register} holds {found} here, not {expected}: use `cvt` or `bitcast`")]
    Holds {
        /// The register.
        register: String,
        /// What it holds.
        found: Scalar,
        /// What is needed.
        expected: String,
    },
    /// A register holds values of different types, by the way taken.
    #[error("{register} holds different types here, by the way that led here")]
    Mixed {
        /// The register.
        register: String,
    },
    /// A routine that calls itself.
    #[error("`{routine}` calls itself{}: programs have no recursion", ways(through))]
    Recursion {
        /// The routine.
        routine: String,
        /// The routines in between, in the order of their calls.
        through: Vec<String>,
    },
    /// A constant index that lies outside.
    #[error(
        "index {index} is out of bounds: {}",
        match len {
            Some(len) => format!("`{memory}` has {len} elements"),
            None => format!("elements of `{memory}` are counted from 0"),
        }
    )]
    OutOfBounds {
        /// The index.
        index: i64,
        /// The memory.
        memory: String,
        /// Its length, where the program says it.
        len: Option<u64>,
    },
    /// A store to what is only read.
    #[error("`{memory}` is declared `read`: nothing can be stored to it")]
    ReadOnly {
        /// The memory.
        memory: String,
    },
}

// By way of which routines.
fn ways(through: &[String]) -> String {
    const SHOWN: usize = 4;
    let names = through.iter().take(SHOWN).map(|name| format!("`{name}`"));
    let names = names.collect::<Vec<String>>().join(", ");
    match through.len() {
        0 => String::new(),
        1..=SHOWN => format!(" through {names}"),
        all => format!(" through {names} and {} more", all - SHOWN),
    }
}
