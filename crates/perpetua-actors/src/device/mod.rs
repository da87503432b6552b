//! What runs on a device around a handler: the kernel that stays there (`resident`), the one that handles a batch
//! ([`batched`]). Must not know hosts. [`source`] is the text of both.
//!
//! [`layout`] says where what lies in the buffers that hosts and devices share.

pub mod layout;

pub mod batched;
mod resident;
pub mod source;
