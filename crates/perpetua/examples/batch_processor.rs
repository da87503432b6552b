//! A batch of work over many actors: each has its own share, a full mailbox holds the sender back, results come as they are ready.
//! `cargo run --release --example batch_processor -- --backend cpu`

mod backend_argument;

use std::process::ExitCode;
use std::time::Instant;

use perpetua::actors::{ActorError, Context, LaunchOptions, RingMessage, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

const ACTORS: u32 = 4;
const JOBS: u32 = 2_000;

/// How many steps does Collatz' sequence take from here?
#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Job {
    number: u32,
}

#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Outcome {
    number: u32,
    steps: u32,
}

#[ring_kernel]
fn collatz(_ctx: &mut Context, done: &mut u32, job: Job) -> Outcome {
    *done += 1;
    let mut n = job.number;
    let mut steps = 0u32;
    while n > 1 {
        n = if n & 1 == 0 { n / 2 } else { n * 3 + 1 };
        steps += 1;
    }
    Outcome {
        number: job.number,
        steps,
    }
}

fn main() -> ExitCode {
    backend_argument::end(block_on(run()))
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = backend_argument::runtime().await?;
    let options = LaunchOptions::new(collatz::handler())
        .with_actors(ACTORS)
        .with_queue_capacity(64);
    let workers = runtime.launch("workers", options).await?;
    let began = Instant::now();
    let (mut outcomes, mut full) = (Vec::new(), 0);
    let mut number = 1;
    while number <= JOBS || outcomes.len() < JOBS as usize {
        if number <= JOBS {
            match workers.actor(number % ACTORS)?.send(&Job { number }) {
                Ok(()) => {
                    number += 1;
                    continue;
                }
                Err(ActorError::Full { .. }) => full += 1,
                Err(other) => return Err(other.into()),
            }
        }
        // No room, or nothing left to send: take what is ready.
        for i in 0..ACTORS {
            while let Some(outcome) = workers.actor(i)?.try_receive::<Outcome>()? {
                outcomes.push(outcome);
            }
        }
    }
    println!(
        "{JOBS} jobs in {:?}; {full} times a mailbox was full",
        began.elapsed()
    );
    let longest = outcomes
        .iter()
        .max_by_key(|outcome| (outcome.steps, outcome.number));
    println!("the longest: {longest:?}");
    let sum: u64 = outcomes.iter().map(|outcome| u64::from(outcome.steps)).sum();
    println!("steps in all: {sum}");
    for i in 0..ACTORS {
        println!("workers[{i}] did {} jobs", workers.actor(i)?.read_state::<u32>()?);
    }
    let report = runtime.shutdown().await?;
    println!("dead letters: {}", report.dead_letters);
    let runs = workers.metrics().messages_processed;
    println!("handler runs: {runs}");
    Ok(())
}
