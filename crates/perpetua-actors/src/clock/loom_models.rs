//! loom's models of the clock and of its anchor as they ship.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::physical::PhysicalClock;
use super::tsc::{Anchor, Reading};
use super::{HlcClock, HlcTimestamp};

#[test]
fn loom_clock_stamps_are_unique_and_ascend() {
    loom::model(|| {
        let time = Arc::new(AtomicU64::new(5));
        let clock = Arc::new(HlcClock::with_physical(1, PhysicalClock::Manual(time.clone())));
        let other = {
            let clock = clock.clone();
            thread::spawn(move || {
                time.store(6, Ordering::Relaxed);
                let remote = HlcTimestamp::new(6, 3, 2).unwrap();
                [clock.tick(), clock.update(&remote).unwrap()]
            })
        };
        let ours = [clock.tick(), clock.tick()];
        let theirs = other.join().unwrap();
        assert!(ours[0] < ours[1] && theirs[0] < theirs[1]);
        assert!(theirs[0].as_micros() >= 6 && theirs[1] > HlcTimestamp::new(6, 3, 2).unwrap());
        assert!(ours.iter().all(|stamp| !theirs.contains(stamp)));
    });
}

#[test]
fn loom_clock_cause_comes_before_effect() {
    loom::model(|| {
        let time = Arc::new(AtomicU64::new(5));
        let clock = Arc::new(HlcClock::with_physical(1, PhysicalClock::Manual(time)));
        let mailbox = Arc::new(AtomicU64::new(0));
        let sender = {
            let (clock, mailbox) = (clock.clone(), mailbox.clone());
            thread::spawn(move || mailbox.store(clock.tick().packed, Ordering::Release))
        };
        let sent = mailbox.load(Ordering::Acquire);
        // On the same clock, the message's own stamp need not even be looked at.
        assert!(sent < clock.tick().packed);
        sender.join().unwrap();
    });
}

fn reading(of: u64) -> Reading {
    Reading {
        count: of,
        packed: of,
        rate: of,
        good_for: of,
    }
}

#[test]
fn loom_clock_anchor_is_read_whole() {
    loom::model(|| {
        let anchor = Arc::new(Anchor::new(reading(1)));
        let writer = {
            let anchor = anchor.clone();
            thread::spawn(move || anchor.write(0, reading(2)))
        };
        if let Some(seen) = anchor.read() {
            assert_eq!(seen, reading(seen.count));
        }
        assert!(writer.join().unwrap());
        assert_eq!(anchor.read(), Some(reading(2)));
    });
}

#[test]
fn loom_clock_anchor_has_one_writer_at_a_time() {
    loom::model(|| {
        let anchor = Arc::new(Anchor::new(reading(1)));
        let other = {
            let anchor = anchor.clone();
            thread::spawn(move || anchor.write(0, reading(3)))
        };
        let ours = anchor.write(0, reading(2));
        let theirs = other.join().unwrap();
        assert!(ours != theirs);
        assert_eq!(anchor.read(), Some(reading(if ours { 2 } else { 3 })));
    });
}
