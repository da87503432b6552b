//! Runs that signals end, and what they keep.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::folder::*;

/// One run, ended three times: by Ctrl-C, by `kill -9`, by SIGTERM. Its checkpoint alone goes on.
#[test]
#[cfg(unix)]
fn a_run_goes_on_from_its_checkpoint_alone_however_it_ended() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let start = |args: &[&str]| {
        let mut command = folder.command(args);
        command.stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let is_drawing = || folder.names().iter().any(|n| n.contains(".part"));
    let mut child = start(&[
        "--scene=s.toml",
        "--size=64",
        "--backend=cpu",
        "--steps=100000000",
        "--animate=a.png",
        "--checkpoint=c.bin",
        "--out=w.png",
        "--checkpoint-every=20ms",
        "--probes=p.csv",
    ]);
    // A file for frames is made when signals are caught already, and none is seen before.
    wait_for(&mut child, is_drawing);
    kill(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert!(
        said(&output).contains("of 100000000 steps; go on with `perpetua wave --resume c.bin`"),
        "{}",
        said(&output)
    );
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(folder.names(), ["c.bin", "s.toml"]);

    // What it was made with is in it.
    fs::remove_file(folder.at("s.toml")).unwrap();
    let first = fs::read(folder.at("c.bin")).unwrap();
    let mut child = start(&["--resume", "c.bin"]);
    wait_for(&mut child, || {
        is_drawing() && fs::read(folder.at("c.bin")).unwrap() != first
    });
    kill(&child, "KILL");
    child.wait().unwrap();
    assert!(is_drawing());

    let second = fs::read(folder.at("c.bin")).unwrap();
    let mut child = start(&["--resume", "c.bin"]);
    wait_for(&mut child, || fs::read(folder.at("c.bin")).unwrap() != second);
    kill(&child, "TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", said(&output));
    assert_eq!(folder.names(), ["c.bin"]);

    let refuse = |args: &[&str], expect: &str| {
        let output = folder.wave(&[&["--resume=c.bin"], args].concat());
        assert!(
            !output.status.success() && said(&output).contains(expect),
            "{}",
            said(&output)
        );
    };
    refuse(
        &["--size=48"],
        "--resume c.bin: it was made with --size 64; --size 48 cannot go on from it",
    );
    refuse(
        &["--dtype=f16"],
        "it was made with --dtype f32; --dtype f16 cannot",
    );
    refuse(&["--time-step=1e-9"], "it was made with --time-step ");
    refuse(
        &["--scene=lens"],
        "it is of the scene s.toml as that was then, not of --scene lens",
    );
    refuse(&["--steps=1"], "steps are done, --steps asks for 1 in all");
    assert_eq!(folder.names(), ["c.bin"]);
    let done: u64 = said(&output)
        .split("interrupted after ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let steps = (done + 10).to_string();
    let output = folder.wave(&["--resume", "c.bin", "--steps", &steps, "--frames", "2"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(folder.names(), ["a.png", "c.bin", "p.csv", "w.png"]);
    assert_eq!(
        fs::read_to_string(folder.at("p.csv")).unwrap().lines().count() as u64,
        done + 11
    );
}

/// As `nohup` asks.
#[test]
#[cfg(unix)]
fn a_signal_that_is_ignored_stays_ignored() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let script = format!(
        "trap '' HUP; exec {} wave --backend cpu --scene s.toml --steps 100000000 --checkpoint c.bin --checkpoint-every 20ms",
        env!("CARGO_BIN_EXE_perpetua")
    );
    let child = Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder.0.path())
        .stderr(std::process::Stdio::piped())
        .spawn();
    let mut child = child.unwrap();
    let state = || fs::read(folder.at("c.bin")).unwrap_or_default();
    wait_for(&mut child, || !state().is_empty());
    kill(&child, "HUP");
    for _ in 0..2 {
        let before = state();
        wait_for(&mut child, || state() != before);
    }
    kill(&child, "TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", said(&output));
}

/// A pipe that nobody reads is waited for, and a signal ends the wait.
#[test]
#[cfg(unix)]
fn a_pipe_without_a_reader_is_given_up_at_a_signal() {
    use std::io::{BufRead, BufReader};
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let made = Command::new("sh")
        .args(["-c", "mkfifo pipe"])
        .current_dir(folder.0.path())
        .status();
    assert!(made.unwrap().success());
    for (signal, code, option) in [
        ("INT", 130, "--out=pipe"),
        ("TERM", 143, "--probes=pipe"),
        ("QUIT", 131, "--animate=pipe"),
    ] {
        let mut child = folder
            .command(
                &[
                    "--backend=cpu",
                    "--scene=s.toml",
                    "--steps=5",
                    "--out=w.png",
                    option,
                ][..],
            )
            .args(["--checkpoint=c.bin"])
            .stderr(std::process::Stdio::piped())
            .spawn();
        if option == "--out=pipe" {
            // The option may stand but once.
            child.as_mut().unwrap().wait().unwrap();
            child = folder
                .command(&["--backend=cpu", "--scene=s.toml", "--steps=5", option])
                .stderr(std::process::Stdio::piped())
                .spawn();
        }
        let mut child = child.unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // Signals are caught and the wait is ahead, or has begun.
        let awaited = if option == "--animate=pipe" {
            " cells, 5 steps of"
        } else {
            "5 steps in"
        };
        assert!(lines.by_ref().any(|line| line.unwrap().contains(awaited)));
        if option == "--animate=pipe" {
            wait_for(&mut child, || {
                folder.names().iter().any(|name| name.contains("locked"))
            });
        }
        kill(&child, signal);
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{rest:?}");
        assert!(
            rest.iter()
                .any(|line| line.contains("interrupted while writing pipe, which is a pipe")),
            "{rest:?}"
        );
        assert!(
            folder.names().iter().all(|name| !name.contains(".part")),
            "{:?}",
            folder.names()
        );
    }
}

/// Two runs do not keep one state, and a state's own outputs are told; another's do not lead anywhere.
#[test]
#[cfg(unix)]
fn a_checkpoint_is_one_runs_and_its_outputs_are_told() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let base = ["--backend=cpu", "--scene=s.toml", "--checkpoint=c.bin"];
    let mut first = folder
        .command(&[&base[..], &["--steps=100000000"]].concat())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mark = || fs::read_to_string(folder.at("c.perpetua-locked.part.bin")).unwrap_or_default();
    wait_for(&mut first, || !mark().is_empty());
    let second = folder
        .command(&[&base[..], &["--steps=5"]].concat())
        .output()
        .unwrap();
    let expect = format!("c.bin is in use by process {}", first.id());
    assert!(
        !second.status.success() && said(&second).contains(&expect),
        "{}",
        said(&second)
    );
    kill(&first, "TERM");
    assert_eq!(first.wait().unwrap().code(), Some(143));
    assert_eq!(folder.names(), ["c.bin", "s.toml"]);

    // Nor does one take the place of another that has not ended, or of what is no checkpoint.
    let far = tempfile::tempdir().unwrap();
    let picture = far.path().join("far.png");
    let refuse = |expect: &str| {
        let before = fs::read(folder.at("c.bin")).unwrap();
        let output = folder.command(&base).arg("--steps=5").output().unwrap();
        let said = said(&output);
        assert!(!output.status.success() && said.contains(expect), "{said}");
        assert_eq!(fs::read(folder.at("c.bin")).unwrap(), before);
        assert_eq!(folder.names(), ["c.bin", "s.toml"]);
    };
    refuse("of 100000000 steps of a run of s.toml; `perpetua wave --resume c.bin` goes on with it");
    fs::write(folder.at("c.bin"), "a text of mine").unwrap();
    refuse(
        "--checkpoint c.bin: this file is there already, and is no checkpoint of this program's: remove it",
    );
    fs::remove_file(folder.at("c.bin")).unwrap();
    let made = folder
        .command(&base)
        .args(["--steps=5", "--out"])
        .arg(&picture)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", said(&made));
    let resume = |home: &Path| {
        let mut command = folder.command(&["--resume=c.bin", "--steps=8"]);
        command.env("HOME", home).output().unwrap()
    };
    let other = resume(far.path());
    let expect = format!(
        "it was made elsewhere and would write {}: if that is meant, say --out",
        picture.display()
    );
    assert!(
        !other.status.success() && said(&other).contains(&expect),
        "{}",
        said(&other)
    );
    let home = std::env::var_os("HOME").unwrap_or_default();
    let own = resume(Path::new(&home));
    let expect = format!("from the checkpoint: --out {}", picture.display());
    assert!(
        own.status.success() && said(&own).contains(&expect),
        "{}",
        said(&own)
    );
}
