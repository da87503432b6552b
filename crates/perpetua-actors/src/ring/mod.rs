//! Bounded rings between threads of the host: [`spsc`] from one thread to one, [`mpsc`] from many to one. What does not fit is
//! given back, never lost. States, races and orderings: `README.md` beside this file. Must not know what travels in them.

pub mod mpsc;
mod slots;
pub mod spsc;

#[cfg(all(test, perpetua_loom))]
mod loom_models;
#[cfg(all(test, not(perpetua_loom)))]
mod tests;

use crate::error::{ActorError, Result};

/// The most messages that a ring can be made for.
pub const MAX_CAPACITY: usize = 1 << 24;

/// Why a ring did not take a message, and the message.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError<T> {
    /// The ring is full: receive, or send later.
    #[error("the ring is full: receive from it, send later, or make it larger")]
    Full(T),
    /// Nobody will receive.
    #[error("the ring is closed: nobody will receive from it")]
    Closed(T),
}

impl<T> std::fmt::Debug for PushError<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PushError::Full(_) => "Full",
            PushError::Closed(_) => "Closed",
        })
    }
}

impl<T> PushError<T> {
    /// The message that was not taken.
    pub fn into_inner(self) -> T {
        match self {
            PushError::Full(value) | PushError::Closed(value) => value,
        }
    }

    /// Whether sending again can help.
    pub fn is_full(&self) -> bool {
        matches!(self, PushError::Full(_))
    }
}

/// An error unless `capacity` is a power of two from 2 to [`MAX_CAPACITY`].
pub fn check_capacity(capacity: usize) -> Result<()> {
    if capacity.is_power_of_two() && (2..=MAX_CAPACITY).contains(&capacity) {
        return Ok(());
    }
    Err(ActorError::Capacity { capacity })
}
