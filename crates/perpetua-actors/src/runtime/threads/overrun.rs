//! Worker threads, and handlers that do not return: nothing can stop native code, so the thread is given up, and the actor goes on
//! (faulted) in a cell of its own. Must not know what a run does.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Shared;
use super::cell::Cell;
use super::state::Before;
use crate::error::{ActorError, Result};
use crate::lock::{lock, write};
use crate::message::Packet;
use crate::runtime::arena::{BlockId, Lease};
use crate::runtime::group::Group;
use crate::runtime::vitals::count;

/// How long [`Watch::join`] waits for handlers that run.
const LAST_RUN: Duration = Duration::from_secs(5);

/// For how long a run goes on.
#[derive(Clone, Copy)]
pub(super) enum Until<'a> {
    /// A turn, of the worker that has this slot.
    Turn(&'a Slot),
    /// This is true, but no longer than a turn.
    Answered(&'a AtomicBool),
    /// So many messages of a simulation.
    Steps(u32),
}

/// The worker threads, and what those run that have a limit.
#[derive(Default)]
pub(super) struct Watch {
    workers: Mutex<Vec<Worker>>,
    // The shortest limit of all groups, in nanoseconds; 0: none.
    shortest: AtomicU64,
}

struct Worker {
    slot: Arc<Slot>,
    thread: JoinHandle<()>,
}

/// What a worker runs, where its time is limited.
#[derive(Default)]
pub(super) struct Slot {
    current: Mutex<Option<Current>>,
}

struct Current {
    cell: Arc<Cell>,
    packet: Packet,
    vectors: Option<Vectors>,
    before: Option<Before>,
    since: Instant,
    limit: Duration,
}

/// A message's vectors as they came: the thread that does not return keeps the block itself.
pub(super) struct Vectors {
    limit: usize,
    words: Vec<u32>,
}

impl Vectors {
    pub(super) fn of(lease: &Lease) -> Vectors {
        let (limit, used) = lease.extent();
        let words = lease.data().iter().take(used).copied().collect();
        Vectors { limit, words }
    }
}

impl Slot {
    /// Runs `work`; `None` where it took so long that the actor was taken away from this thread, which is to end.
    pub(super) fn watched<T>(
        &self,
        cell: &Arc<Cell>,
        packet: &Packet,
        vectors: Option<Vectors>,
        before: Option<&Before>,
        work: impl FnOnce() -> T,
    ) -> Option<T> {
        let Some(limit) = cell.group.run_limit else {
            return Some(work());
        };
        *lock(&self.current) = Some(Current {
            cell: Arc::clone(cell),
            packet: *packet,
            vectors,
            before: before.cloned(),
            since: Instant::now(),
            limit,
        });
        let result = work();
        lock(&self.current).take().map(|_| result)
    }
}

impl Watch {
    /// Handlers of this group are watched from now on.
    pub(super) fn add(&self, group: &Group) {
        if let Some(limit) = group.run_limit {
            let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX).max(1);
            let shorter = |old: u64| (old == 0 || nanos < old).then_some(nanos);
            // A longer limit changes nothing.
            let _ = self
                .shortest
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, shorter);
        }
    }

    /// Waits for the workers, which have been told to end, but for those that do not return.
    pub(super) fn join(&self) {
        let workers = std::mem::take(&mut *lock(&self.workers));
        let until = Instant::now() + LAST_RUN;
        for worker in workers {
            // The last owner of a runtime may be a task that a worker woke.
            if worker.thread.thread().id() == std::thread::current().id() {
                continue;
            }
            while !worker.thread.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_micros(100));
            }
            if worker.thread.is_finished() && worker.thread.join().is_err() {
                tracing::error!("a worker thread of the actors panicked");
            }
        }
    }
}

/// Starts a worker.
pub(super) fn spawn_worker(shared: &Arc<Shared>) -> Result<()> {
    let slot = Arc::new(Slot::default());
    let worker = (Arc::clone(shared), Arc::clone(&slot));
    let thread = std::thread::Builder::new()
        .name("perpetua-actors".into())
        .spawn(move || work(&worker.0, &worker.1))
        .map_err(|source| ActorError::Io {
            path: "a worker thread".into(),
            source,
        })?;
    lock(&shared.watch.workers).push(Worker { slot, thread });
    Ok(())
}

fn work(shared: &Shared, slot: &Slot) {
    while let Some(cell) = shared.queue.next() {
        shared.wait_while_frozen();
        if let Some(running) = cell.begin_queued()
            && !shared.run(running, Until::Turn(slot))
        {
            return;
        }
    }
}

/// Takes actors away from threads whose handlers have run for too long. When to look again.
pub(super) fn enforce(shared: &Arc<Shared>) -> Option<Duration> {
    let shortest = shared.watch.shortest.load(Ordering::Relaxed);
    if shortest == 0 {
        return None;
    }
    let mut overdue = Vec::new();
    lock(&shared.watch.workers).retain(|worker| {
        let mut current = lock(&worker.slot.current);
        let is_over = current.as_ref().is_some_and(|c| c.since.elapsed() > c.limit);
        if is_over {
            overdue.extend(current.take());
        }
        !is_over
    });
    for current in overdue {
        if let Err(error) = spawn_worker(shared) {
            tracing::error!(%error, "no worker in place of one that does not return");
        }
        replace(shared, &current);
    }
    Some((Duration::from_nanos(shortest) / 4).max(Duration::from_millis(1)))
}

// Puts a new cell in the place of one whose handler does not return.
fn replace(shared: &Shared, current: &Current) {
    let old = &current.cell;
    let cell = match Cell::new(old.id, &old.group, current.before.as_ref()) {
        Ok(cell) => Arc::new(cell),
        Err(error) => return tracing::error!(%error, "no new cell"),
    };
    cell.vitals.go_on_from(&old.vitals);
    count(&cell.vitals.errors, 1);
    // Until the fault is told, nobody runs it.
    let Some(running) = cell.begin() else {
        return;
    };
    {
        let mut cells = write(&shared.cells);
        match cells.get_mut(old.id.0 as usize) {
            Some(place) if place.as_ref().is_some_and(|there| Arc::ptr_eq(there, old)) => {
                cell.vitals.set_life(old.vitals.life());
                *place = Some(Arc::clone(&cell));
            }
            // Terminated meanwhile.
            _ => return,
        }
    }
    cell.mailbox.inherit(&old.mailbox);
    shared.wake_waiting(old);
    let mut packet = current.packet;
    BlockId::detach(&mut packet);
    if let Some(Vectors { limit, words }) = &current.vectors {
        match shared.host.arena.alloc_with(*limit, words) {
            Ok(lease) => lease.keep().attach(&mut packet),
            Err(error) => {
                tracing::error!(%error, "a message's vectors stay with the handler that does not return")
            }
        }
    }
    let text = format!("deadline: it ran for longer than {:?}", current.limit);
    let again = cell.group.again(&packet);
    let letter = !again.is_some_and(|again| cell.mailbox.unpop([again].into_iter()));
    let letter = letter.then_some(&packet);
    let stop = || cell.vitals.fault();
    shared.host.faulted(&cell.group, cell.id, letter, text, stop);
    shared.end(running, true);
}
