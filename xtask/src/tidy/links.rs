//! Links of documents lead to files and headings that exist; each page of the book is in its table of contents and among the
//! documentation tests.

use super::Problem;
use super::documents::{documents, prose};
use super::tree::Tree;

/// Where the pages' samples become documentation tests.
const SAMPLES: &str = "crates/perpetua/src/book.rs";
/// The book's pages.
const BOOK: &str = "docs/book/src/";
/// Its table of contents, from which alone mdBook finds pages.
const SUMMARY: &str = "docs/book/src/SUMMARY.md";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let broken = documents(tree).flat_map(|(path, text)| {
        links(text).filter_map(move |(line, target)| {
            let cause = broken(tree, path, target)?;
            Some(Problem::new(path, line, format!("links to `{target}`: {cause}")))
        })
    });
    broken.chain(unlisted(tree)).chain(untested(tree)).collect()
}

/// Pages of the book that its table of contents lacks.
fn unlisted(tree: &Tree) -> impl Iterator<Item = Problem> {
    let listed: Vec<&str> = tree
        .text(SUMMARY)
        .map_or_else(Vec::new, |text| links(text).map(|link| link.1).collect());
    let pages = tree
        .paths()
        .filter(|path| path.ends_with(".md") && *path != SUMMARY);
    pages
        .filter_map(|path| path.strip_prefix(BOOK))
        .filter_map(move |page| {
            let is_listed = listed.contains(&page);
            (!is_listed).then(|| {
                Problem::new(
                    SUMMARY,
                    0,
                    format!("lacks the page `{page}`: add it where it belongs"),
                )
            })
        })
}

/// Pages of the book whose samples no test runs.
fn untested(tree: &Tree) -> impl Iterator<Item = Problem> {
    let tests = tree.text(SAMPLES).unwrap_or_default();
    let pages = tree
        .paths()
        .filter(|path| path.starts_with(BOOK) && *path != SUMMARY);
    let untested = pages.filter(|path| path.ends_with(".md") && !tests.contains(&format!("/{path}\"")));
    untested.map(|path| {
        Problem::new(
            SAMPLES,
            0,
            format!("lacks `{path}`: add it, so that its samples are run"),
        )
    })
}

/// Why a link leads nowhere.
fn broken(tree: &Tree, from: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() {
        from.to_owned()
    } else {
        resolve(from, file)
    };
    let is_folder = || {
        tree.paths().any(|place| {
            place
                .strip_prefix(&*path)
                .is_some_and(|rest| rest.starts_with('/'))
        })
    };
    if !tree.paths().any(|place| place == path) && !is_folder() {
        return Some(format!("there is no `{path}`"));
    }
    // Other files' anchors are lines.
    let text = tree
        .text(&path)
        .filter(|_| !heading.is_empty() && path.ends_with(".md"))?;
    let has_heading = prose(text)
        .filter_map(|(_, line)| line.strip_prefix('#'))
        .any(|title| anchor(title.trim_start_matches('#')) == heading);
    (!has_heading).then(|| format!("`{path}` has no such heading"))
}

/// The path that a relative one means in the folder of the document `from`.
fn resolve(from: &str, file: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// A heading's anchor, as GitHub and mdBook make it.
fn anchor(title: &str) -> String {
    let kept = title
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c })
        .flat_map(char::to_lowercase)
        .collect()
}

/// Targets of links and pictures with their lines.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(at, line)| {
        line.split("](")
            .skip(1)
            .filter_map(move |rest| rest.split(')').next().map(|target| (at, target)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_somewhere() {
        let tree = Tree::of(&[
            (
                "README.md",
                "[a](docs/a.md) [b](xtask/src/main.rs#L3) [c](xtask) [d](https://x.y)\n[e](docs/e.md)",
            ),
            (
                "docs/a.md",
                "# What `it` is, now\n[up](../README.md) [here](#what-it-is-now)\n[no](#nothing) [no](README.md)",
            ),
            (
                "docs/book/src/SUMMARY.md",
                "- [one](one.md)\n- [deep](deep/two.md)",
            ),
            ("docs/book/src/one.md", "```\n[not](a-link)\n```"),
            ("docs/book/src/deep/two.md", "[one](../one.md)"),
            ("docs/book/src/three.md", ""),
            ("xtask/src/main.rs", ""),
            (
                "crates/perpetua/src/book.rs",
                "\"../../../docs/book/src/one.md\" \"../../../docs/book/src/deep/two.md\"",
            ),
        ]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        let expected = [
            "README.md:2: links to `docs/e.md`: there is no `docs/e.md`",
            "docs/a.md:3: links to `#nothing`: `docs/a.md` has no such heading",
            "docs/a.md:3: links to `README.md`: there is no `docs/README.md`",
            "docs/book/src/SUMMARY.md: lacks the page `three.md`: add it where it belongs",
            "crates/perpetua/src/book.rs: lacks `docs/book/src/three.md`: add it, so that its samples are run",
        ];
        assert_eq!(found, expected);
    }
}
