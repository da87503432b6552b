//! Which stages run beside each other, and what is printed of them: a stage's output as a whole, when the stage has ended.

use super::{LOOM_FOLDER, Outcome, Stage};
use crate::locate::{self, Search};
use crate::toolchain;
use crate::workspace::{metadata, root, shell};
use anyhow::{Context, Result};
use clap::ValueEnum;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

/// What stages of one lane build is built into one folder, so they follow each other. Of three lanes one always has work while
/// others link, wait, or run a single test.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// What changes break most often; its tests have the processor first.
    Native,
    /// Other targets, by the second toolchain in its folder for development.
    Targets,
    /// What has profiles of its own: the models and the page.
    Profiles,
}

impl Stage {
    fn lane(self) -> Lane {
        match self {
            Stage::Fmt
            | Stage::Tidy
            | Stage::Clippy
            | Stage::Unit
            | Stage::DocTests
            | Stage::Docs
            | Stage::Package
            | Stage::Minimal => Lane::Native,
            Stage::Tsan | Stage::Aarch64 | Stage::Apple | Stage::Windows => Lane::Targets,
            Stage::Setup | Stage::Loom | Stage::Web => Lane::Profiles,
        }
    }

    /// Whether it runs nothing but the toolchain.
    fn needs_no_setup(self) -> bool {
        matches!(
            self,
            Stage::Setup
                | Stage::Fmt
                | Stage::Tidy
                | Stage::Clippy
                | Stage::Docs
                | Stage::Package
                | Stage::Minimal
        )
    }

    /// Removes what no other stage can use.
    fn discard(self) -> Result<()> {
        let shell = shell()?;
        let of_target = |target| toolchain::folder_of(&shell, target);
        let folder = match self {
            Stage::Loom => root().join(LOOM_FOLDER),
            Stage::Tsan => toolchain::sanitized_folder(),
            Stage::Aarch64 => of_target(toolchain::AARCH64_LINUX)?,
            Stage::Apple => of_target(toolchain::APPLE)?,
            Stage::Windows => of_target(toolchain::WINDOWS)?,
            Stage::Web => of_target(toolchain::WASM)?,
            _ => return Ok(()),
        };
        fs::remove_dir_all(&folder).with_context(|| format!("{} could not be removed", folder.display()))
    }

    /// As it is written after `--only`.
    fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }
}

/// Runs stages in their lanes. Where the first one fails, those that need it are left out. `discard`: what one stage alone has
/// built is removed when it has passed.
pub(super) fn run(stages: &[Stage], discard: bool) -> Result<Vec<Outcome>> {
    let folder = metadata()?.target_directory.into_std_path_buf().join("stages");
    fs::create_dir_all(&folder)?;
    // A stage builds this program, too, and puts it into the place of the one that runs.
    let program = folder.join(format!("xtask{}", std::env::consts::EXE_SUFFIX));
    fs::copy(std::env::current_exe()?, &program).context("this program could not be copied")?;

    let (outcomes, is_set_up) = (Mutex::new(Ok(Vec::new())), OnceLock::new());
    if !stages.contains(&Stage::Setup) {
        is_set_up.get_or_init(|| true);
    }
    let work = |lane: Lane| {
        for stage in stages.iter().copied().filter(|stage| stage.lane() == lane) {
            if !stage.needs_no_setup() && !is_set_up.wait() {
                continue;
            }
            let log = folder.join(format!("{}.log", stage.name()));
            let outcome = run_apart(stage, &program, &log).and_then(|outcome| {
                if discard && outcome.passed {
                    stage.discard()?;
                }
                Ok(outcome)
            });
            if stage == Stage::Setup {
                is_set_up.get_or_init(|| outcome.as_ref().is_ok_and(|outcome| outcome.passed));
            }
            // Locked while it prints, so that no two stages mix.
            let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            let shown = outcome.and_then(|outcome| {
                io::copy(&mut File::open(&log)?, &mut io::stdout())?;
                Ok(outcome)
            });
            match (&mut *outcomes, shown) {
                (Ok(all), Ok(outcome)) => all.push(outcome),
                (Ok(_), Err(error)) => *outcomes = Err(error.context(format!("{stage:?} could not be run"))),
                (Err(_), _) => {}
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| work(Lane::Profiles));
        scope.spawn(|| work(Lane::Targets));
        work(Lane::Native);
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one stage in a process of its own, into a log.
fn run_apart(stage: Stage, program: &Path, log: &Path) -> Result<Outcome> {
    let nice = locate::cargo_program("nice", &mut Search::new());
    let mut command = match nice {
        Some(nice) if stage.lane() != Lane::Native => {
            let mut command = Command::new(nice);
            command.args(["-n", "10"]).arg(program);
            command
        }
        _ => Command::new(program),
    };
    let output = File::create(log).with_context(|| format!("{} could not be made", log.display()))?;
    let started = Instant::now();
    let status = command
        .args(["test", "--only", &stage.name()])
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()?;
    Ok(Outcome {
        stage,
        passed: status.success(),
        time: started.elapsed(),
    })
}
