//! What is said.

use std::fs;
use std::process::Command;

use super::folder::*;

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
        "--time-step 1.0: a time step of 1 s is unstable",
    );
    check(
        &["--scene", "s.toml", "--size", "4"],
        "the size is 4; 8 to 1,048,576",
    );
    check(
        &["--scene", "s.toml", "--resume", "c.bin"],
        "--resume c.bin: this is no checkpoint",
    );
    check(
        &["--scene", "s.toml", "--out", "no/w.png"],
        "there is no folder no",
    );
    check(
        &["--scene", "s.toml", "--layer", "3"],
        "--layer 3: the scene has 1 layer",
    );
    check(&["--scene", "s.toml", "--frames", "0"], "0 is not in 1..=100000");
    for range in ["0", "-1", "nan", "inf"] {
        check(&["--range", range], "it must be a number above 0, and finite");
    }
    check(
        &["--out=x.JPG"],
        "--out x.JPG: what is written is PNG: name it x.png",
    );
    check(
        &["--animate=x.gif"],
        "--animate x.gif: what is written is PNG: name it x.png",
    );
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
            // And where they can keep nothing.
            .env("HOME", "/nonexistent")
            .env("XDG_CACHE_HOME", "/dev/null")
            .output()
            .unwrap();
        assert!(
            output.status.success() && said(&output).is_empty(),
            "{args:?}: {}",
            said(&output)
        );
    }
}

/// Who gives it no place for its output gets no output, which is no success. A run that only writes a file has one.
#[test]
#[cfg(target_os = "linux")]
fn an_output_that_is_closed_is_an_error() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let program = env!("CARGO_BIN_EXE_perpetua");
    let closed = "error: writing the output: Bad file descriptor (os error 9)\n";
    for (args, code, expect) in [
        ("devices", 1, closed),
        ("wave --list-scenes", 1, closed),
        ("completions bash", 1, closed),
        ("--help", 1, closed),
        (
            "wave --backend cpu --scene s.toml --steps 10 --out w.png",
            0,
            "wrote w.png\n",
        ),
    ] {
        let output = ended(folder.shell(&format!("exec {program} {args} >&-")));
        let said = said(&output);
        assert!(
            output.status.code() == Some(code) && said.ends_with(expect),
            "{args}: {said}"
        );
        let output = ended(folder.shell(&format!("exec {program} {args} <>/dev/null >&0")));
        assert!(output.status.success(), "{args}: {output:?}");
    }
}

#[test]
#[cfg(all(feature = "window", target_os = "linux"))]
fn a_window_refuses_what_it_cannot_do() {
    use perpetua::device::{BackendKind, Device};
    let folder = Folder::new();
    let cuda = match Device::new(BackendKind::Cuda, 0) {
        Ok(_) => "error: there is no display for a window".to_owned(),
        Err(error) => format!("error: {error}"),
    };
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
            &["--window", "--checkpoint", "c.bin"],
            "error: --checkpoint: a window cannot do that",
        ),
        (&["--window", "--size", "64", "--backend", "cuda"], &cuda),
        (
            &["--window", "--size", "64"],
            "error: there is no display for a window",
        ),
    ] {
        let mut command = folder.command(args);
        for name in ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"] {
            command.env_remove(name);
        }
        let output = ended(command);
        assert!(
            !output.status.success() && said(&output).starts_with(expect),
            "{}",
            said(&output)
        );
    }
    assert_eq!(folder.names(), [""; 0]);
}

/// Nothing is said of a run that cannot be.
#[test]
#[cfg(unix)]
fn what_cannot_be_written_is_known_before_the_run() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    fs::write(folder.at("saxpy.rs"), "fn f() {}").unwrap();
    for (option, expect) in [
        (
            "--checkpoint=saxpy.rs",
            "error: --checkpoint saxpy.rs: this file is there already, and is no checkpoint",
        ),
        ("--video=v.mp4", "error: --video v.mp4: ffmpeg cannot be started"),
    ] {
        // No ffmpeg is there.
        let output = ended(folder.shell(&format!(
            "PATH=/nonexistent exec {} wave --backend cpu --scene s.toml {option}",
            env!("CARGO_BIN_EXE_perpetua")
        )));
        let words = said(&output);
        assert!(!output.status.success() && words.starts_with(expect), "{words}");
    }
    assert_eq!(folder.names(), ["s.toml", "saxpy.rs"]);
}

/// A disk that is full is not silent, of help as of results.
#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_printed_is_an_error() {
    for args in ["--help", "wave --help", "help wave", "--version", "devices"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_perpetua"))
            .args(args.split(' '))
            .stdout(full)
            .output()
            .unwrap();
        let words = said(&output);
        assert_eq!(output.status.code(), Some(1), "{args}: {words}");
        assert!(
            words.starts_with("error: writing the output: No space left"),
            "{args}: {words}"
        );
    }
}

/// What becomes of a file's other names is nobody's surprise.
#[test]
fn help_says_how_files_are_written() {
    let folder = Folder::new();
    let help = printed(folder.command(&["--help"]));
    let text = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(text.contains("Files are written whole or not at all. "), "{text}");
}

/// What help shows as a default can be given.
#[test]
fn defaults_of_lists_are_shown_as_they_are_written() {
    let folder = Folder::new();
    let help = printed(folder.command(&["bench", "--help"]));
    let text = String::from_utf8_lossy(&help.stdout).into_owned();
    for shown in [
        "[default: 64,128,256,512,1024,2048,4096]",
        "[default: 64,128,256]",
        "[default: 256,1024]",
        "[default: double-slit,lens,",
    ] {
        assert!(text.contains(shown), "{text}");
    }
    assert!(text.contains("divided by that"), "{text}");
    // An option with a value says what it is without it; a file is written to none.
    let mut options: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("--") {
            options.push(line.to_owned());
        } else if let Some(option) = options.last_mut() {
            option.extend([" ", line]);
        }
    }
    options.retain(|option| option.contains('<'));
    assert!(options.len() > 10, "{text}");
    for option in options {
        let is_told =
            option.contains("default") || option.contains("if left out") || option.contains("<FILE>");
        assert!(is_told, "{option}");
    }
}

/// What was asked for beside the table is there, though nobody reads the table to its end.
#[test]
fn a_benchs_files_are_written_when_nobody_reads_its_table() {
    let folder = Folder::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let args = "bench --backend cpu --size 16 --cube 8 --scene none --seconds 0.01 --csv t.csv --plot t.svg";
    let args: Vec<&str> = args.split(' ').collect();
    let mut command = folder.command(&args);
    command.stdout(writer);
    let output = ended(command);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(folder.names(), ["t.csv", "t.svg"]);
    let table = fs::read_to_string(folder.at("t.csv")).unwrap();
    assert_eq!(table.lines().count(), 3, "{table}");
}

/// A scene that has no such size does not end the measurement.
#[test]
fn a_scene_too_small_to_measure_is_left_out() {
    let folder = Folder::new();
    let args = "bench --backend cpu --size 16 --cube 8 --scene ball --seconds 0.01";
    let args: Vec<&str> = args.split(' ').collect();
    let output = printed(folder.command(&args));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && table.contains("8 x 8 x 8 "), "{table}");
    let words = said(&output);
    assert!(
        words.contains("ball at 8 cells is skipped: the grid's size in y is 5"),
        "{words}"
    );
}

/// What a buffer cannot hold is known before the scene's cells are made.
#[test]
#[cfg(feature = "wgpu")]
fn a_grid_that_no_buffer_holds_is_refused_before_it_is_made() {
    use perpetua::device::{BackendKind, Device};
    let folder = Folder::new();
    let device = match Device::new(BackendKind::Wgpu, 0) {
        Ok(device) => device,
        Err(error) => {
            println!("left out: {error}");
            return;
        }
    };
    let most = device.info().limits.max_buffer_bytes;
    // A square, each cell of four bytes: just beyond the limit, or as large as grids are at all.
    let cells = f64::from(i32::MAX).min(most as f64 / 4.0 + 1e6);
    let size = cells.sqrt().ceil() as u64;
    let bytes = 4 * size * size;
    fs::write(
        folder.at("s.toml"),
        "size = [1.0, 1.0]\n[[sources]]\nat = [0.4, 0.5]\nwave = \"impulse\"\n",
    )
    .unwrap();
    let size = size.to_string();
    let args = ["--backend=wgpu", "--scene=s.toml", "--steps=1", "--size", &size];
    if bytes <= most {
        println!("left out: a buffer holds every grid here ({most} bytes)");
        return;
    }
    let words = said(&ended(folder.command(&args)));
    let expect = format!("error: --size {size}: the field takes {bytes} bytes, and a buffer of ");
    let limit = format!(" holds {most} at most: take --size ");
    assert!(words.starts_with(&expect) && words.contains(&limit), "{words}");
}

/// Nor does the host begin what it has no memory for, with tiles either.
#[test]
#[cfg(target_os = "linux")]
fn a_grid_beyond_memory_is_refused_before_it_is_made() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    for mode in ["launch", "actors"] {
        let script = format!(
            "ulimit -v 8000000; exec {} wave --backend cpu --scene s.toml --size 22500 --mode {mode}",
            env!("CARGO_BIN_EXE_perpetua")
        );
        let words = said(&ended(folder.shell(&script)));
        let expect = "error: --size 22500: the run takes 10631250000 bytes of memory, and ";
        assert!(words.starts_with(expect), "{mode}: {words}");
    }
}
