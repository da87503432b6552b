//! At least once: a message is acknowledged when its handler has returned, and delivered again until then.

use std::time::{Duration, Instant};

use perpetua::actors::pubsub::SubscribeOptions;
use perpetua::actors::{
    ActorError, ActorState, Context, DeadReason, Delivery, KernelHandle, LaunchOptions, OnFault, RingMessage,
    SendOptions, Supervision, Topic, ring_kernel,
};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

use super::devices::{Numbered, Numbers, Seen, number};
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

pub(crate) fn no_deadline_ends_a_message_whose_handler_has_begun() {
    let runtime = runtime();
    let options = LaunchOptions::new(flaky::handler()).with_delivery(Delivery::AtLeastOnce);
    let kernel = runtime.launch_blocking("flaky", options).unwrap();
    // Its kernel is there from now on.
    let _: Done = kernel.ask_blocking(&Flaky { tag: 1, faults: 0 }).unwrap();
    let deadline = Duration::from_secs(3);
    let hurried = SendOptions {
        deadline: Some(deadline),
        ..SendOptions::default()
    };
    let sent = Instant::now();
    kernel.send_with(&Flaky { tag: 2, faults: 1 }, hurried).unwrap();
    eventually("the fault", || kernel.state() == ActorState::Faulted);
    std::thread::sleep((deadline + Duration::from_millis(100)).saturating_sub(sent.elapsed()));
    block_on(kernel.activate()).unwrap();
    let done = next(&kernel);
    assert_eq!((done.tag, done.delivery), (2, 2));
    assert_eq!(runtime.dead_letters().counts().total(), 0);
    // One whose handler has not begun in time is a dead letter.
    block_on(kernel.deactivate()).unwrap();
    let hurried = SendOptions {
        deadline: Some(Duration::from_millis(1)),
        ..SendOptions::default()
    };
    kernel.send_with(&Flaky { tag: 3, faults: 0 }, hurried).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    block_on(kernel.activate()).unwrap();
    eventually("the letter", || {
        runtime.dead_letters().counts().of(DeadReason::Expired) == 1
    });
}

/// Of the actor's own messages none is delivered twice: those of the subscription are, which says so.
pub(crate) fn what_is_published_is_delivered_until_its_handler_returns() {
    let runtime = runtime();
    let launch = |name: &str| {
        let options = options().with_delivery(Delivery::AtMostOnce);
        runtime.launch_blocking(name, options).unwrap()
    };
    let [sure, unsure] = [launch("sure"), launch("unsure")];
    let jobs = Topic::new("jobs");
    let until_done = SubscribeOptions::default().at_least_once(Duration::from_secs(300));
    sure.subscribe(jobs.clone(), until_done).unwrap();
    unsure
        .subscribe(jobs.clone(), SubscribeOptions::default())
        .unwrap();
    runtime
        .publish(jobs, &Flaky { tag: 9, faults: 2 }, false)
        .unwrap();
    let done = next(&sure);
    assert_eq!((done.tag, done.delivery), (9, 3));
    eventually("the other one's is a dead letter", || {
        runtime.dead_letters().counts().of(DeadReason::Faulted) == 1
    });
    assert_eq!(runtime.dead_letters().counts().total(), 1);
    assert_eq!(unsure.metrics().messages_processed, 0);
}

pub(crate) fn messages_are_handled_in_the_order_of_sending() {
    let runtime = runtime();
    let launch = |name: &str| {
        let options = LaunchOptions::new(number::handler()).with_queue_capacity(16);
        runtime.launch_blocking(name, options).unwrap()
    };
    let [counts, listens] = [launch("counts"), launch("listens")];
    // From one actor to another, many more than a box holds, and from the host.
    for first in (1..1600).step_by(8) {
        let to = listens.id().0;
        block_on(counts.send_when_room(&Numbers { to, first })).unwrap();
    }
    block_on(runtime.idle());
    let order = || {
        let seen: Seen = listens.read_state().unwrap();
        (seen.last, seen.count, seen.misplaced)
    };
    assert_eq!(order(), (1600, 1600, 0));
    for number in 1601..=2000 {
        block_on(listens.send_when_room(&Numbered { number })).unwrap();
    }
    block_on(runtime.idle());
    assert_eq!(order(), (2000, 2000, 0));
}
