//! All actors' states and waiting messages as bytes, and these as a file: exact, checked, written whole or not at all, refused whole
//! where it is torn or foreign. Must not know engines.
//!
//! Little-endian: magic, version, length of what follows, its CRC-32; then stamp, correlation, groups, topics, blocks (`codec`).

mod codec;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::codec::{Reader, Writer};
use crate::delivery::Delivery;
use crate::error::{ActorError, Result};
use crate::lifecycle::ActorState;
use crate::message::Packet;
use crate::pubsub::SubscribeOptions;
use crate::supervise::{OnFault, Supervision};
use crate::topic::Topic;

const MAGIC: &[u8; 8] = b"PERPACTR";
const VERSION: u32 = 7;
const HEAD: usize = 8 + 4 + 8 + 4;

/// All that a runtime holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Image {
    /// No stamp in it is later.
    pub(crate) stamp: u64,
    /// No correlation in it is used from here on.
    pub(crate) correlation: u32,
    pub(crate) groups: Vec<GroupImage>,
    /// By their numbers.
    pub(crate) topics: Vec<Topic>,
    /// Those that the packets bring.
    pub(crate) blocks: Vec<BlockImage>,
}

/// The vectors of one message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BlockImage {
    /// How packets name it.
    pub(crate) at: u32,
    pub(crate) generation: u32,
    /// Words that it has room for.
    pub(crate) limit: u32,
    /// Those in use.
    pub(crate) words: Vec<u32>,
}

/// The actors of one launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GroupImage {
    pub(crate) name: String,
    /// Its path.
    pub(crate) handler: String,
    /// Which version of its state that keeps.
    pub(crate) version: u32,
    /// The state's fields, with types and offsets.
    pub(crate) state_type: String,
    /// The types of message that it takes.
    pub(crate) takes: Vec<TypeImage>,
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) capacity: u64,
    pub(crate) block_size: u32,
    pub(crate) device: u32,
    pub(crate) priority: u8,
    pub(crate) initial: Vec<u8>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) run_limit: Option<Duration>,
    pub(crate) tick: Option<Duration>,
    pub(crate) supervision: Supervision,
    pub(crate) on_fault: OnFault,
    pub(crate) delivery: Delivery,
    pub(crate) max_deliveries: u8,
    pub(crate) supervisor: Option<u32>,
    /// Those that are not terminated.
    pub(crate) actors: Vec<ActorImage>,
}

/// A type of message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TypeImage {
    pub(crate) type_id: u32,
    pub(crate) path: String,
    pub(crate) version: u32,
    pub(crate) layout: String,
}

/// One actor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ActorImage {
    pub(crate) actor: u32,
    pub(crate) life: ActorState,
    pub(crate) state: Vec<u8>,
    /// Messages that wait to be handled, first to be handled first.
    pub(crate) mailbox: Vec<Packet>,
    /// What its handler has sent and what has found no room yet.
    pub(crate) unsent: Vec<Packet>,
    /// What the host has not received yet.
    pub(crate) outputs: Vec<Packet>,
    pub(crate) subscriptions: Vec<(Topic, SubscribeOptions)>,
    pub(crate) processed: u64,
    pub(crate) errors: u64,
}

impl Image {
    /// All packets in it, as lists.
    pub(crate) fn lists_mut(&mut self) -> impl Iterator<Item = &mut Vec<Packet>> {
        let actors = self.groups.iter_mut().flat_map(|group| &mut group.actors);
        actors.flat_map(|actor| [&mut actor.mailbox, &mut actor.unsent, &mut actor.outputs])
    }

    /// As bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut body = Writer(Vec::new());
        body.u64(self.stamp);
        body.u32(self.correlation);
        body.list(&self.groups, Writer::group);
        body.list(&self.topics, Writer::topic);
        body.list(&self.blocks, Writer::block);
        let mut out = Vec::with_capacity(HEAD + body.0.len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(body.0.len() as u64).to_le_bytes());
        out.extend_from_slice(&crc32fast::hash(&body.0).to_le_bytes());
        out.extend_from_slice(&body.0);
        out
    }

    /// What [`Image::to_bytes`] made; or why it is not that.
    pub(crate) fn from_bytes(bytes: &[u8]) -> std::result::Result<Image, String> {
        let mut head = Reader(bytes);
        if head.take(8)? != MAGIC {
            return Err("it is no checkpoint of actors".into());
        }
        match head.u32()? {
            VERSION => {}
            other => {
                return Err(format!(
                    "it is of version {other}, and this reads version {VERSION}"
                ));
            }
        }
        let (length, sum) = (head.u64()?, head.u32()?);
        let body = head.0;
        if body.len() as u64 != length {
            return Err(format!("it is torn: {} of {length} bytes are there", body.len()));
        }
        if crc32fast::hash(body) != sum {
            return Err("it is damaged: its checksum does not match".into());
        }
        let mut body = Reader(body);
        let image = Image {
            stamp: body.u64()?,
            correlation: body.u32()?,
            groups: body.list(Reader::group)?,
            topics: body.list(Reader::topic)?,
            blocks: body.list(Reader::block)?,
        };
        match body.0 {
            [] => Ok(image),
            rest => Err(format!("{} bytes too many are at its end", rest.len())),
        }
    }

    /// Writes it to a file: either the whole of it is there afterwards, or what was there before.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        write_file(path, &self.to_bytes())
    }

    /// Reads it from a file.
    pub(crate) fn read(path: &Path) -> Result<Image> {
        let bytes = fs::read(path).map_err(|source| ActorError::Io {
            path: path.display().to_string(),
            source,
        })?;
        Image::from_bytes(&bytes).map_err(|cause| unusable(path, cause))
    }
}

/// Writes a file: either all bytes are there afterwards, or what was there before.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |source| ActorError::Io {
        path: path.display().to_string(),
        source,
    };
    let beside = beside(path);
    let written = write_whole(&beside, path, bytes);
    if written.is_err() {
        // It may not even have been made.
        let _ = fs::remove_file(&beside);
    }
    written.map_err(failed)
}

/// The error of a checkpoint that cannot be used.
pub(crate) fn unusable(path: &Path, cause: String) -> ActorError {
    ActorError::Checkpoint {
        path: path.display().to_string(),
        cause,
    }
}

// The file that is written before it takes the place of `path`.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    path.with_file_name(name)
}

fn write_whole(beside: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(beside)?;
    file.write_all(bytes)?;
    // The bytes are on the disk before the name is.
    file.sync_all()?;
    drop(file);
    fs::rename(beside, path)?;
    // Directories cannot be opened everywhere; there the name follows when the system pleases.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match File::open(folder.unwrap_or(Path::new("."))) {
        Ok(folder) => folder.sync_all(),
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ActorId, Header, Kind, PAYLOAD_WORDS};

    fn image() -> Image {
        let packet = |n: u32| Packet {
            header: Header {
                destination: n,
                sender: ActorId::HOST,
                type_id: 3,
                correlation: n,
                sent: 1 << 40,
                kind: Kind::Ask,
                priority: 9,
                words: 1,
                deadline: 7,
                deliveries: Default::default(),
            },
            payload: [n; PAYLOAD_WORDS],
        };
        let actor = ActorImage {
            actor: 5,
            life: ActorState::Faulted,
            state: vec![1, 2, 3],
            mailbox: (0..4).map(packet).collect(),
            unsent: vec![packet(9)],
            outputs: vec![packet(8), packet(7)],
            subscriptions: vec![(
                Topic::new("a/+"),
                SubscribeOptions::default().at_least_once(Duration::from_millis(3)),
            )],
            processed: 11,
            errors: 1,
        };
        let group = GroupImage {
            name: "näme".into(),
            handler: "h".into(),
            state_type: "T".into(),
            first: 5,
            count: 2,
            capacity: 64,
            block_size: 1,
            device: 1,
            priority: 128,
            initial: vec![0; 3],
            deadline: Some(Duration::from_micros(5)),
            delivery: Delivery::AtLeastOnce,
            max_deliveries: 9,
            tick: Some(Duration::from_secs(3)),
            supervision: Supervision::Restart {
                max: 3,
                backoff: Duration::from_millis(7),
            },
            on_fault: OnFault::KeepState,
            supervisor: Some(2),
            actors: vec![actor],
            ..GroupImage::default()
        };
        Image {
            stamp: 99,
            correlation: 17,
            groups: vec![group, GroupImage::default()],
            topics: vec![Topic::new("a/b"), Topic::new("c")],
            blocks: vec![BlockImage {
                at: 16,
                generation: 3,
                limit: 5,
                words: vec![1, 2, 3],
            }],
        }
    }

    #[test]
    fn an_image_survives_its_bytes() {
        assert_eq!(Image::from_bytes(&image().to_bytes()), Ok(image()));
    }

    #[test]
    fn torn_damaged_and_foreign_ones_are_refused() {
        let bytes = image().to_bytes();
        let check = |bytes: &[u8], expect: &str| {
            let cause = Image::from_bytes(bytes).expect_err(expect);
            assert!(cause.contains(expect), "{cause}");
        };
        for len in 0..bytes.len() {
            let expect = if len < HEAD { "ends too early" } else { "torn" };
            check(&bytes[..len], expect);
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let expect = match at {
                0..8 => "no checkpoint of actors",
                8..12 => "version",
                12..20 => "torn",
                _ => "damaged",
            };
            check(&damaged, expect);
        }
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = std::env::temp_dir().join(format!("perpetua-actors-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("state");
        image().write(&path).expect("it is written");
        Image::default().write(&path).expect("it is written over");
        assert_eq!(Image::read(&path).expect("it is whole"), Image::default());
        assert_eq!(fs::read_dir(&folder).expect("the folder").count(), 1);
        fs::remove_dir_all(&folder).expect("the folder goes");
    }
}
