//! What a command prints that writes files as well: when nobody reads the prints any more, the files are still written. Must not know what
//! either is about.

use std::io::{self, Write};

use super::Failure;
use super::stdout::stdout;

/// Prints of a command on standard output.
pub(crate) struct Listing {
    /// Whether files follow.
    has_files: bool,
    /// Why nothing is printed any more.
    failed: Option<io::Error>,
}

impl Listing {
    /// `has_files`: whether the command has more to do than to print.
    pub(crate) fn new(has_files: bool) -> Listing {
        Listing {
            has_files,
            failed: None,
        }
    }

    /// Prints a text. Where it cannot be, that is an error now, or at the [end](Listing::end) if files follow.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), Failure> {
        if self.failed.is_some() {
            return Ok(());
        }
        match stdout().and_then(|mut out| out.write_all(text.as_bytes())) {
            Err(error) if self.has_files => {
                self.failed = Some(error);
                Ok(())
            }
            done => Ok(done?),
        }
    }

    /// After the files.
    pub(crate) fn end(self) -> Result<(), Failure> {
        Ok(self.failed.map_or(Ok(()), Err)?)
    }
}
