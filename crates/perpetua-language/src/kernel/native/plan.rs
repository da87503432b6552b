//! A launch cut into boxes of lanes, each with the body that may run it by what the IR's analysis proves of it. Proves nothing.

use std::sync::Arc;

use perpetua_cpu::footprint::{
    Conditions, Footprint as Analysis, Given, Launch, Piece, Reached, Space, Standing,
};
use perpetua_device::Overlap;
use perpetua_device::native::{Footprint, NativeArg, NativeLaunch};
use perpetua_ir::front::rust::{COMPUTED, INSIDE};

use super::decide::{Recorded, opening};
use super::launch::Slabs;
use super::program::Program;
use super::view::Extent;

/// A box of lanes and what was proven of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) space: Space,
    pub(super) how: How,
    /// What the conditions are there.
    pub(super) conditions: Recorded,
}

/// How the lanes of a box run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Not all accesses are proven.
    Checked,
    /// There are none, nor anything else to be seen.
    Idle,
    /// All are, under the conditions.
    Fast,
    /// All are, the conditions are known but for those that are open by this number, a stencil's cell is computed, and no
    /// buffer that is stored to has bytes of another.
    Told(usize),
}

/// A launch as boxes.
pub(super) struct Plan {
    pub(super) parts: Vec<Part>,
    /// All accesses; `None` where they are not known.
    pub(super) reaches: Option<Vec<Reached>>,
}

/// Cuts `whole`, all lanes of a launch, into boxes.
pub(super) fn plan<P: Program>(launch: &NativeLaunch<'_>, args: &[NativeArg<'_>], whole: Space) -> Plan {
    let Some((analysis, pieces)) = pieces::<P>(launch, args) else {
        return Plan {
            parts: vec![Part {
                space: whole,
                how: How::Checked,
                conditions: Recorded { known: 0, truth: 0 },
            }],
            reaches: None,
        };
    };
    let mut parts: Vec<Part> = pieces.iter().map(part::<P>).collect();
    let reaches = Reached::of(&pieces);
    let overlaps = launch.overlaps.iter();
    let overlaps = overlaps.map(|Overlap { first, second, same }| ([*first, *second], *same));
    match analysis.standing(&reaches, overlaps) {
        Standing::Shared => {
            for part in parts.iter_mut().filter(|part| part.how != How::Idle) {
                part.how = How::Checked;
            }
        }
        // What is told apart must be apart.
        Standing::Overlapping => {
            for part in &mut parts {
                if let How::Told(_) = part.how {
                    part.how = How::Fast;
                }
            }
        }
        Standing::Apart => {}
    }
    Plan {
        parts,
        reaches: Some(reaches),
    }
}

/// The launch as the IR's analysis sees it; `None` where that does not know the kernel.
fn pieces<P: Program>(
    launch: &NativeLaunch<'_>,
    args: &[NativeArg<'_>],
) -> Option<(&'static Analysis, Arc<[Piece]>)> {
    let analysis = P::kernel().footprint(P::CONDITIONS, P::ACCESSES)?;
    let given = args.iter().map(|arg| match *arg {
        NativeArg::Buffer { len, .. } => Given::Elements(len as u64),
        NativeArg::Value(bytes) => Given::Value(bytes),
    });
    let launch = Launch {
        grid: launch.grid.to_array(),
        block: launch.block.to_array(),
        dynamic_shared_bytes: launch.shared_bytes,
        // No native body asks for it.
        subgroup_size: 1,
        args: &given.collect::<Vec<_>>(),
    };
    Some((analysis, analysis.plan(&launch, P::MERGED)?))
}

/// A piece with how it runs.
fn part<P: Program>(piece: &Piece) -> Part {
    let Conditions { met, known, truth } = piece.conditions;
    let holds = |condition: u32| met & !(known & truth) & 1 << condition == 0;
    // Fast bodies look for neighbours where they are without an edge's rule.
    let inside = holds(INSIDE);
    let how = match opening(P::CONDITIONS, met & !known) {
        _ if !piece.proven || !inside => How::Checked,
        _ if piece.accesses.is_empty() && !piece.stops => How::Idle,
        Some(open) if holds(COMPUTED) => How::Told(open),
        _ => How::Fast,
    };
    Part {
        space: piece.space,
        how,
        conditions: Recorded { known, truth },
    }
}

impl Plan {
    /// What the launch reaches, by slab; `None` where that is not known.
    pub(super) fn footprints(&self, extents: &[Option<Extent>], slabs: &Slabs) -> Option<Vec<Footprint>> {
        let footprint = |reached: &Reached| {
            let extent = extents.get(reached.param as usize)?.as_ref()?;
            let reach = reached.by_slab(slabs.axis, slabs.lanes, extent.element, extent.bytes)?;
            let start = i64::try_from(extent.start).ok()?;
            Some(Footprint {
                stores: reach.stores,
                slabs: reach.rows,
                low: start.checked_add(reach.low)?,
                high: start.checked_add(reach.high)?,
                stride: reach.stride,
            })
        };
        self.reaches.as_ref()?.iter().map(footprint).collect()
    }
}
