//! No circles of imports among the modules of one folder: if `a` names something of `b`, then `b` names nothing of `a`, not even by way of
//! others. A module stands for all that lies below it. Parents and children may name each other. Files of tests may name anything.

use std::collections::{BTreeMap, BTreeSet};

use super::Problem;
use super::modules::{module_of, named_paths};
use super::tree::Tree;

/// Folders among whose modules there are circles, and why. All others have none, and no folder goes on this list again.
const OPEN: [(&str, &str); 19] = [
    (
        "apps/perpetua/src/top",
        "columns are read from samples, which name their column",
    ),
    (
        "crates/perpetua-device/src",
        "a device makes kernels, streams and buffers, which lead back to it",
    ),
    (
        "crates/perpetua-device/src/conformance",
        "operators and the judge of what they gave",
    ),
    (
        "crates/perpetua-device/src/cpu",
        "a stream runs launches and graphs, which name its queue",
    ),
    (
        "crates/perpetua-device/src/cuda",
        "memory is pooled by streams, which record its use",
    ),
    (
        "crates/perpetua-device/src/null",
        "as in the other backends, file by file",
    ),
    (
        "crates/perpetua-device/src/wgpu",
        "recordings hold launches and copies, which name their recording",
    ),
    (
        "crates/perpetua-ir/src",
        "`ir` asks `ops` for types, `ops` is written in the types of `ir`",
    ),
    (
        "crates/perpetua-ir/src/back/c_like",
        "one writer in several files",
    ),
    (
        "crates/perpetua-ir/src/back/cuda_c",
        "one dialect in several files",
    ),
    ("crates/perpetua-ir/src/back/msl", "one dialect in several files"),
    ("crates/perpetua-ir/src/back/wgsl", "one dialect in several files"),
    (
        "crates/perpetua-ir/src/front/rust/file",
        "handlers are collected like kernels",
    ),
    (
        "crates/perpetua-cpu/src/interp",
        "the detector is made for a launch, which holds it",
    ),
    (
        "crates/perpetua-language/src/kernel",
        "entries name native bodies, which name their entry",
    ),
    (
        "crates/perpetua-language/src/kernel/native",
        "plans, launches and programs are one argument",
    ),
    (
        "crates/perpetua-syntax/src/actors",
        "messages have vectors, whose views are messages",
    ),
    (
        "crates/perpetua-wave/src/actors",
        "strips of threads, threads of strips",
    ),
    ("crates/perpetua-wave/src/window", "one window in several files"),
];

/// Which modules of one folder each of them names, and in which file it does so first.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut closed: Vec<&str> = OPEN.iter().map(|(folder, _)| *folder).collect();
    for (folder, graph) in graphs(tree) {
        for circle in circles(&graph) {
            if OPEN.iter().any(|(open, _)| *open == folder) {
                closed.retain(|open| *open != folder);
                continue;
            }
            let first = circle.iter().flat_map(|from| {
                let named = graph.get(*from).into_iter().flatten();
                named.filter(|(to, _)| circle.contains(&to.as_str()))
            });
            let arrows: Vec<String> = first.map(|(to, file)| format!("{file} names `{to}`")).collect();
            let message = format!(
                "`{}` import each other ({}): move what one of them wants to where both may name it",
                circle.join("`, `"),
                arrows.join(", ")
            );
            problems.push(Problem::new(&folder, 0, message));
        }
    }
    // Where a tree has a folder at all.
    closed.retain(|folder| tree.paths().any(|path| path.starts_with(&format!("{folder}/"))));
    for folder in closed {
        let message = "has no circle of imports any more: take it off the list in `tidy/circles.rs`";
        problems.push(Problem::new(folder, 0, message));
    }
    problems
}

/// Who names whom, by folder.
fn graphs(tree: &Tree) -> BTreeMap<String, Graph> {
    let files = || {
        tree.rust().filter_map(|(path, text)| {
            let (sources, inside) = path.split_once("/src/")?;
            let module = module_of(inside);
            let counts =
                !module.iter().any(|part| part == "tests") && !module.iter().any(|part| part == "bin");
            counts.then_some((sources, path, module, text))
        })
    };
    let modules: BTreeSet<(&str, Vec<String>)> = files()
        .flat_map(|(sources, _, module, _)| (1..=module.len()).map(move |n| (sources, module[..n].to_vec())))
        .collect();
    let mut graphs: BTreeMap<String, Graph> = BTreeMap::new();
    for (sources, path, module, text) in files() {
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
        for (_, named) in named_paths(&module, code) {
            let same = module.iter().zip(&named).take_while(|(a, b)| a == b).count();
            let (Some(from), Some(to)) = (module.get(same), named.get(same)) else {
                continue;
            };
            if !modules.contains(&(sources, named[..=same].to_vec())) {
                continue;
            }
            let folder = [&[format!("{sources}/src")], &module[..same]].concat().join("/");
            let named = graphs.entry(folder).or_default().entry(from.clone()).or_default();
            named.entry(to.clone()).or_insert_with(|| path.to_owned());
        }
    }
    graphs
}

/// The circles of a graph: modules that each reach all others of their circle.
fn circles(graph: &Graph) -> Vec<Vec<&str>> {
    let reach = |from: &str| {
        let mut seen = BTreeSet::new();
        let mut next = vec![from.to_owned()];
        while let Some(at) = next.pop() {
            for to in graph.get(&at).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(to.clone()) {
                    next.push(to.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<String>> =
        graph.keys().map(|from| (from.as_str(), reach(from))).collect();
    let mut found: Vec<Vec<&str>> = Vec::new();
    for (from, all) in &reached {
        let back = |to: &&str| all.contains(*to) && reached.get(to).is_some_and(|r| r.contains(*from));
        let circle: Vec<&str> = reached.keys().copied().filter(back).collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let problems = check(&Tree::of(files));
        problems
            .into_iter()
            .map(|problem| format!("{}: {}", problem.path, problem.message))
            .collect()
    }

    #[test]
    fn circles_among_siblings_are_found() {
        let a = ("crates/x/src/a/mod.rs", "mod one;\nmod two;\npub use one::One;");
        let one = ("crates/x/src/a/one.rs", "use super::two::Two;");
        let back = (
            "crates/x/src/a/two.rs",
            "use crate::a::{\n    three,\n    one::{One, Other},\n};",
        );
        let problems = found(&[a, one, back]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].starts_with("crates/x/src/a: `one`, `two` import each other"),
            "{problems:?}"
        );
        // Of the parent, of a child, in tests, in words.
        let fine = [
            "use super::One;",
            "// super::one",
            "#[cfg(test)]\nmod tests {\n    use super::super::one;\n}",
        ];
        for text in fine {
            assert_eq!(
                found(&[a, one, ("crates/x/src/a/two.rs", text)]),
                [""; 0],
                "{text}"
            );
        }
        // By way of a third, from below.
        let far = [
            ("crates/x/src/b/deep/mod.rs", "fn f() -> super::super::c::T {}"),
            ("crates/x/src/c.rs", "use crate::d;"),
            ("crates/x/src/d.rs", "use crate::b::deep;"),
        ];
        assert_eq!(found(&far).len(), 1);
        assert_eq!(found(&far[..2]).len(), 0);
    }
}
