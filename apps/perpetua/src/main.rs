//! The `perpetua` program: what there is to say on its command line, and who does it. It knows Perpetua by the facade, as every
//! program does; only `emit` and `explain` reach into the IR.

mod bench;
mod check;
mod devices;
mod doctor;
mod emit;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod explain;
mod files;
#[cfg(feature = "isa")]
mod isa;
mod listing;
mod patience;
mod run;
mod say;
mod shape;
mod signals;
mod source;
mod stdout;
mod text;
#[cfg(feature = "actors")]
mod top;
mod values;
mod wave;
mod whole;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use perpetua::device::{BackendKind, Device};
use perpetua_ir::plain::misleads;
use stdout::stdout;

/// Why a command failed, in the words for the user.
pub(crate) type Failure = Box<dyn std::error::Error>;

#[derive(Parser)]
#[command(
    name = "perpetua",
    version,
    about = "Write a kernel once in Rust; run it on any GPU or on the CPU",
    long_about = "Write a kernel once in Rust; run it on any GPU or on the CPU.\n\n\
        Without a command, simulates a wave that meets a double slit on the best device there is, and draws it to wave.png.",
    after_help = "Examples:\n  \
        perpetua                                      draw the double slit to wave.png\n  \
        perpetua wave --backend cpu --size 1024       the same, larger, on the CPU\n  \
        perpetua wave --scene lens --animate lens.png another scene, animated\n  \
        perpetua wave bench                           steps a second by size, on every backend\n  \
        perpetua devices                              what there is, and what was looked for\n  \
        perpetua check                                what kernels of this package cannot be launched\n  \
        perpetua emit saxpy.rs saxpy --target ptx     a kernel as PTX\n  \
        perpetua explain saxpy.rs                     which checks stand, where lanes part\n  \
        perpetua run saxpy.rs --arg a=2 --buffer x=range:8 --buffer y=ones:8   launch a kernel, see what it made\n  \
        perpetua isa spec                             the instruction set of programs as data\n  \
        perpetua bench gemm --plot gemm.svg           matrix products beside what the device could do\n  \
        perpetua top                                  programs whose actors can be watched"
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// List devices; for what is missing, what was looked for
    Devices,
    /// Check drivers and tools, and run one kernel on each backend
    Doctor,
    /// Whether each kernel of a package or a file can be lowered and rendered, launched or not
    Check(check::Args),
    /// Print a file's kernels as PTX, CUDA C, WGSL, MSL, IR or the CPU's assembly
    Emit(emit::Args),
    /// Show under a kernel's lines which checks stand, where lanes part, how memory is reached
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    Explain(explain::Args),
    /// Run a kernel of a file on arrays, with no Rust compiled
    Run(Box<run::Args>),
    /// Assemble, check and run programs in the instruction set
    #[cfg(feature = "isa")]
    Isa(isa::Args),
    /// Measure the library's kernels beside what the device could do, and from where a GPU is faster than the CPU
    Bench(bench::Args),
    /// Watch the actors of a running program, as `top` watches processes
    #[cfg(feature = "actors")]
    Top(top::Args),
    /// Simulate waves in a scene, draw them, measure (the default: a double slit)
    Wave(Box<wave::Args>),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// A backend as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// CUDA, else a GPU through wgpu, else the CPU: what wgpu computes on the CPU is taken only by --backend wgpu
    Auto,
    /// The host's processor
    Cpu,
    /// NVIDIA GPUs through the CUDA driver
    Cuda,
    /// Vulkan, Metal, DX12 and GL through wgpu
    Wgpu,
}

impl From<Backend> for BackendKind {
    fn from(backend: Backend) -> BackendKind {
        match backend {
            Backend::Auto => BackendKind::Auto,
            Backend::Cpu => BackendKind::Cpu,
            Backend::Cuda => BackendKind::Cuda,
            Backend::Wgpu => BackendKind::Wgpu,
        }
    }
}

/// The device that `--backend` and `--device` mean.
pub(crate) fn open(backend: Backend, index: usize) -> Result<Device, Failure> {
    Device::new(backend.into(), index).map_err(|error| match (backend, index) {
        (Backend::Auto, 1..) => format!(
            "{error}; --device {index} counts within one backend, and --backend auto takes the first that has devices: name one with --backend"
        )
        .into(),
        _ => error.into(),
    })
}

/// Drivers that look for a Wayland display for a window complain where a session has no folder for its sockets, and where they cannot keep
/// shaders. A display that is named without such a folder is none, and where a path is named, no folder is asked for: the window goes to
/// X11.
#[cfg(target_os = "linux")]
fn quieten_drivers() {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_set = |name| set(name).is_some();
    let has_wayland = is_set("XDG_RUNTIME_DIR")
        || is_set("WAYLAND_SOCKET")
        || set("WAYLAND_DISPLAY").is_some_and(|name| std::path::Path::new(&name).is_absolute());
    let is_window = std::env::args_os().any(|arg| arg == "--window");
    let mut quiet: Vec<(&str, &str)> = Vec::new();
    if is_window && !has_wayland && is_set("DISPLAY") {
        quiet.push(("WAYLAND_DISPLAY", "/"));
    }
    if !is_set("MESA_SHADER_CACHE_DIR") && !is_set("MESA_SHADER_CACHE_DISABLE") && !can_keep_shaders() {
        quiet.push(("MESA_SHADER_CACHE_DISABLE", "true"));
        quiet.push(("MESA_GLSL_CACHE_DISABLE", "true"));
    }
    for (name, value) in quiet {
        // SAFETY: the environment may be changed while no other thread reads or writes it; `main` calls this first, and has started
        // none.
        unsafe { std::env::set_var(name, value) };
    }
}

/// Whether Mesa can write where it keeps shaders.
#[cfg(target_os = "linux")]
fn can_keep_shaders() -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = set("XDG_CACHE_HOME")
        .map(std::path::PathBuf::from)
        .or_else(|| Some(std::path::Path::new(&set("HOME")?).join(".cache")));
    let Some(base) = base else {
        return false;
    };
    // What is there must be a folder; what is not is made by Mesa, in the nearest one that is there.
    let own = base.join("mesa_shader_cache");
    let nearest = own.ancestors().find(|folder| folder.exists());
    nearest.is_some_and(|folder| folder.is_dir() && tempfile::tempfile_in(folder).is_ok())
}

fn main() -> ExitCode {
    #[cfg(unix)]
    signals::let_large_files_fail();
    #[cfg(target_os = "linux")]
    quieten_drivers();
    let matches = match Cli::command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return told(&plain(advised(wave::advised(error)))),
    };
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let done = match cli.command {
        None => wave::run(&wave::Args::default(), None),
        Some(Command::Wave(args)) => wave::run(&args, matches.subcommand_matches("wave")),
        Some(Command::Devices) => devices::run(),
        Some(Command::Doctor) => doctor::run(),
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::Emit(args)) => emit::run(&args),
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        Some(Command::Explain(args)) => explain::run(&args),
        Some(Command::Run(args)) => run::run(&args),
        #[cfg(feature = "isa")]
        Some(Command::Isa(args)) => isa::run(&args),
        Some(Command::Bench(args)) => bench::run(&args),
        #[cfg(feature = "actors")]
        Some(Command::Top(args)) => top::run(&args),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "perpetua", &mut script);
            let written = stdout().and_then(|mut out| out.write_all(&script));
            written.map_err(Failure::from)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Who reads the output has enough of it.
        Err(error) if is_closed_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            // Files' errors have their names.
            let place = match error.is::<std::io::Error>() {
                true => "writing the output: ",
                false => "",
            };
            say::say(format!("error: {place}{error}"));
            match error.downcast_ref::<signals::Interrupted>() {
                Some(interrupted) => ExitCode::from(interrupted.code()),
                None => ExitCode::FAILURE,
            }
        }
    }
}

/// Prints help, or what is wrong with the command line, and gives what to end with.
fn told(error: &clap::Error) -> ExitCode {
    let printed = match error.use_stderr() {
        true => error.print(),
        false => stdout().and_then(|_| error.print()),
    };
    match printed {
        Err(failed) if !error.use_stderr() && !is_closed_pipe(&failed) => {
            say::say(format!("error: writing the output: {failed}"));
            ExitCode::FAILURE
        }
        _ => u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from),
    }
}

/// An error of the command line; where `help` does not know a command, with the one that the command line without `help` would tell.
fn advised(mut error: clap::Error) -> clap::Error {
    let is_unknown = error.kind() == ErrorKind::InvalidSubcommand;
    if is_unknown && error.get(ContextKind::SuggestedSubcommand).is_none() {
        let mut is_first = true;
        let is_kept = |arg: &OsString| arg != "help" || !std::mem::take(&mut is_first);
        let without = std::env::args_os().filter(is_kept);
        let similar = Cli::command().try_get_matches_from(without).err();
        let similar = similar.and_then(|other| other.get(ContextKind::SuggestedSubcommand).cloned());
        if let Some(similar) = similar {
            error.insert(ContextKind::SuggestedSubcommand, similar);
        }
    }
    error
}

/// An error of the command line in which nothing of that commands a terminal.
fn plain(mut error: clap::Error) -> clap::Error {
    let context: Vec<(ContextKind, ContextValue)> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) => Some((kind, ContextValue::String(say::name(text)))),
            ContextValue::Strings(texts) => {
                let texts = texts.iter().map(|text| say::name(text));
                Some((kind, ContextValue::Strings(texts.collect())))
            }
            _ => None,
        })
        .collect();
    let is_hostile =
        |value: &ContextValue| matches!(value, ContextValue::String(text) if text.contains(misleads));
    if error.get(ContextKind::InvalidArg).is_some_and(is_hostile) {
        // Advice to take it as a value has it once more.
        error.remove(ContextKind::Suggested);
    }
    for (kind, value) in context {
        error.insert(kind, value);
    }
    error
}

fn is_closed_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_default_is_the_wave_command_without_arguments() {
        let Ok(Cli {
            command: Some(Command::Wave(args)),
        }) = Cli::try_parse_from(["perpetua", "wave"])
        else {
            panic!("`perpetua wave` parses");
        };
        assert_eq!(*args, wave::Args::default());
    }
}
