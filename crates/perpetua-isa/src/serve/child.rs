//! A child process that runs one client's programs, seen from the server. What it sends is believed no more than what clients send.

use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::error::Error;
use super::frame::Frame;
use super::job::{self, Allowed};
use super::protocol::{Code, Kind};
use super::watch::{Bounds, Process, Reason, Watch};

/// How long a child may take to open its device.
const START: Duration = Duration::from_secs(60);

/// Answers are at most so long, also where messages are shorter: errors have words.
const SHORT: u64 = 1 << 13;

/// Variables that keep what one client's programs leave on disk from another's children.
const NO_CACHES: [(&str, &str); 6] = [
    ("PERPETUA_CACHE", "off"),
    ("MESA_SHADER_CACHE_DISABLE", "true"),
    ("MESA_GLSL_CACHE_DISABLE", "true"),
    ("CUDA_CACHE_DISABLE", "1"),
    ("__GL_SHADER_DISK_CACHE", "0"),
    ("RUST_BACKTRACE", "0"),
];

/// What children are, and what they are held to.
pub(super) struct Kinds {
    /// The program and its arguments.
    pub(super) command: Vec<std::ffi::OsString>,
    pub(super) allowed: Allowed,
    /// Most bytes of memory of one.
    pub(super) memory: u64,
}

/// A child that has opened its device.
pub(super) struct Child {
    process: Arc<Process>,
    input: ChildStdin,
    output: ChildStdout,
}

impl Kinds {
    pub(super) fn start(&self, watch: &Watch) -> Result<Child, Error> {
        let failed = |why: String| Error::Process(format!("cannot be started: {why}"));
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(failed("no program is named".into()));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(NO_CACHES)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // Ctrl-C is for the server, which ends its children itself.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let process = Arc::new(Process::new(child));
        let (Some(input), Some(output)) = (input, output) else {
            process.end();
            return Err(failed("it has no pipes".into()));
        };
        let mut child = Child {
            process,
            input,
            output,
        };
        let setup = Frame {
            kind: Kind::Allowed,
            id: 0,
            payload: self.allowed.encode(),
        };
        let started = child.answer(setup, self, watch, START, &Arc::default());
        match started {
            Ok(frame) if frame.kind == Kind::Allowed => Ok(child),
            Ok(frame) => {
                let (_, message) = job::decode_error(&frame.payload)?;
                Err(failed(message))
            }
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

impl Child {
    /// Runs a job; an error is the client's answer, and the end of the child.
    pub(super) fn run(
        &mut self,
        job: Frame,
        kinds: &Kinds,
        watch: &Watch,
        is_gone: &Arc<AtomicBool>,
    ) -> Result<Frame, Error> {
        let time = Duration::from_millis(kinds.allowed.milliseconds);
        self.answer(job, kinds, watch, time, is_gone)
    }

    fn answer(
        &mut self,
        frame: Frame,
        kinds: &Kinds,
        watch: &Watch,
        time: Duration,
        is_gone: &Arc<AtomicBool>,
    ) -> Result<Frame, Error> {
        let bounds = Bounds {
            time,
            memory: kinds.memory,
            is_gone: Arc::clone(is_gone),
        };
        let number = watch.enter(&self.process, bounds);
        let (kind, id) = (frame.kind, frame.id);
        let written = frame.write(&mut self.input);
        // The answer may be as large: the server keeps one of them.
        drop(frame);
        let answer = written.and_then(|()| Frame::read(&mut self.output, kinds.allowed.message.max(SHORT)));
        let reason = watch.leave(number);
        match (answer, reason) {
            (_, Some(reason)) => Err(refused(reason, time, kinds.memory)),
            (Ok(Some(answer)), None) if is_answer(kind, id, &answer) => Ok(answer),
            (Ok(Some(_)), None) => Err(Error::Process(format!(
                "sent what is no answer, and was ended ({})",
                self.process.end()
            ))),
            (Ok(None) | Err(_), None) => Err(Error::Process(format!(
                "ended while the program was compiled or ran ({}): the driver or its compiler failed; change the program, or \
                 try another backend",
                self.process.ended()
            ))),
        }
    }
}

// Whether a frame of a child is one that its client may get.
fn is_answer(asked: Kind, id: u32, answer: &Frame) -> bool {
    let kind = match asked {
        Kind::Run => Kind::Result,
        _ => Kind::Allowed,
    };
    answer.id == id && (answer.kind == kind || answer.kind == Kind::Error)
}

fn refused(reason: Reason, time: Duration, memory: u64) -> Error {
    let (code, message) = match reason {
        Reason::Time => (
            Code::Time,
            format!(
                "it took longer than the {time:?} allowed, and was ended: launch fewer lanes, or ask for a larger --seconds"
            ),
        ),
        Reason::Memory { bytes } => (
            Code::Memory,
            format!(
                "its process took {bytes} bytes of memory, more than the {memory} allowed, and was ended: use smaller buffers or a \
                 shorter program, or ask for a larger --process-memory"
            ),
        ),
        Reason::Gone => (Code::Ending, "its client has gone".into()),
        Reason::Ending => (Code::Ending, "the server is being ended: come again later".into()),
    };
    Error::Refused { code, message }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.process.end();
    }
}
