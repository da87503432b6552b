//! Questions and answers: awaited and busily waited for, several types of message for one actor, time limits, an actor that
//! does not know the question. `cargo run --release --example request_response -- --backend cpu`

mod backend_argument;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use perpetua::actors::{ActorError, Context, LaunchOptions, RingMessage, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

/// Remember this number.
#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Sample {
    value: f32,
}

/// What is known by now?
#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Question {
    reserved: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Statistics {
    samples: u32,
    mean: f32,
    smallest: f32,
    largest: f32,
}

#[ring_kernel(also(collect))]
fn statistics(_ctx: &mut Context, known: &mut Statistics, _question: Question) -> Statistics {
    *known
}

#[ring_kernel]
fn collect(_ctx: &mut Context, known: &mut Statistics, sample: Sample) {
    if known.samples == 0 || sample.value < known.smallest {
        known.smallest = sample.value;
    }
    if known.samples == 0 || sample.value > known.largest {
        known.largest = sample.value;
    }
    known.samples += 1;
    known.mean += (sample.value - known.mean) / known.samples as f32;
}

fn main() -> ExitCode {
    backend_argument::end(block_on(run()))
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = backend_argument::runtime().await?;
    let kernel = runtime
        .launch("statistics", LaunchOptions::new(statistics::handler()))
        .await?;
    for i in 0..100u32 {
        let value = (i * 37 % 101) as f32;
        kernel.send_when_room(&Sample { value }).await?;
    }
    // Whoever sent the samples asks behind them: one sender's messages keep their order.
    let answer: Statistics = kernel.ask(&Question { reserved: 0 }).await?;
    println!("{answer:?}");

    let asked = 2_000;
    let began = Instant::now();
    for _ in 0..asked {
        let again: Statistics = kernel.ask_blocking(&Question { reserved: 0 })?;
        if again != answer {
            return Err(format!("{again:?} is another answer").into());
        }
    }
    println!("{asked} questions, {:?} each", began.elapsed() / asked);

    kernel.deactivate().await?;
    let late = kernel
        .ask_timeout::<_, Statistics>(&Question { reserved: 0 }, Duration::from_millis(20))
        .await;
    match late {
        Err(error @ ActorError::Timeout { .. }) => println!("as it should be: {error}"),
        other => return Err(format!("it answered while deactivated: {other:?}").into()),
    }
    if let Err(error) = kernel.send(&answer) {
        println!("as it should be: {error}");
    }
    kernel.activate().await?;
    let report = runtime.shutdown().await?;
    println!("drained: {}", report.drained);
    // The late question is answered, too, though nobody waits for that.
    let runs = kernel.metrics().messages_processed;
    println!("handler runs: {runs}");
    Ok(())
}
