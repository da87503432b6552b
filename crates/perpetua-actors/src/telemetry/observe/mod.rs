//! A process that can be looked at from outside: a socket in a folder of the user's own, over which it tells what its actors do.
//! `perpetua top` is who asks; [`processes`] and [`Watcher`] are what it asks with.
//!
//! A process opens its socket when a runtime is built with `.observable("name")`, when it is started with `PERPETUA_TOP=1` (or
//! `PERPETUA_TOP=name`), or by [`observe`]. There is one socket a process, and it goes with the last [`Observer`]. Only the user who
//! started the process can reach it. Who looks is answered by a thread of its own, which reads counters; no actor waits for that.
//!
//! `place` is where sockets lie, `stream` what they are on which system, `wire` the protocol, `server` and `client` its two sides.
//! Must not know what a table looks like.

mod client;
mod place;
mod server;
mod stream;
mod wire;

#[cfg(all(test, unix, not(perpetua_loom)))]
mod tests;

use std::path::PathBuf;

pub use client::{Found, Watcher, processes};
pub use server::{Observer, observe};
pub use wire::VERSION;

/// Asks for a process to be observable: `PERPETUA_TOP=1`, or a name for it. `0` and nothing ask for nothing.
pub const VARIABLE: &str = "PERPETUA_TOP";

/// Why a process cannot be looked at, or cannot be made observable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// The folder for sockets cannot be had.
    #[error("{}: {cause}: set XDG_RUNTIME_DIR to a folder of your own that nobody else can enter", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The socket cannot be opened.
    #[error("{}: {source}: set XDG_RUNTIME_DIR to another folder, whose path is short", .path.display())]
    Open {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Prometheus cannot ask there.
    #[error(
        "`{address}` cannot be where Prometheus asks: {source}: take another port, 0 for one that is free, or end what listens there"
    )]
    Address {
        /// The address asked for.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// No process with this number can be looked at.
    #[error(
        "process {pid} cannot be looked at (no socket of it in {}): start it with {VARIABLE}=1, or build its runtime with `.observable(\"name\")`", .folder.display()
    )]
    NoSuchProcess {
        /// Its number.
        pid: u32,
        /// Where its socket would lie.
        folder: PathBuf,
    },
    /// The process speaks another version.
    #[error(
        "process {pid} speaks version {theirs} of the protocol, this program version {VERSION}: take the `perpetua` of the same release as the process"
    )]
    Version {
        /// Its number.
        pid: u32,
        /// Its version.
        theirs: u32,
    },
    /// The process has ended, or closed its socket.
    #[error("process {pid} is gone: {cause}")]
    Lost {
        /// Its number.
        pid: u32,
        /// What was seen of it.
        cause: String,
    },
    /// What came is no answer.
    #[error("process {pid} answered what nobody can read ({cause}): is its socket another program's?")]
    Malformed {
        /// Its number.
        pid: u32,
        /// What is wrong with it.
        cause: String,
    },
}

/// As [`observe`], where `PERPETUA_TOP` asks for it: for programs whose actors are in no runtime.
///
/// # Errors
/// As [`observe`].
pub fn observe_if_asked() -> Result<Option<Observer>, ObserveError> {
    asked_by_environment().map(|name| observe(&name)).transpose()
}

/// What `PERPETUA_TOP` asks for: the name of an observable process.
pub(crate) fn asked_by_environment() -> Option<String> {
    asked_by(std::env::var(VARIABLE).ok()?)
}

fn asked_by(value: String) -> Option<String> {
    match value.as_str() {
        "" | "0" => None,
        "1" => Some(program_name()),
        _ => Some(value),
    }
}

/// The program's file.
fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_default()
}

fn program_name() -> String {
    let name = program();
    name.file_stem()
        .map_or_else(|| "a process".into(), |name| name.to_string_lossy().into_owned())
}
