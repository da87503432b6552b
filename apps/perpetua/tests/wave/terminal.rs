//! Runs in a terminal, which the program `script` is.

use std::process::Command;

use super::folder::*;

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
            "stty cols {columns}; {program} wave --backend cpu --resume c.bin --steps 1800 --checkpoint d.bin"
        );
        let terminal = Command::new("script")
            .args(["-q", "-e", "-c", &command, "/dev/null"])
            .current_dir(folder.0.path())
            .output();
        let Ok(terminal) = terminal else {
            println!("left out: no program `script`, which is a terminal for others");
            return;
        };
        let shown = String::from_utf8_lossy(&terminal.stdout);
        assert!(terminal.status.success(), "{shown}");
        assert!(
            !shown.contains("\u{1b}[1A") && !shown.contains("\u{1b}[A"),
            "{columns}: {shown:?}"
        );
        let bars: Vec<&str> = shown
            .split(['\r', '\n'])
            .filter(|line| line.contains("/1800"))
            .collect();
        assert!(!bars.is_empty(), "{shown:?}");
        for bar in bars {
            let done = bar.split("/1800").next().unwrap();
            let done = done.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap();
            assert!(done.parse::<u64>().unwrap() >= 600, "{bar:?}");
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
    let terminal = Command::new("script")
        .args(["-q", "-e", "-c", &command, "/dev/null"])
        .current_dir(folder.0.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let Ok(mut terminal) = terminal else {
        println!("left out: no program `script`, which is a terminal for others");
        return;
    };
    wait_for(&mut terminal, || folder.at("c.bin").exists());
    terminal.stdin.as_mut().unwrap().write_all(&[3]).unwrap();
    let output = terminal.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{shown}");
    assert!(shown.contains("--resume c.bin"), "{shown}");
    assert!(
        shown.contains("s\\u{1b}[31m") && !shown.contains("\u{1b}[31m"),
        "{shown:?}"
    );
}
