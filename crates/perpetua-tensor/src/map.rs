//! Files as memory: on the CPU a tensor's elements are the file's own pages, read when they are first wanted, and never copied.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memmap2::{MmapMut, MmapOptions};
use perpetua_device::{BackendKind, Device, DynBuffer};

use crate::dtype::DType;
use crate::node::Tensor;

/// A mapped file. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Map(Arc<MmapMut>);

impl Map {
    /// What is written goes to copies of pages, never to the file.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Safety
    /// As of [`Tensor::map_npy`].
    pub(crate) unsafe fn of(path: &Path) -> std::io::Result<Map> {
        let file = File::open(path)?;
        // SAFETY: the caller promises that nobody changes the file while it is mapped.
        let mut map = unsafe { MmapOptions::new().no_reserve_swap().map_copy(&file)? };
        // For devices, which know addresses.
        let _ = map.as_mut_ptr().expose_provenance();
        Ok(Map(Arc::new(map)))
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
    pub(crate) fn tensor(
        &self,
        operation: &'static str,
        part: &[u8],
        dtype: DType,
        shape: &[usize],
        device: &Device,
    ) -> Tensor {
        let address = part.as_ptr().addr() as u64;
        // SAFETY: the part is a part of the map, whose pages may be read and, as copies, written by anybody, are initialised, and stay until the owner
        // is dropped; its provenance was exposed. Nobody changes the file, as the caller of `map_npy` or `map_safetensors` has promised; nobody writes to the memory, since a tensor never
        // changes; the only references to it are shared ones that read headers.
        let adopted = unsafe { device.adopt::<u8>(address, part.len(), self.clone()) };
        let value = adopted.and_then(|bytes| DynBuffer::view(&bytes, &dtype.into()));
        Tensor::with_value(operation, value, dtype, shape, device, here!())
    }
}
