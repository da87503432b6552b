//! `perpetua wave`: what can be asked for. [`session`] does it, or [`actors`] with tiles that stay, [`output`] and [`video`] write
//! what comes of it, [`bench`] measures.

mod actors;
mod bench;
mod output;
mod session;
mod video;

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use perpetua::wave::{BUILTIN, ColorMap, Scene, Storage};

use super::{Backend, Failure};

/// Arguments of `perpetua wave`.
#[derive(clap::Args, Clone, Debug, PartialEq)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    place: Place,
    /// A built-in scene, a scene in TOML, or a PNG whose colours are materials
    #[arg(long, default_value = "double-slit", value_name = "NAME|FILE")]
    scene: String,
    /// List the built-in scenes
    #[arg(long)]
    list_scenes: bool,
    /// Print the scene's TOML instead of running it: a start for one of your own
    #[arg(long)]
    print_scene: bool,
    /// Cells along x; if left out, what the scene says
    #[arg(long)]
    size: Option<usize>,
    /// Time steps in all; if left out, what the scene says
    #[arg(long)]
    steps: Option<u64>,
    /// Seconds a step; if left out, a little less than the largest stable one
    #[arg(long)]
    time_step: Option<f64>,
    /// How the field is stored
    #[arg(long, value_enum, default_value_t = Dtype::F32)]
    dtype: Dtype,
    /// How steps come about
    #[arg(long, value_enum, default_value_t = Mode::Launch)]
    mode: Mode,
    /// Open a window: watch, and draw walls, lenses, sources
    #[arg(long)]
    window: bool,
    /// The picture at the end, a PNG
    #[arg(long, default_value = "wave.png", value_name = "FILE")]
    out: PathBuf,
    /// An animated PNG
    #[arg(long, value_name = "FILE")]
    animate: Option<PathBuf>,
    /// A video, through ffmpeg, which must be installed
    #[arg(long, value_name = "FILE")]
    video: Option<PathBuf>,
    /// Frames of the animation and the video
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    frames: u32,
    /// What the probes record, as CSV
    #[arg(long, value_name = "FILE")]
    probes: Option<PathBuf>,
    /// What the probes record, as a plot in SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Colours
    #[arg(long, value_enum, default_value_t = Colors::Night)]
    colors: Colors,
    /// The value with the strongest colour; if left out, the picture's own, and for frames 0.8 of the strongest source
    #[arg(long)]
    range: Option<f32>,
    /// Of a scene in space, the layer to draw; if left out, the middle one
    #[arg(long)]
    layer: Option<usize>,
    /// Where to keep the state at the end, and when interrupted
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Go on from a checkpoint, to the bit
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
}

/// Where to run.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq)]
struct Place {
    /// Where to run
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,
    /// Index of the device within the backend (see `perpetua devices`)
    #[arg(long, default_value_t = 0)]
    device: usize,
}

#[derive(Subcommand, Clone, Debug, PartialEq)]
enum Action {
    /// Measure steps a second from 64² to 4096² cells, on every backend there is
    Bench(bench::Args),
}

/// How the field is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Dtype {
    /// 32 bits
    F32,
    /// 16 bits, computed in 32: half the memory
    F16,
}

impl From<Dtype> for Storage {
    fn from(dtype: Dtype) -> Storage {
        match dtype {
            Dtype::F32 => Storage::F32,
            Dtype::F16 => Storage::F16,
        }
    }
}

/// How steps come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Kernels, launched in batches
    Launch,
    /// Tiles that stay where they run (CUDA, CPU), and exchange their borders
    Actors,
}

/// A colour map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Colors {
    /// Dark at zero, blue below, orange above
    Night,
    /// White at zero, blue below, red above
    Day,
    /// From black to white
    Grey,
    /// The magnitude: black, red, yellow, white
    Heat,
}

impl From<Colors> for ColorMap {
    fn from(colors: Colors) -> ColorMap {
        match colors {
            Colors::Night => ColorMap::Night,
            Colors::Day => ColorMap::Day,
            Colors::Grey => ColorMap::Grey,
            Colors::Heat => ColorMap::Heat,
        }
    }
}

impl Default for Args {
    fn default() -> Args {
        Args {
            action: None,
            place: Place {
                backend: Backend::Auto,
                device: 0,
            },
            scene: "double-slit".into(),
            list_scenes: false,
            print_scene: false,
            size: None,
            steps: None,
            time_step: None,
            dtype: Dtype::F32,
            mode: Mode::Launch,
            window: false,
            out: "wave.png".into(),
            animate: None,
            video: None,
            frames: 90,
            probes: None,
            plot: None,
            colors: Colors::Night,
            range: None,
            layer: None,
            checkpoint: None,
            resume: None,
        }
    }
}

/// Largest TOML file that is read.
const MOST_TEXT: u64 = 16 << 20;
/// Largest PNG file that is read.
const MOST_PICTURE: u64 = 1 << 30;

/// Reads a file of at most so many bytes.
fn read(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let failed = |e: std::io::Error| format!("reading {}: {e}", path.display());
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > most {
        return Err(format!(
            "{}: {size} bytes are too many; at most {most} are read",
            path.display()
        )
        .into());
    }
    Ok(std::fs::read(path).map_err(failed)?)
}

/// The scene that `--scene` names: a file if it looks like one, else a built-in one.
fn load(name: &str) -> Result<Scene, Failure> {
    let mut scene = scene_of(name)?;
    if scene.name.is_empty() {
        // A scene from a file may leave its name out.
        scene.name = Path::new(name)
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
    }
    Ok(scene)
}

fn scene_of(name: &str) -> Result<Scene, Failure> {
    let path = Path::new(name);
    let kind = path
        .extension()
        .and_then(|e| e.to_str())
        .map(str::to_ascii_lowercase);
    match kind.as_deref() {
        Some("toml") => {
            let text = String::from_utf8(read(path, MOST_TEXT)?)
                .map_err(|e| format!("{name}: not UTF-8 at byte {}", e.utf8_error().valid_up_to()))?;
            Ok(Scene::from_toml(&text).map_err(|e| format!("{name}, {e}"))?)
        }
        Some("png") => Ok(Scene::from_png(&read(path, MOST_PICTURE)?).map_err(|e| format!("{name}: {e}"))?),
        _ => Ok(Scene::builtin(name)
            .map_err(|e| format!("--scene: {e}; or name a file that ends in .toml or .png"))?),
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(Action::Bench(bench)) = &args.action {
        return bench::run(bench);
    }
    if args.list_scenes {
        for (name, about, _) in BUILTIN {
            writeln!(stdout(), "{name:<12} {about}")?;
        }
        return Ok(());
    }
    if args.print_scene {
        let Some((.., text)) = BUILTIN.iter().find(|(name, ..)| *name == args.scene) else {
            return Err(format!(
                "--print-scene: `{}` is no built-in scene (--list-scenes)",
                args.scene
            )
            .into());
        };
        write!(stdout(), "{text}")?;
        return Ok(());
    }
    if args.mode == Mode::Actors {
        return actors::run(args, &load(&args.scene)?);
    }
    if args.window {
        return open_window(args);
    }
    session::run(args, &load(&args.scene)?)
}

/// The scene in a window. What the window cannot do is an error, not left out in silence.
#[cfg(feature = "window")]
fn open_window(args: &Args) -> Result<(), Failure> {
    use perpetua::wave::window;

    if args.dtype != Dtype::F32 || args.place.device != 0 {
        return Err(
            "--window shows 32-bit fields on the first device: leave out --dtype and --device".into(),
        );
    }
    let scene = window::scenes::names().position(|name| name == args.scene);
    let model = match scene {
        Some(window::scenes::POOL) => window::scenes::model(window::scenes::POOL, args.size.unwrap_or(512))?,
        _ => load(&args.scene)?.model(args.size, args.time_step)?,
    };
    let start = window::Start {
        size: model.size[0],
        model,
        scene,
        backend: args.place.backend.into(),
    };
    Ok(window::run(start)?)
}

#[cfg(not(feature = "window"))]
fn open_window(_: &Args) -> Result<(), Failure> {
    Err("--window: this program was built without it; build it with `cargo build --features window`".into())
}
