//! Shared memory between barriers, and subgroup operations: patterns whose result does not depend on the order in
//! which lanes run, nor on how they are grouped.

use super::{Generator, Result, lanes};
use perpetua_ir::ir::*;
use perpetua_ir::ops::BinaryOp;

/// Most shared memory of a generated kernel, in bytes: WGSL's default limit is 16 KiB.
const MOST_BYTES: u32 = 12 << 10;

impl Generator<'_, '_> {
    /// Lanes write to shared memory, meet, read what others wrote, and meet again.
    pub(super) fn exchange(&mut self, k: &mut KernelBuilder) -> Result<()> {
        if self.config.dynamic_shared && self.choices.chance(1, 6) {
            let base = match self.dynamic {
                Some(base) => base,
                None => k.dynamic_shared("dynamic", Type::U32),
            };
            self.dynamic = Some(base);
            return self.pass_on(k, base, &Type::U32);
        }
        let wanted = self.any_type();
        let known = self.tiles.iter().position(|(_, ty)| *ty == wanted);
        let (base, ty) = match known.and_then(|i| self.tiles.get(i)) {
            Some(tile) => tile.clone(),
            None => {
                let lanes = lanes(self.block);
                let bytes = k.kernel_mut().shared_bytes() + wanted.size() * lanes + wanted.align();
                if bytes > MOST_BYTES {
                    return Ok(());
                }
                let name = format!("tile{}", self.tiles.len());
                let base = k.shared(name, Type::array(wanted.clone(), lanes));
                self.tiles.push((base, wanted.clone()));
                (base, wanted)
            }
        };
        self.pass_on(k, base, &ty)
    }

    fn pass_on(&mut self, k: &mut KernelBuilder, base: Base, ty: &Type) -> Result<()> {
        let Some(entry) = self.body.entry else {
            return Ok(());
        };
        let v = self.operand(k, ty)?;
        k.store(Place::element(base, entry.lane), v)?;
        k.effect(DeviceOp::Barrier.into())?;
        let lanes = lanes(self.block) as usize;
        for _ in 0..1 + self.choices.below(2) {
            self.read_tile(k, base, lanes)?;
        }
        if self.choices.chance(1, 3) {
            // Some statements that may read it while nobody writes: no barriers among them.
            let context = self.body.context;
            self.body.context.uniform = false;
            self.body.context.tile = Some((base, lanes));
            self.branch(k)?;
            self.body.context = context;
        }
        k.effect(DeviceOp::Barrier.into())
    }

    /// Reads a shared variable that nobody writes before the next barrier.
    pub(super) fn read_tile(&mut self, k: &mut KernelBuilder, base: Base, lanes: usize) -> Result<()> {
        let at = self.index(k, lanes)?;
        self.define(k, Op::Load(Place::element(base, at), None))?;
        Ok(())
    }

    /// Lanes change shared memory by atomics that commute, between barriers.
    pub(super) fn tally(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let Some(entry) = self.body.entry else {
            return Ok(());
        };
        let s = *self
            .choices
            .pick(&[Scalar::U32, Scalar::I32])
            .unwrap_or(&Scalar::U32);
        let name = format!("tally_{s}");
        let known = k.kernel_mut().shared.iter().position(|v| v.name == name);
        let base = match known {
            Some(i) => Base::Shared(i as u32),
            None => k.shared(name, Type::array(s.into(), 4)),
        };
        let ops = [
            AtomicOp::Add,
            AtomicOp::Min,
            AtomicOp::Max,
            AtomicOp::And,
            AtomicOp::Or,
            AtomicOp::Xor,
        ];
        let op = self.choices.pick(&ops).copied().unwrap_or(AtomicOp::Add);
        let start = self.uniform_operand(k, &s.into())?;
        let zero = self.number(k, 0)?;
        let first = self.emit(k, Op::Binary(BinaryOp::Eq, entry.lane, zero))?;
        k.open_block();
        for i in 0..4 {
            let at = self.number(k, i)?;
            k.store(Place::element(base, at), start)?;
        }
        let then = k.close_block();
        k.push(Inst::If(first, then, Block::default()));
        k.effect(DeviceOp::Barrier.into())?;
        let context = self.body.context;
        self.body.context.uniform = false;
        let c = self.operand(k, &Type::BOOL)?;
        let mark = self.mark();
        k.open_block();
        let v = self.operand(k, &s.into())?;
        let at = self.operand(k, &Type::U32)?;
        let three = self.number(k, 3)?;
        let at = self.emit(k, Op::Binary(BinaryOp::And, at, three))?;
        let sync = Sync {
            order: MemOrder::Relaxed,
            scope: Scope::Block,
        };
        self.emit(k, Op::Atomic(op, Place::element(base, at), v, sync))?;
        let then = k.close_block();
        self.reset(mark);
        k.push(Inst::If(c, then, Block::default()));
        self.body.context = context;
        k.effect(DeviceOp::Barrier.into())?;
        self.read_tile(k, base, 4)?;
        k.effect(DeviceOp::Barrier.into())
    }

    /// Subgroup operations combined so that the result is known whatever the subgroups are.
    pub(super) fn subgroup(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let Some(s) = self.scalar_where(|s| s.is_int() && s.size() >= 4) else {
            return Ok(());
        };
        let ty = Type::from(s);
        match self.choices.below(7) {
            // What this lane and those below add up to, less those below, is its own.
            0 => {
                let (combine, undo) = *self
                    .choices
                    .pick(&[(ReduceOp::Add, BinaryOp::Sub), (ReduceOp::Xor, BinaryOp::Xor)])
                    .unwrap_or(&(ReduceOp::Add, BinaryOp::Sub));
                let v = self.operand(k, &ty)?;
                let with = self.emit(k, Op::subgroup(SubgroupOp::InclusiveScan(combine), v, None))?;
                let without = self.emit(k, Op::subgroup(SubgroupOp::ExclusiveScan(combine), v, None))?;
                self.define(k, Op::Binary(undo, with, without))?;
            }
            // All lanes have the same: so have their minimum, maximum, conjunction, and the first of them.
            1 => {
                let ops = [
                    SubgroupOp::BroadcastFirst,
                    SubgroupOp::Reduce(ReduceOp::Min),
                    SubgroupOp::Reduce(ReduceOp::Max),
                    SubgroupOp::Reduce(ReduceOp::And),
                    SubgroupOp::Reduce(ReduceOp::Or),
                ];
                let op = self
                    .choices
                    .pick(&ops)
                    .copied()
                    .unwrap_or(SubgroupOp::BroadcastFirst);
                let v = self.uniform_operand(k, &ty)?;
                self.define(k, Op::subgroup(op, v, None))?;
            }
            2 => {
                let lane = self.emit(k, Op::Builtin(Builtin::SubgroupLane))?;
                let v = self.operand(k, &ty)?;
                self.define(k, Op::subgroup(SubgroupOp::Shuffle, v, Some(lane)))?;
            }
            3 => {
                let ops = [
                    SubgroupOp::ShuffleXor,
                    SubgroupOp::ShuffleUp,
                    SubgroupOp::ShuffleDown,
                ];
                let op = self.choices.pick(&ops).copied().unwrap_or(SubgroupOp::ShuffleXor);
                let none = self.number(k, 0)?;
                let v = self.operand(k, &ty)?;
                self.define(k, Op::subgroup(op, v, Some(none)))?;
            }
            4 => {
                let op = *self
                    .choices
                    .pick(&[SubgroupOp::Any, SubgroupOp::All])
                    .unwrap_or(&SubgroupOp::Any);
                let c = self.uniform_operand(k, &Type::BOOL)?;
                self.define(k, Op::subgroup(op, c, None))?;
            }
            // As many lanes as the sum of their ones.
            5 => {
                let c = self.operand(k, &Type::BOOL)?;
                let ballot = self.emit(k, Op::subgroup(SubgroupOp::Ballot, c, None))?;
                let mut count = self.number(k, 0)?;
                for i in 0..4 {
                    let word = self.emit(k, Op::Extract(ballot, i))?;
                    let ones = self.emit(k, Op::Unary(perpetua_ir::ops::UnaryOp::CountOnes, word))?;
                    count = self.emit(k, Op::Binary(BinaryOp::Add, count, ones))?;
                }
                let one = self.emit(k, Op::Cast(Scalar::U32, c))?;
                let sum = self.emit(k, Op::subgroup(SubgroupOp::Reduce(ReduceOp::Add), one, None))?;
                self.define(k, Op::Binary(BinaryOp::Eq, count, sum))?;
            }
            // A lane's index is below the number of lanes.
            _ => {
                let lane = self.emit(k, Op::Builtin(Builtin::SubgroupLane))?;
                let size = self.emit(k, Op::Builtin(Builtin::SubgroupSize))?;
                self.define(k, Op::Binary(BinaryOp::Lt, lane, size))?;
            }
        }
        Ok(())
    }
}
