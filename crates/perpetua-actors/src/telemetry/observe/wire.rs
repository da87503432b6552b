//! The protocol. Who connects sends requests, and each is answered before the next is read. A message is eight bytes that say whose it
//! is, the version and the length of what follows (little-endian, four bytes each), then a [`Request`] or an [`Answer`] as
//! postcard. That header stays in all versions; what follows changes with the version, and a side that does not speak the
//! other's version says its own and nothing else. Must not know sockets.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::telemetry::{ProcessInfo, ProcessReport};

/// The protocol's version: changes whenever a request or an answer does.
pub const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"perptop\n";
const HEADER: usize = 16;
/// No request is longer.
pub(super) const LONGEST_REQUEST: u32 = 4096;
/// No answer is longer: some hundred thousand rows.
pub(super) const LONGEST_ANSWER: u32 = 64 << 20;

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request {
    /// Which process it is.
    Info,
    /// That, and what its actors do.
    Report,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Answer {
    Info(ProcessInfo),
    Report(ProcessReport),
}

/// Why nothing could be read.
#[derive(Debug)]
pub(super) enum Broken {
    /// The other side is gone.
    Io(io::Error),
    /// It speaks this version.
    Version(u32),
    /// It says what is no message.
    Malformed(String),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        Broken::Io(error)
    }
}

/// Sends a message.
pub(super) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let body = postcard::to_allocvec(message).map_err(io::Error::other)?;
    write(to, &body)
}

/// Says which version is spoken here, to one who speaks another.
pub(super) fn send_version(to: &mut impl Write) -> io::Result<()> {
    write(to, &[])
}

fn write(to: &mut impl Write, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    let message = [&MAGIC[..], &VERSION.to_le_bytes(), &length.to_le_bytes(), body].concat();
    to.write_all(&message)?;
    to.flush()
}

/// Receives a message of at most `longest` bytes.
pub(super) fn receive<M: DeserializeOwned>(from: &mut impl Read, longest: u32) -> Result<M, Broken> {
    let mut header = [0; HEADER];
    from.read_exact(&mut header)?;
    let (magic, numbers) = header.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(Broken::Malformed("it does not begin as messages do".into()));
    }
    let number = |at: usize| {
        numbers
            .iter()
            .skip(at)
            .take(4)
            .rev()
            .fold(0, |all, byte| all << 8 | u32::from(*byte))
    };
    let (version, length) = (number(0), number(4));
    if version != VERSION {
        return Err(Broken::Version(version));
    }
    if length > longest {
        return Err(Broken::Malformed(format!("{length} bytes, more than {longest}")));
    }
    // As it comes, not as it is announced.
    let mut body = Vec::new();
    from.take(length.into()).read_to_end(&mut body)?;
    if body.len() < length as usize {
        return Err(Broken::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    let (message, rest) =
        postcard::take_from_bytes(&body).map_err(|error| Broken::Malformed(error.to_string()))?;
    match rest.len() {
        0 => Ok(message),
        more => Err(Broken::Malformed(format!("{more} bytes too many"))),
    }
}

#[cfg(all(test, not(perpetua_loom)))]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: &str) {
        let got = match receive::<Request>(&mut &bytes[..], LONGEST_REQUEST) {
            Ok(request) => format!("{request:?}"),
            Err(Broken::Io(error)) => error.kind().to_string(),
            Err(Broken::Version(version)) => format!("version {version}"),
            Err(Broken::Malformed(cause)) => cause,
        };
        assert_eq!(got, expected);
    }

    #[test]
    fn whatever_comes_is_a_message_or_refused() {
        let mut sent = Vec::new();
        send(&mut sent, &Request::Report).unwrap();
        assert_eq!(sent, b"perptop\n\x01\0\0\0\x01\0\0\0\x01");
        check(&sent, "Report");
        check(b"", "unexpected end of file");
        check(&sent[..11], "unexpected end of file");
        check(&sent[..16], "unexpected end of file");
        check(b"GET / HTTP/1.1\r\n", "it does not begin as messages do");
        check(b"perptop\n\x02\0\0\0\x00\0\0\0", "version 2");
        check(b"perptop\n\x01\0\0\0\xff\xff\0\0", "65535 bytes, more than 4096");
        check(b"perptop\n\x01\0\0\0\x02\0\0\0\x01\0", "1 bytes too many");
        check(
            b"perptop\n\x01\0\0\0\x01\0\0\0\x07",
            "Serde Deserialization Error",
        );
    }
}
