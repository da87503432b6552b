//! Ends child processes whose time is over, that have taken too much memory, or whose client has gone. One thread looks after all, so that
//! no worker has to wait for a child that does not answer.

use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often it looks while a child works.
const TURN: Duration = Duration::from_millis(20);

/// A child process that any thread may end.
pub(super) struct Process(Mutex<Child>);

/// Why a child was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Time,
    Memory {
        bytes: u64,
    },
    /// Its client has gone.
    Gone,
    /// The server is being ended.
    Ending,
}

/// What a child is held to while it works.
pub(super) struct Bounds {
    pub(super) time: Duration,
    pub(super) memory: u64,
    /// Whether its client has gone. Nothing else is published through it.
    pub(super) is_gone: Arc<AtomicBool>,
}

struct Watched {
    number: u64,
    process: Arc<Process>,
    end: Instant,
    bounds: Bounds,
    reason: Option<Reason>,
}

#[derive(Default)]
struct State {
    watched: Vec<Watched>,
    next: u64,
    // From when on nothing runs any more.
    ending: Option<Instant>,
    is_over: bool,
}

#[derive(Default)]
pub(super) struct Watch {
    state: Mutex<State>,
    changed: Condvar,
}

impl Process {
    pub(super) fn new(child: Child) -> Process {
        Process(Mutex::new(child))
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kill(&self) {
        // It may have ended by itself.
        let _ = self.child().kill();
    }

    /// Ends it, if it has not ended, and says how it did.
    pub(super) fn end(&self) -> String {
        let mut child = self.child();
        let by_itself = child.try_wait().ok().flatten();
        let _ = child.kill();
        let status = by_itself.map_or_else(|| child.wait(), Ok);
        status.map_or_else(|error| error.to_string(), |status| status.to_string())
    }

    /// Gives it a moment to end by itself, and says how it did.
    pub(super) fn ended(&self) -> String {
        const MOMENT: Duration = Duration::from_millis(200);
        let end = Instant::now() + MOMENT;
        while Instant::now() < end && matches!(self.child().try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.end()
    }

    // Bytes of memory that it has, where the system says so.
    #[cfg(target_os = "linux")]
    fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child().id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kibibytes << 10)
    }

    #[cfg(not(target_os = "linux"))]
    fn memory(&self) -> Option<u64> {
        None
    }
}

impl Watch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on a child is held to bounds: until [`Watch::leave`], which takes the number that this gives.
    pub(super) fn enter(&self, process: &Arc<Process>, bounds: Bounds) -> u64 {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.watched.push(Watched {
            number,
            process: Arc::clone(process),
            end: Instant::now() + bounds.time,
            bounds,
            reason: None,
        });
        self.changed.notify_all();
        number
    }

    /// The child is held to nothing any more; if it was ended, why.
    pub(super) fn leave(&self, number: u64) -> Option<Reason> {
        let mut state = self.state();
        let at = state
            .watched
            .iter()
            .position(|watched| watched.number == number)?;
        state.watched.swap_remove(at).reason
    }

    /// What works now has so much time left.
    pub(super) fn end_within(&self, time: Duration) {
        self.state().ending = Some(Instant::now() + time);
        self.changed.notify_all();
    }

    /// The thread that looks is to end.
    pub(super) fn is_over(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    /// Looks until it is over.
    pub(super) fn run(&self) {
        let mut state = self.state();
        while !state.is_over {
            let (now, ending) = (Instant::now(), state.ending);
            for watched in state
                .watched
                .iter_mut()
                .filter(|watched| watched.reason.is_none())
            {
                watched.reason = watched.broken(now, ending);
                if watched.reason.is_some() {
                    watched.process.kill();
                }
            }
            state = match state.watched.iter().any(|watched| watched.reason.is_none()) {
                true => {
                    self.changed
                        .wait_timeout(state, TURN)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                false => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl Watched {
    // Which of its bounds it has broken.
    fn broken(&self, now: Instant, ending: Option<Instant>) -> Option<Reason> {
        if self.bounds.is_gone.load(Ordering::Relaxed) {
            return Some(Reason::Gone);
        }
        if ending.is_some_and(|ending| ending <= now) {
            return Some(Reason::Ending);
        }
        if self.end <= now {
            return Some(Reason::Time);
        }
        let bytes = self.process.memory()?;
        (bytes > self.bounds.memory).then_some(Reason::Memory { bytes })
    }
}
