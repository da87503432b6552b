//! What becomes of an actor whose handler faulted. Must not know engines: it decides, and the runtime does.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::message::ActorId;

/// What to do when a handler faults. In each case the message is reported as a dead letter, the handle tells the fault's text
/// ([`KernelHandle::last_fault`](crate::KernelHandle::last_fault)), and the caller of `ask` gets the fault as an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Supervision {
    /// The actor stays [`Faulted`](crate::ActorState::Faulted), its messages wait, and somebody decides by hand.
    #[default]
    Manual,
    /// It goes on with the state that [`OnFault`] leaves it; messages that wait are handled.
    Restart {
        /// Faults that are answered so within [`Supervision::WINDOW`]; one more and the actor is terminated.
        max: u32,
        /// Time until the first restart; doubled with each further one, up to [`Supervision::LONGEST_BACKOFF`].
        backoff: Duration,
    },
    /// Its supervisor (`LaunchOptions::with_supervisor`) faults, too, and is dealt with as its own options say; without one all
    /// actors are deactivated, and `PerpetuaRuntime::failure` tells why.
    Escalate,
    /// It is terminated; messages that wait become dead letters.
    Stop,
}

/// With which state a fault leaves its actor, and so with which one the actor goes on when its supervision restarts it. What the handler
/// has sent, replied and published before it faulted goes nowhere in each case, and its message is a dead letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFault {
    /// As it was before the message: nothing of what the handler did has happened.
    #[default]
    Transactional = 0,
    /// As the handler left it, which saves the copy that is made before each message. Threads of the CPU refuse it for handlers with a run
    /// limit: what does not return still writes.
    KeepState = 1,
    /// As at launch.
    Restart = 2,
}

impl Supervision {
    /// Faults older than this are forgotten.
    pub const WINDOW: Duration = Duration::from_secs(60);
    /// No restart waits longer.
    pub const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Leave,
    RestartAfter(Duration),
    Escalate,
    Terminate,
}

/// Which actors faulted when.
#[derive(Default)]
pub(crate) struct Supervisor {
    faults: HashMap<ActorId, Vec<Instant>>,
}

impl Supervisor {
    /// What becomes of the actor that faulted at `now`.
    pub(crate) fn decide(&mut self, actor: ActorId, supervision: Supervision, now: Instant) -> Decision {
        match supervision {
            Supervision::Manual => Decision::Leave,
            Supervision::Stop => Decision::Terminate,
            Supervision::Escalate => Decision::Escalate,
            Supervision::Restart { max, backoff } => {
                let faults = self.faults.entry(actor).or_default();
                faults.retain(|then| now.duration_since(*then) < Supervision::WINDOW);
                let before = faults.len() as u32;
                if before >= max {
                    self.faults.remove(&actor);
                    return Decision::Terminate;
                }
                faults.push(now);
                let factor = 1u32.checked_shl(before).unwrap_or(u32::MAX);
                Decision::RestartAfter(backoff.saturating_mul(factor).min(Supervision::LONGEST_BACKOFF))
            }
        }
    }

    /// Forgets an actor.
    pub(crate) fn forget(&mut self, actor: ActorId) {
        self.faults.remove(&actor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ActorId = ActorId(1);

    #[test]
    fn restarts_wait_longer_each_time_and_end() {
        let mut supervisor = Supervisor::default();
        let restart = Supervision::Restart {
            max: 3,
            backoff: Duration::from_millis(10),
        };
        let start = Instant::now();
        let mut decide = |second: u64| supervisor.decide(A, restart, start + Duration::from_secs(second));
        let after = |ms: u64| Decision::RestartAfter(Duration::from_millis(ms));
        assert_eq!(decide(0), after(10));
        assert_eq!(decide(1), after(20));
        assert_eq!(decide(2), after(40));
        assert_eq!(decide(3), Decision::Terminate);
    }

    #[test]
    fn old_faults_are_forgotten_and_backoff_is_bounded() {
        let mut supervisor = Supervisor::default();
        let restart = Supervision::Restart {
            max: 40,
            backoff: Duration::from_secs(1),
        };
        let start = Instant::now();
        let mut longest = Duration::ZERO;
        for _ in 0..40 {
            if let Decision::RestartAfter(wait) = supervisor.decide(A, restart, start) {
                longest = longest.max(wait);
            }
        }
        assert_eq!(longest, Supervision::LONGEST_BACKOFF);
        let later = start + Supervision::WINDOW;
        assert_eq!(
            supervisor.decide(A, restart, later),
            Decision::RestartAfter(Duration::from_secs(1))
        );
    }
}
