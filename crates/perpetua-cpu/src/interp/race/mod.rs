//! The race detector: sees every access, barrier, fence and ordering atomic of a launch, and finds two conflicting accesses
//! that nothing orders. Exact for the accesses that it sees: it reports races of this run, and nothing that is ordered.
//!
//! Races are looked for among lanes, of one block and of different ones, in shared and in global memory. In
//! lockstep two lanes that write one place in one statement race, also if they write the same value.

mod clock;
mod shadow;
#[cfg(test)]
pub(crate) mod trace;

use std::collections::HashMap;

use super::error::AccessKind;
use super::launch::Launch;
use super::program::RegionKind;
use clock::{Clock, Published};
use perpetua_ir::ir::{Scope, Sync};
use shadow::Shadow;
pub(super) use shadow::Stamp;

/// One access of one lane of the current block.
#[derive(Clone, Copy)]
pub(super) struct Touch {
    pub(super) region: u32,
    pub(super) offset: u64,
    pub(super) size: u32,
    pub(super) kind: AccessKind,
    pub(super) scope: Option<Scope>,
    pub(super) lane: u32,
    pub(super) pc: u32,
}

/// A race, as found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) region: u32,
    /// Byte in the region.
    pub(super) byte: u64,
    pub(super) first: Stamp,
    pub(super) second: Stamp,
}

/// Where a region lies in what is watched.
#[derive(Clone, Copy)]
enum Watched {
    /// Nobody can write there.
    No,
    /// In this stretch of global memory, this far from its start.
    Global(usize, u64),
    /// In the group's shared memory, this far from its start.
    Group(u64),
}

/// A block in progress.
struct Group {
    clock: Clock,
    shadow: Shadow,
    published: HashMap<u64, Published>,
}

/// All that is remembered of one launch.
pub(super) struct Detector {
    regions: Vec<Watched>,
    global: Vec<Shadow>,
    published: HashMap<(usize, u64), Published>,
    groups: HashMap<u32, Group>,
    /// The group whose accesses come next.
    current: u32,
    /// Versions given to published knowledge so far.
    versions: u64,
    /// Whether nothing but barriers orders accesses.
    bounded: bool,
    group_bytes: u64,
    group_grain: u32,
}

impl Detector {
    pub(super) fn new(launch: &Launch<'_>) -> Detector {
        let program = launch.program;
        let mut regions = vec![Watched::No; program.regions.len()];
        // Buffers may be parts of one allocation, or one part twice: those that touch are one stretch.
        let mut buffers: Vec<(u64, u64, usize, bool)> = Vec::new();
        let mut group_grain = 8;
        for (i, region) in program.regions.iter().enumerate() {
            match region.kind {
                RegionKind::Buffer { param, writable } => {
                    let buffer = launch.buffer(param);
                    let start = buffer.ptr.addr() as u64;
                    if buffer.len > 0 {
                        buffers.push((start, start + buffer.len as u64, i, writable));
                    }
                }
                RegionKind::Shared { offset, .. } => {
                    group_grain = group_grain.min(region.grain);
                    regions[i] = Watched::Group(offset.into());
                }
                RegionKind::Dynamic => {
                    group_grain = group_grain.min(region.grain);
                    regions[i] = Watched::Group(launch.dynamic_offset() as u64);
                }
                RegionKind::Constant { .. } => {}
            }
        }
        buffers.sort_unstable();
        let mut global = Vec::new();
        let mut rest = buffers.as_slice();
        while let Some((start, ..)) = rest.first().copied() {
            let mut end = start;
            let count = rest
                .iter()
                .take_while(|(from, to, ..)| {
                    let inside = end == start || *from < end;
                    end = if inside { end.max(*to) } else { end };
                    inside
                })
                .count();
            let (stretch, others) = rest.split_at(count);
            rest = others;
            if !stretch.iter().any(|(.., writable)| *writable) {
                continue;
            }
            let grain = stretch.iter().fold(8, |grain, (from, _, i, _)| {
                let from = (from - start) as u32 | 8;
                grain
                    .min(program.regions[*i].grain)
                    .min(1 << from.trailing_zeros())
            });
            for (from, _, i, _) in stretch {
                regions[*i] = Watched::Global(global.len(), from - start);
            }
            global.push(Shadow::new(end - start, grain));
        }
        Detector {
            regions,
            global,
            published: HashMap::new(),
            groups: HashMap::new(),
            current: 0,
            versions: 0,
            bounded: !program.synchronises,
            group_bytes: launch.shared_bytes() as u64,
            group_grain,
        }
    }

    /// What follows is done by this block.
    pub(super) fn enter(&mut self, block: u64) {
        self.current = block as u32;
        let (bytes, grain) = (self.group_bytes, self.group_grain);
        self.groups.entry(self.current).or_insert_with(|| Group {
            clock: Clock::new(block as u32),
            shadow: Shadow::new(bytes, grain),
            published: HashMap::new(),
        });
    }

    /// This block is done.
    pub(super) fn leave(&mut self, block: u64) {
        self.groups.remove(&(block as u32));
    }

    fn see(&mut self, touch: Touch, writes: bool) -> Result<(), Box<Found>> {
        #[cfg(test)]
        trace::note(self.current, &touch, writes);
        let Some(group) = self.groups.get_mut(&self.current) else {
            return Ok(());
        };
        let second = Stamp {
            block: self.current,
            lane: touch.lane,
            time: group.clock.now(),
            pc: touch.pc,
            kind: touch.kind,
            writes,
            scope: touch.scope,
        };
        let clock = &group.clock;
        let known = |old: &Stamp| clock.knows(touch.lane, (old.block, old.lane, old.time));
        let (shadow, start) = match self.regions[touch.region as usize] {
            Watched::No => return Ok(()),
            Watched::Global(stretch, start) => (&mut self.global[stretch], start),
            Watched::Group(start) => (&mut group.shadow, start),
        };
        let range = (start + touch.offset, touch.size);
        match shadow.access(range, second, self.bounded, known) {
            None => Ok(()),
            Some((first, byte)) => Err(Box::new(Found {
                region: touch.region,
                byte: byte - start,
                first,
                second,
            })),
        }
    }

    /// A plain access.
    pub(super) fn access(&mut self, touch: Touch) -> Result<(), Box<Found>> {
        self.see(touch, touch.kind == AccessKind::Store)
    }

    /// An atomic access; `wrote` is whether it changed the place.
    pub(super) fn atomic(&mut self, touch: Touch, sync: Sync, wrote: bool) -> Result<(), Box<Found>> {
        self.see(touch, wrote)?;
        if self.bounded {
            return Ok(());
        }
        let Some(group) = self.groups.get_mut(&self.current) else {
            return Ok(());
        };
        let place = match self.regions[touch.region as usize] {
            Watched::No => return Ok(()),
            Watched::Global(stretch, start) => {
                self.published.entry((stretch, start + touch.offset)).or_default()
            }
            Watched::Group(start) => group.published.entry(start + touch.offset).or_default(),
        };
        let reads = touch.kind != AccessKind::AtomicStore;
        self.versions += 1;
        group
            .clock
            .atomic(touch.lane, sync, (reads, wrote), place, self.versions);
        Ok(())
    }

    /// All lanes of the current block are at a barrier.
    pub(super) fn barrier(&mut self) {
        if let Some(group) = self.groups.get_mut(&self.current) {
            group.clock.barrier();
        }
    }

    /// These lanes of a subgroup wait for each other.
    pub(super) fn converge(&mut self, lanes: &[u32]) {
        if let Some(group) = self.groups.get_mut(&self.current) {
            group.clock.converge(lanes);
        }
    }

    /// These lanes execute a fence.
    pub(super) fn fence(&mut self, scope: Scope, lanes: impl Iterator<Item = u32>) {
        if let Some(group) = self.groups.get_mut(&self.current) {
            lanes.for_each(|lane| group.clock.fence(scope, lane));
        }
    }
}
