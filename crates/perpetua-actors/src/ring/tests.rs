//! Both rings by property and by thread: order, room, what is given back, what is dropped.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use proptest::prelude::*;

use super::{PushError, check_capacity, mpsc, spsc};

#[test]
fn capacities_are_powers_of_two() {
    let check =
        |capacity: usize, legal: bool| assert_eq!(check_capacity(capacity).is_ok(), legal, "{capacity}");
    for (capacity, legal) in [
        (0, false),
        (1, false),
        (2, true),
        (3, false),
        (4096, true),
        (4097, false),
        (1 << 24, true),
        (1 << 25, false),
        (usize::MAX, false),
    ] {
        check(capacity, legal);
    }
    let error = spsc::ring::<u8>(1000).err().unwrap().to_string();
    assert!(error.contains("not 1000: 1024 is the next"), "{error}");
    assert!(mpsc::ring::<u8>(0).is_err());
}

/// What is done to a ring.
#[derive(Clone, Debug)]
enum Step {
    Push,
    PushSlice(usize),
    PushFrom(usize),
    Pop,
    PopSlice(usize),
    PopEach(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::Push),
        (0usize..12).prop_map(Step::PushSlice),
        (0usize..12).prop_map(Step::PushFrom),
        Just(Step::Pop),
        (0usize..12).prop_map(Step::PopSlice),
        (0usize..12).prop_map(Step::PopEach),
    ];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    /// Each step does what it would do to a queue of the standard library.
    #[test]
    fn both_are_queues(bits in 1u32..4, steps in steps()) {
        let capacity = 1usize << bits;
        let (mut producer, mut consumer) = spsc::ring::<u64>(capacity).unwrap();
        let (many, mut one) = mpsc::ring::<u64>(capacity).unwrap();
        let (mut model, mut next) = (VecDeque::new(), 0u64);
        for step in steps {
            let room = capacity - model.len();
            match step {
                Step::Push => {
                    let expected = if room == 0 { Err(PushError::Full(next)) } else { Ok(()) };
                    prop_assert_eq!(producer.push(next), expected);
                    prop_assert_eq!(many.push(next), expected);
                    model.extend((room > 0).then_some(next));
                    next += 1;
                }
                Step::PushSlice(count) => {
                    let values: Vec<u64> = (next..next + count as u64).collect();
                    let fits = count.min(room);
                    prop_assert_eq!(producer.push_slice(&values), fits);
                    prop_assert_eq!(many.push_slice(&values), fits);
                    model.extend(&values[..fits]);
                    next += count as u64;
                }
                Step::PushFrom(count) => {
                    let mut values = next..next + count as u64;
                    let fits = count.min(room);
                    prop_assert_eq!(producer.push_from(&mut values), fits);
                    prop_assert_eq!(values.next(), (fits < count).then_some(next + fits as u64));
                    prop_assert_eq!(many.push_slice(&(next..next + fits as u64).collect::<Vec<_>>()), fits);
                    model.extend(next..next + fits as u64);
                    next += count as u64;
                }
                Step::Pop => {
                    let expected = model.pop_front();
                    prop_assert_eq!(consumer.pop(), expected);
                    prop_assert_eq!(one.pop(), expected);
                }
                Step::PopSlice(count) => {
                    let mut values = vec![u64::MAX; count];
                    let got = consumer.pop_slice(&mut values);
                    let expected: Vec<u64> = model.drain(..count.min(model.len())).collect();
                    prop_assert_eq!(&values[..got], &expected[..]);
                    let rest: Vec<u64> = std::iter::from_fn(|| one.pop()).take(count).collect();
                    prop_assert_eq!(rest, expected);
                }
                Step::PopEach(count) => {
                    let expected: Vec<u64> = model.drain(..count.min(model.len())).collect();
                    let (mut first, mut second) = (Vec::new(), Vec::new());
                    prop_assert_eq!(consumer.pop_each(count, |value| first.push(value)), expected.len());
                    prop_assert_eq!(one.pop_each(count, |value| second.push(value)), expected.len());
                    prop_assert_eq!(&first, &expected);
                    prop_assert_eq!(&second, &expected);
                }
            }
            prop_assert_eq!(producer.len(), model.len());
            prop_assert_eq!(consumer.len(), model.len());
            prop_assert_eq!(many.len(), model.len());
        }
    }
}

#[test]
fn one_to_one_keeps_order_across_threads() {
    const MESSAGES: u64 = if cfg!(perpetua_tsan) { 20_000 } else { 300_000 };
    let (mut producer, mut consumer) = spsc::ring::<[u64; 3]>(64).unwrap();
    let sender = thread::spawn(move || {
        let mut next = 0;
        while next < MESSAGES {
            if next % 7 == 0 {
                let batch: Vec<[u64; 3]> = (next..MESSAGES.min(next + 13)).map(|i| [i; 3]).collect();
                next += producer.push_slice(&batch) as u64;
            } else if producer.push([next; 3]).is_ok() {
                next += 1;
            }
            if next % 1000 == 0 {
                thread::yield_now();
            }
        }
    });
    let mut expected = 0;
    while !consumer.is_finished() {
        let got = consumer.pop_each(5, |value| {
            assert_eq!(value, [expected; 3]);
            expected += 1;
        });
        if let Some(value) = consumer.pop() {
            assert_eq!(value, [expected; 3]);
            expected += 1;
        } else if got == 0 {
            thread::yield_now();
        }
    }
    assert_eq!(expected, MESSAGES);
    sender.join().unwrap();
}

#[test]
fn many_to_one_keeps_each_senders_order_and_loses_nothing_when_closed() {
    const MESSAGES: u64 = if cfg!(perpetua_tsan) { 6_000 } else { 60_000 };
    let (producer, mut consumer) = mpsc::ring::<(u64, u64)>(32).unwrap();
    let senders: Vec<_> = (0..4)
        .map(|sender| {
            let producer = producer.clone();
            thread::spawn(move || {
                let mut next = 0;
                while next < MESSAGES {
                    let batch: Vec<(u64, u64)> = (next..next + 1 + next % 5).map(|i| (sender, i)).collect();
                    let sent = producer.push_slice(&batch) as u64;
                    next += sent;
                    if sent > 0 {
                        continue;
                    }
                    match producer.push((sender, next)) {
                        Ok(()) => next += 1,
                        Err(PushError::Full(_)) => thread::yield_now(),
                        Err(PushError::Closed(_)) => break,
                    }
                }
                next
            })
        })
        .collect();
    drop(producer);
    let mut received = [0u64; 4];
    let mut count = 0u64;
    while !consumer.is_finished() {
        match consumer.pop() {
            Some((sender, number)) => {
                assert_eq!(number, received[sender as usize]);
                received[sender as usize] += 1;
                count += 1;
                if count == 2 * MESSAGES {
                    consumer.close();
                }
            }
            None => thread::yield_now(),
        }
    }
    let sent: Vec<u64> = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
    assert_eq!(received.to_vec(), sent);
}

#[test]
fn what_is_left_is_dropped_once() {
    let token = Arc::new(());
    let count = || Arc::strong_count(&token) - 1;
    let (mut producer, mut consumer) = spsc::ring(8).unwrap();
    let (many, mut one) = mpsc::ring(8).unwrap();
    for _ in 0..6 {
        producer.push(token.clone()).unwrap();
        many.push(token.clone()).unwrap();
    }
    assert_eq!(count(), 12);
    drop(consumer.pop());
    drop(one.pop());
    assert_eq!(count(), 10);
    drop((consumer, one));
    assert_eq!(
        producer.push(token.clone()),
        Err(PushError::Closed(token.clone()))
    );
    assert_eq!(many.push(token.clone()), Err(PushError::Closed(token.clone())));
    let undelivered = producer.into_undelivered().ok().unwrap();
    assert_eq!(undelivered.len(), 5);
    drop((undelivered, many));
    assert_eq!(count(), 0);
}

#[test]
fn a_panic_in_who_takes_or_gives_loses_only_its_message() {
    let (mut producer, mut consumer) = spsc::ring(4).unwrap();
    let mut values = (0..3).inspect(|&i| assert!(i < 2, "the source fails"));
    catch_unwind(AssertUnwindSafe(|| producer.push_from(&mut values))).unwrap_err();
    assert_eq!(consumer.len(), 2);
    let take = |value: i32| assert!(value > 0, "the receiver fails");
    catch_unwind(AssertUnwindSafe(|| consumer.pop_each(9, take))).unwrap_err();
    assert_eq!((consumer.pop(), consumer.pop()), (Some(1), None));
    assert_eq!(producer.len(), 0);

    let (many, mut one) = mpsc::ring(4).unwrap();
    assert_eq!(many.push_slice(&[0, 1]), 2);
    catch_unwind(AssertUnwindSafe(|| one.pop_each(9, take))).unwrap_err();
    assert_eq!((one.pop(), one.pop(), many.len()), (Some(1), None, 0));
}
