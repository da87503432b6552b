//! A file's kernel, run whenever the file changes. Each run is a process of its own, which is ended where it goes on: a lane that loops
//! for ever cannot be stopped otherwise. Must not know what a run does.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use crate::Failure;
use crate::patience;
use crate::say::{self, say};

/// How a run ends whose output nobody reads any more.
pub(super) const UNHEARD: i32 = 3;

/// How often the file is looked at.
const PAUSE: Duration = Duration::from_millis(100);

/// After so many looks that find no file, it is gone: an editor that replaces it takes less.
const MOST_MISSING: u32 = 10;

/// Again and again, until a signal ends the program.
pub(super) fn run(file: &Path) -> Result<(), Failure> {
    loop {
        let before = seen(file);
        // While an editor replaces it, there may be no file.
        let has_changed = || seen(file).is_some_and(|now| Some(now) != before);
        let mut child = begin()?;
        match end_of(&mut child, has_changed)? {
            Some(status) if status.code() == Some(UNHEARD) => return Ok(()),
            Some(_) => {
                say(format!("waiting until {} changes", say::file(file)));
                let mut missing = 0;
                while !has_changed() {
                    missing = if seen(file).is_none() { missing + 1 } else { 0 };
                    if missing == MOST_MISSING {
                        say(format!(
                            "{} is gone: waiting until it is there again",
                            say::file(file)
                        ));
                    }
                    sleep(PAUSE);
                }
            }
            None => say(format!("{} has changed: what ran is ended", say::file(file))),
        }
    }
}

/// What tells a file's states apart.
fn seen(file: &Path) -> Option<(SystemTime, u64)> {
    let found = std::fs::metadata(file).ok()?;
    Some((found.modified().ok()?, found.len()))
}

/// Starts this program again, for one run.
fn begin() -> Result<Child, Failure> {
    let args = std::env::args_os().skip(1).map(|arg| match arg.to_str() {
        Some("--watch") => "--watched".into(),
        _ => arg,
    });
    let program = std::env::current_exe()?;
    let started = Command::new(&program).args(args).stdin(Stdio::piped()).spawn();
    started.map_err(|error| format!("{}: {error}", say::file(&program)).into())
}

/// How a run ended; none where the file changed before.
fn end_of(child: &mut Child, has_changed: impl Fn() -> bool) -> Result<Option<ExitStatus>, Failure> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if has_changed() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        sleep(PAUSE);
    }
}

/// Ends this process when the one that watches is gone: the input that it holds open ends then.
pub(super) fn end_with_parent() {
    std::thread::spawn(|| {
        let mut rest = Vec::new();
        // Whether it ends or fails, nobody holds it any more.
        let _ = std::io::stdin().lock().read_to_end(&mut rest);
        patience::end();
    });
}
