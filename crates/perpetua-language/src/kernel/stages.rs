//! Products of matrices in stages: while teams of 128 lanes multiply parts of two matrices, by the widest products that a GPU has, the next parts are
//! copied into the block's memory. How the memory is laid out and who waits for whom is the compiler's part. In plain Rust there is one
//! lane, of the team that fills stages, and nothing is multiplied.
//!
//! [`stage_factors`] says which matrices, and in what parts. Then the lanes part, once: the block's first team fills stages, each of the others
//! multiplies 64 rows of each stage, in the same order. A kernel must fill as many stages as each team multiplies: on the CPU the launch says so
//! when they wait for each other for ever, on a GPU it ends with an error after ten seconds. Stages that are filled and not multiplied, as many as there
//! are, keep nobody waiting: a block ends when their copies have come.
//!
//! No lane of the team that fills returns before the end of its code: copies may be on their way.
//!
//! Operands of [`fill_stage`] are those of the team's first lane. All lanes of a team come to these functions, and the kernel fixes its
//! block size at 128 lanes for the first team and for each 64 rows of sums. Devices other than the CPU and NVIDIA's of compute capability 9.0 refuse the kernel by
//! `Capability::Stages`.
//!
//! The launch describes both matrices to the device: they begin at multiples of 16 bytes, and so do their rows.
//!
//! ```
//! use perpetua::device::{BackendKind, Device};
//! use perpetua::prelude::*;
//!
//! /// The product of `a` and of `b` transposed, a block 64 x 64 sums.
//! #[kernel(block_size = 256, interpret)]
//! fn product(m: usize, n: usize, k: usize, a: &[bf16], b: &[bf16], c: &mut [f32]) {
//!     stage_factors::<[[[bf16; 64]; 64]; 2], [[[bf16; 64]; 64]; 2]>(a, m, k, k, b, n, k, k);
//!     let (top, left) = (group_id_x() * 64, group_id_y() * 64);
//!     if is_producer() {
//!         for i in 0..k.div_ceil(64) {
//!             fill_stage(top as u32, left as u32, (i * 64) as u32);
//!         }
//!     } else {
//!         let mut sums = [[[0.0f32; 2]; 2]; 8];
//!         for _i in 0..k.div_ceil(64) {
//!             sums = multiply_stage(sums);
//!         }
//!         let lane = local_id_x() % 128;
//!         let row = top + lane / 4 + lane / 32 * 8;
//!         for i in 0..8 {
//!             for j in 0..2 {
//!                 for k in 0..2 {
//!                     let (y, x) = (row + j * 8, left + i * 8 + lane % 4 * 2 + k);
//!                     if y < m && x < n {
//!                         c[y * n + x] = sums[i][j][k];
//!                     }
//!                 }
//!             }
//!         }
//!     }
//! }
//!
//! let (m, n, k) = (70, 9, 80);
//! let device = Device::new(BackendKind::Cpu, 0)?;
//! let a: Vec<bf16> = (0..m * k).map(|i| bf16::from_f32((i % 7) as f32)).collect();
//! let b: Vec<bf16> = (0..n * k).map(|i| bf16::from_f32((i % 5) as f32)).collect();
//! let c = device.zeros::<f32>(m * n)?;
//! let config = LaunchConfig::new((m.div_ceil(64) as u32, n.div_ceil(64) as u32), 256);
//! device.launch(&product::kernel(), config, args![m, n, k, &device.upload(&a)?, &device.upload(&b)?, &c])?;
//! let sum: usize = (0..k).map(|i| (69 * k + i) % 7 * ((8 * k + i) % 5)).sum();
//! assert_eq!(c.read()?[69 * n + 8], sum as f32);
//! # Ok::<(), perpetua::device::Error>(())
//! ```

use perpetua_ir::front::rust::GpuType;

/// Says what the kernel multiplies in stages: `a`, of which a stage has some rows of sums, and `b`, of which it has some columns; each with its rows and
/// columns as it is stored, and how many elements a row is from the next. All of them are parameters of the kernel, as they are.
///
/// The types say how much a stage has, and how many there are: `[[[T; 64]; M]; S]` for `M` rows of `a` whose depth goes along rows, `[[[[T; 64]; 64]; M / 64]; S]`
/// where it goes from row to row, so that `a` is stored transposed. Likewise `b`, which is stored transposed where its depth goes along rows. `M` and
/// `N` are multiples of 64, up to 128 and 256, and a stage is 64 deep.
///
/// `T` is `f16` or `bf16`; or, where the depth of both goes along rows: `f32`, of which the low 13 bits do not count, in stages 32 deep; `i8`, `u8`, or a struct of a
/// byte that is called `E4m3` or `E5m2`, which says what float the byte is, in stages 128 deep (`perpetua::kernels` has such structs).
#[allow(clippy::too_many_arguments, reason = "two matrices, each with its shape")]
pub fn stage_factors<A: GpuType, B: GpuType>(
    _a: &[impl GpuType],
    _a_rows: usize,
    _a_columns: usize,
    _a_pitch: usize,
    _b: &[impl GpuType],
    _b_rows: usize,
    _b_columns: usize,
    _b_pitch: usize,
) {
}

/// Makes the product of [`stage_factors`], called before, the first of a chain: weights that the kernel makes of its sums are multiplied with `c`, by
/// [`weigh_stage`]. So attention is computed, with queries, keys and values.
///
/// The first factor's part is copied once, with the first stage that a block fills, and stays. A stage has a part of `b` and one of `c`, as many rows of sums
/// deep as it has columns of the other ones, up to 128, and, where `b`'s depth goes along rows, any multiple of 16: `[[[[T; 64]; N]; K]; S]` for `64 * K` columns of `c`, up to 256, where the depth goes from row to
/// row. In a chain stages may be up to 256 deep: `[[[T; 128]; M]; S]`, `[[[T; 128]; N]; S]`.
pub fn stage_third<C: GpuType>(_c: &[impl GpuType], _c_rows: usize, _c_columns: usize, _c_pitch: usize) {}

/// Makes the product of [`stage_factors`], called before, the first of two, whose types are the same: the other one is `c` times `d`, by [`multiply_twin`]. Parts of
/// `a` and `c` are copied once, with the first stage that a block fills, and stay; a stage has a part of `b` and one of `d`. Weights that the kernel makes of its sums are
/// multiplied with the stage's rows of `b`, by [`weigh_stage`], and with those of `d`, by [`weigh_twin`]. So gradients of attention are computed.
///
/// The depth of all goes along rows, and may be up to 256; `b` and `d` have up to 128 columns of sums in a stage. All four operations are of the same stage, until
/// [`weigh_stage`] ends its turn.
#[allow(clippy::too_many_arguments, reason = "two matrices, each with its shape")]
pub fn stage_twins<C: GpuType, D: GpuType>(
    _c: &[impl GpuType],
    _c_rows: usize,
    _c_columns: usize,
    _c_pitch: usize,
    _d: &[impl GpuType],
    _d_rows: usize,
    _d_columns: usize,
    _d_pitch: usize,
) {
}

/// Blocks `2 i` and `2 i + 1` of the grid, side by side along x, fill their stages together: with the same columns and depths, as often as each other. A
/// device may then have each of them bring half of what stands right, for both. The grid has an even number of blocks along x, and no lane returns before
/// the end of the kernel. A kernel must keep to this: where its blocks do not, sums are wrong, or the launch ends with an error after ten seconds.
pub fn stage_pairs() {}

/// Behind [`stage_factors`]: `a` and `b` hold several matrices of their shapes, so many, and so many elements from one to the next, which are multiples of 16 bytes. [`fill_stage_of`] says which are
/// multiplied. Where that is 0 elements, there is one, number 0. The third factor of a chain has as many as `b`, as far from each other. All four are parameters of the kernel, as they are.
pub fn stage_layers(_a_layers: usize, _a_apart: usize, _b_layers: usize, _b_apart: usize) {}

/// Whether the lane is of the team that fills stages: the condition of one `if`, which stands in no other statement. Behind it lanes do not
/// meet any more.
pub fn is_producer() -> bool {
    true
}

/// Fills the next stage as soon as all teams have multiplied what was in it: with what the factors have from this row and column of sums and this
/// depth on, zeros outside of them. Numbers wrap: a part that begins at `3u32.wrapping_sub(16)` ends with the first three. It does not wait for the copies. In a chain the row counts in the first stage alone, and the third factor begins at
/// the row that `column` says.
pub fn fill_stage(_row: u32, _column: u32, _depth: u32) {}

/// [`fill_stage`] of the matrices with these numbers, where [`stage_layers`] says that there are several. Rows outside of one are zeros, not those of the next.
pub fn fill_stage_of(_a_layer: u32, _b_layer: u32, _row: u32, _column: u32, _depth: u32) {}

/// A lane's sums, and what the next stage adds to them, as soon as it is full.
///
/// Of its team's 64 rows of sums a lane has, for its number `l` in the team, `q = l / 4` and `r = l % 4`, in `sums[i][j][k]` row `q + q / 8 * 8 + 8 j`, column
/// `8 i + 2 r + k`: `N` is an eighth of the columns of a stage. Sums are `f32`, and off by as much as those of
/// [`matrix_multiply_f16`](super::matrix::matrix_multiply_f16); of `i8` and `u8` they are `i32` and exact, and wrap. Of bytes that are floats tensor cores keep 14
/// bits of a sum: add up what each stage gives for zeros where that is too few.
pub fn multiply_stage<T, const N: usize>(sums: [[[T; 2]; 2]; N]) -> [[[T; 2]; 2]; N] {
    sums
}

/// A lane's sums, and what its weights add to them, times what the stage has of the third factor, or of twins of the first right one; then the stage may be filled again. Weights are rounded to the
/// type of the factors, and lie as the sums that [`multiply_stage`] gives, which in a chain leaves its stage full.
///
/// In a chain stages are multiplied in their order, and weighed in their order. So a kernel may multiply a stage before it weighs the one before: on a GPU it then makes weights of
/// the one's sums while the other's are computed. Without that its lanes wait for each product by itself.
pub fn weigh_stage<const N: usize, const M: usize>(
    sums: [[[f32; 2]; 2]; N],
    _weights: [[[f32; 2]; 2]; M],
) -> [[[f32; 2]; 2]; N] {
    sums
}

/// Of [`stage_twins`]: what [`multiply_stage`] gives, of the second product.
pub fn multiply_twin<const N: usize>(sums: [[[f32; 2]; 2]; N]) -> [[[f32; 2]; 2]; N] {
    sums
}

/// Of [`stage_twins`]: what [`weigh_stage`] gives, with the second right factor. The stage stays full.
pub fn weigh_twin<const N: usize, const M: usize>(
    sums: [[[f32; 2]; 2]; N],
    _weights: [[[f32; 2]; 2]; M],
) -> [[[f32; 2]; 2]; N] {
    sums
}
