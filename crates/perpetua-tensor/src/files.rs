//! Tensors in files: NumPy's `.npy`, with the feature `npz` its `.npz`, and with the feature `safetensors` several by name; with the feature `mmap` also as memory that files
//! are mapped to. What a file says is not trusted: what does not fit is an error.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use perpetua_device::Device;
use perpetua_ir::ir::npy;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::node::Tensor;

pub(crate) fn failed(path: &Path, cause: impl ToString) -> Error {
    Error::File {
        path: path.display().to_string(),
        cause: cause.to_string(),
    }
}

/// What a file holds.
pub(crate) enum Contents {
    Read(Vec<u8>),
    #[cfg(feature = "mmap")]
    Mapped(crate::map::Map),
}

impl Contents {
    pub(crate) fn read(path: &Path) -> Result<Contents> {
        let read = std::fs::read(path).map_err(|error| failed(path, error));
        read.map(Contents::Read)
    }

    /// Mapped to memory.
    ///
    /// # Safety
    /// As of [`Tensor::map_npy`].
    #[cfg(feature = "mmap")]
    pub(crate) unsafe fn map(path: &Path) -> Result<Contents> {
        // SAFETY: the caller promises the same.
        let mapped = unsafe { crate::map::Map::of(path) };
        mapped.map(Contents::Mapped).map_err(|error| failed(path, error))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Contents::Read(bytes) => bytes,
            #[cfg(feature = "mmap")]
            Contents::Mapped(map) => map.bytes(),
        }
    }

    /// A tensor of a part of the bytes, which the function `operation` gives. Whatever is not 0 is true.
    #[track_caller]
    pub(crate) fn tensor(
        &self,
        operation: &'static str,
        part: &[u8],
        dtype: DType,
        shape: &[usize],
        device: &Device,
    ) -> Result<Tensor> {
        let tensor = match self {
            #[cfg(feature = "mmap")]
            Contents::Mapped(map) if map.serves(part, dtype, device) => {
                map.tensor(operation, part, dtype, shape, device)
            }
            _ if dtype == DType::Bool => {
                let truths: Vec<u8> = part.iter().map(|byte| u8::from(*byte != 0)).collect();
                Tensor::uploaded(operation, &truths, dtype, shape, device, here!())
            }
            _ => Tensor::uploaded(operation, part, dtype, shape, device, here!()),
        };
        tensor.check().map(|()| tensor)
    }

    /// As a `.npy` file.
    #[track_caller]
    pub(crate) fn array(&self, operation: &'static str, path: &Path, device: &Device) -> Result<Tensor> {
        let array = npy::read(self.bytes()).map_err(|cause| failed(path, cause))?;
        self.tensor(operation, array.bytes, array.element.into(), &array.shape, device)
    }
}

/// An array as a `.npy` file.
pub(crate) fn npy_of(dtype: DType, shape: &[usize], bytes: &[u8]) -> std::result::Result<Vec<u8>, String> {
    match dtype.is_byte_float() {
        true => Err(format!("NumPy has no elements of type {dtype}")),
        false => npy::write(dtype.stored(), shape, bytes),
    }
}

// A file that is there is whole: what is written takes its place at the end.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{:x}.part", RandomState::new().hash_one(path)));
    let part = path.with_file_name(name);
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path));
    written.map_err(|error| {
        // It may not be there.
        let _ = std::fs::remove_file(&part);
        failed(path, error)
    })
}

impl Tensor {
    /// A tensor of a `.npy` file, as `numpy.save` writes it.
    ///
    /// ```
    /// # use perpetua_device::{BackendKind, Device};
    /// # use perpetua_tensor::Tensor;
    /// # let device = Device::new(BackendKind::Cpu, 0)?;
    /// # let path = std::env::temp_dir().join(format!("perpetua-{}.npy", std::process::id()));
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [2], &device);
    /// x.save_npy(&path)?;
    /// assert_eq!(Tensor::load_npy(&path, &device)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # std::fs::remove_file(&path).expect("it was written");
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read, is no array of integers, floats or bool in C's order, or the device cannot hold it.
    #[track_caller]
    pub fn load_npy(path: impl AsRef<Path>, device: &Device) -> Result<Tensor> {
        let path = path.as_ref();
        Contents::read(path)?.array("load_npy", path, device)
    }

    /// As [`Tensor::load_npy`], of a file that is mapped to memory: on the CPU nothing is read before it is wanted, and nothing copied; other devices get a copy.
    ///
    /// ```
    /// # use perpetua_device::{BackendKind, Device};
    /// # use perpetua_tensor::Tensor;
    /// # let device = Device::new(BackendKind::Cpu, 0)?;
    /// # let path = std::env::temp_dir().join(format!("perpetua-{}-map.npy", std::process::id()));
    /// Tensor::from_slice(&[1.0f32, 2.0], [2], &device).save_npy(&path)?;
    /// // SAFETY: nobody else knows the file.
    /// let x = unsafe { Tensor::map_npy(&path, &device)? };
    /// assert_eq!((x * 2.0).to_vec::<f32>()?, [2.0, 4.0]);
    /// # std::fs::remove_file(&path).expect("it was written");
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::load_npy`].
    ///
    /// # Safety
    /// Nobody, in this process or another one, changes or shortens the file while the tensor is there, or anything that was made of it and not computed yet: a view, an operation, a capture. To remove it, or to put another one in its place, is allowed where the system
    /// allows it.
    #[cfg(feature = "mmap")]
    #[track_caller]
    pub unsafe fn map_npy(path: impl AsRef<Path>, device: &Device) -> Result<Tensor> {
        let path = path.as_ref();
        // SAFETY: the caller promises the same.
        let contents = unsafe { Contents::map(path)? };
        contents.array("map_npy", path, device)
    }

    /// Writes it as `numpy.load` reads it. Waits for the device. A file that is there is replaced by a whole one.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`]; if NumPy lacks its type (`bf16`, floats of one byte), or the file cannot be written.
    pub fn save_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        let (path, bytes) = (path.as_ref(), self.to_bytes()?);
        let file = npy_of(self.dtype(), self.shape(), &bytes).map_err(|cause| failed(path, cause))?;
        write(path, &file)
    }
}
