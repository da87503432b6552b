//! Writes out counted loops whose counter picks elements of a variable: then its indices are constants, and a target that keeps variables
//! in registers keeps this one there, too. Knows the form in which `for` is lowered.

use std::collections::{HashMap, HashSet};

use crate::ir::{Base, Block, Body, Effect, Inst, LocalId, Op, Place, Scalar, Step, Stmt, Type, Value};
use crate::ops::eval::eval_binary;
use crate::ops::{BinaryOp, UnaryOp};
use crate::verify::Verified;

/// The most turns of a loop that is written out.
const TURNS: u64 = 32;
/// The most statements that one becomes.
const STATEMENTS: usize = 16_384;

/// The kernel with such loops written out; `None` where it has none.
pub fn unroll_indexed(verified: &Verified) -> Option<Verified> {
    let kernel = verified.kernel();
    let mut bodies = kernel.functions.iter().map(|f| &f.body).chain([&kernel.body]);
    let has_loop = |body: &Body| {
        let mut found = false;
        body.block
            .walk(&mut |stmt| found |= matches!(stmt.inst, Inst::Loop(_)));
        found
    };
    if !bodies.any(has_loop) {
        return None;
    }
    let mut kernel = kernel.clone();
    let bodies = kernel.functions.iter_mut().map(|function| &mut function.body);
    let mut changed = false;
    for body in bodies.chain([&mut kernel.body]) {
        changed |= Unroll::body(body);
    }
    changed.then(|| verified.with_kernel(kernel))
}

/// What is known of a body.
struct Unroll {
    types: Vec<Type>,
    constants: HashMap<Value, (Scalar, u64)>,
    /// How often each variable stands in the code.
    uses: HashMap<LocalId, usize>,
    changed: bool,
}

/// A loop that counts: its head, and the code of a turn.
struct Counted {
    counter: Value,
    scalar: Scalar,
    turns: std::ops::Range<u64>,
    /// Statements before the code of a turn.
    head: usize,
}

impl Unroll {
    fn body(body: &mut Body) -> bool {
        let (mut constants, mut uses) = (HashMap::new(), HashMap::new());
        body.block.walk(&mut |stmt| {
            if let Inst::Let(v, Op::Const(scalar, bits)) = stmt.inst {
                constants.insert(v, (scalar, bits));
            }
            if let Some(Place {
                base: Base::Local(id),
                ..
            }) = place_of(&stmt.inst)
            {
                *uses.entry(*id).or_default() += 1;
            }
        });
        let mut this = Unroll {
            types: std::mem::take(&mut body.values),
            constants,
            uses,
            changed: false,
        };
        this.block(&mut body.block);
        body.values = this.types;
        this.changed
    }

    /// Loops inside come first, so that what is around them copies what they have become.
    fn block(&mut self, block: &mut Block) {
        let mut statements: Vec<Stmt> = Vec::with_capacity(block.0.len());
        for mut stmt in std::mem::take(&mut block.0) {
            stmt.inst
                .blocks_mut()
                .into_iter()
                .for_each(|inner| self.block(inner));
            let counted = match (&stmt.inst, statements.last().map(|stmt| &stmt.inst)) {
                (Inst::Loop(code), Some(Inst::Do(Effect::Store(place, start, None)))) => self
                    .counted(place, *start, code)
                    .filter(|found| self.is_worth(found, code)),
                _ => None,
            };
            match (counted, stmt.inst) {
                (Some(counted), Inst::Loop(code)) => {
                    // The counter's start: nobody reads it any more.
                    statements.pop();
                    self.write_out(&counted, &code, &mut statements);
                    self.changed = true;
                }
                (_, inst) => statements.push(Stmt { inst, ..stmt }),
            }
        }
        block.0 = statements;
    }

    /// `next = start; loop { i = next; if !(i < end) break; next = i + 1; … }`, where `next` stands nowhere else.
    fn counted(&self, next: &Place, start: Value, code: &Block) -> Option<Counted> {
        let Place {
            base: Base::Local(id),
            path,
        } = next
        else {
            return None;
        };
        if !path.is_empty() || self.uses.get(id) != Some(&3) {
            return None;
        }
        let (scalar, first) = *self.constants.get(&start)?;
        let number = |v: &Value| self.constants.get(v).map(|(_, bits)| *bits);
        // Constants may stand anywhere between the steps of the head.
        let mut steps = code.0.iter().enumerate();
        let mut step = || steps.find(|(_, stmt)| !matches!(stmt.inst, Inst::Let(_, Op::Const(..))));
        let Inst::Let(counter, Op::Load(place, None)) = &step()?.1.inst else {
            return None;
        };
        let Inst::Let(inside, Op::Binary(BinaryOp::Lt, left, end)) = &step()?.1.inst else {
            return None;
        };
        let Inst::Let(outside, Op::Unary(UnaryOp::Not, of)) = &step()?.1.inst else {
            return None;
        };
        let Inst::If(condition, then, otherwise) = &step()?.1.inst else {
            return None;
        };
        let leaves = matches!(
            then.0[..],
            [Stmt {
                inst: Inst::Break(0),
                ..
            }]
        ) && otherwise.0.is_empty();
        let Inst::Let(after, Op::Binary(BinaryOp::Add, base, by)) = &step()?.1.inst else {
            return None;
        };
        let (at, stmt) = step()?;
        let Inst::Do(Effect::Store(to, stored, None)) = &stmt.inst else {
            return None;
        };
        let counts = [left, base] == [counter; 2] && (of, condition) == (inside, outside) && stored == after;
        let is_one = number(by) == Some(1);
        // Below 2^31 signed and unsigned numbers compare alike.
        let last = number(end).filter(|end| *end <= i32::MAX as u64 && first <= *end)?;
        let fits = leaves && counts && is_one && place == next && to == next && last - first <= TURNS;
        fits.then_some(Counted {
            counter: *counter,
            scalar,
            turns: first..last,
            head: at + 1,
        })
    }

    /// Whether the counter picks elements of a variable, a turn needs nothing else of the head, no jump leaves it, and the whole does not
    /// become too long.
    fn is_worth(&self, counted: &Counted, code: &Block) -> bool {
        let mut picks = false;
        let mut statements = 0;
        // What the head computes but the counter and constants goes with the head.
        let head = code.0.get(..counted.head).unwrap_or_default();
        let lost = |v: Value| {
            v != counted.counter
                && !self.constants.contains_key(&v)
                && head
                    .iter()
                    .any(|stmt| matches!(stmt.inst, Inst::Let(made, _) if made == v))
        };
        let mut uses_head = false;
        // What is computed of nothing but counter and constants is a constant in each turn.
        let mut made_of = HashSet::from([counted.counter]);
        let turn = code.0.get(counted.head..).unwrap_or_default();
        for stmt in turn {
            let mut visit = |stmt: &Stmt| {
                statements += 1;
                stmt.inst.operands(&mut |v| uses_head |= lost(v));
                if let Inst::Let(v, Op::Binary(_, a, b)) = &stmt.inst {
                    let is_made = |v: &Value| made_of.contains(v) || self.constants.contains_key(v);
                    if [a, b].into_iter().all(is_made) {
                        made_of.insert(*v);
                    }
                }
                if let Some(Place {
                    base: Base::Local(_),
                    path,
                }) = place_of(&stmt.inst)
                {
                    let mut steps = path.iter();
                    picks |= steps.any(|step| matches!(step, Step::Index(v) if made_of.contains(v)));
                }
            };
            visit(stmt);
            stmt.inst
                .blocks()
                .into_iter()
                .for_each(|b| b.walk(&mut |stmt| visit(stmt)));
        }
        let turns = (counted.turns.end - counted.turns.start) as usize;
        picks
            && !uses_head
            && statements * turns <= STATEMENTS
            && turn.iter().all(|stmt| stays(&stmt.inst, 0))
    }

    fn write_out(&mut self, counted: &Counted, code: &Block, statements: &mut Vec<Stmt>) {
        let turn = code.0.get(counted.head..).unwrap_or_default();
        // Constants of the head may be used by the turn.
        let head = code.0.get(..counted.head).unwrap_or_default();
        let constants = head
            .iter()
            .filter(|stmt| matches!(stmt.inst, Inst::Let(_, Op::Const(..))));
        statements.extend(constants.cloned());
        for i in counted.turns.clone() {
            let mut names = HashMap::new();
            let counter = self.fresh(counted.counter);
            names.insert(counted.counter, counter);
            self.constants.insert(counter, (counted.scalar, i));
            statements.push(Stmt {
                line: code.0.first().map_or(0, |stmt| stmt.line),
                inst: Inst::Let(counter, Op::Const(counted.scalar, i)),
            });
            statements.extend(turn.iter().map(|stmt| self.copy(stmt, &mut names)));
        }
    }

    fn fresh(&mut self, like: Value) -> Value {
        let ty = self.types[like.0 as usize].clone();
        self.types.push(ty);
        Value(self.types.len() as u32 - 1)
    }

    /// The statement with values of its own.
    fn copy(&mut self, stmt: &Stmt, names: &mut HashMap<Value, Value>) -> Stmt {
        let mut inst = stmt.inst.clone();
        inst.operands_mut(&mut |v| *v = names.get(v).copied().unwrap_or(*v));
        if let Inst::Let(v, op) = &mut inst {
            let fresh = self.fresh(*v);
            names.insert(*v, fresh);
            if let Op::Binary(operator, a, b) = &*op
                && let (Some((s, a)), Some((_, b))) = (self.constants.get(a), self.constants.get(b))
                && let Some(scalar) = self.types.get(fresh.0 as usize).and_then(Type::as_scalar)
                && s.is_int()
                && let Ok(bits) = eval_binary(*operator, *s, *a, *b)
            {
                *op = Op::Const(scalar, bits);
            }
            if let Op::Const(scalar, bits) = op {
                self.constants.insert(fresh, (*scalar, *bits));
            }
            *v = fresh;
        }
        for block in inst.blocks_mut() {
            for inner in &mut block.0 {
                *inner = self.copy(inner, names);
            }
        }
        Stmt { inst, ..*stmt }
    }
}

/// Whether no jump in it leaves what is `depth` constructs further out, and no lane ends.
fn stays(inst: &Inst, depth: u32) -> bool {
    match inst {
        Inst::Break(by) | Inst::Continue(by) => *by < depth,
        Inst::Return(_) => false,
        Inst::Loop(block) | Inst::Labeled(block) => block.0.iter().all(|stmt| stays(&stmt.inst, depth + 1)),
        _ => inst
            .blocks()
            .into_iter()
            .flat_map(|b| &b.0)
            .all(|stmt| stays(&stmt.inst, depth)),
    }
}

fn place_of(inst: &Inst) -> Option<&Place> {
    match inst {
        Inst::Let(_, op) => op.place(),
        Inst::Do(Effect::Store(place, ..)) => Some(place),
        _ => None,
    }
}
