//! Times of the command line, and what the user hears of work that does not end. Must not know what the work is.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use super::say::say;

/// After so long a user wonders whether a launch ends.
const SILENCE: Duration = Duration::from_secs(5);

/// A time above zero.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time.is_zero() => Err("it must be above 0".into()),
        Ok(time) => Ok(time),
        Err(error) => Err(format!("{error}, as in 60s, 5m or 1h")),
    }
}

/// How long a launch may take.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// End with an error where a launch takes longer, as 10s or 5m [default: wait, and say so after five seconds]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = time)]
    time_limit: Option<Duration>,
}

/// Work that goes on; dropped when it has ended.
pub(crate) struct Waiting {
    /// Nothing is sent: that it is gone ends the wait.
    _ended: Sender<()>,
}

impl Patience {
    /// Work on `what` begins. A lane that loops for ever cannot be stopped from outside, so a limit ends the program.
    pub(crate) fn begin(self, what: &str) -> Waiting {
        self.begin_within(what, None)
    }

    /// The same, with a limit where the user names none.
    pub(crate) fn begin_within(self, what: &str, usual: Option<Duration>) -> Waiting {
        let what = what.to_owned();
        let (ended, watched) = channel::<()>();
        let limit = self.time_limit.or(usual);
        thread::spawn(move || {
            let is_over = |time| watched.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
            if limit.is_none_or(|limit| limit > SILENCE) {
                if !is_over(SILENCE) {
                    return;
                }
                let by_itself = match limit {
                    Some(limit) => format!(
                        "it is ended after {}, --time-limit",
                        humantime::format_duration(limit)
                    ),
                    None => "--time-limit 1m ends it by itself".into(),
                };
                say(format!(
                    "`{what}` goes on after {} s: a loop without an end, or much work; Ctrl-C ends it, and {by_itself}",
                    SILENCE.as_secs()
                ));
            }
            let Some(limit) = limit else { return };
            let rest = if limit > SILENCE { limit - SILENCE } else { limit };
            if is_over(rest) {
                say(format!(
                    "error: `{what}` did not end within {} (--time-limit): a loop without an end, or too much work",
                    humantime::format_duration(limit)
                ));
                end();
            }
        });
        Waiting { _ended: ended }
    }
}

/// Ends the program with 1, and nothing else: drivers' ends would wait for what does not end.
pub(crate) fn end() -> ! {
    #[cfg(unix)]
    // SAFETY: it only ends the process.
    unsafe {
        libc::_exit(1)
    }
    #[cfg(not(unix))]
    std::process::exit(1)
}
