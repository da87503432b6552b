//! One actor on the CPU. Whoever sets the bit RUNNING of its schedule, a worker or somebody who waits for an answer, may run it and
//! reach what is inside; nobody else. Must not know threads or queues of actors.
//!
//! The schedule has two bits. PENDING: there may be work, and the actor lies in the run queue, or will be put there by whoever
//! clears RUNNING. A sender appends to the mailbox and then sets PENDING; the one who finds both bits clear before it queues the
//! actor. A runner clears PENDING when it begins, and before it ends looks whether it was set again: both go through
//! one atomic word, so either the runner sees the message, or the sender sees that nobody runs.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::state::{Before, StateMemory};
use crate::error::{ActorError, Result};
use crate::lock::lock;
use crate::message::ActorId;
use crate::runtime::group::Group;
use crate::runtime::mailbox::Mailbox;
use crate::runtime::unsent::Unsent;
use crate::runtime::vitals::Vitals;
use crate::supervise::OnFault;

const RUNNING: u8 = 1;
const PENDING: u8 = 2;

/// One actor.
pub(super) struct Cell {
    pub(super) id: ActorId,
    pub(super) group: Arc<Group>,
    pub(super) mailbox: Mailbox,
    pub(super) vitals: Vitals,
    schedule: AtomicU8,
    run_time: AtomicU32,
    inside: UnsafeCell<Inside>,
    // Whether `inside` holds something unsent, for those outside.
    stalled: AtomicBool,
    /// Actors whose packets found this mailbox full.
    waiting: Mutex<Vec<Arc<Cell>>>,
    has_waiting: AtomicBool,
}

/// What only the runner of a cell may touch.
pub(super) struct Inside {
    pub(super) state: StateMemory,
    /// What found its destination full, in order of sending.
    pub(super) unsent: Unsent,
}

impl Inside {
    /// The state as it is now, if a fault of the handler that is to run now brings it back.
    pub(super) fn before(&self, cell: &Cell) -> Option<Before> {
        // SAFETY: only the cell's runner has its `Inside`.
        (cell.group.on_fault == OnFault::Transactional).then(|| unsafe { self.state.keep() })
    }

    /// Its handler has faulted.
    pub(super) fn undo(&mut self, cell: &Cell, before: Option<&Before>) {
        // SAFETY: only the cell's runner has its `Inside`; `before` is of this state.
        unsafe {
            match (cell.group.on_fault, before) {
                (OnFault::Transactional, Some(before)) => self.state.put_back(before),
                (OnFault::Restart, _) => self.state.write(&cell.group.initial),
                _ => {}
            }
        }
    }
}

// SAFETY: `inside` is reached only through `Running`, of which there is one at a time (the bit RUNNING); all else is Sync.
unsafe impl Sync for Cell {}

impl Cell {
    /// A launched actor with its group's first state, or with what one held `before`.
    pub(super) fn new(id: ActorId, group: &Arc<Group>, before: Option<&Before>) -> Result<Cell> {
        let mut state = StateMemory::new(&group.handler).ok_or(ActorError::Unsupported {
            backend: "CPU",
            operation: "a state of this size and alignment",
            remedy: "let the handler's state be a `GpuType`",
        })?;
        // SAFETY: the memory was made here; nobody else has it. `before` is of the same group.
        unsafe {
            match before {
                Some(before) => state.put_back(before),
                None => state.write(&group.initial),
            }
        }
        let inside = Inside {
            state,
            unsent: Unsent::default(),
        };
        Ok(Cell {
            id,
            group: Arc::clone(group),
            mailbox: Mailbox::default(),
            vitals: Vitals::new(id, group),
            schedule: AtomicU8::new(0),
            run_time: AtomicU32::new(0),
            inside: UnsafeCell::new(inside),
            stalled: AtomicBool::new(false),
            waiting: Mutex::new(Vec::new()),
            has_waiting: AtomicBool::new(false),
        })
    }

    /// Says that there may be work. True: the caller must put it into the run queue.
    pub(super) fn notify(&self) -> bool {
        // AcqRel: what was pushed before is seen by the runner that takes PENDING away (`begin`, `end`).
        self.schedule.fetch_or(PENDING, Ordering::AcqRel) == 0
    }

    /// Begins to run an actor out of the run queue, unless somebody else has meanwhile.
    pub(super) fn begin_queued(self: &Arc<Self>) -> Option<Running> {
        self.exchange(PENDING, RUNNING)
    }

    /// Begins to run it, queued or not, unless it runs.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Running> {
        self.exchange(0, RUNNING).or_else(|| self.begin_queued())
    }

    /// Begins to run it, as soon as whoever runs it ends; `None` if that takes longer than `patience`.
    pub(super) fn begin_within(self: &Arc<Self>, patience: Duration) -> Option<Running> {
        let began = Instant::now();
        let mut tries = 0u32;
        loop {
            if let Some(running) = self.begin() {
                return Some(running);
            }
            tries += 1;
            match tries {
                0..100 => std::hint::spin_loop(),
                100..200 => std::thread::yield_now(),
                _ if began.elapsed() > patience => return None,
                _ => std::thread::sleep(Duration::from_micros(50)),
            }
        }
    }

    fn exchange(self: &Arc<Self>, from: u8, to: u8) -> Option<Running> {
        // Acquire: pairs with the release in `Running::end`, so the last runner's writes are seen; and with `notify`.
        let set = self
            .schedule
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        set.is_ok().then(|| Running {
            cell: Arc::clone(self),
        })
    }

    /// Whether somebody runs it.
    pub(super) fn is_running(&self) -> bool {
        self.schedule.load(Ordering::Acquire) & RUNNING != 0
    }

    /// Whether it waits to be run, or runs.
    pub(super) fn is_busy(&self) -> bool {
        self.schedule.load(Ordering::Acquire) != 0
    }

    /// Whether something that it has sent waits for room.
    pub(super) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Acquire)
    }

    /// Tells those outside that something it has sent waits for room.
    pub(super) fn set_stalled(&self, stalled: bool) {
        self.stalled.store(stalled, Ordering::Release);
    }

    /// Remembers that `other` waits for room in this mailbox.
    pub(super) fn wait_for_room(&self, other: &Arc<Cell>) {
        let mut waiting = lock(&self.waiting);
        if !waiting.iter().any(|cell| Arc::ptr_eq(cell, other)) {
            waiting.push(Arc::clone(other));
        }
        self.has_waiting.store(true, Ordering::SeqCst);
    }

    /// Those who waited for room here.
    pub(super) fn take_waiting(&self) -> Vec<Arc<Cell>> {
        if !self.has_waiting.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let mut waiting = lock(&self.waiting);
        self.has_waiting.store(false, Ordering::SeqCst);
        std::mem::take(&mut *waiting)
    }

    /// Nanoseconds that a run of its handler takes, about; 0: not known.
    pub(super) fn run_time(&self) -> u32 {
        match self.run_time.load(Ordering::Relaxed) {
            0 => self.group.telemetry.run_time.load(Ordering::Relaxed),
            known => known,
        }
    }

    /// Moves a quarter of the way to a new figure; says whether it is the actor's first.
    pub(super) fn note_run_time(&self, each: u32) -> bool {
        let old = self.run_time();
        let new = if old == 0 { each } else { old - old / 4 + each / 4 }.max(1);
        let is_first = self.run_time.swap(new, Ordering::Relaxed) == 0;
        if is_first {
            self.group.telemetry.run_time.store(new, Ordering::Relaxed);
        }
        is_first
    }
}

/// The right to run an actor and to reach what is inside.
pub(super) struct Running {
    cell: Arc<Cell>,
}

impl Running {
    /// The actor.
    pub(super) fn cell(&self) -> &Arc<Cell> {
        &self.cell
    }

    /// What is inside.
    pub(super) fn inside(&mut self) -> &mut Inside {
        // SAFETY: this `Running` exists because its maker set RUNNING where it was clear, and only `end` clears it, consuming
        // this; so there is no other, and the borrow of `self` keeps a second reference away.
        unsafe { &mut *self.cell.inside.get() }
    }

    /// Ends running. True: the caller must put the actor into the run queue, because there is more to do (`again`), or because
    /// somebody said so meanwhile.
    pub(super) fn end(self, again: bool) -> bool {
        if !again {
            // Release: what this runner wrote is seen by the next.
            let idle = self
                .cell
                .schedule
                .compare_exchange(RUNNING, 0, Ordering::AcqRel, Ordering::Relaxed);
            if idle.is_ok() {
                return false;
            }
        }
        // AcqRel: takes over what notifiers released to this runner, for the next.
        self.cell.schedule.swap(PENDING, Ordering::AcqRel);
        true
    }
}
