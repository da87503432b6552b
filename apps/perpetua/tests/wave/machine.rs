//! What `doctor` and `devices` say of a machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::folder::*;
use super::terminal::terminal;

/// What does not work is an end with an error; what is only absent is not. A file that cannot be run is no tool.
#[test]
fn the_doctor_ends_with_what_it_found() {
    let folder = Folder::new();
    for (tool, mode) in [("naga", 0o644), ("ffmpeg", 0o755)] {
        fs::write(folder.at(tool), "").unwrap();
        fs::set_permissions(folder.at(tool), fs::Permissions::from_mode(mode)).unwrap();
    }
    for (cache, code, state, expect) in [
        ("cache", 0, "ok", ""),
        (
            "ffmpeg/cache",
            1,
            "BROKEN",
            "error: what is BROKEN above does not work\n",
        ),
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_perpetua"));
        command.arg("doctor").current_dir(folder.0.path());
        command.env("PERPETUA_CACHE_DIR", folder.at(cache));
        command.env("PATH", folder.0.path());
        let output = printed(command);
        let shown = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            (output.status.code(), &*said(&output)),
            (Some(code), expect),
            "{shown}"
        );
        let found = |name: &str| {
            let line = shown.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().split_whitespace().next().unwrap().to_owned()
        };
        let states = ["CPU", "nvcc", "naga", "ffmpeg", "kernel cache"].map(found);
        assert_eq!(states, ["ok", "absent", "absent", "ok", state], "{shown}");
    }
}

/// A folder in which a file can be made may still have no room for what is written to it.
#[test]
fn a_cache_without_room_is_not_ok() {
    let folder = Folder::new();
    for (blocks, code, expect) in [
        (4096, 0, "kernel cache  ok "),
        (
            64,
            1,
            "cannot be written (File too large (os error 27)): each program compiles",
        ),
    ] {
        let program = env!("CARGO_BIN_EXE_perpetua");
        let mut shell = folder.shell(&format!("ulimit -f {blocks}; exec {program} doctor"));
        shell
            .env("PERPETUA_CACHE_DIR", folder.at("cache"))
            .env("COLUMNS", "300");
        let output = printed(shell);
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.code() == Some(code) && shown.contains(expect),
            "{:?}: {shown}",
            output.status
        );
    }
}

/// Colours are a terminal's.
#[test]
fn the_doctor_has_colour_in_a_terminal() {
    let folder = Folder::new();
    let command = format!("{} doctor", env!("CARGO_BIN_EXE_perpetua"));
    let Some(mut terminal) = terminal(&folder, &command) else {
        return;
    };
    terminal.env("PERPETUA_CACHE_DIR", folder.at("cache"));
    terminal
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR");
    let output = printed(terminal);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}");
    let coloured = |start: &str, colour: &str| {
        let is_so = |line: &str| line.starts_with(start) && line.contains(colour);
        shown.lines().any(is_so)
    };
    assert!(coloured("CPU", "\u{1b}[32mok"), "{shown:?}");
}

/// Only a word that is longer goes beyond the width.
#[test]
fn devices_keep_to_the_width() {
    let folder = Folder::new();
    // Where nobody knows, some say 0.
    for (told, columns) in [20, 30, 39, 40, 59, 60, 100]
        .map(|n| (n, n))
        .into_iter()
        .chain([(0, 100)])
    {
        let mut command = folder.program(env!("CARGO_BIN_EXE_perpetua"));
        command.arg("devices").env("COLUMNS", told.to_string());
        let output = printed(command);
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && shown.contains("largest block"),
            "{shown}"
        );
        for line in shown.lines() {
            let is_word = !line.trim_start().contains(' ');
            assert!(line.chars().count() <= columns || is_word, "{columns}: {line}");
        }
    }
}
