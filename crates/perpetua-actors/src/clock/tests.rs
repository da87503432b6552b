//! The clock by property, beside the operating system's, and from several threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;

use super::physical::PhysicalClock;
use super::{HlcClock, HlcTimestamp};
use crate::error::ActorError;

fn manual(micros: u64) -> (Arc<AtomicU64>, PhysicalClock) {
    let time = Arc::new(AtomicU64::new(micros));
    (time.clone(), PhysicalClock::Manual(time))
}

#[allow(clippy::unwrap_used, reason = "a test's: a failed expectation is the report")]
fn stamp(micros: u64, counter: u64, node: u64) -> HlcTimestamp {
    HlcTimestamp::new(micros, counter, node).unwrap()
}

fn system_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_micros() as u64
}

#[test]
fn stamps_are_ordered_by_time_then_counter_then_node() {
    let stamps = [
        stamp(1, 0, 0),
        stamp(1, 0, 9),
        stamp(1, 1, 0),
        stamp(2, 0, 0),
        stamp(1 << 51, 4095, 1),
    ];
    assert!(stamps.is_sorted_by(|a, b| a < b), "{stamps:?}");
    let last = stamps[4];
    assert_eq!((last.as_micros(), last.counter(), last.node), (1 << 51, 4095, 1));
    assert_eq!(stamps[2].to_string(), "1.0001@0");
    for stamp in stamps {
        assert_eq!(HlcTimestamp::unpack(stamp.pack()), stamp);
    }
    assert!(stamps.map(HlcTimestamp::pack).is_sorted_by(|a, b| a < b));
    assert!(HlcTimestamp::zero().is_zero() && HlcTimestamp::zero() == HlcTimestamp::default());
    assert_eq!(stamp(1_234_567, 0, 0).as_millis(), 1234);
}

#[test]
fn each_stamp_has_one_pair_of_numbers() {
    let values = [0, 1, 5, 4095, 4096, 1 << 51, (1 << 52) - 1, 1 << 52, u64::MAX];
    for (micros, counter) in values.iter().flat_map(|m| values.map(|c| (*m, c))) {
        match HlcTimestamp::new(micros, counter, 0) {
            Ok(stamp) => assert_eq!((stamp.as_micros(), u64::from(stamp.counter())), (micros, counter)),
            Err(ActorError::StampRange { .. }) => assert!(micros >= 1 << 52 || counter > 4095),
            Err(error) => panic!("{error}"),
        }
    }
    let error = HlcTimestamp::new(1, 4096, 0).unwrap_err().to_string();
    assert!(error.contains("1 us and counter 4096"), "{error}");
}

/// What happens to a clock.
#[derive(Clone, Debug)]
enum Event {
    Tick,
    Time(u64),
    /// A remote stamp that many microseconds after physical time, with that counter.
    Remote(i64, u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => Just(Event::Tick),
        1 => (0u64..5000).prop_map(Event::Time),
        2 => (-3000i64..3000, 0u64..4096).prop_map(|(after, counter)| Event::Remote(after, counter)),
    ];
    proptest::collection::vec(event, 0..300)
}

proptest! {
    /// Whatever physical time does, and whatever comes from elsewhere.
    #[test]
    fn each_stamp_is_after_all_before_it(events in events()) {
        const BOUND: u64 = 1000;
        let (time, physical) = manual(10_000);
        let clock = HlcClock::with_physical(3, physical).with_max_drift(BOUND);
        let mut last = HlcTimestamp::default();
        for event in events {
            let now = time.load(Ordering::Relaxed);
            match event {
                Event::Time(micros) => time.store(10_000 + micros, Ordering::Relaxed),
                Event::Tick => {
                    let stamp = clock.tick();
                    prop_assert!(stamp > last && stamp.as_micros() >= now && stamp.node == 3);
                    last = stamp;
                }
                Event::Remote(after, counter) => {
                    let remote = stamp(now.saturating_add_signed(after), counter, 4);
                    match clock.update(&remote) {
                        Ok(stamp) => {
                            prop_assert!(after <= BOUND as i64);
                            prop_assert!(stamp > last && stamp > remote && stamp.as_micros() >= now);
                            last = stamp;
                        }
                        Err(ActorError::ClockDrift { ahead, allowed }) => {
                            prop_assert_eq!((ahead as i64, allowed), (after, BOUND));
                            prop_assert!(after > BOUND as i64 && clock.now() >= last);
                        }
                        Err(error) => prop_assert!(false, "{error}"),
                    }
                }
            }
        }
    }
}

#[test]
fn a_stamp_from_the_end_of_time_is_refused() {
    let last = stamp((1 << 52) - 1, 4095, 2);
    let (_, physical) = manual(1);
    let clock = HlcClock::with_physical(1, physical.clone());
    let error = clock.update(&last).unwrap_err().to_string();
    assert!(
        error.contains("ahead of this one, more than 60000000 us"),
        "{error}"
    );
    assert_eq!(clock.tick(), stamp(1, 0, 1));
    let clock = HlcClock::with_physical(1, physical).with_max_drift(u64::MAX);
    assert!(matches!(clock.update(&last), Err(ActorError::ClockEnd)));
    assert_eq!(clock.tick(), stamp(1, 0, 1));
}

#[test]
fn a_clock_at_its_end_says_so_and_does_not_begin_again() {
    let (time, physical) = manual((1 << 52) - 1);
    let clock = HlcClock::with_physical(1, physical);
    let stamps: Vec<u64> = (0..4096).map(|_| clock.try_tick().unwrap().packed).collect();
    assert!(stamps.is_sorted_by(|a, b| a < b));
    time.store(u64::MAX, Ordering::Relaxed);
    assert!(matches!(clock.try_tick(), Err(ActorError::ClockEnd)));
    assert_eq!((clock.tick().packed, clock.now().packed), (u64::MAX, u64::MAX));
}

#[test]
fn a_full_counter_carries_into_the_microseconds() {
    let (time, physical) = manual(7);
    let clock = HlcClock::with_physical(1, physical);
    let last = (0..5000).map(|_| clock.tick()).last().unwrap();
    assert_eq!((last.as_micros(), last.counter()), (8, 903));
    time.store(9, Ordering::Relaxed);
    assert_eq!(clock.tick(), stamp(9, 0, 1));
}

#[test]
fn all_sources_agree_with_the_system() {
    let sources = [
        PhysicalClock::fastest(),
        PhysicalClock::System,
        PhysicalClock::Coarse,
    ];
    let start = Instant::now();
    // Longer than an anchor is good for, so that it is renewed.
    while start.elapsed() < Duration::from_millis(350) {
        for source in &sources {
            let (before, micros, after) = (system_micros(), source.micros(), system_micros());
            // A tick of the coarse clock is at most 10 ms; the rest is for whoever adjusts the clock meanwhile.
            assert!(
                micros + 20_000 > before && micros < after + 5_000,
                "{source:?}: {micros} in {before}..{after}"
            );
        }
        thread::sleep(Duration::from_millis(3));
    }
    if let PhysicalClock::Tsc(tsc) = &sources[0] {
        assert!(tsc.is_trusted());
    }
}

#[test]
fn threads_never_get_a_stamp_twice_nor_an_earlier_one() {
    const TICKS: usize = 100_000;
    let clock = HlcClock::new(1);
    let mut stamps: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let stamps: Vec<u64> = (0..TICKS).map(|_| clock.tick().packed).collect();
                    assert!(stamps.is_sorted_by(|a, b| a < b));
                    stamps
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    stamps.sort_unstable();
    stamps.dedup();
    assert_eq!(stamps.len(), 3 * TICKS);
}
