//! The homes of one handler's actors: a kernel that stays on the device until it is parked. Must not know runtimes.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use perpetua::kernel::resident::U32x4;
use perpetua_device::gate::Parkable;
use perpetua_device::{
    Buffer, DynBuffer, Error, Kernel, KernelArg, LaunchConfig, MappedBuffer, Stream, args,
};
use perpetua_ir::ir::{ParamKind, Type};

use super::beat::Beat;
use super::commons::Commons;
use super::port::Port;
use crate::context::GROUP_LANES;
use crate::error::Result;
use crate::handler::Handler;
use crate::kernels::layout::{ACTOR_WORDS, COMMAND_PARK, LATENCY_BUCKETS, REPORT_VECTORS};
use crate::lifecycle::ActorState;
use crate::lock::lock;
use crate::message::{ActorId, Header, Kind, PACKET_WORDS, PAYLOAD_WORDS, Packet};

/// Polls without a packet after which a home naps between two.
const PATIENCE: u32 = 100_000;
/// Lanes of a home.
const LANES: u32 = 128;
/// Subgroups of a home that watch the host's ring, where few homes share the bus.
const WATCHERS: u32 = 2;
/// So many homes are few.
const FEW_HOMES: u32 = 16;
/// How long a parked home may take to leave the device, once its handler's time is over.
const LEAVE: Duration = Duration::from_secs(10);
/// Words for vectors where nobody has said how many.
const ARENA_WORDS: usize = 4 << 20;
/// How long a handler may run unless its options say otherwise: one that loops for ever would hold its home, and all kernels that wait for
/// the device.
const RUN_LIMIT: Duration = Duration::from_secs(5);
/// Launches of more actors have a row of latencies for each home.
pub(super) const OWN_LATENCIES: u32 = 4096;
/// Which of the kernel's parameters are the states.
const STATES: usize = 8;

/// All that a grid holds while it is parked.
#[derive(Clone, Debug, Default)]
pub struct GridImage {
    /// The states' bytes, one after the other.
    pub states: Vec<u8>,
    /// How often each actor's handler has run; wraps at 2^32.
    pub handled: Vec<u32>,
    /// Packets that wait in rings and boxes, each home's in order of receipt.
    pub packets: Vec<[u32; PACKET_WORDS]>,
}

/// How the actors of a grid live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridOptions {
    /// Their numbers.
    pub actors: Range<u32>,
    /// Blocks that host them.
    pub homes: u32,
    /// How long a handler may run: one that still loops then is faulted. `None`: five seconds.
    pub run_limit: Option<Duration>,
    /// Lanes that run the handler together, at most 32, where it is written for a group.
    pub group_size: u32,
}

impl GridOptions {
    /// For so many actors from number 0 on, in so many homes.
    pub fn new(actors: u32, homes: u32) -> GridOptions {
        GridOptions {
            actors: 0..actors,
            homes,
            run_limit: None,
            group_size: 1,
        }
    }
}

/// The homes of one handler's actors, on the device unless parked.
pub struct Grid {
    pub(super) shared: Arc<Homes>,
    /// What the device's gate holds, weakly.
    resident: Arc<dyn Parkable>,
}

/// What the gate parks and unparks.
pub(super) struct Homes {
    pub(super) commons: Arc<Commons>,
    kernel: Kernel,
    states: Mutex<DynBuffer>,
    first_states: DynBuffer,
    /// Where messages' vectors lie, if the handler reaches some.
    arena: Option<MappedBuffer<u32>>,
    pub(super) latencies: Buffer<u32>,
    pub(super) run_limit: Duration,
    group_size: u32,
    first_home: u32,
    pub(super) homes: u32,
    pub(super) first_actor: u32,
    pub(super) actors: u32,
    pub(super) stream: Stream,
    /// Whether the kernel has been launched and not ended.
    pub(super) running: AtomicBool,
    /// What each home has told.
    pub(super) beats: Vec<Mutex<Beat>>,
    /// It is to stay away from the device.
    ended: AtomicBool,
}

impl Grid {
    /// Makes actors, all with the handler and the state whose bytes are `state`, and puts them on the device, launched.
    ///
    /// Compiling and loading may take long; other grids of the device are parked while the kernel is loaded.
    ///
    /// # Errors
    /// No room in the commons; what compiling and launching may give.
    pub fn new(
        commons: &Arc<Commons>,
        handler: &Handler,
        state: &[u8],
        options: &GridOptions,
    ) -> Result<Grid> {
        let device = commons.device();
        let range = &options.actors;
        let (first_actor, actors) = (range.start, range.end.saturating_sub(range.start));
        let homes = options.homes.clamp(1, actors.max(1));
        let first_home = commons.take(homes, first_actor.saturating_add(actors))?;
        // SAFETY: outside the block in which the handler runs, whose faults are caught, indices are: a home's number and counters
        // masked to a ring's size, whose buffers `Commons` has made for all homes; words of a slot, below their number; an actor
        // that the host has sent to, or that the directory knows, which has a record and a state here; the head of a block that the
        // host's allocator has given out inside the arena; no division. What comes
        // in from the host is checked before it is pushed (`Grid::push`).
        let resident = unsafe { (handler.resident)().checked_where_caught() };
        let kernel = device.kernel(&resident)?;
        let element = state_type(&kernel)?;
        let states = DynBuffer::upload(device, &element, &state.repeat(actors as usize))?;
        let first_states = DynBuffer::upload(device, &element, state)?;
        let arena = match reaches_vectors(&kernel) {
            true => Some(commons.arena(ARENA_WORDS)?.clone()),
            false => None,
        };
        let rows = if actors <= OWN_LATENCIES { actors } else { homes };
        let latencies = device.zeros::<u32>(rows as usize * LATENCY_BUCKETS)?;
        // Each actor's home, and where it is in its life.
        let range = first_actor as usize..(first_actor + actors) as usize;
        let at_home: Vec<u32> = (0..actors).map(|a| first_home + a % homes).collect();
        let life = ActorState::Launched;
        let mut records = vec![0u32; actors as usize * ACTOR_WORDS];
        records
            .iter_mut()
            .step_by(ACTOR_WORDS)
            .for_each(|word| *word = life as u32);
        let copies = &commons.copies;
        copies.write(
            &commons
                .actors
                .slice(range.start * ACTOR_WORDS..range.end * ACTOR_WORDS)?,
            &records,
        )?;
        copies.write(&commons.directory.slice(range)?, &at_home)?;
        copies.synchronize()?;
        device.default_stream().synchronize()?;
        let shared = Arc::new(Homes {
            commons: Arc::clone(commons),
            kernel,
            states: Mutex::new(states),
            first_states,
            arena,
            latencies,
            run_limit: options.run_limit.unwrap_or(RUN_LIMIT),
            group_size: options.group_size.clamp(1, GROUP_LANES as u32),
            first_home,
            homes,
            first_actor,
            actors,
            stream: device.create_stream()?,
            running: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            beats: (0..homes).map(|_| Mutex::new(Beat::now())).collect(),
        });
        let resident: Arc<dyn Parkable> = Arc::clone(&shared) as Arc<dyn Parkable>;
        match device.context().gate() {
            Some(gate) => gate.admit(&resident)?,
            None => shared.unpark()?,
        }
        Ok(Grid { shared, resident })
    }

    /// The first actor's number.
    pub fn first_actor(&self) -> u32 {
        self.shared.first_actor
    }

    /// Number of actors.
    pub fn actors(&self) -> u32 {
        self.shared.actors
    }

    /// Number of homes.
    pub fn homes(&self) -> u32 {
        self.shared.homes
    }

    /// The home of an actor of this grid, from 0 on.
    pub fn home_of(&self, actor: u32) -> u32 {
        actor.wrapping_sub(self.shared.first_actor) % self.shared.homes
    }

    /// Puts packets into the ring to a home, in order, as many as there is room for, and none from the first on that is for an
    /// actor of another grid; says how many.
    pub fn push<'a>(&self, home: u32, packets: impl IntoIterator<Item = &'a [u32; PACKET_WORDS]>) -> usize {
        let shared = &*self.shared;
        let known =
            |packet: &&[u32; PACKET_WORDS]| packet[0].wrapping_sub(shared.first_actor) < shared.actors;
        let packets = packets.into_iter().take_while(known);
        shared.port(home).map_or(0, |port| port.push(packets))
    }

    /// Gives at most `most` packets that came out of a home to `take`; says how many. None where another thread is at it.
    pub fn drain(&self, home: u32, most: usize, take: impl FnMut(&[u32; PACKET_WORDS])) -> usize {
        self.shared.port(home).map_or(0, |port| port.drain(most, take))
    }

    /// Packets in the ring to a home that it has not taken in.
    pub fn waiting(&self, home: u32) -> u32 {
        self.shared.port(home).map_or(0, Port::waiting)
    }

    /// Does something while the homes are off the device, between two messages; then they go on.
    ///
    /// # Errors
    /// A home that does not leave ten seconds after its handler's time was over.
    pub fn parked<R>(&self, act: impl FnOnce() -> R) -> Result<R> {
        match self.shared.commons.device().context().gate() {
            Some(gate) => Ok(gate.parked(act)?),
            None => {
                self.shared.park()?;
                let result = act();
                self.shared.unpark()?;
                Ok(result)
            }
        }
    }

    /// The bytes of all states. Parks the homes meanwhile.
    pub fn read_states(&self) -> Result<Vec<u8>> {
        let states = lock(&self.shared.states).clone();
        Ok(self.parked(|| states.read())??)
    }

    /// All that the grid holds. The device's grids must be parked.
    ///
    /// # Errors
    /// What reading the device's memory may give.
    pub fn image(&self) -> Result<GridImage> {
        let shared = &*self.shared;
        let commons = &*shared.commons;
        let records = shared.first_actor as usize * ACTOR_WORDS
            ..(shared.first_actor + shared.actors) as usize * ACTOR_WORDS;
        let mut image = GridImage {
            states: lock(&shared.states).read()?,
            handled: commons
                .actors
                .slice(records)?
                .read()?
                .into_iter()
                .skip(1)
                .step_by(ACTOR_WORDS)
                .collect(),
            packets: Vec::new(),
        };
        for (home, port) in (shared.first_home as usize..).zip(shared.ports()) {
            image.packets.extend(port.inside());
            image.packets.extend(commons.boxed(home)?);
        }
        Ok(image)
    }

    /// The bytes of one state. Parks the homes meanwhile.
    pub fn read_state(&self, index: u32) -> Result<Vec<u8>> {
        let states = lock(&self.shared.states).clone();
        Ok(self.parked(|| states.read_one(index.into()))??)
    }

    /// Gives one state other bytes. Parks the homes meanwhile.
    pub fn write_state(&self, index: u32, state: &[u8]) -> Result<()> {
        let states = lock(&self.shared.states).clone();
        Ok(self.parked(|| states.write_one(index.into(), state))??)
    }

    /// Whether packets of a home wait to be taken out.
    pub fn drain_waits(&self, home: u32) -> bool {
        self.shared.port(home).is_some_and(Port::has_packets)
    }

    /// Takes the homes off the device for good, and leaves their place to others. Gives the packets that were in the homes' boxes. No
    /// actor of the grid may be sent to any more.
    ///
    /// # Errors
    /// As [`Grid::parked`].
    pub fn retire(&self) -> Result<Vec<[u32; PACKET_WORDS]>> {
        let shared = &*self.shared;
        let leave = || {
            shared.ended.store(true, Ordering::Relaxed);
            let homes = shared.first_home..shared.first_home + shared.homes;
            let actors = shared.first_actor..shared.first_actor + shared.actors;
            shared.commons.give_back(homes, actors)
        };
        self.parked(leave)?
    }

    /// Takes the homes off the device for good.
    ///
    /// # Errors
    /// As [`Grid::parked`].
    pub fn end(&self) -> Result<()> {
        let gate = self.shared.commons.device().context().gate();
        let end = || self.shared.ended.store(true, Ordering::Relaxed);
        match gate {
            Some(gate) => gate.parked(end)?,
            None => {
                self.shared.park()?;
                end();
            }
        }
        Ok(())
    }
}

impl Drop for Grid {
    fn drop(&mut self) {
        // A home that hangs stays; the caller of `end` got the error.
        if let Err(error) = self.end() {
            tracing::error!(%error, "a resident grid does not leave its device");
        }
        let _ = &self.resident;
    }
}

impl Homes {
    pub(super) fn port(&self, home: u32) -> Option<&Port> {
        if home >= self.homes {
            return None;
        }
        self.commons.ports.get((self.first_home + home) as usize)
    }

    fn ports(&self) -> &[Port] {
        let first = self.first_home as usize;
        self.commons
            .ports
            .get(first..first + self.homes as usize)
            .unwrap_or_default()
    }

    /// Whether a home has told that it has left.
    fn left(&self, home: u32) -> bool {
        self.port(home).is_none_or(|port| port.report_at(1).0[0] == 1)
    }
}

impl Parkable for Homes {
    fn park(&self) -> perpetua_device::Result<()> {
        if !self.running.load(Ordering::Acquire) {
            return Ok(());
        }
        // To an actor of the home's own: the home looks at its record.
        let park = |home: u32| Packet {
            header: Header {
                destination: self.first_actor + home,
                sender: ActorId::HOST,
                type_id: COMMAND_PARK,
                correlation: 0,
                sent: 0,
                kind: Kind::Command,
                priority: 0,
                words: 0,
                deadline: 0,
            },
            payload: [0; PAYLOAD_WORDS],
        };
        let started = Instant::now();
        let hangs = || started.elapsed() > LEAVE + self.run_limit;
        let error = Error::InvalidState {
            operation: "parking a resident grid",
            cause: "a home has not left the device ten seconds after its handler's time was over",
            remedy: "end the process; the device may have failed",
        };
        for (home, port) in (0..).zip(self.ports()) {
            let park = park(home).to_words();
            while port.push([&park]) == 0 {
                // A home that waits for room in its outgoing ring takes nothing in.
                self.ports().iter().for_each(Port::spill);
                if hangs() {
                    return Err(error);
                }
            }
        }
        for home in 0..self.homes {
            while !self.left(home) {
                self.ports().iter().for_each(Port::spill);
                if hangs() {
                    return Err(error);
                }
                std::hint::spin_loop();
            }
        }
        // Faults were told by packets.
        match self.stream.inner().synchronize_blocking() {
            Ok(()) | Err(Error::Fault(_)) => {}
            Err(error) => return Err(error),
        }
        self.running.store(false, Ordering::Release);
        Ok(())
    }

    fn unpark(&self) -> perpetua_device::Result<()> {
        if self.ended.load(Ordering::Relaxed) || self.running.load(Ordering::Acquire) {
            return Ok(());
        }
        let commons = &*self.commons;
        for home in 0..self.homes {
            let at = (self.first_home + home) as usize * REPORT_VECTORS + 1;
            commons.reports.store(at, U32x4::default())?;
        }
        let states = lock(&self.states).clone();
        let shape = commons.shape;
        // In the interpreter homes take turns, and one that finds nothing gives its turn away.
        let patience = match commons.device.info().compute_capability {
            Some(_) => PATIENCE,
            None => 0,
        };
        let mut arguments = args![
            &commons.ingress,
            &commons.egress,
            &commons.orders,
            &commons.reports,
            &commons.inbox,
            &commons.homes,
            &commons.actors,
            &commons.directory,
            &states,
            &self.first_states,
            &self.latencies,
            self.first_actor,
            self.first_home,
            self.actors,
            self.homes,
            u32::MAX / self.homes,
            shape.ring - 1,
            shape.boxes - 1,
            patience,
            if self.homes <= FEW_HOMES { WATCHERS } else { 1 },
            commons.time_offset,
            self.run_limit.as_nanos().min(1 << 62) as u64,
            self.group_size,
            u32::from(self.actors <= OWN_LATENCIES),
        ]
        .to_vec();
        arguments.extend(self.arena.as_deref().map(KernelArg::from));
        self.stream.launch(
            &self.kernel,
            LaunchConfig::new([self.homes, 1, 1], [LANES, 1, 1]),
            &arguments,
        )?;
        self.stream.flush()?;
        self.running.store(true, Ordering::Release);
        Ok(())
    }
}

/// Whether the kernel's handler reaches vectors.
fn reaches_vectors(kernel: &Kernel) -> bool {
    let signature = kernel.signature();
    signature.is_some_and(|s| s.params().any(|param| param.name == "arena"))
}

/// The type of the states, as the kernel's signature has it.
fn state_type(kernel: &Kernel) -> Result<Type> {
    let params = kernel
        .signature()
        .map(|s| s.params().nth(STATES).map(|p| p.kind.clone()));
    match params {
        Some(Some(ParamKind::Buffer { element, .. })) => Ok(element),
        _ => Err(Error::InvalidState {
            operation: "making a resident grid",
            cause: "its kernel has no states",
            remedy: "make the handler with #[ring_kernel]",
        }
        .into()),
    }
}
