//! `perpetua wave bench`: steps a second of an empty medium and of scenes, by size and backend, as a table, as CSV and as a
//! plot.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use perpetua::device::{BackendKind, Device};
use perpetua::wave::chart::{Chart, Curve};
use perpetua::wave::{
    BUILTIN, Border, Medium, Model, Region, Scene, Simulation, Source, Storage, Tuning, Waveform,
};

use super::prepare::fits;
use super::{Backend, Dtype, Failure};
use crate::files::{check_places, write};
use crate::listing::Listing;
use crate::say::{self, say};
use crate::text;
use crate::whole::from_nought;

/// Arguments of `perpetua wave bench`.
#[derive(clap::Args, Clone, Debug, PartialEq)]
#[command(
    after_help = "A scene is measured in turns with an empty medium of its size, whose steps a second stand under `empty`. What stands \
        under `/ empty` is the scene's figure divided by that: 0.8 says that walls, sources and probes cost a fifth. Under `/ CPU` a \
        figure is divided by the CPU's. Each figure is the best of its rounds; on a machine that does other work, too, ratios of \
        short runs say little: let nothing else run, or take more --seconds."
)]
pub(super) struct Args {
    /// Backends; if left out, all that there are
    #[arg(long, value_enum, value_delimiter = ',')]
    backend: Vec<Backend>,
    /// Cells a side
    #[arg(long, value_delimiter = ',', num_args = 1, value_name = "N,N,…", default_value = "64,128,256,512,1024,2048,4096", value_parser = from_nought::<usize>, allow_negative_numbers = true)]
    size: Vec<usize>,
    /// Cells a side of cubes
    #[arg(long, value_delimiter = ',', num_args = 1, value_name = "N,N,…", default_value = "64,128,256", value_parser = from_nought::<usize>, allow_negative_numbers = true)]
    cube: Vec<usize>,
    /// Scenes as `perpetua wave` runs them, with walls, sources and probes: names of built-in ones, or none
    #[arg(long, value_name = "NAME,NAME,…", default_value_t = BUILTIN.map(|(name, ..)| name).join(","))]
    scene: String,
    /// Cells of a scene along x; of one in space, --cube counts
    #[arg(long, value_delimiter = ',', num_args = 1, value_name = "N,N,…", default_value = "256,1024", value_parser = from_nought::<usize>, allow_negative_numbers = true)]
    scene_size: Vec<usize>,
    /// How the field is stored
    #[arg(long, value_enum, default_value_t = Dtype::F32)]
    dtype: Dtype,
    /// With a medium a cell, which takes a byte a cell more
    #[arg(long)]
    media: bool,
    /// Cells that a lane does: 1 or 4, of cubes 8, 16 and 32 too (the default depends on the size)
    #[arg(long)]
    cells_per_lane: Option<u32>,
    /// Lanes of a block in x, y and z [default: 64,4,1; of cubes 32,8,1]
    #[arg(long, value_delimiter = ',', num_args = 1..=3)]
    block: Vec<u32>,
    /// Steps in the longest graph, up to 1024 [default: 1024; with wgpu 256]
    #[arg(long)]
    graph: Option<u64>,
    /// Steps that a launch does: 1, 2, 4 or 8; more than one on GPUs in the plane [default: there 8, else 1]
    #[arg(long)]
    steps_per_launch: Option<u32>,
    /// With several steps a launch, whether in tiles of 64 x 32 cells instead of 64 x 64 (the default depends on the size)
    #[arg(long)]
    low_tiles: Option<bool>,
    /// On the CPU, machine code that is generated from the kernels' IR in the place of the native code that comes with them
    #[arg(long)]
    generated: bool,
    /// Seconds for each figure, at least: large grids take as long as 128 steps at once do, within bounds
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true, value_parser = measured)]
    seconds: f64,
    /// The table as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// The table as a plot in SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// How long a figure may take.
fn measured(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds < 1e6 => Ok(seconds),
        _ => Err("it must be a number of seconds above 0, and below a million".into()),
    }
}

/// What is measured: a built-in scene, or the empty medium.
#[derive(Clone, Debug, PartialEq)]
struct Case {
    scene: Option<String>,
    size: [usize; 3],
}

impl Case {
    fn empty(size: [usize; 3]) -> Case {
        Case { scene: None, size }
    }

    fn model(&self, media: bool) -> Result<Model, Failure> {
        match &self.scene {
            Some(scene) => Ok(Scene::builtin(scene)?.model(Some(self.size[0]), None)?),
            None => Ok(model(self.size, media)),
        }
    }

    fn name(&self) -> String {
        let [w, h, d] = self.size;
        let scene = self
            .scene
            .as_ref()
            .map_or(String::new(), |scene| format!("{scene} "));
        if d > 1 {
            format!("{scene}{w} x {h} x {d}")
        } else {
            format!("{scene}{w} x {h}")
        }
    }
}

/// The scenes that are asked for, at all sizes that they can have.
fn scenes(args: &Args) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for name in args.scene.split(',').filter(|name| *name != "none") {
        let scene = Scene::builtin(name).map_err(|error| say::name(&error.to_string()))?;
        let sizes = if scene.is_deep() {
            &args.cube
        } else {
            &args.scene_size
        };
        for size in sizes {
            match scene.grid(Some(*size)) {
                Ok(size) => cases.push(Case {
                    scene: Some(name.to_owned()),
                    size,
                }),
                Err(error) => say(format!("{name} at {size} cells is skipped: {error}")),
            }
        }
    }
    Ok(cases)
}

/// One figure.
struct Figure {
    backend: BackendKind,
    case: Case,
    rate: f64,
    /// Steps a second of an empty medium as large, measured in turns with it.
    empty: Option<f64>,
}

impl Figure {
    fn cells(&self) -> f64 {
        self.case.size.iter().product::<usize>() as f64
    }
}

/// A square or a cube with a pulse in it and absorbing borders.
fn model(size: [usize; 3], media: bool) -> Model {
    let mut model = Model::empty(size, 0.01, Medium::of_speed(343.0));
    model.border = Border::Absorb(16);
    model.sources = vec![Source {
        region: Region::cell(size.map(|n| n / 2)),
        waveform: Waveform::Ricker { frequency: 3430.0 },
        amplitude: 1.0,
    }];
    if media {
        model.media.push(Medium::WALL);
        let at = model.index([size[0] / 4, size[1] / 4, size[2] / 4]);
        model.cells[at] = 1;
    }
    model
}

/// Steps a second: the best of the rounds that fit into the time, each long enough to be timed.
struct Runner {
    simulation: Simulation,
    whole: Duration,
    /// Of a round.
    steps: u64,
    /// What rounds have taken together.
    spent: Duration,
    best: f64,
    is_done: bool,
}

impl Runner {
    fn new(device: &Device, case: &Case, args: &Args) -> Result<Runner, Failure> {
        let storage: Storage = args.dtype.into();
        let tuning = Tuning {
            // A square's lanes do four at most.
            cells_per_lane: args
                .cells_per_lane
                .map(|cells| if case.size[2] > 1 { cells } else { cells.min(4) }),
            block: (!args.block.is_empty())
                .then(|| [0, 1, 2].map(|axis| args.block.get(axis).copied().unwrap_or(1))),
            graph: args.graph,
            steps_per_launch: args.steps_per_launch,
            low_tiles: args.low_tiles,
            generated: args.generated,
        };
        let mut simulation = Simulation::tuned(device, case.model(args.media)?, storage, tuning)?;
        // What is made at first use is not measured: kernels, and graphs of all lengths where steps are short.
        simulation.step(2)?;
        simulation.synchronize()?;
        let whole = Duration::try_from_secs_f64(args.seconds)?;
        let start = Instant::now();
        simulation.step(2)?;
        simulation.synchronize()?;
        if start.elapsed() * 1000 < whole {
            simulation.step(2046)?;
            simulation.synchronize()?;
        }
        Ok(Runner {
            simulation,
            whole,
            steps: 2,
            spent: Duration::ZERO,
            best: 0.0,
            is_done: false,
        })
    }

    /// Steps, and looks at the clock.
    fn round(&mut self) -> Result<(), Failure> {
        let before = Instant::now();
        self.simulation.step(self.steps)?;
        self.simulation.synchronize()?;
        let took = before.elapsed();
        self.spent += took;
        self.best = self.best.max(self.steps as f64 / took.as_secs_f64());
        // Few steps at a time are not what a run does: on the CPU only dozens share a pass over memory.
        let few = self.steps < LEAST_STEPS && took < self.whole * 4;
        self.is_done = self.spent >= self.whole && !few;
        if !self.is_done && (took < self.whole / 8 || few) {
            self.steps = (self.steps * 2).min(1 << 16);
        }
        Ok(())
    }
}

/// How many steps at once show what a long run does, where they do not take four times as long as was asked for.
const LEAST_STEPS: u64 = 128;

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    check_places(
        &[
            ("--csv", args.csv.as_ref(), &["csv"]),
            ("--plot", args.plot.as_ref(), &["svg"]),
        ],
        None,
    )?;
    let asked: Vec<BackendKind> = args.backend.iter().map(|b| BackendKind::from(*b)).collect();
    let kinds = if asked.is_empty() {
        vec![BackendKind::Cuda, BackendKind::Wgpu, BackendKind::Cpu]
    } else {
        asked.clone()
    };
    let squares = args.size.iter().map(|n| [*n, *n, 1]);
    let mut cases: Vec<Case> = squares
        .chain(args.cube.iter().map(|n| [*n; 3]))
        .map(Case::empty)
        .collect();
    // What no device takes is said before anything is measured.
    for case in &cases {
        Model::count(case.size).map_err(|error| format!("{}: {error}", case.name()))?;
    }
    cases.extend(scenes(args)?);
    let (mut figures, mut devices): (Vec<Figure>, Vec<String>) = (Vec::new(), Vec::new());
    let mut listing = Listing::new(args.csv.is_some() || args.plot.is_some());
    for kind in kinds {
        let device = match Device::new(kind, 0) {
            Ok(device) => device,
            Err(error) if asked.is_empty() => {
                listing.print(&format!("{kind}: skipped: {error}\n"))?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let kind = device.backend();
        // Named twice, or by `auto`, too.
        if figures.iter().any(|figure| figure.backend == kind) {
            continue;
        }
        listing.print(&format!("{kind} on {}\n", device.info().name))?;
        if !devices.contains(&device.info().name) {
            devices.push(device.info().name.clone());
        }
        for case in &cases {
            fits(&device, case.size, args.dtype, false)?;
        }
        for case in &cases {
            let mut runners = vec![Runner::new(&device, case, args)?];
            if case.scene.is_some() {
                runners.push(Runner::new(&device, &Case::empty(case.size), args)?);
            }
            // In turns, so that what else the machine does slows both down.
            while runners.iter().any(|runner| !runner.is_done) {
                runners.iter_mut().try_for_each(Runner::round)?;
            }
            let rates: Vec<f64> = runners.iter().map(|runner| runner.best).collect();
            let (rate, empty) = (rates[0], rates.get(1).copied());
            let form = runners[0].simulation.form();
            runners
                .iter()
                .try_for_each(|runner| runner.simulation.check_finite())?;
            let figure = Figure {
                backend: kind,
                case: case.clone(),
                rate,
                empty,
            };
            let bytes = if args.dtype == Dtype::F16 { 6.0 } else { 12.0 } + f64::from(u8::from(args.media));
            listing.print(&format!(
                "  {:<24} {:>10} steps/s  {:>12.3} us a step  {:>8.3} Gcell/s  {:>7.1} GB/s  {form}\n",
                case.name(),
                text::rate(rate),
                1e6 / rate,
                rate * figure.cells() * 1e-9,
                rate * figure.cells() * bytes * 1e-9
            ))?;
            figures.push(figure);
        }
    }
    listing.print(&format!("\n{}", table(&figures, &cases)))?;
    if let Some(path) = &args.csv {
        write(path, csv(&figures).as_bytes())?;
    }
    if let Some(path) = &args.plot {
        write(path, plot(&figures, &devices).as_bytes())?;
    }
    listing.end()
}

fn backends(figures: &[Figure]) -> Vec<BackendKind> {
    let mut kinds: Vec<BackendKind> = figures.iter().map(|f| f.backend).collect();
    kinds.dedup();
    kinds
}

/// Steps a second of all backends, how many times the CPU's they are, and of scenes an empty medium's and how many times these they are.
fn table(figures: &[Figure], cases: &[Case]) -> String {
    let kinds = backends(figures);
    let of = |kind: BackendKind, case: &Case| figures.iter().find(|f| f.backend == kind && f.case == *case);
    let has_cpu = kinds.contains(&BackendKind::Cpu);
    let has_empty = figures.iter().any(|f| f.empty.is_some());
    let columns = |kind: BackendKind| {
        let over_cpu = has_cpu && kind != BackendKind::Cpu;
        [
            (true, kind.to_string()),
            (over_cpu, "/ CPU".into()),
            (has_empty, "empty".into()),
            (has_empty, "/ empty".into()),
        ]
    };
    let shown = |cells: [(bool, String); 4]| cells.into_iter().filter(|(is, _)| *is).map(|(_, text)| text);
    let mut rows = vec![vec!["steps/s".to_owned()]];
    rows[0].extend(kinds.iter().flat_map(|kind| shown(columns(*kind))));
    for case in cases {
        let mut row = vec![case.name()];
        for kind in &kinds {
            let figure = of(*kind, case);
            let ratio = |below: Option<f64>| match (figure, below) {
                (Some(figure), Some(below)) => text::ratio(figure.rate / below),
                _ => String::new(),
            };
            let mut cells = columns(*kind);
            let rate = |rate: Option<f64>| rate.map_or(String::new(), |rate| format!("{rate:.0}"));
            let empty = figure.and_then(|f| f.empty);
            cells[0].1 = rate(figure.map(|f| f.rate));
            cells[1].1 = ratio(of(BackendKind::Cpu, case).map(|f| f.rate));
            cells[2].1 = rate(empty);
            cells[3].1 = ratio(empty);
            row.extend(shown(cells));
        }
        rows.push(row);
    }
    let mut out = text::table(&rows);
    if has_empty {
        out += "empty: an empty medium as large as the scene, measured in turns with it\n";
    }
    out
}

fn csv(figures: &[Figure]) -> String {
    let mut out = "backend,scene,width,height,depth,steps/s,cells/s\n".to_owned();
    for f in figures {
        let [w, h, d] = f.case.size;
        out += &format!(
            "{},{},{w},{h},{d},{:.1},{:.4e}\n",
            f.backend,
            f.case.scene.as_deref().unwrap_or_default(),
            f.rate,
            f.rate * f.cells()
        );
    }
    out
}

/// A curve of each backend for what it is alike in but the size: an empty plane, empty cubes, each scene.
fn plot(figures: &[Figure], devices: &[String]) -> String {
    let mut curves: Vec<Curve> = Vec::new();
    for figure in figures {
        let what = match &figure.case.scene {
            Some(scene) => format!(", {scene}"),
            None if figure.case.size[2] > 1 => ", cubes".to_owned(),
            None => String::new(),
        };
        let name = format!("{}{what}", figure.backend);
        let point = [figure.case.size[0] as f64, figure.rate];
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve {
                name,
                points: vec![point],
            }),
        }
    }
    let chart = Chart {
        title: format!("Wave equation on {}", devices.join(", ")),
        labels: ["cells along x".to_owned(), "steps a second".to_owned()],
        logarithmic: [true; 2],
        curves,
    };
    chart.svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_become_csv_and_a_plot() {
        let figures = [64usize, 128].map(|n| Figure {
            backend: BackendKind::Cpu,
            case: Case::empty([n, n, 1]),
            rate: 1e6 / n as f64,
            empty: None,
        });
        assert_eq!(
            csv(&figures),
            "backend,scene,width,height,depth,steps/s,cells/s\nCPU,,64,64,1,15625.0,6.4000e7\nCPU,,128,128,1,7812.5,1.2800e8\n"
        );
        let of = |scene: Option<&str>, size| Figure {
            backend: BackendKind::Cpu,
            case: Case {
                scene: scene.map(str::to_owned),
                size,
            },
            rate: 10.0,
            empty: None,
        };
        let [first, second] = figures;
        let figures = [
            first,
            second,
            of(None, [64; 3]),
            of(Some("lens"), [256, 128, 1]),
            of(None, [256; 3]),
        ];
        let drawn = plot(&figures, &["a GPU".to_owned(), "a CPU".to_owned()]);
        for name in ["CPU", "CPU, cubes", "CPU, lens", "Wave equation on a GPU, a CPU"] {
            assert_eq!(drawn.matches(&format!(">{name}</text>")).count(), 1, "{drawn}");
        }
        assert_eq!(drawn.matches("<polyline").count(), 3);
    }

    #[test]
    fn figures_become_a_table_with_ratios() {
        let figures = [64usize, 128].map(|n| Figure {
            backend: BackendKind::Cpu,
            case: Case::empty([n, n, 1]),
            rate: 1e6 / n as f64,
            empty: None,
        });
        let [mut first, second] = figures;
        (first.backend, first.empty) = (BackendKind::Cuda, Some(20_000.0));
        let third = Figure {
            backend: BackendKind::Cpu,
            case: first.case.clone(),
            rate: 5_000.0,
            empty: None,
        };
        let cases = [first.case.clone(), second.case.clone()];
        let expect = "steps/s     CUDA  / CPU  empty  / empty   CPU  empty  / empty\n\
            64 x 64    15625   3.12  20000     0.78  5000\n\
            128 x 128                                7812\n\
            empty: an empty medium as large as the scene, measured in turns with it\n";
        assert_eq!(table(&[first, second, third], &cases), expect);
    }
}
