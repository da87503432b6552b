//! How a source file opens, how long it may be, what stands above `unsafe`, and how an example ends.

use super::Problem;
use super::documents::{ARCHITECTURE, section_items};
use super::source::code_only;
use super::tree::Tree;

/// Lines that one file rarely exceeds; one that does is listed with its reason.
const LONG: usize = 500;
/// The list's heading.
const LONG_FILES: &str = "Long files";
/// Lines above an `unsafe` block in which its argument must begin.
const REACH: usize = 12;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let sources: Vec<(&str, &str)> = tree.rust().filter(|(path, _)| !is_test_data(path)).collect();
    let mut problems: Vec<Problem> = sources
        .iter()
        .filter_map(|(path, text)| opening(path, text))
        .collect();
    problems.extend(
        sources
            .iter()
            .flat_map(|(path, text)| unsafe_arguments(path, text)),
    );
    problems.extend(sources.iter().filter_map(|(path, text)| ending(path, text)));
    problems.extend(lengths(tree, &sources));
    problems
}

/// What `main` returns is printed by `Debug`, which is for programmers.
fn ending(path: &str, text: &str) -> Option<Problem> {
    let main = |line: &str| line.starts_with("fn main() -> ") && line != "fn main() -> ExitCode {";
    let line = text
        .lines()
        .position(main)
        .filter(|_| path.contains("perpetua/examples/"))?;
    let message = "an example prints its error by `Display`: return an `ExitCode`";
    Some(Problem::new(path, line + 1, message))
}

/// Inputs and outputs of tests: written to be compiled or compared, not read as part of the project.
fn is_test_data(path: &str) -> bool {
    ["/tests/in/", "/tests/out/", "/tests/ui/"]
        .iter()
        .any(|folder| path.contains(folder))
}

fn opening(path: &str, text: &str) -> Option<Problem> {
    let is_told = text
        .lines()
        .next()
        .is_some_and(|line| line.starts_with("//! ") && line.len() > 8);
    (!is_told).then(|| {
        Problem::new(
            path,
            1,
            "does not open with `//!`: say what it does and what it must not know",
        )
    })
}

fn lengths(tree: &Tree, sources: &[(&str, &str)]) -> Vec<Problem> {
    let Some(architecture) = tree.text(ARCHITECTURE) else {
        return Vec::new();
    };
    let listed = section_items(architecture, LONG_FILES);
    let mut problems = Vec::new();
    for (path, text) in sources {
        let lines = text.lines().count();
        let reason = listed
            .iter()
            .find(|item| item.name == *path)
            .map(|item| item.rest);
        match reason {
            None if lines > LONG => problems.push(Problem::new(
                path,
                0,
                format!("has {lines} lines: split it, or list it with its reason under \"{LONG_FILES}\" in {ARCHITECTURE}"),
            )),
            Some(reason) if lines > LONG && reason.len() < 10 => {
                problems.push(Problem::new(path, 0, format!("is listed in {ARCHITECTURE} as long without a reason")));
            }
            _ => {}
        }
    }
    for item in &listed {
        let is_long = sources
            .iter()
            .any(|(path, text)| *path == item.name && text.lines().count() > LONG);
        if !is_long {
            let message = format!(
                "`{}` is listed as long and has at most {LONG} lines, or is gone",
                item.name
            );
            problems.push(Problem::new(ARCHITECTURE, item.line, message));
        }
    }
    problems
}

/// Clippy asks for the argument where it compiles the code; this asks on every target.
fn unsafe_arguments(path: &str, text: &str) -> Vec<Problem> {
    let code = code_only(text);
    let lines: Vec<&str> = text.lines().collect();
    let mut problems = Vec::new();
    for (at, line) in code.lines().enumerate() {
        let above = &lines[at.saturating_sub(REACH)..=at.min(lines.len() - 1)];
        let has = |word: &str| above.iter().any(|line| line.contains(word));
        let trimmed = line.trim_start();
        if (line.contains("unsafe {") || trimmed.starts_with("unsafe impl")) && !has("SAFETY:") {
            problems.push(Problem::new(
                path,
                at + 1,
                "`unsafe` without a `// SAFETY:` comment that argues",
            ));
        }
        let declares = [
            "pub unsafe fn",
            "pub unsafe trait",
            "pub const unsafe fn",
            "pub unsafe extern",
        ];
        if declares.iter().any(|start| trimmed.starts_with(start)) && !documented(&lines[..at], "# Safety") {
            problems.push(Problem::new(
                path,
                at + 1,
                "a public unsafe item without `# Safety` in its documentation",
            ));
        }
    }
    problems
}

/// Whether the paragraph of comments and attributes right above has `heading`.
fn documented(above: &[&str], heading: &str) -> bool {
    above
        .iter()
        .rev()
        .take_while(|line| !line.trim().is_empty())
        .any(|line| line.contains(heading))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn files_say_what_they_do() {
        assert_eq!(messages(&[("a.rs", "//! Adds numbers.\n")]), [""; 0]);
        assert!(messages(&[("a.rs", "use std::fmt;\n")])[0].starts_with("a.rs:1: does not open"));
        assert!(messages(&[("a.rs", "//!\n")])[0].contains("does not open"));
        assert_eq!(messages(&[("crates/x/tests/ui/a.rs", "fn main() {}")]), [""; 0]);
    }

    #[test]
    fn long_files_have_a_reason() {
        let long = "//! Long file.\n".repeat(LONG + 1);
        let check = |architecture: &str, text: &str, expect: Option<&str>| {
            let found = messages(&[("ARCHITECTURE.md", architecture), ("src/a.rs", text)]);
            match expect {
                None => assert_eq!(found, [""; 0]),
                Some(expect) => assert!(found.len() == 1 && found[0].contains(expect), "{found:?}"),
            }
        };
        let with_reason = "## Long files\n- `src/a.rs`: one table, read as one.\n## Next\n";
        check(with_reason, &long, None);
        check("# Map\n", &long, Some("has 501 lines"));
        check("## Long files\n- `src/a.rs`\n", &long, Some("without a reason"));
        check(
            with_reason,
            "//! Short file.\n",
            Some("ARCHITECTURE.md:2: `src/a.rs` is listed as long"),
        );
        assert_eq!(
            messages(&[("src/a.rs", &long)]),
            [""; 0],
            "without the document there is no list"
        );
    }

    #[test]
    fn examples_end_in_words() {
        let check = |path: &str, main: &str, expect: &[&str]| {
            assert_eq!(messages(&[(path, &format!("//! A file.\n{main}\n"))]), expect);
        };
        let path = "crates/perpetua/examples/a.rs";
        check(path, "fn main() -> ExitCode {", &[]);
        check(path, "fn main() {", &[]);
        let expect =
            "crates/perpetua/examples/a.rs:2: an example prints its error by `Display`: return an `ExitCode`";
        check(path, "fn main() -> Result<(), Error> {", &[expect]);
        check(
            "crates/perpetua/src/a.rs",
            "fn main() -> Result<(), Error> {",
            &[],
        );
    }

    #[test]
    fn unsafe_is_argued() {
        let check = |body: &str, expect: usize| {
            let found = messages(&[("a.rs", &format!("//! A file.\n{body}"))]);
            assert_eq!(found.len(), expect, "{body}: {found:?}");
        };
        check("// SAFETY: p is valid.\nunsafe { *p }", 0);
        check("unsafe { *p }", 1);
        check("let s = \"unsafe { }\"; // unsafe {", 0);
        check("unsafe impl Send for X {}", 1);
        check(
            "/// # Safety\n/// Be careful.\n#[inline]\npub unsafe fn f() {}",
            0,
        );
        check("/// Fast.\npub unsafe fn f() {}", 1);
    }
}
