//! A process that watches over another: the program runs in a child, which takes checkpoints; where it crashes, loses its device or
//! falls silent, another child is started, and goes on from the last checkpoint. Must not know engines.
//!
//! `saved` is the folder of checkpoints, `child` what the program sees, `parent` who watches. Between the two there is a pipe, in the place of
//! the child's standard input: a byte for each sign of life, and the words of an error at the end.
//!
//! ```no_run
//! use perpetua::actors::supervisor::{self, SupervisorOptions};
//! use perpetua::actors::{ActorError, LaunchOptions, PerpetuaRuntime, echo};
//!
//! fn main() -> Result<(), ActorError> {
//!     // What stands before this runs in the parent, too.
//!     let endings = supervisor::run(&SupervisorOptions::new("checkpoints"), |generation| {
//!         let runtime = PerpetuaRuntime::builder().build_blocking()?;
//!         runtime.register(echo::echo::handler());
//!         if generation.restore(&runtime)?.is_none() {
//!             runtime.launch_blocking("echo", LaunchOptions::new(echo::echo::handler()))?;
//!         }
//!         let keeper = generation.keep(&runtime)?;
//!         // … the program's work …
//!         drop(keeper);
//!         runtime.shutdown_blocking().map(drop)
//!     })?;
//!     println!("{} restarts", endings.len());
//!     Ok(())
//! }
//! ```

mod child;
mod parent;
mod saved;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use self::child::{Generation, Keeper, Restored};
use crate::error::Result;

/// A child has this variable: its parent's number, a colon, which child it is.
const MARK: &str = "PERPETUA_SUPERVISED";
/// How a child ends whose device is lost.
pub const EXIT_DEVICE_LOST: i32 = 113;
/// How a child ends whose parent is gone.
pub const EXIT_ORPHANED: i32 = 114;
/// A sign of life, and the sign that an error's words follow.
const BEAT: u8 = 0;
const WORDS: u8 = 1;

/// How a program is watched.
///
/// ```
/// use perpetua::actors::supervisor::SupervisorOptions;
/// use std::time::Duration;
/// let options = SupervisorOptions::new("checkpoints")
///     .with_interval(Duration::from_secs(60))
///     .with_restarts(3, Duration::from_secs(600))
///     .with_heartbeat(Duration::from_secs(30));
/// println!("{options:?}");
/// ```
/// The [module](self) shows a program under it.
#[derive(Clone, Debug)]
pub struct SupervisorOptions {
    folder: PathBuf,
    interval: Duration,
    restarts: u32,
    window: Duration,
    backoff: Duration,
    heartbeat: Duration,
    startup: Duration,
}

impl SupervisorOptions {
    /// With checkpoints in this folder, which is made where it is missing: one every 10 seconds. A child that gives no sign of life for
    /// 10 seconds is killed, after 60 seconds where it has given none yet; more than 5 restarts within 60 seconds are too
    /// many, the first after 100 milliseconds.
    pub fn new(folder: impl Into<PathBuf>) -> SupervisorOptions {
        SupervisorOptions {
            folder: folder.into(),
            interval: Duration::from_secs(10),
            restarts: 5,
            window: Duration::from_secs(60),
            backoff: Duration::from_millis(100),
            heartbeat: Duration::from_secs(10),
            startup: Duration::from_secs(60),
        }
    }

    /// Time between two checkpoints.
    #[must_use]
    pub fn with_interval(mut self, interval: Duration) -> SupervisorOptions {
        self.interval = interval;
        self
    }

    /// So many restarts within `window`; one more, and the parent gives up.
    #[must_use]
    pub fn with_restarts(mut self, restarts: u32, window: Duration) -> SupervisorOptions {
        self.restarts = restarts;
        self.window = window;
        self
    }

    /// Time until the first restart; doubled with each further one within the window, up to
    /// [`Supervision::LONGEST_BACKOFF`](crate::Supervision::LONGEST_BACKOFF).
    #[must_use]
    pub fn with_backoff(mut self, backoff: Duration) -> SupervisorOptions {
        self.backoff = backoff;
        self
    }

    /// A child that gives no sign of life for so long is killed. Longer than a checkpoint takes: meanwhile there is none.
    #[must_use]
    pub fn with_heartbeat(mut self, silence: Duration) -> SupervisorOptions {
        self.heartbeat = silence;
        self
    }

    /// A child has so long until [`Generation::keep`].
    #[must_use]
    pub fn with_startup(mut self, startup: Duration) -> SupervisorOptions {
        self.startup = startup;
        self
    }
}

/// Why a child was restarted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It said that the device is lost: what the driver said.
    DeviceLost(String),
    /// It ended with this code (-1: none) and these words.
    Failed(i32, String),
    /// A signal ended it: its number.
    Signal(i32),
    /// It gave no sign of life for so long, and was killed.
    Silent(Duration),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::DeviceLost(words) => write!(f, "its device was lost ({words})"),
            Ending::Failed(code, words) if words.is_empty() => write!(f, "it ended with code {code}"),
            Ending::Failed(code, words) => write!(f, "it ended with code {code} ({words})"),
            Ending::Signal(number) => write!(f, "signal {number} ended it"),
            Ending::Silent(time) => write!(f, "it gave no sign of life for {time:?}, and was killed"),
        }
    }
}

/// Whether this process is the child of a supervisor.
pub fn is_child() -> bool {
    child::marked().is_some()
}

/// Runs a program under supervision, from `main`: in the parent this starts the running executable anew with the same arguments,
/// watches it, and returns when a child has ended well, with why those before it have ended; in the child it runs `program`, and
/// then ends the process. A child's standard input is closed.
///
/// # Errors
/// [`ActorError::Restarts`](crate::ActorError::Restarts) after too many restarts; [`ActorError::Io`](crate::ActorError::Io) where no
/// child can be started.
pub fn run<E>(
    options: &SupervisorOptions,
    program: impl FnOnce(&Generation) -> std::result::Result<(), E>,
) -> Result<Vec<Ending>>
where
    E: Into<Box<dyn std::error::Error>>,
{
    match child::marked() {
        Some(number) => child::run(options, number, program),
        None => parent::run(options),
    }
}
