//! Where values are read for the last time and where variables are written, by statement number. Knows nothing of
//! registers.
//!
//! Statements are numbered in the order of the text; one with blocks takes another number at its end. A value that
//! a loop reads and that was made before it lives to the loop's end.

use perpetua_ir::ir::{Base, Block, Body, Effect, Inst, Op, Value};

/// What is known of one body.
pub(super) struct Liveness {
    /// Number of the last statement that reads each value; 0 for a value that nothing reads.
    last: Vec<u32>,
    /// Numbers of the statements that write to each local variable, ascending.
    writes: Vec<Vec<u32>>,
}

impl Liveness {
    pub(super) fn of(body: &Body) -> Liveness {
        let mut scan = Scan {
            found: Liveness {
                last: vec![0; body.values.len()],
                writes: vec![Vec::new(); body.locals.len()],
            },
            depth: vec![0; body.values.len()],
            outer: Vec::new(),
            passes: Vec::new(),
            number: 0,
        };
        scan.block(&body.block);
        let Scan {
            mut found, passes, ..
        } = scan;
        // A value that only becomes part of another one lives as long as that; later ones are known first.
        for (from, to) in passes.into_iter().rev() {
            let until = found.last(to);
            found.read(from, until);
        }
        found
    }

    /// Number of the statement that reads a value last; 0 if none does.
    pub(super) fn last(&self, v: Value) -> u32 {
        self.last.get(v.0 as usize).copied().unwrap_or(0)
    }

    /// Whether a statement after number `from` and up to number `to` writes to a variable.
    pub(super) fn written(&self, local: u32, from: u32, to: u32) -> bool {
        self.writes.get(local as usize).is_none_or(|writes| {
            let next = writes.partition_point(|n| *n <= from);
            writes.get(next).is_some_and(|n| *n <= to)
        })
    }

    fn read(&mut self, v: Value, number: u32) {
        if let Some(last) = self.last.get_mut(v.0 as usize) {
            *last = number.max(*last);
        }
    }
}

struct Scan {
    found: Liveness,
    /// Number of loops around each value's definition.
    depth: Vec<usize>,
    /// For each open loop, the values made just outside it that are read inside.
    outer: Vec<Vec<Value>>,
    /// Values that become part of other values.
    passes: Vec<(Value, Value)>,
    number: u32,
}

impl Scan {
    fn block(&mut self, block: &Block) {
        for stmt in &block.0 {
            self.number += 1;
            let here = self.number;
            stmt.inst.operands(&mut |v| self.read(v, here));
            match &stmt.inst {
                Inst::Let(v, op) => self.define(*v, op),
                Inst::Do(Effect::Store(place, ..)) => {
                    if let Base::Local(id) = place.base
                        && let Some(writes) = self.found.writes.get_mut(id.0 as usize)
                    {
                        writes.push(here);
                    }
                }
                Inst::If(_, then, otherwise) => {
                    self.block(then);
                    self.block(otherwise);
                    self.number += 1;
                }
                Inst::Switch {
                    selector,
                    cases,
                    default,
                } => {
                    cases.iter().for_each(|(_, block)| self.block(block));
                    self.block(default);
                    self.number += 1;
                    // Each case looks at it again.
                    self.read(*selector, self.number);
                }
                Inst::Loop(block) => {
                    self.outer.push(Vec::new());
                    self.block(block);
                    self.number += 1;
                    for v in self.outer.pop().unwrap_or_default() {
                        self.found.read(v, self.number);
                    }
                }
                Inst::Labeled(block) => {
                    self.block(block);
                    self.number += 1;
                }
                Inst::Do(_) | Inst::Break(_) | Inst::Continue(_) | Inst::Return(_) => {}
            }
        }
    }

    fn read(&mut self, v: Value, number: u32) {
        self.found.read(v, number);
        let depth = self.depth.get(v.0 as usize).copied().unwrap_or(0);
        if let Some(values) = self.outer.get_mut(depth) {
            values.push(v);
        }
    }

    fn define(&mut self, v: Value, op: &Op) {
        if let Some(depth) = self.depth.get_mut(v.0 as usize) {
            *depth = self.outer.len();
        }
        match op {
            Op::Extract(a, _) | Op::Bitcast(_, a) | Op::Cast(_, a) => self.passes.push((*a, v)),
            Op::Insert(a, _, b) => self.passes.extend([(*a, v), (*b, v)]),
            Op::Compose(_, parts) => self.passes.extend(parts.iter().map(|part| (*part, v))),
            _ => {}
        }
    }
}
