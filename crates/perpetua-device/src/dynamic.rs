//! Buffers and values whose type is known at run time only, as the IR's type: for programs that read kernels from text,
//! interpreters of other languages, tests with generated kernels. Must not know backends.

use std::fmt;
use std::sync::Arc;

use perpetua_ir::ir::{Scalar, Type};

use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::future::BoxFuture;
use crate::signature::{BufferArg, KernelArg};
use crate::value::{ArgType, ValueArg};

/// Elements of an IR type in device memory. What it holds stays values of the type.
///
/// ```
/// use perpetua_device::{BackendKind, CompileOptions, Device, DynBuffer, KernelSource, LaunchConfig, args};
/// use perpetua_ir::ir::{Scalar, Type};
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let text = "kernel k(x: buffer<u32x2, read_write>) {\n  %0: u32 = thread_idx.x\n  store x[%0].0, %0\n}\n";
/// let kernel = device.compile(&KernelSource::IrText(text), &CompileOptions::default())?.only()?;
/// let x = DynBuffer::upload(&device, &Type::Vector(Scalar::U32, 2), &[7; 16])?;
/// device.launch(&kernel, LaunchConfig::new(1, 2), args![&x])?;
/// assert_eq!(x.read()?, [0, 0, 0, 0, 7, 7, 7, 7, 1, 0, 0, 0, 7, 7, 7, 7]);
/// # Ok::<(), perpetua_device::Error>(())
/// ```
#[derive(Clone)]
pub struct DynBuffer {
    bytes: Buffer<u8>,
    element: Arc<Type>,
    len: u64,
}

impl DynBuffer {
    /// A buffer that holds a copy of `bytes`: values of `element` one after the other, each laid out as in memory
    /// (padding may be anything).
    pub fn upload(device: &Device, element: &Type, bytes: &[u8]) -> Result<DynBuffer> {
        check_values(element, bytes)?;
        Ok(DynBuffer {
            len: bytes.len() as u64 / u64::from(element.size()),
            bytes: device.upload(bytes)?,
            element: Arc::new(element.clone()),
        })
    }

    /// A buffer of `len` elements whose content is unspecified; zeros where not all bytes are values.
    pub fn alloc(device: &Device, element: &Type, len: u64) -> Result<DynBuffer> {
        let size = u64::from(element.size());
        let bytes = len
            .checked_mul(size)
            .and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.ok_or(Error::Limit {
            what: "bytes in one buffer",
            found: u64::MAX,
            limit: device.info().limits.max_buffer_bytes,
            remedy: "use several buffers",
        })?;
        let has_bools = element.leaves().iter().any(|(scalar, _)| *scalar == Scalar::Bool);
        Ok(DynBuffer {
            bytes: match has_bools {
                true => device.zeros(bytes)?,
                false => device.alloc(bytes)?,
            },
            element: Arc::new(element.clone()),
            len,
        })
    }

    /// The whole elements of a type at the beginning of bytes: the same memory. Not of types with `bool`s, which bytes need not be.
    pub fn view(bytes: &Buffer<u8>, element: &Type) -> Result<DynBuffer> {
        if let Some((scalar, _)) = element
            .leaves()
            .iter()
            .find(|(scalar, _)| *scalar == Scalar::Bool)
        {
            return Err(Error::InvalidValue {
                element: 0,
                ty: element.to_string(),
                message: format!("bytes are not values of {scalar}: upload such values"),
            });
        }
        let size = element.size().max(1) as usize;
        let len = bytes.len() / size;
        Ok(DynBuffer {
            bytes: bytes.slice(..len * size)?,
            len: len as u64,
            element: Arc::new(element.clone()),
        })
    }

    /// The element type.
    pub fn element(&self) -> &Type {
        &self.element
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Waits for the content, as bytes.
    pub fn read(&self) -> Result<Vec<u8>> {
        self.bytes.read()
    }

    /// The same without blocking; the copy is submitted by this call.
    pub fn read_async(&self) -> BoxFuture<'static, Result<Vec<u8>>> {
        self.bytes.read_async()
    }

    /// Copies the content of another buffer of the same elements here, on the device; on its default stream.
    pub fn copy_from(&self, source: &DynBuffer) -> Result<()> {
        self.bytes.copy_from(&source.bytes)
    }

    /// The device that it lives on.
    pub fn device(&self) -> &Device {
        self.bytes.device()
    }

    /// Waits for the bytes of one element.
    pub fn read_one(&self, index: u64) -> Result<Vec<u8>> {
        self.one(index)?.read()
    }

    /// Replaces one element.
    pub fn write_one(&self, index: u64, bytes: &[u8]) -> Result<()> {
        check_values(&self.element, bytes)?;
        self.one(index)?.write(bytes)
    }

    /// Replaces the first elements.
    pub fn write_first(&self, bytes: &[u8]) -> Result<()> {
        check_values(&self.element, bytes)?;
        self.bytes.slice(..bytes.len())?.write(bytes)
    }

    fn one(&self, index: u64) -> Result<Buffer<u8>> {
        let size = u64::from(self.element.size());
        let at = (index * size) as usize;
        self.bytes.slice(at..at + size as usize)
    }

    /// As an argument of a launch.
    pub fn arg(&self) -> KernelArg<'_> {
        KernelArg::Buffer(BufferArg {
            ptr: self.bytes.ptr(),
            len: self.len,
            element: ArgType::described(Arc::clone(&self.element)),
        })
    }
}

impl<'a> From<&'a DynBuffer> for KernelArg<'a> {
    fn from(buffer: &'a DynBuffer) -> Self {
        buffer.arg()
    }
}

impl fmt::Debug for DynBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}; {}] on {:?}", self.element, self.len, self.bytes.device())
    }
}

impl KernelArg<'_> {
    /// A value of an IR type, from its bytes as in memory.
    pub fn value(ty: &Type, bytes: &[u8]) -> Result<KernelArg<'static>> {
        check_values(ty, bytes)?;
        if bytes.len() != ty.size() as usize {
            return Err(Error::SizeMismatch {
                operation: "making an argument",
                source_len: bytes.len() as u64,
                destination_len: ty.size().into(),
                unit: "bytes",
            });
        }
        let ty = ArgType::described(Arc::new(ty.clone()));
        Ok(KernelArg::Value(ValueArg::new(bytes, ty)))
    }
}

// Fails unless `bytes` are whole values of `ty`.
fn check_values(ty: &Type, bytes: &[u8]) -> Result<()> {
    let size = ty.size() as usize;
    if size == 0 || !bytes.len().is_multiple_of(size) {
        return Err(Error::Alignment {
            operation: "describing bytes by a type",
            subject: format!("the end of the values of `{ty}`"),
            found: bytes.len() as u64,
            needed: size as u64,
        });
    }
    let leaves = ty.leaves();
    let bools: Vec<usize> = leaves
        .iter()
        .filter(|(scalar, _)| *scalar == Scalar::Bool)
        .map(|(_, offset)| *offset as usize)
        .collect();
    if bools.is_empty() {
        return Ok(());
    }
    for (i, value) in bytes.chunks_exact(size).enumerate() {
        if let Some(bad) = bools.iter().filter_map(|at| value.get(*at)).find(|b| **b > 1) {
            return Err(Error::InvalidValue {
                element: i as u64,
                ty: ty.to_string(),
                message: format!("{bad} is no bool: write 0 or 1"),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_must_be_values() {
        let check = |ty: &Type, bytes: &[u8], expect: &str| {
            let found = check_values(ty, bytes).map_err(|e| e.to_string());
            let found = found.err().unwrap_or_default();
            assert!(
                found.contains(expect) && found.is_empty() == expect.is_empty(),
                "{found}"
            );
        };
        let flag = Type::tuple(vec![Type::U32, Type::BOOL]);
        check(&Type::U32, &[9; 8], "");
        check(&Type::U32, &[9; 7], "7");
        check(&Type::tuple(vec![]), &[], "values of");
        check(&flag, &[9, 9, 9, 9, 1, 9, 9, 9], "");
        check(&flag, &[9, 9, 9, 9, 2, 9, 9, 9], "2 is no bool");
    }
}
