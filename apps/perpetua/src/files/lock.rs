//! A mark beside a file that two runs must not both keep. Must not know what is in the file.

use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Place, affixes, folder, resolve};
use crate::{Failure, say};

/// The letters of an unfinished file's name that a mark has: what a killed run leaves is swept away as other leftovers are.
const LETTERS: &str = "locked";

/// Held while a run keeps a file; it says which process that is.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    /// Its lock ends with it.
    _file: File,
}

impl Lock {
    /// For the file at `path`. None where files cannot be locked, or what lies there is no file.
    pub(crate) fn take(path: &Path) -> Result<Option<Lock>, Failure> {
        let failed = |e: std::io::Error| format!("writing {}: {e}", say::file(path));
        let Place::File(target) = resolve(path).map_err(failed)? else {
            return Ok(None);
        };
        let (prefix, suffix) = affixes(&target);
        let mark = folder(&target).join(format!("{prefix}{LETTERS}{suffix}"));
        loop {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            let mut file = options.open(&mark).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let mut holder = String::new();
                    // Who has only just taken it has not yet said who it is.
                    let _ = file.read_to_string(&mut holder);
                    let holder = match holder.trim() {
                        "" => "another process".to_owned(),
                        id => format!("process {id}"),
                    };
                    return Err(
                        format!("{} is in use by {holder}: name another file", say::file(path)).into(),
                    );
                }
                Err(TryLockError::Error(_)) => {
                    let _ = std::fs::remove_file(&mark);
                    return Ok(None);
                }
            }
            // Who held it until now has removed it, or another run has swept it away.
            if file.metadata().map_err(failed)?.nlink() == 0 {
                continue;
            }
            file.set_len(0)
                .and_then(|()| write!(file, "{}", std::process::id()))
                .map_err(failed)?;
            return Ok(Some(Lock {
                path: mark,
                _file: file,
            }));
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A mark that stays is swept away by the next run.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_keeps_a_file_and_leaves_no_mark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.bin");
        let lock = Lock::take(&path).unwrap().unwrap();
        let said = Lock::take(&path).unwrap_err().to_string();
        let expect = format!("c.bin is in use by process {}", std::process::id());
        assert!(said.contains(&expect), "{said}");
        super::super::check_places(&[("--checkpoint", Some(&path), &[])], None).unwrap();
        assert!(lock.path.exists());
        drop(lock);
        drop(Lock::take(&path).unwrap().unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
