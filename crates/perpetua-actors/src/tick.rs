//! The message that actors with a tick get. Must not know timers.

use perpetua::prelude::*;

use crate::message::{PAYLOAD_WORDS, RingMessage};

/// What an actor launched with `LaunchOptions::with_tick` gets each time: its handler must take it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType)]
#[repr(C)]
pub struct Tick {
    /// How many came before it.
    pub number: u64,
}

impl RingMessage for Tick {
    const TYPE_ID: u32 = 0x5449_434b;
    const WORDS: usize = 2;
    const NAME: &'static str = "Tick";

    fn to_payload(&self) -> [u32; PAYLOAD_WORDS] {
        let mut words = [0; PAYLOAD_WORDS];
        words[0] = self.number as u32;
        words[1] = (self.number >> 32) as u32;
        words
    }

    fn from_payload(words: &[u32; PAYLOAD_WORDS]) -> Tick {
        Tick {
            number: u64::from(words[0]) | u64::from(words[1]) << 32,
        }
    }
}
