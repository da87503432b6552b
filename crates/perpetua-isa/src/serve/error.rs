//! What can go wrong between a client and its server, as data.

use std::io;

use super::protocol::{Code, VERSION};

/// An error of a client or a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text that names no place to listen at.
    #[error(
        "`{address}` is no address to serve at: {why}; write a path as unix:/run/user/1000/perpetua.sock, or 127.0.0.1:PORT"
    )]
    Address {
        /// The text.
        address: String,
        /// Why not.
        why: String,
    },
    /// The server cannot listen there.
    #[error("{address}: {why}")]
    Bind {
        /// Where.
        address: String,
        /// Why not.
        why: String,
    },
    /// Nobody listens there.
    #[error("{address}: {error}: is the server running? `perpetua isa serve {address}` starts one")]
    Connect {
        /// Where.
        address: String,
        /// The system's words.
        error: io::Error,
    },
    /// The connection broke.
    #[error("the connection to the server broke: {0}")]
    Io(#[from] io::Error),
    /// The peer closed the connection within a frame, or instead of an answer.
    #[error("the connection was closed after {at} bytes of a frame")]
    Closed {
        /// Bytes of the frame that came.
        at: usize,
    },
    /// The bytes are no frame.
    #[error("a frame begins with `PISV`, not with the bytes {found:02x?}: the peer speaks something else")]
    Magic {
        /// The bytes.
        found: [u8; 4],
    },
    /// A frame of another version.
    #[error("the frame has version {found} of the protocol; version {VERSION} is spoken here")]
    Version {
        /// The version.
        found: u16,
    },
    /// A frame whose kind is not known, or not to be sent this way.
    #[error("a frame of kind {found} does not belong here: {expected} does")]
    Kind {
        /// The kind's number.
        found: u16,
        /// What may be there.
        expected: &'static str,
    },
    /// A message that is too long.
    #[error(
        "a message of {found} bytes: at most {limit} are allowed; send less, or start the server with a larger --message"
    )]
    Large {
        /// Its bytes.
        found: u64,
        /// How many may be.
        limit: u64,
    },
    /// A payload that is not what its kind demands.
    #[error("byte {at} of the payload, in {what}: {why}")]
    Payload {
        /// Where.
        at: usize,
        /// What was being read.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// A job that cannot be written.
    #[error("{what}: {found}, at most {limit} can be sent")]
    Send {
        /// Of what.
        what: &'static str,
        /// How much.
        found: u64,
        /// How much can be.
        limit: u64,
    },
    /// The server's answer: there is no result.
    #[error("{message}")]
    Refused {
        /// Why.
        code: Code,
        /// In words.
        message: String,
    },
    /// The child process that runs programs cannot be started, or ended.
    #[error("the process for programs {0}")]
    Process(String),
}

impl Error {
    /// What the other side is told.
    pub(super) fn code(&self) -> Code {
        match self {
            Error::Refused { code, .. } => *code,
            Error::Large { .. } | Error::Send { .. } => Code::Large,
            Error::Payload { .. } => Code::Job,
            Error::Process(_) => Code::Process,
            Error::Io(error) if is_late(error) => Code::Slow,
            _ => Code::Frame,
        }
    }
}

/// Whether a read or write came to its time's end.
pub(super) fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}
