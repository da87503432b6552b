//! How those who wait move a simulation on. Must not know what they wait for.

use std::task::Waker;
use std::time::Instant;

use super::core::Core;
use super::simulation::{Next, Planned};

impl Core {
    /// Whether those who wait run everything.
    pub(super) fn is_simulated(&self) -> bool {
        self.host.simulator.is_some()
    }

    /// Does what a simulation does next, now or, where it `waits`, later; false where there is nothing.
    fn step(&self, waits: bool) -> bool {
        let Some(simulator) = &self.host.simulator else {
            return false;
        };
        let (next, has_work) = self.host.timer.planned();
        match simulator.choose(&Planned { next, has_work }, waits) {
            Next::Run(actor, most) => self.engine.run(actor, most),
            Next::Job => {
                if let Some(job) = self.host.timer.take_due(self.host.time.now()) {
                    self.do_job(job);
                }
            }
            Next::Waited => {}
            Next::Nothing => return false,
        }
        true
    }

    /// A step, where this is a simulation; then a look at what `waker`'s task waits for.
    pub(super) fn step_for(&self, waker: &Waker) {
        if self.step(true) {
            waker.wake_by_ref();
        }
    }

    /// A step; false at `deadline`, which comes at once where there is nothing to do before.
    pub(super) fn step_until(&self, deadline: Instant) -> bool {
        let time = &self.host.time;
        if !self.step(true) {
            time.move_to(deadline);
        }
        time.now() < deadline
    }

    /// Others may have their turn before somebody goes on who is about to send.
    pub(super) fn interrupt(&self) {
        let times = self.host.simulator.as_ref().map_or(0, |s| s.interruptions());
        for _ in 0..times {
            self.step(false);
        }
    }
}
