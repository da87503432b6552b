//! What the probes record is longer than their part of the device's memory: 4,096 rows of 500 probes.

use std::task::{Context, Poll, Waker};

use perpetua::device::{BackendKind, Device};
use perpetua::wave::{
    Medium, Model, Probe, Recording, Region, Result, Simulation, Source, Storage, Tuning, Waveform,
};

const PROBES: usize = 500;
const ROWS: usize = 4096;

/// A wave in a plane with so many probes, a cell each.
fn simulation(probes: usize) -> Result<Simulation> {
    let mut model = Model::empty([500, 8, 1], 0.01, Medium::of_speed(343.0));
    model.sources.push(Source {
        region: Region::cell([200, 4, 0]),
        waveform: Waveform::Sine { frequency: 1000.0 },
        amplitude: 1.0,
    });
    let probe = |x: usize| Probe {
        name: format!("{x}"),
        at: [(x + 210) % 500, 3, 0],
    };
    model.probes = (0..probes).map(probe).collect();
    let device = Device::new(BackendKind::Cpu, 0)?;
    // In a debug build the native code would take most of a minute.
    let tuning = Tuning {
        generated: true,
        ..Tuning::default()
    };
    Simulation::tuned(&device, model, Storage::F32, tuning)
}

/// The last rows, at most so many.
fn latest(simulation: &Simulation, most: usize) -> Result<Vec<f32>> {
    let mut future = simulation.latest_probes_async(most);
    loop {
        if let Poll::Ready(rows) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return rows;
        }
        std::thread::yield_now();
    }
}

/// The first probe of each row.
fn first(rows: &[f32], probes: usize) -> Vec<f32> {
    rows.iter().step_by(probes).copied().collect()
}

#[test]
fn a_recording_is_longer_than_its_part_of_the_device() -> Result<()> {
    // One probe's rows have room for long.
    let (mut one, mut many) = (simulation(1)?, simulation(PROBES)?);
    let check = |one: &Simulation, many: &Simulation| -> Result<()> {
        let (expect, found) = (one.probe_series()?, many.probe_series()?);
        assert!(found[0] == expect[0], "{} steps", many.step_count());
        assert_eq!(found[PROBES - 1].len() as u64, many.step_count());
        for most in [5, ROWS, 3 * ROWS, usize::MAX] {
            let rows = latest(many, most)?;
            assert_eq!(rows.len(), PROBES * most.min(found[0].len()));
            assert!(
                first(&rows, PROBES) == latest(one, most)?,
                "{most} of {} steps",
                many.step_count()
            );
        }
        Ok(())
    };
    for steps in [3000, 5000, 1, 1001] {
        one.step(steps)?;
        many.step(steps)?;
        check(&one, &many)?;
    }
    assert!(one.probe_series()?[0].iter().any(|value| value.abs() > 0.01));

    // A state of which the host has a part goes on.
    let state = many.checkpoint()?;
    let mut restored = simulation(PROBES)?;
    restored.step(20)?;
    restored.restore(&state)?;
    for simulation in [&mut one, &mut restored] {
        simulation.step(4500)?;
    }
    check(&one, &restored)?;
    restored.reset()?;
    restored.step(30)?;
    assert_eq!(restored.probe_series()?[0].len(), 30);
    Ok(())
}

#[test]
fn the_latest_rows_are_kept_where_no_more_is_wanted() -> Result<()> {
    let (mut one, mut many) = (simulation(1)?, simulation(PROBES)?);
    many.set_recording(Recording::Latest);
    for steps in [3000, 5000, 1, 1001] {
        one.step(steps)?;
        many.step(steps)?;
        assert!(first(&latest(&many, 1000)?, PROBES) == latest(&one, 1000)?);
        let (expect, found) = (one.probe_series()?, many.probe_series()?);
        assert!(found[0] == expect[0][many.probes_from() as usize..]);
        assert!(found[0].len() <= ROWS);
    }
    assert!(many.probes_from() > 0);
    let state = many.checkpoint()?;
    many.step(10)?;
    many.restore(&state)?;
    for simulation in [&mut one, &mut many] {
        simulation.step(7)?;
    }
    assert!(first(&latest(&many, 7)?, PROBES) == latest(&one, 7)?);
    Ok(())
}
