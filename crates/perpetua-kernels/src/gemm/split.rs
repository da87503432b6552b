//! `f32` as sums of two numbers that tensor cores multiply, for products that keep its digits. Must not know how they are multiplied.

use perpetua::prelude::*;
use perpetua_device::{Buffer, KernelArg, LaunchConfig, Stream};

use super::Factors;
use super::layout::{copied, of_bytes};
use crate::error::{Error, Result};
use crate::kernel::unchecked_on;
use crate::operand::Operand;

/// Which of three parts of a row has what a number is more than the nearest one of tf32.
#[derive(Clone, Copy)]
pub(super) enum Rest {
    /// Of A, the third.
    Third = 2,
    /// Of B, the second: so it is multiplied with the first part of A, as the third of B is with the rest of A.
    Second = 1,
}

/// The nearest number whose low 13 bits are zeros; what is no number, or infinite, stays so.
#[device]
fn nearest(x: f32) -> f32 {
    if x.is_finite() {
        f32::from_bits((x.to_bits() + 0x1000) & !0x1fff)
    } else {
        x
    }
}

/// Rows of `columns` numbers, `rows` of each of several matrices, as rows of three parts of `width` numbers each: part `rest` has the rest of each number, the others the nearest number of tf32.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
fn split(
    rows: usize,
    columns: usize,
    pitch: usize,
    apart: usize,
    width: usize,
    count: usize,
    rest: u32,
    from: &[f32],
    to: &mut [f32],
) {
    let at = global_id_x();
    if at >= count {
        return;
    }
    let (row, column) = (at / width, at % width);
    let mut x = 0.0;
    if column < columns {
        x = from[row / rows * apart + row % rows * pitch + column];
    }
    let near = nearest(x);
    let more = if near.is_finite() { nearest(x - near) } else { 0.0 };
    for part in 0..3 {
        to[row * 3 * width + part * width + column] = if part as u32 == rest { more } else { near };
    }
}

/// A or B, of which depth goes along rows or, if it `turns`, across them, as one whose rows are three times as long.
pub(super) fn thrice(
    stream: &Stream,
    kernel: &'static str,
    operand: &Operand,
    arg: &KernelArg<'_>,
    turns: bool,
    rest: Rest,
) -> Result<(Buffer<f32>, Operand)> {
    let turned = match turns {
        true => Some(copied(stream, Factors::Tf32, operand, arg, true)?),
        false => None,
    };
    let (from, shape) = match &turned {
        Some((bytes, shape)) => (of_bytes(Factors::Tf32, bytes)?, *shape),
        None => (arg.clone(), *operand),
    };
    let width = shape.columns.next_multiple_of(4);
    // What all products share stays one.
    let layers = if shape.apart == 0 { 1 } else { shape.layers };
    let all = layers
        .checked_mul(shape.rows)
        .and_then(|rows| rows.checked_mul(width));
    // A grid has so many blocks.
    let all = all.filter(|all| all.div_ceil(256) <= i32::MAX as usize);
    let Some(count) = all else {
        return Err(Error::TooLarge {
            kernel,
            operand: operand.name,
            shape: operand.to_string(),
        });
    };
    let to = stream.device().alloc::<f32>(count * 3)?;
    let all = args![
        shape.rows,
        shape.columns,
        shape.pitch,
        shape.apart,
        width,
        count,
        rest as u32,
        from,
        &to
    ];
    // SAFETY: the numbers that are read lie in rows for which `check`, or the copy, has found room; as many are written as there is memory for. Rows and widths are not zero where there is something to write.
    let function = unsafe { unchecked_on(stream, split::kernel()) };
    stream.launch(&function, LaunchConfig::new(count.div_ceil(256) as u32, 256), all)?;
    let shape = Operand {
        columns: 3 * width,
        pitch: 3 * width,
        apart: if layers == 1 { 0 } else { shape.rows * 3 * width },
        ..shape
    };
    Ok((to, shape))
}
