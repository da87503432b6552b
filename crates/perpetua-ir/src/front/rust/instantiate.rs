//! What is chosen when a function becomes a kernel: its generic arguments, the pointer width, the checks.

use super::describe::{ConstValue, TypeDesc};
use super::stencil::StencilConfig;
use crate::ir::Checks;

/// The choices under which a function is lowered.
#[derive(Clone, Debug, PartialEq)]
pub struct Instantiation {
    /// Generic arguments in the order of the parameters (lifetimes left out).
    pub generics: Vec<GenericValue>,
    /// Width of `usize` and `isize` in bits: 64, or 32 for targets without 64-bit integers. Parameters and buffers
    /// of `usize` and `isize` then hold 32-bit integers; structs with such fields are refused.
    pub pointer_width: u32,
    /// Whether multiplications and additions may be contracted into fused ones.
    pub contract: bool,
    /// Whether faults are checked for.
    pub checks: Checks,
    /// The work-group size that the kernel requires, where it requires one. A stencil's tile sets it too.
    pub block_size: Option<[u32; 3]>,
    /// How a stencil runs; ignored for other kernels.
    pub stencil: StencilConfig,
}

impl Default for Instantiation {
    fn default() -> Self {
        Instantiation {
            generics: Vec::new(),
            pointer_width: 64,
            contract: false,
            checks: Checks::On,
            block_size: None,
            stencil: StencilConfig::default(),
        }
    }
}

/// A generic argument.
#[derive(Clone, Debug, PartialEq)]
pub enum GenericValue {
    /// A type.
    Type(TypeDesc),
    /// The value of a const parameter: an integer or `bool`.
    Const(ConstValue),
}
