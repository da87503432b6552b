//! Tensors in files: NumPy's `.npy`, and with the feature `safetensors` several by name. What a file says is not trusted: what does not fit is an
//! error.

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

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| failed(path, error))
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

/// A tensor of a file's bytes. Whatever is not 0 is true.
#[track_caller]
pub(crate) fn tensor(mut bytes: Vec<u8>, dtype: DType, shape: &[usize], device: &Device) -> Tensor {
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    }
    Tensor::from_bytes(&bytes, dtype, shape, device, here!())
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
        let array = npy::read(&read(path)?).map_err(|cause| failed(path, cause))?;
        let loaded = tensor(array.bytes, array.element, &array.shape, device);
        loaded.check().map(|()| loaded)
    }

    /// Writes it as `numpy.load` reads it. Waits for the device. A file that is there is replaced by a whole one.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`]; if NumPy lacks its type (`bf16`), or the file cannot be written.
    pub fn save_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        let (path, bytes) = (path.as_ref(), self.to_bytes()?);
        let file = npy::write(self.dtype(), self.shape(), &bytes).map_err(|cause| failed(path, cause))?;
        write(path, &file)
    }
}
