//! Loads of a block's memory that give all its lanes the same value.

use super::types::Type;
use super::{Base, Block, DeviceOp, Effect, Inst, Op, Stmt};

// Most scalars of a value that is loaded so: WGSL loads some one by one.
const MOST_SCALARS: usize = 32;

/// Statements between two barriers of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// Numbers of the two barriers.
    pub between: [usize; 2],
    /// Numbers of the loads.
    pub loads: Vec<usize>,
}

impl Block {
    /// Numbers of the statements that load from the block's memory between two barriers of this list, with nothing in between by which a
    /// lane changes memory that others see. As all lanes come to both barriers together, all of them load while nobody writes: from one
    /// place they load one value. `values`: the types of the body's values.
    pub fn met_loads(&self, values: &[Type]) -> Vec<usize> {
        let met = self.met(values).into_iter();
        met.flat_map(|met| met.loads).collect()
    }

    /// The same, with the barriers, where there are loads between them.
    pub fn met(&self, values: &[Type]) -> Vec<Met> {
        let mut all = Vec::new();
        // The last barrier and the loads since then, if nothing has interfered.
        let mut since: Option<(usize, Vec<usize>)> = None;
        for (i, stmt) in self.0.iter().enumerate() {
            match &stmt.inst {
                Inst::Do(Effect::Device(DeviceOp::Barrier, _)) => {
                    if let Some((first, loads)) = since.replace((i, Vec::new()))
                        && !loads.is_empty()
                    {
                        all.push(Met {
                            between: [first, i],
                            loads,
                        });
                    }
                }
                Inst::Let(v, Op::Load(place, None)) if matches!(place.base, Base::Shared(_)) => {
                    let ty = values.get(v.0 as usize);
                    if ty.is_none_or(|ty| ty.leaf_count() > MOST_SCALARS) {
                        continue;
                    }
                    since.iter_mut().for_each(|(_, loads)| loads.push(i));
                }
                _ if !is_quiet(stmt, 0) => since = None,
                _ => {}
            }
        }
        all
    }
}

// Whether other lanes notice nothing of it, and the lane goes on with the next statement of the list, out of `depth` labelled blocks. A lane
// that faults comes to the next barrier, too, or counts as arrived.
fn is_quiet(stmt: &Stmt, depth: u32) -> bool {
    let are_quiet = |block: &Block, depth| block.0.iter().all(|stmt| is_quiet(stmt, depth));
    match &stmt.inst {
        Inst::Let(_, op) => !matches!(op, Op::Call(..) | Op::Atomic(..) | Op::CompareExchange { .. }),
        Inst::Do(Effect::Store(place, ..)) => matches!(place.base, Base::Local(_)),
        Inst::Do(Effect::Fault(..)) => true,
        Inst::If(_, a, b) => are_quiet(a, depth) && are_quiet(b, depth),
        Inst::Labeled(inner) => are_quiet(inner, depth + 1),
        Inst::Break(out) => *out < depth,
        _ => false,
    }
}
