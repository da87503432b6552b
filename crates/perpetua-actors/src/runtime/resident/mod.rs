//! Actors that live on a GPU: the engine over resident grids. Must not know names, askers or topics.
//!
//! A launch makes a grid; its homes take packets from rings. `cell` is what the host knows of an actor, `pump` takes out
//! what comes. A message to an actor that is not active waits here; one that is on its way when its actor stops comes
//! back, and waits here, too.

mod cell;
mod pump;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use perpetua_device::residency::{ResidencyGate, Section};
use perpetua_device::{BackendKind, Device};

use self::cell::Cell;
use super::Settings;
use super::engine::{ActorImage, Engine, Frozen, Refusal};
use super::group::Group;
use super::host::Host;
use super::lock::{lock, read, write};
use crate::device::layout::{COMMAND_BECOME, COMMAND_RESTART};
use crate::error::{ActorError, Result};
use crate::lifecycle::ActorState;
use crate::message::{ActorId, Header, Kind, PACKET_WORDS, PAYLOAD_WORDS, Packet};
use crate::resident::{Commons, Grid, Shape};
use crate::telemetry::ActorMetrics;

/// Homes of all launches together.
const HOMES: u32 = 132;
/// Homes of one launch, at most.
const HOMES_OF_ONE: u32 = 32;
/// For how long who asks looks for the answer at once.
const LOOKS: Duration = Duration::from_micros(50);

/// A launch on the device.
struct Deployed {
    group: Arc<Group>,
    grid: Grid,
    homes: Vec<Home>,
    cells: Vec<Cell>,
}

/// What waits on the host's side of a home.
#[derive(Default)]
struct Home {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Packets that the ring has had no room for, in order.
    waiting: VecDeque<[u32; PACKET_WORDS]>,
    /// Actors of the packets that are in the ring, in order; for commands none.
    inside: VecDeque<Option<u32>>,
    /// Packets that the home had taken in when `inside` was last looked at.
    taken: u32,
}

struct Shared {
    host: Arc<Host>,
    commons: Arc<Commons>,
    deployed: RwLock<Vec<Arc<Deployed>>>,
    /// Held by who sends, and alone by who stops all actors.
    still: RwLock<()>,
    stopped: AtomicBool,
}

/// The engine.
pub(crate) struct Resident {
    shared: Arc<Shared>,
    pump: Mutex<Option<JoinHandle<()>>>,
}

/// Opens it on the first CUDA device.
pub(crate) fn open(host: &Arc<Host>, settings: &Settings) -> Result<Arc<dyn Engine>> {
    let device = Device::new(BackendKind::Cuda, 0)?;
    let homes = device.info().multiprocessors.unwrap_or(HOMES).min(HOMES);
    let shape = Shape::new(homes, settings.device_actors);
    let shared = Arc::new(Shared {
        host: Arc::clone(host),
        commons: Arc::new(Commons::new(&device, shape)?),
        deployed: RwLock::default(),
        still: RwLock::default(),
        stopped: AtomicBool::new(false),
    });
    let pump = pump::start(&shared)?;
    Ok(Arc::new(Resident {
        shared,
        pump: Mutex::new(Some(pump)),
    }))
}

impl Deployed {
    fn cell(&self, actor: ActorId) -> Option<&Cell> {
        self.cells.get(actor.0.wrapping_sub(self.group.first.0) as usize)
    }

    fn home(&self, actor: ActorId) -> (u32, Option<&Home>) {
        let home = self.grid.home_of(actor.0);
        (home, self.homes.get(home as usize))
    }

    /// Puts a packet into the ring of its actor's home, or behind those that wait for room there.
    fn push(&self, words: [u32; PACKET_WORDS], counts: bool) {
        let actor = ActorId(words[0]);
        let (number, Some(home)) = self.home(actor) else {
            return;
        };
        let mut queue = lock(&home.queue);
        self.settle(number, &mut queue);
        if queue.waiting.is_empty() && self.grid.push(number, [&words]) == 1 {
            queue.inside.push_back(counts.then_some(actor.0));
        } else {
            queue.waiting.push_back(words);
        }
    }

    /// Counts what the home has taken in since, and puts what waits into the ring where there is room.
    fn settle(&self, number: u32, queue: &mut Queue) {
        let taken = self.grid.report(number).taken_in as u32;
        while queue.taken != taken {
            queue.taken = queue.taken.wrapping_add(1);
            if let Some(Some(actor)) = queue.inside.pop_front()
                && let Some(cell) = self.cell(ActorId(actor))
            {
                cell.waits.fetch_sub(1, Ordering::Relaxed);
            }
        }
        while let Some(words) = queue.waiting.front() {
            if self.grid.push(number, [words]) == 0 {
                break;
            }
            let command = words[6] & 0xff == Kind::Command as u32;
            queue.inside.push_back((!command).then_some(words[0]));
            queue.waiting.pop_front();
        }
    }

    /// Tells a home something about an actor, behind all that was sent before.
    fn command(&self, actor: ActorId, command: u32, word: u32) {
        let mut payload = [0; PAYLOAD_WORDS];
        payload[0] = word;
        let header = Header {
            destination: actor.0,
            sender: ActorId::HOST,
            type_id: command,
            correlation: 0,
            sent: 0,
            kind: Kind::Command,
            priority: 0,
            words: 1,
            deadline: 0,
        };
        self.push(Packet { header, payload }.to_words(), false);
    }

    /// Packets on their way to an actor's home, its own or others'.
    fn on_the_way(&self, actor: ActorId) -> usize {
        let (number, Some(home)) = self.home(actor) else {
            return 0;
        };
        let mut queue = lock(&home.queue);
        self.settle(number, &mut queue);
        queue.waiting.len() + queue.inside.len()
    }

    /// The actors as they stand; all grids are parked, and what came out was taken.
    fn image(&self, images: &mut BTreeMap<ActorId, ActorImage>) -> Result<()> {
        let grid = self.grid.image()?;
        let mut packets: HashMap<u32, Vec<Packet>> = HashMap::new();
        let waiting: Vec<[u32; PACKET_WORDS]> = self
            .homes
            .iter()
            .flat_map(|home| lock(&home.queue).waiting.iter().copied().collect::<Vec<_>>())
            .collect();
        for words in grid.packets.iter().chain(&waiting) {
            if let Some(packet) = Packet::from_words(words)
                && packet.header.kind != Kind::Command
            {
                packets.entry(words[0]).or_default().push(packet);
            }
        }
        let size = self.group.handler.state_size.max(1);
        for (i, actor) in self.group.actors().enumerate() {
            let state = grid.states.get(i * size..(i + 1) * size).unwrap_or_default();
            let handled = grid.handled.get(i).copied().unwrap_or(0);
            let on_the_way = packets.remove(&actor.0).unwrap_or_default();
            let image = self
                .cells
                .get(i)
                .and_then(|c| c.image(state, handled.into(), on_the_way));
            images.extend(image.map(|image| (actor, image)));
        }
        Ok(())
    }

    fn index(&self, actor: ActorId) -> u32 {
        actor.0.wrapping_sub(self.group.first.0)
    }
}

impl Shared {
    fn find(&self, actor: ActorId) -> Option<Arc<Deployed>> {
        let all = read(&self.deployed);
        // Launches are in the order of their actors' numbers.
        let after = all.partition_point(|d| d.group.first <= actor);
        let found = all.get(after.checked_sub(1)?)?;
        found.group.has(actor).then(|| Arc::clone(found))
    }

    fn known(&self, actor: ActorId) -> Result<Arc<Deployed>> {
        self.find(actor)
            .filter(|d| d.cell(actor).is_some_and(|c| !c.is_removed()))
            .ok_or_else(|| ActorError::NoSuchActor {
                actor: actor.to_string(),
            })
    }

    /// Takes a packet for an actor: on to the device, or to wait until it is active.
    fn submit(&self, packet: &Packet) -> std::result::Result<Arc<Deployed>, Refusal> {
        let actor = ActorId(packet.header.destination);
        let deployed = self.find(actor).ok_or(Refusal::Gone)?;
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
        if !held {
            deployed.push(packet.to_words(), true);
        }
        Ok(deployed)
    }
}

impl Engine for Resident {
    fn kind(&self) -> BackendKind {
        BackendKind::Cuda
    }

    fn is_resident(&self) -> bool {
        true
    }

    fn launch(&self, group: &Arc<Group>) -> Result<()> {
        if group.run_limit.is_some() {
            return Err(ActorError::Unsupported {
                backend: "cuda",
                operation: "a limit to a handler's time",
                remedy: "leave `with_run_limit` out, or take `Backend::Cpu`",
            });
        }
        let homes = group.count.clamp(1, HOMES_OF_ONE);
        let grid = Grid::new(
            &self.shared.commons,
            &group.handler,
            &group.initial,
            group.first.0..group.first.0 + group.count,
            homes,
        )?;
        let deployed = Arc::new(Deployed {
            homes: (0..grid.homes()).map(|_| Home::default()).collect(),
            cells: group.actors().map(|_| Cell::default()).collect(),
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

    fn offer(&self, packet: &Packet) -> std::result::Result<(), Refusal> {
        match self.shared.still.try_read() {
            Ok(_still) => self.shared.submit(packet).map(drop),
            Err(_) => Err(Refusal::Full),
        }
    }

    fn ask(&self, packet: &Packet, answered: &AtomicBool) -> std::result::Result<(), Refusal> {
        let deployed = {
            let _still = read(&self.shared.still);
            self.shared.submit(packet)?
        };
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
        let deployed = self.shared.known(actor)?;
        let Some(cell) = deployed.cell(actor) else {
            return Ok(());
        };
        cell.transition(to, &deployed.group.title(actor), |held| {
            deployed.command(actor, COMMAND_BECOME, to as u32);
            for packet in held {
                deployed.push(packet.to_words(), true);
            }
        })
    }

    fn settled(&self, actor: ActorId) -> bool {
        self.shared.find(actor).is_none_or(|d| d.on_the_way(actor) == 0)
    }

    fn remove(&self, actor: ActorId) -> Vec<Packet> {
        let Some(deployed) = self.shared.find(actor) else {
            return Vec::new();
        };
        self.shared.drain(&deployed, deployed.grid.home_of(actor.0));
        deployed.cell(actor).map(Cell::remove).unwrap_or_default()
    }

    fn write_state(&self, actor: ActorId, state: &[u8]) -> Result<()> {
        let deployed = self.shared.known(actor)?;
        if state == deployed.group.initial {
            // The device has it: nobody has to stop.
            deployed.command(actor, COMMAND_RESTART, 0);
            return Ok(());
        }
        self.settle(&deployed, actor);
        deployed.grid.write_state(deployed.index(actor), state)
    }

    fn read_state(&self, actor: ActorId) -> Result<Vec<u8>> {
        let deployed = self.shared.known(actor)?;
        self.settle(&deployed, actor);
        deployed.grid.read_state(deployed.index(actor))
    }

    fn restore(&self, actor: ActorId, image: &ActorImage) -> Result<()> {
        let deployed = self.shared.known(actor)?;
        deployed.grid.write_state(deployed.index(actor), &image.state)?;
        if let Some(cell) = deployed.cell(actor) {
            cell.restore(image);
        }
        Ok(())
    }

    fn revive(&self, actor: ActorId, life: ActorState) {
        if let Some(deployed) = self.shared.find(actor)
            && let Some(cell) = deployed.cell(actor)
        {
            cell.revive(life, |held| {
                deployed.command(actor, COMMAND_BECOME, life as u32);
                for packet in held {
                    deployed.push(packet.to_words(), true);
                }
            });
        }
    }

    fn metrics(&self, actor: ActorId) -> Option<ActorMetrics> {
        let deployed = self.shared.find(actor)?;
        let cell = deployed.cell(actor)?;
        deployed.on_the_way(actor);
        let handled = deployed.grid.handled(deployed.index(actor)).unwrap_or(0);
        Some(cell.metrics(handled.into()))
    }

    fn resume(&self, _actor: ActorId) {
        // What comes out is taken out by the pump as soon as there is room.
    }

    fn give_up(&self, _actor: ActorId) {
        // A home gives up by itself: what it cannot deliver comes back.
    }

    fn enforce_limits(&self) -> Option<Duration> {
        None
    }

    fn idle(&self) -> bool {
        let first = self.shared.handled_if_idle();
        if first.is_none() {
            return false;
        }
        // A packet between two homes is in no ring of the host's: it will have been handled after that.
        std::thread::sleep(Duration::from_millis(1));
        first == self.shared.handled_if_idle()
    }

    fn freeze(&self) -> Result<Box<dyn Frozen + '_>> {
        let still = write(&self.shared.still);
        let gate = self.shared.commons.device().context().residency();
        let section = gate.map(ResidencyGate::section).transpose()?;
        let all: Vec<Arc<Deployed>> = read(&self.shared.deployed).clone();
        // What has come out is the host's.
        for deployed in &all {
            for home in 0..deployed.grid.homes() {
                while deployed.grid.drain_waits(home) {
                    self.shared.drain(deployed, home);
                }
            }
        }
        let mut images = BTreeMap::new();
        for deployed in &all {
            deployed.image(&mut images)?;
        }
        Ok(Box::new(Standstill {
            images,
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

impl Resident {
    /// Waits until the home has taken in all that was sent to an actor.
    fn settle(&self, deployed: &Deployed, actor: ActorId) {
        while deployed.on_the_way(actor) > 0 && !self.shared.stopped.load(Ordering::Acquire) {
            self.shared.drain(deployed, deployed.grid.home_of(actor.0));
            std::hint::spin_loop();
        }
    }
}

/// All grids are parked, and nobody sends, while this lives.
struct Standstill<'a> {
    images: BTreeMap<ActorId, ActorImage>,
    // In this order: first the grids go on, then the senders.
    _section: Option<Section<'a>>,
    _still: RwLockWriteGuard<'a, ()>,
}

impl Frozen for Standstill<'_> {
    fn image(&self, actor: ActorId) -> Option<ActorImage> {
        self.images.get(&actor).cloned()
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        self.stop();
    }
}
