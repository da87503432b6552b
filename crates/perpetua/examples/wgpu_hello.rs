//! Actors on any GPU that wgpu reaches: no kernel can stay there, so the host launches batches, a lane for each actor that has
//! messages. A thousand actors do some work at once. `cargo run --release --example wgpu_hello`

mod backend_argument;

use std::process::ExitCode;
use std::time::Instant;

use perpetua::actors::{Backend, Context, LaunchOptions, PerpetuaRuntime, RingMessage, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

const ACTORS: u32 = 1000;

/// Step a generator of pseudo-random numbers.
#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Step {
    steps: u32,
}

#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Number {
    number: u32,
}

#[ring_kernel]
fn generator(ctx: &mut Context, number: &mut u32, message: Step) -> Number {
    if *number == 0 {
        *number = ctx.actor() + 1;
    }
    for _ in 0..message.steps {
        *number ^= *number << 13;
        *number ^= *number >> 17;
        *number ^= *number << 5;
    }
    Number { number: *number }
}

fn main() -> ExitCode {
    backend_argument::end(block_on(run()))
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = backend_argument::runtime_or(PerpetuaRuntime::builder().backend(Backend::Wgpu)).await?;
    let options = LaunchOptions::new(generator::handler())
        .with_actors(ACTORS)
        .with_queue_capacity(16);
    let all = runtime.launch("generators", options).await?;
    let began = Instant::now();
    for _ in 0..4 {
        for i in 0..ACTORS {
            all.actor(i)?.send_when_room(&Step { steps: 10 }).await?;
        }
    }
    let mut sum = 0u64;
    for i in 0..ACTORS {
        for _ in 0..4 {
            let reply: Number = all.actor(i)?.receive().await?;
            sum += u64::from(reply.number);
        }
    }
    println!("{} messages in {:?}", 4 * ACTORS, began.elapsed());
    println!("the sum of all numbers: {sum}");
    runtime.shutdown().await?;
    let runs = all.metrics().messages_processed;
    println!("handler runs: {runs}");
    Ok(())
}
