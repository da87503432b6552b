//! Which module inside a crate may name which. Front ends and targets know the IR and not each other; backends know
//! the device contract and not each other. Files of tests may name anything.

use super::Problem;
use super::source::code_only;
use super::tree::Tree;

/// In a crate's sources, modules at `from` do not name modules at `not`.
struct Rule {
    sources: &'static str,
    from: &'static [&'static str],
    not: &'static [&'static str],
}

const IR: &str = "crates/perpetua-ir/src/";
const DEVICE: &str = "crates/perpetua-device/src/";

const RULES: [Rule; 8] = [
    Rule {
        sources: IR,
        from: &["front"],
        not: &["back"],
    },
    Rule {
        sources: IR,
        from: &["back"],
        not: &["front"],
    },
    Rule {
        sources: IR,
        from: &["ops"],
        not: &["front", "back", "verify", "pass"],
    },
    Rule {
        sources: DEVICE,
        from: &["null"],
        not: &["cpu", "cuda", "wgpu", "metal"],
    },
    Rule {
        sources: DEVICE,
        from: &["cpu"],
        not: &["null", "cuda", "wgpu", "metal"],
    },
    Rule {
        sources: DEVICE,
        from: &["cuda"],
        not: &["null", "cpu", "wgpu", "metal"],
    },
    Rule {
        sources: DEVICE,
        from: &["wgpu"],
        not: &["null", "cpu", "cuda", "metal"],
    },
    Rule {
        sources: DEVICE,
        from: &["metal"],
        not: &["null", "cpu", "cuda", "wgpu"],
    },
];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.rust() {
        let Some(rule_source) = [IR, DEVICE].into_iter().find(|sources| path.starts_with(sources)) else {
            continue;
        };
        let module = module_of(&path[rule_source.len()..]);
        // Tests measure a part against others.
        if module.iter().any(|part| part == "tests") {
            continue;
        }
        for (line, named) in named_paths(&module, text) {
            let Some(named) = named.first() else { continue };
            let broken = RULES
                .iter()
                .filter(|rule| rule.sources == rule_source)
                .find(|rule| rule.from.contains(&module[0].as_str()) && rule.not.contains(&named.as_str()));
            if broken.is_some() {
                let message = format!("`{}` names `{named}`, which it must not know", module.join("::"));
                problems.push(Problem::new(path, line, message));
            }
        }
    }
    problems
}

/// `front/rust/lower.rs` is `front::rust::lower`; `front/mod.rs` is `front`; `lib.rs` is `lib`.
pub(super) fn module_of(path: &str) -> Vec<String> {
    let stem = path.trim_end_matches(".rs");
    let mut parts: Vec<String> = stem.split('/').map(str::to_owned).collect();
    if parts.len() > 1 && parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

/// Each path from the crate's root that a file names, with its line. Paths begin with `crate::` or with some `super::`; inline
/// modules are not counted, so a `super` in them may lead one too far up.
pub(super) fn named_paths(module: &[String], text: &str) -> Vec<(usize, Vec<String>)> {
    let code = code_only(text);
    let mut found = Vec::new();
    for prefix in ["crate::", "super::"] {
        for (at, _) in code.match_indices(prefix) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || "_:$".contains(c)) {
                continue;
            }
            let line = code[..at].matches('\n').count() + 1;
            let mut tree = &code[at..];
            let mut base = match prefix {
                "crate::" => &[],
                _ => module,
            };
            tree = tree.strip_prefix("crate::").unwrap_or(tree);
            while let Some(above) = tree.strip_prefix("super::") {
                (tree, base) = (
                    above,
                    base.get(..base.len().saturating_sub(1)).unwrap_or_default(),
                );
            }
            let mut paths = Vec::new();
            use_tree(tree, base, &mut paths);
            found.extend(paths.into_iter().map(|path| (line, path)));
        }
    }
    found
}

/// The paths of a use tree below `base`: `{a::b, c}` has `a::b` and `c`. Gives what stands behind it.
fn use_tree<'a>(tree: &'a str, base: &[String], paths: &mut Vec<Vec<String>>) -> &'a str {
    let tree = tree.trim_start();
    if let Some(mut rest) = tree.strip_prefix('{') {
        loop {
            rest = use_tree(rest, base, paths).trim_start();
            // An alias, or a comma.
            let end = rest.find([',', '}']).unwrap_or(rest.len());
            match rest.get(end..end + 1) {
                Some(",") => rest = rest[end + 1..].trim_start(),
                Some(_) => return &rest[end + 1..],
                None => return "",
            }
            if let Some(behind) = rest.strip_prefix('}') {
                return behind;
            }
        }
    }
    let end = tree
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(tree.len());
    let (word, rest) = tree.split_at(end);
    let path = [base, &[word.to_owned()]].concat();
    match rest.strip_prefix("::") {
        Some(below) if below.starts_with(|c: char| c.is_alphabetic() || "_{".contains(c)) => {
            use_tree(below, &path, paths)
        }
        _ => {
            paths.push(path);
            rest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_and_back_do_not_meet() {
        let check = |path: &str, text: &str, lines: &[usize]| {
            let problems = super::check(&Tree::of(&[(path, text)]));
            let found: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
            assert_eq!(found, lines, "{path}: {text}: {problems:?}");
        };
        let front = "crates/perpetua-ir/src/front/rust/lower.rs";
        check(
            front,
            "use crate::ir::Kernel;\n// crate::back\nlet s = \"crate::back\";",
            &[],
        );
        check(front, "use crate::ir::Kernel;\nuse crate::back::ptx;", &[2]);
        check(
            front,
            "use crate::{\n    ir::{Kernel, back},\n    back::ptx,\n};",
            &[1],
        );
        check(front, "fn f() -> super::super::super::back::Source {}", &[1]);
        check(front, "use super::back_edge; use crate::backend;", &[]);
        check(
            "crates/perpetua-ir/src/back/ptx/mod.rs",
            "use super::super::front::rust;",
            &[1],
        );
        check(
            "crates/perpetua-ir/src/lib.rs",
            "use crate::back; use crate::front;",
            &[],
        );
        check(
            "crates/perpetua-device/src/cpu/device.rs",
            "use crate::cuda::device;",
            &[1],
        );
        check(
            "crates/perpetua-device/src/select.rs",
            "use crate::cuda::device;",
            &[],
        );
    }
}
