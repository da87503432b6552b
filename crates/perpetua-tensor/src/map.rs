//! Files as memory: on the CPU a tensor's elements are the file's own pages, read when they are first wanted, and never copied.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memmap2::{MmapMut, MmapOptions};
use perpetua_device::{BackendKind, Device, DynBuffer};

use crate::dtype::DType;
use crate::error::Result;
use crate::files::{Contents, failed};
use crate::node::Tensor;

/// A mapped file. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Map(Arc<MmapMut>);

impl Map {
    // What is written goes to copies of pages, never to the file.
    //
    // SAFETY: as of `Tensor::map_npy`.
    unsafe fn of(path: &Path) -> Result<Contents> {
        let file = File::open(path).map_err(|error| failed(path, error))?;
        // SAFETY: the caller promises that nobody changes the file while it is mapped.
        let mapped = unsafe { MmapOptions::new().map_copy(&file) };
        let mut map = mapped.map_err(|error| failed(path, error))?;
        // For devices, which know addresses.
        let _ = map.as_mut_ptr().expose_provenance();
        Ok(Contents::Mapped(Map(Arc::new(map))))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether elements can stay where they are. Truths are looked at one by one, so they are copied.
    pub(crate) fn serves(&self, part: &[u8], dtype: DType, device: &Device) -> bool {
        let is_aligned = part.as_ptr().addr().is_multiple_of(dtype.size() as usize);
        device.backend() == BackendKind::Cpu && is_aligned && !part.is_empty() && dtype != DType::Bool
    }

    /// A tensor whose elements are a part of the map, which stays as long as they are needed.
    #[track_caller]
    pub(crate) fn tensor(&self, part: &[u8], dtype: DType, shape: &[usize], device: &Device) -> Tensor {
        let address = part.as_ptr().addr() as u64;
        // SAFETY: the part is a part of the map, whose pages may be read and, as copies, written by anybody, are initialised, and stay until the owner
        // is dropped; its provenance was exposed. Nobody changes the file, as the caller of `map_npy` or `map_safetensors` has promised; nobody writes to the memory, since a tensor never
        // changes; the only references to it are shared ones that read headers.
        let adopted = unsafe { device.adopt::<u8>(address, part.len(), self.clone()) };
        let value = adopted.and_then(|bytes| DynBuffer::view(&bytes, &dtype.into()));
        Tensor::with_value(value, dtype, shape, device, here!())
    }
}

impl Tensor {
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
    /// Nobody, in this process or another one, changes or shortens the file while the tensor, or what was submitted of it, is there. To remove it, or to put another one in its place, is allowed where the system
    /// allows it.
    #[track_caller]
    pub unsafe fn map_npy(path: impl AsRef<Path>, device: &Device) -> Result<Tensor> {
        let path = path.as_ref();
        // SAFETY: the caller promises the same.
        let contents = unsafe { Map::of(path)? };
        contents.array(path, device)
    }
}

/// As [`load_safetensors`](crate::load_safetensors), of a file that is mapped to memory: on the CPU nothing is read before it is wanted, and what lies at a multiple of its elements' size is not
/// copied.
///
/// # Errors
/// As [`load_safetensors`](crate::load_safetensors).
///
/// # Safety
/// As of [`Tensor::map_npy`].
#[cfg(feature = "safetensors")]
#[track_caller]
pub unsafe fn map_safetensors(path: impl AsRef<Path>, device: &Device) -> Result<BTreeMap<String, Tensor>> {
    let path = path.as_ref();
    // SAFETY: the caller promises the same.
    let contents = unsafe { Map::of(path)? };
    crate::safetensors::tensors(&contents, path, device)
}
