//! Runs in a terminal, which the program `script` is.

use std::process::{Command, Stdio};

use super::folder::*;

/// A terminal in which a command runs. `None` where `script` is not installed.
pub(crate) fn terminal(folder: &Folder, command: &str) -> Option<Command> {
    let mut terminal = folder.program("script");
    let is_there = terminal.arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_there {
        let required = std::env::var_os("PERPETUA_REQUIRE_TOOLS").is_some();
        assert!(!required, "there is no `script`: `cargo xtask setup`");
        println!("left out: no program `script`, which is a terminal for others");
        return None;
    }
    let mut terminal = folder.program("script");
    terminal.args(["-q", "-e", "-c", command, "/dev/null"]);
    Some(terminal)
}

/// The bar takes one row of a terminal, and goes on counting where the checkpoint ended.
#[test]
#[cfg(target_os = "linux")]
fn the_bar_fits_the_terminal() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let kept = folder.wave(&["--scene=s.toml", "--steps=600", "--checkpoint=c.bin"]);
    assert!(kept.status.success(), "{}", said(&kept));
    let program = env!("CARGO_BIN_EXE_perpetua");
    for columns in [80, 20] {
        let command = format!(
            "stty rows 24 cols {columns}; {program} wave --backend cpu --resume c.bin --steps 1800 --checkpoint d.bin"
        );
        let Some(terminal) = terminal(&folder, &command) else {
            return;
        };
        let terminal = printed(terminal);
        let shown = String::from_utf8_lossy(&terminal.stdout);
        assert!(terminal.status.success(), "{shown}");
        assert!(
            !shown.contains("\u{1b}[1A") && !shown.contains("\u{1b}[A"),
            "{columns}: {shown:?}"
        );
        let bars: Vec<&str> = shown
            .split(['\r', '\n'])
            .filter(|line| line.contains('%'))
            .collect();
        assert!(!bars.is_empty(), "{shown:?}");
        for bar in bars {
            // Of 1800 steps 600 are done from the start.
            let percent = bar.split('%').next().unwrap();
            let percent = percent.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap();
            assert!(percent.parse::<u64>().unwrap() >= 33, "{bar:?}");
            assert_eq!(columns == 80, bar.contains("/1800 steps"), "{bar:?}");
        }
    }
}

/// In a terminal Ctrl-C is the terminal's: `script` is one.
#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_in_a_terminal_keeps_the_state() {
    use std::io::Write;
    let folder = Folder::new();
    small(&folder.at("s\u{1b}[31m.toml"));
    let program = env!("CARGO_BIN_EXE_perpetua");
    let command = format!(
        "{program} wave --backend cpu --scene s*.toml --steps 100000000 --checkpoint c.bin --checkpoint-every 1ms"
    );
    let Some(mut terminal) = terminal(&folder, &command) else {
        return;
    };
    let terminal = terminal.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut terminal = terminal.spawn().unwrap();
    wait_for(&mut terminal, || folder.at("c.bin").exists());
    terminal.stdin.as_mut().unwrap().write_all(&[3]).unwrap();
    let output = end_of(terminal);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{shown}");
    assert!(shown.contains("--resume c.bin"), "{shown}");
    assert!(
        shown.contains("s\\u{1b}[31m") && !shown.contains("\u{1b}[31m"),
        "{shown:?}"
    );
}
