//! Why a function cannot be lowered: where, what, and what to write instead.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Why a function cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerError {
    /// The source file; empty where unknown.
    pub file: Arc<str>,
    /// The line in it; 0 where unknown.
    pub line: u32,
    /// The bytes of the file; none where unknown.
    pub place: Range<usize>,
    /// What is wrong, with the values concerned.
    pub cause: String,
    /// What to do; empty where the cause says it all.
    pub remedy: String,
}

impl fmt::Display for LowerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.is_empty(), self.line) {
            (true, 0) => {}
            (true, line) => write!(f, "line {line}: ")?,
            (false, 0) => write!(f, "{}: ", self.file)?,
            (false, line) => write!(f, "{}:{line}: ", self.file)?,
        }
        f.write_str(&self.cause)?;
        if !self.remedy.is_empty() {
            write!(f, ": {}", self.remedy)?;
        }
        Ok(())
    }
}

impl std::error::Error for LowerError {}
