//! What a checkpoint holds, value after value, little-endian: as bytes and back. Texts and lists begin with their length; a message
//! is its packet's words. Must not know files.

use std::time::Duration;

use super::{ActorImage, BlockImage, GroupImage, TypeImage};
use crate::delivery::Delivery;
use crate::lifecycle::ActorState;
use crate::message::{PACKET_WORDS, Packet};
use crate::pubsub::{Overflow, QualityOfService, SubscribeOptions};
use crate::supervise::{OnFault, Supervision};
use crate::topic::Topic;

/// Appends values to bytes.
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn u8(&mut self, n: u8) {
        self.0.push(n);
    }

    pub(super) fn u32(&mut self, n: u32) {
        self.0.extend_from_slice(&n.to_le_bytes());
    }

    pub(super) fn u64(&mut self, n: u64) {
        self.0.extend_from_slice(&n.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn list<T>(&mut self, items: &[T], write: fn(&mut Writer, &T)) {
        self.u64(items.len() as u64);
        items.iter().for_each(|item| write(self, item));
    }

    pub(super) fn option<T>(&mut self, item: Option<T>, write: fn(&mut Writer, T)) {
        self.u8(u8::from(item.is_some()));
        if let Some(item) = item {
            write(self, item);
        }
    }

    pub(super) fn duration(&mut self, time: Duration) {
        self.u64(time.as_secs());
        self.u32(time.subsec_nanos());
    }

    pub(super) fn topic(&mut self, topic: &Topic) {
        self.bytes(topic.as_str().as_bytes());
    }

    pub(super) fn subscription(&mut self, (pattern, options): &(Topic, SubscribeOptions)) {
        self.topic(pattern);
        self.u64(options.capacity as u64);
        self.u8(match options.overflow {
            Overflow::Refuse => 0,
            Overflow::DropOldest => 1,
            Overflow::DropNewest => 2,
        });
        self.u8(match options.quality {
            QualityOfService::AtMostOnce => 0,
            QualityOfService::AtLeastOnce => 1,
        });
        self.duration(options.redeliver_after);
        self.u32(options.max_deliveries);
    }

    pub(super) fn packet(&mut self, packet: &Packet) {
        packet.to_words().into_iter().for_each(|word| self.u32(word));
    }

    pub(super) fn block(&mut self, block: &BlockImage) {
        self.u32(block.at);
        self.u32(block.generation);
        self.u32(block.limit);
        self.list(&block.words, |writer, word| writer.u32(*word));
    }

    pub(super) fn group(&mut self, group: &GroupImage) {
        self.bytes(group.name.as_bytes());
        self.bytes(group.handler.as_bytes());
        self.u32(group.version);
        self.bytes(group.state_type.as_bytes());
        self.list(&group.takes, Writer::message_type);
        self.u32(group.first);
        self.u32(group.count);
        self.u64(group.capacity);
        self.u32(group.block_size);
        self.u32(group.device);
        self.u8(group.priority);
        self.bytes(&group.initial);
        self.option(group.deadline, Writer::duration);
        self.option(group.run_limit, Writer::duration);
        self.option(group.tick, Writer::duration);
        match group.supervision {
            Supervision::Manual => self.u8(0),
            Supervision::Restart { max, backoff } => {
                self.u8(1);
                self.u32(max);
                self.duration(backoff);
            }
            Supervision::Escalate => self.u8(2),
            Supervision::Stop => self.u8(3),
        }
        self.u8(group.on_fault as u8);
        self.u8(group.delivery as u8);
        self.u8(group.max_deliveries);
        self.option(group.supervisor, Writer::u32);
        self.list(&group.actors, Writer::actor);
    }

    pub(super) fn message_type(&mut self, one: &TypeImage) {
        self.u32(one.type_id);
        self.bytes(one.path.as_bytes());
        self.u32(one.version);
        self.bytes(one.layout.as_bytes());
    }

    pub(super) fn actor(&mut self, actor: &ActorImage) {
        self.u32(actor.actor);
        self.u8(actor.life as u8);
        self.bytes(&actor.state);
        self.list(&actor.mailbox, Writer::packet);
        self.list(&actor.unsent, Writer::packet);
        self.list(&actor.outputs, Writer::packet);
        self.list(&actor.subscriptions, Writer::subscription);
        self.u64(actor.processed);
        self.u64(actor.errors);
    }
}

/// Takes values off bytes.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

/// A value, or why there is none.
pub(super) type Read<T> = std::result::Result<T, String>;

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, len: usize) -> Read<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(len).ok_or("it ends too early")?;
        self.0 = tail;
        Ok(head)
    }

    pub(super) fn number<const N: usize>(&mut self) -> Read<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    pub(super) fn u8(&mut self) -> Read<u8> {
        self.number().map(u8::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Read<u32> {
        self.number().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Read<u64> {
        self.number().map(u64::from_le_bytes)
    }

    pub(super) fn bytes(&mut self) -> Read<Vec<u8>> {
        let len = usize::try_from(self.u64()?).map_err(|_| "a length is too large")?;
        self.take(len).map(<[u8]>::to_vec)
    }

    pub(super) fn text(&mut self) -> Read<String> {
        String::from_utf8(self.bytes()?).map_err(|_| "a text is none".into())
    }

    pub(super) fn list<T>(&mut self, read: fn(&mut Reader<'a>) -> Read<T>) -> Read<Vec<T>> {
        // No space is set aside for what a length promises.
        (0..self.u64()?).map(|_| read(self)).collect()
    }

    pub(super) fn option<T>(&mut self, read: fn(&mut Reader<'a>) -> Read<T>) -> Read<Option<T>> {
        match self.u8()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            other => Err(format!("a mark is {other}")),
        }
    }

    pub(super) fn duration(&mut self) -> Read<Duration> {
        let (seconds, nanos) = (self.u64()?, self.u32()?);
        match nanos {
            0..1_000_000_000 => Ok(Duration::new(seconds, nanos)),
            _ => Err("a time is none".into()),
        }
    }

    pub(super) fn topic(&mut self) -> Read<Topic> {
        self.text().map(Topic::new)
    }

    pub(super) fn subscription(&mut self) -> Read<(Topic, SubscribeOptions)> {
        let pattern = self.topic()?;
        let options = SubscribeOptions {
            capacity: usize::try_from(self.u64()?).map_err(|_| "a length is too large")?,
            overflow: match self.u8()? {
                0 => Overflow::Refuse,
                1 => Overflow::DropOldest,
                2 => Overflow::DropNewest,
                other => return Err(format!("a policy is {other}")),
            },
            quality: match self.u8()? {
                0 => QualityOfService::AtMostOnce,
                1 => QualityOfService::AtLeastOnce,
                other => return Err(format!("a quality is {other}")),
            },
            redeliver_after: self.duration()?,
            max_deliveries: self.u32()?,
        };
        Ok((pattern, options))
    }

    pub(super) fn packet(&mut self) -> Read<Packet> {
        let mut words = [0; PACKET_WORDS];
        for word in &mut words {
            *word = self.u32()?;
        }
        Packet::from_words(&words).ok_or_else(|| "a message has a kind that does not exist".into())
    }

    pub(super) fn block(&mut self) -> Read<BlockImage> {
        Ok(BlockImage {
            at: self.u32()?,
            generation: self.u32()?,
            limit: self.u32()?,
            words: self.list(Reader::u32)?,
        })
    }

    pub(super) fn group(&mut self) -> Read<GroupImage> {
        Ok(GroupImage {
            name: self.text()?,
            handler: self.text()?,
            version: self.u32()?,
            state_type: self.text()?,
            takes: self.list(Reader::message_type)?,
            first: self.u32()?,
            count: self.u32()?,
            capacity: self.u64()?,
            block_size: self.u32()?,
            device: self.u32()?,
            priority: self.u8()?,
            initial: self.bytes()?,
            deadline: self.option(Reader::duration)?,
            run_limit: self.option(Reader::duration)?,
            tick: self.option(Reader::duration)?,
            supervision: match self.u8()? {
                0 => Supervision::Manual,
                1 => Supervision::Restart {
                    max: self.u32()?,
                    backoff: self.duration()?,
                },
                2 => Supervision::Escalate,
                3 => Supervision::Stop,
                other => return Err(format!("a supervision is {other}")),
            },
            on_fault: match self.u8()? {
                0 => OnFault::Transactional,
                1 => OnFault::KeepState,
                2 => OnFault::Restart,
                other => return Err(format!("what a fault leaves is {other}")),
            },
            delivery: match self.u8()? {
                0 => Delivery::AtMostOnce,
                1 => Delivery::AtLeastOnce,
                other => return Err(format!("a delivery is {other}")),
            },
            max_deliveries: self.u8()?,
            supervisor: self.option(Reader::u32)?,
            actors: self.list(Reader::actor)?,
        })
    }

    pub(super) fn message_type(&mut self) -> Read<TypeImage> {
        Ok(TypeImage {
            type_id: self.u32()?,
            path: self.text()?,
            version: self.u32()?,
            layout: self.text()?,
        })
    }

    pub(super) fn actor(&mut self) -> Read<ActorImage> {
        Ok(ActorImage {
            actor: self.u32()?,
            life: ActorState::from_number(self.u8()?).ok_or("a life is none")?,
            state: self.bytes()?,
            mailbox: self.list(Reader::packet)?,
            unsent: self.list(Reader::packet)?,
            outputs: self.list(Reader::packet)?,
            subscriptions: self.list(Reader::subscription)?,
            processed: self.u64()?,
            errors: self.u64()?,
        })
    }
}
