//! Runs a vendor's program over a text in a folder of its own. Knows no particular program.

use crate::{Missing, ToolResult};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A program's answer: everything it printed, and whether it ended well.
pub(crate) struct Answer {
    pub(crate) success: bool,
    pub(crate) log: String,
}

/// Runs `command` to its end. An `Err` is a refusal text: the program could not be started.
pub(crate) fn run(command: &mut Command) -> Result<Answer, String> {
    let output = command.output().map_err(|error| {
        format!(
            "{} could not be started: {error}",
            command.get_program().display()
        )
    })?;
    let mut log = String::from_utf8_lossy(&output.stdout).into_owned();
    log.push_str(&String::from_utf8_lossy(&output.stderr));
    if !output.status.success() && log.trim().is_empty() {
        log = format!(
            "{} ended with {} and printed nothing",
            command.get_program().display(),
            output.status
        );
    }
    Ok(Answer {
        success: output.status.success(),
        log,
    })
}

/// A folder that lives as long as the value, with `text` written to `name` in it. An `Err` is a refusal text.
pub(crate) fn folder_with(name: &str, text: &[u8]) -> Result<(TempDir, PathBuf), String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let file = folder.path().join(name);
    write(&file, text)?;
    Ok((folder, file))
}

/// Writes a file. An `Err` is a refusal text.
pub(crate) fn write(file: &Path, text: &[u8]) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("{} could not be written: {error}", file.display()))
}

/// Reads what a program wrote. An `Err` is a refusal text.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{} could not be read: {error}", file.display()))
}

/// A verdict from steps that each may refuse.
pub(crate) fn verdict<T>(
    program: Result<PathBuf, Missing>,
    steps: impl FnOnce(&Path) -> Result<T, String>,
) -> ToolResult<T> {
    match program {
        Err(missing) => ToolResult::Missing(missing),
        Ok(program) => match steps(&program) {
            Ok(product) => ToolResult::Accepted(product),
            Err(log) => ToolResult::Rejected { log },
        },
    }
}
