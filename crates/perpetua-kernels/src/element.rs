//! How numbers are stored: kernels compute in `f32` and read and write any of these. Must not know the kernels.

use perpetua::prelude::*;

/// The type of the numbers that a kernel reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Element {
    /// 32 bits.
    #[default]
    F32,
    /// 16 bits, eleven of them for digits.
    F16,
    /// 16 bits with the range of `f32`, eight of them for digits.
    Bf16,
}

/// The instance of a generic kernel function for an [`Element`].
macro_rules! instance {
    ($element:expr, $kernel:path, $($argument:tt),*) => {{
        use $kernel as function;
        match $element {
            $crate::element::Element::F32 => function::kernel::<f32, $($argument),*>(),
            $crate::element::Element::F16 => function::kernel::<::half::f16, $($argument),*>(),
            $crate::element::Element::Bf16 => function::kernel::<::half::bf16, $($argument),*>(),
        }
    }};
}
pub(crate) use instance;

/// A type in which kernels keep numbers that they compute with in `f32`.
#[device]
pub(crate) trait Storage: GpuType {
    /// The number.
    fn wide(self) -> f32;
    /// The nearest number of this type.
    fn narrow(x: f32) -> Self;
}

#[device]
impl Storage for f32 {
    fn wide(self) -> f32 {
        self
    }

    fn narrow(x: f32) -> f32 {
        x
    }
}

#[device]
impl Storage for f16 {
    fn wide(self) -> f32 {
        self.to_f32()
    }

    fn narrow(x: f32) -> f16 {
        f16::from_f32(x)
    }
}

#[device]
impl Storage for bf16 {
    fn wide(self) -> f32 {
        self.to_f32()
    }

    fn narrow(x: f32) -> bf16 {
        bf16::from_f32(x)
    }
}
