//! The wave as tile actors beside launched steps: steps a second, one step, a command, and a workload of both and of probes.
//! `cargo bench -p perpetua-wave --bench tiles -- --backend cuda`; `--sweep` tries all shapes of tiles.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use perpetua::device::{BackendKind, Device, Graph};
use perpetua::kernel::atomic::{Ordering, Scope};
use perpetua::prelude::*;
use perpetua::wave::actors::{Command, TileTuning, WaveActors};
use perpetua::wave::{Border, Medium, Model, Region, Simulation, Source, Storage, Tuning, Waveform};

type Failure = Box<dyn std::error::Error>;

fn model(size: [usize; 2]) -> Model {
    let mut model = Model::empty([size[0], size[1], 1], 0.01, Medium::of_speed(343.0));
    model.border = Border::Absorb(16);
    model.media.push(Medium::WALL);
    model.sources = vec![Source {
        region: Region::cell([size[0] / 2, size[1] / 2, 0]),
        waveform: Waveform::Sine { frequency: 3430.0 },
        amplitude: 1.0,
    }];
    model
}

/// The best rate of rounds of about `SECONDS / 8`.
const SECONDS: f64 = 0.4;

fn rate(mut steps: impl FnMut(u64) -> Result<(), Failure>) -> Result<f64, Failure> {
    let (mut count, mut best) = (1024, 0.0f64);
    steps(count)?;
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < SECONDS {
        let before = Instant::now();
        steps(count)?;
        let took = before.elapsed().as_secs_f64();
        best = best.max(count as f64 / took);
        if took < SECONDS / 8.0 {
            count *= 2;
        }
    }
    Ok(best)
}

fn actors_rate(device: &Device, size: [usize; 2], tuning: TileTuning) -> Result<(f64, String), Failure> {
    let mut tiles = WaveActors::tuned(device, model(size), tuning)?;
    let form = tiles.form();
    let found = rate(|steps| {
        tiles.step(steps)?;
        Ok(tiles.synchronize()?)
    })?;
    tiles.stop()?;
    Ok((found, form))
}

fn freely_rate(device: &Device, size: [usize; 2], tuning: TileTuning) -> Result<f64, Failure> {
    let mut tiles = WaveActors::tuned(device, model(size), tuning)?;
    tiles.run()?;
    std::thread::sleep(Duration::from_millis(50));
    let corner = Command::Fill {
        region: Region::cell([1, 1, 0]),
        medium: 0,
    };
    let (first, start) = (tiles.inject(&corner)?, Instant::now());
    std::thread::sleep(Duration::from_millis(300));
    let (last, took) = (tiles.inject(&corner)?, start.elapsed());
    tiles.pause()?;
    tiles.stop()?;
    Ok((last.step - first.step) as f64 / took.as_secs_f64())
}

fn launched_rate(device: &Device, size: [usize; 2], tuning: Tuning) -> Result<f64, Failure> {
    let mut simulation = Simulation::tuned(device, model(size), Storage::F32, tuning)?;
    rate(|steps| {
        simulation.step(steps)?;
        Ok(simulation.synchronize()?)
    })
}

/// Median and 99th percentile in microseconds.
fn percentiles(mut act: impl FnMut() -> Result<(), Failure>) -> Result<(f64, f64), Failure> {
    let mut took = Vec::new();
    for i in 0..2200 {
        let before = Instant::now();
        act()?;
        if i >= 200 {
            took.push(before.elapsed().as_secs_f64() * 1e6);
        }
    }
    took.sort_by(f64::total_cmp);
    Ok((took[took.len() / 2], took[took.len() * 99 / 100]))
}

fn latencies(device: &Device, size: [usize; 2]) -> Result<(), Failure> {
    let line = |what: &str, (p50, p99): (f64, f64)| println!("| {what} | p50 {p50:.2} us, p99 {p99:.2} us |");
    println!("\n### {} x {}, {}\n", size[0], size[1], device.info().name);
    let mut tiles = WaveActors::start(device, model(size))?;
    let single = percentiles(|| {
        let done = tiles.step(1)?;
        Ok(tiles.wait(done)?)
    })?;
    line("actors: one step, seen done", single);
    let single = percentiles(|| {
        tiles.step(1)?;
        tiles.probe([3, 3])?;
        Ok(())
    })?;
    line("actors: one step, a probe's value here", single);
    let paint = |i: u32| Command::Paint {
        center: [f64::from(i % 50), 9.0],
        radius: 2.0,
        medium: 0,
    };
    let mut i = 0;
    let effect = percentiles(|| {
        i += 1;
        let done = tiles.inject(&paint(i))?;
        Ok(tiles.wait(done)?)
    })?;
    line("actors at rest: a command, in effect on all tiles", effect);
    tiles.stop()?;
    for (chunk, ahead) in [(2, 2), (2, 1), (1, 3), (1, 5), (4, 1), (4, 2)] {
        let tuning = TileTuning {
            chunk: Some(chunk),
            ahead: Some(ahead),
            ..TileTuning::default()
        };
        let mut tiles = WaveActors::tuned(device, model(size), tuning)?;
        tiles.run()?;
        std::thread::sleep(Duration::from_millis(20));
        let effect = percentiles(|| {
            i += 1;
            let done = tiles.inject(&paint(i))?;
            tiles.wait(done)?;
            // People are slower than this: the next one comes when all runs evenly again.
            let pause = Instant::now();
            while pause.elapsed() < Duration::from_micros(30) {}
            Ok(())
        })?;
        tiles.stop()?;
        let rate = freely_rate(device, size, tuning)?;
        let what = format!(
            "actors running freely, {ahead} + 1 portions of {chunk} ({rate:.0} steps/s): a command, in effect"
        );
        line(&what, (effect.0 - 30.0, effect.1 - 30.0));
    }
    let mut simulation = Simulation::new(device, model(size))?;
    simulation.step(64)?;
    simulation.synchronize()?;
    let single = percentiles(|| {
        simulation.step(1)?;
        Ok(simulation.synchronize()?)
    })?;
    line("launched: one step through `Simulation`, synchronised", single);
    Ok(())
}

/// A step of one medium that puts its probe into host memory, and takes its command from there or from its arguments: the least
/// that a launch can do.
#[kernel]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its scene"
)]
fn bare_step(
    current: &[f32],
    other: &mut [f32],
    command: &[u32],
    answer: &mut [u64],
    width: u32,
    height: u32,
    mapped: u32,
    given_source: u32,
    given_probe: u32,
    given_tag: u32,
) {
    let words = shared_array::<[u32; 4]>();
    let thread = (local_id_y() * 64 + local_id_x()) as u32;
    if thread == 0 {
        words[0] = given_source;
        words[1] = given_probe;
        words[2] = given_tag;
    }
    if mapped == 1 && thread < 3 {
        words[thread as usize] =
            atomic_load_explicit(&command[thread as usize], Ordering::Relaxed, Scope::System);
    }
    sync_threads();
    let (x, y) = (global_id_x() as u32, global_id_y() as u32);
    if x >= width || y >= height {
        return;
    }
    let i = (y * width + x) as usize;
    let mut next = 0.0f32;
    if x > 0 && y > 0 && x + 1 < width && y + 1 < height {
        let w = width as usize;
        let now = current[i];
        let around = current[i - w] + current[i + w] + current[i - 1] + current[i + 1] - 4.0 * now;
        next = 2.0 * now - other[i] + 0.2 * around;
    }
    if i as u32 == words[0] {
        next += 0.001;
    }
    other[i] = next;
    if i as u32 == words[1] {
        let whole = (next.to_bits() as u64) | ((words[2] as u64) << 32);
        atomic_store_explicit(&mut answer[0], whole, Ordering::Relaxed, Scope::System);
    }
}

const ROUNDS: u32 = 100;

/// Microseconds of 300 operations, the median of 41 times.
fn mixed(mut round: impl FnMut(u32) -> Result<(), Failure>) -> Result<f64, Failure> {
    let mut took = Vec::new();
    for repeat in 0..41 {
        let before = Instant::now();
        for i in 0..ROUNDS {
            round(repeat * ROUNDS + i + 1)?;
        }
        took.push(before.elapsed().as_secs_f64() * 1e6);
    }
    took.sort_by(f64::total_cmp);
    Ok(took[took.len() / 2])
}

fn workload(device: &Device, size: [usize; 2]) -> Result<(), Failure> {
    println!(
        "\n### 100 times: move the source, one step, read a probe; {} x {}\n",
        size[0], size[1]
    );
    let line = |what: &str, micros: f64| {
        println!(
            "| {what} | {micros:.0} us, {:.2} us a round |",
            micros / f64::from(ROUNDS)
        );
    };
    let position = |i: u32| [10 + (i % 64) as usize, 20 + (i / 7 % 32) as usize];
    let mut tiles = WaveActors::start(device, model(size))?;
    let micros = mixed(|i| {
        tiles.inject(&Command::MoveSource {
            index: 0,
            to: position(i),
        })?;
        tiles.step(1)?;
        tiles.probe([size[0] / 2, size[1] / 2])?;
        Ok(())
    })?;
    line("actors, each probe waited for", micros);
    let mut asked = Vec::new();
    let micros = mixed(|i| {
        tiles.inject(&Command::MoveSource {
            index: 0,
            to: position(i),
        })?;
        tiles.step(1)?;
        asked.push(tiles.ask([size[0] / 2, size[1] / 2])?);
        if i % ROUNDS == 0 {
            for asked in asked.drain(..) {
                tiles.answer(asked)?;
            }
        }
        Ok(())
    })?;
    line("actors, all 100 probes read at the end", micros);
    tiles.stop()?;
    let mut simulation = Simulation::new(device, model(size))?;
    let at = size[1] / 2 * size[0] + size[0] / 2;
    let micros = mixed(|i| {
        let mut sources = simulation.model().sources.clone();
        let [x, y] = position(i);
        sources[0].region = Region::cell([x, y, 0]);
        simulation.set_sources(sources)?;
        simulation.step(1)?;
        let perpetua::wave::FieldBuffer::F32(field) = simulation.field_buffer() else {
            return Err("the field is no f32".into());
        };
        simulation.stream().read(&field.slice(at..at + 1)?)?;
        Ok(())
    })?;
    line("launched, through `Simulation`", micros);
    if device.backend() != BackendKind::Cuda {
        return Ok(());
    }
    let cells = size[0] * size[1];
    let fields = [device.zeros::<f32>(cells)?, device.zeros::<f32>(cells)?];
    let command = device.mapped::<u32>(4)?;
    let answer = device.mapped::<u64>(1)?;
    let kernel = device.kernel(&bare_step::kernel())?;
    let stream = device.create_stream()?;
    let config = LaunchConfig::tiled(size[0] as u32, size[1] as u32, (64, 4));
    let order = |i: u32| {
        let [x, y] = position(i);
        command.atomics()[0].store((y * size[0] + x) as u32, Relaxed);
        command.atomics()[1].store(at as u32, Relaxed);
        command.atomics()[2].store(i, std::sync::atomic::Ordering::Release);
    };
    let seen = |i: u32| {
        let came = || (answer.atomics()[0].load(std::sync::atomic::Ordering::Acquire) >> 32) as u32 == i;
        while !came() {
            std::hint::spin_loop();
        }
    };
    let given = device.zeros::<u32>(4)?;
    let launch = |stream: &perpetua::device::Stream, i: u32, mapped: u32| {
        let (from, to) = (&fields[(i & 1) as usize], &fields[(1 - (i & 1)) as usize]);
        let [x, y] = position(i);
        let (w, h, source) = (size[0] as u32, size[1] as u32, (y * size[0] + x) as u32);
        let args = args![from, to, &given, &answer, w, h, mapped, source, at as u32, i];
        stream.launch(&kernel, config, args)
    };
    let graphs: Vec<Graph> = (0..2)
        .map(|parity| {
            stream.capture(|stream| {
                stream.copy(&command, &given)?;
                launch(stream, parity, 1)
            })
        })
        .collect::<Result<_, _>>()?;
    let micros = mixed(|i| {
        launch(&stream, i, 0)?;
        seen(i);
        Ok(())
    })?;
    line(
        "launched, bare kernel, command in its arguments, probe polled in host memory",
        micros,
    );
    stream.synchronize()?;
    let micros = mixed(|i| {
        launch(&stream, i, 0)?;
        stream.synchronize()?;
        seen(i);
        Ok(())
    })?;
    line("the same, synchronised", micros);
    let micros = mixed(|i| {
        order(i);
        graphs[(i & 1) as usize].launch(&stream)?;
        seen(i);
        Ok(())
    })?;
    line(
        "bare kernel in a captured graph, command and probe in host memory, polled",
        micros,
    );
    stream.synchronize()?;
    let micros = mixed(|i| {
        order(i);
        graphs[(i & 1) as usize].launch(&stream)?;
        stream.synchronize()?;
        seen(i);
        Ok(())
    })?;
    line("the same, synchronised", micros);
    let micros = mixed(|i| {
        launch(&stream, i, 0)?;
        stream.read(&fields[(1 - (i & 1)) as usize].slice(at..at + 1)?)?;
        Ok(())
    })?;
    line("launched, bare kernel, probe copied", micros);
    Ok(())
}

fn sweep(device: &Device, sizes: &[[usize; 2]]) -> Result<(), Failure> {
    println!("\n| grid | rows, strips, steps an exchange | steps/s |\n|---|---|---|");
    for size in sizes {
        for rows in [2, 4, 8] {
            for strips in [6, 8, 12, 16] {
                for span in [2, 4, 8] {
                    let tuning = TileTuning {
                        rows: Some(rows),
                        strips: Some(strips),
                        span: Some(span),
                        ..TileTuning::default()
                    };
                    if let Ok((rate, _)) = actors_rate(device, *size, tuning) {
                        println!(
                            "| {} x {} | {rows}, {strips}, {span} | {rate:.0} |",
                            size[0], size[1]
                        );
                    }
                }
            }
        }
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().collect();
    let has = |name: &str| args.iter().any(|a| a == name);
    let kind = match args
        .iter()
        .position(|a| a == "--backend")
        .and_then(|i| args.get(i + 1))
    {
        Some(name) => BackendKind::from_name(name).ok_or("--backend: cuda or cpu")?,
        None => BackendKind::Cpu,
    };
    let Ok(device) = Device::new(kind, 0) else {
        println!("no {kind} here");
        return Ok(());
    };
    let squares = [[128, 128], [256, 256], [512, 512]];
    if has("--sweep") {
        return sweep(&device, &squares);
    }
    println!("| grid | actors | running freely | launched | launched, a step a launch | form |");
    println!("|---|---|---|---|---|---|");
    for size in squares.into_iter().chain([[1000, 700], [1024, 1024]]) {
        let single = Tuning {
            steps_per_launch: Some(1),
            ..Tuning::default()
        };
        let launched = launched_rate(&device, size, Tuning::default())?;
        let single = launched_rate(&device, size, single)?;
        let (rate, free, form) = match actors_rate(&device, size, TileTuning::default()) {
            Ok((rate, form)) => {
                let free = freely_rate(&device, size, TileTuning::default())?;
                (format!("{rate:.0}"), format!("{free:.0}"), form)
            }
            Err(error) => (String::new(), String::new(), error.to_string()),
        };
        println!(
            "| {} x {} | {rate} | {free} | {launched:.0} | {single:.0} | {form} |",
            size[0], size[1]
        );
    }
    for size in [[128, 128], [256, 256]] {
        latencies(&device, size)?;
        workload(&device, size)?;
    }
    Ok(())
}
