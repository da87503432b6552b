//! Which device a runtime's actors live on. Must not know engines.

use perpetua_device::Device;

use super::Backend;
use crate::error::Result;

/// A device: a backend's, by its number, or one that is open.
#[derive(Clone, Debug)]
pub enum DeviceChoice {
    /// The backend's device of this number, the first being 0.
    Number(usize),
    /// This one.
    Open(Device),
}

impl DeviceChoice {
    /// Whether it is what there is unless somebody asks for another.
    pub(super) fn is_first(&self) -> bool {
        matches!(self, DeviceChoice::Number(0))
    }

    pub(super) fn open(&self, backend: Backend) -> Result<Device> {
        match self {
            DeviceChoice::Number(number) => Ok(Device::new(backend, *number)?),
            DeviceChoice::Open(device) => Ok(device.clone()),
        }
    }
}

impl From<usize> for DeviceChoice {
    fn from(number: usize) -> DeviceChoice {
        DeviceChoice::Number(number)
    }
}

impl From<&Device> for DeviceChoice {
    fn from(device: &Device) -> DeviceChoice {
        DeviceChoice::Open(device.clone())
    }
}

impl From<Device> for DeviceChoice {
    fn from(device: Device) -> DeviceChoice {
        DeviceChoice::Open(device)
    }
}
