//! What a body's values and variables are used for: how often, where, and from where to where a variable lives. Tells
//! the writer what may stand inside an expression and where to declare what.

use std::collections::HashMap;

use super::effects::{Effects, is_pure};
use crate::ir::{Base, Block, Body, Effect, Inst, Op, Stmt};

/// A run of statements, by their numbers in source order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// The statement itself.
    pub(crate) start: u32,
    /// The last statement inside it.
    pub(crate) last: u32,
}

impl Range {
    /// Whether `at` lies inside the statement's blocks.
    pub(crate) fn holds(self, at: u32) -> bool {
        at > self.start && at <= self.last
    }
}

/// Where a variable lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    /// The statement before which it is declared; it is in the innermost block that has all accesses.
    pub(crate) from: u32,
    /// The last access.
    pub(crate) last: u32,
}

/// From a value's definition to where it is last wanted.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    from: u32,
    to: u32,
    /// It is used in a loop that it is not defined in, so `to` is that loop's end: any turn may want it.
    repeats: bool,
}

/// Uses in one body.
pub(crate) struct Uses {
    counts: Vec<u32>,
    positions: Vec<u32>,
    /// For each value, where it is defined and how long it is wanted.
    spans: Vec<Span>,
    /// Where each variable is stored to.
    stores: Vec<Vec<u32>>,
    ranges: HashMap<*const Stmt, Range>,
    lives: Vec<Option<Life>>,
}

impl Uses {
    pub(crate) fn of(body: &Body, functions: &[Effects]) -> Uses {
        let mut uses = Uses {
            counts: vec![0; body.values.len()],
            positions: vec![0; body.values.len()],
            spans: vec![Span::default(); body.values.len()],
            stores: vec![Vec::new(); body.locals.len()],
            ranges: HashMap::new(),
            lives: Vec::new(),
        };
        let mut next = 0;
        uses.number(&body.block, &mut next);
        uses.count(&body.block, functions);
        let mut defined = vec![0; body.values.len()];
        uses.span(&body.block, functions, &mut Vec::new(), &mut defined);
        let mut lives = Lives {
            chains: vec![None; body.locals.len()],
            open: Vec::new(),
        };
        uses.live(&body.block, functions, &mut lives);
        uses.lives = lives
            .chains
            .into_iter()
            .map(|c| {
                c.map(|c| Life {
                    from: c.chain.last().map_or(0, |(_, at)| *at),
                    last: c.last,
                })
            })
            .collect();
        uses
    }

    fn number(&mut self, block: &Block, next: &mut u32) {
        for stmt in &block.0 {
            let start = *next;
            *next += 1;
            for b in stmt.inst.blocks() {
                self.number(b, next);
            }
            let range = Range {
                start,
                last: *next - 1,
            };
            self.ranges.insert(std::ptr::from_ref(stmt), range);
        }
    }

    /// Counts backwards, so that what only dead statements use counts as unused.
    fn count(&mut self, block: &Block, functions: &[Effects]) {
        for stmt in block.0.iter().rev() {
            for b in stmt.inst.blocks().into_iter().rev() {
                self.count(b, functions);
            }
            if self.is_dead(stmt, functions) {
                continue;
            }
            let at = self.range(stmt).start;
            let (counts, positions) = (&mut self.counts, &mut self.positions);
            stmt.inst.operands(&mut |v| {
                if let (Some(n), Some(p)) = (counts.get_mut(v.0 as usize), positions.get_mut(v.0 as usize)) {
                    *n += 1;
                    *p = at;
                }
            });
        }
    }

    /// Finds how long values are wanted. `loops`: the enclosing loops; `defined`: how many enclosed each definition.
    fn span(&mut self, block: &Block, functions: &[Effects], loops: &mut Vec<Range>, defined: &mut [usize]) {
        for stmt in &block.0 {
            if self.is_dead(stmt, functions) {
                continue;
            }
            let range = self.range(stmt);
            let spans = &mut self.spans;
            stmt.inst.operands(&mut |v| {
                let v = v.0 as usize;
                if let (Some(span), Some(depth)) = (spans.get_mut(v), defined.get(v)) {
                    match loops.get(*depth) {
                        Some(outer) if outer.last >= span.to => {
                            *span = Span {
                                to: outer.last,
                                repeats: true,
                                ..*span
                            };
                        }
                        None if range.start > span.to => {
                            *span = Span {
                                to: range.start,
                                repeats: false,
                                ..*span
                            };
                        }
                        _ => {}
                    }
                }
            });
            match &stmt.inst {
                Inst::Let(v, _) => {
                    if let (Some(span), Some(depth)) =
                        (self.spans.get_mut(v.0 as usize), defined.get_mut(v.0 as usize))
                    {
                        *span = Span {
                            from: range.start,
                            to: range.start,
                            repeats: false,
                        };
                        *depth = loops.len();
                    }
                }
                Inst::Do(Effect::Store(place, ..)) => {
                    if let Base::Local(id) = place.base
                        && let Some(stores) = self.stores.get_mut(id.0 as usize)
                    {
                        stores.push(range.start);
                    }
                }
                _ => {}
            }
            let is_loop = matches!(stmt.inst, Inst::Loop(_));
            if is_loop {
                loops.push(range);
            }
            for b in stmt.inst.blocks() {
                self.span(b, functions, loops, defined);
            }
            if is_loop {
                loops.pop();
            }
        }
    }

    /// Whether variable `local` keeps its content from the definition of value number `v` to its last use.
    pub(crate) fn keeps(&self, local: u32, v: u32) -> bool {
        let Some(span) = self.spans.get(v as usize) else {
            return false;
        };
        // The last user may itself be the store: it reads first.
        let disturbs = |at: u32| at > span.from && (at < span.to || at == span.to && span.repeats);
        self.stores
            .get(local as usize)
            .is_some_and(|s| !s.iter().any(|at| disturbs(*at)))
    }

    fn live(&self, block: &Block, functions: &[Effects], lives: &mut Lives) {
        let id = std::ptr::from_ref(block);
        for stmt in &block.0 {
            let at = self.range(stmt).start;
            lives.open.push((id, at));
            if !self.is_dead(stmt, functions) {
                if let Some(local) = accessed_local(&stmt.inst) {
                    lives.access(local, at);
                }
                for b in stmt.inst.blocks() {
                    self.live(b, functions, lives);
                }
            }
            lives.open.pop();
        }
    }

    /// Whether the statement only computes what nobody uses.
    pub(crate) fn is_dead(&self, stmt: &Stmt, functions: &[Effects]) -> bool {
        matches!(&stmt.inst, Inst::Let(v, op) if self.count_of(v.0) == 0 && is_pure(op, functions))
    }

    /// How many live statements' operands value number `v` is.
    pub(crate) fn count_of(&self, v: u32) -> u32 {
        self.counts.get(v as usize).copied().unwrap_or(0)
    }

    /// The first statement that uses value number `v`.
    pub(crate) fn position_of(&self, v: u32) -> u32 {
        self.positions.get(v as usize).copied().unwrap_or(0)
    }

    /// Whether value number `v` is used by the statement right after its definition.
    pub(crate) fn is_next(&self, v: u32) -> bool {
        self.spans
            .get(v as usize)
            .is_some_and(|s| s.from + 1 == self.position_of(v))
    }

    pub(crate) fn range(&self, stmt: &Stmt) -> Range {
        self.ranges
            .get(&std::ptr::from_ref(stmt))
            .copied()
            .unwrap_or(Range { start: 0, last: 0 })
    }

    /// Where local variable number `local` lives; `None` if nothing touches it.
    pub(crate) fn life(&self, local: u32) -> Option<Life> {
        self.lives.get(local as usize).copied().flatten()
    }
}

fn accessed_local(inst: &Inst) -> Option<u32> {
    let place = match inst {
        Inst::Let(_, Op::Load(place, _)) | Inst::Do(Effect::Store(place, ..)) => place,
        _ => return None,
    };
    match place.base {
        Base::Local(id) => Some(id.0),
        _ => None,
    }
}

/// The statements that enclose a point, outermost first: block and statement in it.
type Chain = Vec<(*const Block, u32)>;

#[derive(Clone)]
struct Accessed {
    /// Down to the innermost block that has all accesses so far; the statement there is that of the first.
    chain: Chain,
    last: u32,
}

struct Lives {
    chains: Vec<Option<Accessed>>,
    open: Chain,
}

impl Lives {
    fn access(&mut self, local: u32, at: u32) {
        let Some(slot) = self.chains.get_mut(local as usize) else {
            return;
        };
        match slot {
            None => {
                *slot = Some(Accessed {
                    chain: self.open.clone(),
                    last: at,
                });
            }
            Some(known) => {
                let shared = known
                    .chain
                    .iter()
                    .zip(&self.open)
                    .take_while(|(a, b)| a.0 == b.0)
                    .count();
                // Below the first differing statement the blocks differ too.
                let same = known
                    .chain
                    .iter()
                    .zip(&self.open)
                    .take_while(|(a, b)| a == b)
                    .count();
                known.chain.truncate((same + 1).min(shared));
                known.last = known.last.max(at);
            }
        }
    }
}
