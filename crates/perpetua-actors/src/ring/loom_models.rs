//! loom's models of the rings as they ship: every interleaving of a few steps, and every value that an atomic's order allows.
//! No model waits: who finds a ring full or empty goes on, and at the end what was accepted must be what was received.

use loom::thread;

use super::{PushError, mpsc, spsc};

#[test]
fn loom_spsc_hands_over_and_wraps() {
    loom::model(|| {
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
    });
}

#[test]
fn loom_spsc_batches() {
    loom::model(|| {
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
    });
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
fn loom_mpsc_two_senders_wrap() {
    loom::model(|| {
        let (producer, mut consumer) = mpsc::ring::<Box<u32>>(2).unwrap();
        let sender = |producer: mpsc::Producer<Box<u32>>, numbers: std::ops::Range<u32>| {
            move || {
                let send = |i: &u32| producer.push(Box::new(*i)).is_ok();
                numbers.filter(send).collect::<Vec<u32>>()
            }
        };
        let first = thread::spawn(sender(producer.clone(), 0..2));
        let second = thread::spawn(sender(producer, 2..3));
        let mut received: Vec<u32> = consumer.pop().map(|value| *value).into_iter().collect();
        let (first, second) = (first.join().unwrap(), second.join().unwrap());
        received.extend(std::iter::from_fn(|| consumer.pop()).map(|value| *value));
        let (low, high): (Vec<u32>, Vec<u32>) = received.into_iter().partition(|i| *i < 2);
        assert_eq!((low, high), (first, second));
        assert!(consumer.is_finished());
    });
}

#[test]
fn loom_mpsc_batches_beside_single_messages() {
    loom::model(|| {
        let (producer, mut consumer) = mpsc::ring::<u32>(2).unwrap();
        let batch = producer.clone();
        let sender = thread::spawn(move || batch.push_slice(&[0, 1]) + batch.push_slice(&[7]));
        let single = usize::from(producer.push(5).is_ok());
        let mut received: Vec<u32> = consumer.pop().into_iter().collect();
        let accepted = single + sender.join().unwrap();
        received.extend(std::iter::from_fn(|| consumer.pop()));
        assert_eq!(received.len(), accepted);
        let of_batch: Vec<u32> = received.into_iter().filter(|i| *i < 5).collect();
        assert!([0, 1].starts_with(&of_batch));
    });
}

#[test]
fn loom_mpsc_closes_exactly() {
    loom::model(|| {
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
    });
}
