//! What the runtime and all its handles share: names, the engine, the timer's jobs. Must not know any engine by its type.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::Poll;
use std::time::Duration;

use super::Settings;
use super::engine::{Engine, Refusal};
use super::group::Group;
use super::host::Host;
use super::migrate::Migrations;
use super::options::LaunchOptions;
use super::timer::Job;
use super::topics::Feeds;
use super::watched::Watched;
use crate::broker::{self, DeliveryStatus, K2kBroker, Mailbox};
use crate::dead_letters::DeadReason;
use crate::echo::echo;
use crate::error::{ActorError, Result};
use crate::handler::Handler;
use crate::lifecycle::ActorState;
use crate::lock::lock;
use crate::message::{ActorId, Kind, Packet, RingMessage};
use crate::span::BLOCK_WORD;
use crate::supervise::Supervisor;
use crate::tick::Tick;
use crate::vectors::{BlockWriter, Message};

/// Actors of a launch that are in all of its homes, whatever runs them.
pub(super) const MOST_HOMES: usize = 1024;

/// The shared part.
pub(crate) struct Core {
    pub(super) settings: Settings,
    pub(super) host: Arc<Host>,
    pub(super) engine: Arc<dyn Engine>,
    pub(super) names: Mutex<Names>,
    pub(super) migrations: Mutex<Migrations>,
    pub(super) broker: Arc<K2kBroker>,
    door: Arc<dyn Mailbox>,
    pub(super) feeds: Feeds,
    closed: AtomicBool,
    pub(super) failure: Mutex<Option<String>>,
    pub(super) supervisor: Mutex<Supervisor>,
    pub(super) watched: Mutex<Option<Watched>>,
}

/// Who is there.
#[derive(Default)]
pub(super) struct Names {
    // By their paths.
    pub(super) handlers: HashMap<&'static str, Handler>,
    pub(super) groups: HashMap<String, Arc<Group>>,
    // By the first actor's number.
    pub(super) numbers: BTreeMap<u32, Arc<Group>>,
    pub(super) next: u32,
}

impl Names {
    /// The group of an actor.
    pub(super) fn group_of(&self, actor: ActorId) -> Option<Arc<Group>> {
        let (_, group) = self.numbers.range(..=actor.0).next_back()?;
        group.has(actor).then(|| Arc::clone(group))
    }

    /// The registered handler of this name, if there is one.
    fn handler_named(&self, name: &str, backend: &'static str) -> Result<Option<Handler>> {
        let mut named = self.handlers.values().filter(|handler| handler.name == name);
        let first = named.next().copied();
        match named.next() {
            None => Ok(first),
            Some(_) => Err(ActorError::Unsupported {
                backend,
                operation: "a launch by the name of several handlers",
                remedy: "say which one: `LaunchOptions::new(module::name::handler())`",
            }),
        }
    }

    /// Enters a group under its name and numbers.
    pub(super) fn enter(&mut self, group: Group) -> Result<Arc<Group>> {
        if self.groups.contains_key(&group.name) {
            return Err(ActorError::NameTaken { name: group.name });
        }
        let group = Arc::new(group);
        self.groups.insert(group.name.clone(), Arc::clone(&group));
        self.numbers.insert(group.first.0, Arc::clone(&group));
        self.next = self.next.max(group.first.0 + group.count);
        Ok(group)
    }

    fn remove(&mut self, group: &Group) {
        self.groups.remove(&group.name);
        self.numbers.remove(&group.first.0);
    }
}

impl Core {
    pub(super) fn new(settings: Settings, host: Arc<Host>, engine: Arc<dyn Engine>) -> Result<Arc<Core>> {
        let broker = K2kBroker::new(Arc::clone(&host.clock), Arc::clone(&host.dead));
        let core = Arc::new(Core {
            settings,
            host: Arc::clone(&host),
            door: Arc::new(Door(Arc::clone(&engine))),
            feeds: Feeds::new(&host, &engine),
            engine,
            names: Mutex::default(),
            migrations: Mutex::default(),
            broker: Arc::new(broker),
            closed: AtomicBool::new(false),
            failure: Mutex::default(),
            supervisor: Mutex::default(),
            watched: Mutex::default(),
        });
        let weak = Arc::downgrade(&core);
        host.pubsub.set_owner(move |subscription| match weak.upgrade() {
            Some(core) => core.feeds.attach(subscription),
            None => Err(ActorError::ShutDown),
        });
        *lock(&core.watched) = Some(Watched::begin(&core.settings, {
            let weak = Arc::downgrade(&core);
            move || Some(weak.upgrade()?.reading())
        })?);
        host.timer.add(host.time.now(), Job::Redeliver);
        if host.simulator.is_some() {
            return Ok(core);
        }
        let weak = Arc::downgrade(&core);
        std::thread::Builder::new()
            .name("perpetua-timer".into())
            .spawn(move || keep_time(&host, &weak))
            .map_err(|source| ActorError::Io {
                path: "the timer's thread".into(),
                source,
            })?;
        Ok(core)
    }

    /// Nobody looks any more.
    pub(super) fn end_watch(&self) {
        // An observer may be reading now, under no lock.
        let watched = lock(&self.watched).take();
        drop(watched);
    }

    /// An error once the runtime is shut down, or has failed.
    pub(super) fn check_open(&self) -> Result<()> {
        if !self.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(match self.failure() {
            Some(fault) => ActorError::Faulted {
                actor: "an actor without supervisor".into(),
                fault,
            },
            None => ActorError::ShutDown,
        })
    }

    /// The error of a lost device, where that is why nothing comes: batches tell their callers themselves.
    pub(super) fn lost(&self) -> Option<ActorError> {
        let failed = self.engine.stays().then(|| self.engine.health().err())?;
        failed.filter(ActorError::is_device_lost)
    }

    /// Why the runtime failed, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        lock(&self.failure).clone()
    }

    /// Takes nothing any more.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(super) fn launch(&self, name: &str, options: &LaunchOptions) -> Result<Arc<Group>> {
        let _span = tracing::debug_span!("launch", actor = name).entered();
        self.check_open()?;
        let mut names = lock(&self.names);
        let handler = match options.handler() {
            Some(handler) => Some(handler),
            None => names.handler_named(name, self.engine.kind().name())?,
        };
        let handler = handler.unwrap_or_else(echo::handler);
        let mut group = options.group(name, handler)?;
        let devices = 1 + self.settings.more_devices.len();
        if group.device >= devices {
            return Err(ActorError::NoSuchDevice {
                actor: format!("`{name}`"),
                device: group.device,
                devices,
            });
        }
        group.first = ActorId(names.next);
        // The host's number is the last.
        if u32::MAX - names.next <= group.count {
            return Err(ActorError::NoSuchActor {
                actor: "actor number left".into(),
            });
        }
        names.handlers.entry(handler.path).or_insert(handler);
        let group = names.enter(group)?;
        group.telemetry.since.get_or_init(|| self.host.time.now());
        if let Err(error) = self.engine.launch(&group) {
            names.remove(&group);
            return Err(error);
        }
        drop(names);
        if let Err(error) = self.open_doors(&group) {
            // One of its actors has the name that another was launched under.
            for actor in group.actors() {
                self.transition(&group, actor, ActorState::Terminated)?;
                self.remove(&group, actor);
            }
            return Err(error);
        }
        if options.auto_activates() {
            for actor in group.actors() {
                self.engine.transition(actor, ActorState::Active)?;
            }
            // Actors are dealt to homes in turn: the first ones are in all of them.
            self.engine.await_lives(&mut group.actors().take(MOST_HOMES));
        }
        self.start_ticks(&group);
        tracing::debug!(
            first = group.first.0,
            actors = group.count,
            handler = handler.name,
            active = options.auto_activates(),
            "launched"
        );
        Ok(group)
    }

    /// Lets the broker reach the actors of a group.
    pub(super) fn open_doors(&self, group: &Group) -> Result<()> {
        group.actors().try_for_each(|actor| {
            self.broker
                .register(actor, &group.member(actor), Arc::clone(&self.door))
        })
    }

    /// Begins a group's ticks, where it has them; and the watch over its handlers' time.
    pub(super) fn start_ticks(&self, group: &Arc<Group>) {
        if let Some(period) = group.tick {
            let at = self.host.time.now() + period;
            self.host.timer.add(at, Job::Tick(Arc::clone(group), 0));
        }
        if let Some(limit) = group.run_limit {
            self.host.timer.add(self.host.time.now() + limit / 4, Job::Limits);
        }
    }

    /// Where in its life an actor is.
    pub(super) fn life(&self, actor: ActorId) -> ActorState {
        self.engine.life(actor).unwrap_or(ActorState::Terminated)
    }

    /// Moves an actor on.
    pub(super) fn transition(&self, group: &Group, actor: ActorId, to: ActorState) -> Result<()> {
        match self.engine.transition(actor, to) {
            Err(ActorError::NoSuchActor { .. }) => {
                return ActorState::Terminated.check_move(to, &group.title(actor));
            }
            other => other?,
        }
        match to {
            ActorState::Active => tracing::debug!(actor = group.member(actor), "activated"),
            ActorState::Deactivated => tracing::debug!(actor = group.member(actor), "deactivated"),
            ActorState::Terminated => tracing::debug!(actor = group.member(actor), "terminated"),
            _ => {}
        }
        Ok(())
    }

    /// Takes a terminated, settled actor away; what it has not handled is reported.
    pub(super) fn remove(&self, group: &Group, actor: ActorId) {
        // First: what is published from now on is not for it.
        self.feeds.unsubscribe(group, actor);
        for packet in self.engine.remove(actor) {
            let reason = match self.closed.load(Ordering::Acquire) {
                true => DeadReason::ShutDown,
                false => DeadReason::Terminated,
            };
            self.host.undelivered(group, &packet, reason);
        }
        self.host.forget(actor);
        // SeqCst: either this sees that the last handle is gone, or that one sees that an actor has left.
        group.any_left.store(true, Ordering::SeqCst);
        if group.handles.load(Ordering::SeqCst) == 0 {
            self.host.give_up_outputs(group, actor);
        }
        self.broker.unregister(actor);
        lock(&self.supervisor).forget(actor);
        // Relaxed: an actor that is gone stays gone, so any value that was stored holds.
        let mut gone = group.gone.load(Ordering::Relaxed);
        while gone < group.count && self.engine.life(ActorId(group.first.0 + gone)).is_none() {
            gone += 1;
        }
        group.gone.store(gone, Ordering::Relaxed);
        if gone == group.count {
            lock(&self.names).remove(group);
        }
    }

    /// Sleeps, without a thread of its own.
    pub(super) async fn sleep(&self, time: Duration) {
        let at = self.host.time.now() + time;
        let mut planned = false;
        std::future::poll_fn(|cx| {
            if self.host.time.now() >= at || self.host.timer.is_stopped() {
                return Poll::Ready(());
            }
            if !planned || !self.is_simulated() {
                self.host.timer.add(at, Job::Wake(cx.waker().clone()));
                planned = true;
            }
            self.step_for(cx.waker());
            Poll::Pending
        })
        .await;
    }

    /// Waits until `done`, for at most `timeout`, looking ever more seldom; says whether it came.
    pub(super) async fn poll_for(&self, timeout: Duration, done: impl Fn() -> bool) -> bool {
        let began = self.host.time.now();
        let mut wait = Duration::from_micros(20);
        loop {
            if done() {
                return true;
            }
            if self.host.time.since(began) >= timeout {
                return false;
            }
            self.sleep(wait).await;
            wait = (wait * 2).min(Duration::from_millis(5));
        }
    }

    /// Waits until no handler of this actor runs.
    pub(super) async fn settle(&self, actor: ActorId) {
        self.poll_for(Duration::MAX, || self.engine.settled(actor)).await;
    }

    /// A message for this actor, as it travels, its vectors in the arena.
    pub(super) fn packet<M: Message>(
        &self,
        group: &Group,
        actor: ActorId,
        message: &M,
        kind: Kind,
    ) -> Result<Packet> {
        let mut packet = self.load(group, message)?;
        packet.header.destination = actor.0;
        packet.header.sent = self.host.now()?;
        packet.header.kind = kind;
        packet.header.deadline = group.deadline.map_or(0, deadline_micros);
        Ok(packet)
    }

    // Writes a message's vectors into a block of their own, with the room that the handler wants.
    fn load<M: Message>(&self, group: &Group, message: &M) -> Result<Packet> {
        let vectors = message.vector_words();
        let room = match <M::View as RingMessage>::WORDS <= BLOCK_WORD {
            true => group.room(<M::View as RingMessage>::TYPE_ID) as usize,
            false => 0,
        };
        if vectors.is_none() && room == 0 {
            return Ok(Packet::of(&message.store(&mut BlockWriter::new(&mut []))));
        }
        let mut lease = self.host.arena.alloc(vectors.unwrap_or(0) + room)?;
        let mut writer = BlockWriter::new(lease.data_mut());
        let view = message.store(&mut writer);
        let used = writer.finish();
        lease.set_used(used);
        let mut packet = Packet::of(&view);
        lease.keep().attach(&mut packet);
        Ok(packet)
    }

    /// The error that a refusal is.
    pub(super) fn refused(&self, group: &Group, actor: ActorId, refusal: Refusal) -> ActorError {
        let name = group.title(actor);
        match refusal {
            Refusal::Full => ActorError::Full {
                actor: name,
                capacity: group.capacity,
            },
            Refusal::Gone => match self.check_open() {
                Err(error) => error,
                Ok(()) => ActorError::Terminated { actor: name },
            },
        }
    }

    pub(super) fn do_job(&self, job: Job) {
        match job {
            Job::Faulted(group, actor) => self.supervise(&group, actor),
            Job::Restart(group, actor) => {
                if self.life(actor) == ActorState::Faulted
                    && let Err(error) = self.go_on(&group, actor)
                {
                    tracing::error!(actor = %group.title(actor), %error, "no restart");
                }
            }
            Job::GiveUp(actor) => self.engine.give_up(actor),
            Job::Tick(group, number) => self.tick(&group, number),
            Job::Asks => {
                let next = self.host.asks.wake_late(self.host.time.now());
                self.host.timer.looked_at_asks(next);
            }
            Job::Limits => {
                if let Some(after) = self.engine.enforce_limits() {
                    self.host.timer.add(self.host.time.now() + after, Job::Limits);
                }
            }
            Job::Do(what) => what(),
            Job::Redeliver => self.host.redeliver(),
            Job::Resume(actor) => self.engine.resume(actor),
            Job::Wake(waker) => waker.wake(),
        }
    }

    fn tick(&self, group: &Arc<Group>, number: u64) {
        let Some(period) = group.tick else {
            return;
        };
        let mut any = false;
        for actor in group.actors() {
            let life = self.engine.life(actor);
            any |= life.is_some();
            if life == Some(ActorState::Active) && self.check_open().is_ok() {
                let packet = match self.packet(group, actor, &Tick { number }, Kind::Message) {
                    Ok(packet) => packet,
                    Err(error) => {
                        tracing::debug!(actor = %group.title(actor), %error, "no room for a tick");
                        continue;
                    }
                };
                if let Err(refusal) = self.engine.submit(&packet) {
                    self.host.arena.release(&packet);
                    tracing::debug!(actor = %group.title(actor), ?refusal, "no tick");
                }
            }
        }
        if any {
            let job = Job::Tick(Arc::clone(group), number + 1);
            self.host.timer.add(self.host.time.now() + period, job);
        }
    }
}

/// How the broker reaches actors.
struct Door(Arc<dyn Engine>);

impl Mailbox for Door {
    fn deliver(&self, packet: Packet) -> DeliveryStatus {
        match self.0.submit(&packet) {
            Ok(()) => DeliveryStatus::Queued,
            Err(Refusal::Full) => DeliveryStatus::Refused(broker::Refusal::Full),
            Err(Refusal::Gone) => DeliveryStatus::Refused(broker::Refusal::Terminated),
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.engine.stop();
        self.host.timer.stop();
    }
}

/// Whole microseconds, at least one.
pub(super) fn deadline_micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX).max(1)
}

fn keep_time(host: &Host, core: &Weak<Core>) {
    while !host.timer.is_stopped() {
        let job = host.timer.next();
        let Some(core) = core.upgrade() else {
            return;
        };
        if let Some(job) = job {
            core.do_job(job);
        }
    }
}
