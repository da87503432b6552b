//! At least once: a message is acknowledged when its handler has returned, and delivered again until then.

use std::time::Duration;

use perpetua::actors::{
    ActorError, ActorState, Context, DeadReason, Delivery, KernelHandle, LaunchOptions, OnFault, RingMessage,
    SendOptions, Supervision, ring_kernel,
};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

use super::{builder, engines, eventually, runtime};

/// Faults in its first deliveries.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Flaky {
    tag: u32,
    faults: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Done {
    tag: u32,
    delivery: u32,
    /// The message's stamp.
    name: u64,
}

/// Sends on what it gets.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Pass {
    to: u32,
    faults: u32,
}

/// Which runs there were, also those that have faulted: for `OnFault::KeepState`.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Runs {
    count: u32,
    returned: u32,
    names: [u32; 16],
}

#[ring_kernel(also(pass))]
fn flaky(ctx: &mut Context, runs: &mut Runs, message: Flaky) -> Done {
    runs.names[(runs.count & 15) as usize] = ctx.sent() as u32;
    runs.count += 1;
    let faults = (ctx.delivery() <= message.faults) as usize;
    runs.count += [0u32; 4][faults * 4];
    runs.returned += 1;
    Done {
        tag: message.tag,
        delivery: ctx.delivery(),
        name: ctx.sent(),
    }
}

#[ring_kernel]
fn pass(ctx: &mut Context, _runs: &mut Runs, message: Pass) {
    ctx.send(
        message.to,
        Flaky {
            tag: 77,
            faults: message.faults,
        },
    );
}

fn options() -> LaunchOptions {
    LaunchOptions::new(flaky::handler())
        .with_delivery(Delivery::AtLeastOnce)
        .with_supervision(Supervision::Restart {
            max: 100,
            backoff: Duration::from_micros(100),
        })
}

fn next(kernel: &KernelHandle) -> Done {
    block_on(kernel.receive()).unwrap()
}

pub(crate) fn a_message_is_delivered_until_its_handler_returns() {
    let runtime = runtime();
    let kernel = runtime
        .launch_blocking("flaky", options().with_on_fault(OnFault::KeepState))
        .unwrap();
    // Who asks gets the answer of the delivery that returned.
    let third: Done = kernel.ask_blocking(&Flaky { tag: 1, faults: 2 }).unwrap();
    assert_eq!((third.tag, third.delivery), (1, 3));
    let runs: Runs = kernel.read_state().unwrap();
    assert_eq!((runs.count, runs.returned), (3, 1));
    // One message, by its name.
    assert_eq!(runs.names[..3], [third.name as u32; 3]);
    assert_eq!(runtime.dead_letters().counts().total(), 0);

    // Before what came behind it.
    for (tag, faults) in [(2, 1), (3, 0), (4, 2)] {
        kernel.send(&Flaky { tag, faults }).unwrap();
    }
    let done = [(); 3].map(|()| next(&kernel));
    assert_eq!(
        done.map(|done| (done.tag, done.delivery)),
        [(2, 2), (3, 1), (4, 3)]
    );
    let mut names = done.map(|done| done.name);
    names.sort_unstable();
    assert!(names[0] != names[1] && names[1] != names[2] && names[0] != third.name);

    // As often as allowed, three times unless said otherwise.
    let error = kernel
        .ask_blocking::<_, Done>(&Flaky { tag: 5, faults: 9 })
        .unwrap_err();
    assert!(matches!(error, ActorError::Faulted { .. }), "{error}");
    let letters = runtime.dead_letters().letters();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].reason, DeadReason::Faulted);
    assert_eq!(letters[0].packet.header.deliveries.before(), 2);
    assert_eq!(kernel.read_state::<Runs>().unwrap().returned, 4);
    // It can be sent again by hand, and its handler sees that it is not the first time.
    eventually("the restart", || kernel.state() == ActorState::Active);
    let broker = runtime.k2k_broker().unwrap();
    assert_eq!(broker.resend_dead_letters(), 1);
    eventually("another letter", || {
        runtime.dead_letters().counts().of(DeadReason::Faulted) == 2
    });
    assert_eq!(
        runtime.dead_letters().letters()[0]
            .packet
            .header
            .deliveries
            .before(),
        3
    );
    assert_eq!(kernel.metrics().errors_encountered, 9);
}

pub(crate) fn a_transaction_is_delivered_again_whole() {
    let runtime = runtime();
    let kernel = runtime.launch_blocking("flaky", options()).unwrap();
    // From an actor, too: the one that gets it says how often.
    let first: ActorError = kernel
        .ask_blocking::<_, Done>(&Pass {
            to: kernel.id().0,
            faults: 2,
        })
        .unwrap_err();
    assert!(matches!(first, ActorError::NoReply { .. }), "{first}");
    // The answer goes to who sent it, which does not take it.
    eventually("its third delivery", || {
        kernel.read_state::<Runs>().unwrap().returned == 1
    });
    let runs: Runs = kernel.read_state().unwrap();
    assert_eq!((runs.count, runs.returned), (1, 1));
    assert_eq!(runtime.dead_letters().counts().total(), 0);
    assert_eq!(kernel.metrics().errors_encountered, 2);
}

pub(crate) fn a_message_says_itself_how_often_it_is_delivered() {
    let runtime = runtime();
    let restart = Supervision::Restart {
        max: 100,
        backoff: Duration::from_micros(100),
    };
    let launch = |name: &str, delivery: Delivery| {
        let options = LaunchOptions::new(flaky::handler())
            .with_supervision(restart)
            .with_delivery(delivery)
            .with_max_deliveries(63);
        runtime.launch_blocking(name, options).unwrap()
    };
    let say = |delivery| SendOptions {
        delivery: Some(delivery),
        ..SendOptions::default()
    };
    let once = launch("once", Delivery::AtMostOnce);
    once.send_with(&Flaky { tag: 1, faults: 5 }, say(Delivery::AtLeastOnce))
        .unwrap();
    assert_eq!(next(&once).delivery, 6);
    assert_eq!(runtime.dead_letters().counts().total(), 0);
    once.send(&Flaky { tag: 2, faults: 1 }).unwrap();
    eventually("its letter", || runtime.dead_letters().counts().total() == 1);

    let again = launch("again", Delivery::AtLeastOnce);
    again
        .send_with(&Flaky { tag: 3, faults: 1 }, say(Delivery::AtMostOnce))
        .unwrap();
    eventually("its letter", || runtime.dead_letters().counts().total() == 2);
    again.send(&Flaky { tag: 4, faults: 1 }).unwrap();
    assert_eq!(next(&again).tag, 4);

    for deliveries in [0, 64] {
        let options = LaunchOptions::new(flaky::handler()).with_max_deliveries(deliveries);
        let error = runtime.launch_blocking("never", options).unwrap_err();
        assert!(error.to_string().contains("1 to 63 times"), "{error}");
    }
}

pub(crate) fn a_restart_by_hand_delivers_again() {
    let runtime = runtime();
    let options = options().with_supervision(Supervision::Manual);
    let kernel = runtime.launch_blocking("flaky", options).unwrap();
    kernel.send(&Flaky { tag: 1, faults: 1 }).unwrap();
    eventually("the fault", || kernel.state() == ActorState::Faulted);
    kernel.send(&Flaky { tag: 2, faults: 0 }).unwrap();
    assert_eq!(runtime.dead_letters().counts().total(), 0);
    block_on(kernel.restart()).unwrap();
    let done = [(); 2].map(|()| next(&kernel));
    assert_eq!(done.map(|done| (done.tag, done.delivery)), [(1, 2), (2, 1)]);
}

pub(crate) fn what_a_checkpoint_holds_is_delivered_again() {
    let file = engines::file("perpetua-again");
    let runtime = runtime();
    let launch = |name: &str, options: LaunchOptions| {
        let kernel = runtime.launch_blocking(name, options.without_auto_activate());
        let kernel = kernel.unwrap();
        kernel.send(&Flaky { tag: 1, faults: 0 }).unwrap();
        kernel
    };
    let again = launch("again", options().with_max_deliveries(7));
    let once = launch("once", LaunchOptions::new(flaky::handler()));
    // One that has faulted waits, too.
    let faulted = runtime
        .launch_blocking("faulted", options().with_supervision(Supervision::Manual))
        .unwrap();
    faulted.send(&Flaky { tag: 1, faults: 1 }).unwrap();
    eventually("the fault", || faulted.state() == ActorState::Faulted);
    runtime.checkpoint_blocking(&file).unwrap();
    // This process goes on, and handles them: to the next one they come again.
    block_on(again.activate()).unwrap();
    assert_eq!(next(&again).delivery, 1);
    drop((again, once, faulted, runtime));

    let other = builder().build_blocking().unwrap();
    other.register(flaky::handler());
    let restored = other.restore_blocking(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    for (kernel, delivery) in restored.iter().zip([2, 1, 3]) {
        block_on(kernel.activate()).unwrap();
        assert_eq!(next(kernel).delivery, delivery, "{kernel:?}");
    }
    // How often is in the checkpoint, too.
    restored[0].send(&Flaky { tag: 2, faults: 6 }).unwrap();
    assert_eq!(next(&restored[0]).delivery, 7);
}
