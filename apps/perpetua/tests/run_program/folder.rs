//! Runs the program in a folder of its own.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A folder with a file of kernels, in which the program runs.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("k.rs"), super::KERNELS).unwrap();
        Folder(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn command(&self, args: &str) -> Command {
        self.words(&format!("run {args}"))
    }

    pub(crate) fn words(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perpetua"));
        command.args(args.split(' ')).current_dir(self.0.path());
        command
    }

    /// Any of the program's commands.
    pub(crate) fn program(&self, args: &str) -> Output {
        self.words(args).output().unwrap()
    }

    pub(crate) fn run(&self, args: &str) -> Output {
        self.command(args).args(["--backend", "cpu"]).output().unwrap()
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.path().join(name)).unwrap()
    }
}

/// What was said.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
