//! A short simulation whose field is compared between browsers and programs. Must not know either.

use perpetua::device::Device;
use perpetua::wave::window::scenes;
use perpetua::wave::{Result, Simulation};

/// Cells a side.
pub const SIZE: usize = 256;

/// The double slit's field after `steps` steps, x fastest.
///
/// # Errors
/// What the device says.
pub async fn field(device: &Device, steps: u64) -> Result<Vec<f32>> {
    let mut simulation = Simulation::new(device, scenes::model(0, SIZE)?)?;
    simulation.step(steps)?;
    simulation.field_async().await
}
