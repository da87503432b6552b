//! Several steps in the plane in one launch (blocking in time; M. Wolf, M. Lam, PLDI 1991; with overlapping tiles as
//! J. Holewinski, L.-N. Pouchet, P. Sadayappan, ICS 2012): a block keeps a tile in registers and steps it, while what
//! it knows shrinks by a cell a step from the tile's edge inwards. What is left it writes, to buffers of their own, for
//! its neighbours read the old field. What a cell's medium is it looks up once, and probes are recorded by the block whose
//! tile has them. The same numbers to the bit as a step a launch.
//!
//! A lane's rows are variables, not an array, so that they are registers: a macro writes them out, for tall tiles, which
//! lose less, and for low ones, of which even a small grid has enough to keep a GPU busy.

use perpetua::prelude::*;

use super::super::{leave, swing};
use super::{Stored, load, store};

/// The next field of a cell that may lie on the grid's border or under the source; `next` is what it is elsewhere.
#[device]
#[inline(always)]
fn mended(next: f32, now: f32, inside: f32, edge: f32, at_border: bool, drive: f32) -> f32 {
    if at_border {
        leave(now, inside, edge)
    } else {
        next + drive
    }
}

/// The field as the next step reads it back.
#[device]
#[inline(always)]
fn kept(x: f32) -> f32 {
    load(store(x))
}

/// How far from a cell on the border, in a tile's numbering, its neighbour inside is, along one axis.
#[device]
#[inline(always)]
fn inwards(at: i32, cells: i32, stride: i32) -> i32 {
    if at == 0 {
        stride
    } else if at + 1 == cells {
        -stride
    } else {
        0
    }
}

/// A kernel that does `STEPS` steps in the plane, in blocks of 64 x 8 lanes: a tile as wide as 64 cells and as high as 8
/// times the rows of a lane, of which all but `STEPS` cells on each side are written. `MEDIA`: there is a byte a cell, and
/// `table` is that of media; else `cells` is nothing, and `table` the profile. `PROBES`: there are some.
macro_rules! tiles {
    (
        $(#[$about:meta])*
        $name:ident: $rows:tt rows, half $half:tt, both $both:tt, last $last:tt, from $north:ident to $south:ident;
        $($row:tt: $up:ident $now:ident $down:ident, $before:ident $keep:ident $pull:ident $next:ident $y:ident;)*
    ) => {
        $(#[$about])*
        #[kernel(interpret)]
        #[allow(
            clippy::too_many_arguments,
            clippy::identity_op,
            clippy::int_plus_one,
            reason = "a kernel's arguments are its buffers and its scene; the first row's number is 0"
        )]
        pub(crate) fn $name<const STEPS: u32, const MEDIA: bool, const PROBES: bool>(
            current: &[Stored],
            other: &[Stored],
            next_current: &mut [Stored],
            next_other: &mut [Stored],
            table: &[f32],
            cells: &[u8],
            drive: &[f32],
            positions: &[u32],
            record: &mut [f32],
            width: u32,
            height: u32,
            stiffness: f32,
            edge: f32,
            turn: u32,
            probes: u32,
            from_x: u32,
            to_x: u32,
            from_y: u32,
            to_y: u32,
        ) {
            // The tile's field, of odd steps and of even ones.
            let tile = shared_array::<[f32; $both]>();
            let w = width as usize;
            let (right, bottom) = (width as i32 - 1, height as i32 - 1);
            let lane_x = local_id_x() as u32 & 63;
            let lane_y = local_id_y() as u32 & 7;
            let own = lane_y * (64 * $rows) + lane_x;
            // Past the tile's edge anything will do: there nothing is known.
            let west = if lane_x > 0 { own - 1 } else { own };
            let east = if lane_x < 63 { own + 1 } else { own };
            let above = if lane_y > 0 { own - 64 } else { own };
            let below = if lane_y < 7 { own + 64 * $rows } else { own };
            // The first tile begins before the grid, by what will be lost.
            let high = 8 * $rows;
            let left = (block_idx_x() as u32 * (64 - 2 * STEPS)) as i32 - STEPS as i32;
            let top = (block_idx_y() as u32 * (8 * $rows - 2 * STEPS)) as i32 - STEPS as i32;
            let x = left + lane_x as i32;
            let y = top + lane_y as i32 * $rows;
            let off_source = left + 64 <= from_x as i32
                || left >= to_x as i32
                || top + high <= from_y as i32
                || top >= to_y as i32;
            let calm = left > 0 && top > 0 && left + 63 < right && top + high - 1 < bottom && off_source;
            // Cells outside the grid stand for those on its border: nobody asks them.
            let column = x.clamp(0, right) as usize;
            $(let $y = (y + $row).clamp(0, bottom) as usize;)*
            $(let mut $now = load(current[$y * w + column]);)*
            $(let mut $before = load(other[$y * w + column]);)*
            let damped = if MEDIA { 512 } else { 0 };
            let keep = table[damped + column];
            $(let mut $keep = keep * table[damped + w + $y];)*
            // A bit for each row that is a reflector, and for each that a source drives; the sources' numbers, four bits each.
            let (mut rigid, mut driven, mut drives) = (0u32, 0u32, 0u32);
            $(let mut $pull = stiffness;)*
            if MEDIA {
                $(
                    let slot = cells[$y * w + column] as u32;
                    $keep *= table[(256 + slot) as usize];
                    $pull = table[slot as usize];
                    if slot == 0 {
                        rigid |= 1 << $row;
                    } else if slot >= 240 {
                        driven |= 1 << $row;
                        drives |= (slot & 15) << (4 * $row);
                    }
                )*
            }
            $($pull *= 0.5 + 0.5 * $keep;)*
            let at_side = x == 0 || x == right;
            let inwards_x = inwards(x, right + 1, 1);
            let under = x >= from_x as i32 && x < to_x as i32;
            // The lane that has a probe's number listens to it, if it lies in the tile, and writes down at the end what it heard:
            // no barrier has to order it.
            let probe = 64 * lane_y + lane_x;
            let margin = STEPS as i32;
            let (mut listens, mut seat) = (false, 0);
            let mut heard = [0.0f32; 8];
            if PROBES && probe < probes {
                let position = positions[probe as usize];
                let tile_x = (position % width) as i32 - left;
                let tile_y = (position / width) as i32 - top;
                listens = tile_x >= margin && tile_x < 64 - margin && tile_y >= margin && tile_y < high - margin;
                seat = (64 * tile_y + tile_x) as u32 & $last;
            }
            for step in 0..STEPS {
                let half = $half * (step & 1);
                $(tile[(half + own + 64 * $row) as usize] = $now;)*
                sync_threads();
                if PROBES && listens {
                    heard[step as usize] = tile[(half + seat) as usize];
                }
                let at_west = half + west;
                let at_east = half + east;
                let $north = tile[(half + above) as usize];
                let $south = tile[(half + below) as usize];
                $(
                    let around = $up
                        + $down
                        + tile[(at_west + 64 * $row) as usize]
                        + tile[(at_east + 64 * $row) as usize]
                        - 4.0 * $now;
                    let mut $next = swing($now, $before, around, $keep, $pull);
                )*
                if MEDIA && (rigid | driven) != 0 {
                    $(
                        if (rigid >> $row) & 1 != 0 {
                            $next = 0.0;
                        } else if (driven >> $row) & 1 != 0 {
                            $next += drive[((turn + step) * 16 + ((drives >> (4 * $row)) & 15)) as usize];
                        }
                    )*
                }
                if !calm {
                    let amount = if under { drive[(turn + step) as usize * 16] } else { 0.0 };
                    $(
                        let yy = y + $row;
                        let there = own as i32 + 64 * $row + inwards_x + inwards(yy, bottom + 1, 64);
                        let inside = tile[(half + (there as u32 & $last)) as usize];
                        let driven = if yy >= from_y as i32 && yy < to_y as i32 { amount } else { 0.0 };
                        let at_border = at_side || yy == 0 || yy == bottom;
                        $next = mended($next, $now, inside, edge, at_border, driven);
                    )*
                }
                $(
                    $before = $now;
                    $now = kept($next);
                )*
            }
            if PROBES && listens {
                for step in 0..STEPS {
                    record[((turn + step) * probes + probe) as usize] = heard[step as usize];
                }
            }
            // The rows that it knows, of those that exist.
            let first = top + margin;
            let end = (top + high - margin).min(bottom + 1);
            if x < 0 || x > right || (lane_x as i32) < margin || lane_x as i32 >= 64 - margin {
                return;
            }
            $(
                if y + $row >= first && y + $row < end {
                    next_current[$y * w + column] = store($now);
                    next_other[$y * w + column] = store($before);
                }
            )*
        }
    };
}

tiles! {
    /// In tiles of 64 x 64 cells: the lane (x, y) does the tile's cells (x, 8 y) to (x, 8 y + 7).
    tall: 8 rows, half 4096, both 8192, last 4095, from north to south;
    0: north n0 n1, b0 k0 p0 next0 y0;
    1: n0 n1 n2, b1 k1 p1 next1 y1;
    2: n1 n2 n3, b2 k2 p2 next2 y2;
    3: n2 n3 n4, b3 k3 p3 next3 y3;
    4: n3 n4 n5, b4 k4 p4 next4 y4;
    5: n4 n5 n6, b5 k5 p5 next5 y5;
    6: n5 n6 n7, b6 k6 p6 next6 y6;
    7: n6 n7 south, b7 k7 p7 next7 y7;
}

tiles! {
    /// In tiles of 64 x 32 cells: the lane (x, y) does the tile's cells (x, 4 y) to (x, 4 y + 3).
    low: 4 rows, half 2048, both 4096, last 2047, from north to south;
    0: north n0 n1, b0 k0 p0 next0 y0;
    1: n0 n1 n2, b1 k1 p1 next1 y1;
    2: n1 n2 n3, b2 k2 p2 next2 y2;
    3: n2 n3 south, b3 k3 p3 next3 y3;
}
