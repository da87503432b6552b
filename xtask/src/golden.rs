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

/// Runs every golden test, with the features of the other tests so that nothing is built twice.
pub(crate) fn compare_or_bless(bless: bool) -> Result<()> {
    let metadata = metadata()?;
    let targets = metadata
        .workspace_packages()
        .into_iter()
        .flat_map(|package| &package.targets);
    let count = targets
        .filter(|target| target.is_test() && target.name.starts_with("golden"))
        .count();
    if count > 0 {
        let (shell, cargo, pattern) = (shell()?, cargo(), "golden*");
        let command = cmd!(
            shell,
            "{cargo} test --workspace --all-features --no-fail-fast --test {pattern}"
        )
        .quiet();
        let command = if bless {
            command.env("PERPETUA_BLESS", "1")
        } else {
            command.env_remove("PERPETUA_BLESS")
        };
        command
            .run()
            .context("rendered sources differ; if that is meant, run `cargo xtask golden --bless`")?;
    }
    println!(
        "golden: {count} test programs {}",
        if bless {
            "have written their files"
        } else {
            "agree with their files"
        }
    );
    Ok(())
}
