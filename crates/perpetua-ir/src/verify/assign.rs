//! Definite assignment: no local variable is read before every path to the read has written it. Relies on right
//! types and structure. A loop needs no repetition: the way round only ever adds assignments.

use super::error::{Cause, Site, VerifyErrors};
use crate::ir::*;

/// Local variables that are assigned on every path to a point, as bits; `None` where no path leads.
type State = Option<Vec<u64>>;

struct Check<'a, 'e> {
    site: Site<'a>,
    errors: &'e mut VerifyErrors,
    /// For each enclosing loop or labelled block, what holds at the breaks that leave it.
    breaks: Vec<State>,
    number: u32,
}

pub(super) fn check(site: Site<'_>, errors: &mut VerifyErrors) {
    if site.body.locals.is_empty() {
        return;
    }
    let nothing = vec![0; site.body.locals.len().div_ceil(64)];
    let mut check = Check {
        site,
        errors,
        breaks: Vec::new(),
        number: 0,
    };
    check.block(&site.body.block, Some(nothing));
}

/// What holds where two paths meet.
fn meet(a: State, b: State) -> State {
    match (a, b) {
        (Some(mut a), Some(b)) => {
            a.iter_mut().zip(&b).for_each(|(a, b)| *a &= b);
            Some(a)
        }
        (a, b) => a.or(b),
    }
}

fn assign(state: &mut State, id: LocalId) {
    if let Some(word) = state.as_mut().and_then(|s| s.get_mut(id.0 as usize / 64)) {
        *word |= 1 << (id.0 % 64);
    }
}

impl Check<'_, '_> {
    fn block(&mut self, block: &Block, mut state: State) -> State {
        for stmt in &block.0 {
            let number = self.number;
            self.number += 1;
            state = self.statement(number, stmt, state);
        }
        state
    }

    fn statement(&mut self, number: u32, stmt: &Stmt, mut state: State) -> State {
        match &stmt.inst {
            Inst::Let(_, op) => {
                if let Some(Base::Local(id)) = op.place().map(|p| p.base) {
                    self.read(number, stmt, id, &mut state, false);
                }
                state
            }
            Inst::Do(Effect::Store(place, ..)) => {
                if let Base::Local(id) = place.base {
                    if place.path.is_empty() {
                        assign(&mut state, id);
                    } else {
                        self.read(number, stmt, id, &mut state, true);
                    }
                }
                state
            }
            Inst::Do(_) => state,
            Inst::If(_, then, otherwise) => {
                let left = self.block(then, state.clone());
                meet(left, self.block(otherwise, state))
            }
            Inst::Switch { cases, default, .. } => {
                let mut after = None;
                for (_, block) in cases {
                    after = meet(after, self.block(block, state.clone()));
                }
                meet(after, self.block(default, state))
            }
            Inst::Loop(block) => {
                self.breaks.push(None);
                self.block(block, state);
                self.breaks.pop().flatten()
            }
            Inst::Labeled(block) => {
                self.breaks.push(None);
                let end = self.block(block, state);
                meet(end, self.breaks.pop().flatten())
            }
            Inst::Break(depth) => {
                if let Some(left) = self.breaks.iter_mut().rev().nth(*depth as usize) {
                    *left = meet(left.take(), state);
                }
                None
            }
            Inst::Continue(_) | Inst::Return(_) => None,
        }
    }

    /// A read of a variable, or a store to a part of it, which keeps the rest.
    fn read(&mut self, number: u32, stmt: &Stmt, id: LocalId, state: &mut State, store: bool) {
        let Some(words) = state else { return };
        let assigned = words
            .get(id.0 as usize / 64)
            .is_none_or(|word| word >> (id.0 % 64) & 1 == 1);
        if !assigned {
            let name = self.site.body.locals.get(id.0 as usize);
            let name = name.map_or_else(String::new, |l| l.name.clone());
            let cause = if store {
                Cause::PartAssigned(name)
            } else {
                Cause::Unassigned(name)
            };
            self.errors.statement(self.site, number, stmt, cause);
            // One report for each cause: what follows on this path is taken as assigned.
            assign(state, id);
        }
    }
}
