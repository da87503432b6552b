//! One time step, a kernel a family: the same text for each way in which the field is stored, which `super` says.

use perpetua::prelude::*;

use super::super::{leap, leave};
use super::{Stored, load, store};

/// A step in the plane, one medium. The lane (x, y) does the cell (x, y); lanes at y = height record probes.
#[kernel]
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
    let y = global_id_y();
    if x >= w {
        return;
    }
    if y >= h {
        if y == h && x < probes as usize {
            record[turn as usize * probes as usize + x] = load(current[positions[x] as usize]);
        }
        return;
    }
    let i = y * w + x;
    let now = load(current[i]);
    if x == 0 || y == 0 || x + 1 == w || y + 1 == h {
        let inner = y.clamp(1, h - 2) * w + x.clamp(1, w - 2);
        other[i] = store(leave(now, load(current[inner]), edge));
        return;
    }
    let around =
        load(current[i - w]) + load(current[i + w]) + load(current[i - 1]) + load(current[i + 1]) - 4.0 * now;
    let keep = profile[x] * profile[w + y];
    let mut next = leap(now, load(other[i]), around, stiffness, keep);
    if x >= from_x as usize && x < to_x as usize && y >= from_y as usize && y < to_y as usize {
        next += drive[turn as usize * 16];
    }
    other[i] = store(next);
}

/// A step in the plane, a medium a cell.
#[kernel]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its scene"
)]
pub(crate) fn media_2d(
    current: &[Stored],
    other: &mut [Stored],
    cells: &[u8],
    table: &[f32],
    drive: &[f32],
    positions: &[u32],
    record: &mut [f32],
    width: u32,
    height: u32,
    edge: f32,
    turn: u32,
    probes: u32,
) {
    let w = width as usize;
    let h = height as usize;
    let x = global_id_x();
    let y = global_id_y();
    if x >= w {
        return;
    }
    if y >= h {
        if y == h && x < probes as usize {
            record[turn as usize * probes as usize + x] = load(current[positions[x] as usize]);
        }
        return;
    }
    let i = y * w + x;
    let now = load(current[i]);
    if x == 0 || y == 0 || x + 1 == w || y + 1 == h {
        let inner = y.clamp(1, h - 2) * w + x.clamp(1, w - 2);
        other[i] = store(leave(now, load(current[inner]), edge));
        return;
    }
    let around =
        load(current[i - w]) + load(current[i + w]) + load(current[i - 1]) + load(current[i + 1]) - 4.0 * now;
    let slot = cells[i] as usize;
    let keep = table[512 + x] * table[512 + w + y] * table[256 + slot];
    let mut next = leap(now, load(other[i]), around, table[slot], keep);
    if slot >= 240 {
        next += drive[turn as usize * 16 + (slot & 15)];
    }
    other[i] = store(if slot == 0 { 0.0 } else { next });
}

/// A step in space, one medium. The lane (x, y, z) does the cell (x, y, z); lanes at z = depth record probes.
#[kernel]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its scene"
)]
pub(crate) fn open_3d(
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
    let z = global_id_z();
    if x >= w || y >= h {
        return;
    }
    if z >= d {
        if z == d && y == 0 && x < probes as usize {
            record[turn as usize * probes as usize + x] = load(current[positions[x] as usize]);
        }
        return;
    }
    let layer = w * h;
    let i = z * layer + y * w + x;
    let now = load(current[i]);
    if x == 0 || y == 0 || z == 0 || x + 1 == w || y + 1 == h || z + 1 == d {
        let inner = z.clamp(1, d - 2) * layer + y.clamp(1, h - 2) * w + x.clamp(1, w - 2);
        other[i] = store(leave(now, load(current[inner]), edge));
        return;
    }
    let around = load(current[i - layer])
        + load(current[i + layer])
        + load(current[i - w])
        + load(current[i + w])
        + load(current[i - 1])
        + load(current[i + 1])
        - 6.0 * now;
    let keep = profile[x] * profile[w + y] * profile[w + h + z];
    let mut next = leap(now, load(other[i]), around, stiffness, keep);
    if x >= from_x as usize
        && x < to_x as usize
        && y >= from_y as usize
        && y < to_y as usize
        && z >= from_z as usize
        && z < to_z as usize
    {
        next += drive[turn as usize * 16];
    }
    other[i] = store(next);
}

/// A step in space, a medium a cell.
#[kernel]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its scene"
)]
pub(crate) fn media_3d(
    current: &[Stored],
    other: &mut [Stored],
    cells: &[u8],
    table: &[f32],
    drive: &[f32],
    positions: &[u32],
    record: &mut [f32],
    width: u32,
    height: u32,
    depth: u32,
    edge: f32,
    turn: u32,
    probes: u32,
) {
    let w = width as usize;
    let h = height as usize;
    let d = depth as usize;
    let x = global_id_x();
    let y = global_id_y();
    let z = global_id_z();
    if x >= w || y >= h {
        return;
    }
    if z >= d {
        if z == d && y == 0 && x < probes as usize {
            record[turn as usize * probes as usize + x] = load(current[positions[x] as usize]);
        }
        return;
    }
    let layer = w * h;
    let i = z * layer + y * w + x;
    let now = load(current[i]);
    if x == 0 || y == 0 || z == 0 || x + 1 == w || y + 1 == h || z + 1 == d {
        let inner = z.clamp(1, d - 2) * layer + y.clamp(1, h - 2) * w + x.clamp(1, w - 2);
        other[i] = store(leave(now, load(current[inner]), edge));
        return;
    }
    let around = load(current[i - layer])
        + load(current[i + layer])
        + load(current[i - w])
        + load(current[i + w])
        + load(current[i - 1])
        + load(current[i + 1])
        - 6.0 * now;
    let slot = cells[i] as usize;
    let keep = table[512 + x] * table[512 + w + y] * table[512 + w + h + z] * table[256 + slot];
    let mut next = leap(now, load(other[i]), around, table[slot], keep);
    if slot >= 240 {
        next += drive[turn as usize * 16 + (slot & 15)];
    }
    other[i] = store(if slot == 0 { 0.0 } else { next });
}
