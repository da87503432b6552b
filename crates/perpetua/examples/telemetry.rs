//! What actors do, watched while they do it: counts, depths of queues, latencies, dead letters and their reasons.
//! `cargo run --release --example telemetry -- --backend cpu`
//!
//! With `--watch 60` it works on for a minute; `perpetua top` lists it, started so: `PERPETUA_TOP=1 cargo run …`.

mod backend_argument;

use std::process::ExitCode;
use std::time::Duration;

use perpetua::actors::runtime::RuntimeBuilder;
use perpetua::actors::{
    Context, DeadReason, LaunchOptions, PerpetuaRuntime, RingMessage, SendOptions, ring_kernel,
};
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

fn main() -> ExitCode {
    backend_argument::end(block_on(run()))
}

/// The backend, and for how many seconds to work on so that somebody can watch.
fn arguments() -> Result<(RuntimeBuilder, Option<u64>), String> {
    let (mut builder, mut watch) = (PerpetuaRuntime::builder(), None);
    let mut words = std::env::args().skip(1);
    while let Some(option) = words.next() {
        let value = words.next().unwrap_or_default();
        match option.as_str() {
            "--backend" => builder = backend_argument::named(&value)?,
            "--watch" => {
                let seconds = value.parse();
                watch =
                    Some(seconds.map_err(|_| format!("--watch `{value}`: that is not a number of seconds"))?);
            }
            _ => {
                return Err(format!(
                    "`{option}` is unknown: this takes `--backend {}` and `--watch SECONDS`",
                    backend_argument::NAMES
                ));
            }
        }
    }
    Ok((builder, watch))
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let (builder, watch) = arguments()?;
    let runtime = backend_argument::open(builder).await?;
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
    for kernel in runtime.kernels() {
        let metrics = kernel.metrics();
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
    if let Some(seconds) = watch {
        println!("watch it: perpetua top {}", std::process::id());
        let until = std::time::Instant::now() + Duration::from_secs(seconds);
        while std::time::Instant::now() < until {
            for _ in 0..20 {
                light.send_when_room(&Work { rounds: 10 }).await?;
            }
            heavy.send_when_room(&Work { rounds: 20_000 }).await?;
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    runtime.shutdown().await?;
    let all = [&light, &heavy];
    let runs: u64 = all.iter().map(|kernel| kernel.metrics().messages_processed).sum();
    println!("handler runs: {runs}");
    Ok(())
}
