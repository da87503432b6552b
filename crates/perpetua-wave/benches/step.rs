//! One step of the wave a launch, on the CPU: native code beside machine code generated from IR, nanoseconds a cell.
//! `cargo bench -p perpetua-wave --bench step`; on one thread under `taskset -c 0`. A word chooses rows by their names.

use std::time::{Duration, Instant};

use perpetua::device::{BackendKind, Device};
use perpetua::wave::{Border, Medium, Model, Region, Simulation, Source, Storage, Tuning, Waveform};

type Failure = Box<dyn std::error::Error>;

/// An empty medium, or one with absorbing borders, a source and a wall.
fn model(side: usize, media: bool) -> Model {
    let mut model = Model::empty([side, side, 1], 0.01, Medium::of_speed(343.0));
    if media {
        model.border = Border::Absorb(16);
        model.media.push(Medium::WALL);
        let wall = side * (side / 4);
        model.cells[wall + side / 4..wall + side / 2].fill(1);
    }
    model.sources = vec![Source {
        region: Region::cell([side / 2, side / 2, 0]),
        waveform: Waveform::Sine { frequency: 3430.0 },
        amplitude: 1.0,
    }];
    model
}

/// The best of rounds in turn, in nanoseconds a cell.
fn best(simulations: &mut [Simulation], cells: usize) -> Result<Vec<f64>, Failure> {
    let steps = (4_000_000 / cells).max(1) as u64;
    let mut best = vec![f64::MAX; simulations.len()];
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(1500) {
        for (best, simulation) in best.iter_mut().zip(&mut *simulations) {
            let before = Instant::now();
            simulation.step(steps)?;
            simulation.synchronize()?;
            let took = before.elapsed().as_secs_f64() * 1e9;
            *best = best.min(took / (steps as f64 * cells as f64));
        }
    }
    Ok(best)
}

fn main() -> Result<(), Failure> {
    let only = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    let device = Device::new(BackendKind::Cpu, 0)?;
    for media in [false, true] {
        for side in [64, 512, 2048] {
            let name = format!("{} {side}", if media { "media" } else { "open" });
            if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
                continue;
            }
            let mut simulations = Vec::new();
            for generated in [false, true] {
                let tuning = Tuning {
                    generated,
                    graph: Some(1),
                    ..Tuning::default()
                };
                simulations.push(Simulation::tuned(
                    &device,
                    model(side, media),
                    Storage::F32,
                    tuning,
                )?);
            }
            let found = best(&mut simulations, side * side)?;
            println!(
                "{name:>10}: native {:.3} ns, generated {:.3} ns, {:.2} of native",
                found[0],
                found[1],
                found[0] / found[1]
            );
        }
    }
    Ok(())
}
