//! A folder in which `perpetua wave` runs, and what is done to runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of its own, removed at the end.
pub(crate) struct Folder(pub(crate) tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perpetua"));
        command.arg("wave").args(args).current_dir(self.0.path());
        command
    }

    pub(crate) fn wave(&self, args: &[&str]) -> Output {
        self.command(&[&["--backend", "cpu"], args].concat())
            .output()
            .unwrap()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn small(path: &Path) {
    let scene = "size = [1.0, 1.0]\ncells = 48\nborder_width = 0.2\n[[sources]]\nat = [0.4, 0.5]\nwave = \"ricker\"\n\
        frequency = 1500.0\n[[probes]]\nname = \"a, b\"\nat = [0.6, 0.5]\n";
    fs::write(path, scene).unwrap();
}

/// The shell's own `kill`: a small system has no program of that name.
#[cfg(unix)]
pub(crate) fn kill(child: &std::process::Child, signal: &str) {
    let command = format!("kill -{signal} {}", child.id());
    assert!(
        Command::new("sh")
            .args(["-c", &command])
            .status()
            .unwrap()
            .success()
    );
}

/// Waits until a run has come so far.
#[cfg(unix)]
pub(crate) fn wait_for(child: &mut std::process::Child, reached: impl Fn() -> bool) {
    while !reached() {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
