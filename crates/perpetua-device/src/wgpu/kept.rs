//! The driver's cache of pipelines, kept on disk for the next process. Must not know kernels.

use super::shared::Shared;
use crate::cache::{CacheKey, DiskCache};
use crate::source::KernelId;

/// The driver's pipeline cache, and where it is kept.
pub(super) struct Kept {
    pub(super) cache: wgpu::PipelineCache,
    disk: DiskCache,
    key: CacheKey,
}

impl Kept {
    pub(super) fn open(shared: &Shared, adapter: &wgpu::Adapter) -> Option<Kept> {
        if !shared.features.contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let name = wgpu::util::pipeline_cache_key(&adapter.get_info())?;
        let disk = DiskCache::open("wgpu")?;
        let key = CacheKey::new(KernelId::of(&[name.as_bytes()]), "pipelines", &shared.info.driver);
        let data = disk.get(key);
        // SAFETY: the data came from `get_data` of a cache with the same key (adapter and driver), and passed its
        // checksum; `fallback` lets the driver start over when it does not know it.
        let cache = unsafe {
            shared
                .device
                .create_pipeline_cache(&wgpu::PipelineCacheDescriptor {
                    label: None,
                    data: data.as_deref(),
                    fallback: true,
                })
        };
        Some(Kept { cache, disk, key })
    }

    /// Writes the driver's pipelines to disk.
    pub(super) fn store(&self) {
        if let Some(data) = self.cache.get_data()
            && let Err(error) = self.disk.put(self.key, &data)
        {
            tracing::debug!(%error, "the driver's pipelines were not kept on disk");
        }
    }
}
