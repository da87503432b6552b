//! `perpetua top` as a user meets it: a program that works, looked at from another.
#![cfg(all(feature = "actors", unix))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// A folder for sockets of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("top-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn top(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_perpetua"))
            .arg("top")
            .args(args)
            .env("XDG_RUNTIME_DIR", &self.0)
            .output()
            .unwrap()
    }

    fn sockets(&self) -> usize {
        std::fs::read_dir(self.0.join("perpetua")).map_or(0, Iterator::count)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

// Built now where there is Cargo, unless who runs the tests has: a test that was asked for alone finds examples of another day.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    let program = folder.join("examples/telemetry");
    if std::env::var_os("PERPETUA_EXAMPLES_BUILT").is_some() {
        assert!(program.exists(), "the example is not built");
        return program;
    }
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "-p", "perpetua", "--example", "telemetry"]);
    if folder.ends_with("release") {
        build.arg("--release");
    }
    match build.status() {
        Ok(status) => assert!(status.success(), "the example does not build"),
        Err(error) => assert!(
            program.exists(),
            "it is not built, and there is no Cargo: {error}"
        ),
    }
    program
}

/// The example at work, ended at the end.
struct Working {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Working {
    fn start(folder: &Folder, seconds: &str) -> Working {
        let mut child = Command::new(example())
            .args(["--backend", "cpu", "--watch", seconds])
            .env("XDG_RUNTIME_DIR", &folder.0)
            .env("PERPETUA_TOP", "the example")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("watch it: ") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "it has ended");
        }
        Working { child, output }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn said(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn complained(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The cells of the row that begins with `name`.
fn cells<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    let row = table.lines().find(|line| line.starts_with(name));
    let row = row.unwrap_or_else(|| panic!("no {name} in\n{table}"));
    row.split_whitespace().collect()
}

#[test]
fn a_program_that_works_is_listed_and_looked_at() {
    let folder = Folder::new("works");
    let mut working = Working::start(&folder, "600");
    let pid = working.pid();

    let list = said(&folder.top(&[]));
    assert!(list.contains(&pid) && list.contains("the example"), "{list}");
    let list = said(&folder.top(&["--json"]));
    assert!(
        list.contains(&format!("\"pid\": {pid},\n    \"name\": \"the example\"")),
        "{list}"
    );

    let once = ["--once", "--interval", "0.3", "--sort", "name"];
    let table = said(&folder.top(&[&[pid.as_str()], &once[..]].concat()));
    assert!(
        table.starts_with(&format!("the example, process {pid} (")),
        "{table}"
    );
    assert!(table.contains("runtime on CPU: 2 actors, "), "{table}");
    assert!(table.contains("GPU"), "{table}");
    let titles = [
        "NAME",
        "ID",
        "STATE",
        "PROCESSED",
        "RATE/S",
        "QUEUE",
        "DROPPED",
        "ERRORS",
        "P50",
        "P99",
    ];
    assert_eq!(cells(&table, "NAME"), titles);
    for (name, id, least, dropped) in [("heavy", "1", 500, "0"), ("light", "0", 500, "1")] {
        let cells = cells(&table, name);
        assert_eq!(cells[..3], [name, id, "Active"], "{table}");
        assert!(cells[3].parse::<u64>().unwrap() >= least, "{table}");
        assert_ne!(cells[4], "0", "{table}");
        assert_eq!((cells[6], cells[7]), (dropped, "0"), "{table}");
        assert!(cells[9].ends_with('s'), "{table}");
    }
    let filtered = said(&folder.top(&[pid.as_str(), "--once", "--interval", "0.1", "--filter", "LIG"]));
    assert!(
        filtered.contains("\nlight") && !filtered.contains("\nheavy"),
        "{filtered}"
    );

    let json = said(&folder.top(&[&pid, "--json"]));
    for part in [
        "\"name\": \"light\"",
        "\"backend\": \"CPU\"",
        "\"p99\":",
        "\"dead_letters\": 1",
    ] {
        assert!(json.contains(part), "no {part} in\n{json}");
    }

    let error = complained(&folder.top(&[&pid]));
    let expected = match cfg!(feature = "top") {
        true => "there is no terminal to draw on: take --once or --json",
        false => "built without the feature `top`",
    };
    assert!(error.contains(expected), "{error}");

    // Killed, it leaves its socket; whoever looks next clears it away.
    working.child.kill().unwrap();
    working.child.wait().unwrap();
    assert_eq!(folder.sockets(), 1);
    let error = complained(&folder.top(&[&pid, "--once"]));
    assert!(
        error.contains(&format!("process {pid} cannot be looked at")),
        "{error}"
    );
    assert!(error.contains("start it with PERPETUA_TOP=1"), "{error}");
    assert_eq!(folder.sockets(), 0);
    assert!(said(&folder.top(&[])).starts_with("No program can be watched"));
}

#[test]
fn a_program_that_ends_takes_its_socket_with_it() {
    let folder = Folder::new("ends");
    let mut working = Working::start(&folder, "1");
    assert_eq!(folder.sockets(), 1);
    let mut rest = String::new();
    working.output.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("handler runs: "), "{rest}");
    assert!(working.child.wait().unwrap().success());
    assert_eq!(folder.sockets(), 0);
}

#[test]
fn what_cannot_be_is_said() {
    let folder = Folder::new("wrong");
    let check = |args: &[&str], expected: &str| {
        let error = complained(&folder.top(args));
        assert!(error.contains(expected), "{error}");
    };
    check(&["4000000", "--once"], "process 4000000 cannot be looked at");
    check(
        &["1", "--once", "--interval", "0"],
        "--interval 0: take 0.05 to 3600 seconds",
    );
    check(&["--once"], "required arguments were not provided");
    check(&["1", "--sort", "colour"], "possible values: name, id");
}
