//! How arguments reach a kernel: the layouts that renderers write against and backends pack for.
//!
//! **CUDA (PTX and CUDA C, checked ABI)**, kernel parameters in this order: for each buffer its address (`u64`) and
//! its length in elements (`u64`); for each value its bytes as in memory (`bool` one byte); then the address of the
//! fault record (`u64`, [`crate::fault::record`]) and the launch's site base (`u32`); then, only when the kernel
//! prints, the address of the print ring (`u64`, [`crate::print::ring`]). Each parameter is aligned to its size.
//! Plain ABI: addresses and values only.
//!
//! **WGSL and MSL**: buffer parameters are bindings 0, 1, … in order (in bind group 0); the next binding is the
//! argument block ([`ArgsLayout`]: a uniform `array<vec4<u32>, N>` in WGSL, `constant uint*` in MSL); the next one
//! the fault record (`array<atomic<u32>, 16>`).

use crate::ir::{Kernel, ParamKind, Type};

/// Where things stand in the argument block of WGSL and MSL, in `u32` words.
///
/// Words 0 to 2: the logical grid size in blocks (a dispatch may be folded: group `(x, y, z)` of a folded
/// dispatch has the linear index `x + y * dispatch.x`, compared with the logical count; word 3: the launch's site base.
/// Then, for each parameter in order, two words for a buffer (length in elements; index of its first element in the
/// binding) or a value's bytes, starting on a word; then, if the kernel has dynamic shared memory, its size in
/// bytes (WGSL, where that is fixed when the kernel is rendered, does not read it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgsLayout {
    /// For each parameter, its first word.
    pub params: Vec<u32>,
    /// The word that holds the size of dynamic shared memory in bytes, if the kernel has any.
    pub dynamic_shared: Option<u32>,
    /// Size of the block in words, a multiple of four.
    pub words: u32,
}

impl ArgsLayout {
    /// Word of the logical grid size's x; y and z follow.
    pub const GRID: u32 = 0;
    /// Word of the site base.
    pub const SITE_BASE: u32 = 3;

    /// The layout for a kernel.
    pub fn of(kernel: &Kernel) -> ArgsLayout {
        let mut at = 4;
        let params = kernel
            .params
            .iter()
            .map(|p| {
                let here = at;
                at += match &p.kind {
                    ParamKind::Buffer { .. } => 2,
                    ParamKind::Value(ty) => value_words(ty),
                };
                here
            })
            .collect();
        let dynamic_shared = kernel.shared.iter().any(|s| s.dynamic).then_some(at);
        at += u32::from(dynamic_shared.is_some());
        ArgsLayout {
            params,
            dynamic_shared,
            words: at.next_multiple_of(4),
        }
    }

    /// Binding number of the argument block; the fault record is the next.
    pub fn binding(kernel: &Kernel) -> u32 {
        kernel
            .params
            .iter()
            .filter(|p| matches!(p.kind, ParamKind::Buffer { .. }))
            .count() as u32
    }
}

/// Words that a value parameter takes in the argument block.
pub fn value_words(ty: &Type) -> u32 {
    ty.size().div_ceil(4)
}
