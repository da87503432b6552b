//! What is written to: a file, or a pipe, whose reader may be late or slow. Must not know who writes.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::signals;

/// Time between two looks at a pipe that is not ready.
const PAUSE: Duration = Duration::from_millis(10);

/// An open file. A pipe does not block: a signal that the program has caught would not end its wait.
pub(crate) struct Pipe(File);

impl From<File> for Pipe {
    fn from(file: File) -> Pipe {
        Pipe(file)
    }
}

/// Waits for a pipe, unless a signal asks to end.
fn pause() -> io::Result<()> {
    if signals::asked().is_some() {
        // Not `Interrupted`, at which writers try again.
        return Err(io::Error::other("a signal ended the wait"));
    }
    sleep(PAUSE);
    Ok(())
}

/// The file that this process has open under a number: both write on at one place, with what the shell asked for (`>>`).
#[cfg(unix)]
pub(super) fn again(number: i32) -> io::Result<File> {
    use std::os::fd::FromRawFd;
    // SAFETY: of a number that is no open file's it is an error.
    let copy = unsafe { libc::dup(number) };
    match copy {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: it has just been made, and nobody else knows it.
        copy => Ok(unsafe { File::from_raw_fd(copy) }),
    }
}

#[cfg(unix)]
pub(super) fn is_one(found: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    found.file_type().is_fifo()
}

#[cfg(not(unix))]
pub(super) fn is_one(_: &Metadata) -> bool {
    false
}

impl Pipe {
    /// Waits until somebody reads.
    #[cfg(unix)]
    pub(super) fn open(path: &Path) -> io::Result<Pipe> {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = File::options();
        options.write(true).custom_flags(libc::O_NONBLOCK);
        loop {
            match options.open(path) {
                Ok(file) => return Ok(Pipe(file)),
                Err(error) if error.raw_os_error() == Some(libc::ENXIO) => pause()?,
                Err(error) => return Err(error),
            }
        }
    }

    #[cfg(not(unix))]
    pub(super) fn open(path: &Path) -> io::Result<Pipe> {
        File::options().write(true).open(path).map(Pipe)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => pause()?,
                done => return done,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
