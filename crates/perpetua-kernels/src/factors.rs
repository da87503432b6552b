//! What products in stages multiply. Must not know kernels.

/// What a product in stages multiplies, as A and B hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Factors {
    /// `f16`, which C holds, too, unless [`GemmKernel::with_element`](crate::GemmKernel::with_element) is given `F32` afterwards.
    F16,
    /// `bf16`; as before.
    Bf16,
    /// `f32` of which the low 13 bits do not count; C holds `f32`.
    Tf32,
    /// [`E4m3`](crate::E4m3); C holds what [`GemmKernel::with_element`](crate::GemmKernel::with_element) says. Tensor cores keep 14 bits of a sum: [`GemmKernel::with_promoted_sums`](crate::GemmKernel::with_promoted_sums) has more.
    E4m3,
    /// [`E5m2`](crate::E5m2); as before.
    E5m2,
    /// `i8`; sums are exact, and wrap. C holds them as `i32`, unless an epilogue or a gate makes floats of them.
    I8,
}

impl Factors {
    /// Bytes of one of them.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Factors::F16 | Factors::Bf16 => 2,
            Factors::Tf32 => 4,
            Factors::E4m3 | Factors::E5m2 | Factors::I8 => 1,
        }
    }

    /// Whether they are floats of a byte.
    pub(crate) fn is_byte(self) -> bool {
        matches!(self, Factors::E4m3 | Factors::E5m2)
    }
}
