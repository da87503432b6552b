//! The repository's files, by path from its root with `/` between parts. Build outputs and hidden folders are left out.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use walkdir::WalkDir;

/// Folders that hold what programs made.
const GENERATED: [&str; 3] = ["target", "dist", "node_modules"];
/// Hidden entries that belong to the project.
const HIDDEN: [&str; 3] = [".ci", ".cargo", ".gitignore"];

/// Text of the files that rules read (Rust and Markdown); of others the path alone.
#[derive(Default)]
pub(super) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let walk = WalkDir::new(root).into_iter().filter_entry(|entry| {
            let name = entry.file_name().to_string_lossy();
            entry.depth() == 0
                || (!GENERATED.contains(&name.as_ref())
                    && (!name.starts_with('.') || HIDDEN.contains(&name.as_ref())))
        });
        let mut files = BTreeMap::new();
        for entry in walk {
            let entry = entry?;
            if !entry.file_type().is_file() {
                continue;
            }
            let path = entry
                .path()
                .strip_prefix(root)?
                .to_string_lossy()
                .replace('\\', "/");
            let read = path.ends_with(".rs") || path.ends_with(".md");
            let text = if read {
                fs::read_to_string(entry.path())
                    .with_context(|| format!("{path} could not be read as text"))?
            } else {
                String::new()
            };
            files.insert(path, text);
        }
        Ok(Self { files })
    }

    /// Every file's path.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The text of a Markdown or Rust file at the given path.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Rust files with their text, in the order of paths.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter(|(path, _)| path.ends_with(".rs"))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let own = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Self {
            files: files.iter().map(own).collect(),
        }
    }
}
