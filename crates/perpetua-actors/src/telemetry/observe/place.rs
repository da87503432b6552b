//! Where sockets lie: `$XDG_RUNTIME_DIR/perpetua`, else a folder of the user's in the temporary folder; one file a process,
//! `<pid>.sock`. Nobody else can enter the folder. Must not know what is said over a socket.

use std::fs;
use std::path::{Path, PathBuf};

use super::ObserveError;

/// The folder of this user's sockets, whether it is there or not.
pub(super) fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir).join("perpetua"),
        None => std::env::temp_dir().join(format!("perpetua{}", of_user())),
    }
}

/// The socket of a process.
pub(super) fn socket(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{pid}.sock"))
}

/// The processes that have, or had, a socket there, in order.
pub(super) fn pids(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let pid = |name: &str| name.strip_suffix(".sock")?.parse().ok();
    let mut pids: Vec<u32> = entries
        .filter_map(|entry| pid(entry.file_name().to_str()?))
        .collect();
    pids.sort_unstable();
    pids
}

/// Makes the folder, or sees that nobody else can enter it.
pub(super) fn prepare(folder: &Path) -> Result<(), ObserveError> {
    let wrong = |cause: String| ObserveError::Folder {
        folder: folder.into(),
        cause,
    };
    if let Err(error) = make(folder)
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        return Err(wrong(error.to_string()));
    }
    // Not through links: in the temporary folder anybody can put one.
    let about = fs::symlink_metadata(folder).map_err(|error| wrong(error.to_string()))?;
    match is_private(&about) {
        true => Ok(()),
        false => Err(wrong("somebody else can enter it".into())),
    }
}

#[cfg(unix)]
fn make(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make(folder: &Path) -> std::io::Result<()> {
    fs::create_dir(folder)
}

#[cfg(unix)]
fn is_private(about: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    about.is_dir() && about.uid() == user() && about.mode() & 0o077 == 0
}

// There the temporary folder is the user's own.
#[cfg(not(unix))]
fn is_private(about: &fs::Metadata) -> bool {
    about.is_dir()
}

#[cfg(unix)]
fn user() -> u32 {
    // SAFETY: `geteuid` takes nothing, changes nothing and never fails.
    unsafe { libc::geteuid() }
}

#[cfg(unix)]
fn of_user() -> String {
    format!("-{}", user())
}

#[cfg(not(unix))]
fn of_user() -> String {
    String::new()
}
