//! `cargo xtask tidy`: rules that the compiler does not check. Run as a test too.
//!
//! - `layers`: which crate may depend on which.
//! - `modules`: which module inside a crate may name which.
//! - `circles`: that modules of a folder do not import each other.
//! - `files`: how a source file opens, how long it may be, what stands above `unsafe`, how an example ends.
//! - `features`: that examples build nothing of the program's once more.
//! - `examples`: that what programs meet first has an example in its documentation.
//! - `documents`: paths and crates that documents name exist.
//! - `links`: links of documents lead somewhere; the book's contents and its tests have each of its pages.
//!
//! Each rule is a function from what it reads to a list of problems, so that its own tests can plant some.

mod circles;
mod documents;
mod examples;
mod features;
mod files;
mod layers;
mod links;
mod modules;
mod source;
mod tree;

use crate::workspace::{metadata, root};
use anyhow::{Result, bail};
use std::fmt;
use tree::Tree;

/// A broken rule, where it is broken, and what to do.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    path: String,
    /// From 1; zero where the whole file is meant.
    line: usize,
    message: String,
}

impl Problem {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

pub(crate) fn run() -> Result<()> {
    let problems = problems()?;
    for problem in &problems {
        eprintln!("{problem}");
    }
    match problems.len() {
        0 => {
            println!("tidy: every rule holds");
            Ok(())
        }
        count => bail!("{count} rules of the project are broken (above)"),
    }
}

/// Every problem in the repository.
fn problems() -> Result<Vec<Problem>> {
    let tree = Tree::read(&root())?;
    let packages = layers::packages(&metadata()?);
    let names: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let found = [
        layers::check(&packages),
        modules::check(&tree),
        circles::check(&tree),
        files::check(&tree),
        documents::check(&tree, &names),
        links::check(&tree),
        examples::check(&tree),
        features::check()?,
    ];
    Ok(found.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_repository_is_tidy() {
        let problems = super::problems().unwrap();
        let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(list.is_empty(), "\n{}", list.join("\n"));
    }
}
