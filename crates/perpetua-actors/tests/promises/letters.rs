//! A message that faulted can be sent again out of the dead letters, with all that it brought.

use std::time::Duration;

use perpetua::actors::{
    ActorState, Context, KernelHandle, LaunchOptions, PerpetuaRuntime, RingMessage, ring_kernel,
};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

use super::{eventually, runtime};

#[derive(Clone, Debug, PartialEq, RingMessage)]
struct Fill {
    values: Vec<u32>,
    turns: u32,
}

#[derive(Clone, Debug, PartialEq, RingMessage)]
struct Filled {
    values: Vec<u32>,
    taken: Vec<u32>,
}

/// What the handlers of this file keep: whether they fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Fuse {
    armed: u32,
    handled: u32,
}

/// Takes all the room there is, writes to it, and then faults while it is armed.
#[ring_kernel(room = 8)]
fn fill(ctx: &mut Context, fuse: &mut Fuse, message: FillView) -> FilledView {
    let taken = ctx.alloc::<u32>(8);
    for i in 0..taken.len() {
        ctx.set(taken, i, ctx.get(taken, i) + i + 1);
    }
    fuse.handled += 1;
    let table = [0u32; 4];
    fuse.handled += table[(fuse.armed * 9) as usize];
    FilledView {
        values: message.values,
        taken,
    }
}

/// Loops for ever while it is armed.
#[ring_kernel]
fn spin(_ctx: &mut Context, fuse: &mut Fuse, message: FillView) -> FilledView {
    let mut at = fuse.armed * message.turns;
    while at != 0 {
        at = (at ^ 6) | 1;
    }
    fuse.handled += 1;
    FilledView {
        values: message.values,
        taken: message.values,
    }
}

const ARMED: Fuse = Fuse { armed: 1, handled: 0 };

fn message() -> Fill {
    Fill {
        values: (5..25).collect(),
        turns: 4,
    }
}

/// Its message has faulted: lets it go on, and sends the letter again.
fn send_again(runtime: &PerpetuaRuntime, kernel: &KernelHandle) -> Filled {
    eventually("the fault", || kernel.state() == ActorState::Faulted);
    eventually("the letter", || runtime.dead_letters().len() == 1);
    assert_eq!(kernel.read_state::<Fuse>().unwrap(), ARMED);
    kernel.write_state(Fuse::default()).unwrap();
    block_on(kernel.activate()).unwrap();
    let broker = runtime.k2k_broker().unwrap();
    assert_eq!(broker.resend_dead_letters(), 1);
    block_on(kernel.receive()).unwrap()
}

pub(crate) fn a_letter_sent_again_finds_its_room() {
    let runtime = runtime();
    let options = LaunchOptions::new(fill::handler()).with_state(ARMED);
    let kernel = runtime.launch_blocking("fills", options).unwrap();
    kernel.send(&message()).unwrap();
    let filled = send_again(&runtime, &kernel);
    assert_eq!(filled.values, message().values);
    // As if nothing had been there before.
    assert_eq!(filled.taken, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(kernel.read_state::<Fuse>().unwrap().handled, 1);
}

pub(crate) fn vectors_stay_with_a_message_whose_handler_does_not_end() {
    let runtime = runtime();
    let options = LaunchOptions::new(spin::handler())
        .with_state(ARMED)
        .with_run_limit(Duration::from_millis(30));
    let kernel = runtime.launch_blocking("spins", options).unwrap();
    kernel.send(&message()).unwrap();
    let filled = send_again(&runtime, &kernel);
    assert_eq!(filled.values, message().values);
}
