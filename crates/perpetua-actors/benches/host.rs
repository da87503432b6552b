//! What the host's parts reach: stamps of the clock, messages a second through the rings. Each figure is the best of several
//! turns, for other programs can only slow one down. `cargo bench -p perpetua-actors --bench host -- [clock|spsc|mpsc]`.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use perpetua_actors::clock::physical::PhysicalClock;
use perpetua_actors::ring::{mpsc, spsc};
use perpetua_actors::{HlcClock, Result};

const TURNS: usize = 9;

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
    if is_wanted("clock") {
        clock();
    }
    if is_wanted("spsc") {
        one_to_one::<1>()?;
        one_to_one::<8>()?;
    }
    if is_wanted("mpsc") {
        many_to_one::<1>()?;
        many_to_one::<8>()?;
    }
    Ok(())
}

/// The least that `turn` gives.
fn best(mut turn: impl FnMut() -> f64) -> f64 {
    (0..TURNS).map(|_| turn()).fold(f64::INFINITY, f64::min)
}

/// Nanoseconds for one of `count` things that `work` does.
fn each(count: u64, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / count as f64
}

fn clock() {
    const TICKS: u64 = 4_000_000;
    let sources = [
        ("time stamp counter", PhysicalClock::fastest()),
        ("operating system", PhysicalClock::System),
        ("operating system, coarse", PhysicalClock::Coarse),
    ];
    for (name, source) in sources {
        let clock = HlcClock::with_physical(1, source.clone());
        let read = best(|| each(TICKS, || (0..TICKS).for_each(|_| _ = black_box(source.micros()))));
        let one = best(|| each(TICKS, || (0..TICKS).for_each(|_| _ = black_box(clock.tick()))));
        let remote = clock.tick();
        let update = best(|| {
            each(TICKS, || {
                (0..TICKS).for_each(|_| drop(black_box(clock.update(&remote))))
            })
        });
        let two = best(|| {
            let barrier = Barrier::new(2);
            thread::scope(|scope| {
                let ticks = || {
                    barrier.wait();
                    each(TICKS, || (0..TICKS).for_each(|_| _ = black_box(clock.tick())))
                };
                let other = scope.spawn(ticks);
                let ours = ticks();
                other.join().map_or(ours, |other| other.max(ours))
            })
        });
        println!(
            "clock, {name}: read {read:.1} ns, tick {one:.1} ns, update {update:.1} ns, tick from two threads {two:.1} ns each"
        );
    }
}

/// Millions a second, where one takes `nanos`.
fn rate(nanos: f64) -> String {
    format!("{:.1} M/s", 1000.0 / nanos)
}

fn one_to_one<const WORDS: usize>() -> Result<()> {
    const MESSAGES: u64 = 20_000_000;
    for capacity in [256, 1024, 4096, 16384] {
        let mut figures = Vec::new();
        for batch in [1usize, 16, 64, 256] {
            let mut result = Ok(());
            let nanos = best(|| match one_to_one_turn::<WORDS>(capacity, batch, MESSAGES) {
                Ok(nanos) => nanos,
                Err(error) => {
                    result = Err(error);
                    f64::INFINITY
                }
            });
            result?;
            figures.push(format!("{} in {batch}s", rate(nanos)));
        }
        println!(
            "spsc, {} bytes, capacity {capacity}: {}",
            WORDS * 8,
            figures.join(", ")
        );
    }
    Ok(())
}

fn one_to_one_turn<const WORDS: usize>(capacity: usize, batch: usize, messages: u64) -> Result<f64> {
    let (mut producer, mut consumer) = spsc::ring::<[u64; WORDS]>(capacity)?;
    let barrier = Barrier::new(2);
    Ok(thread::scope(|scope| {
        scope.spawn(|| {
            let mut values = vec![[0; WORDS]; batch];
            barrier.wait();
            let mut next = 0;
            while next < messages {
                if batch == 1 {
                    while producer.push([next; WORDS]).is_err() {
                        std::hint::spin_loop();
                    }
                    next += 1;
                } else {
                    for (value, number) in values.iter_mut().zip(next..) {
                        *value = [number; WORDS];
                    }
                    let mut sent = 0;
                    while sent < batch {
                        let now = producer.push_slice(&values[sent..]);
                        sent += now;
                        if now == 0 {
                            std::hint::spin_loop();
                        }
                    }
                    next += batch as u64;
                }
            }
        });
        barrier.wait();
        each(messages, || {
            let (mut sum, mut received) = (0u64, 0);
            while received < messages {
                let got = if batch == 1 {
                    consumer.pop().map_or(0, |value| {
                        sum = sum.wrapping_add(value[WORDS - 1]);
                        1
                    })
                } else {
                    consumer.pop_each(batch, |value| sum = sum.wrapping_add(value[WORDS - 1]))
                };
                received += got as u64;
                if got == 0 {
                    std::hint::spin_loop();
                }
            }
            black_box(sum);
        })
    }))
}

fn many_to_one<const WORDS: usize>() -> Result<()> {
    const MESSAGES: u64 = 4_000_000;
    for senders in [1u64, 2, 4] {
        let mut figures = Vec::new();
        for batch in [1usize, 16, 64] {
            let mut result = Ok(());
            let nanos = best(|| match many_to_one_turn::<WORDS>(senders, batch, MESSAGES) {
                Ok(nanos) => nanos,
                Err(error) => {
                    result = Err(error);
                    f64::INFINITY
                }
            });
            result?;
            figures.push(format!("{} in {batch}s", rate(nanos)));
        }
        println!(
            "mpsc, {} bytes, capacity 4096, {senders} senders: {}",
            WORDS * 8,
            figures.join(", ")
        );
    }
    Ok(())
}

fn many_to_one_turn<const WORDS: usize>(senders: u64, batch: usize, messages: u64) -> Result<f64> {
    let (producer, mut consumer) = mpsc::ring::<[u64; WORDS]>(4096)?;
    let barrier = Barrier::new(senders as usize + 1);
    Ok(thread::scope(|scope| {
        for _ in 0..senders {
            let producer = producer.clone();
            let barrier = &barrier;
            scope.spawn(move || {
                let values = vec![[1; WORDS]; batch];
                barrier.wait();
                let mut left = (messages / senders) as usize;
                while left > 0 {
                    let sent = if batch == 1 {
                        usize::from(producer.push([left as u64; WORDS]).is_ok())
                    } else {
                        producer.push_slice(&values[..batch.min(left)])
                    };
                    left -= sent;
                    if sent == 0 {
                        // More threads than processors: a sender that spins keeps the receiver from running.
                        thread::yield_now();
                    }
                }
            });
        }
        barrier.wait();
        each(messages, || {
            let (mut sum, mut received) = (0u64, 0);
            while received < messages {
                let got = consumer.pop_each(256, |value| sum = sum.wrapping_add(value[WORDS - 1]));
                received += got as u64;
                if got == 0 {
                    thread::yield_now();
                }
            }
            black_box(sum);
        })
    }))
}
