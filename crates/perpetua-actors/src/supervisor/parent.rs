//! The parent: starts children, hears their signs of life, restarts. Must not know what they do.

use std::io::{PipeReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::{EXIT_DEVICE_LOST, Ending, MARK, SupervisorOptions, WORDS};
use crate::error::{ActorError, Result};
use crate::supervise::Supervision;

/// How often the parent looks whether the child has ended.
const LOOK: Duration = Duration::from_millis(50);

pub(super) fn run(options: &SupervisorOptions) -> Result<Vec<Ending>> {
    let mut endings = Vec::new();
    let mut restarts: Vec<Instant> = Vec::new();
    for number in 0u32.. {
        let Some(ending) = Watched::start(number)?.watch(options)? else {
            return Ok(endings);
        };
        tracing::warn!(number, %ending, "a supervised program has ended");
        let now = Instant::now();
        restarts.retain(|then| now.duration_since(*then) < options.window);
        let before = restarts.len() as u32;
        if before >= options.restarts {
            return Err(ActorError::Restarts {
                restarts: options.restarts,
                window: options.window,
                last: ending.to_string(),
            });
        }
        restarts.push(now);
        endings.push(ending);
        let factor = 1u32.checked_shl(before).unwrap_or(u32::MAX);
        let backoff = options.backoff.saturating_mul(factor);
        std::thread::sleep(backoff.min(Supervision::LONGEST_BACKOFF));
    }
    Ok(endings)
}

/// A child that runs. One that is dropped is killed.
struct Watched {
    child: Child,
    heard: Receiver<Vec<u8>>,
    words: Option<Vec<u8>>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and need not.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn no_child(source: std::io::Error) -> ActorError {
    ActorError::Io {
        path: "a supervised process".into(),
        source,
    }
}

/// Hands on what comes through the pipe, until its other end is closed.
fn listen(mut pipe: PipeReader) -> std::io::Result<Receiver<Vec<u8>>> {
    let (sender, heard) = channel();
    std::thread::Builder::new()
        .name("perpetua-supervisor".into())
        .spawn(move || {
            let mut bytes = [0; 512];
            while let Ok(count @ 1..) = pipe.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        })?;
    Ok(heard)
}

impl Watched {
    fn start(number: u32) -> Result<Watched> {
        let start = || {
            let (reader, writer) = std::io::pipe()?;
            let heard = listen(reader)?;
            let child = Command::new(std::env::current_exe()?)
                .args(std::env::args_os().skip(1))
                .env(MARK, format!("{}:{number}", std::process::id()))
                .stdin(Stdio::from(writer))
                .spawn()?;
            Ok((child, heard))
        };
        let (child, heard) = start().map_err(no_child)?;
        tracing::info!(number, process = child.id(), "a supervised program starts");
        Ok(Watched {
            child,
            heard,
            words: None,
        })
    }

    /// Waits until the child has ended; none where it ended well.
    fn watch(mut self, options: &SupervisorOptions) -> Result<Option<Ending>> {
        let mut allowed = options.startup;
        let mut until = Instant::now() + allowed;
        loop {
            match self.heard.recv_timeout(LOOK) {
                Ok(bytes) => {
                    self.note(bytes);
                    allowed = options.heartbeat;
                    until = Instant::now() + allowed;
                }
                // Its pipe is closed, but it may go on.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(status) = self.child.try_wait().map_err(no_child)? {
                while let Ok(bytes) = self.heard.recv_timeout(LOOK) {
                    self.note(bytes);
                }
                let words = String::from_utf8_lossy(self.words.as_deref().unwrap_or_default());
                return Ok(ending(status, words.into_owned()));
            }
            if Instant::now() >= until {
                self.child.kill().map_err(no_child)?;
                self.child.wait().map_err(no_child)?;
                return Ok(Some(Ending::Silent(allowed)));
            }
        }
    }

    fn note(&mut self, bytes: Vec<u8>) {
        match &mut self.words {
            Some(words) => words.extend(bytes),
            None => {
                let begins = bytes.iter().position(|byte| *byte == WORDS);
                self.words = begins.map(|at| bytes[at + 1..].to_vec());
            }
        }
    }
}

fn ending(status: ExitStatus, words: String) -> Option<Ending> {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return Some(Ending::Signal(signal));
    }
    match status.code() {
        Some(0) => None,
        Some(EXIT_DEVICE_LOST) => Some(Ending::DeviceLost(words)),
        other => Some(Ending::Failed(other.unwrap_or(-1), words)),
    }
}
