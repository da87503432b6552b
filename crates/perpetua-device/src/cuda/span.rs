//! Memory that several devices reach: parts of several devices' memory in one range of addresses, and host memory that one of them has mapped.
//! Must not know what is in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUresult};

use super::driver::{Shared, call};
use super::memory::{Memory, Pool};
use crate::error::{Error, Result};
use crate::info::BackendKind;
use crate::ptr::DevicePtr;

/// A range of addresses with memory of several devices in it.
#[derive(Default)]
struct Range {
    address: u64,
    total: usize,
    /// How much of it is mapped, from the first part on.
    mapped: usize,
    devices: Vec<Arc<Shared>>,
}

impl Drop for Range {
    fn drop(&mut self) {
        if self.total == 0 || self.devices.iter().any(|device| device.is_lost()) {
            return;
        }
        let (address, mapped, total) = (self.address, self.mapped, self.total);
        let mut free = || {
            if let Some(device) = self.devices.first() {
                device.enter()?;
            }
            // SAFETY: what `make` has reserved and mapped, whole parts of it; nobody has a handle, so no submitted work uses it. The parts'
            // memory goes with its mapping, since `make` has released the handles.
            unsafe {
                if mapped > 0 {
                    call(sys::cuMemUnmap(address, mapped), || "cuMemUnmap".into())?;
                }
                call(sys::cuMemAddressFree(address, total), || {
                    "cuMemAddressFree".into()
                })
            }
        };
        // Unmapping waits for the devices, as freeing does. What fails leaves the memory to the driver until the process ends.
        let _ = all_parked(&self.devices, &mut free);
    }
}

/// Calls while nothing is resident on these devices.
fn all_parked(devices: &[Arc<Shared>], act: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    match devices {
        [] => act(),
        [first, others @ ..] => first.gate.parked(|| all_parked(others, act))?,
    }
}

fn whole(device: &Shared) -> sys::CUmemAllocationProp {
    // SAFETY: the driver's struct is numbers and a null pointer, for which zeros stand for "nothing asked".
    let mut wanted: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
    wanted.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location = place_of(device);
    wanted
}

fn place_of(device: &Shared) -> sys::CUmemLocation {
    sys::CUmemLocation {
        type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: device.device,
    }
}

/// Whether each of these devices reaches the memory of each other one, and takes memory apart from its addresses.
fn reach_each_other(devices: &[Arc<Shared>]) -> Result<bool> {
    for device in devices {
        let mut maps = 0;
        let which = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
        // SAFETY: the device is the driver's; the pointer is writable.
        let code = unsafe { sys::cuDeviceGetAttribute(&raw mut maps, which, device.device) };
        call(code, || "cuDeviceGetAttribute".into())?;
        if maps == 0 {
            return Ok(false);
        }
        for other in devices.iter().filter(|other| other.device != device.device) {
            let mut can = 0;
            // SAFETY: the devices are the driver's; the pointer is writable.
            let code = unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, device.device, other.device) };
            call(code, || "cuDeviceCanAccessPeer".into())?;
            if can == 0 {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Parts of at least `bytes` on the device of each of these pools, in one range of addresses, as memory of each; and how long a part is.
pub(super) fn make(pools: &[&Arc<Pool>], bytes: u64) -> Result<(Vec<DevicePtr>, u64)> {
    let devices: Vec<Arc<Shared>> = pools.iter().map(|pool| Arc::clone(pool.shared())).collect();
    if !reach_each_other(&devices)? {
        return Err(Error::no_span(BackendKind::Cuda));
    }
    let mut page = 1;
    for device in &devices {
        device.enter()?;
        let mut own = 0;
        let option = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: both pointers are to live values.
        let code = unsafe { sys::cuMemGetAllocationGranularity(&raw mut own, &whole(device), option) };
        device.check(code, || "cuMemGetAllocationGranularity".into())?;
        page = page.max(own);
    }
    let part = (bytes as usize).checked_next_multiple_of(page);
    let total = part.and_then(|part| Some((part, part.checked_mul(devices.len())?)));
    let (part, total) = total.ok_or(Error::Limit {
        what: "bytes in one buffer",
        found: bytes,
        limit: isize::MAX as u64,
        remedy: "use several buffers",
    })?;
    let mut range = Range {
        devices: devices.clone(),
        ..Range::default()
    };
    // SAFETY: the pointer is writable; the driver chooses the address.
    let code = unsafe { sys::cuMemAddressReserve(&raw mut range.address, total, 0, 0, 0) };
    call(code, || format!("reserving {total} bytes of addresses"))?;
    range.total = total;
    all_parked(&devices, &mut || fill(&mut range, part))?;
    let range = Arc::new(range);
    let view = |pool: &&Arc<Pool>| {
        let owner = Box::new(Arc::clone(&range));
        let memory = pool.of_another(range.address, None, total as u64, owner);
        DevicePtr::new(Arc::new(memory), total as u64)
    };
    Ok((pools.iter().map(view).collect(), part as u64))
}

/// Maps a part of each device's memory into the range, for all of them.
fn fill(range: &mut Range, part: usize) -> Result<()> {
    for device in &range.devices {
        let mut memory = 0;
        device.enter()?;
        // SAFETY: both pointers are to live values.
        let code = unsafe { sys::cuMemCreate(&raw mut memory, part, &whole(device), 0) };
        if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return Err(Error::OutOfMemory {
                backend: BackendKind::Cuda,
                memory: crate::ptr::MemoryKind::Device,
                requested: part as u64,
                free: None,
                total: device.info.memory_total,
            });
        }
        device.check(code, || format!("making {part} bytes of memory"))?;
        // SAFETY: the addresses are reserved and have no memory yet; the handle is of this length. Releasing it leaves the memory to the mapping.
        let codes = unsafe {
            let at = range.address + range.mapped as u64;
            [sys::cuMemMap(at, part, 0, memory, 0), sys::cuMemRelease(memory)]
        };
        device.check(codes[0], || "cuMemMap".into())?;
        range.mapped += part;
        device.check(codes[1], || "cuMemRelease".into())?;
    }
    // Each device once, however often it was opened.
    let once: BTreeMap<_, _> = range
        .devices
        .iter()
        .map(|device| (device.device, device))
        .collect();
    let access = once.values().map(|device| sys::CUmemAccessDesc {
        location: place_of(device),
        flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    });
    let access: Vec<sys::CUmemAccessDesc> = access.collect();
    // SAFETY: all of the range is mapped; the pointer is to as many descriptions as is said.
    let code = unsafe { sys::cuMemSetAccess(range.address, range.mapped, access.as_ptr(), access.len()) };
    call(code, || "cuMemSetAccess".into())
}

/// Another context's mapped memory as memory of this pool.
pub(super) fn map_again(pool: &Arc<Pool>, memory: &DevicePtr) -> Result<DevicePtr> {
    let another = memory.downcast::<Memory>().and_then(|m| Some((m, m.host()?)));
    let (whole, host) = another.ok_or_else(|| Error::WrongDevice {
        operation: "mapping host memory again",
        subject: "the memory".into(),
    })?;
    let device = pool.shared();
    device.enter()?;
    let mut address = 0;
    // SAFETY: the context is current; the memory was allocated as portable (`Pool::ask`), and is alive.
    let code = unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut address, host.as_ptr().cast(), 0) };
    device.check(code, || "cuMemHostGetDevicePointer".into())?;
    let mapped = pool.of_another(address, Some(host), whole.size(), Box::new(memory.clone()));
    let (offset, len) = (memory.offset(), memory.len());
    DevicePtr::new(Arc::new(mapped), offset + len).slice(offset..offset + len)
}
