//! Which backends there are and which one to take. The only file outside the backends' folders that names them: each is
//! one line of a table. Crates outside bring theirs at run time ([`register_backend`]).

use std::sync::RwLock;

use crate::backend::{GpuBackend, failed};
use crate::device::{Device, DeviceIndex};
use crate::error::{Error, Result};
use crate::future::BoxFuture;
use crate::info::{AdapterType, BackendKind};

/// Looks for a backend of the kind; an error says why it cannot be had.
pub type OpenBackend = fn(BackendKind) -> BoxFuture<'static, Result<Box<dyn GpuBackend>>>;

/// A backend as it takes part in the choice.
#[derive(Clone, Copy, Debug)]
pub struct BackendEntry {
    /// What it is chosen by.
    pub kind: BackendKind,
    /// Its place in automatic choice, lower ones first (CUDA 10, Metal 20, wgpu 30, CPU 40). `None`: taken by its name only.
    pub order: Option<u32>,
    /// Whether one of its devices that is a processor emulates a GPU: automatic choice takes that when there is nothing else.
    pub emulates: bool,
    /// Looks for it.
    pub open: OpenBackend,
}

impl BackendEntry {
    /// One that this program was built without; its Cargo feature has its name.
    #[allow(dead_code, reason = "a program may be built with all of them")]
    const fn not_built(kind: BackendKind, order: u32) -> BackendEntry {
        BackendEntry {
            kind,
            order: Some(order),
            emulates: false,
            open: |backend| {
                failed(Error::FeatureNotBuilt {
                    backend,
                    feature: backend.name(),
                })
            },
        }
    }
}

/// The backends of this crate.
const BUILT_IN: &[BackendEntry] = &[
    #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
    crate::cuda::ENTRY,
    #[cfg(not(all(feature = "cuda", not(target_arch = "wasm32"))))]
    BackendEntry::not_built(BackendKind::Cuda, 10),
    METAL,
    #[cfg(feature = "wgpu")]
    crate::wgpu::ENTRY,
    #[cfg(not(feature = "wgpu"))]
    BackendEntry::not_built(BackendKind::Wgpu, 30),
    #[cfg(feature = "cpu")]
    crate::cpu::ENTRY,
    #[cfg(not(feature = "cpu"))]
    BackendEntry::not_built(BackendKind::Cpu, 40),
    crate::null::ENTRY,
];

/// There is none yet; the entry says so.
const METAL: BackendEntry = BackendEntry {
    kind: BackendKind::Metal,
    order: Some(20),
    emulates: false,
    open: |backend| {
        failed(if cfg!(target_vendor = "apple") {
            Error::Unsupported {
                backend,
                operation: "run kernels natively",
                remedy: "use wgpu, which drives Apple GPUs",
            }
        } else {
            Error::PlatformUnsupported {
                backend,
                available_on: "Apple platforms",
                platform: format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH),
            }
        })
    },
};

/// Those of other crates.
static REGISTERED: RwLock<Vec<BackendEntry>> = RwLock::new(Vec::new());

/// Every backend: in the order of automatic choice, then those that are taken by name only.
pub fn backends() -> Vec<BackendEntry> {
    let registered = REGISTERED.read().unwrap_or_else(|e| e.into_inner());
    let mut all: Vec<BackendEntry> = BUILT_IN.iter().chain(&*registered).copied().collect();
    // Stable: of one place, the one that was there first.
    all.sort_by_key(|entry| entry.order.unwrap_or(u32::MAX));
    all
}

/// Adds a backend of another crate, for this process. From then on its kind, which is best a [`BackendKind::Other`], opens it by value
/// and by name, and automatic choice considers it in its place.
///
/// ```
/// use perpetua_device::{BackendEntry, BackendKind, Device, GpuBackend, NullBackend, future, register_backend};
/// // Stands for a backend of one's own.
/// const MINE: BackendEntry = BackendEntry {
///     kind: BackendKind::Other("mine"),
///     order: None,
///     emulates: false,
///     open: |_| future::ready(Ok(Box::new(NullBackend) as Box<dyn GpuBackend>)),
/// };
/// register_backend(MINE)?;
/// let device = Device::new(BackendKind::Other("mine"), 0)?;
/// assert_eq!(BackendKind::from_name("mine"), Some(MINE.kind));
/// # drop(device);
/// # Ok::<(), perpetua_device::Error>(())
/// ```
///
/// # Errors
/// [`Error::BackendName`] when the name is not one, or is another's but for upper and lower case; `auto` is.
pub fn register_backend(entry: BackendEntry) -> Result<()> {
    let mut registered = REGISTERED.write().unwrap_or_else(|e| e.into_inner());
    let name = entry.kind.name();
    let refused = |cause: String| Err(Error::BackendName { name, cause });
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(is_of_name) {
        return refused("a name is made of ASCII letters, digits, `-` and `_`".into());
    }
    let known = BUILT_IN.iter().chain(&*registered).map(|known| known.kind);
    match known
        .chain([BackendKind::Auto])
        .find(|known| known.name().eq_ignore_ascii_case(name))
    {
        Some(known) => refused(format!("there is one of this name, `{}`", known.name())),
        None => {
            registered.push(entry);
            Ok(())
        }
    }
}

/// The names of all backends, for people.
fn names() -> String {
    let quoted = |entry: BackendEntry| format!("`{}`", entry.kind.name());
    backends().into_iter().map(quoted).collect::<Vec<_>>().join(", ")
}

impl BackendKind {
    /// The kind called `name` (as [`BackendKind::name`]), if there is one: `auto`, or one of [`backends`].
    pub fn from_name(name: &str) -> Option<BackendKind> {
        backends()
            .into_iter()
            .map(|entry| entry.kind)
            .chain([BackendKind::Auto])
            .find(|kind| kind.name() == name)
    }
}

/// The backend `kind`, or for [`BackendKind::Auto`] the best one: see [`select_backend`]. An explicit choice that cannot be had is an
/// error that says what was looked for.
pub async fn open_backend(kind: BackendKind) -> Result<Box<dyn GpuBackend>> {
    if kind == BackendKind::Auto {
        return select_backend_async().await;
    }
    match backends().into_iter().find(|entry| entry.kind == kind) {
        Some(entry) => (entry.open)(kind).await,
        None => Err(Error::UnknownBackend {
            backend: kind,
            known: names(),
        }),
    }
}

/// The best backend that has a device: CUDA, Metal, wgpu, CPU, in this order, and registered ones in their places. wgpu with nothing but
/// software adapters comes after the CPU.
pub async fn select_backend_async() -> Result<Box<dyn GpuBackend>> {
    let mut tried = Tried::default();
    for entry in candidates() {
        match tried.open(&entry).await {
            Some(backend) if entry.is_emulated(&*backend) => tried.software(backend),
            Some(backend) => return Ok(backend),
            None => {}
        }
    }
    tried.software.take().ok_or_else(|| tried.none())
}

/// What automatic choice considers, in its order.
fn candidates() -> impl Iterator<Item = BackendEntry> {
    backends().into_iter().filter(|entry| entry.order.is_some())
}

impl BackendEntry {
    fn is_emulated(&self, backend: &dyn GpuBackend) -> bool {
        self.emulates && backend.device_info(0).map(|i| i.adapter_type) == Ok(AdapterType::Cpu)
    }
}

// What automatic choice has seen so far.
#[derive(Default)]
struct Tried {
    // Why each backend was not taken.
    reasons: Vec<(BackendKind, String)>,
    // A GPU API with a software adapter only: slower than the CPU backend, better than nothing.
    software: Option<Box<dyn GpuBackend>>,
}

impl Tried {
    // The backend, if it can be had and has a device.
    async fn open(&mut self, entry: &BackendEntry) -> Option<Box<dyn GpuBackend>> {
        match (entry.open)(entry.kind).await {
            Ok(backend) if backend.device_count() > 0 => return Some(backend),
            Ok(_) => self.reasons.push((entry.kind, Error::NoDevice.to_string())),
            Err(error) => self.reasons.push((entry.kind, error.to_string())),
        }
        None
    }

    fn software(&mut self, backend: Box<dyn GpuBackend>) {
        self.software.get_or_insert(backend);
    }

    fn none(self) -> Error {
        Error::NoBackendAvailable { tried: self.reasons }
    }
}

/// [`select_backend_async`], waiting on this thread.
pub fn select_backend() -> Result<Box<dyn GpuBackend>> {
    #[cfg(not(target_arch = "wasm32"))]
    return crate::future::block_on(select_backend_async());
    #[cfg(target_arch = "wasm32")]
    crate::future::now_or_cannot_block(select_backend_async(), "choosing a backend")
}

/// Opens a device: of the given backend, or for [`BackendKind::Auto`] of the first candidate that opens.
pub(crate) async fn open(kind: BackendKind, DeviceIndex(index): DeviceIndex) -> Result<Device> {
    if kind != BackendKind::Auto {
        let backend = open_backend(kind).await?;
        return Ok(Device::from_context(backend.create_context(index).await?));
    }
    let mut tried = Tried::default();
    for entry in candidates() {
        match tried.open(&entry).await {
            Some(backend) if entry.is_emulated(&*backend) => tried.software(backend),
            Some(backend) => match backend.create_context(index).await {
                Ok(context) => return Ok(Device::from_context(context)),
                Err(error) => tried.reasons.push((entry.kind, error.to_string())),
            },
            None => {}
        }
    }
    if let Some(backend) = tried.software.take() {
        return Ok(Device::from_context(backend.create_context(index).await?));
    }
    Err(tried.none())
}
