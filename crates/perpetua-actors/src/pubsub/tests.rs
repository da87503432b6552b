//! Subscriptions, policies, acknowledgement, what is kept, what is counted.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::dead_letters::{DeadLetters, DeadReason};
use crate::error::{ActorError, Result};
use crate::message::{Header, Kind, PAYLOAD_WORDS, priority};

const SENDER: ActorId = ActorId(77);

fn packet(value: u32) -> Packet {
    Packet {
        header: Header {
            destination: 0,
            sender: ActorId::HOST,
            type_id: 1,
            correlation: 0,
            sent: 0,
            kind: Kind::Message,
            priority: priority::NORMAL,
            words: 1,
            deadline: 0,
            deliveries: Default::default(),
        },
        payload: [value; PAYLOAD_WORDS],
    }
}

#[allow(clippy::unwrap_used, reason = "a test's: a failed expectation is the report")]
fn at(micros: u32) -> HlcTimestamp {
    HlcTimestamp::new(u64::from(micros), 0, 1).unwrap()
}

fn publish(broker: &PubSubBroker, topic: &str, value: u32) -> Result<PublishReceipt> {
    broker.publish(Topic::new(topic), SENDER, packet(value), at(value))
}

/// All that waits, by value.
fn values(subscription: &Subscription) -> Vec<u32> {
    let received = std::iter::from_fn(|| subscription.try_receive());
    received
        .map(|publication| publication.packet.payload[0])
        .collect()
}

fn broker() -> (PubSubBroker, Arc<DeadLetters>) {
    let dead = Arc::new(DeadLetters::new(64));
    let broker = PubSubBroker::new(PubSubConfig::default()).with_dead_letters(dead.clone());
    (broker, dead)
}

#[test]
fn patterns_decide_who_gets_what() -> Result<()> {
    let (broker, _) = broker();
    let temperatures = broker.subscribe(ActorId(1), Topic::new("sensors/+/temperature"))?;
    let events = broker.subscribe(ActorId(2), Topic::new("events/#"))?;
    let room = broker.subscribe(ActorId(3), Topic::new("sensors/room1/*"))?;
    assert_eq!(publish(&broker, "sensors/room1/temperature", 1)?.queued, 2);
    assert_eq!(publish(&broker, "sensors/room2/temperature", 2)?.queued, 1);
    assert_eq!(publish(&broker, "events", 3)?.queued, 1);
    assert_eq!(publish(&broker, "events/a/b", 4)?.queued, 1);
    assert_eq!(
        publish(&broker, "elsewhere", 5)?,
        PublishReceipt {
            number: 4,
            ..Default::default()
        }
    );
    assert_eq!(values(&temperatures), [1, 2]);
    assert_eq!(values(&room), [1]);
    let first = events.try_receive().unwrap();
    assert_eq!(
        (first.sender, first.timestamp, first.topic.as_str()),
        (SENDER, at(3), "events")
    );
    assert_eq!(
        (first.packet.header.kind, first.packet.header.sender),
        (Kind::Publish, SENDER)
    );
    assert_eq!(first.packet.header.sent, at(3).packed);
    assert_eq!(values(&events), [4]);
    let stats = broker.stats();
    assert_eq!((stats.published, stats.queued, stats.delivered), (5, 5, 5));
    Ok(())
}

#[test]
fn bad_topics_and_numbers_are_refused() {
    let (broker, _) = broker();
    assert!(matches!(
        broker.subscribe(ActorId(1), Topic::new("a/#/b")),
        Err(ActorError::Topic { .. })
    ));
    assert!(matches!(
        publish(&broker, "a/+", 1),
        Err(ActorError::Topic { .. })
    ));
    let unknown = broker
        .publish_number(0, SENDER, packet(1), at(1))
        .unwrap_err()
        .to_string();
    assert!(unknown.contains("no topic has this number"), "{unknown}");
    let none = SubscribeOptions::default().with_capacity(0);
    assert!(broker.subscribe_with(ActorId(1), Topic::new("a"), none).is_err());
    let few = PubSubBroker::new(PubSubConfig {
        max_topics: 1,
        max_subscriptions: 1,
        ..Default::default()
    });
    assert!(publish(&few, "a", 1).is_ok() && publish(&few, "a", 2).is_ok());
    assert!(
        publish(&few, "b", 1)
            .unwrap_err()
            .to_string()
            .contains("max_topics")
    );
    assert!(few.subscribe(ActorId(1), Topic::new("a")).is_ok());
    let error = few
        .subscribe(ActorId(1), Topic::new("a"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("max_subscriptions"), "{error}");
}

#[test]
fn numbers_stand_for_topics() -> Result<()> {
    let (broker, _) = broker();
    let number = broker.number(&Topic::new("a/b"))?;
    let subscription = broker.subscribe(ActorId(1), Topic::new("a/+"))?;
    assert_eq!(broker.number(&Topic::new("a/b"))?, number);
    assert_eq!(broker.topic(number), Some(Topic::new("a/b")));
    assert_eq!(broker.publish_number(number, SENDER, packet(7), at(1))?.queued, 1);
    assert_eq!(values(&subscription), [7]);
    Ok(())
}

#[test]
fn each_policy_does_as_it_says_and_counts() -> Result<()> {
    let (broker, dead) = broker();
    let subscribe = |overflow: Overflow| {
        let options = SubscribeOptions::default()
            .with_capacity(2)
            .with_overflow(overflow);
        broker.subscribe_with(ActorId(overflow as u32), Topic::new("t"), options)
    };
    let oldest = subscribe(Overflow::DropOldest)?;
    let newest = subscribe(Overflow::DropNewest)?;
    for value in 0..4 {
        let receipt = publish(&broker, "t", value)?;
        assert_eq!(receipt.dropped, if value < 2 { 0 } else { 2 });
    }
    assert_eq!((values(&oldest), values(&newest)), (vec![2, 3], vec![0, 1]));
    assert_eq!(
        (oldest.stats().dropped_oldest, newest.stats().dropped_newest),
        (2, 2)
    );
    assert_eq!(dead.counts().of(DeadReason::Overflow), 4);

    let refuses = subscribe(Overflow::Refuse)?;
    publish(&broker, "t", 4)?;
    publish(&broker, "t", 5)?;
    // Nobody gets what one refuses.
    let error = publish(&broker, "t", 6).unwrap_err();
    assert!(matches!(error, ActorError::Full { capacity: 2, .. }), "{error}");
    assert_eq!(
        (values(&oldest), values(&newest), values(&refuses)),
        (vec![4, 5], vec![4, 5], vec![4, 5])
    );
    let stats = broker.stats();
    assert_eq!(
        (
            stats.dropped_oldest,
            stats.dropped_newest,
            stats.refused,
            stats.published
        ),
        (2, 2, 1, 6)
    );
    Ok(())
}

#[test]
fn who_publishes_can_wait_for_room() -> Result<()> {
    let (broker, _) = broker();
    let options = SubscribeOptions::default().with_capacity(1);
    let subscription = broker.subscribe_with(ActorId(1), Topic::new("t"), options)?;
    let send = |value: u32, wait: u64| {
        broker.publish_timeout(
            Topic::new("t"),
            SENDER,
            packet(value),
            at(value),
            Duration::from_millis(wait),
        )
    };
    send(0, 0)?;
    assert!(matches!(send(1, 20), Err(ActorError::Full { .. })));
    let received = thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let next = || subscription.receive_timeout(Duration::from_secs(20));
            let received = std::iter::from_fn(next).map(|publication| publication.packet.payload[0]);
            received.take(200).collect::<Vec<u32>>()
        });
        for value in 1..200 {
            assert!(send(value, 20_000).is_ok());
        }
        receiver.join().unwrap()
    });
    assert_eq!(received, (0..200).collect::<Vec<u32>>());
    Ok(())
}

#[test]
fn kept_messages_come_first_and_oldest_first() -> Result<()> {
    let (broker, _) = broker();
    for (topic, value) in [("a/y", 2), ("a/x", 1), ("a/x", 3), ("b", 4)] {
        broker.publish_retained(Topic::new(topic), SENDER, packet(value), at(value))?;
    }
    publish(&broker, "a/x", 9)?;
    let late = broker.subscribe(ActorId(1), Topic::new("a/#"))?;
    publish(&broker, "a/x", 10)?;
    let received: Vec<(u32, bool)> = std::iter::from_fn(|| late.try_receive())
        .map(|publication| (publication.packet.payload[0], publication.is_retained))
        .collect();
    assert_eq!(received, [(2, true), (3, true), (10, false)]);
    assert_eq!(
        broker
            .take_retained(&Topic::new("a/x"))
            .map(|kept| kept.packet.payload[0]),
        Some(3)
    );
    assert_eq!(broker.take_retained(&Topic::new("a/x")), None);
    let later = broker.subscribe(ActorId(1), Topic::new("a/x"))?;
    assert!(later.is_empty());
    Ok(())
}

#[test]
fn at_least_once_comes_again_until_acknowledged() -> Result<()> {
    let (broker, dead) = broker();
    let again = Duration::from_millis(30);
    let options = SubscribeOptions::default()
        .with_capacity(2)
        .at_least_once(again)
        .with_max_deliveries(3);
    let subscription = broker.subscribe_with(ActorId(5), Topic::new("t"), options)?;
    publish(&broker, "t", 1)?;
    publish(&broker, "t", 2)?;
    let first = subscription.try_receive().unwrap();
    let second = subscription.try_receive().unwrap();
    assert!(subscription.try_receive().is_none());
    // What is not acknowledged takes room.
    assert!(matches!(publish(&broker, "t", 3), Err(ActorError::Full { .. })));
    assert!(subscription.acknowledge(second.delivery) && !subscription.acknowledge(second.delivery));
    publish(&broker, "t", 3)?;
    let due = broker.redeliver().unwrap();
    thread::sleep(due.saturating_duration_since(Instant::now()));
    let once_more = subscription.try_receive().unwrap();
    assert_eq!(
        (once_more.delivery, once_more.redelivered, once_more.packet),
        (first.delivery, 1, first.packet)
    );
    let third = subscription.try_receive().unwrap();
    assert_eq!(third.packet.payload[0], 3);
    assert!(subscription.acknowledge(third.delivery));
    // Waits for what is due, too.
    let last = subscription.receive_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!((last.delivery, last.redelivered), (first.delivery, 2));
    thread::sleep(again);
    assert!(subscription.try_receive().is_none() && subscription.is_empty());
    let letter = dead.letters()[0];
    assert_eq!(
        (letter.reason, letter.packet.payload[0]),
        (DeadReason::Unacknowledged, 1)
    );
    assert_eq!(letter.packet.header.destination, 5);
    let expected = PubSubStats {
        published: 3,
        queued: 3,
        delivered: 3,
        redelivered: 2,
        acknowledged: 2,
        unacknowledged: 1,
        ..Default::default()
    };
    assert_eq!(subscription.stats(), expected);
    Ok(())
}

#[test]
fn what_ends_gives_back_what_waits() -> Result<()> {
    let (broker, _) = broker();
    let sure = SubscribeOptions::default().at_least_once(Duration::from_secs(60));
    let first = broker.subscribe_with(ActorId(1), Topic::new("t"), sure)?;
    let second = broker.subscribe(ActorId(1), Topic::new("u"))?;
    let other = broker.subscribe(ActorId(2), Topic::new("#"))?;
    for (topic, value) in [("t", 1), ("t", 2), ("u", 3)] {
        publish(&broker, topic, value)?;
    }
    first.try_receive();
    assert_eq!(broker.subscriptions_of(ActorId(1)).len(), 2);
    let rest: Vec<u32> = broker
        .unsubscribe_actor(ActorId(1))
        .iter()
        .map(|one| one.packet.payload[0])
        .collect();
    assert_eq!(rest, [1, 2, 3]);
    assert!(first.is_closed() && second.receive_timeout(Duration::from_secs(60)).is_none());
    assert_eq!(publish(&broker, "t", 4)?.subscribers, 1);
    assert_eq!(values(&other), [1, 2, 3, 4]);
    assert!(broker.unsubscribe(&other).is_empty() && broker.unsubscribe(&other).is_empty());
    assert_eq!((broker.stats().queued, broker.stats().delivered), (7, 5));
    Ok(())
}

/// Counts how often it was woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn arrivals_wake() -> Result<()> {
    let (broker, _) = broker();
    let subscription = broker.subscribe(ActorId(1), Topic::new("t"))?;
    let arrivals = Arc::new(AtomicUsize::new(0));
    let counted = arrivals.clone();
    subscription.on_arrival(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut context = Context::from_waker(&waker);
    let mut receive = pin!(subscription.receive());
    assert!(receive.as_mut().poll(&mut context).is_pending());
    publish(&broker, "t", 1)?;
    assert_eq!(
        (count.0.load(Ordering::Relaxed), arrivals.load(Ordering::Relaxed)),
        (1, 1)
    );
    assert!(matches!(
        receive.as_mut().poll(&mut context),
        Poll::Ready(Some(_))
    ));
    let mut ended = pin!(subscription.receive());
    assert!(ended.as_mut().poll(&mut context).is_pending());
    broker.unsubscribe(&subscription);
    assert!(matches!(ended.as_mut().poll(&mut context), Poll::Ready(None)));
    Ok(())
}

#[test]
fn all_subscribers_see_one_order() -> Result<()> {
    let (broker, _) = broker();
    let options = SubscribeOptions::default().with_capacity(1 << 16);
    let subscriptions: Vec<Subscription> = ["t", "+", "#"]
        .into_iter()
        .map(|pattern| broker.subscribe_with(ActorId(1), Topic::new(pattern), options.clone()))
        .collect::<Result<_>>()?;
    thread::scope(|scope| {
        for sender in 0..3 {
            let broker = &broker;
            scope.spawn(move || {
                for value in 0..500 {
                    assert!(publish(broker, "t", sender * 1000 + value).is_ok());
                }
            });
        }
    });
    let seen: Vec<Vec<u32>> = subscriptions.iter().map(values).collect();
    assert_eq!(seen[0].len(), 1500);
    assert!(seen[0] == seen[1] && seen[1] == seen[2]);
    Ok(())
}
