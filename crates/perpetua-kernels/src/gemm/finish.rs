//! Which kernels make a product with an epilogue. Must not know launches.

use perpetua::prelude::*;

use super::Factors;
use super::epilogue::{Beside, Epilogue};
use super::staged::{Instance, Lines};
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
}

impl Finish {
    pub(super) fn of<E: Epilogue>(beside: Option<Beside>) -> Finish {
        Finish {
            product: Instance::function::<E>,
            sums: sums::<E>,
            name: std::any::type_name::<E>(),
            beside,
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
        ($result:ty) => {
            match instance.lines {
                Lines::Halves => gemm_summed::kernel::<E, $result, u16>(),
                _ => gemm_summed::kernel::<E, $result, u32>(),
            }
        };
    }
    match (instance.factors, instance.result) {
        (Factors::I8, _) => of!(i32),
        (_, Element::F32) => of!(f32),
        (_, Element::F16) => of!(f16),
        (_, Element::Bf16) => of!(bf16),
    }
}
