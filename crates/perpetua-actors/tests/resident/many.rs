//! As many actors as a GPU is to hold, by the runtime: each is asked, a token goes round all of them, tokens go wherever chance
//! sends them, and what was done is counted and can be read, with the actors and after them.

use std::time::{Duration, Instant};

use perpetua::actors::{Context, KernelHandle, LaunchOptions, RingMessage, ring_kernel};
use perpetua::prelude::*;

const HOPS: u32 = 200;

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Walk {
    hops: u32,
    /// 0: anywhere.
    stride: u32,
    seed: u32,
    first: u32,
    actors: u32,
}

/// Sends it on until no hop is left; then to the host.
#[ring_kernel]
fn walk(ctx: &mut Context, visits: &mut u32, message: Walk) {
    *visits += 1;
    let mut walk = message;
    let mut to = u32::MAX;
    if walk.hops > 0 {
        walk.hops -= 1;
        // Marsaglia's xorshift.
        walk.seed ^= walk.seed << 13;
        walk.seed ^= walk.seed >> 17;
        walk.seed ^= walk.seed << 5;
        let step = if walk.stride == 0 { walk.seed } else { walk.stride };
        let me = ctx.actor() - walk.first;
        to = walk.first + (me + step % walk.actors) % walk.actors;
    }
    ctx.send(to, walk);
}

fn eventually(what: &str, done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(120);
    while !done() {
        assert!(Instant::now() < until, "not within two minutes: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    println!("{what}: {:?}", began.elapsed());
    result
}

pub(crate) fn many_actors() {
    let (count, tokens) = if super::has_gpu() {
        (1_000_000, 2_000)
    } else {
        (600, 20)
    };
    let runtime = super::builder().device_actors(count).build_blocking().unwrap();
    let options = LaunchOptions::new(walk::handler()).with_actors(count);
    let all = timed("launched", || runtime.launch_blocking("all", options).unwrap());
    let walk = Walk {
        hops: 0,
        stride: 1,
        seed: 1,
        first: all.id().0,
        actors: count,
    };
    let arrived = |at: &KernelHandle| at.receive_blocking::<Walk>(Duration::from_secs(120)).unwrap();

    timed("each was reached, one after the other", || {
        for i in 0..count {
            let one = all.actor(i).unwrap();
            one.send(&walk).unwrap();
            assert_eq!(arrived(&one).hops, 0);
        }
    });
    timed("a token went round", || {
        let hops = count;
        all.actor(0).unwrap().send(&Walk { hops, ..walk }).unwrap();
        arrived(&all.actor(0).unwrap());
    });
    timed("tokens went anywhere", || {
        for seed in 1u32..=tokens {
            let wanders = Walk {
                hops: HOPS,
                stride: 0,
                seed: seed.wrapping_mul(0x9E37_79B9) | 1,
                ..walk
            };
            all.actor(seed).unwrap().send(&wanders).unwrap();
        }
        let walks = tokens * (HOPS + 1);
        let done = u64::from(2 * count + 1 + walks);
        eventually("all walks are over", || all.metrics().messages_processed == done);
    });
    let done = timed("figures of all", || all.metrics()).messages_processed;
    let last = all.actor(count - 1).unwrap();
    let visits: u32 = last.read_state().unwrap();
    eventually("the last one's visits are counted", || {
        last.metrics().messages_processed == u64::from(visits)
    });
    assert!(visits >= 2, "{visits}");
    assert!(runtime.dead_letters().is_empty());
    timed("shut down", || {
        assert!(runtime.shutdown_blocking().unwrap().drained);
    });
    assert_eq!(all.metrics().messages_processed, done);
}
