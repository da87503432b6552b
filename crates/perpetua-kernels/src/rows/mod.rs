//! What is computed of each row of a matrix by itself: softmax and norms. Must not know products.
//!
//! A row belongs to 32 or 256 lanes of a block. Where it fits into their registers, memory is read once; longer rows are read again, from
//! the cache where it holds them.

mod norm;
mod reduce;
mod softmax;

pub(crate) use reduce::across;

use perpetua_device::{KernelArg, LaunchConfig, Stream};
use perpetua_language::{KernelFn, args};

use crate::element::{Element, instance};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::operand::{Operand, check};

/// A matrix whose rows are worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rows {
    rows: usize,
    columns: usize,
    pitches: [usize; 2],
    element: Element,
}

/// Who works on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Team {
    /// 32 lanes with four numbers each.
    Small,
    /// 256 lanes with four numbers each.
    Medium,
    /// 256 lanes with 16 numbers each.
    Large,
    /// 256 lanes that read the row again.
    Long,
}

impl Rows {
    fn new(rows: usize, columns: usize) -> Rows {
        Rows {
            rows,
            columns,
            pitches: [columns; 2],
            element: Element::F32,
        }
    }

    fn team(&self) -> Team {
        match self.columns {
            0..=128 => Team::Small,
            129..=1024 => Team::Medium,
            1025..=4096 => Team::Large,
            _ => Team::Long,
        }
    }

    /// What is read, then `between`, then what is written.
    fn operands<const N: usize>(&self, between: [&'static str; N]) -> Vec<Operand> {
        let matrix = |name, pitch| Operand {
            name,
            rows: self.rows,
            columns: self.columns,
            pitch,
        };
        let mut all = vec![matrix("x", self.pitches[0])];
        all.extend(between.map(|name| Operand::vector(name, self.columns)));
        all.push(matrix("y", self.pitches[1]));
        all
    }

    /// Checks the arguments and launches the function with the matrix's sizes before `more` and them.
    fn launch<const N: usize>(
        &self,
        function: KernelFn,
        stream: &Stream,
        between: [&'static str; N],
        more: &[KernelArg<'_>],
        args: &[KernelArg<'_>],
    ) -> Result<()> {
        check(function.name(), &self.operands(between), args)?;
        if self.rows == 0 || self.columns == 0 {
            return Ok(());
        }
        let a_block = if self.team() == Team::Small { 8 } else { 1 };
        let blocks = u32::try_from(self.rows.div_ceil(a_block)).unwrap_or(u32::MAX);
        let [x_pitch, y_pitch] = self.pitches;
        let mut all = args![self.rows, self.columns, x_pitch, y_pitch].to_vec();
        all.extend_from_slice(more);
        all.extend_from_slice(args);
        Ok(stream.launch(&function, LaunchConfig::new(blocks, 256), &all)?)
    }
}

/// What all kernels over rows are told in the same way.
macro_rules! rows_options {
    ($kernel:ident) => {
        impl $kernel {
            /// How many elements lie from the start of a row to the start of the next, in `x` and in `y`: a row's length unless said
            /// otherwise.
            pub fn with_pitches(mut self, x: usize, y: usize) -> $kernel {
                self.rows.pitches = [x, y];
                self
            }

            /// The type of what is read and written, `f32` unless said otherwise. Sums are in `f32` in each case.
            pub fn with_element(mut self, element: Element) -> $kernel {
                self.rows.element = element;
                self
            }
        }
    };
}

/// The softmax of each row, `exp(x - max) / sum(exp(x - max))`, or its logarithm. Launched with two buffers: `x` and `y`, which may be
/// the same.
///
/// A row with a NaN or with +inf becomes NaN all over, as does one of nothing but -inf. With sums of `c` columns an element's relative
/// error is at most about `(c / 256 + 16) * 2^-24`, and that of its type.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{Kernel, SoftmaxKernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = device.upload(&[0.0f32, 0.0, 1.0, f32::NEG_INFINITY])?;
/// let y = device.zeros::<f32>(4)?;
/// SoftmaxKernel::new(2, 2).launch(&device.default_stream(), args![&x, &y])?;
/// assert_eq!(y.read()?, [0.5, 0.5, 1.0, 0.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftmaxKernel {
    rows: Rows,
    logarithm: bool,
}

rows_options!(SoftmaxKernel);

impl SoftmaxKernel {
    /// For `rows` rows of `columns` elements.
    pub fn new(rows: usize, columns: usize) -> SoftmaxKernel {
        SoftmaxKernel {
            rows: Rows::new(rows, columns),
            logarithm: false,
        }
    }

    /// The logarithm of the softmax, `x - max - ln(sum(exp(x - max)))`.
    pub fn log(mut self) -> SoftmaxKernel {
        self.logarithm = true;
        self
    }
}

impl Kernel for SoftmaxKernel {
    fn function(&self) -> KernelFn {
        let element = self.rows.element;
        match (self.rows.team(), self.logarithm) {
            (Team::Small, false) => instance!(element, softmax::softmax, 32, 4, false),
            (Team::Small, true) => instance!(element, softmax::softmax, 32, 4, true),
            (Team::Medium, false) => instance!(element, softmax::softmax, 256, 4, false),
            (Team::Medium, true) => instance!(element, softmax::softmax, 256, 4, true),
            (Team::Large, false) => instance!(element, softmax::softmax, 256, 16, false),
            (Team::Large, true) => instance!(element, softmax::softmax, 256, 16, true),
            (Team::Long, false) => instance!(element, softmax::softmax_long, false),
            (Team::Long, true) => instance!(element, softmax::softmax_long, true),
        }
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        self.rows.launch(self.function(), stream, [], &[], args)
    }
}

/// The layer norm of each row, `(x - mean) / sqrt(variance + epsilon) * weight + bias`, with the mean of the squared deviations as the
/// variance. Launched with four buffers: `x`, `weight` and `bias` of a row's length, and `y`, which may be `x`.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{Kernel, LayerNormKernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = device.upload(&[1.0f32, 3.0])?;
/// let weight = device.full(2, 10.0f32)?;
/// let bias = device.zeros::<f32>(2)?;
/// let y = device.zeros::<f32>(2)?;
/// LayerNormKernel::new(1, 2, 0.0).launch(&device.default_stream(), args![&x, &weight, &bias, &y])?;
/// assert_eq!(y.read()?, [-10.0, 10.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNormKernel {
    rows: Rows,
    epsilon: f32,
}

rows_options!(LayerNormKernel);

impl LayerNormKernel {
    /// For `rows` rows of `columns` elements; `epsilon` keeps rows of one value from a division by 0.
    pub fn new(rows: usize, columns: usize, epsilon: f32) -> LayerNormKernel {
        LayerNormKernel {
            rows: Rows::new(rows, columns),
            epsilon,
        }
    }
}

impl Kernel for LayerNormKernel {
    fn function(&self) -> KernelFn {
        let element = self.rows.element;
        match self.rows.team() {
            Team::Small => instance!(element, norm::layer_norm, 32, 4),
            Team::Medium => instance!(element, norm::layer_norm, 256, 4),
            Team::Large => instance!(element, norm::layer_norm, 256, 16),
            Team::Long => instance!(element, norm::layer_norm_long,),
        }
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let between = ["weight", "bias"];
        self.rows
            .launch(self.function(), stream, between, args![self.epsilon], args)
    }
}

/// The RMS norm of each row, `x / sqrt(mean(x^2) + epsilon) * weight`. Launched with three buffers: `x`, `weight` of a row's length,
/// and `y`, which may be `x`.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{Kernel, RmsNormKernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = device.upload(&[3.0f32, -3.0])?;
/// let weight = device.upload(&[1.0f32, 2.0])?;
/// RmsNormKernel::new(1, 2, 0.0).launch(&device.default_stream(), args![&x, &weight, &x])?;
/// assert_eq!(x.read()?, [1.0, -2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsNormKernel {
    rows: Rows,
    epsilon: f32,
}

rows_options!(RmsNormKernel);

impl RmsNormKernel {
    /// For `rows` rows of `columns` elements; `epsilon` keeps rows of zeros from a division by 0.
    pub fn new(rows: usize, columns: usize, epsilon: f32) -> RmsNormKernel {
        RmsNormKernel {
            rows: Rows::new(rows, columns),
            epsilon,
        }
    }
}

impl Kernel for RmsNormKernel {
    fn function(&self) -> KernelFn {
        let element = self.rows.element;
        match self.rows.team() {
            Team::Small => instance!(element, norm::rms_norm, 32, 4),
            Team::Medium => instance!(element, norm::rms_norm, 256, 4),
            Team::Large => instance!(element, norm::rms_norm, 256, 16),
            Team::Long => instance!(element, norm::rms_norm_long,),
        }
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        self.rows
            .launch(self.function(), stream, ["weight"], args![self.epsilon], args)
    }
}
