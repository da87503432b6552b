//! The workspace as commands see it: its root, a shell there, the running cargo, its packages.

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand};
use std::env;
use std::path::{Path, PathBuf};
use xshell::Shell;

/// What tests run is built so. The interpreter stands in for every device that this machine lacks: optimising it costs half of
/// what it saves.
pub(crate) const EVERYTHING: [&str; 6] = [
    "--workspace",
    "--all-features",
    "--config",
    "profile.dev.package.perpetua-ir.opt-level=1",
    "--config",
    "profile.dev.package.perpetua-cpu.opt-level=1",
];

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// A shell in the repository's root.
pub(crate) fn shell() -> Result<Shell> {
    let shell = Shell::new()?;
    shell.change_dir(root());
    Ok(shell)
}

/// The cargo that runs this command.
pub(crate) fn cargo() -> String {
    env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// The packages of the workspace, without their dependencies.
pub(crate) fn metadata() -> Result<Metadata> {
    let mut command = MetadataCommand::new();
    command.current_dir(root()).no_deps();
    command
        .exec()
        .context("cargo metadata failed: a manifest may be broken")
}
