//! Launches of products with few rows, or few columns: which factor has few, how the other lies, in how many slices the depth is divided. Must not know how a block
//! computes its columns.

use half::{bf16, f16};
use perpetua_device::{BackendKind, KernelArg, LaunchConfig, Stream};
use perpetua_ir::back::Capability;
use perpetua_language::kernel::resident::U32x4;
use perpetua_language::{KernelFn, args};

use super::layout::copied;
use super::thin::{ROWS, gemm_thin, gemm_thin_tensor_core, gemm_thin_total};
use super::{Factors, GemmKernel, Schedule};
use crate::element::{Bf16s, Element, F16s, F32s, in_pieces, instance};
use crate::error::{Error, Result};
use crate::kernel::Kernel as _;
use crate::operand::{Operand, check_held};

/// Blocks that a large GPU is busy with, and how deep a slice is at least.
const BLOCKS: usize = 264;
const LEAST_DEPTH: usize = 512;

/// A product whose left factor has few rows.
#[derive(Clone, Copy)]
struct Few<'a> {
    rows: usize,
    columns: usize,
    /// Elements from row to row, and along the depth, of the factor with few rows.
    left: (&'a KernelArg<'a>, Operand, [usize; 2]),
    /// The other factor: whether depth goes along its rows.
    right: (&'a KernelArg<'a>, Operand, bool),
    /// Elements of C from row to row, and from column to column.
    steps: [usize; 2],
}

impl GemmKernel {
    /// Products of at most 16 rows, or columns, which take as long as the other factor takes to read: of any type, whichever way both lie. [`GemmKernel::tensor_core`] computes such
    /// products so on devices with `Capability::Matrices`, where that factor, its rows and its depth lie at multiples of 16 bytes; then they are multiplied by tensor cores.
    ///
    /// ```
    /// use perpetua::device::{BackendKind, Device};
    /// use perpetua::kernels::{GemmKernel, Kernel};
    /// use perpetua::prelude::*;
    ///
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let a = device.upload(&[1.0f32; 100])?;
    /// let b = device.upload(&[2.0f32; 100 * 30])?;
    /// let c = device.zeros::<f32>(30)?;
    /// GemmKernel::thin(1, 30, 100).launch(&device.default_stream(), args![&a, &b, &c])?;
    /// assert_eq!(c.read()?, [200.0; 30]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn thin(m: usize, n: usize, k: usize) -> GemmKernel {
        GemmKernel::new(Schedule::Thin, m, n, k)
    }

    /// Whether the product has few rows or columns.
    fn is_thin(&self) -> bool {
        let [m, n, _] = self.size;
        m.min(n) <= ROWS
    }

    /// The product with few rows that this one is, or its transpose.
    fn few<'a>(&self, operands: &[Operand; 3], [a, b]: [&'a KernelArg<'a>; 2]) -> Few<'a> {
        let [m, n, _] = self.size;
        let [left, right, result] = *operands;
        let [a_turned, b_turned] = self.transposed;
        // From row to row, and along the depth.
        let steps = |operand: &Operand, depth_along: bool| match depth_along {
            true => [operand.pitch, 1],
            false => [1, operand.pitch],
        };
        match m <= n {
            true => Few {
                rows: m,
                columns: n,
                left: (a, left, steps(&left, !a_turned)),
                right: (b, right, b_turned),
                steps: [result.pitch, 1],
            },
            false => Few {
                rows: n,
                columns: m,
                left: (b, right, steps(&right, b_turned)),
                right: (a, left, !a_turned),
                steps: [1, result.pitch],
            },
        }
    }

    /// Whether tensor cores multiply: where the factor with many columns, its rows and the depth are whole pieces of 16 bytes.
    fn thin_by_tensor_cores(&self, stream: &Stream, few: &Few<'_>) -> bool {
        let (arg, operand, _) = few.right;
        let lies_right = match arg {
            KernelArg::Buffer(buffer) => {
                self.element.is(buffer.element()) && buffer.ptr().place().is_multiple_of(16)
            }
            KernelArg::Value(_) => false,
        };
        stream
            .device()
            .info()
            .capabilities
            .contains(&Capability::Matrices)
            && self.element != Element::F32
            && lies_right
            && operand.pitch.is_multiple_of(8)
            && operand.columns.is_multiple_of(8)
            && self.size[2].is_multiple_of(8)
            && self.size[2] > 0
    }

    /// Whether a product by tensor cores is faster as one of few rows.
    pub(super) fn suits_thin(
        &self,
        stream: &Stream,
        operands: &[Operand; 3],
        [a, b]: [&KernelArg<'_>; 2],
    ) -> bool {
        let few = self.few(operands, [a, b]);
        self.is_thin() && self.size[2] > 0 && self.thin_by_tensor_cores(stream, &few)
    }

    /// An instance for any device.
    pub(super) fn thin_function(&self, rows: usize, along: bool, pieces: bool) -> KernelFn {
        macro_rules! of {
            ($T:ty, $M:ty, $N:tt) => {
                match (rows, along) {
                    (0..=1, false) => gemm_thin::kernel::<$T, $M, $N, 1, false>(),
                    (0..=1, true) => gemm_thin::kernel::<$T, $M, $N, 1, true>(),
                    (2..=4, false) => gemm_thin::kernel::<$T, $M, $N, 4, false>(),
                    (2..=4, true) => gemm_thin::kernel::<$T, $M, $N, 4, true>(),
                    (_, false) => gemm_thin::kernel::<$T, $M, $N, 16, false>(),
                    (_, true) => gemm_thin::kernel::<$T, $M, $N, 16, true>(),
                }
            };
        }
        match (self.element, pieces) {
            (Element::F32, false) => of!(f32, f32, 1),
            (Element::F32, true) => of!(f32, F32s, 4),
            (Element::F16, false) => of!(f16, f16, 1),
            (Element::F16, true) => of!(f16, F16s, 8),
            (Element::Bf16, false) => of!(bf16, bf16, 1),
            (Element::Bf16, true) => of!(bf16, Bf16s, 8),
        }
    }

    /// `check` has found room for all three.
    pub(super) fn launch_thin(
        &self,
        stream: &Stream,
        operands: &[Operand; 3],
        [a, b, c]: [&KernelArg<'_>; 3],
    ) -> Result<()> {
        let name = self.function().name();
        let [m, n, k] = self.size;
        if !self.is_thin() {
            return Err(Error::Range {
                kernel: name,
                what: "the smaller one of m and n",
                found: m.min(n),
                needed: format!("at most {ROWS}"),
            });
        }
        for (operand, arg) in operands.iter().zip([a, b, c]) {
            check_held(name, operand.name, arg, self.element)?;
        }
        let device = stream.device();
        let few = self.few(operands, [a, b]);
        let (right, right_shape, along) = few.right;
        let by_tensor_cores = self.thin_by_tensor_cores(stream, &few);
        let unit = self.element.piece();
        let pieces = match right {
            KernelArg::Buffer(_)
                if right_shape.pitch.is_multiple_of(unit)
                    && right_shape.columns.is_multiple_of(unit)
                    && (!along || k.is_multiple_of(unit)) =>
            {
                match by_tensor_cores {
                    true => in_pieces::<U32x4>(right),
                    false => self.element.in_pieces(right),
                }
            }
            _ => None,
        };
        let unit = if pieces.is_some() { unit } else { 1 };
        let right_pitch = right_shape.pitch / unit;
        // Columns of a block, and how deep it goes at a time.
        let (wide, deep) = match (by_tensor_cores, along) {
            (true, true) => (16, 1024),
            (true, false) => (64, 256),
            (false, true) => (4, 256 * unit),
            (false, false) => (32 * unit, 32),
        };
        let blocks = few.columns.div_ceil(wide);
        let slices = (BLOCKS / blocks.max(1)).min(k / LEAST_DEPTH).max(1);
        let each = k.div_ceil(slices).next_multiple_of(deep);
        let slices = k.div_ceil(each.max(1)).max(1);
        let sums = device.alloc::<f32>(if slices > 1 {
            slices * few.rows * few.columns
        } else {
            0
        })?;
        let (left, left_shape, [left_row, left_deep]) = few.left;
        let [out_row, out_column] = few.steps;
        let right = pieces.unwrap_or(right.clone());
        // A copy of the factor with few rows, where depth does not go along them, or they begin elsewhere.
        let mut copy = None;
        let (mut function, mut all) = if by_tensor_cores {
            let lies_right = left_deep == 1
                && left_row.is_multiple_of(8)
                && matches!(left, KernelArg::Buffer(buffer) if buffer.ptr().place().is_multiple_of(16));
            let factors = match self.element {
                Element::F16 => Factors::F16,
                Element::Bf16 | Element::F32 => Factors::Bf16,
            };
            let mut left_pitch = left_row;
            let left = match lies_right {
                true => left.clone(),
                false => {
                    let (bytes, shape) = copied(stream, factors, &left_shape, left, left_deep != 1)?;
                    left_pitch = shape.pitch;
                    copy.insert(bytes).arg()
                }
            };
            // It begins where pieces do.
            let left = in_pieces::<U32x4>(&left).unwrap_or(left);
            macro_rules! of {
                ($T:ty) => {
                    match (few.rows > 8, along) {
                        (false, false) => gemm_thin_tensor_core::kernel::<$T, false, false>(),
                        (false, true) => gemm_thin_tensor_core::kernel::<$T, false, true>(),
                        (true, false) => gemm_thin_tensor_core::kernel::<$T, true, false>(),
                        (true, true) => gemm_thin_tensor_core::kernel::<$T, true, true>(),
                    }
                };
            }
            let function = match self.element {
                Element::F16 => of!(f16),
                Element::Bf16 | Element::F32 => of!(bf16),
            };
            let sizes = args![
                few.rows,
                few.columns,
                k,
                each,
                left_pitch / 8,
                right_pitch,
                out_row,
                out_column,
                self.alpha,
                self.beta,
                left
            ];
            (function, sizes.to_vec())
        } else {
            let sizes = args![
                few.rows,
                few.columns,
                k,
                each,
                left_row,
                left_deep,
                right_pitch,
                out_row,
                out_column,
                self.alpha,
                self.beta,
                left.clone()
            ];
            (self.thin_function(few.rows, along, unit > 1), sizes.to_vec())
        };
        all.extend([right, c.clone(), sums.arg()]);
        let mut total = instance!(self.element, gemm_thin_total,);
        if device.backend() == BackendKind::Cuda {
            // SAFETY: `check` has found that all three matrices have room for their shapes, with which rows, columns and depth are compared before each access, of pieces where they are whole pieces; a copy of a factor has been made
            // for its own. Slices have been made for each of their elements. Indices into the block's memory are made of the lane's number, of which a block has 256, and of constants. Nothing divides by a number
            // that is not a constant.
            (function, total) = unsafe { (function.unchecked(), total.unchecked()) };
        }
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let grid = [number(blocks), number(slices), 1];
        stream.launch(&function, LaunchConfig::new(grid, 256), &all)?;
        if slices == 1 {
            return Ok(());
        }
        let all = args![
            few.rows,
            few.columns,
            slices,
            out_row,
            out_column,
            self.alpha,
            self.beta,
            &sums,
            c.clone()
        ];
        let grid = [number(few.columns.div_ceil(256)), number(few.rows), 1];
        Ok(stream.launch(&total, LaunchConfig::new(grid, 256), all)?)
    }
}
