//! Products of matrices: `C = alpha op(A) op(B) + beta C`. Must not know what is done with the result.

mod choices;
mod epilogue;
mod few_rows;
mod finish;
mod gated;
mod grouped;
mod in_stages;
mod instance;
mod layout;
mod naive;
mod options;
mod split;
mod staged;
mod tensor_core;
mod thin;
mod tile;
mod tiled;
mod tune;
mod written;

use perpetua_device::{BackendKind, KernelArg, LaunchConfig, Stream};
use perpetua_ir::back::Sm;
use perpetua_language::kernel::resident::U32x4;
use perpetua_language::{KernelFn, args};

use crate::element::{Element, instance};
use crate::error::{Error, Result};
pub use crate::factors::Factors;
use crate::kernel::{Kernel, ptx_of};
use crate::operand::{Operand, check};
pub use choices::{Choice, Choices};
pub use epilogue::{Beside, Epilogue, Gate};
use finish::Finish;
pub use grouped::GroupedGemmKernel;
use tensor_core::{Halves, Instance};
pub use tune::Tuned;

/// Most rows or columns of a matrix whose product is computed in tiles.
const MOST: usize = 1 << 31;

/// How the product is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Schedule {
    /// A lane computes one element, from memory.
    Naive,
    /// A block computes a square of this side, through shared memory.
    Tiled(usize),
    /// A block computes all of few rows, in some columns.
    Thin,
    /// A block computes 128 rows of so many columns by tensor cores.
    TensorCore(usize),
    /// A block computes tiles in stages: of so many rows and columns, or those that suit the shape.
    Staged(Option<[usize; 2]>),
}

/// `C = alpha op(A) op(B) + beta C` for row-major matrices: `op(A)` is m x k, `op(B)` k x n, C m x n, and `op` is the matrix
/// or its transpose. Launched with three buffers: A, B, C, of `f32` unless
/// [`GemmKernel::with_element`] says otherwise.
///
/// Any of m, n and k may be 0; with k = 0 the product is zeros. Where beta is 0, C is written and never read. Sums are in `f32`, in an
/// order that depends on the shape and the device alone, by tensor cores also on what [`GemmKernel::tune`] has kept: an element is off by at most about `k * 2^-24 * sum |a| |b|`. C must not overlap A or B: what
/// it holds then is not specified.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{GemmKernel, Kernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let a = device.upload(&[1.0f32, 2.0, 3.0])?; // 3 x 1, read as 1 x 3
/// let b = device.upload(&[1.0f32, 10.0, 100.0])?;
/// let c = device.upload(&[1000.0f32])?;
/// let product = GemmKernel::naive(1, 1, 3).with_transposed(true, false).with_scales(2.0, 1.0);
/// product.launch(&device.default_stream(), args![&a, &b, &c])?;
/// assert_eq!(c.read()?, [1642.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GemmKernel {
    schedule: Schedule,
    size: [usize; 3],
    transposed: [bool; 2],
    pitches: [Option<usize>; 3],
    alpha: f32,
    beta: f32,
    element: Element,
    /// Whether a product by tensor cores may be computed in stages, where that can be.
    stages: bool,
    /// What A and B hold, where it is not what C holds.
    multiplies: Option<Factors>,
    /// Whether sums of a stage are made by themselves.
    promoted: bool,
    /// Whether numbers of `f32` are multiplied in two parts.
    split: bool,
    /// Slices of the depth of a product in stages.
    slices: Option<usize>,
    /// Tiles and slices that were read from a file.
    choice: Option<Choice>,
    /// How many products there are, and how far their matrices are apart.
    batch: usize,
    apart: Option<[usize; 3]>,
    /// What is done with elements before they are stored.
    epilogue: Option<Finish>,
}

impl GemmKernel {
    fn new(schedule: Schedule, m: usize, n: usize, k: usize) -> GemmKernel {
        GemmKernel {
            schedule,
            size: [m, n, k],
            transposed: [false; 2],
            pitches: [None; 3],
            alpha: 1.0,
            beta: 0.0,
            element: Element::F32,
            stages: false,
            multiplies: None,
            promoted: false,
            split: false,
            slices: None,
            choice: None,
            batch: 1,
            apart: None,
            epilogue: None,
        }
    }

    /// A lane computes one element, each of whose factors it reads from memory: for small products, and to compare with.
    pub fn naive(m: usize, n: usize, k: usize) -> GemmKernel {
        GemmKernel::new(Schedule::Naive, m, n, k)
    }

    /// A block of 256 lanes computes a square of `tile` x `tile` elements through shared memory, a lane a square of it in registers.
    /// Tiles are 16, 32, 64 or 128 wide: another number is rounded down to one of them, and [`GemmKernel::tile`] says which it is.
    pub fn tiled(m: usize, n: usize, k: usize, tile: usize) -> GemmKernel {
        let known = [128, 64, 32].into_iter().find(|known| *known <= tile);
        GemmKernel::new(Schedule::Tiled(known.unwrap_or(16)), m, n, k)
    }

    /// A block of 256 lanes computes 128 x 128 elements, of large products 128 x 256, by tensor cores, which multiply
    /// [`Element::F16`] (unless [`GemmKernel::with_element`] says otherwise) or [`Element::Bf16`]; [`Element::F32`] they do not, and a
    /// launch says so. Needs a device with `Capability::Matrices`.
    ///
    /// Fastest where A and B begin at multiples of 16 bytes and their pitches and rows are multiples of 8 elements long: then they are read 16
    /// bytes at a time, on a device with `Capability::Stages` as [`GemmKernel::staged`] does; there also products of other matrices are computed so,
    /// where k is 192 or more or what has to be copied is little. Products of at most 16 rows or columns are computed as by [`GemmKernel::thin`]. Tensor cores do not round every sum as `f32` does: an element is off by at most about
    /// `k * 2^-22 * sum |a| |b|`.
    ///
    /// ```
    /// use perpetua::device::{BackendKind, Device};
    /// use perpetua::kernels::{GemmKernel, Kernel};
    /// use perpetua::prelude::*;
    ///
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let a = device.upload(&[f16::from_f32(0.25); 20 * 24])?;
    /// let b = device.upload(&[f16::from_f32(2.0); 24 * 10])?;
    /// let c = device.zeros::<f16>(20 * 10)?;
    /// GemmKernel::tensor_core(20, 10, 24).launch(&device.default_stream(), args![&a, &b, &c])?;
    /// assert_eq!(c.read()?, [f16::from_f32(12.0); 200]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tensor_core(m: usize, n: usize, k: usize) -> GemmKernel {
        // With fewer blocks a large GPU would not have one for each multiprocessor.
        let wide = m.div_ceil(tensor_core::ROWS).saturating_mul(n.div_ceil(256)) >= 96;
        let columns = if wide { 256 } else { 128 };
        GemmKernel {
            stages: true,
            ..GemmKernel::new(Schedule::TensorCore(columns), m, n, k).with_element(Element::F16)
        }
    }

    /// How many columns a block of a product by tensor cores computes: 256, or fewer than that 128. [`GemmKernel::tensor_core`] chooses by the shape.
    /// Other products stay as they are.
    pub fn with_tile_columns(mut self, columns: usize) -> GemmKernel {
        if let Schedule::TensorCore(chosen) = &mut self.schedule {
            *chosen = if columns >= 256 { 256 } else { 128 };
            self.stages = false;
        }
        self
    }

    /// Reads A as its transpose, stored k x m, and B as its own, stored n x k.
    pub fn with_transposed(mut self, a: bool, b: bool) -> GemmKernel {
        self.transposed = [a, b];
        self
    }

    /// What the product and what C before are multiplied with: 1 and 0 unless said otherwise.
    pub fn with_scales(mut self, alpha: f32, beta: f32) -> GemmKernel {
        (self.alpha, self.beta) = (alpha, beta);
        self
    }

    /// How many elements lie from the start of a row to the start of the next, in A, B and C as they are stored: a row's length unless
    /// said otherwise.
    pub fn with_pitches(mut self, a: usize, b: usize, c: usize) -> GemmKernel {
        self.pitches = [Some(a), Some(b), Some(c)];
        self
    }

    /// The type of what the three matrices hold, `f32` unless said otherwise. Sums are in `f32` in each case.
    pub fn with_element(mut self, element: Element) -> GemmKernel {
        self.element = element;
        self
    }

    /// The side of a block's square, or its columns; `None` for a product without tiles.
    pub fn tile(&self) -> Option<usize> {
        match self.schedule {
            Schedule::Naive | Schedule::Thin => None,
            Schedule::Tiled(tile) => Some(tile),
            Schedule::TensorCore(columns) => Some(columns),
            Schedule::Staged(tile) => tile.map(|[_, columns]| columns),
        }
    }

    /// As [`GemmKernel::tensor_core`] with tiles of up to 128 x 256 a block, or 256 x 256 two blocks, that are multiplied in stages, by the widest
    /// products that a GPU has: needs a device with `Capability::Stages`.
    ///
    /// Fastest where A and B begin at multiples of 16 bytes, and so do their rows: otherwise a launch copies them so first, into memory that it takes from the device's pool; and where
    /// C and its rows do, too, and nothing is added to it: otherwise it is written a word at a time or, with rows of an odd number of 16 bits, half a word.
    ///
    /// ```
    /// use perpetua::device::{BackendKind, Device};
    /// use perpetua::kernels::{GemmKernel, Kernel};
    /// use perpetua::prelude::*;
    ///
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let a = device.upload(&[f16::from_f32(0.25); 20 * 24])?;
    /// let b = device.upload(&[f16::from_f32(2.0); 24 * 16])?;
    /// let c = device.zeros::<f16>(20 * 16)?;
    /// GemmKernel::staged(20, 16, 24).launch(&device.default_stream(), args![&a, &b, &c])?;
    /// assert_eq!(c.read()?, [f16::from_f32(12.0); 320]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn staged(m: usize, n: usize, k: usize) -> GemmKernel {
        GemmKernel::new(Schedule::Staged(None), m, n, k).with_element(Element::F16)
    }

    /// How many rows and columns a block of a product in stages computes at a time: 256 x 256 (by two blocks), 128 x 256, 128 x 128 64 x 128 or 128 x 64, with promoted sums 256 x 128 (by two blocks), 128 x 128, 64 x 128 or 128 x 64;
    /// the first is taken that is no larger than this, else 64 x 128. Without it the shape decides, and how many blocks the device runs. Other products stay as they are.
    pub fn with_tile(mut self, rows: usize, columns: usize) -> GemmKernel {
        if let Schedule::Staged(chosen) = &mut self.schedule {
            *chosen = Some([rows, columns]);
        }
        self
    }

    /// What tensor cores multiply in stages.
    fn factors(&self) -> Option<Factors> {
        match (self.multiplies, self.element) {
            (Some(factors), _) => Some(factors),
            (None, Element::F16) => Some(Factors::F16),
            (None, Element::Bf16) => Some(Factors::Bf16),
            (None, Element::F32) => None,
        }
    }

    /// What tensor cores multiply without stages.
    fn halves(&self) -> Option<Halves> {
        match self.element {
            Element::F16 => Some(Halves::F16),
            Element::Bf16 => Some(Halves::Bf16),
            Element::F32 => None,
        }
    }

    /// The instance for tensor cores, which may read A and B in pieces of 16 bytes; `None` for what they do not multiply.
    fn instance(&self, pieces: bool) -> Option<Instance> {
        Some(Instance {
            factors: self.halves()?,
            transposed: self.transposed,
            wide: self.tile() == Some(256),
            pieces,
            grouped: false,
        })
    }

    /// A and B as memory of 16 byte pieces, where their type is right and they lie so that they can be.
    fn pieces<'a>(&self, operands: &[Operand; 3], args: &[KernelArg<'a>]) -> Option<[KernelArg<'a>; 2]> {
        self.halves()?;
        let piece = |at: usize| match (operands.get(at), args.get(at)) {
            (Some(operand), Some(KernelArg::Buffer(buffer)))
                if self.element.is(buffer.element())
                    && operand.pitch % 8 == 0
                    && operand.columns % 8 == 0 =>
            {
                buffer.cast_front::<U32x4>().ok().map(KernelArg::Buffer)
            }
            _ => None,
        };
        Some([piece(0)?, piece(1)?])
    }

    /// Whether each two columns of the product are one of C.
    fn joins(&self) -> bool {
        self.epilogue.is_some_and(|finish| finish.joins)
    }

    /// A, B and C as they are stored.
    fn operands(&self) -> [Operand; 3] {
        let [m, n, k] = self.size;
        let stored = |name, at: usize, rows, columns, transposed| {
            let (rows, columns) = if transposed {
                (columns, rows)
            } else {
                (rows, columns)
            };
            let pitch = self.pitches[at].unwrap_or(columns);
            let (layers, apart) = (self.batch, self.apart.map_or(0, |apart| apart[at]));
            Operand {
                name,
                rows,
                columns,
                pitch,
                layers,
                apart,
            }
        };
        let [a, b] = self.transposed;
        [
            stored("A", 0, m, k, a),
            stored("B", 1, k, n, b),
            stored("C", 2, m, if self.joins() { n / 2 } else { n }, false),
        ]
    }

    /// Blocks of 256 lanes, each for so many rows and columns.
    fn config(&self, [high, wide]: [usize; 2]) -> LaunchConfig {
        let [m, n, _] = self.size;
        let blocks = |extent: usize, tile: usize| u32::try_from(extent.div_ceil(tile)).unwrap_or(u32::MAX);
        // Rows along x: a grid has more blocks there.
        LaunchConfig::new((blocks(m, high), blocks(n, wide)), (256, 1))
    }
}

impl Kernel for GemmKernel {
    fn function(&self) -> KernelFn {
        match self.schedule {
            Schedule::Naive => instance!(self.element, naive::gemm_naive,),
            Schedule::Tiled(tile) => tiled::function(tile, self.transposed, self.element),
            // Which way both are read, a launch decides.
            Schedule::Thin => self.thin_function(self.size[0].min(self.size[1]), false, true),
            // Which way A and B are read, a launch decides; `f32` it refuses.
            Schedule::TensorCore(_) => {
                let pieces = self.operands()[..2]
                    .iter()
                    .all(|operand| operand.pitch % 8 == 0 && operand.columns % 8 == 0);
                let instance = self.instance(pieces).unwrap_or(Instance {
                    factors: Halves::F16,
                    transposed: self.transposed,
                    wide: self.tile() == Some(256),
                    pieces,
                    grouped: false,
                });
                instance.function()
            }
            // Which tiles, and how C is written, a launch decides.
            Schedule::Staged(_) => {
                let [_, _, result] = self.operands();
                let lines = self.lines(&result);
                (self.finish().product)(self.staged_instance(self.staged_tile(132), lines))
            }
        }
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        // The text is what CUDA runs. SAFETY: nothing is launched here; what launches it, `launch`, says why it may.
        let function = unsafe { self.function().unchecked() };
        match (self.schedule, sm) {
            (Schedule::Staged(_), 90) => ptx_of(function, Sm::of_device(9, 0)),
            _ => ptx_of(function, sm),
        }
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let mut function = self.function();
        let operands = self.operands();
        // Tiles are counted in 32 bits.
        let is_long = |operand: &&Operand| operand.rows.max(operand.columns) > MOST;
        if let (true, Some(operand)) = (self.tile().is_some(), operands.iter().find(is_long)) {
            return Err(Error::TooLarge {
                kernel: function.name(),
                operand: operand.name,
                shape: operand.to_string(),
            });
        }
        let [m, n, k] = self.size;
        let mut all = operands.to_vec();
        if let Some(beside) = self.epilogue.and_then(|finish| finish.beside) {
            let [rows, columns] = match beside {
                Beside::Columns => [1, n],
                Beside::Rows => [1, m],
                Beside::Elements => [m * self.batch, n],
            };
            all.insert(2, Operand::dense("beside", rows, columns));
        }
        check(function.name(), &all, args)?;
        // `check` has counted them.
        let ([a, b, beside @ .., c], true) = (args, args.len() >= 3) else {
            return Ok(());
        };
        if m == 0 || n == 0 || self.batch == 0 {
            return Ok(());
        }
        let pitches = operands.map(|operand| operand.pitch);
        // Where an element of `op(A)` and `op(B)` lies: so far a row, so far a column.
        let steps = |at: usize| {
            if self.transposed[at] {
                (1, pitches[at])
            } else {
                (pitches[at], 1)
            }
        };
        let in_tiles = args![m, n, k, pitches[0], pitches[1], pitches[2], self.alpha, self.beta];
        let (mut all, tile) = match self.schedule {
            Schedule::Naive => {
                let ((a_row, a_column), (b_row, b_column)) = (steps(0), steps(1));
                let all = args![
                    m, n, k, a_row, a_column, b_row, b_column, pitches[2], self.alpha, self.beta
                ];
                (all.to_vec(), [16, 16])
            }
            Schedule::Tiled(tile) => (in_tiles.to_vec(), [tile, tile]),
            Schedule::Thin => return self.launch_thin(stream, &operands, [a, b, c]),
            Schedule::TensorCore(_) if self.stages && self.suits_thin(stream, &operands, [a, b]) => {
                return self.launch_thin(stream, &operands, [a, b, c]);
            }
            Schedule::TensorCore(_) if self.stages && self.suits_stages(stream, &operands, [a, b, c]) => {
                return self.launch_staged(stream, &operands, [a, b, c], None);
            }
            Schedule::TensorCore(columns) => {
                if let Some(columns) = self.chosen_columns(stream.device()) {
                    return self.with_tile_columns(columns).launch(stream, args);
                }
                (in_tiles.to_vec(), [tensor_core::ROWS, columns])
            }
            Schedule::Staged(_) => return self.launch_staged(stream, &operands, [a, b, c], beside.first()),
        };
        let mut factors = [a.clone(), b.clone()];
        let no_offsets = stream.device().alloc::<u32>(0)?;
        if matches!(self.schedule, Schedule::TensorCore(_)) {
            let pieces = self.pieces(&operands, args);
            let Some(instance) = self.instance(pieces.is_some()) else {
                return Err(Error::Element {
                    kernel: function.name(),
                    element: self.element,
                    takes: "F16 and Bf16",
                });
            };
            factors = pieces.unwrap_or(factors);
            function = instance.function();
            // One product, whose rows are those of the grid.
            all.extend_from_slice(args![0usize, 0usize]);
        }
        all.extend(factors);
        if matches!(self.schedule, Schedule::TensorCore(_)) {
            all.push(no_offsets.arg());
        }
        all.push(c.clone());
        if stream.device().backend() == BackendKind::Cuda {
            // SAFETY: `check` has found that A, B and C have room for their shapes, of which pieces of 16 bytes are whole, and `config` has the
            // kernels' block size. They compare rows and columns with the shape before each access. Indices into shared memory and
            // variables are made of the lane's number and of constants, so that they are the same in every launch: the checked kernels, which the
            // CPU runs, fault at none of them. Nothing divides by a number that is not a constant, and no enum is loaded.
            function = unsafe { function.unchecked() };
        }
        Ok(stream.launch(&function, self.config(tile), &all)?)
    }
}
