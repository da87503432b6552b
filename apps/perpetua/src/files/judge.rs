//! Whether outputs can go where they are to go, before the work. Must not know what writes them.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

#[cfg(unix)]
use super::sweep;
use super::{Place, can_be_beside, folder, resolve};
use crate::Failure;
use crate::say;

/// Whether a name has this ending, in whichever case.
pub(crate) fn ends_in(path: &Path, kind: &str) -> bool {
    path.extension().is_some_and(|own| own.eq_ignore_ascii_case(kind))
}

/// Refuses a name whose ending is another's than that of the `kinds` that are written: it would be a file of the user's.
fn check_kind(option: &str, path: &Path, kinds: &[&str]) -> Result<(), Failure> {
    let [first, ..] = kinds else { return Ok(()) };
    let words: Vec<String> = kinds.iter().map(|kind| kind.to_uppercase()).collect();
    if path.extension().is_none() || kinds.iter().any(|kind| ends_in(path, kind)) {
        return Ok(());
    }
    Err(format!(
        "{option} {}: what is written is {}: name it {}",
        say::file(path),
        words.join(" or "),
        say::file(path.with_extension(first))
    )
    .into())
}

/// An option, the file that it names, and the endings of what is written there; none where any will do.
pub(crate) type Output<'a> = (&'a str, Option<&'a PathBuf>, &'a [&'a str]);

/// A place that cannot be written is better known before the work than after it; and no two files may go to one place, nor one to
/// where the `input` lies, which has a name for messages, or to a name of another kind of file.
pub(crate) fn check_places(outputs: &[Output<'_>], input: Option<(&str, &Path)>) -> Result<(), Failure> {
    let input = input.and_then(|(name, path)| Some((name, fs::canonicalize(path).ok()?)));
    let mut taken: Vec<(&str, PathBuf)> = input.into_iter().collect();
    let inputs = taken.len();
    let mut files = Vec::new();
    for (option, path, kinds) in outputs {
        let Some(path) = path else { continue };
        let failed = |why: String| Failure::from(format!("{option} {}: {why}", say::file(path)));
        if path.as_os_str() == "-" {
            return Err(failed("name /dev/stdout, or ./- for a file of this name".into()));
        }
        let target = match resolve(path).map_err(|e| failed(e.to_string()))? {
            Place::Folder => return Err(failed("this is a folder; name a file".into())),
            Place::Pipe => continue,
            #[cfg(unix)]
            Place::Open(_) => continue,
            Place::Device => {
                let opened = OpenOptions::new().write(true).open(path);
                opened.map_err(|e| failed(format!("it cannot be written: {e}")))?;
                continue;
            }
            Place::File(target) => target,
        };
        let folder = folder(&target);
        let absolute = match fs::canonicalize(folder) {
            Ok(folder) => folder.join(target.file_name().unwrap_or_default()),
            Err(_) => return Err(failed(format!("there is no folder {}", say::file(folder)))),
        };
        if let Some((other, _)) = taken.iter().find(|(_, path)| *path == absolute) {
            return Err(failed(format!("this is where {other} lies; name another file")));
        }
        taken.push((option, absolute));
        files.push((option, path, kinds));
        if target.exists() {
            OpenOptions::new()
                .write(true)
                .open(&target)
                .map_err(|e| failed(format!("it may not be replaced: {e}")))?;
        }
        can_be_beside(&target)
            .map_err(|e| failed(format!("nothing can be written in {}: {e}", say::file(folder))))?;
    }
    for (option, path, kinds) in files {
        check_kind(option, path, kinds)?;
    }
    // Nothing is removed for a run that is refused.
    #[cfg(unix)]
    taken[inputs..].iter().for_each(|(_, target)| sweep(target));
    Ok(())
}
