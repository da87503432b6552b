//! Where an example's program is. Must not know examples.

use std::path::PathBuf;
use std::process::Command;

/// The program of an example. Built now where there is Cargo, unless who runs the tests has: a test that was asked for alone finds examples of another day.
pub(crate) fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    let program = folder.join("examples").join(name);
    if std::env::var_os("PERPETUA_EXAMPLES_BUILT").is_some() {
        assert!(program.exists(), "{name} is not built");
        return program;
    }
    let mut build = Command::new(env!("CARGO"));
    build.args([
        "build",
        "--quiet",
        "-p",
        "perpetua",
        "--all-features",
        "--example",
        name,
    ]);
    if folder.ends_with("release") {
        build.arg("--release");
    }
    match build.status() {
        Ok(status) => assert!(status.success(), "{name} does not build"),
        Err(error) => assert!(
            program.exists(),
            "{name} is not built, and there is no Cargo: {error}"
        ),
    }
    program
}
