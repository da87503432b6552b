//! What finds no room, and what nobody receives: the sender is held, and after the runtime's patience it is told.

use std::time::{Duration, Instant};

use perpetua::actors::pubsub::{Overflow, SubscribeOptions};
use perpetua::actors::{
    ActorError, ActorId, ActorState, Context, DeadReason, KernelHandle, LaunchOptions, PerpetuaRuntime,
    RingMessage, Topic, ring_kernel,
};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

use super::handlers::*;
use super::{builder, eventually, runtime};

const CAPACITY: usize = 4;
/// Messages of a sender that is to be held: many times as many as a fast device handles before it hears that it is.
const MANY: u64 = 400;

/// Is sent on to another.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Relay {
    to: u32,
}

/// Is published.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Announce {
    topic: u32,
}

/// Answers each deposit.
#[ring_kernel(also(announce))]
fn tell(_ctx: &mut Context, account: &mut Account, deposit: Deposit) -> Balance {
    account.balance += deposit.amount;
    account.changes += 1;
    Balance {
        amount: account.balance,
        changes: account.changes,
    }
}

#[ring_kernel]
fn announce(ctx: &mut Context, account: &mut Account, message: Announce) {
    account.changes += 1;
    ctx.publish(message.topic, Deposit { amount: 1 });
}

#[ring_kernel]
fn relay(ctx: &mut Context, account: &mut Account, message: Relay) {
    account.changes += 1;
    ctx.send(message.to, Deposit { amount: 1 });
}

fn patient(patience: Duration) -> PerpetuaRuntime {
    builder().patience(patience).build_blocking().unwrap()
}

fn launch(runtime: &PerpetuaRuntime, name: &str) -> KernelHandle {
    let options = LaunchOptions::new(tell::handler()).with_queue_capacity(CAPACITY);
    runtime.launch_blocking(name, options).unwrap()
}

/// How many it has handled when it handles no more.
pub(super) fn handled_when_held(kernel: &KernelHandle) -> u64 {
    let (mut since, mut handled) = (Instant::now(), 0);
    while since.elapsed() < Duration::from_millis(300) {
        let now = kernel.metrics().messages_processed;
        if now != handled {
            (since, handled) = (Instant::now(), now);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    handled
}

pub(crate) fn replies_that_nobody_receives_hold_their_sender() {
    let runtime = patient(Duration::from_secs(300));
    let kernel = launch(&runtime, "tells");
    let deposit = Deposit { amount: 1 };
    std::thread::scope(|scope| {
        let sends = || block_on(kernel.send_when_room(&deposit)).unwrap();
        let sender = scope.spawn(move || (0..MANY).for_each(|_| sends()));
        eventually("the host's queue is full", || {
            kernel.metrics().messages_processed > CAPACITY as u64
        });
        // It handles what was on its way to it, and then no more.
        let handled = handled_when_held(&kernel);
        assert!(handled < MANY, "{handled}");
        assert!(!sender.is_finished());
        assert_eq!(runtime.dead_letters().counts().total(), 0);
        for i in 0..MANY {
            let balance: Balance = block_on(kernel.receive()).unwrap();
            assert_eq!(balance.amount as u64, i + 1);
        }
        sender.join().unwrap();
    });
    block_on(runtime.idle());
    assert_eq!(kernel.try_receive::<Balance>().unwrap(), None);
    assert_eq!(runtime.dead_letters().counts().total(), 0);
    assert_eq!(kernel.metrics().messages_dropped, 0);
}

pub(crate) fn replies_that_nobody_receives_are_dead_letters_in_the_end() {
    let runtime = patient(Duration::from_millis(5));
    let kernel = launch(&runtime, "tells");
    for _ in 0..20 {
        block_on(kernel.send_when_room(&Deposit { amount: 1 })).unwrap();
    }
    let lost = 20 - CAPACITY as u64;
    eventually("all but what the host's queue holds", || {
        runtime.dead_letters().counts().of(DeadReason::Full) == lost
    });
    let letters = runtime.dead_letters().letters();
    assert!(
        letters
            .iter()
            .all(|letter| letter.packet.header.sender == kernel.id())
    );
    // Its sender counts them, and goes on.
    eventually("they are counted", || kernel.metrics().messages_dropped == lost);
    eventually("all is handled", || kernel.metrics().messages_processed == 20);
    assert_eq!(kernel.state(), ActorState::Active);
    assert_eq!(kernel.read_state::<Account>().unwrap().balance, 20);
}

pub(crate) fn outputs_that_nobody_can_take_are_dead_letters() {
    let runtime = runtime();
    for turn in 1..=3 {
        let kernel = launch(&runtime, "tells");
        for _ in 0..2 {
            kernel.send(&Deposit { amount: 1 }).unwrap();
        }
        block_on(runtime.idle());
        block_on(kernel.terminate()).unwrap();
        // Who has a handle can still take them.
        let other = kernel.clone();
        drop(kernel);
        let _: Balance = block_on(other.receive()).unwrap();
        assert_eq!(runtime.dead_letters().counts().total(), turn - 1);
        drop(other);
        assert_eq!(runtime.dead_letters().counts().of(DeadReason::Terminated), turn);
    }
}

pub(crate) fn a_reply_that_its_actor_does_not_take_is_counted() {
    let runtime = runtime();
    let tells = launch(&runtime, "tells");
    let options = LaunchOptions::new(relay::handler());
    let relays = runtime.launch_blocking("relays", options).unwrap();
    // The answer goes to the actor that sent the deposit, which takes none.
    relays.send(&Relay { to: tells.id().0 }).unwrap();
    eventually("it is counted", || relays.metrics().messages_dropped == 1);
    block_on(runtime.idle());
    assert_eq!(runtime.dead_letters().counts().total(), 0);
    let metrics = tells.metrics();
    assert_eq!((metrics.messages_dropped, metrics.messages_sent), (0, 1));
    assert_eq!(relays.metrics().errors_encountered, 0);
}

pub(crate) fn a_subscriber_that_went_away_holds_nobody() {
    let runtime = patient(Duration::from_secs(300));
    let paid = Topic::new("paid");
    let topic = runtime.pubsub().number(&paid).unwrap();
    let (announcer, listener) = (launch(&runtime, "announces"), launch(&runtime, "listens"));
    let small = SubscribeOptions::default()
        .with_capacity(2)
        .with_overflow(Overflow::Refuse);
    listener.subscribe(paid, small).unwrap();
    block_on(listener.deactivate()).unwrap();
    std::thread::scope(|scope| {
        let sends = || block_on(announcer.send_when_room(&Announce { topic })).unwrap();
        let sender = scope.spawn(move || (0..MANY).for_each(|_| sends()));
        // Its mailbox holds four, its subscription two, and one is between the two.
        eventually("all is full", || announcer.metrics().messages_processed > 7);
        let handled = handled_when_held(&announcer);
        assert!(handled < MANY, "{handled}");
        assert_eq!(runtime.dead_letters().counts().total(), 0);
        block_on(listener.terminate()).unwrap();
        sender.join().unwrap();
    });
    eventually("the others are published", || {
        announcer.metrics().messages_processed == MANY
    });
    block_on(runtime.idle());
    // What it had not handled, and what was published until its subscription had ended, too.
    let counts = runtime.dead_letters().counts();
    assert!((7..MANY).contains(&counts.total()), "{counts:?}");
    assert_eq!(counts.of(DeadReason::Terminated), counts.total());
    assert_eq!(runtime.pubsub().stats().published, MANY);
}

pub(crate) fn a_subscription_by_number_reaches_its_actor() {
    let runtime = runtime();
    let listener = launch(&runtime, "listens");
    let (pubsub, paid) = (runtime.pubsub(), Topic::new("paid/cash"));
    // Nobody has to keep what it gives.
    drop(pubsub.subscribe(listener.id(), Topic::new("paid/#")).unwrap());
    let receipt = runtime
        .publish(paid.clone(), &Deposit { amount: 3 }, false)
        .unwrap();
    assert_eq!(receipt.queued, 1);
    eventually("its handler has run", || {
        listener.read_state::<Account>().unwrap().balance == 3
    });
    let stranger = pubsub.subscribe(ActorId(99), paid.clone()).unwrap_err();
    assert!(matches!(stranger, ActorError::NoSuchActor { .. }), "{stranger}");
    block_on(listener.terminate()).unwrap();
    let receipt = runtime.publish(paid, &Deposit { amount: 3 }, false).unwrap();
    assert_eq!(receipt.subscribers, 0);
}

pub(crate) fn dropped_subscriptions_end() {
    let runtime = runtime();
    let (pubsub, paid) = (runtime.pubsub(), Topic::new("paid"));
    let small = SubscribeOptions::default().with_capacity(1);
    let here = pubsub.subscribe_with(ActorId::HOST, paid.clone(), small).unwrap();
    let clone = here.clone();
    let deposit = Deposit { amount: 1 };
    assert_eq!(runtime.publish(paid.clone(), &deposit, false).unwrap().queued, 1);
    drop(here);
    // A clone is the same subscription, and it is full.
    let full = runtime.publish(paid.clone(), &deposit, false).unwrap_err();
    assert!(matches!(full, ActorError::Full { .. }), "{full}");
    drop(clone);
    let receipt = runtime.publish(paid, &deposit, false).unwrap();
    assert_eq!((receipt.subscribers, receipt.queued), (0, 0));
    // What waited is told of.
    assert_eq!(runtime.dead_letters().counts().of(DeadReason::Terminated), 1);
    assert!(pubsub.subscriptions_of(ActorId::HOST).is_empty());
    let stats = pubsub.stats();
    assert_eq!((stats.published, stats.queued, stats.refused), (2, 1, 1));
}
