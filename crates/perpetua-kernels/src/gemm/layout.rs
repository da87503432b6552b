//! What A and B hold, how their rows must lie for hardware, and copies of them that lie so. Must not know what is multiplied.

use half::{bf16, f16};
use perpetua_device::{Buffer, KernelArg, Stream};

use super::Factors;
use crate::byte_floats::{E4m3, E5m2};
use crate::error::Result;
use crate::operand::Operand;
use crate::transpose;

/// What rows of A and B begin at multiples of, in bytes.
pub(super) const ALIGNED: usize = 16;

/// Whether a buffer holds such factors.
pub(super) fn is_held(factors: Factors, arg: &KernelArg<'_>) -> bool {
    let KernelArg::Buffer(buffer) = arg else {
        return false;
    };
    let ty = buffer.element();
    match factors {
        Factors::F16 => ty.is::<f16>(),
        Factors::Bf16 => ty.is::<bf16>(),
        Factors::Tf32 => ty.is::<f32>(),
        Factors::E4m3 => ty.is::<E4m3>(),
        Factors::E5m2 => ty.is::<E5m2>(),
        Factors::I8 => ty.is::<i8>(),
    }
}

/// Whether the rows of A or B begin where hardware takes them.
pub(super) fn is_aligned(factors: Factors, operand: &Operand, arg: &KernelArg<'_>) -> bool {
    let KernelArg::Buffer(buffer) = arg else {
        return false;
    };
    buffer.ptr().place() % ALIGNED as u64 == 0
        && (operand.pitch * factors.bytes()).is_multiple_of(ALIGNED)
        && (operand.apart * factors.bytes()).is_multiple_of(ALIGNED)
}

/// A buffer of bytes as one of such factors.
pub(super) fn of_bytes(factors: Factors, bytes: &Buffer<u8>) -> Result<KernelArg<'_>> {
    let KernelArg::Buffer(bytes) = bytes.arg() else {
        return Ok(bytes.arg());
    };
    Ok(KernelArg::Buffer(match factors {
        Factors::F16 => bytes.cast::<f16>()?,
        Factors::Bf16 => bytes.cast::<bf16>()?,
        Factors::Tf32 => bytes.cast::<f32>()?,
        Factors::E4m3 => bytes.cast::<E4m3>()?,
        Factors::E5m2 => bytes.cast::<E5m2>()?,
        Factors::I8 => bytes.cast::<i8>()?,
    }))
}

/// A copy of A or B whose rows begin where hardware takes them, perhaps transposed, and its shape.
pub(super) fn copied(
    stream: &Stream,
    factors: Factors,
    operand: &Operand,
    arg: &KernelArg<'_>,
    turns: bool,
) -> Result<(Buffer<u8>, Operand)> {
    let size = factors.bytes();
    let (rows, columns) = match turns {
        true => (operand.columns, operand.rows),
        false => (operand.rows, operand.columns),
    };
    let shape = Operand {
        rows,
        columns,
        pitch: columns.next_multiple_of(ALIGNED / size),
        apart: 0,
        ..*operand
    };
    // What all products share stays one.
    let layers = if operand.apart == 0 { 1 } else { operand.layers };
    let shape = Operand {
        apart: if layers == 1 { 0 } else { rows * shape.pitch },
        ..shape
    };
    let bytes = stream.device().alloc::<u8>(layers * rows * shape.pitch * size)?;
    let to = Operand { layers, ..shape };
    transpose::copy(stream, (size, turns), [operand, &to], [arg, &bytes.arg()])?;
    Ok((bytes, shape))
}
