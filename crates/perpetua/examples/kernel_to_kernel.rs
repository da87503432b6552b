//! Actors that send to each other, without the host: a token goes round a ring of actors; then the broker's receipts.
//! `cargo run --release --example kernel_to_kernel -- --backend cpu`

mod backend_argument;

use std::process::ExitCode;
use std::time::Instant;

use perpetua::actors::{ActorId, Context, LaunchOptions, Packet, RingMessage, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

const ACTORS: u32 = 8;
const HOPS: u32 = 2_000;

/// Goes from actor to actor until no hop is left; then to the host.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Token {
    hops: u32,
    first: u32,
    actors: u32,
    /// Made of the numbers of all who had it, in order.
    path: u32,
}

#[ring_kernel]
fn pass(ctx: &mut Context, passed: &mut u32, token: Token) {
    *passed += 1;
    let me = ctx.actor() - token.first;
    let path = (token.path ^ me).wrapping_mul(16_777_619);
    if token.hops == 0 {
        ctx.send(u32::MAX, Token { path, ..token });
    } else {
        let next = token.first + (me + 1) % token.actors;
        let hops = token.hops - 1;
        ctx.send(next, Token { hops, path, ..token });
    }
}

fn main() -> ExitCode {
    backend_argument::end(block_on(run()))
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = backend_argument::runtime().await?;
    let ring = runtime
        .launch("ring", LaunchOptions::new(pass::handler()).with_actors(ACTORS))
        .await?;
    let token = Token {
        hops: HOPS,
        first: ring.id().0,
        actors: ACTORS,
        path: 2_166_136_261,
    };
    let began = Instant::now();
    ring.send(&token)?;
    // It comes out where it stops.
    let last = ring.actor(HOPS % ACTORS)?;
    let back: Token = last.receive().await?;
    println!("{HOPS} hops, {:?} each", began.elapsed() / HOPS);
    let expected = (0..=HOPS).fold(token.path, |path, hop| {
        (path ^ (hop % ACTORS)).wrapping_mul(16_777_619)
    });
    if back.path != expected {
        return Err(format!("the token went {:#x}, not {expected:#x}", back.path).into());
    }
    for i in 0..ACTORS {
        println!(
            "ring[{i}] passed it {} times",
            ring.actor(i)?.read_state::<u32>()?
        );
    }

    let broker = runtime.k2k_broker().ok_or("this backend has no broker")?;
    let one_hop = Token { hops: 0, ..token };
    let receipt = broker
        .send(ActorId::HOST, broker.resolve("ring[3]")?, Packet::of(&one_hop))
        .await?;
    println!(
        "message {} to {}: {:?}",
        receipt.message.0, receipt.destination, receipt.status
    );
    let _: Token = ring.actor(3)?.receive().await?;
    let receipt = broker
        .send(ActorId::HOST, ActorId(4_000), Packet::of(&one_hop))
        .await?;
    println!(
        "message {} to {}: {:?}",
        receipt.message.0, receipt.destination, receipt.status
    );
    println!("dead letters: {}", runtime.dead_letters().len());
    runtime.shutdown().await?;
    let runs = ring.metrics().messages_processed;
    println!("handler runs: {runs}");
    Ok(())
}
