//! What actors do, watched while they do it: counts, depths of queues, latencies, dead letters and their reasons.
//! `cargo run --release --example telemetry -- --backend cpu`

mod backend_argument;

use std::time::Duration;

use perpetua::actors::{Context, DeadReason, LaunchOptions, RingMessage, SendOptions, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

/// Work for a while.
#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Work {
    rounds: u32,
}

#[ring_kernel]
fn worker(_ctx: &mut Context, state: &mut u32, work: Work) {
    for i in 0..work.rounds {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223 + i);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = backend_argument::runtime().await?;
    let light = runtime
        .launch("light", LaunchOptions::new(worker::handler()))
        .await?;
    let heavy = runtime
        .launch("heavy", LaunchOptions::new(worker::handler()))
        .await?;
    for _ in 0..500 {
        light.send_when_room(&Work { rounds: 10 }).await?;
        heavy.send_when_room(&Work { rounds: 200 }).await?;
    }
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while light.metrics().messages_processed + heavy.metrics().messages_processed < 1_000 {
        if std::time::Instant::now() > until {
            let done = [&light, &heavy].map(|kernel| kernel.metrics().messages_processed);
            return Err(format!("the work is not done after 60 seconds: {done:?} of 500 each").into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // One that comes too late.
    light.deactivate().await?;
    let soon = SendOptions {
        deadline: Some(Duration::from_micros(1)),
        ..SendOptions::default()
    };
    light.send_with(&Work { rounds: 1 }, soon)?;
    std::thread::sleep(Duration::from_millis(2));
    light.activate().await?;
    while runtime.dead_letters().is_empty() && std::time::Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }

    println!(
        "{:8} {:>9} {:>7} {:>8} {:>6} {:>12} {:>12}",
        "actor", "processed", "errors", "dropped", "queued", "p50", "p99"
    );
    let mut runs = 0;
    for kernel in runtime.kernels() {
        let metrics = kernel.metrics();
        runs += metrics.messages_processed;
        println!(
            "{:8} {:>9} {:>7} {:>8} {:>6} {:>12?} {:>12?}",
            kernel.name(),
            metrics.messages_processed,
            metrics.errors_encountered,
            metrics.messages_dropped,
            metrics.queue_depth,
            metrics.latency.p50(),
            metrics.latency.p99()
        );
    }
    let expired = runtime.dead_letters().counts().of(DeadReason::Expired);
    println!("dead letters: {expired} ({})", DeadReason::Expired);
    runtime.shutdown().await?;
    println!("handler runs: {runs}");
    Ok(())
}
