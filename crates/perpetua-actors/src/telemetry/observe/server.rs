//! The side of the process that is looked at. Must not know who looks.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use super::stream::{Listener, Stream};
use super::wire::{self, Answer, Broken, Request};
use super::{ObserveError, place, program};
use crate::lock::lock;
use crate::telemetry::{ProcessInfo, ProcessReport, SourceReport, readings};

/// Connections at once: one thread each.
const CONNECTIONS: usize = 16;

/// The process can be looked at while this lives. Clones are the same.
#[derive(Debug)]
#[must_use = "the process can be looked at while this lives"]
pub struct Observer {
    path: PathBuf,
}

impl Observer {
    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Clone for Observer {
    fn clone(&self) -> Observer {
        if let Some(open) = &mut *lock(&OPEN) {
            open.observers += 1;
        }
        Observer {
            path: self.path.clone(),
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let mut place = lock(&OPEN);
        if let Some(open) = &mut *place {
            open.observers -= 1;
            if open.observers == 0 {
                // Under the lock: who opens the socket anew must find it gone.
                *place = None;
            }
        }
    }
}

/// The socket and those who answer there.
#[derive(Debug)]
pub(super) struct Server {
    path: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    name: String,
    since: Instant,
    stopped: AtomicBool,
    connections: Mutex<Vec<(u64, Stream)>>,
}

/// The one socket of this process, and how many observers there are.
struct Open {
    server: Server,
    observers: usize,
}

static OPEN: Mutex<Option<Open>> = Mutex::new(None);

/// Lets this process be looked at, under a name for people. Where it can be already, it keeps the name that it has.
///
/// # Errors
/// [`ObserveError::Folder`], [`ObserveError::Open`].
pub fn observe(name: &str) -> Result<Observer, ObserveError> {
    let mut current = lock(&OPEN);
    let open = match current.take() {
        Some(open) => open,
        None => Open {
            server: open_in(&place::folder(), name, Listener::bind)?,
            observers: 0,
        },
    };
    let open = current.insert(open);
    open.observers += 1;
    Ok(Observer {
        path: open.server.path.clone(),
    })
}

/// Opens the socket of this process in `folder`.
pub(super) fn open_in(
    folder: &Path,
    name: &str,
    bind: impl FnOnce(&Path) -> std::io::Result<Listener>,
) -> Result<Server, ObserveError> {
    place::prepare(folder)?;
    let path = place::socket(folder, std::process::id());
    let failed = |source| ObserveError::Open {
        path: path.clone(),
        source,
    };
    // What is there is of a process that had this number before, and has not cleared up.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let listener = bind(&path).map_err(failed)?;
    let shared = Arc::new(Shared {
        name: name.into(),
        since: Instant::now(),
        stopped: AtomicBool::new(false),
        connections: Mutex::default(),
    });
    let serving = Arc::clone(&shared);
    let thread = std::thread::Builder::new()
        .name("perpetua-observe".into())
        .spawn(move || serving.serve(&listener))
        .map_err(failed)?;
    tracing::debug!(path = %path.display(), "observable");
    Ok(Server {
        path,
        shared,
        thread: Some(thread),
    })
}

impl Shared {
    fn serve(self: &Arc<Self>, listener: &Listener) {
        for number in 0.. {
            let accepted = listener.accept();
            if self.stopped.load(Ordering::Acquire) {
                return;
            }
            match accepted {
                Ok(Some(stream)) => self.welcome(number, stream),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "a connection of somebody who wants to look");
                    // Out of files, say: no reason to be busy.
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
            }
        }
    }

    fn welcome(self: &Arc<Self>, number: u64, stream: Stream) {
        let mut connections = lock(&self.connections);
        let Ok(kept) = stream.again() else { return };
        if connections.len() == CONNECTIONS {
            return tracing::warn!(connections = CONNECTIONS, "too many look at once");
        }
        connections.push((number, kept));
        drop(connections);
        let shared = Arc::clone(self);
        let answering = std::thread::Builder::new()
            .name("perpetua-observe".into())
            .spawn(move || shared.answer(number, stream));
        if answering.is_err() {
            self.forget(number);
        }
    }

    fn forget(&self, number: u64) {
        lock(&self.connections).retain(|(other, _)| *other != number);
    }

    fn answer(&self, number: u64, mut stream: Stream) {
        loop {
            let sent = match wire::receive(&mut stream, wire::LONGEST_REQUEST) {
                Ok(request) => wire::send(&mut stream, &self.answer_to(request)),
                Err(Broken::Version(_)) => wire::send_version(&mut stream),
                Err(Broken::Io(error)) => Err(error),
                Err(Broken::Malformed(cause)) => Err(std::io::Error::other(cause)),
            };
            if let Err(error) = sent {
                tracing::debug!(%error, "somebody looks no more");
                return self.forget(number);
            }
        }
    }

    fn answer_to(&self, request: Request) -> Answer {
        let process = ProcessInfo {
            pid: std::process::id(),
            name: self.name.clone(),
            program: program().to_string_lossy().into_owned(),
            perpetua: env!("CARGO_PKG_VERSION").into(),
            uptime_ms: u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        match request {
            Request::Info => Answer::Info(process),
            Request::Report => {
                let sources = readings()
                    .into_iter()
                    .map(|(name, reading)| SourceReport::new(name, &reading));
                Answer::Report(ProcessReport {
                    process,
                    sources: sources.collect(),
                })
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        // Wakes the thread, while there is something to connect to.
        let woken = self.connect();
        // Gone already where somebody has cleared up.
        let _ = std::fs::remove_file(&self.path);
        lock(&self.shared.connections)
            .drain(..)
            .for_each(|(_, stream)| stream.end());
        // Where nobody could connect, the thread waits for ever, and holds nothing but itself.
        if woken
            && let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the thread that lets others look panicked");
        }
    }
}

impl Server {
    /// The socket.
    #[cfg(all(test, unix, not(perpetua_loom)))]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    #[cfg(any(not(unix), not(test), perpetua_loom))]
    fn connect(&self) -> bool {
        Stream::connect(&self.path).is_ok()
    }

    // Tests try both kinds of socket.
    #[cfg(all(unix, test, not(perpetua_loom)))]
    fn connect(&self) -> bool {
        Stream::connect(&self.path)
            .or_else(|_| Stream::connect_port(&self.path))
            .is_ok()
    }
}
