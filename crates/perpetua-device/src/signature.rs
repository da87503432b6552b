//! Arguments of a launch and the signature that they are checked against, once, in front of every backend. Must not
//! know backends.

use std::any::TypeId;
use std::fmt;
use std::sync::OnceLock;

use perpetua_ir::front::rust::GpuType;
use perpetua_ir::ir::{Access, Kernel, Param, ParamKind, Scalar, Stages};
use perpetua_ir::verify::Verified;

use crate::buffer::{elements_in, whole_elements_in};
use crate::error::{Error, Result};
use crate::error_text::describe;
use crate::factors;
use crate::layout;
use crate::overlap::Overlap;
use crate::ptr::{DevicePtr, MemoryKind};
use crate::value::{ArgType, ValueArg};

/// One argument of a launch. [`args!`](crate::args) makes them.
#[derive(Clone, Debug)]
pub enum KernelArg<'a> {
    /// A buffer.
    Buffer(BufferArg<'a>),
    /// A value.
    Value(ValueArg),
}

/// A buffer as an argument.
#[derive(Clone, Debug)]
pub struct BufferArg<'a> {
    // Holds `len` elements: whoever makes one sees to it.
    pub(crate) ptr: &'a DevicePtr,
    pub(crate) len: u64,
    pub(crate) element: ArgType,
}

impl<'a> BufferArg<'a> {
    /// The memory, as long as its elements, or longer by less than one.
    pub fn ptr(&self) -> &'a DevicePtr {
        self.ptr
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Element type.
    pub fn element(&self) -> &ArgType {
        &self.element
    }

    /// The same bytes as elements of another type, as [`Buffer::cast`](crate::Buffer::cast) has them.
    pub fn cast<U: GpuType>(&self) -> Result<BufferArg<'a>> {
        Ok(BufferArg {
            ptr: self.ptr,
            len: elements_in::<U>(self.ptr)?,
            element: ArgType::of::<U>(),
        })
    }

    /// The same of as many whole elements as there are: what is behind the last one is left out.
    pub fn cast_front<U: GpuType>(&self) -> Result<BufferArg<'a>> {
        Ok(BufferArg {
            ptr: self.ptr,
            len: whole_elements_in::<U>(self.ptr)?,
            element: ArgType::of::<U>(),
        })
    }
}

impl<T: GpuType> From<T> for KernelArg<'_> {
    fn from(value: T) -> Self {
        let ty = ArgType::of::<T>();
        KernelArg::Value(layout::with_bytes(&[value], |bytes| ValueArg::new(bytes, ty)))
    }
}

impl KernelArg<'_> {
    fn describe(&self) -> String {
        match self {
            KernelArg::Buffer(b) => format!("a buffer of {}", b.element),
            KernelArg::Value(v) => format!("a value of type {}", v.ty()),
        }
    }
}

/// `[f32; 7]` for a buffer, `2i32` for a number, type and bytes for other values.
impl fmt::Display for KernelArg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = match self {
            KernelArg::Buffer(b) => return write!(f, "[{:?}; {}]", b.element, b.len),
            KernelArg::Value(value) => value,
        };
        let bytes = value.bytes();
        let mut wide = [0; 8];
        let leaf = match value.ty().scalar() {
            Some(scalar) if bytes.len() == scalar.size() as usize => scalar,
            _ => return write!(f, "{value:?}"),
        };
        wide[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(wide);
        match leaf {
            Scalar::F32 => write!(f, "{}f32", f32::from_bits(bits as u32)),
            Scalar::F64 => write!(f, "{}f64", f64::from_bits(bits)),
            s if s.is_signed_int() => {
                let unused = 64 - s.bits();
                write!(f, "{}{s}", ((bits << unused) as i64) >> unused)
            }
            s if s.is_unsigned_int() => write!(f, "{bits}{s}"),
            _ => write!(f, "{value:?}"),
        }
    }
}

/// The arguments of a launch, in order: `args![&x, &mut y, 2.0f32]`. Buffers by reference (`&` or `&mut`, both are
/// handles to the same memory), values as they are; a number needs its type (`2.0f32`, `n as u32`).
///
/// One buffer, or parts that overlap, may stand for several parameters, which Rust would refuse of a function: each lane then
/// reads what is there, and lanes that write and read one word race for it (its value is one of those written).
///
/// ```
/// use perpetua_device::{BackendKind, CompileOptions, Device, KernelSource, LaunchConfig, args};
/// let text = "\
/// kernel shift(x: buffer<f32, read>, y: buffer<f32, read_write>, by: f32) {
///   %0: u32 = thread_idx.x
///   %1: f32 = load x[%0]
///   %2: f32 = param by
///   %3: f32 = add %1, %2
///   store y[%0], %3
/// }
/// ";
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let shift = device.compile(&KernelSource::IrText(text), &CompileOptions::default())?.only()?;
/// let (x, y) = (device.upload(&[1.0f32, 2.0])?, device.zeros::<f32>(2)?);
/// device.launch(&shift, LaunchConfig::new(1, 2), args![&x, &y, 0.5f32])?;
/// assert_eq!(y.read()?, [1.5, 2.5]);
/// // Number and types are checked.
/// let error = device.launch(&shift, LaunchConfig::new(1, 2), args![&x, &y, 0.5f64]).expect_err("an f64");
/// assert!(error.to_string().contains("f64"), "{error}");
/// # Ok::<(), perpetua_device::Error>(())
/// ```
#[macro_export]
macro_rules! args {
    ($($arg:expr),* $(,)?) => {
        &[$($crate::KernelArg::from($arg)),*] as &[$crate::KernelArg<'_>]
    };
}

/// A kernel's name and parameters.
#[derive(Clone, Debug)]
pub struct Signature {
    name: String,
    params: Vec<(Param, OnceLock<TypeId>)>,
    block_size: Option<[u32; 3]>,
    shared_bytes: u32,
    dynamic_shared: bool,
    stages: Option<Stages>,
    constant: Vec<u32>,
}

impl Signature {
    /// A signature with no fixed block size and no shared memory.
    pub fn new(name: impl Into<String>, params: Vec<Param>) -> Signature {
        Signature {
            name: name.into(),
            params: params.into_iter().map(|p| (p, OnceLock::new())).collect(),
            block_size: None,
            shared_bytes: 0,
            dynamic_shared: false,
            stages: None,
            constant: Vec::new(),
        }
    }

    /// The signature of a kernel in IR.
    pub fn of(verified: &Verified) -> Signature {
        Signature::described(verified.kernel(), verified.constant_buffers().to_vec())
    }

    /// The signature of a kernel whose code is not at hand; `constant`: what [`Verified::constant_buffers`] said of it.
    pub(crate) fn described(kernel: &Kernel, constant: Vec<u32>) -> Signature {
        Signature {
            constant,
            block_size: kernel.block_size,
            shared_bytes: kernel.shared_bytes() + kernel.stages.as_ref().map_or(0, Stages::bytes),
            stages: kernel.stages.clone(),
            dynamic_shared: kernel.shared.iter().any(|s| s.dynamic),
            ..Signature::new(kernel.name.clone(), kernel.params.clone())
        }
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parameters in order.
    pub fn params(&self) -> impl ExactSizeIterator<Item = &Param> {
        self.params.iter().map(|(p, _)| p)
    }

    /// The block size that the kernel demands, if it demands one.
    pub fn block_size(&self) -> Option<[u32; 3]> {
        self.block_size
    }

    /// Bytes of shared memory of fixed size, that of stages included.
    pub fn shared_bytes(&self) -> u32 {
        self.shared_bytes
    }

    /// Whether the kernel uses dynamic shared memory.
    pub fn dynamic_shared(&self) -> bool {
        self.dynamic_shared
    }

    /// What the kernel multiplies in stages.
    pub fn stages(&self) -> Option<&Stages> {
        self.stages.as_ref()
    }

    /// Checks number, kinds, types and alignment of `args`, and that kernels reach the buffers' memory.
    pub fn check(&self, args: &[KernelArg<'_>]) -> Result<()> {
        if args.len() != self.params.len() {
            return Err(Error::ArgumentCount {
                signature: self.to_string(),
                expected: self.params.len(),
                given: args.len(),
            });
        }
        for (i, ((param, seen), arg)) in self.params.iter().zip(args).enumerate() {
            let (expected, given) = match (&param.kind, arg) {
                (ParamKind::Buffer { element, .. }, KernelArg::Buffer(b)) => (element, &b.element),
                (ParamKind::Value(ty), KernelArg::Value(v)) => (ty, v.ty()),
                _ => return Err(self.mismatch(i, param, arg)),
            };
            let narrows = || matches!(arg, KernelArg::Value(v) if v.narrowed(expected).is_some());
            if !given.fits(expected, seen) && !narrows() {
                return Err(self.mismatch(i, param, arg));
            }
            if let KernelArg::Buffer(b) = arg {
                self.check_memory(i, param, b, expected.align())?;
                if self.constant.iter().any(|c| *c as usize == i) && b.ptr.kind() == MemoryKind::Mapped {
                    return Err(Error::ArgumentMismatch {
                        kernel: self.name.clone(),
                        index: i,
                        parameter: describe(param),
                        given: "a buffer in mapped memory, which the host may change while lanes wait for each other".into(),
                        remedy: "copy it to the device: whether all lanes come to a barrier depends on what it holds",
                    });
                }
            }
        }
        factors::check(self, args)
    }

    /// Checks that what the kernel takes for constant is not bound to a parameter that is stored to, too.
    pub fn check_overlaps(&self, overlaps: &[Overlap]) -> Result<()> {
        // Most launches end here.
        if overlaps.is_empty() || self.constant.is_empty() {
            return Ok(());
        }
        let param = |i: usize| self.params.get(i).map(|(param, _)| param);
        for (constant, stored) in overlaps
            .iter()
            .flat_map(|o| [(o.first, o.second), (o.second, o.first)])
        {
            let relied = self.constant.iter().any(|c| *c as usize == constant);
            if let (true, Some(read), Some(written)) = (relied, param(constant), param(stored))
                && matches!(
                    written.kind,
                    ParamKind::Buffer {
                        access: Access::ReadWrite,
                        ..
                    }
                )
            {
                return Err(Error::ConstantOverlaps {
                    kernel: self.name.clone(),
                    constant,
                    constant_parameter: describe(read),
                    stored,
                    stored_parameter: describe(written),
                });
            }
        }
        Ok(())
    }

    fn check_memory(&self, index: usize, param: &Param, arg: &BufferArg<'_>, align: u32) -> Result<()> {
        if arg.ptr.kind() == MemoryKind::Pinned {
            return Err(Error::ArgumentMismatch {
                kernel: self.name.clone(),
                index,
                parameter: describe(param),
                given: "a buffer in pinned host memory, which kernels do not reach".into(),
                remedy: "copy it to the device, or allocate it as mapped memory",
            });
        }
        let align = u64::from(align.max(1));
        if !arg.ptr.place().is_multiple_of(align) && arg.len != 0 {
            return Err(Error::Alignment {
                operation: "launch",
                subject: format!("argument {index} of kernel `{}`", self.name),
                found: arg.ptr.place(),
                needed: align,
            });
        }
        Ok(())
    }

    fn mismatch(&self, index: usize, param: &Param, arg: &KernelArg<'_>) -> Error {
        let remedy = match (&param.kind, arg) {
            (ParamKind::Buffer { .. }, KernelArg::Value(_)) => "pass a buffer by reference, as `&buffer`",
            (ParamKind::Value(_), KernelArg::Buffer(_)) => "pass the value itself",
            (ParamKind::Value(_), KernelArg::Value(_)) => {
                "give the number its type, as in `1.0f32` or `n as u32`"
            }
            (ParamKind::Buffer { element, .. }, KernelArg::Buffer(b)) if b.element.narrows_to(element) => {
                "`usize` and `isize` have 32 bits on this device: use `u32` or `u64`, `i32` or `i64` in buffers"
            }
            (ParamKind::Buffer { .. }, KernelArg::Buffer(_)) => {
                "make the buffer with the parameter's element type"
            }
        };
        Error::ArgumentMismatch {
            kernel: self.name.clone(),
            index,
            parameter: describe(param),
            given: arg.describe(),
            remedy,
        }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params: Vec<String> = self.params().map(describe).collect();
        write!(f, "{}({})", self.name, params.join(", "))
    }
}
