//! Handlers that stay on a GPU, in figures: how long an answer takes, how many packets pass. Needs CUDA.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perpetua::actors::grid::{Commons, Grid, GridOptions, Shape};
use perpetua::actors::kernels::layout::{COMMAND_BECOME, COMMAND_RESTART};
use perpetua::actors::runtime::{Backend, LaunchOptions, PerpetuaRuntime};
use perpetua::actors::{
    ActorId, ActorState, Context, Handler, Header, Kind, Packet, RingMessage, ring_kernel,
};
use perpetua::device::{BackendKind, Device};
use perpetua::prelude::*;

/// 64 bytes.
#[derive(Clone, Copy, GpuType, RingMessage)]
#[repr(C)]
struct Sample {
    values: [f32; 16],
}

#[derive(Clone, Copy, Default, GpuType)]
#[repr(C)]
struct Statistics {
    count: u32,
    sum: f32,
}

/// Adds all 64 bytes to its state, and answers with as many.
#[ring_kernel]
fn accumulate(_ctx: &mut Context, state: &mut Statistics, message: Sample) -> Sample {
    let v = message.values;
    let low = v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7];
    let high = v[8] + v[9] + v[10] + v[11] + v[12] + v[13] + v[14] + v[15];
    state.count += 1;
    state.sum += low + high;
    let mut answer = message;
    answer.values[0] = state.sum;
    answer.values[1] = state.count as f32;
    answer
}

/// Adds to its state word by word, in a loop.
#[ring_kernel]
fn accumulate_in_a_loop(_ctx: &mut Context, state: &mut Statistics, message: Sample) -> Sample {
    let mut answer = message;
    state.count += 1;
    for i in 0..16 {
        state.sum += message.values[i];
        answer.values[i] = state.sum;
    }
    answer
}

#[derive(Clone, Copy, GpuType, RingMessage)]
#[repr(C)]
struct Token {
    hops: u32,
    next: u32,
    stride: u32,
    actors: u32,
}

/// Hands a token to the next actor until it has made its hops; then it goes to the host. The next one is `stride` on; where that is 0,
/// any.
#[ring_kernel]
fn pass(ctx: &mut Context, state: &mut u32, message: Token) {
    *state += 1;
    let mut token = message;
    if token.hops == 0 {
        ctx.send(u32::MAX, token);
    } else {
        token.hops -= 1;
        let mut to = token.next;
        if token.stride != 0 {
            token.next = (to + token.stride) % token.actors;
        } else {
            // Marsaglia's xorshift.
            to ^= to << 13;
            to ^= to >> 17;
            to ^= to << 5;
            token.next = to;
            to %= token.actors;
        }
        ctx.send(to, token);
    }
}

fn packet(kind: Kind, actor: u32, message: &impl Message, correlation: u32) -> [u32; 24] {
    message.packet(kind, actor, correlation)
}

trait Message {
    fn packet(&self, kind: Kind, actor: u32, correlation: u32) -> [u32; 24];
}

impl<M: RingMessage> Message for M {
    fn packet(&self, kind: Kind, actor: u32, correlation: u32) -> [u32; 24] {
        Packet {
            header: Header {
                destination: actor,
                sender: ActorId::HOST,
                type_id: M::TYPE_ID,
                correlation,
                sent: 0,
                kind,
                priority: 128,
                words: M::WORDS as u8,
                deadline: 0,
                deliveries: Default::default(),
            },
            payload: self.to_payload(),
        }
        .to_words()
    }
}

/// A command to an actor's home; one with a correlation is answered when it is done.
fn command(actor: u32, command: u32, word: u32, correlation: u32) -> [u32; 24] {
    let mut payload = [0; 16];
    payload[0] = word;
    Packet {
        header: Header {
            destination: actor,
            sender: ActorId::HOST,
            type_id: command,
            correlation,
            sent: 0,
            kind: Kind::Command,
            priority: 0,
            words: 1,
            deadline: 0,
            deliveries: Default::default(),
        },
        payload,
    }
    .to_words()
}

/// Makes all actors of a grid active.
fn active(grid: Grid) -> Grid {
    for actor in grid.first_actor()..grid.first_actor() + grid.actors() {
        let words = command(actor, COMMAND_BECOME, ActorState::Active as u32, 0);
        while grid.push(grid.home_of(actor), [&words]) == 0 {}
    }
    grid
}

/// Actors of a launch that come to life, begin anew and end, each change told by the device when it is done there.
fn lives(device: &Device) -> Result<(), Box<dyn std::error::Error>> {
    const ACTORS: u32 = 4096;
    let homes = 32;
    let commons = Arc::new(Commons::new(device, Shape::new(homes, ACTORS))?);
    let state = vec![0u8; size_of::<Statistics>()];
    let options = GridOptions::new(ACTORS, homes);
    let grid = Grid::new(&commons, &accumulate::handler(), &state, &options)?;
    for (what, number, word) in [
        ("create", COMMAND_BECOME, ActorState::Active),
        ("restart", COMMAND_RESTART, ActorState::Created),
        ("destroy", COMMAND_BECOME, ActorState::Terminated),
    ] {
        let mut times = Vec::with_capacity(ACTORS as usize);
        for actor in 0..ACTORS {
            let home = grid.home_of(actor);
            let started = Instant::now();
            let words = command(actor, number, word as u32, actor + 1);
            while grid.push(home, [&words]) == 0 {}
            let back = answer(&grid, home);
            times.push(started.elapsed().as_secs_f64() * 1e6);
            assert_eq!((back[3], back[6] & 255), (actor + 1, Kind::Done as u32));
        }
        println!(
            "{what:>8}: p50 {:.2} us, min {:.2}, p99 {:.2}",
            percentile(&mut times, 0.5),
            percentile(&mut times, 0.0),
            percentile(&mut times, 0.99),
        );
    }
    Ok(())
}

fn percentile(times: &mut [f64], p: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    times
        .get(((times.len() - 1) as f64 * p) as usize)
        .copied()
        .unwrap_or(0.0)
}

/// Waits for a packet from this home.
fn answer(grid: &Grid, home: u32) -> [u32; 24] {
    let started = Instant::now();
    let mut found = None;
    while found.is_none() {
        grid.drain(home, 1, |p| found = Some(*p));
        if started.elapsed() > Duration::from_secs(5) {
            eprintln!("no answer from home {home}: {:?}", grid.report(home));
            std::process::exit(1);
        }
    }
    found.unwrap_or([0; 24])
}

fn round_trips(
    device: &Device,
    handler: &Handler,
    actors: u32,
    homes: u32,
) -> Result<(), Box<dyn std::error::Error>> {
    let commons = Arc::new(Commons::new(device, Shape::new(homes, actors))?);
    let state = vec![0u8; size_of::<Statistics>()];
    let grid = active(Grid::new(
        &commons,
        handler,
        &state,
        &GridOptions::new(actors, homes),
    )?);
    let sample = Sample { values: [1.0; 16] };
    const RUNS: usize = 20_000;
    let mut times = Vec::with_capacity(RUNS);
    for i in 0..RUNS as u32 + 1000 {
        let actor = i.wrapping_mul(7919) % actors;
        let home = grid.home_of(actor);
        let started = Instant::now();
        let words = packet(Kind::Ask, actor, &sample, i + 1);
        while grid.push(home, [&words]) == 0 {}
        let back = answer(&grid, home);
        let took = started.elapsed();
        assert_eq!((back[3], back[6] & 255), (i + 1, Kind::Reply as u32));
        if i >= 1000 {
            times.push(took.as_secs_f64() * 1e6);
        }
    }
    let handled: u64 = (0..grid.homes()).map(|h| grid.report(h).handled).sum();
    println!(
        "{actors:8} actors in {homes:4} homes: p50 {:.2} us, min {:.2}, p99 {:.2}, p99.9 {:.2} ({handled} handler runs counted there)",
        percentile(&mut times, 0.5),
        percentile(&mut times, 0.0),
        percentile(&mut times, 0.99),
        percentile(&mut times, 0.999),
    );
    // What the host's part costs.
    let mut best = f64::MAX;
    for _ in 0..50 {
        let batch: Vec<[u32; 24]> = (0..64)
            .map(|i| packet(Kind::Message, i % actors, &sample, 0))
            .collect();
        let started = Instant::now();
        for words in &batch {
            black_box(grid.push(grid.home_of(words[0]), [words]));
        }
        best = best.min(started.elapsed().as_secs_f64() * 1e9 / 64.0);
        std::thread::sleep(Duration::from_micros(300));
        for home in 0..grid.homes() {
            while grid.drain(home, 64, |_| ()) > 0 {}
        }
    }
    println!("{:8} inject 64 bytes: {best:.1} ns of host time", "");
    Ok(())
}

fn asks(handler: Handler, actors: u32) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = PerpetuaRuntime::builder()
        .backend(Backend::Cuda)
        .build_blocking()?;
    let options = LaunchOptions::new(handler).with_actors(actors);
    let all = runtime.launch_blocking("accumulate", options)?;
    let handles = (0..actors).map(|i| all.actor(i)).collect::<Result<Vec<_>, _>>()?;
    let sample = Sample { values: [1.0; 16] };
    let mut times = Vec::new();
    for i in 0..21_000usize {
        let handle = &handles[i.wrapping_mul(7919) % handles.len()];
        let started = Instant::now();
        let answer: Sample = handle.ask_blocking(&sample)?;
        if i >= 1000 {
            times.push(started.elapsed().as_secs_f64() * 1e6);
        }
        black_box(answer);
    }
    println!(
        "{actors:8} actors: p50 {:.2} us, min {:.2}, p99 {:.2}, p99.9 {:.2} ({} handler runs counted there)",
        percentile(&mut times, 0.5),
        percentile(&mut times, 0.0),
        percentile(&mut times, 0.99),
        percentile(&mut times, 0.999),
        all.metrics().messages_processed,
    );
    let mut best = f64::MAX;
    let handle = &handles[0];
    for _ in 0..50 {
        let started = Instant::now();
        for _ in 0..64 {
            handle.send(&sample)?;
        }
        best = best.min(started.elapsed().as_secs_f64() * 1e9 / 64.0);
        std::thread::sleep(Duration::from_micros(300));
        while handle.try_receive::<Sample>()?.is_some() {}
    }
    println!("{:8} send 64 bytes, stamped: {best:.1} ns of host time", "");
    runtime.shutdown_blocking()?;
    Ok(())
}

/// Packets both ways at once, by so many threads of the host, which share the homes.
fn throughput(
    device: &Device,
    handler: &Handler,
    (actors, homes): (u32, u32),
    threads: u32,
) -> Result<(), Box<dyn std::error::Error>> {
    let commons = Arc::new(Commons::new(device, Shape::new(homes, actors))?);
    let state = vec![0u8; size_of::<Statistics>()];
    let grid = active(Grid::new(
        &commons,
        handler,
        &state,
        &GridOptions::new(actors, homes),
    )?);
    let sample = Sample { values: [1.0; 16] };
    // For each home, 32 messages to its actors in turn.
    let batch = |home: u32| -> Vec<[u32; 24]> {
        let own = (actors / homes).max(1);
        (0..32)
            .map(|i| packet(Kind::Ask, home + i % own * homes, &sample, 1))
            .collect()
    };
    let turn = |thread: u32| {
        let own: Vec<(u32, Vec<[u32; 24]>)> = (0..homes)
            .filter(|home| home % threads == thread)
            .map(|home| (home, batch(home)))
            .collect();
        let (mut sent, mut received) = (0u64, 0u64);
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(1) {
            for (home, batch) in &own {
                sent += grid.push(*home, batch) as u64;
                received += grid.drain(*home, 64, |p| {
                    black_box(p);
                }) as u64;
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        [sent as f64 / seconds / 1e6, received as f64 / seconds / 1e6]
    };
    let turn = &turn;
    let rates = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || turn(thread)))
            .collect();
        let rates = all.into_iter().map(|thread| thread.join().unwrap_or([0.0; 2]));
        rates.fold([0.0; 2], |[a, b], [sent, received]| [a + sent, b + received])
    });
    println!(
        "{actors:6} actors in {homes:4} homes, {threads} threads of the host: {:.2} M/s in and {:.2} M/s out",
        rates[0], rates[1]
    );
    Ok(())
}

/// Tokens that each make so many hops, every one `stride` actors on (0: to any); each actor counts them.
fn hops(
    device: &Device,
    handler: &Handler,
    actors: u32,
    homes: u32,
    tokens: u32,
    (hops, stride): (u32, u32),
) -> Result<(), Box<dyn std::error::Error>> {
    let mut shape = Shape::new(homes, actors);
    // Room for all of them in any one home: who is late gets them all.
    shape.boxes = shape.boxes.max((2 * tokens).next_power_of_two());
    let commons = Arc::new(Commons::new(device, shape)?);
    let grid = active(Grid::new(
        &commons,
        handler,
        &[0; 4],
        &GridOptions::new(actors, homes),
    )?);
    let started = Instant::now();
    for token in 0..tokens {
        let first = token * (actors / tokens.max(1)) % actors;
        let message = Token {
            hops,
            next: if stride == 0 {
                token + 1
            } else {
                (first + stride) % actors
            },
            stride,
            actors,
        };
        let words = packet(Kind::Message, first, &message, 0);
        while grid.push(grid.home_of(first), [&words]) == 0 {}
    }
    let mut back = 0;
    while back < tokens {
        for home in 0..homes {
            grid.drain(home, 8, |p| {
                if p[6] & 255 == Kind::Message as u32 {
                    back += 1;
                } else {
                    eprintln!("undelivered: {p:?}");
                    std::process::exit(1);
                }
            });
        }
        if started.elapsed() > Duration::from_secs(20) {
            eprintln!("{back} of {tokens} tokens came back");
            std::process::exit(1);
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let total = f64::from(tokens) * f64::from(hops);
    println!(
        "{tokens:6} tokens among {actors} actors in {homes} homes: {:.3} us a hop, {:.1} M hops/s",
        seconds * 1e6 / f64::from(hops),
        total / seconds / 1e6
    );
    let counts: Vec<u32> = grid
        .read_states()?
        .chunks_exact(4)
        .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
        .collect();
    let sum: u64 = counts.iter().map(|c| u64::from(*c)).sum();
    assert_eq!(
        sum,
        u64::from(tokens) * (u64::from(hops) + 1),
        "each hop was counted by its actor"
    );
    let reached = counts.iter().filter(|c| **c > 0).count();
    println!(
        "{:8} {reached} of {actors} actors reached, {sum} handler runs counted there",
        ""
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().any(|a| a == "--list" || a == "--test") {
        return Ok(());
    }
    let device = match Device::new(BackendKind::Cuda, 0) {
        Ok(device) => device,
        Err(error) => {
            println!("ignored: needs CUDA ({error})");
            return Ok(());
        }
    };
    println!("{}", device.info().name);
    println!("ask and answer, 64 bytes each way, a handler with state, checks on:");
    for (actors, homes) in [(1, 1), (1000, 1), (1000, 32), (1000, 132)] {
        round_trips(&device, &accumulate::handler(), actors, homes)?;
    }
    println!("by the runtime's `ask_blocking`:");
    for actors in [1, 1000] {
        asks(accumulate::handler(), actors)?;
    }
    println!("packets through the host's rings:");
    for (actors, homes) in [(1, 1), (32, 1), (256, 8), (1024, 32), (4224, 132)] {
        throughput(&device, &accumulate::handler(), (actors, homes), 1)?;
    }
    for threads in [2, 4, 8] {
        throughput(&device, &accumulate::handler(), (4224, 132), threads)?;
    }
    println!("actors of a launch:");
    lives(&device)?;
    println!("hops from actor to actor:");
    let hops = |actors, homes, tokens, way| hops(&device, &pass::handler(), actors, homes, tokens, way);
    hops(2, 2, 1, (20_000, 1))?;
    hops(132, 132, 1, (20_000, 1))?;
    hops(132, 132, 132, (20_000, 1))?;
    println!("the same at random:");
    hops(33_792, 132, 8448, (5_000, 0))?;
    hops(33_792, 132, 16_896, (2_000, 0))?;
    hops(135_168, 528, 16_896, (2_000, 0))?;
    hops(135_168, 528, 67_584, (1_000, 0))?;
    println!("a million actors: round the ring, and at random:");
    hops(1_000_000, 132, 1000, (999, 1))?;
    hops(1_000_000, 132, 1000, (20_000, 0))?;
    hops(1_000_000, 528, 65_536, (2_000, 0))?;
    println!("ask and answer, with a loop in the handler:");
    round_trips(&device, &accumulate_in_a_loop::handler(), 1, 1)?;
    Ok(())
}
