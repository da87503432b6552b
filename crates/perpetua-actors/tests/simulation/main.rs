//! A runtime that is simulated: runs follow from their seeds, and time from what happens.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bank;
mod mailbox;

use std::time::{Duration, Instant};

use perpetua::actors::runtime::{PerpetuaRuntime, TraceEvent};
use perpetua::actors::{Context, LaunchOptions, RingMessage, Simulation, Supervision, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Pass {
    left: u32,
    next: u32,
}

/// Hands it to the other one, until none is left.
#[ring_kernel]
fn pass(ctx: &mut Context, seen: &mut u32, pass: Pass) {
    *seen += 1;
    if pass.left > 0 {
        let own = ctx.actor();
        ctx.send(
            pass.next,
            Pass {
                left: pass.left - 1,
                next: own,
            },
        );
    }
}

fn run(simulation: Simulation) -> (u32, Vec<TraceEvent>) {
    let runtime = PerpetuaRuntime::builder()
        .simulated(simulation.traced())
        .build_blocking()
        .unwrap();
    let options = LaunchOptions::new(pass::handler())
        .with_actors(3)
        .with_supervision(Supervision::Restart {
            max: 1000,
            backoff: Duration::from_millis(1),
        });
    let all = runtime.launch_blocking("all", options).unwrap();
    let number = |i| all.actor(i).unwrap().id().0;
    for i in 0..3 {
        let pass = Pass {
            left: 5,
            next: number((i + 1) % 3),
        };
        all.actor(i).unwrap().send(&pass).unwrap();
    }
    block_on(runtime.idle());
    let seen = (0..3).map(|i| all.actor(i).unwrap().read_state::<u32>().unwrap());
    (seen.sum(), runtime.trace())
}

#[test]
fn a_seed_gives_one_run_and_another_one_another() {
    let (seen, trace) = run(Simulation::new(7));
    assert_eq!(seen, 18);
    assert_eq!(run(Simulation::new(7)), (seen, trace.clone()));
    let others = (8..16).filter(|seed| run(Simulation::new(*seed)).1 != trace);
    assert_eq!(others.count(), 8);
    let faulty = Simulation::new(7).with_fault_one_in(4);
    let (faulted, trace) = run(faulty.clone());
    assert!(faulted < 18, "{trace:#?}");
    assert_eq!(run(faulty), (faulted, trace));
}

/// So many seeds at least; `PERPETUA_SEEDS` asks for another number, `PERPETUA_FIRST_SEED` for other ones.
const SEEDS: u64 = 50_000;
/// Of so many seeds the trace of one is checked against the model.
const TRACED: u64 = 25;

fn number(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn money_and_messages_are_all_there_whatever_the_seed() {
    let first = number("PERPETUA_FIRST_SEED", 0);
    let seeds = first..first + number("PERPETUA_SEEDS", SEEDS);
    let began = Instant::now();
    let lanes = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let count = |lane: u64| {
        let mut sum = bank::Report::default();
        for seed in seeds.clone().filter(|seed| seed % lanes == lane) {
            let run = std::panic::catch_unwind(|| checked(seed));
            let run = run.unwrap_or_else(|_| {
                panic!("seed {seed}: PERPETUA_FIRST_SEED={seed} PERPETUA_SEEDS=1 runs it alone")
            });
            sum.handled += run.handled;
            sum.faulted += run.faulted;
            sum.dead += run.dead;
            sum.refused += run.refused;
            sum.restored += run.restored;
        }
        sum
    };
    let sums: Vec<bank::Report> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|lane| scope.spawn(move || count(lane))).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).collect()
    });
    let all = |of: fn(&bank::Report) -> u64| sums.iter().map(of).sum::<u64>();
    println!(
        "{} seeds in {:.1?}: {} handled, {} faults, {} dead letters, {} refused, {} restored",
        seeds.end - seeds.start,
        began.elapsed(),
        all(|r| r.handled),
        all(|r| r.faulted),
        all(|r| r.dead),
        all(|r| r.refused),
        all(|r| r.restored),
    );
    // All kinds of things have happened, or this proves little.
    if seeds.end - seeds.start >= SEEDS {
        for of in [
            |r: &bank::Report| r.faulted,
            |r: &bank::Report| r.dead,
            |r: &bank::Report| r.refused,
            |r: &bank::Report| r.restored,
        ] {
            assert!(all(of) > SEEDS / 10);
        }
    }
}

fn checked(seed: u64) -> bank::Report {
    let traced = seed.is_multiple_of(TRACED);
    let report = bank::run(seed, traced);
    if traced {
        let model = mailbox::Mailbox::of(bank::capacity(seed));
        for trace in &report.traces {
            let mut actors: Vec<u32> = trace.iter().map(|event| event.actor.0).collect();
            actors.sort_unstable();
            actors.dedup();
            for actor in actors {
                if let Err(why) = model.check(trace, actor) {
                    panic!("seed {seed}: {why}");
                }
            }
        }
    }
    report
}
