//! The machines of one block, where each subgroup has its own: in kernels that stay, subgroups wait for each other by what they
//! write, and must not go in step; so do teams of lanes that multiply in stages. They share shared memory and meet at barriers. Knows nothing of operations.

use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::eval::Line;
use perpetua_ir::ir::Stages;

/// What the machines of a block have in common.
pub(in super::super) struct Team {
    shared: UnsafeCell<Vec<Line>>,
    state: Mutex<State>,
}

/// How an operation on stages went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Staged {
    Done,
    /// Its stage is not full yet, or not free.
    Waits,
    /// So it will be for ever: all others wait, too, or have ended.
    Never,
}

// SAFETY: the memory is reached through its address alone, by accesses that are atomic in effect (`memory`), and never grows.
unsafe impl Sync for Team {}

struct State {
    /// Machines that have not ended.
    alive: usize,
    /// Machines that are at the barrier.
    here: usize,
    /// Barriers that all have met at.
    met: u64,
    /// What is in each stage, as numbers: of the left factor row by row, of the others column by column; and what came with the first one to stay.
    stages: Vec<Vec<f32>>,
    kept: Vec<f32>,
    /// How many times a stage was filled, and how many each team has multiplied, and in a chain weighed.
    filled: u64,
    multiplied: Vec<[u64; 2]>,
    /// Machines that have found nothing to do since one did something.
    idle: Vec<usize>,
}

impl Team {
    /// Of so many machines, with so many lines of shared memory, all zero, and empty stages.
    pub(in super::super) fn new(machines: usize, lines: usize, stages: Option<&Stages>) -> Team {
        Team {
            shared: UnsafeCell::new(vec![Line::ZERO; lines]),
            state: Mutex::new(State {
                alive: machines,
                here: 0,
                met: 0,
                stages: vec![Vec::new(); stages.map_or(0, |stages| stages.count as usize)],
                kept: Vec::new(),
                filled: 0,
                multiplied: stages.map_or_else(Vec::new, |stages| {
                    // Only in a chain what is weighed has turns of its own; what has none nobody waits for.
                    let weighed = if stages.third.is_some() { 0 } else { u64::MAX };
                    vec![[0, weighed]; stages.consumers() as usize]
                }),
                idle: Vec::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where shared memory begins.
    pub(super) fn memory(&self) -> *mut u8 {
        // SAFETY: nobody holds a reference to the vector beyond this line, here or elsewhere.
        unsafe { (*self.shared.get()).as_mut_ptr().cast() }
    }

    /// A machine comes to a barrier: its number, and whether all have come.
    pub(super) fn arrive(&self) -> (u64, bool) {
        let mut state = self.state();
        state.here += 1;
        let barrier = state.met;
        (barrier, state.meet())
    }

    /// Whether all have come to a barrier.
    pub(super) fn has_met(&self, barrier: u64) -> bool {
        self.state().met > barrier
    }

    /// The team `who` fills a stage, if one is free, with the `content` and, if it is the first one, what stays.
    pub(super) fn fill(
        &self,
        who: usize,
        kept: impl FnOnce() -> Vec<f32>,
        content: impl FnOnce() -> Vec<f32>,
    ) -> Staged {
        let mut state = self.state();
        let behind = state.multiplied.iter().flatten().min().copied().unwrap_or(0);
        let count = state.stages.len() as u64;
        if state.filled - behind >= count.max(1) {
            return state.wait(who);
        }
        let at = (state.filled % count.max(1)) as usize;
        if let Some(stage) = state.stages.get_mut(at) {
            *stage = content();
        }
        if state.filled == 0 {
            state.kept = kept();
        }
        state.filled += 1;
        state.idle.clear();
        Staged::Done
    }

    /// The team `who`, which is number `consumer` of those that multiply, multiplies what stays and its next stage, or weighs its next one, if that is full; whether it goes on to the one behind then.
    pub(super) fn multiply(
        &self,
        who: usize,
        consumer: usize,
        (weighs, ends): (bool, bool),
        multiply: impl FnOnce(&[f32], &[f32]),
    ) -> Staged {
        let mut state = self.state();
        let which = usize::from(weighs);
        let next = state.multiplied.get(consumer).map_or(0, |next| next[which]);
        if next >= state.filled {
            return state.wait(who);
        }
        let at = (next % state.stages.len().max(1) as u64) as usize;
        if let Some(stage) = state.stages.get(at) {
            multiply(&state.kept, stage);
        }
        if let Some(next) = state.multiplied.get_mut(consumer) {
            next[which] += u64::from(ends);
        }
        state.idle.clear();
        Staged::Done
    }

    /// A machine has ended, for which nobody waits; whether it was the last one.
    pub(in super::super) fn leave(&self) -> bool {
        let mut state = self.state();
        state.alive -= 1;
        state.idle.clear();
        state.meet();
        state.alive == 0
    }
}

impl State {
    /// A machine waits.
    fn wait(&mut self, who: usize) -> Staged {
        if !self.idle.contains(&who) {
            self.idle.push(who);
        }
        match self.idle.len() < self.alive {
            true => Staged::Waits,
            false => Staged::Never,
        }
    }

    fn meet(&mut self) -> bool {
        let all = self.here > 0 && self.here == self.alive;
        if all {
            self.here = 0;
            self.met += 1;
        }
        all
    }
}
