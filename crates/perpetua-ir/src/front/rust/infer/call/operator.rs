//! Operators of types that are no scalars: the functions of traits that they call.

use perpetua_syntax as syntax;
use perpetua_syntax::{BinaryOp, Scalar};

use super::Argument;
use super::member::{Callee, Reach};
use crate::front::rust::infer::tree::{Expr, ExprKind};
use crate::front::rust::infer::ty::{Kind, Ty};
use crate::front::rust::infer::{Checker, Result};
use crate::front::rust::resolve::Resolved;

/// The trait and the function of an operator on values.
fn operator(op: BinaryOp) -> Option<(&'static str, &'static str)> {
    Some(match op {
        BinaryOp::Add => ("Add", "add"),
        BinaryOp::Sub => ("Sub", "sub"),
        BinaryOp::Mul => ("Mul", "mul"),
        BinaryOp::Div => ("Div", "div"),
        BinaryOp::Rem => ("Rem", "rem"),
        BinaryOp::BitAnd => ("BitAnd", "bitand"),
        BinaryOp::BitOr => ("BitOr", "bitor"),
        BinaryOp::BitXor => ("BitXor", "bitxor"),
        BinaryOp::Shl => ("Shl", "shl"),
        BinaryOp::Shr => ("Shr", "shr"),
        BinaryOp::Eq => ("PartialEq", "eq"),
        BinaryOp::Ne => ("PartialEq", "ne"),
        BinaryOp::Lt => ("PartialOrd", "lt"),
        BinaryOp::Le => ("PartialOrd", "le"),
        BinaryOp::Gt => ("PartialOrd", "gt"),
        BinaryOp::Ge => ("PartialOrd", "ge"),
        BinaryOp::And | BinaryOp::Or => return None,
    })
}

/// The operator whose function a call names: `Add::add(a, b)`.
pub(super) fn called(of_trait: Option<&str>, name: &str) -> Option<BinaryOp> {
    use BinaryOp::{Add, BitAnd, BitOr, BitXor, Div, Eq, Ge, Gt, Le, Lt, Mul, Ne, Rem, Shl, Shr, Sub};
    let mut all = [
        Add, Sub, Mul, Div, Rem, BitAnd, BitOr, BitXor, Shl, Shr, Eq, Ne, Lt, Le, Gt, Ge,
    ]
    .into_iter();
    all.find(|op| operator(*op) == of_trait.map(|of_trait| (of_trait, name)))
}

/// Whether a type has parts of half the width of `f32`: a library's types.
fn holds_half(ty: &Ty) -> bool {
    match ty {
        Ty::Scalar(scalar) => matches!(scalar, Scalar::F16 | Scalar::Bf16),
        Ty::Array(element, _) => holds_half(element),
        _ => false,
    }
}

impl Checker<'_> {
    /// `left op right` by a trait's function, where one of the two is no scalar; `None` where the language has it.
    pub(in crate::front::rust::infer) fn user_operator(
        &mut self,
        op: BinaryOp,
        left: Expr,
        right: Expr,
        line: u32,
    ) -> Result<std::result::Result<Expr, (Expr, Expr)>> {
        let Some((of_trait, name)) = operator(op) else {
            return Ok(Err((left, right)));
        };
        let (lt, rt) = (self.peeled(&left.ty), self.peeled(&right.ty));
        let aggregate = |ty: &Ty| {
            matches!(
                ty,
                Ty::Struct(_) | Ty::Instance(..) | Ty::Array(..) | Ty::Tuple(_) | Ty::Enum(_)
            )
        };
        let literal = matches!(self.types.kind(&lt), Some(Kind::Int | Kind::Float));
        if !aggregate(&lt) && !(aggregate(&rt) && (literal || matches!(lt, Ty::Scalar(_)))) {
            return Ok(Err((left, right)));
        }
        if literal {
            self.literal_operand(&lt, &rt, of_trait, name)?;
        }
        let mut functions = self.functions_of(&lt, Some(of_trait), name, Reach::All, line)?;
        if functions.is_empty() {
            functions = self.functions_of_reference(&left, of_trait, name, line)?;
        }
        let mut negated = false;
        if functions.is_empty() && op == BinaryOp::Ne {
            functions = self.functions_of(&lt, Some(of_trait), "eq", Reach::All, line)?;
            negated = true;
        }
        if functions.is_empty() && op.is_comparison() && !matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
            let orders = self.functions_of(&lt, Some(of_trait), "partial_cmp", Reach::All, line)?;
            if !orders.is_empty() {
                let args = vec![Argument::Operand(left), Argument::Operand(right)];
                let order = self.call_one_of(orders, args, &[], line)?;
                return Ok(Ok(self.by_order(op, order, line)));
            }
        }
        if functions.is_empty() {
            if matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
                self.derived_only(&lt, line)?;
                return Ok(Err((left, right)));
            }
            if let Ty::Enum(desc) = &lt
                && op.is_comparison()
            {
                self.known_to_kernels(&lt, of_trait, &["partial_cmp", name], line)?;
                if desc.in_order.is_none_or(|in_order| in_order()) {
                    return Ok(Err((left, right)));
                }
            }
            let (l, r) = (self.show(&lt), self.show(&rt));
            let or = match op.is_comparison() {
                true => format!(", or `#[device]` before `#[derive(PartialOrd)]` of `{l}`"),
                false => String::new(),
            };
            return Err(self.error(
                line,
                format!("`{}` does not work on `{l}` and `{r}`", op.symbol()),
                format!("write `#[device] impl {of_trait}<{r}> for {l}`{or}"),
            ));
        }
        let args = vec![Argument::Operand(left), Argument::Operand(right)];
        let called = self.call_one_of(functions, args, &[], line)?;
        Ok(Ok(match negated {
            true => Expr {
                line,
                ty: Ty::BOOL,
                kind: ExprKind::Not(Box::new(called)),
            },
            false => called,
        }))
    }

    /// Refuses a comparison field by field where a field's type has a function for it, or the type has one that kernels lack.
    fn derived_only(&self, ty: &Ty, line: u32) -> Result<()> {
        self.known_to_kernels(ty, "PartialEq", &["eq", "ne"], line)?;
        let inner: Vec<Ty> = match ty {
            Ty::Struct(_) | Ty::Instance(..) => {
                let fields = self.fields_of(ty).map(|fields| fields.all);
                fields.into_iter().flatten().map(|(_, ty)| ty).collect()
            }
            Ty::Array(element, _) => vec![self.types.shallow(element)],
            Ty::Tuple(elements) => elements.to_vec(),
            _ => return Ok(()),
        };
        for inner in inner {
            // The compiler cannot tell of a struct with such a field whether its `PartialEq` is derived.
            let half = matches!(ty, Ty::Struct(_) | Ty::Instance(..)) && holds_half(&inner);
            let compared = self.members_of(&inner, Some("PartialEq"), "eq", Reach::All, line)?;
            if half || !compared.is_empty() {
                let (inner, outer) = (self.show(&inner), self.show(ty));
                return Err(self.error(
                    line,
                    format!("`{outer}` holds a `{inner}`, which is compared by a function"),
                    format!(
                        "write `#[device]` before `#[derive(PartialEq)]` of `{outer}`, or before `impl PartialEq for {outer}`"
                    ),
                ));
            }
            self.derived_only(&inner, line)?;
        }
        Ok(())
    }

    /// Refuses what the type has without `#[device]`.
    fn known_to_kernels(&self, ty: &Ty, of_trait: &str, names: &[&str], line: u32) -> Result<()> {
        for name in names {
            let found = self.members_of(ty, Some(of_trait), name, Reach::All, line)?;
            for meaning in found {
                if let Resolved::Refused { cause, remedy } = meaning {
                    return Err(self.error(line, cause, remedy));
                }
            }
        }
        Ok(())
    }

    /// Gives a literal left of an operator the one scalar type that has the operator with `right`.
    fn literal_operand(&mut self, left: &Ty, right: &Ty, of_trait: &str, name: &str) -> Result<()> {
        let mut fitting = Vec::new();
        for scalar in Scalar::ALL {
            let ty = Ty::Scalar(scalar);
            let saved = self.types.clone();
            let fits = self.types.unify(left, &ty).is_ok();
            self.types = saved;
            let functions = self.functions_of(&ty, Some(of_trait), name, Reach::All, 0)?;
            let operand = |ty: &Ty| {
                Argument::Operand(Expr {
                    line: 0,
                    ty: ty.clone(),
                    kind: ExprKind::Unreachable,
                })
            };
            for function in functions {
                let callee = self.program.load(&function.function)?;
                if fits && self.takes(&callee, function.own.as_ref(), &[operand(&ty), operand(right)]) {
                    fitting.push(ty.clone());
                }
            }
        }
        if let [only] = &fitting[..] {
            self.unify(0, left, only)?;
        }
        Ok(())
    }

    /// `-operand` or `!operand` by a trait's function, where it is no scalar.
    pub(in crate::front::rust::infer) fn user_negation(
        &mut self,
        operand: Expr,
        of_trait: &str,
        line: u32,
    ) -> Result<std::result::Result<Expr, Expr>> {
        let ty = self.types.shallow(&operand.ty);
        if !matches!(ty, Ty::Struct(_) | Ty::Instance(..) | Ty::Enum(_) | Ty::Array(..)) {
            return Ok(Err(operand));
        }
        let name = if of_trait == "Neg" { "neg" } else { "not" };
        let functions = self.functions_of(&ty, Some(of_trait), name, Reach::All, line)?;
        if functions.is_empty() {
            let (shown, sign) = (self.show(&ty), if of_trait == "Neg" { "-" } else { "!" });
            return Err(self.error(
                line,
                format!("`{sign}` does not work on `{shown}`"),
                format!("write `#[device] impl {of_trait} for {shown}`"),
            ));
        }
        self.call_one_of(functions, vec![Argument::Operand(operand)], &[], line)
            .map(Ok)
    }

    /// A trait's functions for the reference that an operand is.
    fn functions_of_reference(
        &mut self,
        operand: &Expr,
        of_trait: &str,
        name: &str,
        line: u32,
    ) -> Result<Vec<Callee>> {
        match self.types.shallow(&operand.ty) {
            ty @ Ty::Ref(..) => self.functions_of(&ty, Some(of_trait), name, Reach::All, line),
            _ => Ok(Vec::new()),
        }
    }

    /// `-operand` of a reference, where a block says what that is.
    pub(in crate::front::rust::infer) fn negated_reference(
        &mut self,
        operand: Expr,
        of_trait: &str,
        line: u32,
    ) -> Result<std::result::Result<Expr, Expr>> {
        let name = if of_trait == "Neg" { "neg" } else { "not" };
        if matches!(self.peeled(&operand.ty), Ty::Scalar(_) | Ty::Var(_)) {
            return Ok(Err(operand));
        }
        let functions = self.functions_of_reference(&operand, of_trait, name, line)?;
        if functions.is_empty() {
            return Ok(Err(operand));
        }
        self.call_one_of(functions, vec![Argument::Operand(operand)], &[], line)
            .map(Ok)
    }

    /// `place op= value` by a trait's function, where the place holds no scalar.
    pub(in crate::front::rust::infer) fn user_assignment(
        &mut self,
        op: BinaryOp,
        place: Expr,
        value: &syntax::Expr,
        line: u32,
    ) -> Result<Expr> {
        let ty = self.types.shallow(&place.ty);
        let (of_trait, name) = match operator(op) {
            Some((of_trait, name)) => (format!("{of_trait}Assign"), format!("{name}_assign")),
            None => (String::new(), String::new()),
        };
        let functions = self.functions_of(&ty, Some(&of_trait), &name, Reach::All, line)?;
        if functions.is_empty() {
            let shown = self.show(&ty);
            return Err(self.error(
                line,
                format!("`{}=` does not work on `{shown}`", op.symbol()),
                format!("write `#[device] impl {of_trait} for {shown}`"),
            ));
        }
        let value = self.expr(value, None)?;
        let place = self.borrow(place, true, line)?;
        let args = vec![Argument::Operand(place), Argument::Operand(value)];
        self.call_one_of(functions, args, &[], line)
    }

    /// `base[index]` by a trait's function.
    pub(in crate::front::rust::infer) fn user_index(
        &mut self,
        base: Expr,
        index: &syntax::Expr,
        line: u32,
    ) -> Result<Expr> {
        let ty = self.types.shallow(&base.ty);
        let functions = self.functions_of(&ty, Some("Index"), "index", Reach::All, line)?;
        if functions.is_empty() {
            let shown = self.show(&ty);
            return Err(self.error(
                line,
                format!("`{shown}` cannot be indexed"),
                format!("index slices and arrays, or write `#[device] impl Index<usize> for {shown}`"),
            ));
        }
        let args = vec![Argument::Operand(base), Argument::Syntax(index)];
        let called = self.call_one_of(functions, args, &[], line)?;
        Ok(self.deref(called))
    }

    /// A place that is stored to: where `Index` gives it, `IndexMut` does then.
    pub(in crate::front::rust::infer) fn mutable_place(&mut self, mut place: Expr) -> Result<Expr> {
        place.kind = match place.kind {
            ExprKind::Field(base, field) => ExprKind::Field(Box::new(self.mutable_place(*base)?), field),
            ExprKind::Index(base, index) => ExprKind::Index(Box::new(self.mutable_place(*base)?), index),
            ExprKind::Deref(inner) => match inner.kind {
                ExprKind::Call(callee, _, args)
                    if callee.tree.name == "index" && matches!(inner.ty, Ty::Ref(false, _)) =>
                {
                    let mut args = args.into_iter();
                    let (Some(base), Some(index)) = (args.next(), args.next()) else {
                        return Err(self.error(place.line, "`index` takes an index", ""));
                    };
                    let ty = self.peeled(&base.ty);
                    let functions =
                        self.functions_of(&ty, Some("IndexMut"), "index_mut", Reach::All, place.line)?;
                    if functions.is_empty() {
                        let shown = self.show(&ty);
                        return Err(self.error(
                            place.line,
                            format!("an element of `{shown}` is changed"),
                            format!("write `#[device] impl IndexMut for {shown}`"),
                        ));
                    }
                    let base = match base.kind {
                        ExprKind::Ref(inner) => *inner,
                        kind => Expr { kind, ..base },
                    };
                    let base = self.borrow(base, true, place.line)?;
                    let args = vec![Argument::Operand(base), Argument::Operand(index)];
                    let called = self.call_one_of(functions, args, &[], place.line)?;
                    return Ok(self.deref(called));
                }
                kind => ExprKind::Deref(Box::new(Expr { kind, ..*inner })),
            },
            kind => kind,
        };
        Ok(place)
    }
}
