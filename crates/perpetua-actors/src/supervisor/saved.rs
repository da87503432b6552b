//! The folder of checkpoints: their names, which are whole, which are removed. Must not know processes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{ActorError, Result};
use crate::runtime::{KernelHandle, PerpetuaRuntime};

/// Checkpoints that are kept.
const KEPT: usize = 2;

/// The checkpoints of a supervised program, each with a greater number than those before it.
#[derive(Debug)]
pub(super) struct Saved {
    folder: PathBuf,
    next: u64,
    /// Those that cannot be used.
    unusable: Vec<PathBuf>,
}

/// What a program begins with.
pub struct Restored {
    /// The actors.
    pub kernels: Vec<KernelHandle>,
    /// The checkpoint that they are from.
    pub path: PathBuf,
    /// Newer checkpoints that cannot be used, and why.
    pub skipped: Vec<ActorError>,
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> ActorError + use<'_> {
    move |source| ActorError::Io {
        path: path.display().to_string(),
        source,
    }
}

/// The number in a checkpoint's name.
fn number_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("actors-")?
        .strip_suffix(".checkpoint")?
        .parse()
        .ok()
}

impl Saved {
    /// Opens the folder; makes it where it is missing. What a killed process had begun to write is removed.
    pub(super) fn open(folder: &Path) -> Result<Saved> {
        fs::create_dir_all(folder).map_err(failed(folder))?;
        for entry in fs::read_dir(folder).map_err(failed(folder))? {
            let path = entry.map_err(failed(folder))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("actors-") && name.ends_with(".new") {
                fs::remove_file(&path).map_err(failed(&path))?;
            }
        }
        let mut saved = Saved {
            folder: folder.to_owned(),
            next: 0,
            unusable: Vec::new(),
        };
        saved.next = saved.all()?.first().map_or(0, |(number, _)| number + 1);
        Ok(saved)
    }

    /// All checkpoints, the newest first.
    fn all(&self) -> Result<Vec<(u64, PathBuf)>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed(&self.folder))? {
            let path = entry.map_err(failed(&self.folder))?.path();
            all.extend(number_of(&path).map(|number| (number, path)));
        }
        all.sort_unstable_by(|a, b| b.cmp(a));
        Ok(all)
    }

    /// Restores the newest checkpoint that is whole; none where there is none at all.
    pub(super) fn restore(&mut self, runtime: &PerpetuaRuntime) -> Result<Option<Restored>> {
        let mut skipped = Vec::new();
        for (_, path) in self.all()? {
            match runtime.restore_blocking(&path) {
                Ok(kernels) => {
                    return Ok(Some(Restored {
                        kernels,
                        path,
                        skipped,
                    }));
                }
                Err(error @ (ActorError::Checkpoint { .. } | ActorError::Io { .. })) => {
                    tracing::warn!(%error, "the checkpoint before it is tried");
                    skipped.push(error);
                    self.unusable.push(path);
                }
                Err(other) => return Err(other),
            }
        }
        // To begin anew would lose what they hold: somebody must look.
        match skipped.into_iter().next() {
            Some(newest) => Err(newest),
            None => Ok(None),
        }
    }

    /// Takes a checkpoint, and removes all but the last two that can be used.
    pub(super) fn take(&mut self, runtime: &PerpetuaRuntime) -> Result<PathBuf> {
        let path = self.folder.join(format!("actors-{:010}.checkpoint", self.next));
        self.next += 1;
        runtime.checkpoint_blocking(&path)?;
        let mut kept = 0;
        for (_, other) in self.all()? {
            kept += usize::from(!self.unusable.contains(&other));
            if kept > KEPT || self.unusable.contains(&other) {
                fs::remove_file(&other).map_err(failed(&other))?;
            }
        }
        Ok(path)
    }
}
