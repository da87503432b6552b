//! `perpetua isa bench`: what programs cost beside kernels, copies and plain Rust, and from which size on a GPU is faster.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use perpetua::device::{BackendKind, Buffer, Device, KernelArg, LaunchConfig};
use perpetua::isa::lanes::Lanes;
use perpetua::isa::{Arguments, Executor, Launch, Limits, Prepared, Program, library, lower, verify};
use perpetua::prelude::*;
use perpetua_ir::back::{Target, render};
use rayon::prelude::*;

use super::super::{Backend, Failure};
use crate::listing::Listing;
use crate::text::{ratio, table};
use crate::whole::counted;

/// Arguments of `perpetua isa bench`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Backends; if left out, all that there are
    #[arg(long, value_enum, value_delimiter = ',')]
    backend: Vec<Backend>,
    /// Elements of the element-wise programs
    #[arg(long, default_value_t = 1 << 24, value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    elements: u32,
    /// Seconds for each figure
    #[arg(long, default_value_t = 0.3)]
    seconds: f64,
    /// Elements at which the CPU is compared with GPUs, however long that takes (as 1024,16777216,67108864); if left out, from 1024 to 4194304
    #[arg(long, value_delimiter = ',', value_name = "ELEMENTS", value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    sizes: Vec<u32>,
    /// How many times as fast as the CPU the first GPU is, by size, as a plot in SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

#[kernel]
fn add(a: &[f32], b: &[f32], out: &mut [f32]) {
    let i = global_id_x();
    if i < out.len() {
        out[i] = a[i] + b[i];
    }
}

#[kernel]
fn sigmoid(a: &[f32], out: &mut [f32]) {
    let i = global_id_x();
    if i < out.len() {
        out[i] = 1.0 / (1.0 + (-a[i]).exp());
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    crate::files::check_places(&[("--plot", args.plot.as_ref(), &["svg"])], None)?;
    let wanted: Vec<BackendKind> = match args.backend.is_empty() {
        true => vec![BackendKind::Cpu, BackendKind::Cuda, BackendKind::Wgpu],
        false => args.backend.iter().map(|backend| (*backend).into()).collect(),
    };
    let mut executors = Vec::new();
    for kind in wanted {
        match Device::new(kind, 0) {
            Ok(device) => executors.push(Executor::on(device)),
            // Whoever names a backend wants to know.
            Err(error) if !args.backend.is_empty() => return Err(error.into()),
            Err(_) => {}
        }
    }
    let bench = Bench {
        elements: args.elements as usize,
        time: Duration::try_from_secs_f64(args.seconds)
            .map_err(|error| format!("--seconds {}: {error}", args.seconds))?,
    };
    if args.plot.is_some() && executors.iter().all(|executor| executor.device().info().on_host) {
        return Err(match args.backend.is_empty() {
            true => "--plot draws a GPU beside the CPU, and there is none",
            false => "--plot draws a GPU beside the CPU, and --backend names none",
        }
        .into());
    }
    let mut listing = Listing::new(args.plot.is_some());
    for executor in &executors {
        listing.print(&format!("{:?}\n", executor.device()))?;
        listing.print(&table(&bench.element_wise(executor)?))?;
        if executor.device().info().on_host {
            listing.print(
                "(lane by lane: an interpreter that goes through the program for each lane, on one core)\n",
            )?;
        }
        listing.print(&table(&bench.untrusted(executor)?))?;
        listing.print(
            "(more, %: how much longer a launch takes with an untrusted program's limits than without)\n",
        )?;
        listing.print(&table(&bench.launches(executor)?))?;
        listing.print("\n")?;
    }
    listing.print(&table(&bench.preparation()?))?;
    let host = Executor::new_with_backend(perpetua::isa::BackendType::Cpu)?;
    let sizes: Vec<usize> = args.sizes.iter().map(|size| *size as usize).collect();
    let mut drawn = None;
    for device in &executors {
        if device.device().info().on_host {
            continue;
        }
        let chart = crate::bench::beside(&mut listing, host.device(), device.device(), &sizes)?;
        drawn.get_or_insert(chart);
    }
    if let (Some(path), Some(chart)) = (&args.plot, drawn) {
        crate::files::write(path, chart.svg().as_bytes())?;
    }
    listing.end()
}

struct Bench {
    elements: usize,
    time: Duration,
}

// The same in every figure: the shortest of the runs that fit into the time.
impl Bench {
    fn best(&self, mut run: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
        run()?;
        let begun = Instant::now();
        let mut best = f64::MAX;
        while begun.elapsed() < self.time || best == f64::MAX {
            let start = Instant::now();
            run()?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        Ok(best)
    }

    // A launch, and the wait for it.
    fn launch(&self, executor: &Executor, prepared: &Prepared) -> Result<f64, Failure> {
        let stream = executor.device().default_stream();
        self.best(|| {
            prepared.submit(&stream)?;
            Ok(executor.synchronize()?)
        })
    }

    fn kernel<K: perpetua::device::Launchable>(
        &self,
        device: &Device,
        kernel: &K,
        args: &[KernelArg<'_>],
    ) -> Result<f64, Failure> {
        let config = LaunchConfig::linear(self.elements, 256);
        self.best(|| {
            device.launch(kernel, config, args)?;
            Ok(device.synchronize()?)
        })
    }

    // A program on buffers of its own, which are returned in its order.
    fn bound(
        &self,
        executor: &Executor,
        name: &str,
        elements: usize,
        config: LaunchConfig,
    ) -> Result<(Prepared, Vec<Buffer<f32>>), Failure> {
        let mut program = library(name)?;
        let names: Vec<String> = program.buffers().map(|buffer| buffer.name.clone()).collect();
        let mut buffers = Vec::new();
        let mut handles = Vec::new();
        let content = vec![0.5f32; elements];
        for name in names {
            let handle = executor.allocate_buffer(4 * elements)?;
            executor.write_buffer(handle, 0, &content)?;
            buffers.push(executor.buffer(handle)?.cast()?);
            handles.push(handle);
            program = program.with_buffer(&name, handle)?;
        }
        let launch = Launch {
            program: &program,
            config,
            arguments: &Arguments::new().with("n", elements.isqrt() as u32),
        };
        let prepared = executor.prepare(&launch)?;
        // The launch keeps them.
        for handle in handles {
            executor.free_buffer(handle)?;
        }
        Ok((prepared, buffers))
    }

    fn element_wise(&self, executor: &Executor) -> Result<Vec<Vec<String>>, Failure> {
        let device = executor.device();
        let config = LaunchConfig::linear(self.elements, 256);
        let rate = |buffers: usize, seconds: f64| (buffers * 4 * self.elements) as f64 / seconds / 1e9;
        let from = device.full(self.elements, 1.0f32)?;
        let to = device.zeros::<f32>(self.elements)?;
        let copy = self.best(|| {
            to.copy_from(&from)?;
            Ok(device.synchronize()?)
        })?;
        let copy = rate(2, copy);
        drop((from, to));
        let mut rows = vec![heads([
            "program",
            "GB/s",
            "/ copy",
            "/ #[kernel]",
            "/ rayon",
            "/ lane by lane",
        ])];
        for name in ["atlas_add_f32", "atlas_sigmoid_f32"] {
            let (prepared, buffers) = self.bound(executor, name, self.elements, config)?;
            let program = self.launch(executor, &prepared)?;
            let native = match buffers.as_slice() {
                [a, b, out] => self.kernel(device, &add::kernel(), args![a, b, out])?,
                [a, out] => self.kernel(device, &sigmoid::kernel(), args![a, out])?,
                _ => return Err(format!("{name} has {} buffers", buffers.len()).into()),
            };
            let plain = match device.info().on_host {
                true => ratio(self.rayon(buffers.len())? / program),
                false => String::new(),
            };
            let interpreted = match (device.info().on_host, buffers.as_slice()) {
                (true, [.., out]) if buffers.len() == 3 => {
                    let lanes = self.lane_by_lane(name, &out.read()?)?;
                    format!("{:.0}", lanes * self.elements as f64 / program)
                }
                _ => String::new(),
            };
            let found = rate(buffers.len(), program);
            rows.push(vec![
                name.into(),
                format!("{found:.1}"),
                ratio(found / copy),
                ratio(native / program),
                plain,
                interpreted,
            ]);
        }
        rows.push(vec!["copy".into(), format!("{copy:.1}")]);
        Ok(rows)
    }

    // Seconds for an element by an interpreter that goes through the program for each lane, on one core. `expected`: what comes out.
    fn lane_by_lane(&self, name: &str, expected: &[f32]) -> Result<f64, Failure> {
        const MOST: usize = 1 << 16;
        let program = library(name)?;
        let elements = expected.len().min(MOST);
        let content = vec![0.5f32.to_bits(); elements];
        let buffers = vec![content; program.memories.len()];
        let mut lanes = Lanes::new(&program, buffers, Vec::new())?;
        let time = self.best(|| Ok(lanes.run(1, elements as u32)?))?;
        let found = lanes.buffers.last().into_iter().flatten().copied();
        match found.eq(expected.iter().take(elements).map(|value| value.to_bits())) {
            true => Ok(time / elements as f64),
            false => Err(format!("{name}: lane by lane something else comes out").into()),
        }
    }

    // The same in plain Rust, on all cores.
    fn rayon(&self, buffers: usize) -> Result<f64, Failure> {
        let [a, b] = [vec![0.5f32; self.elements], vec![0.5f32; self.elements]];
        let mut out = vec![0.0f32; self.elements];
        const PART: usize = 1 << 14;
        self.best(|| {
            let parts = out
                .par_chunks_mut(PART)
                .zip(a.par_chunks(PART))
                .zip(b.par_chunks(PART));
            match buffers {
                3 => parts.for_each(|((out, a), b)| {
                    out.iter_mut()
                        .zip(a)
                        .zip(b)
                        .for_each(|((out, a), b)| *out = a + b);
                }),
                _ => parts.for_each(|((out, a), _)| {
                    out.iter_mut()
                        .zip(a)
                        .for_each(|(out, a)| *out = 1.0 / (1.0 + (-a).exp()));
                }),
            }
            black_box(&mut out);
            Ok(())
        })
    }

    // What it costs that nobody trusts a program.
    fn untrusted(&self, executor: &Executor) -> Result<Vec<Vec<String>>, Failure> {
        let limits = Limits {
            instructions: u32::MAX,
            memory: usize::MAX,
            ..Limits::default()
        };
        let guarded = Executor::on(executor.device().clone()).untrusted(limits);
        let mut rows = vec![heads(["program", "trusted, ms", "untrusted, ms", "more, %"])];
        let side = 512u32;
        let tiles = LaunchConfig::tiled(side, side, (16, 16));
        let element_wise = LaunchConfig::linear(self.elements, 256);
        for (name, elements, config) in [
            ("atlas_add_f32", self.elements, element_wise),
            ("matmul", (side * side) as usize, tiles),
        ] {
            let [trusted, untrusted] = {
                let first = self.bound(executor, name, elements, config)?.0;
                let second = self.bound(&guarded, name, elements, config)?.0;
                [self.launch(executor, &first)?, self.launch(&guarded, &second)?]
            };
            rows.push(vec![
                name.into(),
                format!("{:.3}", 1e3 * trusted),
                format!("{:.3}", 1e3 * untrusted),
                format!("{:.1}", 100.0 * (untrusted / trusted - 1.0)),
            ]);
        }
        Ok(rows)
    }

    // What a launch of a program costs its caller, beside the same kernel's.
    fn launches(&self, executor: &Executor) -> Result<Vec<Vec<String>>, Failure> {
        const COUNT: usize = 200;
        let handles = [
            executor.allocate_buffer(1024)?,
            executor.allocate_buffer(1024)?,
            executor.allocate_buffer(1024)?,
        ];
        let mut program = library("atlas_add_f32")?;
        for (name, handle) in ["a", "b", "out"].into_iter().zip(handles) {
            program = program.with_buffer(name, handle)?;
        }
        let config = LaunchConfig::linear(256, 256);
        let arguments = Arguments::new();
        let launch = Launch {
            program: &program,
            config,
            arguments: &arguments,
        };
        let prepared = executor.prepare(&launch)?;
        let kernel = executor.kernel(&program)?;
        let stream = executor.device().default_stream();
        let buffers: Vec<Buffer<f32>> = handles
            .iter()
            .map(|handle| Ok::<_, Failure>(executor.buffer(*handle)?.cast()?))
            .collect::<Result<_, _>>()?;
        let [a, b, out] = buffers.as_slice() else {
            return Err("three buffers".into());
        };
        let each = |run: &dyn Fn() -> Result<(), Failure>| {
            let all = self.best(|| {
                for _ in 0..COUNT {
                    run()?;
                }
                Ok(executor.synchronize()?)
            })?;
            Ok::<f64, Failure>(1e6 * all / COUNT as f64)
        };
        let bare = each(&|| Ok(stream.launch(kernel.as_ref(), config, args![a, b, out])?))?;
        let cached = each(&|| Ok(executor.execute_program(&program, &config)?))?;
        let again = each(&|| Ok(prepared.submit(&stream)?))?;
        let mut rows = vec![heads(["launch of 256 lanes", "us", "more, us"])];
        for (name, time) in [
            ("kernel", bare),
            ("execute_program, cached", cached),
            ("prepared program", again),
        ] {
            rows.push(vec![
                name.into(),
                format!("{time:.2}"),
                format!("{:.2}", time - bare),
            ]);
        }
        for handle in handles {
            executor.free_buffer(handle)?;
        }
        Ok(rows)
    }

    // From bytes to a text for a driver.
    fn preparation(&self) -> Result<Vec<Vec<String>>, Failure> {
        let program: Program = long(1000).parse()?;
        let bytes = program.encode();
        let verified = verify::verify(&program)?;
        let options = lower::Options::default();
        let kernel = lower::lower(&verified, options)?;
        let target = Target::Ptx {
            sm: "90".parse().map_err(|error| format!("sm_90: {error}"))?,
        };
        let decode = self.best(|| {
            black_box(Program::decode(black_box(&bytes))?);
            Ok(())
        })?;
        let check = self.best(|| {
            black_box(verify::verify(black_box(&program))?);
            Ok(())
        })?;
        let lowered = self.best(|| {
            black_box(lower::lower(black_box(&verified), options)?);
            Ok(())
        })?;
        let rendered = self.best(|| {
            black_box(render(black_box(&kernel), &target)?);
            Ok(())
        })?;
        let mut rows = vec![heads([
            &counted(program.len() as u64, "instruction", "instructions"),
            "ms",
        ])];
        let parts = [
            ("decode", decode),
            ("verify", check),
            ("lower", lowered),
            ("render as PTX", rendered),
            ("all", decode + check + lowered + rendered),
        ];
        rows.extend(parts.map(|(name, time)| vec![name.into(), format!("{:.3}", 1e3 * time)]));
        Ok(rows)
    }
}

fn heads<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(String::from).into()
}

// A program of about so many instructions: arithmetic on floats and integers, loads, stores, and a branch in every twenty.
fn long(count: usize) -> String {
    let mut text = String::from(
        ".program long\n.buffer x: f32\nldg.f32 r1, x[r255]\nmov.f32 r2, 0.0\ncvt.u32.u64 r3, r255\n",
    );
    for i in 0..count / 20 {
        text += &format!("and.u32 r4, r3, {i}\nsetne.u32 p0, r4, 0\n@p0 bra skip{i}\n");
        for _ in 0..4 {
            text += "fma.f32 r2, r1, r1, r2\nadd.f32 r1, r1, 0.5\nmul.u32 r3, r3, 5\nadd.u32 r3, r3, 1\n";
        }
        text += &format!("skip{i}:\nstg.f32 x[r255], r2\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_program_is_one() {
        let program: Program = long(1000).parse().expect("a program");
        assert!((950..=1050).contains(&program.len()), "{}", program.len());
        lower::lower(
            &verify::verify(&program).expect("right"),
            lower::Options::default(),
        )
        .expect("a kernel");
    }
}
