//! Statements: control flow, and which operator each operation is.

use super::Renderer;
use super::emit::{Label, Leaf, emit};
use super::frame::{Construct, Exit};
use crate::ir::{Block, DeviceOp, Effect, Inst, Op, Scalar, StageOp, Stmt, Value};

impl<'k> Renderer<'k> {
    /// Writes a block; says whether control never comes to its end.
    pub(super) fn block(&mut self, block: &'k Block) -> bool {
        let addresses = self.addresses.len();
        self.in_shared.clear();
        let (mut ended, mut written) = (false, 0);
        let in_flight = self.in_flight.len();
        for (i, stmt) in block.0.iter().enumerate() {
            if i < written {
                continue;
            }
            let next = block.0.get(i + 1);
            if ended {
                self.skip(stmt);
                continue;
            }
            self.out.line(stmt.line);
            self.settle_for(stmt);
            let accumulated = self.accumulate(block.0.get(i..).unwrap_or_default());
            if accumulated > 0 {
                written = i + accumulated;
                self.in_shared.clear();
                continue;
            }
            self.round_ahead(block.0.get(i..).unwrap_or_default());
            let copied = self.copy_large(stmt, next);
            written = i + 1 + usize::from(copied);
            ended = !copied && self.statement(stmt, next);
            self.note_meanwhile(stmt);
            match copied {
                true => self.in_shared.clear(),
                false => self.note_statement(&stmt.inst),
            }
        }
        self.settle(in_flight);
        self.in_shared.clear();
        self.addresses.truncate(addresses);
        ended
    }

    /// Passes over statements that never run, for the sake of their site numbers.
    fn skip(&mut self, stmt: &Stmt) {
        match &stmt.inst {
            inst if inst.faults() => self.frame.next.0 += 1,
            Inst::Do(Effect::Print(..)) => self.frame.next.1 += 1,
            _ => {}
        }
        for block in stmt.inst.blocks() {
            block.0.iter().for_each(|stmt| self.skip(stmt));
        }
    }

    pub(super) fn statement(&mut self, stmt: &'k Stmt, next: Option<&Stmt>) -> bool {
        match &stmt.inst {
            Inst::Let(v, op) => {
                if let Op::Device(DeviceOp::Stage(StageOp::Produces), _) = op {
                    self.parts_teams = Some(*v);
                }
                self.operation(*v, op);
                self.note_uniform(*v, op);
                false
            }
            Inst::Do(effect) => {
                let last = matches!(next.map(|s| &s.inst), Some(Inst::Return(None)))
                    && matches!(self.frame.exit, Exit::Kernel);
                self.effect(effect, last)
            }
            Inst::If(cond, then, otherwise) if self.parts_teams == Some(*cond) => {
                self.part_teams(*cond, then, otherwise)
            }
            Inst::If(cond, then, otherwise) => self.branch(*cond, then, otherwise),
            Inst::Switch {
                selector,
                cases,
                default,
            } => self.switch(*selector, cases, default),
            Inst::Loop(body) => {
                self.repeat(body);
                false
            }
            Inst::Labeled(body) => {
                self.labelled(body);
                false
            }
            Inst::Break(depth) => {
                if let Some(construct) = self.construct(*depth) {
                    emit!(self, "bra {}", construct.end);
                }
                true
            }
            Inst::Continue(depth) => {
                if let Some(head) = self.construct(*depth).and_then(|c| c.head) {
                    emit!(self, "bra {head}");
                }
                true
            }
            Inst::Return(v) => {
                self.returns(*v);
                true
            }
        }
    }

    fn construct(&self, depth: u32) -> Option<Construct> {
        self.frame.constructs.iter().rev().nth(depth as usize).copied()
    }

    fn returns(&mut self, v: Option<Value>) {
        match self.frame.exit {
            Exit::Kernel => emit!(self, "ret"),
            Exit::Jump(end, registers) => {
                if let Some(v) = v {
                    let scalars = self.scalars_of(v);
                    self.assign(registers, self.value(v), &scalars);
                }
                emit!(self, "bra {end}");
            }
            Exit::Last(_) => {
                if let Some(v) = v {
                    self.frame.exit = Exit::Last(self.value(v));
                }
            }
        }
    }

    pub(super) fn scalars_of(&self, v: Value) -> Vec<Scalar> {
        self.type_of(v).leaves().into_iter().map(|(s, _)| s).collect()
    }

    fn operation(&mut self, v: Value, op: &'k Op) {
        match op {
            Op::Const(s, bits) => self.define_leaf(v, Leaf::Imm(super::convert::normal(*s, *bits))),
            Op::Zero(ty) => {
                let span = self.span(std::iter::repeat_n(Leaf::Imm(0), ty.leaf_count()));
                self.define(v, span);
            }
            Op::Param(i) => {
                let span = self.parameter(*i);
                self.define(v, span);
            }
            Op::Builtin(b) => {
                let leaf = self.builtin(*b);
                self.define_leaf(v, leaf);
            }
            Op::Unary(op, a) => {
                let d = self.unary(*op, self.scalar_of(*a), self.leaf(*a));
                self.define_leaf(v, d);
            }
            Op::Binary(op, a, b) => {
                let (s, amount) = (self.scalar_of(*a), self.scalar_of(*b));
                let d = self.binary(*op, s, self.leaf(*a), self.leaf(*b), amount);
                self.define_leaf(v, d);
            }
            Op::Ternary(op, a, b, c) => {
                let scalars = self.scalars_of(*b);
                let (a, b, c) = (self.leaf(*a), self.value(*b), self.value(*c));
                let (b, c) = (self.leaves_of(b), self.leaves_of(c));
                let leaves: Vec<Leaf> = b
                    .into_iter()
                    .zip(c)
                    .zip(scalars)
                    .map(|((b, c), s)| self.ternary(*op, s, [a, b, c]))
                    .collect();
                let span = self.span(leaves);
                self.define(v, span);
            }
            Op::Cast(to, a) => {
                let d = self.cast(self.scalar_of(*a), *to, self.leaf(*a));
                self.define_leaf(v, d);
            }
            Op::Bitcast(to, a) => {
                let d = self.bit_cast(self.scalar_of(*a), *to, self.leaf(*a));
                self.define_leaf(v, d);
            }
            Op::Compose(_, parts) => {
                let leaves: Vec<Leaf> = parts
                    .iter()
                    .flat_map(|p| self.leaves_of(self.value(*p)))
                    .collect();
                let span = self.span(leaves);
                self.define(v, span);
            }
            Op::Extract(a, i) => {
                let ty = self.type_of(*a);
                let len = ty.component(*i).map_or(0, |t| t.leaf_count());
                let span = self.value(*a).part(ty.leaf_start(*i), len);
                self.define(v, span);
            }
            Op::Insert(a, i, part) => {
                let start = self.type_of(*a).leaf_start(*i);
                let mut leaves = self.leaves_of(self.value(*a));
                let part = self.leaves_of(self.value(*part));
                for (to, from) in leaves.iter_mut().skip(start).zip(part) {
                    *to = from;
                }
                let span = self.span(leaves);
                self.define(v, span);
            }
            Op::Load(place, None) => {
                let span = self.load(place, self.type_of(v));
                self.define(v, span);
                self.note_loaded(v, place);
            }
            Op::Load(place, Some(sync)) if self.type_of(v).as_scalar().is_none() => {
                let span = self.load_whole(place, self.type_of(v), *sync);
                self.define(v, span);
            }
            Op::Load(place, Some(sync)) => {
                let d = self.atomic_load(place, self.scalar_of(v), *sync);
                self.define_leaf(v, d);
            }
            Op::Len(base, s) => {
                let d = self.length(*base, *s);
                self.define_leaf(v, d);
            }
            Op::Atomic(op, place, a, sync) => {
                let d = self.atomic(*op, place, self.scalar_of(v), self.leaf(*a), *sync);
                self.define_leaf(v, d);
            }
            Op::CompareExchange {
                place,
                expected,
                new,
                sync,
            } => {
                let operands = (self.leaf(*expected), self.leaf(*new));
                let d = self.compare_exchange(place, self.scalar_of(v), operands, *sync);
                self.define_leaf(v, d);
            }
            Op::Device(op, args) => {
                let leaves = self.device(*op, args, Some(v));
                let span = self.span(leaves);
                self.define(v, span);
            }
            Op::Call(f, args) => {
                let span = self.call(*f, args);
                self.define(v, span);
            }
        }
    }

    fn effect(&mut self, effect: &'k Effect, last: bool) -> bool {
        match effect {
            Effect::Store(place, v, None) => {
                let (span, ty) = (self.value(*v), self.type_of(*v));
                self.store(place, span, ty);
                false
            }
            Effect::Store(place, v, Some(sync)) if self.type_of(*v).as_scalar().is_none() => {
                self.store_whole(place, self.value(*v), *sync);
                false
            }
            Effect::Store(place, v, Some(sync)) => {
                self.atomic_store(place, self.scalar_of(*v), self.leaf(*v), *sync);
                false
            }
            Effect::Device(op, args) => {
                self.device(*op, args, None);
                false
            }
            Effect::Print(_, args) => {
                self.print(args);
                false
            }
            Effect::Fault(.., operands) | Effect::Panic(_, operands) => self.fault(operands, last),
        }
    }

    /// Whether a block is rare: it begins with a fault.
    fn is_rare(block: &Block) -> bool {
        block
            .0
            .iter()
            .find(|s| !matches!(s.inst, Inst::Let(_, Op::Const(..) | Op::Zero(_))))
            .is_some_and(|s| s.inst.faults())
    }

    /// The label that a block goes to when going there is all that it does.
    fn jump(&self, block: &Block) -> Option<Label> {
        let [only] = &block.0[..] else { return None };
        match (&only.inst, self.frame.exit) {
            (Inst::Break(depth), _) => self.construct(*depth).map(|c| c.end),
            (Inst::Continue(depth), _) => self.construct(*depth).and_then(|c| c.head),
            (Inst::Return(None), Exit::Jump(end, _)) => Some(end),
            _ => None,
        }
    }

    /// The code of the team that fills stages, and of those that multiply.
    fn part_teams(&mut self, fills: Value, fill: &'k Block, multiply: &'k Block) -> bool {
        let (other, end) = (self.out.label(), self.out.label());
        let p = self.leaf(fills);
        emit!(self, "@!{p} bra {other}");
        self.begin_team(true);
        let fill_ended = self.block(fill);
        if !fill_ended {
            self.end_filling();
            emit!(self, "bra {end}");
        }
        self.out.place(other);
        self.begin_team(false);
        let multiply_ended = self.block(multiply);
        self.turn = None;
        self.out.place(end);
        if self.kernel.stages.as_ref().is_some_and(|stages| stages.pairs) {
            self.meet_pair();
        }
        fill_ended && multiply_ended
    }

    fn branch(&mut self, cond: Value, then: &'k Block, otherwise: &'k Block) -> bool {
        let p = match self.leaf(cond) {
            Leaf::Imm(0) => {
                then.0.iter().for_each(|s| self.skip(s));
                return self.block(otherwise);
            }
            Leaf::Imm(_) => {
                let ended = self.block(then);
                otherwise.0.iter().for_each(|s| self.skip(s));
                return ended;
            }
            p => p,
        };
        let split = self.split(p, then, otherwise);
        let ended = if otherwise.0.is_empty() && Self::is_rare(then) {
            let (rare, back) = (self.out.label(), self.out.label());
            emit!(self, "@{p} bra {rare}");
            let hot = self.out.begin_cold();
            self.out.place(rare);
            self.enter(split.map(|s| s.then));
            let ended = self.block(then);
            if !ended {
                emit!(self, "bra {back}");
            }
            self.out.end_cold(hot);
            if !ended {
                self.out.place(back);
            }
            false
        } else if let (true, Some(target)) = (otherwise.0.is_empty(), self.jump(then)) {
            emit!(self, "@{p} bra {target}");
            false
        } else if let (true, Some(target)) = (then.0.is_empty(), self.jump(otherwise)) {
            emit!(self, "@!{p} bra {target}");
            false
        } else if otherwise.0.is_empty()
            && matches!(&then.0[..], [only] if matches!(only.inst, Inst::Return(None)))
            && matches!(self.frame.exit, Exit::Kernel)
        {
            emit!(self, "@{p} ret");
            false
        } else {
            let end = self.out.label();
            if then.0.is_empty() {
                emit!(self, "@{p} bra {end}");
                self.enter(split.map(|s| s.otherwise));
                self.block(otherwise);
                self.out.place(end);
                false
            } else if otherwise.0.is_empty() {
                emit!(self, "@!{p} bra {end}");
                self.enter(split.map(|s| s.then));
                self.block(then);
                self.out.place(end);
                false
            } else {
                let other = self.out.label();
                emit!(self, "@!{p} bra {other}");
                self.enter(split.map(|s| s.then));
                let then_ended = self.block(then);
                if !then_ended {
                    emit!(self, "bra {end}");
                }
                self.out.place(other);
                self.enter(split.map(|s| s.otherwise));
                let other_ended = self.block(otherwise);
                if !then_ended {
                    self.out.place(end);
                }
                then_ended && other_ended
            }
        };
        self.enter(split.map(|s| s.after));
        ended
    }

    fn switch(&mut self, selector: Value, cases: &'k [(Vec<u64>, Block)], default: &'k Block) -> bool {
        let s = self.scalar_of(selector);
        let selector = self.in_register(self.leaf(selector), s);
        let end = self.out.label();
        let rest = self.out.label();
        let labels: Vec<Label> = cases.iter().map(|_| self.out.label()).collect();
        let mut targets: Vec<(u64, Label)> = cases
            .iter()
            .zip(&labels)
            .flat_map(|((values, _), label)| {
                values
                    .iter()
                    .map(move |v| (super::convert::normal(s, *v), *label))
            })
            .collect();
        let unsigned = if s.size() == 8 { Scalar::U64 } else { Scalar::U32 };
        targets.sort_by_key(|(value, _)| *value);
        self.search(selector, unsigned, &targets, rest);
        let before = self.divide(cases.iter().map(|(_, b)| b).chain([default]));
        let mut ended = true;
        for ((_, case), label) in cases.iter().zip(labels) {
            self.out.place(label);
            self.enter(before.map(|b| b.0));
            if !self.block(case) {
                emit!(self, "bra {end}");
                ended = false;
            }
        }
        self.out.place(rest);
        self.enter(before.map(|b| b.0));
        ended &= self.block(default);
        self.out.place(end);
        self.enter(before.map(|b| b.1));
        ended
    }

    /// Jumps to the label of the selector's value, or to `rest`: a binary search down to short chains.
    fn search(&mut self, selector: Leaf, s: Scalar, targets: &[(u64, Label)], rest: Label) {
        const CHAIN: usize = 4;
        let ty = super::integer::arithmetic(s);
        if let (true, Some((pivot, _))) = (targets.len() > CHAIN, targets.get(targets.len() / 2)) {
            let (low, high) = targets.split_at(targets.len() / 2);
            let below = self.out.label();
            let p = self.compare("lt", ty, s, selector, Leaf::Imm(*pivot));
            emit!(self, "@{p} bra {below}");
            self.search(selector, s, high, rest);
            self.out.place(below);
            self.search(selector, s, low, rest);
            return;
        }
        for (value, label) in targets {
            let p = self.compare("eq", ty, s, selector, Leaf::Imm(*value));
            emit!(self, "@{p} bra {label}");
        }
        emit!(self, "bra {rest}");
    }

    fn repeat(&mut self, body: &'k Block) {
        let (head, end) = (self.out.label(), self.out.label());
        let (after, turn) = self.enter_loop(body);
        self.out.place(head);
        self.frame.constructs.push(Construct {
            end,
            head: Some(head),
        });
        if !self.block(body) {
            self.next_turn(turn);
            emit!(self, "bra {head}");
        }
        self.frame.constructs.pop();
        self.out.place(end);
        self.enter(after);
    }

    fn labelled(&mut self, body: &'k Block) {
        let end = self.out.label();
        let after = self.enter_labelled(body);
        self.frame.constructs.push(Construct { end, head: None });
        self.block(body);
        self.frame.constructs.pop();
        self.out.place(end);
        self.enter(after);
    }
}
