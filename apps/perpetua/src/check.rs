//! `perpetua check`: whether each kernel of a package, or of files, can be lowered, verified and rendered for each target. Programs
//! of a package say it themselves, before their `main`; nothing of theirs runs. Must not know how.

mod instances;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use perpetua::kernel::check::{ASKED, BETWEEN, ROOT, Refusal, on_targets};
use perpetua_ir::front::rust::LowerError;
use serde::Deserialize;

use super::Failure;
use super::emit;
use super::say::{self, say};
use super::source::{self, File};
use instances::Tried;

#[derive(clap::Args)]
pub(super) struct Args {
    /// A target that each kernel must fit, too: without it, what a target alone lacks is a note
    #[arg(long, value_enum, value_name = "TARGET", value_delimiter = ',')]
    on: Vec<On>,
    /// Rust files; or options of `cargo build` (-p, --workspace, --features …): the package's binaries, examples and tests are built,
    /// and none is run
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FILES | OPTIONS"
    )]
    what: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum On {
    /// NVIDIA GPUs
    Ptx,
    /// CUDA C++
    #[value(alias = "cuda")]
    CudaC,
    /// Browsers, and GPUs through wgpu
    Wgsl,
    /// Apple's GPUs
    Msl,
}

impl On {
    /// How the renderers call it.
    fn is(self, target: &str) -> bool {
        let own = match self {
            On::Ptx => "PTX",
            On::CudaC => "CUDA C",
            On::Wgsl => "WGSL",
            On::Msl => "MSL",
        };
        target.starts_with(own)
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let (what, on) = args.options_behind()?;
    // Options of `cargo build` begin with one.
    let is_path = |arg: &OsString| !arg.to_string_lossy().starts_with('-');
    let found = match what.iter().any(is_source) {
        true => of_files(&what)?,
        false => match what.first().filter(|first| is_path(first)) {
            Some(first) => return Err(no_rust(first)),
            None => of_package(&what)?,
        },
    };
    found.told(&on)
}

fn is_source(path: &OsString) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|extension| extension == "rs")
}

/// What is said of what is none of both.
fn no_rust(path: &OsString) -> Failure {
    let name = say::file(path);
    format!("{name}: `perpetua check` takes Rust files, as k.rs, or options of `cargo build`, as -p NAME")
        .into()
}

impl Args {
    /// What is checked, and the targets; `--on` may stand behind files, too.
    fn options_behind(&self) -> Result<(Vec<OsString>, Vec<On>), Failure> {
        let (mut what, mut on) = (Vec::new(), self.on.clone());
        let mut all = self.what.iter();
        while let Some(arg) = all.next() {
            let text = arg.to_string_lossy();
            let targets = match text.strip_prefix("--on") {
                Some("") => match all.next() {
                    Some(next) => next.to_string_lossy().into_owned(),
                    None => return Err("--on needs a target: ptx, cuda-c, wgsl or msl".into()),
                },
                Some(rest) if rest.starts_with('=') => rest[1..].to_owned(),
                _ => {
                    what.push(arg.clone());
                    continue;
                }
            };
            for target in targets.split(',') {
                on.push(On::from_str(target, true).map_err(|e| format!("--on {target}: {e}"))?);
            }
        }
        Ok((what, on))
    }
}

/// What was found.
#[derive(Default)]
struct Found {
    /// How many kernels were checked.
    count: usize,
    /// What of them is refused.
    refused: Vec<Refusal>,
    /// Of each file in which something is refused before its kernels are looked at, how much that is.
    mistakes: Vec<String>,
}

impl Found {
    /// Shows what is refused, and says how many kernels that are.
    fn told(&self, on: &[On]) -> Result<(), Failure> {
        let count = self.count;
        let (mut refused, mut shown) = (HashSet::new(), HashSet::new());
        let mut elsewhere: BTreeMap<&str, HashSet<_>> = BTreeMap::new();
        for refusal in &self.refused {
            let kernel = (&refusal.kernel, &refusal.file);
            let target = refusal.target.as_deref();
            if let Some(target) = target.filter(|target| !on.iter().any(|on| on.is(target))) {
                elsewhere.entry(target).or_default().insert(kernel);
                continue;
            }
            refused.insert(kernel);
            // Instances of a generic kernel may have one mistake.
            if shown.insert((
                target,
                &refusal.file,
                refusal.line,
                &refusal.place,
                &refusal.cause,
            )) {
                show(refusal, target);
            }
        }
        let kernels = if count == 1 { "kernel" } else { "kernels" };
        if !elsewhere.is_empty() {
            let each = elsewhere
                .iter()
                .map(|(target, kernels)| format!("{} not for {target}", kernels.len()));
            let each = each.collect::<Vec<_>>().join(", ");
            let options = [On::Ptx, On::CudaC, On::Wgsl, On::Msl].into_iter();
            let options = options.filter(|on| elsewhere.keys().any(|target| on.is(target)));
            let options =
                options.filter_map(|on| Some(format!("`--on {}`", on.to_possible_value()?.get_name())));
            let options = options.collect::<Vec<_>>().join(", ");
            say(format!(
                "note: of {count} {kernels}, {each}: {options} shows which and why"
            ));
        }
        match (refused.len(), &self.mistakes[..]) {
            (0, []) => say(format!("{count} {kernels} checked, none refused")),
            (n, []) => return Err(format!("{n} of {count} {kernels} refused").into()),
            (_, mistakes) if count == 0 => return Err(mistakes.join(", ").into()),
            (n, mistakes) => {
                return Err(format!(
                    "{}; of the other {kernels}, {n} of {count} refused",
                    mistakes.join(", ")
                )
                .into());
            }
        }
        Ok(())
    }
}

/// Shows a mistake under its line.
fn show(refusal: &Refusal, target: Option<&str>) {
    let Refusal { kernel, file, .. } = refusal;
    let of = match (target, kernel.contains('<')) {
        (Some(target), _) => format!(" (`{kernel}` for {target})"),
        (None, true) => format!(" (`{kernel}`)"),
        (None, false) => String::new(),
    };
    let error = LowerError {
        file: file.as_str().into(),
        line: refusal.line,
        place: refusal.place.clone(),
        cause: refusal.cause.clone() + &of,
        remedy: String::new(),
    };
    let path = PathBuf::from(file);
    let text = source::read(&path).unwrap_or_default();
    File::new(&path, &text).not_lowered(&error);
}

/// The kernels of files.
fn of_files(files: &[OsString]) -> Result<Found, Failure> {
    let mut found = Found::default();
    for path in files {
        if let Err(error) = of_file(path, &mut found) {
            found.mistakes.push(error.to_string());
        }
    }
    Ok(found)
}

/// The kernels of a file.
fn of_file(path: &OsString, found: &mut Found) -> Result<(), Failure> {
    if !is_source(path) {
        return Err(no_rust(path));
    }
    let text = source::read(Path::new(path))?;
    let file = File::new(path, &text);
    let (all, refused) = file.kernels_and_refusals()?;
    let is_refused = refused.is_some();
    let handlers = match refused {
        None => emit::handlers(&file)?,
        Some(error) => {
            found.mistakes.push(file.refused(error).to_string());
            Vec::new()
        }
    };
    if all.is_empty() && handlers.is_empty() && !is_refused {
        return Err(format!("{} has no function marked #[kernel] or #[ring_kernel]", file.name).into());
    }
    for (name, function, how) in handlers {
        found.count += 1;
        found.refused.extend(on_targets(&name, &function, &how));
    }
    for kernel in &all {
        let all = match kernel.function.tree()?.generics.is_empty() {
            true => Tried::Refused(on_targets(&kernel.name, &kernel.function, &kernel.how)),
            false => instances::tried(kernel)?,
        };
        let (known, refused) = match all {
            Tried::As(name, refused) => {
                say(format!(
                    "note: `{}` of {} was checked as `{}`",
                    say::name(&kernel.name),
                    file.name,
                    say::name(&name)
                ));
                (true, refused)
            }
            Tried::Refused(refused) => (true, refused),
            Tried::Unknown => (false, Vec::new()),
        };
        found.count += usize::from(known);
        found.refused.extend(refused);
        if !known {
            say(format!(
                "note: `{0}` of {1} is generic and was not checked: `perpetua emit {1} '{0}::<…>'` and `perpetua run` take its arguments, and \
                 `perpetua check` of a package finds those that its programs use",
                say::name(&kernel.name),
                file.name
            ));
        }
    }
    Ok(())
}

/// What cargo says of what it has built, as far as it is needed.
#[derive(Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
}

/// The kernels of a package's programs.
fn of_package(options: &[OsString]) -> Result<Found, Failure> {
    let root = root(options)?;
    let mut command = cargo();
    command.args(["build", "--message-format=json-render-diagnostics"]);
    let narrows = [
        "--bin",
        "--example",
        "--test",
        "--bench",
        "--lib",
        "--all-targets",
    ];
    let is_narrow = |option: &OsString| {
        let option = option.to_string_lossy();
        narrows.iter().any(|narrow| option.starts_with(narrow))
    };
    if !options.iter().any(is_narrow) {
        command.args(["--bins", "--examples", "--tests"]);
    }
    let failed = |e: std::io::Error| format!("`cargo build`: {e}");
    let mut child = command
        .args(options)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut programs = Vec::new();
    for line in child
        .stdout
        .take()
        .map(BufReader::new)
        .into_iter()
        .flat_map(BufRead::lines)
    {
        let artifact = serde_json::from_str(&line.map_err(failed)?);
        programs.extend(artifact.ok().and_then(|artifact: Artifact| artifact.executable));
    }
    if !child.wait().map_err(failed)?.success() {
        return Err("`cargo build` failed".into());
    }
    let report = tempfile::NamedTempFile::new().map_err(|e| format!("a file for what is found: {e}"))?;
    let mut asked = false;
    for program in &programs {
        asked |= ask(program, report.path(), &root)?;
    }
    if !asked {
        return Err(format!(
            "none of {} programs knows its kernels: those do that use `perpetua` and are built with debug assertions",
            programs.len()
        )
        .into());
    }
    let report = std::fs::read_to_string(report.path()).map_err(|e| format!("what was found: {e}"))?;
    Ok(read(&report, &root))
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The folder from which the compiler names sources.
fn root(options: &[OsString]) -> Result<PathBuf, Failure> {
    let mut command = cargo();
    command.args(["locate-project", "--workspace", "--message-format=plain"]);
    let named = options.iter().position(|option| option == "--manifest-path");
    if let Some(path) = named.and_then(|at| options.get(at + 1)) {
        command.arg("--manifest-path").arg(path);
    }
    let joined = |option: &&OsString| option.to_string_lossy().starts_with("--manifest-path=");
    command.args(options.iter().find(joined));
    let output = command
        .output()
        .map_err(|e| format!("`cargo locate-project`: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let manifest = Path::new(text.trim());
    match manifest.parent() {
        Some(folder) if output.status.success() => Ok(folder.to_owned()),
        _ => {
            let why = String::from_utf8_lossy(&output.stderr);
            let why = why.lines().find_map(|line| line.strip_prefix("error: "));
            Err(say::name(why.unwrap_or("`cargo locate-project` failed")).into())
        }
    }
}

/// Has a program add to the report what it finds; says whether it is one that does so instead of running.
fn ask(program: &Path, report: &Path, root: &Path) -> Result<bool, Failure> {
    let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", say::file(program));
    let bytes = std::fs::read(program).map_err(|e| failed(&e))?;
    // What the program holds that answers; this one, which asks, need not.
    let mark = format!("{ASKED} is answered");
    if !bytes.windows(mark.len()).any(|window| window == mark.as_bytes()) {
        return Ok(false);
    }
    let mut command = Command::new(program);
    command
        .env(ASKED, report)
        .env(ROOT, root)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let status = command.status().map_err(|e| failed(&e))?;
    match status.success() {
        true => Ok(true),
        false => Err(failed(&format!("its kernels could not be checked: {status}")).into()),
    }
}

/// Reads a report.
fn read(report: &str, root: &Path) -> Found {
    let (mut found, mut name) = (Found::default(), "");
    for line in report.lines() {
        let parts: Vec<&str> = line.split(BETWEEN).collect();
        match *parts.as_slice() {
            ["kernel", kernel, ..] => {
                found.count += 1;
                name = kernel;
            }
            ["refused", target, file, line, start, end, cause] => found.refused.push(Refusal {
                kernel: name.to_owned(),
                target: (!target.is_empty()).then(|| target.to_owned()),
                file: root.join(file).to_string_lossy().into_owned(),
                line: line.parse().unwrap_or(0),
                place: start.parse().unwrap_or(0)..end.parse().unwrap_or(0),
                cause: cause.to_owned(),
            }),
            _ => {}
        }
    }
    found
}
