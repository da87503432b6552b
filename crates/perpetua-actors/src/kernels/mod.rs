//! Code of kernels, all that runs on a device around a handler: the resident kernel (`resident`, put together from [`parts`]), and the kernel
//! that handles a batch ([`batched`]). Must not know hosts. [`source`] is the text of all.
//!
//! [`layout`] says where what lies in the buffers that hosts and devices share.

pub mod layout;

pub mod batched;
#[doc(hidden)]
pub mod parts;
mod resident;
pub mod source;
