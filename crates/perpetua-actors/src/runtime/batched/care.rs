//! Messages that are handled once more, and not with others, because their batch did not tell what became of them. What it did with them
//! has not happened. Must not know devices.
//!
//! Where a handler's time is limited, loops count their turns, for in batches it has no clock to look at. A lane that is out of turns
//! stops, and the host, which has a clock, decides: a message whose batch took less than the limit is handled anew with more turns, until
//! it is done or its batch has taken as long as a handler may. Half of what that costs is the last try.
//!
//! Where a driver ends loops before their time (`Limits::max_loop_turns`), lanes go on wrongly, and one fault is told for all. So each
//! message of such a batch is handled by itself.

use std::time::Duration;

use super::Shared;
use super::batch::{Program, Results, Run};
use crate::lifecycle::ActorState;

/// Turns that loops of a lane may make together in its first batch.
pub(super) const FIRST_TURNS: u32 = 1 << 14;
/// Their upper bit says that there were not enough.
const MOST_TURNS: u32 = u32::MAX >> 1;

/// How the next message of an actor is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// By itself, with so many turns.
    Turns(u32),
    /// So many messages are handled one by one.
    Alone(usize),
}

/// More turns, as many as the limit may allow: what took so long was a launch, too.
fn more(turns: u32, took: Duration, limit: Duration) -> u32 {
    let times = 1.25 * limit.as_secs_f64() / took.as_secs_f64().max(1e-6);
    ((f64::from(turns) * times.clamp(2.0, 16.0)) as u32).min(MOST_TURNS)
}

impl Program {
    /// Whether the message number `at` of a run that is out of turns is handled once more.
    pub(super) fn tries_again(&mut self, run: &Run, at: usize, took: Duration) -> bool {
        let Some(limit) = self.limit else {
            return false;
        };
        // Those before it had some of its turns; and a first launch may take long for other reasons.
        let turns = match at {
            0 if run.careful && (took >= limit || run.turns == MOST_TURNS) => return false,
            0 => more(run.turns, took, limit),
            _ => run.turns,
        };
        self.careful.insert(run.cell.id, Care::Turns(turns));
        true
    }

    /// The batch is done: what it tells of how its actors' next messages are handled.
    pub(super) fn learn(&mut self, runs: &[Run], results: &Results) {
        for run in runs.iter().filter(|run| run.careful) {
            match self.careful.remove(&run.cell.id) {
                Some(Care::Alone(several @ 2..)) => {
                    self.careful.insert(run.cell.id, Care::Alone(several - 1));
                }
                Some(Care::Turns(turns)) if self.limit.is_some_and(|limit| results.took < limit / 2) => {
                    self.turns = self.turns.max(turns);
                }
                _ => {}
            }
        }
    }
}

impl Shared {
    /// Messages that are not handled with others, if any of them can be now: side by side, but where a driver ends loops, one.
    pub(super) fn gather_careful(&self, program: &mut Program) -> Vec<Run> {
        let mut runs = Vec::new();
        let by_itself = self.device.info().limits.max_loop_turns.is_some();
        program.careful.retain(|actor, care| {
            let Some(cell) = self.find(*actor).filter(|cell| cell.mailbox.len() > 0) else {
                return false;
            };
            let alone = by_itself || matches!(care, Care::Alone(_));
            if alone && !runs.is_empty() || cell.vitals.life() != ActorState::Active || !self.flush(&cell) {
                return true;
            }
            let turns = match care {
                Care::Turns(turns) => *turns,
                Care::Alone(_) => program.turns,
            };
            runs.extend(self.take_run(cell, 1, turns, true));
            true
        });
        runs
    }

    /// Gives back all messages of a batch, to be handled one by one.
    pub(super) fn take_apart(&self, program: &mut Program, runs: &mut [Run]) {
        for run in runs {
            run.give_back(0);
            program
                .careful
                .insert(run.cell.id, Care::Alone(run.packets.len()));
            // Nobody closes it while there is a batch.
            run.cell.mailbox.unpop(run.packets.drain(..));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_grow_until_the_limit() {
        let limit = Duration::from_millis(100);
        assert_eq!(more(1000, Duration::from_micros(1), limit), 16_000);
        assert_eq!(more(1000, Duration::from_millis(25), limit), 5000);
        assert_eq!(more(1000, Duration::from_millis(90), limit), 2000);
        assert_eq!(more(1000, Duration::ZERO, limit), 16_000);
        assert_eq!(more(MOST_TURNS, Duration::from_millis(90), limit), MOST_TURNS);
    }
}
