//! The same step in space with a column of cells a lane, one behind the other: each cell of `current` is loaded once for its
//! own and for the sake of its neighbours before and behind it. For large grids of one medium.

use perpetua::prelude::*;

use super::super::{leap, leave};
use super::{Stored, load, store};

/// A step in space, one medium. The lane (x, y, z) does the cells (x, y, `LAYERS` z) to (x, y, `LAYERS` (z + 1) - 1); the
/// first layer of lanes beyond the grid records probes.
#[kernel(interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its scene"
)]
pub(crate) fn open_3d<const LAYERS: usize>(
    current: &[Stored],
    other: &mut [Stored],
    profile: &[f32],
    drive: &[f32],
    positions: &[u32],
    record: &mut [f32],
    width: u32,
    height: u32,
    depth: u32,
    stiffness: f32,
    edge: f32,
    turn: u32,
    probes: u32,
    from_x: u32,
    to_x: u32,
    from_y: u32,
    to_y: u32,
    from_z: u32,
    to_z: u32,
) {
    let w = width as usize;
    let h = height as usize;
    let d = depth as usize;
    let x = global_id_x();
    let y = global_id_y();
    let z = LAYERS * global_id_z();
    if x >= w || y >= h {
        return;
    }
    if z >= d {
        if z < d + LAYERS && y == 0 && x < probes as usize {
            record[turn as usize * probes as usize + x] = load(current[positions[x] as usize]);
        }
        return;
    }
    let l = w * h;
    let at = y * w + x;
    let inner = y.clamp(1, h - 2) * w + x.clamp(1, w - 2);
    let end = (z + LAYERS).min(d);
    // The first and the last layer lie on the border.
    if z == 0 {
        other[at] = store(leave(load(current[at]), load(current[l + inner]), edge));
    }
    if end == d {
        let j = (d - 1) * l;
        other[j + at] = store(leave(load(current[j + at]), load(current[j - l + inner]), edge));
    }
    let first = z.max(1);
    let last = end.min(d - 1);
    let at_side = x == 0 || y == 0 || x + 1 == w || y + 1 == h;
    let driven = x >= from_x as usize && x < to_x as usize && y >= from_y as usize && y < to_y as usize;
    let keep_here = profile[x] * profile[w + y];
    let mut i = first * l + at;
    let mut up = load(current[i - l]);
    let mut now = load(current[i]);
    let mut layer = first;
    if !at_side && !driven {
        // Four at a time, whose loads do not wait for each other.
        while layer + 4 <= last {
            let j = i + l;
            let k = j + l;
            let m = k + l;
            let b = load(current[j]);
            let c = load(current[k]);
            let e = load(current[m]);
            let down = load(current[m + l]);
            let before_a = load(other[i]);
            let before_b = load(other[j]);
            let before_c = load(other[k]);
            let before_e = load(other[m]);
            let around_a = up
                + b
                + load(current[i - w])
                + load(current[i + w])
                + load(current[i - 1])
                + load(current[i + 1])
                - 6.0 * now;
            let around_b = now
                + c
                + load(current[j - w])
                + load(current[j + w])
                + load(current[j - 1])
                + load(current[j + 1])
                - 6.0 * b;
            let around_c = b
                + e
                + load(current[k - w])
                + load(current[k + w])
                + load(current[k - 1])
                + load(current[k + 1])
                - 6.0 * c;
            let around_e = c
                + down
                + load(current[m - w])
                + load(current[m + w])
                + load(current[m - 1])
                + load(current[m + 1])
                - 6.0 * e;
            let keep_a = keep_here * profile[w + h + layer];
            let keep_b = keep_here * profile[w + h + layer + 1];
            let keep_c = keep_here * profile[w + h + layer + 2];
            let keep_e = keep_here * profile[w + h + layer + 3];
            other[i] = store(leap(now, before_a, around_a, stiffness, keep_a));
            other[j] = store(leap(b, before_b, around_b, stiffness, keep_b));
            other[k] = store(leap(c, before_c, around_c, stiffness, keep_c));
            other[m] = store(leap(e, before_e, around_e, stiffness, keep_e));
            up = e;
            now = down;
            i = m + l;
            layer += 4;
        }
    }
    while layer < last {
        let down = load(current[i + l]);
        if at_side {
            other[i] = store(leave(now, load(current[layer * l + inner]), edge));
        } else {
            let around = up
                + down
                + load(current[i - w])
                + load(current[i + w])
                + load(current[i - 1])
                + load(current[i + 1])
                - 6.0 * now;
            let keep = keep_here * profile[w + h + layer];
            let mut next = leap(now, load(other[i]), around, stiffness, keep);
            if driven && layer >= from_z as usize && layer < to_z as usize {
                next += drive[turn as usize * 16];
            }
            other[i] = store(next);
        }
        up = now;
        now = down;
        i += l;
        layer += 1;
    }
}
