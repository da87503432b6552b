//! `perpetua wave`: simulate, show progress, draw.

use std::path::PathBuf;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use perpetua::device::Device;

use super::{Backend, Failure};
use crate::slit::picture::{draw, write_png};
use crate::slit::scene::Scene;
use crate::slit::simulation::Simulation;

/// Arguments of `perpetua wave`.
#[derive(clap::Args, Clone, Debug, PartialEq)]
pub(super) struct Args {
    /// Where to run
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,
    /// Index of the device within the backend (see `perpetua devices`)
    #[arg(long, default_value_t = 0)]
    device: usize,
    /// Cells a side, at least 64
    #[arg(long, default_value_t = 512)]
    size: usize,
    /// Time steps; if left out, until the fringes stand
    #[arg(long)]
    steps: Option<u64>,
    /// The picture
    #[arg(long, default_value = "wave.png", value_name = "FILE")]
    out: PathBuf,
}

impl Default for Args {
    fn default() -> Args {
        Args {
            backend: Backend::Auto,
            device: 0,
            size: 512,
            steps: None,
            out: "wave.png".into(),
        }
    }
}

/// Steps submitted between two looks at the clock.
const BATCH: u64 = 50;

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let scene = Scene::double_slit(args.size)?;
    // A folder that cannot be written is better known before the work than after it.
    let folder = args.out.parent().filter(|p| !p.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|f| !f.is_dir()) {
        return Err(format!(
            "--out {}: there is no folder {}",
            args.out.display(),
            folder.display()
        )
        .into());
    }
    let device = Device::new(args.backend.into(), args.device)?;
    let steps = args.steps.unwrap_or_else(|| scene.default_steps());
    eprintln!(
        "{} on {}: double slit, {} x {} cells, {steps} steps",
        device.backend(),
        device.info().name,
        args.size,
        args.size
    );
    let bar = ProgressBar::new(steps);
    // The template is a constant, tested below.
    if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
        bar.set_style(style);
    }
    let mut simulation = Simulation::new(&device, &scene)?;
    let start = Instant::now();
    while simulation.step_count() < steps {
        let batch = BATCH.min(steps - simulation.step_count());
        simulation.run(&scene, batch)?;
        simulation.synchronize()?;
        bar.set_position(simulation.step_count());
        let rate = simulation.step_count() as f64 / start.elapsed().as_secs_f64();
        bar.set_message(format!(
            "{rate:.0} steps/s, {:.2} Gcell/s",
            rate * (args.size * args.size) as f64 * 1e-9
        ));
    }
    let field = simulation.field()?;
    bar.finish();
    let side = u32::try_from(args.size)?;
    let pixels = draw(&field, &scene.solid(), args.size);
    write_png(&args.out, &pixels, side, side).map_err(|e| format!("writing {}: {e}", args.out.display()))?;
    eprintln!("wrote {}", args.out.display());
    Ok(())
}

const TEMPLATE: &str = "{bar:40} {pos}/{len} steps  {msg}  {eta} left";

#[cfg(test)]
mod tests {
    #[test]
    fn the_progress_bar_has_a_sound_template() {
        assert!(indicatif::ProgressStyle::with_template(super::TEMPLATE).is_ok());
    }
}
