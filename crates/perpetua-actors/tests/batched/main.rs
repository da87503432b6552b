//! Actors that run as kernels, in batches and resident: the same messages give the same answers as on threads; faults, lives and
//! checkpoints are the same, too. `engines` says where.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../engines/mod.rs"]
mod engines;
mod groups;

use std::time::{Duration, Instant};

use perpetua::actors::pubsub::SubscribeOptions;
use perpetua::actors::{
    ActorError, ActorState, Context, DeadReason, KernelHandle, LaunchOptions, PerpetuaRuntime, RingMessage,
    Supervision, Topic, ring_kernel,
};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Add {
    place: u32,
    amount: i64,
    weight: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Sums {
    count: u32,
    sum: i64,
    mean: f32,
}

/// Adds, and passes on to an actor, and publishes.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Spread {
    to: u32,
    topic: u32,
    amount: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct State {
    places: [i64; 4],
    mean: f32,
    count: u32,
}

#[ring_kernel(also(spread))]
fn add(_ctx: &mut Context, state: &mut State, add: Add) -> Sums {
    state.places[add.place as usize] += add.amount;
    state.count += 1;
    state.mean += (add.weight - state.mean) / state.count as f32;
    let mut sum = 0i64;
    for i in 0..4 {
        sum += state.places[i];
    }
    Sums {
        count: state.count,
        sum,
        mean: state.mean,
    }
}

#[ring_kernel]
fn spread(ctx: &mut Context, state: &mut State, spread: Spread) {
    state.places[3] += 1;
    let add = Add {
        place: 1,
        amount: spread.amount,
        weight: 0.5,
    };
    ctx.send(spread.to, add);
    ctx.publish(spread.topic, add);
}

fn runtimes() -> [PerpetuaRuntime; 2] {
    let builder = PerpetuaRuntime::builder().patience(Duration::from_millis(100));
    let threads = builder.clone().threads(2).build_blocking().unwrap();
    let others = engines::other(builder).build_blocking().unwrap();
    assert!(threads.backend().stays());
    [threads, others]
}

fn launch(runtime: &PerpetuaRuntime, name: &str, options: LaunchOptions) -> KernelHandle {
    runtime
        .launch_blocking(name, options.with_handler(add::handler()))
        .unwrap()
}

fn eventually(what: &str, done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < until, "not within twenty seconds: {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn message(i: u32) -> Add {
    Add {
        place: i * 7 % 4,
        amount: i64::from(i) << 33,
        weight: (i * 31 % 17) as f32 / 3.0,
    }
}

fn the_same_messages_give_the_same_answers() {
    let [threads, batches] = runtimes().map(|runtime| {
        let all = launch(&runtime, "sums", LaunchOptions::default().with_actors(3));
        let mut answers = Vec::new();
        for i in 0..60 {
            let one = all.actor(i % 3).unwrap();
            let sums: Sums = one.ask_blocking(&message(i)).unwrap();
            answers.push((sums.count, sums.sum, sums.mean.to_bits()));
        }
        for i in 0..200 {
            let one = all.actor(i % 3).unwrap();
            block_on(one.send_when_room(&message(i))).unwrap();
            let sums: Sums = block_on(one.receive()).unwrap();
            answers.push((sums.count, sums.sum, sums.mean.to_bits()));
        }
        let states: Vec<State> = (0..3)
            .map(|i| all.actor(i).unwrap().read_state().unwrap())
            .collect();
        eventually("all are counted", || all.metrics().messages_processed == 260);
        assert!(runtime.shutdown_blocking().unwrap().drained);
        (answers, states)
    });
    assert_eq!(threads, batches);
}

fn handlers_send_and_publish_from_batches() {
    let states = runtimes().map(|runtime| {
        let number = runtime.pubsub().number(&Topic::new("sums/all")).unwrap();
        let all = launch(
            &runtime,
            "all",
            LaunchOptions::default().with_actors(2).with_queue_capacity(4),
        );
        let listener = launch(
            &runtime,
            "listener",
            LaunchOptions::default().with_queue_capacity(4),
        );
        listener
            .subscribe(Topic::new("sums/#"), SubscribeOptions::default())
            .unwrap();
        let (one, other) = (all.actor(0).unwrap(), all.actor(1).unwrap());
        for amount in 0..50 {
            let spread = Spread {
                to: other.id().0,
                topic: number,
                amount,
            };
            block_on(one.send_when_room(&spread)).unwrap();
            // The answers to what was not asked go to the sender, which does not take them; the listener's go nowhere either.
        }
        eventually("all are handled", || {
            other.metrics().messages_processed == 50 && listener.metrics().messages_processed == 50
        });
        assert_eq!(runtime.dead_letters().counts().total(), 0);
        [one, other, listener].map(|kernel| kernel.read_state::<State>().unwrap())
    });
    assert_eq!(states[0], states[1]);
    assert_eq!(states[1][1].places[1], (0..50).sum::<i64>());
}

fn a_fault_harms_its_own_actor_only() {
    for runtime in runtimes() {
        let all = launch(
            &runtime,
            "all",
            LaunchOptions::default().with_actors(3).without_auto_activate(),
        );
        for i in 0..3 {
            let one = all.actor(i).unwrap();
            one.send(&message(0)).unwrap();
            let place = if i == 1 { 4 } else { 0 };
            let bad = Add { place, ..message(1) };
            one.send(&bad).unwrap();
            one.send(&message(2)).unwrap();
        }
        block_on(all.activate()).unwrap();
        let faulty = all.actor(1).unwrap();
        eventually("the fault", || faulty.state() == ActorState::Faulted);
        eventually("what is told of it", || faulty.last_fault().is_some());
        eventually("the others", || all.metrics().messages_processed == 7);
        let fault = faulty.last_fault().unwrap();
        // Grids tell the line, the other engines the index, too.
        let tells = fault.contains("index is 4") || fault.contains("batched/main.rs:56");
        assert!(fault.contains("index out of bounds") && tells, "{fault}");
        // What a device has had already comes back.
        eventually("the message behind it", || faulty.metrics().queue_depth == 1);
        eventually("the letter", || {
            runtime.dead_letters().counts().of(DeadReason::Faulted) == 1
        });
        block_on(faulty.restart()).unwrap();
        eventually("the third", || faulty.metrics().messages_processed == 2);
        assert_eq!(faulty.read_state::<State>().unwrap().count, 1);
        assert_eq!(all.actor(2).unwrap().read_state::<State>().unwrap().count, 3);
    }
}

fn supervision_lives_and_refusals_are_the_same() {
    for runtime in runtimes() {
        let restart = Supervision::Restart {
            max: 1,
            backoff: Duration::from_millis(1),
        };
        let kernel = launch(
            &runtime,
            "restarts",
            LaunchOptions::default().with_supervision(restart),
        );
        let bad = Add {
            place: 9,
            ..message(1)
        };
        let error = kernel.ask_blocking::<_, Sums>(&bad).unwrap_err();
        assert!(matches!(error, ActorError::Faulted { .. }), "{error}");
        eventually("it is active again", || kernel.state() == ActorState::Active);
        block_on(kernel.deactivate()).unwrap();
        kernel.send(&message(3)).unwrap();
        let late = kernel.ask_blocking_timeout::<_, Sums>(&message(3), Duration::from_millis(5));
        assert!(matches!(late, Err(ActorError::Timeout { .. })));
        block_on(kernel.activate()).unwrap();
        eventually("both are handled", || kernel.metrics().messages_processed == 2);
        block_on(kernel.terminate()).unwrap();
        assert!(matches!(
            kernel.send(&message(0)),
            Err(ActorError::Terminated { .. })
        ));
    }
}

fn a_checkpoint_of_threads_goes_on_in_batches() {
    let [threads, batches] = runtimes();
    let file = engines::file("perpetua-batched");
    let kernel = launch(&threads, "moves", LaunchOptions::default());
    for i in 0..10 {
        let _: Sums = kernel.ask_blocking(&message(i)).unwrap();
    }
    block_on(kernel.deactivate()).unwrap();
    kernel.send(&message(10)).unwrap();
    threads.checkpoint_blocking(&file).unwrap();
    block_on(kernel.activate()).unwrap();
    batches.register(add::handler());
    let moved = batches.restore_blocking(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(moved[0].state(), ActorState::Deactivated);
    block_on(moved[0].activate()).unwrap();
    let [here, there] =
        [&kernel, &moved[0]].map(|kernel| block_on(kernel.ask::<_, Sums>(&message(11))).unwrap());
    assert_eq!(here, there);
    assert_eq!(here.count, 12);
}

fn checkpoints_are_taken_between_batches_under_load() {
    let [threads, batches] = runtimes();
    drop(threads);
    let file = engines::file("perpetua-batches");
    let options = LaunchOptions::default().with_actors(2).with_queue_capacity(8);
    let all = launch(&batches, "all", options);
    let until = Instant::now() + Duration::from_secs(1);
    std::thread::scope(|scope| {
        for i in 0..2 {
            let kernel = all.actor(i).unwrap();
            scope.spawn(move || {
                while Instant::now() < until {
                    if kernel.send(&message(1)).is_err() {
                        while kernel.try_receive::<Sums>().unwrap().is_some() {}
                    }
                }
            });
        }
        while Instant::now() < until {
            batches.checkpoint_blocking(&file).unwrap();
            let again = PerpetuaRuntime::builder().threads(1).build_blocking().unwrap();
            again.register(add::handler());
            let restored = again.restore_blocking(&file).unwrap();
            for i in 0..2 {
                let kernel = restored[0].actor(i).unwrap();
                eventually("what waited is handled", || {
                    while kernel.try_receive::<Sums>().unwrap().is_some() {}
                    kernel.metrics().queue_depth == 0
                });
                let state: State = kernel.read_state().unwrap();
                assert_eq!(u64::from(state.count), kernel.metrics().messages_processed);
            }
        }
    });
    std::fs::remove_file(&file).unwrap();
    assert!(all.metrics().messages_processed > 0);
}

/// Sends itself to who gets it, for ever.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Again {
    to: u32,
}

#[ring_kernel]
fn again(ctx: &mut Context, turns: &mut u32, again: Again) {
    *turns += 1;
    if again.to != u32::MAX {
        ctx.send(again.to, again);
    }
}

fn who_has_ever_more_messages_keeps_nobody_waiting() {
    // More than a batch takes.
    const BUSY: u32 = 66;
    const EACH: usize = 64;
    let runtime = engines::other(PerpetuaRuntime::builder().ask_timeout(Duration::from_secs(120)));
    let runtime = runtime.build_blocking().unwrap();
    let options = LaunchOptions::new(again::handler())
        .with_actors(BUSY + 1)
        .without_auto_activate();
    let all = runtime.launch_blocking("again", options).unwrap();
    for actor in (0..BUSY).map(|i| all.actor(i).unwrap()) {
        let to = Again { to: actor.id().0 };
        (0..EACH).for_each(|_| actor.send(&to).unwrap());
    }
    block_on(all.activate()).unwrap();
    let last = all.actor(BUSY).unwrap();
    let outcome = last.ask_blocking::<_, Again>(&Again { to: u32::MAX });
    assert!(matches!(outcome, Err(ActorError::NoReply { .. })), "{outcome:?}");
    block_on(all.deactivate()).unwrap();
}

fn main() -> std::process::ExitCode {
    engines::run(&[
        (
            "the_same_messages_give_the_same_answers",
            the_same_messages_give_the_same_answers,
        ),
        (
            "handlers_send_and_publish_from_batches",
            handlers_send_and_publish_from_batches,
        ),
        (
            "a_fault_harms_its_own_actor_only",
            a_fault_harms_its_own_actor_only,
        ),
        (
            "supervision_lives_and_refusals_are_the_same",
            supervision_lives_and_refusals_are_the_same,
        ),
        (
            "a_checkpoint_of_threads_goes_on_in_batches",
            a_checkpoint_of_threads_goes_on_in_batches,
        ),
        (
            "checkpoints_are_taken_between_batches_under_load",
            checkpoints_are_taken_between_batches_under_load,
        ),
        (
            "who_has_ever_more_messages_keeps_nobody_waiting",
            who_has_ever_more_messages_keeps_nobody_waiting,
        ),
        (
            "a_group_of_lanes_does_what_one_does",
            groups::a_group_of_lanes_does_what_one_does,
        ),
    ])
}
