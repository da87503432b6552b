//! Which kernels make a product with an epilogue. Must not know launches.

use perpetua::prelude::*;

use super::Factors;
use super::epilogue::{Beside, Epilogue, Gate};
use super::gated::Joined;
use super::instance::{Instance, Lines};
use super::written::gemm_summed;
use crate::element::Element;

/// The kernels of an epilogue.
#[derive(Clone, Copy)]
pub(super) struct Finish {
    pub(super) product: fn(Instance) -> KernelFn,
    pub(super) sums: fn(Instance) -> KernelFn,
    /// Its type's name, by which two are told apart.
    name: &'static str,
    /// What stands beside elements, if anything does.
    pub(super) beside: Option<Beside>,
    /// Whether two columns of the product are one of C.
    pub(super) joins: bool,
}

impl Finish {
    pub(super) fn of<E: Epilogue>(beside: Option<Beside>) -> Finish {
        Finish {
            product: Instance::function::<E>,
            sums: sums::<E>,
            name: std::any::type_name::<E>(),
            beside,
            joins: false,
        }
    }

    pub(super) fn joined<G: Gate>() -> Finish {
        Finish {
            joins: true,
            ..Finish::of::<Joined<G>>(None)
        }
    }
}

impl PartialEq for Finish {
    fn eq(&self, other: &Finish) -> bool {
        (self.name, self.beside) == (other.name, other.beside)
    }
}

impl std::fmt::Debug for Finish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.name, self.beside)
    }
}

/// The kernel that adds up slices, for what C holds.
fn sums<E: Epilogue>(instance: Instance) -> KernelFn {
    macro_rules! of {
        ($sum:ty, $result:ty) => {
            match instance.lines {
                Lines::Halves => gemm_summed::kernel::<E, $sum, $result, u16>(),
                _ => gemm_summed::kernel::<E, $sum, $result, u32>(),
            }
        };
        ($sum:ty) => {
            match instance.result {
                Element::F32 => of!($sum, f32),
                Element::F16 => of!($sum, f16),
                Element::Bf16 => of!($sum, bf16),
            }
        };
    }
    match (instance.factors, instance.is_int) {
        (_, true) => of!(i32, i32),
        (Factors::I8, false) => of!(i32),
        _ => of!(f32),
    }
}
