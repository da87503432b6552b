//! `perpetua wave` as a user meets it: what it writes, and what it says when something is wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("perpetua-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn wave(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_perpetua"))
            .args(["wave", "--backend", "cpu"])
            .args(args)
            .current_dir(&self.0)
            .output()
            .unwrap()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.0)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn small(path: &Path) {
    let scene = "size = [1.0, 1.0]\ncells = 48\nborder_width = 0.2\n[[sources]]\nat = [0.4, 0.5]\nwave = \"ricker\"\n\
        frequency = 1500.0\n[[probes]]\nname = \"a, b\"\nat = [0.6, 0.5]\n";
    fs::write(path, scene).unwrap();
}

#[test]
fn all_outputs_are_written_and_a_resumed_run_ends_the_same() {
    let folder = Folder::new("outputs");
    small(&folder.0.join("s.toml"));
    let base = ["--scene", "s.toml", "--dtype", "f32"];
    let run = |more: &[&str]| {
        let output = folder.wave(&[&base[..], more].concat());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    run(&[
        "--steps",
        "50",
        "--out",
        "whole.png",
        "--probes",
        "p.csv",
        "--plot",
        "p.svg",
        "--animate",
        "a.png",
        "--frames",
        "5",
    ]);
    run(&["--steps", "21", "--out", "half.png", "--checkpoint", "c.bin"]);
    run(&["--steps", "50", "--out", "resumed.png", "--resume", "c.bin"]);
    let read = |name: &str| fs::read(folder.0.join(name)).unwrap();
    assert_eq!(read("whole.png"), read("resumed.png"));
    assert_ne!(read("whole.png"), read("half.png"));
    let csv = String::from_utf8(read("p.csv")).unwrap();
    assert_eq!(csv.lines().count(), 51);
    assert!(csv.starts_with("step,time (s),\"a, b\"\n0,0e0,"), "{csv:.80}");
    assert!(read("p.svg").starts_with(b"<svg"));
    let animation = png::Decoder::new(std::io::Cursor::new(read("a.png")))
        .read_info()
        .unwrap();
    assert_eq!(animation.info().animation_control().unwrap().num_frames, 5);
    let names = [
        "a.png",
        "c.bin",
        "half.png",
        "p.csv",
        "p.svg",
        "resumed.png",
        "s.toml",
        "whole.png",
    ];
    assert_eq!(folder.names(), names);
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_left_behind() {
    let folder = Folder::new("mistakes");
    small(&folder.0.join("s.toml"));
    fs::write(
        folder.0.join("bad.toml"),
        "size = [1.0, 1.0]\nbordr = \"absorb\"\n",
    )
    .unwrap();
    fs::write(folder.0.join("bad.png"), "no picture").unwrap();
    fs::write(folder.0.join("c.bin"), "no checkpoint at all").unwrap();
    let before = folder.names();
    let check = |args: &[&str], expect: &str| {
        let output = folder.wave(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains(expect),
            "{args:?}: {said}"
        );
        assert_eq!(folder.names(), before, "{args:?}");
    };
    check(
        &["--scene", "bad.toml"],
        "bad.toml, line 2: unknown field `bordr`",
    );
    check(
        &["--scene", "bad.png"],
        "bad.png: the picture cannot be read as PNG",
    );
    check(&["--scene", "none.toml"], "reading none.toml: No such file");
    check(
        &["--scene", "moon"],
        "there is no scene `moon`; there are: double-slit, lens",
    );
    check(
        &["--scene", "s.toml", "--time-step", "1"],
        "the largest stable one is 4.",
    );
    check(
        &["--scene", "s.toml", "--size", "4"],
        "the size is 4; 8 to 1,048,576",
    );
    check(
        &["--scene", "s.toml", "--resume", "c.bin"],
        "--resume c.bin: the checkpoint is no checkpoint",
    );
    check(
        &["--scene", "s.toml", "--out", "no/w.png"],
        "there is no folder no",
    );
    check(&["--scene", "s.toml", "--layer", "3"], "--layer 3: there are 1");
    check(&["--scene", "s.toml", "--frames", "0"], "0 is not in 1..=100000");
}

#[test]
fn who_has_read_enough_may_close_the_pipe() {
    for args in [
        &["wave", "--list-scenes"][..],
        &["devices"],
        &["completions", "bash"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_perpetua"))
            .args(args)
            .stdout(writer)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && !said.contains("panicked"),
            "{args:?}: {said}"
        );
    }
}

/// As on a full disk: a write fails on the way.
/// Some versions of ffmpeg end with success though the file could not be closed on a full disk.
#[test]
#[cfg(unix)]
fn what_ffmpeg_complains_about_is_a_failure() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("ffmpeg");
    small(&folder.0.join("s.toml"));
    let tool = folder.0.join("ffmpeg");
    let script =
        "#!/bin/sh\ncat >/dev/null\nfor last; do :; done\necho half >\"$last\"\necho 'no space left' >&2\n";
    fs::write(&tool, script).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.0.display(), std::env::var("PATH").unwrap());
    let output = Command::new(env!("CARGO_BIN_EXE_perpetua"))
        .args(["wave", "--backend", "cpu", "--scene", "s.toml", "--steps", "8"])
        .args(["--frames", "2", "--video", "v.mp4"])
        .env("PATH", path)
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && error.contains("no space left"),
        "{error}"
    );
    assert!(
        !folder.names().iter().any(|n| n.ends_with(".mp4")),
        "{:?}",
        folder.names()
    );
}

#[test]
#[cfg(unix)]
fn a_write_that_fails_is_said_and_leaves_nothing() {
    let folder = Folder::new("full");
    small(&folder.0.join("s.toml"));
    let program = env!("CARGO_BIN_EXE_perpetua");
    let script = format!(
        "trap '' XFSZ; ulimit -f 1; exec {program} wave --backend cpu --scene s.toml --steps 5 --checkpoint c.bin --out w.png"
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("error: writing "),
        "{said}"
    );
    assert!(
        folder.names().iter().all(|n| !n.contains("part") && n != "c.bin"),
        "{:?}",
        folder.names()
    );
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_keeps_its_checkpoint_and_no_half_written_file() {
    let folder = Folder::new("interrupt");
    let mut child = Command::new(env!("CARGO_BIN_EXE_perpetua"))
        .args([
            "wave",
            "--backend",
            "cpu",
            "--size",
            "128",
            "--steps",
            "100000000",
        ])
        .args(["--animate", "a.png", "--checkpoint", "c.bin"])
        .current_dir(&folder.0)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Once frames are being written, steps are being made.
    while !folder.names().iter().any(|n| n.contains(".part")) {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // The shell's own `kill`: a small system has no program of that name.
    let killed = Command::new("sh")
        .args(["-c", "kill -INT $0", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("of 100000000 steps; go on with --resume c.bin"),
        "{said}"
    );
    assert!(!output.status.success());
    assert_eq!(folder.names(), ["c.bin"]);
}

#[test]
fn tile_actors_draw_what_launched_steps_draw() {
    let folder = Folder::new("actors");
    small(&folder.0.join("s.toml"));
    let draw = |more: &[&str]| {
        let output = folder.wave(&[&["--scene", "s.toml", "--steps", "200"], more].concat());
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let launched = draw(&["--out", "launch.png"]);
    let actors = draw(&["--mode", "actors", "--out", "actors.png"]);
    assert!(launched.0 && actors.0, "{launched:?} {actors:?}");
    assert!(actors.1.contains("tile actors"), "{}", actors.1);
    let picture = |name: &str| fs::read(folder.0.join(name)).unwrap();
    assert!(picture("launch.png") == picture("actors.png"));
    let (done, said) = draw(&["--mode", "actors", "--probes", "p.csv"]);
    assert!(
        !done && said.contains("--probes: tile actors cannot do that yet"),
        "{said}"
    );
}
