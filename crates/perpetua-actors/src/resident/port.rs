//! The host's end of a home's two rings in host memory. Must not know what packets mean.
//!
//! A slot is eight vectors of 16 bytes, each with the packet's number plus one behind its three words (`device::slots`): a
//! vector moves at once, so a packet is there when all eight carry the tag. Which orderings that takes, and why they
//! suffice, says `ring/README.md`.

use std::arch::x86_64::{__m128i, _mm_set_epi32};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::device::layout::SLOT_VECTORS;
use crate::message::PACKET_WORDS;

/// Whether aligned accesses of 16 bytes are single ones, as Intel and AMD promise for processors with AVX.
pub(super) fn moves_vectors_at_once() -> bool {
    std::arch::is_x86_feature_detected!("avx")
}

/// A ring's slots in host memory.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    base: NonNull<__m128i>,
    mask: u32,
}

// SAFETY: an address; who reaches the memory through it holds a lock, and the device accesses whole vectors.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

impl Slots {
    /// # Safety
    /// `base` is aligned to 16 bytes, and from there on are `capacity` (a power of two) slots, as long as this is used.
    pub(super) unsafe fn new(base: NonNull<u8>, capacity: u32) -> Slots {
        Slots {
            base: base.cast(),
            mask: capacity - 1,
        }
    }

    fn slot(self, number: u32) -> *mut __m128i {
        let at = (number & self.mask) as usize * SLOT_VECTORS;
        // SAFETY: the slot's number is below the capacity, so it lies in what `new` was promised.
        unsafe { self.base.as_ptr().add(at) }
    }

    fn write(self, number: u32, words: &[u32; PACKET_WORDS]) {
        let (at, tag) = (self.slot(number), number.wrapping_add(1));
        for (i, w) in words.chunks_exact(3).enumerate() {
            // SAFETY: SSE2 is part of x86-64.
            let vector = unsafe { _mm_set_epi32(tag as i32, w[2] as i32, w[1] as i32, w[0] as i32) };
            // SAFETY: one of the slot's eight vectors, aligned. Volatile: the device looks at it. It reads whole vectors, and one
            // store of 16 aligned bytes is whole (`moves_vectors_at_once`).
            unsafe { at.add(i).write_volatile(vector) };
        }
    }

    fn read(self, number: u32) -> Option<[u32; PACKET_WORDS]> {
        let (at, tag) = (self.slot(number), number.wrapping_add(1));
        let mut words = [0; PACKET_WORDS];
        // The last one first: the device writes it last, so while nothing is there this is one load.
        for i in (0..SLOT_VECTORS).rev() {
            // SAFETY: as in `write`, with a load.
            let vector = unsafe { at.add(i).read_volatile() };
            // SAFETY: both are 16 bytes without invalid values.
            let lanes: [u32; 4] = unsafe { std::mem::transmute(vector) };
            if lanes[3] != tag {
                return None;
            }
            words[3 * i..3 * i + 3].copy_from_slice(&lanes[..3]);
        }
        Some(words)
    }
}

/// What a home has told: the first vector of its reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Report(pub(super) [u32; 4]);

/// Reads a vector that the device writes.
///
/// # Safety
/// `at` is aligned to 16 bytes and readable.
pub(super) unsafe fn report(at: *const u8) -> Report {
    // SAFETY: by the caller's promise; whole, as in `Slots::read`.
    let vector = unsafe { at.cast::<__m128i>().read_volatile() };
    // SAFETY: both are 16 bytes without invalid values.
    Report(unsafe { std::mem::transmute::<__m128i, [u32; 4]>(vector) })
}

/// Which of its reports tells that a home lives though it has nothing to do.
const PULSE: usize = 2;

/// A home, as the host reaches it.
pub(super) struct Port {
    ingress: Slots,
    egress: Slots,
    /// Where the home tells how many packets it has taken in.
    report: *const u8,
    /// Where the host tells how many packets it has taken out.
    taken: NonNull<AtomicU32>,
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
    /// `report` is aligned to 16 bytes; all reports from there on and `taken` stay valid as long as the port.
    pub(super) unsafe fn new(
        ingress: Slots,
        egress: Slots,
        report: *const u8,
        taken: NonNull<AtomicU32>,
    ) -> Port {
        Port {
            ingress,
            egress,
            report,
            taken,
            into: Mutex::default(),
            out: Mutex::default(),
        }
    }

    /// What the home has told last.
    pub(super) fn report(&self) -> Report {
        // SAFETY: by the promise of `new`.
        unsafe { report(self.report) }
    }

    /// What the home has told last to show that it lives.
    pub(super) fn signs(&self) -> [Report; 2] {
        // SAFETY: by the promise of `new`, which is of all reports.
        let pulse = unsafe { report(self.report.add(PULSE * size_of::<Report>())) };
        [self.report(), pulse]
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
