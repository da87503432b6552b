//! Frames: a header of 16 bytes, and a payload. What is allocated is what has arrived, whatever the header announces.

use std::io::{ErrorKind, Read, Write};

use super::error::Error;
use super::protocol::{Code, HEADER, Kind, MAGIC, VERSION};

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    /// The client's number for a job; its answer has the same.
    pub(super) id: u32,
    pub(super) payload: Vec<u8>,
}

impl Frame {
    /// Why there is no result.
    pub(super) fn error(id: u32, code: Code, message: &str) -> Frame {
        // Names in messages may be as long as a program.
        const MOST: usize = 4096;
        let end = (0..=message.len().min(MOST))
            .rev()
            .find(|at| message.is_char_boundary(*at));
        let message = message.get(..end.unwrap_or(0)).unwrap_or_default();
        let mut payload = code.code().to_le_bytes().to_vec();
        payload.extend((message.len() as u16).to_le_bytes());
        payload.extend(message.as_bytes());
        Frame {
            kind: Kind::Error,
            id,
            payload,
        }
    }

    /// Writes it.
    pub(super) fn write(&self, writer: &mut impl Write) -> Result<(), Error> {
        writer.write_all(&header(self.kind, self.id, self.payload.len())?)?;
        writer.write_all(&self.payload)?;
        Ok(writer.flush()?)
    }

    /// Reads one; nothing where the peer has closed the connection before it. The payload has at most `limit` bytes.
    pub(super) fn read(reader: &mut impl Read, limit: u64) -> Result<Option<Frame>, Error> {
        Frame::read_with_id(reader, limit, &mut 0)
    }

    /// The same; `id` is the frame's number as soon as it is known, for what is wrong with the rest.
    pub(super) fn read_with_id(
        reader: &mut impl Read,
        limit: u64,
        id: &mut u32,
    ) -> Result<Option<Frame>, Error> {
        let mut head = [0; HEADER];
        let mut at = 0;
        while at < HEADER {
            match reader.read(&mut head[at..]) {
                Ok(0) if at == 0 => return Ok(None),
                Ok(0) => return Err(Error::Closed { at }),
                Ok(n) => at += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
            // What is no frame is refused before its sender is waited for.
            let seen = at.min(MAGIC.len());
            if head[..seen] != MAGIC[..seen] {
                let [a, b, c, d, ..] = head;
                return Err(Error::Magic { found: [a, b, c, d] });
            }
        }
        let [_, _, _, _, v0, v1, k0, k1, i0, i1, i2, i3, l0, l1, l2, l3] = head;
        let version = u16::from_le_bytes([v0, v1]);
        if version != VERSION {
            return Err(Error::Version { found: version });
        }
        *id = u32::from_le_bytes([i0, i1, i2, i3]);
        let found = u16::from_le_bytes([k0, k1]);
        let kind = Kind::from_code(found).ok_or(Error::Kind {
            found,
            expected: "one of the protocol's table",
        })?;
        let len = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
        if len > limit {
            return Err(Error::Large { found: len, limit });
        }
        let payload = payload(reader, usize::try_from(len).unwrap_or(usize::MAX))?;
        Ok(Some(Frame {
            kind,
            id: *id,
            payload,
        }))
    }
}

// Room is made for what has arrived and as much again, and never for more than was announced.
fn payload(reader: &mut impl Read, len: usize) -> Result<Vec<u8>, Error> {
    const FIRST: usize = 1 << 14;
    let mut payload = Vec::new();
    while payload.len() < len {
        let had = payload.len();
        let room = had.max(FIRST).min(len - had);
        payload.reserve_exact(room);
        reader.by_ref().take(room as u64).read_to_end(&mut payload)?;
        if payload.len() < had + room {
            return Err(Error::Closed {
                at: HEADER + payload.len(),
            });
        }
    }
    Ok(payload)
}

fn header(kind: Kind, id: u32, len: usize) -> Result<[u8; HEADER], Error> {
    let len = u32::try_from(len).map_err(|_| Error::Large {
        found: len as u64,
        limit: u32::MAX.into(),
    })?;
    let mut head = [0; HEADER];
    head[..4].copy_from_slice(&MAGIC);
    head[4..6].copy_from_slice(&VERSION.to_le_bytes());
    head[6..8].copy_from_slice(&kind.code().to_le_bytes());
    head[8..12].copy_from_slice(&id.to_le_bytes());
    head[12..].copy_from_slice(&len.to_le_bytes());
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(frame: &Frame) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame.write(&mut bytes).expect("a vector takes it");
        bytes
    }

    #[test]
    fn what_is_written_is_read_and_half_of_it_is_not() {
        let frame = Frame::error(7, Code::Time, "too long");
        let bytes = bytes(&frame);
        assert_eq!(Frame::read(&mut &bytes[..], 100).expect("a frame"), Some(frame));
        assert!(matches!(Frame::read(&mut &[][..], 100), Ok(None)));
        for len in 1..bytes.len() {
            let error = Frame::read(&mut &bytes[..len], 100).expect_err("half");
            assert!(
                matches!(error, Error::Closed { at } if at == len),
                "{len}: {error}"
            );
        }
    }

    #[test]
    fn long_frames_are_read_whole_into_as_much_room() {
        for len in [1, (1 << 14) - 1, 1 << 14, (1 << 14) + 1, 100_000] {
            let payload: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let frame = Frame {
                kind: Kind::Run,
                id: 3,
                payload,
            };
            let bytes = bytes(&frame);
            let read = Frame::read(&mut &bytes[..], 1 << 20)
                .expect("a frame")
                .expect("one");
            assert!(read == frame && read.payload.capacity() == len, "{len}");
            assert!(Frame::read(&mut &bytes[..bytes.len() - 1], 1 << 20).is_err());
        }
    }

    #[test]
    fn what_is_no_frame_is_named() {
        let good = bytes(&Frame::error(7, Code::Time, "x"));
        let check = |at: usize, byte: u8, expect: &str| {
            let mut bad = good.clone();
            bad[at] = byte;
            let error = Frame::read(&mut &bad[..], 100).expect_err(expect).to_string();
            assert!(error.contains(expect), "{error}");
        };
        check(0, b'G', "begins with `PISV`");
        check(4, 9, "version 9");
        check(6, 77, "kind 77");
        check(15, 0x40, "at most 100 are allowed");
        // Told from its first byte, before more comes.
        assert!(matches!(
            Frame::read(&mut &b"H"[..], 100),
            Err(Error::Magic { .. })
        ));
    }

    #[test]
    fn an_announcement_allocates_nothing() {
        struct Counted(usize);
        impl Read for Counted {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                self.0 = self.0.max(buffer.len());
                Ok(0)
            }
        }
        let mut bytes = bytes(&Frame::error(0, Code::Time, ""));
        bytes.truncate(HEADER);
        bytes[12..16].copy_from_slice(&(1u32 << 30).to_le_bytes());
        let mut rest = Counted(0);
        let error = Frame::read(&mut bytes.chain(&mut rest), 1 << 31).expect_err("no bytes");
        assert!(matches!(error, Error::Closed { at: HEADER }), "{error}");
        assert!(rest.0 <= 1 << 16, "{} bytes were ready for it", rest.0);
    }

    #[test]
    fn messages_are_cut_between_characters() {
        let frame = Frame::error(1, Code::Fault, &"ä".repeat(5000));
        let text = std::str::from_utf8(&frame.payload[4..]).expect("UTF-8");
        assert_eq!(text.chars().count(), 2048);
    }
}
