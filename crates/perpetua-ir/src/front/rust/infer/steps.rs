//! The numbers of a range in steps, or the other way round: what `rev`, `step_by`, `skip` and `take` of a range make where the reader does not
//! see that it is one, and whether something is an iterator by its type.

use perpetua_syntax as syntax;
use perpetua_syntax::{BinaryOp, PrintPiece, StructName, Type};

use super::call::member::Reach;
use super::tree::{Expr, ExprKind};
use super::ty::{Generic, Ty};
use super::written::{ARGUMENT, RECEIVER, Writer};
use super::{Checker, Result};
use crate::front::rust::describe::GenericStruct;

impl Writer {
    fn steps(self, [first, step, count]: [syntax::Expr; 3]) -> syntax::Expr {
        let names = ["first", "step", "count"].map(str::to_owned);
        self.expr(syntax::ExprKind::StructLiteral {
            name: StructName::Steps,
            fields: names.into_iter().zip([first, step, count]).collect(),
            base: None,
        })
    }

    fn part_of_steps(self, name: &str) -> syntax::Expr {
        let (base, name) = (Box::new(self.local(RECEIVER)), name.to_owned());
        self.expr(syntax::ExprKind::Field { base, name })
    }

    /// The number at an index, which wraps as the numbers of its type do.
    fn step(self, index: syntax::Expr) -> syntax::Expr {
        let index = Box::new(index);
        let ty = Type::Infer;
        let index = self.expr(syntax::ExprKind::Cast { value: index, ty });
        let way = self.binary(BinaryOp::Mul, index, self.part_of_steps("step"));
        self.binary(BinaryOp::Add, self.part_of_steps("first"), way)
    }

    /// What a method of steps makes of them; `None` of other methods.
    fn stepped(self, name: &str) -> Option<syntax::Expr> {
        let [first, step, count] = ["first", "step", "count"].map(|name| self.part_of_steps(name));
        let by = self.local(ARGUMENT);
        let least = |a, b| self.method(a, "min", vec![b]);
        Some(match name {
            "rev" => {
                let last = self.method(count.clone(), "wrapping_sub", vec![self.int(1)]);
                let back = self.binary(BinaryOp::Sub, self.int(0), step);
                self.steps([self.step(last), back, count])
            }
            "step_by" => {
                let text = PrintPiece::Text("assertion failed: step != 0".to_owned());
                let panic = self.expr(syntax::ExprKind::Panic {
                    pieces: vec![text],
                    args: Vec::new(),
                });
                let none = self.binary(BinaryOp::Eq, by.clone(), self.int(0));
                let fault = self.when(none, self.block(vec![self.stmt(panic)], None), None);
                let value = Box::new(by.clone());
                let ty = Type::Infer;
                let times = self.expr(syntax::ExprKind::Cast { value, ty });
                let step = self.binary(BinaryOp::Mul, step, times);
                let count = self.method(count, "div_ceil", vec![by]);
                let steps = self.steps([first, step, count]);
                self.block_expr(vec![self.stmt(fault)], Some(steps))
            }
            "skip" => {
                let passed = least(by, count.clone());
                let left = self.binary(BinaryOp::Sub, count, passed.clone());
                self.steps([self.step(passed), step, left])
            }
            "take" => self.steps([first, step, least(count, by)]),
            _ => return None,
        })
    }
}

impl Checker<'_> {
    /// Of what the numbers are that a range has in steps; `None` of what is none.
    pub(super) fn steps_of(&self, ty: &Ty) -> Option<Ty> {
        let (of, item) = self.generic_of(ty)?;
        (of == GenericStruct::steps()).then_some(item)
    }

    /// Whether something is an iterator by its type, without a method `name` of its own.
    fn is_iterated(&mut self, ty: &Ty, name: &str, line: u32) -> Result<bool> {
        let ty = self.peeled(ty);
        if self.range_of(&ty).is_some() || self.steps_of(&ty).is_some() {
            return Ok(!name.starts_with(syntax::OWN));
        }
        let name = name.trim_start_matches(syntax::OWN);
        Ok(self.has_next(&ty, line)? && self.functions_of(&ty, None, name, Reach::All, line)?.is_empty())
    }

    /// Whether it is an iterator of the user's, or a `&mut` to one.
    pub(super) fn has_next(&mut self, ty: &Ty, line: u32) -> Result<bool> {
        let ty = match self.types.shallow(ty) {
            Ty::Ref(true, of) => self.types.shallow(&of),
            ty => ty,
        };
        if !matches!(ty, Ty::Struct(_) | Ty::Instance(..) | Ty::Enum(_)) {
            return Ok(false);
        }
        let next = self.functions_of(&ty, Some("Iterator"), "next", Reach::All, line)?;
        Ok(!next.is_empty())
    }

    /// Methods that only the reader writes; `None` of others.
    pub(super) fn readers_method(
        &mut self,
        receiver: &syntax::Expr,
        name: &str,
        args: &[syntax::Expr],
        hint: Option<&Ty>,
        line: u32,
    ) -> Result<Option<Expr>> {
        if name == syntax::REVERSED {
            let value = self.expr(receiver, hint)?;
            return self.reversed(value, line).map(Some);
        }
        if let (Some(method), [items, plain]) = (name.strip_prefix(syntax::ITERATED), args) {
            let ty = self.expr(receiver, None)?.ty;
            let iterated = self.is_iterated(&ty, method, line)?;
            return self.expr(if iterated { items } else { plain }, hint).map(Some);
        }
        let Some(method) = name.strip_prefix(syntax::LACKS) else {
            return Ok(None);
        };
        let ty = self.expr(receiver, None)?.ty;
        self.lacks(&ty, method, !args.is_empty(), line).map(Some)
    }

    /// Refuses what has a method of this name of its own; where that may end the lane with a fault, also what runs it at once.
    fn lacks(&mut self, ty: &Ty, name: &str, at_once: bool, line: u32) -> Result<Expr> {
        let ty = self.peeled(ty);
        if at_once && matches!(ty, Ty::Option(_) | Ty::Result(..) | Ty::Array(..)) {
            let shown = self.show(&ty);
            return Err(self.error(
                line,
                format!("`{name}` of `{shown}` runs at once, and may end the lane, and here it would run when it is asked for"),
                "give what it gives a name by `let` in front of the iterator",
            ));
        }
        if self.functions_of(&ty, None, name, Reach::All, line)?.is_empty() {
            return Ok(self.make(line, Ty::unit(), ExprKind::Tuple(Vec::new())));
        }
        let shown = self.show(&ty);
        Err(self.error(
            line,
            format!("`{shown}` has a method `{name}` of its own, and a loop takes it for an iterator's here"),
            "give what the method gives a name by `let`, and loop over that",
        ))
    }

    /// A range in steps.
    pub(super) fn steps_of_range(&mut self, range: Expr, item: &Ty, closed: bool) -> Result<Expr> {
        let (line, w) = (range.line, Writer(range.line));
        let steps = w.steps([w.part_of_steps("start"), w.int(1), w.length_of_range(closed)]);
        let count = Generic::Type(Ty::USIZE);
        let of = [Generic::Type(item.clone()), count];
        let ty = self.types.instance(&GenericStruct::steps(), &of, false);
        self.written(range, None, &steps, Some(&ty), line)
    }

    /// A method of a range in steps.
    pub(super) fn steps_method(
        &mut self,
        receiver: Expr,
        item: Ty,
        name: &str,
        args: &[syntax::Expr],
        line: u32,
    ) -> Result<Expr> {
        let w = Writer(line);
        let steps = self.deref_all(receiver);
        let ty = steps.ty.clone();
        match (name, args) {
            (syntax::INDEXED, []) => Ok(self.make(line, Ty::unit(), ExprKind::Tuple(Vec::new()))),
            ("into_iter" | "clone", []) => Ok(steps),
            ("len", []) => self.written(steps, None, &w.part_of_steps("count"), Some(&Ty::USIZE), line),
            ("rev", []) | ("step_by" | "skip" | "take", [_]) => {
                let by = match args.first() {
                    Some(by) => Some(self.expr_as(by, &Ty::USIZE)?),
                    None => None,
                };
                match w.stepped(name) {
                    Some(body) => self.written(steps, by, &body, Some(&ty), line),
                    None => Ok(steps),
                }
            }
            (syntax::ELEMENT, [index]) => {
                let index = self.expr_as(index, &Ty::USIZE)?;
                self.written(steps, Some(index), &w.step(w.local(ARGUMENT)), Some(&item), line)
            }
            _ => Err(self.error(
                line,
                format!("the steps of a range have no method `{name}` that kernels can call"),
                format!(
                    "write `.into_iter().{name}(…)`: behind `into_iter` kernels know them for an iterator"
                ),
            )),
        }
    }
}
