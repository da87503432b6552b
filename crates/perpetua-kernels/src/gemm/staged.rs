//! Up to 128 x 256 sums a block at a time, multiplied in stages: while one or two teams of 128 lanes multiply, another one has the next parts of A and B
//! copied. Blocks stay for several such tiles. Must not know who asks for a product.

use perpetua::prelude::*;

use super::epilogue::Epilogue;
use super::gated::store_joined;
use super::written::{Place, Sink, Sum, Written, beside, both, finished, halved, pair};
use crate::byte_floats::{E4m3, E5m2};
use crate::element::turned;

/// What A and B hold.
#[device]
pub(super) trait Factor: GpuType {
    /// How deep a stage is.
    const DEPTH: usize;
}

#[device]
impl Factor for f16 {
    const DEPTH: usize = 64;
}

#[device]
impl Factor for bf16 {
    const DEPTH: usize = 64;
}

#[device]
impl Factor for f32 {
    const DEPTH: usize = 32;
}

#[device]
impl Factor for E4m3 {
    const DEPTH: usize = 128;
}

#[device]
impl Factor for E5m2 {
    const DEPTH: usize = 128;
}

#[device]
impl Factor for i8 {
    const DEPTH: usize = 128;
}

/// Rows of tiles that are gone through column by column, so that what they read of A and B is still in the cache.
const GROUP: u32 = 8;

/// The first row and column of sums of a tile.
#[device]
fn corner(tile: u32, rows: u32, columns: u32, high: u32, wide: u32) -> [u32; 2] {
    let group = GROUP * columns;
    let first = tile / group * GROUP;
    let high_group = if rows - first < GROUP { rows - first } else { GROUP };
    let within = tile % group;
    [(first + within % high_group) * high, within / high_group * wide]
}

/// The first stage of a slice of the depth, and the one behind its last.
#[device]
fn slice(number: u32, slices: u32, stages: u32) -> [u32; 2] {
    let (each, more) = (stages / slices, stages % slices);
    let first = number * each + number.min(more);
    [first, first + each + (number < more) as u32]
}

/// A block whose teams have `HIGH` rows of sums together, and `EIGHTHS` times eight columns; `TOGETHER` blocks have them below each other. `A` and `B` say how their parts lie in the block's
/// memory, and with that which way they are stored. `C` is the memory of numbers `O`. There are `batch` such products, whose matrices are so far apart. Sums of each of so many `slices` of the depth are stored by themselves, so far `apart`. With `PROMOTED` 1, each stage's sums are made by themselves.
#[device]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
fn product<
    E: Epilogue,
    T: Factor,
    A: GpuType,
    B: GpuType,
    S: Sum,
    O: Written,
    C: Sink,
    const HIGH: usize,
    const EIGHTHS: usize,
    const TOGETHER: usize,
    const PROMOTED: usize,
>(
    m: usize,
    n: usize,
    k: usize,
    a_rows: usize,
    a_columns: usize,
    a_pitch: usize,
    b_rows: usize,
    b_columns: usize,
    b_pitch: usize,
    batch: usize,
    a_apart: usize,
    b_apart: usize,
    c_apart: usize,
    slices: usize,
    apart: usize,
    c_pitch: usize,
    x_layer: usize,
    x_row: usize,
    x_column: usize,
    alpha: f32,
    beta: f32,
    a: &[T],
    b: &[T],
    x: &[O],
    c: &mut [C],
) {
    stage_factors::<A, B>(a, a_rows, a_columns, a_pitch, b, b_rows, b_columns, b_pitch);
    stage_layers(batch, a_apart, batch, b_apart);
    let wide = EIGHTHS * 8;
    let (rows, columns) = (m.div_ceil(HIGH * TOGETHER) as u32, n.div_ceil(wide) as u32);
    let turns = k.div_ceil(T::DEPTH) as u32;
    let parts = slices as u32;
    // Of one of the products, and of all.
    let each = rows * columns * parts;
    let units = each * batch as u32;
    let (first, blocks) = (
        group_id_x() as u32 / TOGETHER as u32,
        grid_dim_x() as u32 / TOGETHER as u32,
    );
    // Rows that this block is further down than the first of those together.
    let below = group_id_x() as u32 % TOGETHER as u32 * HIGH as u32;
    if is_producer() {
        let mut unit = first;
        while unit < units {
            let [top, left] = corner(
                unit % each / parts,
                rows,
                columns,
                (HIGH * TOGETHER) as u32,
                wide as u32,
            );
            let [from, to] = slice(unit % parts, parts, turns);
            for i in from..to {
                let layer = unit / each;
                let of_a = if a_apart == 0 { 0 } else { layer };
                let of_b = if b_apart == 0 { 0 } else { layer };
                fill_stage_of(of_a, of_b, top + below, left, i * T::DEPTH as u32);
            }
            unit += blocks;
        }
    } else {
        let lane = local_id_x() as u32;
        // Where this lane's sums are in its tile: the row, and the column of the first ones.
        let down = lane % 128 / 4 + lane % 128 / 32 * 8 + (lane / 128 - 1) * 64;
        let over = lane % 4 * 2;
        let mut unit = first;
        while unit < units {
            let [from, to] = slice(unit % parts, parts, turns);
            let mut sums = [[[S::none(); 2]; 2]; EIGHTHS];
            for _i in from..to {
                if PROMOTED == 1 {
                    let part = multiply_stage([[[S::none(); 2]; 2]; EIGHTHS]);
                    for i in 0..EIGHTHS {
                        for j in 0..2 {
                            for l in 0..2 {
                                sums[i][j][l] = S::plus(sums[i][j][l], part[i][j][l]);
                            }
                        }
                    }
                } else {
                    sums = multiply_stage(sums);
                }
            }
            let [top, left] = corner(
                unit % each / parts,
                rows,
                columns,
                (HIGH * TOGETHER) as u32,
                wide as u32,
            );
            let layer = (unit / each) as usize;
            let beyond = layer * c_apart + (unit % parts) as usize * apart;
            let (y, left) = ((top + below + down) as usize, left as usize);
            // Columns that C has from this lane's first one on.
            let room = n as u32 - (left as u32 + over).min(n as u32);
            for j in 0..2 {
                let line = beyond + (y + j * 8) * c_pitch + left;
                let is_row = y + j * 8 < m;
                let place = Place {
                    row: y + j * 8,
                    column: left + over as usize,
                    rows: m,
                    columns: n,
                    x_from: layer * x_layer,
                    x_row,
                    x_column,
                };
                if E::joins() {
                    let line = beyond + (y + j * 8) * c_pitch + left / 2;
                    let room = (n - left.min(n)) / 2;
                    store_joined::<E, S, O, C, EIGHTHS>(sums, j, lane, is_row, line, room, alpha, beta, c);
                } else if C::is_line() && O::is_half() {
                    // Four lanes that have two columns of each eight come to have all of every fourth eight.
                    for i in 0..EIGHTHS / 4 {
                        let four = [
                            pair::<E, S, O>(sums[i * 4][j], alpha, beside(place, i * 32), x),
                            pair::<E, S, O>(sums[i * 4 + 1][j], alpha, beside(place, i * 32 + 8), x),
                            pair::<E, S, O>(sums[i * 4 + 2][j], alpha, beside(place, i * 32 + 16), x),
                            pair::<E, S, O>(sums[i * 4 + 3][j], alpha, beside(place, i * 32 + 24), x),
                        ];
                        let four = turned(four, lane);
                        let eighth = i * 4 + (lane % 4) as usize;
                        if is_row && left + eighth * 8 < n {
                            c[line / 8 + eighth] = C::line(four);
                        }
                    }
                } else if C::is_line() {
                    // Two lanes that have two columns of each eight come to have four of every second eight.
                    for i in 0..EIGHTHS / 2 {
                        let near = both::<E, S, O>(sums[i * 2][j], alpha, beside(place, i * 16), x);
                        let far = both::<E, S, O>(sums[i * 2 + 1][j], alpha, beside(place, i * 16 + 8), x);
                        let four = halved(near, far, lane);
                        let fourth = i * 4 + (lane % 2 * 2 + lane / 2 % 2) as usize;
                        if is_row && left + fourth * 4 < n {
                            c[line / 4 + fourth] = C::line(four);
                        }
                    }
                } else if O::is_half() && !C::is_half() {
                    for i in 0..EIGHTHS {
                        let column = over as usize + i * 8;
                        if is_row && left + column < n {
                            let at = (line + column) / 2;
                            let [low, high] = sums[i][j];
                            let (mut low_before, mut high_before) = (None, None);
                            if beta != 0.0 {
                                low_before = Some(O::of_word(c[at].to_word() & 0xffff));
                                high_before = Some(O::of_word(c[at].to_word() >> 16));
                            }
                            let place = beside(place, i * 8);
                            let low = finished::<E, S, O>(low, low_before, alpha, beta, place, x);
                            let high =
                                finished::<E, S, O>(high, high_before, alpha, beta, beside(place, 1), x);
                            c[at] = C::word(low.to_word() | high.to_word() << 16);
                        }
                    }
                } else {
                    let first = line + over as usize;
                    for i in 0..EIGHTHS {
                        for l in 0..2 {
                            if is_row && ((i * 8 + l) as u32) < room {
                                let mut before = None;
                                if beta != 0.0 {
                                    before = Some(O::of_word(c[first + (i * 8 + l)].to_word()));
                                }
                                let number = finished::<E, S, O>(
                                    sums[i][j][l],
                                    before,
                                    alpha,
                                    beta,
                                    beside(place, i * 8 + l),
                                    x,
                                );
                                c[first + (i * 8 + l)] = C::word(number.to_word());
                            }
                        }
                    }
                }
            }
            unit += blocks;
        }
    }
}

/// A kernel of so many lanes a block, whose teams have so many rows, of so many blocks together; with what else it declares.
macro_rules! staged {
    ($(#[$doc:meta])* $name:ident, $lanes:tt, $high:tt, $together:tt, { $($declares:tt)* }) => {
        $(#[$doc])*
        #[kernel(block_size = $lanes, interpret)]
        #[allow(
            clippy::too_many_arguments,
            reason = "a kernel's arguments are its buffers and its shapes"
        )]
        pub(super) fn $name<
            E: Epilogue,
            T: Factor,
            A: GpuType,
            B: GpuType,
            S: Sum,
            O: Written,
            C: Sink,
            const EIGHTHS: usize,
            const PROMOTED: usize,
        >(
            m: usize,
            n: usize,
            k: usize,
            a_rows: usize,
            a_columns: usize,
            a_pitch: usize,
            b_rows: usize,
            b_columns: usize,
            b_pitch: usize,
            batch: usize,
            a_apart: usize,
            b_apart: usize,
            c_apart: usize,
            slices: usize,
            apart: usize,
            c_pitch: usize,
            x_layer: usize,
            x_row: usize,
            x_column: usize,
            alpha: f32,
            beta: f32,
            a: &[T],
            b: &[T],
            x: &[O],
            c: &mut [C],
        ) {
            $($declares)*
            product::<E, T, A, B, S, O, C, $high, EIGHTHS, $together, PROMOTED>(
                m, n, k, a_rows, a_columns, a_pitch, b_rows, b_columns, b_pitch, batch, a_apart, b_apart, c_apart, slices, apart, c_pitch, x_layer, x_row, x_column, alpha, beta, a, b, x, c,
            );
        }
    };
}

staged! {
    /// Two teams multiply, and so do those of the block beside this one.
    gemm_staged_pair, 384, 128, 2, { stage_pairs(); }
}
staged! {
    /// Two teams multiply.
    gemm_staged, 384, 128, 1, {}
}
staged! {
    /// One team multiplies.
    gemm_staged_low, 256, 64, 1, {}
}
