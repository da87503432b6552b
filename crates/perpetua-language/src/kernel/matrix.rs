//! Matrices that the 32 lanes of a subgroup hold together, and their products: what tensor cores compute. In plain Rust there is one
//! lane, the first; what the others would bring is zero.
//!
//! How a matrix lies in the lanes is part of the language, so a lane may compute with what it holds: scale it, add a bias, find its
//! greatest element. For lane `l`, let `q = l / 4` and `r = l % 4`:
//!
//! | matrix | a lane holds |
//! |---|---|
//! | A, 16 x 16 elements of 16 bits | four words: columns `2r`, `2r + 1` of row `q`, of row `q + 8`, and both again 8 columns further |
//! | B, 16 x 8 elements of 16 bits | two words: rows `2r`, `2r + 1` of column `q`, and 8 rows further |
//! | A, 16 x 8 of `f32` for `tf32` | four words: column `r` of row `q`, of row `q + 8`, and both again 4 columns further |
//! | B, 8 x 8 of `f32` for `tf32` | two words: row `r` of column `q`, and 4 rows further |
//! | C and the result, 16 x 8 of `f32` | four numbers: columns `2r`, `2r + 1` of row `q`, and of row `q + 8` |
//!
//! Of two elements in a word the first is in the low half. All lanes of the block come to each of these functions, as to
//! [`sync_threads`](super::barrier::sync_threads), and the kernel fixes a block size that is a multiple of 32. Devices without tensor
//! cores of this kind refuse the kernel by `Capability::Matrices`.
//!
//! ```
//! use perpetua::device::{BackendKind, Device};
//! use perpetua::prelude::*;
//!
//! /// The product of two matrices of 16 x 16 and 16 x 8 halves, read from and written to memory row by row.
//! #[kernel(block_size = 32, interpret)]
//! fn product(a: &[f16], b: &[f16], c: &mut [f32]) {
//!     let (q, r) = (local_id_x() / 4 % 8, local_id_x() % 4);
//!     let pair = |low: f16, high: f16| low.to_bits() as u32 | (high.to_bits() as u32) << 16;
//!     let mut left = [0; 4];
//!     for i in 0..4 {
//!         let at = 16 * (q + i % 2 * 8) + 2 * r + i / 2 * 8;
//!         left[i] = pair(a[at], a[at + 1]);
//!     }
//!     let mut right = [0; 2];
//!     for i in 0..2 {
//!         let at = 8 * (2 * r + i * 8) + q;
//!         right[i] = pair(b[at], b[at + 8]);
//!     }
//!     let sums = matrix_multiply_f16(left, right, [0.0; 4]);
//!     for i in 0..4 {
//!         c[8 * (q + i / 2 * 8) + 2 * r + i % 2] = sums[i];
//!     }
//! }
//!
//! let device = Device::new(BackendKind::Cpu, 0)?;
//! let a = device.upload(&[f16::from_f32(0.5); 256])?;
//! let b = device.upload(&[f16::from_f32(3.0); 128])?;
//! let c = device.zeros::<f32>(128)?;
//! device.launch(&product::kernel(), LaunchConfig::new(1, 32), args![&a, &b, &c])?;
//! assert_eq!(c.read()?, [24.0; 128]);
//! # Ok::<(), perpetua::device::Error>(())
//! ```

use half::{bf16, f16};

/// What a lane holds of four matrices of 8 x 8 elements of 16 bits, of which each lane brings a row of eight: lane `8 i + j` row `j` of
/// matrix `i`. Word `i` of the result is columns `2r`, `2r + 1` of row `q` of matrix `i`.
///
/// With matrices in the order upper left, lower left, upper right, lower right this is A of
/// [`matrix_multiply_f16`], from a matrix that lies in memory row by row. Rows that lanes read from shared memory right before,
/// as arrays that begin at multiples of 16 bytes, cost one instruction of the GPU.
pub fn matrix_rows(rows: [u32; 4]) -> [u32; 4] {
    [rows[0], 0, 0, 0]
}

/// The same of the matrices transposed: word `i` is rows `2r`, `2r + 1` of column `q` of matrix `i`.
///
/// So lie the parts of B of [`matrix_multiply_f16`] in the lanes, from a matrix that lies in memory row by row.
pub fn matrix_columns(rows: [u32; 4]) -> [u32; 4] {
    [rows[0] & 0xffff, 0, 0, 0]
}

/// A lane's part of `A B + C`, A 16 x 16 and B 16 x 8 of `f16`.
///
/// Products are added in `f32`. How often that rounds, and in which order, is the device's own: a result is off by at most `2^-20` times
/// the sum of the sizes of C and all products.
pub fn matrix_multiply_f16(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
    let number = |bits: u32| f16::from_bits(bits as u16).to_f32();
    multiply(a, b, c, |word| [number(word), number(word >> 16)])
}

/// As [`matrix_multiply_f16`], of `bf16`.
pub fn matrix_multiply_bf16(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
    let number = |bits: u32| bf16::from_bits(bits as u16).to_f32();
    multiply(a, b, c, |word| [number(word), number(word >> 16)])
}

/// A lane's part of `A B + C`, A 16 x 8 and B 8 x 8 of the bits of `f32`, of which the low 13 do not count.
///
/// Off by as much as [`matrix_multiply_f16`].
pub fn matrix_multiply_tf32(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
    multiply(a, b, c, |word| [f32::from_bits(word & !0x1fff), 0.0])
}

/// The first lane's part, where the others bring zeros.
fn multiply(a: [u32; 4], b: [u32; 2], c: [f32; 4], numbers: impl Fn(u32) -> [f32; 2]) -> [f32; 4] {
    let dot = |sum: f32, a: u32, b: u32| {
        let (a, b) = (numbers(a), numbers(b));
        sum + a[0] * b[0] + a[1] * b[1]
    };
    let upper = dot(dot(c[0], a[0], b[0]), a[2], b[1]);
    let lower = dot(dot(c[2], a[1], b[0]), a[3], b[1]);
    [upper, c[1], lower, c[3]]
}
