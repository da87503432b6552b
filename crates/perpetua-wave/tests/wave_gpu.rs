//! The wave simulation on GPU backends, against the CPU. wgpu always runs (a software adapter will do); CUDA is reported
//! as ignored where there is none.

mod wave_scenes;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use perpetua::device::{BackendKind, Device};
use perpetua::wave::{Border, Medium, Model, Probe, Simulation, Storage, Tuning};
use wave_scenes::{SPEED, busy, pulse, run};

/// Fails unless the fields are equal, or, where the device is not exact, near.
fn same(what: &str, exact: bool, storage: Storage, found: &[f32], expect: &[f32]) -> Result<(), Failed> {
    if found == expect {
        return Ok(());
    }
    // Each step rounds a few times; halves keep 11 bits.
    let bound = if storage == Storage::F32 { 1e-4 } else { 0.05 };
    let worst = found
        .iter()
        .zip(expect)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max);
    if !exact && worst < bound && found.len() == expect.len() {
        return Ok(());
    }
    Err(format!("{what}, {storage:?}: off by {worst}").into())
}

/// Whether a device computes what the CPU does, to the bit.
fn is_exact(device: &Device) -> bool {
    device.backend() == BackendKind::Cuda || device.info().numeric_probe.is_some_and(|probe| probe.is_exact())
}

fn busy_scenes(kind: BackendKind) -> Result<(), Failed> {
    let (device, cpu) = (Device::new(kind, 0)?, Device::new(BackendKind::Cpu, 0)?);
    for (size, storage) in [
        ([64, 40, 1], Storage::F32),
        ([48, 32, 16], Storage::F32),
        ([64, 40, 1], Storage::F16),
    ] {
        let (expect, expect_series) = run(&cpu, busy(size), storage, 60)?;
        let (field, series) = run(&device, busy(size), storage, 60)?;
        same("field", is_exact(&device), storage, &field, &expect)?;
        let (series, expect) = (series.concat(), expect_series.concat());
        same("probes", is_exact(&device), storage, &series, &expect)?;
    }
    Ok(())
}

/// Several cells a lane and several steps a launch, each against the plain CPU.
fn tunings(kind: BackendKind) -> Result<(), Failed> {
    let plane = [(1, 1), (4, 1), (1, 2), (1, 4), (1, 8)];
    let space = [(1, 1), (4, 1), (8, 1), (16, 1), (32, 1)];
    for low in [false, true] {
        compare(kind, &quiet([170, 131, 1]), &plane, low)?;
        compare(kind, &busy([170, 131, 1]), &plane[2..], low)?;
    }
    compare(kind, &quiet([50, 41, 37]), &space, false)
}

/// One medium, one source, and probes: at corners, in the middle of tiles and where they meet.
fn quiet(size: [usize; 3]) -> Model {
    let mut model = Model::empty(size, 0.01, Medium::of_speed(SPEED));
    model.border = Border::Absorb(8);
    model.sources = vec![pulse([size[0] / 3, size[1] / 2, size[2] / 2], 0.01)];
    let probe = |x: usize, y: usize| Probe {
        name: format!("{x}, {y}"),
        at: [x, y, size[2] / 2],
    };
    let row = (0..size[0]).step_by(3).map(|x| probe(x, x % size[1]));
    model.probes = row.chain([probe(size[0] - 1, size[1] - 1)]).collect();
    model
}

fn compare(kind: BackendKind, model: &Model, tunings: &[(u32, u32)], low: bool) -> Result<(), Failed> {
    let (device, cpu) = (Device::new(kind, 0)?, Device::new(BackendKind::Cpu, 0)?);
    for storage in [Storage::F32, Storage::F16] {
        let with = |device: &Device, tuning: Tuning| {
            let mut simulation = Simulation::tuned(device, model.clone(), storage, tuning)?;
            simulation.step(115)?;
            let (now, before) = simulation.fields()?;
            Ok::<_, Failed>([now, before, simulation.probe_series()?.concat()])
        };
        let expect = with(&cpu, Tuning::default())?;
        for &(cells, steps) in tunings {
            let tuning = Tuning {
                cells_per_lane: Some(cells),
                steps_per_launch: Some(steps),
                low_tiles: Some(low),
                ..Tuning::default()
            };
            let found = with(&device, tuning)?;
            for (part, (found, expect)) in ["now", "before", "probes"].iter().zip(found.iter().zip(&expect)) {
                let what = format!("{part}, {cells} cells a lane, {steps} steps a launch");
                same(&what, is_exact(&device), storage, found, expect)?;
            }
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cuda = Device::new(BackendKind::Cuda, 0);
    let mut trials = Vec::new();
    for kind in [BackendKind::Wgpu, BackendKind::Cuda] {
        let missing = match &cuda {
            Err(error) if kind == BackendKind::Cuda => {
                eprintln!("no CUDA device: {error}");
                true
            }
            _ => false,
        };
        type Test = fn(BackendKind) -> Result<(), Failed>;
        let tests: [(&str, Test); 2] = [("busy scenes", busy_scenes), ("tunings", tunings)];
        for (name, test) in tests {
            let trial = Trial::test(format!("{name}: {}", kind.name()), move || test(kind));
            trials.push(match missing {
                true => trial.with_kind("needs CUDA").with_ignored_flag(true),
                false => trial,
            });
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
