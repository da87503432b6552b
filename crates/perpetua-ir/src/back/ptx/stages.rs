//! Products in stages on sm_90a: a lane of the first team starts copies by the tensor memory accelerator, the others multiply by `wgmma` what has
//! arrived. Barriers in shared memory count what is full and what is free; whose turn it is each team counts in registers.
//!
//! Pairs of blocks are clusters. Each block brings half of what stands right, for both: so what is full counts the bytes of both, and what is free the warps of
//! both; and neither ends before the other one has.
//!
//! A stage lies in shared memory as the hardware wants it, 128 bytes in a row, whose pieces of 16 bytes change places from row to row (128-byte
//! swizzle). Where depth goes along rows, a row of the matrix is such a row; else 64 rows and columns after 64 rows and columns.
//!
//! Sums stay in their registers from the issue of a product to its end, and no other instruction may touch the registers meanwhile. The end is waited for at once: two
//! teams that multiply keep the tensor cores busy between them. In a chain it is waited for where the sums are used, or where control flow does not let that be seen
//! ([`InFlight`]): so a lane makes weights of one product while the next one is computed, if its kernel is written so.

use super::Renderer;
use super::emit::{Leaf, emit, emit_once};
use super::frame::{Slot, Span};
use crate::ir::{
    Axis, Base, Builtin, DeviceOp, Effect, Factor, Inst, LocalId, Op, Scalar, StageOp, Stages, Stmt, Value,
};

/// The shared memory of the stages, and of their barriers behind them.
pub(super) const MEMORY: &str = "perpetua_stages";
/// Descriptions of the matrices, which the launch makes: of each factor that there is.
const MAPS: [&str; 3] = ["perpetua_left_map", "perpetua_right_map", "perpetua_third_map"];
/// Bytes of such a description.
pub(super) const MAP_BYTES: u32 = 128;

/// Bytes of a row, and of eight.
const ROW: u32 = 128;
const EIGHT_ROWS: u32 = 8 * ROW;
/// How deep one product is, and how many of them a row has.
const STEP: u32 = 16;
const ROW_STEPS: u32 = ROW / 2 / STEP;
/// In the upper word of a description: rows of 128 bytes whose pieces of 16 bytes change places.
const SWIZZLED: u32 = 1 << 30;
/// 32-bit registers of a multiprocessor, on all that there are.
pub(super) const REGISTERS: u32 = 65_536;
/// Registers of a lane that fills stages.
const PRODUCER: u32 = 40;
/// The most registers that a lane may ask for.
const MOST_REGISTERS: u32 = 240;
/// How long a lane waits for a stage before it ends the launch with an error, in nanoseconds: whoever fills stages that nobody multiplies, or the other
/// way round, would wait for ever.
const PATIENCE: u64 = 10_000_000_000;

/// Those that a kernel takes.
pub(super) fn maps(stages: &Stages) -> impl Iterator<Item = &'static str> {
    MAPS.into_iter().take(stages.factors().count())
}

/// Where a team is.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    /// The stage whose turn it is.
    stage: Leaf,
    /// The parity of the phase of its barrier that is waited for.
    parity: Leaf,
    /// Whether this lane speaks for others: for the team, or for its warp.
    speaks: Leaf,
    /// Where this team's part of the left factor begins, in the first stage or in front of it.
    left: Leaf,
    /// Where the first stage begins.
    first: Leaf,
    /// Whether this stage is the first that the team fills.
    is_first: Option<Leaf>,
    /// Stage and parity for what is weighed.
    weighs: Option<[Leaf; 2]>,
}

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
            self.wait_behind(word, freed.full, freed.parity);
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

    /// The memory of the stages.
    fn memory_of_stages(&mut self) -> Leaf {
        self.symbol(MEMORY, true)
    }

    /// Makes the barriers.
    pub(super) fn begin_stages(&mut self, stages: &Stages) {
        let base = self.memory_of_stages();
        let skip = self.out.label();
        let lane = self.builtin(Builtin::ThreadIdx(Axis::X));
        let other = self.compare("ne", "u32", Scalar::U32, lane, Leaf::Imm(0));
        emit!(self, "@{other} bra {skip}");
        let barriers = barriers(stages);
        for i in 0..stages.count {
            let (full, free) = (barriers + 8 * i, barriers + 8 * (stages.count + i));
            emit!(self, "mbarrier.init.shared::cta.b64 [{base}+{full}], 1");
            let blocks = if stages.pairs { 2 } else { 1 };
            let warps = blocks * stages.consumers() * (Stages::TEAM / 32);
            emit!(self, "mbarrier.init.shared::cta.b64 [{base}+{free}], {warps}");
        }
        emit!(self, "fence.mbarrier_init.release.cluster");
        emit!(self, "fence.proxy.async.shared::cta");
        for map in maps(stages) {
            let map = self.map_address(map);
            emit!(self, "prefetch.tensormap [{map}]");
        }
        self.out.place(skip);
        match stages.pairs {
            true => self.meet_pair(),
            false => emit!(self, "bar.sync 0"),
        }
    }

    /// Waits for all lanes of both blocks of a pair.
    pub(super) fn meet_pair(&mut self) {
        emit!(self, "barrier.cluster.arrive.release");
        emit!(self, "barrier.cluster.wait.acquire");
    }

    /// Whether the block is the first of its pair, 0, or the second.
    fn rank(&mut self) -> Leaf {
        const RANK: &str = "%cluster_ctarank";
        if let Some(leaf) = self.symbols.get(RANK) {
            return *leaf;
        }
        let d = self.out.word();
        emit_once!(self, "mov.u32 {d}, {RANK}");
        self.symbols.insert(RANK.into(), d);
        d
    }

    /// The number of the lane's team; the same register in all lanes of a warp, as the assembler can see.
    fn team(&mut self) -> Leaf {
        let lane = self.builtin(Builtin::ThreadIdx(Axis::X));
        let (mine, team) = (self.out.word(), self.out.word());
        emit_once!(self, "shr.u32 {mine}, {lane}, {}", Stages::TEAM.trailing_zeros());
        emit_once!(self, "shfl.sync.idx.b32 {team}, {mine}, 0, 31, 0xffffffff");
        team
    }

    /// Whether the lane's team fills stages.
    pub(super) fn produces(&mut self) -> Leaf {
        let team = self.team();
        self.compare("eq", "u32", Scalar::U32, team, Leaf::Imm(0))
    }

    /// Begins the code of the teams that fill, or that multiply.
    pub(super) fn begin_team(&mut self, fills: bool) {
        let Some(stages) = self.kernel.stages.as_ref() else {
            return;
        };
        // Registers move from those that need few to those that need many; with one team that multiplies, all have enough.
        let consumers = stages.consumers();
        if consumers > 1 {
            let entry = REGISTERS / stages.lanes() / 8 * 8;
            let rest = (entry * (1 + consumers) - PRODUCER) / consumers / 8 * 8;
            match fills {
                true => emit!(self, "setmaxnreg.dec.sync.aligned.u32 {PRODUCER}"),
                false => emit!(
                    self,
                    "setmaxnreg.inc.sync.aligned.u32 {}",
                    rest.min(MOST_REGISTERS)
                ),
            }
        }
        let lane = self.builtin(Builtin::ThreadIdx(Axis::X));
        let base = self.memory_of_stages();
        let (stage, parity) = (self.out.word(), self.out.word());
        emit!(self, "mov.u32 {stage}, 0");
        emit!(self, "mov.u32 {parity}, {}", u32::from(fills));
        let (speaks, left) = match fills {
            true => (self.compare("eq", "u32", Scalar::U32, lane, Leaf::Imm(0)), base),
            false => {
                let in_warp = self.words("and.b32", lane, 31u32);
                // To each block of a pair a lane of its own.
                let speakers = if stages.pairs { 2 } else { 1 };
                let speaks = self.compare("lt", "u32", Scalar::U32, in_warp, Leaf::Imm(speakers));
                let team = self.team();
                let before = self.words("sub.u32", team, 1u32);
                let left = self.out.word();
                let rows = if stages.left.across {
                    stages.depth
                } else {
                    Stages::ROWS
                };
                emit!(self, "mad.lo.u32 {left}, {before}, {}, {base}", rows * ROW);
                (speaks, left)
            }
        };
        let is_first = (fills && stages.kept_bytes() > 0).then(|| {
            let is_first = self.out.word();
            emit!(self, "mov.u32 {is_first}, 1");
            is_first
        });
        let weighs = (!fills && stages.third.is_some()).then(|| {
            [0, 1].map(|_| {
                let zero = self.out.word();
                emit!(self, "mov.u32 {zero}, 0");
                zero
            })
        });
        let first = self.words("add.u32", base, stages.kept_bytes());
        self.turn = Some(Turn {
            stage,
            parity,
            speaks,
            left,
            first,
            is_first,
            weighs,
        });
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
                self.fill_stage(stages, turn, at);
                Vec::new()
            }
            (StageOp::Multiply | StageOp::Weigh, [sums, weights @ ..], Some(turn)) => {
                // Registers of its own, for the value before may still be in use.
                let before = self.leaves_of(self.value(*sums));
                let sums: Vec<Leaf> = before.iter().map(|_| self.out.word()).collect();
                let adds = before.iter().any(|leaf| *leaf != Leaf::Imm(0));
                if adds {
                    for (to, from) in sums.iter().zip(before) {
                        self.copy(*to, from, Scalar::F32);
                    }
                }
                self.multiply_stage(stages, turn, &sums, weights.first().copied(), adds);
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
        let (DeviceOp::Stage(StageOp::Multiply | StageOp::Weigh), [sums, weights @ ..]) = (op, &args[..])
        else {
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
        let sums = self.leaves_of(Span { ..*span });
        for (stmt, next) in stmts.iter().skip(1).take(between).zip(stmts.iter().skip(2)) {
            self.settle_for(stmt);
            self.statement(stmt, Some(next));
        }
        self.multiply_stage(stages, turn, &sums, weights.first().copied(), true);
        if let Some(product) = self.in_flight.last_mut() {
            product.local = Some(id);
        }
        3 + between
    }

    /// The address of a barrier of the stage whose turn it is.
    fn barrier_of(&mut self, stages: &Stages, turn: Turn, free: bool) -> Leaf {
        let base = self.memory_of_stages();
        let (d, all) = (self.out.word(), barriers(stages));
        emit!(self, "mad.lo.u32 {d}, {}, 8, {base}", turn.stage);
        let offset = all + if free { 8 * stages.count } else { 0 };
        self.words("add.u32", d, offset)
    }

    /// Waits until the barrier's phase has ended.
    fn wait_for_phase(&mut self, barrier: Leaf, parity: Leaf) {
        self.wait_behind(None, barrier, parity);
    }

    /// The same, not before a word has been computed, as far as the assembler can know.
    fn wait_behind(&mut self, word: Option<Leaf>, barrier: Leaf, parity: Leaf) {
        /// Some word: if it is this one, a lane asks a second time.
        const SOME: u32 = 0x7fc5_a1d3;
        let (done, late, again) = (self.out.label(), self.out.label(), self.out.label());
        let p = self.out.pred();
        let attempt = format!("mbarrier.try_wait.parity.shared::cta.b64 {p}, [{barrier}], {parity}");
        emit!(self, "{attempt}");
        let hot = match word {
            None => p,
            Some(word) => {
                let both = self.out.pred();
                emit!(self, "setp.ne.and.u32 {both}, {word}, {SOME}, {p}");
                both
            }
        };
        emit!(self, "@!{hot} bra {late}");
        let hot = self.out.begin_cold();
        self.out.place(late);
        let (start, now) = (self.out.wide(), self.out.wide());
        let over = self.out.pred();
        emit!(self, "mov.u64 {start}, %globaltimer");
        self.out.place(again);
        emit!(self, "{attempt}");
        emit!(self, "@{p} bra {done}");
        emit!(self, "mov.u64 {now}, %globaltimer");
        emit!(self, "sub.u64 {now}, {now}, {start}");
        emit!(self, "setp.lt.u64 {over}, {now}, {PATIENCE}");
        emit!(self, "@{over} bra {again}");
        emit!(self, "trap");
        self.out.end_cold(hot);
        self.out.place(done);
    }

    /// On to the next stage.
    fn next_stage(&mut self, stages: &Stages, turn: Turn) {
        let Turn { stage, parity, .. } = turn;
        let flipped = self.words("xor.b32", parity, 1u32);
        emit!(self, "add.u32 {stage}, {stage}, 1");
        let round = self.compare("eq", "u32", Scalar::U32, stage, Leaf::Imm(stages.count.into()));
        emit!(self, "selp.b32 {parity}, {flipped}, {parity}, {round}");
        emit!(self, "selp.b32 {stage}, 0, {stage}, {round}");
    }

    fn fill_stage(&mut self, stages: &Stages, turn: Turn, [row, column, depth]: [Leaf; 3]) {
        let skip = self.out.label();
        emit!(self, "@!{} bra {skip}", turn.speaks);
        let free = self.barrier_of(stages, turn, true);
        self.wait_for_phase(free, turn.parity);
        let full = self.barrier_of(stages, turn, false);
        let bytes = stages.stage_bytes();
        let part = self.out.word();
        emit!(self, "mad.lo.u32 {part}, {}, {bytes}, {}", turn.stage, turn.first);
        let expected = match turn.is_first {
            None => Leaf::Imm(bytes.into()),
            Some(is_first) => {
                let expected = self.out.word();
                emit!(
                    self,
                    "mad.lo.u32 {expected}, {is_first}, {}, {bytes}",
                    stages.kept_bytes()
                );
                expected
            }
        };
        emit!(
            self,
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [{full}], {expected}"
        );
        let from = [[row, depth], [column, depth], [Leaf::Imm(0), column]];
        let mut start = 0;
        for number in 0..stages.factors().count() {
            let [first, depth] = from[number];
            match turn.is_first.filter(|_| number == 0) {
                Some(is_first) => {
                    let kept = self.out.label();
                    let other = self.compare("eq", "u32", Scalar::U32, is_first, Leaf::Imm(0));
                    emit!(self, "@{other} bra {kept}");
                    emit!(self, "mov.u32 {is_first}, 0");
                    let base = self.memory_of_stages();
                    self.copy_part(stages, number, [first, depth], base, full);
                    self.out.place(kept);
                }
                None => {
                    let to = self.words("add.u32", part, start);
                    self.copy_part(stages, number, [first, depth], to, full);
                    start += stages.part_bytes(number);
                }
            }
        }
        self.out.place(skip);
        self.next_stage(stages, turn);
    }

    /// Starts the copies of a factor's part, from this row or column of sums and this depth on.
    fn copy_part(
        &mut self,
        stages: &Stages,
        number: usize,
        [mut first, depth]: [Leaf; 2],
        mut part: Leaf,
        full: Leaf,
    ) {
        let Some((factor, map)) = stages.factors().zip(MAPS).nth(number) else {
            return;
        };
        let map = self.map_address(map);
        let ([rows, columns], copies) = stages.copies(number);
        let (mut how, mut to_whom) = (String::new(), String::new());
        let bytes = rows * columns * stages.element.size();
        if number == 1 && stages.pairs {
            let rank = self.rank();
            let (own, own_first) = (self.out.word(), self.out.word());
            emit!(self, "mad.lo.u32 {own}, {rank}, {}, {part}", bytes * copies);
            emit!(
                self,
                "mad.lo.u32 {own_first}, {rank}, {}, {first}",
                factor.extent / 2
            );
            (part, first) = (own, own_first);
            let both = self.out.half();
            emit!(self, "mov.b16 %h{both}, 3");
            (how, to_whom) = (".multicast::cluster".into(), format!(", %h{both}"));
        }
        for copy in 0..copies {
            let to = self.words("add.u32", part, copy * bytes);
            let beside = copy * columns;
            // Columns come before rows.
            let at = match factor.across {
                true => [self.words("add.u32", first, beside), depth],
                false => [self.words("add.u32", depth, beside), first],
            };
            // Hardware takes signed numbers: what is beyond them is beyond the matrix.
            let at = at.map(|leaf| self.words("min.u32", leaf, i32::MAX as u32));
            let at = at.map(|leaf| self.in_register(leaf, Scalar::U32));
            emit!(
                self,
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes{how} [{to}], [{map}, {{{}, {}}}], [{full}]{to_whom}",
                at[0],
                at[1]
            );
        }
    }

    /// Waits for all copies, also of stages that nobody multiplies: the block must not end while its memory is still written to.
    pub(super) fn end_filling(&mut self) {
        let (Some(stages), Some(turn)) = (self.kernel.stages.as_ref(), self.turn) else {
            return;
        };
        let (skip, again) = (self.out.label(), self.out.label());
        emit!(self, "@!{} bra {skip}", turn.speaks);
        let left = self.out.word();
        emit!(self, "mov.u32 {left}, {}", stages.count);
        self.out.place(again);
        // From here on, those of the round before; before here, those of this round. What was never filled is behind its barrier's phase zero.
        let full = self.barrier_of(stages, turn, false);
        self.wait_for_phase(full, turn.parity);
        self.next_stage(stages, turn);
        emit!(self, "sub.u32 {left}, {left}, 1");
        let more = self.compare("ne", "u32", Scalar::U32, left, Leaf::Imm(0));
        emit!(self, "@{more} bra {again}");
        self.out.place(skip);
    }

    /// The address of a parameter that describes a matrix.
    fn map_address(&mut self, name: &str) -> Leaf {
        if let Some(leaf) = self.symbols.get(name) {
            return *leaf;
        }
        let (own, d) = (self.out.wide(), self.out.wide());
        emit_once!(self, "mov.b64 {own}, {name}");
        emit_once!(self, "cvta.param.u64 {d}, {own}");
        self.symbols.insert(name.into(), d);
        d
    }

    /// Adds the product of the left factor, or of `weights`, with what stands right of it in the stage; or makes it the sums.
    fn multiply_stage(
        &mut self,
        stages: &Stages,
        turn: Turn,
        sums: &[Leaf],
        weights: Option<Value>,
        adds: bool,
    ) {
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
        let weights = weights.map(|v| match self.rounded_ahead.take() {
            Some((ahead, words)) if ahead == v => words,
            _ => {
                let weights = self.leaves_of(self.value(v));
                self.rounded_weights(element, &weights)
            }
        });
        let (right, third) = match &weights {
            Some(_) => (stages.third.as_ref().map(|third| (third, 2)), true),
            None => (Some((&stages.right, 1)), false),
        };
        let Some((right, number)) = right else {
            return;
        };
        // What stands in a stage before the right factor.
        let before = match (stages.kept_bytes(), third) {
            (0, _) => stages.part_bytes(0),
            (_, false) => 0,
            (_, true) => stages.part_bytes(1),
        };
        let stage = self.out.word();
        let (start, bytes) = (self.words("add.u32", turn.first, before), stages.stage_bytes());
        emit!(self, "mad.lo.u32 {stage}, {}, {bytes}, {start}", turn.stage);
        let right_words = self.described(right, stages.depth_of(number), stage);
        let left_words = weights.is_none().then(|| {
            let left = match stages.kept_bytes() {
                0 => {
                    let left = self.out.word();
                    emit!(self, "mad.lo.u32 {left}, {}, {bytes}, {}", turn.stage, turn.left);
                    left
                }
                _ => turn.left,
            };
            self.described(&stages.left, stages.depth, left)
        });
        let list: Vec<String> = sums.iter().map(Leaf::to_string).collect();
        let (list, columns) = (list.join(", "), right.extent);
        let [a_across, b_across] = [&stages.left, right].map(|factor| u32::from(factor.across));
        let steps: Vec<(String, Leaf)> = (0..stages.depth_of(number) / STEP)
            .map(|i| {
                let b = self.step(right, right_words, i);
                let a = match (left_words, &weights) {
                    (Some(words), _) => self.step(&stages.left, words, i).to_string(),
                    (None, weights) => {
                        let four = weights.iter().flatten().skip(4 * i as usize).take(4);
                        let four: Vec<String> = four.map(Leaf::to_string).collect();
                        format!("{{{}}}", four.join(", "))
                    }
                };
                (a, b)
            })
            .collect();
        let ways = if weights.is_none() {
            format!("{a_across}, {b_across}")
        } else {
            b_across.to_string()
        };
        emit!(self, "wgmma.fence.sync.aligned");
        for (i, (a, b)) in steps.into_iter().enumerate() {
            let adds = u32::from(adds || i > 0);
            emit!(
                self,
                "wgmma.mma_async.sync.aligned.m64n{columns}k{STEP}.f32.{element}.{element} {{{list}}}, {a}, {b}, {adds}, 1, 1, {ways}"
            );
        }
        emit!(self, "wgmma.commit_group.sync.aligned");
        let frees = (stages.third.is_none() || third).then(|| {
            let (parity, free) = (self.out.word(), self.barrier_of(stages, turn, true));
            emit!(self, "mov.u32 {parity}, {}", turn.parity);
            Freed { full, parity, free }
        });
        self.next_stage(stages, turn);
        self.in_flight.push(InFlight {
            value: None,
            local: None,
            frees,
        });
        if stages.third.is_none() {
            self.settle(0);
        }
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

    /// Describes the part of a factor that begins at an address: the lower word, to whose low bits the address grows, and the upper one.
    fn described(&mut self, factor: &Factor, depth: u32, address: Leaf) -> (Leaf, u32) {
        let at = self.out.word();
        emit!(self, "bfe.u32 {at}, {address}, 4, 14");
        // From 64 columns to the next, where the depth goes from row to row. Else all of a step's depth lies in a row.
        let panels = if factor.across { depth * ROW >> 4 } else { 1 };
        emit!(self, "or.b32 {at}, {at}, {}", panels << 16);
        (at, SWIZZLED | EIGHT_ROWS >> 4)
    }

    /// What `wgmma` is told of a part in its step `i`.
    fn step(&mut self, factor: &Factor, (at, high): (Leaf, u32), i: u32) -> Leaf {
        let bytes = match factor.across {
            true => i * STEP * ROW,
            // A row has so many steps, and then come the next 64 columns.
            false => i / ROW_STEPS * factor.extent * ROW + i % ROW_STEPS * STEP * 2,
        };
        let (low, d) = (self.words("add.u32", at, bytes >> 4), self.out.wide());
        emit!(self, "mov.b64 {d}, {{{low}, {high}}}");
        d
    }
}

/// Where the barriers begin.
fn barriers(stages: &Stages) -> u32 {
    stages.kept_bytes() + stages.count * stages.stage_bytes()
}
