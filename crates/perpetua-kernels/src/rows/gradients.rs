//! Gradients of softmax and norms: what launches take. Must not know how lanes compute them.

use perpetua_device::{BackendKind, Buffer, KernelArg, LaunchConfig, Stream};
use perpetua_language::{KernelFn, args};

use super::norm_backward::{self, SIDES};
use super::{Part, Plan, Rows, Team, row_instance, rows_options, softmax};
use crate::element::{Bf16s, Element, F16s, F32s, instance};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, ptx_of, unchecked};
use crate::operand::check;

/// Lanes of a block that computes gradients of rows.
const LANES: u32 = 512;
/// Rows that columns are added up over before slices of them are, and most slices.
const SLICE: usize = 64;
const MOST_SLICES: usize = 64;

/// The gradient of [`SoftmaxKernel`](super::SoftmaxKernel), or of its logarithm, by its result. Launched with three buffers: `y`, what the kernel has computed, `dy`, its
/// gradient, and `dx`, which may be one of them.
///
/// Sums are in `f32`, in an order that depends on the shape alone.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{Kernel, SoftmaxBackwardKernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let y = device.upload(&[0.5f32, 0.5])?;
/// let dy = device.upload(&[1.0f32, 0.0])?;
/// let dx = device.zeros::<f32>(2)?;
/// SoftmaxBackwardKernel::new(1, 2).launch(&device.default_stream(), args![&y, &dy, &dx])?;
/// assert_eq!(dx.read()?, [0.25, -0.25]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftmaxBackwardKernel {
    rows: Rows,
    logarithm: bool,
}

rows_options!(SoftmaxBackwardKernel);

impl SoftmaxBackwardKernel {
    /// For `rows` rows of `columns` elements.
    pub fn new(rows: usize, columns: usize) -> SoftmaxBackwardKernel {
        SoftmaxBackwardKernel {
            rows: Rows::new(rows, columns).of_lanes(LANES),
            logarithm: false,
        }
    }

    /// The gradient of the softmax's logarithm, by that logarithm.
    pub fn log(mut self) -> SoftmaxBackwardKernel {
        self.logarithm = true;
        self
    }

    fn planned(&self, plan: Plan) -> KernelFn {
        match self.logarithm {
            false => row_instance!(self.rows.element, plan, softmax::softmax_backward, false),
            true => row_instance!(self.rows.element, plan, softmax::softmax_backward, true),
        }
    }
}

impl Kernel for SoftmaxBackwardKernel {
    fn function(&self) -> KernelFn {
        self.planned(self.rows.best())
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        // The text is what CUDA runs. SAFETY: nothing is launched here; what launches it, `launch`, says why it may.
        ptx_of(unsafe { unchecked(self.function()) }, sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let parts = [Part::Read("y"), Part::Read("dy"), Part::Written("dx")];
        self.rows
            .launch(|plan| self.planned(plan), stream, &parts, &[], args)
    }
}

/// The gradients of [`LayerNormKernel`](super::LayerNormKernel). Launched with six buffers: `x`, `weight` and `dy`, the result's gradient, are read; `dx`,
/// `dweight` and `dbias` are written.
///
/// Sums are in `f32`, in an order that depends on the shape alone. A launch takes memory for a few numbers of each row and column from the device's pool.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{Kernel, LayerNormBackwardKernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let (x, dy) = (device.upload(&[1.0f32, 3.0])?, device.upload(&[1.0f32, 2.0])?);
/// let weight = device.full(2, 10.0f32)?;
/// let [dx, dweight, dbias] = [(); 3].map(|()| device.zeros::<f32>(2));
/// let (dx, dweight, dbias) = (dx?, dweight?, dbias?);
/// let norm = LayerNormBackwardKernel::new(1, 2, 0.0);
/// norm.launch(&device.default_stream(), args![&x, &weight, &dy, &dx, &dweight, &dbias])?;
/// assert_eq!((dx.read()?, dweight.read()?, dbias.read()?), (vec![0.0; 2], vec![-1.0, 2.0], vec![1.0, 2.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNormBackwardKernel {
    rows: Rows,
    epsilon: f32,
}

rows_options!(LayerNormBackwardKernel);

impl LayerNormBackwardKernel {
    /// For `rows` rows of `columns` elements and the norm's `epsilon`.
    pub fn new(rows: usize, columns: usize, epsilon: f32) -> LayerNormBackwardKernel {
        LayerNormBackwardKernel {
            rows: Rows::new(rows, columns).of_lanes(LANES),
            epsilon,
        }
    }

    fn planned(&self, plan: Plan) -> KernelFn {
        row_instance!(self.rows.element, plan, norm_backward::layer_norm_backward,)
    }
}

impl Kernel for LayerNormBackwardKernel {
    fn function(&self) -> KernelFn {
        self.planned(self.rows.best())
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        // The text is what CUDA runs. SAFETY: nothing is launched here; what launches it, `launch`, says why it may.
        ptx_of(unsafe { unchecked(self.function()) }, sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let parts = [
            Part::Read("x"),
            Part::Columns("weight"),
            Part::Read("dy"),
            Part::Written("dx"),
        ];
        let columns = [("dweight", 0), ("dbias", 1)];
        let planned = |plan| self.planned(plan);
        self.rows
            .norm_backward(planned, stream, &parts, &columns, self.epsilon, args)
    }
}

/// The gradients of [`RmsNormKernel`](super::RmsNormKernel). Launched with five buffers: `x`, `weight` and `dy`, the result's gradient, are read; `dx`, and
/// `dweight` are written.
///
/// Sums are in `f32`, in an order that depends on the shape alone. A launch takes memory for a few numbers of each row and column from the device's pool.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{Kernel, RmsNormBackwardKernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let (x, dy) = (device.upload(&[3.0f32, -3.0])?, device.upload(&[3.0f32, 0.0])?);
/// let weight = device.full(2, 2.0f32)?;
/// let (dx, dweight) = (device.zeros::<f32>(2)?, device.zeros::<f32>(2)?);
/// let norm = RmsNormBackwardKernel::new(1, 2, 0.0);
/// norm.launch(&device.default_stream(), args![&x, &weight, &dy, &dx, &dweight])?;
/// assert_eq!((dx.read()?, dweight.read()?), (vec![1.0, 1.0], vec![3.0, 0.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsNormBackwardKernel {
    rows: Rows,
    epsilon: f32,
    residual: bool,
}

rows_options!(RmsNormBackwardKernel);

impl RmsNormBackwardKernel {
    /// For `rows` rows of `columns` elements and the norm's `epsilon`.
    pub fn new(rows: usize, columns: usize, epsilon: f32) -> RmsNormBackwardKernel {
        RmsNormBackwardKernel {
            rows: Rows::new(rows, columns).of_lanes(LANES),
            epsilon,
            residual: false,
        }
    }

    /// Of the norm of a sum, [`RmsNormKernel::with_residual`](super::RmsNormKernel::with_residual): `x` is the sum, and launches take six buffers, `x`, `weight`, `dy`, `dsum`, `dx` and
    /// `dweight`, of which `dsum` is the gradient of the sum from wherever else it goes. Then `dx`, which may also be `dsum`, is the gradient of both that were added.
    pub fn with_residual(mut self) -> RmsNormBackwardKernel {
        self.residual = true;
        self
    }

    fn planned(&self, plan: Plan) -> KernelFn {
        let element = self.rows.element;
        match self.residual {
            false => row_instance!(element, plan, norm_backward::rms_norm_backward,),
            true => row_instance!(element, plan, norm_backward::rms_norm_of_sum_backward,),
        }
    }
}

impl Kernel for RmsNormBackwardKernel {
    fn function(&self) -> KernelFn {
        self.planned(self.rows.best())
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        // The text is what CUDA runs. SAFETY: nothing is launched here; what launches it, `launch`, says why it may.
        ptx_of(unsafe { unchecked(self.function()) }, sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let mut parts = vec![
            Part::Read("x"),
            Part::Columns("weight"),
            Part::Read("dy"),
            Part::Written("dx"),
        ];
        if self.residual {
            parts.insert(3, Part::Read("dsum"));
        }
        let planned = |plan| self.planned(plan);
        self.rows
            .norm_backward(planned, stream, &parts, &[("dweight", 0)], self.epsilon, args)
    }
}

impl Rows {
    /// Launches for the gradients of a norm: of the rows by `function`, which is given `parts` and leaves the mean and the scale of each; then of what columns are weighed by and, where there is one, of
    /// what is added to them.
    fn norm_backward(
        &self,
        function: impl Fn(Plan) -> KernelFn,
        stream: &Stream,
        parts: &[Part],
        columns: &[(&'static str, usize)],
        epsilon: f32,
        args: &[KernelArg<'_>],
    ) -> Result<()> {
        let name = function(self.best()).name();
        let mut all = parts.to_vec();
        all.extend(columns.iter().map(|(name, _)| Part::Columns(name)));
        check(name, &self.operands(&all), args)?;
        let (of_rows, of_columns) = args.split_at(parts.len());
        for (arg, part) in args.iter().zip(&all) {
            let (Part::Read(operand) | Part::Written(operand) | Part::Columns(operand)) = *part else {
                continue;
            };
            self.is_held(name, operand, arg)?;
        }
        let device = stream.device();
        let slices = self.rows.div_ceil(SLICE).min(MOST_SLICES);
        let scales = device.alloc::<f32>(2 * self.rows)?;
        let sums = device.alloc::<f32>(2 * slices * self.columns)?;
        if !self.is_empty() {
            let mut with_scales = of_rows.to_vec();
            with_scales.push(scales.arg());
            let mut parts = parts.to_vec();
            parts.push(Part::Other("scales", 2 * self.rows));
            self.launch(function, stream, &parts, args![epsilon], &with_scales)?;
            self.add_columns(
                stream,
                [&of_rows[0], &of_rows[2]],
                &scales,
                &sums,
                (slices, columns.len() == 2),
            )?;
        }
        for ((_, which), arg) in columns.iter().zip(of_columns) {
            let mut function = instance!(self.element, norm_backward::norm_columns_total,);
            if device.backend() == BackendKind::Cuda {
                // SAFETY: columns are compared with how many there are, for each of which the result has room, as `check` has found, and each slice has two numbers.
                function = unsafe { unchecked(function) };
            }
            let all = args![self.columns, slices, which * self.columns, &sums, arg.clone()];
            let blocks = u32::try_from(self.columns.div_ceil(256)).unwrap_or(u32::MAX);
            if blocks > 0 {
                stream.launch(&function, LaunchConfig::new(blocks, 256), all)?;
            }
        }
        Ok(())
    }

    /// Adds up columns of slices of the rows: of `dy` times the normed `x`, and of `dy`.
    fn add_columns(
        &self,
        stream: &Stream,
        matrices: [&KernelArg<'_>; 2],
        scales: &Buffer<f32>,
        sums: &Buffer<f32>,
        (slices, centred): (usize, bool),
    ) -> Result<()> {
        let matrices = matrices.map(KernelArg::clone);
        let pieces = match self.best().pieces {
            true => self.in_pieces(&[Part::Read("x"), Part::Read("dy")], &matrices),
            false => None,
        };
        let count = if pieces.is_some() { self.element.piece() } else { 1 };
        macro_rules! of {
            ($piece:ty, $count:literal) => {
                match centred {
                    false => norm_backward::norm_columns::kernel::<$piece, $count, false>(),
                    true => norm_backward::norm_columns::kernel::<$piece, $count, true>(),
                }
            };
        }
        let mut function = match (self.element, pieces.is_some()) {
            (Element::F32, false) => of!(f32, 1),
            (Element::F32, true) => of!(F32s, 4),
            (Element::F16, false) => of!(half::f16, 1),
            (Element::F16, true) => of!(F16s, 8),
            (Element::Bf16, false) => of!(half::bf16, 1),
            (Element::Bf16, true) => of!(Bf16s, 8),
        };
        if stream.device().backend() == BackendKind::Cuda {
            // SAFETY: rows and pieces are compared with how many there are, for which the matrices have room, as `check` has found; each row has two scales, and each slice two numbers a
            // column. Indices into the block's memory are below its 256 lanes, into a piece constants.
            function = unsafe { unchecked(function) };
        }
        let [wide, _] = SIDES;
        let blocks = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let grid = (blocks((self.columns / count).div_ceil(wide)), blocks(slices));
        let mut all = args![
            self.rows,
            self.columns / count,
            self.pitches[0] / count,
            self.rows.div_ceil(slices)
        ]
        .to_vec();
        all.extend(pieces.unwrap_or(matrices.to_vec()));
        all.extend([scales.arg(), sums.arg()]);
        Ok(stream.launch(&function, LaunchConfig::new(grid, 256), &all)?)
    }

    /// Whether a buffer holds the kernel's type: what several launches work on is compared before the first.
    pub(super) fn is_held(
        &self,
        kernel: &'static str,
        operand: &'static str,
        arg: &KernelArg<'_>,
    ) -> Result<()> {
        match arg {
            KernelArg::Buffer(buffer) if !self.element.is(buffer.element()) => Err(Error::Stored {
                kernel,
                operand,
                found: buffer.element().to_string(),
                element: format!("{:?}", self.element),
            }),
            _ => Ok(()),
        }
    }
}
