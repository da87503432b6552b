//! The driver's calls as results, its handles as owners, and the state that all parts of one context share. The only
//! file that turns driver codes into errors.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::sync::{Arc, Mutex, OnceLock};

use cudarc::driver::sys::{self, CUresult};

use super::streams::Streams;
use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::info::{BackendKind, DeviceInfo};
pub(super) use crate::lock::lock;
use crate::ptr::ContextId;

/// A driver code in words.
pub(super) fn describe(code: CUresult) -> String {
    let text = |get: unsafe fn(CUresult, *mut *const std::ffi::c_char) -> CUresult| {
        let mut pointer = std::ptr::null();
        // SAFETY: both calls write a pointer to a static string, or leave it null for an unknown code.
        let found = unsafe { get(code, &raw mut pointer) };
        (found == CUresult::CUDA_SUCCESS && !pointer.is_null())
            // SAFETY: the driver's strings are static and end in NUL.
            .then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
    };
    let name = text(sys::cuGetErrorName).unwrap_or_else(|| format!("code {code:?}"));
    text(sys::cuGetErrorString).map_or(name.clone(), |words| format!("{name} ({words})"))
}

/// Whether a code means that the context is gone for good.
fn is_loss(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUresult::CUDA_ERROR_DEINITIALIZED
            | CUresult::CUDA_ERROR_ASSERT
    )
}

/// A driver call outside any context, as a result.
pub(super) fn call(code: CUresult, operation: impl FnOnce() -> String) -> Result<()> {
    if code == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(Error::Driver {
        backend: BackendKind::Cuda,
        operation: operation(),
        message: describe(code),
    })
}

/// What everything made from one context shares. Dropped last, it releases the primary context.
pub(super) struct Shared {
    pub(super) id: ContextId,
    pub(super) info: DeviceInfo,
    pub(super) gate: Arc<Gate>,
    pub(super) device: sys::CUdevice,
    pub(super) context: sys::CUcontext,
    lost: OnceLock<String>,
    pub(super) streams: Streams,
    /// Whether kernels that can be launched wide are, however few lanes there are.
    #[cfg(feature = "testing")]
    pub(super) widens_all: std::sync::atomic::AtomicBool,
}

// SAFETY: a CUcontext may be used from any thread (each call makes it current first); the rest is Send and Sync.
unsafe impl Send for Shared {}
// SAFETY: as above; the driver synchronises its own calls.
unsafe impl Sync for Shared {}

/// The gate of a device: one for all that this process opens of it, since they share its primary context, where one's call
/// waits for another's resident kernel.
fn gate_of(device: sys::CUdevice) -> Arc<Gate> {
    static GATES: Mutex<BTreeMap<sys::CUdevice, Arc<Gate>>> = Mutex::new(BTreeMap::new());
    let mut gates = GATES.lock().unwrap_or_else(|e| e.into_inner());
    Arc::clone(gates.entry(device).or_default())
}

impl Shared {
    /// Retains the device's primary context.
    pub(super) fn open(device: sys::CUdevice, info: DeviceInfo) -> Result<Arc<Shared>> {
        let mut context = std::ptr::null_mut();
        let _opening = crate::lock::opening();
        // SAFETY: `device` came from cuDeviceGet; the pointer is writable.
        let code = unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut context, device) };
        if is_loss(code) {
            return Err(Error::DeviceLost {
                backend: BackendKind::Cuda,
                device: info.name,
                reason: format!("cuDevicePrimaryCtxRetain: {}", describe(code)),
            });
        }
        call(code, || {
            format!("cuDevicePrimaryCtxRetain of device {}", info.index)
        })?;
        Ok(Arc::new(Shared {
            id: ContextId::unique(),
            info,
            gate: gate_of(device),
            device,
            context,
            lost: OnceLock::new(),
            streams: Streams::default(),
            #[cfg(feature = "testing")]
            widens_all: false.into(),
        }))
    }

    /// Makes the context current on this thread, as every other call needs; or says that it is lost.
    pub(super) fn enter(&self) -> Result<()> {
        if let Some(reason) = self.lost.get() {
            return Err(self.loss(reason));
        }
        // SAFETY: the primary context stays retained for as long as `self` lives.
        let code = unsafe { sys::cuCtxSetCurrent(self.context) };
        self.check(code, || "cuCtxSetCurrent".into())
    }

    /// A driver call's result; a code that means loss is remembered.
    pub(super) fn check(&self, code: CUresult, operation: impl FnOnce() -> String) -> Result<()> {
        if code == CUresult::CUDA_SUCCESS {
            return Ok(());
        }
        Err(self.error(code, operation()))
    }

    #[cold]
    fn error(&self, code: CUresult, operation: String) -> Error {
        if is_loss(code) {
            let reason = format!("{operation}: {}", describe(code));
            return self.loss(self.lost.get_or_init(|| reason));
        }
        Error::Driver {
            backend: BackendKind::Cuda,
            operation,
            message: describe(code),
        }
    }

    fn loss(&self, reason: &str) -> Error {
        Error::DeviceLost {
            backend: BackendKind::Cuda,
            device: self.info.name.clone(),
            reason: reason.to_owned(),
        }
    }

    /// Whether the context is lost, so that nothing more can be freed or waited for.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _closing = crate::lock::opening();
        // SAFETY: retained once in `open`; nothing that uses the context is alive, since all hold this value.
        // A failure (a lost context) leaves nothing to do.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// An event: a point in a stream's work.
pub(super) struct Event {
    handle: sys::CUevent,
    shared: Arc<Shared>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above; calls on one event are synchronised by the driver.
unsafe impl Sync for Event {}

impl Event {
    /// An event that keeps time, or a cheaper one that does not.
    pub(super) fn new(shared: &Arc<Shared>, timing: bool) -> Result<Event> {
        shared.enter()?;
        let flags = if timing {
            0
        } else {
            sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: the context is current; the pointer is writable.
        let code = unsafe { sys::cuEventCreate(&raw mut handle, flags) };
        shared.check(code, || "cuEventCreate".into())?;
        Ok(Event {
            handle,
            shared: Arc::clone(shared),
        })
    }

    /// An event without a time behind all work submitted to `stream` so far.
    pub(super) fn behind(shared: &Arc<Shared>, stream: sys::CUstream) -> Result<Event> {
        let event = Event::new(shared, false)?;
        event.record(stream)?;
        Ok(event)
    }

    pub(super) fn record(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: both handles belong to this context and are alive.
        self.shared
            .check(unsafe { sys::cuEventRecord(self.handle, stream) }, || {
                "cuEventRecord".into()
            })
    }

    /// Makes `stream` wait for it.
    pub(super) fn hold(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: both handles belong to this context and are alive.
        let code = unsafe { sys::cuStreamWaitEvent(stream, self.handle, 0) };
        self.shared.check(code, || "cuStreamWaitEvent".into())
    }

    pub(super) fn is_complete(&self) -> Result<bool> {
        self.shared.enter()?;
        // SAFETY: the handle is alive.
        match unsafe { sys::cuEventQuery(self.handle) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => self.shared.check(code, || "cuEventQuery".into()).map(|()| true),
        }
    }

    pub(super) fn wait(&self) -> Result<()> {
        self.shared.enter()?;
        // SAFETY: the handle is alive.
        self.shared
            .check(unsafe { sys::cuEventSynchronize(self.handle) }, || {
                "cuEventSynchronize".into()
            })
    }

    /// Milliseconds from `earlier` to this event, both complete and timed.
    pub(super) fn elapsed(&self, earlier: &Event) -> Result<f32> {
        self.shared.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: both handles are alive; the pointer is writable.
        let code = unsafe { sys::cuEventElapsedTime_v2(&raw mut milliseconds, earlier.handle, self.handle) };
        self.shared.check(code, || "cuEventElapsedTime".into())?;
        Ok(milliseconds)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.shared.enter().is_ok() {
            // SAFETY: created in `new`, destroyed once. The driver keeps a pending event until it has happened.
            let _ = unsafe { sys::cuEventDestroy_v2(self.handle) };
        }
    }
}

/// An address as the driver's copy calls take host memory.
pub(super) fn host(address: *mut u8) -> *mut c_void {
    address.cast()
}
