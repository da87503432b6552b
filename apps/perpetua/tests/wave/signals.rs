//! Runs that signals end, and what they keep.

use std::fs;

use super::folder::*;

/// One run, ended three times: by Ctrl-C, by `kill -9`, by SIGTERM. Its checkpoint alone goes on.
#[test]
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
        "--steps=20000000",
        "--animate=a.png",
        "--checkpoint=c.bin",
        "--out=w.png",
        "--checkpoint-every=20ms",
        "--probes=p.csv",
    ]);
    // A file for frames is made when signals are caught already, and none is seen before.
    wait_for(&mut child, is_drawing);
    kill(&child, "INT");
    let output = end_of(child);
    assert!(
        said(&output).contains("of 20000000 steps; go on with `perpetua wave --resume c.bin`"),
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
    end_of(child);
    assert!(is_drawing());

    let second = fs::read(folder.at("c.bin")).unwrap();
    let begun = std::time::Instant::now();
    let mut child = start(&["--resume", "c.bin"]);
    wait_for(&mut child, || fs::read(folder.at("c.bin")).unwrap() != second);
    kill(&child, "TERM");
    let output = end_of(child);
    let words = said(&output);
    assert_eq!(output.status.code(), Some(143), "{words}");
    // A log hears of it, and seldom: it is kept every 20 ms.
    let kept = words.matches(" of 20000000: state kept in c.bin\n").count();
    let most = 1 + begun.elapsed().as_secs() as usize / 5;
    assert!((1..=most).contains(&kept), "{words}");
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
fn a_signal_that_is_ignored_stays_ignored() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let script = format!(
        "trap '' HUP; exec {} wave --backend cpu --scene s.toml --steps 100000000 --checkpoint c.bin --checkpoint-every 20ms",
        env!("CARGO_BIN_EXE_perpetua")
    );
    let mut script = folder.shell(&script);
    let mut child = script.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let state = || fs::read(folder.at("c.bin")).unwrap_or_default();
    wait_for(&mut child, || !state().is_empty());
    kill(&child, "HUP");
    for _ in 0..2 {
        let before = state();
        wait_for(&mut child, || state() != before);
    }
    kill(&child, "TERM");
    let output = end_of(child);
    assert_eq!(output.status.code(), Some(143), "{}", said(&output));
}

/// A pipe that nobody reads is waited for, and a signal ends the wait.
#[test]
fn a_pipe_without_a_reader_is_given_up_at_a_signal() {
    use std::io::{BufRead, BufReader};
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    folder.make_pipe("pipe");
    for (signal, code, option) in [
        ("INT", 130, "--out=pipe"),
        ("TERM", 143, "--probes=pipe"),
        ("XCPU", 152, "--probes=pipe"),
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
            end_of(child.unwrap());
            child = folder
                .command(&["--backend=cpu", "--scene=s.toml", "--steps=5", option])
                .stderr(std::process::Stdio::piped())
                .spawn();
        }
        let mut child = child.unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // Signals are caught and the wait is ahead, or has begun.
        let awaited = if option == "--animate=pipe" {
            " cells, 5 steps of"
        } else {
            "5 steps in"
        };
        let (is_said, lines) = within(move || {
            let mut lines = lines.map(Result::unwrap);
            (lines.any(|line| line.contains(awaited)), lines)
        });
        assert!(is_said);
        if option == "--animate=pipe" {
            wait_for(&mut child, || {
                folder.names().iter().any(|name| name.contains("locked"))
            });
        }
        kill(&child, signal);
        let status = end_of(child).status;
        let rest: Vec<String> = within(move || lines.collect());
        assert_eq!(status.code(), Some(code), "{rest:?}");
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

/// Two runs do not keep one state.
#[test]
fn a_checkpoint_is_one_runs() {
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
    let second = ended(folder.command(&[&base[..], &["--steps=5"]].concat()));
    let expect = format!("c.bin is in use by process {}", first.id());
    assert!(
        !second.status.success() && said(&second).contains(&expect),
        "{}",
        said(&second)
    );
    // What it still writes is not read either: this would be no checkpoint.
    fs::write(folder.at("c.bin"), "half a state").unwrap();
    let resumed = folder.wave(&["--resume=c.bin"]);
    assert!(
        !resumed.status.success() && said(&resumed).contains(&expect),
        "{}",
        said(&resumed)
    );
    kill(&first, "TERM");
    assert_eq!(end_of(first).status.code(), Some(143));
    assert_eq!(folder.names(), ["c.bin", "s.toml"]);

    // Nor does one take the place of another that has not ended, or of what is no checkpoint.
    let refuse = |expect: &str| {
        let before = fs::read(folder.at("c.bin")).unwrap();
        let output = ended(folder.command(&[&base[..], &["--steps=5"]].concat()));
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
}

/// What a checkpoint names is written by whom it is from. Another's makes new files beside it, and replaces none.
#[test]
fn another_users_checkpoint_replaces_nothing() {
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    let far = tempfile::tempdir().unwrap();
    let picture = far.path().join("far.png").display().to_string();
    let make = |outputs: &[&str]| {
        let base = ["--scene=s.toml", "--checkpoint=c.bin", "--steps=5"];
        let made = folder.wave(&[&base[..], outputs].concat());
        assert!(made.status.success(), "{}", said(&made));
    };
    let resume = |is_own: bool, more: &[&str]| {
        let mut command = folder.command(&[&["--backend=cpu", "--resume=c.bin"], more].concat());
        if !is_own {
            command.env("XDG_STATE_HOME", far.path());
        }
        let output = ended(command);
        (output.status.success(), said(&output))
    };
    make(&["--out", &picture]);
    let (is_done, words) = resume(false, &["--steps=8"]);
    let expect = format!(
        "--resume c.bin: it was made by another user, on another machine or in another container, and it would write --out {picture}; "
    );
    let remedy = format!(": perpetua wave --resume c.bin --out {picture}\n");
    assert!(
        !is_done && words.contains(&expect) && words.contains(&remedy),
        "{words}"
    );
    let (is_done, words) = resume(true, &["--steps=8"]);
    let told = format!("from the checkpoint: --out {picture}");
    assert!(is_done && words.contains(&told), "{words}");

    // Plain names are there for all, once.
    make(&["--out=w.png", "--probes=p.csv"]);
    for name in ["w.png", "p.csv"] {
        fs::remove_file(folder.at(name)).unwrap();
    }
    let (is_done, words) = resume(false, &["--steps=8"]);
    assert!(
        is_done && words.contains("from the checkpoint: --out w.png"),
        "{words}"
    );
    let names = ["c.bin", "p.csv", "s.toml", "w.png"];
    assert_eq!(folder.names(), names);
    make(&["--out=x.png", "--probes=p.csv"]);
    fs::write(folder.at("p.csv"), "mine").unwrap();
    let (is_done, words) = resume(false, &["--steps=12", "--out=y.png"]);
    assert!(
        !is_done && words.contains("it would write --probes p.csv; "),
        "{words}"
    );
    assert_eq!(fs::read_to_string(folder.at("p.csv")).unwrap(), "mine");
    assert!(!folder.at("y.png").exists());
    let (is_done, words) = resume(false, &["--steps=12", "--out=y.png", "--probes=p.csv"]);
    assert!(is_done, "{words}");
    assert_eq!(
        fs::read_to_string(folder.at("p.csv")).unwrap().lines().count(),
        13
    );
}

/// The state that a signal asks for comes to who reads slowly; another signal ends the wait.
#[test]
fn a_signals_checkpoint_reaches_a_slow_pipe() {
    use std::io::Read;
    use std::process::Stdio;
    let folder = Folder::new();
    small(&folder.at("s.toml"));
    folder.make_pipe("pipe");
    let is_drawing = || folder.names().iter().any(|name| name.contains(".part"));
    for is_patient in [true, false] {
        let options =
            "--backend=cpu --scene=s.toml --size=256 --steps=100000000 --animate=a.png --checkpoint=pipe";
        let options: Vec<&str> = options.split(' ').collect();
        let mut child = folder.command(&options).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&mut child, is_drawing);
        kill(&child, "TERM");
        let path = folder.at("pipe");
        let (mut pipe, mut state) = within(move || {
            let mut pipe = fs::File::open(path).unwrap();
            let mut state = vec![0; 1000];
            pipe.read_exact(&mut state).unwrap();
            (pipe, state)
        });
        if is_patient {
            // The pipe is full meanwhile.
            std::thread::sleep(std::time::Duration::from_millis(200));
            state = within(move || {
                pipe.read_to_end(&mut state).unwrap();
                state
            });
        } else {
            kill(&child, "TERM");
        }
        let output = end_of(child);
        let words = said(&output);
        assert_eq!(output.status.code(), Some(143), "{words}");
        if is_patient {
            assert!(
                words.contains("go on with `perpetua wave --resume pipe`"),
                "{words}"
            );
            fs::write(folder.at("c.bin"), state).unwrap();
            let resumed = folder.wave(&["--resume=c.bin", "--steps=0"]);
            assert!(
                said(&resumed).contains("steps are done, --steps asks for 0"),
                "{}",
                said(&resumed)
            );
        } else {
            assert!(
                words.contains("interrupted while writing pipe, which is a pipe"),
                "{words}"
            );
        }
    }
}
