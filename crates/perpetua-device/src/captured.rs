//! Work that a stream captures belongs to the thread that began the capture. Must not know what the work is.

use std::thread::ThreadId;

use crate::error::{Error, Result};

/// The error of a thread that submits to a stream, or ends its capture, while another thread captures.
pub fn capture_of_another() -> Error {
    Error::InvalidState {
        operation: "submission to a stream",
        cause: "another thread captures a graph of what it submits to this stream",
        remedy: "end the capture first, or use another stream",
    }
}

/// Work that a stream captures: one thread's, as [`GpuStream::begin_capture`](crate::backend::GpuStream::begin_capture) says. For backends whose streams keep it in a lock.
pub struct Captured<W> {
    thread: ThreadId,
    work: Vec<W>,
}

impl<W> Default for Captured<W> {
    /// Nothing yet, of the calling thread.
    fn default() -> Captured<W> {
        Captured {
            thread: std::thread::current().id(),
            work: Vec::new(),
        }
    }
}

impl<W> Captured<W> {
    fn of_this_thread(&self) -> Result<()> {
        match std::thread::current().id() == self.thread {
            true => Ok(()),
            false => Err(capture_of_another()),
        }
    }

    /// Adds what the calling thread submits.
    pub fn push(&mut self, work: W) -> Result<()> {
        self.of_this_thread()?;
        self.work.push(work);
        Ok(())
    }

    /// Ends the capture that a stream has. Gives its work.
    pub fn end(capture: &mut Option<Captured<W>>) -> Result<Vec<W>> {
        if let Some(captured) = capture {
            captured.of_this_thread()?;
        }
        capture
            .take()
            .map(|captured| captured.work)
            .ok_or(Error::InvalidState {
                operation: "end a capture",
                cause: "the stream is not capturing",
                remedy: "begin the capture first",
            })
    }
}
