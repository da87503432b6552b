//! The 2-D acoustic wave equation by finite differences in time (leapfrog, five points: R. Courant, K. Friedrichs,
//! H. Lewy, Mathematische Annalen 100, 1928), as one kernel, and the buffers that it steps through.

use perpetua::device::{Buffer, Device, Kernel, LaunchConfig, Result, Stream};
use perpetua::prelude::*;

use super::scene::Scene;

/// One time step of a cell: from the field at two times to the field at the next. Cells on the border stay at rest.
/// `stiffness` is the squared Courant number of each cell (0 in walls), `damping` what a cell loses in a step.
#[kernel]
#[expect(clippy::too_many_arguments, reason = "a kernel's arguments are its buffers")]
pub(crate) fn wave_step(
    previous: &[f32],
    current: &[f32],
    next: &mut [f32],
    stiffness: &[f32],
    damping: &[f32],
    width: u32,
    source: u32,
    drive: f32,
) {
    let w = width as usize;
    let x = global_id_x();
    let y = global_id_y();
    if x == 0 || y == 0 || x + 1 >= w || y + 1 >= w {
        return;
    }
    let i = y * w + x;
    let u = current[i];
    let around = current[i - w] + current[i + w] + current[i - 1] + current[i + 1];
    let k = stiffness[i];
    let d = damping[i];
    let mut v = (2.0 * u - (1.0 - d) * previous[i] + k * (around - 4.0 * u)) / (1.0 + d);
    if x == source as usize && k > 0.0 {
        v += drive;
    }
    // Wave fronts decay into denormals, which stall some processors.
    next[i] = if v.abs() < 1e-30 { 0.0 } else { v };
}

/// A running simulation.
pub(crate) struct Simulation {
    stream: Stream,
    kernel: Kernel,
    config: LaunchConfig,
    /// The field at three times; `step % 3` tells which is which.
    fields: [Buffer<f32>; 3],
    stiffness: Buffer<f32>,
    damping: Buffer<f32>,
    step: u64,
}

impl Simulation {
    /// A simulation of `scene` at rest.
    pub(crate) fn new(device: &Device, scene: &Scene) -> Result<Simulation> {
        let cells = scene.size * scene.size;
        let side = u32::try_from(scene.size).unwrap_or(u32::MAX);
        let field = || device.zeros::<f32>(cells);
        Ok(Simulation {
            stream: device.default_stream(),
            kernel: device.kernel(&wave_step::kernel())?,
            config: LaunchConfig::tiled(side, side, (64, 4)),
            fields: [field()?, field()?, field()?],
            stiffness: device.upload(&scene.stiffness)?,
            damping: device.upload(&scene.damping)?,
            step: 0,
        })
    }

    /// Steps done.
    pub(crate) fn step_count(&self) -> u64 {
        self.step
    }

    /// Submits `steps` time steps.
    pub(crate) fn run(&mut self, scene: &Scene, steps: u64) -> Result<()> {
        let (width, source) = (scene.size as u32, scene.source as u32);
        for _ in 0..steps {
            let at = |age: u64| &self.fields[((self.step + age) % 3) as usize];
            let args = args![
                at(0),
                at(1),
                at(2),
                &self.stiffness,
                &self.damping,
                width,
                source,
                scene.drive(self.step)
            ];
            self.stream.launch(&self.kernel, self.config, args)?;
            self.step += 1;
        }
        Ok(())
    }

    /// Waits for the submitted steps.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.stream.synchronize()
    }

    /// The field now, row by row.
    pub(crate) fn field(&self) -> Result<Vec<f32>> {
        self.fields[((self.step + 1) % 3) as usize].read()
    }
}

#[cfg(test)]
mod tests {
    use perpetua::device::BackendKind;

    use super::*;

    fn field(kind: BackendKind, steps: u64) -> Result<Vec<f32>> {
        let scene = Scene::double_slit(96).unwrap();
        let mut simulation = Simulation::new(&Device::new(kind, 0)?, &scene)?;
        simulation.run(&scene, steps)?;
        simulation.field()
    }

    #[test]
    fn the_wave_passes_the_slits_and_stays_bounded() -> Result<()> {
        let field = field(BackendKind::Cpu, 330)?;
        let behind: f32 = (0..96)
            .flat_map(|y| (50..80).map(move |x| y * 96 + x))
            .map(|i| field[i].abs())
            .sum();
        assert!(behind > 1.0, "{behind}");
        assert!(field.iter().all(|v| v.abs() < 10.0));
        Ok(())
    }

    #[test]
    #[cfg(feature = "wgpu")]
    fn wgpu_agrees_with_the_cpu() -> Result<()> {
        let (cpu, gpu) = (field(BackendKind::Cpu, 200)?, field(BackendKind::Wgpu, 200)?);
        let worst = cpu
            .iter()
            .zip(&gpu)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max);
        assert!(worst < 1e-4, "{worst}");
        Ok(())
    }
}
