//! The CPU backend's launches: native bodies, machine code and the interpreter, spread over threads. In `slabs`: parts of one.

mod slabs;

use std::any::Any;
use std::ptr::NonNull;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use perpetua_cpu::footprint::Footprint as Reaches;
use perpetua_cpu::interp::{self, InterpError, Interpreter};
use perpetua_ir::back::Capability;
use perpetua_ir::ir::{Access, Param, ParamKind};
use perpetua_ir::pass::checks::make_explicit;
use perpetua_ir::verify::{Verified, verify};

use super::claims::Span;
use super::code;
use super::device::{SUBGROUP, Shared};
use super::pace::{INLINE_TIME, Pace, Runner};
use super::ready::Ready;
use super::stream::CpuStream;
#[cfg(not(target_arch = "wasm32"))]
use super::stream::Queue;
use super::threads;
use super::work::Work;
use crate::backend::{GpuStream, KernelFunction, Launch as Configured};
use crate::dim::LaunchConfig;
use crate::error::{Error, Result};
use crate::fault::{FaultRegistry, KernelSites, SiteRange};
use crate::host::raw;
use crate::info::BackendKind;
use crate::native::{Footprint, NativeArg, NativeKernel, PreparedLaunch, Sharing};
use crate::overlap::Overlap;
use crate::ptr::{ContextId, DevicePtr, MemoryKind};
use crate::signature::{KernelArg, Signature};
use crate::value::ValueArg;
use crate::way::Way;

pub(super) use slabs::Slabs;

/// A kernel ready to run. Cheap to clone.
#[derive(Clone)]
pub(super) struct CpuFunction(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    signature: Signature,
    native: Option<NativeKernel>,
    verified: Option<Arc<Verified>>,
    // Made when first needed: most native kernels never need it.
    interpreter: OnceLock<Result<Interpreter>>,
    // For which instructions it has machine code, or why it has none, once that has been tried.
    code: OnceLock<std::result::Result<&'static str, String>>,
    // What launches access, made when first asked for; `None` where that is not known.
    footprint: OnceLock<Option<Reaches>>,
    // Whether machine code is not wanted.
    interpret: bool,
    // The last launches that were made ready, newest last.
    ready: Mutex<Vec<Ready>>,
    pace: Pace,
    // Of a kernel that may stay: the numbers of its fault sites.
    resident: Option<Arc<SiteRange>>,
}

impl CpuFunction {
    /// At least one of native body and IR is given.
    pub(super) fn new(
        shared: Arc<Shared>,
        native: Option<NativeKernel>,
        verified: Option<Arc<Verified>>,
        interpret: bool,
    ) -> Result<CpuFunction> {
        let signature = match (&verified, &native) {
            (Some(verified), _) => Signature::of(verified),
            (None, Some(native)) => (native.signature)(),
            (None, None) => Signature::new("", Vec::new()),
        };
        let stays = |v: &Arc<Verified>| v.facts().needs(Capability::Residency);
        let (interpreter, resident) = match &verified {
            Some(verified) if native.is_none() && stays(verified) => {
                let (interpreter, sites) = interpret_resident(verified)?;
                (OnceLock::from(Ok(interpreter)), Some(sites))
            }
            _ => (OnceLock::new(), None),
        };
        let interpret = interpret || shared.widths() == 0;
        let function = CpuFunction(Arc::new(Inner {
            shared,
            signature,
            native,
            verified,
            interpreter,
            code: OnceLock::new(),
            footprint: OnceLock::new(),
            interpret,
            ready: Mutex::default(),
            pace: Pace::default(),
            resident,
        }));
        if native.is_none() {
            function.0.interpreter()?;
        }
        Ok(function)
    }
}

impl CpuFunction {
    /// Whether what is not native runs as machine code.
    pub(super) fn has_code(&self) -> bool {
        let made = self.0.interpreter.get().and_then(|made| made.as_ref().ok());
        made.is_some_and(Interpreter::has_code)
    }

    /// How its launches run.
    pub(super) fn way(&self) -> Way {
        let inner = &*self.0;
        let why = match inner.code.get() {
            _ if inner.native.is_some() => return Way::Native,
            _ if inner.resident.is_some() => "it may stay",
            _ if inner.interpret => "it was asked for",
            Some(Ok(instructions)) => return Way::MachineCode(instructions),
            Some(Err(refusal)) => refusal,
            None => "nothing was compiled",
        };
        Way::Interpreter(why.to_owned())
    }
}

/// A kernel that may stay, ready to run: such a kernel looks at its own faults, so its checks are statements and its sites have
/// numbers: the second part.
fn interpret_resident(verified: &Verified) -> Result<(Interpreter, Arc<SiteRange>)> {
    let (kernel, faults, prints) = make_explicit(verified).into_parts();
    let name = kernel.name.clone();
    let failed = |message: String| Error::Driver {
        backend: BackendKind::Cpu,
        operation: format!("preparing kernel `{name}` for the interpreter"),
        message,
    };
    let range = FaultRegistry::global().register(KernelSites {
        kernel: kernel.name.clone(),
        source: Arc::clone(&kernel.source),
        faults: faults.clone(),
        prints,
    })?;
    let explicit = verify(kernel).map_err(|e| failed(e.to_string()))?;
    let interpreter = Interpreter::with_sites(&explicit, &faults).map_err(|e| failed(e.to_string()))?;
    Ok((interpreter, range))
}

impl Inner {
    fn interpreter(&self) -> Result<&Interpreter> {
        let made = self.interpreter.get_or_init(|| {
            let verified = self.verified.as_ref().ok_or(Error::Unsupported {
                backend: BackendKind::Cpu,
                operation: "run this launch of a native kernel natively",
                remedy: "give the kernel's IR too",
            })?;
            let mut interpreter = Interpreter::new(verified).map_err(|e| self.error(e))?;
            if !self.interpret {
                let installed = code::install(&mut interpreter, verified, self.shared.widths());
                let _ = self.code.set(installed);
            }
            Ok(interpreter)
        });
        made.as_ref().map_err(Error::clone)
    }

    fn error(&self, error: InterpError) -> Error {
        match error {
            InterpError::Fault(fault) => Error::Fault(fault),
            InterpError::Race(race) => Error::Race(race),
            other => Error::Driver {
                backend: BackendKind::Cpu,
                operation: format!("running kernel `{}` in the interpreter", self.signature.name()),
                message: other.to_string(),
            },
        }
    }
}

/// A submitted launch: what it needs, kept alive until it has run.
pub(super) struct Launch {
    function: CpuFunction,
    pub(super) shape: LaunchConfig,
    pub(super) args: Vec<Arg>,
    overlaps: Vec<Overlap>,
    // Captured launches are made ready once.
    ready: OnceLock<Option<Arc<dyn PreparedLaunch>>>,
    // What rows of its blocks access, as machine code; found once, too.
    footprints: OnceLock<Option<Vec<Footprint>>>,
    // Whose work it is: there faults are told that it catches.
    #[cfg(not(target_arch = "wasm32"))]
    queue: Weak<Queue>,
}

pub(super) enum Arg {
    // The memory, and the number of elements.
    Buffer(DevicePtr, usize),
    // The value, and the parameter's size in bytes.
    Value(ValueArg, usize),
}

impl Arg {
    fn native(&self) -> NativeArg<'_> {
        match self {
            Arg::Buffer(ptr, len) => NativeArg::Buffer {
                ptr: start(ptr),
                len: *len,
            },
            Arg::Value(value, size) => NativeArg::Value(cut(value, *size)),
        }
    }

    fn interpreted(&self) -> interp::Arg<'_> {
        match self {
            Arg::Buffer(ptr, _) => {
                // SAFETY: the memory is kept alive by `self`, initialised (host pools give such), and as long as the
                // pointer says. What other streams and the host do with it meanwhile is atomic: copies are
                // (`host::racing`), and native launches that are not wait (`claims`).
                let buffer = unsafe { interp::BufferRef::from_raw(start(ptr), ptr.len() as usize) };
                interp::Arg::Buffer(buffer)
            }
            Arg::Value(value, size) => interp::Arg::Value(cut(value, *size)),
        }
    }
}

// Address of a pointer's first byte. Memory of this context is host memory, and the owner's check precedes every launch.
pub(super) fn start(ptr: &DevicePtr) -> *mut u8 {
    raw(ptr).map_or(std::ptr::null_mut(), NonNull::as_ptr)
}

// A `usize` is longer than the parameter of a kernel whose `usize` has 32 bits.
fn cut(value: &ValueArg, size: usize) -> &[u8] {
    let bytes = value.bytes();
    &bytes[..bytes.len().min(size)]
}

impl Launch {
    pub(super) fn lanes(&self) -> u64 {
        self.shape.lanes()
    }

    /// Whether it may run for ever, beside all others.
    pub(super) fn stays(&self) -> bool {
        self.function.0.resident.is_some()
    }

    /// Whether it has native code, which waits for no other work.
    pub(super) fn is_native(&self) -> bool {
        self.function.0.native.is_some()
    }

    /// Whether it is done sooner than handed to other threads.
    pub(super) fn is_small(&self) -> bool {
        let runner = match self.function.0.native {
            _ if self.stays() => return false,
            Some(_) => Runner::Native,
            None if self.function.has_code() => Runner::Code,
            None => Runner::Interpreter,
        };
        self.function.0.pace.is_small(self.lanes(), runner)
    }

    /// Whether all together are.
    pub(super) fn are_small(launches: &[Arc<Launch>]) -> bool {
        let time = |launch: &Arc<Launch>| match launch.is_small() {
            true => launch.nanoseconds(),
            false => u64::MAX,
        };
        launches.iter().map(time).fold(0, u64::saturating_add) <= INLINE_TIME
    }

    /// What it takes on one thread, by what the kernel took lately.
    pub(super) fn nanoseconds(&self) -> u64 {
        self.function.0.pace.nanoseconds(self.lanes())
    }

    pub(super) fn run(&self, sharing: Sharing) -> Result<()> {
        if self.lanes() == 0 {
            return Ok(());
        }
        match self.prepared() {
            Some(prepared) if self.reaches_host() => self.run_native(&**prepared, Sharing::Shared),
            Some(prepared) => self.run_native(&**prepared, sharing),
            None => self.interpret(),
        }
    }

    /// What memory it touches; plainly, where it is native code and no memory of the host's.
    pub(super) fn spans(&self, add: &mut dyn FnMut(Span)) {
        let plain = !self.reaches_host();
        for (arg, param) in self.args.iter().zip(self.function.0.signature.params()) {
            if let (Arg::Buffer(ptr, _), ParamKind::Buffer { access, .. }) = (arg, &param.kind) {
                let stores = *access != Access::Read;
                Span::new(ptr, stores, plain).into_iter().for_each(&mut *add);
            }
        }
    }

    /// Whether some of its memory is the host's too, which accesses it when it likes.
    pub(super) fn reaches_host(&self) -> bool {
        let is_host = |arg: &Arg| matches!(arg, Arg::Buffer(ptr, _) if ptr.kind() != MemoryKind::Device);
        self.args.iter().any(is_host)
    }

    /// The launch made ready as native code; `None` where it runs by its IR, and before
    /// [`make_ready`](Launch::make_ready).
    pub(super) fn prepared(&self) -> Option<&Arc<dyn PreparedLaunch>> {
        self.ready.get()?.as_ref().filter(|_| !self.is_watched())
    }

    // Whether it runs in the interpreter that looks for races.
    fn is_watched(&self) -> bool {
        self.function.0.verified.is_some() && self.function.0.shared.detects_races()
    }

    fn interpret(&self) -> Result<()> {
        let inner = &*self.function.0;
        self.configured(|config| {
            let watch = inner.pace.watch(self.lanes());
            let timed = |work: &(dyn Fn() + Sync)| watch.time(work);
            let spread = |work: &(dyn Fn() + Sync)| threads::spread(&|| timed(work));
            // What stays would keep all threads from others.
            let alone = self.stays() || self.is_small() || !threads::may_spread();
            let config = interp::LaunchConfig {
                parallel: match alone {
                    true => interp::Parallel::Spread(&timed),
                    false => interp::Parallel::Spread(&spread),
                },
                ..*config
            };
            let result = inner.interpreter()?.launch(&config);
            watch.note();
            result.map_err(|e| inner.error(e))
        })
    }

    // Calls `run` with the launch as the interpreter takes it: all of it, on the calling thread.
    fn configured<T>(&self, run: impl FnOnce(&interp::LaunchConfig<'_>) -> T) -> T {
        let inner = &*self.function.0;
        let args: Vec<interp::Arg<'_>> = self.args.iter().map(Arg::interpreted).collect();
        let print = |line: &interp::Printed<'_>| println!("{}", line.text);
        // Without threads no kernel stays, and memory is one thread's.
        #[cfg(not(target_arch = "wasm32"))]
        let caught = |fault| {
            if let Some(queue) = self.queue.upgrade() {
                queue.tell(Error::Fault(fault));
            }
        };
        let (grid, block) = (self.shape.grid.to_array(), self.shape.block.to_array());
        run(&interp::LaunchConfig {
            dynamic_shared_bytes: self.shape.shared_bytes,
            subgroup_size: SUBGROUP,
            print: Some(&print),
            races: match inner.shared.detects_races() {
                true => interp::RaceMode::Detect,
                false => interp::RaceMode::Off,
            },
            site_base: inner.resident.as_ref().map_or(0, |sites| sites.base()),
            #[cfg(not(target_arch = "wasm32"))]
            caught: Some(&caught),
            ..interp::LaunchConfig::new(grid, block, &args)
        })
    }

    fn run_native(&self, prepared: &dyn PreparedLaunch, sharing: Sharing) -> Result<()> {
        let slabs = prepared.slabs();
        let run = |from: u64, to: u64| {
            // SAFETY: the launch's arguments passed the signature's check, and it was told which share bytes
            // (`KernelFunction::launch`'s contract), their memory is kept alive by `self.args` and initialised (host pools give
            // such). `sharing` is what the claim on that memory says.
            unsafe { prepared.run(from..to, sharing) }
        };
        let watch = self.function.0.pace.watch(self.lanes());
        let timed = |from: u64, to: u64| watch.time(|| run(from, to));
        if self.is_small() || slabs == 1 || !threads::may_spread() {
            timed(0, slabs)?;
            watch.note();
            return Ok(());
        }
        // Several parts a thread, so that uneven parts even out; each is a run of neighbouring slabs.
        let parts = slabs.min(threads::count() as u64 * 4);
        let bound = |part: u64| (u128::from(slabs) * u128::from(part) / u128::from(parts)) as u64;
        let next = AtomicU64::new(0);
        let fault = OnceLock::new();
        threads::spread(&|| {
            while fault.get().is_none() {
                // Relaxed: only the number matters; `spread` orders what the parts wrote before what follows it.
                let part = next.fetch_add(1, Ordering::Relaxed);
                if part >= parts {
                    break;
                }
                if let Err(found) = timed(bound(part), bound(part + 1)) {
                    // Another part's may have come first; which one is reported is unspecified.
                    let _ = fault.set(found);
                }
            }
        });
        watch.note();
        fault
            .into_inner()
            .map_or(Ok(()), |fault| Err(Error::Fault(fault)))
    }
}

impl KernelFunction for CpuFunction {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &str {
        self.0.signature.name()
    }

    fn context_id(&self) -> ContextId {
        self.0.shared.id
    }

    fn signature(&self) -> Option<&Signature> {
        Some(&self.0.signature)
    }

    fn max_threads_per_block(&self) -> u32 {
        self.0.shared.info.limits.max_threads_per_block
    }

    fn way(&self) -> Way {
        CpuFunction::way(self)
    }

    unsafe fn launch(
        &self,
        launch: &Configured<'_>,
        stream: &dyn GpuStream,
        args: &[KernelArg<'_>],
    ) -> Result<()> {
        let stream: &CpuStream = stream.as_any().downcast_ref().ok_or_else(|| Error::WrongDevice {
            operation: "launch",
            subject: "the stream".into(),
        })?;
        let own = |(arg, param): (&KernelArg<'_>, &Param)| match (arg, &param.kind) {
            (KernelArg::Buffer(b), _) => Arg::Buffer(b.ptr.clone(), b.len as usize),
            (KernelArg::Value(v), ParamKind::Value(ty)) => Arg::Value(v.clone(), ty.size() as usize),
            (KernelArg::Value(v), ParamKind::Buffer { .. }) => Arg::Value(v.clone(), usize::MAX),
        };
        let launch = Launch {
            function: self.clone(),
            shape: launch.config,
            overlaps: launch.overlaps.to_vec(),
            args: args.iter().zip(self.0.signature.params()).map(own).collect(),
            ready: OnceLock::new(),
            footprints: OnceLock::new(),
            #[cfg(not(target_arch = "wasm32"))]
            queue: Arc::downgrade(stream.queue()),
        };
        stream.submit(Work::Launch(Arc::new(launch)))
    }
}
