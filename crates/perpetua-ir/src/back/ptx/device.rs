//! What lanes ask of their device. Exchanges among the lanes of a warp are in `subgroup`.

use super::Renderer;
use super::emit::{Leaf, emit};
use crate::ir::{DeviceOp, Scalar, Value};

impl Renderer<'_> {
    /// Asks, for the value `v` or for none; gives the scalars of the result.
    pub(super) fn device(&mut self, op: DeviceOp, args: &[Value], v: Option<Value>) -> Vec<Leaf> {
        let leaves: Vec<Leaf> = args.iter().map(|v| self.leaf(*v)).collect();
        let first = leaves.first().copied().unwrap_or(Leaf::Imm(0));
        match op {
            DeviceOp::Subgroup(op) => {
                let s = args.first().map_or(Scalar::U32, |v| self.scalar_of(*v));
                return self.subgroup(op, s, first, leaves.get(1).copied());
            }
            DeviceOp::Matrix(op) => return self.matrix(op, args),
            DeviceOp::Stage(op) => return self.stage(op, args, v),
            DeviceOp::Clock => {
                let d = self.out.wide();
                emit!(self, "mov.u64 {d}, %globaltimer");
                return vec![d];
            }
            DeviceOp::CatchFault => {
                let d = self.out.word();
                let (caught, dead) = (self.caught_register(), self.dead_register());
                emit!(self, "mov.u32 {d}, {caught}");
                emit!(self, "mov.u32 {caught}, 0");
                emit!(self, "mov.pred {dead}, 0");
                return vec![d];
            }
            DeviceOp::IsDead => {
                // Where nothing keeps it, a lane that faulted is not here.
                let Some(dead) = self.dead else {
                    return vec![Leaf::Imm(0)];
                };
                let d = self.out.pred();
                self.copy(d, dead, Scalar::Bool);
                return vec![d];
            }
            DeviceOp::FastExp2 => {
                let (x, d) = (self.in_register(first, Scalar::F32), self.out.word());
                emit!(self, "ex2.approx.ftz.f32 {d}, {x}");
                return vec![d];
            }
            DeviceOp::Barrier => emit!(self, "bar.sync 0"),
            DeviceOp::Fence(scope) => emit!(self, "fence.acq_rel.{}", super::atomic::scope(scope)),
            DeviceOp::Converge => self.converge(),
            DeviceOp::Meet => {
                emit!(self, "barrier.sync 0");
                self.met();
            }
            DeviceOp::Nap => emit!(self, "nanosleep.u32 {first}"),
        }
        Vec::new()
    }
}
