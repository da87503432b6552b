//! Files that appear whole or not at all: written beside their place under another name first, so another hard link to a file that was
//! there keeps that. Devices and pipes are written as they are; a signal that was caught ends the wait for a pipe's reader. Must not
//! know what is in them.

mod judge;
#[cfg(unix)]
mod lock;
mod pipe;
mod read;

#[cfg(unix)]
use std::fs::File;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::Failure;
use super::say::{self, say};
use super::signals::{self, Interrupted};

#[cfg(feature = "isa")]
pub(crate) use judge::ends_in;
pub(crate) use judge::{Output, check_places};
#[cfg(unix)]
pub(crate) use lock::Lock;
pub(crate) use pipe::{Pipe, pause};
pub(crate) use read::{MOST_TEXT, read, read_text};

/// What help says of outputs.
pub(crate) const HOW: &str = "Files are written whole or not at all. Symbolic links are followed; a file that has several hard links is \
    replaced under the name that is given, and kept under the others. Devices and pipes are written to.";

/// What lies at the end of a path.
#[derive(Debug, PartialEq)]
enum Place {
    /// A file, or nothing yet, with no link on the way.
    File(PathBuf),
    Pipe,
    /// A file that this process has open under this number, as `/dev/stdout` is where a shell sends it into a file.
    #[cfg(unix)]
    Open(i32),
    /// A device or a socket.
    Device,
    Folder,
}

/// Follows links, also one to a file that is yet to be made.
fn resolve(path: &Path) -> io::Result<Place> {
    let mut path = path.to_owned();
    loop {
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => return Ok(Place::Folder),
            Ok(found) if pipe::is_one(&found) => return Ok(Place::Pipe),
            Ok(found) if !found.is_file() => return Ok(Place::Device),
            Ok(_) => {
                #[cfg(unix)]
                if let Some(number) = descriptor(&path)? {
                    return Ok(Place::Open(number));
                }
                return Ok(Place::File(fs::canonicalize(&path)?));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => match fs::read_link(&path) {
                Ok(link) => path = folder(&path).join(link),
                Err(_) => return Ok(Place::File(path)),
            },
            Err(error) => return Err(error),
        }
    }
}

/// The number of the open file that a path to a file leads to, if it names no file but an open one.
#[cfg(unix)]
fn descriptor(path: &Path) -> io::Result<Option<i32>> {
    let mut path = std::path::absolute(path)?;
    loop {
        let text = path.to_string_lossy();
        let own = format!("/proc/{}/fd/", std::process::id());
        let folders = ["/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", &own];
        let rest = folders.iter().find_map(|folder| text.strip_prefix(folder));
        if let Some(number) = rest.and_then(|rest| rest.parse().ok()) {
            return Ok(Some(number));
        }
        match fs::read_link(&path) {
            Ok(link) => path = std::path::absolute(folder(&path).join(link))?,
            Err(_) => return Ok(None),
        }
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Before and after the six letters that make the name of an unfinished file its own, which nobody else gives; the extension stays, for
/// programs that look at it.
fn affixes(target: &Path) -> (String, String) {
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let extension = target
        .extension()
        .map_or(String::new(), |e| format!(".{}", part(Some(e))));
    (
        format!("{}.perpetua-", part(target.file_stem())),
        format!(".part{extension}"),
    )
}

/// An unfinished file beside `target`. Nobody else takes it away while this process holds it.
fn beside(target: &Path) -> io::Result<NamedTempFile> {
    let (prefix, suffix) = affixes(target);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(&suffix).rand_bytes(RANDOM);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    loop {
        let file = builder.tempfile_in(folder(target))?;
        // Where files cannot be locked, leftovers stay.
        #[cfg(unix)]
        if file.as_file().lock().is_ok() {
            use std::os::unix::fs::MetadataExt;
            // Another run may have swept it away before it was locked.
            if file.as_file().metadata()?.nlink() == 0 {
                continue;
            }
        }
        return Ok(file);
    }
}

/// Whether an unfinished file can be made beside `target`. None is seen: a signal may end the program here.
fn can_be_beside(target: &Path) -> io::Result<()> {
    let (prefix, suffix) = affixes(target);
    let name = format!("{prefix}{}{suffix}", "x".repeat(RANDOM));
    match fs::symlink_metadata(folder(target).join(name)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => tempfile::tempfile_in(folder(target)).map(drop),
    }
}

/// Letters in the name of an unfinished file.
const RANDOM: usize = 6;

/// Removes what runs that were killed have left of `target`. A running one holds a lock on its file.
#[cfg(unix)]
fn sweep(target: &Path) {
    use std::os::unix::fs::MetadataExt;
    let (prefix, suffix) = affixes(target);
    let Ok(entries) = fs::read_dir(folder(target)) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let middle = name
            .strip_prefix(&prefix)
            .and_then(|rest| rest.strip_suffix(&suffix));
        let is_ours =
            middle.is_some_and(|m| m.len() == RANDOM && m.chars().all(|c| c.is_ascii_alphanumeric()));
        // Held until it is gone.
        // Of this user's, and no link.
        let may_be = entry.metadata().is_ok_and(|found| {
            // SAFETY: it asks for a number.
            found.is_file() && found.uid() == unsafe { libc::geteuid() }
        });
        if is_ours
            && may_be
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            // Somebody else may have removed it meanwhile.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A file being written. Dropped before [`finish`](Partial::finish), it is removed.
#[derive(Debug)]
pub(crate) struct Partial {
    path: PathBuf,
    /// The unfinished file, and where it goes; none if the path is no file's.
    file: Option<(NamedTempFile, PathBuf)>,
    place: Place,
}

/// A place opened for writing.
pub(crate) type Writer = BufWriter<Pipe>;

impl Partial {
    /// For the file at `path`.
    pub(crate) fn new(path: &Path) -> Result<Partial, Failure> {
        let failed = |e: io::Error| format!("writing {}: {e}", say::file(path));
        let place = resolve(path).map_err(failed)?;
        let file = match &place {
            Place::File(target) => Some((beside(target).map_err(failed)?, target.clone())),
            _ => None,
        };
        Ok(Partial {
            path: path.to_owned(),
            file,
            place,
        })
    }

    /// Where to write.
    pub(crate) fn place(&self) -> &Path {
        self.file.as_ref().map_or(&self.path, |(file, _)| file.path())
    }

    /// Where it is to be in the end.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What to say when it could not be written.
    pub(crate) fn failed(&self, error: impl std::fmt::Display) -> Failure {
        match signals::asked().filter(|_| self.place == Place::Pipe) {
            Some(signal) => {
                let message = format!(
                    "interrupted while writing {}, which is a pipe",
                    say::file(&self.path)
                );
                Interrupted { signal, message }.into()
            }
            None => format!("writing {}: {error}", say::file(&self.path)).into(),
        }
    }

    /// Opens it for writing.
    pub(crate) fn create(&self) -> Result<Writer, Failure> {
        let file = match self.place {
            Place::Pipe => Pipe::open(self.place()),
            #[cfg(unix)]
            Place::Open(number) => pipe::again(number).map(Pipe::from),
            _ => OpenOptions::new().write(true).open(self.place()).map(Pipe::from),
        };
        Ok(BufWriter::with_capacity(
            1 << 20,
            file.map_err(|e| self.failed(e))?,
        ))
    }

    /// Gives it its name.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let path = self.path.clone();
        self.finish_silently()?;
        say(format!("wrote {}", say::file(path)));
        Ok(())
    }

    fn finish_silently(self) -> Result<(), Failure> {
        let Some((file, target)) = self.file else {
            return Ok(());
        };
        let failed = |e: io::Error| format!("writing {}: {e}", say::file(&self.path));
        if let Ok(old) = fs::metadata(&target) {
            file.as_file()
                .set_permissions(old.permissions())
                .map_err(failed)?;
        }
        file.as_file().sync_all().map_err(failed)?;
        file.persist(target).map_err(|e| failed(e.error))?;
        Ok(())
    }
}

/// Writes a file, whole or not at all.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_with(path, |file| file.write_all(bytes))
}

/// Writes what `fill` gives to a file, whole or not at all.
pub(crate) fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    filled(path, fill)?.finish()
}

/// The same with these bytes, and nobody is told.
pub(crate) fn write_silently(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    filled(path, |file| file.write_all(bytes))?.finish_silently()
}

fn filled(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<Partial, Failure> {
    let partial = Partial::new(path)?;
    let mut file = partial.create()?;
    fill(&mut file)
        .and_then(|()| file.flush())
        .map_err(|e| partial.failed(e))?;
    Ok(partial)
}

/// Whether a path leads to a file that has a name, or to none yet.
pub(crate) fn is_named_file(path: &Path) -> io::Result<bool> {
    Ok(matches!(resolve(path)?, Place::File(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(outputs: &[(&str, &Path)], input: Option<&Path>, expect: &str) {
        let outputs: Vec<_> = outputs
            .iter()
            .map(|(option, path)| (*option, path.to_path_buf()))
            .collect();
        let outputs: Vec<_> = outputs
            .iter()
            .map(|(option, path)| (*option, Some(path), &["png", "svg"][..]))
            .collect();
        let found = check_places(&outputs, input.map(|path| ("--scene", path))).map_err(|e| e.to_string());
        match found {
            Ok(()) => assert_eq!(expect, ""),
            Err(found) => assert!(found.contains(expect) && !expect.is_empty(), "{found}"),
        }
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        let partial = Partial::new(&path).unwrap();
        partial.create().unwrap().write_all(b"half").unwrap();
        let place = partial.place().to_owned();
        assert!(place.exists() && place.extension() == path.extension());
        // Another run's, while it is held.
        refused(&[("--out", &path)], None, "");
        assert!(place.exists());
        drop(partial);
        assert!(!place.exists() && !path.exists());
        write(&path, b"whole").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn places_are_judged_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("scene.toml"), "").unwrap();
        refused(&[("--out", &at("a.png"))], Some(&at("scene.toml")), "");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        refused(&[("--out", &at("no/a.png"))], None, "a.png: there is no folder ");
        refused(&[("--out", folder.path())], None, "this is a folder; name a file");
        refused(
            &[("--out", &at("x")), ("--plot", &folder.path().join("./x"))],
            None,
            "x: this is where --out lies; name another file",
        );
        refused(
            &[("--out", &at("scene.toml"))],
            Some(&at("scene.toml")),
            "this is where --scene lies",
        );
        for name in ["a.rs", "a.md", "a.0", "a.jpg"] {
            let expect = format!(
                "--out {}: what is written is PNG or SVG: name it ",
                at(name).display()
            );
            refused(&[("--out", &at(name))], None, &expect);
        }
        for name in ["a", "a.PNG", "a.b.svg", ".hidden"] {
            refused(&[("--out", &at(name))], None, "");
        }
        for length in [300, 250] {
            refused(&[("--out", &at(&"n".repeat(length)))], None, "File name too long");
        }
    }

    #[test]
    #[cfg(unix)]
    fn links_are_followed_and_keep_their_files_mode() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("far")).unwrap();
        for (link, file) in [("old", "far/old.png"), ("new", "far/new.png")] {
            symlink(file, at(link)).unwrap();
        }
        fs::write(at("far/old.png"), "old").unwrap();
        fs::set_permissions(at("far/old.png"), PermissionsExt::from_mode(0o640)).unwrap();
        for (link, file) in [("old", "far/old.png"), ("new", "far/new.png")] {
            write(&at(link), b"picture").unwrap();
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink());
            assert_eq!(fs::read(at(file)).unwrap(), b"picture");
        }
        assert_eq!(
            fs::metadata(at("far/old.png")).unwrap().permissions().mode() & 0o777,
            0o640
        );
        symlink("round", at("round")).unwrap();
        refused(&[("--out", &at("round"))], None, "symbolic link");
    }

    /// To write into it would leave both names with half a file if that failed.
    #[test]
    fn another_hard_link_keeps_what_it_had() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a.png"), "old").unwrap();
        fs::hard_link(at("a.png"), at("kept.png")).unwrap();
        write(&at("a.png"), b"new").unwrap();
        assert_eq!(fs::read(at("a.png")).unwrap(), b"new");
        assert_eq!(fs::read(at("kept.png")).unwrap(), b"old");
    }

    #[test]
    #[cfg(unix)]
    fn what_a_killed_run_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [
            "a.perpetua-Xy12zz.part.png",
            "a.second.part.png",
            "b.perpetua-Xy12zz.part.png",
            "a.png",
        ] {
            fs::write(at(name), "half").unwrap();
        }
        refused(
            &[("--out", &at("a.png")), ("--plot", &at("no/a.svg"))],
            None,
            "there is no folder",
        );
        assert!(at("a.perpetua-Xy12zz.part.png").exists());
        refused(&[("--out", &at("a.png"))], None, "");
        assert!(!at("a.perpetua-Xy12zz.part.png").exists());
        assert!(
            ["a.second.part.png", "b.perpetua-Xy12zz.part.png", "a.png"]
                .iter()
                .all(|name| at(name).exists())
        );
    }
}
