//! What C of a product in stages holds, and as what memory it is written. Must not know how sums are made.

use perpetua::prelude::*;

use super::epilogue::Epilogue;
use super::naive::scaled;
use crate::element::Paired;

/// What products are added up in.
#[device]
pub(super) trait Sum: GpuType {
    /// No sum yet.
    fn none() -> Self;
    /// The sum of these bits, as 32 bits have it.
    fn sum_of(word: u32) -> Self;
    /// Its bits.
    fn as_word(self) -> u32;
    /// Both sums.
    fn plus(a: Self, b: Self) -> Self;
    /// The nearest `f32`.
    fn wide(self) -> f32;
}

#[device]
impl Sum for f32 {
    fn none() -> f32 {
        0.0
    }

    fn sum_of(word: u32) -> f32 {
        f32::from_bits(word)
    }

    fn as_word(self) -> u32 {
        self.to_bits()
    }

    fn plus(a: f32, b: f32) -> f32 {
        a + b
    }

    fn wide(self) -> f32 {
        self
    }
}

#[device]
impl Sum for i32 {
    fn none() -> i32 {
        0
    }

    fn sum_of(word: u32) -> i32 {
        word as i32
    }

    fn as_word(self) -> u32 {
        self as u32
    }

    fn plus(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }

    fn wide(self) -> f32 {
        self as f32
    }
}

/// What C holds.
#[device]
pub(super) trait Written: GpuType {
    /// Whether two of them are a word, else one.
    fn is_half() -> bool;
    /// Whether it is a sum of integers as it is, or added to what was there: nothing is multiplied with it.
    fn is_int() -> bool;
    /// The nearest of these numbers, and the number that one is.
    fn nearest(number: f32) -> Self;
    fn number(self) -> f32;
    /// Its bits.
    fn to_word(self) -> u32;
    /// The one of these bits.
    fn of_word(word: u32) -> Self;
}

#[device]
impl Written for f16 {
    fn is_half() -> bool {
        true
    }

    fn is_int() -> bool {
        false
    }

    fn nearest(number: f32) -> f16 {
        f16::from_f32(number)
    }

    fn number(self) -> f32 {
        self.to_f32()
    }

    fn to_word(self) -> u32 {
        self.bits()
    }

    fn of_word(word: u32) -> f16 {
        <f16 as Paired>::of(word)
    }
}

#[device]
impl Written for bf16 {
    fn is_half() -> bool {
        true
    }

    fn is_int() -> bool {
        false
    }

    fn nearest(number: f32) -> bf16 {
        bf16::from_f32(number)
    }

    fn number(self) -> f32 {
        self.to_f32()
    }

    fn to_word(self) -> u32 {
        self.bits()
    }

    fn of_word(word: u32) -> bf16 {
        <bf16 as Paired>::of(word)
    }
}

#[device]
impl Written for f32 {
    fn is_half() -> bool {
        false
    }

    fn is_int() -> bool {
        false
    }

    fn nearest(number: f32) -> f32 {
        number
    }

    fn number(self) -> f32 {
        self
    }

    fn to_word(self) -> u32 {
        self.to_bits()
    }

    fn of_word(word: u32) -> f32 {
        f32::from_bits(word)
    }
}

#[device]
impl Written for i32 {
    fn is_half() -> bool {
        false
    }

    fn is_int() -> bool {
        true
    }

    fn nearest(number: f32) -> i32 {
        number as i32
    }

    fn number(self) -> f32 {
        self as f32
    }

    fn to_word(self) -> u32 {
        self as u32
    }

    fn of_word(word: u32) -> i32 {
        word as i32
    }
}

/// Memory that C is written to.
#[device]
pub(super) trait Sink: GpuType {
    /// Whether it is written four words at a time, else word by word.
    fn is_line() -> bool;
    /// What four words are there.
    fn line(words: [u32; 4]) -> Self;
    /// What a word is there.
    fn word(word: u32) -> Self;
    /// The word that is there.
    fn to_word(self) -> u32;
    /// Whether it is half of one.
    fn is_half() -> bool;
}

#[device]
impl Sink for u32 {
    fn is_line() -> bool {
        false
    }

    fn line(words: [u32; 4]) -> u32 {
        words[0]
    }

    fn word(word: u32) -> u32 {
        word
    }

    fn to_word(self) -> u32 {
        self
    }

    fn is_half() -> bool {
        false
    }
}

#[device]
impl Sink for u16 {
    fn is_line() -> bool {
        false
    }

    fn line(words: [u32; 4]) -> u16 {
        words[0] as u16
    }

    fn word(word: u32) -> u16 {
        word as u16
    }

    fn to_word(self) -> u32 {
        self as u32
    }

    fn is_half() -> bool {
        true
    }
}

#[device]
impl Sink for U32x4 {
    fn is_line() -> bool {
        true
    }

    fn line(words: [u32; 4]) -> U32x4 {
        U32x4 {
            x: words[0],
            y: words[1],
            z: words[2],
            w: words[3],
        }
    }

    fn word(word: u32) -> U32x4 {
        U32x4 {
            x: word,
            y: word,
            z: word,
            w: word,
        }
    }

    fn to_word(self) -> u32 {
        self.x
    }

    fn is_half() -> bool {
        false
    }
}

/// Where an element is, and what stands beside it in the launch's further buffer, of which it is so far from row to row and from column to column.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
pub(super) struct Place {
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) x_from: usize,
    pub(super) x_row: usize,
    pub(super) x_column: usize,
}

/// What is stored for a sum, and what was there before.
#[device]
pub(super) fn finished<E: Epilogue, S: Sum, O: Written>(
    sum: S,
    before: Option<O>,
    alpha: f32,
    beta: f32,
    at: Place,
    x: &[O],
) -> O {
    if E::takes_part() {
        let mut beside = 0.0f32;
        if at.row < at.rows && at.column < at.columns {
            beside = x[at.x_from + at.row * at.x_row + at.column * at.x_column].number();
        }
        O::nearest(E::apply(
            scaled(sum.wide(), before.map(|before| before.number()), alpha, beta),
            beside,
        ))
    } else if O::is_int() {
        match before {
            Some(before) => O::of_word(sum.as_word().wrapping_add(before.to_word())),
            None => O::of_word(sum.as_word()),
        }
    } else {
        O::nearest(scaled(
            sum.wide(),
            before.map(|before| before.number()),
            alpha,
            beta,
        ))
    }
}

/// What is stored for two sums side by side, and what was there before.
#[device]
pub(super) fn joined<E: Epilogue, S: Sum, O: Written>(
    sums: [S; 2],
    before: Option<O>,
    alpha: f32,
    beta: f32,
) -> O {
    let number = E::join(sums[0].wide() * alpha, sums[1].wide() * alpha);
    O::nearest(scaled(number, before.map(|before| before.number()), 1.0, beta))
}

/// The same place so many columns further.
#[device]
pub(super) fn beside(at: Place, columns: usize) -> Place {
    Place {
        column: at.column + columns,
        ..at
    }
}

/// Two sums, one beside the other, as a word.
#[device]
pub(super) fn pair<E: Epilogue, S: Sum, O: Written>(sums: [S; 2], alpha: f32, at: Place, x: &[O]) -> u32 {
    let low = finished::<E, S, O>(sums[0], None, alpha, 0.0, at, x).to_word();
    low | finished::<E, S, O>(sums[1], None, alpha, 0.0, beside(at, 1), x).to_word() << 16
}

/// Two sums as words.
#[device]
pub(super) fn both<E: Epilogue, S: Sum, O: Written>(
    sums: [S; 2],
    alpha: f32,
    at: Place,
    x: &[O],
) -> [u32; 2] {
    [
        finished::<E, S, O>(sums[0], None, alpha, 0.0, at, x).to_word(),
        finished::<E, S, O>(sums[1], None, alpha, 0.0, beside(at, 1), x).to_word(),
    ]
}

/// Of two lanes side by side the even one gets the words `near` of both, the odd one the words `far`.
#[device]
pub(super) fn halved(near: [u32; 2], far: [u32; 2], lane: u32) -> [u32; 4] {
    let odd = lane % 2 == 1;
    let first = subgroup_shuffle_xor(if odd { near[0] } else { far[0] }, 1);
    let second = subgroup_shuffle_xor(if odd { near[1] } else { far[1] }, 1);
    if odd {
        [first, second, far[0], far[1]]
    } else {
        [near[0], near[1], first, second]
    }
}

/// Adds up what the slices of a product's depth are, in their order: four columns a lane.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn gemm_summed<E: Epilogue, S: Sum, O: Written, C: Sink>(
    m: usize,
    n: usize,
    slices: usize,
    apart: usize,
    from_pitch: usize,
    c_pitch: usize,
    x_row: usize,
    x_column: usize,
    alpha: f32,
    beta: f32,
    from: &[U32x4],
    x: &[O],
    c: &mut [C],
) {
    let fours = n.div_ceil(4);
    let (row, first) = (global_id_x() / fours, global_id_x() % fours * 4);
    if row < m {
        let mut sums = [S::none(); 4];
        for slice in 0..slices {
            let U32x4 { x, y, z, w } = from[(slice * apart + row * from_pitch + first) / 4];
            let words = [x, y, z, w];
            for i in 0..4 {
                sums[i] = S::plus(sums[i], S::sum_of(words[i]));
            }
        }
        let at = row * c_pitch + first;
        let place = Place {
            row,
            column: first,
            rows: m,
            columns: n,
            x_from: 0,
            x_row,
            x_column,
        };
        if E::joins() {
            for i in 0..2 {
                if first + i * 2 < n {
                    let at = row * c_pitch + first / 2 + i;
                    let mut before = None;
                    if beta != 0.0 {
                        before = Some(O::of_word(c[at].to_word()));
                    }
                    let both = [sums[i * 2], sums[i * 2 + 1]];
                    c[at] = C::word(joined::<E, S, O>(both, before, alpha, beta).to_word());
                }
            }
        } else if O::is_half() && !C::is_half() {
            for i in 0..2 {
                if first + i * 2 < n {
                    let at = at / 2 + i;
                    let (mut low, mut high) = (None, None);
                    if beta != 0.0 {
                        low = Some(O::of_word(c[at].to_word() & 0xffff));
                        high = Some(O::of_word(c[at].to_word() >> 16));
                    }
                    let place = beside(place, i * 2);
                    let low = finished::<E, S, O>(sums[i * 2], low, alpha, beta, place, x).to_word();
                    let high = finished::<E, S, O>(sums[i * 2 + 1], high, alpha, beta, beside(place, 1), x)
                        .to_word();
                    c[at] = C::word(low | high << 16);
                }
            }
        } else {
            for i in 0..4 {
                if first + i < n {
                    let mut before = None;
                    if beta != 0.0 {
                        before = Some(O::of_word(c[at + i].to_word()));
                    }
                    let number = finished::<E, S, O>(sums[i], before, alpha, beta, beside(place, i), x);
                    c[at + i] = C::word(number.to_word());
                }
            }
        }
    }
}
