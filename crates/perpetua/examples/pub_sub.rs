//! Messages by topic: sensors publish from their handlers, a display and an alarm subscribe by patterns; a message that is kept for those who
//! come later, a subscriber on the host. `cargo run --example pub_sub -- --backend cpu`

mod backend_argument;

use std::process::ExitCode;
use std::time::Duration;

use perpetua::actors::pubsub::SubscribeOptions;
use perpetua::actors::{ActorId, Context, LaunchOptions, RingMessage, Topic, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

/// Measure, and publish what comes out.
#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Measure {
    topic: u32,
    step: u32,
}

#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Reading {
    degrees: f32,
}

#[ring_kernel]
fn sensor(ctx: &mut Context, state: &mut u32, measure: Measure) {
    *state += measure.step;
    let degrees = 20.0 + (*state % 7) as f32;
    ctx.publish(measure.topic, Reading { degrees });
}

/// What a subscriber has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Seen {
    readings: u32,
    highest: f32,
}

#[ring_kernel]
fn watch(_ctx: &mut Context, seen: &mut Seen, reading: Reading) {
    seen.readings += 1;
    if reading.degrees > seen.highest {
        seen.highest = reading.degrees;
    }
}

fn main() -> ExitCode {
    backend_argument::end(block_on(run()))
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = backend_argument::runtime().await?;
    let sensors = runtime
        .launch("sensors", LaunchOptions::new(sensor::handler()).with_actors(2))
        .await?;
    let display = runtime
        .launch("display", LaunchOptions::new(watch::handler()))
        .await?;
    let alarm = runtime
        .launch("alarm", LaunchOptions::new(watch::handler()))
        .await?;
    display.subscribe(Topic::new("sensors/+/temperature"), SubscribeOptions::default())?;
    alarm.subscribe(Topic::new("sensors/room1/#"), SubscribeOptions::default())?;
    let all = Topic::new("sensors/*/temperature");
    let here = runtime.pubsub().subscribe(ActorId::HOST, all)?;

    // Handlers publish to a topic's number.
    for step in 0..50 {
        for room in 0..2 {
            let topic = Topic::new(format!("sensors/room{room}/temperature"));
            let topic = runtime.pubsub().number(&topic)?;
            sensors
                .actor(room)?
                .send_when_room(&Measure { topic, step })
                .await?;
        }
    }
    let mut host = 0;
    while host < 100 && here.receive_timeout(Duration::from_secs(20)).is_some() {
        host += 1;
    }

    // The last word on the matter is kept.
    let last = Reading { degrees: 99.0 };
    runtime.publish(Topic::new("sensors/room1/temperature"), &last, true)?;
    let late = runtime
        .launch("late", LaunchOptions::new(watch::handler()))
        .await?;
    late.subscribe(Topic::new("sensors/#"), SubscribeOptions::default())?;
    while display.metrics().messages_processed < 101
        || alarm.metrics().messages_processed < 51
        || late.metrics().messages_processed < 1
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("the host got {host}");
    for kernel in [&display, &alarm, &late] {
        println!("{} got {:?}", kernel.name(), kernel.read_state::<Seen>()?);
    }
    println!("{:?}", runtime.pubsub().stats());
    runtime.shutdown().await?;
    let all = [&sensors, &display, &alarm, &late];
    let runs: u64 = all.iter().map(|kernel| kernel.metrics().messages_processed).sum();
    println!("handler runs: {runs}");
    Ok(())
}
