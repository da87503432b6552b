//! Actors on the CPU: how long a question takes to be answered, and how many messages pass. `cargo bench -p perpetua-actors
//! --bench ask`.

// A bench may unwrap: what fails there has no figures.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use perpetua::actors::{Context, KernelHandle, LaunchOptions, PerpetuaRuntime, RingMessage, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Add {
    amount: u32,
    words: [u32; 15],
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Total {
    sum: u32,
    words: [u32; 15],
}

#[ring_kernel]
fn adder(_ctx: &mut Context, state: &mut u32, message: Add) -> Total {
    *state += message.amount;
    Total {
        sum: *state,
        words: message.words,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Token {
    hops: u32,
    next: u32,
}

#[ring_kernel]
fn passer(ctx: &mut Context, state: &mut u32, message: Token) {
    *state += 1;
    if message.hops > 0 {
        let me = ctx.actor();
        ctx.send(
            message.next,
            Token {
                hops: message.hops - 1,
                next: me,
            },
        );
    }
}

#[ring_kernel]
fn sink(_ctx: &mut Context, state: &mut u32, message: Token) {
    *state += message.hops;
}

const ADD: Add = Add {
    amount: 1,
    words: [7; 15],
};

fn quantiles(name: &str, count: usize, mut ask: impl FnMut()) {
    (0..count / 10).for_each(|_| ask());
    let mut times: Vec<u64> = (0..count)
        .map(|_| {
            let began = Instant::now();
            ask();
            began.elapsed().as_nanos() as u64
        })
        .collect();
    report(name, &mut times);
}

fn report(name: &str, times: &mut [u64]) {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    println!(
        "{name:44} p50 {:>7} ns  p99 {:>7} ns  p99.9 {:>8} ns",
        at(0.5),
        at(0.99),
        at(0.999)
    );
}

fn launch(runtime: &PerpetuaRuntime, name: &str, options: LaunchOptions) -> KernelHandle {
    runtime.launch_blocking(name, options).unwrap()
}

fn main() {
    let runtime = PerpetuaRuntime::builder().build_blocking().unwrap();
    let one = launch(&runtime, "one", LaunchOptions::new(adder::handler()));
    quantiles("ask, busy", 300_000, || {
        one.ask_blocking::<_, Total>(&ADD).unwrap();
    });
    quantiles("ask, awaited", 300_000, || {
        block_on(one.ask::<_, Total>(&ADD)).unwrap();
    });
    let all = launch(
        &runtime,
        "many",
        LaunchOptions::new(adder::handler()).with_actors(1000),
    );
    let many: Vec<KernelHandle> = (0..1000).map(|i| all.actor(i).unwrap()).collect();
    let mut next = 0;
    quantiles("ask, busy, 1000 actors in turn", 300_000, || {
        many[next % 1000].ask_blocking::<_, Total>(&ADD).unwrap();
        next += 1;
    });
    // Workers only: what handlers that are not quick cost on top of their own time.
    let limited = LaunchOptions::new(adder::handler()).with_run_limit(Duration::from_secs(1));
    let limited = launch(&runtime, "limited", limited);
    quantiles("ask, busy, on a worker", 100_000, || {
        limited.ask_blocking::<_, Total>(&ADD).unwrap();
    });
    quantiles("ask, parked, on a worker", 50_000, || {
        block_on(limited.ask::<_, Total>(&ADD)).unwrap();
    });
    let mut times: Vec<u64> = (0..300)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            let began = Instant::now();
            block_on(limited.ask::<_, Total>(&ADD)).unwrap();
            began.elapsed().as_nanos() as u64
        })
        .collect();
    report("ask, parked, worker asleep", &mut times);

    let count = 2_000_000u32;
    let sink = launch(
        &runtime,
        "sink",
        LaunchOptions::new(sink::handler()).with_queue_capacity(1 << 16),
    );
    let began = Instant::now();
    let token = Token { hops: 1, next: 0 };
    for _ in 0..count {
        while sink.send(&token).is_err() {
            std::thread::yield_now();
        }
    }
    while sink.metrics().messages_processed < u64::from(count) {
        std::thread::yield_now();
    }
    let rate = f64::from(count) / began.elapsed().as_secs_f64();
    println!(
        "{:44} {:.2} M messages/s",
        "one thread sends to one actor",
        rate / 1e6
    );

    let (a, b) = (
        launch(&runtime, "a", LaunchOptions::new(passer::handler())),
        launch(&runtime, "b", LaunchOptions::new(passer::handler())),
    );
    let began = Instant::now();
    let next = b.id().0;
    a.send(&Token { hops: count, next }).unwrap();
    while a.metrics().messages_processed + b.metrics().messages_processed <= u64::from(count) {
        std::thread::sleep(Duration::from_micros(100));
    }
    let hop = began.elapsed().as_nanos() as f64 / f64::from(count);
    println!("{:44} {hop:.0} ns", "hop from actor to actor");

    let began = Instant::now();
    let rounds = 20_000;
    for i in 0..rounds {
        let made = launch(
            &runtime,
            &format!("made {i}"),
            LaunchOptions::new(adder::handler()),
        );
        block_on(made.terminate()).unwrap();
    }
    let each = began.elapsed().as_nanos() / rounds;
    println!("{:44} {each} ns", "create and destroy an actor");
    let began = Instant::now();
    for _ in 0..rounds {
        block_on(one.restart()).unwrap();
    }
    println!(
        "{:44} {} ns",
        "restart an actor",
        began.elapsed().as_nanos() / rounds
    );
    let began = Instant::now();
    let million = launch(
        &runtime,
        "million",
        LaunchOptions::new(adder::handler()).with_actors(1_000_000),
    );
    println!("{:44} {:?}", "create a million actors", began.elapsed());
    let began = Instant::now();
    for i in 0..1_000_000 {
        million.actor(i).unwrap().ask_blocking::<_, Total>(&ADD).unwrap();
    }
    println!("{:44} {:?}", "ask each of them", began.elapsed());
    runtime.shutdown_blocking().unwrap();
}
