//! Atomic accesses: lane by lane, lowest first. On buffers they are the host's atomic instructions, for other
//! blocks may run on other threads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::super::error::{AccessKind, InterpError};
use super::super::mask;
use super::super::memory::{Cell, load_words, store_words};
use super::super::program::{AtomicAct, Reg, RegionKind};
use super::super::race::{Detector, Touch};
use super::{Launch, Machine, Next};
use crate::eval::{self, WORD, eval_atomic};
use perpetua_ir::ir::{AtomicOp, MemOrder, Scalar, Sync};

/// What one lane does, with its operands.
#[derive(Clone, Copy)]
enum Act {
    Load,
    Store(u64),
    Update(AtomicOp, u64),
    CompareExchange(u64, u64),
}

/// Order of an access that loads and perhaps stores.
fn order(order: MemOrder) -> Ordering {
    match order {
        MemOrder::Relaxed => Ordering::Relaxed,
        MemOrder::Acquire => Ordering::Acquire,
        MemOrder::Release => Ordering::Release,
        MemOrder::AcqRel => Ordering::AcqRel,
        MemOrder::SeqCst => Ordering::SeqCst,
    }
}

/// Order of an access that only loads: the loading half of `order`.
pub(super) fn load_order(order: MemOrder) -> MemOrder {
    match order {
        MemOrder::Release => MemOrder::Relaxed,
        MemOrder::AcqRel => MemOrder::Acquire,
        other => other,
    }
}

/// Order of an access that only stores: the storing half of `order`.
fn store_order(order: MemOrder) -> MemOrder {
    match order {
        MemOrder::Acquire => MemOrder::Relaxed,
        MemOrder::AcqRel => MemOrder::Release,
        other => other,
    }
}

macro_rules! act {
    ($atomic:ty, $t:ty, $at:expr, $s:expr, $act:expr, $order:expr) => {{
        // SAFETY: `perform`'s caller guarantees that the address is valid, aligned, and raced for by atomics alone.
        let cell = unsafe { <$atomic>::from_ptr($at.cast()) };
        let (both, load, store) = (order($order), order(load_order($order)), order(store_order($order)));
        match $act {
            Act::Load => (u64::from(cell.load(load)), false),
            Act::Store(v) => {
                cell.store(v as $t, store);
                (0, true)
            }
            Act::CompareExchange(expected, new) => {
                match cell.compare_exchange(expected as $t, new as $t, both, load) {
                    Ok(old) => (u64::from(old), true),
                    Err(old) => (u64::from(old), false),
                }
            }
            Act::Update(AtomicOp::Add, v) if $s.is_int() => (u64::from(cell.fetch_add(v as $t, both)), true),
            Act::Update(AtomicOp::Sub, v) if $s.is_int() => (u64::from(cell.fetch_sub(v as $t, both)), true),
            Act::Update(AtomicOp::And, v) => (u64::from(cell.fetch_and(v as $t, both)), true),
            Act::Update(AtomicOp::Or, v) => (u64::from(cell.fetch_or(v as $t, both)), true),
            Act::Update(AtomicOp::Xor, v) => (u64::from(cell.fetch_xor(v as $t, both)), true),
            Act::Update(AtomicOp::Exchange, v) => (u64::from(cell.swap(v as $t, both)), true),
            Act::Update(op, v) => {
                let mut old = cell.load(Ordering::Relaxed);
                loop {
                    let new = eval_atomic(op, $s, u64::from(old), v) as $t;
                    match cell.compare_exchange_weak(old, new, both, Ordering::Relaxed) {
                        Ok(old) => break (u64::from(old), true),
                        Err(now) => old = now,
                    }
                }
            }
        }
    }};
}

/// Does it; gives the old value, and whether the place was written.
///
/// # Safety
/// `at` must be valid for reads and writes and aligned for `s`; racing accesses must be atomic.
unsafe fn perform(at: *mut u8, s: Scalar, act: Act, order: MemOrder) -> (u64, bool) {
    if s.size() == 4 {
        act!(AtomicU32, u32, at, s, act, order)
    } else {
        act!(AtomicU64, u64, at, s, act, order)
    }
}

/// The same for machine code: the operand, or the expected value and the new one; gives the old value.
///
/// # Safety
/// As for [`perform`].
#[cfg(machine_code)]
pub(in super::super) unsafe fn perform_access(
    at: *mut u8,
    s: Scalar,
    kind: crate::interp::code::tree::AtomicKind,
    [first, second]: [u64; 2],
    order: MemOrder,
) -> u64 {
    use crate::interp::code::tree::AtomicKind;
    let act = match kind {
        AtomicKind::Load => Act::Load,
        AtomicKind::Store => Act::Store(first),
        AtomicKind::Update(op) => Act::Update(op, first),
        AtomicKind::CompareExchange => Act::CompareExchange(first, second),
    };
    // SAFETY: passed on.
    unsafe { perform(at, s, act, order) }.0
}

impl Machine {
    /// Moves four words at once, lane by lane.
    pub(super) fn words(
        &mut self,
        launch: &Launch<'_>,
        access: u32,
        sync: Sync,
        stores: bool,
        mut races: Option<&mut Detector>,
    ) -> Result<Next, Box<InterpError>> {
        let access = &launch.program.accesses[access as usize];
        let ptr = self.views[access.region as usize].ptr;
        for w in 0..self.active.len() {
            if self.active[w] == 0 {
                continue;
            }
            for i in mask::bits(self.find(launch, access, w)) {
                let lane = w * WORD + i;
                let offset = self.located.offset(i);
                let at = ptr.wrapping_add(offset as usize);
                let parts = || {
                    access
                        .leaves
                        .iter()
                        .map(|(_, at, reg)| (*at as usize / 4 % 4, *reg))
                };
                if stores {
                    let mut words = [0; 4];
                    parts().for_each(|(at, reg)| words[at] = self.value(reg, lane) as u32);
                    // SAFETY: as in `Machine::store`: lane `i` was found in bounds, and the verifier lets no other type move so than four
                    // words that are aligned to 16 bytes, as buffers and shared memory are.
                    unsafe { store_words(at, words) };
                } else {
                    // SAFETY: as above, for loads.
                    let words = unsafe { load_words(at) };
                    for (at, reg) in parts() {
                        let lanes = self.regs[reg as usize].lanes_mut(self.sides, self.words);
                        eval::put(lanes, 4, lane, words[at].into());
                    }
                }
                if let Some(races) = races.as_deref_mut() {
                    let kind = if stores {
                        AccessKind::AtomicStore
                    } else {
                        AccessKind::AtomicLoad
                    };
                    let touch = Touch {
                        region: access.region,
                        offset,
                        size: 16,
                        kind,
                        scope: Some(sync.scope),
                        lane: (self.part.first + lane) as u32,
                        pc: self.pc,
                    };
                    let found = races.atomic(touch, sync, stores);
                    found.map_err(|found| InterpError::Race(Box::new(launch.race(*found))))?;
                }
            }
        }
        Ok(Next::Check)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one operation")]
    pub(super) fn atomic(
        &mut self,
        launch: &Launch<'_>,
        access: u32,
        s: Scalar,
        act: &AtomicAct,
        sync: Sync,
        out: Reg,
        mut races: Option<&mut Detector>,
    ) -> Result<Next, Box<InterpError>> {
        let access = &launch.program.accesses[access as usize];
        let (ptr, size) = (self.views[access.region as usize].ptr, s.size());
        // Shared memory is this thread's: its atomics are plain, and sums, which are what it is there for, by a way of their own.
        let region = &launch.program.regions[access.region as usize];
        let is_shared = matches!(region.kind, RegionKind::Shared { .. } | RegionKind::Dynamic);
        let alone = is_shared && races.is_none() && self.part.team.is_none();
        let mut result = self.take(out);
        for w in 0..self.active.len() {
            if self.active[w] == 0 {
                continue;
            }
            let found = self.find(launch, access, w);
            if let (
                AtomicAct::Update {
                    op: AtomicOp::Add,
                    value,
                },
                true,
                true,
            ) = (act, s.is_int() && size == 4, alone)
            {
                for i in mask::bits(found) {
                    let lane = w * WORD + i;
                    let at = ptr.wrapping_add(self.located.offset(i) as usize);
                    // SAFETY: as below.
                    let old = unsafe { u32::load(at) };
                    // SAFETY: as below.
                    unsafe { old.wrapping_add(self.value(*value, lane) as u32).store(at) };
                    eval::put(&mut result, 4, lane, old.into());
                }
                continue;
            }
            for i in mask::bits(found) {
                let lane = w * WORD + i;
                let operand = |reg: Reg| self.value(reg, lane);
                let act = match act {
                    AtomicAct::Load => Act::Load,
                    AtomicAct::Store { value } => Act::Store(operand(*value)),
                    AtomicAct::Update { op, value } => Act::Update(*op, operand(*value)),
                    AtomicAct::CompareExchange { expected, new } => {
                        Act::CompareExchange(operand(*expected), operand(*new))
                    }
                };
                let offset = self.located.offset(i);
                // SAFETY: as in `Machine::load`: lane `i` was found in bounds, and 32- and 64-bit scalars, the only ones that the
                // verifier lets atomics have, are aligned there.
                let (old, wrote) = unsafe { perform(ptr.wrapping_add(offset as usize), s, act, sync.order) };
                eval::put(&mut result, size, lane, old);
                if let Some(races) = races.as_deref_mut() {
                    let kind = match act {
                        Act::Load => AccessKind::AtomicLoad,
                        Act::Store(_) => AccessKind::AtomicStore,
                        Act::Update(..) | Act::CompareExchange(..) => AccessKind::AtomicUpdate,
                    };
                    let touch = Touch {
                        region: access.region,
                        offset,
                        size,
                        kind,
                        scope: Some(sync.scope),
                        lane: (self.part.first + lane) as u32,
                        pc: self.pc,
                    };
                    let found = races.atomic(touch, sync, wrote);
                    found.map_err(|found| InterpError::Race(Box::new(launch.race(*found))))?;
                }
            }
        }
        self.put(out, result);
        Ok(Next::Check)
    }
}
