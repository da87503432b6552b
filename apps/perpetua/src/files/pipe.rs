//! What is written to: a file, or a pipe, whose reader may be late or slow. Must not know who writes.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ChildStdin;
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

/// Whether to wait on: a signal that asks to end is an error.
fn goes_on() -> io::Result<()> {
    match signals::asked() {
        // Not `Interrupted`, at which writers try again.
        Some(_) => Err(io::Error::other("a signal ended the wait")),
        None => Ok(()),
    }
}

/// Waits a moment for somebody else, unless a signal asks to end.
pub(crate) fn pause() -> io::Result<()> {
    goes_on()?;
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

impl Pipe {
    /// The one that a program reads.
    #[cfg(unix)]
    pub(crate) fn to(program: ChildStdin) -> io::Result<Pipe> {
        use std::os::fd::{AsRawFd, OwnedFd};
        let file = File::from(OwnedFd::from(program));
        // SAFETY: of an open file's number, both calls only ask for and set how it is open; who reads has a description of its own.
        let done = unsafe {
            let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
            libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)
        };
        match done {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(Pipe(file)),
        }
    }

    /// The one that a program reads. Here a wait for it cannot be ended.
    #[cfg(windows)]
    pub(crate) fn to(program: ChildStdin) -> io::Result<Pipe> {
        Ok(Pipe(File::from(std::os::windows::io::OwnedHandle::from(program))))
    }

    /// Waits a moment, or until there is room, unless a signal asks to end.
    #[cfg(unix)]
    fn wait(&self) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        goes_on()?;
        let mut asked = libc::pollfd {
            fd: self.0.as_raw_fd(),
            events: libc::POLLOUT,
            revents: 0,
        };
        // SAFETY: it writes to one such record, which there is. What it says does not matter: the next write says it.
        unsafe { libc::poll(&raw mut asked, 1, PAUSE.as_millis() as i32) };
        Ok(())
    }

    #[cfg(not(unix))]
    fn wait(&self) -> io::Result<()> {
        pause()
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait()?,
                done => return done,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
