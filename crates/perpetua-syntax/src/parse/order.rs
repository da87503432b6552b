//! The order in which a call computes: its receiver, then its arguments from left to right, also where one of them is an iterator,
//! whose parts have names in front of the call. Must not know what is called.

use syn::spanned::Spanned;

use super::effects::{Effects, mentions};
use super::reader::{Reader, line_of};
use super::sugar::{binding, local};
use crate::ast::{BinaryOp, Expr, ExprKind, Pattern, PatternKind, Stmt, StmtKind, UnaryOp};

impl Reader {
    /// Whether it is the same before and behind what is computed in front of the call, which changes something where `acts`.
    pub(super) fn stays(&self, value: &Expr, acts: bool) -> bool {
        match &value.kind {
            ExprKind::Local(name) => !(acts && self.may_change(name)),
            ExprKind::Unary {
                op: UnaryOp::Ref | UnaryOp::RefMut,
                operand,
            } => match &operand.kind {
                ExprKind::Local(_) => true,
                _ => self.stays(operand, acts),
            },
            ExprKind::Unary {
                op: UnaryOp::Neg | UnaryOp::Not,
                operand: inner,
            }
            | ExprKind::Cast { value: inner, .. }
            | ExprKind::Field { base: inner, .. }
            | ExprKind::TupleField { base: inner, .. } => self.stays(inner, acts),
            ExprKind::Binary { op, left, right } => {
                !matches!(op, BinaryOp::Div | BinaryOp::Rem)
                    && self.stays(left, acts)
                    && self.stays(right, acts)
            }
            ExprKind::MethodCall {
                receiver, name, args, ..
            } => name == "len" && args.is_empty() && self.stays(receiver, acts),
            ExprKind::Tuple(values) | ExprKind::Array(values) => {
                values.iter().all(|value| self.stays(value, acts))
            }
            kind => matches!(
                kind,
                ExprKind::Int { .. }
                    | ExprKind::Float { .. }
                    | ExprKind::Bool(_)
                    | ExprKind::ConstParam(_)
                    | ExprKind::Path(_)
                    | ExprKind::TypeConst(_)
                    | ExprKind::Closure { .. }
                    | ExprKind::RangeArgument { .. }
                    | ExprKind::Function(_)
            ),
        }
    }

    /// Gives the value a name before what stands in `hoisted` from `at`.
    fn settle(&mut self, value: &mut Expr, at: usize, mutable: bool) {
        let (name, line) = (self.fresh("argument"), value.line);
        let init = Some(std::mem::replace(value, local(&name, line)));
        let pattern = match mutable {
            false => binding(&name, line),
            true => Pattern {
                line,
                kind: PatternKind::Binding { name, mutable },
            },
        };
        let kind = StmtKind::Let {
            pattern,
            ty: None,
            init,
        };
        self.hoisted.insert(at, Stmt { line, kind });
    }

    /// Arguments in order: what stands before an iterator is computed before what the iterator names.
    pub(super) fn read_in_order<'a>(
        &mut self,
        receiver: Option<(&'a syn::Expr, &mut Expr)>,
        args: impl Iterator<Item = &'a syn::Expr>,
        mut read: impl FnMut(&mut Self, usize, &'a syn::Expr) -> Expr,
    ) -> Vec<Expr> {
        let mut receiver = receiver;
        let mut done: Vec<Expr> = Vec::new();
        for (index, arg) in args.enumerate() {
            let at = self.hoisted.len();
            let value = read(self, index, arg);
            if self.hoisted.len() > at {
                let effects = Effects::of_value(self, arg);
                let acts = effects.acts || effects.calls;
                let mut place = at;
                if let Some((written, value)) = receiver.take() {
                    self.settle_receiver(written, value, arg, acts, &mut place);
                }
                for value in &mut done {
                    if !self.stays(value, acts) {
                        self.settle(value, place, false);
                        place += 1;
                    }
                }
            }
            done.push(value);
        }
        done
    }

    /// A receiver that is a value gets a name. One that is a place is looked at behind the arguments, where a method takes it by
    /// reference, as Rust does; what chooses the place is computed before them.
    fn settle_receiver(
        &mut self,
        written: &syn::Expr,
        value: &mut Expr,
        arg: &syn::Expr,
        acts: bool,
        at: &mut usize,
    ) {
        match &mut value.kind {
            ExprKind::Field { base, .. } | ExprKind::TupleField { base, .. } => {
                self.settle_receiver(written, base, arg, acts, at);
            }
            ExprKind::Unary {
                op: UnaryOp::Deref | UnaryOp::Ref | UnaryOp::RefMut,
                operand,
            } => self.settle_receiver(written, operand, arg, acts, at),
            ExprKind::Index { base, index } => {
                if !self.stays(index, acts) {
                    self.settle(index, *at, false);
                    *at += 1;
                }
                self.settle_receiver(written, base, arg, acts, at);
            }
            ExprKind::Local(name) => {
                if acts && self.may_change(name) && mentions(arg, name) {
                    let (line, name) = (line_of(written.span()), name.clone());
                    self.error(
                        arg,
                        format!(
                            "an iterator that is an argument is computed before the call, and this one names `{name}`, on which \
                             the method is called, and may change it: give the iterator a name by `let` before line {line}"
                        ),
                    );
                }
            }
            _ => {
                if !self.stays(value, acts) {
                    self.settle(value, *at, true);
                    *at += 1;
                }
            }
        }
    }
}
