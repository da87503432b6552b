//! `perpetua wave`: what can be asked for. [`prepare`] judges it, [`session`] does it, or [`actors`] with tiles that stay, [`output`] and [`video`] write
//! what comes of it, [`kept`] is what its checkpoints keep, [`trust`] whose they are, [`bench`] measures.

mod actors;
mod bench;
mod kept;
mod output;
mod prepare;
mod progress;
mod session;
mod steps;
mod trust;
mod video;

use std::fmt::LowerExp;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, Subcommand, ValueEnum};
use perpetua::wave::{BUILTIN, ColorMap, Error, Model, Part, Scene, Storage};
use serde::{Deserialize, Serialize};

use super::files::{self, MOST_TEXT};
use super::patience::time;
use super::stdout::stdout;
use super::whole::from_nought;
use super::{Backend, Failure, open, say};

/// Arguments of `perpetua wave`.
#[derive(clap::Args, Clone, Debug, PartialEq)]
#[command(args_conflicts_with_subcommands = true, after_help = files::HOW)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    place: Place,
    /// A built-in scene, a scene in TOML, or a PNG whose colours are materials
    #[arg(long, default_value = "double-slit", value_name = "NAME|FILE")]
    scene: PathBuf,
    /// List the built-in scenes
    #[arg(long)]
    list_scenes: bool,
    /// Print the scene's TOML instead of running it: a start for one of your own
    #[arg(long)]
    print_scene: bool,
    /// Cells along x [default: the scene's]
    #[arg(long, allow_negative_numbers = true, value_parser = cells)]
    size: Option<usize>,
    /// Time steps in all [default: as long as the scene says]
    #[arg(long, allow_negative_numbers = true, value_parser = from_nought::<u64>)]
    steps: Option<u64>,
    /// Seconds a step [default: the scene's, or a little less than the largest stable one]
    #[arg(long, allow_negative_numbers = true, value_parser = seconds)]
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
    /// The picture at the end, a PNG [default: wave.png, or none where --animate, --video, --probes or --plot asks for something else]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// An animated PNG, of some 200 KB a frame at 512 cells; a video takes a hundredth of that. Frames are made smaller until no side has
    /// more than 640 pixels
    #[arg(long, value_name = "FILE")]
    animate: Option<PathBuf>,
    /// A video, through ffmpeg, which must be installed
    #[arg(long, value_name = "FILE")]
    video: Option<PathBuf>,
    /// Frames of the animation and the video
    #[arg(long, default_value_t = 90, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
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
    /// The value with the strongest colour [default: the picture's 99.5th percentile; for frames 0.8 of the strongest source]
    #[arg(long, value_parser = above_zero, allow_negative_numbers = true)]
    range: Option<f32>,
    /// Of a scene in space, the layer to draw [default: the middle one]
    #[arg(long, allow_negative_numbers = true, value_parser = from_nought::<usize>)]
    layer: Option<usize>,
    /// Where to keep the state, with scene and options, at the end, and when Ctrl-C or SIGTERM ends the run; what is no checkpoint, or
    /// holds a run that has not ended, is not replaced
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// How often to keep it meanwhile, as 60s, 5m or 1h: at most so much is lost, whatever happens [default: never]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = time)]
    checkpoint_every: Option<Duration>,
    /// Go on from a checkpoint, to the bit, with its scene and options and what else is given; the file is kept up to date, or what
    /// --checkpoint names instead
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
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = from_nought::<usize>)]
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

impl Args {
    /// Where the picture at the end goes, if there is to be one.
    fn still(&self) -> Option<PathBuf> {
        let others = [&self.animate, &self.video, &self.probes, &self.plot];
        match others.into_iter().any(Option::is_some) {
            true => self.out.clone(),
            false => Some(self.out.clone().unwrap_or_else(|| "wave.png".into())),
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
            out: None,
            animate: None,
            video: None,
            frames: 90,
            probes: None,
            plot: None,
            colors: Colors::Night,
            range: None,
            layer: None,
            checkpoint: None,
            checkpoint_every: None,
            resume: None,
        }
    }
}

/// Largest PNG file that is read.
const MOST_PICTURE: u64 = 1 << 30;

/// Reads a file of at most so many bytes.
fn read(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    Ok(files::read(path, most).map_err(|error| format!("reading {}: {error}", say::file(path)))?)
}

/// How many cells a grid has along an axis; whether a scene can have so many, the scene says.
fn cells(text: &str) -> Result<usize, String> {
    text.trim().parse().map_err(|_| {
        let (least, most) = (Model::SIDE.start(), Model::SIDE.end());
        format!("it must be a whole number from {least} to {most}")
    })
}

/// A number that something can be divided by.
fn above_zero(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if value.is_normal() && value > 0.0 => Ok(value),
        _ => Err(not_above_zero(text, "a number", f32::MIN_POSITIVE, f32::MAX)),
    }
}

/// A time that something can take.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_normal() && value > 0.0 => Ok(value),
        _ => Err(not_above_zero(
            text,
            "a number of seconds",
            f64::MIN_POSITIVE,
            f64::MAX,
        )),
    }
}

/// What is wrong with a text that is no number from `least` to `most`.
fn not_above_zero(text: &str, noun: &str, least: impl LowerExp, most: impl LowerExp) -> String {
    // Digits, so no word for a number: what is above 0 and finite is too small or too large for its type.
    let is_number = text.contains(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok();
    let is_zero = !text
        .split(['e', 'E'])
        .next()
        .is_some_and(|digits| digits.contains(|c| ('1'..='9').contains(&c)));
    match is_number && !is_zero && !text.trim_start().starts_with('-') {
        true => format!("it must be {noun} from {least:.1e} to {most:.1e}"),
        false => format!("it must be {noun} above 0, and finite"),
    }
}

/// A scene as it was found: its text, or its picture.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Source {
    /// What `--scene` named.
    name: String,
    bytes: Vec<u8>,
}

impl Source {
    /// What the name names: a file if it looks like one, else a built-in scene.
    fn load(path: &Path) -> Result<Source, Failure> {
        let name = path.to_string_lossy();
        let bytes = match Source::kind(&name).as_deref() {
            Some("toml") => read(path, MOST_TEXT)?,
            Some("png") => read(path, MOST_PICTURE)?,
            _ => match BUILTIN.iter().find(|(known, ..)| path == Path::new(known)) {
                Some((.., text)) => text.as_bytes().to_vec(),
                None => {
                    let known = BUILTIN.map(|(known, ..)| known).join(", ");
                    let why = match path.is_dir() {
                        true => format!("{} is a folder", say::short(&name)),
                        false => format!("there is no scene `{}`", say::short(&name)),
                    };
                    return Err(format!(
                        "--scene: {why}; there are: {known}; or name a file that ends in .toml or .png"
                    )
                    .into());
                }
            },
        };
        Ok(Source {
            name: name.into_owned(),
            bytes,
        })
    }

    /// A file's extension.
    fn kind(name: &str) -> Option<String> {
        let extension = Path::new(name).extension()?.to_str()?;
        Some(extension.to_ascii_lowercase())
    }

    /// The scene in it.
    fn scene(&self) -> Result<Scene, Failure> {
        let name = &self.name;
        let mut scene = if Source::kind(name).as_deref() == Some("png") {
            Scene::from_png(&self.bytes).map_err(|e| say::name(&format!("{name}: {e}")))?
        } else {
            let text = str::from_utf8(&self.bytes)
                .map_err(|e| format!("{}: not UTF-8 at byte {}", say::name(name), e.valid_up_to()))?;
            // A key or a name in it may be anybody's.
            Scene::from_toml(text).map_err(|e| say::name(&format!("{name}, {e}")))?
        };
        if scene.name.is_empty() {
            // A scene from a file may leave its name out.
            let stem = Path::new(name).file_stem().unwrap_or_default();
            scene.name = stem.to_string_lossy().into_owned();
        }
        scene.name = say::name(&scene.name);
        Ok(scene)
    }

    /// What is wrong with a model of it: with the option that asks for it, or else the file, line and key that do.
    fn wrong(&self, args: &Args, error: Error) -> Failure {
        let option = match &error {
            Error::Unstable { .. } => args.time_step.map(|step| format!("--time-step {step:?}")),
            Error::Range {
                part: Some(Part::Size | Part::Cells | Part::Probe(_)),
                ..
            } => args.size.map(|cells| format!("--size {cells}")),
            Error::Range { .. } => None,
            // Of the device, not of the scene.
            _ => return error.into(),
        };
        if let Some(option) = option {
            return format!("{option}: {error}").into();
        }
        let error = match str::from_utf8(&self.bytes) {
            Ok(text) if Source::kind(&self.name).as_deref() == Some("toml") => Scene::locate(text, error),
            _ => error,
        };
        let between = if matches!(error, Error::Text { .. }) {
            ","
        } else {
            ":"
        };
        say::name(&format!("{}{between} {error}", self.name)).into()
    }
}

/// An error of the command line; to the name of a scene that stands where no name does, the option that takes one is told.
pub(super) fn advised(mut error: clap::Error) -> clap::Error {
    let word = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) => word.clone(),
        _ => return error,
    };
    let is_scene = BUILTIN.iter().any(|(name, ..)| *name == word)
        || matches!(Source::kind(&word).as_deref(), Some("toml" | "png"));
    if is_scene {
        let advice = format!(
            "a scene is named by an option: perpetua wave --scene {}",
            say::word(Path::new(&word))
        );
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![advice.into()]),
        );
    }
    error
}

/// Refuses options that mean nothing beside the first of `known`, which needs no run.
fn only(matches: Option<&ArgMatches>, known: &[&str]) -> Result<(), Failure> {
    let given = matches.map_or(Ok(Vec::new()), kept::options)?;
    let names = given
        .iter()
        .filter_map(|option| option.trim_start_matches('-').split('=').next());
    match names.into_iter().find(|name| !known.contains(name)) {
        Some(name) => Err(format!(
            "--{name}: --{} runs nothing, so it would mean nothing: leave it out",
            known[0]
        )
        .into()),
        None => Ok(()),
    }
}

/// Does what `args` ask for, which `matches` were read into where there was a command line.
pub(super) fn run(args: &Args, matches: Option<&ArgMatches>) -> Result<(), Failure> {
    if let Some(Action::Bench(bench)) = &args.action {
        return bench::run(bench);
    }
    if args.list_scenes {
        only(matches, &["list-scenes"])?;
        for (name, about, _) in BUILTIN {
            writeln!(stdout()?, "{name:<12} {about}")?;
        }
        return Ok(());
    }
    if args.print_scene {
        only(matches, &["print-scene", "scene"])?;
        let Some((.., text)) = BUILTIN.iter().find(|(name, ..)| args.scene == Path::new(name)) else {
            return Err(format!(
                "--print-scene prints the TOML of a built-in scene, and `{}` is no built-in scene (--list-scenes)",
                say::file(&args.scene)
            )
            .into());
        };
        write!(stdout()?, "{text}")?;
        return Ok(());
    }
    if args.mode == Mode::Actors {
        return actors::run(args, &Source::load(&args.scene)?);
    }
    if args.window {
        return open_window(args, matches);
    }
    session::run(kept::run(args, matches)?)
}

/// The scene in a window. What the window cannot do is an error, not left out in silence.
#[cfg(feature = "window")]
fn open_window(args: &Args, matches: Option<&ArgMatches>) -> Result<(), Failure> {
    use perpetua::wave::window;

    const KNOWN: [&str; 6] = ["window", "scene", "size", "time-step", "backend", "mode"];
    let given = matches.map_or(Ok(Vec::new()), kept::options)?;
    let names = given
        .iter()
        .filter_map(|option| option.trim_start_matches('-').split('=').next());
    if let Some(name) = names.into_iter().find(|name| !KNOWN.contains(name)) {
        return Err(format!("--{name}: a window cannot do that: leave out this or --window").into());
    }
    if args.place.backend == Backend::Cuda {
        // Better said where the window was asked for than in it.
        perpetua::device::Device::new(args.place.backend.into(), 0)?;
    }
    let scene = window::scenes::names().position(|name| args.scene == Path::new(name));
    let model = match scene {
        Some(window::scenes::POOL) => window::scenes::model(window::scenes::POOL, args.size.unwrap_or(512))?,
        _ => {
            let source = Source::load(&args.scene)?;
            let model = source.scene()?.model(args.size, args.time_step);
            model.map_err(|error| source.wrong(args, error))?
        }
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
fn open_window(_: &Args, _: Option<&ArgMatches>) -> Result<(), Failure> {
    Err("--window: this program was built without it; install it with `cargo install --locked --path apps/perpetua --features top,window`".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_something_is_divided_by() {
        for (text, expect) in [
            ("0.5", Ok(0.5)),
            ("3e38", Ok(3e38)),
            ("1e300", Err("it must be a number from 1.2e-38 to 3.4e38")),
            ("1e-40", Err("it must be a number from 1.2e-38 to 3.4e38")),
            ("0", Err("it must be a number above 0, and finite")),
            ("0.0e5", Err("it must be a number above 0, and finite")),
            ("-1e300", Err("it must be a number above 0, and finite")),
            ("inf", Err("it must be a number above 0, and finite")),
            ("nan", Err("it must be a number above 0, and finite")),
            ("1x", Err("it must be a number above 0, and finite")),
        ] {
            assert_eq!(above_zero(text), expect.map_err(str::to_owned), "{text}");
        }
        let said = seconds("1e-310").unwrap_err();
        assert_eq!(said, "it must be a number of seconds from 2.2e-308 to 1.8e308");
        assert_eq!(seconds("1e-30"), Ok(1e-30));
    }
}
