//! The instruction set: one table. Assembler, disassembler, binary form, verifier, lowering and the specification read it.
//!
//! Operators that compute a value from values are the IR's ([`perpetua_ir::ops`]), under its names; what is added here is
//! what only programs have. Each of hologram's instructions is found under its own name, too. The rows lie in `rows`.

mod rows;

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use perpetua_ir::ir::{AtomicOp, ReduceOp, Scalar, Scope};
use perpetua_ir::ops::{BinaryOp, Domain, TernaryOp, UnaryOp};

/// An instruction's kind: a row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Opcode(u16);

/// What the table says of an opcode.
pub struct Row {
    /// Name in the text form and in the binary.
    pub name: String,
    /// Other names that the assembler takes.
    pub aliases: Vec<String>,
    /// Types that it works on; `None` where it has no type.
    pub types: Option<Domain>,
    /// Whether a second type follows: what a conversion starts from.
    pub from: bool,
    /// Its operands, in order.
    pub operands: Vec<Slot>,
    /// What it does, in words.
    pub doc: String,
    /// What it does.
    pub meaning: Meaning,
}

/// What an operand may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A register that is written (a predicate where the type is `bool`).
    Write(Ty),
    /// A value that is read: register, constant, special, parameter, length.
    Read(Ty),
    /// An element of a memory.
    Place(Space, Use),
    /// A label.
    Label,
    /// A routine.
    Routine,
    /// The first of several registers in a row that are read.
    Run,
    /// The first of several registers in a row that are read and written.
    Sums,
    /// A positive constant: how many.
    Count,
    /// A pool.
    Pool,
}

/// An operand's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ty {
    /// The instruction's.
    Own,
    /// The one that a conversion starts from.
    From,
    /// This one.
    Fixed(Scalar),
    /// The unsigned integer of the instruction's width.
    Unsigned,
}

/// Kinds of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// A buffer.
    Global,
    /// Memory of a block.
    Shared,
    /// A buffer or memory of a block.
    Any,
    /// A table of constants.
    Constant,
    /// A block of a pool: the first part of the index is its handle.
    Pool,
}

impl Space {
    /// What it is, in words.
    pub fn describe(self) -> &'static str {
        match self {
            Space::Global => "a buffer",
            Space::Shared => "shared memory",
            Space::Any => "a buffer or shared memory",
            Space::Constant => "a table of constants",
            Space::Pool => "a pool",
        }
    }
}

/// What is done with an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is read.
    Load,
    /// It is written, or read and written.
    Store,
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// An operator of the IR.
    Unary(UnaryOp),
    /// An operator of the IR.
    Binary(BinaryOp),
    /// An operator of the IR.
    Ternary(TernaryOp),
    /// A function made of several operators.
    Activation(Activation),
    /// A comparison, at the instruction's type or at the unsigned one of its width.
    Compare(BinaryOp, bool),
    /// A copy.
    Move,
    /// Rust's `as`.
    Convert,
    /// The same bits at another type.
    Bitcast,
    /// Product and sum, each rounded.
    MultiplyAdd,
    /// Reads memory.
    Load(Space),
    /// Writes memory.
    Store(Space),
    /// Reads, changes and writes memory in one.
    Atomic(AtomicOp),
    /// Replaces where memory holds what is expected.
    CompareExchange,
    /// Goes on at a label.
    Branch,
    /// Goes through a routine.
    Call,
    /// Leaves a routine.
    Return,
    /// Counts a register down and goes to a label while there was something to count.
    Loop,
    /// Ends the lane.
    Exit,
    /// Nothing.
    Nop,
    /// All lanes of the block meet.
    Barrier,
    /// Orders memory; `None`: for this lane alone, which is ordered anyway.
    Fence(Option<Scope>),
    /// Combines registers of one lane.
    Reduce(ReduceOp),
    /// Combines a value of each lane of the block; each gets the result.
    Group(ReduceOp),
    /// Combines a value of each lane of the grid into an element of a buffer.
    Grid(ReduceOp),
    /// Copies elements.
    Copy,
    /// Sets elements.
    Fill,
    /// Multiplies tiles that lie in registers.
    Tile,
    /// Takes a block out of a pool.
    PoolAlloc,
    /// Gives a block back to its pool.
    PoolFree,
}

impl Meaning {
    /// Whether it gives a value of values, and does nothing else.
    pub(crate) fn is_value(self) -> bool {
        matches!(
            self,
            Meaning::Move
                | Meaning::Unary(_)
                | Meaning::Binary(_)
                | Meaning::Ternary(_)
                | Meaning::Activation(_)
                | Meaning::Compare(..)
                | Meaning::Convert
                | Meaning::Bitcast
                | Meaning::MultiplyAdd
        )
    }

    /// Whether it takes a lane as long as its operands say.
    pub(crate) fn has_loop(self) -> bool {
        matches!(self, Meaning::Copy | Meaning::Fill | Meaning::PoolAlloc)
    }

    /// Whether all lanes of a block come to it together.
    pub(crate) fn is_meeting(self) -> bool {
        matches!(self, Meaning::Barrier | Meaning::Group(_) | Meaning::Grid(_))
    }
}

/// Functions of floats, made of several operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `max(x, 0)`.
    Relu,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `x sigmoid(x)`.
    Silu,
    /// `x / 2 (1 + tanh(0.7978845608 (x + 0.044715 x³)))`.
    Gelu,
    /// `max(x, 0) + ln_1p(exp(-|x|))`.
    Softplus,
    /// `x / (1 + |x|)`.
    Softsign,
    /// `exp_m1(x)` below zero, `x` above.
    Elu,
    /// `clamp(x / 6 + 1 / 2, 0, 1)`.
    HardSigmoid,
}

impl Activation {
    /// All of them: name, formula, which.
    pub const ALL: [(&'static str, &'static str, Activation); 8] = [
        ("relu", "max(x, 0)", Activation::Relu),
        ("sigmoid", "1 / (1 + exp(-x))", Activation::Sigmoid),
        ("silu", "x * sigmoid(x)", Activation::Silu),
        (
            "gelu",
            "x / 2 * (1 + tanh(0.7978845608 * (x + 0.044715 * x³)))",
            Activation::Gelu,
        ),
        ("softplus", "max(x, 0) + ln_1p(exp(-|x|))", Activation::Softplus),
        ("softsign", "x / (1 + |x|)", Activation::Softsign),
        ("elu", "x above zero, exp_m1(x) below", Activation::Elu),
        (
            "hard_sigmoid",
            "x / 6 + 1 / 2, limited to [0, 1]",
            Activation::HardSigmoid,
        ),
    ];
}

impl Row {
    /// The faults that it may meet at run time.
    pub fn faults(&self) -> Vec<&'static str> {
        let mut faults = Vec::new();
        let is_int = |domain: &Option<Domain>| domain.is_some_and(|domain| domain.contains(Scalar::I32));
        match self.meaning {
            Meaning::Binary(BinaryOp::Div | BinaryOp::Rem) if is_int(&self.types) => {
                faults.push("division of an integer by zero, or of MIN by -1");
            }
            Meaning::Group(_) | Meaning::Grid(_) => faults.push("a block of more than 1024 lanes"),
            Meaning::PoolAlloc => faults.push("a pool without room"),
            Meaning::PoolFree | Meaning::Load(Space::Pool) | Meaning::Store(Space::Pool) => {
                faults.push("a handle without a block");
            }
            _ => {}
        }
        if self.operands.iter().any(|slot| matches!(slot, Slot::Place(..))) {
            faults.push("an index out of bounds");
        }
        faults
    }
}

impl Opcode {
    /// The opcode with this name, or with this other name.
    pub fn from_name(name: &str) -> Option<Opcode> {
        TABLE.names.get(name).copied()
    }

    /// All opcodes, in the order of the specification.
    pub fn all() -> impl ExactSizeIterator<Item = Opcode> {
        (0..TABLE.rows.len() as u16).map(Opcode)
    }

    /// The table's row.
    pub fn row(self) -> &'static Row {
        // Opcodes are made from the table alone.
        &TABLE.rows[usize::from(self.0)]
    }

    /// What it does.
    pub fn meaning(self) -> Meaning {
        self.row().meaning
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.row().name)
    }
}

impl Ty {
    /// The type itself, in an instruction of these types.
    pub fn of(self, own: Option<Scalar>, from: Option<Scalar>) -> Option<Scalar> {
        match self {
            Ty::Own => own,
            Ty::From => from,
            Ty::Fixed(scalar) => Some(scalar),
            Ty::Unsigned => own.map(Scalar::to_unsigned),
        }
    }
}

struct Table {
    rows: Vec<Row>,
    names: HashMap<String, Opcode>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let rows = rows::rows();
    let mut names = HashMap::new();
    for (i, row) in rows.iter().enumerate() {
        for name in row.aliases.iter().chain([&row.name]) {
            names.insert(name.clone(), Opcode(i as u16));
        }
    }
    Table { rows, names }
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let count: usize = Opcode::all().map(|o| 1 + o.row().aliases.len()).sum();
        assert_eq!(TABLE.names.len(), count);
        for opcode in Opcode::all() {
            assert_eq!(Opcode::from_name(&opcode.row().name), Some(opcode));
        }
    }

    #[test]
    fn holograms_instructions_are_found() {
        let names = "\
            ldg stg lds sts mov mov_imm cvt add sub mul div mad fma min max abs neg pow and or xor not shl shr seteq setne setlt \
            setle setgt setge setltu setleu setgtu setgeu sel bra call ret loop exit barsync memfence_thread memfence_block \
            memfence_device memfence_system reduceadd reducemin reducemax reducemul exp log log2 log10 sqrt rsqrt sin cos tan \
            tanh sigmoid poolalloc poolfree poolload poolstore";
        for name in names.split_whitespace() {
            assert!(Opcode::from_name(name).is_some(), "{name}");
        }
    }
}
