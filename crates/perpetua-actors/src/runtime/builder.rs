//! How a runtime is built: what can be said about it, and its defaults. Must not know engines.

use std::sync::Arc;
use std::time::Duration;

use perpetua_device::future::block_on;

use super::choice::DeviceChoice;
use super::core::Core;
use super::host::Host;
use super::open::open_engine;
use super::simulation::Simulation;
use super::{Backend, PerpetuaRuntime};
#[cfg(doc)]
use crate::error::ActorError;
use crate::error::Result;
use crate::pubsub::PubSubConfig;

/// How a runtime is built.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(super) backend: Backend,
    /// Which of the backend's devices.
    pub(super) device: DeviceChoice,
    /// Those beside it.
    pub(super) more_devices: Vec<DeviceChoice>,
    pub(super) peer_memory: bool,
    /// Handlers run as kernels over batches of messages, whatever the backend.
    pub(super) in_batches: bool,
    /// Handlers run in kernels that stay, whatever the backend.
    pub(super) resident: bool,
    /// Worker threads; 0: as many as the machine runs at once.
    pub(super) threads: usize,
    /// Actors that a device has room for.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(dead_code, reason = "no device keeps actors there")
    )]
    pub(super) device_actors: u32,
    /// For how long what an actor sends may find no room.
    pub(super) patience: Duration,
    pub(super) ask_timeout: Duration,
    pub(super) drain_timeout: Duration,
    pub(super) dead_letters: usize,
    /// Memory for messages' vectors.
    pub(super) arena_bytes: usize,
    pub(super) pubsub: PubSubConfig,
    /// Whose the runtime's clock is; else a random number.
    pub(super) clock_node: Option<u64>,
    /// Everything runs on the threads of those who wait, in an order that follows from a seed.
    pub(super) simulation: Option<Simulation>,
    /// What to call the runtime, and the process, to those who may look at it.
    pub(super) observable: Option<String>,
    #[cfg(feature = "prometheus")]
    pub(super) prometheus: Option<String>,
}

/// Builds a runtime.
///
/// ```
/// use perpetua::actors::{Backend, PerpetuaRuntime};
/// use std::time::Duration;
/// let runtime = PerpetuaRuntime::builder()
///     .backend(Backend::Cpu)
///     .threads(2)
///     .ask_timeout(Duration::from_secs(1))
///     .arena_bytes(1 << 20)
///     .build_blocking()?;
/// let report = runtime.shutdown_blocking()?;
/// println!("{report:?}");
/// # Ok::<(), perpetua::actors::ActorError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct RuntimeBuilder {
    pub(super) settings: Settings,
}

impl Default for RuntimeBuilder {
    fn default() -> RuntimeBuilder {
        RuntimeBuilder {
            settings: Settings {
                backend: Backend::Cpu,
                device: DeviceChoice::Number(0),
                more_devices: Vec::new(),
                peer_memory: true,
                in_batches: false,
                resident: false,
                threads: 0,
                device_actors: 65_536,
                patience: Duration::from_secs(1),
                ask_timeout: Duration::from_secs(5),
                drain_timeout: Duration::from_secs(30),
                dead_letters: 4096,
                arena_bytes: 16 << 20,
                pubsub: PubSubConfig::default(),
                clock_node: None,
                simulation: None,
                observable: None,
                #[cfg(feature = "prometheus")]
                prometheus: None,
            },
        }
    }
}

impl RuntimeBuilder {
    /// Where actors run; on the CPU unless said otherwise. `Auto`: on CUDA, where handlers can stay on a device, else on the CPU.
    pub fn backend(mut self, backend: Backend) -> RuntimeBuilder {
        self.settings.backend = backend;
        self
    }

    /// On which of the backend's devices, the first unless said otherwise; or on a device that is open, and on its backend.
    pub fn device(mut self, device: impl Into<DeviceChoice>) -> RuntimeBuilder {
        self.settings.device = device.into();
        if let DeviceChoice::Open(device) = &self.settings.device {
            self.settings.backend = device.backend();
        }
        self
    }

    /// One device more, for launches that say so ([`LaunchOptions::on_device`](super::LaunchOptions::on_device)): the first that is given so is
    /// number 1. It may be open, and of another backend.
    ///
    /// Actors of all devices reach each other by their numbers: over the link between GPUs that reach each other's memory
    /// ([`RuntimeBuilder::peer_memory`]), else through the host, which takes about as long as a message to it and one from it. Where kernels stay on devices, messages with vectors
    /// are for actors of devices of the first one's backend, since the vectors' memory is mapped into those.
    pub fn and_device(mut self, device: impl Into<DeviceChoice>) -> RuntimeBuilder {
        self.settings.more_devices.push(device.into());
        self
    }

    /// Handlers run as kernels over batches of messages, as they do where no kernel can stay. On the CPU that is the
    /// interpreter: slow, and what all others are measured against.
    pub fn in_batches(mut self) -> RuntimeBuilder {
        self.settings.in_batches = true;
        self
    }

    /// Handlers run in kernels that stay, as they do on CUDA. On the CPU that is the interpreter: slow, and how programs for GPUs are
    /// tried without one.
    pub fn resident(mut self) -> RuntimeBuilder {
        self.settings.resident = true;
        self
    }

    /// Worker threads of the CPU; 0: as many as the machine runs at once.
    pub fn threads(mut self, threads: usize) -> RuntimeBuilder {
        self.settings.threads = threads;
        self
    }

    /// Whether actors of several devices put what they send each other into the other device's memory, where the driver lets devices reach each other's; they do unless said
    /// otherwise here. Else, and where handlers do not stay on devices, it goes through the host. What is guaranteed is the same.
    pub fn peer_memory(mut self, wanted: bool) -> RuntimeBuilder {
        self.settings.peer_memory = wanted;
        self
    }

    /// Actors that a device has room for, 65,536 unless said otherwise: each takes 36 bytes there beside its state.
    pub fn device_actors(mut self, actors: u32) -> RuntimeBuilder {
        self.settings.device_actors = actors;
        self
    }

    /// How long an answer is waited for where nothing else is said.
    pub fn ask_timeout(mut self, timeout: Duration) -> RuntimeBuilder {
        self.settings.ask_timeout = timeout;
        self
    }

    /// For how long what an actor has sent may find its destination full, before it becomes a dead letter. Meanwhile the actor
    /// handles nothing.
    pub fn patience(mut self, patience: Duration) -> RuntimeBuilder {
        self.settings.patience = patience;
        self
    }

    /// How long a shutdown waits for messages to be handled.
    pub fn drain_timeout(mut self, timeout: Duration) -> RuntimeBuilder {
        self.settings.drain_timeout = timeout;
        self
    }

    /// How many dead letters are kept, the newest; all are counted.
    pub fn dead_letters(mut self, letters: usize) -> RuntimeBuilder {
        self.settings.dead_letters = letters;
        self
    }

    /// Bytes for the vectors of all messages that are on their way, wait, or are read; 16 MiB unless said otherwise. Taken at first use.
    pub fn arena_bytes(mut self, bytes: usize) -> RuntimeBuilder {
        self.settings.arena_bytes = bytes;
        self
    }

    /// How many topics and subscriptions there may be, and what subscriptions are like that do not say.
    pub fn pubsub(mut self, config: PubSubConfig) -> RuntimeBuilder {
        self.settings.pubsub = config;
        self
    }

    /// The number that tells the runtime's clock from others in its stamps; a random one unless said here.
    pub fn clock_node(mut self, node: u64) -> RuntimeBuilder {
        self.settings.clock_node = Some(node);
        self
    }

    /// Runs the whole system on the thread that waits for it, in an order, at a time and with faults that follow from a seed: the same seed, the same
    /// run. Time is simulated: an hour takes a tenth of a second and its handlers. See [`simulation`](super::simulation).
    pub fn simulated(mut self, simulation: impl Into<Simulation>) -> RuntimeBuilder {
        self.settings.simulation = Some(simulation.into());
        self
    }

    /// Lets `perpetua top` look at this process, under this name, until the runtime is shut down
    /// ([`observe`](crate::telemetry::observe)). `PERPETUA_TOP=1` does so without a word in the program.
    pub fn observable(mut self, name: impl Into<String>) -> RuntimeBuilder {
        self.settings.observable = Some(name.into());
        self
    }

    /// Tells Prometheus what all actors of this process do, at `http://ADDRESS/metrics`, until the runtime is shut down: `127.0.0.1:9464`,
    /// or port 0 for one that is free ([`PerpetuaRuntime::prometheus_address`]).
    /// [`exposition`](crate::telemetry::exposition) says what there is. Building the runtime fails where the address cannot be had.
    #[cfg(feature = "prometheus")]
    pub fn prometheus(mut self, address: impl Into<String>) -> RuntimeBuilder {
        self.settings.prometheus = Some(address.into());
        self
    }

    /// The runtime.
    ///
    /// # Errors
    /// What the backend lacks; [`ActorError::Observe`] where it cannot be looked at as asked.
    pub async fn build(self) -> Result<PerpetuaRuntime> {
        let host = Arc::new(Host::new(&self.settings));
        let engine = open_engine(&host, &self.settings)?;
        let core = Core::new(self.settings, host, engine)?;
        tracing::info!(
            backend = %core.engine.kind(),
            stays = core.engine.stays(),
            "engine started"
        );
        Ok(PerpetuaRuntime { core })
    }

    /// [`RuntimeBuilder::build`], waiting on this thread.
    ///
    /// # Errors
    /// As there.
    pub fn build_blocking(self) -> Result<PerpetuaRuntime> {
        block_on(self.build())
    }
}
