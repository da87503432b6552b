//! A folder in which `perpetua wave` runs, and what is done to runs.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A folder of its own, and one for what the program knows of its user; removed at the end.
pub(crate) struct Folder(pub(crate) tempfile::TempDir, tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap())
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_perpetua"));
        command.arg("wave").args(args);
        command
    }

    /// A program in the folder, by the folder's user.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        // In a script's background job a terminal's signals are ignored from the start, and what is ignored stays so.
        if cfg!(target_os = "linux") {
            command = Command::new("env");
            command.args(["--default-signal=HUP,INT,QUIT", name]);
        }
        command
            .current_dir(self.0.path())
            .env("XDG_STATE_HOME", self.1.path());
        command
    }

    #[cfg(unix)]
    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = self.program("sh");
        command.args(["-c", script]);
        command
    }

    /// Pipes that have a name.
    #[cfg(unix)]
    pub(crate) fn make_pipe(&self, name: &str) {
        let made = self.shell(&format!("mkfifo {name}")).status();
        assert!(made.unwrap().success());
    }

    pub(crate) fn wave(&self, args: &[&str]) -> Output {
        ended(self.command(&[&["--backend", "cpu"], args].concat()))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn small(path: &Path) {
    let scene = "size = [1.0, 1.0]\ncells = 48\nborder_width = 0.2\n[[sources]]\nat = [0.4, 0.5]\nwave = \"ricker\"\n\
        frequency = 1500.0\n[[probes]]\nname = \"a, b\"\nat = [0.6, 0.5]\n";
    fs::write(path, scene).unwrap();
}

/// The shell's own `kill`: a small system has no program of that name.
#[cfg(unix)]
pub(crate) fn kill(child: &Child, signal: &str) {
    let command = format!("kill -{signal} {}", child.id());
    assert!(
        Command::new("sh")
            .args(["-c", &command])
            .status()
            .unwrap()
            .success()
    );
}

/// No run here takes as long, however busy the machine is.
const LONGEST: Duration = Duration::from_secs(300);

/// Waits until a run has come so far.
pub(crate) fn wait_for(child: &mut Child, reached: impl Fn() -> bool) {
    let started = Instant::now();
    while !reached() {
        assert_eq!(child.try_wait().unwrap(), None);
        if started.elapsed() > LONGEST {
            child.kill().unwrap();
            panic!("nothing came within {LONGEST:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// What comes of something that may wait for ever.
#[cfg(unix)]
pub(crate) fn within<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let (told, heard) = mpsc::channel();
    // If nothing comes, the test has failed, and its end is the thread's.
    thread::spawn(move || told.send(what()));
    match heard.recv_timeout(LONGEST) {
        Ok(done) => done,
        Err(error) => panic!("{error}"),
    }
}

/// What a run says that ends; one that goes on is ended.
pub(crate) fn ended(mut command: Command) -> Output {
    end_of(command.stderr(Stdio::piped()).spawn().unwrap())
}

/// The same, with what it prints.
pub(crate) fn printed(mut command: Command) -> Output {
    command.stdout(Stdio::piped());
    ended(command)
}

/// Reads what comes to its end, so that nothing waits for a reader.
fn drained(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut all = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut all).unwrap();
        }
        all
    })
}

/// The same of one that has begun.
pub(crate) fn end_of(mut child: Child) -> Output {
    let started = Instant::now();
    drop(child.stdin.take());
    let (stdout, stderr) = (drained(child.stdout.take()), drained(child.stderr.take()));
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > LONGEST {
            child.kill().unwrap();
            let said = stderr.join().unwrap();
            panic!("it went on after {LONGEST:?}: {}", String::from_utf8_lossy(&said));
        }
        thread::sleep(Duration::from_millis(5));
    };
    Output {
        status,
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
    }
}
