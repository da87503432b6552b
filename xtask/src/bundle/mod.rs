//! `cargo xtask bundle`: release builds of tests, benchmarks and programs in one folder, for a GPU machine that has
//! no Rust. `dist/bundle/run.sh` runs them there and prints a table.

use crate::workspace::{cargo, metadata, root, shell};
use anyhow::{Context, Result, bail};
use cargo_metadata::{Artifact, Message, Metadata, Package, TargetKind};
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xshell::{Shell, cmd};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Features to build with, each in those packages that have it.
    #[arg(long, value_delimiter = ',', default_value = "cuda,wgpu,testing,tensor")]
    features: Vec<String>,
    /// Carry Debian's Vulkan loader and what it needs, for a machine that lacks it.
    #[arg(long)]
    with_vulkan_loader: bool,
    /// Leave benchmarks out.
    #[arg(long)]
    no_benches: bool,
}

/// A package whose programs are carried.
struct Row {
    package: &'static str,
    /// What of it.
    kinds: &'static [Kind],
    /// Test targets that need the source tree or a compiler, or have nothing to do with GPUs, by the start of their names.
    leave_out: &'static [&'static str],
}

/// What is carried of a package.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The library's own tests.
    Unit,
    /// Every integration test that is not left out.
    Tests,
    /// Benchmarks.
    Benches,
    /// Its programs.
    Programs,
}

/// What goes in: one row a package.
const ROWS: [Row; 9] = [
    Row {
        package: "perpetua-device",
        kinds: &[Kind::Unit, Kind::Tests, Kind::Benches],
        leave_out: &[
            "compile",
            "cpu_streams",
            "mock_driver",
            "native",
            "racing",
            "select",
        ],
    },
    Row {
        package: "perpetua-isa",
        kinds: &[Kind::Tests],
        leave_out: &["builder", "capture", "corpus", "errors", "hologram", "texts"],
    },
    Row {
        package: "perpetua-tensor",
        kinds: &[Kind::Tests],
        leave_out: &["tensor_book", "tensor_files", "tensor_shaders"],
    },
    Row {
        package: "perpetua-kernels",
        kinds: &[Kind::Tests, Kind::Benches],
        leave_out: &["kernels_ptx"],
    },
    Row {
        package: "perpetua-actors",
        kinds: &[Kind::Tests, Kind::Benches],
        leave_out: &["handlers", "simulation", "telemetry", "tracing"],
    },
    Row {
        package: "perpetua-wave",
        kinds: &[Kind::Tests, Kind::Benches],
        leave_out: &[],
    },
    Row {
        package: "perpetua-language",
        kinds: &[Kind::Benches],
        leave_out: &[],
    },
    Row {
        package: "perpetua",
        kinds: &[Kind::Tests, Kind::Benches, Kind::Programs],
        // Examples' tests build and start them; the bundle has the bank, and the digits with their own tests.
        leave_out: &[
            "actor_examples",
            "expansion",
            "kernel_examples",
            "native",
            "order_book",
            "tensor_examples",
        ],
    },
    Row {
        package: "perpetua-cli",
        // Its tests start the program where it was built.
        kinds: &[Kind::Programs],
        leave_out: &[],
    },
];

/// The loader and the libraries without which it finds no adapter of NVIDIA's.
const VULKAN_LOADER: [&str; 7] = [
    "libvulkan1",
    "libegl1",
    "libglvnd0",
    "libopengl0",
    "libgl1",
    "libglx0",
    "libgles2",
];

const RUN: &str = include_str!("run.sh");

/// Bytes beyond which programs are packed together, which pays because they share most of their code.
const PACK_FROM: u64 = 40 << 20;
/// Bytes that a bundle may have.
const LIMIT: u64 = 60 << 20;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let shell = shell()?;
    let metadata = metadata()?;
    let folder = root().join("dist/bundle");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    for (part, command, kinds) in [
        (
            "tests",
            &["test", "--no-run", "--lib", "--tests"][..],
            &[Kind::Unit, Kind::Tests][..],
        ),
        ("benches", &["bench", "--no-run", "--benches"], &[Kind::Benches]),
        (
            "programs",
            &["build", "--bins", "--example", "bank", "--example", "digits"],
            &[Kind::Programs],
        ),
    ] {
        let rows: Vec<&Row> = ROWS
            .iter()
            .filter(|row| row.kinds.iter().any(|kind| kinds.contains(kind)))
            .collect();
        if part == "benches" && arguments.no_benches {
            continue;
        }
        let into = folder.join(part);
        fs::create_dir_all(&into)?;
        for (program, name) in build(&metadata, &rows, command, kinds, &arguments.features)? {
            carry(&shell, &program, &into.join(name))?;
        }
    }
    if arguments.with_vulkan_loader {
        fetch_vulkan_loader(&shell, &folder.join("deb"))?;
    }
    fs::write(folder.join("run.sh"), RUN)?;
    let script = folder.join("run.sh");
    cmd!(shell, "chmod +x {script}").quiet().run()?;
    list(&folder)?;
    pack(&shell, &folder)
}

/// Builds the rows' targets; each program with the name that it gets.
fn build(
    metadata: &Metadata,
    rows: &[&Row],
    command: &[&str],
    kinds: &[Kind],
    features: &[String],
) -> Result<Vec<(PathBuf, String)>> {
    let packages = rows
        .iter()
        .map(|row| find(metadata, row))
        .collect::<Result<Vec<_>>>()?;
    let mut cargo = Command::new(cargo());
    cargo
        .current_dir(root())
        .args(command)
        .arg("--message-format=json-render-diagnostics");
    // `bench` has a profile of its own, which is the release profile.
    if command[0] != "bench" {
        cargo.arg("--release");
    }
    for package in &packages {
        cargo.args(["--package", package.name.as_str()]);
        for feature in features
            .iter()
            .filter(|feature| package.features.contains_key(*feature))
        {
            cargo.arg("--features").arg(format!("{}/{feature}", package.name));
        }
    }
    let mut child = cargo
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo could not be started")?;
    let mut built = Vec::new();
    for message in child
        .stdout
        .take()
        .into_iter()
        .flat_map(|out| Message::parse_stream(BufReader::new(out)))
    {
        if let Message::CompilerArtifact(artifact) = message?
            && let Some(named) = wanted(&artifact, rows, &packages, kinds)
        {
            built.push(named);
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("cargo {} ended with {status}", command.join(" "));
    }
    Ok(built)
}

fn find<'a>(metadata: &'a Metadata, row: &Row) -> Result<&'a Package> {
    let all = metadata.workspace_packages();
    let found = all
        .into_iter()
        .find(|package| package.name.as_str() == row.package);
    found.with_context(|| {
        format!(
            "the bundle's table names {}, which is no package of the workspace",
            row.package
        )
    })
}

/// The program that an artifact is, and its name in the bundle, if the rows want it.
fn wanted(
    artifact: &Artifact,
    rows: &[&Row],
    packages: &[&Package],
    kinds: &[Kind],
) -> Option<(PathBuf, String)> {
    let program = artifact.executable.as_ref()?;
    let at = packages
        .iter()
        .position(|package| package.id == artifact.package_id)?;
    let (row, target) = (rows[at], &artifact.target);
    let kind = match target.kind.first()? {
        TargetKind::Test => Kind::Tests,
        TargetKind::Example if artifact.profile.test => Kind::Tests,
        TargetKind::Bench => Kind::Benches,
        TargetKind::Bin | TargetKind::Example => Kind::Programs,
        TargetKind::Lib if artifact.profile.test => Kind::Unit,
        _ => return None,
    };
    let is_left_out = row.leave_out.iter().any(|start| target.name.starts_with(start));
    if !kinds.contains(&kind) || !row.kinds.contains(&kind) || (kind == Kind::Tests && is_left_out) {
        return None;
    }
    let name = match kind {
        Kind::Programs => target.name.clone(),
        Kind::Unit => format!("{}.unit", row.package),
        Kind::Tests | Kind::Benches => format!("{}.{}", row.package, target.name),
    };
    Some((program.into(), name))
}

/// Copies a program without its symbols.
fn carry(shell: &Shell, program: &Path, to: &Path) -> Result<()> {
    cmd!(shell, "strip -o {to} {program}")
        .quiet()
        .run()
        .with_context(|| format!("{} could not be stripped", program.display()))
}

fn fetch_vulkan_loader(shell: &Shell, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let _there = shell.push_dir(folder);
    let packages = VULKAN_LOADER;
    // The index may be older than the archive: read it again when a package is gone.
    let download = || {
        cmd!(shell, "apt-get -qq download {packages...}")
            .quiet()
            .ignore_stderr()
    };
    if download().run().is_err() {
        cmd!(shell, "apt-get -qq update")
            .quiet()
            .run()
            .context("apt-get could not read the archive's index")?;
        download()
            .run()
            .context("apt-get could not download the Vulkan loader")?;
    }
    Ok(())
}

/// Every file below a folder with its size.
fn files(folder: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
        let entry = entry?;
        if entry.file_type().is_file() {
            files.push((entry.path().to_path_buf(), entry.metadata()?.len()));
        }
    }
    Ok(files)
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn list(folder: &Path) -> Result<()> {
    for (file, bytes) in files(folder)? {
        let name = file.strip_prefix(folder).unwrap_or(&file);
        println!("{:7.1} MiB  {}", mebibytes(bytes), name.display());
    }
    Ok(())
}

/// Packs programs into one archive when they are large, and refuses a bundle that is too large even so.
fn pack(shell: &Shell, folder: &Path) -> Result<()> {
    let total = |folder: &Path| -> Result<u64> { Ok(files(folder)?.iter().map(|(_, bytes)| bytes).sum()) };
    if total(folder)? > PACK_FROM {
        let parts: Vec<&str> = ["tests", "benches", "programs"]
            .into_iter()
            .filter(|part| folder.join(part).exists())
            .collect();
        let packed = &parts;
        let there = shell.push_dir(folder);
        // A window as large as all programs together, so that what they share is stored once.
        let options = "-T1 --lzma2=preset=4,dict=128MiB";
        cmd!(
            shell,
            "tar --create --file programs.tar.xz --xz --sort=name {packed...}"
        )
        .quiet()
        .env("XZ_OPT", options)
        .run()
        .context("tar could not pack the programs: it needs xz (Debian: xz-utils)")?;
        drop(there);
        for part in parts {
            fs::remove_dir_all(folder.join(part))?;
        }
    }
    let bytes = total(folder)?;
    println!("{:7.1} MiB  {}", mebibytes(bytes), folder.display());
    if bytes > LIMIT {
        bail!("the bundle has {bytes} bytes, more than {LIMIT}: leave targets out of the table in xtask");
    }
    Ok(())
}
