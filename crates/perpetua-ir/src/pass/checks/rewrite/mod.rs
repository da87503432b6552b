//! Rewrites one body: writes the checks that cannot be proven superfluous and what a faulting lane does; here block by block
//! and statement by statement. The two modes of dying stand side by side. Knows nothing of how facts are proven.

use std::collections::BTreeSet;

mod asked;
mod exit;
mod operation;
mod tell;

use self::asked::{count, is_catch, nothing_uniform_escapes};
pub(super) use self::exit::Policy;
use self::exit::{Exit, past_label};
use super::found::{Checked, Found};
use super::known::{Known, Number};
use super::{contains, is_barrier, is_subgroup};
use crate::fault::FaultSite;
use crate::ir::{
    Base, Block, Body, Checks, DeviceOp, Effect, Inst, Kernel, Local, LocalId, Op, Place, Scalar, Stmt, Type,
    Value,
};
use crate::ops::BinaryOp;
use crate::verify::Uniformity;

pub(super) struct Rewriter<'a> {
    kernel: &'a Kernel,
    source: &'a Body,
    /// Which functions may return with the lane dead.
    faulting: &'a [bool],
    uniformity: Option<&'a Uniformity>,
    found: &'a mut Found,
    result: Option<Type>,
    values: Vec<Type>,
    locals: Vec<Local>,
    known: Known,
    /// Number of the next source statement in pre-order.
    at: usize,
    /// Whether the lane may be dead at the present point.
    maybe_dead: bool,
    /// Checks made at points where the lane walks on: index, length, the value that says "out of bounds", and the line.
    made: Vec<((Number, Number), Value, u32)>,
    /// Whether the present region rests on dead lanes not coming there.
    relied: bool,
    /// Whether the present point is to be checked.
    checked: bool,
    /// Variables that a dead lane may read without having stored to them.
    zeroed: BTreeSet<LocalId>,
    /// Which values are constants, where lanes tell each other that one of them is dead; else none.
    constants: Vec<bool>,
}

/// The present source statement.
#[derive(Clone, Copy)]
struct Here {
    line: u32,
    at: usize,
    exit: Exit,
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(
        kernel: &'a Kernel,
        source: &'a Body,
        faulting: &'a [bool],
        uniformity: Option<&'a Uniformity>,
        found: &'a mut Found,
    ) -> Rewriter<'a> {
        Rewriter {
            kernel,
            source,
            faulting,
            uniformity,
            found,
            result: None,
            values: source.values.clone(),
            locals: source.locals.clone(),
            known: Known::new(kernel.block_size, &source.values, source.locals.len()),
            at: 0,
            maybe_dead: false,
            made: Vec::new(),
            relied: false,
            // In a device function nobody knows from where it was called.
            checked: kernel.checks != Checks::Caught || !std::ptr::eq(source, &raw const kernel.body),
            zeroed: BTreeSet::new(),
            constants: Vec::new(),
        }
    }

    pub(super) fn run(mut self, policy: Policy) -> Body {
        let source = self.source;
        let code = match policy {
            Policy::Return(result) => {
                self.result = result;
                self.block(&source.block, Exit::Return, None).0
            }
            Policy::Walk => {
                let synchronising = |stmt: &Stmt| {
                    let one = |inst: &Inst| is_barrier(inst) || is_subgroup(inst);
                    one(&stmt.inst) || stmt.inst.blocks().into_iter().any(|b| contains(b, &one))
                };
                self.constants = self.constants_told();
                let walked = source
                    .block
                    .0
                    .iter()
                    .rposition(synchronising)
                    .map_or(0, |last| last + 1);
                self.block(&source.block, Exit::Walk, Some(walked)).0
            }
        };
        let mut block = Vec::new();
        if self.found.told {
            self.nobody_is_dead(&mut block);
        }
        for id in std::mem::take(&mut self.zeroed) {
            if let Some(local) = self.locals.get(id.0 as usize) {
                let zero = self.let_(0, Op::Zero(local.ty.clone()), local.ty.clone(), &mut block);
                push(
                    &mut block,
                    0,
                    Inst::Do(Effect::Store(Place::local(id), zero, None)),
                );
            }
        }
        block.extend(code.0);
        Body {
            values: self.values,
            locals: self.locals,
            block: Block(block),
        }
    }

    fn fresh(&mut self, ty: Type) -> Value {
        self.values.push(ty);
        Value(self.values.len() as u32 - 1)
    }

    fn let_(&mut self, line: u32, op: Op, ty: Type, out: &mut Vec<Stmt>) -> Value {
        let v = self.fresh(ty);
        push(out, line, Inst::Let(v, op));
        v
    }

    fn constant(&mut self, line: u32, s: Scalar, bits: u64, out: &mut Vec<Stmt>) -> Value {
        self.let_(line, Op::Const(s, bits), s.into(), out)
    }

    fn compare(&mut self, line: u32, op: BinaryOp, a: Value, b: Value, out: &mut Vec<Stmt>) -> Value {
        self.let_(line, Op::Binary(op, a, b), Type::BOOL, out)
    }

    fn dead(&mut self, line: u32, out: &mut Vec<Stmt>) -> Value {
        self.let_(line, Op::Device(DeviceOp::IsDead, Vec::new()), Type::BOOL, out)
    }

    fn scalar(&self, v: Value) -> Option<Scalar> {
        self.values.get(v.0 as usize).and_then(Type::as_scalar)
    }

    /// Rewrites a block; says whether control never reaches its end. From statement number `walked` on a dead
    /// lane returns instead of walking on.
    fn block(&mut self, block: &Block, exit: Exit, walked: Option<usize>) -> (Block, bool) {
        let mark = self.known.mark();
        let made = self.made.len();
        let mut exit = exit;
        let mut out = Vec::with_capacity(block.0.len());
        let mut ended = false;
        let mut words = self.words(block, exit);
        for (i, stmt) in block.0.iter().enumerate() {
            if ended {
                self.at += count(stmt);
                continue;
            }
            if walked == Some(i) {
                if self.maybe_dead {
                    let dead = self.dead(stmt.line, &mut out);
                    let leave = Block(vec![Stmt {
                        line: stmt.line,
                        inst: Inst::Return(None),
                    }]);
                    push(&mut out, stmt.line, Inst::If(dead, leave, Block::default()));
                }
                // What was tested holds for every lane from here on.
                for ((index, limit), _, line) in std::mem::take(&mut self.made) {
                    self.known.learn_in_bounds(index, limit, line);
                }
                exit = Exit::Return;
            }
            self.before_barrier(&mut words, i, stmt.line, &mut out);
            let caught = block.0.get(i + 1).is_some_and(is_catch);
            ended = if caught && matches!(stmt.inst, Inst::Labeled(_)) {
                self.caught(stmt, &mut out);
                false
            } else {
                self.statement(stmt, exit, &mut out)
            };
            self.after_barrier(&mut words, i, stmt.line, &mut out);
        }
        self.known.roll_back(mark);
        self.made.truncate(made);
        (Block(out), ended)
    }

    /// Rewrites a statement; says whether control never comes past it.
    fn statement(&mut self, stmt: &Stmt, exit: Exit, out: &mut Vec<Stmt>) -> bool {
        let here = Here {
            line: stmt.line,
            at: self.at,
            exit,
        };
        self.at += 1;
        match &stmt.inst {
            Inst::Let(v, op) => {
                self.operation(*v, op, here, out);
                false
            }
            Inst::Do(effect) => self.effect(effect, here, out),
            Inst::If(..) | Inst::Switch { .. } | Inst::Loop(_) | Inst::Labeled(_) => match exit {
                Exit::Walk if self.is_quiet(stmt, here.at) => {
                    self.quiet(stmt, here, out);
                    false
                }
                _ => self.nested(stmt, here, out),
            },
            Inst::Break(depth) => {
                push(out, here.line, Inst::Break(past_label(*depth, exit)));
                true
            }
            Inst::Continue(depth) => {
                push(out, here.line, Inst::Continue(past_label(*depth, exit)));
                true
            }
            Inst::Return(_) => {
                out.push(stmt.clone());
                true
            }
        }
    }

    fn nested(&mut self, stmt: &Stmt, here: Here, out: &mut Vec<Stmt>) -> bool {
        let before = self.known.contents();
        let (inst, ended) = match &stmt.inst {
            Inst::If(cond, a, b) => {
                let mark = self.known.mark();
                self.known.assume(*cond, true, here.line);
                let (a, a_ends) = self.block(a, here.exit, None);
                self.known.roll_back(mark);
                let after_a = self.known.contents();
                self.known.set_contents(before);
                self.known.assume(*cond, false, here.line);
                let (b, b_ends) = self.block(b, here.exit, None);
                self.known.roll_back(mark);
                match (a_ends, b_ends) {
                    (false, false) => {
                        let after_b = self.known.contents();
                        self.known.join(*cond, after_a, &after_b);
                    }
                    (true, _) => self.known.assume(*cond, false, here.line),
                    (false, true) => {
                        self.known.set_contents(after_a);
                        self.known.assume(*cond, true, here.line);
                    }
                }
                (Inst::If(*cond, a, b), a_ends && b_ends)
            }
            Inst::Switch {
                selector,
                cases,
                default,
            } => {
                let mut ended = true;
                let mut rewritten = Vec::with_capacity(cases.len());
                for (labels, case) in cases {
                    self.known.set_contents(before.clone());
                    let (case, ends) = self.block(case, here.exit, None);
                    ended &= ends;
                    rewritten.push((labels.clone(), case));
                }
                self.known.set_contents(before.clone());
                let (rest, ends) = self.block(default, here.exit, None);
                self.known.set_contents(before);
                stmt.inst
                    .blocks()
                    .into_iter()
                    .for_each(|b| self.known.forget_stored(b));
                let inst = Inst::Switch {
                    selector: *selector,
                    cases: rewritten,
                    default: rest,
                };
                (inst, ended && ends)
            }
            Inst::Loop(body) => {
                self.known.forget_stored(body);
                let entry = self.known.contents();
                let (at, was_dead) = (self.at, self.maybe_dead);
                let (sites, checks) = (self.found.sites.len(), self.found.checks.len());
                let mut code = self.block(body, here.exit.deeper(), None).0;
                if self.maybe_dead && !was_dead {
                    // A fault in one turn is felt in the next: once more, knowing that.
                    self.at = at;
                    self.found.sites.truncate(sites);
                    self.found.checks.truncate(checks);
                    self.known.set_contents(entry.clone());
                    code = self.block(body, here.exit.deeper(), None).0;
                }
                self.known.set_contents(entry);
                (Inst::Loop(code), false)
            }
            Inst::Labeled(body) => {
                let code = self.block(body, here.exit.deeper(), None).0;
                self.known.set_contents(before);
                self.known.forget_stored(body);
                (Inst::Labeled(code), false)
            }
            other => (other.clone(), false),
        };
        push(out, here.line, inst);
        ended
    }

    /// Rewrites a labelled block that a lane which faults in it leaves; behind it the fault is caught.
    fn caught(&mut self, stmt: &Stmt, out: &mut Vec<Stmt>) {
        let here = Here {
            line: stmt.line,
            at: self.at,
            exit: Exit::Leave(0),
        };
        self.at += 1;
        let (before, mark) = (self.known.contents(), self.known.mark());
        let was_dead = self.maybe_dead;
        let was_checked = std::mem::replace(&mut self.checked, true);
        let mut code = Vec::new();
        self.nested(stmt, here, &mut code);
        self.checked = was_checked;
        push(out, here.line, Inst::Labeled(Block(code)));
        self.maybe_dead = was_dead;
        self.known.roll_back(mark);
        self.known.set_contents(before);
        for block in stmt.inst.blocks() {
            self.known.forget_stored(block);
            block.walk(&mut |stmt| {
                if let Inst::Do(Effect::Store(place, ..)) = &stmt.inst
                    && let Base::Local(id) = place.base
                {
                    self.zeroed.insert(id);
                }
            });
        }
    }

    /// Whether a dead lane may leave a statement at once, or skip it: it has no barrier, and nothing that is
    /// uniform over the group depends on its having run.
    fn is_quiet(&self, stmt: &Stmt, at: usize) -> bool {
        let Some(uniformity) = self.uniformity else {
            return false;
        };
        let blocks = stmt.inst.blocks();
        let has = |what: &dyn Fn(&Inst) -> bool| blocks.iter().any(|b| contains(b, what));
        if has(&is_barrier) || has(&is_subgroup) && !matches!(stmt.inst, Inst::Loop(_)) {
            return false;
        }
        let depth = u32::from(matches!(stmt.inst, Inst::Loop(_) | Inst::Labeled(_)));
        let mut at = at + 1;
        blocks
            .iter()
            .all(|b| nothing_uniform_escapes(b, depth, &mut at, uniformity))
    }

    /// Rewrites a statement that a dead lane leaves at once, or skips.
    fn quiet(&mut self, stmt: &Stmt, here: Here, out: &mut Vec<Stmt>) {
        let before = self.known.contents();
        let mark = self.known.mark();
        let sites = self.found.sites.len();
        let was_dead = self.maybe_dead;
        self.relied = false;
        let mut code = Vec::new();
        let inside = Here {
            exit: Exit::Leave(0),
            ..here
        };
        self.nested(stmt, inside, &mut code);
        let faults = self.found.sites.len() > sites;
        let acts = |inst: &Inst| {
            matches!(
                inst,
                Inst::Loop(_)
                    | Inst::Do(_)
                    | Inst::Let(
                        _,
                        Op::Atomic(..) | Op::CompareExchange { .. } | Op::Load(_, Some(_))
                    )
            )
        };
        let skipped = was_dead
            && (faults
                || self.relied
                || acts(&stmt.inst)
                || stmt.inst.blocks().into_iter().any(|b| contains(b, &acts)));
        if faults {
            code = vec![Stmt {
                line: here.line,
                inst: Inst::Labeled(Block(code)),
            }];
            self.maybe_dead = true;
        } else {
            // Nothing was changed but the depths of escapes, which count a label that is not needed.
            code = vec![stmt.clone()];
        }
        if skipped {
            let dead = self.dead(here.line, out);
            push(out, here.line, Inst::If(dead, Block::default(), Block(code)));
        } else {
            out.extend(code);
        }
        if faults || skipped {
            self.known.roll_back(mark);
            self.known.set_contents(before);
            for block in stmt.inst.blocks() {
                self.known.forget_stored(block);
                block.walk(&mut |stmt| {
                    if let Inst::Do(Effect::Store(place, ..)) = &stmt.inst
                        && let Base::Local(id) = place.base
                    {
                        self.zeroed.insert(id);
                    }
                });
            }
        }
    }

    fn effect(&mut self, effect: &Effect, here: Here, out: &mut Vec<Stmt>) -> bool {
        match effect {
            Effect::Store(place, v, _) => {
                let bad = self.place(place, Checked::Store, here, out);
                let store = Inst::Do(effect.clone());
                if let Base::Local(_) = place.base {
                    match bad {
                        Some(bad) => {
                            let mut inner = Vec::new();
                            push(&mut inner, here.line, store);
                            push(out, here.line, Inst::If(bad, Block::default(), Block(inner)));
                        }
                        None => push(out, here.line, store),
                    }
                    self.known.store(place, *v);
                    if bad.is_some() {
                        self.known.forget_stored(&Block(vec![Stmt {
                            line: 0,
                            inst: Inst::Do(effect.clone()),
                        }]));
                    }
                } else {
                    self.unless_dead(store, here, out);
                }
                false
            }
            Effect::Print(..) => {
                self.unless_dead(Inst::Do(effect.clone()), here, out);
                false
            }
            Effect::Device(..) => {
                push(out, here.line, Inst::Do(effect.clone()));
                false
            }
            Effect::Fault(..) | Effect::Panic(..) => {
                match effect {
                    Effect::Fault(kind, subject, operands) => {
                        self.site(*kind, subject, operands, here);
                    }
                    Effect::Panic(message, args) => {
                        let types = args.iter().filter_map(|v| self.scalar(*v)).collect();
                        let site = FaultSite::panic(here.line, message.clone(), types);
                        self.found.sites.push(site);
                    }
                    _ => {}
                }
                push(out, here.line, Inst::Do(effect.clone()));
                // The source took control to end here, so it may read variables that it did not store to.
                let locals = 0..self.source.locals.len() as u32;
                if matches!(here.exit, Exit::Walk) {
                    self.zeroed.extend(locals.map(LocalId));
                }
                self.after_fault(true, here, out)
            }
        }
    }
}

fn push(out: &mut Vec<Stmt>, line: u32, inst: Inst) {
    out.push(Stmt { line, inst });
}
