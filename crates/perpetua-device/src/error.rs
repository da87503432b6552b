//! What can go wrong, as data; text lives only in `Display`. Must not know any backend's types.

use perpetua_cpu::interp::Race;
use perpetua_ir::back::RenderError;
use perpetua_ir::fault::Fault;

use crate::info::BackendKind;

/// Result of the device layer.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the device layer: the operation, the values, the cause, the remedy.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Automatic choice found no usable backend.
    #[error("no backend is available: {}", tried_text(.tried))]
    NoBackendAvailable {
        /// Each backend that was tried, with why it was not taken.
        tried: Vec<(BackendKind, String)>,
    },
    /// A backend can be had, but has no device; backends of other crates may say so when they are opened.
    #[error("it has no device")]
    NoDevice,
    /// The program was built without a backend.
    #[error(
        "{backend} backend requires the feature `{feature}`, which this program was built without: add `features = [\"{feature}\"]` to the perpetua dependency"
    )]
    FeatureNotBuilt {
        /// The backend.
        backend: BackendKind,
        /// Its Cargo feature.
        feature: &'static str,
    },
    /// The backend does not exist on this platform.
    #[error("{backend} backend is only available on {available_on}; this is {platform}")]
    PlatformUnsupported {
        /// The backend.
        backend: BackendKind,
        /// Where it exists.
        available_on: &'static str,
        /// This platform.
        platform: String,
    },
    /// A driver or loader library is missing.
    #[error("{backend} driver not found: looked for {looked_for}; {remedy}")]
    DriverNotFound {
        /// The backend.
        backend: BackendKind,
        /// Files or libraries that were looked for.
        looked_for: String,
        /// What to do.
        remedy: String,
    },
    /// There is no device with this index.
    #[error("{backend} device {index} not found: looked for {looked_for}, found {count}; {remedy}")]
    DeviceNotFound {
        /// The backend.
        backend: BackendKind,
        /// Index asked for.
        index: usize,
        /// Number of devices that are there.
        count: usize,
        /// What was looked for.
        looked_for: String,
        /// What to do.
        remedy: String,
    },
    /// The device is too old.
    #[error("{backend} device `{device}` is too old: it has {found}, at least {needed} is needed")]
    DeviceTooOld {
        /// The backend.
        backend: BackendKind,
        /// Device's name.
        device: String,
        /// What it has, as `compute capability 6.1`.
        found: String,
        /// What is needed, as `compute capability 7.0`.
        needed: String,
    },
    /// The driver is too old.
    #[error("{backend} driver is too old: it is {found}, at least {needed} is needed; update the driver")]
    DriverTooOld {
        /// The backend.
        backend: BackendKind,
        /// Version found.
        found: String,
        /// Version needed.
        needed: String,
    },
    /// Not enough memory.
    #[error(
        "{backend} is out of {memory} memory: {requested} bytes asked for, {} free of {}; drop buffers, trim the pool, or work in smaller parts",
        count_text(.free), count_text(.total)
    )]
    OutOfMemory {
        /// The backend.
        backend: BackendKind,
        /// `device`, `pinned` or `mapped`.
        memory: crate::ptr::MemoryKind,
        /// Bytes asked for.
        requested: u64,
        /// Bytes free, where known.
        free: Option<u64>,
        /// Bytes in all, where known.
        total: Option<u64>,
    },
    /// A launch has too few or too many arguments.
    #[error("kernel `{signature}` takes {expected} arguments, {given} given")]
    ArgumentCount {
        /// The kernel's signature.
        signature: String,
        /// Number of parameters.
        expected: usize,
        /// Number of arguments.
        given: usize,
    },
    /// An argument is of the wrong kind or type.
    #[error("argument {index} of kernel `{kernel}` is {given}, but the parameter is `{parameter}`: {remedy}")]
    ArgumentMismatch {
        /// The kernel.
        kernel: String,
        /// Position, from 0.
        index: usize,
        /// The parameter, as in Rust.
        parameter: String,
        /// What was given.
        given: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Memory, stream, event, kernel or graph of another device.
    #[error(
        "{operation}: {subject} belongs to another device; use things of one device together, copy through the host between two"
    )]
    WrongDevice {
        /// What was tried.
        operation: &'static str,
        /// `source buffer`, `argument 2`, `event`, …
        subject: String,
    },
    /// A launch exceeds a limit of the device or contradicts the kernel.
    #[error(
        "{backend} launch of kernel `{kernel}`: {what} is {found}, the limit is {limit}: choose a smaller one"
    )]
    LaunchLimit {
        /// The backend.
        backend: BackendKind,
        /// The kernel.
        kernel: String,
        /// What exceeds: `block size`, `grid in y`, …
        what: &'static str,
        /// The launch's value.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// The block size is not the one that the kernel demands.
    #[error(
        "kernel `{kernel}` is compiled for blocks of {needed:?} lanes, the launch has {found:?}: launch it with blocks of its own size"
    )]
    BlockSize {
        /// The kernel.
        kernel: String,
        /// What the kernel demands.
        needed: [u32; 3],
        /// The launch's.
        found: [u32; 3],
    },
    /// A block without lanes.
    #[error("kernel `{kernel}`: a block of {found:?} lanes has none; each extent must be at least 1")]
    EmptyBlock {
        /// The kernel.
        kernel: String,
        /// The launch's block.
        found: [u32; 3],
    },
    /// The grid cannot be divided into clusters.
    #[error(
        "kernel `{kernel}`: clusters of {cluster:?} blocks do not divide a grid of {grid:?}; make each extent of the grid a multiple of the cluster's, which must be at least 1"
    )]
    Cluster {
        /// The kernel.
        kernel: String,
        /// The launch's grid.
        grid: [u32; 3],
        /// The launch's cluster.
        cluster: [u32; 3],
    },
    /// Memory that must not change during a launch is bound to a parameter that is stored to, too.
    #[error(
        "kernel `{kernel}`: argument {constant} (`{constant_parameter}`) shares bytes with argument {stored} (`{stored_parameter}`), which the kernel may store to; whether all lanes come to its barriers depends on what argument {constant} holds, so it must not change during the launch: pass a copy of it"
    )]
    ConstantOverlaps {
        /// The kernel.
        kernel: String,
        /// Position of the argument that must not change, from 0.
        constant: usize,
        /// Its parameter, as in Rust.
        constant_parameter: String,
        /// Position of the argument that is stored to.
        stored: usize,
        /// Its parameter.
        stored_parameter: String,
    },
    /// A backend cannot be registered under its name.
    #[error("registering a backend as `{name}`: {cause}; give it another name (`BackendKind::Other`)")]
    BackendName {
        /// The name.
        name: &'static str,
        /// What is wrong with it.
        cause: String,
    },
    /// Nobody has registered a backend.
    #[error("there is no backend `{}`; there are {known}, and what `register_backend` adds", .backend.name())]
    UnknownBackend {
        /// What was asked for.
        backend: BackendKind,
        /// The names of those that there are.
        known: String,
    },
    /// Something is not aligned.
    #[error("{operation}: {subject} is at byte offset {found}, which is not a multiple of {needed}")]
    Alignment {
        /// What was tried.
        operation: &'static str,
        /// What is not aligned.
        subject: String,
        /// Its offset.
        found: u64,
        /// The alignment needed, in bytes.
        needed: u64,
    },
    /// Elements cannot begin at an address.
    #[error(
        "{operation}: the address {address:#x} is not a multiple of {needed}, the alignment of `{element}`"
    )]
    AddressAlignment {
        /// What was tried.
        operation: &'static str,
        /// The address.
        address: u64,
        /// The alignment needed, in bytes.
        needed: u64,
        /// The elements' type.
        element: &'static str,
    },
    /// Source and destination differ in size.
    #[error(
        "{operation}: the source has {source_len} {unit}, the destination {destination_len}: give both the same length, `slice` takes a part"
    )]
    SizeMismatch {
        /// What was tried.
        operation: &'static str,
        /// Size of the source.
        source_len: u64,
        /// Size of the destination.
        destination_len: u64,
        /// `bytes` or `elements`.
        unit: &'static str,
    },
    /// A range does not lie inside what it is taken from.
    #[error("{operation}: range {start}..{end} is not inside 0..{len} ({unit})")]
    OutOfRange {
        /// What was tried.
        operation: &'static str,
        /// Start.
        start: u64,
        /// End, exclusive.
        end: u64,
        /// Length of the whole.
        len: u64,
        /// `bytes` or `elements`.
        unit: &'static str,
    },
    /// Bytes read back are not values of the buffer's type.
    #[error("element {element} is not a valid `{ty}`: {message}")]
    InvalidValue {
        /// Index of the element.
        element: u64,
        /// The buffer's element type.
        ty: String,
        /// What was found where, and what to do.
        message: String,
    },
    /// A number exceeds what can be handled.
    #[error("{what}: {found}, the limit is {limit}; {remedy}")]
    Limit {
        /// What is limited.
        what: &'static str,
        /// The value.
        found: u64,
        /// The limit.
        limit: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// The backend does not take kernels in this form.
    #[error("{backend} backend cannot compile {given}: it takes {takes}")]
    SourceUnsupported {
        /// The backend.
        backend: BackendKind,
        /// The form given ([`KernelSource::kind`](crate::KernelSource::kind)).
        given: &'static str,
        /// The forms that it takes.
        takes: &'static str,
    },
    /// The kernel's Rust could not be lowered to IR, or its IR is not valid.
    #[error("kernel `{kernel}`: {message}")]
    Frontend {
        /// The kernel.
        kernel: String,
        /// What is wrong, with line and remedy.
        message: String,
    },
    /// The kernel needs something that the device lacks.
    #[error("{backend}: {error}")]
    Render {
        /// The backend.
        backend: BackendKind,
        /// What is missing.
        error: Box<RenderError>,
    },
    /// The driver's compiler refused a kernel.
    #[error("{backend} backend could not compile kernel `{kernel}`: {log}")]
    Compile {
        /// The backend.
        backend: BackendKind,
        /// The kernel, or the entry points asked for.
        kernel: String,
        /// The compiler's words.
        log: String,
    },
    /// A compiled module has no such entry point.
    #[error("no kernel `{name}` in this module; it has: {}", .available.join(", "))]
    FunctionNotFound {
        /// Name asked for.
        name: String,
        /// Names that are there (empty when the backend cannot list them).
        available: Vec<String>,
    },
    /// The kernel's arguments cannot be checked, so launching it is unsafe.
    #[error(
        "kernel `{kernel}` was compiled from {given}, whose arguments cannot be checked: launch it with the unsafe `launch_unchecked`"
    )]
    Unchecked {
        /// The kernel.
        kernel: String,
        /// The form it was compiled from.
        given: &'static str,
    },
    /// A kernel without fault checks, for which nobody answers.
    #[error(
        "kernel `{kernel}` declares checks({checks}), so a bad index in it would reach memory outside its buffers: leave the declaration out, or answer for the kernel with the unsafe `Verified::trust`"
    )]
    ChecksLeftOut {
        /// The kernel.
        kernel: String,
        /// What it declares: `off` or `explicit`.
        checks: &'static str,
    },
    /// A lane of a kernel faulted. Comes from the first synchronisation or read-back of the stream after that.
    #[error("{0}")]
    Fault(Box<Fault>),
    /// Two lanes raced. Only where the CPU looks for races.
    #[error("{0}")]
    Race(Box<Race>),
    /// The device is gone; every later operation on it gives this error.
    #[error(
        "{backend} device `{device}` was lost: {reason}; open it again (on CUDA in a new process) and rebuild what lived on it"
    )]
    DeviceLost {
        /// The backend.
        backend: BackendKind,
        /// Device's name.
        device: String,
        /// What the driver says.
        reason: String,
    },
    /// A driver call failed.
    #[error("{backend}: {operation} failed: {message}")]
    Driver {
        /// The backend.
        backend: BackendKind,
        /// The call or the step, with sizes.
        operation: String,
        /// The driver's code and words, and the remedy where one is known.
        message: String,
    },
    /// The backend or device cannot do this at all.
    #[error("{backend} cannot {operation}: {remedy}")]
    Unsupported {
        /// The backend.
        backend: BackendKind,
        /// What was asked for, as a verb phrase.
        operation: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
    /// Something is in a state that does not allow this.
    #[error("{operation}: {cause}; {remedy}")]
    InvalidState {
        /// What was tried.
        operation: &'static str,
        /// Why it cannot be.
        cause: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A blocking call where the thread may not block (a browser's main thread).
    #[error("{operation} would block, which a browser does not allow: use the async form")]
    CannotBlock {
        /// The call.
        operation: &'static str,
    },
}

crate::debug_as_display!(Error);

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error::Fault(Box::new(fault))
    }
}

impl From<Box<Fault>> for Error {
    fn from(fault: Box<Fault>) -> Error {
        Error::Fault(fault)
    }
}

impl Error {
    /// That devices of `backend` do not reach each other's memory.
    pub(crate) fn no_span(backend: BackendKind) -> Error {
        Error::Unsupported {
            backend,
            operation: "reach another device's memory",
            remedy: "copy through the host, or use devices with a link between them",
        }
    }

    /// The same for a render error of `backend`.
    pub fn render(backend: BackendKind, error: RenderError) -> Error {
        let error = Box::new(error);
        Error::Render { backend, error }
    }

    /// Whether the device is gone.
    pub fn is_device_lost(&self) -> bool {
        matches!(self, Error::DeviceLost { .. })
    }
}

fn tried_text(tried: &[(BackendKind, String)]) -> String {
    let lines: Vec<String> = tried.iter().map(|(kind, why)| format!("{kind}: {why}")).collect();
    lines.join("; ")
}

fn count_text(count: &Option<u64>) -> String {
    count.map_or_else(|| "an unknown amount".to_owned(), |n| format!("{n}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_cause_value_and_remedy() {
        // `Debug`, too: it is what `main` prints.
        let check = |error: Error, expect: &str| {
            assert_eq!((&*error.to_string(), &*format!("{error:?}")), (expect, expect));
        };
        check(
            Error::FeatureNotBuilt {
                backend: BackendKind::Cuda,
                feature: "cuda",
            },
            "CUDA backend requires the feature `cuda`, which this program was built without: add `features = [\"cuda\"]` to the perpetua dependency",
        );
        check(
            Error::PlatformUnsupported {
                backend: BackendKind::Metal,
                available_on: "Apple platforms",
                platform: "linux".into(),
            },
            "Metal backend is only available on Apple platforms; this is linux",
        );
        check(
            Error::OutOfMemory {
                backend: BackendKind::Cuda,
                memory: crate::ptr::MemoryKind::Device,
                requested: 10,
                free: Some(5),
                total: None,
            },
            "CUDA is out of device memory: 10 bytes asked for, 5 free of an unknown amount; drop buffers, trim the pool, or work in smaller parts",
        );
        check(
            Error::NoBackendAvailable {
                tried: vec![
                    (BackendKind::Cuda, "not built".into()),
                    (BackendKind::Cpu, "off".into()),
                ],
            },
            "no backend is available: CUDA: not built; CPU: off",
        );
    }

    #[test]
    fn an_error_is_small_enough_to_return() {
        assert!(size_of::<Error>() <= 128, "{}", size_of::<Error>());
    }
}
