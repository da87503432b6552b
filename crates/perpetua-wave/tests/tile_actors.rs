//! The wave simulation as tile actors on threads, against the one that is launched: the same fields to the bit, whatever the tiles,
//! whatever was changed on the way.
#![allow(clippy::unwrap_used, reason = "tests")]

mod tile_scenes;

use std::time::Duration;

use perpetua::device::{BackendKind, Device};
use perpetua::wave::Result;
use perpetua::wave::actors::{Command, TileTuning, WaveActors};
use tile_scenes::{model, script};

fn cpu() -> Device {
    Device::new(BackendKind::Cpu, 0).unwrap()
}

fn threads(span: u32, threads: u32) -> TileTuning {
    TileTuning {
        span: Some(span),
        threads: Some(threads),
        ..TileTuning::default()
    }
}

#[test]
fn fields_are_those_of_launched_steps() -> Result<()> {
    for (size, span, count) in [
        ([64, 48], 8, 2),
        ([101, 67], 4, 3),
        ([33, 90], 1, 5),
        ([128, 128], 16, 2),
        ([40, 41], 64, 4),
    ] {
        script(&cpu(), &cpu(), size, threads(span, count))
            .inspect_err(|_| eprintln!("{size:?}, {span} steps an exchange, {count} tiles"))?;
    }
    Ok(())
}

#[test]
fn tiles_that_run_freely_take_commands_at_a_step_that_they_say() -> Result<()> {
    let pause = Duration::from_millis(20);
    tile_scenes::freely(&cpu(), &cpu(), [90, 70], threads(4, 2), pause, |_| Ok(()))
}

#[test]
fn what_tiles_cannot_do_is_said() {
    let refused = |change: &dyn Fn(&mut perpetua::wave::Model), expect: &str| {
        let mut wrong = model([64, 48]);
        change(&mut wrong);
        let error = WaveActors::start(&cpu(), wrong).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    };
    refused(
        &|m| {
            m.size = [16, 16, 12];
            m.cells = vec![0; 16 * 16 * 12];
            m.sources.clear();
            m.time_step = m.default_time_step();
        },
        "tile actors cannot simulate volumes; launch the steps",
    );
    refused(
        &|m| m.sources.push(m.sources[0]),
        "cannot drive cells from two sources",
    );
    refused(
        &|m| {
            for x in 0..5 {
                let mut source = m.sources[0];
                (source.region.from[0], source.region.to[0]) = (2 * x, 2 * x + 1);
                (source.region.from[1], source.region.to[1]) = (1, 2);
                m.sources.push(source);
            }
        },
        "the number of sources is 6; tile actors drive up to 4",
    );
    let mut tiles = WaveActors::start(&cpu(), model([64, 48])).unwrap();
    let mut wrong = |command: &Command, expect: &str| {
        let error = tiles.inject(command).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    };
    wrong(
        &Command::MoveSource { index: 3, to: [1, 1] },
        "a source is 3; there are 1",
    );
    wrong(
        &Command::MoveSource {
            index: 0,
            to: [63, 47],
        },
        "it must lie in the grid",
    );
    wrong(
        &Command::SetSpeed {
            medium: 0,
            speed: 5000.0,
        },
        "at most 343 m/s",
    );
    wrong(
        &Command::SetSpeed {
            medium: 1,
            speed: 100.0,
        },
        "cannot give a wall a speed",
    );
    let disc = |radius| Command::Paint {
        center: [3.0, 3.0],
        radius,
        medium: 9,
    };
    wrong(&disc(2.0), "a medium is 9; there are 3");
    assert!(
        tiles
            .probe([64, 2])
            .unwrap_err()
            .to_string()
            .contains("64 x 48 cells")
    );
    tiles.stop().unwrap();
    let error = WaveActors::start(&Device::new(BackendKind::Null, 0).unwrap(), model([64, 48])).unwrap_err();
    assert!(
        error.to_string().contains("cannot stay on the null backend"),
        "{error}"
    );
}
