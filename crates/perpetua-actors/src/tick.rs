//! The message that actors with a tick get. Must not know timers.

use perpetua::prelude::*;

use super::RingMessage;

/// What an actor launched with `LaunchOptions::with_tick` gets each time: its handler must take it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType, RingMessage)]
#[message(type_id = 0x5449_434b)]
#[repr(C)]
pub struct Tick {
    /// How many came before it.
    pub number: u64,
}
