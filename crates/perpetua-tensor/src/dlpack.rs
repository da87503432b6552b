//! Tensors that other libraries share memory with: DLPack's structures, as its header has them (version 0.8, whose layout did not change), out and in. What a structure from outside says of itself is
//! not trusted where it can be checked; that its memory is there is the caller's promise.

use std::ffi::c_void;
use std::panic::Location;

use perpetua_device::{BackendKind, Device, DynBuffer, KernelArg};
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::{At, Error, Result};
use crate::node::Tensor;
use crate::shape::{Shape, count};

/// Where memory is: DLPack's `DLDevice`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DlDevice {
    /// 1: the host; 2: CUDA; 3: the host's memory that CUDA has pinned; 13: CUDA's managed memory.
    pub device_type: i32,
    /// Which one.
    pub device_id: i32,
}

/// Type of elements: DLPack's `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DlDataType {
    /// 0: signed integers; 1: unsigned ones; 2: floats; 4: bfloat; 6: bool; 10 and 12: floats of one byte, E4M3 and E5M2 (since version 1.1).
    pub code: u8,
    /// Bits of one.
    pub bits: u8,
    /// How many are one element: 1.
    pub lanes: u16,
}

/// Memory with a shape: DLPack's `DLTensor`.
#[repr(C)]
#[derive(Debug)]
pub struct DlTensor {
    /// The address of the memory.
    pub data: *mut c_void,
    /// Where it is.
    pub device: DlDevice,
    /// How many axes there are.
    pub ndim: i32,
    /// The elements' type.
    pub dtype: DlDataType,
    /// The extents.
    pub shape: *mut i64,
    /// From each element to the next one along an axis, in elements; null where they lie one behind the other.
    pub strides: *mut i64,
    /// From the address to the first element, in bytes.
    pub byte_offset: u64,
}

/// Memory with its owner: DLPack's `DLManagedTensor`.
#[repr(C)]
#[derive(Debug)]
pub struct DlManagedTensor {
    /// What it owns.
    pub dl_tensor: DlTensor,
    /// The owner's.
    pub manager_ctx: *mut c_void,
    /// Gives it back.
    pub deleter: Option<unsafe extern "C" fn(*mut DlManagedTensor)>,
}

/// A [`DlManagedTensor`] that is given back when it is dropped.
///
/// ```
/// # use perpetua_device::{BackendKind, Device};
/// use perpetua_tensor::{DlPack, Tensor};
/// # let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3], &device);
/// let raw = x.to_dlpack()?.into_raw(); // for a capsule of Python, or any library that knows DLPack
/// // SAFETY: it is a tensor's, which nobody writes to.
/// let pack = unsafe { DlPack::from_raw(raw) };
/// let y = Tensor::from_dlpack(pack, &device)?; // the same memory
/// assert_eq!((y * 2.0).to_vec::<f32>()?, [2.0, 4.0, 6.0]);
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct DlPack(*mut DlManagedTensor);

// SAFETY: DLPack lets any thread read a managed tensor, and give it back; the pointer is handed out by `into_raw` alone, which takes the value.
unsafe impl Send for DlPack {}
// SAFETY: as above; a shared reference only reads.
unsafe impl Sync for DlPack {}

impl Drop for DlPack {
    fn drop(&mut self) {
        // SAFETY: `from_raw` and `to_dlpack` got a valid structure, and nobody has given it back: `into_raw` forgets this value.
        unsafe {
            if let Some(deleter) = (*self.0).deleter {
                deleter(self.0);
            }
        }
    }
}

impl DlPack {
    /// What another library hands over.
    ///
    /// # Safety
    /// It is a `DLManagedTensor` whose shape and strides have `ndim` extents each, that nobody else will give back. Until its deleter is called its memory is there for the device that it names, at every element
    /// that its shape and strides reach, initialised, and written to by nobody; work of other streams that writes there has ended.
    pub unsafe fn from_raw(managed: *mut DlManagedTensor) -> DlPack {
        DlPack(managed)
    }

    /// For another library, which calls the deleter when it needs it no more, and does not write to its memory: a tensor never changes.
    pub fn into_raw(self) -> *mut DlManagedTensor {
        std::mem::ManuallyDrop::new(self).0
    }

    /// What it says.
    pub fn tensor(&self) -> &DlTensor {
        // SAFETY: the structure is valid until it is given back, which takes the value.
        unsafe { &(*self.0).dl_tensor }
    }

    // Extents and strides.
    fn layout(&self) -> std::result::Result<(Shape, Vec<i64>), String> {
        let tensor = self.tensor();
        let axes = usize::try_from(tensor.ndim).map_err(|_| format!("it has {} axes", tensor.ndim))?;
        let numbers = |from: *mut i64| -> Vec<i64> {
            match from.is_null() {
                true => Vec::new(),
                // SAFETY: whoever made this value has promised so many.
                false => (0..axes).map(|axis| unsafe { from.add(axis).read() }).collect(),
            }
        };
        let extents = numbers(tensor.shape);
        if extents.len() != axes {
            return Err("its shape is missing".into());
        }
        let shape = extents.iter().map(|n| usize::try_from(*n));
        let shape: std::result::Result<Shape, _> = shape.collect();
        let shape = shape.map_err(|_| format!("its shape {extents:?} has a negative extent"))?;
        if count(&shape) > isize::MAX as usize {
            return Err(format!("no memory holds its shape {extents:?}"));
        }
        let strides = match tensor.strides.is_null() {
            true => compact(&shape),
            false => numbers(tensor.strides),
        };
        Ok((shape, strides))
    }
}

// Strides of what lies one behind the other.
fn compact(shape: &[usize]) -> Vec<i64> {
    let mut stride = 1;
    let mut strides: Vec<i64> = Vec::with_capacity(shape.len());
    for extent in shape.iter().rev() {
        strides.push(stride);
        stride = stride.saturating_mul((*extent).max(1) as i64);
    }
    strides.reverse();
    strides
}

const TYPES: [(DType, u8); 15] = [
    (DType::Bool, 6),
    (DType::I8, 0),
    (DType::I16, 0),
    (DType::I32, 0),
    (DType::I64, 0),
    (DType::U8, 1),
    (DType::U16, 1),
    (DType::U32, 1),
    (DType::U64, 1),
    (DType::F16, 2),
    (DType::F32, 2),
    (DType::F64, 2),
    (DType::BF16, 4),
    (DType::E4m3, 10),
    (DType::E5m2, 12),
];

fn bits(dtype: DType) -> u8 {
    (dtype.size() * 8) as u8
}

/// What an exported structure keeps.
struct Kept {
    managed: DlManagedTensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
    // The memory, until it is given back.
    _value: DynBuffer,
}

unsafe extern "C" fn give_back(managed: *mut DlManagedTensor) {
    // SAFETY: `to_dlpack` has made the structure, with the address of what keeps it, and its owner gives it back once.
    unsafe {
        drop(Box::from_raw((*managed).manager_ctx.cast::<Kept>()));
    }
}

impl Tensor {
    /// Its memory for other libraries, computed and there; nothing is copied. They must not write to it: a tensor never changes.
    ///
    /// # Errors
    /// Those of its value; if its device's memory has no address that other libraries know (wgpu).
    #[track_caller]
    pub fn to_dlpack(&self) -> Result<DlPack> {
        let at = here!();
        self.realize()?;
        let refuse = |rule: &str| self.refuse("to_dlpack", &[], rule, at).check();
        let device_type = match self.device().backend() {
            BackendKind::Cpu => 1,
            BackendKind::Cuda => 2,
            _ => {
                refuse("other libraries know memory of the CPU and CUDA: move it to one of them with `to`")?;
                0
            }
        };
        self.device()
            .synchronize()
            .map_err(|cause| self.device_error(cause))?;
        let value = self.0.value();
        let address = value.as_ref().and_then(|value| match value.arg() {
            KernelArg::Buffer(buffer) => buffer.ptr().address(),
            KernelArg::Value(_) => None,
        });
        // The host's memory has an address that may be made a pointer again.
        if let Some(KernelArg::Buffer(buffer)) = value.as_ref().map(DynBuffer::arg)
            && let Some(there) = perpetua_device::host::raw(buffer.ptr())
        {
            let _ = there.as_ptr().expose_provenance();
        }
        let (Some(value), Some(address)) = (value, address) else {
            refuse("its memory has no address")?;
            return Err(crate::step::wrong(self, "it has no memory"));
        };
        let code = TYPES.iter().find(|(dtype, _)| *dtype == self.dtype());
        let mut kept = Box::new(Kept {
            shape: self.shape().iter().map(|n| *n as i64).collect(),
            strides: compact(self.shape()),
            managed: DlManagedTensor {
                dl_tensor: DlTensor {
                    data: std::ptr::with_exposed_provenance_mut(address as usize),
                    device: DlDevice {
                        device_type,
                        device_id: match device_type {
                            2 => self.device().info().index as i32,
                            _ => 0,
                        },
                    },
                    ndim: self.rank() as i32,
                    dtype: DlDataType {
                        code: code.map_or(2, |(_, code)| *code),
                        bits: bits(self.dtype()),
                        lanes: 1,
                    },
                    shape: std::ptr::null_mut(),
                    strides: std::ptr::null_mut(),
                    byte_offset: 0,
                },
                manager_ctx: std::ptr::null_mut(),
                deleter: Some(give_back),
            },
            _value: value,
        });
        kept.managed.dl_tensor.shape = kept.shape.as_mut_ptr();
        kept.managed.dl_tensor.strides = kept.strides.as_mut_ptr();
        let kept = Box::into_raw(kept);
        // SAFETY: the box was just given up, so this is the only pointer to it, and it stays until `give_back`.
        unsafe {
            (*kept).managed.manager_ctx = kept.cast();
            Ok(DlPack(&raw mut (*kept).managed))
        }
    }

    /// Another library's memory as a tensor of a device that reaches it; nothing is copied. It is given back when no tensor, and no work that was submitted, needs it, and also on an error.
    ///
    /// # Errors
    /// If the device does not reach the memory; of types and layouts that tensors do not have.
    #[track_caller]
    pub fn from_dlpack(pack: DlPack, device: &Device) -> Result<Tensor> {
        let at = here!();
        let tensor = pack.tensor();
        let error = |rule: String| Error::Rule {
            operation: "from_dlpack",
            operands: format!("{:?}", pack.tensor()),
            rule,
            at: At(at),
        };
        let reaches = match device.backend() {
            BackendKind::Cpu => matches!(tensor.device.device_type, 1 | 3),
            BackendKind::Cuda => {
                matches!(tensor.device.device_type, 2 | 13)
                    && usize::try_from(tensor.device.device_id) == Ok(device.info().index)
            }
            _ => false,
        };
        if !reaches {
            let rule = format!(
                "its memory is not {device:?}'s: take a device that has it, and move the tensor with `to`"
            );
            return Err(error(rule));
        }
        let named = |(dtype, code): &&(DType, u8)| {
            *code == tensor.dtype.code && bits(*dtype) == tensor.dtype.bits && tensor.dtype.lanes == 1
        };
        let Some((dtype, _)) = TYPES.iter().find(named) else {
            return Err(error(
                "tensors have no elements of its type: convert it there".into(),
            ));
        };
        let (shape, strides) = pack.layout().map_err(error)?;
        let layout = Layout::of(&shape, &strides).map_err(error)?;
        let size = i128::from(dtype.size());
        let address = tensor.data.expose_provenance() as i128 + i128::from(tensor.byte_offset);
        let first = address + i128::from(layout.first) * size;
        let bytes = usize::try_from(layout.count as i128 * size)
            .map_err(|_| error("it has more bytes than memory has addresses".into()))?;
        let begin =
            u64::try_from(first).map_err(|_| error("its memory begins before the first address".into()))?;
        if bytes > 0 && begin % u64::from(dtype.size()) != 0 {
            return Err(error(format!(
                "its elements of {size} bytes begin at the address {begin}, no multiple of that: copy it there"
            )));
        }
        // SAFETY: whoever made the pack has promised that its memory is there, initialised and not written to, until it is given back, which dropping it does.
        let adopted = unsafe { device.adopt::<u8>(begin, bytes, pack) };
        // Whatever is not 0 is true.
        let stored = if *dtype == DType::Bool { DType::U8 } else { *dtype };
        let value = adopted.and_then(|bytes| DynBuffer::view(&bytes, &stored.into()));
        let flat = Tensor::with_value("from_dlpack", value, stored, &[layout.count], device, at);
        flat.check()?;
        let placed = crate::place::inside(at, || layout.placed(&flat, &shape, at));
        placed.check()?;
        Ok(placed.cast_at(*dtype, at))
    }
}

/// Where elements lie in a run of memory.
struct Layout {
    // Of the run, from the first element.
    first: i64,
    count: usize,
    strides: Vec<i64>,
}

impl Layout {
    fn of(shape: &[usize], strides: &[i64]) -> std::result::Result<Layout, String> {
        if count(shape) == 0 {
            return Ok(Layout {
                first: 0,
                count: 0,
                strides: strides.to_vec(),
            });
        }
        let (mut low, mut high) = (0i128, 0i128);
        for (extent, stride) in shape.iter().zip(strides) {
            let way = (*extent as i128 - 1) * i128::from(*stride);
            low += way.min(0);
            high += way.max(0);
        }
        match (i64::try_from(low), usize::try_from(high - low + 1)) {
            (Ok(first), Ok(count)) if count <= isize::MAX as usize => Ok(Layout {
                first,
                count,
                strides: strides.to_vec(),
            }),
            _ => Err(format!("no memory holds its strides {strides:?}")),
        }
    }

    fn placed(&self, flat: &Tensor, shape: &[usize], at: &'static Location<'static>) -> Tensor {
        if count(shape) == 0 {
            return flat.reshaped(shape, at);
        }
        // Axes from the widest step down: without gaps it is a view of them, whose axes are put in order.
        let mut order: SmallVec<[usize; 4]> = (0..shape.len()).collect();
        order.sort_by_key(|axis| (shape[*axis] != 1, std::cmp::Reverse(self.strides[*axis])));
        let own: Shape = order.iter().map(|axis| shape[*axis]).collect();
        let expected = compact(&own);
        let mut each = order.iter().zip(&expected);
        if each.all(|(axis, stride)| shape[*axis] == 1 || self.strides[*axis] == *stride) {
            let mut back = order.clone();
            order
                .iter()
                .enumerate()
                .for_each(|(place, axis)| back[*axis] = place);
            return flat.reshaped(&own, at).permuted(back, at);
        }
        if i32::try_from(self.count).is_err() {
            let rule = "its elements lie apart, in more places than 2^31: copy it there first";
            return flat.refuse("from_dlpack", &[], rule, at);
        }
        let begin = Tensor::full(shape, -self.first, DType::I32, flat.device());
        let places = self
            .strides
            .iter()
            .enumerate()
            .filter(|(axis, _)| shape[*axis] > 1);
        let places = places.fold(begin, |places, (axis, stride)| {
            places + Tensor::coordinates(shape, axis, flat.device()) * *stride
        });
        let row = places.reshaped(&[count(shape)], at);
        flat.gather(0, &row).reshaped(shape, at)
    }
}
