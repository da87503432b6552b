//! The wave simulation as tile actors in kernels that stay, against launched steps: the same fields to the bit. On machines without
//! CUDA the kernels stay in the interpreter, with smaller fields.
#![allow(clippy::unwrap_used, reason = "tests")]

mod tile_scenes;

use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use perpetua::device::{BackendKind, Device};
use perpetua::prelude::*;
use perpetua::wave::actors::{TileTuning, WaveActors};
use tile_scenes::{freely, model, same, script};

fn has_gpu() -> bool {
    Device::new(BackendKind::Cuda, 0).is_ok()
}

/// The device where tiles stay.
fn device() -> Result<Device, Failed> {
    let backend = if has_gpu() {
        BackendKind::Cuda
    } else {
        BackendKind::Cpu
    };
    Ok(Device::new(backend, 0)?)
}

/// As cut by default.
fn plain() -> TileTuning {
    TileTuning {
        resident: true,
        ..TileTuning::default()
    }
}

fn cpu() -> Result<Device, Failed> {
    Ok(Device::new(BackendKind::Cpu, 0)?)
}

fn shape(rows: u32, strips: u32, span: u32) -> TileTuning {
    TileTuning {
        rows: Some(rows),
        strips: Some(strips),
        span: Some(span),
        ..plain()
    }
}

fn one_tile() -> Result<(), Failed> {
    Ok(script(&device()?, &cpu()?, [44, 40], shape(4, 16, 8))?)
}

fn all_shapes() -> Result<(), Failed> {
    let shapes = [
        ([80, 30], 2, 8, 4),
        ([70, 60], 8, 16, 8),
        ([101, 67], 2, 8, 4),
        ([128, 96], 2, 8, 2),
        ([150, 101], 2, 16, 8),
        ([128, 128], 4, 8, 4),
        ([133, 117], 4, 16, 8),
        ([170, 260], 8, 16, 4),
        ([171, 259], 8, 16, 8),
    ];
    for (size, rows, strips, span) in shapes.into_iter().take(if has_gpu() { usize::MAX } else { 2 }) {
        script(&device()?, &cpu()?, size, shape(rows, strips, span))
            .map_err(|e| format!("{size:?}, {rows} rows, {strips} strips, {span} steps: {e}"))?;
    }
    Ok(())
}

fn sizes() -> Result<(), Failed> {
    let device = device()?;
    let sizes = [[128, 128], [256, 256], [512, 512], [1000, 700]];
    for size in sizes {
        script(&device, &device, size, plain()).map_err(|e| format!("{size:?}: {e}"))?;
    }
    Ok(())
}

/// The second round parks the tiles while they run: a kernel is loaded.
fn run_freely() -> Result<(), Failed> {
    let device = device()?;
    let sizes = if has_gpu() {
        [[128, 128], [300, 200]]
    } else {
        [[80, 50], [70, 60]]
    };
    for (size, bias) in sizes.into_iter().zip([1u32, 2]) {
        let load = |round: u8| {
            if round == 1 {
                let numbers = device.upload(&[3u32; 1000])?;
                // A block size of its own makes it a kernel of its own.
                let kernel = add::kernel().with_block_size(32 * bias, 1, 1);
                device.launch(
                    &kernel,
                    LaunchConfig::linear(1000, 32 * bias),
                    args![&numbers, bias],
                )?;
                assert_eq!(numbers.read()?, [3 + bias; 1000]);
            }
            Ok(())
        };
        let pause = Duration::from_millis(2);
        freely(&device, &device, size, plain(), pause, load)?;
    }
    Ok(())
}

#[kernel]
fn add(out: &mut [u32], bias: u32) {
    let i = global_id_x();
    if i < out.len() {
        out[i] += bias;
    }
}

/// Other work on the device, and loading a kernel, which parks the tiles meanwhile.
fn beside_other_work() -> Result<(), Failed> {
    let device = device()?;
    let scene = model(if has_gpu() { [128, 128] } else { [80, 40] });
    let mut expect = perpetua::wave::Simulation::new(&device, scene.clone())?;
    let mut tiles = WaveActors::tuned(&device, scene, plain())?;
    let steps = if has_gpu() { 301 } else { 31 };
    tiles.step(steps)?;
    expect.step(steps)?;
    let numbers = device.upload(&[3u32; 1000])?;
    device.launch(
        &add::kernel(),
        LaunchConfig::linear(1000, 128),
        args![&numbers, 3u32],
    )?;
    if numbers.read()? != [6; 1000] {
        return Err("a kernel beside the tiles gave wrong numbers".into());
    }
    tiles.step(17)?;
    expect.step(17)?;
    same("parked and back", &mut tiles, &expect)?;
    tiles.stop()?;
    Ok(())
}

fn what_does_not_fit() -> Result<(), Failed> {
    let error = WaveActors::tuned(&device()?, model([4096, 4096]), plain())
        .unwrap_err()
        .to_string();
    let told = error.contains("the grid is 4096 x 4096 cells") && error.contains("launch the steps");
    if told { Ok(()) } else { Err(error.into()) }
}

/// A GPU takes one wave of tile actors: two would keep each other's tiles out.
fn one_at_a_time() -> Result<(), Failed> {
    let device = device()?;
    let scene = model([44, 40]);
    let mut first = WaveActors::tuned(&device, scene.clone(), plain())?;
    let second = WaveActors::tuned(&device, scene.clone(), plain());
    match (has_gpu(), second) {
        (true, Ok(_)) => return Err("two at once".into()),
        (true, Err(error)) if !error.to_string().contains("stop that one first") => return Err(error.into()),
        (false, Err(error)) => return Err(error.into()),
        _ => {}
    }
    first.step(9)?;
    first.stop()?;
    let mut again = WaveActors::tuned(&device, scene, plain())?;
    again.step(9)?;
    Ok(again.stop()?)
}

/// Held by a test that has tiles on a GPU.
static TURN: Mutex<()> = Mutex::new(());

fn main() -> ExitCode {
    let args = Arguments::from_args();
    type Test = fn() -> Result<(), Failed>;
    let tests: [(&str, Test); 7] = [
        ("one_tile", one_tile),
        ("all_shapes", all_shapes),
        ("sizes", sizes),
        ("run_freely", run_freely),
        ("beside_other_work", beside_other_work),
        ("what_does_not_fit", what_does_not_fit),
        ("one_at_a_time", one_at_a_time),
    ];
    let trials = tests
        .into_iter()
        .map(|(name, test)| {
            // Its fields are too large for the interpreter.
            match (has_gpu(), name) {
                (true, _) => {
                    let in_turn = move || {
                        let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
                        test()
                    };
                    Trial::test(name, in_turn).with_kind("CUDA")
                }
                (false, "sizes") => Trial::test(name, test)
                    .with_kind("needs CUDA")
                    .with_ignored_flag(true),
                (false, _) => Trial::test(name, test).with_kind("interpreter"),
            }
        })
        .collect();
    libtest_mimic::run(&args, trials).exit_code()
}
