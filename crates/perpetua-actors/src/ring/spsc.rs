//! A bounded ring from one thread to one other. Each side keeps its own position and remembers how far it last saw the other
//! get, so that a cache line travels only when that is used up. Must not know what travels, nor wait: it says full or empty.

use std::mem::MaybeUninit;

use super::slots::{Cell, Slots};
use super::{PushError, check_capacity};
use crate::error::Result;
use crate::sync::{Arc, AtomicBool, AtomicU64, CachePadded, Ordering, UnsafeCell};

struct Shared<T> {
    /// Messages ever pushed; the producer's.
    tail: CachePadded<AtomicU64>,
    /// Messages ever popped; the consumer's.
    head: CachePadded<AtomicU64>,
    producer_gone: AtomicBool,
    consumer_gone: AtomicBool,
    slots: Slots<Cell<T>>,
}

// SAFETY: a cell is reached by the producer while its position is in tail..head + capacity, by the consumer while it is in
// head..tail; the two hand it over with a Release store and an Acquire load (README.md). So at most one thread reaches it.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: it owns its messages.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // Both sides are gone, and `Arc` has ordered what they did before this.
        let (head, tail) = (
            self.head.load(Ordering::Relaxed),
            self.tail.load(Ordering::Relaxed),
        );
        for position in head..tail {
            // SAFETY: positions from head to tail hold a message each, and nobody else reaches them.
            self.slots
                .at(position)
                .with_mut(|cell| unsafe { (*cell).assume_init_drop() });
        }
    }
}

/// The side that sends.
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    /// Equal to the shared tail.
    tail: u64,
    /// At most the shared head.
    head_seen: u64,
}

/// The side that receives.
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    /// Equal to the shared head.
    head: u64,
    /// At most the shared tail.
    tail_seen: u64,
}

/// A ring of `capacity` messages (a power of two, else [`ActorError::Capacity`](crate::ActorError::Capacity)).
pub fn ring<T: Send>(capacity: usize) -> Result<(Producer<T>, Consumer<T>)> {
    check_capacity(capacity)?;
    let shared = Arc::new(Shared {
        tail: CachePadded(AtomicU64::new(0)),
        head: CachePadded(AtomicU64::new(0)),
        producer_gone: AtomicBool::new(false),
        consumer_gone: AtomicBool::new(false),
        slots: Slots::new(capacity, |_| UnsafeCell::new(MaybeUninit::uninit())),
    });
    let producer = Producer {
        shared: shared.clone(),
        tail: 0,
        head_seen: 0,
    };
    let consumer = Consumer {
        shared,
        head: 0,
        tail_seen: 0,
    };
    Ok((producer, consumer))
}

impl<T> Producer<T> {
    /// Sends a message; gives it back where the ring is full, or nobody will receive.
    #[inline]
    pub fn push(&mut self, value: T) -> std::result::Result<(), PushError<T>> {
        if self.is_closed() {
            return Err(PushError::Closed(value));
        }
        if self.room(1) == 0 {
            return Err(PushError::Full(value));
        }
        // SAFETY: there is room, so the consumer is done with this cell (the Acquire in `room`), and reaches it again only
        // after the Release in `publish`.
        self.shared
            .slots
            .at(self.tail)
            .with_mut(|cell| unsafe { (*cell).write(value) });
        self.publish(1);
        Ok(())
    }

    /// Sends copies of the first messages of `values`, as many as there is room for, and says how many: none where nobody will
    /// receive.
    pub fn push_slice(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        if self.is_closed() {
            return 0;
        }
        let count = self.room(values.len()).min(values.len());
        let (first, second) = self.shared.slots.runs(self.tail, count);
        let (to_first, to_second) = values[..count].split_at(first.len());
        write_run(first, to_first);
        write_run(second, to_second);
        self.publish(count);
        count
    }

    /// Sends what `values` gives, as long as there is room and it gives something, and says how many were sent. Nothing is
    /// taken from `values` that is not sent.
    pub fn push_from(&mut self, values: &mut impl Iterator<Item = T>) -> usize {
        if self.is_closed() {
            return 0;
        }
        let mut sent = 0;
        loop {
            let room = self.room(usize::MAX);
            if room == 0 {
                return sent;
            }
            let mut batch = Unpublished {
                producer: self,
                count: 0,
            };
            for value in values.by_ref().take(room) {
                let cell = batch.producer.shared.slots.at(batch.producer.tail + batch.count);
                // SAFETY: as in `push`: `count` is below what there is room for.
                cell.with_mut(|cell| unsafe { (*cell).write(value) });
                batch.count += 1;
            }
            let count = batch.count as usize;
            drop(batch);
            sent += count;
            if count < room {
                return sent;
            }
        }
    }

    /// Messages that fit, at least; looks at the consumer's position again only where fewer than `wanted` are known to.
    #[inline(always)]
    fn room(&mut self, wanted: usize) -> usize {
        let capacity = self.shared.slots.capacity();
        let known = capacity - (self.tail - self.head_seen) as usize;
        if known >= wanted {
            return known;
        }
        // Acquire: pairs with the Release in the consumer's `release`; its reads of the cells are over.
        self.head_seen = self.shared.head.load(Ordering::Acquire);
        capacity - (self.tail - self.head_seen) as usize
    }

    #[inline(always)]
    fn publish(&mut self, count: usize) {
        self.tail += count as u64;
        // Release: pairs with the Acquire in the consumer's `ready`; the messages are written.
        self.shared.tail.store(self.tail, Ordering::Release);
    }

    /// Whether the consumer is gone. What was sent and not received can be taken back: [`Producer::into_undelivered`].
    #[inline]
    pub fn is_closed(&self) -> bool {
        // Relaxed: nothing is read because of it but where `into_undelivered` loads it again.
        self.shared.consumer_gone.load(Ordering::Relaxed)
    }

    /// Messages that the ring has room for in all.
    pub fn capacity(&self) -> usize {
        self.shared.slots.capacity()
    }

    /// Messages on their way.
    pub fn len(&self) -> usize {
        (self.tail - self.shared.head.load(Ordering::Relaxed)) as usize
    }

    /// Whether all messages have been received.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was sent and not received, oldest first, once the consumer is gone; before that the producer comes back.
    pub fn into_undelivered(self) -> std::result::Result<Vec<T>, Producer<T>> {
        // Acquire: pairs with the Release in the consumer's drop; its last position is final.
        if !self.shared.consumer_gone.load(Ordering::Acquire) {
            return Err(self);
        }
        let mut rest = Consumer {
            head: self.shared.head.load(Ordering::Relaxed),
            tail_seen: self.tail,
            shared: self.shared.clone(),
        };
        Ok(std::iter::from_fn(|| rest.pop()).collect())
    }
}

/// Publishes what was written of a batch, also where the batch's source panicked.
struct Unpublished<'a, T> {
    producer: &'a mut Producer<T>,
    count: u64,
}

impl<T> Drop for Unpublished<'_, T> {
    fn drop(&mut self) {
        self.producer.publish(self.count as usize);
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `is_finished`; the last message is published.
        self.shared.producer_gone.store(true, Ordering::Release);
    }
}

impl<T> Consumer<T> {
    /// The oldest message, where there is one.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.ready(1) == 0 {
            return None;
        }
        // SAFETY: the producer has written this cell (the Acquire in `ready`), and reaches it again only after the Release in
        // `release`; the position moves on, so it is read once.
        let value = self
            .shared
            .slots
            .at(self.head)
            .with(|cell| unsafe { (*cell).assume_init_read() });
        self.head += 1;
        self.release();
        Some(value)
    }

    /// Copies the oldest messages into `values`, as many as there are and fit, and says how many.
    pub fn pop_slice(&mut self, values: &mut [T]) -> usize
    where
        T: Copy,
    {
        let count = self.ready(values.len()).min(values.len());
        let (first, second) = self.shared.slots.runs(self.head, count);
        let (to_first, to_second) = values[..count].split_at_mut(first.len());
        read_run(first, to_first);
        read_run(second, to_second);
        self.head += count as u64;
        self.release();
        count
    }

    /// Hands the oldest messages to `take`, at most `most` of those that are there now, and says how many. Their room is given
    /// back at the end, at once; messages that `take` has seen are gone also where it panics.
    pub fn pop_each(&mut self, most: usize, mut take: impl FnMut(T)) -> usize {
        let count = self.ready(most).min(most);
        let unreleased = Unreleased(self);
        for _ in 0..count {
            // SAFETY: as in `pop`: `count` cells from the head on are written.
            let value = unreleased
                .0
                .shared
                .slots
                .at(unreleased.0.head)
                .with(|cell| unsafe { (*cell).assume_init_read() });
            unreleased.0.head += 1;
            take(value);
        }
        count
    }

    /// Messages that can be read, at least; looks at the producer's position again only where fewer than `wanted` are known of.
    #[inline(always)]
    fn ready(&mut self, wanted: usize) -> usize {
        let known = (self.tail_seen - self.head) as usize;
        if known >= wanted {
            return known;
        }
        // Acquire: pairs with the Release in the producer's `publish`; the messages are written.
        self.tail_seen = self.shared.tail.load(Ordering::Acquire);
        (self.tail_seen - self.head) as usize
    }

    #[inline(always)]
    fn release(&mut self) {
        // Release: pairs with the Acquire in the producer's `room`; the cells have been read.
        self.shared.head.store(self.head, Ordering::Release);
    }

    /// Whether the producer is gone and everything has been received.
    pub fn is_finished(&self) -> bool {
        // Acquire: pairs with the Release in the producer's drop; the tail read next is its last. So this order.
        self.shared.producer_gone.load(Ordering::Acquire)
            && self.shared.tail.load(Ordering::Relaxed) == self.head
    }

    /// Messages that the ring has room for in all.
    pub fn capacity(&self) -> usize {
        self.shared.slots.capacity()
    }

    /// Messages on their way.
    pub fn len(&self) -> usize {
        (self.shared.tail.load(Ordering::Relaxed) - self.head) as usize
    }

    /// Whether no message is on its way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Gives back the room of what was read, also where whoever took a message panicked.
struct Unreleased<'a, T>(&'a mut Consumer<T>);

impl<T> Drop for Unreleased<'_, T> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `into_undelivered`; the position is final.
        self.shared.consumer_gone.store(true, Ordering::Release);
    }
}

fn write_run<T: Copy>(cells: &[Cell<T>], values: &[T]) {
    for (cell, value) in cells.iter().zip(values) {
        // SAFETY: the caller has room for these cells.
        cell.with_mut(|cell| unsafe { (*cell).write(*value) });
    }
}

fn read_run<T: Copy>(cells: &[Cell<T>], values: &mut [T]) {
    for (cell, value) in cells.iter().zip(values) {
        // SAFETY: the caller knows that these cells are written.
        *value = cell.with(|cell| unsafe { (*cell).assume_init_read() });
    }
}
