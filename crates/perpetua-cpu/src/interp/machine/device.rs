//! What lanes ask of their device. Exchanges among the lanes of a subgroup are in `subgroup`.

use std::sync::atomic::Ordering;

use super::super::error::InterpError;
use super::super::launch::Launch;
use super::super::mask;
use super::super::program::Reg;
use super::super::race::Detector;
use super::affine::Form;
use super::{Machine, Next};
use crate::eval;
use perpetua_ir::ir::{DeviceOp, Scalar};
use perpetua_ir::ops::UnaryOp;

impl Machine {
    /// `s`, `args` and `out` as [`Code::Device`](super::Code::Device) has them.
    pub(super) fn device(
        &mut self,
        launch: &Launch<'_>,
        op: DeviceOp,
        s: Scalar,
        args: &[Reg],
        out: &[Reg],
        races: Option<&mut Detector>,
    ) -> Result<Next, Box<InterpError>> {
        match op {
            DeviceOp::Subgroup(_) | DeviceOp::Matrix(_) => {
                self.exchange_values(launch.subgroup as usize, op, s, args, out);
            }
            DeviceOp::Stage(op) => return self.stage(launch, op, args, out),
            DeviceOp::FastExp2 => {
                let out = out.first().copied().unwrap_or_default();
                let mut result = self.take(out);
                for lane in mask::lanes(&self.active) {
                    let x = args.first().map_or(0, |reg| self.value(*reg, lane));
                    let power = eval::eval_unary(UnaryOp::Exp2, Scalar::F32, x);
                    eval::put(&mut result, 4, lane, power);
                }
                self.put(out, result);
            }
            DeviceOp::IsDead => {
                let out = out.first().copied().unwrap_or_default();
                let mut result = self.take(out);
                for lane in mask::lanes(&self.active) {
                    eval::put(&mut result, 1, lane, mask::has(&self.dead, lane).into());
                }
                self.put(out, result);
            }
            DeviceOp::Clock => {
                let out = out.first().copied().unwrap_or_default();
                self.set(out, Form::Uniform(launch.clock()));
            }
            // Where the lane has faulted, as its launch numbers sites, plus one; it has no longer faulted then. Zero: nowhere.
            DeviceOp::CatchFault => {
                let out = out.first().copied().unwrap_or_default();
                let mut result = self.take(out);
                for lane in mask::lanes(&self.active) {
                    let number = self.caught.get_mut(lane).map_or(0, std::mem::take);
                    let site = number.checked_add(launch.site_base).filter(|_| number != 0);
                    eval::put(&mut result, 4, lane, site.unwrap_or(0).into());
                    mask::remove(&mut self.dead, lane);
                    if number != 0
                        && let (Some((_, fault)), Some(sink)) = (self.fault.take(), launch.caught)
                    {
                        sink(fault);
                    }
                }
                self.put(out, result);
            }
            // Lanes of a subgroup see what they all have done. (They are never apart but by conditions.)
            DeviceOp::Converge => {
                if let Some(races) = races {
                    let lanes: Vec<u32> = self.numbers().collect();
                    let same = |a: &u32, b: &u32| a / launch.subgroup == b / launch.subgroup;
                    lanes.chunk_by(same).for_each(|subgroup| races.converge(subgroup));
                }
            }
            // The group waits for others: its turn is over.
            DeviceOp::Nap => self.naps = true,
            DeviceOp::Barrier | DeviceOp::Meet => return self.barrier(launch, races),
            DeviceOp::Fence(scope) => {
                std::sync::atomic::fence(Ordering::AcqRel);
                if let Some(races) = races {
                    races.fence(scope, self.numbers());
                }
            }
        }
        Ok(Next::On)
    }
}
