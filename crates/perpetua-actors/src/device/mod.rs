//! What runs on a device around a handler: the kernel that stays there, for handlers that a lane runs (`lanes`) and for those that a group
//! runs together (`resident`), and the one that handles a batch ([`batched`]). Must not know hosts. [`source`] is the text of all.
//!
//! [`layout`] says where what lies in the buffers that hosts and devices share.

pub mod layout;

pub mod batched;
mod lanes;
mod resident;
pub mod source;
