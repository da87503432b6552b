//! The 2-D wave equation on the CPU, beside ringkernel-wavesim's `SimulationGrid::step`.

use std::error::Error;
use std::time::{Duration, Instant};

use perpetua::device::{BackendKind, Device};
use perpetua::wave::{Border, Medium, Model, Region, Simulation, Source, Waveform};
use ringkernel_wavesim::simulation::{AcousticParams, SimulationGrid};

/// Prints a row for each of these sizes.
pub(crate) fn compare(size: Vec<u32>, turns: u32, seconds: f64) -> Result<(), Box<dyn Error>> {
    let turn = Duration::try_from_secs_f64(seconds)?;
    println!("cells a side | Perpetua, steps/s | ringkernel-wavesim 1.1.0, steps/s | ratio");
    for n in size {
        let mut ours = ours(n)?;
        let mut theirs = theirs(n);
        let (mut best, mut peer) = (0.0f64, 0.0f64);
        for _ in 0..turns {
            best = best.max(rate(turn, |steps| {
                ours.step(steps)?;
                Ok(ours.synchronize()?)
            })?);
            peer = peer.max(rate(turn, |steps| {
                (0..steps).for_each(|_| theirs.step());
                Ok(())
            })?);
        }
        println!("{n} | {best:.0} | {peer:.0} | {:.2}", best / peer);
    }
    Ok(())
}

/// A square with a pulse in it and absorbing borders.
fn ours(n: u32) -> Result<Simulation, Box<dyn Error>> {
    let n = n as usize;
    let mut model = Model::empty([n, n, 1], 0.01, Medium::of_speed(343.0));
    model.border = Border::Absorb(16);
    model.sources = vec![Source {
        region: Region::cell([n / 2, n / 2, 0]),
        waveform: Waveform::Ricker { frequency: 3430.0 },
        amplitude: 1.0,
    }];
    Ok(Simulation::new(&Device::new(BackendKind::Cpu, 0)?, model)?)
}

/// The same with the peer: an impulse, and its own borders.
fn theirs(n: u32) -> SimulationGrid {
    let mut grid = SimulationGrid::new(n, n, AcousticParams::new(343.0, 0.01));
    grid.inject_impulse(n / 2, n / 2, 1.0);
    grid
}

/// Steps a second of `work`, which does as many steps as it is told: in runs that double until one takes a quarter of the turn.
fn rate(
    turn: Duration,
    mut work: impl FnMut(u64) -> Result<(), Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    let (mut steps, mut best) = (16u64, 0.0f64);
    while start.elapsed() < turn {
        let before = Instant::now();
        work(steps)?;
        let took = before.elapsed();
        best = best.max(steps as f64 / took.as_secs_f64());
        if took < turn / 8 {
            steps *= 2;
        }
    }
    Ok(best)
}
