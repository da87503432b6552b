//! Which engine runs a runtime's actors. Nothing else names an engine by its type.

use std::sync::Arc;

use perpetua_device::future::block_on;
use perpetua_device::{BackendKind, DeviceInfo, open_backend};

use super::choice::DeviceChoice;
use super::engine::Engine;
#[cfg(target_arch = "x86_64")]
use super::grids::open as open_grids;
use super::host::Host;
use super::several::{Neighbours, Several};
use super::{Settings, batched, simulation, threads};
use crate::error::{ActorError, Result};

pub(super) fn open_engine(host: &Arc<Host>, settings: &Settings) -> Result<Arc<dyn Engine>> {
    let first = open_one(host, settings)?;
    if settings.more_devices.is_empty() {
        return Ok(first);
    }
    if settings.simulation.is_some() {
        return Err(simulation::unsupported("several devices"));
    }
    let mut engines = vec![first];
    for device in &settings.more_devices {
        let backend = match device {
            DeviceChoice::Open(device) => device.backend(),
            DeviceChoice::Number(_) => settings.backend,
        };
        let settings = Settings {
            device: device.clone(),
            backend,
            ..settings.clone()
        };
        engines.push(open_one(host, &settings)?);
    }
    #[cfg(target_arch = "x86_64")]
    connect(&engines, settings.peer_memory)?;
    let several = Arc::new(Several::new(engines));
    let neighbours: Arc<dyn Neighbours> = several.clone();
    host.set_neighbours(&neighbours);
    Ok(several)
}

/// Lets grids of all these engines reach messages' vectors, and, where that is wanted, all engines are in grids and their devices reach each other's memory, lets their
/// actors reach each other without the host.
#[cfg(target_arch = "x86_64")]
fn connect(engines: &[Arc<dyn Engine>], peer_memory: bool) -> Result<()> {
    let all: Vec<_> = engines.iter().map(|engine| engine.commons()).collect();
    if let Some(first) = all[0] {
        all[1..]
            .iter()
            .flatten()
            .for_each(|commons| commons.share_arena(first));
    }
    let all: Option<Vec<_>> = all.into_iter().map(|commons| commons.cloned()).collect();
    match all.filter(|_| peer_memory).map(|all| crate::grid::connect(&all)) {
        Some(Err(ActorError::Device(perpetua_device::Error::Unsupported { .. }))) | None => {
            tracing::debug!("actors of several devices reach each other through the host");
            Ok(())
        }
        Some(outcome) => outcome,
    }
}

fn open_one(host: &Arc<Host>, settings: &Settings) -> Result<Arc<dyn Engine>> {
    if settings.simulation.is_some()
        && (settings.in_batches || settings.resident || settings.backend != BackendKind::Cpu)
    {
        return Err(simulation::unsupported(settings.backend.name()));
    }
    match settings.backend {
        _ if settings.in_batches => runs_kernels(settings).and_then(|_| batched::open(host, settings)),
        _ if settings.resident => runs_kernels(settings).and_then(|_| open_grids(host, settings)),
        BackendKind::Auto if settings.device.is_first() => {
            open_grids(host, settings).or_else(|_| threads::open(host, settings))
        }
        BackendKind::Auto => open_grids(host, settings),
        // The actors' own threads need no device, but one that is asked for must be there.
        BackendKind::Cpu if settings.device.is_first() => threads::open(host, settings),
        BackendKind::Cpu => runs_kernels(settings).and_then(|_| threads::open(host, settings)),
        _ => match runs_kernels(settings)? {
            Some(info) if info.can_stay() => open_grids(host, settings),
            _ => batched::open(host, settings),
        },
    }
}

/// The backend's device, if it runs kernels; `None` for the one that is chosen when it is opened.
fn runs_kernels(settings: &Settings) -> Result<Option<DeviceInfo>> {
    if settings.backend == BackendKind::Auto {
        return Ok(None);
    }
    let info = match &settings.device {
        DeviceChoice::Number(number) => block_on(open_backend(settings.backend))?.device_info(*number)?,
        DeviceChoice::Open(device) => device.info().clone(),
    };
    if info.computes {
        return Ok(Some(info));
    }
    Err(ActorError::Unsupported {
        backend: settings.backend.name(),
        operation: "running actors",
        remedy: "it runs no kernels: take `Backend::Cpu`, `Backend::Cuda` or `Backend::Wgpu`",
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn open_grids(_: &Arc<Host>, settings: &Settings) -> Result<Arc<dyn Engine>> {
    Err(ActorError::Unsupported {
        backend: settings.backend.name(),
        operation: "a resident handler",
        remedy: "the host's processor must be an x86-64 one: take `Backend::Cpu`, or build the runtime `in_batches`",
    })
}
