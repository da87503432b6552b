//! `cargo xtask test`: everything that must hold before a change goes in, in stages, with a time for each.

mod lanes;
mod pages;

use crate::workspace::{EVERYTHING, cargo, metadata, shell};
use crate::{dist, setup, tidy, toolchain, web};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xshell::{Cmd, Shell, cmd};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run these stages alone.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Stage>,
    /// Remove what one stage alone has built as soon as it has passed: a run that is not followed by another needs less disk.
    #[arg(long)]
    discard: bool,
}

/// What loom's models are built into: all crates are built again for them.
const LOOM_FOLDER: &str = "target/loom";

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// Install what the other stages need.
    Setup,
    /// Formatting.
    Fmt,
    /// Rules between crates and modules; documents name what exists.
    Tidy,
    /// Lints, over every target and feature.
    Clippy,
    /// Unit and integration tests, vendor tools, golden files and software Vulkan included; `perpetua check` of all their kernels.
    Unit,
    /// The lock-free parts of the actors in loom's models: every interleaving of a few steps.
    Loom,
    /// Streams, copies, rings and brokers under ThreadSanitizer.
    Tsan,
    /// Machine code for AArch64 in an emulator: generated kernels equal the interpreter's, and bugs planted in it are found.
    Aarch64,
    /// Examples in documentation.
    DocTests,
    /// Documentation without broken links.
    Docs,
    /// The crates as a registry takes them: versions, descriptions, licences. By hand: `cargo package --workspace --no-verify`.
    Package,
    /// Facade and program without default features: the CPU alone; the IR with each renderer alone.
    Minimal,
    /// The facade with the wave type-checks for Apple's machines.
    Apple,
    /// The facade with the wave type-checks for Windows.
    Windows,
    /// The facade with the window compiles for the browser; the wave simulation's page in Chromium, on WebGPU and without: its numbers
    /// are a program's.
    Web,
}

/// How a stage went.
struct Outcome {
    stage: Stage,
    passed: bool,
    time: Duration,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let stages = match &arguments.only[..] {
        // As it goes, for who waits for it.
        [stage] => {
            println!("\n=== {stage:?}");
            return stage.run(&shell()?);
        }
        [] => Stage::value_variants(),
        some => some,
    };
    let started = Instant::now();
    let outcomes = lanes::run(stages, arguments.discard)?;
    report(stages, &outcomes, started.elapsed())
}

fn report(stages: &[Stage], outcomes: &[Outcome], time: Duration) -> Result<()> {
    println!("\nstage      result   seconds");
    let mut failed = Vec::new();
    for stage in stages {
        let name = format!("{stage:?}");
        let outcome = outcomes.iter().find(|outcome| outcome.stage == *stage);
        match outcome {
            Some(Outcome { passed, time, .. }) => {
                let result = if *passed { "passed" } else { "FAILED" };
                println!("{name:<10} {result:<7} {:8.1}", time.as_secs_f64());
            }
            None => println!("{name:<10} not run"),
        }
        if !outcome.is_some_and(|outcome| outcome.passed) {
            failed.push(name);
        }
    }
    println!("{:<18} {:8.1}", "all", time.as_secs_f64());
    if failed.is_empty() {
        return Ok(());
    }
    bail!("failed: {}", failed.join(", "))
}

impl Stage {
    fn run(self, shell: &Shell) -> Result<()> {
        let cargo = cargo();
        let command = match self {
            Stage::Setup => return setup::run(&setup::Arguments { only: Vec::new() }),
            Stage::Tidy => return tidy::run(),
            Stage::Web => return web::test(shell),
            Stage::Package => return dist::package(shell),
            Stage::Fmt => cmd!(shell, "{cargo} fmt --all --check"),
            Stage::Clippy => {
                cmd!(
                    shell,
                    "{cargo} clippy --workspace --all-targets --all-features --quiet -- -D warnings"
                )
            }
            Stage::Unit => {
                // As programs, which tests run; those that have tests of their own are built for them below.
                cmd!(shell, "{cargo} build {EVERYTHING...} --examples")
                    .quiet()
                    .run()?;
                counted(
                    cmd!(shell, "{cargo} test {EVERYTHING...} --no-fail-fast --tests")
                        .env("PERPETUA_EXAMPLES_BUILT", "1"),
                )?;
                // Each kernel of all these programs, also those that no test launches.
                let folder = metadata()?.target_directory.into_std_path_buf().join("debug");
                let perpetua = folder.join(format!("perpetua{}", std::env::consts::EXE_SUFFIX));
                cmd!(shell, "{perpetua} check {EVERYTHING...}")
            }
            Stage::Loom => {
                let options = ["--package", "perpetua-actors", "--profile", "loom", "--lib"];
                return counted(
                    cmd!(shell, "{cargo} test --target-dir {LOOM_FOLDER} {options...} loom")
                        .env("RUSTFLAGS", "--cfg perpetua_loom"),
                );
            }
            Stage::Tsan => return sanitized(shell),
            Stage::Aarch64 => {
                let features = ["--features", "machine-code,testing"];
                return counted(
                    toolchain::cargo_test_emulated(shell)?
                        .args(["--package", "perpetua-cpu", "--test", "machine_code"])
                        .args(features)
                        // Of each kind and size of kernel: 300 in all, for an emulator takes its time.
                        .env("PERPETUA_SEEDS", "25"),
                );
            }
            Stage::DocTests => {
                return counted(cmd!(shell, "{cargo} test {EVERYTHING...} --no-fail-fast --doc"));
            }
            Stage::Docs => {
                pages::facade(shell)?;
                cmd!(shell, "{cargo} doc --workspace --all-features --no-deps --quiet")
                    .env("RUSTDOCFLAGS", "-D warnings")
            }
            Stage::Minimal => return minimal(shell),
            Stage::Apple => facade(shell, toolchain::APPLE)?,
            Stage::Windows => facade(shell, toolchain::WINDOWS)?,
        };
        Ok(command.quiet().run()?)
    }
}

/// Runs under ThreadSanitizer what threads meet in. Every report of it is a failure.
fn sanitized(shell: &Shell) -> Result<()> {
    // The same packages both times, so that what they depend on has the same features and is built once.
    let packages =
        ["perpetua-device", "perpetua-language", "perpetua-actors"].map(|name| ["--package", name]);
    let tests: [&[&str]; 2] = [
        &[
            "--test",
            "cpu_streams",
            "--test",
            "racing",
            "--test",
            "native_racing",
        ],
        &["--lib", "--", "ring", "clock", "broker", "pubsub"],
    ];
    tests.into_iter().try_for_each(|tests| {
        counted(
            toolchain::cargo_test_sanitized(shell)?
                .args(packages.as_flattened())
                .args(tests),
        )
    })
}

/// Checks what is built with few features, where nothing may be left over.
fn minimal(shell: &Shell) -> Result<()> {
    let cargo = cargo();
    let check = |package: &str, features: &str| {
        let options = ["--no-default-features", "--features", features, "--quiet"];
        cmd!(
            shell,
            "{cargo} clippy --package {package} {options...} -- -D warnings"
        )
        .quiet()
        .run()
    };
    for renderer in ["", "ptx", "cuda-c", "wgsl", "msl"] {
        check("perpetua-ir", renderer).with_context(|| format!("perpetua-ir with `{renderer}`"))?;
    }
    for code in ["", "machine-code", "assembly"] {
        check("perpetua-cpu", code).with_context(|| format!("perpetua-cpu with `{code}`"))?;
    }
    for backend in ["", "cuda", "wgpu"] {
        check("perpetua", backend).with_context(|| format!("perpetua with `{backend}`"))?;
    }
    check("perpetua-cli", "").context("the program without features")
}

/// Runs tests, passing their output on, and closes with the sums of what each test program counted.
fn counted(command: Cmd<'_>) -> Result<()> {
    // Tools were installed by the first stage, so a missing one is a failure here.
    let mut command = Command::from(
        command
            .env("PERPETUA_REQUIRE_TOOLS", "1")
            .env_remove("PERPETUA_BLESS"),
    );
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo could not be started")?;
    let (mut programs, mut passed, mut failed, mut ignored) = (0, 0, 0, 0);
    for line in child
        .stdout
        .take()
        .into_iter()
        .flat_map(|output| BufReader::new(output).lines())
    {
        let line = line?;
        println!("{line}");
        if let Some(counts) = line.strip_prefix("test result: ") {
            programs += 1;
            passed += count_of(counts, " passed");
            failed += count_of(counts, " failed");
            ignored += count_of(counts, " ignored");
        }
    }
    let status = child.wait()?;
    println!("{programs} test programs: {passed} passed, {failed} failed, {ignored} ignored");
    if status.success() {
        Ok(())
    } else {
        bail!("cargo test ended with {status}")
    }
}

/// The number before `unit` in a closing line of a test program.
fn count_of(counts: &str, unit: &str) -> usize {
    let before = counts.split(unit).next().unwrap_or_default();
    before
        .rsplit(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Checks the library that users depend on, with what differs between systems. The backend on wgpu has nothing of the kind, but most of
/// the crates.
fn facade<'a>(shell: &'a Shell, target: &str) -> Result<Cmd<'a>> {
    let features = ["--no-default-features", "--features", "actors,cuda,wave"];
    let command = toolchain::cargo_for(shell, "check", target)?;
    Ok(command
        .args(["--package", "perpetua", "--lib", "--quiet"])
        .args(features))
}
