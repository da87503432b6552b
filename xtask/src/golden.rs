//! `cargo xtask golden`: the tests that compare rendered sources with files, or overwrite those.
//!
//! A golden test is an integration test whose name starts with `golden`; it overwrites its files when
//! `PERPETUA_BLESS=1`.

use crate::workspace::{cargo, metadata, shell};
use anyhow::{Context, Result};
use xshell::cmd;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Overwrite the golden files with what is rendered now.
    #[arg(long)]
    bless: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    compare_or_bless(arguments.bless)
}

/// Runs every golden test.
pub(crate) fn compare_or_bless(bless: bool) -> Result<()> {
    let metadata = metadata()?;
    let shell = shell()?;
    let cargo = cargo();
    let mut count = 0;
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        let tests = package
            .targets
            .iter()
            .filter(|target| target.is_test() && target.name.starts_with("golden"));
        for test in tests {
            count += 1;
            let test = &test.name;
            let command = cmd!(
                shell,
                "{cargo} test --quiet --package {name} --all-features --test {test}"
            )
            .quiet();
            let command = if bless {
                command.env("PERPETUA_BLESS", "1")
            } else {
                command
            };
            command.run().with_context(|| {
                format!("{name}'s {test} differs; if the change is meant, run `cargo xtask golden --bless`")
            })?;
        }
    }
    println!(
        "golden: {count} golden tests {}",
        if bless { "written" } else { "equal" }
    );
    Ok(())
}
