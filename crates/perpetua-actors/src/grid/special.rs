//! What is decided when a grid is launched: put into its kernel, so that no message asks for it. Must not know what the kernel does.

use perpetua_device::Device;
use perpetua_ir::pass::bind_scalars;
use perpetua_ir::verify::Verified;

use super::commons::Shape;
use crate::supervise::OnFault;

/// Polls without a packet after which a home naps between two.
const PATIENCE: u32 = 100_000;
/// Subgroups of a home that watch the host's ring, where few homes share the bus.
const WATCHERS: u32 = 2;
/// So many homes are few.
const FEW_HOMES: u32 = 16;
/// Launches of more actors have a row of latencies for each home.
pub(super) const OWN_LATENCIES: u32 = 4096;

/// The kernel's parameters of these names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Special {
    pub(super) ring_mask: u32,
    pub(super) box_mask: u32,
    pub(super) patience: u32,
    pub(super) host_watchers: u32,
    pub(super) group_size: u32,
    pub(super) latencies_each: u32,
    pub(super) on_fault: u32,
    pub(super) devices: u32,
}

impl Special {
    /// Of a grid of so many actors and homes.
    pub(super) fn new(
        device: &Device,
        shape: Shape,
        actors: u32,
        homes: u32,
        group_size: u32,
        on_fault: OnFault,
        devices: u32,
    ) -> Special {
        Special {
            ring_mask: shape.ring - 1,
            box_mask: shape.boxes - 1,
            patience: match device.info().compute_capability {
                Some(_) => PATIENCE,
                // In the interpreter homes take turns, and one that finds nothing gives its turn away.
                None => 0,
            },
            host_watchers: if homes <= FEW_HOMES { WATCHERS } else { 1 },
            group_size,
            latencies_each: u32::from(actors <= OWN_LATENCIES),
            on_fault: on_fault as u32,
            devices,
        }
    }

    /// The kernel for grids like this one.
    pub(super) fn kernel(&self, resident: &Verified) -> Verified {
        let values = [
            ("ring_mask", self.ring_mask),
            ("box_mask", self.box_mask),
            ("patience", self.patience),
            ("host_watchers", self.host_watchers),
            ("group_size", self.group_size),
            ("latencies_each", self.latencies_each),
            ("on_fault", self.on_fault),
            ("devices", self.devices),
        ];
        bind_scalars(resident, &values.map(|(name, value)| (name, value.into())))
    }
}
