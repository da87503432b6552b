//! Messages with vectors, on threads and as kernels (`engines` says where): the same answers, and in the end no block is left in the arena.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod blocks;
#[path = "../engines/mod.rs"]
mod engines;

use std::time::{Duration, Instant};

use perpetua::actors::runtime::RuntimeBuilder;
use perpetua::actors::{
    ActorError, ActorState, Borrowed, Context, DeadReason, KernelHandle, LaunchOptions, PerpetuaRuntime,
    RingMessage, ring_kernel,
};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

/// Multiplies, in place.
#[derive(Clone, Debug, PartialEq, RingMessage)]
struct Scale {
    factor: f32,
    values: Vec<f32>,
}

#[derive(Clone, Debug, PartialEq, RingMessage)]
struct Scaled {
    /// Words that were free before anything was taken.
    room: u32,
    values: Vec<f32>,
    /// Which were negative; none where there was no room.
    negative: Vec<i32>,
}

/// Multiplies as often as it has hops to go, each time at another actor.
#[derive(Clone, Debug, PartialEq, RingMessage)]
struct Relay {
    next: u32,
    hops: u32,
    values: Vec<u32>,
}

/// Element `index` is to be set.
#[derive(Clone, Debug, PartialEq, RingMessage)]
struct Poke {
    index: u32,
    values: Vec<u32>,
}

/// A message without vectors, answered by one that has some.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Count {
    to: u32,
}

#[derive(Clone, Debug, PartialEq, RingMessage)]
struct Counted {
    numbers: Vec<u32>,
}

/// Is sent on twice.
#[derive(Clone, Debug, PartialEq, RingMessage)]
struct Twice {
    to: u32,
    values: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Sent {
    first: bool,
    second: bool,
    published: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct State {
    handled: u32,
    sum: f32,
}

#[ring_kernel(room = 4, also(relay, poke, counts, twice))]
fn scale(ctx: &mut Context, state: &mut State, message: ScaleView) -> ScaledView {
    let room = ctx.room();
    let mut negatives = 0;
    for i in 0..message.values.len() {
        let value = ctx.get(message.values, i) * message.factor;
        ctx.set(message.values, i, value);
        state.sum += value;
        if value < 0.0 {
            negatives += 1;
        }
    }
    let negative = ctx.alloc::<i32>(negatives);
    if !negative.is_empty() {
        let mut next = 0;
        for i in 0..message.values.len() {
            if ctx.get(message.values, i) < 0.0 {
                ctx.set(negative, next, -(i as i32));
                next += 1;
            }
        }
    }
    state.handled += 1;
    ScaledView {
        room,
        values: message.values,
        negative,
    }
}

#[ring_kernel]
fn relay(ctx: &mut Context, state: &mut State, message: RelayView) {
    state.handled += 1;
    let values = message.values;
    for i in 0..values.len() {
        ctx.set(values, i, ctx.get(values, i) * 3 + ctx.actor());
    }
    let to = if message.hops == 0 { u32::MAX } else { message.next };
    let next = ctx.actor();
    ctx.send(
        to,
        RelayView {
            next,
            hops: message.hops - (message.hops != 0) as u32,
            values,
        },
    );
}

#[ring_kernel]
fn poke(ctx: &mut Context, state: &mut State, message: PokeView) {
    ctx.set(message.values, message.index, 7);
    state.handled += 1;
}

#[ring_kernel(room = 100)]
fn counts(ctx: &mut Context, _state: &mut State, message: Count) -> CountedView {
    let numbers = ctx.alloc::<u32>(message.to);
    for i in 0..numbers.len() {
        ctx.set(numbers, i, ctx.get(numbers, i) + i * i);
    }
    CountedView { numbers }
}

#[ring_kernel]
fn twice(ctx: &mut Context, _state: &mut State, message: TwiceView) -> Sent {
    let on = PokeView {
        index: 0,
        values: message.values,
    };
    let published = ctx.publish(0, on);
    let first = ctx.send(message.to, on);
    let second = ctx.send(message.to, on);
    Sent {
        first,
        second,
        published,
    }
}

/// Several lanes share the work, and swap what they have done.
#[ring_kernel(group)]
fn gather(ctx: &mut Context, state: &mut State, message: RelayView) -> RelayView {
    let values = message.values;
    let mut i = ctx.thread_index();
    while i < values.len() {
        ctx.set(values, i, ctx.get(values, i) * 3 + 1);
        i += ctx.group_size();
    }
    ctx.sync();
    if ctx.thread_index() == 0 {
        state.handled += 1;
        let last = values.len() - 1;
        let first = ctx.get(values, 0);
        ctx.set(values, 0, ctx.get(values, last));
        ctx.set(values, last, first);
    }
    message
}

fn builder() -> RuntimeBuilder {
    PerpetuaRuntime::builder()
        .patience(Duration::from_millis(100))
        .threads(2)
}

fn runtimes() -> [PerpetuaRuntime; 2] {
    [
        builder().build_blocking().unwrap(),
        engines::other(builder()).build_blocking().unwrap(),
    ]
}

fn launch(runtime: &PerpetuaRuntime, actors: u32) -> KernelHandle {
    let options = LaunchOptions::new(scale::handler()).with_actors(actors);
    runtime.launch_blocking("scale", options).unwrap()
}

fn eventually(what: &str, done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < until, "not within twenty seconds: {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn empty(runtime: &PerpetuaRuntime) {
    eventually("the arena is empty", || runtime.arena().blocks == 0);
    assert_eq!(runtime.arena().bytes, 0);
}

fn message(len: usize) -> Scale {
    Scale {
        factor: 0.5,
        values: (0..len).map(|i| ((i * 37 % 101) as f32 - 3.0) / 7.0).collect(),
    }
}

fn the_same_vectors_give_the_same_answers() {
    let [threads, others] = runtimes().map(|runtime| {
        let all = launch(&runtime, 3);
        let mut answers = Vec::new();
        for (i, len) in [0, 1, 2, 3, 5, 64, 1000, 40].into_iter().enumerate() {
            let one = all.actor(i as u32 % 3).unwrap();
            let scaled: Scaled = one.ask_blocking(&message(len)).unwrap();
            assert_eq!((scaled.room, scaled.values.len()), (4, len));
            let negatives = scaled.values.iter().filter(|value| **value < 0.0).count();
            assert_eq!(scaled.negative.len(), if negatives > 4 { 0 } else { negatives });
            let borrowed: Borrowed<Scaled> = block_on(one.ask(&message(len))).unwrap();
            assert_eq!(borrowed.get().unwrap().values, scaled.values);
            assert_eq!(borrowed.into_owned().unwrap(), scaled);
            answers.push(scaled);
        }
        for to in [0, 7, 100, 101] {
            let counted: Counted = all.ask_blocking(&Count { to }).unwrap();
            let expected: Vec<u32> = (0..if to > 100 { 0 } else { to }).map(|i| i * i).collect();
            assert_eq!(counted.numbers, expected);
        }
        let states: Vec<State> = (0..3)
            .map(|i| all.actor(i).unwrap().read_state().unwrap())
            .collect();
        empty(&runtime);
        assert!(runtime.shutdown_blocking().unwrap().drained);
        (answers, states)
    });
    assert_eq!(threads, others);
    let bits = |answers: &[Scaled]| -> Vec<u32> {
        answers
            .iter()
            .flat_map(|a| a.values.iter().map(|v| v.to_bits()))
            .collect()
    };
    assert_eq!(bits(&threads.0), bits(&others.0));
}

fn vectors_go_from_actor_to_actor_and_out() {
    let answers = runtimes().map(|runtime| {
        let all = launch(&runtime, 2);
        let relay = Relay {
            next: all.id().0 + 1,
            hops: 9,
            values: (0..33).collect(),
        };
        for _ in 0..3 {
            all.send(&relay).unwrap();
        }
        let last = all.actor(1).unwrap();
        let mut answers = Vec::new();
        for _ in 0..3 {
            let relayed: Borrowed<Relay> = last.receive_blocking(Duration::from_secs(20)).unwrap();
            assert_eq!(runtime.dead_letters().counts().total(), 0);
            answers.push(relayed.get().unwrap().values.to_vec());
        }
        eventually("all are counted", || all.metrics().messages_processed == 30);
        empty(&runtime);
        answers
    });
    assert_eq!(answers[0], answers[1]);
    let mut expected: Vec<u32> = (0..33).collect();
    for hop in 0..10 {
        expected
            .iter_mut()
            .for_each(|value| *value = *value * 3 + hop % 2);
    }
    assert_eq!(answers[0], vec![expected; 3]);
}

fn a_group_of_lanes_shares_a_vector() {
    for runtime in runtimes() {
        let options = LaunchOptions::new(gather::handler()).with_block_size(32);
        let kernel = runtime.launch_blocking("gather", options).unwrap();
        let relay = Relay {
            next: 0,
            hops: 0,
            values: (0..1000).collect(),
        };
        let mut expected: Vec<u32> = (0..1000).map(|value| value * 3 + 1).collect();
        expected.swap(0, 999);
        for _ in 0..20 {
            let gathered: Relay = kernel.ask_blocking(&relay).unwrap();
            assert_eq!(gathered.values, expected);
        }
        empty(&runtime);
    }
}

fn vectors_go_with_the_first_message_only() {
    for runtime in runtimes() {
        let all = launch(&runtime, 2);
        let twice = Twice {
            to: all.id().0 + 1,
            values: vec![1, 2],
        };
        let sent: Sent = all.ask_blocking(&twice).unwrap();
        let expected = Sent {
            first: true,
            second: false,
            published: false,
        };
        assert_eq!(sent, expected);
        eventually("it is handled", || all.metrics().messages_processed == 2);
        empty(&runtime);
    }
}

fn an_index_beyond_a_vector_is_a_fault() {
    for (runtime, is_native) in runtimes().into_iter().zip([true, false]) {
        let all = launch(&runtime, 2);
        let bad = Poke {
            index: 3,
            values: vec![1, 2, 3],
        };
        let error = all.ask_blocking::<_, Sent>(&bad).unwrap_err();
        assert!(matches!(error, ActorError::Faulted { .. }), "{error}");
        eventually("the fault", || {
            all.actor(0).unwrap().state() == ActorState::Faulted
        });
        let fault = all.last_fault().unwrap();
        let expected = "the length of `span` is 3 but the index is 3";
        assert!(fault.contains(expected), "{fault}");
        if !is_native {
            let line = include_str!("main.rs")
                .lines()
                .position(|line| line.contains("message.index, 7"));
            let place = format!("main.rs:{}", line.unwrap() + 1);
            assert!(fault.contains(&place), "{place}: {fault}");
        }
        // The letter has the vectors still; they go with it.
        assert_eq!(runtime.arena().blocks, 1);
        let letter = runtime.dead_letters().letters()[0];
        assert_eq!(letter.reason, DeadReason::Faulted);
        runtime.dead_letters().take(letter.number).unwrap();
        empty(&runtime);
    }
}

fn main() -> std::process::ExitCode {
    engines::run(&[
        (
            "the_same_vectors_give_the_same_answers",
            the_same_vectors_give_the_same_answers,
        ),
        (
            "vectors_go_from_actor_to_actor_and_out",
            vectors_go_from_actor_to_actor_and_out,
        ),
        (
            "a_group_of_lanes_shares_a_vector",
            a_group_of_lanes_shares_a_vector,
        ),
        (
            "vectors_go_with_the_first_message_only",
            vectors_go_with_the_first_message_only,
        ),
        (
            "an_index_beyond_a_vector_is_a_fault",
            an_index_beyond_a_vector_is_a_fault,
        ),
        (
            "blocks_are_freed_wherever_messages_end",
            blocks::blocks_are_freed_wherever_messages_end,
        ),
        (
            "checkpoints_hold_vectors_that_wait",
            blocks::checkpoints_hold_vectors_that_wait,
        ),
    ])
}
