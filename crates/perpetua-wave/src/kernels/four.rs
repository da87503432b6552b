//! The same step in the plane with four cells a lane, one below the other: enough loads in flight for memory with
//! much bandwidth, and each cell of `current` loaded once for its own and for its two neighbours' sake. For large grids of
//! one medium.

use perpetua::prelude::*;

use super::super::{leap, leave};
use super::{Stored, load, store};

/// A step in the plane, one medium. The lane (x, y) does the cells (x, 4 y) to (x, 4 y + 3); the first row of lanes beyond
/// the grid records probes.
#[kernel(interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its scene"
)]
pub(crate) fn open_2d(
    current: &[Stored],
    other: &mut [Stored],
    profile: &[f32],
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
    let w = width as usize;
    let h = height as usize;
    let x = global_id_x();
    let y = 4 * global_id_y();
    if x >= w {
        return;
    }
    if y >= h {
        if y < h + 4 && x < probes as usize {
            record[turn as usize * probes as usize + x] = load(current[positions[x] as usize]);
        }
        return;
    }
    let i = y * w + x;
    let driven = x >= from_x as usize && x < to_x as usize && y + 4 > from_y as usize && y < to_y as usize;
    if x == 0 || x + 1 == w || y == 0 || y + 4 >= h || driven {
        for row in 0..4usize {
            let yy = y + row;
            if yy < h {
                let j = yy * w + x;
                let now = load(current[j]);
                if x == 0 || yy == 0 || x + 1 == w || yy + 1 == h {
                    let inner = yy.clamp(1, h - 2) * w + x.clamp(1, w - 2);
                    other[j] = store(leave(now, load(current[inner]), edge));
                } else {
                    let around = load(current[j - w])
                        + load(current[j + w])
                        + load(current[j - 1])
                        + load(current[j + 1])
                        - 4.0 * now;
                    let keep = profile[x] * profile[w + yy];
                    let mut next = leap(now, load(other[j]), around, stiffness, keep);
                    if driven && yy >= from_y as usize && yy < to_y as usize {
                        next += drive[turn as usize * 16];
                    }
                    other[j] = store(next);
                }
            }
        }
        return;
    }
    let north = load(current[i - w]);
    let a = load(current[i]);
    let b = load(current[i + w]);
    let c = load(current[i + 2 * w]);
    let d = load(current[i + 3 * w]);
    let south = load(current[i + 4 * w]);
    let west_a = load(current[i - 1]);
    let west_b = load(current[i + w - 1]);
    let west_c = load(current[i + 2 * w - 1]);
    let west_d = load(current[i + 3 * w - 1]);
    let east_a = load(current[i + 1]);
    let east_b = load(current[i + w + 1]);
    let east_c = load(current[i + 2 * w + 1]);
    let east_d = load(current[i + 3 * w + 1]);
    let before_a = load(other[i]);
    let before_b = load(other[i + w]);
    let before_c = load(other[i + 2 * w]);
    let before_d = load(other[i + 3 * w]);
    let keep = profile[x];
    let keep_a = keep * profile[w + y];
    let keep_b = keep * profile[w + y + 1];
    let keep_c = keep * profile[w + y + 2];
    let keep_d = keep * profile[w + y + 3];
    let around_a = north + b + west_a + east_a - 4.0 * a;
    let around_b = a + c + west_b + east_b - 4.0 * b;
    let around_c = b + d + west_c + east_c - 4.0 * c;
    let around_d = c + south + west_d + east_d - 4.0 * d;
    other[i] = store(leap(a, before_a, around_a, stiffness, keep_a));
    other[i + w] = store(leap(b, before_b, around_b, stiffness, keep_b));
    other[i + 2 * w] = store(leap(c, before_c, around_c, stiffness, keep_c));
    other[i + 3 * w] = store(leap(d, before_d, around_d, stiffness, keep_d));
}
