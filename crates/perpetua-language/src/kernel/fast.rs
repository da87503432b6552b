//! Arithmetic as fast as a device has it, by names of its own: methods of numbers are as exact as the book's tables say.

use perpetua_ir::math::eval_unary;
use perpetua_ir::ops::UnaryOp;

/// 2 to the `x`: on CUDA one instruction, off by up to `2^-22` of the result, which is zero where it would be subnormal. The CPU computes it as
/// [`f32::exp2`] in kernels does; wgpu as exactly as WGSL promises.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::prelude::*;
///
/// #[kernel]
/// fn powers(x: &[f32], out: &mut [f32]) {
///     let i = global_id_x();
///     if i < x.len() {
///         out[i] = fast_exp2(x[i]);
///     }
/// }
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = [-3.0f32, 0.0, 0.5, 10.0, f32::NEG_INFINITY, 200.0];
/// let out = device.zeros::<f32>(6)?;
/// device.launch(&powers::kernel(), LaunchConfig::linear(6, 64), args![&device.upload(&x)?, &out])?;
/// let powers = out.read()?;
/// assert_eq!(powers[4..], [0.0, f32::INFINITY]);
/// for (power, x) in powers.into_iter().zip(x).take(4) {
///     assert!((power / x.exp2() - 1.0).abs() < 3e-7);
/// }
/// # Ok::<(), perpetua::device::Error>(())
/// ```
pub fn fast_exp2(x: f32) -> f32 {
    eval_unary(UnaryOp::Exp2, x).unwrap_or(f32::NAN)
}
