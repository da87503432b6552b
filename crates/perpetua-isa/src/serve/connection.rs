//! A client's connection: a thread that reads a job, waits for its turn and its answer, and writes that. What a client sends ahead stays in the
//! system's buffer until it is its turn, so a client that sends much waits, and nothing is kept for it.

use std::io::{self, Read};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::address::{Stream, Timed};
use super::error::{Error, is_late};
use super::frame::Frame;
use super::job::Allowed;
use super::places::{Answers, Places};
use super::protocol::{Code, Kind};
use super::queue::{Queue, Waiting};

/// How often a client whose job waits or runs is looked after.
const LOOK: Duration = Duration::from_millis(100);
/// How long a client that is sent away may take to read why.
const LINGER: Duration = Duration::from_secs(1);

/// What connections know of their server.
pub(super) struct Rules {
    pub(super) allowed: Allowed,
    /// How long a client may be quiet between two frames.
    pub(super) idle: Duration,
    /// How long a frame may take from its first byte to its last, either way.
    pub(super) transfer: Duration,
    pub(super) is_ending: AtomicBool,
}

pub(super) struct Connection<'a> {
    pub(super) client: u64,
    pub(super) stream: &'a Stream,
    pub(super) rules: &'a Rules,
    pub(super) queue: &'a Queue,
    pub(super) places: &'a Places,
    // A byte of the next frame, found while the client was looked after.
    pub(super) ahead: Option<u8>,
}

// A frame's bytes: the time of its first one is the time for being quiet, the time of the rest begins with it.
struct Incoming<'a> {
    ahead: Option<u8>,
    stream: Timed<'a>,
    transfer: Duration,
    has_begun: bool,
}

impl Read for Incoming<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match (self.ahead.take(), buffer.first_mut()) {
            (Some(byte), Some(first)) => {
                *first = byte;
                1
            }
            _ => self.stream.read(buffer)?,
        };
        if !self.has_begun && read > 0 {
            self.has_begun = true;
            self.stream.end = Instant::now() + self.transfer;
        }
        Ok(read)
    }
}

// What came of a frame.
enum Turn {
    Answered,
    /// The client's place has gone to another.
    MadeWay,
    /// The client has gone, or the server has closed its side.
    Gone,
    /// The client did not take its answer in time. Nothing can follow a part of one: the client would read it as the rest.
    NotTaken,
}

impl Connection<'_> {
    /// Serves the client until it goes, or breaks the protocol.
    pub(super) fn run(&mut self) -> Answers {
        let mut answers = Answers::default();
        let error = loop {
            let mut id = 0;
            match self.turn(&mut id, &mut answers) {
                Ok(Turn::Answered) => {}
                Ok(Turn::Gone) | Err(_) if self.is_ending() => break (id, ending()),
                Ok(Turn::MadeWay) => break (id, made_way()),
                Ok(Turn::Gone | Turn::NotTaken) => return answers,
                Err(error) => break (id, error),
            }
        };
        answers.errors += 1;
        let told = || self.places.has_told(self.client);
        self.places.sends_away(self.client);
        refuse(self.stream, error.0, &error.1, self.rules, told);
        answers
    }

    fn is_ending(&self) -> bool {
        self.rules.is_ending.load(Ordering::Relaxed)
    }

    // A frame and its answer.
    fn turn(&mut self, id: &mut u32, answers: &mut Answers) -> Result<Turn, Error> {
        if !self.places.awaits_frame(self.client) {
            return Ok(Turn::MadeWay);
        }
        let mut incoming = Incoming {
            ahead: self.ahead.take(),
            stream: self.stream.until(Instant::now() + self.rules.idle),
            transfer: self.rules.transfer,
            has_begun: false,
        };
        let frame = Frame::read_with_id(&mut incoming, self.rules.allowed.message, id);
        // What has come of a frame is no job yet.
        if !self.places.works(self.client) {
            return Ok(Turn::MadeWay);
        }
        let Some(frame) = frame? else {
            return Ok(Turn::Gone);
        };
        let answer = match frame.kind {
            Kind::Ask if !frame.payload.is_empty() => {
                return Err(Error::Refused {
                    code: Code::Frame,
                    message: format!("`ask` has no payload: this one has {} bytes", frame.payload.len()),
                });
            }
            Kind::Ask => Frame {
                kind: Kind::Allowed,
                id: frame.id,
                payload: self.rules.allowed.encode(),
            },
            Kind::Run => match self.run_job(frame)? {
                Some(answer) => answer,
                None => return Ok(Turn::Gone),
            },
            other => {
                return Err(Error::Kind {
                    found: other.code(),
                    expected: "`ask` or `run`",
                });
            }
        };
        let end = Instant::now() + self.rules.transfer;
        self.places.awaits_taking(self.client);
        if answer.write(&mut self.stream.until(end)).is_err() {
            return Ok(Turn::NotTaken);
        }
        match answer.kind {
            Kind::Result => answers.results += 1,
            Kind::Error => answers.errors += 1,
            _ => {}
        }
        Ok(Turn::Answered)
    }

    // A job's answer; nothing where the client has gone meanwhile.
    fn run_job(&mut self, frame: Frame) -> Result<Option<Frame>, Error> {
        let (answer, answered) = mpsc::channel();
        let is_gone = Arc::new(AtomicBool::new(false));
        self.queue.submit(Waiting {
            client: self.client,
            frame,
            answer,
            is_gone: Arc::clone(&is_gone),
        });
        loop {
            match answered.recv_timeout(LOOK) {
                Ok(answer) => return Ok(Some(answer)),
                Err(RecvTimeoutError::Disconnected) => return Err(ending()),
                // The server closes its clients' sides when it ends.
                Err(RecvTimeoutError::Timeout) if self.is_ending() => {}
                Err(RecvTimeoutError::Timeout) => {
                    if self.stream.is_closed(&mut self.ahead) && !self.is_ending() {
                        is_gone.store(true, Ordering::Relaxed);
                        return Ok(None);
                    }
                }
            }
        }
    }
}

pub(super) fn ending() -> Error {
    Error::Refused {
        code: Code::Ending,
        message: "the server is being ended: come again later".into(),
    }
}

fn made_way() -> Error {
    Error::Refused {
        code: Code::Waited,
        message:
            "another client needed a place, and the server had waited for this one longest: connect again"
                .into(),
    }
}

/// Tells a client why it is sent away, and gives it a moment to read that: closing at once would take back what is on its way. `told`: what follows
/// when the words are on their way.
pub(super) fn refuse(stream: &Stream, id: u32, error: &Error, rules: &Rules, told: impl FnOnce()) {
    let message = match error {
        Error::Io(io) if is_late(io) => format!(
            "nothing came for {:?}, or a frame took longer than {:?} to come or to be taken: connect again",
            rules.idle, rules.transfer
        ),
        error => error.to_string(),
    };
    let frame = Frame::error(id, error.code(), &message);
    let mut stream_until = stream.until(Instant::now() + LINGER);
    if frame.write(&mut stream_until).is_ok() {
        told();
        stream.shutdown(Shutdown::Write);
        let mut thrown_away = [0; 4096];
        while matches!(stream_until.read(&mut thrown_away), Ok(1..)) {}
    }
    stream.shutdown(Shutdown::Both);
}
