//! Messages from GPU to GPU in figures, over the link between them and through the host. Needs two CUDA devices that reach each other's memory;
//! `PERPETUA_SECOND_DEVICE` names the second one, else it is device 1.

use std::time::{Duration, Instant};

use perpetua::actors::runtime::Backend;
use perpetua::actors::{Context, LaunchOptions, PerpetuaRuntime, RingMessage, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Token {
    hops: u32,
    stride: u32,
    actors: u32,
}

/// Hands a token on until it has made its hops; then it goes to the host.
#[ring_kernel]
fn pass(ctx: &mut Context, handled: &mut u32, token: Token) {
    *handled += 1;
    let left = Token {
        hops: token.hops.wrapping_sub(1),
        ..token
    };
    if token.hops == 0 {
        ctx.send(u32::MAX, token);
    } else {
        ctx.send((ctx.actor() + token.stride) % token.actors, left);
    }
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// So many tokens, each to and fro between two actors, one on each device; the best of three in microseconds a hop and hops a second.
fn hops(runtime: &PerpetuaRuntime, each: u32, tokens: u32, hops: u32) -> Outcome<(f64, f64)> {
    let launch = |name: &str, device| {
        let options = LaunchOptions::new(pass::handler()).with_actors(each);
        runtime.launch_blocking(name, options.on_device(device))
    };
    let [here, there] = [launch("here", 0)?, launch("there", 1)?];
    assert_eq!((here.id().0, there.id().0), (0, each), "numbers from 0 on");
    let token = Token {
        hops,
        stride: each,
        actors: 2 * each,
    };
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let started = Instant::now();
        for i in 0..tokens {
            here.actor(i)?.send(&token)?;
        }
        block_on(runtime.idle());
        best = best.min(started.elapsed());
    }
    let handled: u64 = [&here, &there]
        .map(|launch| launch.metrics().messages_processed)
        .iter()
        .sum();
    assert_eq!(
        handled,
        3 * u64::from(tokens) * u64::from(hops + 1),
        "no hop is lost"
    );
    let seconds = best.as_secs_f64();
    Ok((
        seconds * 1e6 / f64::from(hops),
        f64::from(tokens) * f64::from(hops) / seconds,
    ))
}

fn main() -> Outcome<()> {
    let second = std::env::var("PERPETUA_SECOND_DEVICE").map_or(Ok(1), |number| number.parse::<usize>())?;
    let runtime = |peers| {
        let builder = PerpetuaRuntime::builder()
            .backend(Backend::Cuda)
            .and_device(second);
        builder
            .patience(Duration::from_secs(60))
            .peer_memory(peers)
            .build_blocking()
    };
    if let Err(error) = runtime(true) {
        println!("not measured: {error}");
        return Ok(());
    }
    println!("hops from device to device:");
    for (each, tokens, count) in [(1, 1, 10_000), (1000, 1000, 500), (8000, 8000, 200)] {
        for (peers, way) in [(true, "over the link"), (false, "through the host")] {
            let runtime = runtime(peers)?;
            if runtime.backend().reaches_peers() != peers {
                println!("not measured: the devices do not reach each other's memory");
                continue;
            }
            let (micros, rate) = hops(&runtime, each, tokens, count)?;
            println!(
                "{tokens:6} tokens, {way:16}: {micros:8.2} us a hop, {:8.3} M hops/s",
                rate / 1e6
            );
            runtime.shutdown_blocking()?;
        }
    }
    Ok(())
}
