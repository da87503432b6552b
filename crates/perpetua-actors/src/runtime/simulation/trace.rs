//! What happened in a simulation, for those who look for why. Must not know who looks.

use std::fmt;
use std::time::Duration;

use crate::dead_letters::DeadReason;
use crate::lifecycle::ActorState;
use crate::message::ActorId;

/// Something that happened to an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// When, since the simulation began.
    pub at: Duration,
    /// To whom.
    pub actor: ActorId,
    /// What.
    pub what: Traced,
}

/// What happened. Messages are named by their stamps, of which no two are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Traced {
    /// Its mailbox took a message of this priority.
    Taken {
        /// The message's stamp.
        message: u64,
        /// Its priority.
        priority: u8,
    },
    /// Its mailbox had no room for a message.
    Full {
        /// The message's stamp.
        message: u64,
    },
    /// Its handler begins with a message, the first of its mailbox.
    Begun {
        /// The message's stamp.
        message: u64,
    },
    /// Its handler has returned: state and sends hold.
    Handled {
        /// The message's stamp.
        message: u64,
    },
    /// Its handler has faulted.
    Faulted {
        /// The message's stamp.
        message: u64,
    },
    /// A message to it is a dead letter.
    Dead {
        /// The message's stamp.
        message: u64,
        /// Why.
        reason: DeadReason,
    },
    /// It has come to another place in its life.
    Became(ActorState),
    /// A checkpoint had this message in its mailbox, and now it is there again.
    Restored {
        /// The message's stamp.
        message: u64,
        /// Its priority.
        priority: u8,
    },
    /// It goes on from a checkpoint, there in its life.
    Revived(ActorState),
    /// It is gone; what waited becomes dead letters.
    Removed,
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actor = self.actor;
        write!(f, "{:>12.3} us  {actor}: ", self.at.as_nanos() as f64 / 1e3)?;
        match self.what {
            Traced::Taken { message, priority } => write!(f, "takes {message:x} of priority {priority}"),
            Traced::Full { message } => write!(f, "has no room for {message:x}"),
            Traced::Begun { message } => write!(f, "begins {message:x}"),
            Traced::Handled { message } => write!(f, "has handled {message:x}"),
            Traced::Faulted { message } => write!(f, "faults on {message:x}"),
            Traced::Dead { message, reason } => write!(f, "{message:x} is a dead letter: {reason}"),
            Traced::Became(state) => write!(f, "is {state}"),
            Traced::Restored { message, priority } => {
                write!(f, "has {message:x} of priority {priority} again")
            }
            Traced::Revived(state) => write!(f, "goes on, {state}"),
            Traced::Removed => write!(f, "is gone"),
        }
    }
}
