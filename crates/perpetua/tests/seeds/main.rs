//! The samples of the documents that Perpetua was asked for with, as they stand there but for the crate's name. What had to be changed is
//! said beside it.

mod backends;
#[cfg(feature = "kernels")]
mod kernels;
mod ringkernel;
