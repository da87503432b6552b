//! Generates kernels: [`build`] makes a recipe of a group of a graph, [`kernel`] a kernel of the IR of a recipe.

mod build;
mod byte_float;
mod index;
mod kernel;
mod lookup;
mod product;
mod recipe;
mod rows;

pub(crate) use build::{Built, Group, build};
pub(crate) use kernel::kernel;
pub(crate) use recipe::Recipe;
