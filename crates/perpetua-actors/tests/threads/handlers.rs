//! A handler of several types of message, written by hand as `#[ring_kernel]` would write it.

use perpetua::prelude::*;
use perpetua_actors::context::Context;
use perpetua_actors::handler::{Handler, Takes};
use perpetua_actors::message::PAYLOAD_WORDS;
use perpetua_actors::{RingMessage, Tick};

/// Messages of words.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident = $id:literal { $($field:ident),* })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $name { $(pub(crate) $field: u32),* }
        impl RingMessage for $name {
            const TYPE_ID: u32 = $id;
            const WORDS: usize = [$(stringify!($field)),*].len();
            const NAME: &'static str = stringify!($name);
            fn to_payload(&self) -> [u32; PAYLOAD_WORDS] {
                let mut words = [0; PAYLOAD_WORDS];
                for (word, field) in words.iter_mut().zip([$(self.$field),*] as [u32; Self::WORDS]) {
                    *word = field;
                }
                words
            }
            fn from_payload(words: &[u32; PAYLOAD_WORDS]) -> Self {
                let [$($field),*, ..] = *words;
                $name { $($field),* }
            }
        }
    )* };
}

messages! {
    /// Counts, checks the order of each source's messages, replies [`Total`].
    Add = 1 { amount, source, sequence }
    /// The same without a reply.
    Note = 2 { amount, source, sequence }
    Total = 3 { count, sum }
    /// The handler sleeps and panics.
    Boom = 4 { number, micros }
    /// The handler sleeps and replies [`Total`].
    Sleep = 5 { micros }
    /// Sends a [`Note`] to an actor.
    Forward = 6 { to, amount, source, sequence }
    /// Replies so many [`Total`]s.
    Burst = 7 { replies }
    /// Replies [`Identity`].
    Who = 8 { nothing }
    Identity = 9 { actor, sender, threads, later }
    /// No handler here takes it.
    Foreign = 10 { nothing }
    /// Sends a [`Total`] to the host, unasked.
    Report = 11 { nothing }
    /// Publishes a [`Note`].
    Announce = 12 { topic, amount, sequence }
}

pub(crate) const SOURCES: usize = 4;

/// What the handler keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType)]
#[repr(C)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) sum: u64,
    pub(crate) ticks: u32,
    /// Messages that came before an earlier one of their source.
    pub(crate) disorder: u32,
    pub(crate) next: [u32; SOURCES],
}

#[kernel]
fn unused(x: &mut [u32]) {
    let i = global_id_x();
    if i < x.len() {
        x[i] += 1;
    }
}

fn note(tally: &mut Tally, amount: u32, source: u32, sequence: u32) {
    tally.count += 1;
    tally.sum += u64::from(amount);
    let next = &mut tally.next[source as usize];
    if sequence < *next {
        tally.disorder += 1;
    }
    *next = sequence + 1;
}

fn total(tally: &Tally) -> Total {
    Total {
        count: tally.count as u32,
        sum: tally.sum as u32,
    }
}

fn reply<M: RingMessage>(context: &mut Context, message: M) {
    context.reply_words(M::TYPE_ID, M::WORDS as u32, message.to_payload());
}

fn send<M: RingMessage>(context: &mut Context, to: u32, message: M) {
    context.send_words(to, M::TYPE_ID, M::WORDS as u32, message.to_payload());
}

unsafe fn native(
    context: &mut Context,
    state: *mut u8,
    type_id: u32,
    payload: &[u32; PAYLOAD_WORDS],
    _block: &mut [u32],
) -> bool {
    // SAFETY: the pointer is to a valid `Tally` that nobody else reaches (`NativeHandler`).
    let tally = unsafe { &mut *state.cast::<Tally>() };
    match type_id {
        Add::TYPE_ID => {
            let m = Add::from_payload(payload);
            note(tally, m.amount, m.source, m.sequence);
            reply(context, total(tally));
        }
        Note::TYPE_ID => {
            let m = Note::from_payload(payload);
            note(tally, m.amount, m.source, m.sequence);
        }
        Boom::TYPE_ID => {
            tally.sum = u64::MAX;
            let m = Boom::from_payload(payload);
            std::thread::sleep(std::time::Duration::from_micros(u64::from(m.micros)));
            panic!("boom {}", m.number);
        }
        Sleep::TYPE_ID => {
            let micros = u64::from(Sleep::from_payload(payload).micros);
            std::thread::sleep(std::time::Duration::from_micros(micros));
            tally.count += 1;
            reply(context, total(tally));
        }
        Forward::TYPE_ID => {
            let m = Forward::from_payload(payload);
            tally.count += 1;
            let (amount, source, sequence) = (m.amount, m.source, m.sequence);
            let note = Note {
                amount,
                source,
                sequence,
            };
            send(context, m.to, note);
        }
        Burst::TYPE_ID => {
            for _ in 0..Burst::from_payload(payload).replies {
                tally.count += 1;
                reply(context, total(tally));
            }
        }
        Who::TYPE_ID => {
            let identity = Identity {
                actor: context.actor(),
                sender: context.sender(),
                threads: context.group_size(),
                later: u32::from(context.now() > 0),
            };
            reply(context, identity);
        }
        Announce::TYPE_ID => {
            let m = Announce::from_payload(payload);
            let note = Note {
                amount: m.amount,
                source: 0,
                sequence: m.sequence,
            };
            context.publish_words(m.topic, Note::TYPE_ID, 3, note.to_payload());
        }
        Report::TYPE_ID => {
            tally.count += 1;
            send(context, u32::MAX, total(tally));
        }
        Tick::TYPE_ID => {
            tally.ticks += 1;
        }
        _ => return false,
    }
    true
}

fn takes() -> Vec<Takes> {
    vec![
        Takes::of::<Add>(Some(Total::TYPE_ID)),
        Takes::of::<Note>(None),
        Takes::of::<Boom>(None),
        Takes::of::<Sleep>(Some(Total::TYPE_ID)),
        Takes::of::<Forward>(None),
        Takes::of::<Burst>(Some(Total::TYPE_ID)),
        Takes::of::<Who>(Some(Identity::TYPE_ID)),
        Takes::of::<Report>(None),
        Takes::of::<Announce>(None),
        Takes::of::<Tick>(None),
    ]
}

/// The handler.
pub(crate) fn tally() -> Handler {
    Handler {
        group: false,
        name: "tally",
        path: "threads::handlers::tally",
        takes,
        state_size: size_of::<Tally>(),
        state_align: align_of::<Tally>(),
        version: 1,
        state_name: "Tally",
        state_type: <Tally as GpuType>::describe,
        native,
        resident: unused::kernel,
        batched: unused::kernel,
    }
}
