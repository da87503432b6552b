//! The tree of a kernel, device or stencil function, and of the structs and enums that it may use.
//!
//! Names of locals are plain text: scoping and shadowing are the lowering's work. Everything that is not local
//! is an index into [`Function::paths`], which code in the user's own scope resolves. Types are as written;
//! nothing here is inferred or checked beyond what the syntax shows.

use crate::intrinsic::Intrinsic;
use serde::{Deserialize, Serialize};

/// A line of the source file, counted from 1.
pub type Line = u32;

/// An index into [`Function::paths`] (or [`StructDef::paths`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PathId(pub u32);

impl PathId {
    /// The index as a `usize`.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A function of the kernel language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// The function's name.
    pub name: String,
    /// What it is compiled to.
    pub kind: FunctionKind,
    /// The source file, as the compiler names it; empty where unknown.
    pub file: String,
    /// The line of the name.
    pub line: Line,
    /// Type and const parameters in the order written; lifetimes are left out.
    pub generics: Vec<Generic>,
    /// Parameters; a receiver comes first, under the name `self`.
    pub params: Vec<Param>,
    /// The type after `->`.
    pub ret: Option<Type>,
    /// The body; its value is what the function returns.
    pub body: Block,
    /// Everything non-local that the signature and the body refer to, each once per usage.
    pub paths: Vec<PathRef>,
}

impl Function {
    /// The entry that `id` stands for; `None` where the tree is inconsistent.
    #[must_use]
    pub fn path(&self, id: PathId) -> Option<&PathRef> {
        self.paths.get(id.index())
    }
}

/// What a function is compiled to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FunctionKind {
    /// Launched over a grid; returns nothing.
    Kernel,
    /// Called from kernels and other device functions; may have a receiver.
    Device,
    /// Launched over a grid of cells, one `GridPos` each; returns nothing.
    Stencil,
}

/// A generic parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Generic {
    /// `T: Bound + Bound`, with bounds from the parameter list and from the where clause; each as written.
    Type {
        /// The parameter's name.
        name: String,
        /// The bounds' text.
        bounds: Vec<String>,
    },
    /// `const N: usize`.
    Const {
        /// The parameter's name.
        name: String,
        /// Its type: an integer or `bool`.
        ty: Scalar,
    },
}

impl Generic {
    /// The parameter's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Type { name, .. } | Self::Const { name, .. } => name,
        }
    }
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Its name; `self` for a receiver.
    pub name: String,
    /// Whether the binding is `mut`.
    pub mutable: bool,
    /// Its type; for a receiver [`Type::SelfType`], or a [`Type::Ref`] to it.
    pub ty: Type,
    /// Where it stands.
    pub line: Line,
}

/// A scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "each is the Rust type of the same name; f16 and bf16 are the crate half's"
)]
pub enum Scalar {
    Bool,
    I8,
    I16,
    I32,
    I64,
    Isize,
    U8,
    U16,
    U32,
    U64,
    Usize,
    F16,
    Bf16,
    F32,
    F64,
}

impl Scalar {
    /// Every scalar type.
    pub const ALL: [Self; 15] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::Isize,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::Usize,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
    ];

    /// The type's name in Rust.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::Isize => "isize",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::Usize => "usize",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The type of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scalar| scalar.name() == name)
    }

    /// Whether it is one of the ten integer types.
    #[must_use]
    pub fn is_integer(self) -> bool {
        !self.is_float() && self != Self::Bool
    }

    /// Whether it is one of the four floating-point types.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }
}

/// A type as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Type {
    /// `()`.
    Unit,
    /// `_`: to be inferred.
    Infer,
    /// A scalar.
    Scalar(Scalar),
    /// `&T`, `&mut T`, `&[T]`, `&mut [T]`.
    Ref {
        /// Whether it is `&mut`.
        mutable: bool,
        /// What it refers to.
        target: Box<Type>,
    },
    /// `[T]`; only behind a reference.
    Slice(Box<Type>),
    /// `[T; N]`.
    Array {
        /// The element type.
        element: Box<Type>,
        /// The length: a constant expression of type `usize`.
        len: Box<Expr>,
    },
    /// `(A, B)`, at least one element.
    Tuple(Vec<Type>),
    /// A struct, enum or type alias: [`PathUsage::Type`].
    Named(PathId),
    /// The type parameter of this index in [`Function::generics`].
    Generic(u32),
    /// `Self`.
    SelfType,
    /// `GridPos`, the position of a stencil's cell.
    GridPos,
}

/// A generic argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GenericArg {
    /// A type. A bare name that could also be a constant (`foo::<WIDTH>`) is read as a type, as rustc's parser
    /// does: a [`Type::Named`] whose path the resolver may find to be a constant.
    Type(Type),
    /// A constant: a literal, a const parameter, or a block `{ N + 1 }`.
    Const(Expr),
}

/// A non-local name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRef {
    /// Whether it starts with `::`.
    pub leading_colon: bool,
    /// Its segments as written, at least one.
    pub segments: Vec<PathSegment>,
    /// How it is used.
    pub usage: PathUsage,
    /// The line of its first use.
    pub line: Line,
}

impl PathRef {
    /// The names joined with `::`, without generic arguments.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (index, segment) in self.segments.iter().enumerate() {
            if index > 0 || self.leading_colon {
                text.push_str("::");
            }
            text.push_str(&segment.name);
        }
        text
    }

    /// The generic arguments of the last segment.
    #[must_use]
    pub fn args(&self) -> &[GenericArg] {
        self.segments.last().map_or(&[], |segment| &segment.args)
    }
}

/// A segment of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSegment {
    /// The name (`crate`, `self`, `super` and `Self` included).
    pub name: String,
    /// Its generic arguments.
    pub args: Vec<GenericArg>,
}

/// How a path is used: what the resolver has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PathUsage {
    /// As a value: a constant, or a variant of an enum without data.
    Value,
    /// Called: a device function.
    Call,
    /// As a type: a struct, an enum, or an alias of any type of the language.
    Type,
    /// The struct of a literal `S { x: 1 }` or `S(1)`.
    StructLiteral,
    /// In a pattern: a constant or a variant of an enum without data.
    Pattern,
}

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
        /// A binding, `_`, or a tuple of these.
        pattern: Pattern,
        /// The type, where written.
        ty: Option<Type>,
        /// The value, where written.
        init: Option<Expr>,
    },
    /// An expression whose value is dropped.
    Expr(Expr),
}

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expr {
    /// Where it stands: for a binary operator, a call, an index or a field the line of the operator, the
    /// callee's name, the bracket or the field, which is where a fault is reported.
    pub line: Line,
    /// What it is.
    pub kind: ExprKind,
}

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
        /// The digits as written, without underscores and suffix; `str::parse` reads them.
        text: String,
        /// Its type, where written.
        suffix: Option<Scalar>,
    },
    /// `true` or `false`.
    Bool(bool),
    /// A parameter or a local.
    Local(String),
    /// The const parameter of this index in [`Function::generics`].
    ConstParam(u32),
    /// A constant or an enum's variant: [`PathUsage::Value`].
    Path(PathId),
    /// `f32::MAX`, `T::BITS`: a constant of a scalar ([`Type::Scalar`]) or of a type parameter
    /// ([`Type::Generic`]). `std::f32::consts::PI` and its kin are `TypeConst` of the scalar too.
    TypeConst {
        /// The type before `::`.
        ty: Type,
        /// The constant.
        name: String,
    },
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
        /// A slice, an array, or a workgroup array.
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
    /// A call of a device function: [`PathUsage::Call`].
    Call {
        /// The callee, with its turbofish in [`PathRef::args`].
        callee: PathId,
        /// The arguments.
        args: Vec<Expr>,
    },
    /// `f32::max(a, b)`, `T::from(x)`: a function of a scalar or of a type parameter.
    TypeCall {
        /// The type before `::`: [`Type::Scalar`] or [`Type::Generic`].
        ty: Type,
        /// The function.
        name: String,
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
        /// [`StructName::Path`] of usage [`PathUsage::StructLiteral`], or `Self`.
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
    /// `unreachable!()`: a fault where it is reached.
    Unreachable,
}

/// The struct of a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StructName {
    /// By path.
    Path(PathId),
    /// `Self`.
    SelfType,
}

/// An operator with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum UnaryOp {
    /// `-x`.
    Neg,
    /// `!x`.
    Not,
    /// `*x`.
    Deref,
    /// `&place`.
    Ref,
    /// `&mut place`.
    RefMut,
}

impl UnaryOp {
    /// The operator in Rust, with the space that `&mut ` needs.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Neg => "-",
            Self::Not => "!",
            Self::Deref => "*",
            Self::Ref => "&",
            Self::RefMut => "&mut ",
        }
    }
}

/// An operator with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "`symbol` says what each is")]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}

impl BinaryOp {
    /// The operator in Rust.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Rem => "%",
            Self::BitAnd => "&",
            Self::BitOr => "|",
            Self::BitXor => "^",
            Self::Shl => "<<",
            Self::Shr => ">>",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::And => "&&",
            Self::Or => "||",
        }
    }

    /// Whether its result is a `bool` that compares its operands.
    #[must_use]
    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge
        )
    }
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

/// An arm of a `match`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// Where its pattern stands.
    pub line: Line,
    /// What it matches.
    pub pattern: Pattern,
    /// The condition after `if`.
    pub guard: Option<Expr>,
    /// Its value.
    pub body: Expr,
}

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// Where it stands.
    pub line: Line,
    /// What it is.
    pub kind: PatternKind,
}

/// What a pattern is. In `let` only `Wild`, `Binding` and `Tuple` occur, in `for` only the first two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PatternKind {
    /// `_`.
    Wild,
    /// A new local.
    Binding {
        /// Its name.
        name: String,
        /// Whether it is `mut`.
        mutable: bool,
    },
    /// A constant that must be equal.
    Const(PatternConst),
    /// `a..=b`, `a..b`, `a..`, `..=b`, `..b`.
    Range {
        /// The first value.
        start: Option<PatternConst>,
        /// The bound.
        end: Option<PatternConst>,
        /// Whether the bound matches.
        inclusive: bool,
    },
    /// `a | b`, at least two.
    Or(Vec<Pattern>),
    /// `(a, b)`, and `()`.
    Tuple(Vec<Pattern>),
}

/// A constant in a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PatternConst {
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int {
        /// Whether a minus stands before it.
        negative: bool,
        /// Its magnitude.
        value: u128,
        /// Its type, where written.
        suffix: Option<Scalar>,
    },
    /// A constant or an enum's variant: [`PathUsage::Pattern`].
    Path(PathId),
    /// `i32::MAX`, `T::MIN`.
    TypeConst {
        /// The type before `::`: [`Type::Scalar`] or [`Type::Generic`].
        ty: Type,
        /// The constant.
        name: String,
    },
}

/// The order and scope of an atomic operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MemoryArgs {
    /// The order.
    pub order: MemoryOrder,
    /// Who is ordered.
    pub scope: MemoryScope,
}

/// `Ordering::…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "each is `core::sync::atomic::Ordering`'s variant of the same name"
)]
pub enum MemoryOrder {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

/// `Scope::…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MemoryScope {
    /// The lanes of one work-group.
    Workgroup,
    /// The device.
    Device,
    /// The device, its peers and the host.
    System,
}

/// A part of a printed line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrintPiece {
    /// Text.
    Text(String),
    /// An argument's value.
    Arg {
        /// Its index in the arguments.
        index: u32,
        /// How it is written.
        format: PrintFormat,
    },
}

/// How a printed value is written; Rust's format specification without fill, centring and arguments as widths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct PrintFormat {
    /// The notation.
    pub notation: PrintNotation,
    /// `+`: a sign before positive numbers too.
    pub plus: bool,
    /// `#`: `0x` before hexadecimal digits.
    pub alternate: bool,
    /// `0`: zeros instead of spaces up to the width.
    pub zeros: bool,
    /// `<` or `>`, where written.
    pub align: Option<PrintAlign>,
    /// The least number of characters.
    pub width: Option<u32>,
    /// The number of digits after the point.
    pub precision: Option<u32>,
}

/// The notation of a printed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum PrintNotation {
    /// `{}`.
    #[default]
    Display,
    /// `{:?}`, which shows `1.0` where `{}` shows `1`.
    Debug,
    /// `{:x}`.
    LowerHex,
    /// `{:X}`.
    UpperHex,
    /// `{:e}`.
    LowerExp,
}

/// On which side a printed value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PrintAlign {
    /// `<`.
    Left,
    /// `>`.
    Right,
}

/// A struct that `derive(GpuType)` accepted: `#[repr(C)]`, not generic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StructDef {
    /// Its name.
    pub name: String,
    /// Whether its fields have no names: they are called `0`, `1`, …
    pub tuple: bool,
    /// The fields in order.
    pub fields: Vec<FieldDef>,
    /// What the fields' types refer to.
    pub paths: Vec<PathRef>,
}

/// A field of a struct.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldDef {
    /// Its name.
    pub name: String,
    /// Its type: a scalar, an array, a tuple-free named type.
    pub ty: Type,
    /// Where it stands.
    pub line: Line,
}

/// An enum that `derive(GpuType)` accepted: no data, an integer `repr`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnumDef {
    /// Its name.
    pub name: String,
    /// The integer type that stores it.
    pub repr: Scalar,
    /// Variants and their discriminants, in order.
    pub variants: Vec<(String, i128)>,
}
