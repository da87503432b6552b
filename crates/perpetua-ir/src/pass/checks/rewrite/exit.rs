//! What a lane does that has faulted: where it goes from each point of a body. Knows nothing of what was checked.

use super::{Here, Rewriter, push};
use crate::fault::FaultSite;
use crate::ir::{Block, Effect, FaultKind, Inst, Op, Stmt, Type, Value};

/// What a faulting lane does in a body.
pub(in crate::pass::checks) enum Policy {
    /// Returns at once; a function gives zero of its result type.
    Return(Option<Type>),
    /// Walks on to the end.
    Walk,
}

/// What a faulting lane does at the present point.
#[derive(Clone, Copy)]
pub(super) enum Exit {
    /// Returns.
    Return,
    /// Leaves the labelled block around the present region; so many loops and labels are between.
    Leave(u32),
    /// Walks on.
    Walk,
}

impl Exit {
    pub(super) fn deeper(self) -> Exit {
        match self {
            Exit::Leave(depth) => Exit::Leave(depth + 1),
            other => other,
        }
    }
}

/// The depth of an escape once the region's label is around it.
pub(super) fn past_label(depth: u32, exit: Exit) -> u32 {
    match exit {
        Exit::Leave(inside) if depth >= inside => depth + 1,
        _ => depth,
    }
}

impl Rewriter<'_> {
    pub(super) fn site(&mut self, kind: FaultKind, subject: &str, operands: &[Value], here: Here) {
        let operands = operands.iter().filter_map(|v| self.scalar(*v)).collect();
        let site = FaultSite::new(kind, here.line, subject, operands);
        self.found.sites.push(site);
    }

    /// Appends `if bad { fault … }`. Where the lane walks on: gives `bad` back. `roots` are the source values on
    /// which `bad` depends.
    pub(super) fn fault(
        &mut self,
        bad: Value,
        fault: Effect,
        roots: &[Value],
        here: Here,
        out: &mut Vec<Stmt>,
    ) -> Option<Value> {
        let uniform = self.uniformity.is_some_and(|u| roots.iter().all(|v| u.value(*v)));
        let mut inner = Vec::new();
        push(&mut inner, here.line, Inst::Do(fault));
        let left = self.after_fault(uniform, here, &mut inner);
        push(out, here.line, Inst::If(bad, Block(inner), Block::default()));
        (!left).then_some(bad)
    }

    /// Appends what a lane does that has just faulted; says whether it leaves. `uniform`: all lanes that come here
    /// together fault.
    pub(super) fn after_fault(&mut self, uniform: bool, here: Here, out: &mut Vec<Stmt>) -> bool {
        let all = uniform && self.uniformity.is_some_and(|u| !u.is_awaited(here.at));
        match here.exit {
            Exit::Walk if !all => {
                self.maybe_dead = true;
                false
            }
            Exit::Walk | Exit::Leave(_) | Exit::Return => {
                self.leave(here, out);
                true
            }
        }
    }

    pub(super) fn leave(&mut self, here: Here, out: &mut Vec<Stmt>) {
        let line = here.line;
        if let Exit::Leave(depth) = here.exit {
            push(out, line, Inst::Break(depth));
            return;
        }
        let zero = self
            .result
            .clone()
            .map(|ty| self.let_(line, Op::Zero(ty.clone()), ty, out));
        push(out, line, Inst::Return(zero));
    }

    /// Appends an effect that a dead lane does not have.
    pub(super) fn unless_dead(&mut self, inst: Inst, here: Here, out: &mut Vec<Stmt>) {
        if matches!(here.exit, Exit::Walk) && self.maybe_dead {
            let dead = self.dead(here.line, out);
            let mut inner = Vec::new();
            push(&mut inner, here.line, inst);
            push(out, here.line, Inst::If(dead, Block::default(), Block(inner)));
        } else {
            push(out, here.line, inst);
        }
    }
}
