//! The homes of one handler's actors: a kernel that stays on the device until it is parked. Must not know runtimes.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use perpetua_device::gate::Parkable;
use perpetua_device::{Buffer, DynBuffer, Error, Kernel, KernelSpec, MappedBuffer, Stream};
use perpetua_ir::ir::{ParamKind, Type};

use super::beat::Beat;
use super::commons::Commons;
use super::counts::ActorCounts;
use super::place::Part;
use super::port::Port;
use super::special::{OWN_LATENCIES, Special};
use crate::context::GROUP_LANES;
use crate::error::{ActorError, Result};
use crate::handler::Handler;
use crate::kernels::layout::{ACTOR_WORDS, HOME_LANES, LATENCY_BUCKETS};
use crate::lifecycle::ActorState;
use crate::lock::lock;
use crate::message::PACKET_WORDS;
use crate::supervise::OnFault;

/// Words for vectors where nobody has said how many.
const ARENA_WORDS: usize = 4 << 20;
/// How long a handler may run unless its options say otherwise: one that loops for ever would hold its home, and all kernels that wait for
/// the device.
const RUN_LIMIT: Duration = Duration::from_secs(5);
/// How long a home waits for room in another one's box unless its options say otherwise: about as long as that one takes to handle all that is in it. It takes
/// nothing in meanwhile, so homes may wait for each other in a circle, for as long and no longer.
const SEND_PATIENCE: Duration = Duration::from_millis(2);
/// Which of the kernel's parameters are the states.
const STATES: usize = 8;

/// All that a grid holds while it is parked.
#[derive(Clone, Debug, Default)]
pub struct GridImage {
    /// The states' bytes, one after the other.
    pub states: Vec<u8>,
    /// How often each actor's handler has run.
    pub handled: Vec<u64>,
    /// Packets that wait in rings and boxes, each home's in order of receipt.
    pub packets: Vec<[u32; PACKET_WORDS]>,
}

/// How the actors of a grid live.
///
/// ```
/// use perpetua::actors::grid::GridOptions;
/// use std::time::Duration;
/// let options = GridOptions {
///     run_limit: Some(Duration::from_millis(100)),
///     ..GridOptions::new(1000, 16)
/// };
/// assert_eq!((options.actors, options.homes), (0..1000, 16));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridOptions {
    /// Their numbers.
    pub actors: Range<u32>,
    /// Blocks that host them: on a GPU at most as many as have room there at once, less one a multiprocessor for what else the program launches. (With
    /// one home a multiprocessor any other kernel finds room; beside more of them, one whose blocks need more than that place waits until the grid has ended.)
    pub homes: u32,
    /// How long a handler may run: one that still loops then is faulted. `None`: five seconds.
    pub run_limit: Option<Duration>,
    /// Lanes that run the handler together, at most 32, where it is written for a group.
    pub group_size: u32,
    /// With which state a fault leaves its actor.
    pub on_fault: OnFault,
    /// For how long a home waits for room in another one's box, and takes nothing in meanwhile. Then the message goes to the host, and its sender, which is
    /// deactivated on the device, handles nothing until it is told to be active again.
    pub patience: Duration,
}

impl GridOptions {
    /// For so many actors from number 0 on, in so many homes.
    pub fn new(actors: u32, homes: u32) -> GridOptions {
        GridOptions {
            actors: 0..actors,
            homes,
            run_limit: None,
            group_size: 1,
            on_fault: OnFault::Transactional,
            patience: SEND_PATIENCE,
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
    pub(super) kernel: Kernel,
    pub(super) states: Mutex<DynBuffer>,
    pub(super) first_states: DynBuffer,
    /// Where messages' vectors lie, if the handler reaches some.
    pub(super) arena: Option<MappedBuffer<u32>>,
    pub(super) latencies: Buffer<u32>,
    pub(super) run_limit: Duration,
    pub(super) special: Special,
    pub(super) patience: Duration,
    pub(super) first_home: u32,
    pub(super) homes: u32,
    pub(super) first_actor: u32,
    pub(super) actors: u32,
    pub(super) stream: Stream,
    /// Its place on the device.
    part: Part,
    /// Whether the kernel has been launched and not ended.
    pub(super) running: AtomicBool,
    /// What each home has told.
    pub(super) beats: Vec<Mutex<Beat>>,
    /// It is to stay away from the device.
    pub(super) ended: AtomicBool,
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
        // SAFETY: outside the block in which the handler runs, whose faults are caught, indices are: a home's number and counters
        // masked to a ring's size, whose buffers `Commons` has made for all homes; words of a slot, below their number; an actor
        // that the host has sent to, or that the directory knows, which has a record and a state here, and where `on_fault` says so a second
        // one behind all of them; the head of a block that the
        // host's allocator has given out inside the arena; no division. What comes
        // in from the host is checked before it is pushed (`Grid::push`).
        let resident = unsafe { (handler.resident)().checked_where_caught() };
        let on_fault = match options.on_fault {
            // What no fault can tear is left as it was.
            OnFault::Transactional if !handler.tears(&resident)? => OnFault::KeepState,
            other => other,
        };
        let verified = resident.verified(device.info().pointer_width())?;
        let lanes = options.group_size.clamp(1, GROUP_LANES as u32);
        let bridge = commons.bridge.get();
        let devices = bridge.map_or(0, |bridge| bridge.numbers().devices);
        let special = Special::new(device, commons.shape, actors, homes, lanes, on_fault, devices);
        let kernel = device.compile_ir(&special.kernel(&verified))?;
        let element = state_type(&kernel)?;
        // A fault brings a state back: behind all of them there is a place for what each was.
        let places = match on_fault {
            OnFault::Transactional => 2 * actors as usize,
            _ => actors as usize,
        };
        let states = DynBuffer::upload(device, &element, &state.repeat(places))?;
        let first_states = DynBuffer::upload(device, &element, state)?;
        let arena = match reaches_vectors(&kernel) {
            true => Some(commons.arena(ARENA_WORDS)?.clone()),
            false => None,
        };
        let rows = if actors <= OWN_LATENCIES { actors } else { homes };
        let latencies = device.zeros::<u32>(rows as usize * LATENCY_BUCKETS)?;
        let fit = kernel
            .blocks_per_multiprocessor(HOME_LANES, 0)?
            .unwrap_or(u32::MAX);
        let (first_home, part) = commons.take(homes, fit, first_actor.saturating_add(actors))?;
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
        if let Some(bridge) = bridge {
            bridge.announce(first_actor..first_actor + actors, first_home, homes)?;
        }
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
            special,
            patience: options.patience,
            first_home,
            homes,
            first_actor,
            actors,
            stream: part.stream().clone(),
            part,
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
        self.parked(|| self.shared.states_now())?
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
            states: shared.states_now()?,
            handled: commons
                .actors
                .slice(records)?
                .read()?
                .chunks_exact(ACTOR_WORDS)
                .map(|record| ActorCounts::of(record).handled)
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
    ///
    /// # Errors
    /// [`ActorError::NoSuchActor`](crate::ActorError::NoSuchActor) where the grid has no such actor.
    pub fn read_state(&self, index: u32) -> Result<Vec<u8>> {
        self.check(index)?;
        let states = lock(&self.shared.states).clone();
        Ok(self.parked(|| states.read_one(index.into()))??)
    }

    /// Gives all states other bytes, one after the other. Parks the homes meanwhile.
    pub fn write_states(&self, states: &[u8]) -> Result<()> {
        let buffer = lock(&self.shared.states).clone();
        Ok(self.parked(|| buffer.write_first(states))??)
    }

    /// Gives one state other bytes. Parks the homes meanwhile.
    ///
    /// # Errors
    /// As [`Grid::read_state`].
    pub fn write_state(&self, index: u32, state: &[u8]) -> Result<()> {
        self.check(index)?;
        let states = lock(&self.shared.states).clone();
        Ok(self.parked(|| states.write_one(index.into(), state))??)
    }

    // Behind the states of all actors lie what these were before a message.
    fn check(&self, index: u32) -> Result<()> {
        match index < self.shared.actors {
            true => Ok(()),
            false => Err(ActorError::NoSuchActor {
                actor: format!("actor {index} in a grid of {}", self.shared.actors),
            }),
        }
    }

    /// Whether packets of a home wait to be taken out.
    pub fn drain_waits(&self, home: u32) -> bool {
        self.shared.port(home).is_some_and(Port::has_packets)
    }

    /// Whether all has been taken out of a home that it had put out when it told so ([`GridReport::put_out`](super::GridReport)).
    pub fn has_taken(&self, home: u32, put_out: u64) -> bool {
        self.shared
            .port(home)
            .is_none_or(|port| port.has_taken(put_out as u32))
    }

    /// Takes the homes off the device for good, and leaves their place to others. Gives the packets that were in the homes' boxes. No
    /// actor of the grid may be sent to any more.
    ///
    /// # Errors
    /// As [`Grid::parked`].
    pub fn retire(&self) -> Result<Vec<[u32; PACKET_WORDS]>> {
        let shared = &*self.shared;
        let actors = shared.first_actor..shared.first_actor + shared.actors;
        if let Some(bridge) = shared.commons.bridge.get() {
            // While these homes run: other devices may have much to do.
            bridge.withdraw(actors.clone())?;
        }
        let leave = || {
            shared.ended.store(true, Ordering::Relaxed);
            let homes = shared.first_home..shared.first_home + shared.homes;
            shared.commons.give_back(homes, actors.clone())
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
            self.shared.part.lose();
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

    pub(super) fn ports(&self) -> &[Port] {
        let first = self.first_home as usize;
        self.commons
            .ports
            .get(first..first + self.homes as usize)
            .unwrap_or_default()
    }

    /// The bytes of all states. The homes must be parked.
    fn states_now(&self) -> Result<Vec<u8>> {
        let states = lock(&self.states);
        let mut bytes = states.read()?;
        bytes.truncate(self.actors as usize * states.element().size() as usize);
        Ok(bytes)
    }

    /// Whether a home has told that it has left.
    pub(super) fn left(&self, home: u32) -> bool {
        self.port(home).is_none_or(|port| port.report_at(1).0[0] == 1)
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
