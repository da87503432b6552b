//! Products in stages on sm_90a: a lane of the first team starts copies by the tensor memory accelerator, the others multiply by `wgmma` what has
//! arrived. Barriers in shared memory count what is full and what is free; whose turn it is each team counts in registers.
//!
//! Pairs of blocks are clusters. Each block brings half of what stands right, for both: so what is full counts the bytes of both, and what is free the warps of
//! both; and neither ends before the other one has.
//!
//! A stage lies in shared memory as the hardware wants it, 128 bytes in a row, whose pieces of 16 bytes change places from row to row (128-byte
//! swizzle). Where depth goes along rows, a row of the matrix is such a row; else 64 rows and columns after 64 rows and columns.
//!
//! What is multiplied, and when it is waited for, is in `products`.

use super::Renderer;
use super::emit::{Leaf, emit, emit_once};
use crate::ir::{Axis, Builtin, Scalar, Stages};

/// The shared memory of the stages, and of their barriers behind them.
pub(super) const MEMORY: &str = "perpetua_stages";
/// Descriptions of the matrices, which the launch makes: of each factor that there is.
const MAPS: [&str; 4] = [
    "perpetua_left_map",
    "perpetua_right_map",
    "perpetua_third_map",
    "perpetua_fourth_map",
];
/// Bytes of such a description.
pub(super) const MAP_BYTES: u32 = 128;

/// Bytes of a row.
pub(super) const ROW: u32 = 128;
/// 32-bit registers of a multiprocessor, on all that there are.
pub(super) const REGISTERS: u32 = 65_536;
/// Bytes of a multiprocessor's shared memory, and of those that each block has without asking.
const MEMORY_BYTES: u32 = 228 << 10;
const RESERVED: u32 = 1 << 10;
/// Registers of a lane that fills stages.
const PRODUCER: u32 = 24;
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
    pub(super) stage: Leaf,
    /// The parity of the phase of its barrier that is waited for.
    pub(super) parity: Leaf,
    /// Whether this lane speaks for others: for the team, or for its warp.
    pub(super) speaks: Leaf,
    /// Where this team's part of the left factor begins, in the first stage or in front of it.
    pub(super) left: Leaf,
    /// Where the first stage begins.
    pub(super) first: Leaf,
    /// Whether this stage is the first that the team fills.
    pub(super) is_first: Option<Leaf>,
    /// Stage and parity for what is weighed.
    pub(super) weighs: Option<[Leaf; 2]>,
}

impl Renderer<'_> {
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

    /// The address of a barrier of the stage whose turn it is.
    pub(super) fn barrier_of(&mut self, stages: &Stages, turn: Turn, free: bool) -> Leaf {
        let base = self.memory_of_stages();
        let (d, all) = (self.out.word(), barriers(stages));
        emit!(self, "mad.lo.u32 {d}, {}, 8, {base}", turn.stage);
        let offset = all + if free { 8 * stages.count } else { 0 };
        self.words("add.u32", d, offset)
    }

    /// Waits until the barrier's phase has ended.
    pub(super) fn wait_for_phase(&mut self, barrier: Leaf, parity: Leaf) {
        self.wait_behind(None, barrier, parity);
    }

    /// The same, not before a word has been computed, as far as the assembler can know.
    pub(super) fn wait_behind(&mut self, word: Option<Leaf>, barrier: Leaf, parity: Leaf) {
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
    pub(super) fn next_stage(&mut self, stages: &Stages, turn: Turn) {
        let Turn { stage, parity, .. } = turn;
        let flipped = self.words("xor.b32", parity, 1u32);
        emit!(self, "add.u32 {stage}, {stage}, 1");
        let round = self.compare("eq", "u32", Scalar::U32, stage, Leaf::Imm(stages.count.into()));
        emit!(self, "selp.b32 {parity}, {flipped}, {parity}, {round}");
        emit!(self, "selp.b32 {stage}, 0, {stage}, {round}");
    }

    /// `layers`: which of several matrices the left factor is, and the right one.
    pub(super) fn fill_stage(
        &mut self,
        stages: &Stages,
        turn: Turn,
        layers: [Leaf; 2],
        [row, column, depth]: [Leaf; 3],
    ) {
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
        let [of_left, of_right] = layers;
        let (left, right) = ([row, depth, of_left], [column, depth, of_right]);
        let further = match stages.third {
            Some(_) => [Leaf::Imm(0), column, of_right],
            None => left,
        };
        let from: Vec<(usize, [Leaf; 3])> = [left, right, further, right]
            .into_iter()
            .take(stages.factors().count())
            .enumerate()
            .collect();
        if let Some(is_first) = turn.is_first {
            let kept = self.out.label();
            let other = self.compare("eq", "u32", Scalar::U32, is_first, Leaf::Imm(0));
            emit!(self, "@{other} bra {kept}");
            emit!(self, "mov.u32 {is_first}, 0");
            let base = self.memory_of_stages();
            for (number, from) in from.iter().filter(|(number, _)| stages.keeps(*number)) {
                let to = self.words("add.u32", base, stages.part_start(*number));
                self.copy_part(stages, *number, *from, to, full);
            }
            self.out.place(kept);
        }
        for (number, from) in from.iter().filter(|(number, _)| !stages.keeps(*number)) {
            let to = self.words("add.u32", part, stages.part_start(*number));
            self.copy_part(stages, *number, *from, to, full);
        }
        self.out.place(skip);
        self.next_stage(stages, turn);
    }

    /// Starts the copies of a factor's part, from this row or column of sums and this depth on, of the matrix of this number.
    fn copy_part(
        &mut self,
        stages: &Stages,
        number: usize,
        [mut first, depth, layer]: [Leaf; 3],
        mut part: Leaf,
        full: Leaf,
    ) {
        let Some((factor, map)) = stages.factors().zip(MAPS).nth(number) else {
            return;
        };
        let map = self.map_address(map);
        let ([rows, columns], copies) = stages.copies(number);
        let (mut how, mut to_whom) = (String::new(), String::new());
        let bytes = rows * columns * stages.element.memory().size();
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
            // Columns come before rows, and rows before matrices.
            let mut at = match factor.across {
                true => vec![self.words("add.u32", first, beside), depth],
                false => vec![self.words("add.u32", depth, beside), first],
            };
            at.extend(factor.layers.map(|_| layer));
            // Hardware takes signed numbers, so that the greatest ones are those before the matrix.
            let at: Vec<String> = at
                .into_iter()
                .map(|leaf| self.in_register(leaf, Scalar::U32).to_string())
                .collect();
            emit!(
                self,
                "cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes{how} [{to}], [{map}, {{{}}}], [{full}]{to_whom}",
                at.len(),
                at.join(", ")
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
}

/// How many blocks a multiprocessor is to have room for: two of a chain where their memory leaves it, and a lane has enough with half of the registers.
pub(super) fn blocks_at_once(stages: &Stages) -> u32 {
    /// What a lane needs besides its sums.
    const BESIDES: u32 = 48;
    // Four columns of sums are two registers.
    // Registers that teams give each other are reckoned for one block.
    let Some(third) = stages.third.as_ref().filter(|_| stages.consumers() == 1) else {
        return 1;
    };
    let sums = (stages.right.extent + third.extent) / 2;
    let have_room =
        2 * (stages.bytes() + RESERVED) <= MEMORY_BYTES && 2 * stages.lanes() * (sums + BESIDES) <= REGISTERS;
    if have_room { 2 } else { 1 }
}

/// Where the barriers begin.
fn barriers(stages: &Stages) -> u32 {
    stages.kept_bytes() + stages.count * stages.stage_bytes()
}
