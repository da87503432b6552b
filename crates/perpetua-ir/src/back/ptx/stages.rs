//! Products in stages on sm_90a: a lane of the first team starts copies by the tensor memory accelerator, the others multiply by `wgmma` what has
//! arrived. Barriers in shared memory count what is full and what is free; whose turn it is each team counts in registers.
//!
//! Pairs of blocks are clusters. Each block brings half of what stands right, for both: so what is full counts the bytes of both, and what is free the warps of
//! both; and neither ends before the other one has.
//!
//! A stage lies in shared memory as the hardware wants it, 128 bytes in a row, whose pieces of 16 bytes change places from row to row (128-byte
//! swizzle). Where depth goes along rows, a row of the matrix is such a row; else 64 rows and columns after 64 rows and columns.
//!
//! Sums stay in their registers from the issue of a product to its end, which is waited for at once: two teams that multiply keep the
//! tensor cores busy between them, and no other instruction may touch the registers meanwhile.

use super::Renderer;
use super::emit::{Leaf, emit, emit_once};
use super::frame::{Slot, Span};
use crate::ir::{
    Axis, Base, Builtin, DeviceOp, Effect, Factor, Inst, Op, Scalar, StageOp, Stages, Stmt, Value,
};

/// The shared memory of the stages, and of their barriers behind them.
pub(super) const MEMORY: &str = "perpetua_stages";
/// Descriptions of both matrices, which the launch makes.
pub(super) const MAPS: [&str; 2] = ["perpetua_left_map", "perpetua_right_map"];
/// Bytes of such a description.
pub(super) const MAP_BYTES: u32 = 128;

/// Bytes of eight rows.
const EIGHT_ROWS: u32 = 1024;
/// Bytes of 64 rows.
const PANEL: u32 = 8 * EIGHT_ROWS;
/// How deep one product is.
const STEP: u32 = 16;
/// 32-bit registers of a multiprocessor, on all that there are.
pub(super) const REGISTERS: u32 = 65_536;
/// Registers of a lane that fills stages.
const PRODUCER: u32 = 40;
/// The most registers that a lane may ask for.
const MOST_REGISTERS: u32 = 240;
/// How long a lane waits for a stage before it ends the launch with an error, in nanoseconds: whoever fills stages that nobody multiplies, or the other
/// way round, would wait for ever.
const PATIENCE: u64 = 10_000_000_000;

/// Where a team is.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    /// The stage whose turn it is.
    stage: Leaf,
    /// The parity of the phase of its barrier that is waited for.
    parity: Leaf,
    /// Whether this lane speaks for others: for the team, or for its warp.
    speaks: Leaf,
    /// Where this team's part of the left factor begins in the first stage.
    left: Leaf,
}

impl<'k> Renderer<'k> {
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
        let barriers = stages.count * stages.stage_bytes();
        for i in 0..stages.count {
            let (full, free) = (barriers + 8 * i, barriers + 8 * (stages.count + i));
            emit!(self, "mbarrier.init.shared::cta.b64 [{base}+{full}], 1");
            let blocks = if stages.pairs { 2 } else { 1 };
            let warps = blocks * stages.consumers() * (Stages::TEAM / 32);
            emit!(self, "mbarrier.init.shared::cta.b64 [{base}+{free}], {warps}");
        }
        emit!(self, "fence.mbarrier_init.release.cluster");
        emit!(self, "fence.proxy.async.shared::cta");
        for map in MAPS {
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
                emit!(self, "mad.lo.u32 {left}, {before}, {PANEL}, {base}");
                (speaks, left)
            }
        };
        self.turn = Some(Turn {
            stage,
            parity,
            speaks,
            left,
        });
    }

    pub(super) fn stage(&mut self, op: StageOp, args: &[Value]) -> Vec<Leaf> {
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
            (StageOp::Multiply, [sums], Some(turn)) => {
                // Registers of its own, for the value before may still be in use.
                let before = self.leaves_of(self.value(*sums));
                let sums: Vec<Leaf> = before.iter().map(|_| self.out.word()).collect();
                for (to, from) in sums.iter().zip(before) {
                    self.copy(*to, from, Scalar::F32);
                }
                self.multiply_stage(stages, turn, &sums);
                sums
            }
            // The verifier admits no others.
            _ => Vec::new(),
        }
    }

    /// A stage that is added to a variable, in the variable's own registers: whether these statements do that and nothing else.
    pub(super) fn accumulate(&mut self, stmts: &'k [Stmt]) -> bool {
        let [load, multiply, store, ..] = stmts else {
            return false;
        };
        let (
            Inst::Let(v, Op::Load(from, None)),
            Inst::Let(w, Op::Device(op, args)),
            Inst::Do(Effect::Store(to, x, None)),
        ) = (&load.inst, &multiply.inst, &store.inst)
        else {
            return false;
        };
        let is_one = *op == DeviceOp::Stage(StageOp::Multiply) && args[..] == [*v] && x == w && from == to;
        let Base::Local(id) = from.base else {
            return false;
        };
        if !is_one || !from.path.is_empty() {
            return false;
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
            return false;
        };
        let sums = self.leaves_of(Span { ..*span });
        self.multiply_stage(stages, turn, &sums);
        true
    }

    /// The address of a barrier of the stage whose turn it is.
    fn barrier_of(&mut self, stages: &Stages, turn: Turn, free: bool) -> Leaf {
        let base = self.memory_of_stages();
        let (d, all) = (self.out.word(), stages.count * stages.stage_bytes());
        emit!(self, "mad.lo.u32 {d}, {}, 8, {base}", turn.stage);
        let offset = all + if free { 8 * stages.count } else { 0 };
        self.words("add.u32", d, offset)
    }

    /// Waits until the barrier's phase has ended.
    fn wait_for_phase(&mut self, barrier: Leaf, parity: Leaf) {
        let (done, late, again) = (self.out.label(), self.out.label(), self.out.label());
        let p = self.out.pred();
        let attempt = format!("mbarrier.try_wait.parity.shared::cta.b64 {p}, [{barrier}], {parity}");
        emit!(self, "{attempt}");
        emit!(self, "@!{p} bra {late}");
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
        emit!(
            self,
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [{full}], {bytes}"
        );
        let (base, part) = (self.memory_of_stages(), self.out.word());
        emit!(self, "mad.lo.u32 {part}, {}, {bytes}, {base}", turn.stage);
        let sides = [(row, false), (column, true)].into_iter().zip(stages.factors());
        for (((first, is_right), factor), map) in sides.zip(MAPS) {
            let map = self.map_address(map);
            let ([rows, columns], copies) = stages.copies(is_right);
            let start = if is_right {
                stages.left.bytes(stages.element)
            } else {
                0
            };
            let (mut part, mut first) = (self.words("add.u32", part, start), first);
            let (mut how, mut to_whom) = (String::new(), String::new());
            let bytes = rows * columns * stages.element.size();
            if is_right && stages.pairs {
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
                let across = self.words("add.u32", first, copy * Stages::DEPTH);
                // Columns come before rows.
                let at = if factor.across {
                    [across, depth]
                } else {
                    [depth, across]
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
        self.out.place(skip);
        self.next_stage(stages, turn);
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

    fn multiply_stage(&mut self, stages: &Stages, turn: Turn, sums: &[Leaf]) {
        let full = self.barrier_of(stages, turn, false);
        self.wait_for_phase(full, turn.parity);
        let base = self.memory_of_stages();
        let right = self.words("add.u32", base, stages.left.bytes(stages.element));
        let words = [(&stages.left, turn.left), (&stages.right, right)].map(|(factor, first)| {
            let at = self.out.word();
            emit!(
                self,
                "mad.lo.u32 {at}, {}, {}, {first}",
                turn.stage,
                stages.stage_bytes()
            );
            let (low, high, step) = described(factor);
            emit!(self, "bfe.u32 {at}, {at}, 4, 14");
            emit!(self, "or.b32 {at}, {at}, {low}");
            (at, high, step)
        });
        let list: Vec<String> = sums.iter().map(Leaf::to_string).collect();
        let list = list.join(", ");
        let element = match stages.element {
            Scalar::BF16 => "bf16",
            _ => "f16",
        };
        let columns = stages.right.extent;
        let [a_across, b_across] = stages.factors().map(|factor| u32::from(factor.across));
        let steps: Vec<[Leaf; 2]> = (0..Stages::DEPTH / STEP)
            .map(|i| {
                words.map(|(at, high, step)| {
                    let low = self.words("add.u32", at, i * step);
                    let d = self.out.wide();
                    emit!(self, "mov.b64 {d}, {{{low}, {high}}}");
                    d
                })
            })
            .collect();
        emit!(self, "wgmma.fence.sync.aligned");
        for [a, b] in steps {
            emit!(
                self,
                "wgmma.mma_async.sync.aligned.m64n{columns}k{STEP}.f32.{element}.{element} {{{list}}}, {a}, {b}, 1, 1, 1, {a_across}, {b_across}"
            );
        }
        emit!(self, "wgmma.commit_group.sync.aligned");
        emit!(self, "wgmma.wait_group.sync.aligned 0");
        let free = self.barrier_of(stages, turn, true);
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
        self.next_stage(stages, turn);
    }
}

/// How a factor lies in a stage, as `wgmma` is told it: what stands beside its address in the lower word, the upper word, and by how much the address grows
/// from one product to the next; all of it in pieces of 16 bytes.
fn described(factor: &Factor) -> (u32, u32, u32) {
    /// 128 bytes whose pieces change places.
    const SWIZZLED: u32 = 1 << 30;
    let high = SWIZZLED | EIGHT_ROWS >> 4;
    match factor.across {
        // From 64 columns to the next, and from eight rows to the next.
        true => ((PANEL >> 4) << 16, high, (STEP / 8 * EIGHT_ROWS) >> 4),
        // All of the depth lies in a row, so how far it is from one row's end to the next does not count.
        false => (1 << 16, high, (STEP * 2) >> 4),
    }
}
