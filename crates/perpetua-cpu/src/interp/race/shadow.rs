//! What is remembered of each piece of memory: who accessed it last, as far as that can still matter. Knows nothing of
//! clocks but whether one access is known to another's lane.
//!
//! The accesses remembered are those that nothing has ordered yet. Without ordering atomics and fences in the kernel
//! (`bounded`) lanes of different groups never know of each other, and a few accesses stand for all: two of different
//! groups meet any later access of whatever group, and two lanes of one group meet any access before its next
//! barrier.

use super::clock::Time;
use crate::interp::error::AccessKind;
use perpetua_ir::ir::Scope;

/// One access, as remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) block: u32,
    pub(crate) lane: u32,
    pub(crate) time: Time,
    pub(crate) pc: u32,
    pub(crate) kind: AccessKind,
    /// Whether it changed anything: a compare-and-exchange may fail.
    pub(crate) writes: bool,
    /// Scope of an atomic access.
    pub(crate) scope: Option<Scope>,
}

impl Stamp {
    /// Whether the two may not meet in any order: one writes, and they are not atomic to each other.
    fn conflicts(&self, other: &Stamp) -> bool {
        if !self.writes && !other.writes {
            return false;
        }
        match (self.scope, other.scope) {
            (Some(a), Some(b)) => self.block != other.block && (a == Scope::Block || b == Scope::Block),
            _ => true,
        }
    }

    /// What has to be the same for one access to stand for another.
    fn class(&self) -> (bool, Option<Scope>) {
        (self.writes, self.scope)
    }
}

/// Accesses to one grain of memory that later ones may still race with.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// The last plain store: whatever was before it, it knew of.
    store: Option<Stamp>,
    loads: Vec<Stamp>,
    atomics: Vec<Stamp>,
    /// Whether one of the atomics is atomic to its own block alone.
    narrow: bool,
}

impl Cell {
    /// Remembers an access; gives an earlier one that it races with. `known` tells whether an earlier access is known to
    /// the lane that makes this one.
    pub(super) fn access(
        &mut self,
        new: Stamp,
        bounded: bool,
        known: impl Fn(&Stamp) -> bool,
    ) -> Option<Stamp> {
        let races = |old: &&Stamp| old.conflicts(&new) && !known(old);
        if let Some(race) = self.store.iter().find(races) {
            return Some(*race);
        }
        if new.writes
            && let Some(race) = self.loads.iter().find(races)
        {
            return Some(*race);
        }
        let narrow = new.scope == Some(Scope::Block);
        if (new.scope.is_none() || narrow || self.narrow)
            && let Some(race) = self.atomics.iter().find(races)
        {
            return Some(*race);
        }
        match new.scope {
            None if new.writes => {
                // Whoever does not know of this store races with it, so what it knew of need not be kept.
                *self = Cell {
                    store: Some(new),
                    ..Cell::default()
                };
            }
            None => remember(&mut self.loads, new, bounded, known),
            Some(_) => {
                self.narrow |= narrow;
                remember(&mut self.atomics, new, bounded, known);
            }
        }
        None
    }
}

fn remember(stamps: &mut Vec<Stamp>, new: Stamp, bounded: bool, known: impl Fn(&Stamp) -> bool) {
    let class = new.class();
    // Seldom enough to cost nothing where many lanes meet, often enough where they come again.
    if bounded || stamps.len().is_power_of_two() {
        stamps.retain(|old| !(old.class() == class && known(old)));
    }
    if bounded {
        let alike = || stamps.iter().filter(|old| old.class() == class);
        let blocks = alike().any(|a| alike().any(|b| a.block != b.block));
        if blocks || alike().count() >= 2 && alike().all(|old| old.block == new.block) {
            return;
        }
    }
    stamps.push(new);
}

const PAGE: usize = 1024;

/// A stretch of memory: a cell for each grain, made when it is first accessed.
pub(super) struct Shadow {
    grain: u64,
    pages: Vec<Option<Box<[Cell]>>>,
}

impl Shadow {
    /// For `bytes` bytes, watched in pieces of `grain`.
    pub(super) fn new(bytes: u64, grain: u32) -> Shadow {
        let cells = bytes.div_ceil(grain.into()) as usize;
        Shadow {
            grain: grain.into(),
            pages: vec![None; cells.div_ceil(PAGE)],
        }
    }

    /// Remembers an access to `size` bytes from `offset` on; gives the first earlier access that it races with, and the byte.
    pub(super) fn access(
        &mut self,
        (offset, size): (u64, u32),
        new: Stamp,
        bounded: bool,
        known: impl Fn(&Stamp) -> bool,
    ) -> Option<(Stamp, u64)> {
        let (first, last) = (offset / self.grain, (offset + u64::from(size) - 1) / self.grain);
        for cell in first..=last {
            let (page, at) = (cell as usize / PAGE, cell as usize % PAGE);
            let page = self.pages.get_mut(page)?;
            let cells = page.get_or_insert_with(|| vec![Cell::default(); PAGE].into_boxed_slice());
            if let Some(race) = cells.get_mut(at)?.access(new, bounded, &known) {
                return Some((race, (cell * self.grain).max(offset)));
            }
        }
        None
    }
}
