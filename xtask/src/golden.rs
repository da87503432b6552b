//! `cargo xtask golden`: the tests that compare rendered sources with files, alone; or overwrites those files. They are
//! also among the tests that `cargo xtask test` runs.

use crate::workspace::{cargo, shell};
use anyhow::{Context, Result};
use xshell::cmd;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Overwrite the golden files with what is rendered now.
    #[arg(long)]
    bless: bool,
}

/// The test programs of `perpetua-ir` that overwrite their files when `PERPETUA_BLESS=1`.
const PROGRAMS: [&str; 5] = ["c_like", "ptx", "sources", "targets", "text"];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (shell, cargo) = (shell()?, cargo());
    let programs = PROGRAMS.iter().flat_map(|name| ["--test", *name]);
    let command = cmd!(
        shell,
        "{cargo} test --package perpetua-ir --all-features --no-fail-fast {programs...}"
    )
    .quiet();
    // The book's tables, which are made of tables that only unit tests see.
    let tables = cmd!(
        shell,
        "{cargo} test --package perpetua-ir --all-features --lib front::rust::reference"
    )
    .quiet();
    let operators = cmd!(
        shell,
        "{cargo} test --package perpetua-tensor --all-features --test tensor_book --test tensor_shaders"
    )
    .quiet();
    for command in [command, tables, operators] {
        let command = if arguments.bless {
            command.env("PERPETUA_BLESS", "1")
        } else {
            command.env_remove("PERPETUA_BLESS")
        };
        command
            .run()
            .context("rendered sources differ; if that is meant, run `cargo xtask golden --bless`")?;
    }
    Ok(())
}
