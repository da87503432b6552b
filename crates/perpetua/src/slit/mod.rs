//! The wave simulation: scene, kernel and time steps, picture.

pub(crate) mod picture;
pub(crate) mod scene;
pub(crate) mod simulation;
