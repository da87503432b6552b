//! Expressions as text, with the parentheses that their binding asks for.

use super::Printer;
use crate::ast::{BinaryOp, Expr, ExprKind, PrintPiece, Scalar, StructName, Type, TypeMember};
use std::fmt::{Display, Result};

/// How tightly an expression binds, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binding {
    /// `return`, `break`, assignments.
    Jump,
    Or,
    And,
    Compare,
    BitOr,
    BitXor,
    BitAnd,
    Shift,
    Sum,
    Product,
    Cast,
    Unary,
    /// Names, literals, calls, fields, indices.
    Tight,
}

fn binding_of_op(op: BinaryOp) -> Binding {
    match op {
        BinaryOp::Or => Binding::Or,
        BinaryOp::And => Binding::And,
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
            Binding::Compare
        }
        BinaryOp::BitOr => Binding::BitOr,
        BinaryOp::BitXor => Binding::BitXor,
        BinaryOp::BitAnd => Binding::BitAnd,
        BinaryOp::Shl | BinaryOp::Shr => Binding::Shift,
        BinaryOp::Add | BinaryOp::Sub => Binding::Sum,
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => Binding::Product,
    }
}

/// The binding of a whole expression. What ends in a brace counts as loose: as an operand it wants parentheses.
pub(super) fn binding_of(kind: &ExprKind) -> Binding {
    match kind {
        ExprKind::Binary { op, .. } => binding_of_op(*op),
        ExprKind::Cast { .. } => Binding::Cast,
        ExprKind::Unary { .. } => Binding::Unary,
        ExprKind::Return(_)
        | ExprKind::Break { .. }
        | ExprKind::Continue { .. }
        | ExprKind::Closure { .. }
        | ExprKind::Assign { .. }
        | ExprKind::CompoundAssign { .. } => Binding::Jump,
        ExprKind::Condition { value, .. } => binding_of(&value.kind),
        kind if ends_in_block(kind) => Binding::Jump,
        _ => Binding::Tight,
    }
}

/// Whether an expression is a statement without a semicolon.
pub(super) fn ends_in_block(kind: &ExprKind) -> bool {
    matches!(
        kind,
        ExprKind::If { .. }
            | ExprKind::Match { .. }
            | ExprKind::Loop { .. }
            | ExprKind::While { .. }
            | ExprKind::For { .. }
            | ExprKind::Block { .. }
    )
}

/// Whether the text of an expression starts or ends outside parentheses with a struct literal.
pub(super) fn shows_struct_literal(kind: &ExprKind) -> bool {
    match kind {
        ExprKind::StructLiteral { .. } => true,
        ExprKind::Binary { left, right, .. } => {
            shows_struct_literal(&left.kind) || shows_struct_literal(&right.kind)
        }
        ExprKind::Unary { operand: inner, .. }
        | ExprKind::Cast { value: inner, .. }
        | ExprKind::Condition { value: inner, .. }
        | ExprKind::Field { base: inner, .. }
        | ExprKind::TupleField { base: inner, .. }
        | ExprKind::Index { base: inner, .. }
        | ExprKind::MethodCall { receiver: inner, .. } => shows_struct_literal(&inner.kind),
        _ => false,
    }
}

/// Whether the text of an expression ends in a cast's type.
fn ends_in_cast(kind: &ExprKind) -> bool {
    match kind {
        ExprKind::Cast { .. } => true,
        ExprKind::Binary { right, .. } => ends_in_cast(&right.kind),
        _ => false,
    }
}

impl Printer<'_, '_> {
    /// An expression that must bind at least as tightly as `least`, in parentheses where it does not.
    pub(super) fn operand(&mut self, expr: &Expr, least: Binding) -> Result {
        self.expr_in(expr, binding_of(&expr.kind) < least)
    }

    /// A condition, a scrutinee or a range's end, where a brace would end the expression.
    pub(super) fn head(&mut self, expr: &Expr) -> Result {
        self.expr_in(expr, shows_struct_literal(&expr.kind))
    }

    pub(super) fn expr_in(&mut self, expr: &Expr, parentheses: bool) -> Result {
        if parentheses {
            self.text("(")?;
            self.expr(expr)?;
            return self.text(")");
        }
        self.expr(expr)
    }

    pub(super) fn expr(&mut self, expr: &Expr) -> Result {
        match &expr.kind {
            ExprKind::Condition { value, .. } => self.expr(value),
            ExprKind::Int { value, suffix } => self.number(value, *suffix),
            ExprKind::Float { text, suffix } => self.number(text, *suffix),
            ExprKind::Bool(value) => self.text(value),
            ExprKind::Local(name) => self.text(name),
            ExprKind::ConstParam(index) => self.generic_name(*index),
            ExprKind::Path(path) => self.path(*path, "::"),
            ExprKind::TypeConst(member) => self.member(member),
            ExprKind::Unary { op, operand } => {
                self.text(op.symbol())?;
                self.operand(operand, Binding::Unary)
            }
            ExprKind::Binary { op, left, right } => self.binary(*op, left, right),
            ExprKind::Assign { place, value } => {
                self.operand(place, Binding::Unary)?;
                self.text(" = ")?;
                self.expr(value)
            }
            ExprKind::CompoundAssign { op, place, value } => {
                self.operand(place, Binding::Unary)?;
                self.text(format_args!(" {}= ", op.symbol()))?;
                self.expr(value)
            }
            ExprKind::Cast { value, ty } => {
                self.operand(value, Binding::Cast)?;
                self.text(" as ")?;
                self.ty(ty)
            }
            ExprKind::Index { base, index } => {
                self.operand(base, Binding::Tight)?;
                self.text("[")?;
                self.expr(index)?;
                self.text("]")
            }
            ExprKind::Field { base, name } => {
                self.operand(base, Binding::Tight)?;
                self.text(format_args!(".{name}"))
            }
            ExprKind::TupleField { base, index } => {
                self.operand(base, Binding::Tight)?;
                self.text(format_args!(".{index}"))
            }
            ExprKind::Call { callee, args } => {
                self.path(*callee, "::")?;
                self.args(args)
            }
            ExprKind::Variant { variant, payload } => {
                self.text(variant.name())?;
                let Some(payload) = payload else { return Ok(()) };
                self.text("(")?;
                self.expr(payload)?;
                self.text(")")
            }
            ExprKind::Try(value) => {
                self.operand(value, Binding::Tight)?;
                self.text("?")
            }
            ExprKind::Function(call) => match &call.kind {
                ExprKind::Call { callee, .. } => self.path(*callee, "::"),
                ExprKind::TypeCall { member, .. } => self.member(member),
                ExprKind::Variant { variant, .. } => self.text(variant.name()),
                _ => self.expr(call),
            },
            ExprKind::RangeArgument { range, .. } => self.expr(range),
            ExprKind::Apply { function, args } => {
                self.operand(function, Binding::Tight)?;
                self.args(args)
            }
            ExprKind::CallLocal { name, args } => {
                self.text(name)?;
                self.args(args)
            }
            ExprKind::Closure {
                moved,
                params,
                ret,
                body,
            } => {
                self.text(if *moved { "move |" } else { "|" })?;
                self.list(params, |printer, (pattern, ty)| {
                    printer.pattern(pattern)?;
                    let Some(ty) = ty else { return Ok(()) };
                    printer.text(": ")?;
                    printer.ty(ty)
                })?;
                self.text("| ")?;
                if let Some(ret) = ret {
                    self.text("-> ")?;
                    self.ty(ret)?;
                    self.text(" ")?;
                }
                self.expr(body)
            }
            ExprKind::TypeCall { member, args } => {
                self.member(member)?;
                self.args(args)
            }
            ExprKind::MethodCall {
                receiver,
                name,
                generics,
                args,
            } => {
                self.operand(receiver, Binding::Tight)?;
                self.text(format_args!(".{name}"))?;
                self.generic_args(generics, "::")?;
                self.args(args)
            }
            ExprKind::Intrinsic {
                intrinsic,
                generics,
                args,
                memory,
            } => {
                self.text(intrinsic.name())?;
                if memory.is_some() {
                    self.text("_explicit")?;
                }
                self.generic_args(generics, "::")?;
                self.text("(")?;
                self.list(args, Self::expr)?;
                if let Some(memory) = memory {
                    let (order, scope) = (memory.order, memory.scope);
                    self.text(format_args!(", Ordering::{order:?}, Scope::{scope:?}"))?;
                }
                self.text(")")
            }
            ExprKind::Tuple(elements) => {
                self.text("(")?;
                self.list(elements, Self::expr)?;
                self.text(if elements.len() == 1 { ",)" } else { ")" })
            }
            ExprKind::Array(elements) => {
                self.text("[")?;
                self.list(elements, Self::expr)?;
                self.text("]")
            }
            ExprKind::Repeat { value, len } => {
                self.text("[")?;
                self.expr(value)?;
                self.text("; ")?;
                self.expr(len)?;
                self.text("]")
            }
            ExprKind::StructLiteral { name, fields, base } => {
                self.struct_literal(name, fields, base.as_deref())
            }
            ExprKind::Print { pieces, args } => self.formatted("gpu_println", pieces, args),
            ExprKind::Panic { pieces, args } => self.formatted("panic", pieces, args),
            ExprKind::Unreachable => self.text("unreachable!()"),
            control => self.control(control),
        }
    }

    pub(super) fn number(&mut self, digits: impl Display, suffix: Option<Scalar>) -> Result {
        self.text(digits)?;
        suffix.map_or(Ok(()), |suffix| self.text(suffix.name()))
    }

    pub(super) fn member(&mut self, member: &TypeMember) -> Result {
        let TypeMember { ty, via, name } = member;
        match (ty, via) {
            (Type::Named(path), None) => self.path(*path, "::")?,
            (_, None) => self.ty(ty)?,
            (Type::Infer, Some(via)) => self.text(via)?,
            (_, Some(via)) => {
                self.text("<")?;
                self.ty(ty)?;
                self.text(format_args!(" as {via}>"))?;
            }
        }
        self.text(format_args!("::{name}"))
    }

    fn args(&mut self, args: &[Expr]) -> Result {
        self.text("(")?;
        self.list(args, Self::expr)?;
        self.text(")")
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Result {
        let own = binding_of_op(op);
        // `a < b < c` is an error, and `a as T < b` opens generic arguments.
        let cast_opens = matches!(op, BinaryOp::Lt | BinaryOp::Shl) && ends_in_cast(&left.kind);
        let chains = op.is_comparison() && binding_of(&left.kind) == own;
        self.expr_in(left, binding_of(&left.kind) < own || cast_opens || chains)?;
        self.text(format_args!(" {} ", op.symbol()))?;
        self.expr_in(right, binding_of(&right.kind) <= own)
    }

    pub(super) fn struct_name(&mut self, name: &StructName) -> Result {
        match name {
            StructName::Path(path) => self.path(*path, "::"),
            StructName::SelfType => self.text("Self"),
            StructName::Variant(member) => self.member(member),
            StructName::Steps => self.text("StepBy"),
            StructName::Range(closed) => self.text(if *closed { "RangeInclusive" } else { "Range" }),
        }
    }

    fn struct_literal(
        &mut self,
        name: &StructName,
        fields: &[(String, Expr)],
        base: Option<&Expr>,
    ) -> Result {
        self.struct_name(name)?;
        self.text(" { ")?;
        self.list(fields, |printer, (name, value)| {
            printer.text(format_args!("{name}: "))?;
            printer.expr(value)
        })?;
        if let Some(base) = base {
            self.text(if fields.is_empty() { ".." } else { ", .." })?;
            self.expr(base)?;
        }
        self.text(" }")
    }

    fn formatted(&mut self, name: &str, pieces: &[PrintPiece], args: &[Expr]) -> Result {
        if pieces.is_empty() && args.is_empty() {
            return self.text(format_args!("{name}!()"));
        }
        let mut format = String::new();
        for piece in pieces {
            match piece {
                PrintPiece::Text(text) => format.push_str(&text.replace('{', "{{").replace('}', "}}")),
                PrintPiece::Arg { index, format: spec } => {
                    let spec = spec.to_string();
                    let colon = if spec.is_empty() { "" } else { ":" };
                    format.push_str(&format!("{{{index}{colon}{spec}}}"));
                }
            }
        }
        self.text(format_args!("{name}!({format:?}"))?;
        for arg in args {
            self.text(", ")?;
            self.expr(arg)?;
        }
        self.text(")")
    }
}
