//! Expressions: literals, operators, places, aggregates. Calls and control flow have files of their own.

use super::Refusal;
use super::path::{is_variant, single_name};
use super::reader::{Reader, line_of, name_of, stand_in};
use crate::ast::{
    BinaryOp, Expr, ExprKind, Line, PathUsage, Place, SLICE, SLICE_TO, Scalar, StructName, Type, UnaryOp,
};
use crate::nesting::Level;
use proc_macro2::Span;
use std::ops::Range;
use syn::spanned::Spanned;

/// The expression inside parentheses and invisible groups.
pub(super) fn peel(mut expr: &syn::Expr) -> &syn::Expr {
    loop {
        match expr {
            syn::Expr::Paren(paren) => expr = &paren.expr,
            syn::Expr::Group(group) => expr = &group.expr,
            _ => return expr,
        }
    }
}

impl Reader {
    /// An expression anywhere.
    pub(super) fn read_expr(&mut self, expr: &syn::Expr) -> Expr {
        let expr = peel(expr);
        let Some(_level) = Level::enter() else {
            self.refuse(expr, Refusal::TooDeep);
            return stand_in(expr.span());
        };
        let (span, kind) = match expr {
            syn::Expr::Lit(lit) => (lit.lit.span(), self.read_literal(&lit.lit)),
            syn::Expr::Path(path) => (start_of(path), self.read_path_value(path)),
            syn::Expr::Unary(unary) => self.read_unary(unary),
            syn::Expr::Binary(binary) => self.read_binary(binary),
            syn::Expr::Reference(reference) => (reference.and_token.span, self.read_reference(reference)),
            syn::Expr::Assign(assign) => (assign.eq_token.span, self.read_assign(assign)),
            syn::Expr::Cast(cast) => (cast.as_token.span, self.read_cast(cast)),
            syn::Expr::Index(index) => (index.bracket_token.span.open(), self.read_index(index)),
            syn::Expr::Field(field) => (span_of(&field.member), self.read_field(field)),
            syn::Expr::Tuple(tuple) => (
                tuple.paren_token.span.open(),
                ExprKind::Tuple(self.read_exprs(&tuple.elems)),
            ),
            syn::Expr::Array(array) => (
                array.bracket_token.span.open(),
                ExprKind::Array(self.read_exprs(&array.elems)),
            ),
            syn::Expr::Range(range) if let Some(value) = self.read_range_value(range) => {
                (range.limits.span(), value)
            }
            syn::Expr::Repeat(repeat) => {
                let value = Box::new(self.read_expr(&repeat.expr));
                let len = Box::new(self.read_length(&repeat.len));
                (repeat.bracket_token.span.open(), ExprKind::Repeat { value, len })
            }
            syn::Expr::Struct(literal) => (literal.path.span(), self.read_struct_literal(literal)),
            syn::Expr::Const(constant) => {
                let (label, block) = (None, self.read_block(&constant.block));
                (constant.const_token.span, ExprKind::Block { label, block })
            }
            syn::Expr::Call(call) => self.read_call(call),
            syn::Expr::Try(value) => (value.question_token.span, ExprKind::Try(self.boxed(&value.expr))),
            syn::Expr::Closure(closure) => (closure.or1_token.span, self.read_closure(closure)),
            syn::Expr::MethodCall(call) => (call.method.span(), self.read_method_call(call)),
            syn::Expr::Macro(expr) => (expr.mac.path.span(), self.read_macro(&expr.mac)),
            other => match self.read_control(other) {
                Some(read) => read,
                None => {
                    self.refuse(other, refusal_of(other));
                    return stand_in(other.span());
                }
            },
        };
        Expr {
            place: place_of(expr, span),
            line: line_of(span),
            kind,
        }
    }

    /// Expressions in order.
    pub(super) fn read_exprs<'a>(&mut self, exprs: impl IntoIterator<Item = &'a syn::Expr>) -> Vec<Expr> {
        exprs.into_iter().map(|expr| self.read_expr(expr)).collect()
    }

    fn boxed(&mut self, expr: &syn::Expr) -> Box<Expr> {
        Box::new(self.read_expr(expr))
    }

    /// A literal that is an expression.
    fn read_literal(&mut self, lit: &syn::Lit) -> ExprKind {
        let refusal = match lit {
            syn::Lit::Bool(lit) => return ExprKind::Bool(lit.value),
            syn::Lit::Byte(lit) => {
                return ExprKind::Int {
                    value: lit.value().into(),
                    suffix: Some(Scalar::U8),
                };
            }
            syn::Lit::Int(lit) => return self.read_int_literal(lit),
            syn::Lit::Float(lit) => {
                let suffix = self.read_suffix(lit, lit.suffix());
                let mut text = lit.base10_digits().to_owned();
                if text.ends_with('.') {
                    text.push('0');
                }
                return ExprKind::Float { text, suffix };
            }
            syn::Lit::Char(_) => Refusal::CharLiteral,
            syn::Lit::ByteStr(lit) => {
                let line = line_of(lit.span());
                let byte = |value: u8| {
                    let (value, suffix) = (value.into(), Some(Scalar::U8));
                    Expr::new(line, ExprKind::Int { value, suffix })
                };
                let bytes = lit.value().into_iter().map(byte).collect();
                return ExprKind::Unary {
                    op: UnaryOp::Ref,
                    operand: Box::new(Expr::new(line, ExprKind::Array(bytes))),
                };
            }
            syn::Lit::Str(_) | syn::Lit::CStr(_) => Refusal::StringLiteral,
            _ => Refusal::OtherExpr,
        };
        self.refuse(lit, refusal);
        ExprKind::Tuple(Vec::new())
    }

    fn read_int_literal(&mut self, lit: &syn::LitInt) -> ExprKind {
        let suffix = self.read_suffix(lit, lit.suffix());
        if suffix.is_some_and(Scalar::is_float) {
            return ExprKind::Float {
                text: lit.base10_digits().to_owned(),
                suffix,
            };
        }
        ExprKind::Int {
            value: self.read_magnitude(lit, lit.base10_digits()),
            suffix,
        }
    }

    /// The value of an integer literal's decimal digits.
    pub(super) fn read_magnitude(&mut self, lit: &syn::LitInt, digits: &str) -> u128 {
        match digits.parse() {
            Ok(value) => value,
            Err(_) => {
                self.refuse(lit, Refusal::WideLiteral);
                0
            }
        }
    }

    /// The type that a number's suffix names.
    pub(super) fn read_suffix(&mut self, lit: &impl quote::ToTokens, suffix: &str) -> Option<Scalar> {
        match (suffix, Scalar::from_name(suffix)) {
            ("", _) => None,
            (_, Some(scalar)) if scalar != Scalar::Bool => Some(scalar),
            _ => {
                self.refuse_named(lit, Refusal::LiteralSuffix, suffix);
                None
            }
        }
    }

    /// With the operator's span, which costs less than that of tokens printed for it.
    fn read_unary(&mut self, unary: &syn::ExprUnary) -> (Span, ExprKind) {
        let (op, span) = match &unary.op {
            syn::UnOp::Neg(t) => (UnaryOp::Neg, t.span),
            syn::UnOp::Not(t) => (UnaryOp::Not, t.span),
            syn::UnOp::Deref(t) => (UnaryOp::Deref, t.span),
            _ => {
                self.refuse(unary, Refusal::OtherExpr);
                (UnaryOp::Not, unary.span())
            }
        };
        let operand = self.boxed(&unary.expr);
        (span, ExprKind::Unary { op, operand })
    }

    /// With the operator's span, as [`Reader::read_unary`].
    fn read_binary(&mut self, binary: &syn::ExprBinary) -> (Span, ExprKind) {
        let (op, assigns, span) = match &binary.op {
            syn::BinOp::Add(t) => (BinaryOp::Add, false, t.span),
            syn::BinOp::Sub(t) => (BinaryOp::Sub, false, t.span),
            syn::BinOp::Mul(t) => (BinaryOp::Mul, false, t.span),
            syn::BinOp::Div(t) => (BinaryOp::Div, false, t.span),
            syn::BinOp::Rem(t) => (BinaryOp::Rem, false, t.span),
            syn::BinOp::And(t) => (BinaryOp::And, false, t.spans[0]),
            syn::BinOp::Or(t) => (BinaryOp::Or, false, t.spans[0]),
            syn::BinOp::BitXor(t) => (BinaryOp::BitXor, false, t.span),
            syn::BinOp::BitAnd(t) => (BinaryOp::BitAnd, false, t.span),
            syn::BinOp::BitOr(t) => (BinaryOp::BitOr, false, t.span),
            syn::BinOp::Shl(t) => (BinaryOp::Shl, false, t.spans[0]),
            syn::BinOp::Shr(t) => (BinaryOp::Shr, false, t.spans[0]),
            syn::BinOp::Eq(t) => (BinaryOp::Eq, false, t.spans[0]),
            syn::BinOp::Lt(t) => (BinaryOp::Lt, false, t.span),
            syn::BinOp::Le(t) => (BinaryOp::Le, false, t.spans[0]),
            syn::BinOp::Ne(t) => (BinaryOp::Ne, false, t.spans[0]),
            syn::BinOp::Ge(t) => (BinaryOp::Ge, false, t.spans[0]),
            syn::BinOp::Gt(t) => (BinaryOp::Gt, false, t.span),
            syn::BinOp::AddAssign(t) => (BinaryOp::Add, true, t.spans[0]),
            syn::BinOp::SubAssign(t) => (BinaryOp::Sub, true, t.spans[0]),
            syn::BinOp::MulAssign(t) => (BinaryOp::Mul, true, t.spans[0]),
            syn::BinOp::DivAssign(t) => (BinaryOp::Div, true, t.spans[0]),
            syn::BinOp::RemAssign(t) => (BinaryOp::Rem, true, t.spans[0]),
            syn::BinOp::BitXorAssign(t) => (BinaryOp::BitXor, true, t.spans[0]),
            syn::BinOp::BitAndAssign(t) => (BinaryOp::BitAnd, true, t.spans[0]),
            syn::BinOp::BitOrAssign(t) => (BinaryOp::BitOr, true, t.spans[0]),
            syn::BinOp::ShlAssign(t) => (BinaryOp::Shl, true, t.spans[0]),
            syn::BinOp::ShrAssign(t) => (BinaryOp::Shr, true, t.spans[0]),
            _ => {
                self.refuse(binary, Refusal::OtherExpr);
                (BinaryOp::Add, false, binary.span())
            }
        };
        let kind = if assigns {
            let place = self.read_place(&binary.left);
            ExprKind::CompoundAssign {
                op,
                place,
                value: self.boxed(&binary.right),
            }
        } else {
            let left = self.boxed(&binary.left);
            ExprKind::Binary {
                op,
                left,
                right: self.boxed(&binary.right),
            }
        };
        (span, kind)
    }

    fn read_assign(&mut self, assign: &syn::ExprAssign) -> ExprKind {
        if is_destructuring(&assign.left) {
            return self.read_destructuring(&assign.left, &assign.right);
        }
        let place = self.read_place(&assign.left);
        ExprKind::Assign {
            place,
            value: self.boxed(&assign.right),
        }
    }

    /// The left side of an assignment.
    fn read_place(&mut self, expr: &syn::Expr) -> Box<Expr> {
        let refusal = match peel(expr) {
            syn::Expr::Path(_) | syn::Expr::Index(_) | syn::Expr::Field(_) => None,
            syn::Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => None,
            _ => Some(Refusal::NotAPlace),
        };
        match refusal {
            Some(refusal) => {
                self.refuse(expr, refusal);
                Box::new(stand_in(expr.span()))
            }
            None => self.boxed(expr),
        }
    }

    /// `&place` and `&mut place`.
    fn read_reference(&mut self, reference: &syn::ExprReference) -> ExprKind {
        let op = if reference.mutability.is_some() {
            UnaryOp::RefMut
        } else {
            UnaryOp::Ref
        };
        match peel(&reference.expr) {
            _ if op == UnaryOp::Ref => {}
            syn::Expr::Path(_) | syn::Expr::Index(_) | syn::Expr::Field(_) | syn::Expr::Closure(_) => {}
            syn::Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => {}
            _ => {
                self.refuse(reference, Refusal::RefOfValue);
                return ExprKind::Tuple(Vec::new());
            }
        }
        ExprKind::Unary {
            op,
            operand: self.boxed(&reference.expr),
        }
    }

    fn read_cast(&mut self, cast: &syn::ExprCast) -> ExprKind {
        let value = self.boxed(&cast.expr);
        let ty = self.read_type(&cast.ty);
        if !matches!(
            ty,
            Type::Scalar(_) | Type::Generic(_) | Type::Assoc(_) | Type::Named(_) | Type::Infer
        ) {
            self.refuse(&cast.ty, Refusal::CastTarget);
        }
        ExprKind::Cast { value, ty }
    }

    fn read_index(&mut self, index: &syn::ExprIndex) -> ExprKind {
        let base = self.boxed(&index.expr);
        if let Some((ends, closed)) = self.bound_range(&index.index) {
            return ExprKind::MethodCall {
                receiver: base,
                name: if closed { SLICE_TO } else { SLICE }.to_owned(),
                generics: Vec::new(),
                args: ends.into(),
            };
        }
        if let syn::Expr::Range(range) = peel(&index.index) {
            let mut args = vec![match &range.start {
                Some(start) => self.read_expr(start),
                None => usize_literal(base.line, 0),
            }];
            args.extend(range.end.as_ref().map(|end| self.read_expr(end)));
            let inclusive = matches!(range.limits, syn::RangeLimits::Closed(_));
            return ExprKind::MethodCall {
                receiver: base,
                name: if inclusive { SLICE_TO } else { SLICE }.to_owned(),
                generics: Vec::new(),
                args,
            };
        }
        ExprKind::Index {
            base,
            index: self.boxed(&index.index),
        }
    }

    fn read_field(&mut self, field: &syn::ExprField) -> ExprKind {
        if let (Some(([start, end], false)), syn::Member::Named(name)) =
            (self.bound_range(&field.base), &field.member)
        {
            match name_of(name).as_str() {
                "start" => return start.kind,
                "end" => return end.kind,
                _ => {}
            }
        }
        let base = self.boxed(&field.base);
        match &field.member {
            syn::Member::Named(name) => ExprKind::Field {
                base,
                name: name_of(name),
            },
            syn::Member::Unnamed(index) => ExprKind::TupleField {
                base,
                index: index.index,
            },
        }
    }

    fn read_struct_literal(&mut self, literal: &syn::ExprStruct) -> ExprKind {
        if literal.qself.is_some() {
            self.refuse(literal, Refusal::AssocLiteral);
            return ExprKind::Tuple(Vec::new());
        }
        let name = self.read_struct_name(&literal.path);
        let fields = literal.fields.iter().map(|field| {
            let name = match &field.member {
                syn::Member::Named(name) => name_of(name),
                syn::Member::Unnamed(index) => index.index.to_string(),
            };
            (name, self.read_expr(&field.expr))
        });
        let fields = fields.collect();
        let base = literal.rest.as_ref().map(|base| self.boxed(base));
        ExprKind::StructLiteral { name, fields, base }
    }

    /// The struct or the variant that a literal, a constructor's call or a pattern names.
    pub(super) fn read_struct_name(&mut self, path: &syn::Path) -> StructName {
        if single_name(path).as_deref() == Some("Self") {
            return StructName::SelfType;
        }
        match is_variant(path).then(|| self.variant(path)).flatten() {
            Some(member) => StructName::Variant(Box::new(member)),
            None => StructName::Path(self.path(path, PathUsage::StructLiteral)),
        }
    }
}

/// Where a path begins.
fn start_of(path: &syn::ExprPath) -> Span {
    match (&path.qself, path.path.leading_colon, path.path.segments.first()) {
        (Some(own), ..) => own.lt_token.span,
        (None, Some(colons), _) => colons.spans[0],
        (None, None, Some(first)) => first.ident.span(),
        (None, None, None) => path.span(),
    }
}

fn span_of(member: &syn::Member) -> Span {
    match member {
        syn::Member::Named(name) => name.span(),
        syn::Member::Unnamed(index) => index.span,
    }
}

/// A number of elements.
pub(super) fn usize_literal(line: Line, value: u128) -> Expr {
    let suffix = Some(Scalar::Usize);
    Expr::new(line, ExprKind::Int { value, suffix })
}

/// Where an expression stands; `known`: the span of a token of it. A macro's spans tell nothing, and joining them costs much.
fn place_of(expr: &syn::Expr, known: Span) -> Place {
    if known.byte_range().is_empty() {
        return Place::default();
    }
    let Range { start, end } = expr.span().byte_range();
    match (u32::try_from(start), u32::try_from(end)) {
        (Ok(start), Ok(end)) => Place { start, end },
        _ => Place::default(),
    }
}

/// Why a form of expression is not in the language.
fn refusal_of(expr: &syn::Expr) -> Refusal {
    match expr {
        syn::Expr::Async(_) => Refusal::AsyncBlock,
        syn::Expr::Await(_) => Refusal::Await,
        syn::Expr::Infer(_) => Refusal::UnderscoreValue,
        syn::Expr::Let(_) => Refusal::LetExpr,
        syn::Expr::Range(_) => Refusal::RangeValue,
        syn::Expr::RawAddr(_) => Refusal::AddressOf,
        syn::Expr::TryBlock(_) => Refusal::TryBlock,
        syn::Expr::Unsafe(_) => Refusal::UnsafeBlock,
        syn::Expr::Yield(_) => Refusal::Yield,
        _ => Refusal::OtherExpr,
    }
}

/// Whether an assignment's left side is a pattern.
fn is_destructuring(left: &syn::Expr) -> bool {
    matches!(
        peel(left),
        syn::Expr::Tuple(_) | syn::Expr::Array(_) | syn::Expr::Struct(_) | syn::Expr::Infer(_)
    )
}
