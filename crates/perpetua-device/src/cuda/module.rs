//! Loaded machine code: who loads it, who used it, and when it may go. Must not know how it was made or is launched.
//!
//! A module goes as memory does ([`memory`](super::memory)): launches note their stream in a word of the module, and cost nothing more.
//! When nobody holds it any more, a mark is put behind the work of each of these streams. It is unloaded, and the numbers of its fault
//! sites are given back, when the marks have been reached and the faults that it left have been taken out of the streams' records.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{self, CUfunction_attribute, CUjit_option, CUresult};

use super::driver::{Shared, lock};
use super::record::Faults;
use super::streams::{Guard, Slot};
use crate::error::{Error, Result};
use crate::fault::SiteRange;
use crate::info::BackendKind;

/// A loaded module. Functions and graphs hold it.
pub(super) struct Module {
    handle: sys::CUmodule,
    loader: Arc<Loader>,
    /// The numbers that its launches report faults and prints by.
    sites: Option<Arc<SiteRange>>,
    /// The streams that it was launched on.
    users: AtomicU64,
}

// SAFETY: the driver's handle may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.loader.shared
    }

    /// The numbers that its launches report faults and prints by.
    pub(super) fn sites(&self) -> Option<&Arc<SiteRange>> {
        self.sites.as_ref()
    }

    /// Notes that a launch follows on the stream in this slot.
    #[inline]
    pub(super) fn use_on(&self, slot: Slot) {
        // Relaxed: read by `drop` alone, which the release of the caller's reference orders behind this and behind the launch.
        if self.users.load(Ordering::Relaxed) & slot.bit() == 0 {
            self.users.fetch_or(slot.bit(), Ordering::Relaxed);
        }
    }

    pub(super) fn function(&self, name: &str) -> Option<sys::CUfunction> {
        let text = std::ffi::CString::new(name).ok()?;
        self.shared().enter().ok()?;
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is loaded; name and pointer are valid for the call.
        let code = unsafe { sys::cuModuleGetFunction(&raw mut function, self.handle, text.as_ptr()) };
        (code == sys::CUresult::CUDA_SUCCESS).then_some(function)
    }

    /// Entry points' names.
    pub(super) fn names(&self) -> Vec<String> {
        if self.shared().enter().is_err() {
            return Vec::new();
        }
        functions(self.handle)
            .into_iter()
            .filter_map(|f| {
                let mut name = std::ptr::null();
                // SAFETY: the handle is the driver's; the pointer is writable.
                let code = unsafe { sys::cuFuncGetName(&raw mut name, f) };
                if code != sys::CUresult::CUDA_SUCCESS || name.is_null() {
                    return None;
                }
                // SAFETY: the driver's string lives as long as the module, and ends in NUL.
                let name = unsafe { std::ffi::CStr::from_ptr(name) };
                Some(name.to_string_lossy().into_owned())
            })
            .collect()
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let shared = self.shared();
        if shared.is_lost() {
            return;
        }
        // Relaxed: see `use_on`.
        let users = self.users.load(Ordering::Relaxed);
        let left = Left {
            handle: self.handle,
            // Without a mark nobody knows when it is safe: the code stays loaded, and its numbers taken.
            guards: shared.streams.marks(shared, users).ok(),
            faults: shared.streams.faults(users),
            sites: self.sites.take(),
        };
        lock(&self.loader.left).push(left);
    }
}

/// A module that nobody holds any more.
struct Left {
    handle: sys::CUmodule,
    /// Marks behind all its launches; `None` where they could not be made.
    guards: Option<Vec<Guard>>,
    /// Where its launches may have left a fault.
    faults: Vec<Arc<Faults>>,
    sites: Option<Arc<SiteRange>>,
}

// SAFETY: the driver's handle may be used from any thread; the rest is Send.
unsafe impl Send for Left {}

/// What the driver's compiler writes into its logs.
pub(super) struct Log {
    errors: Vec<u8>,
    remarks: Vec<u8>,
}

impl Default for Log {
    fn default() -> Log {
        Log {
            errors: vec![0; 16 * 1024],
            remarks: vec![0; 16 * 1024],
        }
    }
}

impl Log {
    /// What it is told of them; pointers into the logs, which must outlive its use.
    pub(super) fn options(&mut self) -> ([CUjit_option; 4], [*mut c_void; 4]) {
        let names = [
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            CUjit_option::CU_JIT_INFO_LOG_BUFFER,
            CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        ];
        let values = [
            self.errors.as_mut_ptr().cast(),
            self.errors.len() as *mut c_void,
            self.remarks.as_mut_ptr().cast(),
            self.remarks.len() as *mut c_void,
        ];
        (names, values)
    }

    /// Tells of code that is slower than its text says: products that wait for each other, registers that nobody gets.
    pub(super) fn warn(&self, name: &str) {
        let remarks = words(&self.remarks);
        if remarks.contains("Performance Loss") {
            tracing::warn!(kernel = name, %remarks, "the driver made slow code");
        }
    }
}

/// What is written in front of the first zero.
fn words(log: &[u8]) -> String {
    let end = log.iter().position(|b| *b == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).trim_end().to_owned()
}

/// Whether an image is machine code, or else a text.
fn is_code(image: &[u8]) -> bool {
    image.starts_with(b"\x7fELF")
}

/// The error for code that the driver's compiler refused, with what it wrote into its log.
pub(super) fn refused(shared: &Shared, name: &str, code: CUresult, log: &Log) -> Error {
    let refused = |log: String| Error::Compile {
        backend: BackendKind::Cuda,
        kernel: name.to_owned(),
        log,
    };
    match code {
        CUresult::CUDA_ERROR_INVALID_PTX
        | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
        | CUresult::CUDA_ERROR_INVALID_IMAGE => {
            let words = words(&log.errors);
            refused(format!("{}\n{words}", super::driver::describe(code)))
        }
        other => match shared.check(other, || format!("compiling `{name}`")) {
            Err(error) => error,
            Ok(()) => refused("the driver gave no reason".into()),
        },
    }
}

/// Loads code, and unloads what nobody uses any more. Both wait for resident kernels, and modules are dropped anywhere, also where
/// those are being parked: so unloading is left until residents are parked for something else.
pub(super) struct Loader {
    shared: Arc<Shared>,
    left: Mutex<Vec<Left>>,
}

impl Loader {
    pub(super) fn new(shared: &Arc<Shared>) -> Arc<Loader> {
        Arc::new(Loader {
            shared: Arc::clone(shared),
            left: Mutex::default(),
        })
    }

    /// Loads machine code, and unloads what nobody uses any more. Residents are parked meanwhile.
    pub(super) fn load(
        self: &Arc<Loader>,
        name: &str,
        image: &[u8],
        sites: Option<Arc<SiteRange>>,
    ) -> Result<Arc<Module>> {
        let shared = &self.shared;
        // The module owns the code before residents start again, of which one may fail.
        shared.gate.parked(|| {
            shared.enter()?;
            self.unload_parked();
            let mut handle = std::ptr::null_mut();
            let mut log = Log::default();
            let (mut options, mut values) = log.options();
            let given = if is_code(image) { 0 } else { options.len() };
            // SAFETY: the context is current; `image` is a whole image, as the linker or NVRTC made it (cached ones passed
            // their checksum), or a text that ends with a zero; there are as many options and values as said, and the log outlives the call.
            let code = unsafe {
                sys::cuModuleLoadDataEx(
                    &raw mut handle,
                    image.as_ptr().cast(),
                    given as u32,
                    options.as_mut_ptr(),
                    values.as_mut_ptr(),
                )
            };
            if code != CUresult::CUDA_SUCCESS {
                return Err(refused(shared, name, code, &log));
            }
            log.warn(name);
            make_ready(handle);
            Ok(Arc::new(Module {
                handle,
                loader: Arc::clone(self),
                sites,
                users: AtomicU64::new(0),
            }))
        })?
    }

    /// Unloads what nobody uses any more, with the context current and residents parked.
    fn unload_parked(&self) {
        let is_over = |left: &Left| {
            let guards = left.guards.as_ref();
            guards.is_some_and(|guards| guards.iter().all(Guard::is_over))
        };
        let over: Vec<Left> = lock(&self.left).extract_if(.., |left| is_over(left)).collect();
        for left in over {
            if let Some(sites) = &left.sites {
                left.faults.iter().for_each(|faults| faults.take_of(sites));
            }
            // SAFETY: the module was its handle's only owner, and took its leave once (`drop`); its launches have ended.
            let _ = unsafe { sys::cuModuleUnload(left.handle) };
        }
    }

    /// The same, parking residents if there may be something to unload.
    pub(super) fn unload(&self) -> Result<()> {
        if lock(&self.left).is_empty() {
            return Ok(());
        }
        self.shared.gate.parked(|| {
            self.shared.enter()?;
            self.unload_parked();
            Ok::<_, Error>(())
        })?
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        if lock(&self.left).is_empty() {
            return;
        }
        // Streams may live on, with launches in flight, and so does the primary context where the device was opened twice. An error
        // means that residents could not be parked: then the code stays loaded, which harms nobody.
        let _ = self.shared.gate.parked(|| {
            for guard in lock(&self.left)
                .iter()
                .flat_map(|left| left.guards.iter().flatten())
            {
                let _ = guard.wait();
            }
            if self.shared.enter().is_ok() {
                self.unload_parked();
            }
        });
    }
}

/// The functions of a module.
fn functions(handle: sys::CUmodule) -> Vec<sys::CUfunction> {
    let mut count = 0;
    // SAFETY: the module is loaded; the pointer is writable.
    let code = unsafe { sys::cuModuleGetFunctionCount(&raw mut count, handle) };
    if code != sys::CUresult::CUDA_SUCCESS {
        return Vec::new();
    }
    let mut functions = vec![std::ptr::null_mut(); count as usize];
    // SAFETY: room for `count` handles.
    let code = unsafe { sys::cuModuleEnumerateFunctions(functions.as_mut_ptr(), count, handle) };
    match code {
        sys::CUresult::CUDA_SUCCESS => functions,
        _ => Vec::new(),
    }
}

/// Does what the driver would leave to the first launch, where it would wait for resident kernels: loads the functions, and makes
/// room for their lanes' own memory. What fails here will fail, or wait, there.
fn make_ready(handle: sys::CUmodule) {
    const STACK: sys::CUlimit = sys::CUlimit::CU_LIMIT_STACK_SIZE;
    let mut most = 0;
    // SAFETY: a context is current (`Shared::enter`); the pointer is writable.
    let known = unsafe { sys::cuCtxGetLimit(&raw mut most, STACK) };
    for function in functions(handle) {
        let mut local = 0;
        // SAFETY: the function is the module's; the pointer is writable.
        unsafe {
            let _ = sys::cuFuncLoad(function);
            let which = CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES;
            let _ = sys::cuFuncGetAttribute(&raw mut local, which, function);
        }
        let needed = (local.max(0) as usize).next_multiple_of(1024);
        if known == sys::CUresult::CUDA_SUCCESS && needed > most {
            most = needed;
            // SAFETY: a context is current; the limit is of all kernels to come.
            let _ = unsafe { sys::cuCtxSetLimit(STACK, needed) };
        }
    }
}
