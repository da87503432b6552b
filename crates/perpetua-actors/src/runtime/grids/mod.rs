//! Actors in resident kernels: the engine over grids (`crate::grid`). Must not know names, askers or topics.
//!
//! A launch makes a grid; its homes take packets from rings. `cell` is what the host knows of an actor, `pump` takes out
//! what comes, `unsent` holds actors whose packets find no room at the host. A message to an actor that is not active waits here; one that is on its way when its actor stops comes
//! back, and waits here, too, as far as the actor's mailbox has room: the rest waits with its sender.
//!
//! While a checkpoint is made of what lies in rings, on the host and with senders, nothing moves from one to the other: whoever moves packets holds
//! `still`, but for those that take out what homes have put out, of which there is no more by then, and those that put into a ring what waits for
//! room there, which `Deployed::image` excludes by the queues' locks.

mod cell;
mod deployed;
mod figures;
mod leave;
mod pump;
mod queue;
mod still;
#[cfg(test)]
mod tests;
mod unsent;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use perpetua_device::BackendKind;
use perpetua_device::gate::Gate;

use self::cell::Cell;
use self::deployed::Deployed;
use self::queue::Home;
use self::still::Standstill;
use super::Settings;
use super::arena::Memory;
use super::choice::DeviceChoice;
use super::engine::{ActorImage, Deliver, Engine, Frozen, Refusal, look_after};
use super::group::Group;
use super::host::Host;
use crate::error::{ActorError, Result};
use crate::grid::{Commons, Grid, GridOptions, Place, Shape};
use crate::kernels::layout::COMMAND_RESTART;
use crate::lifecycle::ActorState;
use crate::lock::{lock, read, write};
use crate::message::{ActorId, Packet};
use crate::telemetry::ActorMetrics;

/// Homes of all launches together.
const HOMES: u32 = 132;
/// Homes of one launch, at most.
const HOMES_OF_ONE: u32 = 32;
/// Homes of all launches together and of one in the interpreter, which runs those of one in turn.
const INTERPRETED_HOMES: (u32, u32) = (64, 4);
/// For how long who asks looks for the answer at once.
const LOOKS: Duration = Duration::from_micros(50);

struct Shared {
    host: Arc<Host>,
    commons: Arc<Commons>,
    /// Homes of one launch, at most.
    homes_of_one: u32,
    /// Messages' vectors lie in memory that is mapped into this device.
    has_arena: bool,
    /// How long a sender waits for room.
    patience: Duration,
    deployed: RwLock<Vec<Arc<Deployed>>>,
    /// Held by all that move packets on, and alone by a checkpoint, which stops all actors.
    still: RwLock<()>,
    stopped: AtomicBool,
}

/// The engine.
pub(crate) struct Grids {
    shared: Arc<Shared>,
    pump: Mutex<Option<JoinHandle<()>>>,
}

/// Opens it on a backend's device: CUDA's where none is named.
pub(crate) fn open(host: &Arc<Host>, settings: &Settings) -> Result<Arc<dyn Engine>> {
    Ok(Arc::new(start(host, settings)?))
}

fn start(host: &Arc<Host>, settings: &Settings) -> Result<Grids> {
    let backend = match settings.backend {
        BackendKind::Auto => BackendKind::Cuda,
        named => named,
    };
    let place = match &settings.device {
        DeviceChoice::Number(number) => Place::shared(backend, *number)?,
        DeviceChoice::Open(device) => Place::of(device)?,
    };
    let info = place.device.info();
    let (homes, homes_of_one) = match info.compute_capability {
        Some(_) => (info.multiprocessors.unwrap_or(HOMES).min(HOMES), HOMES_OF_ONE),
        None => INTERPRETED_HOMES,
    };
    let shape = Shape::new(homes, settings.device_actors);
    let commons = Arc::new(Commons::at(&place, shape)?);
    let mapped = Arc::clone(&commons);
    let has_arena = host
        .arena
        .set_source(move |bytes| mapped.arena(bytes / 4).map(Memory::mapped));
    let shared = Arc::new(Shared {
        host: Arc::clone(host),
        homes_of_one,
        has_arena,
        patience: settings.patience,
        commons,
        deployed: RwLock::default(),
        still: RwLock::default(),
        stopped: AtomicBool::new(false),
    });
    let pump = pump::start(&shared)?;
    Ok(Grids {
        shared,
        pump: Mutex::new(Some(pump)),
    })
}

impl Shared {
    fn find(&self, actor: ActorId) -> Option<Arc<Deployed>> {
        launch_of(&read(&self.deployed), actor).map(Arc::clone)
    }

    fn known(&self, actor: ActorId) -> Result<Arc<Deployed>> {
        self.find(actor)
            .filter(|d| d.cell(actor).is_some_and(|c| !c.is_removed()))
            .ok_or_else(|| ActorError::NoSuchActor {
                actor: actor.to_string(),
            })
    }

    /// Takes a packet for an actor: on to the device, or to wait until it is active. As [`Shared::submit_to`].
    fn submit(&self, packet: &Packet) -> std::result::Result<u64, Refusal> {
        // Not an owner of the launch: to become one and to end it would take longer than the rest of the look.
        let all = read(&self.deployed);
        let to = launch_of(&all, ActorId(packet.header.destination)).ok_or(Refusal::Gone)?;
        self.submit_to(to, packet)
    }

    /// The same for an actor of this launch; says how many packets its home was sent by then, none where it waits until it is active.
    fn submit_to(&self, deployed: &Deployed, packet: &Packet) -> std::result::Result<u64, Refusal> {
        let actor = ActorId(packet.header.destination);
        let cell = deployed.cell(actor).ok_or(Refusal::Gone)?;
        if cell.waits.fetch_add(1, Ordering::Relaxed) as usize >= deployed.group.capacity {
            cell.waits.fetch_sub(1, Ordering::Relaxed);
            // What the home has taken in meanwhile makes room.
            deployed.on_the_way(actor);
            if cell.waits.fetch_add(1, Ordering::Relaxed) as usize >= deployed.group.capacity {
                cell.waits.fetch_sub(1, Ordering::Relaxed);
                return Err(Refusal::Full);
            }
        }
        let held = cell.hold_unless_active(packet).inspect_err(|_| {
            cell.waits.fetch_sub(1, Ordering::Relaxed);
        })?;
        Ok(match held {
            true => 0,
            false => deployed.push(packet.to_words(), true),
        })
    }
}

/// The launch of an actor; launches are in the order of their actors' numbers.
fn launch_of(all: &[Arc<Deployed>], actor: ActorId) -> Option<&Arc<Deployed>> {
    let after = all.partition_point(|d| d.group.first <= actor);
    let found = all.get(after.checked_sub(1)?)?;
    found.group.has(actor).then_some(found)
}

impl Engine for Grids {
    fn kind(&self) -> BackendKind {
        self.shared.commons.device.backend()
    }

    fn health(&self) -> Result<()> {
        look_after(&self.shared.commons.device)
    }

    fn stays(&self) -> bool {
        true
    }

    fn launch(&self, group: &Arc<Group>) -> Result<()> {
        if group.takes.iter().any(|takes| takes.room.is_some()) {
            if !(self.shared.has_arena || self.shared.commons.shares_arena()) {
                return Err(ActorError::Unsupported {
                    backend: self.kind().name(),
                    operation: "a handler of messages with vectors on a runtime's second device, of another backend than its first",
                    remedy: "launch it on device 0, where the vectors' memory is mapped, or in a runtime of its own",
                });
            }
            // As large as the runtime's builder says.
            self.shared.host.arena.memory()?;
        }
        let grid = Grid::new(
            &self.shared.commons,
            &group.handler,
            &group.initial,
            &GridOptions {
                actors: group.first.0..group.first.0 + group.count,
                homes: group
                    .count
                    .clamp(1, self.shared.commons.place.share(self.shared.homes_of_one)),
                run_limit: group.run_limit,
                group_size: group.block_size,
                on_fault: group.on_fault,
                ..GridOptions::new(0, 0)
            },
        )?;
        let deployed = Arc::new(Deployed {
            homes: (0..grid.homes())
                .map(|home| Home::new(grid.report(home).taken_in as u32))
                .collect(),
            left: AtomicU32::new(group.count),
            cells: group.actors().map(|_| Cell::default()).collect(),
            stalled: AtomicU32::new(0),
            group: Arc::clone(group),
            grid,
        });
        let mut all = write(&self.shared.deployed);
        let after = all.partition_point(|d| d.group.first <= group.first);
        all.insert(after, deployed);
        Ok(())
    }

    fn submit(&self, packet: &Packet) -> std::result::Result<(), Refusal> {
        let _still = read(&self.shared.still);
        self.shared.submit(packet).map(drop)
    }

    fn offer(&self, packet: &Packet) -> std::result::Result<u64, Refusal> {
        match self.shared.still.try_read() {
            Ok(_still) => self.shared.submit(packet),
            Err(_) => Err(Refusal::Full),
        }
    }

    fn has_taken_in(&self, actor: ActorId, mark: u64) -> bool {
        let deployed = self.shared.find(actor);
        deployed.is_none_or(|deployed| deployed.has_taken_in(actor, mark))
    }

    fn returned(
        &self,
        packet: &Packet,
        deliver: Deliver<'_>,
    ) -> std::result::Result<Option<Packet>, Refusal> {
        let from = self.shared.find(packet.header.sender);
        self.shared.returned(from.as_deref(), packet, deliver)
    }

    fn commons(&self) -> Option<&Arc<Commons>> {
        Some(&self.shared.commons)
    }

    fn ask(&self, packet: &Packet, answered: &AtomicBool) -> std::result::Result<(), Refusal> {
        let to = ActorId(packet.header.destination);
        let deployed = self.shared.find(to).ok_or(Refusal::Gone)?;
        {
            let _still = read(&self.shared.still);
            self.shared.submit_to(&deployed, packet)?;
        }
        // The answer is there sooner than anybody could be woken.
        let home = deployed.grid.home_of(packet.header.destination);
        let started = Instant::now();
        let mut looks = 0u32;
        while !answered.load(Ordering::Acquire) {
            self.shared.drain(&deployed, home);
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(64) && started.elapsed() > LOOKS {
                break;
            }
        }
        Ok(())
    }

    fn help(&self, actor: ActorId, _answered: &AtomicBool) {
        if let Some(deployed) = self.shared.find(actor) {
            self.shared.drain(&deployed, deployed.grid.home_of(actor.0));
        }
    }

    fn life(&self, actor: ActorId) -> Option<ActorState> {
        let deployed = self.shared.find(actor)?;
        deployed.cell(actor)?.life()
    }

    fn transition(&self, actor: ActorId, to: ActorState) -> Result<()> {
        let _still = read(&self.shared.still);
        let deployed = self.shared.known(actor)?;
        let Some(cell) = deployed.cell(actor) else {
            return Ok(());
        };
        cell.transition(to, &deployed.group.title(actor), |life, held| {
            deployed.tell_life(actor, life, held);
        })
    }

    fn await_lives(&self, actors: &mut dyn Iterator<Item = ActorId>) {
        actors.for_each(|actor| self.settle_commands(actor));
    }

    fn settled(&self, actor: ActorId) -> bool {
        let Some(deployed) = self.shared.find(actor) else {
            return true;
        };
        let departures = deployed.cell(actor).map(Cell::departures);
        if deployed.on_the_way(actor) > 0 {
            return false;
        }
        // Its last handler may have faulted.
        self.hear(&deployed, actor);
        if let (Some(cell), Some(departures)) = (deployed.cell(actor), departures) {
            cell.settle(departures);
        }
        true
    }

    fn remove(&self, actor: ActorId) -> Vec<Packet> {
        let Some(deployed) = self.shared.find(actor) else {
            return Vec::new();
        };
        self.shared.drain(&deployed, deployed.grid.home_of(actor.0));
        let Some(cell) = deployed.cell(actor).filter(|cell| !cell.is_removed()) else {
            return Vec::new();
        };
        let held = cell.remove();
        cell.stall(false, &deployed.stalled, |_, _| {});
        // Of several that remove an actor each, one sees the last one go: AcqRel orders what the others did before it.
        if deployed.left.fetch_sub(1, Ordering::AcqRel) == 1
            && let Err(error) = self.retire(&deployed)
        {
            tracing::error!(%error, "a grid whose actors are gone does not leave its device");
        }
        held
    }

    fn write_state(&self, actor: ActorId, state: &[u8]) -> Result<()> {
        let deployed = self.shared.known(actor)?;
        if state == deployed.group.initial {
            // The device has it: nobody has to stop.
            let packets = deployed.command(actor, COMMAND_RESTART, [0; 2]);
            self.settle_behind(&deployed, actor, packets);
            return Ok(());
        }
        self.settle(&deployed, actor);
        deployed.grid.write_state(deployed.index(actor), state)?;
        // Whoever asks next sees a fault from before: packets are taken out, and their faults told, under the lock that this waits for.
        self.hear(&deployed, actor);
        Ok(())
    }

    fn read_state(&self, actor: ActorId) -> Result<Vec<u8>> {
        let deployed = self.shared.known(actor)?;
        self.settle(&deployed, actor);
        deployed.grid.read_state(deployed.index(actor))
    }

    fn restore(&self, group: &Group, images: &BTreeMap<ActorId, ActorImage>) -> Result<()> {
        let deployed = self.shared.known(group.first)?;
        // All at once: the homes are parked for that.
        let states = group.actors().flat_map(|actor| match images.get(&actor) {
            Some(image) => &image.state[..],
            None => &group.initial[..],
        });
        deployed
            .grid
            .write_states(&states.copied().collect::<Vec<u8>>())?;
        for (actor, image) in images {
            if let Some(cell) = deployed.cell(*actor) {
                cell.restore(image);
            }
        }
        Ok(())
    }

    fn revive(&self, actor: ActorId, life: ActorState) {
        let _still = read(&self.shared.still);
        if let Some(deployed) = self.shared.find(actor)
            && let Some(cell) = deployed.cell(actor)
        {
            self.shared.send_again(&deployed, cell);
            cell.revive(life, |life, held| deployed.tell_life(actor, life, held));
        }
    }

    fn metrics(&self, actor: ActorId) -> Option<ActorMetrics> {
        let deployed = self.shared.find(actor)?;
        let cell = deployed.cell(actor)?;
        deployed.on_the_way(actor);
        let index = deployed.index(actor);
        let counts = deployed.grid.counts(index..index + 1).unwrap_or_default();
        let latency = deployed.grid.latencies(deployed.index(actor)).unwrap_or_default();
        Some(ActorMetrics {
            latency,
            ..cell.metrics(counts.first().copied().unwrap_or_default())
        })
    }

    fn metrics_of(&self, group: &Group) -> ActorMetrics {
        let deployed = self.shared.find(group.first);
        deployed.map(|deployed| deployed.metrics()).unwrap_or_default()
    }

    fn silence(&self, actor: ActorId) -> Option<Duration> {
        let deployed = self.shared.find(actor)?;
        Some(deployed.grid.silence(deployed.grid.home_of(actor.0)))
    }

    fn count_dropped(&self, actor: ActorId) {
        let deployed = self.shared.find(actor);
        if let Some(cell) = deployed.as_ref().and_then(|deployed| deployed.cell(actor)) {
            cell.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn resume(&self, actor: ActorId) {
        // A waker may do this, within a checkpoint: so it does not wait for that to end.
        let Ok(_still) = self.shared.still.try_read() else {
            return self.shared.host.look_again(actor, &mut None);
        };
        if let Some(deployed) = self.shared.find(actor) {
            self.shared.send_on(&deployed, actor);
        }
    }

    fn is_held(&self, actor: ActorId) -> bool {
        let deployed = self.shared.find(actor);
        let cell = deployed.as_ref().and_then(|deployed| deployed.cell(actor));
        cell.is_some_and(Cell::is_stalled)
    }

    fn give_up(&self, actor: ActorId) {
        let Ok(_still) = self.shared.still.try_read() else {
            return self.shared.host.stalled_in_a_moment(actor);
        };
        if let Some(deployed) = self.shared.find(actor) {
            self.shared.give_up(&deployed, actor);
        }
    }

    fn enforce_limits(&self) -> Option<Duration> {
        None
    }

    fn idle(&self) -> bool {
        let first = self.shared.handled_if_idle();
        if first.is_none() {
            return false;
        }
        // Twice: a packet may have gone from a home not yet looked at to one seen before. Its handler will have run the second time.
        first == self.shared.handled_if_idle()
    }

    fn handled_if_idle(&self) -> Option<u64> {
        self.shared.handled_if_idle()
    }

    fn freeze(&self) -> Result<Box<dyn Frozen + '_>> {
        let still = write(&self.shared.still);
        let gate = self.shared.commons.device().context().gate();
        let section = gate.map(Gate::section).transpose()?;
        let all: Vec<Arc<Deployed>> = read(&self.shared.deployed).clone();
        Ok(Box::new(Standstill {
            shared: &self.shared,
            images: BTreeMap::new(),
            all,
            _section: section,
            _still: still,
        }))
    }

    fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Release);
        if let Some(pump) = lock(&self.pump).take() {
            let _ = pump.join();
        }
        for deployed in std::mem::take(&mut *write(&self.shared.deployed)) {
            if let Err(error) = deployed.grid.end() {
                tracing::error!(%error, "a grid does not leave its device");
            }
        }
    }
}

impl Drop for Grids {
    fn drop(&mut self) {
        self.stop();
    }
}
