//! Blocks, statements and expressions.

use super::{
    Arm, BinaryOp, GenericArg, Line, MemoryArgs, PathId, Pattern, PrintPiece, Scalar, Type, TypeMember,
    UnaryOp, Variant,
};
use crate::intrinsic::Intrinsic;
use crate::nesting::guarded_serde;
use serde::{Deserialize, Serialize};

/// The method by which the reader says `x[a..b]` and, without the end, `x[a..]`: a place.
pub const SLICE: &str = "[a..b]";
/// The method by which the reader says `x[a..=b]`: a place.
pub const SLICE_TO: &str = "[a..=b]";
/// The method by which a loop over elements says which one: a reference where `iter` and its kin gave one.
pub const ELEMENT: &str = "[i]";

/// The name of the method that only what knows its items by their places has; others give one after the other. It does nothing.
pub const INDEXED: &str = "[..]";
/// The method by which a loop over parts says which one: from `start`, of `len` elements, which are there.
pub const PART: &str = "[start; len]";
/// The method by which an iterator's `next` and its kin say that the receiver, a reference, is there if the argument holds: what it
/// refers to is looked at only then.
pub const PICK: &str = "[if there]";
/// The method by which a loop over two iterators in turn says whose item it is: the first's where the receiver holds.
pub const EITHER: &str = "[either]";
/// The method, with another's name behind this, by which the reader says that the first argument holds where the receiver's type is an
/// iterator without such a method of its own, and the second elsewhere.
pub const ITERATED: &str = "[iterated] ";
/// Behind [`ITERATED`]: only where it is an iterator of the user's, and no range.
pub const OWN: &str = "[own] ";
/// The method, with another's name behind this, by which a loop says that it takes that one for an iterator's: what has one of its own
/// refuses that, and with an argument what runs it at once. It does nothing.
pub const LACKS: &str = "[lacks] ";
/// The method by which the reader says `Reverse(x)`: a value in the other order.
pub const REVERSED: &str = "[reversed]";

/// What a constant of a type is of that `mem` has: `size_of::<T>()`.
pub const MEASURED: &str = "mem";

/// A sequence of statements with an optional value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// The statements.
    pub stmts: Vec<Stmt>,
    /// The last expression, where no semicolon follows it.
    pub value: Option<Box<Expr>>,
    /// The line of the closing brace.
    pub end_line: Line,
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stmt {
    /// Where it starts.
    pub line: Line,
    /// What it is.
    pub kind: StmtKind,
}

/// What a statement is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StmtKind {
    /// `let pattern: ty = init;`
    Let {
        /// A pattern that always matches.
        pattern: Pattern,
        /// The type, where written.
        ty: Option<Type>,
        /// The value, where written.
        init: Option<Expr>,
    },
    /// An expression whose value is dropped.
    Expr(Expr),
}

/// The bytes of a file in which something stands; empty where they are unknown, as in trees that were encoded. It is no part of what a
/// tree means: all places are equal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// The first.
    pub start: u32,
    /// The one behind the last.
    pub end: u32,
}

impl PartialEq for Place {
    fn eq(&self, _: &Place) -> bool {
        true
    }
}

impl Eq for Place {}

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Expr {
    /// All of it in the source.
    #[serde(skip)]
    pub place: Place,
    /// Where it stands: for a binary operator, a call, an index or a field the line of the operator, the
    /// callee's name, the bracket or the field, which is where a fault is reported.
    pub line: Line,
    /// What it is.
    pub kind: ExprKind,
}

/// How many conditions of a kernel are numbered at most. The numbers from this one up to 63 are those of conditions that the
/// language itself has.
pub const MOST_CONDITIONS: u32 = 62;

/// What an expression is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExprKind {
    /// An integer literal (a byte literal `b'a'` has the suffix `u8`). Signs are [`UnaryOp::Neg`].
    Int {
        /// The value.
        value: u128,
        /// Its type, where written.
        suffix: Option<Scalar>,
    },
    /// A float literal.
    Float {
        /// The digits without underscores and suffix; `str::parse` reads them.
        text: String,
        /// Its type, where written.
        suffix: Option<Scalar>,
    },
    /// `true` or `false`.
    Bool(bool),
    /// A parameter or a local.
    Local(String),
    /// The const parameter of this index in [`Function::generics`](super::Function::generics).
    ConstParam(u32),
    /// A constant or an enum's variant: [`PathUsage::Value`](super::PathUsage::Value).
    Path(PathId),
    /// `f32::MAX`, `T::BITS`, `<T as Trait>::ZERO`: a constant of a type. `std::f32::consts::PI` and its kin are
    /// `TypeConst` of the scalar too.
    TypeConst(Box<TypeMember>),
    /// An operator with one operand.
    Unary {
        /// The operator.
        op: UnaryOp,
        /// Its operand.
        operand: Box<Expr>,
    },
    /// An operator with two operands; `&&` and `||` evaluate the second only where it counts.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `place = value`.
    Assign {
        /// A local, an index, a field, or a dereference.
        place: Box<Expr>,
        /// What is stored.
        value: Box<Expr>,
    },
    /// `place op= value`; never [`BinaryOp::And`], [`BinaryOp::Or`] or a comparison.
    CompoundAssign {
        /// The operator.
        op: BinaryOp,
        /// A local, an index, a field, or a dereference.
        place: Box<Expr>,
        /// The right operand.
        value: Box<Expr>,
    },
    /// `value as ty`.
    Cast {
        /// What is converted.
        value: Box<Expr>,
        /// The type that it becomes.
        ty: Type,
    },
    /// `base[index]`.
    Index {
        /// A slice, an array, or a shared array.
        base: Box<Expr>,
        /// The index.
        index: Box<Expr>,
    },
    /// `base.name`.
    Field {
        /// A struct.
        base: Box<Expr>,
        /// The field.
        name: String,
    },
    /// `base.0`: of a tuple or a tuple struct.
    TupleField {
        /// The tuple.
        base: Box<Expr>,
        /// The field.
        index: u32,
    },
    /// A call of a device function: [`PathUsage::Call`](super::PathUsage::Call).
    Call {
        /// The callee, with its turbofish in [`PathRef::args`](super::PathRef::args).
        callee: PathId,
        /// The arguments.
        args: Vec<Expr>,
    },
    /// A call of a local, which is a closure.
    CallLocal {
        /// Its name.
        name: String,
        /// The arguments.
        args: Vec<Expr>,
    },
    /// What a method of iterators was given, called: a closure.
    Apply {
        /// The closure.
        function: Box<Expr>,
        /// The arguments.
        args: Vec<Expr>,
    },
    /// `|a, b: T| body`.
    Closure {
        /// Whether `move` stands before it.
        moved: bool,
        /// The parameters: a binding, `_`, or a tuple of these, and the type where written.
        params: Vec<(Pattern, Option<Type>)>,
        /// The type after `->`.
        ret: Option<Type>,
        /// What it gives.
        body: Box<Expr>,
    },
    /// A function by its name in the place of a closure: its call, without arguments.
    Function(Box<Expr>),
    /// A range as an argument: of a parameter that is a range its value, of one that is an iterator a closure that gives the next item.
    RangeArgument {
        /// The value.
        range: Box<Expr>,
        /// The closure.
        next: Box<Expr>,
    },
    /// `f32::max(a, b)`, `T::from(x)`, `<T as Trait>::zero()`: a function of a type. `Trait::f(x)` is one of
    /// [`Type::Infer`].
    TypeCall {
        /// Which.
        member: Box<TypeMember>,
        /// The arguments, a receiver first.
        args: Vec<Expr>,
    },
    /// `receiver.name::<generics>(args)`.
    MethodCall {
        /// The receiver.
        receiver: Box<Expr>,
        /// The method.
        name: String,
        /// The turbofish.
        generics: Vec<GenericArg>,
        /// The arguments without the receiver.
        args: Vec<Expr>,
    },
    /// A function of the language.
    Intrinsic {
        /// Which.
        intrinsic: Intrinsic,
        /// The turbofish.
        generics: Vec<GenericArg>,
        /// The arguments (order and scope are in `memory`).
        args: Vec<Expr>,
        /// The order and scope of an `_explicit` atomic.
        memory: Option<MemoryArgs>,
    },
    /// The condition of a kernel's `if`, with the `if`'s number in the source.
    Condition {
        /// The number, less than [`MOST_CONDITIONS`](crate::MOST_CONDITIONS).
        number: u32,
        /// The condition.
        value: Box<Expr>,
    },
    /// `if`; `otherwise` is a [`ExprKind::Block`] or another `If`.
    If {
        /// The condition.
        cond: Box<Expr>,
        /// Where it holds.
        then: Block,
        /// Where it does not.
        otherwise: Option<Box<Expr>>,
    },
    /// `match`.
    Match {
        /// What is matched.
        scrutinee: Box<Expr>,
        /// The arms in order.
        arms: Vec<Arm>,
    },
    /// `loop`.
    Loop {
        /// The label without its tick.
        label: Option<String>,
        /// The body.
        body: Block,
    },
    /// `while`.
    While {
        /// The label without its tick.
        label: Option<String>,
        /// The condition.
        cond: Box<Expr>,
        /// The body.
        body: Block,
    },
    /// `for` over a range.
    For {
        /// The label without its tick.
        label: Option<String>,
        /// A binding or `_`.
        pattern: Pattern,
        /// What is counted.
        range: Box<Range>,
        /// The body.
        body: Block,
    },
    /// `{ }`, with a label or without.
    Block {
        /// The label without its tick.
        label: Option<String>,
        /// The block.
        block: Block,
    },
    /// `break`.
    Break {
        /// The label without its tick.
        label: Option<String>,
        /// The value.
        value: Option<Box<Expr>>,
    },
    /// `continue`.
    Continue {
        /// The label without its tick.
        label: Option<String>,
    },
    /// `return`.
    Return(Option<Box<Expr>>),
    /// `(a, b)`; no elements is the unit value.
    Tuple(Vec<Expr>),
    /// `[a, b]`.
    Array(Vec<Expr>),
    /// `[value; len]`.
    Repeat {
        /// The element.
        value: Box<Expr>,
        /// The length: a constant expression of type `usize`.
        len: Box<Expr>,
    },
    /// `S { x: 1, y: 2 }` or `S(1, 2)`.
    StructLiteral {
        /// [`StructName::Path`] of usage [`PathUsage::StructLiteral`](super::PathUsage::StructLiteral), or `Self`.
        name: StructName,
        /// Fields in the order written; a tuple struct's are named `0`, `1`, …
        fields: Vec<(String, Expr)>,
        /// The value after `..`, from which the fields not written come.
        base: Option<Box<Expr>>,
    },
    /// `gpu_println!("…", args)`; a line's end follows the text.
    Print {
        /// The text between the arguments, and their places.
        pieces: Vec<PrintPiece>,
        /// The arguments.
        args: Vec<Expr>,
    },
    /// `Some(x)`, `None`, `Ok(x)`, `Err(x)`.
    Variant {
        /// Which.
        variant: Variant,
        /// What it holds.
        payload: Option<Box<Expr>>,
    },
    /// `value?`.
    Try(Box<Expr>),
    /// `unreachable!()`: a fault where it is reached.
    Unreachable,
    /// `panic!("…", args)`: a fault with a message.
    Panic {
        /// The text between the arguments, and their places; nothing is `panic!()`.
        pieces: Vec<PrintPiece>,
        /// The arguments.
        args: Vec<Expr>,
    },
}

/// The struct, or the variant of an enum, of a literal or a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StructName {
    /// By path.
    Path(PathId),
    /// `Self`.
    SelfType,
    /// `Shape::Circle`, `Self::Circle`, `Maybe::<f32>::Just`.
    Variant(Box<TypeMember>),
    /// `Range`, or `RangeInclusive` where it has its end; the fields are `start` and `end`.
    Range(bool),
    /// The numbers of a range in steps: the fields are `first`, `step` and `count`.
    Steps,
}

/// What a `for` loop counts: `start..end`, changed by the adaptors in the order written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The first value.
    pub start: Expr,
    /// The bound.
    pub end: Expr,
    /// Whether the bound is counted (`..=`).
    pub inclusive: bool,
    /// `.rev()` and `.step_by(n)`.
    pub adaptors: Vec<RangeAdaptor>,
}

/// A method on a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RangeAdaptor {
    /// `.rev()`.
    Rev,
    /// `.step_by(n)`, `n` a `usize`; zero is a fault.
    StepBy(Box<Expr>),
}

guarded_serde!(Expr);

impl Expr {
    /// An expression in this line, of which no more is known.
    #[must_use]
    pub fn new(line: Line, kind: ExprKind) -> Expr {
        let place = Place::default();
        Expr { place, line, kind }
    }
}
