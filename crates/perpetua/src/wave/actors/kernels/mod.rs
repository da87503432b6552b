//! Tiles as kernels: that stay, or that end with their orders.

#[cfg(test)]
mod bounded;
pub(in crate::wave) mod resident;

#[cfg(test)]
mod tests;
