//! What the facade's examples need adds no feature to what the program is built of: else the first example after the program would
//! build it all once more.

use super::Problem;
use crate::workspace::{cargo, shell};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use xshell::cmd;

/// Packages with their features, as each is built.
type Built = BTreeMap<String, BTreeSet<String>>;

/// Asks cargo what the program and the examples are built of.
pub(super) fn check() -> Result<Vec<Problem>> {
    let (shell, cargo) = (shell()?, cargo());
    let format = "{p}={f}";
    let built = |kinds: &str| -> Result<Built> {
        let listed = cmd!(
            shell,
            "{cargo} tree --edges {kinds} --no-dedupe --prefix none --format {format}"
        );
        Ok(read(&listed.quiet().ignore_stderr().read()?))
    };
    Ok(compare(&built("normal,build")?, &built("normal,build,dev")?))
}

fn read(listed: &str) -> Built {
    let mut built = Built::new();
    for (package, features) in listed.lines().filter_map(|line| line.split_once('=')) {
        // Our own crates are built anew with a feature more in no time.
        if !package.starts_with("perpetua") {
            built
                .entry(package.to_owned())
                .or_default()
                .insert(features.to_owned());
        }
    }
    built
}

/// What is built in another way for the examples.
fn compare(program: &Built, examples: &Built) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (package, ways) in examples {
        let Some(known) = program.get(package) else {
            continue;
        };
        for features in ways.difference(known) {
            let message = format!(
                "a dev-dependency builds {package} with the features {features}, the program does without: move it to another crate"
            );
            problems.push(Problem::new("crates/perpetua/Cargo.toml", 0, message));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_more_is_a_problem() {
        let program = read("perpetua v0.1.0=wave\nhalf v2=std\nsyn v2=full");
        let same = read("perpetua v0.1.0=wave,cuda\nhalf v2=std\nproptest v1=");
        assert_eq!(compare(&program, &same), []);
        let more = read("half v2=num-traits,std");
        let found = compare(&program, &more);
        assert!(
            found.len() == 1
                && found[0]
                    .message
                    .contains("half v2 with the features num-traits,std")
        );
    }
}
