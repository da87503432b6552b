//! Products whose columns are joined in pairs, as gated layers have them. Must not know how products are made.

use perpetua::prelude::*;

use super::epilogue::{Epilogue, Gate};
use super::written::{Sink, Sum, Written, joined};
use crate::element::turned;

/// An epilogue that does nothing but join columns.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
pub(super) struct Joined<G: Copy> {
    gate: G,
}

#[device]
impl<G: Gate> Epilogue for Joined<G> {
    fn apply(element: f32, _beside: f32) -> f32 {
        element
    }

    fn takes_part() -> bool {
        false
    }

    fn joins() -> bool {
        true
    }

    fn join(first: f32, second: f32) -> f32 {
        G::join(first, second)
    }
}

/// What is stored for two sums side by side as a word, where nothing is added to what was there.
#[device]
fn word<E: Epilogue, S: Sum, O: Written>(sums: [S; 2], alpha: f32) -> u32 {
    joined::<E, S, O>(sums, None, alpha, 0.0).to_word()
}

/// Stores what the sums of a lane's row become: of each eighth of the product's columns, of which four lanes have two each, an element a lane. `line`: where the row's first one of the tile is stored; `room`: columns of C from there on.
#[device]
#[allow(clippy::too_many_arguments, reason = "the lane's sums, and where they go")]
pub(super) fn store_joined<E: Epilogue, S: Sum, O: Written, C: Sink, const EIGHTHS: usize>(
    sums: [[[S; 2]; 2]; EIGHTHS],
    j: usize,
    lane: u32,
    is_row: bool,
    line: usize,
    room: usize,
    alpha: f32,
    beta: f32,
    c: &mut [C],
) {
    let within = (lane % 4) as usize;
    if C::is_line() && O::is_half() {
        // Four lanes come to have eight elements each, of two eighths.
        for i in 0..EIGHTHS / 8 {
            let mut words = [0u32; 4];
            for l in 0..4 {
                let low = word::<E, S, O>(sums[i * 8 + l * 2][j], alpha);
                words[l] = low | word::<E, S, O>(sums[i * 8 + l * 2 + 1][j], alpha) << 16;
            }
            let [p, q, r, s] = turned(words, lane);
            let at = i * 4 + within;
            if is_row && at * 8 < room {
                c[line / 8 + at] = C::line([
                    p & 0xffff | q << 16,
                    r & 0xffff | s << 16,
                    p >> 16 | q & 0xffff_0000,
                    r >> 16 | s & 0xffff_0000,
                ]);
            }
        }
    } else if C::is_line() {
        // Four elements each, of an eighth.
        for i in 0..EIGHTHS / 4 {
            let mut words = [0u32; 4];
            for l in 0..4 {
                words[l] = word::<E, S, O>(sums[i * 4 + l][j], alpha);
            }
            let words = turned(words, lane);
            let at = i * 4 + within;
            if is_row && at * 4 < room {
                c[line / 4 + at] = C::line(words);
            }
        }
    } else {
        for i in 0..EIGHTHS {
            let column = i * 4 + within;
            if is_row && column < room {
                let at = line + column;
                let mut before = None;
                if beta != 0.0 {
                    before = Some(O::of_word(c[at].to_word()));
                }
                c[at] = C::word(joined::<E, S, O>(sums[i][j], before, alpha, beta).to_word());
            }
        }
    }
}
