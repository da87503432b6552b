//! `perpetua wave` as a user meets it: what it writes, and what it says when something is wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of its own, removed at the end.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perpetua"));
        command.arg("wave").args(args).current_dir(self.0.path());
        command
    }

    fn wave(&self, args: &[&str]) -> Output {
        self.command(&[&["--backend", "cpu"], args].concat())
            .output()
            .unwrap()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn small(path: &Path) {
    let scene = "size = [1.0, 1.0]\ncells = 48\nborder_width = 0.2\n[[sources]]\nat = [0.4, 0.5]\nwave = \"ricker\"\n\
        frequency = 1500.0\n[[probes]]\nname = \"a, b\"\nat = [0.6, 0.5]\n";
    fs::write(path, scene).unwrap();
}

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

#[test]
fn what_is_wrong_is_said_and_nothing_is_left_behind() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    fs::write(folder.at("bad.toml"), "size = [1.0, 1.0]\nbordr = \"absorb\"\n").unwrap();
    fs::write(folder.at("bad.png"), "no picture").unwrap();
    fs::write(folder.at("c.bin"), "no checkpoint at all").unwrap();
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
    for range in ["0", "-1", "nan", "inf"] {
        check(&["--range", range], "it must be a number above 0, and finite");
    }
    check(&["--checkpoint-every=0s"], "it must be above 0");
    check(&["--checkpoint-every=soon"], "as in 60s, 5m or 1h");
    check(
        &["--checkpoint-every=1m"],
        "--checkpoint-every: say where with --checkpoint FILE",
    );
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
            // As on a machine without a session: drivers are to say nothing of it.
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("WAYLAND_DISPLAY")
            .output()
            .unwrap();
        assert!(
            output.status.success() && said(&output).is_empty(),
            "{args:?}: {}",
            said(&output)
        );
    }
}

#[test]
#[cfg(all(feature = "window", target_os = "linux"))]
fn a_window_refuses_what_it_cannot_do() {
    let folder = Folder::new();
    for (args, expect) in [
        (
            &["--window", "--video", "v.mp4"][..],
            "error: --video: a window cannot do that",
        ),
        (
            &["--window", "--out", "w.png"],
            "error: --out: a window cannot do that",
        ),
        (
            &["--window", "--size", "64"],
            "error: there is no display for a window",
        ),
    ] {
        let mut command = folder.command(args);
        for name in ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"] {
            command.env_remove(name);
        }
        let output = command.output().unwrap();
        assert!(
            !output.status.success() && said(&output).starts_with(expect),
            "{}",
            said(&output)
        );
    }
    assert_eq!(folder.names(), [""; 0]);
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

/// The shell's own `kill`: a small system has no program of that name.
#[cfg(unix)]
fn kill(child: &std::process::Child, signal: &str) {
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
fn wait_for(child: &mut std::process::Child, reached: impl Fn() -> bool) {
    while !reached() {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

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
    let mark = || fs::read_to_string(folder.at("c.locked.part.bin")).unwrap_or_default();
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

    let far = tempfile::tempdir().unwrap();
    let picture = far.path().join("far.png");
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

/// What a buffer cannot hold is known before the scene's cells are made.
#[test]
#[cfg(feature = "wgpu")]
fn a_grid_that_no_buffer_holds_is_refused_before_it_is_made() {
    let folder = Folder::new();
    let output = folder
        .command(&["--backend=wgpu", "--size=40000", "--steps=1"])
        .output()
        .unwrap();
    let words = said(&output);
    assert!(
        !output.status.success() && !words.contains("preparing"),
        "{words}"
    );
    if !words.contains("--size 40000: the field takes 6400000000 bytes") {
        println!("left out: {words}");
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
