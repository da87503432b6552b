//! What a program with kernels needs: `use perpetua::prelude::*;`.

pub use crate::kernel::atomic::*;
pub use crate::kernel::barrier::*;
pub use crate::kernel::fast::*;
pub use crate::kernel::half_float::HalfFloat as _;
pub use crate::kernel::index::*;
pub use crate::kernel::matrix::*;
pub use crate::kernel::resident::*;
pub use crate::kernel::scalar::{FurtherFloat as _, FurtherInteger as _, FurtherUnsigned as _};
pub use crate::kernel::shared::*;
pub use crate::kernel::stages::*;
#[doc(hidden)]
pub use crate::kernel::standard::{max, min, replace, swap, take};
pub use crate::kernel::subgroup::*;
pub use crate::kernel::{GridPos, KernelFn, gpu_println, volume};
pub use crate::{Edge, GpuType, StencilConfig, args, device, kernel};
pub use half::{bf16, f16};
pub use perpetua_device::{Dim3, LaunchConfig};
