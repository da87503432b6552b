//! What is written, and where.

use std::fs;

use super::folder::*;

#[test]
fn all_outputs_are_written_and_a_resumed_run_ends_the_same() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let base = ["--scene", "s.toml", "--dtype", "f32"];
    let run = |more: &[&str]| {
        let output = folder.wave(&[&base[..], more].concat());
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
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
    let again = run(&["--steps", "50", "--out", "resumed.png", "--resume", "c.bin"]);
    let expect = "no step was left: the checkpoint has all 50 steps; --steps N goes on to the N-th";
    assert!(again.contains(expect), "{again}");
    assert!(csv.starts_with("step,time (s),\"a, b\"\n0,0,"), "{csv:.80}");
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

/// What a shell has put into a file already stays there, and what it puts there afterwards follows.
#[test]
#[cfg(target_os = "linux")]
fn a_file_that_is_open_already_is_written_on() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let wave = format!(
        "{} wave --backend cpu --scene s.toml --steps 5 --out w.png --probes /dev/stdout",
        env!("CARGO_BIN_EXE_perpetua")
    );
    let script = format!("echo first >> h.csv; {wave} >> h.csv; (echo head; {wave}; echo foot) > g.csv");
    assert!(folder.shell(&script).status().unwrap().success());
    let read = |name: &str| fs::read_to_string(folder.at(name)).unwrap();
    let (appended, between) = (read("h.csv"), read("g.csv"));
    let table = appended.strip_prefix("first\n").unwrap();
    assert_eq!(table.lines().count(), 1 + 5, "{table}");
    assert_eq!(between, format!("head\n{table}foot\n"));
}

/// ffmpeg would begin a file anew that a shell has open.
#[test]
#[cfg(target_os = "linux")]
fn a_video_does_not_go_to_what_is_open_already() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    std::os::unix::fs::symlink("/dev/stdout", folder.at("v.mp4")).unwrap();
    fs::write(folder.at("all.txt"), "mine\n").unwrap();
    let command = folder.shell(&format!(
        "{} wave --backend cpu --scene s.toml --steps 5 --frames 2 --video v.mp4 >> all.txt",
        env!("CARGO_BIN_EXE_perpetua")
    ));
    let output = ended(command);
    let words = said(&output);
    assert!(
        !output.status.success()
            && words.contains("--video v.mp4: ffmpeg needs a file of its own, and this is none"),
        "{words}"
    );
    assert_eq!(fs::read_to_string(folder.at("all.txt")).unwrap(), "mine\n");
}

/// What is more than memory is known before the first step; what nobody asks for needs none.
#[test]
fn a_recording_beyond_memory_is_refused_and_none_is_made_unasked() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let base = ["--scene=s.toml", "--steps=9007199254740000"];
    for (option, bytes) in [
        ("--probes=p.csv", "108086391056880000 bytes"),
        ("--plot=p.svg", "396316767208560000 bytes"),
    ] {
        let output = folder.wave(&[&base[..], &[option]].concat());
        let words = said(&output);
        let name = option.split('=').next().unwrap();
        let expect = format!("{name}: 9007199254740000 steps of 1 probe take {bytes} of memory, and ");
        assert!(!output.status.success() && words.contains(&expect), "{words}");
    }
    assert_eq!(folder.names(), ["s.toml"]);

    // Eight probes take 131,072 steps until their part of the device is full.
    let probe = |i: usize| format!("[[probes]]\nat = [0.{i}5, 0.5]\n");
    let probes: String = (0..8).map(probe).collect();
    let scene = "size = [1.0, 1.0]\n[[sources]]\nat = [0.4, 0.5]\nwave = \"impulse\"\n";
    fs::write(folder.at("s.toml"), [scene, &probes].concat()).unwrap();
    let args = [
        "--scene=s.toml",
        "--size=8",
        "--checkpoint=c.bin",
        "--steps=131100",
    ];
    let output = folder.wave(&args);
    assert!(output.status.success(), "{}", said(&output));
    let output = folder.wave(&["--resume=c.bin", "--steps=131110", "--probes=p.csv"]);
    let words = said(&output);
    let from = words.split("probes are recorded from step ").nth(1);
    let from: usize = from.unwrap().split(':').next().unwrap().parse().unwrap();
    assert!(output.status.success() && from > 0, "{words}");
    let table = fs::read_to_string(folder.at("p.csv")).unwrap();
    assert!(table.lines().nth(1).unwrap().starts_with(&format!("{from},")));
    assert_eq!(table.lines().count(), 1 + 131_110 - from);
}

/// The state is worth more than the film.
#[test]
#[cfg(unix)]
fn a_film_that_fails_leaves_the_state() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let script = "#!/bin/sh\n[ \"$1\" = -version ] && exit\nhead -c 20000 >/dev/null\necho 'no space left' >&2\nexit 1\n";
    fs::write(folder.at("ffmpeg"), script).unwrap();
    fs::set_permissions(folder.at("ffmpeg"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.0.path().display(), std::env::var("PATH").unwrap());
    let options = "--scene s.toml --steps 200 --frames 100 --video v.mp4 --checkpoint c.bin --out w.png";
    let options: Vec<&str> = options.split(' ').collect();
    let mut command = folder.command(&[&["--backend", "cpu"], &*options].concat());
    command.env("PATH", path);
    let output = ended(command);
    let words = said(&output);
    assert!(
        !output.status.success()
            && words.contains("no space left; go on with `perpetua wave --resume c.bin`"),
        "{words}"
    );
    assert_eq!(folder.names(), ["c.bin", "ffmpeg", "s.toml"]);
    let resumed = folder.wave(&["--resume", "c.bin", "--animate", "a.png", "--video", "none/v.mp4"]);
    assert!(
        said(&resumed).contains("there is no folder"),
        "{}",
        said(&resumed)
    );
}

/// The last state from which something could go on stays.
#[test]
fn a_field_that_is_no_longer_finite_is_not_kept() {
    let folder = Folder::new();
    let scene = "size = [1.0, 1.0]\ncells = 48\n[[sources]]\nat = [0.4, 0.5]\nwave = \"sine\"\n\
        frequency = 1500.0\namplitude = 1e25\n";
    fs::write(folder.at("s.toml"), scene).unwrap();
    let output = folder.wave(&[
        "--scene=s.toml",
        "--dtype=f16",
        "--steps=300",
        "--checkpoint=c.bin",
    ]);
    let words = said(&output);
    assert!(
        !output.status.success() && words.matches("no longer finite").count() == 1,
        "{words}"
    );
    assert_eq!(folder.names(), ["s.toml"]);
}

/// Files' kinds are what their names say.
#[test]
fn names_of_other_kinds_of_files_are_refused() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    for (name, text) in [("s.rs", "fn f() {}"), ("notes.md", "mine")] {
        fs::write(folder.at(name), text).unwrap();
    }
    for (args, expect) in [
        (
            "--out x.jpg",
            "--out x.jpg: what is written is PNG: name it x.png",
        ),
        ("--plot x.png", "what is written is SVG: name it x.svg"),
        ("--probes x.json", "what is written is CSV: name it x.csv"),
        ("--mode actors --out x.svg", "what is written is PNG"),
        ("--out s.rs", "--out s.rs: what is written is PNG: name it s.png"),
        ("--probes notes.md", "what is written is CSV: name it notes.csv"),
        ("--animate notes.md", "what is written is PNG: name it notes.png"),
        ("--mode actors --frames 7", "tile actors make no films yet"),
    ] {
        let args: Vec<&str> = args.split(' ').collect();
        let output = folder.wave(&[&["--scene", "s.toml", "--steps", "3"], &*args].concat());
        assert!(
            !output.status.success() && said(&output).contains(expect),
            "{}",
            said(&output)
        );
    }
    assert_eq!(folder.names(), ["notes.md", "s.rs", "s.toml"]);
    assert_eq!(fs::read(folder.at("notes.md")).unwrap(), b"mine");
}

/// Who asks for something else gets no picture beside it; the field is looked at all the same.
#[test]
fn no_picture_is_drawn_where_something_else_is_asked_for() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    for (args, made) in [
        ("--animate a.png --frames 2", &["a.png"][..]),
        ("--probes p.csv", &["p.csv"]),
        ("--plot p.svg --out w.png", &["p.svg", "w.png"]),
        ("--checkpoint c.bin", &["c.bin", "wave.png"]),
    ] {
        let args: Vec<&str> = args.split(' ').collect();
        let output = folder.wave(&[&["--scene", "s.toml", "--steps", "3"], &*args].concat());
        assert!(output.status.success(), "{}", said(&output));
        let mut names = folder.names();
        names.retain(|name| name != "s.toml");
        assert_eq!(names, made);
        names
            .iter()
            .for_each(|name| fs::remove_file(folder.at(name)).unwrap());
    }
    let scene = fs::read_to_string(folder.at("s.toml")).unwrap();
    let strong = scene.replace("frequency", "amplitude = 1e25\nfrequency");
    fs::write(folder.at("s.toml"), strong).unwrap();
    let words = said(&folder.wave(&["--scene=s.toml", "--dtype=f16", "--steps=300", "--probes=p.csv"]));
    assert!(words.contains("no longer finite"), "{words}");
}

/// What a scene asks for and does not get is said.
#[test]
fn what_a_scene_does_not_get_is_said() {
    let folder = Folder::new();
    let scene = "size = [1.0, 1.0]\ncells = 64\n[materials.steel]\nspeed = 5900.0\n\
        [[shapes]]\nmaterial = \"wall\"\nbox = { from = [0.7, 0.0], to = [0.704, 1.0] }\n\
        [[shapes]]\nmaterial = \"wall\"\ndisc = { center = [0.5, 0.5], radius = 0.2 }\n\
        [[shapes]]\nmaterial = \"wall\"\npolygon = [[0.1, 0.1], [0.2, 0.9], [0.21, 0.9], [0.11, 0.1]]\n\
        [[sources]]\nat = [0.5, 0.5]\nwave = \"impulse\"\n[[probes]]\nname = \"deaf\"\nat = [0.5, 0.45]\n\
        [[probes]]\nname = \"heard\"\nat = [0.9, 0.9]\n";
    fs::write(folder.at("s.toml"), scene).unwrap();
    let output = folder.wave(&["--scene=s.toml", "--steps=3"]);
    let words = said(&output);
    for expect in [
        "shape 1, of wall, is not there",
        "shape 3, of wall, is 0.64 cells thin and slanted: it may have holes; --size 101 closes it",
        "source 1 lies in a wall",
        "probe 1, deaf, lies in a wall: it records zeros",
        "`steel`, a material that no cell has, makes the time step 17.2 times as short",
    ] {
        assert!(output.status.success() && words.contains(expect), "{words}");
    }
    assert!(
        !words.contains("shape 2") && !words.contains("probe 2"),
        "{words}"
    );
    let fine = said(&folder.wave(&["--scene=s.toml", "--steps=3", "--size=101"]));
    assert!(!fine.contains("shape 3"), "{fine}");

    // Of many the first are named.
    let thin = "[[shapes]]\nmaterial = \"wall\"\nbox = { from = [0.7, 0.0], to = [0.704, 1.0] }\n";
    let name = "n".repeat(100_000);
    let scene = format!(
        "name = \"{name}\"\nsize = [1.0, 1.0]\ncells = 64\n{}",
        thin.repeat(900)
    );
    fs::write(folder.at("s.toml"), scene).unwrap();
    let words = said(&folder.wave(&["--scene=s.toml", "--steps=3"]));
    assert!(
        words.contains("warning: 897 more shapes are not there"),
        "{words}"
    );
    assert!(words.lines().count() < 12 && words.len() < 2000, "{words}");
}

/// A run with a tool in ffmpeg's place.
#[cfg(unix)]
fn with_ffmpeg(folder: &Folder, script: &str, args: &[&str]) -> std::process::Command {
    use std::os::unix::fs::PermissionsExt;
    let tool = folder.at("ffmpeg");
    let script = format!("#!/bin/sh\n[ \"$1\" = -version ] && exit\nfor last; do :; done\n{script}\n");
    fs::write(&tool, script).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.0.path().display(), std::env::var("PATH").unwrap());
    let mut command = folder.command(&["--backend", "cpu", "--scene", "s.toml", "--video", "v.mp4"]);
    command.args(args).env("PATH", path);
    command
}

/// Whether ffmpeg has made a film is told by how it ended and by the file; some versions end with success though the file could not be
/// closed on a full disk.
#[test]
#[cfg(unix)]
fn a_film_is_judged_by_ffmpegs_end_and_by_its_file() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let run = |script: &str| {
        let script = format!("cat >/dev/null\n{script}");
        let output = ended(with_ffmpeg(&folder, &script, &["--steps", "8", "--frames", "2"]));
        (
            output.status.code(),
            said(&output),
            fs::read(folder.at("v.mp4")).ok(),
        )
    };
    let (code, words, film) = run("echo film >\"$last\"; echo 'loader: no such cache' >&2");
    assert_eq!(code, Some(0), "{words}");
    assert!(
        words.contains("wrote v.mp4\nnote: ffmpeg says: loader: no such cache"),
        "{words}"
    );
    assert_eq!(film.as_deref(), Some(&b"film\n"[..]));
    for (script, expect) in [
        (
            "echo half >\"$last\"; echo 'Error closing file: No space left on device' >&2",
            "ffmpeg says: Error closing file: No space left on device",
        ),
        ("", "ffmpeg has written nothing"),
        ("echo half >\"$last\"; exit 3", "ffmpeg ended with exit status: 3"),
        ("echo half >\"$last\"; echo no >&2; exit 3", "ffmpeg says: no"),
    ] {
        let (code, words, film) = run(script);
        assert!(code == Some(1) && words.contains(expect), "{words}");
        // The film of before stays.
        assert_eq!(film.as_deref(), Some(&b"film\n"[..]));
    }
    assert!(!folder.names().iter().any(|name| name.contains(".part")));
}

/// An ffmpeg that takes no frame, or does not end, is waited for until a signal comes.
#[test]
#[cfg(unix)]
fn a_signal_ends_the_wait_for_ffmpeg() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let options = ["--steps=400", "--frames=200", "--checkpoint=c.bin"];
    for (script, signal, code, expect) in [
        (
            "echo here >began; sleep 1000",
            "INT",
            130,
            "of 400 steps; go on with `perpetua wave --resume c.bin`; its film will begin where this ended",
        ),
        (
            "cat >/dev/null; echo here >began; sleep 1000",
            "TERM",
            143,
            "interrupted while ffmpeg took its time",
        ),
    ] {
        let mut child = with_ffmpeg(&folder, script, &options)
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        wait_for(&mut child, || folder.at("began").exists());
        // By then it waits, or sees the signal at its next look.
        std::thread::sleep(std::time::Duration::from_millis(300));
        kill(&child, signal);
        let output = end_of(child);
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(said(&output).contains(expect), "{}", said(&output));
        assert!(folder.at("c.bin").exists() && !folder.at("v.mp4").exists());
        assert!(!folder.names().iter().any(|name| name.contains(".part")));
        fs::remove_file(folder.at("c.bin")).unwrap();
        fs::remove_file(folder.at("began")).unwrap();
    }
}

/// As on a full disk: a write fails on the way.
#[test]
#[cfg(unix)]
fn a_write_that_fails_is_said_and_leaves_nothing() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let program = env!("CARGO_BIN_EXE_perpetua");
    let script = format!(
        "ulimit -f 1; exec {program} wave --backend cpu --scene s.toml --steps 5 --checkpoint c.bin --out w.png"
    );
    let output = ended(folder.shell(&script));
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
    command.arg(name);
    let output = ended(command);
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
        let status = folder.shell(command).status();
        status.is_ok_and(|status| status.success())
    };
    folder.make_pipe("pipe");
    let reader = {
        let pipe = folder.at("pipe");
        std::thread::spawn(move || fs::read(pipe).unwrap())
    };
    let (closed, stderr) = std::io::pipe().unwrap();
    drop(closed);
    let to_pipe = folder
        .command(&[&base[..], &["--out=pipe"]].concat())
        .stderr(stderr)
        .spawn()
        .unwrap();
    assert!(end_of(to_pipe).status.success());
    let picture = within(move || reader.join().unwrap());
    assert!(picture.starts_with(b"\x89PNG"));
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
