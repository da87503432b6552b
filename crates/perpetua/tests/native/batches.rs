//! Graphs of launches do what the launches do one by one: with shares, and as a wavefront; as native code and as machine code.

use perpetua::device::cpu::CpuContext;
use perpetua::device::{BackendKind, Buffer, Device, KernelSpec, Result, Stream};
use perpetua::prelude::*;

use crate::harness::numbers;

/// A step that reads rows above and below.
#[kernel]
fn blur(x: &[f32], y: &mut [f32], width: u32, height: u32, halo: u32) {
    let (w, h, d) = (width as usize, height as usize, halo as usize);
    let i = global_id_x();
    let j = global_id_y();
    if i >= w || j >= h {
        return;
    }
    let at = j * w + i;
    if j < d || j + d >= h {
        y[at] = x[at] * 0.5;
        return;
    }
    y[at] = 0.4 * x[at - d * w] + 0.3 * y[at] + 0.2 * x[at + d * w] + 0.1 * x[at];
}

/// A step in one buffer.
#[kernel]
fn grow(y: &mut [f32], width: u32, height: u32, by: f32) {
    let i = global_id_x();
    let j = global_id_y();
    if i < width as usize && j < height as usize {
        y[j * width as usize + i] += by;
    }
}

/// A row lower.
#[kernel]
fn lower(x: &[f32], y: &mut [f32], width: u32, height: u32, by: u32) {
    let i = global_id_x();
    let j = global_id_y();
    if i < width as usize && j + (by as usize) < height as usize {
        y[(j + by as usize) * width as usize + i] = x[j * width as usize + i] + 1.0;
    }
}

/// Upside down.
#[kernel]
fn flip(x: &[f32], y: &mut [f32], width: u32, height: u32) {
    let i = global_id_x();
    let j = global_id_y();
    if i < width as usize && j < height as usize {
        y[(height as usize - 1 - j) * width as usize + i] = x[j * width as usize + i];
    }
}

/// A step in which the first row's neighbours are the last's.
#[kernel(edge = wrap, halo = 2)]
fn around(x: &[f32], y: &mut [f32], pos: GridPos) {
    y[pos.idx()] = 0.5 * pos.north(x) + 0.25 * pos.at(x, 0, 2) + 0.25 * pos.west(x);
}

/// A step that asks for cells beyond the edge.
#[kernel(edge = clamp, halo = 3)]
fn pressed(x: &[f32], y: &mut [f32], pos: GridPos) {
    y[pos.idx()] = 0.5 * pos.at(x, -3, 3) + 0.25 * pos.south(x) + 0.25 * pos.at(x, 2, -2);
}

/// A step with zeros around it.
#[kernel(edge = constant(0.0))]
fn walled(x: &[f32], y: &mut [f32], pos: GridPos) {
    y[pos.idx()] = 0.5 * pos.north(x) + 0.25 * pos.south(x) + 0.25 * pos.east(x);
}

/// Something that data leads to.
#[kernel]
fn gather(x: &[f32], at: &[u32], y: &mut [f32], width: u32) {
    let i = global_id_x();
    if i < width as usize && global_id_y() == 0 {
        y[i] = x[at[i] as usize];
    }
}

/// A launch: the kernel, the buffers that it reads and writes, and a number.
type Step = (u8, usize, usize, u32);

const WIDTH: u32 = 70;
const HEIGHT: u32 = 150;

fn launch(stream: &Stream, fields: &[Buffer<f32>], at: &Buffer<u32>, step: Step, native: bool) -> Result<()> {
    let (what, from, to, n) = step;
    let (x, y) = (&fields[from], &fields[to]);
    let form = |kernel: KernelFn| if native { kernel } else { kernel.interpreted() };
    let height = if what == 9 { 5 } else { HEIGHT - n % 3 };
    let config = LaunchConfig::tiled(WIDTH, height, (16, 8));
    let (w, h) = (WIDTH, height);
    // Lanes must not read what others write: the third field has parts of the first two.
    let apart = from != to && !(from == 2 && to < 2 || to == 2 && from < 2);
    match what {
        0 | 1 if apart => stream.launch(&form(blur::kernel()), config, args![x, y, w, h, n % 4]),
        2 if apart => stream.launch(&form(lower::kernel()), config, args![x, y, w, h, n % 5]),
        3 if apart => stream.launch(&form(flip::kernel()), config, args![x, y, w, h]),
        5 if apart => stream.launch(&form(around::kernel()), config, args![x, y, w, h]),
        6 if apart => stream.launch(&form(pressed::kernel()), config, args![x, y, w, h]),
        7 if apart => stream.launch(&form(walled::kernel()), config, args![x, y, w, h]),
        4 if apart => stream.launch(&form(gather::kernel()), config, args![x, at, y, w]),
        _ => stream.launch(&form(grow::kernel()), config, args![y, w, h, n as f32]),
    }
}

/// The fields after these steps, in a graph or one by one.
fn after(steps: &[Step], native: bool, graph: bool, cache: u64) -> Result<Vec<Vec<f32>>> {
    let device = Device::new(BackendKind::Cpu, 0)?;
    if let Some(cpu) = device.context().as_any().downcast_ref::<CpuContext>() {
        cpu.assume_cache(cache);
    }
    let cells = (WIDTH * HEIGHT) as usize;
    // Two halves of one buffer with some in common, and one by itself.
    let both = device.upload(&(0..2 * cells).map(|i| (i % 977) as f32).collect::<Vec<_>>())?;
    let fields = [
        both.slice(..cells)?,
        both.slice(cells..)?,
        both.slice(cells / 2..cells / 2 + cells)?,
        device.zeros::<f32>(cells)?,
    ];
    let at = device.upload(&(0..WIDTH).map(|i| i * 131 % (WIDTH * HEIGHT)).collect::<Vec<_>>())?;
    let stream = device.create_stream()?;
    // The fields come by another stream.
    device.synchronize()?;
    if graph {
        let graph = stream.capture(|stream| {
            steps
                .iter()
                .try_for_each(|step| launch(stream, &fields, &at, *step, native))
        })?;
        graph.launch(&stream)?;
        graph.launch(&stream)?;
    } else {
        for step in steps.iter().chain(steps) {
            launch(&stream, &fields, &at, *step, native)?;
        }
    }
    stream.synchronize()?;
    fields.iter().map(Buffer::read).collect()
}

fn bits(fields: &[Vec<f32>]) -> Vec<u32> {
    fields.iter().flatten().map(|x| x.to_bits()).collect()
}

/// A graph of the steps does what they do, with caches in which the fields fit and in which they do not.
fn check(steps: &[Step]) {
    let run = |native, graph, cache| {
        after(steps, native, graph, cache).unwrap_or_else(|e| panic!("{e}: {steps:?}"))
    };
    let expect = bits(&run(false, false, 1 << 20));
    for (native, cache) in [
        (true, 1 << 13),
        (false, 1 << 15),
        (true, 1 << 30),
        (false, 1 << 30),
    ] {
        let found = bits(&run(native, true, cache));
        assert!(
            found == expect,
            "with a cache of {cache} bytes, native: {native}: {steps:?}"
        );
    }
}

#[test]
fn any_launches() {
    for seed in 0..24 {
        let random = numbers(100, seed, |bits| bits as usize);
        let steps: Vec<Step> = (0..1 + random[99] % 24)
            .map(|i| {
                let r = &random[4 * i..];
                ((r[0] % 9) as u8, r[1] % 4, r[2] % 4, (r[3] % 20) as u32)
            })
            .collect();
        check(&steps);
    }
}

/// What an edge's rule leads to is reached, too: by the first rows in the last, or past the buffer's end in it.
#[test]
fn time_steps_with_edges() {
    for what in [5, 6, 7] {
        let step = |i: u32| {
            if i.is_multiple_of(2) {
                (what, 0, 3, 0)
            } else {
                (what, 3, 0, 0)
            }
        };
        check(&(0..40).map(step).collect::<Vec<_>>());
    }
}

#[test]
fn time_steps() {
    for (halo, shift, count) in [
        (1, 0, 70),
        (1, 2, 40),
        (2, 1, 33),
        (3, 0, 50),
        (0, 0, 16),
        (3, 2, 5),
    ] {
        // To and fro between two buffers, with something else now and then.
        let step = |i: u32| match i % 7 {
            6 if shift > 0 => (2, 0, 3, shift),
            _ if i.is_multiple_of(2) => (0, 0, 3, halo),
            _ => (0, 3, 0, halo),
        };
        check(&(0..count).map(step).collect::<Vec<_>>());
    }
    // Many launches over few rows between many over all.
    let step = |i: u32| match (i / 9 % 2, i % 2) {
        (1, _) => (9, 0, 3, i),
        (_, 0) => (0, 0, 3, 1),
        _ => (0, 3, 0, 1),
    };
    check(&(0..80).map(step).collect::<Vec<_>>());
}

/// A step that prints now and then.
#[kernel]
fn tells(x: &[u32], y: &mut [u32], number: u32) {
    let (i, row) = (global_id_x(), global_id_y());
    y[row * 512 + i] = x[row * 512 + i] + 1;
    if i == 0 && row % 100 == 0 {
        gpu_println!("launch {}", number);
    }
}

/// What kernels of a graph print comes in the order of their launches: rows of several launches do not run together then.
#[test]
fn prints_come_in_the_order_of_launches() -> Result<()> {
    const INSIDE: &str = "PERPETUA_TEST_PRINTS";
    if std::env::var_os(INSIDE).is_some() {
        let device = Device::new(BackendKind::Cpu, 0)?;
        let context = device.context().as_any().downcast_ref::<CpuContext>();
        context.unwrap().assume_cache(1 << 15);
        assert!(KernelSpec::native(&tells::kernel()).is_some());
        let kernel = device.kernel(&tells::kernel())?;
        let fields = [device.zeros::<u32>(512 * 304)?, device.zeros::<u32>(512 * 304)?];
        let stream = device.create_stream()?;
        let graph = stream.capture(|stream| {
            (0..8usize).try_for_each(|i| {
                let config = LaunchConfig::new([8, 304, 1], [64, 1, 1]);
                stream.launch(
                    &kernel,
                    config,
                    args![&fields[i % 2], &fields[(i + 1) % 2], i as u32],
                )
            })
        })?;
        graph.launch(&stream)?;
        return stream.synchronize();
    }
    let program = std::env::current_exe().unwrap();
    let inside = std::process::Command::new(program)
        .args([
            "--exact",
            "batches::prints_come_in_the_order_of_launches",
            "--nocapture",
        ])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&inside.stdout);
    let numbers: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once("launch "))
        .map(|(_, n)| n)
        .collect();
    assert_eq!(numbers.len(), 8 * 4, "{text}");
    assert!(numbers.is_sorted(), "{numbers:?}");
    Ok(())
}
