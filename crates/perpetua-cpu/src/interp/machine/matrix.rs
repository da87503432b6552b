//! Matrices that 32 lanes hold together: what [`MatrixOp`] says, written down.

use half::{bf16, f16};

use super::super::mask;
use crate::eval::{self, Line};
use perpetua_ir::ir::{MatrixElement, MatrixOp};

/// Lanes of a block that meet for an exchange.
#[derive(Clone, Copy)]
pub(in super::super) struct Lanes<'a> {
    /// How many a subgroup has.
    pub(in super::super) of_subgroup: usize,
    /// How many the block has.
    pub(in super::super) all: usize,
    /// Those that are there.
    pub(in super::super) active: &'a [u64],
}

/// Lanes that hold a matrix together.
const LANES: usize = 32;

/// Calls `put` with what each active lane gets: word of the result, lane and bits. `operands` are the words that lanes bring; what lanes bring that
/// are not there is zero.
pub(super) fn exchange(
    here: Lanes<'_>,
    op: MatrixOp,
    operands: &[&[Line]],
    mut put: impl FnMut(usize, usize, u64),
) {
    for start in (0..here.all).step_by(LANES) {
        let is_there = |lane: usize| start + lane < here.all && mask::has(here.active, start + lane);
        let word = |operand: usize, lane: usize| match operands.get(operand) {
            Some(lines) if is_there(lane) => eval::get(lines, 4, start + lane) as u32,
            _ => 0,
        };
        let results = match op {
            MatrixOp::Rows => redistributed(false, word),
            MatrixOp::Columns => redistributed(true, word),
            MatrixOp::Multiply(element) => product(element, word),
        };
        for (lane, result) in results
            .into_iter()
            .enumerate()
            .filter(|(lane, _)| is_there(*lane))
        {
            for (i, bits) in result.into_iter().enumerate() {
                put(i, start + lane, bits.into());
            }
        }
    }
}

/// The lane that computes with an element of 8 x 8, and which of its two it is.
fn holder(row: usize, column: usize) -> (usize, usize) {
    (4 * row + column / 2, column % 2)
}

fn half_of(word: u32, which: usize) -> u32 {
    word >> (16 * which) & 0xffff
}

/// Four matrices of 8 x 8, of which lanes bring rows.
fn redistributed(transposed: bool, word: impl Fn(usize, usize) -> u32) -> [[u32; 4]; LANES] {
    let mut results = [[0; 4]; LANES];
    for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
        let (lane, which) = match transposed {
            true => holder(column, row),
            false => holder(row, column),
        };
        for (matrix, result) in results[lane].iter_mut().enumerate() {
            let element = half_of(word(column / 2, 8 * matrix + row), column % 2);
            *result |= element << (16 * which);
        }
    }
    results
}

/// An element as a number: which of those in a word.
fn number(element: MatrixElement, word: u32, which: usize) -> f32 {
    match element {
        MatrixElement::F16 => f16::from_bits(half_of(word, which) as u16).to_f32(),
        MatrixElement::Bf16 => bf16::from_bits(half_of(word, which) as u16).to_f32(),
        MatrixElement::Tf32 => f32::from_bits(word & !0x1fff),
    }
}

/// 16 x 8 sums and the products that are added to them.
fn product(element: MatrixElement, word: impl Fn(usize, usize) -> u32) -> [[u32; 4]; LANES] {
    let in_word = element.in_word() as usize;
    // Four lanes hold so many elements of a row side by side, in each of two halves.
    let half = 4 * in_word;
    // Where element `k` of a row of A or column of B is: the half, the lane of the four, which of its word.
    let place = |k: usize| (k / half, k % half / in_word, k % in_word);
    let mut left = [[0.0; 16]; 16];
    let mut right = [[0.0; 8]; 16];
    for k in 0..2 * half {
        let (half, lane, which) = place(k);
        for (row, left) in left.iter_mut().enumerate() {
            left[k] = number(element, word(2 * half + row / 8, 4 * (row % 8) + lane), which);
        }
        for (column, right) in right[k].iter_mut().enumerate() {
            *right = number(element, word(4 + half, 4 * column + lane), which);
        }
    }
    let mut results = [[0; 4]; LANES];
    for (row, left) in left.iter().enumerate() {
        for column in 0..8 {
            let (lane, which) = holder(row % 8, column);
            let at = 2 * (row / 8) + which;
            let mut sum = f32::from_bits(word(6 + at, lane));
            for (l, r) in left.iter().zip(&right).take(2 * half) {
                sum += l * r[column];
            }
            results[lane][at] = sum.to_bits();
        }
    }
    results
}
