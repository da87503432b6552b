//! Tiles as kernels that stay: `conductor` brings them orders, `tile` is what they do with these.

pub(crate) mod conductor;
pub(crate) mod tile;

#[cfg(test)]
mod tests;
