//! Messages that are handled once more, and not with others, because their batch did not tell what became of them. What it did with them
//! has not happened. Must not know devices.
//!
//! Where a handler's time is limited, loops count their turns, for in batches it has no clock to look at. A lane that is out of turns
//! stops, and the host, which has a clock, decides: a message whose batch took less than the limit is handled anew with more turns, until
//! it is done or its batch has taken as long as a handler may. Half of what that costs is the last try.
//!
//! Where a driver ends loops before their time (`Limits::max_loop_turns`), lanes go on wrongly, and one fault is told for all. So no
//! message of a batch with a fault has been handled: those of the lane that faulted are handled by themselves, the others in batches half as large, which
//! grow again as long as nothing faults.

use std::time::Duration;

/// Turns that loops of a lane may make together in its first batch.
pub(super) const FIRST_TURNS: u32 = 1 << 14;
/// Their upper bit says that there were not enough.
pub(super) const MOST_TURNS: u32 = u32::MAX >> 1;

/// How the next message of an actor is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// By itself, with so many turns.
    Turns(u32),
    /// So many messages are handled one by one.
    Alone(usize),
}

/// More turns, as many as the limit may allow: what took so long was a launch, too.
pub(super) fn more(turns: u32, took: Duration, limit: Duration) -> u32 {
    let times = 1.25 * limit.as_secs_f64() / took.as_secs_f64().max(1e-6);
    ((f64::from(turns) * times.clamp(2.0, 16.0)) as u32).min(MOST_TURNS)
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
