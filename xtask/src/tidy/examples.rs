//! That what programs meet first, and every struct of options, has an example in its documentation. Must not know whether it runs:
//! the compiler's documentation tests do.

use super::Problem;
use super::tree::Tree;

/// Crates that programs reach through the facade.
const CRATES: [&str; 7] = ["actors", "device", "isa", "kernels", "language", "tensor", "wave"];

/// How names of structs end that say how something is done.
const ENDINGS: [&str; 5] = ["Builder", "Config", "Limits", "Options", "Tuning"];

/// What is told and not chosen.
const TOLD: [&str; 1] = ["DeviceLimits"];

/// Beside them: files, and how the line begins that has the documentation above it.
const ALSO: [(&str, &str); 9] = [
    (
        "crates/perpetua-language/src/lib.rs",
        "pub use perpetua_macros::kernel;",
    ),
    (
        "crates/perpetua-language/src/lib.rs",
        "pub use perpetua_macros::device;",
    ),
    (
        "crates/perpetua-language/src/lib.rs",
        "pub use perpetua_macros::GpuType;",
    ),
    (
        "crates/perpetua-ir/src/front/rust/stencil.rs",
        "pub struct StencilConfig",
    ),
    ("crates/perpetua-device/src/signature.rs", "macro_rules! args"),
    ("crates/perpetua-device/src/device.rs", "pub struct Device("),
    ("crates/perpetua-device/src/buffer.rs", "pub struct Buffer<"),
    ("crates/perpetua-device/src/stream.rs", "pub struct Stream "),
    (
        "crates/perpetua-actors/src/runtime/mod.rs",
        "pub struct PerpetuaRuntime ",
    ),
];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let folders = CRATES.map(|name| format!("crates/perpetua-{name}/src/"));
    for (path, text) in tree.rust() {
        let has_options = folders.iter().any(|folder| path.starts_with(folder));
        let also = ALSO
            .iter()
            .filter(|(file, _)| *file == path)
            .map(|(_, start)| *start);
        let also: Vec<&str> = also.collect();
        if has_options || !also.is_empty() {
            problems.extend(without_example(path, text, has_options, &also));
        }
    }
    problems
}

fn without_example(path: &str, text: &str, has_options: bool, also: &[&str]) -> Vec<Problem> {
    let lines: Vec<&str> = text.lines().collect();
    let found = |start: &str| lines.iter().position(|line| line.starts_with(start));
    let mut problems: Vec<Problem> = also
        .iter()
        .filter(|start| found(start).is_none())
        .map(|start| Problem::new(path, 0, format!("has no `{start}`, whose example is looked for")))
        .collect();
    for (index, line) in lines.iter().enumerate() {
        let is_named = also.iter().any(|start| line.starts_with(start));
        let is_meant = is_named || has_options && is_options(line);
        if !is_meant {
            continue;
        }
        // Above it: attributes, and the documentation.
        let above = lines[..index].iter().rev();
        let above = above.take_while(|line| !line.is_empty() && !line.starts_with('}'));
        if !has_example(above.copied().collect()) {
            problems.push(Problem::new(
                path,
                index + 1,
                "has no example in its documentation",
            ));
        }
    }
    problems
}

/// Whether documentation, its last line first, has code that its tests run.
fn has_example(above: Vec<&str>) -> bool {
    let fences = above.iter().rev().filter_map(|line| line.strip_prefix("/// ```"));
    // Every other one ends what the one before began.
    let mut begins = fences.step_by(2);
    begins.any(|words| ["", "rust", "should_panic"].contains(&words))
}

/// Whether a line declares a struct of options.
fn is_options(line: &str) -> bool {
    let name = line.strip_prefix("pub struct ").unwrap_or_default();
    let name = name
        .split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default();
    ENDINGS.iter().any(|ending| name.ends_with(ending)) && !TOLD.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_without_an_example_are_found() {
        let check = |text: &str, lines: &[usize]| {
            let found = without_example("a.rs", text, true, &["pub fn kernel("]);
            let found: Vec<usize> = found.iter().map(|problem| problem.line).collect();
            assert_eq!(found, lines, "{text}");
        };
        let kernel = "/// ```\n/// k();\n/// ```\n#[attribute]\npub fn kernel(a: A) {\n}\n\n";
        check(kernel, &[]);
        check("/// ```\nfn other() {}\n\npub fn kernel() {}\n", &[4]);
        check("", &[0]);
        let with = |rest: &str| format!("{kernel}{rest}");
        check(
            &with("/// How.\n#[derive(Clone)]\npub struct LaunchOptions {\n"),
            &[10],
        );
        check(
            &with("/// How.\n///\n/// ```\n/// ```\npub struct Tuning {\n"),
            &[],
        );
        check(
            &with("/// How.\n///\n/// ```text\n/// ```\npub struct Tuning {\n"),
            &[12],
        );
        check(&with("/// What.\npub struct Optional<T> {\n"), &[]);
        check(&with("/// What.\npub struct DeviceLimits {\n"), &[]);
    }
}
