//! Letters that reached nobody: each with its cause, the newest kept, all counted. Must not know who sent them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::lock::lock;
use crate::message::Packet;

/// Why a message's handler did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Its deadline had passed.
    Deadline,
    /// The handler does not take its type.
    ForeignType,
    /// There is no such actor, or no longer.
    NoActor,
    /// Its destination was full for too long.
    NoRoom,
    /// The actor was terminated before its turn.
    Terminated,
    /// The handler faulted on it.
    Fault(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Deadline => f.write_str("its deadline had passed"),
            Cause::ForeignType => f.write_str("the handler does not take its type"),
            Cause::NoActor => f.write_str("there is no such actor"),
            Cause::NoRoom => f.write_str("its destination was full for too long"),
            Cause::Terminated => f.write_str("the actor was terminated before its turn"),
            Cause::Fault(fault) => write!(f, "the handler faulted: {fault}"),
        }
    }
}

/// A message that reached nobody.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    /// The message.
    pub packet: Packet,
    /// What happened.
    pub cause: Cause,
}

/// The newest dead letters, and the number of all.
pub(crate) struct DeadLetters {
    letters: Mutex<VecDeque<DeadLetter>>,
    count: AtomicU64,
    keep: usize,
}

impl DeadLetters {
    pub(crate) fn new(keep: usize) -> DeadLetters {
        DeadLetters {
            letters: Mutex::default(),
            count: AtomicU64::new(0),
            keep,
        }
    }

    pub(crate) fn push(&self, letter: DeadLetter) {
        tracing::debug!(cause = %letter.cause, to = letter.packet.header.destination, "dead letter");
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut letters = lock(&self.letters);
        if letters.len() >= self.keep {
            letters.pop_front();
        }
        letters.push_back(letter);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn take(&self) -> Vec<DeadLetter> {
        std::mem::take(&mut *lock(&self.letters)).into()
    }
}
