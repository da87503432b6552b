//! Closures: emitted wherever they are called, in the scope of the function in which they stand.

use std::rc::Rc;

use super::value::{Binding, Val};
use super::{Emitter, Result};
use crate::front::rust::infer::tree::{ClosureBody, Expr, ExprKind};
use crate::front::rust::infer::ty::Ty;

impl Emitter<'_> {
    /// A closure as a value.
    pub(super) fn closure(&mut self, body: &Rc<ClosureBody>, line: u32) -> Result<Val> {
        for id in body.moved.iter().flatten() {
            let local = self.scope.f.locals.get(id.0 as usize);
            let changes = local.is_some_and(|local| local.assigned);
            if changes && matches!(self.scope.bindings.get(id.0 as usize), Some(Binding::Var(_))) {
                let name = local.map_or_else(String::new, |local| local.name.clone());
                return Err(self.error(
                    line,
                    format!("a `move` closure takes a copy of `{name}`, which changes"),
                    format!("without `move` the closure changes `{name}` itself; for a copy of its own write `let mut copy = {name};` before, name `copy` in the closure, and remove `move`"),
                ));
            }
        }
        Ok(Val::Closure(body.clone(), self.scope.id))
    }

    /// What stands for the function that a kernel was given: no call reaches it.
    pub(super) fn function_value(&self) -> Val {
        let body = ClosureBody {
            params: Vec::new(),
            body: Expr {
                line: 0,
                ty: Ty::unit(),
                kind: ExprKind::Tuple(Vec::new()),
            },
            moved: None,
        };
        Val::Closure(Rc::new(body), self.scope.id)
    }

    /// A closure's call.
    pub(super) fn call_closure(&mut self, function: &Expr, args: &[Expr], line: u32) -> Result<Val> {
        let Val::Closure(body, home) = self.expr(function)? else {
            return Err(self.error(
                line,
                "which closure is called is chosen at run time",
                "call each by `if`",
            ));
        };
        self.count_inlined(line)?;
        let vals = args
            .iter()
            .map(|arg| self.expr(arg))
            .collect::<Result<Vec<_>>>()?;
        self.at(line);
        if self.body.ended {
            return Ok(Val::unit());
        }
        let away = match self.scope.id == home {
            true => None,
            false => match self.outer.iter().rposition(|scope| scope.id == home) {
                Some(at) => Some(at),
                None => return Err(self.error(line, "a closure outlives its function", "call it there")),
            },
        };
        let swap = |this: &mut Self| {
            if let Some(scope) = away.and_then(|at| this.outer.get_mut(at)) {
                std::mem::swap(&mut this.scope, scope);
            }
        };
        swap(self);
        let done = self.closure_body(&body, vals);
        swap(self);
        self.at(line);
        done
    }

    fn closure_body(&mut self, body: &ClosureBody, vals: Vec<Val>) -> Result<Val> {
        for (pattern, val) in body.params.iter().zip(vals) {
            self.bind_pattern(pattern, val, body.body.line)?;
        }
        self.expr(&body.body)
    }
}
