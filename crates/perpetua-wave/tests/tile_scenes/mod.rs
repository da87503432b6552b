//! What tile actors are put through, on every backend: a script of commands, and the same by launched steps.
#![allow(dead_code, reason = "each test uses its part")]

use std::time::Duration;

use perpetua::device::Device;
use perpetua::wave::actors::{Command, TileTuning, WaveActors};
use perpetua::wave::{Border, Error, Medium, Model, Region, Result, Simulation, Source, Waveform};

/// A plane with a pulse in it, walls and a medium that damps to be painted, and absorbing borders.
pub(crate) fn model(size: [usize; 2]) -> Model {
    let mut model = Model::empty([size[0], size[1], 1], 0.01, Medium::of_speed(343.0));
    model.border = Border::Absorb(8);
    model.media.push(Medium::WALL);
    model.media.push(Medium {
        speed: 200.0,
        damping: 300.0,
        reflects: false,
    });
    let at = [size[0] / 3, size[1] / 2];
    model.sources = vec![Source {
        region: Region {
            from: [at[0], at[1], 0],
            to: [at[0] + 2, at[1] + 1, 1],
        },
        waveform: Waveform::Sine { frequency: 3430.0 },
        amplitude: 1.0,
    }];
    model
}

/// An error of a test as the simulation's own.
fn failed(what: String) -> Error {
    Error::Checkpoint(what)
}

/// Fails unless the fields are equal to the bit, and something is in them.
pub(crate) fn same(what: &str, tiles: &mut WaveActors, expect: &Simulation) -> Result<()> {
    let (now, before) = tiles.fields()?;
    let (expect_now, expect_before) = expect.fields()?;
    let width = expect.model().size[0];
    for (name, found, expect) in [
        ("the field", &now, &expect_now),
        ("the field before", &before, &expect_before),
    ] {
        if found.len() != expect.len() {
            return Err(failed(format!("{what}: {name} has {} cells", found.len())));
        }
        let differ = |i: &usize| found[*i].to_bits() != expect[*i].to_bits();
        let wrong: Vec<usize> = (0..found.len()).filter(differ).collect();
        if let Some(i) = wrong.first() {
            return Err(failed(format!(
                "{what}: {name} differs in {} cells, first ({}, {}): {} instead of {}",
                wrong.len(),
                i % width,
                i / width,
                found[*i],
                expect[*i]
            )));
        }
    }
    if !expect_now.iter().any(|v| v.abs() > 1e-3) {
        return Err(failed(format!("{what}: nothing moves")));
    }
    Ok(())
}

/// Every command between steps in portions of all sizes, probes, pauses: fields are those of launched steps on `reference`.
pub(crate) fn script(
    device: &Device,
    reference: &Device,
    size: [usize; 2],
    tuning: TileTuning,
) -> Result<()> {
    let scene = model(size);
    let mut expect = Simulation::new(reference, scene.clone())?;
    let mut tiles = WaveActors::tuned(device, scene, tuning)?;
    let step = |tiles: &mut WaveActors, expect: &mut Simulation, steps: u64| -> Result<()> {
        tiles.step(steps)?;
        expect.step(steps)
    };
    step(&mut tiles, &mut expect, 37)?;
    same("37 steps", &mut tiles, &expect)?;
    let disc = ([size[0] as f64 * 0.6 + 0.25, size[1] as f64 * 0.5], 4.7);
    let painted = tiles.inject(&Command::Paint {
        center: disc.0,
        radius: disc.1,
        medium: 1,
    })?;
    assert_eq!(painted.step, 37);
    expect.paint([disc.0[0], disc.0[1], 0.0], disc.1, 1)?;
    step(&mut tiles, &mut expect, 1)?;
    same("a wall painted", &mut tiles, &expect)?;
    for _ in 0..9 {
        step(&mut tiles, &mut expect, 1)?;
    }
    same("single steps", &mut tiles, &expect)?;
    // Over a corner of tiles, the source and the grid's border.
    for (region, medium) in [
        ([[0, size[1] / 2 - 1], [size[0] / 3 + 1, size[1] / 2 + 9]], 2),
        ([[size[0] - 9, 1], [size[0] + 3, 6]], 1),
    ] {
        let region = Region {
            from: [region[0][0], region[0][1], 0],
            to: [region[1][0], region[1][1], 1],
        };
        tiles.inject(&Command::Fill { region, medium })?;
        expect.set_material(region, medium)?;
    }
    step(&mut tiles, &mut expect, 50)?;
    same("boxes filled", &mut tiles, &expect)?;
    let to = [size[0] / 2 + 5, size[1] / 4];
    let moved = tiles.inject(&Command::MoveSource { index: 0, to })?;
    assert_eq!(moved.step, 97);
    let mut sources = expect.model().sources.clone();
    let long = sources[0].region.to[0] - sources[0].region.from[0];
    sources[0].region = Region {
        from: [to[0], to[1], 0],
        to: [to[0] + long, to[1] + 1, 1],
    };
    expect.set_sources(sources)?;
    step(&mut tiles, &mut expect, 23)?;
    same("the source moved", &mut tiles, &expect)?;
    for at in [to, [0, 0], [size[0] - 1, size[1] - 1], [size[0] / 2, size[1] / 2]] {
        let reading = tiles.probe(at)?;
        let value = expect.field()?[at[1] * size[0] + at[0]];
        assert_eq!(
            (reading.step, reading.value.to_bits()),
            (120, value.to_bits()),
            "{at:?}"
        );
    }
    // A slower medium, as the launched simulation has it: another medium where the first one was.
    tiles.inject(&Command::SetSpeed {
        medium: 0,
        speed: 250.0,
    })?;
    let slower = expect.add_medium(Medium::of_speed(250.0))?;
    let cells = expect.model().cells.clone();
    let all = Region {
        from: [0; 3],
        to: [size[0], size[1], 1],
    };
    expect.set_material(all, slower)?;
    for (i, medium) in cells.iter().enumerate().filter(|(_, medium)| **medium != 0) {
        expect.set_material(Region::cell([i % size[0], i / size[0], 0]), *medium)?;
    }
    step(&mut tiles, &mut expect, 1001)?;
    same("slower", &mut tiles, &expect)?;
    assert_eq!(tiles.pause()?.step, 1121);
    assert_eq!(tiles.step_count(), 1121);
    tiles.stop()
}

/// Commands while tiles run freely take effect at the step that their receipts say; pausing and going on change nothing,
/// nor does what `between` does while they run.
pub(crate) fn freely(
    device: &Device,
    reference: &Device,
    size: [usize; 2],
    tuning: TileTuning,
    pause: Duration,
    between: impl Fn(u8) -> Result<()>,
) -> Result<()> {
    let scene = model(size);
    let mut expect = Simulation::new(reference, scene.clone())?;
    let mut tiles = WaveActors::tuned(device, scene, tuning)?;
    let until = |expect: &mut Simulation, step: u64| expect.step(step - expect.step_count());
    tiles.step(20)?;
    for round in 0..3u8 {
        let (center, medium) = ([20.5 + 9.0 * f64::from(round), 15.0], 1 + round % 2);
        let to = [10 + 11 * usize::from(round), 40];
        tiles.run()?;
        std::thread::sleep(pause);
        let painted = tiles.inject(&Command::Paint {
            center,
            radius: 3.0,
            medium,
        })?;
        tiles.wait(painted)?;
        std::thread::sleep(pause);
        let moved = tiles.inject(&Command::MoveSource { index: 0, to })?;
        assert!(moved.step > painted.step, "{moved:?} {painted:?}");
        between(round)?;
        let paused = tiles.pause()?;
        tiles.synchronize()?;
        assert_eq!(tiles.step_count(), paused.step);
        // Launched steps may be slower: they follow when the tiles stand.
        until(&mut expect, painted.step)?;
        expect.paint([center[0], center[1], 0.0], 3.0, medium)?;
        until(&mut expect, moved.step)?;
        let mut sources = expect.model().sources.clone();
        sources[0].region = Region {
            from: [to[0], to[1], 0],
            to: [to[0] + 2, to[1] + 1, 1],
        };
        expect.set_sources(sources)?;
        until(&mut expect, paused.step)?;
        same(&format!("round {round}"), &mut tiles, &expect)?;
        let reading = tiles.probe(to)?;
        assert_eq!(reading.step, paused.step);
        tiles.step(5)?;
        expect.step(5)?;
    }
    same("at the end", &mut tiles, &expect)?;
    tiles.stop()
}
