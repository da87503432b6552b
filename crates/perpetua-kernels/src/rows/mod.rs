//! What is computed of each row of a matrix by itself: softmax, norms and cross entropy, with their gradients. Must not know products.
//!
//! A row belongs to 32 to 512 lanes of a block. What their registers have room for is read once, the rest of longer rows again, from
//! the cache where it holds them.

mod cross_entropy;
mod gradients;
mod loss;
mod norm;
mod norm_backward;
mod row;
mod select;
mod selection;
mod softmax;

pub use gradients::{LayerNormBackwardKernel, RmsNormBackwardKernel, SoftmaxBackwardKernel};
pub use loss::{CrossEntropyBackwardKernel, CrossEntropyKernel, Reduction};
pub use selection::{ArgmaxKernel, TopKKernel};

use perpetua_device::{BackendKind, KernelArg, LaunchConfig, Stream};
use perpetua_ir::back::Capability;
use perpetua_language::{KernelFn, args};

use crate::element::Element;
use crate::error::Result;
use crate::kernel::{Kernel, number, ptx_unchecked, unchecked_on};
use crate::operand::{Operand, check};

/// A matrix whose rows are worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rows {
    rows: usize,
    columns: usize,
    pitches: [usize; 2],
    element: Element,
    /// Lanes of a block, where the kernel says how many.
    lanes: Option<u32>,
    /// Whether rows need not begin where pieces do: then sizes and pitches count numbers.
    loose: bool,
    /// Whether gradients of norms read rows once that they can keep; `None` where the shape decides.
    once: Option<bool>,
}

/// A buffer of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// A matrix that is read.
    Read(&'static str),
    /// A matrix that is written.
    Written(&'static str),
    /// A number for each column, of the matrices' type.
    Columns(&'static str),
    /// So many numbers of a type that the kernel has.
    Other(&'static str, usize),
}

/// Who works on a row, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    /// Whose registers hold how much.
    team: Team,
    /// Whether a row is read and written in pieces of 16 bytes.
    pieces: bool,
    /// Whether lanes meet in subgroups.
    meets: bool,
}

/// Lanes of a row, and numbers that each holds: the more a lane holds, the less its sums over lanes weigh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Team {
    /// 32 lanes with eight numbers each.
    Small,
    /// 32 lanes with 32 numbers each.
    Medium,
    /// 128 lanes with 32 numbers each.
    Large,
    /// 256 lanes with 32 numbers each.
    Larger,
    /// 512 lanes with 32 numbers each; they read again what is longer.
    Long,
}

/// The instance of a kernel over rows: its type of pieces and what it knows of them, then what the caller adds.
macro_rules! row_instance {
    ($element:expr, $plan:expr, $kernel:path, $($more:tt),*) => {{
        use $kernel as function;
        macro_rules! of_piece {
            ($piece:ty, $count:literal) => {
                match ($plan.team, $plan.meets) {
                    (Team::Small, false) => function::kernel::<$piece, $count, 32, 8, false $(, $more)*>(),
                    (Team::Small, true) => function::kernel::<$piece, $count, 32, 8, true $(, $more)*>(),
                    (Team::Medium, false) => function::kernel::<$piece, $count, 32, 32, false $(, $more)*>(),
                    (Team::Medium, true) => function::kernel::<$piece, $count, 32, 32, true $(, $more)*>(),
                    (Team::Large, false) => function::kernel::<$piece, $count, 128, 32, false $(, $more)*>(),
                    (Team::Large, true) => function::kernel::<$piece, $count, 128, 32, true $(, $more)*>(),
                    (Team::Larger, false) => function::kernel::<$piece, $count, 256, 32, false $(, $more)*>(),
                    (Team::Larger, true) => function::kernel::<$piece, $count, 256, 32, true $(, $more)*>(),
                    (Team::Long, false) => function::kernel::<$piece, $count, 512, 32, false $(, $more)*>(),
                    (Team::Long, true) => function::kernel::<$piece, $count, 512, 32, true $(, $more)*>(),
                }
            };
        }
        match ($element, $plan.pieces) {
            (Element::F32, false) => of_piece!(f32, 1),
            (Element::F32, true) => of_piece!($crate::element::F32s, 4),
            (Element::F16, false) => of_piece!(::half::f16, 1),
            (Element::F16, true) => of_piece!($crate::element::F16s, 8),
            (Element::Bf16, false) => of_piece!(::half::bf16, 1),
            (Element::Bf16, true) => of_piece!($crate::element::Bf16s, 8),
        }
    }};
}
use row_instance;

impl Rows {
    fn new(rows: usize, columns: usize) -> Rows {
        Rows {
            rows,
            columns,
            pitches: [columns; 2],
            element: Element::F32,
            lanes: None,
            loose: false,
            once: None,
        }
    }

    /// For kernels that fix their lanes, so that each has more registers.
    fn of_lanes(self, lanes: u32) -> Rows {
        Rows {
            lanes: Some(lanes),
            ..self
        }
    }

    fn team(&self) -> Team {
        if self.loose {
            // Rows are read once, and no lane keeps them: as few lanes as keep a large GPU busy, with some turns each.
            return match (self.rows, self.columns) {
                (_, 0..=256) => Team::Small,
                (0..2048, 16384..) => Team::Larger,
                (0..4096, 4096..) => Team::Large,
                _ => Team::Medium,
            };
        }
        match self.columns {
            0..=256 => Team::Small,
            257..=1024 => Team::Medium,
            1025..=4096 => Team::Large,
            4097..=8192 => Team::Larger,
            _ => Team::Long,
        }
    }

    /// For a device with subgroups and for buffers that begin as they should.
    fn best(&self) -> Plan {
        let whole = |n: &usize| n.is_multiple_of(self.element.piece());
        Plan {
            team: self.team(),
            pieces: self.loose || whole(&self.columns) && self.pitches.iter().all(whole),
            meets: true,
        }
    }

    /// The same for this stream's device.
    fn plan_on(&self, stream: &Stream) -> Plan {
        let device = stream.device();
        Plan {
            // A row's lanes are consecutive ones, which wgpu does not promise of a subgroup's.
            meets: device.backend() != BackendKind::Wgpu
                && device.info().capabilities.contains(&Capability::Subgroups),
            ..self.best()
        }
    }

    /// What a launch's buffers must have room for.
    fn operands(&self, parts: &[Part]) -> Vec<Operand> {
        let matrix = |name, pitch| Operand {
            pitch,
            ..Operand::dense(name, self.rows, self.columns)
        };
        let operand = |part: &Part| match *part {
            Part::Read(name) => matrix(name, self.pitches[0]),
            Part::Written(name) => matrix(name, self.pitches[1]),
            Part::Columns(name) => Operand::vector(name, self.columns),
            Part::Other(name, len) => Operand::vector(name, len),
        };
        parts.iter().map(operand).collect()
    }

    /// The arguments in pieces, where they lie so that they can be.
    fn in_pieces<'a>(&self, parts: &[Part], args: &[KernelArg<'a>]) -> Option<Vec<KernelArg<'a>>> {
        // Rows that begin anywhere may end in a piece that is not whole.
        let extent = self.pitches[0] * self.rows.saturating_sub(1) + self.columns;
        let holds_all = |pieces: &KernelArg<'a>| match pieces {
            KernelArg::Buffer(buffer) => {
                !self.loose || buffer.len() as usize >= extent.div_ceil(self.element.piece())
            }
            KernelArg::Value(_) => true,
        };
        let piece = |(part, arg): (&Part, &KernelArg<'a>)| match part {
            Part::Other(..) => Some(arg.clone()),
            _ => self.element.in_pieces(arg).filter(holds_all),
        };
        parts.iter().zip(args).map(piece).collect()
    }

    /// Checks the arguments and launches the function with the matrix's sizes before `more` and them, where there are rows.
    fn launch(
        &self,
        function: impl Fn(Plan) -> KernelFn,
        stream: &Stream,
        parts: &[Part],
        more: &[KernelArg<'_>],
        args: &[KernelArg<'_>],
    ) -> Result<()> {
        let mut plan = self.plan_on(stream);
        check(function(plan).name(), &self.operands(parts), args)?;
        if self.rows == 0 {
            return Ok(());
        }
        let pieces = if plan.pieces {
            self.in_pieces(parts, args)
        } else {
            None
        };
        plan.pieces = pieces.is_some();
        let count = if plan.pieces && !self.loose {
            self.element.piece()
        } else {
            1
        };
        let (team, lanes) = match plan.team {
            Team::Small | Team::Medium => (32, 256),
            Team::Large => (128, 128),
            Team::Larger => (256, 256),
            Team::Long => (512, 512),
        };
        let lanes = self.lanes.unwrap_or(lanes);
        let blocks = number(self.rows.div_ceil((lanes / team) as usize));
        let [x_pitch, y_pitch] = self.pitches.map(|pitch| pitch / count);
        let mut all = args![self.rows, self.columns / count, x_pitch, y_pitch].to_vec();
        all.extend_from_slice(more);
        all.extend_from_slice(pieces.as_deref().unwrap_or(args));
        // SAFETY: `check` has found that each buffer has room for its rows, and a lane reads and writes pieces below the row's end in rows that there are, and of
        // what there is once a row the row's own. Indices into registers are constants, those into the block's memory below its lanes.
        let function = unsafe { unchecked_on(stream, function(plan)) };
        Ok(stream.launch(&function, LaunchConfig::new(blocks, lanes), &all)?)
    }

    /// Whether there is nothing to compute.
    fn is_empty(&self) -> bool {
        self.rows == 0 || self.columns == 0
    }
}

/// What all kernels over rows are told in the same way.
macro_rules! rows_options {
    ($kernel:ident) => {
        impl $kernel {
            /// How many elements lie from the start of a row to the start of the next, in matrices that are read and in those that are written: a
            /// row's length unless said otherwise.
            pub fn with_pitches(mut self, read: usize, written: usize) -> $kernel {
                self.rows.pitches = [read, written];
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
use rows_options;

/// The softmax of each row, `exp(x - max) / sum(exp(x - max))`, or its logarithm. Launched with two buffers: `x` and `y`, which may be
/// the same.
///
/// A row with a NaN or with +inf becomes NaN all over, as does one of nothing but -inf. With sums of `c` columns an element's relative
/// error is at most about `(c / 256 + 16) * 2^-24`, and that of its type; of types of 16 bits exponentials are the hardware's, off by `2^-22` and `2^-23` times `max - x` more.
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

impl SoftmaxKernel {
    fn planned(&self, plan: Plan) -> KernelFn {
        match self.logarithm {
            false => row_instance!(self.rows.element, plan, softmax::softmax, false),
            true => row_instance!(self.rows.element, plan, softmax::softmax, true),
        }
    }
}

impl Kernel for SoftmaxKernel {
    fn function(&self) -> KernelFn {
        self.planned(self.rows.best())
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let parts = [Part::Read("x"), Part::Written("y")];
        self.rows
            .launch(|plan| self.planned(plan), stream, &parts, &[], args)
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

impl LayerNormKernel {
    fn planned(&self, plan: Plan) -> KernelFn {
        row_instance!(self.rows.element, plan, norm::layer_norm,)
    }
}

impl Kernel for LayerNormKernel {
    fn function(&self) -> KernelFn {
        self.planned(self.rows.best())
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let parts = [
            Part::Read("x"),
            Part::Columns("weight"),
            Part::Columns("bias"),
            Part::Written("y"),
        ];
        let planned = |plan| self.planned(plan);
        self.rows
            .launch(planned, stream, &parts, args![self.epsilon], args)
    }
}

/// The RMS norm of each row, `x / sqrt(mean(x^2) + epsilon) * weight`. Launched with three buffers: `x`, `weight` of a row's length,
/// and `y`, which may be `x`. [`RmsNormKernel::with_residual`] takes two more.
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
    residual: bool,
}

rows_options!(RmsNormKernel);

impl RmsNormKernel {
    /// For `rows` rows of `columns` elements; `epsilon` keeps rows of zeros from a division by 0.
    pub fn new(rows: usize, columns: usize, epsilon: f32) -> RmsNormKernel {
        RmsNormKernel {
            rows: Rows::new(rows, columns),
            epsilon,
            residual: false,
        }
    }

    /// The norm of `x + residual`: launches take five buffers, `x`, `residual`, `weight`, `sum` and `y`, of which `sum`, which is written, may be one of the first
    /// two.
    pub fn with_residual(mut self) -> RmsNormKernel {
        self.residual = true;
        self
    }
}

impl RmsNormKernel {
    fn planned(&self, plan: Plan) -> KernelFn {
        match self.residual {
            false => row_instance!(self.rows.element, plan, norm::rms_norm,),
            true => row_instance!(self.rows.element, plan, norm::rms_norm_of_sum,),
        }
    }
}

impl Kernel for RmsNormKernel {
    fn function(&self) -> KernelFn {
        self.planned(self.rows.best())
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let planned = |plan| self.planned(plan);
        let parts: &[Part] = match self.residual {
            false => &[Part::Read("x"), Part::Columns("weight"), Part::Written("y")],
            true => &[
                Part::Read("x"),
                Part::Read("residual"),
                Part::Columns("weight"),
                Part::Written("sum"),
                Part::Written("y"),
            ],
        };
        self.rows
            .launch(planned, stream, parts, args![self.epsilon], args)
    }
}
