//! Actors on devices where no kernel can stay: the host launches a batch of messages, a lane for each actor that has some, routes
//! what comes out, and launches again until all are handled. States travel with the batch. Must not know the device's backend by its type.
//!
//! One thread does so; it sleeps while there is nothing to do. [`round`] is what it does with one batch, [`batch`] what goes to the device
//! and back, [`care`] what follows when that does not tell what became of a message.

mod batch;
mod care;
mod cell;
mod round;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use perpetua_device::{BackendKind, Device};

use self::batch::Program;
use self::cell::Cell;
use super::Settings;
use super::engine::{ActorImage, Engine, Frozen, Refusal, look_after};
use super::group::Group;
use super::host::Host;
use super::mailbox::Push;
use super::vitals::count;
use crate::error::{ActorError, Result};
use crate::lifecycle::ActorState;
use crate::lock::{lock, read, write};
use crate::message::{ActorId, Packet};
use crate::telemetry::ActorMetrics;

/// When what found no room is tried again.
const AGAIN: Duration = Duration::from_micros(500);
/// How often the next batch waits for those who wait for it.
const TURNS: u32 = 50;

/// What the thread and its callers share.
struct Shared {
    host: Arc<Host>,
    device: Device,
    cells: RwLock<Vec<Option<Arc<Cell>>>>,
    /// Held while a batch is made, launched and routed, and by whoever may not meet one.
    world: Mutex<World>,
    /// How many others wait for the world.
    waiting: AtomicUsize,
    signal: Mutex<Signal>,
    changed: Condvar,
    frozen: AtomicBool,
    patience: Duration,
}

/// What batches are made of.
#[derive(Default)]
struct World {
    programs: Vec<Program>,
}

#[derive(Default)]
struct Signal {
    work: bool,
    stopped: bool,
}

/// The engine.
pub(crate) struct Batched {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Opens it on the device that is asked for.
pub(crate) fn open(host: &Arc<Host>, settings: &Settings) -> Result<Arc<dyn Engine>> {
    Ok(Arc::new(start(host, settings)?))
}

fn start(host: &Arc<Host>, settings: &Settings) -> Result<Batched> {
    let shared = Arc::new(Shared {
        host: Arc::clone(host),
        device: settings.device.open(settings.backend)?,
        cells: RwLock::default(),
        world: Mutex::default(),
        waiting: AtomicUsize::new(0),
        signal: Mutex::default(),
        changed: Condvar::new(),
        frozen: AtomicBool::new(false),
        patience: settings.patience,
    });
    let worker = Arc::clone(&shared);
    let thread = std::thread::Builder::new()
        .name("perpetua-batches".into())
        .spawn(move || worker.work())
        .map_err(|source| ActorError::Io {
            path: "the thread that launches batches".into(),
            source,
        })?;
    Ok(Batched {
        shared,
        thread: Mutex::new(Some(thread)),
    })
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

    // The world between two batches.
    fn enter(&self) -> MutexGuard<'_, World> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let world = lock(&self.world);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        world
    }

    // Locks are not fair: whoever waits for the world would meet one batch after the other.
    fn let_others_in(&self) {
        for _ in 0..TURNS {
            if self.waiting.load(Ordering::Relaxed) == 0 {
                return;
            }
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    fn notify(&self) {
        let mut signal = lock(&self.signal);
        if !signal.work {
            signal.work = true;
            self.changed.notify_all();
        }
    }

    fn work(&self) {
        loop {
            let mut signal = lock(&self.signal);
            while !signal.work && !signal.stopped {
                signal = self.changed.wait(signal).unwrap_or_else(PoisonError::into_inner);
            }
            if signal.stopped {
                return;
            }
            signal.work = false;
            drop(signal);
            self.let_others_in();
            let outcome = self.round(&mut lock(&self.world));
            if outcome.more {
                self.notify();
            } else if outcome.stalled {
                let signal = lock(&self.signal);
                let waited = self.changed.wait_timeout(signal, AGAIN);
                waited.unwrap_or_else(PoisonError::into_inner).0.work = true;
            }
        }
    }

    fn push(&self, packet: &Packet, waits: bool) -> std::result::Result<(), Refusal> {
        let cell = self
            .find(ActorId(packet.header.destination))
            .ok_or(Refusal::Gone)?;
        loop {
            match cell.mailbox.push(packet, cell.group.capacity) {
                Push::Taken => {
                    self.notify();
                    return Ok(());
                }
                Push::Full => return Err(Refusal::Full),
                Push::Closed => return Err(Refusal::Gone),
                Push::Sealed if waits => {
                    let mut signal = lock(&self.signal);
                    while self.frozen.load(Ordering::Acquire) {
                        signal = self.changed.wait(signal).unwrap_or_else(PoisonError::into_inner);
                    }
                }
                Push::Sealed => return Err(Refusal::Full),
            }
        }
    }

    // Does something to an actor while there is no batch.
    fn alone<T>(&self, actor: ActorId, work: impl FnOnce(&Cell) -> T) -> Result<T> {
        let _world = self.enter();
        Ok(work(&*self.known(actor)?))
    }

    // Nothing has been sent to it.
    fn restore(&self, actor: ActorId, image: &ActorImage) -> Result<()> {
        self.alone(actor, |cell| {
            let mut inside = lock(&cell.inside);
            inside.state.clone_from(&image.state);
            inside.unsent.keep_all(&image.unsent);
            for packet in &image.mailbox {
                // A restored mailbox may hold what a smaller capacity would not let in.
                cell.mailbox.push(packet, usize::MAX);
            }
            count(&cell.vitals.processed, image.processed);
            count(&cell.vitals.errors, image.errors);
        })
    }
}

impl Engine for Batched {
    fn kind(&self) -> BackendKind {
        self.shared.device.backend()
    }

    fn health(&self) -> Result<()> {
        let _world = self.shared.enter();
        look_after(&self.shared.device)
    }

    fn stays(&self) -> bool {
        false
    }

    fn launch(&self, group: &Arc<Group>) -> Result<()> {
        let mut world = self.shared.enter();
        let program = Program::new(&self.shared.device, group)?;
        let cells = group.actors().map(|id| Some(Arc::new(Cell::new(id, group))));
        let mut all = write(&self.shared.cells);
        let first = group.first.0 as usize;
        let end = first + group.count as usize;
        if all.len() < end {
            all.resize(end, None);
        }
        all.splice(first..end, cells);
        world.programs.push(program);
        Ok(())
    }

    fn submit(&self, packet: &Packet) -> std::result::Result<(), Refusal> {
        self.shared.push(packet, true)
    }

    fn offer(&self, packet: &Packet) -> std::result::Result<u64, Refusal> {
        self.shared.push(packet, false).map(|()| 0)
    }

    fn ask(&self, packet: &Packet, _answered: &AtomicBool) -> std::result::Result<(), Refusal> {
        self.shared.push(packet, true)
    }

    fn help(&self, _actor: ActorId, _answered: &AtomicBool) {
        // The device does the work: a second thread could only wait for it, too.
        std::thread::yield_now();
    }

    fn life(&self, actor: ActorId) -> Option<ActorState> {
        self.shared.find(actor).map(|cell| cell.vitals.life())
    }

    fn transition(&self, actor: ActorId, to: ActorState) -> Result<()> {
        self.shared.known(actor)?.vitals.transition(to)?;
        self.shared.notify();
        Ok(())
    }

    fn settled(&self, actor: ActorId) -> bool {
        let cell = self.shared.find(actor);
        // Pairs with the fence in `gather`: either it sees the actor's new life, or this sees that it is busy.
        fence(Ordering::SeqCst);
        cell.is_none_or(|cell| !cell.busy.load(Ordering::Acquire))
    }

    fn remove(&self, actor: ActorId) -> Vec<Packet> {
        let mut world = self.shared.enter();
        let removed = write(&self.shared.cells)
            .get_mut(actor.0 as usize)
            .and_then(Option::take);
        let Some(cell) = removed else {
            return Vec::new();
        };
        let cells = read(&self.shared.cells);
        let lives = |actor: ActorId| cells.get(actor.0 as usize).is_some_and(Option::is_some);
        world.programs.retain(|program| program.group.actors().any(lives));
        let mut left = cell.mailbox.close();
        left.extend(lock(&cell.inside).unsent.take());
        left
    }

    fn write_state(&self, actor: ActorId, state: &[u8]) -> Result<()> {
        self.shared
            .alone(actor, |cell| lock(&cell.inside).state = state.to_vec())
    }

    fn read_state(&self, actor: ActorId) -> Result<Vec<u8>> {
        self.shared.alone(actor, |cell| lock(&cell.inside).state.clone())
    }

    fn restore(&self, _group: &Group, images: &BTreeMap<ActorId, ActorImage>) -> Result<()> {
        let restore = |(actor, image): (&ActorId, &ActorImage)| self.shared.restore(*actor, image);
        images.iter().try_for_each(restore)
    }

    fn revive(&self, actor: ActorId, life: ActorState) {
        if let Some(cell) = self.shared.find(actor) {
            cell.vitals.set_life(life);
            self.shared.notify();
        }
    }

    fn metrics(&self, actor: ActorId) -> Option<ActorMetrics> {
        let cell = self.shared.find(actor)?;
        Some(cell.vitals.metrics(cell.mailbox.len()))
    }

    fn count_dropped(&self, actor: ActorId) {
        if let Some(cell) = self.shared.find(actor) {
            cell.vitals.drop_some(1);
        }
    }

    fn resume(&self, _actor: ActorId) {
        self.shared.notify();
    }

    fn is_held(&self, actor: ActorId) -> bool {
        let cell = self.shared.find(actor);
        cell.is_some_and(|cell| !lock(&cell.inside).unsent.is_empty())
    }

    fn give_up(&self, actor: ActorId) {
        let Some(cell) = self.shared.find(actor) else {
            return;
        };
        let _world = self.shared.enter();
        // There may be room since the last look, which a busy machine has made a long time ago.
        if !self.shared.flush(&cell) {
            let Shared { host, patience, .. } = &*self.shared;
            let unsent = &mut lock(&cell.inside).unsent;
            let given_up = unsent.give_up(host, &cell.group, actor, *patience);
            cell.vitals.drop_some(given_up);
        }
        self.shared.notify();
    }

    fn enforce_limits(&self) -> Option<Duration> {
        // Who handles a batch sees to it.
        None
    }

    fn idle(&self) -> bool {
        let _world = self.shared.enter();
        let cells = read(&self.shared.cells);
        cells.iter().flatten().all(|cell| {
            let waits = cell.vitals.life() == ActorState::Active && cell.mailbox.len() > 0;
            !waits && lock(&cell.inside).unsent.is_empty()
        })
    }

    fn freeze(&self) -> Result<Box<dyn Frozen + '_>> {
        let world = self.shared.enter();
        self.shared.frozen.store(true, Ordering::Release);
        let cells: Vec<Arc<Cell>> = read(&self.shared.cells).iter().flatten().cloned().collect();
        cells.iter().for_each(|cell| cell.mailbox.seal());
        Ok(Box::new(Standstill {
            shared: &self.shared,
            cells,
            _world: world,
        }))
    }

    fn stop(&self) {
        lock(&self.shared.signal).stopped = true;
        self.shared.changed.notify_all();
        let thread = lock(&self.thread).take();
        // The last owner of a runtime may be a task that this thread woke.
        let own = |thread: &JoinHandle<()>| thread.thread().id() == std::thread::current().id();
        if let Some(thread) = thread.filter(|thread| !own(thread))
            && thread.join().is_err()
        {
            tracing::error!("the thread that launches batches panicked");
        }
    }
}

/// All actors stand still while this lives.
struct Standstill<'a> {
    shared: &'a Shared,
    // In order of their numbers.
    cells: Vec<Arc<Cell>>,
    _world: MutexGuard<'a, World>,
}

impl Frozen for Standstill<'_> {
    fn image(&self, actor: ActorId) -> Option<ActorImage> {
        let at = self.cells.binary_search_by_key(&actor, |cell| cell.id).ok()?;
        let cell = &self.cells[at];
        let inside = lock(&cell.inside);
        Some(ActorImage {
            life: cell.vitals.life(),
            state: inside.state.clone(),
            mailbox: cell.mailbox.snapshot(),
            unsent: inside.unsent.to_vec(),
            processed: cell.vitals.processed.load(Ordering::Relaxed),
            errors: cell.vitals.errors.load(Ordering::Relaxed),
        })
    }
}

impl Drop for Standstill<'_> {
    fn drop(&mut self) {
        self.cells.iter().for_each(|cell| cell.mailbox.unseal());
        let _signal = lock(&self.shared.signal);
        self.shared.frozen.store(false, Ordering::Release);
        self.shared.changed.notify_all();
    }
}

/// What a round found.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    /// Messages wait that could be handled now.
    more: bool,
    /// Something that was sent finds no room.
    stalled: bool,
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::echo::{Echo, echo};
    use crate::runtime::RuntimeBuilder;
    use crate::runtime::options::LaunchOptions;

    #[test]
    fn a_lost_device_is_told() {
        let settings = RuntimeBuilder::default().settings;
        let host = Arc::new(Host::new(&settings));
        let engine = start(&host, &settings).unwrap();
        engine.health().unwrap();
        engine.shared.device.lose_device_for_test().unwrap();
        assert!(engine.health().unwrap_err().is_device_lost());
        engine.stop();
    }

    #[test]
    fn what_finds_room_when_its_round_has_passed_whom_it_is_for_is_handled() {
        let settings = RuntimeBuilder::default().settings;
        let host = Arc::new(Host::new(&settings));
        let engine = start(&host, &settings).unwrap();
        let group = LaunchOptions::default().with_actors(2);
        let mut group = group.group("two", echo::handler()).unwrap();
        group.first = ActorId(0);
        let group = Arc::new(group);
        engine.launch(&group).unwrap();
        let [to, from] = [ActorId(0), ActorId(1)];
        engine.revive(to, ActorState::Active);
        let until = Instant::now() + Duration::from_secs(60);
        while lock(&engine.shared.signal).work {
            assert!(Instant::now() < until);
            std::thread::yield_now();
        }
        // As a checkpoint holds it that found the one sealed and the other not.
        let mut packet = Packet::of(&Echo::default());
        (packet.header.destination, packet.header.sender) = (to.0, from);
        let image = ActorImage {
            life: ActorState::Active,
            state: group.initial.clone(),
            mailbox: Vec::new(),
            unsent: vec![packet],
            processed: 0,
            errors: 0,
        };
        Engine::restore(&engine, &group, &BTreeMap::from([(from, image)])).unwrap();
        engine.revive(from, ActorState::Active);
        while engine.metrics(to).unwrap().messages_processed == 0 {
            assert!(Instant::now() < until, "nobody looks at its mailbox");
            std::thread::yield_now();
        }
        engine.stop();
    }
}
