//! Weights from the bytes of their blocks, eight at a time. Must not know kernels.
//!
//! Blocks lie in words of 32 bits, in the order of their bytes; a block begins at a multiple of two bytes. A format is a constant, so that
//! a kernel has the code of its own alone.

use perpetua::prelude::*;

pub(super) const Q4_0: u32 = 2;
pub(super) const Q8_0: u32 = 8;
pub(super) const Q4_K: u32 = 12;
pub(super) const Q5_K: u32 = 13;
pub(super) const Q6_K: u32 = 14;

/// Weights of a block.
#[device]
pub(super) fn weights_of(format: u32) -> usize {
    if format == Q4_0 || format == Q8_0 { 32 } else { 256 }
}

/// Bytes of a block.
#[device]
pub(super) fn bytes_of(format: u32) -> usize {
    match format {
        Q4_0 => 18,
        Q8_0 => 34,
        Q4_K => 144,
        Q5_K => 176,
        _ => 210,
    }
}

/// Four bytes from an even place on.
#[device]
fn word(blocks: &[u32], byte: usize) -> u32 {
    let low = blocks[byte / 4];
    if byte.is_multiple_of(4) {
        low
    } else {
        low >> 16 | blocks[byte / 4 + 1] << 16
    }
}

/// The `f16` at an even place.
#[device]
fn half_at(blocks: &[u32], byte: usize) -> f32 {
    let bits = blocks[byte / 4] >> (8 * (byte as u32 % 4));
    f16::from_bits(bits as u16).to_f32()
}

/// Scale and minimum of part `j` of a block, six bits each, which begin at `byte`.
#[device]
fn six_bits(blocks: &[u32], byte: usize, j: u32) -> (f32, f32) {
    let first = blocks[byte / 4];
    let second = blocks[byte / 4 + 1];
    let (scale, least) = if j < 4 {
        (first >> (8 * j) & 63, second >> (8 * j) & 63)
    } else {
        let third = blocks[byte / 4 + 2] >> (8 * (j - 4));
        let (first, second) = (first >> (8 * (j - 4)), second >> (8 * (j - 4)));
        (
            third & 15 | (first >> 6 & 3) << 4,
            third >> 4 & 15 | (second >> 6 & 3) << 4,
        )
    };
    (scale as f32, least as f32)
}

/// Weights `8 * part` to `8 * part + 7` of the block that begins at `byte`.
#[device]
pub(super) fn eight<const FORMAT: u32>(blocks: &[u32], byte: usize, part: usize) -> [f32; 8] {
    let mut all = [0.0f32; 8];
    if FORMAT == Q4_0 {
        let d = half_at(blocks, byte);
        let at = byte + 2 + part % 2 * 8;
        let shift = part as u32 / 2 * 4;
        for i in 0..8 {
            let bits = word(blocks, at + i / 4 * 4) >> (8 * (i as u32 % 4) + shift) & 15;
            all[i] = d * (bits as f32 - 8.0);
        }
    } else if FORMAT == Q8_0 {
        let d = half_at(blocks, byte);
        for i in 0..8 {
            let bits = word(blocks, byte + 2 + 8 * part + i / 4 * 4) >> (8 * (i as u32 % 4));
            all[i] = d * bits as u8 as i8 as f32;
        }
    } else if FORMAT == Q4_K || FORMAT == Q5_K {
        let (d, least) = (half_at(blocks, byte), half_at(blocks, byte + 2));
        let run = part as u32 / 4;
        let (scale, minimum) = six_bits(blocks, byte + 4, run);
        let (d, least) = (d * scale, least * minimum);
        let l = part % 4 * 8;
        let low = if FORMAT == Q4_K { 16 } else { 48 };
        let at = byte + low + part / 8 * 32 + l;
        let shift = run % 2 * 4;
        for i in 0..8 {
            let within = 8 * (i as u32 % 4);
            let mut bits = word(blocks, at + i / 4 * 4) >> (within + shift) & 15;
            if FORMAT == Q5_K {
                bits |= (word(blocks, byte + 16 + l + i / 4 * 4) >> (within + run) & 1) << 4;
            }
            all[i] = d * bits as f32 - least;
        }
    } else {
        let (half, quarter, l) = (part / 16, part as u32 % 16 / 4, part % 4 * 8);
        let place = byte + 192 + 8 * half + l / 16 + 2 * quarter as usize;
        let scale = (blocks[place / 4] >> (8 * (place as u32 % 4))) as u8 as i8;
        let d = half_at(blocks, byte + 208) * scale as f32;
        let low = byte + 64 * half + l + (quarter as usize % 2) * 32;
        let high = byte + 128 + 32 * half + l;
        for i in 0..8 {
            let within = 8 * (i as u32 % 4);
            let bits = word(blocks, low + i / 4 * 4) >> (within + quarter / 2 * 4) & 15
                | (word(blocks, high + i / 4 * 4) >> (within + 2 * quarter) & 3) << 4;
            all[i] = d * (bits as f32 - 32.0);
        }
    }
    all
}
