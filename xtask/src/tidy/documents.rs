//! Paths and crates that documents name exist. (Their links are `links`' part.)
//!
//! Read are code spans outside fenced blocks. A span is a path if it has a `/` and looks like one, or ends in the
//! extension of a source file; it may be relative to the root, to a crate, to a crate's sources or to the tests of one,
//! and have `*` or `{a,b}`. A span that begins with `perpetua` is a crate or a path into one.

use super::Problem;
use super::tree::Tree;
use std::collections::BTreeSet;

/// The document with the map and the list of long files.
pub(super) const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// Where the documents lie that are checked: here, and in the root.
const FOLDER: &str = "docs/";
/// Extensions by which a span without `/` is a file of the project.
const EXTENSIONS: [&str; 5] = [".rs", ".md", ".toml", ".wgsl", ".metal"];
/// Beginnings of paths that commands make or users have.
const ELSEWHERE: [&str; 6] = ["target/", "dist/", ".tools/", "./", "../", "~/"];

pub(super) fn check(tree: &Tree, packages: &[&str]) -> Vec<Problem> {
    let known = Known::of(tree, packages);
    documents(tree)
        .flat_map(|(path, text)| check_document(path, text, &known))
        .collect()
}

/// The project's documents with their text.
pub(super) fn documents(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    let is_document =
        |path: &&str| path.ends_with(".md") && (path.starts_with(FOLDER) || !path.contains('/'));
    tree.paths()
        .filter(is_document)
        .filter_map(|path| Some((path, tree.text(path)?)))
}

/// What may be named: every file and folder under each root that a document may mean, and crates.
struct Known {
    places: BTreeSet<String>,
    crates: BTreeSet<String>,
}

impl Known {
    fn of(tree: &Tree, packages: &[&str]) -> Self {
        let mut places = BTreeSet::new();
        for path in tree.paths() {
            let parts: Vec<&str> = path.split('/').collect();
            for start in starts(&parts) {
                for end in start + 1..=parts.len() {
                    places.insert(parts[start..end].join("/"));
                }
            }
            // A file may be named without its folder.
            places.extend(parts.last().map(|name| (*name).to_owned()));
        }
        let crates = packages
            .iter()
            .flat_map(|name| [(*name).to_owned(), name.replace('-', "_")])
            .collect();
        Self { places, crates }
    }

    fn has_path(&self, span: &str) -> bool {
        let span = span.trim_end_matches('/');
        expand_braces(span).iter().all(|path| {
            self.places.contains(path)
                || (path.contains('*') && self.places.iter().any(|place| matches_glob(path, place)))
        })
    }
}

/// Where in a path a relative name may begin: at the root, in a crate, in its sources or tests, in `src` of a tool.
fn starts(parts: &[&str]) -> Vec<usize> {
    let mut starts = vec![0];
    let folder = match parts.first() {
        Some(&("crates" | "apps" | "bindings")) => 2,
        Some(&"xtask") => 1,
        _ => return starts,
    };
    starts.push(folder);
    if matches!(parts.get(folder), Some(&("src" | "tests"))) {
        starts.push(folder + 1);
    }
    starts.retain(|start| *start < parts.len());
    starts
}

/// `a/{b,c}/d` is `a/b/d` and `a/c/d`.
fn expand_braces(span: &str) -> Vec<String> {
    let Some((before, rest)) = span.split_once('{') else {
        return vec![span.to_owned()];
    };
    let Some((list, after)) = rest.split_once('}') else {
        return vec![span.to_owned()];
    };
    list.split(',')
        .flat_map(|choice| expand_braces(&format!("{before}{}{after}", choice.trim())))
        .collect()
}

/// Whether `place` fits a pattern in which `*` stands for anything inside one part.
fn matches_glob(pattern: &str, place: &str) -> bool {
    let (patterns, parts): (Vec<&str>, Vec<&str>) =
        (pattern.split('/').collect(), place.split('/').collect());
    patterns.len() == parts.len()
        && patterns
            .iter()
            .zip(&parts)
            .all(|(pattern, part)| matches_part(pattern, part))
}

fn matches_part(pattern: &str, part: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == part,
        Some((before, after)) => part.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|tail| matches_part(after, tail)))
        }),
    }
}

fn check_document(path: &str, text: &str, known: &Known) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (line, span) in code_spans(text) {
        let first = span.split("::").next().unwrap_or(span);
        if is_crate_like(first) && !known.crates.contains(first) {
            problems.push(Problem::new(
                path,
                line,
                format!("names the crate `{first}`, which does not exist"),
            ));
        } else if is_path_like(span) && !known.has_path(span) {
            problems.push(Problem::new(
                path,
                line,
                format!("names the path `{span}`, which does not exist"),
            ));
        }
    }
    problems
}

fn is_crate_like(word: &str) -> bool {
    let rest = word
        .strip_prefix("perpetua")
        .filter(|rest| rest.starts_with(['-', '_']));
    rest.is_some_and(|rest| {
        rest.len() > 1 && rest.chars().all(|c| c.is_ascii_lowercase() || "-_".contains(c))
    })
}

fn is_path_like(span: &str) -> bool {
    let plain = span
        .chars()
        .all(|c| c.is_alphanumeric() || "/._-{},*".contains(c));
    let begins_well = span.starts_with(|c: char| c.is_ascii_lowercase() || c == '.' || c == '{');
    let is_elsewhere = ELSEWHERE.iter().any(|start| span.starts_with(start));
    let has_extension = EXTENSIONS
        .iter()
        .any(|extension| span.len() > extension.len() && span.ends_with(extension));
    let is_document = span.ends_with(".md") && !span.contains(['/', ' ', '*']);
    is_document || (plain && begins_well && !is_elsewhere && (span.contains('/') || has_extension))
}

/// Lines outside fenced blocks, from 1.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        (!fenced && !is_fence).then_some((at + 1, line))
    })
}

fn code_spans(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(at, line)| line.split('`').skip(1).step_by(2).map(move |span| (at, span)))
}

/// One line of a list: the code span that it begins with, and what follows.
pub(super) struct Item<'a> {
    pub(super) line: usize,
    pub(super) name: &'a str,
    pub(super) rest: &'a str,
}

/// The items of the list under `heading`.
pub(super) fn section_items<'a>(text: &'a str, heading: &str) -> Vec<Item<'a>> {
    let is_heading = |line: &str| line.starts_with('#');
    let after = prose(text)
        .skip_while(|(_, line)| !(is_heading(line) && line.contains(heading)))
        .skip(1);
    let section = after.take_while(|(_, line)| !is_heading(line));
    section
        .filter_map(|(line, text)| {
            let (name, rest) = text.trim_start().strip_prefix("- `")?.split_once('`')?;
            Some(Item {
                line,
                name,
                rest: rest.trim_start_matches([':', ' ']),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_name_what_exists() {
        let check = |text: &str, expect: &[&str]| {
            let tree = Tree::of(&[
                ("README.md", text),
                ("crates/perpetua-ir/src/back/ptx/mod.rs", ""),
                ("crates/perpetua-ir/src/back/wgsl.rs", ""),
                ("crates/perpetua-ir/tests/golden.rs", ""),
                ("xtask/src/setup.rs", ""),
                (".ci/run", ""),
            ]);
            let found: Vec<String> = super::check(&tree, &["perpetua-ir"])
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(found.len(), expect.len(), "{text}: {found:?}");
            for (found, expect) in found.iter().zip(expect) {
                assert!(found.contains(expect), "{found}");
            }
        };
        check("`crates/perpetua-ir` and `perpetua-ir`, `perpetua_ir::back`", &[]);
        check(
            "`back/ptx`, `back/{ptx,wgsl.rs}`, `back/*.rs`, `golden.rs`, `.ci/run`, `src/setup.rs`",
            &[],
        );
        check(
            "`a + b`, `MIN / -1`, `target/release/x`, `FILE.rs`, `https://x.y/z`, `Vec<u8>`",
            &[],
        );
        check("```\n`back/msl`\n```", &[]);
        check("x\n`back/msl`", &["README.md:2: names the path `back/msl`"]);
        check("`back/{ptx,msl}` `other.rs`", &["back/{ptx,msl}", "other.rs"]);
        check(
            "`perpetua-isa` and `perpetua_isa::asm`",
            &["crate `perpetua-isa`", "crate `perpetua_isa`"],
        );
        check("`BENCHMARKS.md`", &["`BENCHMARKS.md`"]);
    }
}
