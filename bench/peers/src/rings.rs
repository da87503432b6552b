//! Queues from one thread to one other, and from two to one: messages a second, of 8 and of 64 bytes. Each queue is used as its
//! crate means it to be without waiting: who finds it full or empty tries again.

use std::error::Error;
use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

use perpetua_actors::ring::{mpsc, spsc};
use ringkernel_core::hlc::HlcTimestamp;
use ringkernel_core::message::MessageEnvelope;
use ringkernel_core::queue::{MessageQueue, MpscQueue, SpscQueue};

use crate::pin::pin;

/// What is sent: its words are the message's number.
type Message<const WORDS: usize> = [u64; WORDS];

/// Messages of a batch, where a queue takes batches.
const BATCH: usize = 64;

/// Prints a row for each queue.
pub(crate) fn compare(messages: u64, turns: u32, capacity: usize) -> Result<(), Box<dyn Error>> {
    println!("queue, room for {capacity} | 8 bytes, M/s | 64 bytes, M/s");
    let best = |turn: &dyn Fn() -> f64| (0..turns).map(|_| turn()).fold(0.0, f64::max);
    let row = |name: &str, small: &dyn Fn() -> f64, large: &dyn Fn() -> f64| {
        println!("{name} | {:.1} | {:.1}", best(small), best(large));
    };
    spsc::ring::<u64>(capacity)?;
    row(
        "one to one: Perpetua",
        &|| ours_one::<1>(messages, capacity),
        &|| ours_one::<8>(messages, capacity),
    );
    row("rtrb", &|| rtrb_one::<1>(messages, capacity), &|| {
        rtrb_one::<8>(messages, capacity)
    });
    row(
        "Perpetua, 64 at once",
        &|| ours_batched::<1>(messages, capacity),
        &|| ours_batched::<8>(messages, capacity),
    );
    row(
        "rtrb, 64 at once",
        &|| rtrb_batched::<1>(messages, capacity),
        &|| rtrb_batched::<8>(messages, capacity),
    );
    row(
        "ringkernel 1.1.0 (an allocation a message)",
        &|| ringkernel::<1>(messages, Arc::new(SpscQueue::new(capacity)), 1),
        &|| ringkernel::<8>(messages, Arc::new(SpscQueue::new(capacity)), 1),
    );
    for senders in [1, 2] {
        let who = if senders == 1 {
            "many to one, by one"
        } else {
            "many to one, by two"
        };
        row(
            &format!("{who}: Perpetua"),
            &|| ours_many::<1>(messages, capacity, senders),
            &|| ours_many::<8>(messages, capacity, senders),
        );
        row(
            "crossbeam-channel",
            &|| crossbeam::<1>(messages, capacity, senders),
            &|| crossbeam::<8>(messages, capacity, senders),
        );
        row("flume", &|| flume_many::<1>(messages, capacity, senders), &|| {
            flume_many::<8>(messages, capacity, senders)
        });
        row(
            "tokio mpsc",
            &|| tokio_many::<1>(messages, capacity, senders),
            &|| tokio_many::<8>(messages, capacity, senders),
        );
        row(
            "ringkernel 1.1.0 (an allocation a message)",
            &|| ringkernel::<1>(messages, Arc::new(MpscQueue::new(capacity)), senders),
            &|| ringkernel::<8>(messages, Arc::new(MpscQueue::new(capacity)), senders),
        );
    }
    Ok(())
}

/// Waits for the other side: spins for a while, then gives the processor away, since it may be the other side's.
struct Pause(u32);

impl Pause {
    fn after(&mut self, got: u64) {
        self.0 = if got == 0 { self.0 + 1 } else { 0 };
        if self.0 > 2000 {
            thread::yield_now();
        } else if self.0 > 0 {
            std::hint::spin_loop();
        }
    }
}

/// Millions of messages a second. A sender is told a number and sends some messages from it on, the receiver receives some and
/// adds up; both say how many.
fn rate<S, R>(messages: u64, senders: Vec<S>, mut receive: R) -> f64
where
    S: FnMut(u64, u64) -> u64 + Send,
    R: FnMut(&mut u64) -> u64,
{
    let each = messages / senders.len() as u64;
    let messages = each * senders.len() as u64;
    let barrier = Barrier::new(senders.len() + 1);
    thread::scope(|scope| {
        pin(0);
        for mut send in senders {
            let barrier = &barrier;
            scope.spawn(move || {
                pin(1);
                barrier.wait();
                let (mut next, mut pause) = (0, Pause(0));
                while next < each {
                    let sent = send(next, each);
                    next += sent;
                    pause.after(sent);
                }
            });
        }
        barrier.wait();
        let start = Instant::now();
        let (mut received, mut sum, mut pause) = (0, 0, Pause(0));
        while received < messages {
            let got = receive(&mut sum);
            received += got;
            pause.after(got);
        }
        black_box(sum);
        messages as f64 / start.elapsed().as_micros() as f64
    })
}

/// Adds a message up, where there is one.
fn take<const WORDS: usize>(message: Option<Message<WORDS>>, sum: &mut u64) -> u64 {
    message.map_or(0, |message| {
        *sum = sum.wrapping_add(message[WORDS - 1]);
        1
    })
}

fn ours_one<const WORDS: usize>(messages: u64, capacity: usize) -> f64 {
    let Ok((mut producer, mut consumer)) = spsc::ring::<Message<WORDS>>(capacity) else {
        return 0.0;
    };
    let send = move |next, _| u64::from(producer.push([next; WORDS]).is_ok());
    rate(messages, vec![send], |sum| take(consumer.pop(), sum))
}

fn ours_batched<const WORDS: usize>(messages: u64, capacity: usize) -> f64 {
    let Ok((mut producer, mut consumer)) = spsc::ring::<Message<WORDS>>(capacity) else {
        return 0.0;
    };
    let send = move |next: u64, end: u64| {
        producer.push_from(&mut (next..end.min(next + BATCH as u64)).map(|number| [number; WORDS])) as u64
    };
    rate(messages, vec![send], |sum| {
        consumer.pop_each(BATCH, |message| *sum = sum.wrapping_add(message[WORDS - 1])) as u64
    })
}

fn rtrb_one<const WORDS: usize>(messages: u64, capacity: usize) -> f64 {
    let (mut producer, mut consumer) = rtrb::RingBuffer::<Message<WORDS>>::new(capacity);
    let send = move |next, _| u64::from(producer.push([next; WORDS]).is_ok());
    rate(messages, vec![send], |sum| take(consumer.pop().ok(), sum))
}

fn rtrb_batched<const WORDS: usize>(messages: u64, capacity: usize) -> f64 {
    let (mut producer, mut consumer) = rtrb::RingBuffer::<Message<WORDS>>::new(capacity);
    let send = move |next: u64, end: u64| {
        let wanted = (end - next).min(BATCH as u64) as usize;
        let room = wanted.min(producer.slots());
        producer.write_chunk_uninit(room).map_or(0, |chunk| {
            chunk.fill_from_iter((next..).map(|number| [number; WORDS])) as u64
        })
    };
    rate(messages, vec![send], |sum| {
        let ready = consumer.slots().min(BATCH);
        consumer.read_chunk(ready).map_or(0, |chunk| {
            chunk
                .into_iter()
                .for_each(|message| *sum = sum.wrapping_add(message[WORDS - 1]));
            ready as u64
        })
    })
}

fn ours_many<const WORDS: usize>(messages: u64, capacity: usize, senders: usize) -> f64 {
    let Ok((producer, mut consumer)) = mpsc::ring::<Message<WORDS>>(capacity) else {
        return 0.0;
    };
    let sender = |_| {
        let producer = producer.clone();
        move |next, _| u64::from(producer.push([next; WORDS]).is_ok())
    };
    rate(messages, (0..senders).map(sender).collect(), |sum| {
        take(consumer.pop(), sum)
    })
}

fn crossbeam<const WORDS: usize>(messages: u64, capacity: usize, senders: usize) -> f64 {
    let (producer, consumer) = crossbeam_channel::bounded::<Message<WORDS>>(capacity);
    let sender = |_| {
        let producer = producer.clone();
        move |next, _| u64::from(producer.try_send([next; WORDS]).is_ok())
    };
    rate(messages, (0..senders).map(sender).collect(), |sum| {
        take(consumer.try_recv().ok(), sum)
    })
}

fn flume_many<const WORDS: usize>(messages: u64, capacity: usize, senders: usize) -> f64 {
    let (producer, consumer) = flume::bounded::<Message<WORDS>>(capacity);
    let sender = |_| {
        let producer = producer.clone();
        move |next, _| u64::from(producer.try_send([next; WORDS]).is_ok())
    };
    rate(messages, (0..senders).map(sender).collect(), |sum| {
        take(consumer.try_recv().ok(), sum)
    })
}

fn tokio_many<const WORDS: usize>(messages: u64, capacity: usize, senders: usize) -> f64 {
    let (producer, mut consumer) = tokio::sync::mpsc::channel::<Message<WORDS>>(capacity);
    let sender = |_| {
        let producer = producer.clone();
        move |next, _| u64::from(producer.try_send([next; WORDS]).is_ok())
    };
    rate(messages, (0..senders).map(sender).collect(), |sum| {
        take(consumer.try_recv().ok(), sum)
    })
}

fn ringkernel<const WORDS: usize>(messages: u64, queue: Arc<dyn MessageQueue>, senders: usize) -> f64 {
    let sender = |_| {
        let queue = queue.clone();
        move |next: u64, _| {
            let mut envelope = MessageEnvelope::empty(1, 2, HlcTimestamp::default());
            envelope.payload = vec![next as u8; WORDS * 8];
            u64::from(queue.try_enqueue(envelope).is_ok())
        }
    };
    rate(messages / 8, (0..senders).map(sender).collect(), |sum| {
        queue.try_dequeue().map_or(0, |envelope| {
            *sum = sum.wrapping_add(u64::from(envelope.payload[0]));
            1
        })
    })
}
