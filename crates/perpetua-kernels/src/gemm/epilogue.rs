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
