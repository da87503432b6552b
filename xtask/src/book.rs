//! `cargo xtask book`: the book as web pages, by mdBook. Nothing else needs mdBook: the pages read well as they are, documentation tests
//! run their samples, and `tidy` checks their links.

use crate::locate::Search;
use crate::workspace::{root, shell};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use walkdir::WalkDir;
use xshell::cmd;

pub(crate) fn run() -> Result<()> {
    let shell = shell()?;
    if Search::new().on_path("mdbook").is_none() {
        bail!(
            "there is no program `mdbook`: install it with `cargo install mdbook --locked` (some minutes), or read \
             docs/book/src/SUMMARY.md and the pages beside it as they are"
        );
    }
    let (source, copy) = (root().join("docs/book"), root().join("target/book-source"));
    copy_pages(&source, &copy)?;
    let out = root().join("target/book");
    cmd!(shell, "mdbook build {copy} --dest-dir {out}")
        .quiet()
        .run()?;
    println!("{}", out.join("index.html").display());
    Ok(())
}

/// Copies the book, without links that leave it: pages elsewhere have only the book's own files beside them.
fn copy_pages(source: &Path, copy: &Path) -> Result<()> {
    if copy.exists() {
        fs::remove_dir_all(copy)?;
    }
    for entry in WalkDir::new(source) {
        let entry = entry?;
        let to = copy.join(entry.path().strip_prefix(source)?);
        if entry.file_type().is_dir() {
            fs::create_dir_all(&to)?;
        } else if to.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(entry.path())?;
            fs::write(&to, inward(&text))?;
        } else {
            fs::copy(entry.path(), &to).with_context(|| to.display().to_string())?;
        }
    }
    Ok(())
}

/// The text with each link that leaves the book replaced by its words and the file's path in the repository.
fn inward(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](../") {
        let (before, link) = rest.split_at(at);
        let words = before.rfind('[').unwrap_or(before.len());
        let end = link.find(')').unwrap_or(link.len() - 1);
        let path = in_repository(&link["](".len()..end]);
        result += &before[..words];
        result += before[words..].trim_start_matches('[');
        result += &format!(" (`{path}`)");
        rest = &link[end + 1..];
    }
    result + rest
}

/// What a link of a page means, from the repository's root.
fn in_repository(link: &str) -> String {
    let file = link.trim_start_matches("../");
    let up = (link.len() - file.len()) / "../".len();
    let folders = ["docs/", "book/", "src/"];
    folders[..folders.len().saturating_sub(up)].concat() + file
}

#[cfg(test)]
mod tests {
    #[test]
    fn links_that_leave_the_book_become_words() {
        assert_eq!(
            super::inward("See [a](a.md), [the *map*](../../../ARCHITECTURE.md) and [isa](../../isa.md)."),
            "See [a](a.md), the *map* (`ARCHITECTURE.md`) and isa (`docs/isa.md`)."
        );
        assert_eq!(super::inward("nothing"), "nothing");
    }
}
