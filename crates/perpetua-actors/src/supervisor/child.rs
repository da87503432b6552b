//! The child: runs the program, and while that works takes checkpoints, looks after the device, and tells its parent that it lives.
//! Must not know how it is watched.

use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use super::saved::Restored;
use super::saved::Saved;
use super::{BEAT, EXIT_DEVICE_LOST, EXIT_ORPHANED, MARK, SupervisorOptions, WORDS};
use crate::error::{ActorError, Result};
use crate::lock::lock;
use crate::runtime::PerpetuaRuntime;

/// Which child this process is, if it is one: a child's own children have the mark, too, and another parent.
pub(super) fn marked() -> Option<u32> {
    let mark = std::env::var(MARK).ok()?;
    let (parent, number) = mark.split_once(':')?;
    #[cfg(unix)]
    if parent.parse() != Ok(std::os::unix::process::parent_id()) {
        return None;
    }
    #[cfg(not(unix))]
    let _ = parent;
    number.parse().ok()
}

/// The end of the pipe that leads to the parent.
fn pipe() -> io::Result<File> {
    #[cfg(unix)]
    use std::os::fd::AsFd as _;
    #[cfg(windows)]
    use std::os::windows::io::AsHandle as _;

    #[cfg(unix)]
    return Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?));
    #[cfg(windows)]
    return Ok(File::from(io::stdin().as_handle().try_clone_to_owned()?));
    #[cfg(not(any(unix, windows)))]
    Err(io::ErrorKind::Unsupported.into())
}

/// Tells the parent why this process ends.
fn tell(words: &str) {
    let told = pipe().and_then(|mut pipe| {
        pipe.write_all(&[WORDS])?;
        pipe.write_all(words.as_bytes())
    });
    if told.is_err() {
        // Nobody listens.
        tracing::error!(words, "this process ends, and has no parent");
    }
}

fn is_device_lost(error: &(dyn Error + 'static)) -> bool {
    let by_actors = error.downcast_ref().is_some_and(ActorError::is_device_lost);
    let by_device = error
        .downcast_ref()
        .is_some_and(perpetua_device::Error::is_device_lost);
    by_actors || by_device
}

/// Runs the program and ends the process.
pub(super) fn run<E>(
    options: &SupervisorOptions,
    number: u32,
    program: impl FnOnce(&Generation) -> std::result::Result<(), E>,
) -> !
where
    E: Into<Box<dyn Error>>,
{
    let done = Saved::open(&options.folder).map_err(Box::from).and_then(|saved| {
        let generation = Generation {
            number,
            options: options.clone(),
            saved: Arc::new(Mutex::new(saved)),
        };
        program(&generation).map_err(E::into)
    });
    let code = match done {
        Ok(()) => 0,
        Err(error) => {
            tell(&error.to_string());
            if is_device_lost(&*error) {
                EXIT_DEVICE_LOST
            } else {
                1
            }
        }
    };
    std::process::exit(code)
}

/// What a supervised program is told of itself.
#[derive(Clone, Debug)]
pub struct Generation {
    number: u32,
    options: SupervisorOptions,
    saved: Arc<Mutex<Saved>>,
}

impl Generation {
    /// How many ran before it.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Launches what the newest whole checkpoint holds, into a runtime that has launched nothing yet and knows the handlers; `None`
    /// where there is no checkpoint. A checkpoint that is torn or damaged is passed over for the one before it, which the
    /// log and the result say.
    ///
    /// # Errors
    /// There are checkpoints, and none of them can be used: the newest one's error. As [`PerpetuaRuntime::restore`].
    pub fn restore(&self, runtime: &PerpetuaRuntime) -> Result<Option<Restored>> {
        lock(&self.saved).restore(runtime)
    }

    /// From now on, until the keeper is dropped, checkpoints are taken, and the parent is told that this process lives. Where the device
    /// is lost, or the parent gone, the process ends.
    ///
    /// # Errors
    /// [`ActorError::Io`].
    pub fn keep(&self, runtime: &PerpetuaRuntime) -> Result<Keeper> {
        let io = |path: &str| {
            let path = path.to_owned();
            move |source| ActorError::Io { path, source }
        };
        let kept = Arc::new(Kept {
            runtime: runtime.clone(),
            saved: Arc::clone(&self.saved),
            stopped: Mutex::new(false),
            signal: Condvar::new(),
        });
        let pipe = pipe().map_err(io("the pipe to the supervisor"))?;
        let (own, options) = (Arc::clone(&kept), self.options.clone());
        let thread = std::thread::Builder::new()
            .name("perpetua-keeper".into())
            .spawn(move || own.keep(&options, pipe))
            .map_err(io("the thread that takes checkpoints"))?;
        Ok(Keeper {
            kept,
            thread: Some(thread),
        })
    }
}

/// Takes checkpoints while it lives.
pub struct Keeper {
    kept: Arc<Kept>,
    thread: Option<JoinHandle<()>>,
}

struct Kept {
    runtime: PerpetuaRuntime,
    saved: Arc<Mutex<Saved>>,
    stopped: Mutex<bool>,
    signal: Condvar,
}

impl Keeper {
    /// Takes a checkpoint now: its path.
    ///
    /// # Errors
    /// As [`PerpetuaRuntime::checkpoint`].
    pub fn checkpoint(&self) -> Result<PathBuf> {
        self.kept.checkpoint()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *lock(&self.kept.stopped) = true;
        self.kept.signal.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that takes checkpoints panicked");
        }
    }
}

impl Kept {
    fn checkpoint(&self) -> Result<PathBuf> {
        lock(&self.saved).take(&self.runtime)
    }

    fn keep(&self, options: &SupervisorOptions, mut pipe: File) {
        let mut due = Instant::now() + options.interval;
        let pause = (options.heartbeat / 4).max(Duration::from_millis(1));
        loop {
            // First the device: what cannot be used gives no sign of life.
            if let Err(error) = self.runtime.health()
                && error.is_device_lost()
            {
                tell(&error.to_string());
                std::process::exit(EXIT_DEVICE_LOST);
            }
            if pipe.write_all(&[BEAT]).is_err() {
                tracing::error!("the supervisor is gone: so ends this process");
                std::process::exit(EXIT_ORPHANED);
            }
            let now = Instant::now();
            if now >= due {
                due = now + options.interval;
                match self.checkpoint() {
                    Ok(path) => tracing::debug!(path = %path.display(), "a checkpoint"),
                    Err(error) if error.is_device_lost() => {
                        tell(&error.to_string());
                        std::process::exit(EXIT_DEVICE_LOST);
                    }
                    // The one before it is there still; the next may do better.
                    Err(error) => tracing::error!(%error, "no checkpoint"),
                }
            }
            let wait = pause.min(due.saturating_duration_since(Instant::now()));
            let waited = self
                .signal
                .wait_timeout_while(lock(&self.stopped), wait, |stopped| !*stopped);
            if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                return;
            }
        }
    }
}
