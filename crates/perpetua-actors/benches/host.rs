//! What the host's parts reach: stamps of the clock, messages a second through the rings. Each figure is the best of several
//! turns, for other programs can only slow one down. `cargo bench -p perpetua-actors --bench host -- [WORD]...` measures what
//! has all words in its name.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use perpetua_actors::clock::physical::PhysicalClock;
use perpetua_actors::ring::{mpsc, spsc};
use perpetua_actors::{HlcClock, Result};

/// Short turns, and many: some of them have the processor to themselves.
const TURNS: usize = 40;

fn main() -> Result<()> {
    pin(0);
    clock();
    for capacity in [512, 4096, 32768] {
        for batch in [1, 16, 64, 256] {
            measure(&format!("spsc 8 bytes capacity {capacity} batch {batch}"), || {
                one_to_one::<1>(capacity, batch)
            })?;
            measure(
                &format!("spsc 64 bytes capacity {capacity} batch {batch}"),
                || one_to_one::<8>(capacity, batch),
            )?;
        }
    }
    for senders in [1, 2, 4] {
        for batch in [1, 16, 64] {
            measure(
                &format!("mpsc 8 bytes capacity 4096 senders {senders} batch {batch}"),
                || many_to_one::<1>(senders, batch),
            )?;
            measure(
                &format!("mpsc 64 bytes capacity 4096 senders {senders} batch {batch}"),
                || many_to_one::<8>(senders, batch),
            )?;
        }
    }
    Ok(())
}

/// Whether the program was asked for `name`.
fn is_wanted(name: &str) -> bool {
    let padded = format!(" {name} ");
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    words.all(|word| padded.contains(&format!(" {word} ")))
}

/// Prints how many millions a second `turn` gets through, which says how many nanoseconds each took.
fn measure(name: &str, turn: impl Fn() -> Result<f64>) -> Result<()> {
    if !is_wanted(name) {
        return Ok(());
    }
    let mut nanos = f64::INFINITY;
    for _ in 0..TURNS {
        nanos = nanos.min(turn()?);
    }
    println!("{name}: {:.1} M/s", 1000.0 / nanos);
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
    if !is_wanted("clock") {
        return;
    }
    const TICKS: u64 = 1_000_000;
    let sources = [
        ("time stamp counter", PhysicalClock::fastest()),
        ("operating system", PhysicalClock::System),
        ("operating system, coarse", PhysicalClock::Coarse),
    ];
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: user space may read the counter: `PhysicalClock::fastest` relies on it, too.
        let count = || unsafe { core::arch::x86_64::_rdtsc() };
        let alone = best(|| each(TICKS, || (0..TICKS).for_each(|_| _ = black_box(count()))));
        println!("the time stamp counter alone: {alone:.1} ns");
    }
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
            let ticks = |processor| {
                pin(processor);
                barrier.wait();
                each(TICKS, || (0..TICKS).for_each(|_| _ = black_box(clock.tick())))
            };
            thread::scope(|scope| {
                let other = scope.spawn(|| ticks(1));
                let ours = ticks(0);
                other.join().map_or(ours, |other| other.max(ours))
            })
        });
        println!(
            "clock, {name}: read {read:.1} ns, tick {one:.1} ns, update {update:.1} ns, tick from two threads {two:.1} ns each"
        );
    }
}

fn one_to_one<const WORDS: usize>(capacity: usize, batch: usize) -> Result<f64> {
    let messages = 2_000_000;
    let (mut producer, mut consumer) = spsc::ring::<[u64; WORDS]>(capacity)?;
    let barrier = Barrier::new(2);
    Ok(thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            let mut values = vec![[0; WORDS]; batch];
            barrier.wait();
            let (mut next, mut pause) = (0, Pause(0));
            while next < messages {
                if batch == 1 {
                    while producer.push([next; WORDS]).is_err() {
                        pause.after(0);
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
                        pause.after(now);
                    }
                    next += batch as u64;
                }
            }
        });
        pin(0);
        barrier.wait();
        each(messages, || {
            let (mut sum, mut received, mut pause) = (0u64, 0, Pause(0));
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
                pause.after(got);
            }
            black_box(sum);
        })
    }))
}

/// Keeps this thread on processor `processor`, where the operating system allows: two threads on one take turns and are no
/// two.
fn pin(processor: usize) {
    #[cfg(target_os = "linux")]
    {
        let mut set = std::mem::MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: all zeros are an empty set; the macro's index is in its range; the set is ours. An error leaves all as it was.
        unsafe {
            libc::CPU_SET(processor, set.assume_init_mut());
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set.as_ptr());
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = processor;
}

/// Waits for the other side: spins for a while, then gives the processor away, since it may be the other side's.
struct Pause(u32);

impl Pause {
    fn after(&mut self, got: usize) {
        self.0 = if got == 0 { self.0 + 1 } else { 0 };
        if self.0 > 2000 {
            thread::yield_now();
        } else if self.0 > 0 {
            std::hint::spin_loop();
        }
    }
}

fn many_to_one<const WORDS: usize>(senders: u64, batch: usize) -> Result<f64> {
    let messages = 1_000_000;
    let (producer, mut consumer) = mpsc::ring::<[u64; WORDS]>(4096)?;
    let barrier = Barrier::new(senders as usize + 1);
    Ok(thread::scope(|scope| {
        pin(0);
        for _ in 0..senders {
            let producer = producer.clone();
            let barrier = &barrier;
            scope.spawn(move || {
                pin(1);
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
