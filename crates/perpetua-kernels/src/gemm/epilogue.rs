//! What happens to the elements of a product before they are stored. Must not know how products are made.

use perpetua::prelude::*;

/// What a product does with each element before it is stored: a function of the kernel language, given to [`GemmKernel::with_epilogue`](super::GemmKernel::with_epilogue).
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{Beside, Epilogue, GemmKernel, Kernel};
/// use perpetua::prelude::*;
///
/// /// A bias for each column, and the rectifier.
/// #[derive(Clone, Copy, GpuType)]
/// #[repr(C)]
/// struct BiasRelu {
///     unit: u8, // a type of the language has a field
/// }
///
/// #[device]
/// impl Epilogue for BiasRelu {
///     fn apply(element: f32, beside: f32) -> f32 {
///         (element + beside).max(0.0)
///     }
/// }
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let a = device.upload(&[f16::from_f32(0.25); 20 * 24])?;
/// let b = device.upload(&[f16::from_f32(2.0); 24 * 16])?;
/// let bias: Vec<f16> = (0..16).map(|i| f16::from_f32(if i == 3 { -100.0 } else { 0.5 })).collect();
/// let (bias, c) = (device.upload(&bias)?, device.zeros::<f16>(20 * 16)?);
/// let product = GemmKernel::staged(20, 16, 24).with_epilogue::<BiasRelu>(Beside::Columns);
/// product.launch(&device.default_stream(), args![&a, &b, &bias, &c])?;
/// assert_eq!(c.read()?[2..4], [f16::from_f32(12.5), f16::from_f32(0.0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[device]
pub trait Epilogue: GpuType {
    /// What is stored for an element, `alpha` times its sum plus `beta` times what was there; `beside` is what the launch's further buffer has for it.
    fn apply(element: f32, beside: f32) -> f32;

    /// Whether there is such a buffer. All have one but what the library uses where there is no epilogue.
    fn takes_part() -> bool {
        true
    }

    /// Whether each two columns of the product become one of C; [`Gate`] is how one asks for that.
    fn joins() -> bool {
        false
    }

    /// What two columns become then.
    fn join(first: f32, _second: f32) -> f32 {
        first
    }
}

/// What a product makes of each two columns, as gated layers have them, `silu(x W1) * (x W2)`: a function of the kernel language, given to [`GemmKernel::with_gate`](super::GemmKernel::with_gate).
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{Gate, GemmKernel, Kernel};
/// use perpetua::prelude::*;
///
/// #[derive(Clone, Copy, GpuType)]
/// #[repr(C)]
/// struct SwiGlu {
///     unit: u8, // a type of the language has a field
/// }
///
/// #[device]
/// impl Gate for SwiGlu {
///     fn join(gate: f32, value: f32) -> f32 {
///         gate / (1.0 + (-gate).exp()) * value
///     }
/// }
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = device.upload(&[f16::ONE; 20 * 24])?; // 20 x 24
/// // Rows of W1 and W2 in turn: 2 * 16 x 24.
/// let w: Vec<f16> = (0..32 * 24).map(|i| f16::from_f32(if i / 24 % 2 == 0 { 10.0 } else { 0.25 })).collect();
/// let (w, c) = (device.upload(&w)?, device.zeros::<f16>(20 * 16)?);
/// let product = GemmKernel::staged(20, 32, 24).with_transposed(false, true).with_gate::<SwiGlu>();
/// product.launch(&device.default_stream(), args![&x, &w, &c])?;
/// assert_eq!(c.read()?, [f16::from_f32(240.0 * 6.0); 20 * 16]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[device]
pub trait Gate: GpuType {
    /// What is stored for `alpha` times the sums of an even column and of the odd one behind it.
    fn join(gate: f32, value: f32) -> f32;
}

/// For which elements of a product the further buffer of an [`Epilogue`] has a number, of C's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Beside {
    /// One for each column: a bias, or a scale.
    Columns,
    /// One for each row.
    Rows,
    /// One for each element, row by row: a residual, or a gate.
    Elements,
}

/// None.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
pub(super) struct Plain {
    // Types of the language have a field.
    none: u8,
}

#[device]
impl Epilogue for Plain {
    fn apply(element: f32, _beside: f32) -> f32 {
        element
    }

    fn takes_part() -> bool {
        false
    }
}
