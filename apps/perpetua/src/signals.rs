//! Signals that ask a run to end: it goes on to the end of its batch, keeps its state, and ends with the signal's code. Must not know
//! what a run does.

use std::fmt;
#[cfg(unix)]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGINT, SIGTERM};

use super::Failure;

/// The signal that came, 0 for none. Nothing else is published through it.
static ASKED: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// Whether a signal was ignored when the program began, as `nohup` and a script's background jobs have it.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    // SAFETY: zeros are a `sigaction`; with no new one the call only writes the old one there.
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut old) };
    asked == 0 && old.sa_sigaction == libc::SIG_IGN
}

/// To write more than `ulimit -f` lets a file have is an error of its writer, as on a full disk, and does not end the program. Programs
/// that it starts have the signal as it was: unlike what is ignored, what is caught is not handed down.
#[cfg(unix)]
pub(crate) fn let_large_files_fail() {
    if !is_ignored(libc::SIGXFSZ) {
        // Where it cannot be caught it ends the program, as ever.
        let _ = signal_hook::flag::register(libc::SIGXFSZ, Arc::default());
    }
}

/// From here on Ctrl-C, `kill`, a terminal that is closed and a limit of the processor's time are seen to between two batches; more of
/// them change nothing. So is Ctrl-\\,
/// but a second one ends the program where it stands. What is ignored stays ignored, but for SIGTERM.
pub(crate) fn catch() -> Result<(), Failure> {
    #[cfg(unix)]
    let signals = {
        use signal_hook::consts::{SIGHUP, SIGQUIT, SIGXCPU};
        let mut signals = vec![SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU];
        signals.retain(|signal| *signal == SIGTERM || !is_ignored(*signal));
        if signals.contains(&SIGQUIT) {
            let is_second = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register_conditional_default(SIGQUIT, Arc::clone(&is_second))?;
            signal_hook::flag::register(SIGQUIT, is_second)?;
        }
        signals
    };
    #[cfg(not(unix))]
    let signals = [SIGINT, SIGTERM];
    for signal in signals {
        signal_hook::flag::register_usize(signal, Arc::clone(&ASKED), signal.unsigned_abs() as usize)?;
    }
    Ok(())
}

/// The signal that asks the run to end.
pub(crate) fn asked() -> Option<u8> {
    u8::try_from(ASKED.load(Ordering::Relaxed))
        .ok()
        .filter(|s| *s > 0)
}

/// What a signal asked for is being done: only a further one ends a wait.
pub(crate) fn answer() {
    ASKED.store(0, Ordering::Relaxed);
}

/// A run that a signal has ended.
#[derive(Debug)]
pub(crate) struct Interrupted {
    pub(crate) signal: u8,
    pub(crate) message: String,
}

impl Interrupted {
    /// What shells give for a program that the signal ends.
    pub(crate) fn code(&self) -> u8 {
        128 + self.signal
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Interrupted {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn programs_that_are_started_have_their_signals() {
        use std::os::unix::process::ExitStatusExt;
        let_large_files_fail();
        let status = std::process::Command::new("sh")
            .args(["-c", "ulimit -c 0; kill -XFSZ $$"])
            .status()
            .unwrap();
        assert_eq!(status.signal(), Some(libc::SIGXFSZ));
    }
}
