//! A bounded ring from many threads to one. A position is claimed with a compare-and-swap, its slot's own number says when its
//! message is there. Closing is exact: what was accepted before is received, what comes after is given back. Must not know
//! what travels, nor wait: it says full or empty.

use std::mem::MaybeUninit;

use super::slots::{Cell, Slots};
use super::{PushError, check_capacity};
use crate::error::Result;
use crate::sync::{Arc, AtomicU64, CachePadded, Ordering, UnsafeCell, spin_loop};

/// In the tail: nobody may claim a position any more.
const CLOSED: u64 = 1 << 63;

struct Slot<T> {
    /// The position whose message may be written here; one more when it has been.
    number: AtomicU64,
    cell: Cell<T>,
}

struct Shared<T> {
    /// Positions ever claimed, and [`CLOSED`].
    tail: CachePadded<AtomicU64>,
    /// Messages ever popped; the consumer's.
    head: CachePadded<AtomicU64>,
    /// Producers that exist.
    producers: CachePadded<AtomicU64>,
    slots: Slots<Slot<T>>,
}

// SAFETY: a cell is reached by whoever claimed its position until it writes the slot's number, then by the consumer until it
// does (Release and Acquire on that number: README.md). So at most one thread reaches it.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: it owns its messages.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // All sides are gone, and `Arc` has ordered what they did before this.
        let mut head = self.head.load(Ordering::Relaxed);
        while head < self.tail.load(Ordering::Relaxed) & !CLOSED {
            // SAFETY: a claim is followed by its message in the same call, and no call is under way: positions from head to
            // tail hold a message each, and nobody else reaches them.
            self.slots
                .at(head)
                .cell
                .with_mut(|cell| unsafe { (*cell).assume_init_drop() });
            head += 1;
        }
    }
}

/// A side that sends; clones send to the same ring.
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
}

/// The side that receives.
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    /// Equal to the shared head.
    head: u64,
}

/// A ring of `capacity` messages (a power of two, else [`ActorError::Capacity`](crate::ActorError::Capacity)).
pub fn ring<T: Send>(capacity: usize) -> Result<(Producer<T>, Consumer<T>)> {
    check_capacity(capacity)?;
    let shared = Arc::new(Shared {
        tail: CachePadded(AtomicU64::new(0)),
        head: CachePadded(AtomicU64::new(0)),
        producers: CachePadded(AtomicU64::new(1)),
        slots: Slots::new(capacity, |position| Slot {
            number: AtomicU64::new(position),
            cell: UnsafeCell::new(MaybeUninit::uninit()),
        }),
    });
    let producer = Producer {
        shared: shared.clone(),
    };
    Ok((producer, Consumer { shared, head: 0 }))
}

impl<T> Producer<T> {
    /// Sends a message; gives it back where the ring is full or closed.
    #[inline]
    pub fn push(&self, value: T) -> std::result::Result<(), PushError<T>> {
        // Relaxed: the slot's number orders; the tail only names a position.
        let mut tail = self.shared.tail.load(Ordering::Relaxed);
        loop {
            if tail & CLOSED != 0 {
                return Err(PushError::Closed(value));
            }
            let slot = self.shared.slots.at(tail);
            // Acquire: pairs with the Release in `pop`; a lap ago's message has been read.
            let number = slot.number.load(Ordering::Acquire);
            if number == tail {
                match self.claim(tail, 1) {
                    Ok(()) => {
                        write(slot, tail, value);
                        return Ok(());
                    }
                    Err(now) => tail = now,
                }
                continue;
            }
            let now = self.shared.tail.load(Ordering::Relaxed);
            // The tail stood still, so the slot is this position's, and a lap behind: full.
            if now == tail && number < tail {
                return Err(PushError::Full(value));
            }
            // The tail that was seen is old: somebody else got on.
            spin_loop();
            tail = now;
        }
    }

    /// Sends copies of the first messages of `values`, as many as there is room for, side by side, and says how many: none
    /// where the ring is closed.
    pub fn push_slice(&self, values: &[T]) -> usize
    where
        T: Copy,
    {
        let capacity = self.shared.slots.capacity() as u64;
        let mut tail = self.shared.tail.load(Ordering::Relaxed);
        loop {
            // Acquire: pairs with the Release in `pop`; positions below it are read, and their slots numbered anew.
            let head = self.shared.head.load(Ordering::Acquire);
            // Either may be old: `claim` finds out about the tail, and an old head is only a smaller one.
            let room = (head + capacity).saturating_sub(tail & !CLOSED).min(capacity);
            let count = room.min(values.len() as u64);
            if tail & CLOSED != 0 || count == 0 {
                return 0;
            }
            match self.claim(tail, count) {
                Ok(()) => {
                    for (position, value) in (tail..tail + count).zip(values) {
                        write(self.shared.slots.at(position), position, *value);
                    }
                    return count as usize;
                }
                Err(now) => tail = now,
            }
        }
    }

    /// Claims `count` positions from `tail` on, or says where the tail is instead.
    #[inline(always)]
    fn claim(&self, tail: u64, count: u64) -> std::result::Result<(), u64> {
        // Relaxed: a claim hands nothing over. A closed tail is never equal to an open one.
        self.shared
            .tail
            .compare_exchange_weak(tail, tail + count, Ordering::Relaxed, Ordering::Relaxed)
            .map(drop)
    }

    /// Whether the ring is closed.
    pub fn is_closed(&self) -> bool {
        self.shared.tail.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// Messages that the ring has room for in all.
    pub fn capacity(&self) -> usize {
        self.shared.slots.capacity()
    }

    /// Messages on their way, those included that are being written.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether no message is on its way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Puts the message of a claimed position into its slot.
#[inline(always)]
fn write<T>(slot: &Slot<T>, position: u64, value: T) {
    // SAFETY: whoever claimed the position may write the cell until it writes the number; the Acquire that saw the slot free
    // came before.
    slot.cell.with_mut(|cell| unsafe { (*cell).write(value) });
    // Release: pairs with the Acquire in `pop`; the message is written.
    slot.number.store(position + 1, Ordering::Release);
}

impl<T> Shared<T> {
    fn len(&self) -> usize {
        let head = self.head.load(Ordering::Relaxed);
        let tail = self.tail.load(Ordering::Relaxed) & !CLOSED;
        // The two are not of one moment.
        (tail.saturating_sub(head) as usize).min(self.slots.capacity())
    }
}

impl<T> Clone for Producer<T> {
    fn clone(&self) -> Producer<T> {
        // Relaxed: whoever clones has a producer, so the count is not zero meanwhile.
        self.shared.producers.fetch_add(1, Ordering::Relaxed);
        Producer {
            shared: self.shared.clone(),
        }
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `is_finished`; this producer's messages are written.
        self.shared.producers.fetch_sub(1, Ordering::Release);
    }
}

impl<T> Consumer<T> {
    /// The oldest message, where it is there. A producer that was interrupted between claiming and writing delays those behind
    /// it.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let value = self.take()?;
        self.release();
        Some(value)
    }

    /// Hands the oldest messages to `take`, at most `most` of those that are there, and says how many. Messages that `take`
    /// has seen are gone also where it panics.
    pub fn pop_each(&mut self, most: usize, mut take: impl FnMut(T)) -> usize {
        let unreleased = Unreleased(self);
        let mut count = 0;
        while count < most {
            let Some(value) = unreleased.0.take() else {
                break;
            };
            take(value);
            count += 1;
        }
        count
    }

    #[inline(always)]
    fn take(&mut self) -> Option<T> {
        let slot = self.shared.slots.at(self.head);
        // Acquire: pairs with the Release in `write`; the message is written.
        if slot.number.load(Ordering::Acquire) != self.head + 1 {
            return None;
        }
        // SAFETY: the number says that this position's message is there; the position moves on, so it is read once.
        let value = slot.cell.with(|cell| unsafe { (*cell).assume_init_read() });
        let next_lap = self.head + self.shared.slots.capacity() as u64;
        // Release: pairs with the Acquire in `push`; the cell has been read.
        slot.number.store(next_lap, Ordering::Release);
        self.head += 1;
        Some(value)
    }

    #[inline(always)]
    fn release(&mut self) {
        // Release: pairs with the Acquire in `push_slice`; cells below are read, and their slots numbered.
        self.shared.head.store(self.head, Ordering::Release);
    }

    /// Lets nobody send any more. What was accepted before is still there: receive until [`Consumer::is_finished`].
    pub fn close(&mut self) {
        // Relaxed: claims and this are changes of one atomic, so each claim comes before or fails.
        self.shared.tail.fetch_or(CLOSED, Ordering::Relaxed);
    }

    /// Whether everything has been received and nothing more can come: the ring is closed, or all producers are gone.
    pub fn is_finished(&self) -> bool {
        // Acquire: pairs with the Release in a producer's drop; the tail read next is the last. So this order.
        let abandoned = self.shared.producers.load(Ordering::Acquire) == 0;
        let tail = self.shared.tail.load(Ordering::Relaxed);
        (abandoned || tail & CLOSED != 0) && tail & !CLOSED == self.head
    }

    /// Messages that the ring has room for in all.
    pub fn capacity(&self) -> usize {
        self.shared.slots.capacity()
    }

    /// Messages on their way, those included that are being written.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether no message is on its way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Publishes how far was read, also where whoever took a message panicked.
struct Unreleased<'a, T>(&'a mut Consumer<T>);

impl<T> Drop for Unreleased<'_, T> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.close();
    }
}
