//! loom's models of the rings as they ship: every interleaving of a few steps, and every value that an atomic's order allows.
//! No model waits: who finds a ring full or empty goes on, and at the end what was accepted must be what was received.

use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;

use super::{PushError, mpsc, spsc};

/// Sends, after a glance at `head`. loom tries two accesses of an atomic in both orders only where the one is the last before the
/// other; a sender that loads a slot's number before it stores it hides what the receiver did. `head` tells loom. The glance
/// orders nothing: it is Relaxed.
fn glance_and_push<T: Send>(producer: &mpsc::Producer<T>, value: T) -> bool {
    producer.len();
    producer.push(value).is_ok()
}

/// The most messages that one interleaving of `model` got through: so that a model in which nothing is ever reused does not pass
/// for one.
fn most(model: impl Fn() -> usize + Sync + Send + 'static) -> usize {
    static MOST: [AtomicUsize; 16] = [const { AtomicUsize::new(0) }; 16];
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let slot = &MOST[NEXT.fetch_add(1, Ordering::Relaxed)];
    loom::model(move || {
        slot.fetch_max(model(), Ordering::Relaxed);
    });
    slot.load(Ordering::Relaxed)
}

#[test]
fn loom_spsc_hands_over_and_wraps() {
    let most = most(|| {
        let (mut producer, mut consumer) = spsc::ring::<Box<u32>>(2).unwrap();
        let sender = thread::spawn(move || {
            let send = |i: &u32| producer.push(Box::new(*i)).is_ok();
            (0..4).filter(send).collect::<Vec<u32>>()
        });
        let mut received: Vec<u32> = (0..3)
            .filter_map(|_| consumer.pop())
            .map(|value| *value)
            .collect();
        let accepted = sender.join().unwrap();
        received.extend(std::iter::from_fn(|| consumer.pop()).map(|value| *value));
        assert_eq!(received, accepted);
        assert!(consumer.is_finished() && accepted.len() >= 2);
        accepted.len()
    });
    assert_eq!(most, 4);
}

#[test]
fn loom_spsc_batches() {
    let most = most(|| {
        let (mut producer, mut consumer) = spsc::ring::<u32>(2).unwrap();
        let sender = thread::spawn(move || {
            let sent = producer.push_slice(&[0, 1, 2]) as u32;
            sent + producer.push_from(&mut (sent..4)) as u32
        });
        let mut received = vec![9; 2];
        let got = consumer.pop_slice(&mut received);
        received.truncate(got);
        consumer.pop_each(2, |value| received.push(value));
        let accepted = sender.join().unwrap();
        consumer.pop_each(4, |value| received.push(value));
        assert_eq!(received, (0..accepted).collect::<Vec<u32>>());
        received.len()
    });
    assert_eq!(most, 4);
}

#[test]
fn loom_spsc_gives_back_what_was_not_received() {
    loom::model(|| {
        let (mut producer, mut consumer) = spsc::ring::<Box<u32>>(2).unwrap();
        let receiver = thread::spawn(move || consumer.pop());
        let accepted = (0..2).filter(|i| producer.push(Box::new(*i)).is_ok()).count();
        let received = receiver.join().unwrap();
        let undelivered = producer.into_undelivered().ok().unwrap();
        assert_eq!(received.into_iter().chain(undelivered).count(), accepted);
    });
}

#[test]
fn loom_spsc_tells_the_end() {
    loom::model(|| {
        let (mut producer, mut consumer) = spsc::ring::<Box<u32>>(2).unwrap();
        let sender = thread::spawn(move || producer.push(Box::new(7)).unwrap());
        let before = consumer.pop().is_some();
        if consumer.is_finished() {
            assert!(before);
        }
        let after = consumer.pop().is_some();
        sender.join().unwrap();
        let last = consumer.pop().is_some();
        assert_eq!([before, after, last].iter().filter(|got| **got).count(), 1);
        assert!(consumer.is_finished());
    });
}

#[test]
fn loom_mpsc_wraps() {
    let most = most(|| {
        let (producer, mut consumer) = mpsc::ring::<Box<u32>>(2).unwrap();
        let sender = thread::spawn(move || {
            let send = |i: &u32| glance_and_push(&producer, Box::new(*i));
            (0..3).filter(send).collect::<Vec<u32>>()
        });
        let receiver = thread::spawn(move || {
            let received = (0..2).filter_map(|_| consumer.pop()).map(|value| *value);
            (received.collect::<Vec<u32>>(), consumer)
        });
        let accepted = sender.join().unwrap();
        let (mut received, mut consumer) = receiver.join().unwrap();
        received.extend(std::iter::from_fn(|| consumer.pop()).map(|value| *value));
        assert_eq!(received, accepted);
        assert!(consumer.is_finished());
        accepted.len()
    });
    assert_eq!(most, 3);
}

#[test]
fn loom_mpsc_two_senders() {
    let most = most(|| {
        let (producer, mut consumer) = mpsc::ring::<Box<u32>>(2).unwrap();
        // One place is left, and it has been used before.
        producer.push(Box::new(0)).unwrap();
        assert_eq!(consumer.pop(), Some(Box::new(0)));
        producer.push(Box::new(1)).unwrap();
        let other = producer.clone();
        let sender = thread::spawn(move || usize::from(glance_and_push(&other, Box::new(2))));
        let receiver = thread::spawn(move || (consumer.pop().map(|value| *value), consumer));
        let accepted = usize::from(glance_and_push(&producer, Box::new(3))) + sender.join().unwrap();
        let (first, mut consumer) = receiver.join().unwrap();
        assert_eq!(first, Some(1));
        let rest: Vec<u32> = std::iter::from_fn(|| consumer.pop())
            .map(|value| *value)
            .collect();
        assert_eq!(rest.len(), accepted);
        accepted
    });
    assert_eq!(most, 2);
}

#[test]
fn loom_mpsc_batches_beside_single_messages() {
    let most = most(|| {
        let (producer, mut consumer) = mpsc::ring::<u32>(2).unwrap();
        let batch = producer.clone();
        let sender = thread::spawn(move || batch.push_slice(&[0, 1]) + batch.push_slice(&[7]));
        let single = usize::from(glance_and_push(&producer, 5));
        let mut received: Vec<u32> = consumer.pop().into_iter().collect();
        let accepted = single + sender.join().unwrap();
        received.extend(std::iter::from_fn(|| consumer.pop()));
        assert_eq!(received.len(), accepted);
        let of_batch: Vec<u32> = received.into_iter().filter(|i| *i != 5).collect();
        assert!(of_batch.is_sorted());
        accepted
    });
    assert_eq!(most, 3);
}

#[test]
fn loom_mpsc_closes_exactly() {
    let most = most(|| {
        let (producer, mut consumer) = mpsc::ring::<Box<u32>>(2).unwrap();
        let sender = thread::spawn(move || {
            let mut accepted = 0;
            for i in 0..2 {
                match producer.push(Box::new(i)) {
                    Ok(()) => accepted += 1,
                    Err(PushError::Closed(_)) => break,
                    Err(PushError::Full(_)) => unreachable!("two messages fit"),
                }
            }
            accepted
        });
        consumer.close();
        let mut received = 0;
        while !consumer.is_finished() {
            received += usize::from(consumer.pop().is_some());
            thread::yield_now();
        }
        assert_eq!(received, sender.join().unwrap());
        received
    });
    assert_eq!(most, 2);
}
