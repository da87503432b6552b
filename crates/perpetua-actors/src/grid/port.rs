//! The host's end of a home's two rings in host memory. Must not know what packets mean.
//!
//! A slot is eight vectors of 16 bytes, each with the packet's number plus one behind its three words (`kernels::layout`): a
//! vector moves at once, so a packet is there when all eight carry the tag. Which orderings that takes, and why they
//! suffice, says `ring/README.md`.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::kernels::layout::{REPORT_VECTORS, SLOT_VECTORS};
use crate::message::PACKET_WORDS;
use crate::sync::Vector;

/// A ring's slots in host memory.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    base: NonNull<Vector>,
    mask: u32,
}

// SAFETY: an address of vectors, which any thread may reach at any time.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

impl Slots {
    /// # Safety
    /// From `base` on are `capacity` (a power of two) slots, as long as this is used.
    pub(super) unsafe fn new(base: NonNull<Vector>, capacity: u32) -> Slots {
        Slots {
            base,
            mask: capacity - 1,
        }
    }

    fn slot(&self, number: u32) -> &[Vector; SLOT_VECTORS] {
        let at = (number & self.mask) as usize * SLOT_VECTORS;
        // SAFETY: the slot's number is below the capacity, so its vectors lie in what `new` was promised.
        unsafe { self.base.add(at).cast().as_ref() }
    }

    /// Puts a packet into the slot of this number. A thread or lane that sees one of its tags and acquires knows what this
    /// thread did before: the packet's block is written.
    #[inline]
    pub(super) fn write(&self, number: u32, words: &[u32; PACKET_WORDS]) {
        let (slot, tag) = (self.slot(number), number.wrapping_add(1));
        // By index: iterators that are not inlined cost more than the stores.
        for i in 0..SLOT_VECTORS {
            slot[i].store_release([words[3 * i], words[3 * i + 1], words[3 * i + 2], tag]);
        }
    }

    /// The packet of this number, where it is there; then what its sender did before it fenced is known to this thread.
    #[inline]
    pub(super) fn read(&self, number: u32) -> Option<[u32; PACKET_WORDS]> {
        let (slot, tag) = (self.slot(number), number.wrapping_add(1));
        let mut words = [0; PACKET_WORDS];
        // The last one first: the device writes it last, so while nothing is there this is one load.
        for i in (0..SLOT_VECTORS).rev() {
            let [a, b, c, found] = slot[i].load_acquire();
            if found != tag {
                return None;
            }
            (words[3 * i], words[3 * i + 1], words[3 * i + 2]) = (a, b, c);
        }
        Some(words)
    }
}

/// What a home has told: the first vector of its reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Report(pub(super) [u32; 4]);

/// Which of its reports tells that a home lives though it has nothing to do.
const PULSE: usize = 2;

/// A home, as the host reaches it.
pub(super) struct Port {
    ingress: Slots,
    egress: Slots,
    /// What the home tells: first how many packets it has taken in.
    reports: NonNull<Vector>,
    /// Where the host tells how many packets it has taken out.
    taken: NonNull<AtomicU32>,
    /// Orders to leave the device that have gone into the home's ring, of which no sender knows.
    parks: AtomicU32,
    into: Mutex<Into>,
    out: Mutex<Out>,
}

// SAFETY: the addresses are into mapped memory that the `Commons` keep; each ring's end is reached under its lock.
unsafe impl Send for Port {}
// SAFETY: as above.
unsafe impl Sync for Port {}

#[derive(Default)]
struct Into {
    next: u32,
    /// Packets that the home has taken in, as far as is known.
    taken: u32,
}

#[derive(Default)]
struct Out {
    next: u32,
    /// Packets that had to be taken out before anybody asked for them.
    spill: VecDeque<[u32; PACKET_WORDS]>,
}

impl Port {
    /// # Safety
    /// `reports` are as many vectors as a home's reports; they and `taken` stay valid as long as the port.
    pub(super) unsafe fn new(
        ingress: Slots,
        egress: Slots,
        reports: NonNull<Vector>,
        taken: NonNull<AtomicU32>,
    ) -> Port {
        Port {
            ingress,
            egress,
            reports,
            taken,
            parks: AtomicU32::new(0),
            into: Mutex::default(),
            out: Mutex::default(),
        }
    }

    /// One of the home's reports, as it was told last.
    pub(super) fn report_at(&self, which: usize) -> Report {
        debug_assert!(which < REPORT_VECTORS);
        // SAFETY: by the promise of `new`, which is of all reports.
        Report(unsafe { self.reports.add(which).as_ref() }.load_acquire())
    }

    /// What the home has told last.
    pub(super) fn report(&self) -> Report {
        self.report_at(0)
    }

    /// Packets of senders that the home has taken in; maybe less than it was a moment ago, while the home is to leave.
    pub(super) fn taken_in(&self) -> u32 {
        // In this order: an order to leave was counted before it was there to be taken in.
        let taken = self.report().0[0];
        taken.wrapping_sub(self.parks.load(Ordering::Acquire))
    }

    /// An order to leave is about to go into the home's ring.
    pub(super) fn count_park(&self) {
        self.parks.fetch_add(1, Ordering::Release);
    }

    /// What the home has told last to show that it lives.
    pub(super) fn signs(&self) -> [Report; 2] {
        [self.report(), self.report_at(PULSE)]
    }

    /// Puts packets into the home's ring, as many as there is room for; says how many.
    pub(super) fn push<'a>(&self, packets: impl IntoIterator<Item = &'a [u32; PACKET_WORDS]>) -> usize {
        let mut into = self.into.lock().unwrap_or_else(|e| e.into_inner());
        let mut pushed = 0;
        for packet in packets {
            if into.next.wrapping_sub(into.taken) > self.ingress.mask {
                into.taken = self.report().0[0];
                if into.next.wrapping_sub(into.taken) > self.ingress.mask {
                    break;
                }
            }
            self.ingress.write(into.next, packet);
            into.next = into.next.wrapping_add(1);
            pushed += 1;
        }
        pushed
    }

    /// The packets in the ring to the home, first to be taken in first. The home must not run.
    pub(super) fn inside(&self) -> Vec<[u32; PACKET_WORDS]> {
        let into = self.into.lock().unwrap_or_else(|e| e.into_inner());
        let taken = self.report().0[0];
        let count = into.next.wrapping_sub(taken);
        (0..count)
            .filter_map(|i| self.ingress.read(taken.wrapping_add(i)))
            .collect()
    }

    /// Packets that wait in the ring to the home.
    pub(super) fn waiting(&self) -> u32 {
        let into = self.into.lock().unwrap_or_else(|e| e.into_inner());
        into.next.wrapping_sub(self.report().0[0])
    }

    /// Gives the packets that have come out to `take`, at most `most`, and says how many they were. Where somebody else is
    /// at it, none.
    pub(super) fn drain(&self, most: usize, mut take: impl FnMut(&[u32; PACKET_WORDS])) -> usize {
        let Ok(mut out) = self.out.try_lock() else {
            return 0;
        };
        let mut taken = 0;
        while taken < most {
            let packet = match out.spill.pop_front() {
                Some(packet) => packet,
                None => match self.next(&mut out) {
                    Some(packet) => packet,
                    None => break,
                },
            };
            take(&packet);
            taken += 1;
        }
        taken
    }

    /// Whether packets have come out that nobody has taken.
    pub(super) fn has_packets(&self) -> bool {
        let out = self.out.lock().unwrap_or_else(|e| e.into_inner());
        !out.spill.is_empty() || self.egress.read(out.next).is_some()
    }

    /// Whether the first `put_out` packets (which wraps at 2^32) have been taken.
    pub(super) fn has_taken(&self, put_out: u32) -> bool {
        let out = self.out.lock().unwrap_or_else(|e| e.into_inner());
        out.spill.is_empty() && out.next.wrapping_sub(put_out) < 1 << 31
    }

    /// Keeps the packets that have come out, so that the home can go on.
    pub(super) fn spill(&self) {
        let mut out = self.out.lock().unwrap_or_else(|e| e.into_inner());
        while let Some(packet) = self.next(&mut out) {
            out.spill.push_back(packet);
        }
    }

    fn next(&self, out: &mut Out) -> Option<[u32; PACKET_WORDS]> {
        let packet = self.egress.read(out.next)?;
        out.next = out.next.wrapping_add(1);
        // SAFETY: by the promise of `new`.
        let taken = unsafe { self.taken.as_ref() };
        // Release: pairs with the home's Acquire load before it writes to the slot again, which must not pass our reading it.
        taken.store(out.next, Ordering::Release);
        Some(packet)
    }
}
