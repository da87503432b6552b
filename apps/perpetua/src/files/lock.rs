//! A mark beside a file that two runs must not both keep. Must not know what is in the file.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
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
            // A link of that name leads to a file that is no mark.
            options.custom_flags(libc::O_NOFOLLOW);
            let of_mark =
                |e: std::io::Error| format!("locking {}: {}: {e}", say::file(path), say::file(&mark));
            let mut file = options.open(&mark).map_err(of_mark)?;
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
            let mut before = Vec::new();
            let start = Read::by_ref(&mut file);
            start.take(32).read_to_end(&mut before).map_err(failed)?;
            if !before.iter().all(u8::is_ascii_digit) || before.len() > 20 {
                let (mark, path) = (say::file(&mark), say::file(path));
                return Err(format!(
                    "{mark} is to mark that {path} is in use, and has something else in it: move it away"
                )
                .into());
            }
            file.seek(SeekFrom::Start(0))
                .and_then(|_| file.set_len(0))
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
    fn what_is_no_mark_keeps_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.bin");
        let mark = Lock::take(&path).unwrap().unwrap().path.clone();
        let thesis = folder.path().join("thesis.txt");
        std::fs::write(&thesis, "all of it").unwrap();
        std::os::unix::fs::symlink(&thesis, &mark).unwrap();
        let said = Lock::take(&path).unwrap_err().to_string();
        assert!(said.starts_with("locking "), "{said}");
        std::fs::remove_file(&mark).unwrap();
        std::fs::hard_link(&thesis, &mark).unwrap();
        let said = Lock::take(&path).unwrap_err().to_string();
        assert!(said.contains("has something else in it"), "{said}");
        assert_eq!(std::fs::read_to_string(&thesis).unwrap(), "all of it");
    }

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
