//! What travels between actors: a header of eight words and a payload of up to sixteen, the same on every backend. Must
//! not know rings.

use std::fmt;

use perpetua::prelude::*;

use super::delivery::Deliveries;

/// Words (of 32 bits) in a header.
pub const HEADER_WORDS: usize = 8;
/// Words of payload that a message has room for: 64 bytes.
pub const PAYLOAD_WORDS: usize = 16;
/// Words of a packet.
pub const PACKET_WORDS: usize = HEADER_WORDS + PAYLOAD_WORDS;

/// Names an actor within its runtime. The host itself is [`ActorId::HOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActorId(pub u32);

impl ActorId {
    /// The program that holds the runtime: replies to it come out of the device.
    pub const HOST: ActorId = ActorId(u32::MAX);
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ActorId::HOST => f.write_str("the host"),
            ActorId(id) => write!(f, "actor {id}"),
        }
    }
}

/// Names a message: unique within a process, ascending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, GpuType)]
#[repr(C)]
pub struct MessageId(pub u64);

/// Priorities of messages and actors; higher goes first.
pub mod priority {
    /// Before nothing.
    pub const LOW: u8 = 64;
    /// Unless said otherwise.
    pub const NORMAL: u8 = 128;
    /// Before normal ones.
    pub const HIGH: u8 = 192;
    /// Before all others.
    pub const CRITICAL: u8 = 255;
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A message that nobody waits for an answer to.
    Message = 0,
    /// A message whose sender waits for the answer with the same correlation.
    Ask = 1,
    /// What a handler gave back, or sent as a further reply.
    Reply = 2,
    /// What a handler published; the destination is a topic's number.
    Publish = 3,
    /// Told by a device to its host: an actor's handler faulted. The payload: site, operands, and the type of the message.
    Fault = 4,
    /// Told by a host to its device: a command to an actor or to its home. The type is the command.
    Command = 5,
    /// A handler of this message has run and gave nothing back.
    Done = 6,
    /// Told by a device to its host: a message that could not be delivered.
    Undelivered = 7,
}

impl Kind {
    /// The kind with this number.
    pub fn from_number(number: u8) -> Option<Kind> {
        use Kind::*;
        [Message, Ask, Reply, Publish, Fault, Command, Done, Undelivered]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

/// The first words of every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Who is to handle it; for [`Kind::Publish`] a topic's number.
    pub destination: u32,
    /// Who sent it.
    pub sender: ActorId,
    /// The payload's type ([`RingMessage::TYPE_ID`]).
    pub type_id: u32,
    /// What an answer repeats; 0 when nobody waits.
    pub correlation: u32,
    /// When it was sent, by the sender's hybrid logical clock: microseconds since 1970 in the upper 52 bits, a counter
    /// in the lower 12.
    pub sent: u64,
    /// What it is.
    pub kind: Kind,
    /// Its priority; higher goes first where messages wait on the host.
    pub priority: u8,
    /// Words of payload that mean something.
    pub words: u8,
    /// Microseconds after `sent` when it is no longer worth handling; 0: never.
    pub deadline: u32,
    /// How often it was delivered before, and how often its sender wants it to be.
    pub deliveries: Deliveries,
}

/// A message as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Who, what and when.
    pub header: Header,
    /// The message's words, zeros behind them.
    pub payload: [u32; PAYLOAD_WORDS],
}

impl Header {
    /// Its seventh word: kind, priority, words and deliveries.
    #[inline]
    pub fn flags(&self) -> u32 {
        u32::from_le_bytes([self.kind as u8, self.priority, self.words, self.deliveries.bits()])
    }
}

impl Packet {
    /// This message, from the host to nobody yet.
    pub fn of<M: RingMessage>(message: &M) -> Packet {
        let header = Header {
            destination: ActorId::HOST.0,
            sender: ActorId::HOST,
            type_id: M::TYPE_ID,
            correlation: 0,
            sent: 0,
            kind: Kind::Message,
            priority: message.priority().unwrap_or(priority::NORMAL),
            words: M::WORDS.min(PAYLOAD_WORDS) as u8,
            deadline: 0,
            deliveries: Default::default(),
        };
        Packet {
            header,
            payload: message.to_payload(),
        }
    }

    /// Whether it must be delivered before `other`: messages of one sender to one actor keep their order within a priority.
    pub(crate) fn goes_before(&self, other: &Packet) -> bool {
        let way = |packet: &Packet| {
            let head = &packet.header;
            (head.sender, head.destination, head.priority)
        };
        way(self) == way(other) && self.header.sent < other.header.sent
    }

    /// The packet as words.
    pub fn to_words(&self) -> [u32; PACKET_WORDS] {
        let h = &self.header;
        let mut words = [0; PACKET_WORDS];
        let head = [
            h.destination,
            h.sender.0,
            h.type_id,
            h.correlation,
            h.sent as u32,
            (h.sent >> 32) as u32,
            h.flags(),
            h.deadline,
        ];
        words[..HEADER_WORDS].copy_from_slice(&head);
        words[HEADER_WORDS..].copy_from_slice(&self.payload);
        words
    }

    /// The packet that these words are; `None` where the kind does not exist.
    pub fn from_words(words: &[u32; PACKET_WORDS]) -> Option<Packet> {
        let mut payload = [0; PAYLOAD_WORDS];
        payload.copy_from_slice(&words[HEADER_WORDS..]);
        let flags = words[6];
        Some(Packet {
            header: Header {
                destination: words[0],
                sender: ActorId(words[1]),
                type_id: words[2],
                correlation: words[3],
                sent: u64::from(words[4]) | u64::from(words[5]) << 32,
                kind: Kind::from_number(flags as u8)?,
                priority: (flags >> 8) as u8,
                words: (flags >> 16) as u8,
                deadline: words[7],
                deliveries: Deliveries::from_bits((flags >> 24) as u8),
            },
            payload,
        })
    }
}

/// A number for a type of message (FNV-1a; the lower half is left to be chosen).
#[doc(hidden)]
#[must_use]
pub const fn type_number(path: &str, layout: &str, version: u32) -> u32 {
    let mut hash: u32 = 0x811c_9dc5;
    let version = version.to_le_bytes();
    let texts: [&[u8]; 4] = [path.as_bytes(), &[0], layout.as_bytes(), &version];
    let mut text = 0;
    while text < texts.len() {
        let mut at = 0;
        while at < texts[text].len() {
            hash = (hash ^ texts[text][at] as u32).wrapping_mul(0x0100_0193);
            at += 1;
        }
        text += 1;
    }
    hash | 0x8000_0000
}

/// A type of message of fixed layout: what `#[derive(RingMessage)]` implements. Its fields travel as words of 32 bits in
/// the order of declaration: smaller scalars take a word each, 64-bit ones two (lower half first).
pub trait RingMessage: Copy + Send + Sync + 'static {
    /// Tells types apart. As `#[message(type_id = 1)]` says, else a hash of the type's crate, modules, name, fields and version.
    const TYPE_ID: u32;
    /// Words that it takes: at most [`PAYLOAD_WORDS`].
    const WORDS: usize;
    /// The type's name.
    const NAME: &'static str;
    /// Crate, modules and name; as `#[message(path = "bank::Pay")]` says where the type stands for another one's older version.
    const PATH: &'static str = Self::NAME;
    /// Which version it is, as `#[message(version = 2)]` says.
    const VERSION: u32 = 1;
    /// Its fields with their types, for people and to tell versions apart.
    const LAYOUT: &'static str = "";

    /// Its words, zeros behind them.
    fn to_payload(&self) -> [u32; PAYLOAD_WORDS];
    /// The message that has these words.
    fn from_payload(words: &[u32; PAYLOAD_WORDS]) -> Self;

    /// The field marked `#[message(id)]`.
    fn message_id(&self) -> Option<MessageId> {
        None
    }
    /// The field marked `#[message(correlation)]`.
    fn correlation(&self) -> Option<u64> {
        None
    }
    /// The field marked `#[message(priority)]`.
    fn priority(&self) -> Option<u8> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_survives_its_words() {
        let packet = Packet {
            header: Header {
                destination: 7,
                sender: ActorId::HOST,
                type_id: 0xdead_beef,
                correlation: 3,
                sent: 0x0123_4567_89ab_cdef,
                kind: Kind::Ask,
                priority: priority::HIGH,
                words: 2,
                deadline: 1000,
                deliveries: Deliveries::from_bits(0x83),
            },
            payload: std::array::from_fn(|i| i as u32),
        };
        assert_eq!(Packet::from_words(&packet.to_words()), Some(packet));
        let mut foreign = packet.to_words();
        foreign[6] = 0xff;
        assert_eq!(Packet::from_words(&foreign), None);
    }
}
