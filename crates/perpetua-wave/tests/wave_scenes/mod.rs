//! Scenes that several test programs run.

use perpetua::device::Device;
use perpetua::wave::{Border, Medium, Model, Probe, Region, Result, Simulation, Source, Storage, Waveform};

/// Speed of sound, m/s.
pub(crate) const SPEED: f64 = 340.0;

/// A pulse in a cell, whose waves are ten cells long.
pub(crate) fn pulse(at: [usize; 3], spacing: f64) -> Source {
    Source {
        region: Region::cell(at),
        waveform: Waveform::Ricker {
            frequency: SPEED / (10.0 * spacing),
        },
        amplitude: 1.0,
    }
}

/// A scene with all that a step does: media, damping, walls, sources that overlap, probes, absorbing borders.
pub(crate) fn busy(size: [usize; 3]) -> Model {
    let mut model = Model::empty(size, 0.01, Medium::of_speed(SPEED));
    model.media.push(Medium::WALL);
    model.media.push(Medium {
        speed: 200.0,
        damping: 500.0,
        reflects: false,
    });
    for (i, cell) in model.cells.iter_mut().enumerate() {
        let (x, y) = (i % size[0], i / size[0] % size[1]);
        if x == 30 && !(12..20).contains(&y) {
            *cell = 1;
        } else if x > 34 && y > 20 {
            *cell = 2;
        }
    }
    model.border = Border::Absorb(8);
    let z = size[2] / 2;
    model.sources = vec![
        pulse([14, 15, z], 0.01),
        Source {
            region: Region {
                from: [12, 13, z],
                to: [15, 18, z + 1],
            },
            waveform: Waveform::Sine { frequency: 4000.0 },
            amplitude: 0.5,
        },
    ];
    model.probes = vec![
        Probe {
            name: "left".into(),
            at: [20, 16, z],
        },
        Probe {
            name: "right".into(),
            at: [40, 16, z],
        },
    ];
    model
}

/// Steps a scene, and reads the field and what the probes recorded.
pub(crate) fn run(
    device: &Device,
    model: Model,
    storage: Storage,
    steps: u64,
) -> Result<(Vec<f32>, Vec<Vec<f32>>)> {
    let mut simulation = Simulation::with_storage(device, model, storage)?;
    simulation.step(steps)?;
    Ok((simulation.field()?, simulation.probe_series()?))
}
