//! Gradients of softmax and norms: what launches take. Must not know how lanes compute them.

use perpetua_device::{Buffer, KernelArg, LaunchConfig, Stream};
use perpetua_language::{KernelFn, args};

use super::{Part, Plan, Rows, Team, norm_backward, row_instance, rows_options, softmax};
use crate::element::{Element, piece_instance};
use crate::error::Result;
use crate::kernel::{Kernel, number, ptx_unchecked, unchecked_on};
use crate::operand::{Operand, check, check_held};
use crate::reduce::ReduceKernel;
use crate::transpose;

/// Lanes of a block that computes gradients of rows.
const LANES: u32 = 512;
/// Rows that columns are added up over before slices of them are, and most slices.
const SLICE: usize = 64;
const MOST_SLICES: usize = 64;

/// From so many rows on it pays to read `f32` rows once, where nothing but their squares is added up: with fewer, blocks have too few rows each for
/// the sums of columns that they keep.
const HELD_ROWS: usize = 16384;

/// What gradients of norms are told.
macro_rules! reading_once {
    ($kernel:ident) => {
        impl $kernel {
            /// Whether rows of up to 8192 columns are read once, in the place of twice. Without it, what was faster where it was measured is done: once for
            /// RMS norms of 16384 rows of `f32` and more, else twice.
            pub fn reading_once(mut self, once: bool) -> $kernel {
                self.rows.once = Some(once);
                self
            }
        }
    };
}

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
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let parts = [Part::Read("y"), Part::Read("dy"), Part::Written("dx")];
        self.rows
            .launch(|plan| self.planned(plan), stream, &parts, &[], args)
    }
}

/// The gradients of [`LayerNormKernel`](super::LayerNormKernel). Launched with six buffers: `x`, `weight` and `dy`, the result's gradient, are read; `dx`, which may be `x` or `dy`,
/// `dweight` and `dbias` are written.
///
/// Sums are in `f32`, in an order that depends on the shape alone. A launch takes memory for some numbers of each column from the device's pool; where it reads rows twice ([`reading_once`](Self::reading_once)), also for two of each row,
/// and for a copy of what `dx` is.
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
reading_once!(LayerNormBackwardKernel);

impl LayerNormBackwardKernel {
    /// For `rows` rows of `columns` elements and the norm's `epsilon`.
    pub fn new(rows: usize, columns: usize, epsilon: f32) -> LayerNormBackwardKernel {
        LayerNormBackwardKernel {
            rows: Rows::new(rows, columns).of_lanes(LANES),
            epsilon,
        }
    }

    fn of(&self) -> NormBackward {
        NormBackward {
            rows: self.rows,
            epsilon: self.epsilon,
            centred: true,
            residual: false,
        }
    }
}

impl Kernel for LayerNormBackwardKernel {
    fn function(&self) -> KernelFn {
        self.of().function()
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        self.of().launch(stream, args)
    }
}

/// The gradients of [`RmsNormKernel`](super::RmsNormKernel). Launched with five buffers: `x`, `weight` and `dy`, the result's gradient, are read; `dx`, which may be `x` or `dy`, and
/// `dweight` are written.
///
/// Sums and memory as for [`LayerNormBackwardKernel`].
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
reading_once!(RmsNormBackwardKernel);

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

    fn of(&self) -> NormBackward {
        NormBackward {
            rows: self.rows,
            epsilon: self.epsilon,
            centred: false,
            residual: self.residual,
        }
    }
}

impl Kernel for RmsNormBackwardKernel {
    fn function(&self) -> KernelFn {
        self.of().function()
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        self.of().launch(stream, args)
    }
}

/// The gradients of a norm.
struct NormBackward {
    rows: Rows,
    epsilon: f32,
    centred: bool,
    residual: bool,
}

/// Lanes of a row, numbers of it that each holds, lanes of a block and blocks, where the registers of a row's lanes hold all of it.
struct Held {
    team: usize,
    lanes: usize,
    blocks: usize,
}

impl NormBackward {
    /// Who works on rows that are read once; `None` for longer ones.
    fn held(&self) -> Option<Held> {
        let Rows { rows, element, .. } = self.rows;
        let pays = !self.centred && element == Element::F32 && rows >= HELD_ROWS;
        let (team, lanes, most) = match self.rows.columns {
            _ if !self.rows.once.unwrap_or(pays) => return None,
            0..=512 => (32, 256, 264),
            513..=2048 => (128, 256, 264),
            2049..=4096 => (256, 256, 264),
            4097..=8192 => (512, 512, 132),
            _ => return None,
        };
        let blocks = self.rows.rows.div_ceil(lanes / team).min(most);
        Some(Held { team, lanes, blocks })
    }

    fn planned(&self, plan: Plan) -> KernelFn {
        let Rows { element, .. } = self.rows;
        let Some(Held { team, lanes, .. }) = self.held() else {
            return match (self.centred, self.residual) {
                (true, _) => row_instance!(element, plan, norm_backward::norm_backward, true, false, false),
                (false, false) => {
                    row_instance!(element, plan, norm_backward::norm_backward, false, false, false)
                }
                (false, true) => {
                    row_instance!(element, plan, norm_backward::norm_backward, false, true, false)
                }
            };
        };
        macro_rules! of {
            ($team:literal, $meets:literal) => {
                match (self.centred, self.residual) {
                    (true, _) => of!($team, $meets, true, false),
                    (false, false) => of!($team, $meets, false, false),
                    (false, true) => of!($team, $meets, false, true),
                }
            };
            ($($argument:tt),*) => {
                of!(@ $($argument),*)
            };
            (@ $team:tt, $meets:tt, $centred:tt, $residual:tt) => {
                piece_instance!(element, plan.pieces, norm_backward::norm_backward, $team, 16, $meets, $centred, $residual, true)
            };
        }
        let function = match (team, plan.meets) {
            (32, false) => of!(32, false),
            (32, true) => of!(32, true),
            (128, false) => of!(128, false),
            (128, true) => of!(128, true),
            (256, false) => of!(256, false),
            (256, true) => of!(256, true),
            (_, false) => of!(512, false),
            (_, true) => of!(512, true),
        };
        function.with_block_size(lanes as u32, 1, 1)
    }

    fn function(&self) -> KernelFn {
        self.planned(self.rows.best())
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
        parts.push(Part::Columns("dweight"));
        if self.centred {
            parts.push(Part::Columns("dbias"));
        }
        let name = self.function().name();
        let rows = &self.rows;
        check(name, &rows.operands(&parts), args)?;
        for (arg, part) in args.iter().zip(&parts) {
            if let Part::Read(operand) | Part::Written(operand) | Part::Columns(operand) = *part {
                check_held(name, operand, arg, rows.element)?;
            }
        }
        let columns = if self.centred { 2 } else { 1 };
        let (of_rows, of_columns) = args.split_at(args.len() - columns);
        let [x, weight, dy, .., dx] = of_rows else {
            // `check` has counted them.
            return Ok(());
        };
        // What is not there is read as `dy` is.
        let beside = &of_rows[of_rows.len() - 2];
        let device = stream.device();
        let (slices, sums) = match self.held() {
            _ if rows.is_empty() => (0, device.alloc::<f32>(0)?),
            Some(held) => self.launch_held(stream, &held, [x, weight, dy, beside, dx])?,
            None => self.launch_twice(stream, [x, weight, dy, beside, dx])?,
        };
        for (which, arg) in of_columns.iter().enumerate() {
            let from = (which * rows.columns).min(sums.len());
            let sums = sums.slice(from..)?;
            let shape = [rows.columns, slices, columns * rows.columns];
            ReduceKernel::add_slices(stream, rows.element, shape, [sums.arg(), arg.clone()])?;
        }
        Ok(())
    }

    /// One launch for rows, which leaves slices of the columns' sums.
    fn launch_held(
        &self,
        stream: &Stream,
        held: &Held,
        matrices: [&KernelArg<'_>; 5],
    ) -> Result<(usize, Buffer<f32>)> {
        let rows = &self.rows;
        let plan = rows.plan_on(stream);
        let parts = [Part::Read("x"); 5];
        let all = matrices.map(KernelArg::clone);
        let pieces = if plan.pieces {
            rows.in_pieces(&parts, &all)
        } else {
            None
        };
        let plan = Plan {
            pieces: pieces.is_some(),
            ..plan
        };
        let unit = if plan.pieces { rows.element.piece() } else { 1 };
        let teams = held.blocks * (held.lanes / held.team);
        let columns = if self.centred { 2 } else { 1 };
        let sums = stream.device().alloc::<f32>(teams * columns * rows.columns)?;
        let [read, written] = rows.pitches.map(|pitch| pitch / unit);
        let mut given = args![
            rows.rows,
            rows.columns / unit,
            read,
            written,
            rows.rows.div_ceil(teams),
            self.epsilon
        ]
        .to_vec();
        given.extend(pieces.unwrap_or(all.to_vec()));
        given.push(sums.arg());
        // SAFETY: `check` has found that each matrix has room for its rows, with whose number each row is compared, as its pieces are with how many it has; sums have been made for each team of lanes.
        // Indices into registers are constants, those into the block's memory below its lanes.
        let function = unsafe { unchecked_on(stream, self.planned(plan)) };
        let config = LaunchConfig::new(number(held.blocks), number(held.lanes));
        stream.launch(&function, config, &given)?;
        Ok((teams, sums))
    }

    /// A launch for rows, which leaves the mean and the scale of each, and one for columns.
    fn launch_twice(&self, stream: &Stream, matrices: [&KernelArg<'_>; 5]) -> Result<(usize, Buffer<f32>)> {
        let rows = &self.rows;
        let device = stream.device();
        let [x, weight, dy, beside, dx] = matrices.map(KernelArg::clone);
        // Columns are added up when `dx` has been written, where one of both may be.
        let bytes = rows.element.bytes();
        let operand = Operand {
            pitch: rows.pitches[0],
            ..Operand::dense("x", rows.rows, rows.columns)
        };
        let mut copies = Vec::new();
        for matrix in [&x, &dy] {
            let is_lost = match (matrix, &dx) {
                (KernelArg::Buffer(matrix), KernelArg::Buffer(dx)) => matrix.ptr().overlaps(dx.ptr()),
                _ => false,
            };
            copies.push(match is_lost {
                true => {
                    let copy = device.alloc::<u8>(rows.rows * rows.pitches[0] * bytes)?;
                    let to = rows.element.of_bytes(&copy);
                    transpose::copy(stream, (bytes, false), [&operand; 2], [matrix, &to])?;
                    Some(copy)
                }
                false => None,
            });
        }
        let slices = rows.rows.div_ceil(SLICE).min(MOST_SLICES);
        let scales = device.alloc::<f32>(2 * rows.rows)?;
        let parts = [
            Part::Read("x"),
            Part::Columns("weight"),
            Part::Read("dy"),
            Part::Read("beside"),
            Part::Written("dx"),
            Part::Other("scales", 2 * rows.rows),
        ];
        let given = [x.clone(), weight, dy.clone(), beside, dx, scales.arg()];
        let more = args![1usize, self.epsilon];
        rows.launch(|plan| self.planned(plan), stream, &parts, more, &given)?;

        let kept = copies.iter().zip([x, dy]).map(|(copy, matrix)| match copy {
            Some(copy) => rows.element.of_bytes(copy),
            None => matrix,
        });
        let both: Vec<KernelArg<'_>> = kept.collect();
        let pieces = match rows.best().pieces {
            true => rows.in_pieces(&[Part::Read("x"), Part::Read("dy")], &both),
            false => None,
        };
        let unit = if pieces.is_some() { rows.element.piece() } else { 1 };
        let function = match self.centred {
            false => piece_instance!(rows.element, pieces.is_some(), norm_backward::norm_columns, false),
            true => piece_instance!(rows.element, pieces.is_some(), norm_backward::norm_columns, true),
        };
        let columns = if self.centred { 2 } else { 1 };
        let sums = device.alloc::<f32>(columns * slices * rows.columns)?;
        // SAFETY: rows and pieces are compared with how many there are, for which the matrices have room, as `check` has found; each row has two scales, and each slice a number or two a
        // column. Indices into the block's memory are below its 256 lanes, into a piece constants.
        let function = unsafe { unchecked_on(stream, function) };
        let grid = (number((rows.columns / unit).div_ceil(32)), number(slices));
        let mut given = args![
            rows.rows,
            rows.columns / unit,
            rows.pitches[0] / unit,
            rows.rows.div_ceil(slices)
        ]
        .to_vec();
        given.extend(pieces.unwrap_or(both));
        given.extend([scales.arg(), sums.arg()]);
        stream.launch(&function, LaunchConfig::new(grid, 256), &given)?;
        Ok((slices, sums))
    }
}
