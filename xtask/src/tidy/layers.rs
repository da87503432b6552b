//! Which crate may depend on which: a crate depends on crates of lower layers only.

use super::Problem;
use cargo_metadata::{DependencyKind, Metadata};

/// Crates and their layers. Equal layers do not know each other.
const LAYERS: [(&str, u32); 16] = [
    ("perpetua-code-hash", 0),
    ("perpetua-syntax", 1),
    ("perpetua-ir", 2),
    ("perpetua-macros", 2),
    ("perpetua-cpu", 3),
    ("perpetua-device", 4),
    ("perpetua-language", 5),
    ("perpetua-kernels", 6),
    ("perpetua-isa", 7),
    ("perpetua-tensor", 7),
    ("perpetua-actors", 7),
    ("perpetua-wave", 7),
    ("perpetua", 8),
    ("perpetua-test-library", 9),
    ("perpetua-cli", 9),
    ("wavesim", 9),
];

/// Development tools: other crates use them for tests and in nothing that ships.
const TOOLS: [&str; 2] = ["perpetua-vendor-tools", "xtask"];

/// A package and the packages of this workspace that it needs to be built.
pub(super) struct Package {
    pub(super) name: String,
    manifest: String,
    dependencies: Vec<String>,
}

/// The workspace's packages. Dependencies of tests are free, since they do not ship.
pub(super) fn packages(metadata: &Metadata) -> Vec<Package> {
    let all = metadata.workspace_packages();
    let is_own = |name: &str| all.iter().any(|package| package.name.as_str() == name);
    all.iter()
        .map(|package| Package {
            name: package.name.to_string(),
            manifest: package
                .manifest_path
                .strip_prefix(&metadata.workspace_root)
                .unwrap_or(&package.manifest_path)
                .to_string(),
            dependencies: package
                .dependencies
                .iter()
                .filter(|dependency| {
                    dependency.kind != DependencyKind::Development && is_own(&dependency.name)
                })
                .map(|dependency| dependency.name.clone())
                .collect(),
        })
        .collect()
}

pub(super) fn check(packages: &[Package]) -> Vec<Problem> {
    packages.iter().flat_map(check_package).collect()
}

fn layer(name: &str) -> Option<u32> {
    LAYERS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, layer)| *layer)
}

fn check_package(package: &Package) -> Vec<Problem> {
    let problem = |message: String| Problem::new(&package.manifest, 0, message);
    let is_tool = TOOLS.contains(&package.name.as_str());
    let own = layer(&package.name);
    if own.is_none() && !is_tool {
        return vec![problem(format!(
            "{} has no layer: give it one in tidy's table LAYERS",
            package.name
        ))];
    }
    let forbidden = package.dependencies.iter().filter_map(|dependency| {
        let name = &package.name;
        match (own, layer(dependency)) {
            (Some(own), Some(other)) if other < own => None,
            (Some(own), Some(other)) => Some(problem(format!(
                "{name} (layer {own}) depends on {dependency} (layer {other}), which is not below it"
            ))),
            (Some(_), None) => Some(problem(format!(
                "{name} ships and depends on the development tool {dependency}: make it a dev-dependency"
            ))),
            (None, Some(_)) => Some(problem(format!(
                "the tool {name} depends on {dependency}: tools link no crate that ships"
            ))),
            (None, None) => None,
        }
    });
    forbidden.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_go_down() {
        let check = |name: &str, dependency: &str, expect: Option<&str>| {
            let package = Package {
                name: name.to_owned(),
                manifest: "m".to_owned(),
                dependencies: vec![dependency.to_owned()],
            };
            let problems = super::check(&[package]);
            match expect {
                None => assert_eq!(problems, []),
                Some(text) => assert!(
                    problems.len() == 1 && problems[0].message.contains(text),
                    "{problems:?}"
                ),
            }
        };
        check("perpetua", "perpetua-device", None);
        check("perpetua-ir", "perpetua-syntax", None);
        check("xtask", "perpetua-vendor-tools", None);
        check("perpetua-ir", "perpetua-device", Some("not below it"));
        check("perpetua-tensor", "perpetua-isa", Some("not below it"));
        check("perpetua-wave", "perpetua", Some("not below it"));
        check("perpetua-ir", "perpetua-vendor-tools", Some("dev-dependency"));
        check("xtask", "perpetua-ir", Some("no crate that ships"));
        check("perpetua-novel", "perpetua-ir", Some("has no layer"));
    }
}
