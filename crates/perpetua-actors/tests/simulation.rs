//! A runtime that is simulated: runs follow from their seeds, and time from what happens.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

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
