//! The machines of one block, where each subgroup has its own: in kernels that stay, subgroups wait for each other by what they
//! write, and must not go in step. They share shared memory and meet at barriers. Knows nothing of operations.

use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ops::eval::Line;

/// What the machines of a block have in common.
pub(in super::super) struct Team {
    shared: UnsafeCell<Vec<Line>>,
    state: Mutex<State>,
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
}

impl Team {
    /// Of so many machines, with so many lines of shared memory, all zero.
    pub(in super::super) fn new(machines: usize, lines: usize) -> Team {
        Team {
            shared: UnsafeCell::new(vec![Line::ZERO; lines]),
            state: Mutex::new(State {
                alive: machines,
                here: 0,
                met: 0,
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

    /// A machine has ended, for which nobody waits; whether it was the last one.
    pub(in super::super) fn leave(&self) -> bool {
        let mut state = self.state();
        state.alive -= 1;
        state.meet();
        state.alive == 0
    }
}

impl State {
    fn meet(&mut self) -> bool {
        let all = self.here > 0 && self.here == self.alive;
        if all {
            self.here = 0;
            self.met += 1;
        }
        all
    }
}
