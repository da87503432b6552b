//! The wave simulation as a web page: the window of `perpetua wave --window` on a canvas, and numbers by which a page's
//! results can be compared with those of a program. Must not know kernels and scenes' contents.

pub mod numbers;

#[cfg(target_arch = "wasm32")]
pub mod page;
