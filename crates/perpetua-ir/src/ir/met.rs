//! Loads of a block's memory that give all its lanes the same value.

use super::kernel::{Base, Block, DeviceOp, Effect, Inst, Op, Stmt};
use super::types::Type;

// Most scalars of a value that is loaded so: WGSL loads some one by one.
const MOST_SCALARS: usize = 32;

impl Block {
    /// Numbers of the statements that load from the block's memory between two barriers of this list, with nothing in between by which a
    /// lane changes memory that others see. As all lanes come to both barriers together, all of them load while nobody writes: from one
    /// place they load one value. `values`: the types of the body's values.
    pub fn met_loads(&self, values: &[Type]) -> Vec<usize> {
        let mut all = Vec::new();
        // Loads since the last barrier, if nothing has interfered.
        let mut since: Option<Vec<usize>> = None;
        for (i, stmt) in self.0.iter().enumerate() {
            match &stmt.inst {
                Inst::Do(Effect::Device(DeviceOp::Barrier, _)) => {
                    all.extend(since.replace(Vec::new()).unwrap_or_default());
                }
                Inst::Let(v, Op::Load(place, None)) if matches!(place.base, Base::Shared(_)) => {
                    let ty = values.get(v.0 as usize);
                    if ty.is_none_or(|ty| ty.leaf_count() > MOST_SCALARS) {
                        continue;
                    }
                    since.iter_mut().for_each(|since| since.push(i));
                }
                _ if !is_quiet(stmt) => since = None,
                _ => {}
            }
        }
        all
    }
}

// Whether other lanes notice nothing of it, and the lane goes on with the next statement.
fn is_quiet(stmt: &Stmt) -> bool {
    match &stmt.inst {
        Inst::Let(_, op) => !matches!(op, Op::Call(..) | Op::Atomic(..) | Op::CompareExchange { .. }),
        Inst::Do(Effect::Store(place, ..)) => matches!(place.base, Base::Local(_)),
        _ => false,
    }
}
