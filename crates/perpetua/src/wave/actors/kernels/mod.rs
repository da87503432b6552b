//! Tiles as kernels that stay: `conductor` brings them orders, `tile` is what they do with these.

pub(in crate::wave) mod conductor;
pub(in crate::wave) mod tile;

#[cfg(test)]
mod tests;
