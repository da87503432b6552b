//! What runs on a device around a handler: the kernel that stays there ([`resident`]), the one that handles a batch
//! ([`batched`]), and the functions of which they are made. Must not know hosts.
//!
//! [`slots`] is how a packet lies in a ring's slot, [`layout`] where what lies in the buffers that hosts and devices share.

pub mod layout;
pub mod slots;

pub mod batched;
mod resident;
