//! Actors of several devices in one runtime: an engine for each device, and what its actors send to those of another. Must not know what
//! the engines are.
//!
//! Each launch lives on one device. What an actor sends to another device's actor goes there over the link between the devices, where they have one
//! (`grid/bridge.rs`); else it leaves its device as what is for the host does, and the host gives it to the other engine without waiting. Where there is no room the sender is held, as it is for a full
//! mailbox beside it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use perpetua_device::BackendKind;

use super::engine::{ActorImage, Deliver, Engine, Frozen, Refusal};
use super::group::Group;
use crate::error::{ActorError, Result};
use crate::lifecycle::ActorState;
use crate::lock::{read, write};
use crate::message::{ActorId, Packet};
use crate::telemetry::ActorMetrics;

/// The engines of a runtime's devices.
pub(crate) struct Several {
    engines: Vec<Arc<dyn Engine>>,
    /// The launches by their first actors' numbers, and the devices that they live on.
    launches: RwLock<BTreeMap<u32, (Arc<Group>, usize)>>,
    /// Packets that were to go from one device to another, or did.
    passed: AtomicU64,
    /// Those that did.
    through_host: AtomicU64,
}

impl Several {
    pub(crate) fn new(engines: Vec<Arc<dyn Engine>>) -> Several {
        Several {
            engines,
            launches: RwLock::default(),
            passed: AtomicU64::new(0),
            through_host: AtomicU64::new(0),
        }
    }

    fn first(&self) -> &dyn Engine {
        &*self.engines[0]
    }

    /// The launch that an actor belongs to, and the engine that it lives in.
    fn launch_of(&self, actor: ActorId) -> Option<(Arc<Group>, &dyn Engine)> {
        let launches = read(&self.launches);
        let (_, (group, at)) = launches.range(..=actor.0).next_back()?;
        group.has(actor).then(|| (Arc::clone(group), &*self.engines[*at]))
    }

    fn find(&self, actor: ActorId) -> Option<&dyn Engine> {
        self.launch_of(actor).map(|(_, engine)| engine)
    }

    fn known(&self, actor: ActorId) -> Result<&dyn Engine> {
        self.find(actor).ok_or_else(|| ActorError::NoSuchActor {
            actor: actor.to_string(),
        })
    }
}

/// What leads from an engine to the others.
pub(crate) trait Neighbours: Send + Sync {
    /// The launch of an actor that lives elsewhere.
    fn group_of(&self, actor: ActorId) -> Option<Arc<Group>>;

    /// Gives a packet to the engine of its destination; does not wait. As [`Engine::offer`].
    fn pass_on(&self, packet: &Packet) -> std::result::Result<u64, Refusal>;

    /// As [`Engine::has_taken_in`].
    fn has_taken_in(&self, actor: ActorId, mark: u64) -> bool;

    /// As [`Engine::returned`], for a packet whose sender lives elsewhere.
    fn returned(&self, packet: &Packet, deliver: Deliver<'_>)
    -> std::result::Result<Option<Packet>, Refusal>;

    /// Counts a message to this actor that ends before it reaches it.
    fn count_dropped(&self, actor: ActorId);
}

impl Neighbours for Several {
    fn group_of(&self, actor: ActorId) -> Option<Arc<Group>> {
        self.launch_of(actor).map(|(group, _)| group)
    }

    fn pass_on(&self, packet: &Packet) -> std::result::Result<u64, Refusal> {
        // Before it is there: who looks whether all are idle sees it either there or here.
        self.passed.fetch_add(1, Ordering::SeqCst);
        let taken = self.offer(packet)?;
        self.through_host.fetch_add(1, Ordering::Relaxed);
        Ok(taken)
    }

    fn has_taken_in(&self, actor: ActorId, mark: u64) -> bool {
        Engine::has_taken_in(self, actor, mark)
    }

    fn returned(
        &self,
        packet: &Packet,
        deliver: Deliver<'_>,
    ) -> std::result::Result<Option<Packet>, Refusal> {
        Engine::returned(self, packet, deliver)
    }

    fn count_dropped(&self, actor: ActorId) {
        Engine::count_dropped(self, actor);
    }
}

impl Engine for Several {
    fn kind(&self) -> BackendKind {
        self.first().kind()
    }

    fn health(&self) -> Result<()> {
        self.engines.iter().try_for_each(|engine| engine.health())
    }

    fn stays(&self) -> bool {
        self.first().stays()
    }

    #[cfg(target_arch = "x86_64")]
    fn reaches_peers(&self) -> bool {
        self.first().commons().is_some_and(|commons| commons.is_bridged())
    }

    fn through_host(&self) -> u64 {
        self.through_host.load(Ordering::Relaxed)
    }

    fn launch(&self, group: &Arc<Group>) -> Result<()> {
        // What a checkpoint holds may have had more devices.
        let at = group.device.min(self.engines.len() - 1);
        self.engines[at].launch(group)?;
        let mut launches = write(&self.launches);
        launches.retain(|_, (other, _)| other.gone.load(Ordering::Relaxed) < other.count);
        launches.insert(group.first.0, (Arc::clone(group), at));
        Ok(())
    }

    fn submit(&self, packet: &Packet) -> std::result::Result<(), Refusal> {
        let engine = self.find(ActorId(packet.header.destination));
        engine.ok_or(Refusal::Gone)?.submit(packet)
    }

    fn offer(&self, packet: &Packet) -> std::result::Result<u64, Refusal> {
        let engine = self.find(ActorId(packet.header.destination));
        engine.ok_or(Refusal::Gone)?.offer(packet)
    }

    fn has_taken_in(&self, actor: ActorId, mark: u64) -> bool {
        self.find(actor)
            .is_none_or(|engine| engine.has_taken_in(actor, mark))
    }

    fn returned(
        &self,
        packet: &Packet,
        deliver: Deliver<'_>,
    ) -> std::result::Result<Option<Packet>, Refusal> {
        match self.find(packet.header.sender) {
            Some(engine) => engine.returned(packet, deliver),
            None => deliver(packet),
        }
    }

    fn ask(&self, packet: &Packet, answered: &AtomicBool) -> std::result::Result<(), Refusal> {
        let engine = self.find(ActorId(packet.header.destination));
        engine.ok_or(Refusal::Gone)?.ask(packet, answered)
    }

    fn help(&self, actor: ActorId, answered: &AtomicBool) {
        if let Some(engine) = self.find(actor) {
            engine.help(actor, answered);
        }
    }

    fn life(&self, actor: ActorId) -> Option<ActorState> {
        self.find(actor)?.life(actor)
    }

    fn transition(&self, actor: ActorId, to: ActorState) -> Result<()> {
        self.known(actor)?.transition(actor, to)
    }

    fn await_lives(&self, actors: &mut dyn Iterator<Item = ActorId>) {
        for actor in actors {
            if let Some(engine) = self.find(actor) {
                engine.await_lives(&mut std::iter::once(actor));
            }
        }
    }

    fn settled(&self, actor: ActorId) -> bool {
        self.find(actor).is_none_or(|engine| engine.settled(actor))
    }

    fn remove(&self, actor: ActorId) -> Vec<Packet> {
        self.find(actor)
            .map(|engine| engine.remove(actor))
            .unwrap_or_default()
    }

    fn write_state(&self, actor: ActorId, state: &[u8]) -> Result<()> {
        self.known(actor)?.write_state(actor, state)
    }

    fn read_state(&self, actor: ActorId) -> Result<Vec<u8>> {
        self.known(actor)?.read_state(actor)
    }

    fn restore(&self, group: &Group, images: &BTreeMap<ActorId, ActorImage>) -> Result<()> {
        self.known(group.first)?.restore(group, images)
    }

    fn revive(&self, actor: ActorId, life: ActorState) {
        if let Some(engine) = self.find(actor) {
            engine.revive(actor, life);
        }
    }

    fn metrics(&self, actor: ActorId) -> Option<ActorMetrics> {
        self.find(actor)?.metrics(actor)
    }

    fn metrics_of(&self, group: &Group) -> ActorMetrics {
        let engine = self.find(group.first);
        engine.map(|engine| engine.metrics_of(group)).unwrap_or_default()
    }

    fn count_dropped(&self, actor: ActorId) {
        if let Some(engine) = self.find(actor) {
            engine.count_dropped(actor);
        }
    }

    fn silence(&self, actor: ActorId) -> Option<Duration> {
        self.find(actor)?.silence(actor)
    }

    fn resume(&self, actor: ActorId) {
        if let Some(engine) = self.find(actor) {
            engine.resume(actor);
        }
    }

    fn is_held(&self, actor: ActorId) -> bool {
        self.find(actor).is_some_and(|engine| engine.is_held(actor))
    }

    fn give_up(&self, actor: ActorId) {
        if let Some(engine) = self.find(actor) {
            engine.give_up(actor);
        }
    }

    fn enforce_limits(&self) -> Option<Duration> {
        // Each of them.
        let next: Vec<_> = self
            .engines
            .iter()
            .map(|engine| engine.enforce_limits())
            .collect();
        next.into_iter().flatten().min()
    }

    fn idle(&self) -> bool {
        // Twice: a packet may have gone from a device not yet looked at to one seen before, through the host, which counts it, or without it: then a handler
        // has run the second time.
        let passed = self.passed.load(Ordering::SeqCst);
        let look = || self.handled_if_idle();
        let first = look();
        first.is_some() && first == look() && self.passed.load(Ordering::SeqCst) == passed
    }

    fn handled_if_idle(&self) -> Option<u64> {
        self.engines.iter().map(|engine| engine.handled_if_idle()).sum()
    }

    fn freeze(&self) -> Result<Box<dyn Frozen + '_>> {
        // One after the other: what is sent to one that stands still finds no room, and is in its sender's image; what is unsent in one that
        // stands still stays there.
        let frozen = self.engines.iter().map(|engine| engine.freeze());
        Ok(Box::new(Standstill {
            engines: self,
            frozen: frozen.collect::<Result<_>>()?,
        }))
    }

    fn stop(&self) {
        self.engines.iter().for_each(|engine| engine.stop());
    }
}

/// All devices' actors stand still while this lives.
struct Standstill<'a> {
    engines: &'a Several,
    frozen: Vec<Box<dyn Frozen + 'a>>,
}

impl Frozen for Standstill<'_> {
    fn drain(&self) -> bool {
        // Each of them: what one gives back another may have to keep.
        self.frozen
            .iter()
            .fold(false, |came, frozen| frozen.drain() | came)
    }

    fn look(&mut self) -> Result<()> {
        while self.drain() {}
        self.frozen.iter_mut().try_for_each(|frozen| frozen.look())
    }

    fn image(&self, actor: ActorId) -> Option<ActorImage> {
        let launches = read(&self.engines.launches);
        let (_, (_, at)) = launches.range(..=actor.0).next_back()?;
        self.frozen[*at].image(actor)
    }
}
