//! Products of what is in a stage by `wgmma`: how they are told of the memory, which registers they add to, and when they are waited for.
//!
//! Sums stay in their registers from the issue of a product to its end, and no other instruction may touch the registers meanwhile. The end is waited for at once: two
//! teams that multiply keep the tensor cores busy between them. In a chain it is waited for where the sums are used, or where control flow does not let that be seen
//! ([`InFlight`]): so a lane makes weights of one product while the next one is computed, if its kernel is written so.

use super::Renderer;
use super::emit::{Leaf, emit};
use super::frame::{Slot, Span};
use super::stages::{ROW, Turn};
use crate::ir::{
    Base, Builtin, DeviceOp, Effect, Inst, LocalId, Op, Reading, Scalar, StageElement, StageOp, Stages, Stmt,
    Value,
};

/// Bytes of eight rows.
const EIGHT_ROWS: u32 = 8 * ROW;
/// How deep one product is, in bytes, and how many of them a row has.
const STEP: u32 = 32;
const ROW_STEPS: u32 = ROW / STEP;
/// In the upper word of a description: rows of 128 bytes whose pieces of 16 bytes change places.
const SWIZZLED: u32 = 1 << 30;

/// A product under way: who has the sums that it adds to, and its stage, where that is free at its end.
pub(super) struct InFlight {
    value: Option<Value>,
    local: Option<LocalId>,
    frees: Option<Freed>,
}

/// A stage that will be free: its barriers, and the parity that the one for full stages had.
#[derive(Clone, Copy)]
struct Freed {
    full: Leaf,
    parity: Leaf,
    free: Leaf,
}

impl InFlight {
    /// Whether a statement, or one in it, touches the sums.
    fn is_used(&self, stmt: &Stmt) -> bool {
        let mut used = false;
        stmt.inst.operands(&mut |v| used |= Some(v) == self.value);
        let place = match &stmt.inst {
            Inst::Let(_, Op::Load(place, _)) | Inst::Do(Effect::Store(place, ..)) => Some(place.base),
            _ => None,
        };
        used || self.local.is_some_and(|id| place == Some(Base::Local(id)))
    }
}

impl<'k> Renderer<'k> {
    /// Waits for the products under way that the statement touches, and for those before; for all where it is more than a choice between operations.
    pub(super) fn settle_for(&mut self, stmt: &Stmt) {
        if self.in_flight.is_empty() {
            return;
        }
        let mut plain = true;
        let mut from = self.in_flight.len();
        let mut look = |stmt: &Stmt, inner: bool| {
            plain &= match &stmt.inst {
                Inst::Let(_, Op::Device(DeviceOp::Stage(_), _)) | Inst::Do(Effect::Device(..)) => !inner,
                Inst::Let(..) | Inst::Do(Effect::Store(..)) | Inst::If(..) => true,
                _ => false,
            };
            let used = self.in_flight.iter().rposition(|product| product.is_used(stmt));
            from = from.min(used.map_or(from, |last| self.in_flight.len() - 1 - last));
        };
        look(stmt, false);
        for block in stmt.inst.blocks() {
            block.walk(&mut |stmt| look(stmt, true));
        }
        self.settle_all_but(if plain { from } else { 0 });
    }

    /// Notes what a statement stores while products are under way.
    pub(super) fn note_meanwhile(&mut self, stmt: &Stmt) {
        if self.in_flight.is_empty() {
            return;
        }
        if let Inst::Do(Effect::Store(place, v, None)) = &stmt.inst
            && matches!(place.base, Base::Local(_))
        {
            let scalars = self.scalars_of(*v);
            let leaves = self.leaves_of(self.value(*v)).into_iter().zip(scalars);
            let words = leaves.filter(|(leaf, s)| s.size() == 4 && !matches!(leaf, Leaf::Imm(_)));
            self.meanwhile = words.map(|(leaf, _)| leaf).take(8).collect();
        }
    }

    /// Waits for the products under way but those of so many that began first.
    pub(super) fn settle(&mut self, first: usize) {
        if self.in_flight.len() > first {
            self.settle_all_but(0);
        }
    }

    /// Waits for the products under way but so many that began last.
    fn settle_all_but(&mut self, last: usize) {
        let ended = self.in_flight.len().saturating_sub(last);
        if ended == 0 {
            return;
        }
        let ended: Vec<InFlight> = self.in_flight.drain(..ended).collect();
        let freed: Vec<Freed> = ended.into_iter().filter_map(|product| product.frees).collect();
        // The assembler moves a wait up to the product, in front of all that lanes were to compute meanwhile, but not into another block of code: so a wait that has
        // long ended, for the stage to be full, stands before it; and the one looks at what was computed, or the assembler would move that behind both.
        let words = std::mem::take(&mut self.meanwhile);
        if let (Some(_), Some(freed)) = (self.turn.and_then(|turn| turn.weighs), freed.first()) {
            let word = words
                .into_iter()
                .reduce(|a, b| self.three("xor.b32", Scalar::U32, a, b));
            if word.is_some() {
                self.wait_behind(word, freed.full, freed.parity);
            }
        }
        emit!(self, "wgmma.wait_group.sync.aligned {last}");
        for freed in freed {
            self.say_free(freed.free);
        }
    }

    /// Says that the stage of this barrier is free.
    fn say_free(&mut self, free: Leaf) {
        let (Some(stages), Some(turn)) = (self.kernel.stages.as_ref(), self.turn) else {
            return;
        };
        match stages.pairs {
            true => {
                let lane = self.builtin(Builtin::SubgroupLane);
                let (block, there) = (self.words("and.b32", lane, 1u32), self.out.word());
                emit!(self, "mapa.shared::cluster.u32 {there}, {free}, {block}");
                emit!(
                    self,
                    "@{} mbarrier.arrive.shared::cluster.b64 _, [{there}]",
                    turn.speaks
                );
            }
            false => emit!(
                self,
                "@{} mbarrier.arrive.shared::cta.b64 _, [{free}]",
                turn.speaks
            ),
        }
    }

    /// `v`: whose value it becomes.
    pub(super) fn stage(&mut self, op: StageOp, args: &[Value], v: Option<Value>) -> Vec<Leaf> {
        let (Some(stages), turn) = (self.kernel.stages.as_ref(), self.turn) else {
            return Vec::new();
        };
        match (op, args, turn) {
            (StageOp::Produces, ..) => vec![self.produces()],
            (StageOp::Fill, [row, column, depth], Some(turn)) => {
                let at = [row, column, depth].map(|v| self.leaf(*v));
                self.fill_stage(stages, turn, [Leaf::Imm(0); 2], at);
                Vec::new()
            }
            (StageOp::FillOf, [left, right, row, column, depth], Some(turn)) => {
                let layers = [left, right].map(|v| self.leaf(*v));
                let at = [row, column, depth].map(|v| self.leaf(*v));
                self.fill_stage(stages, turn, layers, at);
                Vec::new()
            }
            (_, [sums, weights @ ..], Some(turn)) => {
                let Some(reading) = stages.read_by(op) else {
                    return Vec::new();
                };
                // Registers of its own, for the value before may still be in use.
                let before = self.leaves_of(self.value(*sums));
                let sums: Vec<Leaf> = before.iter().map(|_| self.out.word()).collect();
                let adds = before.iter().any(|leaf| *leaf != Leaf::Imm(0));
                if adds {
                    for (to, from) in sums.iter().zip(before) {
                        self.copy(*to, from, Scalar::F32);
                    }
                }
                self.multiply_stage(stages, turn, reading, &sums, weights.first().copied(), adds);
                if let Some(product) = self.in_flight.last_mut() {
                    product.value = v;
                }
                sums
            }
            // The verifier admits no others.
            _ => Vec::new(),
        }
    }

    /// A stage that is added to a variable, in the variable's own registers: how many statements do that and nothing else.
    pub(super) fn accumulate(&mut self, stmts: &'k [Stmt]) -> usize {
        // What weights are loaded from may stand between.
        let is_load = |stmt: &Stmt| matches!(&stmt.inst, Inst::Let(_, Op::Load(place, None)) if matches!(place.base, Base::Local(_)));
        let between = usize::from(stmts.get(1).is_some_and(is_load));
        let (Some(load), Some([multiply, store, ..])) = (stmts.first(), stmts.get(1 + between..)) else {
            return 0;
        };
        let (
            Inst::Let(v, Op::Load(from, None)),
            Inst::Let(w, Op::Device(op, args)),
            Inst::Do(Effect::Store(to, x, None)),
        ) = (&load.inst, &multiply.inst, &store.inst)
        else {
            return 0;
        };
        let (DeviceOp::Stage(op), [sums, weights @ ..]) = (op, &args[..]) else {
            return 0;
        };
        let is_one = sums == v && x == w && from == to;
        let Base::Local(id) = from.base else {
            return 0;
        };
        if !is_one || !from.path.is_empty() {
            return 0;
        }
        let mut uses = 0;
        self.frame.body.block.walk(&mut |stmt| {
            stmt.inst
                .operands(&mut |used| uses += usize::from(used == *v || used == *w));
        });
        let (Some(Slot::Registers(span)), Some(stages), Some(turn), 2) = (
            self.frame.locals.get(id.0 as usize),
            self.kernel.stages.as_ref(),
            self.turn,
            uses,
        ) else {
            return 0;
        };
        let Some(reading) = stages.read_by(*op) else {
            return 0;
        };
        let sums = self.leaves_of(Span { ..*span });
        for (stmt, next) in stmts.iter().skip(1).take(between).zip(stmts.iter().skip(2)) {
            self.settle_for(stmt);
            self.statement(stmt, Some(next));
        }
        self.multiply_stage(stages, turn, reading, &sums, weights.first().copied(), true);
        if let Some(product) = self.in_flight.last_mut() {
            product.local = Some(id);
        }
        3 + between
    }

    /// Adds the product of the left factor, or of `weights`, with what stands right of it in the stage; or makes it the sums.
    fn multiply_stage(
        &mut self,
        stages: &Stages,
        turn: Turn,
        reading: Reading,
        sums: &[Leaf],
        weights: Option<Value>,
        adds: bool,
    ) {
        // In a chain what is weighed has turns of its own.
        let chained = turn.weighs.is_some();
        let turn = match (weights, turn.weighs) {
            (Some(_), Some([stage, parity])) => Turn {
                stage,
                parity,
                ..turn
            },
            _ => turn,
        };
        let full = self.barrier_of(stages, turn, false);
        self.wait_for_phase(full, turn.parity);
        let element = stages.element.name();
        let deep = STEP / stages.element.memory().size();
        let weights = weights.map(|v| match self.rounded_ahead.take() {
            Some((ahead, words)) if ahead == v => words,
            _ => {
                let weights = self.leaves_of(self.value(v));
                self.rounded_weights(element, &weights)
            }
        });
        let stage = self.out.word();
        let (before, bytes) = (stages.part_start(reading.right), stages.stage_bytes());
        let start = self.words("add.u32", turn.first, before);
        emit!(self, "mad.lo.u32 {stage}, {}, {bytes}, {start}", turn.stage);
        let right = Part {
            extent: reading.columns,
            depth: reading.depth,
            across: reading.across,
        };
        let right_words = right.described(self, stage);
        let left = Part {
            extent: stages.left.extent,
            depth: stages.depth,
            across: stages.left.across,
        };
        let left_words = reading.left.map(|number| {
            let at = match stages.keeps(number) {
                false => {
                    let at = self.out.word();
                    emit!(self, "mad.lo.u32 {at}, {}, {bytes}, {}", turn.stage, turn.left);
                    at
                }
                true => self.words("add.u32", turn.left, stages.part_start(number)),
            };
            left.described(self, at)
        });
        let list: Vec<String> = sums.iter().map(Leaf::to_string).collect();
        let (list, columns) = (list.join(", "), reading.columns);
        let [a_across, b_across] = [left, right].map(|part| u32::from(part.across));
        let steps: Vec<(String, Leaf)> = (0..reading.depth / deep)
            .map(|i| {
                let b = right.step(self, right_words, i);
                let a = match (left_words, &weights) {
                    (Some(words), _) => left.step(self, words, i).to_string(),
                    (None, weights) => {
                        let four = weights.iter().flatten().skip(4 * i as usize).take(4);
                        let four: Vec<String> = four.map(Leaf::to_string).collect();
                        format!("{{{}}}", four.join(", "))
                    }
                };
                (a, b)
            })
            .collect();
        let ways = match (stages.element.transposes(), &weights) {
            (false, _) => String::new(),
            (true, None) => format!(", {a_across}, {b_across}"),
            (true, Some(_)) => format!(", {b_across}"),
        };
        // Numbers may be negated, but integers.
        let (to, signs) = match stages.element.sums() {
            Scalar::I32 => ("s32", ""),
            _ => ("f32", ", 1, 1"),
        };
        let of = match stages.element {
            StageElement::I8 => "s8",
            _ => element,
        };
        emit!(self, "wgmma.fence.sync.aligned");
        for (i, (a, b)) in steps.into_iter().enumerate() {
            let adds = u32::from(adds || i > 0);
            emit!(
                self,
                "wgmma.mma_async.sync.aligned.m64n{columns}k{deep}.{to}.{of}.{of} {{{list}}}, {a}, {b}, {adds}{signs}{ways}"
            );
        }
        emit!(self, "wgmma.commit_group.sync.aligned");
        if !stages.keeps(0) {
            emit!(self, "wgmma.wait_group.sync.aligned 0");
            let free = self.barrier_of(stages, turn, true);
            self.say_free(free);
            self.next_stage(stages, turn);
            return;
        }
        let frees = reading.frees.then(|| {
            let (parity, free) = (self.out.word(), self.barrier_of(stages, turn, true));
            emit!(self, "mov.u32 {parity}, {}", turn.parity);
            Freed { full, parity, free }
        });
        if reading.frees || chained {
            self.next_stage(stages, turn);
        }
        self.in_flight.push(InFlight {
            value: None,
            local: None,
            frees,
        });
    }

    /// Weights, two in a word, as a lane has those of its rows, and of 16 columns those of the first eight before those of the others.
    fn rounded_weights(&mut self, element: &str, weights: &[Leaf]) -> Vec<Leaf> {
        let two = weights.chunks_exact(2).map(|two| {
            let [low, high] = [0, 1].map(|i| self.in_register(two[i], Scalar::F32));
            let d = self.out.word();
            emit!(self, "cvt.rn.{element}x2.f32 {d}, {high}, {low}");
            d
        });
        two.collect()
    }

    /// In front of a product whose sums come beside weights: rounds these first, so that they take half as many registers while it is computed. The statements are
    /// the product and what follows.
    pub(super) fn round_ahead(&mut self, stmts: &'k [Stmt]) {
        let Some((Inst::Let(product, Op::Device(DeviceOp::Stage(StageOp::Multiply), _)), behind)) =
            stmts.split_first().map(|(stmt, behind)| (&stmt.inst, behind))
        else {
            return;
        };
        let mut loads = Vec::new();
        for stmt in behind {
            match &stmt.inst {
                Inst::Let(v, Op::Load(place, None)) if place.path.is_empty() => loads.push((*v, place.base)),
                Inst::Let(_, Op::Device(DeviceOp::Stage(StageOp::Weigh), args)) => {
                    let (Some(weights), Some(stages)) = (args.get(1), self.kernel.stages.as_ref()) else {
                        return;
                    };
                    if weights == product {
                        return;
                    }
                    let loaded = loads.iter().find(|(v, _)| v == weights).map(|(_, base)| *base);
                    let leaves = match loaded {
                        None => self.leaves_of(self.value(*weights)),
                        Some(Base::Local(id)) => match self.frame.locals.get(id.0 as usize) {
                            Some(Slot::Registers(span)) => self.leaves_of(Span { ..*span }),
                            _ => return,
                        },
                        Some(_) => return,
                    };
                    let words = self.rounded_weights(stages.element.name(), &leaves);
                    self.rounded_ahead = Some((*weights, words));
                    return;
                }
                _ => return,
            }
        }
    }
}

/// A factor's part as a product reads it.
#[derive(Clone, Copy)]
struct Part {
    extent: u32,
    depth: u32,
    /// Whether the depth goes from row to row.
    across: bool,
}

impl Part {
    /// Describes the part, which begins at an address: the lower word, to whose low bits the address grows, and the upper one.
    fn described(self, to: &mut Renderer<'_>, address: Leaf) -> (Leaf, u32) {
        let at = to.out.word();
        emit!(to, "bfe.u32 {at}, {address}, 4, 14");
        // From 64 columns to the next, where the depth goes from row to row. Else all of a step's depth lies in a row.
        let panels = if self.across { (self.depth * ROW) >> 4 } else { 1 };
        emit!(to, "or.b32 {at}, {at}, {}", panels << 16);
        (at, SWIZZLED | EIGHT_ROWS >> 4)
    }

    /// What `wgmma` is told of the part in its step `i`.
    fn step(self, to: &mut Renderer<'_>, (at, high): (Leaf, u32), i: u32) -> Leaf {
        let bytes = match self.across {
            true => i * (STEP / 2) * ROW,
            // A row has so many steps, and then come the next 64 columns.
            false => i / ROW_STEPS * self.extent * ROW + i % ROW_STEPS * STEP,
        };
        let (low, d) = (to.words("add.u32", at, bytes >> 4), to.out.wide());
        emit!(to, "mov.b64 {d}, {{{low}, {high}}}");
        d
    }
}
