//! What handlers put into their outboxes, as packets, and where these go: alike on every engine. Must not know engines.

use super::arena::{BlockId, Lease};
use super::engine::Refusal;
use super::group::Group;
use super::host::{Host, micros};
use crate::context::{ENTRY_WORDS, IS_ANSWER};
use crate::message::{ActorId, Header, Kind, PAYLOAD_WORDS, Packet, priority};

/// The entries of an outbox in the order of their delivery, as on devices that keep the answer apart: first what the handler gave back, which lies
/// behind all others.
pub(crate) fn in_order(entries: usize, flags: impl Fn(usize) -> u32) -> impl Iterator<Item = usize> {
    let has_answer = entries
        .checked_sub(1)
        .is_some_and(|last| flags(last) & IS_ANSWER != 0);
    let others = entries - usize::from(has_answer);
    (others..entries).chain(0..others)
}

/// The packet that an entry of `sender`'s outbox is; `None` where its kind does not exist. Where it takes vectors along, it gets the
/// block that the handler's message brought.
pub(crate) fn packet(
    host: &Host,
    sender: ActorId,
    word: impl Fn(usize) -> u32,
    brought: &mut Option<Lease>,
) -> Option<Packet> {
    let flags = word(3);
    let header = Header {
        destination: word(0),
        sender,
        type_id: word(1),
        correlation: word(2),
        sent: host.clock.tick().packed,
        kind: Kind::from_number(flags as u8)?,
        priority: match ((flags & !IS_ANSWER) >> 8) as u8 {
            0 => priority::NORMAL,
            other => other,
        },
        words: (flags >> 16) as u8,
        deadline: 0,
        deliveries: Default::default(),
    };
    let payload = std::array::from_fn(|i| word(ENTRY_WORDS - PAYLOAD_WORDS + i));
    let mut packet = Packet { header, payload };
    if BlockId::of(&packet).is_some() {
        match brought.take() {
            Some(lease) => lease.keep().attach(&mut packet),
            None => BlockId::detach(&mut packet),
        }
    }
    Some(packet)
}

/// Tells the caller that the handler of `question` gave no answer.
pub(crate) fn done(host: &Host, question: &Packet) -> Packet {
    let head = &question.header;
    let header = Header {
        destination: head.sender.0,
        sender: ActorId(head.destination),
        kind: Kind::Done,
        words: 0,
        deadline: 0,
        deliveries: Default::default(),
        sent: host.clock.tick().packed,
        ..*head
    };
    let payload = [0; PAYLOAD_WORDS];
    Packet { header, payload }
}

/// Whether the host took it, where it is for the host or a topic.
pub(crate) fn to_host(host: &Host, from: &Group, out: &Packet) -> Option<Result<(), Refusal>> {
    if out.header.kind == Kind::Publish {
        return Some(host.publish(from, out));
    }
    (out.header.destination == ActorId::HOST.0).then(|| host.take(from, out))
}

/// Gives a packet to the engine that has its destination, which its sender's has not; does not wait. `cause` is what the handler ran for,
/// where that is known. As [`Engine::offer`](super::engine::Engine::offer).
pub(crate) fn to_elsewhere(host: &Host, out: &Packet, cause: Option<&Header>) -> Result<u64, Refusal> {
    let to = ActorId(out.header.destination);
    let neighbours = host.neighbours().ok_or(Refusal::Gone)?;
    let group = neighbours.group_of(to).ok_or(Refusal::Gone)?;
    if is_unclaimed(&out.header, cause, &group) {
        neighbours.count_dropped(to);
        host.arena.release(out);
        return Ok(0);
    }
    neighbours.pass_on(out)
}

/// Whether nobody waits for this reply: whoever sent the message (`cause`) did not ask, and does not take its type.
pub(crate) fn is_unclaimed(head: &Header, cause: Option<&Header>, to: &Group) -> bool {
    matches!(head.kind, Kind::Reply | Kind::Done)
        && cause.is_none_or(|cause| cause.kind != Kind::Ask)
        && !to.takes(head.type_id)
}

/// Whether the message's deadline has passed at `now`, both by the hybrid logical clock.
pub(crate) fn is_late(head: &Header, now: u64) -> bool {
    head.deadline != 0 && micros(now) > micros(head.sent) + u64::from(head.deadline)
}
