//! Actors that subscribe, handlers that publish, the broker's receipts.

use std::time::Duration;

use perpetua_actors::pubsub::{Overflow, SubscribeOptions};
use perpetua_actors::topic::Topic;
use perpetua_actors::{ActorId, DeadReason, DeliveryStatus, LaunchOptions, Packet, PerpetuaRuntime};
use perpetua_device::future::block_on;

use crate::checkpoints::File;
use crate::handlers::{self, *};
use crate::{eventually, launch, runtime, tally};

fn note(sequence: u32) -> Note {
    Note {
        amount: 1,
        source: 0,
        sequence,
    }
}

fn publish(runtime: &PerpetuaRuntime, topic: &str, sequence: u32) -> bool {
    runtime.publish(Topic::new(topic), &note(sequence), false).is_ok()
}

#[test]
fn what_is_published_comes_to_all_who_subscribed_in_order() {
    let runtime = runtime();
    let rooms = launch(&runtime, "rooms", LaunchOptions::default().with_actors(2));
    let (one, all) = (rooms.actor(0).expect("two"), rooms.actor(1).expect("two"));
    let options = SubscribeOptions::default;
    one.subscribe(Topic::new("rooms/1/heat"), options())
        .expect("a topic");
    all.subscribe(Topic::new("rooms/+/heat"), options())
        .expect("a pattern");
    for sequence in 0..100 {
        assert!(publish(&runtime, "rooms/1/heat", sequence));
        assert!(publish(&runtime, "rooms/2/light", sequence));
    }
    eventually("both have all", || rooms.metrics().messages_processed == 200);
    for room in [&one, &all] {
        let state: Tally = room.read_state().expect("a tally");
        assert_eq!((state.count, state.disorder), (100, 0));
    }
}

#[test]
fn handlers_publish_by_number() {
    let runtime = runtime();
    let topic = Topic::new("alarms/fire");
    let number = runtime.pubsub().number(&topic).expect("a topic");
    let speaker = tally(&runtime, "speaker");
    let listener = launch(
        &runtime,
        "listener",
        LaunchOptions::default().with_queue_capacity(4),
    );
    listener
        .subscribe(Topic::new("alarms/#"), SubscribeOptions::default())
        .expect("a pattern");
    for sequence in 0..500 {
        let announce = Announce {
            topic: number,
            amount: 1,
            sequence,
        };
        block_on(speaker.send_when_room(&announce)).expect("room comes");
    }
    eventually("the listener has all", || {
        listener.metrics().messages_processed == 500
    });
    assert_eq!(listener.read_state::<Tally>().expect("a tally").disorder, 0);
    assert_eq!(runtime.dead_letters().counts().total(), 0);
    let nowhere = Announce {
        topic: 999,
        ..Announce::default()
    };
    speaker.send(&nowhere).expect("there is room");
    eventually("it is reported", || {
        runtime.dead_letters().counts().of(DeadReason::Unknown) == 1
    });
}

#[test]
fn a_slow_subscriber_holds_the_publisher_back_or_loses_what_it_said() {
    let runtime = runtime();
    let options = || {
        LaunchOptions::default()
            .with_queue_capacity(4)
            .without_auto_activate()
    };
    let careful = launch(&runtime, "careful", options());
    let refusing = SubscribeOptions::default().with_capacity(4);
    careful
        .subscribe(Topic::new("a"), refusing.clone())
        .expect("a topic");
    let accepted = (0..100)
        .filter(|sequence| publish(&runtime, "a", *sequence))
        .count() as u64;
    assert!((8..=9).contains(&accepted), "{accepted}");
    let careless = launch(&runtime, "careless", options());
    let dropping = refusing.with_overflow(Overflow::DropOldest);
    let subscription = careless.subscribe(Topic::new("b"), dropping).expect("a topic");
    assert!((0..100).all(|sequence| publish(&runtime, "b", sequence)));
    block_on(careful.activate()).expect("it is launched");
    block_on(careless.activate()).expect("it is launched");
    eventually("all accepted are handled", || {
        careful.metrics().messages_processed == accepted
    });
    let dropped = subscription.stats().dropped_oldest;
    eventually("all but the dropped are handled", || {
        careless.metrics().messages_processed == 100 - dropped
    });
    assert_eq!(runtime.dead_letters().counts().of(DeadReason::Overflow), dropped);
}

#[test]
fn subscriptions_and_what_waits_in_them_survive_a_checkpoint() {
    let file = File::new("topics");
    let first = runtime();
    let options = LaunchOptions::default()
        .with_queue_capacity(4)
        .without_auto_activate();
    let kernel = launch(&first, "subscribed", options);
    first.pubsub().number(&Topic::new("unused")).expect("a topic");
    kernel
        .subscribe(Topic::new("t/+"), SubscribeOptions::default())
        .expect("a pattern");
    for sequence in 0..10 {
        assert!(publish(&first, "t/1", sequence));
    }
    first.checkpoint_blocking(file.path()).expect("it is written");
    let again = runtime();
    again.register(handlers::tally());
    let kernels = again.restore_blocking(file.path()).expect("it is whole");
    assert_eq!(again.pubsub().number(&Topic::new("t/1")).expect("a topic"), 1);
    assert!(publish(&again, "t/2", 10));
    block_on(kernels[0].activate()).expect("it is launched");
    eventually("all eleven", || kernels[0].metrics().messages_processed == 11);
    assert_eq!(kernels[0].read_state::<Tally>().expect("a tally").disorder, 0);
    // The first goes on, too.
    block_on(kernel.activate()).expect("it is launched");
    eventually("all ten", || kernel.metrics().messages_processed == 10);
}

#[test]
fn what_waits_for_a_terminated_subscriber_is_reported() {
    let runtime = runtime();
    let options = LaunchOptions::default()
        .with_queue_capacity(2)
        .without_auto_activate();
    let kernel = launch(&runtime, "leaves", options);
    kernel
        .subscribe(Topic::new("t"), SubscribeOptions::default())
        .expect("a topic");
    (0..10).for_each(|sequence| assert!(publish(&runtime, "t", sequence)));
    block_on(kernel.terminate()).expect("it is launched");
    assert_eq!(runtime.dead_letters().counts().of(DeadReason::Terminated), 10);
    assert!(publish(&runtime, "t", 10), "nobody subscribes");
}

#[test]
fn the_broker_reaches_actors_by_number_and_name() {
    let runtime = runtime();
    let all = launch(&runtime, "known", LaunchOptions::default().with_actors(3));
    let broker = runtime.k2k_broker().expect("the CPU has one").clone();
    let third = broker.resolve("known[2]").expect("it has a name");
    assert_eq!(third.0, all.id().0 + 2);
    let receipt = block_on(broker.send(ActorId::HOST, third, Packet::of(&note(0)))).expect("a receipt");
    assert_eq!(receipt.status, DeliveryStatus::Queued);
    let kernel = all.actor(2).expect("three");
    eventually("it is handled", || kernel.metrics().messages_processed == 1);
    block_on(kernel.terminate()).expect("it is active");
    assert!(
        !broker
            .send_now(ActorId::HOST, third, Packet::of(&note(1)))
            .expect("a receipt")
            .is_accepted()
    );
    assert_eq!(runtime.dead_letters().counts().of(DeadReason::Terminated), 1);
    std::thread::sleep(Duration::from_millis(1));
}
