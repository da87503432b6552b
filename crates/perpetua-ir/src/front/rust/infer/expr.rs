//! Expressions without control flow: literals, names, operators, places.

use std::rc::Rc;

use perpetua_syntax as syntax;
use perpetua_syntax::{BinaryOp, Scalar, UnaryOp};

use super::coerce::standing;
use super::consteval::constant_expr;
use super::signature::{last_name, not_a, path_meaning, path_text};
use super::tree::{Expr, ExprKind};
use super::ty::{Generic, Kind, Ty};
use super::{Checker, Result};
use crate::front::rust::describe::{ConstValue, MOST_PARTS};
use crate::front::rust::error::LowerError;
use crate::front::rust::resolve::Resolved;

impl Checker<'_> {
    /// Checks an expression. `hint` is the type that its surroundings expect, where they expect one; it steers
    /// literals only, and need not be met. Each arm only calls, so that deep nesting needs little stack.
    pub(super) fn expr(&mut self, expr: &syntax::Expr, hint: Option<&Ty>) -> Result<Expr> {
        let checked = self.dispatch(expr, hint).and_then(|checked| {
            let mut left = MOST_PARTS;
            match self.types.is_within(&checked.ty, &mut left) {
                true => Ok(checked),
                false => Err(self.too_large(expr.line)),
            }
        });
        checked.map_err(|error| standing(error, expr))
    }

    fn too_large(&self, line: u32) -> LowerError {
        self.error(
            line,
            format!("a value's type is made of more than {MOST_PARTS} types"),
            "keep what it holds in an array, or in a struct that is not generic",
        )
    }

    fn dispatch(&mut self, expr: &syntax::Expr, hint: Option<&Ty>) -> Result<Expr> {
        let line = expr.line;
        match &expr.kind {
            syntax::ExprKind::Int { .. }
            | syntax::ExprKind::Float { .. }
            | syntax::ExprKind::Bool(_)
            | syntax::ExprKind::Local(_)
            | syntax::ExprKind::ConstParam(_)
            | syntax::ExprKind::Path(_)
            | syntax::ExprKind::TypeConst(_)
            | syntax::ExprKind::Unreachable => self.leaf(expr, hint),
            syntax::ExprKind::Unary { op, operand } => self.unary(*op, operand, hint, line),
            syntax::ExprKind::Binary { op, left, right } => self.binary(*op, left, right, line),
            syntax::ExprKind::Assign { place, value } => self.assign(place, value, line),
            syntax::ExprKind::CompoundAssign { op, place, value } => {
                self.compound_assign(*op, place, value, line)
            }
            syntax::ExprKind::Cast { value, ty } => self.cast(value, ty, line),
            syntax::ExprKind::Index { base, index } => self.index(base, index, line),
            syntax::ExprKind::Field { base, name } => self.field(base, name, line),
            syntax::ExprKind::TupleField { base, index } => self.field(base, &index.to_string(), line),
            syntax::ExprKind::RangeArgument { range, .. } => self.expr(range, hint),
            syntax::ExprKind::Tuple(elements) => self.tuple(elements, hint, line),
            syntax::ExprKind::Array(elements) => self.array(elements, hint, line),
            syntax::ExprKind::Repeat { value, len } => self.repeat(value, len, hint, line),
            syntax::ExprKind::StructLiteral { name, fields, base } => {
                self.struct_literal(name, fields, base.as_deref(), line)
            }
            syntax::ExprKind::Call { callee, args } => self.call(callee.0, args, hint, line),
            syntax::ExprKind::Variant { variant, payload } => {
                self.variant(*variant, payload.as_deref(), hint, line)
            }
            syntax::ExprKind::Try(value) => self.try_expr(value, line),
            syntax::ExprKind::CallLocal { name, args } => self.call_local(name, args, line),
            syntax::ExprKind::Closure { .. } => self.closure(expr, None),
            syntax::ExprKind::Function(_) => Err(self.error(
                line,
                "a function stands where a value is taken",
                "call it, or pass it where a closure is taken",
            )),
            syntax::ExprKind::Apply { function, args } => {
                let args = args
                    .iter()
                    .map(|arg| self.expr(arg, None))
                    .collect::<Result<_>>()?;
                self.call_with(function, args, None, line)
            }
            syntax::ExprKind::TypeCall { member, args } => self.type_call(member, args, hint, line),
            syntax::ExprKind::MethodCall {
                receiver,
                name,
                generics,
                args,
            } => self.method_call(receiver, name, generics, args, hint, line),
            syntax::ExprKind::Intrinsic {
                intrinsic,
                generics,
                args,
                memory,
            } => self.intrinsic(*intrinsic, generics, args, *memory, line),
            syntax::ExprKind::Print { pieces, args } => {
                let args = self.formatted(args)?;
                Ok(self.make(line, Ty::unit(), ExprKind::Print(pieces.clone(), args)))
            }
            syntax::ExprKind::Panic { pieces, args } => {
                let args = self.formatted(args)?;
                Ok(self.make(line, Ty::Never, ExprKind::Panic(pieces.clone(), args)))
            }
            syntax::ExprKind::Condition { number, value } => {
                let value = self.expr(value, hint)?;
                let ty = value.ty.clone();
                let kind = ExprKind::Condition(*number, Box::new(value));
                Ok(self.make(line, ty, kind))
            }
            syntax::ExprKind::If {
                cond,
                then,
                otherwise,
            } => self.if_expr(cond, then, otherwise.as_deref(), hint, line),
            syntax::ExprKind::Match { scrutinee, arms } => self.match_expr(scrutinee, arms, hint, line),
            syntax::ExprKind::Loop { label, body } => self.loop_expr(label, body, line),
            syntax::ExprKind::While { label, cond, body } => self.while_expr(label, cond, body, line),
            syntax::ExprKind::For {
                label,
                pattern,
                range,
                body,
            } => self.for_expr(label, pattern, range, body, line),
            syntax::ExprKind::Block { label: None, block } => self.plain_block(block, hint, line),
            syntax::ExprKind::Block { label, block } => self.labelled_block(label, block, hint, line),
            syntax::ExprKind::Break { label, value } => self.break_expr(label, value.as_deref(), line),
            syntax::ExprKind::Continue { label } => self.continue_expr(label, line),
            syntax::ExprKind::Return(value) => self.return_expr(value.as_deref(), line),
        }
    }

    /// An expression without parts.
    fn leaf(&mut self, expr: &syntax::Expr, hint: Option<&Ty>) -> Result<Expr> {
        let line = expr.line;
        let hint = hint.map(|h| self.types.shallow(h));
        let (ty, kind) = match &expr.kind {
            syntax::ExprKind::Int { value, suffix } => {
                let ty = match (suffix, hint) {
                    (Some(s), _) => Ty::Scalar(*s),
                    (None, Some(Ty::Scalar(s))) if s.is_integer() => Ty::Scalar(s),
                    _ => self.int_var(),
                };
                (ty, ExprKind::Int(*value))
            }
            syntax::ExprKind::Float { text, suffix } => {
                let ty = match (suffix, hint) {
                    (Some(s), _) => Ty::Scalar(*s),
                    (None, Some(Ty::Scalar(s))) if s.is_float() => Ty::Scalar(s),
                    _ => self.types.var(Kind::Float),
                };
                (ty, ExprKind::Float(text.clone()))
            }
            syntax::ExprKind::Bool(b) => (Ty::BOOL, ExprKind::Bool(*b)),
            syntax::ExprKind::Local(name) => match self.find(name) {
                Some(id) => {
                    self.captured(id);
                    let ty = self.locals.get(id.0 as usize).map_or(Ty::Never, |l| l.ty.clone());
                    (ty, ExprKind::Local(id))
                }
                None => return Err(self.error(line, format!("`{name}` is not known here"), "")),
            },
            syntax::ExprKind::ConstParam(index) => return self.const_param(*index, line),
            syntax::ExprKind::Path(path) => return self.path_value(path.0, line),
            syntax::ExprKind::TypeConst(member) => return self.type_const(member, line),
            _ => (Ty::Never, ExprKind::Unreachable),
        };
        Ok(Expr { line, ty, kind })
    }

    fn assign(&mut self, place: &syntax::Expr, value: &syntax::Expr, line: u32) -> Result<Expr> {
        let place = self.expr(place, None)?;
        let place = self.mutable_place(place)?;
        self.assigned(&place)?;
        let value = self.expr_as(value, &place.ty.clone())?;
        Ok(Expr {
            line,
            ty: Ty::unit(),
            kind: ExprKind::Assign(Box::new(place), Box::new(value)),
        })
    }

    fn compound_assign(
        &mut self,
        op: BinaryOp,
        place: &syntax::Expr,
        value: &syntax::Expr,
        line: u32,
    ) -> Result<Expr> {
        let place = self.expr(place, None)?;
        let place = self.mutable_place(place)?;
        if matches!(
            self.types.shallow(&place.ty),
            Ty::Struct(_) | Ty::Instance(..) | Ty::Enum(_) | Ty::Array(..)
        ) {
            return self.user_assignment(op, place, value, line);
        }
        self.assigned(&place)?;
        let written = value;
        let value = self.expr(value, None)?;
        let value = self.operand(value);
        if !matches!(op, BinaryOp::Shl | BinaryOp::Shr) && self.types.unify(&place.ty, &value.ty).is_err() {
            return Err(standing(self.unfit(&value, &place.ty), written));
        }
        Ok(Expr {
            line,
            ty: Ty::unit(),
            kind: ExprKind::CompoundAssign(op, Box::new(place), Box::new(value)),
        })
    }

    fn cast(&mut self, value: &syntax::Expr, ty: &syntax::Type, line: u32) -> Result<Expr> {
        let ty = self.ty(ty, line)?;
        let value = self.expr(value, Some(&ty).filter(|_| !branches(value)))?;
        Ok(Expr {
            line,
            ty,
            kind: ExprKind::Cast(Box::new(value)),
        })
    }

    /// The arguments of a text.
    fn formatted(&mut self, args: &[syntax::Expr]) -> Result<Vec<Expr>> {
        args.iter()
            .map(|a| {
                let arg = self.expr(a, None)?;
                Ok(self.deref_all(arg))
            })
            .collect()
    }

    fn const_param(&mut self, index: u32, line: u32) -> Result<Expr> {
        let ty = self.const_param_type(index);
        let kind = match self.generic(index, line)? {
            Generic::Len(len) => ExprKind::Len(len),
            Generic::Value(value) => match &ty {
                Ty::Scalar(Scalar::Bool) => ExprKind::Bool(value != 0),
                Ty::Scalar(s) => {
                    let value = ConstValue::of_bits(*s, value as u128 & mask(*s));
                    ExprKind::Constant(Rc::from("const"), Rc::new(value))
                }
                _ => ExprKind::Int(value as u128),
            },
            Generic::Type(_) => {
                return Err(self.error(line, "a type stands where a constant is needed", ""));
            }
        };
        Ok(Expr { line, ty, kind })
    }

    fn path_value(&mut self, path: u32, line: u32) -> Result<Expr> {
        let loaded = self.loaded.clone();
        match path_meaning(&loaded, path, line)? {
            Resolved::Const(value) => Ok(constant_expr(&path_text(&loaded, path), value.clone(), line)),
            Resolved::GenericStruct(of) => {
                let ty = self.named_instance(of, &[], line)?;
                self.const_of(ty, None, &last_name(&loaded, path), line)
            }
            Resolved::Computed(function) => self.computed_by(function, line),
            other => Err(not_a(&loaded, path, line, "a constant", other)),
        }
    }

    /// A constant of a type.
    pub(super) fn type_constant(&mut self, member: &syntax::TypeMember, line: u32) -> Result<ConstValue> {
        let ty = self.ty(&member.ty, line)?;
        self.constant_in(ty, member.via.as_deref(), &member.name, line)
    }

    fn type_const(&mut self, member: &syntax::TypeMember, line: u32) -> Result<Expr> {
        let ty = self.ty(&member.ty, line)?;
        if member.via.as_deref() == Some(syntax::MEASURED) {
            return self.measured(&ty, &member.name, line);
        }
        self.const_of(ty, member.via.as_deref(), &member.name, line)
    }

    /// A type's variant without data, or its constant.
    fn const_of(&mut self, ty: Ty, via: Option<&str>, name: &str, line: u32) -> Result<Expr> {
        if via.is_none()
            && let Some(variant) = self.unit_variant(&ty, name, line)
        {
            return Ok(variant);
        }
        if !matches!(ty, Ty::Scalar(_))
            && let Some(computed) = self.computed_constant(&ty, via, name, line)?
        {
            return Ok(computed);
        }
        let value = self.constant_in(ty, via, name, line)?;
        Ok(constant_expr(name, value, line))
    }

    fn unary(&mut self, op: UnaryOp, operand: &syntax::Expr, hint: Option<&Ty>, line: u32) -> Result<Expr> {
        match op {
            UnaryOp::Neg | UnaryOp::Not => {
                let operand = self.expr(operand, hint)?;
                let of_trait = if op == UnaryOp::Neg { "Neg" } else { "Not" };
                let operand = match self.negated_reference(operand, of_trait, line)? {
                    Ok(called) => return Ok(called),
                    Err(operand) => self.operand(operand),
                };
                let operand = match self.user_negation(operand, of_trait, line)? {
                    Ok(called) => return Ok(called),
                    Err(operand) => Box::new(operand),
                };
                Ok(Expr {
                    line,
                    ty: operand.ty.clone(),
                    kind: if op == UnaryOp::Neg {
                        ExprKind::Neg(operand)
                    } else {
                        ExprKind::Not(operand)
                    },
                })
            }
            UnaryOp::Deref => {
                let operand = self.expr(operand, None)?;
                match self.types.shallow(&operand.ty) {
                    Ty::Ref(..) => Ok(self.deref(operand)),
                    // An element of a constant that is a reference, of which the value alone is known here.
                    Ty::Scalar(_) | Ty::Tuple(_) | Ty::Array(..) | Ty::Struct(_) | Ty::Enum(_) => Ok(operand),
                    _ => Err(self.error(
                        line,
                        format!("`{}` cannot be dereferenced", self.show(&operand.ty)),
                        "remove the `*`",
                    )),
                }
            }
            UnaryOp::Ref | UnaryOp::RefMut => {
                let mutable = op == UnaryOp::RefMut;
                let hint = match hint.map(|h| self.types.shallow(h)) {
                    Some(Ty::Ref(_, target)) => Some(target),
                    _ => None,
                };
                let operand = self.expr(operand, hint.as_deref())?;
                self.borrow(operand, mutable, line)
            }
        }
    }

    /// `&operand` or `&mut operand`.
    pub(super) fn borrow(&mut self, mut operand: Expr, mutable: bool, line: u32) -> Result<Expr> {
        if mutable {
            operand = self.mutable_place(operand)?;
            self.assigned(&operand)?;
        }
        self.indexed(&operand);
        Ok(Expr {
            line,
            ty: Ty::Ref(mutable, Rc::new(operand.ty.clone())),
            kind: ExprKind::Ref(Box::new(operand)),
        })
    }

    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        left: &syntax::Expr,
        right: &syntax::Expr,
        line: u32,
    ) -> Result<Expr> {
        if matches!(op, BinaryOp::And | BinaryOp::Or) {
            let left = self.expr_as(left, &Ty::BOOL)?;
            let right = self.expr_as(right, &Ty::BOOL)?;
            return Ok(Expr {
                line,
                ty: Ty::BOOL,
                kind: ExprKind::Logic(op == BinaryOp::And, Box::new(left), Box::new(right)),
            });
        }
        let sides = (left, right);
        let left = self.expr(left, None)?;
        let right = self.expr(right, None)?;
        if op.is_comparison() && self.is_compared_by_parts(op, &left.ty) {
            return self.compare_by_parts(op, left, right, line);
        }
        let (left, right) = match self.user_operator(op, left, right, line)? {
            Ok(called) => return Ok(called),
            Err((left, right)) if op.is_comparison() => (self.deref_all(left), self.deref_all(right)),
            Err((left, right)) => (self.operand(left), self.operand(right)),
        };
        let never = |c: &Self, e: &Expr| matches!(c.types.shallow(&e.ty), Ty::Never);
        let shift = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
        if !shift && !never(self, &left) && !never(self, &right) {
            self.unify_sides((sides.0, &left), (sides.1, &right))?;
        }
        let ty = if op.is_comparison() {
            Ty::BOOL
        } else {
            left.ty.clone()
        };
        Ok(Expr {
            line,
            ty,
            kind: ExprKind::Binary(op, Box::new(left), Box::new(right)),
        })
    }

    /// An index: a literal becomes a `usize`, all else must be one.
    fn index_expr(&mut self, index: Expr) -> Result<Expr> {
        match self.types.shallow(&index.ty) {
            Ty::Scalar(Scalar::Usize) | Ty::Never => Ok(index),
            Ty::Var(_) => {
                self.unify(index.line, &Ty::USIZE, &index.ty.clone())?;
                Ok(index)
            }
            other => {
                let shown = self.show(&other);
                Err(self.error(
                    index.line,
                    format!("an index has type `{shown}`, not `usize`"),
                    "convert with `as usize`",
                ))
            }
        }
    }

    pub(super) fn usize_args(&mut self, args: &[syntax::Expr]) -> Result<Vec<Expr>> {
        args.iter().map(|a| self.expr_as(a, &Ty::USIZE)).collect()
    }

    fn index(&mut self, base: &syntax::Expr, index: &syntax::Expr, line: u32) -> Result<Expr> {
        let base = self.expr(base, None)?;
        let base = self.deref_all(base);
        let element = match self.types.shallow(&base.ty) {
            Ty::Array(element, _) | Ty::Slice(element) => element,
            Ty::Struct(_) | Ty::Instance(..) | Ty::Enum(_) => return self.user_index(base, index, line),
            other => {
                let shown = self.show(&other);
                return Err(self.error(
                    line,
                    format!("`{shown}` cannot be indexed"),
                    "index slices and arrays",
                ));
            }
        };
        let index = self.expr(index, None)?;
        let index = self.deref_all(index);
        if let Some((item, closed)) = self.range_of(&index.ty) {
            self.unify(line, &Ty::USIZE, &item)?;
            return Ok(self.part_of_range(base, &element, index, closed));
        }
        let index = self.index_expr(index)?;
        if !matches!(index.kind, ExprKind::Int(_)) {
            self.indexed(&base);
        }
        Ok(Expr {
            line,
            ty: (*element).clone(),
            kind: ExprKind::Index(Box::new(base), Box::new(index)),
        })
    }
}

/// Whether an expression has its value of branches, which are not told what it is cast to.
fn branches(value: &syntax::Expr) -> bool {
    match &value.kind {
        syntax::ExprKind::If { .. } | syntax::ExprKind::Match { .. } => true,
        syntax::ExprKind::Block { block, .. } => block.value.as_deref().is_some_and(branches),
        // What a `fold` gives is of its own type.
        syntax::ExprKind::Local(name) => name.contains(' '),
        syntax::ExprKind::Unary { operand, .. } => branches(operand),
        _ => false,
    }
}

/// The bits that a constant of this type has.
pub(crate) fn mask(s: Scalar) -> u128 {
    super::methods::num(s, 64).all_bits()
}
