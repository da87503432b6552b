//! Native kernels of several streams that use one buffer with no event between them: what is there afterwards is
//! unspecified within the values that were stored, and nothing else goes wrong. ThreadSanitizer, under which
//! `cargo xtask test` runs this, sees every access.

#[path = "../../perpetua-device/tests/at_once/mod.rs"]
mod at_once;

use perpetua::device::{BackendKind, Device, LaunchConfig, Result, Stream, args};
use perpetua::prelude::*;

use at_once::{ROUNDS, at_once};

/// Elements of a small buffer, whose launches run on the thread that submits them, and of a large one, whose do not.
const SIZES: [usize; 2] = [1 << 10, if cfg!(perpetua_tsan) { 20 << 10 } else { 200 << 10 }];

#[kernel]
fn spread(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    if i < y.len() && i < x.len() {
        y[i] = y[i] / 2 + x[i] / 2;
    }
}

#[test]
fn kernels_of_streams_race_with_each_other_and_with_transfers() -> Result<()> {
    let device = Device::new(BackendKind::Cpu, 0)?;
    for len in SIZES {
        let (x, y) = (device.full(len, 100u32)?, device.full(len, 80u32)?);
        device.synchronize()?;
        let config = LaunchConfig::linear(len, 64);
        let graph = device.create_stream()?.capture(|stream| {
            stream.launch(&spread::kernel(), config, args![&x, &y])?;
            stream.launch(&spread::kernel(), config, args![&y, &x])
        })?;
        let check = |values: Vec<u32>| {
            let strange = values.iter().find(|value| !(50..=100).contains(*value));
            assert_eq!(strange, None);
        };
        at_once(
            &device,
            &[
                &|stream, _| stream.launch(&spread::kernel(), config, args![&x, &y]),
                &|stream, _| stream.launch(&spread::kernel(), config, args![&y, &x]),
                &|stream, _| graph.launch(stream),
                &|stream, _| stream.fill(&x, 90),
                &|stream, _| stream.copy(&x, &y),
                &|stream, _| stream.read(&y).map(check),
            ],
        )?;
    }
    Ok(())
}

#[test]
fn kernels_of_streams_that_only_read_one_buffer_or_divide_it_are_right() -> Result<()> {
    let device = Device::new(BackendKind::Cpu, 0)?;
    for len in SIZES {
        let (x, y) = (device.full(len, 64u32)?, device.zeros::<u32>(len)?);
        device.synchronize()?;
        let halves = [y.slice(..len / 2)?, y.slice(len / 2..)?];
        let launch = |stream: &Stream, half: usize| {
            let config = LaunchConfig::linear(len / 2, 64);
            stream.launch(&spread::kernel(), config, args![&x, &halves[half]])
        };
        at_once(
            &device,
            &[&|stream, _| launch(stream, 0), &|stream, _| launch(stream, 1)],
        )?;
        let expect = (0..ROUNDS).fold(0, |y, _| y / 2 + 32);
        assert_eq!(y.read()?, vec![expect; len]);
    }
    Ok(())
}

#[test]
fn the_host_races_with_kernels_for_mapped_memory() -> Result<()> {
    let device = Device::new(BackendKind::Cpu, 0)?;
    for len in SIZES {
        let (x, y) = (device.mapped::<u32>(len)?, device.full(len, 80u32)?);
        device.synchronize()?;
        let config = LaunchConfig::linear(len, 64);
        at_once(
            &device,
            &[
                &|stream, _| stream.launch(&spread::kernel(), config, args![&x, &y]),
                &|stream, _| stream.launch(&spread::kernel(), config, args![&y, &x]),
                &|_, _| (0..len).try_for_each(|i| x.store(i, x.load(i)? / 2 + 40)),
            ],
        )?;
    }
    Ok(())
}
