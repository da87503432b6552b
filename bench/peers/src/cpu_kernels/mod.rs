//! Twelve kernels that reach Perpetua's CPU device as IR, beside the same in OpenCL C on POCL and, where memory is the bound, the
//! loop in plain Rust with rayon. Each result is compared with plain Rust's before it is timed.

mod kernels;
mod opencl;
mod reference;
mod rows;

use std::error::Error;
use std::time::{Duration, Instant};

use opencl::OpenCl;
use perpetua::args;
use perpetua::device::{BackendKind, Buffer, CompileOptions, Device, Kernel, KernelSource};
use perpetua::prelude::LaunchConfig;
use rows::{ROWS, Row, Unit};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// What the command line asks for.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only kernels whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Turns of each side; the best launch of all turns counts
    #[arg(long, default_value_t = 5)]
    turns: u32,
    /// Seconds of a turn
    #[arg(long, default_value_t = 0.1)]
    seconds: f64,
    /// Also run the kernels in Perpetua's interpreter, without machine code
    #[arg(long)]
    interpreter: bool,
    /// Do not look for OpenCL
    #[arg(long)]
    no_opencl: bool,
}

/// One way to run a kernel.
struct Side<'a> {
    launch: Box<dyn FnMut() -> Fallible<()> + 'a>,
    best: Duration,
}

impl<'a> Side<'a> {
    fn new(launch: impl FnMut() -> Fallible<()> + 'a) -> Side<'a> {
        Side {
            launch: Box::new(launch),
            best: Duration::MAX,
        }
    }

    /// Launches for as long as a turn lasts, and once in any case.
    fn turn(&mut self, turn: Duration) -> Fallible<()> {
        let start = Instant::now();
        while start.elapsed() < turn || self.best == Duration::MAX {
            let before = Instant::now();
            (self.launch)()?;
            self.best = self.best.min(before.elapsed());
        }
        Ok(())
    }
}

/// Ratios of a column, and their geometric mean.
#[derive(Default)]
struct Ratios(Vec<f64>);

impl Ratios {
    fn add(&mut self, ratio: Option<f64>) -> String {
        self.0.extend(ratio);
        number(ratio)
    }

    fn mean(&self) -> String {
        let logarithms: f64 = self.0.iter().map(|r| r.ln()).sum();
        number((!self.0.is_empty()).then(|| (logarithms / self.0.len() as f64).exp()))
    }
}

fn number(value: Option<f64>) -> String {
    match value {
        Some(value) if value < 10.0 => format!("{value:.2}"),
        Some(value) => format!("{value:.1}"),
        None => "-".into(),
    }
}

/// Prints the table.
pub(crate) fn compare(options: &Options) -> Fallible<()> {
    let turn = Duration::try_from_secs_f64(options.seconds)?;
    let device = Device::new(BackendKind::Cpu, 0)?;
    let opencl = match options.no_opencl {
        true => None,
        false => match OpenCl::open() {
            Ok(opencl) => {
                println!("OpenCL: {}", opencl.name);
                Some(opencl)
            }
            Err(reason) => {
                println!(
                    "no column for OpenCL: {reason} (Debian: apt-get install pocl-opencl-icd ocl-icd-libopencl1)"
                );
                None
            }
        },
    };
    let wanted = |row: &&Row| {
        options
            .only
            .as_ref()
            .is_none_or(|only| row.name.contains(only.as_str()))
    };
    let rows: Vec<&'static Row> = ROWS.iter().filter(wanted).collect();
    if rows.is_empty() {
        let names = ROWS.each_ref().map(|row| row.name).join(", ");
        return Err(format!("no kernel has that in its name; there are {names}").into());
    }
    println!("threads: {}", rayon::current_num_threads());
    println!("kernel | unit | Perpetua | OpenCL | ratio | Rust, rayon | ratio | interpreter | of Perpetua");
    println!("---|---|---|---|---|---|---|---|---");
    let (mut peers, mut loops, mut slow) = (Ratios::default(), Ratios::default(), Ratios::default());
    let mut notes = Vec::new();
    for row in rows {
        let speeds = measure(row, &device, opencl.as_ref(), options, turn, &mut notes)?;
        let [ours, peer, rust, interpreted] = speeds;
        let of = |other: Option<f64>| Some(ours? / other?);
        let unit = match row.unit {
            Unit::Bytes => "GB/s",
            Unit::Operations => "GFLOP/s",
        };
        let backwards = of(interpreted).map(|r| 1.0 / r);
        println!(
            "{} | {unit} | {} | {} | {} | {} | {} | {} | {}",
            row.name,
            number(ours),
            number(peer),
            peers.add(of(peer)),
            number(rust),
            loops.add(of(rust)),
            number(interpreted),
            slow.add(backwards),
        );
    }
    println!(
        "geometric mean | | | | {} | | {} | | {}",
        peers.mean(),
        loops.mean(),
        slow.mean()
    );
    notes.iter().for_each(|note| println!("{note}"));
    Ok(())
}

/// The speeds of Perpetua, of OpenCL, of plain Rust and of the interpreter, as far as they are asked for and apply.
fn measure(
    row: &'static Row,
    device: &Device,
    opencl: Option<&OpenCl>,
    options: &Options,
    turn: Duration,
    notes: &mut Vec<String>,
) -> Fallible<[Option<f64>; 4]> {
    let input = input(row.input);
    let mut expected = vec![0.0f32; row.output];
    // Every side runs twice before it is compared, so that what adds to its output is seen to.
    let mut reference = || (row.reference)(&input, &mut expected, row.n, row.factor);
    reference();
    reference();

    let ours = Ours::prepare(row, device, &input, false)?;
    if let Some(reason) = &ours.interpreted {
        notes.push(format!("{} was interpreted: {reason}", row.name));
    }
    let peer = opencl.map(|opencl| opencl.prepare(row, &input)).transpose()?;
    let interpreted = match options.interpreter {
        true => Some(Ours::prepare(row, device, &input, true)?),
        false => None,
    };
    for _ in 0..2 {
        ours.launch()?;
        peer.as_ref().map_or(Ok(()), |peer| peer.launch())?;
        interpreted.as_ref().map_or(Ok(()), Ours::launch)?;
    }
    check(row, "Perpetua", &ours.output()?, &expected)?;
    if let Some(peer) = &peer {
        check(row, "OpenCL", &peer.output()?, &expected)?;
    }
    if let Some(interpreted) = &interpreted {
        check(row, "the interpreter", &interpreted.output()?, &expected)?;
    }
    let work = (row.work)(row.n as f64, &expected);

    let mut output = vec![0.0f32; row.output];
    let mut sides = [
        Some(Side::new(|| ours.launch())),
        peer.as_ref().map(|peer| Side::new(|| peer.launch())),
        row.streams.then(|| {
            Side::new(|| {
                (row.reference)(&input, &mut output, row.n, row.factor);
                Ok(())
            })
        }),
        interpreted.as_ref().map(|ours| Side::new(|| ours.launch())),
    ];
    for _ in 0..options.turns.max(1) {
        for side in sides.iter_mut().flatten() {
            side.turn(turn)?;
        }
    }
    Ok(sides.map(|side| side.map(|side| work / side.best.as_secs_f64() / 1e9)))
}

/// A kernel of Perpetua's on the CPU device, and its buffers.
struct Ours {
    device: Device,
    row: &'static Row,
    kernel: Kernel,
    interpreted: Option<String>,
    x: Buffer<f32>,
    y: Buffer<f32>,
}

impl Ours {
    fn prepare(row: &'static Row, device: &Device, input: &[f32], interpret: bool) -> Fallible<Ours> {
        let options = CompileOptions {
            interpret,
            ..CompileOptions::default()
        };
        let module = device.compile(&KernelSource::Spec(&(row.kernel)()), &options)?;
        Ok(Ours {
            device: device.clone(),
            row,
            kernel: module.only()?,
            interpreted: module.compiled().interpreted(),
            x: device.upload(input)?,
            y: device.zeros(row.output)?,
        })
    }

    /// One launch, waited for.
    fn launch(&self) -> Fallible<()> {
        let [grid, block] = [self.row.grid, self.row.block].map(|[x, y]| [x, y, 1]);
        let config = LaunchConfig::new(grid, block);
        let (n, factor) = (self.row.n, self.row.factor);
        match self.row.counts {
            true => {
                let y = self.y.cast::<u32>()?;
                self.device
                    .launch(&self.kernel, config, args![&self.x, &y, n, factor])?;
            }
            false => self
                .device
                .launch(&self.kernel, config, args![&self.x, &self.y, n, factor])?,
        }
        Ok(self.device.synchronize()?)
    }

    fn output(&self) -> Fallible<Vec<f32>> {
        Ok(self.y.read()?)
    }
}

/// Numbers from -1 to 1, always the same.
fn input(len: usize) -> Vec<f32> {
    let mut state = 0x2545_f491_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

/// Compares with plain Rust's result: each element may be off by a ten-thousandth of itself and of what elements are on average.
fn check(row: &Row, side: &str, got: &[f32], expected: &[f32]) -> Fallible<()> {
    let got: Vec<f32> = match row.counts {
        true => got.iter().map(|count| count.to_bits() as f32).collect(),
        false => got.to_vec(),
    };
    let mean = expected.iter().map(|e| e.abs()).sum::<f32>() / expected.len() as f32;
    let is_off = |(got, expected): &(&f32, &f32)| {
        let allowed = 1e-4 * (expected.abs() + mean);
        // NaN is off, too.
        !(0.0..=allowed).contains(&(*got - *expected).abs())
    };
    let strays = got.iter().zip(expected).filter(is_off).count();
    if strays as f64 <= row.strays * expected.len() as f64 {
        return Ok(());
    }
    let at = got
        .iter()
        .zip(expected)
        .position(|pair| is_off(&pair))
        .unwrap_or(0);
    Err(format!(
        "{}: {side} computes {strays} elements that plain Rust does not; the first is {at}: {} and not {}",
        row.name, got[at], expected[at]
    )
    .into())
}
