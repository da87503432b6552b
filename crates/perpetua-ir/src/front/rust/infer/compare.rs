//! Comparisons that are code in the language: of options and results, tuples, slices and arrays, by their parts, each of which
//! is compared as its type is.

use perpetua_syntax as syntax;
use perpetua_syntax::{BinaryOp, Variant};

use super::call::member::Reach;
use super::tree::Expr;
use super::ty::{Len, Ty};
use super::written::{ARGUMENT, RECEIVER, Writer};
use super::{Checker, Result};

/// Elements up to which arrays of scalars are compared as values.
const COMPARED_AT_ONCE: u64 = 64;

impl Checker<'_> {
    /// Whether values of the type are compared by code over their parts.
    pub(super) fn is_compared_by_parts(&self, op: BinaryOp, ty: &Ty) -> bool {
        let ordered = !matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        match self.peeled(ty) {
            Ty::Option(_) | Ty::Slice(_) => true,
            Ty::Result(..) => !ordered,
            Ty::Array(element, len) => {
                let short = matches!(self.types.len(len), Len::Known(n) if n <= COMPARED_AT_ONCE);
                ordered || !short || self.is_part_compared(op, &element)
            }
            Ty::Tuple(parts) => {
                !parts.is_empty() && ordered || parts.iter().any(|part| self.is_part_compared(op, part))
            }
            _ => false,
        }
    }

    /// Whether a part of an aggregate is compared by code: its own, or a user's.
    fn is_part_compared(&self, op: BinaryOp, ty: &Ty) -> bool {
        let own = self.peeled(ty);
        let users = |name| {
            let found = self.members_of(&own, Some("PartialEq"), name, Reach::All, 0);
            found.is_ok_and(|found| !found.is_empty())
        };
        matches!(self.types.shallow(ty), Ty::Ref(..))
            || matches!(own, Ty::Struct(_) | Ty::Instance(..) | Ty::Enum(_)) && users("eq")
            || self.is_compared_by_parts(op, &own)
    }

    /// `left op right`, part by part.
    pub(super) fn compare_by_parts(
        &mut self,
        op: BinaryOp,
        left: Expr,
        right: Expr,
        line: u32,
    ) -> Result<Expr> {
        let (left, right) = (self.deref_all(left), self.deref_all(right));
        let (lt, rt) = (self.types.shallow(&left.ty), self.types.shallow(&right.ty));
        let w = Writer(line);
        match (&lt, &rt) {
            (Ty::Array(a, _) | Ty::Slice(a), Ty::Array(b, _) | Ty::Slice(b)) => self.unify(line, a, b)?,
            _ => self.unify(line, &lt, &rt)?,
        }
        let mut body = match &lt {
            Ty::Array(..) | Ty::Slice(_) => w.compare_elements(op),
            Ty::Tuple(parts) => w.compare_fields(op, parts.len()),
            Ty::Option(_) => w.compare_variants(op, [Variant::Some, Variant::None]),
            _ => w.compare_variants(op, [Variant::Ok, Variant::Err]),
        };
        if op == BinaryOp::Ne {
            body = w.not(body);
        }
        let (left, right) = (self.borrow(left, false, line)?, self.borrow(right, false, line)?);
        self.written(left, Some(right), &body, Some(&Ty::BOOL), line)
    }

    /// `a.min(b)` and `a.max(b)` of tuples and arrays, and of references to what has an order.
    pub(super) fn extreme(
        &mut self,
        receiver: Expr,
        name: &str,
        other: &syntax::Expr,
        line: u32,
    ) -> Result<Expr> {
        let other = self.expr_as(other, &receiver.ty.clone())?;
        let w = Writer(line);
        // Of equals, the first is the least and the second the greatest.
        let less = match self.types.shallow(&receiver.ty) {
            Ty::Ref(_, target) if !matches!(self.types.shallow(&target), Ty::Var(_)) => {
                let order = w.method(w.local(ARGUMENT), "cmp", vec![w.local(RECEIVER)]);
                w.method(order, "is_lt", Vec::new())
            }
            _ => w.binary(BinaryOp::Lt, w.local(ARGUMENT), w.local(RECEIVER)),
        };
        let body = match name {
            "min" => w.choose(less, w.local(ARGUMENT), w.local(RECEIVER)),
            _ => w.choose(less, w.local(RECEIVER), w.local(ARGUMENT)),
        };
        self.written(receiver, Some(other), &body, None, line)
    }
}

impl Checker<'_> {
    /// `a.cmp(&b)` and `a.partial_cmp(&b)` of tuples and arrays.
    pub(super) fn order_by_parts(
        &mut self,
        receiver: Expr,
        partial: bool,
        other: &syntax::Expr,
        line: u32,
    ) -> Result<Expr> {
        let receiver = self.deref_all(receiver);
        let receiver = self.borrow(receiver, false, line)?;
        let other = self.expr(other, None)?;
        let other = self.deref_all(other);
        let other = self.borrow(other, false, line)?;
        self.unify(line, &receiver.ty.clone(), &other.ty.clone())?;
        self.written(receiver, Some(other), &Writer(line).order(partial), None, line)
    }
}

/// The operator that decides where two parts differ.
fn strict(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Le => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Gt,
        op => op,
    }
}

impl Writer {
    /// `if cond { then } else { otherwise }`.
    pub(super) fn choose(
        self,
        cond: syntax::Expr,
        then: syntax::Expr,
        otherwise: syntax::Expr,
    ) -> syntax::Expr {
        let otherwise = self.block_expr(Vec::new(), Some(otherwise));
        self.when(cond, self.block(Vec::new(), Some(then)), Some(otherwise))
    }

    /// The order of receiver and argument, by their comparisons.
    fn order(self, partial: bool) -> syntax::Expr {
        let holds = |op| self.binary(op, self.target(RECEIVER), self.target(ARGUMENT));
        // Of two numbers: nothing else says an order here.
        let given = |a: u128, b: u128| {
            let order = self.method(self.typed_int(a), "cmp", vec![self.typed_int(b)]);
            match partial {
                true => self.variant(Variant::Some, Some(order)),
                false => order,
            }
        };
        let greater = match partial {
            true => self.choose(
                holds(BinaryOp::Gt),
                given(1, 0),
                self.variant(Variant::None, None),
            ),
            false => given(1, 0),
        };
        let equal = self.choose(holds(BinaryOp::Eq), given(0, 0), greater);
        self.choose(holds(BinaryOp::Lt), given(0, 1), equal)
    }

    /// Receiver and argument, tuples, by their fields; `!=` as `==`.
    fn compare_fields(self, op: BinaryOp, count: usize) -> syntax::Expr {
        let field = |of: &str, index: usize| self.field(of, index as u32);
        let compare = |op, index| self.binary(op, field(RECEIVER, index), field(ARGUMENT, index));
        let equality = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        let last = if equality { BinaryOp::Eq } else { op };
        let mut all = match count {
            0 => self.bool(!matches!(op, BinaryOp::Lt | BinaryOp::Gt)),
            count => compare(last, count - 1),
        };
        for index in (0..count.saturating_sub(1)).rev() {
            let same = compare(BinaryOp::Eq, index);
            all = match equality {
                true => self.binary(BinaryOp::And, same, all),
                false => self.choose(same, all, compare(strict(op), index)),
            };
        }
        all
    }

    /// Receiver and argument, slices or arrays, by their elements; `!=` as `==`.
    fn compare_elements(self, op: BinaryOp) -> syntax::Expr {
        let found = "found";
        let equality = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        let (a, b) = (self.len(RECEIVER), self.len(ARGUMENT));
        let shorter = self.method(a.clone(), "min", vec![b.clone()]);
        let at = |of| self.element(of, self.index());
        let differ = self.binary(BinaryOp::Ne, at(RECEIVER), at(ARGUMENT));
        let decided = match equality {
            true => self.bool(false),
            false => self.binary(strict(op), at(RECEIVER), at(ARGUMENT)),
        };
        let then = vec![self.assign(self.local(found), decided), self.leave()];
        let test = self.stmt(self.when(differ, self.block(then, None), None));
        let lengths = self.binary(if equality { BinaryOp::Eq } else { op }, a, b);
        let looked = self.count(self.int(0), shorter, vec![test]);
        let looked = match equality {
            true => self.stmt(self.when(self.local(found), self.block(vec![looked], None), None)),
            false => looked,
        };
        self.block_expr(vec![self.bind(found, lengths), looked], Some(self.local(found)))
    }

    /// Receiver and argument, options or results; `!=` as `==`.
    fn compare_variants(self, op: BinaryOp, [good, bad]: [Variant; 2]) -> syntax::Expr {
        let (left, right) = ("left", "right");
        let op = if op == BinaryOp::Ne { BinaryOp::Eq } else { op };
        let both = || self.binary(op, self.local(left), self.local(right));
        // What is nothing comes first.
        let (above, below) = (
            matches!(op, BinaryOp::Gt | BinaryOp::Ge),
            matches!(op, BinaryOp::Lt | BinaryOp::Le),
        );
        let same = match bad {
            Variant::None => self.bool(!matches!(op, BinaryOp::Lt | BinaryOp::Gt)),
            _ => both(),
        };
        let of = |variant, name: &str| self.pattern(variant, (variant != Variant::None).then_some(name));
        let inner = |variant, then, otherwise: bool| {
            let arms = vec![(of(variant, right), then), (None, self.bool(otherwise))];
            self.arms(self.target(ARGUMENT), arms)
        };
        let arms = vec![
            (of(good, left), inner(good, both(), above)),
            (of(bad, left), inner(bad, same, below)),
        ];
        self.arms(self.target(RECEIVER), arms)
    }
}
