//! Actors on the CPU: worker threads that sleep while there is nothing to do. Must not know names, askers or topics.
//!
//! `cell` is one actor, `state` its memory, `queue` the actors that wait for a worker, `run` what a worker does with
//! one, `faults` how a handler's panic is reported, `overrun` what follows when a handler does not return. The caller of `ask` runs the actor itself where
//! handlers are quick ([`QUICK`]): that saves two switches of threads.

mod cell;
mod faults;
mod overrun;
mod queue;
mod run;
mod state;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::Duration;

use perpetua_device::BackendKind;

use self::cell::{Cell, Running};
use self::overrun::{Until, Watch};
use self::queue::RunQueue;
use super::Settings;
use super::engine::{ActorImage, Engine, Frozen, Refusal};
use super::group::Group;
use super::host::Host;
use super::mailbox::Push;
use super::simulation::Traced;
use super::vitals::count;
use crate::error::{ActorError, Result};
use crate::lifecycle::ActorState;
use crate::lock::{lock, read, write};
use crate::message::{ActorId, Packet};
use crate::supervise::OnFault;
use crate::telemetry::ActorMetrics;

/// Handlers that take no longer, in nanoseconds, are run by the thread that waits for the answer.
const QUICK: u32 = 20_000;

/// How long the removal of an actor waits for a worker that looks at it.
const LAST_LOOK: Duration = Duration::from_millis(100);

/// What workers and callers share.
struct Shared {
    host: Arc<Host>,
    cells: RwLock<Vec<Option<Arc<Cell>>>>,
    queue: RunQueue<Arc<Cell>>,
    // Held by whoever adds, removes or stops all actors.
    structure: Mutex<()>,
    frozen: AtomicBool,
    // Senders who wait for mailboxes to be unsealed.
    seal: Mutex<()>,
    thaw: Condvar,
    watch: Watch,
    patience: Duration,
    /// Nanoseconds that runs of each handler took last, by its name: what new actors are taken to need.
    paces: Mutex<HashMap<&'static str, u32>>,
}

/// The engine.
pub(crate) struct Threads {
    shared: Arc<Shared>,
}

/// Opens it.
pub(crate) fn open(host: &Arc<Host>, settings: &Settings) -> Result<Arc<dyn Engine>> {
    let shared = Arc::new(Shared {
        host: Arc::clone(host),
        cells: RwLock::new(Vec::new()),
        queue: RunQueue::new(),
        structure: Mutex::new(()),
        frozen: AtomicBool::new(false),
        seal: Mutex::new(()),
        thaw: Condvar::new(),
        watch: Watch::default(),
        patience: settings.patience,
        paces: Mutex::default(),
    });
    faults::install();
    let threads = match settings.threads {
        // Those who wait run everything.
        _ if host.simulator.is_some() => 0,
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        some => some,
    };
    for _ in 0..threads {
        overrun::spawn_worker(&shared)?;
    }
    Ok(Arc::new(Threads { shared }))
}

impl Shared {
    fn find(&self, actor: ActorId) -> Option<Arc<Cell>> {
        read(&self.cells).get(actor.0 as usize)?.clone()
    }

    fn known(&self, actor: ActorId) -> Result<Arc<Cell>> {
        self.find(actor).ok_or_else(|| ActorError::NoSuchActor {
            actor: actor.to_string(),
        })
    }

    fn enqueue(&self, cell: Arc<Cell>) {
        if let Some(simulator) = &self.host.simulator {
            return simulator.queue(cell.id);
        }
        let priority = cell.group.priority;
        self.queue.push(cell, priority);
    }

    /// Says that there may be work for this actor.
    fn notify(&self, cell: &Arc<Cell>) {
        if cell.notify() {
            self.enqueue(Arc::clone(cell));
        }
    }

    fn wait_while_frozen(&self) {
        if self.frozen.load(Ordering::Acquire) {
            let mut seal = lock(&self.seal);
            while self.frozen.load(Ordering::Acquire) {
                seal = self.thaw.wait(seal).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    // Puts a packet into its destination's mailbox. While that is sealed: waits, or there is no room.
    fn push(&self, packet: &Packet, waits: bool) -> std::result::Result<Arc<Cell>, Refusal> {
        let to = ActorId(packet.header.destination);
        let mut cell = self.find(to).ok_or(Refusal::Gone)?;
        loop {
            match self.offer(&cell, packet) {
                Push::Taken => return Ok(cell),
                Push::Full => return Err(Refusal::Full),
                Push::Sealed if waits => self.wait_while_frozen(),
                Push::Sealed => return Err(Refusal::Full),
                Push::Closed => {
                    // Another cell may have taken its place.
                    let now = self.find(to).ok_or(Refusal::Gone)?;
                    if Arc::ptr_eq(&now, &cell) {
                        return Err(Refusal::Gone);
                    }
                    cell = now;
                }
            }
        }
    }

    /// Puts a packet into an actor's mailbox.
    fn offer(&self, to: &Cell, packet: &Packet) -> Push {
        let push = to.mailbox.push(packet, to.group.capacity);
        let (message, priority) = (packet.header.sent, packet.header.priority);
        match push {
            Push::Taken => self.host.note(to.id, Traced::Taken { message, priority }),
            Push::Full => self.host.note(to.id, Traced::Full { message }),
            Push::Sealed | Push::Closed => {}
        }
        push
    }

    // How many messages have been handled, if no actor has anything to do now.
    fn handled_if_idle(&self) -> Option<u64> {
        let mut handled = 0;
        for cell in read(&self.cells).iter().flatten() {
            let waits = cell.vitals.life() == ActorState::Active && cell.mailbox.len() > 0;
            if waits || cell.is_busy() || cell.is_stalled() {
                return None;
            }
            handled += cell.vitals.processed.load(Ordering::Relaxed);
        }
        Some(handled)
    }

    // Whether the calling thread may run this actor: it could not be stopped if the handler did not return.
    fn may_lend(&self, cell: &Cell) -> bool {
        let quick = (1..QUICK).contains(&cell.run_time());
        quick
            && self.host.simulator.is_none()
            && cell.group.run_limit.is_none()
            && !self.frozen.load(Ordering::Acquire)
    }

    fn lend(&self, cell: &Arc<Cell>, answered: &AtomicBool) -> bool {
        if self.may_lend(cell)
            && let Some(running) = cell.begin()
        {
            self.run(running, Until::Answered(answered));
            return true;
        }
        false
    }

    // Begins to run an actor as soon as nobody else does. Its cell may be replaced meanwhile (`overrun`).
    fn begin_alone(&self, actor: ActorId) -> Result<Running> {
        loop {
            if let Some(running) = self.known(actor)?.begin_within(Duration::from_millis(1)) {
                return Ok(running);
            }
        }
    }

    // Runs `work` while nobody runs the actor.
    fn alone<T>(&self, actor: ActorId, work: impl FnOnce(&mut Running) -> T) -> Result<T> {
        let mut running = self.begin_alone(actor)?;
        let result = work(&mut running);
        self.end(running, true);
        Ok(result)
    }

    // Nothing has been sent to it.
    fn restore(&self, actor: ActorId, image: &ActorImage) -> Result<()> {
        self.alone(actor, |running| {
            let cell = Arc::clone(running.cell());
            let inside = running.inside();
            // SAFETY: `running` excludes everybody else.
            unsafe { inside.state.write(&image.state) };
            inside.unsent.keep_all(&image.unsent);
            for packet in &image.mailbox {
                // A restored mailbox may hold what a smaller capacity would not let in.
                cell.mailbox.push(packet, usize::MAX);
                let (message, priority) = (packet.header.sent, packet.header.priority);
                self.host.note(actor, Traced::Restored { message, priority });
            }
            count(&cell.vitals.processed, image.processed);
            count(&cell.vitals.errors, image.errors);
        })
    }
}

impl Engine for Threads {
    fn kind(&self) -> BackendKind {
        BackendKind::Cpu
    }

    fn stays(&self) -> bool {
        true
    }

    fn launch(&self, group: &Arc<Group>) -> Result<()> {
        if group.run_limit.is_some() && group.on_fault == OnFault::KeepState {
            return Err(ActorError::Unsupported {
                backend: "CPU",
                operation: "keeping the state of a handler that runs for longer than its limit",
                remedy: "launch it without `with_run_limit`, or with another `OnFault`",
            });
        }
        let cells: Vec<_> = group
            .actors()
            .map(|id| Cell::new(id, group, None).map(|cell| Some(Arc::new(cell))))
            .collect::<Result<_>>()?;
        self.shared.watch.add(group);
        if let Some(pace) = lock(&self.shared.paces).get(group.handler.name) {
            group.telemetry.run_time.store(*pace, Ordering::Relaxed);
        }
        let _structure = lock(&self.shared.structure);
        let mut all = write(&self.shared.cells);
        let first = group.first.0 as usize;
        let end = first + cells.len();
        if all.len() < end {
            all.resize(end, None);
        }
        all.splice(first..end, cells);
        Ok(())
    }

    fn submit(&self, packet: &Packet) -> std::result::Result<(), Refusal> {
        let cell = self.shared.push(packet, true)?;
        self.shared.notify(&cell);
        Ok(())
    }

    fn offer(&self, packet: &Packet) -> std::result::Result<u64, Refusal> {
        let cell = self.shared.push(packet, false)?;
        self.shared.notify(&cell);
        Ok(0)
    }

    fn ask(&self, packet: &Packet, answered: &AtomicBool) -> std::result::Result<(), Refusal> {
        let cell = self.shared.push(packet, true)?;
        if !self.shared.lend(&cell, answered) {
            self.shared.notify(&cell);
        }
        Ok(())
    }

    fn help(&self, actor: ActorId, answered: &AtomicBool) {
        if let Some(cell) = self.shared.find(actor) {
            self.shared.lend(&cell, answered);
        }
    }

    fn life(&self, actor: ActorId) -> Option<ActorState> {
        self.shared.find(actor).map(|cell| cell.vitals.life())
    }

    fn transition(&self, actor: ActorId, to: ActorState) -> Result<()> {
        let cell = self.shared.known(actor)?;
        cell.vitals.transition(to)?;
        self.shared.host.note(actor, Traced::Became(to));
        if to == ActorState::Active {
            self.shared.notify(&cell);
        }
        Ok(())
    }

    fn settled(&self, actor: ActorId) -> bool {
        self.shared.find(actor).is_none_or(|cell| !cell.is_running())
    }

    fn remove(&self, actor: ActorId) -> Vec<Packet> {
        let _structure = lock(&self.shared.structure);
        let removed = write(&self.shared.cells)
            .get_mut(actor.0 as usize)
            .and_then(Option::take);
        let Some(cell) = removed else {
            return Vec::new();
        };
        self.shared.host.note(actor, Traced::Removed);
        let mut left = cell.mailbox.close();
        self.shared.wake_waiting(&cell);
        if let Some(mut running) = cell.begin_within(LAST_LOOK) {
            left.extend(running.inside().unsent.take());
            // Its bit stays set: nobody runs it again.
        }
        left
    }

    fn write_state(&self, actor: ActorId, state: &[u8]) -> Result<()> {
        self.shared.alone(actor, |running| {
            // SAFETY: `running` excludes everybody else.
            unsafe { running.inside().state.write(state) }
        })
    }

    fn read_state(&self, actor: ActorId) -> Result<Vec<u8>> {
        self.shared.alone(actor, state_bytes)
    }

    fn restore(&self, _group: &Group, images: &BTreeMap<ActorId, ActorImage>) -> Result<()> {
        let restore = |(actor, image): (&ActorId, &ActorImage)| self.shared.restore(*actor, image);
        images.iter().try_for_each(restore)
    }

    fn revive(&self, actor: ActorId, life: ActorState) {
        if let Some(cell) = self.shared.find(actor) {
            cell.vitals.set_life(life);
            self.shared.host.note(actor, Traced::Revived(life));
            self.shared.notify(&cell);
        }
    }

    fn metrics(&self, actor: ActorId) -> Option<ActorMetrics> {
        self.shared
            .find(actor)
            .map(|cell| cell.vitals.metrics(cell.mailbox.len()))
    }

    fn count_dropped(&self, actor: ActorId) {
        if let Some(cell) = self.shared.find(actor) {
            cell.vitals.drop_some(1);
        }
    }

    fn resume(&self, actor: ActorId) {
        if let Some(cell) = self.shared.find(actor) {
            self.shared.notify(&cell);
        }
    }

    fn is_held(&self, actor: ActorId) -> bool {
        self.shared.find(actor).is_some_and(|cell| cell.is_stalled())
    }

    fn give_up(&self, actor: ActorId) {
        if let Some(cell) = self.shared.find(actor) {
            self.shared.give_up(&cell, self.shared.patience);
        }
    }

    fn enforce_limits(&self) -> Option<Duration> {
        overrun::enforce(&self.shared)
    }

    fn idle(&self) -> bool {
        // Twice with nothing handled between: then no message went from a cell not yet looked at to one seen before.
        let first = self.shared.handled_if_idle();
        first.is_some() && first == self.shared.handled_if_idle()
    }

    fn run(&self, actor: ActorId, most: u32) {
        // One that is gone is found no more.
        if let Some(running) = self.shared.find(actor).and_then(|cell| cell.begin_queued()) {
            self.shared.run(running, Until::Steps(most));
        }
    }

    fn freeze(&self) -> Result<Box<dyn Frozen + '_>> {
        let shared = &*self.shared;
        let structure = lock(&shared.structure);
        shared.frozen.store(true, Ordering::Release);
        let actors: Vec<ActorId> = read(&shared.cells).iter().flatten().map(|cell| cell.id).collect();
        // Nothing is removed meanwhile, so all are known.
        let stopped: Vec<Mutex<Running>> = actors
            .into_iter()
            .filter_map(|actor| shared.begin_alone(actor).ok().map(Mutex::new))
            .collect();
        stopped
            .iter()
            .for_each(|running| lock(running).cell().mailbox.seal());
        Ok(Box::new(Standstill {
            shared,
            stopped,
            _structure: structure,
        }))
    }

    fn stop(&self) {
        self.shared.queue.stop();
        self.shared.watch.join();
    }
}

fn state_bytes(running: &mut Running) -> Vec<u8> {
    let ty = (running.cell().group.handler.state_type)();
    // SAFETY: `running` excludes everybody else; launch and restore have checked that the state is a value of this type, and the
    // handler keeps it one.
    unsafe { running.inside().state.bytes(&ty) }
}

/// All actors stand still while this lives.
struct Standstill<'a> {
    shared: &'a Shared,
    // In order of their numbers.
    stopped: Vec<Mutex<Running>>,
    _structure: std::sync::MutexGuard<'a, ()>,
}

impl Frozen for Standstill<'_> {
    fn image(&self, actor: ActorId) -> Option<ActorImage> {
        let at = self
            .stopped
            .binary_search_by_key(&actor, |running| lock(running).cell().id)
            .ok()?;
        let mut running = lock(&self.stopped[at]);
        let cell = Arc::clone(running.cell());
        Some(ActorImage {
            life: cell.vitals.life(),
            state: state_bytes(&mut running),
            mailbox: cell.mailbox.snapshot(),
            unsent: running.inside().unsent.to_vec(),
            processed: cell.vitals.processed.load(Ordering::Relaxed),
            errors: cell.vitals.errors.load(Ordering::Relaxed),
        })
    }
}

impl Drop for Standstill<'_> {
    fn drop(&mut self) {
        // All before the first goes on: one that is sealed would seem full to it, and tells nobody of room that it always had.
        for running in &self.stopped {
            lock(running).cell().mailbox.unseal();
        }
        for running in std::mem::take(&mut self.stopped) {
            let running = running.into_inner().unwrap_or_else(PoisonError::into_inner);
            self.shared.end(running, true);
        }
        let _seal = lock(&self.shared.seal);
        self.shared.frozen.store(false, Ordering::Release);
        self.shared.thaw.notify_all();
    }
}
