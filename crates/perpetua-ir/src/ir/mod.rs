//! The intermediate representation, in the order in which a reader needs it.

pub mod array;
mod builder;
pub mod constant;
mod kernel;
mod met;
pub mod npy;
mod operands;
mod operation;
pub mod records;
mod stages;
pub mod text;
mod types;
mod typing;

pub use builder::*;
pub use kernel::*;
pub use met::Met;
pub use operation::*;
pub use stages::{Factor, Reading, StageElement, Stages};
pub use types::*;
pub use typing::*;
