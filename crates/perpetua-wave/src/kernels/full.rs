//! The kernels for fields stored in 32 bits.

use perpetua::prelude::*;

// One text for both ways in which the field is stored.
#[allow(clippy::duplicate_mod)]
#[path = "step.rs"]
mod step;

// As above.
#[allow(clippy::duplicate_mod)]
#[path = "blocked.rs"]
pub(crate) mod blocked;

// As above.
#[allow(clippy::duplicate_mod)]
#[path = "column.rs"]
pub(crate) mod column;

// As above.
#[allow(clippy::duplicate_mod)]
#[path = "four.rs"]
pub(crate) mod four;

// As above.
#[allow(clippy::duplicate_mod)]
#[path = "variable.rs"]
mod variable;

pub(crate) use step::{media_2d, media_3d, open_2d, open_3d};
pub(crate) use variable::{variable_2d, variable_3d};

/// How the field is stored.
type Stored = f32;

#[device]
#[inline(always)]
fn load(x: f32) -> f32 {
    x
}

#[device]
#[inline(always)]
fn store(x: f32) -> f32 {
    x
}
