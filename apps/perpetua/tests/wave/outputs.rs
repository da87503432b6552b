//! What is written, and where.

use std::fs;
use std::process::Command;

use super::folder::*;

#[test]
fn all_outputs_are_written_and_a_resumed_run_ends_the_same() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let base = ["--scene", "s.toml", "--dtype", "f32"];
    let run = |more: &[&str]| {
        let output = folder.wave(&[&base[..], more].concat());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    let first = "--steps 50 --out whole.png --probes p.csv --plot p.svg --animate a.png --frames 5";
    run(&first.split(' ').collect::<Vec<_>>());
    run(&["--steps", "21", "--out", "half.png", "--checkpoint", "c.bin"]);
    run(&["--steps", "50", "--out", "resumed.png", "--resume", "c.bin"]);
    let read = |name: &str| fs::read(folder.at(name)).unwrap();
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

/// As on a full disk: a write fails on the way.
/// Some versions of ffmpeg end with success though the file could not be closed on a full disk.
#[test]
#[cfg(unix)]
fn what_ffmpeg_complains_about_is_a_failure() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let tool = folder.at("ffmpeg");
    let script =
        "#!/bin/sh\ncat >/dev/null\nfor last; do :; done\necho half >\"$last\"\necho 'no space left' >&2\n";
    fs::write(&tool, script).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.0.path().display(), std::env::var("PATH").unwrap());
    let output = Command::new(env!("CARGO_BIN_EXE_perpetua"))
        .args(["wave", "--backend", "cpu", "--scene", "s.toml", "--steps", "8"])
        .args(["--frames", "2", "--video", "v.mp4"])
        .env("PATH", path)
        .current_dir(folder.0.path())
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
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let program = env!("CARGO_BIN_EXE_perpetua");
    let script = format!(
        "trap '' XFSZ; ulimit -f 1; exec {program} wave --backend cpu --scene s.toml --steps 5 --checkpoint c.bin --out w.png"
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder.0.path())
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

/// A file's name is the user's.
#[test]
#[cfg(target_os = "linux")]
fn a_scene_may_have_any_name() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let name = std::ffi::OsStr::from_bytes(b"s\xff.toml");
    small(&folder.0.path().join(name));
    let mut command = folder.command(&["--backend=cpu", "--steps=5", "--scene"]);
    let output = command.arg(name).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(folder.at("wave.png").exists());
}

/// Nothing that is no file is replaced by one, and nobody who does not listen ends a run.
#[test]
#[cfg(unix)]
fn devices_and_pipes_are_written_and_a_deaf_stderr_ends_nothing() {
    use std::os::unix::fs::FileTypeExt;
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let base = ["--backend=cpu", "--scene=s.toml", "--steps=5"];
    let made = |command: &str| {
        let status = Command::new("sh")
            .args(["-c", command])
            .current_dir(folder.0.path())
            .status();
        status.is_ok_and(|status| status.success())
    };
    assert!(made("mkfifo pipe"));
    let reader = {
        let pipe = folder.at("pipe");
        std::thread::spawn(move || fs::read(pipe).unwrap())
    };
    let (closed, stderr) = std::io::pipe().unwrap();
    drop(closed);
    let mut to_pipe = folder
        .command(&[&base[..], &["--out=pipe"]].concat())
        .stderr(stderr)
        .spawn()
        .unwrap();
    assert!(to_pipe.wait().unwrap().success());
    assert!(reader.join().unwrap().starts_with(b"\x89PNG"));
    assert!(fs::metadata(folder.at("pipe")).unwrap().file_type().is_fifo());

    #[cfg(target_os = "linux")]
    {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = folder.command(&[&base[..], &["--out=w.png"]].concat());
        assert!(command.stderr(full).status().unwrap().success());
        assert!(fs::read(folder.at("w.png")).unwrap().starts_with(b"\x89PNG"));
        if !made("mknod full c 1 7") {
            println!("left out: a device node cannot be made here");
            return;
        }
        let output = folder.wave(&["--scene=s.toml", "--steps=5", "--out=full"]);
        assert!(!output.status.success(), "{}", said(&output));
        assert!(said(&output).contains("writing full: "), "{}", said(&output));
        assert!(
            fs::metadata(folder.at("full"))
                .unwrap()
                .file_type()
                .is_char_device()
        );
    }
}

#[test]
fn tile_actors_draw_what_launched_steps_draw() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
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
    let picture = |name: &str| fs::read(folder.at(name)).unwrap();
    assert!(picture("launch.png") == picture("actors.png"));
    let (done, said) = draw(&["--mode", "actors", "--probes", "p.csv"]);
    assert!(
        !done && said.contains("--probes: tile actors cannot do that yet"),
        "{said}"
    );
}
