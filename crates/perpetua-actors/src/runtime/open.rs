//! Which engine runs a runtime's actors. Nothing else names an engine by its type.

use std::sync::Arc;

use perpetua_device::BackendKind;

use super::engine::Engine;
#[cfg(target_arch = "x86_64")]
use super::grids::open as open_grids;
use super::host::Host;
use super::{Settings, batched, threads};
use crate::error::{ActorError, Result};

pub(super) fn open_engine(host: &Arc<Host>, settings: &Settings) -> Result<Arc<dyn Engine>> {
    let refused = |remedy| {
        Err(ActorError::Unsupported {
            backend: settings.backend.name(),
            operation: "running actors",
            remedy,
        })
    };
    match settings.backend {
        BackendKind::Null => {
            refused("it runs no kernels: take `Backend::Cpu`, `Backend::Cuda` or `Backend::Wgpu`")
        }
        _ if settings.in_batches => batched::open(host, settings),
        _ if settings.resident => open_grids(host, settings),
        BackendKind::Wgpu => batched::open(host, settings),
        BackendKind::Auto => open_grids(host, settings).or_else(|_| threads::open(host, settings)),
        BackendKind::Cpu => threads::open(host, settings),
        BackendKind::Cuda => open_grids(host, settings),
        _ => refused("take `Backend::Cpu`, `Backend::Cuda` or `Backend::Wgpu`, or build it `in_batches`"),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn open_grids(_: &Arc<Host>, settings: &Settings) -> Result<Arc<dyn Engine>> {
    Err(ActorError::Unsupported {
        backend: settings.backend.name(),
        operation: "a resident handler",
        remedy: "the host's processor must be an x86-64 one: take `Backend::Cpu`, or build the runtime `in_batches`",
    })
}
