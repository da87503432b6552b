//! The typed tree: a function's syntax with locals resolved, methods found and every expression's type. Types may
//! still be variables of the function's unifier; the emitter asks it.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use perpetua_syntax::{BinaryOp, Function, Intrinsic, PrintPiece};

use super::methods::Method;
use super::ty::{Generic, Len, Ty, Unifier};
use crate::front::rust::describe::ConstValue;
use crate::front::rust::resolve::members::Members;
use crate::front::rust::resolve::{FunctionDef, Resolutions};
use crate::ir::Sync;

/// A function's tree and names, read once.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) def: FunctionDef,
    pub(crate) tree: Arc<Function>,
    pub(crate) names: Resolutions,
    pub(crate) members: Arc<Members>,
}

/// A local of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LocalId(pub(crate) u32);

/// What is known of a local.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub(crate) name: String,
    /// Where it is declared.
    pub(crate) line: u32,
    pub(crate) ty: Ty,
    pub(crate) mutable: bool,
    /// Declared without a value.
    pub(crate) deferred: bool,
    /// Stored to after its declaration, or borrowed mutably.
    pub(crate) assigned: bool,
    /// Indexed or borrowed as a whole: better kept in memory if it holds an array.
    pub(crate) indexed: bool,
}

/// A loop or a labelled block of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TargetId(pub(crate) u32);

/// A function with its generics bound and its types inferred.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) loaded: Rc<Loaded>,
    /// One for each parameter, in order.
    pub(crate) params: Vec<LocalId>,
    pub(crate) ret: Ty,
    pub(crate) body: Block,
    pub(crate) locals: Vec<Local>,
    pub(crate) types: Unifier,
    /// Whether a `return` stands anywhere but at the body's end.
    pub(crate) early_return: bool,
    /// Whether it synchronises, talks to its subgroup, or declares shared memory: then it is inlined.
    pub(crate) collective: bool,
    /// Whether it looks at a third dimension of a grid.
    pub(crate) deep: bool,
    /// The functions that it calls, each with the line of a call.
    pub(crate) calls: Vec<(Rc<Loaded>, Vec<Generic>, u32)>,
}

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) stmts: Vec<Stmt>,
    pub(crate) value: Option<Box<Expr>>,
}

#[derive(Debug)]
pub(crate) struct Stmt {
    pub(crate) line: u32,
    pub(crate) kind: StmtKind,
}

#[derive(Debug)]
pub(crate) enum StmtKind {
    Let(Pat, Option<Expr>),
    Expr(Expr),
}

/// A pattern of `match` or `let`. Scalars are compared as integers.
#[derive(Clone, Debug)]
pub(crate) enum Pat {
    Wild,
    Binding(LocalId),
    /// From and to, both included; `None` is the type's end.
    Range(Option<i128>, Option<i128>),
    /// Some floats.
    Floats(FloatBounds),
    Or(Vec<Pat>),
    /// The parts of a tuple, a struct or an array, one for each.
    Tuple(Vec<Pat>),
    /// A name for what also matches.
    At(Box<Pat>, Box<Pat>),
    /// The first elements of a slice or an array, what is between where there may be more, and the last elements.
    Slice {
        front: Vec<Pat>,
        /// What the elements between are called, or [`Pat::Wild`]; `None` where there are none.
        rest: Option<Box<Pat>>,
        back: Vec<Pat>,
        /// How many there are in all, of an array.
        of: Option<u64>,
    },
    /// A name for a reference to what is met.
    Borrow(LocalId),
    /// A name for a reference to change what is met.
    BorrowMut(LocalId),
    /// Of what a reference refers to.
    Deref(Box<Pat>),
}

/// Which floats a pattern matches, by digits.
#[derive(Clone, Debug)]
pub(crate) enum FloatBounds {
    /// What is equal.
    Equal(String),
    /// From and to; the flag says whether the end is included.
    Between(Option<String>, Option<(String, bool)>),
}

#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) line: u32,
    pub(crate) ty: Ty,
    pub(crate) kind: ExprKind,
}

/// What an `into` is, once that is known.
pub(crate) type Settled = Rc<OnceCell<(LocalId, Expr)>>;

#[derive(Debug)]
pub(crate) enum ExprKind {
    Int(u128),
    Float(String),
    Bool(bool),
    /// A constant: its name for tables, its value.
    Constant(Rc<str>, Rc<ConstValue>),
    /// A const parameter of type `usize` whose value is inferred.
    Len(Len),
    Local(LocalId),
    Neg(Box<Expr>),
    Not(Box<Expr>),
    /// Never `And` or `Or`.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `&&` (true) or `||`.
    Logic(bool, Box<Expr>, Box<Expr>),
    Assign(Box<Expr>, Box<Expr>),
    CompoundAssign(BinaryOp, Box<Expr>, Box<Expr>),
    /// `as`.
    Cast(Box<Expr>),
    /// `From` or `Into`; the flag says that only lossless conversions are meant.
    Convert(Box<Expr>, bool),
    /// `into` whose type is said behind it: where that is no scalar, a local for the value and the call of `From` with it.
    Into(Box<Expr>, Settled),
    /// Of an array or slice place.
    Index(Box<Expr>, Box<Expr>),
    /// Of a struct or tuple place.
    Field(Box<Expr>, u32),
    /// Of a place, or of a value that gets a temporary place.
    Ref(Box<Expr>),
    Deref(Box<Expr>),
    /// A reference under another type: `&mut T` as `&T`, `&[T; N]` as `&[T]`.
    Reborrow(Box<Expr>),
    Call(Rc<Loaded>, Vec<Generic>, Vec<Expr>),
    Closure(Rc<ClosureBody>),
    CallClosure(Box<Expr>, Vec<Expr>),
    /// Receiver first.
    Method(Method, Vec<Expr>),
    /// The number of elements of a slice or array place.
    LenOf(Box<Expr>),
    /// A part of a slice or array place, which is a place: from where, and to where.
    Part(Box<Expr>, Box<Expr>, Option<Box<Expr>>, PartEnd),
    /// An element of a slice or array place, at an index that lies in the part that the place is.
    Element(Box<Expr>, Box<Expr>),
    /// Exchanges two elements of a slice or array place.
    Swap(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Stores a value in each element of a slice or array place.
    Fill(Box<Expr>, Box<Expr>),
    Intrinsic(Intrinsic, Vec<Expr>, Sync),
    Grid(GridMethod, Vec<Expr>),
    /// The condition of a kernel's `if`, with its number.
    Condition(u32, Box<Expr>),
    If(Box<Expr>, Block, Option<Box<Expr>>),
    Match(Box<Expr>, Vec<Arm>),
    Loop(TargetId, Block),
    While(TargetId, Box<Expr>, Block),
    For(TargetId, Option<LocalId>, Box<Range>, Block),
    /// With a target where it has a label.
    Block(Option<TargetId>, Block),
    Break(TargetId, Option<Box<Expr>>),
    Continue(TargetId),
    Return(Option<Box<Expr>>),
    Tuple(Vec<Expr>),
    Array(Vec<Expr>),
    Repeat(Box<Expr>, Len),
    /// Fields in the order evaluated, with their indices; the value from which the others come.
    Struct(Vec<(u32, Expr)>, Option<Box<Expr>>),
    Print(Vec<PrintPiece>, Vec<Expr>),
    Panic(Vec<PrintPiece>, Vec<Expr>),
    Unreachable,
    /// Zeros, where a variant has nothing.
    Zero,
    /// What a sum (`false`) or a product starts with.
    Identity(bool),
    /// The type's `Default`, as its description has it.
    Default,
}

/// What the end of a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartEnd {
    /// The index behind the last; without an end, behind the last of all. Both ends are checked.
    Behind,
    /// The last index. Both ends are checked.
    Last,
    /// The number of elements, which are known to be there.
    Len,
}

/// What a closure does.
#[derive(Debug)]
pub(crate) struct ClosureBody {
    pub(crate) params: Vec<Pat>,
    pub(crate) body: Expr,
    /// The locals that it captures, where `move` stands before it.
    pub(crate) moved: Option<Vec<LocalId>>,
}

#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) line: u32,
    pub(crate) pattern: Pat,
    pub(crate) guard: Option<Expr>,
    pub(crate) body: Expr,
}

#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) start: Expr,
    pub(crate) end: Expr,
    pub(crate) inclusive: bool,
    pub(crate) adaptors: Vec<Adaptor>,
}

#[derive(Debug)]
pub(crate) enum Adaptor {
    Rev,
    StepBy(Expr),
}

/// A method of `GridPos`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GridMethod {
    /// The cell's coordinate along an axis, 0 to 2.
    Coordinate(u8),
    /// The cell's index in a slice.
    Idx,
    /// A neighbour at a fixed offset in x, y and z; the argument is the grid.
    Near([i8; 3]),
    /// A neighbour at an offset given by two or three arguments after the grid.
    At,
}

/// Whether a pattern has names for references to change what it meets.
pub(crate) fn borrows_mut(pat: &Pat) -> bool {
    match pat {
        Pat::BorrowMut(_) => true,
        Pat::At(name, inner) => borrows_mut(name) || borrows_mut(inner),
        Pat::Tuple(parts) | Pat::Or(parts) => parts.iter().any(borrows_mut),
        Pat::Slice { front, back, .. } => front.iter().chain(back).any(borrows_mut),
        Pat::Wild | Pat::Binding(_) | Pat::Borrow(_) | Pat::Range(..) | Pat::Floats(_) | Pat::Deref(_) => {
            false
        }
    }
}

/// Whether the pattern tests nothing.
pub(crate) fn always_matches(pat: &Pat) -> bool {
    match pat {
        Pat::Wild | Pat::Binding(_) | Pat::Borrow(_) | Pat::BorrowMut(_) => true,
        Pat::At(_, inner) | Pat::Deref(inner) => always_matches(inner),
        Pat::Tuple(parts) => parts.iter().all(always_matches),
        Pat::Range(..) | Pat::Floats(_) | Pat::Or(_) | Pat::Slice { .. } => false,
    }
}

/// Whether the pattern looks at what references refer to.
pub(crate) fn follows_references(pat: &Pat) -> bool {
    match pat {
        Pat::Deref(_) | Pat::Slice { .. } => true,
        Pat::At(_, inner) => follows_references(inner),
        Pat::Tuple(parts) | Pat::Or(parts) => parts.iter().any(follows_references),
        Pat::Wild
        | Pat::Binding(_)
        | Pat::Borrow(_)
        | Pat::BorrowMut(_)
        | Pat::Range(..)
        | Pat::Floats(_) => false,
    }
}
