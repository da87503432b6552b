//! Several steps in the plane in one launch (blocking in time; M. Wolf, M. Lam, PLDI 1991; with overlapping tiles as
//! J. Holewinski, L.-N. Pouchet, P. Sadayappan, ICS 2012): a work-group keeps a tile in registers and steps it, while what
//! it knows shrinks by a cell a step from the tile's edge inwards. What is left it writes, to buffers of their own, for
//! its neighbours read the old field. For one medium, without probes; the same numbers to the bit as a step a launch.

use perpetua::prelude::*;

use super::super::{leap, leave};
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

/// `STEPS` steps in the plane, one medium, in work-groups of 64 x 8 lanes: a tile of 64 x 64 cells, of which the middle
/// 64 - 2 `STEPS` squared are written; the lane (x, y) does the tile's cells (x, 8 y) to (x, 8 y + 7).
#[kernel]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its scene"
)]
pub(in crate::wave) fn open_2d<const STEPS: u32>(
    current: &[Stored],
    other: &[Stored],
    next_current: &mut [Stored],
    next_other: &mut [Stored],
    profile: &[f32],
    drive: &[f32],
    width: u32,
    height: u32,
    stiffness: f32,
    edge: f32,
    turn: u32,
    from_x: u32,
    to_x: u32,
    from_y: u32,
    to_y: u32,
) {
    // The tile's field, of odd steps and of even ones.
    let tile = workgroup_array::<[f32; 8192]>();
    let w = width as usize;
    let (right, bottom) = (width as i32 - 1, height as i32 - 1);
    let lane_x = local_id_x() as u32 & 63;
    let lane_y = local_id_y() as u32 & 7;
    let own = lane_y * 512 + lane_x;
    // Past the tile's edge anything will do: there nothing is known.
    let west = if lane_x > 0 { own - 1 } else { own };
    let east = if lane_x < 63 { own + 1 } else { own };
    let above = if lane_y > 0 { own - 64 } else { own };
    let below = if lane_y < 7 { own + 512 } else { own };
    // The first tile begins before the grid, by what will be lost.
    let inner = 64 - 2 * STEPS;
    let left = (block_idx_x() as u32 * inner) as i32 - STEPS as i32;
    let top = (block_idx_y() as u32 * inner) as i32 - STEPS as i32;
    let x = left + lane_x as i32;
    let y = top + lane_y as i32 * 8;
    let off_source =
        left + 64 <= from_x as i32 || left >= to_x as i32 || top + 64 <= from_y as i32 || top >= to_y as i32;
    let calm = left > 0 && top > 0 && left + 63 < right && top + 63 < bottom && off_source;
    // Cells outside the grid stand for those on its border: nobody asks them.
    let column = x.clamp(0, right) as usize;
    let y0 = y.clamp(0, bottom) as usize;
    let y1 = (y + 1).clamp(0, bottom) as usize;
    let y2 = (y + 2).clamp(0, bottom) as usize;
    let y3 = (y + 3).clamp(0, bottom) as usize;
    let y4 = (y + 4).clamp(0, bottom) as usize;
    let y5 = (y + 5).clamp(0, bottom) as usize;
    let y6 = (y + 6).clamp(0, bottom) as usize;
    let y7 = (y + 7).clamp(0, bottom) as usize;
    let mut n0 = load(current[y0 * w + column]);
    let mut n1 = load(current[y1 * w + column]);
    let mut n2 = load(current[y2 * w + column]);
    let mut n3 = load(current[y3 * w + column]);
    let mut n4 = load(current[y4 * w + column]);
    let mut n5 = load(current[y5 * w + column]);
    let mut n6 = load(current[y6 * w + column]);
    let mut n7 = load(current[y7 * w + column]);
    let mut b0 = load(other[y0 * w + column]);
    let mut b1 = load(other[y1 * w + column]);
    let mut b2 = load(other[y2 * w + column]);
    let mut b3 = load(other[y3 * w + column]);
    let mut b4 = load(other[y4 * w + column]);
    let mut b5 = load(other[y5 * w + column]);
    let mut b6 = load(other[y6 * w + column]);
    let mut b7 = load(other[y7 * w + column]);
    let keep = profile[column];
    let k0 = keep * profile[w + y0];
    let k1 = keep * profile[w + y1];
    let k2 = keep * profile[w + y2];
    let k3 = keep * profile[w + y3];
    let k4 = keep * profile[w + y4];
    let k5 = keep * profile[w + y5];
    let k6 = keep * profile[w + y6];
    let k7 = keep * profile[w + y7];
    let at_side = x == 0 || x == right;
    let inwards_x = inwards(x, right + 1, 1);
    let under = x >= from_x as i32 && x < to_x as i32;
    for step in 0..STEPS {
        let half = 4096 * (step & 1);
        tile[(half + own) as usize] = n0;
        tile[(half + own + 64) as usize] = n1;
        tile[(half + own + 128) as usize] = n2;
        tile[(half + own + 192) as usize] = n3;
        tile[(half + own + 256) as usize] = n4;
        tile[(half + own + 320) as usize] = n5;
        tile[(half + own + 384) as usize] = n6;
        tile[(half + own + 448) as usize] = n7;
        sync_threads();
        let at_west = half + west;
        let at_east = half + east;
        let north = tile[(half + above) as usize];
        let south = tile[(half + below) as usize];
        let around = north + n1 + tile[at_west as usize] + tile[at_east as usize] - 4.0 * n0;
        let mut next0 = leap(n0, b0, around, stiffness, k0);
        let around = n0 + n2 + tile[(at_west + 64) as usize] + tile[(at_east + 64) as usize] - 4.0 * n1;
        let mut next1 = leap(n1, b1, around, stiffness, k1);
        let around = n1 + n3 + tile[(at_west + 128) as usize] + tile[(at_east + 128) as usize] - 4.0 * n2;
        let mut next2 = leap(n2, b2, around, stiffness, k2);
        let around = n2 + n4 + tile[(at_west + 192) as usize] + tile[(at_east + 192) as usize] - 4.0 * n3;
        let mut next3 = leap(n3, b3, around, stiffness, k3);
        let around = n3 + n5 + tile[(at_west + 256) as usize] + tile[(at_east + 256) as usize] - 4.0 * n4;
        let mut next4 = leap(n4, b4, around, stiffness, k4);
        let around = n4 + n6 + tile[(at_west + 320) as usize] + tile[(at_east + 320) as usize] - 4.0 * n5;
        let mut next5 = leap(n5, b5, around, stiffness, k5);
        let around = n5 + n7 + tile[(at_west + 384) as usize] + tile[(at_east + 384) as usize] - 4.0 * n6;
        let mut next6 = leap(n6, b6, around, stiffness, k6);
        let around = n6 + south + tile[(at_west + 448) as usize] + tile[(at_east + 448) as usize] - 4.0 * n7;
        let mut next7 = leap(n7, b7, around, stiffness, k7);
        if !calm {
            let amount = if under {
                drive[(turn + step) as usize * 16]
            } else {
                0.0
            };
            let yy = y;
            let inside = tile
                [(half + ((own as i32 + inwards_x + inwards(yy, bottom + 1, 64)) as u32 & 4095)) as usize];
            let driven = if yy >= from_y as i32 && yy < to_y as i32 {
                amount
            } else {
                0.0
            };
            next0 = mended(
                next0,
                n0,
                inside,
                edge,
                at_side || yy == 0 || yy == bottom,
                driven,
            );
            let yy = y + 1;
            let inside = tile[(half
                + ((own as i32 + 64 + inwards_x + inwards(yy, bottom + 1, 64)) as u32 & 4095))
                as usize];
            let driven = if yy >= from_y as i32 && yy < to_y as i32 {
                amount
            } else {
                0.0
            };
            next1 = mended(
                next1,
                n1,
                inside,
                edge,
                at_side || yy == 0 || yy == bottom,
                driven,
            );
            let yy = y + 2;
            let inside = tile[(half
                + ((own as i32 + 128 + inwards_x + inwards(yy, bottom + 1, 64)) as u32 & 4095))
                as usize];
            let driven = if yy >= from_y as i32 && yy < to_y as i32 {
                amount
            } else {
                0.0
            };
            next2 = mended(
                next2,
                n2,
                inside,
                edge,
                at_side || yy == 0 || yy == bottom,
                driven,
            );
            let yy = y + 3;
            let inside = tile[(half
                + ((own as i32 + 192 + inwards_x + inwards(yy, bottom + 1, 64)) as u32 & 4095))
                as usize];
            let driven = if yy >= from_y as i32 && yy < to_y as i32 {
                amount
            } else {
                0.0
            };
            next3 = mended(
                next3,
                n3,
                inside,
                edge,
                at_side || yy == 0 || yy == bottom,
                driven,
            );
            let yy = y + 4;
            let inside = tile[(half
                + ((own as i32 + 256 + inwards_x + inwards(yy, bottom + 1, 64)) as u32 & 4095))
                as usize];
            let driven = if yy >= from_y as i32 && yy < to_y as i32 {
                amount
            } else {
                0.0
            };
            next4 = mended(
                next4,
                n4,
                inside,
                edge,
                at_side || yy == 0 || yy == bottom,
                driven,
            );
            let yy = y + 5;
            let inside = tile[(half
                + ((own as i32 + 320 + inwards_x + inwards(yy, bottom + 1, 64)) as u32 & 4095))
                as usize];
            let driven = if yy >= from_y as i32 && yy < to_y as i32 {
                amount
            } else {
                0.0
            };
            next5 = mended(
                next5,
                n5,
                inside,
                edge,
                at_side || yy == 0 || yy == bottom,
                driven,
            );
            let yy = y + 6;
            let inside = tile[(half
                + ((own as i32 + 384 + inwards_x + inwards(yy, bottom + 1, 64)) as u32 & 4095))
                as usize];
            let driven = if yy >= from_y as i32 && yy < to_y as i32 {
                amount
            } else {
                0.0
            };
            next6 = mended(
                next6,
                n6,
                inside,
                edge,
                at_side || yy == 0 || yy == bottom,
                driven,
            );
            let yy = y + 7;
            let inside = tile[(half
                + ((own as i32 + 448 + inwards_x + inwards(yy, bottom + 1, 64)) as u32 & 4095))
                as usize];
            let driven = if yy >= from_y as i32 && yy < to_y as i32 {
                amount
            } else {
                0.0
            };
            next7 = mended(
                next7,
                n7,
                inside,
                edge,
                at_side || yy == 0 || yy == bottom,
                driven,
            );
        }
        b0 = n0;
        n0 = kept(next0);
        b1 = n1;
        n1 = kept(next1);
        b2 = n2;
        n2 = kept(next2);
        b3 = n3;
        n3 = kept(next3);
        b4 = n4;
        n4 = kept(next4);
        b5 = n5;
        n5 = kept(next5);
        b6 = n6;
        n6 = kept(next6);
        b7 = n7;
        n7 = kept(next7);
    }
    // The rows that it knows, of those that exist.
    let margin = STEPS as i32;
    let first = top + margin;
    let end = (top + 64 - margin).min(bottom + 1);
    if x < 0 || x > right || (lane_x as i32) < margin || lane_x as i32 >= 64 - margin {
        return;
    }
    if y >= first && y < end {
        next_current[y0 * w + column] = store(n0);
        next_other[y0 * w + column] = store(b0);
    }
    if y + 1 >= first && y + 1 < end {
        next_current[y1 * w + column] = store(n1);
        next_other[y1 * w + column] = store(b1);
    }
    if y + 2 >= first && y + 2 < end {
        next_current[y2 * w + column] = store(n2);
        next_other[y2 * w + column] = store(b2);
    }
    if y + 3 >= first && y + 3 < end {
        next_current[y3 * w + column] = store(n3);
        next_other[y3 * w + column] = store(b3);
    }
    if y + 4 >= first && y + 4 < end {
        next_current[y4 * w + column] = store(n4);
        next_other[y4 * w + column] = store(b4);
    }
    if y + 5 >= first && y + 5 < end {
        next_current[y5 * w + column] = store(n5);
        next_other[y5 * w + column] = store(b5);
    }
    if y + 6 >= first && y + 6 < end {
        next_current[y6 * w + column] = store(n6);
        next_other[y6 * w + column] = store(b6);
    }
    if y + 7 >= first && y + 7 < end {
        next_current[y7 * w + column] = store(n7);
        next_other[y7 * w + column] = store(b7);
    }
}
