//! Products of matrices: `C = alpha op(A) op(B) + beta C`. Must not know what is done with the result.

mod naive;
mod tiled;

use perpetua_device::{KernelArg, LaunchConfig, Stream};
use perpetua_language::{KernelFn, args};

use crate::element::{Element, instance};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::operand::{Operand, check};

/// How the product is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Schedule {
    /// A lane computes one element, from memory.
    Naive,
    /// A block computes a square of this side, through shared memory.
    Tiled(usize),
}

/// `C = alpha op(A) op(B) + beta C` for row-major matrices: `op(A)` is m x k, `op(B)` k x n, C m x n, and `op` is the matrix
/// or its transpose. Launched with three buffers: A, B, C, of `f32` unless
/// [`GemmKernel::with_element`] says otherwise.
///
/// Any of m, n and k may be 0; with k = 0 the product is zeros. Where beta is 0, C is written and never read. Sums are in `f32`, in an
/// order that depends on the shape alone: an element is off by at most about `k * 2^-24 * sum |a| |b|`. C must not overlap A or B: what
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

    /// The side of a block's square; `None` for a product without tiles.
    pub fn tile(&self) -> Option<usize> {
        match self.schedule {
            Schedule::Naive => None,
            Schedule::Tiled(tile) => Some(tile),
        }
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
            Operand {
                name,
                rows,
                columns,
                pitch,
            }
        };
        let [a, b] = self.transposed;
        [
            stored("A", 0, m, k, a),
            stored("B", 1, k, n, b),
            stored("C", 2, m, n, false),
        ]
    }

    fn config(&self) -> LaunchConfig {
        let [m, n, _] = self.size;
        let (high, wide) = match self.schedule {
            Schedule::Naive => (16, 16),
            Schedule::Tiled(tile) => (tile, tile),
        };
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
        }
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let function = self.function();
        let operands = self.operands();
        check(function.name(), &operands, args)?;
        let [m, n, k] = self.size;
        let [a, b, c] = args else {
            // `check` has counted them.
            return Ok(());
        };
        if m == 0 || n == 0 {
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
        let mut all = match self.schedule {
            Schedule::Naive => {
                let ((a_row, a_column), (b_row, b_column)) = (steps(0), steps(1));
                args![
                    m, n, k, a_row, a_column, b_row, b_column, pitches[2], self.alpha, self.beta
                ]
                .to_vec()
            }
            Schedule::Tiled(_) => {
                args![m, n, k, pitches[0], pitches[1], pitches[2], self.alpha, self.beta].to_vec()
            }
        };
        all.extend([a.clone(), b.clone(), c.clone()]);
        Ok(stream.launch(&function, self.config(), &all)?)
    }
}
