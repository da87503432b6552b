//! The side of who looks. Must not know what is done with what is seen.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use super::stream::Stream;
use super::wire::{self, Answer, Broken, Request};
use super::{ObserveError, place};
use crate::telemetry::{ProcessInfo, ProcessReport};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process that has a socket.
#[derive(Debug)]
pub struct Found {
    /// Its number.
    pub pid: u32,
    /// What it says of itself, or why it does not.
    pub info: Result<ProcessInfo, ObserveError>,
}

/// The processes of this user's that can be looked at, by number. Sockets that ended processes have left are cleared away.
pub fn processes() -> Vec<Found> {
    processes_in(&place::folder(), Stream::connect)
}

pub(super) fn processes_in(folder: &Path, connect: impl Fn(&Path) -> std::io::Result<Stream>) -> Vec<Found> {
    let mut found = Vec::new();
    for pid in place::pids(folder) {
        match attach_in(folder, pid, &connect) {
            Err(ObserveError::NoSuchProcess { .. }) => {}
            Err(error) => found.push(Found {
                pid,
                info: Err(error),
            }),
            Ok(watcher) => found.push(Found {
                pid,
                info: Ok(watcher.info),
            }),
        }
    }
    found
}

/// Looks at a process.
#[derive(Debug)]
pub struct Watcher {
    stream: Stream,
    info: ProcessInfo,
}

impl Watcher {
    /// Begins to look at the process with this number.
    ///
    /// # Errors
    /// [`ObserveError::NoSuchProcess`], [`ObserveError::Version`], [`ObserveError::Lost`], [`ObserveError::Malformed`].
    pub fn attach(pid: u32) -> Result<Watcher, ObserveError> {
        attach_in(&place::folder(), pid, Stream::connect)
    }

    /// What the process said of itself at first.
    pub fn info(&self) -> &ProcessInfo {
        &self.info
    }

    /// What its actors do now. Waits for five seconds at most.
    ///
    /// # Errors
    /// [`ObserveError::Lost`] where the process has ended; [`ObserveError::Malformed`].
    pub fn report(&mut self) -> Result<ProcessReport, ObserveError> {
        let pid = self.info.pid;
        match ask(&mut self.stream, pid, Request::Report)? {
            Answer::Report(report) => Ok(report),
            Answer::Info(_) => Err(another(pid)),
        }
    }
}

pub(super) fn attach_in(
    folder: &Path,
    pid: u32,
    connect: impl Fn(&Path) -> std::io::Result<Stream>,
) -> Result<Watcher, ObserveError> {
    let path = place::socket(folder, pid);
    let mut stream = connect(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => nobody(folder, pid),
        ErrorKind::ConnectionRefused => {
            // Left by a process that was killed. Another user's cannot be removed, and need not be.
            let _ = std::fs::remove_file(&path);
            nobody(folder, pid)
        }
        _ => lost(pid, &error),
    })?;
    stream.set_timeout(PATIENCE).map_err(|error| lost(pid, &error))?;
    match ask(&mut stream, pid, Request::Info)? {
        Answer::Info(info) => Ok(Watcher { stream, info }),
        Answer::Report(_) => Err(another(pid)),
    }
}

fn ask(stream: &mut Stream, pid: u32, request: Request) -> Result<Answer, ObserveError> {
    wire::send(stream, &request).map_err(|error| lost(pid, &error))?;
    wire::receive(stream, wire::LONGEST_ANSWER).map_err(|broken| match broken {
        Broken::Io(error) => lost(pid, &error),
        Broken::Version(theirs) => ObserveError::Version { pid, theirs },
        Broken::Malformed(cause) => ObserveError::Malformed { pid, cause },
    })
}

fn nobody(folder: &Path, pid: u32) -> ObserveError {
    ObserveError::NoSuchProcess {
        pid,
        folder: folder.into(),
    }
}

fn another(pid: u32) -> ObserveError {
    ObserveError::Malformed {
        pid,
        cause: "the answer to another question".into(),
    }
}

fn lost(pid: u32, error: &std::io::Error) -> ObserveError {
    let cause = match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
            "it has closed its socket, or ended".into()
        }
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!(
                "it has not answered for {} s (is it stopped?)",
                PATIENCE.as_secs()
            )
        }
        _ => error.to_string(),
    };
    ObserveError::Lost { pid, cause }
}
