//! What a vendor's tool answers, and the one rule for a tool that is not there.

use std::fmt;
use std::io::Write;

/// A tool that was not found: its name and every place that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The tool, as its vendor calls it.
    pub tool: &'static str,
    /// Places in the order in which they were tried.
    pub looked_for: Vec<String>,
    /// What installs it.
    pub remedy: &'static str,
    /// Whether a test may go on without it on a machine where tools are required.
    pub need: Need,
}

/// Whether the project's own set-up can provide a tool everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// `cargo xtask setup` installs it: where tools are required, its absence is a failure.
    Required,
    /// No package has it: its absence is reported by name, never a failure.
    Optional,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} not found (looked for {}); {}",
            self.tool,
            self.looked_for.join(", "),
            self.remedy
        )
    }
}

/// Why a test that leans on a vendor's tool cannot pass.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The tool read the text and refused it.
    #[error("{subject} was rejected:\n{log}")]
    Rejected {
        /// What was given to the tool.
        subject: String,
        /// Everything the tool printed.
        log: String,
    },
    /// The tool is needed here and is not installed.
    #[error("{subject} could not be checked: {missing}")]
    Missing {
        /// What was to be given to the tool.
        subject: String,
        /// What was looked for.
        missing: Missing,
    },
}

/// A vendor's verdict.
#[derive(Debug)]
#[must_use]
pub enum ToolResult<T> {
    /// The tool accepted the text; the value is what it made of it.
    Accepted(T),
    /// The tool refused the text, or could not be run to its end.
    Rejected {
        /// Everything the tool printed.
        log: String,
    },
    /// The tool is not on this machine.
    Missing(Missing),
}

impl<T> ToolResult<T> {
    /// The verdict as a test wants it: the tool's product, `None` where the tool is missing and may be (a line
    /// `ignored: needs …` goes to standard error), else an error.
    ///
    /// A missing tool is an error where `CI=true` or `PERPETUA_REQUIRE_TOOLS=1`, except those that
    /// [`Need::Optional`] names. `subject` says what was checked, for example the golden file's path.
    pub fn required(self, subject: &str) -> Result<Option<T>, ToolError> {
        let missing = match &self {
            ToolResult::Missing(missing) => Some(missing.clone()),
            _ => None,
        };
        let verdict = self.judged(subject, tools_are_required())?;
        if let Some(missing) = missing {
            // Not `eprintln!`, which the test harness keeps to itself when the test passes. That standard error is closed
            // is no reason to fail.
            let _ = writeln!(
                std::io::stderr(),
                "ignored: needs {} ({subject}): {missing}",
                missing.tool
            );
        }
        Ok(verdict)
    }

    fn judged(self, subject: &str, required: bool) -> Result<Option<T>, ToolError> {
        match self {
            ToolResult::Accepted(product) => Ok(Some(product)),
            ToolResult::Rejected { log } => Err(ToolError::Rejected {
                subject: subject.to_owned(),
                log,
            }),
            ToolResult::Missing(missing) if required && missing.need == Need::Required => {
                Err(ToolError::Missing {
                    subject: subject.to_owned(),
                    missing,
                })
            }
            ToolResult::Missing(_) => Ok(None),
        }
    }

    /// Changes what an accepted text yields.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> ToolResult<U> {
        match self {
            ToolResult::Accepted(product) => ToolResult::Accepted(change(product)),
            ToolResult::Rejected { log } => ToolResult::Rejected { log },
            ToolResult::Missing(missing) => ToolResult::Missing(missing),
        }
    }

    /// The log of a refusal; `None` when the text was accepted or the tool is missing.
    pub fn rejection(&self) -> Option<&str> {
        match self {
            ToolResult::Rejected { log } => Some(log),
            _ => None,
        }
    }
}

fn tools_are_required() -> bool {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|v| v == value);
    is("CI", "true") || is("PERPETUA_REQUIRE_TOOLS", "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absent(need: Need) -> ToolResult<()> {
        ToolResult::Missing(Missing {
            tool: "sometool",
            looked_for: vec!["/nowhere".to_owned()],
            remedy: "install it",
            need,
        })
    }

    #[test]
    fn a_missing_tool_fails_only_where_it_is_required() {
        assert!(absent(Need::Required).judged("x", false).unwrap().is_none());
        assert!(absent(Need::Optional).judged("x", true).unwrap().is_none());
        let error = absent(Need::Required)
            .judged("x.ptx", true)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "x.ptx could not be checked: sometool not found (looked for /nowhere); install it"
        );
    }

    #[test]
    fn a_refusal_always_fails() {
        let refused: ToolResult<()> = ToolResult::Rejected {
            log: "line 3: no".to_owned(),
        };
        assert_eq!(refused.rejection(), Some("line 3: no"));
        let error = refused.judged("x.ptx", false).unwrap_err().to_string();
        assert_eq!(error, "x.ptx was rejected:\nline 3: no");
    }
}
