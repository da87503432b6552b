//! Stamps of hybrid logical clocks: from one thread, and from two at once.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use perpetua_actors::clock::physical::PhysicalClock;

use crate::pin::pin;

/// Prints nanoseconds a stamp for each clock.
pub(crate) fn compare(ticks: u64, turns: u32) {
    let ours = perpetua_actors::HlcClock::new(1);
    let coarse = perpetua_actors::HlcClock::with_physical(1, PhysicalClock::Coarse);
    let theirs = ringkernel_core::hlc::HlcClock::new(1);
    println!("clock | one thread, ns a stamp | two threads, ns a stamp of each");
    row("Perpetua", ticks, turns, || ours.tick());
    row("Perpetua, coarse", ticks, turns, || coarse.tick());
    row("ringkernel 1.1.0", ticks, turns, || theirs.tick());
}

fn row<T>(name: &str, ticks: u64, turns: u32, tick: impl Fn() -> T + Sync) {
    let (mut one, mut two) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..turns {
        one = one.min(alone(ticks, &tick));
        two = two.min(together(ticks, &tick));
    }
    println!("{name} | {one:.1} | {two:.1}");
}

fn alone<T>(ticks: u64, tick: &impl Fn() -> T) -> f64 {
    let start = Instant::now();
    (0..ticks).for_each(|_| _ = black_box(tick()));
    start.elapsed().as_nanos() as f64 / ticks as f64
}

fn together<T>(ticks: u64, tick: &(impl Fn() -> T + Sync)) -> f64 {
    let barrier = Barrier::new(2);
    let run = |processor| {
        pin(processor);
        barrier.wait();
        alone(ticks, tick)
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        let ours = run(0);
        other.join().map_or(f64::INFINITY, |other| other.max(ours))
    })
}
