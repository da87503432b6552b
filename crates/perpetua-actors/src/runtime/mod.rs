//! The runtime: actors by name, on whatever backend was chosen.
//!
//! [`PerpetuaRuntime`] launches actors as [`LaunchOptions`] say and gives [`KernelHandle`]s. Below it, in the order in which a message
//! travels: `handle`, `arena` (where vectors lie), `asks` (who waits for which answer), `engine` (the contract of what runs actors), `threads` (it on the
//! CPU), `grids` (it in resident kernels) and `batched` (it where no kernel can stay), `host` (what engines call back to), `outputs` and
//! `stream`, `topics`; every engine uses `mailbox`, `outbox` and `vitals`; beside them `timer`, `core`, `supervision`, `persist` and `migrate`, and for those who look `reading` and `watched`. Nothing but
//! `open` names an engine by its type.
//!
//! ```
//! use perpetua::actors::{Backend, Context, LaunchOptions, PerpetuaRuntime, RingMessage, ring_kernel};
//! use perpetua::prelude::*;
//!
//! #[derive(Clone, Copy, GpuType, RingMessage)]
//! #[repr(C)]
//! struct Add {
//!     amount: u32,
//! }
//!
//! #[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
//! #[repr(C)]
//! struct Total {
//!     sum: u32,
//! }
//!
//! #[ring_kernel]
//! fn counter(_ctx: &mut Context, sum: &mut u32, message: Add) -> Total {
//!     *sum += message.amount;
//!     Total { sum: *sum }
//! }
//!
//! # fn main() -> Result<(), perpetua::actors::ActorError> {
//! # perpetua::device::future::block_on(async {
//! let runtime = PerpetuaRuntime::builder().backend(Backend::Cpu).build().await?;
//! let kernel = runtime.launch("counter", LaunchOptions::new(counter::handler())).await?;
//! let total: Total = kernel.ask(&Add { amount: 2 }).await?;
//! assert_eq!(total, Total { sum: 2 });
//! let total: Total = kernel.ask_blocking(&Add { amount: 3 })?; // without an executor
//! assert_eq!(total, Total { sum: 5 });
//! runtime.shutdown().await?;
//! # Ok(())
//! # })
//! # }
//! ```

mod about;
mod arena;
mod asks;
mod batched;
mod builder;
mod choice;
mod core;
mod engine;
#[cfg(target_arch = "x86_64")]
mod grids;
mod group;
mod handle;
mod host;
mod mailbox;
mod migrate;
mod moves;
mod open;
mod options;
mod outbox;
mod output;
mod outputs;
mod persist;
mod reading;
mod several;
pub mod simulation;
mod status;
mod step;
mod stream;
mod supervision;
mod threads;
mod timer;
mod topics;
mod unsent;
mod vitals;
mod watched;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use perpetua_device::BackendKind;
use perpetua_device::future::block_on;

use self::core::Core;
use self::group::Group;
use crate::broker::K2kBroker;
use crate::checkpoint::{Image, unusable};
use crate::clock::HlcClock;
use crate::dead_letters::DeadLetters;
use crate::error::{ActorError, Result};
use crate::handler::Handler;
use crate::lock::lock;
use crate::message::{ActorId, Packet, RingMessage};
use crate::pubsub::{PubSubBroker, PublishReceipt};
use crate::store::CheckpointStore;
use crate::telemetry::Reading;
use crate::topic::Topic;

pub use self::about::{BackendInfo, CpuRuntime, ShutdownReport};
pub use self::arena::ArenaUsage;
pub use self::builder::RuntimeBuilder;
pub(crate) use self::builder::Settings;
pub use self::choice::DeviceChoice;
pub use self::handle::{KernelHandle, SendOptions};
pub use self::options::{LaunchOptions, QUEUE_CAPACITY};
pub use self::output::{Borrowed, Brought, Receive, Received};
pub use self::simulation::{Simulation, TraceEvent, Traced};
pub use self::status::{ControlBlock, KernelStatus};
pub use self::stream::OutputStream;

/// Where actors run.
pub type Backend = BackendKind;

/// Runs actors. Clones are the same runtime; it ends with the last clone and the last handle, or by
/// [`PerpetuaRuntime::shutdown`], which alone waits for messages.
///
/// ```
/// # use perpetua::actors::{LaunchOptions, PerpetuaRuntime, echo};
/// let runtime = PerpetuaRuntime::builder().build_blocking()?;
/// let kernel = runtime.launch_blocking("echo", LaunchOptions::new(echo::echo::handler()))?;
/// assert_eq!(kernel.actors(), 1);
/// runtime.shutdown_blocking()?; // waits for messages
/// # Ok::<(), perpetua::actors::ActorError>(())
/// ```
/// The [module](self) has an example with a handler.
#[derive(Clone)]
pub struct PerpetuaRuntime {
    core: Arc<Core>,
}

/// The runtime by another name.
pub type RingKernel = PerpetuaRuntime;

impl PerpetuaRuntime {
    /// Builds a runtime.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// Where actors run.
    pub fn backend(&self) -> BackendInfo {
        BackendInfo {
            kind: self.core.engine.kind(),
            stays: self.core.engine.stays(),
            reaches_peers: self.core.engine.reaches_peers(),
            through_host: self.core.engine.through_host(),
        }
    }

    /// An error where the device that actors run on is lost: nothing runs there any more, and another runtime (on CUDA in another
    /// process) must go on from a checkpoint. Asks the device; may wait for a batch of messages.
    ///
    /// # Errors
    /// [`ActorError::Device`], for which [`ActorError::is_device_lost`] says yes.
    pub fn health(&self) -> Result<()> {
        self.core.engine.health()
    }

    /// Makes a handler known by its name, for launches without one, and by its path, for restored checkpoints.
    pub fn register(&self, handler: Handler) {
        lock(&self.core.names).handlers.insert(handler.path, handler);
    }

    /// Launches actors under a name.
    ///
    /// # Errors
    /// [`ActorError::NameTaken`], [`ActorError::Capacity`], [`ActorError::State`],
    /// [`ActorError::ShutDown`], or what the backend says.
    pub async fn launch(&self, name: &str, options: LaunchOptions) -> Result<KernelHandle> {
        let group = self.core.launch(name, &options)?;
        Ok(KernelHandle::new(&self.core, &group))
    }

    /// [`PerpetuaRuntime::launch`], waiting on this thread.
    ///
    /// # Errors
    /// As there.
    pub fn launch_blocking(&self, name: &str, options: LaunchOptions) -> Result<KernelHandle> {
        block_on(self.launch(name, options))
    }

    /// The actors launched under this name.
    ///
    /// # Errors
    /// [`ActorError::NoSuchActor`].
    pub fn find(&self, name: &str) -> Result<KernelHandle> {
        let group = lock(&self.core.names).groups.get(name).cloned();
        let group = group.ok_or_else(|| ActorError::NoSuchActor {
            actor: format!("`{name}`"),
        })?;
        Ok(KernelHandle::new(&self.core, &group))
    }

    /// All actors, by the order of their launches.
    pub fn kernels(&self) -> Vec<KernelHandle> {
        let names = lock(&self.core.names);
        let groups = names.numbers.values();
        groups.map(|group| KernelHandle::new(&self.core, group)).collect()
    }

    /// Writes all actors' states and all waiting messages to a file, as they stand at one moment between two messages. The actors
    /// stand still while their memory is copied, not while the file is written; senders wait meanwhile.
    ///
    /// What has been handled is in the states; what waits, in mailboxes, on its way, or for the host to receive it, is in
    /// the file. Who waits for an answer does so in this process only: the answer to a restored question is an output.
    ///
    /// # Errors
    /// [`ActorError::Io`]; the file that was there before is there still.
    pub async fn checkpoint(&self, path: impl Into<PathBuf>) -> Result<()> {
        let (core, path) = (Arc::clone(&self.core), path.into());
        if core.is_simulated() {
            return core.save(&path);
        }
        persist::aside(move || core.save(&path)).await
    }

    /// [`PerpetuaRuntime::checkpoint`] on this thread.
    ///
    /// # Errors
    /// As there.
    pub fn checkpoint_blocking(&self, path: impl AsRef<Path>) -> Result<()> {
        self.core.save(path.as_ref())
    }

    /// Launches the actors that a checkpoint holds, with their names, numbers, states and messages. Their handlers must be
    /// registered, and nothing have been launched yet.
    ///
    /// # Errors
    /// [`ActorError::Io`]; [`ActorError::Checkpoint`] where it is torn, foreign, of another version, or does not fit the handlers;
    /// nothing is launched then.
    pub async fn restore(&self, path: impl Into<PathBuf>) -> Result<Vec<KernelHandle>> {
        let (runtime, path) = (self.clone(), path.into());
        if runtime.core.is_simulated() {
            return runtime.restore_blocking(path);
        }
        persist::aside(move || runtime.restore_blocking(path)).await
    }

    /// [`PerpetuaRuntime::restore`] on this thread.
    ///
    /// # Errors
    /// As there.
    pub fn restore_blocking(&self, path: impl AsRef<Path>) -> Result<Vec<KernelHandle>> {
        let path = path.as_ref();
        self.launched(self.core.restore(&Image::read(path)?, path)?)
    }

    /// What [`PerpetuaRuntime::checkpoint`] writes, for who keeps it elsewhere than in a file.
    ///
    /// # Errors
    /// A device whose memory cannot be read.
    pub fn checkpoint_bytes(&self) -> Result<Vec<u8>> {
        Ok(self.core.image()?.to_bytes())
    }

    /// [`PerpetuaRuntime::restore`] from the bytes of a checkpoint.
    ///
    /// # Errors
    /// As there; they name the file `memory`.
    pub fn restore_bytes(&self, bytes: &[u8]) -> Result<Vec<KernelHandle>> {
        let path = Path::new("memory");
        let image = Image::from_bytes(bytes).map_err(|why| unusable(path, why))?;
        self.launched(self.core.restore(&image, path)?)
    }

    /// [`PerpetuaRuntime::checkpoint_blocking`] into a store.
    ///
    /// # Errors
    /// As there, and what the store says.
    pub fn checkpoint_to(&self, store: &dyn CheckpointStore, name: &str) -> Result<()> {
        store.save(name, &self.checkpoint_bytes()?)
    }

    /// [`PerpetuaRuntime::restore_blocking`] out of a store.
    ///
    /// # Errors
    /// As there, and what the store says.
    pub fn restore_from(&self, store: &dyn CheckpointStore, name: &str) -> Result<Vec<KernelHandle>> {
        let path = Path::new(name);
        let image = Image::from_bytes(&store.load(name)?).map_err(|why| unusable(path, why))?;
        self.launched(self.core.restore(&image, path)?)
    }

    fn launched(&self, groups: Vec<Arc<Group>>) -> Result<Vec<KernelHandle>> {
        let handles = groups.iter().map(|group| KernelHandle::new(&self.core, group));
        Ok(handles.collect())
    }

    /// Sleeps, by the runtime's time: a simulation goes on meanwhile.
    pub async fn sleep(&self, time: Duration) {
        self.core.sleep(time).await;
    }

    /// What has happened to all actors, where this is a simulation that is [traced](Simulation::traced).
    pub fn trace(&self) -> Vec<TraceEvent> {
        let simulator = self.core.host.simulator.as_ref();
        simulator.map_or_else(Vec::new, |simulator| simulator.trace())
    }

    /// The broker, by which anybody who has numbers or names can send packets to actors, with receipts. What actors send each
    /// other does not pass through it.
    pub fn k2k_broker(&self) -> Option<&Arc<K2kBroker>> {
        Some(&self.core.broker)
    }

    /// Topics: who subscribes to them, and their numbers, to which handlers publish.
    pub fn pubsub(&self) -> &Arc<PubSubBroker> {
        &self.core.host.pubsub
    }

    /// Publishes a message from the host; kept for later subscribers where `retain`.
    ///
    /// # Errors
    /// [`ActorError::Topic`]; [`ActorError::Full`] where a subscriber has no room and refuses to lose anything;
    /// [`ActorError::ShutDown`]; [`ActorError::ClockEnd`].
    pub fn publish<M: RingMessage>(&self, topic: Topic, message: &M, retain: bool) -> Result<PublishReceipt> {
        self.core.check_open()?;
        let (broker, stamp) = (self.pubsub(), self.clock().try_tick()?);
        match retain {
            true => broker.publish_retained(topic, ActorId::HOST, Packet::of(message), stamp),
            false => broker.publish(topic, ActorId::HOST, Packet::of(message), stamp),
        }
    }

    /// Messages that no handler has handled to its end.
    pub fn dead_letters(&self) -> &Arc<DeadLetters> {
        &self.core.host.dead
    }

    /// How much of the memory for messages' vectors is in use.
    pub fn arena(&self) -> ArenaUsage {
        self.core.host.arena.usage()
    }

    /// The clock that stamps all messages.
    pub fn clock(&self) -> &Arc<HlcClock> {
        &self.core.host.clock
    }

    /// What all actors do now, as those are told who look from outside. Nobody is stopped.
    pub fn reading(&self) -> Reading {
        self.core.reading()
    }

    /// Where Prometheus is told, while it is.
    #[cfg(feature = "prometheus")]
    pub fn prometheus_address(&self) -> Option<std::net::SocketAddr> {
        lock(&self.core.watched).as_ref()?.prometheus_address()
    }

    /// Why an actor without supervisor stopped all others ([`Supervision::Escalate`](crate::supervise::Supervision)), if one did.
    pub fn failure(&self) -> Option<String> {
        self.core.failure()
    }

    /// Waits until no handler runs and nothing waits for an active actor. Messages that wait for actors that are not active do not count,
    /// nor what the host has not received.
    pub async fn idle(&self) {
        self.idle_within(Duration::MAX).await;
    }

    /// The same, for at most `timeout`; says whether it came to that.
    pub async fn idle_within(&self, timeout: Duration) -> bool {
        self.core.poll_for(timeout, || self.core.engine.idle()).await
    }

    /// Takes no more messages from the host, lets active actors handle theirs, and what they send each other, then terminates all. What
    /// waits for actors that are not active is reported as dead letters.
    ///
    /// # Errors
    /// [`ActorError::ShutDown`] where that was done before.
    pub async fn shutdown(&self) -> Result<ShutdownReport> {
        let core = &self.core;
        if core.failure().is_none() {
            core.check_open()?;
        }
        core.close();
        core.host.accept_all();
        for kernel in self.kernels() {
            kernel.resume_all();
        }
        let drained = self.idle_within(core.settings.drain_timeout).await;
        for kernel in self.kernels() {
            kernel.terminate_rest();
        }
        core.engine.stop();
        core.host.timer.stop();
        core.end_watch();
        let dead_letters = core.host.dead.counts().total();
        tracing::info!(drained, dead_letters, "engine stopped");
        Ok(ShutdownReport {
            drained,
            dead_letters,
        })
    }

    /// [`PerpetuaRuntime::shutdown`], waiting on this thread.
    ///
    /// # Errors
    /// As there.
    pub fn shutdown_blocking(&self) -> Result<ShutdownReport> {
        block_on(self.shutdown())
    }
}
