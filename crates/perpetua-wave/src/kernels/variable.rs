//! One time step where each cell has numbers of its own, which a CPU loads in rows and need not look up: the same text for
//! each way in which the field is stored, which `super` says. What is computed is the same to the bit as with a medium a cell.

use perpetua::prelude::*;

use super::super::{leave, swing};
use super::{Stored, load, store};

/// A step in the plane; each cell has numbers of its own: what it keeps, and how its neighbours pull (below 0: it reflects).
/// The lane (x, y) does the cell (x, y). Beyond a row's cells a lane listens to the first probes, each where it lies,
/// so that launches in succession stay close; the other probes are recorded by the lanes at y = height.
#[kernel]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its scene"
)]
pub(crate) fn variable_2d(
    current: &[Stored],
    other: &mut [Stored],
    keeps: &[f32],
    pulls: &[f32],
    cells: &[u8],
    drive: &[f32],
    positions: &[u32],
    record: &mut [f32],
    width: u32,
    height: u32,
    edge: f32,
    turn: u32,
    probes: u32,
    from_x: u32,
    to_x: u32,
    from_y: u32,
    to_y: u32,
    cell_0: u32,
    row_0: u32,
    cell_1: u32,
    row_1: u32,
    cell_2: u32,
    row_2: u32,
    cell_3: u32,
    row_3: u32,
) {
    let w = width as usize;
    let h = height as usize;
    let x = global_id_x();
    let y = global_id_y();
    let heard = turn as usize * probes as usize;
    if x >= w {
        if x == w && y == row_0 as usize {
            record[heard] = load(current[cell_0 as usize]);
        }
        if x == w && y == row_1 as usize {
            record[heard + 1] = load(current[cell_1 as usize]);
        }
        if x == w && y == row_2 as usize {
            record[heard + 2] = load(current[cell_2 as usize]);
        }
        if x == w && y == row_3 as usize {
            record[heard + 3] = load(current[cell_3 as usize]);
        }
        return;
    }
    if y >= h {
        if y == h && x + 4 < probes as usize {
            record[heard + x + 4] = load(current[positions[x + 4] as usize]);
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
    let pull = pulls[i];
    let mut next = swing(now, load(other[i]), around, keeps[i], pull);
    if x >= from_x as usize && x < to_x as usize && y >= from_y as usize && y < to_y as usize {
        let slot = cells[i] as usize;
        if slot >= 240 {
            next += drive[turn as usize * 16 + (slot & 15)];
        }
    }
    other[i] = store(if pull < 0.0 { 0.0 } else { next });
}

/// A step in space; each cell has numbers of its own: what it keeps, and how its neighbours pull (below 0: it reflects).
/// The lane (x, y, z) does the cell (x, y, z). Beyond a row's cells a lane listens to the first probes, each where it lies,
/// so that launches in succession stay close; the other probes are recorded by the lanes at z = depth.
#[kernel]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its scene"
)]
pub(crate) fn variable_3d(
    current: &[Stored],
    other: &mut [Stored],
    keeps: &[f32],
    pulls: &[f32],
    cells: &[u8],
    drive: &[f32],
    positions: &[u32],
    record: &mut [f32],
    width: u32,
    height: u32,
    depth: u32,
    edge: f32,
    turn: u32,
    probes: u32,
    from_x: u32,
    to_x: u32,
    from_y: u32,
    to_y: u32,
    from_z: u32,
    to_z: u32,
    cell_0: u32,
    row_0: u32,
    cell_1: u32,
    row_1: u32,
    cell_2: u32,
    row_2: u32,
    cell_3: u32,
    row_3: u32,
) {
    let w = width as usize;
    let h = height as usize;
    let d = depth as usize;
    let x = global_id_x();
    let y = global_id_y();
    let z = global_id_z();
    let heard = turn as usize * probes as usize;
    if x >= w {
        if x == w && y == 0 && z == row_0 as usize {
            record[heard] = load(current[cell_0 as usize]);
        }
        if x == w && y == 0 && z == row_1 as usize {
            record[heard + 1] = load(current[cell_1 as usize]);
        }
        if x == w && y == 0 && z == row_2 as usize {
            record[heard + 2] = load(current[cell_2 as usize]);
        }
        if x == w && y == 0 && z == row_3 as usize {
            record[heard + 3] = load(current[cell_3 as usize]);
        }
        return;
    }
    if y >= h {
        return;
    }
    if z >= d {
        if z == d && y == 0 && x + 4 < probes as usize {
            record[heard + x + 4] = load(current[positions[x + 4] as usize]);
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
    let pull = pulls[i];
    let mut next = swing(now, load(other[i]), around, keeps[i], pull);
    if x >= from_x as usize
        && x < to_x as usize
        && y >= from_y as usize
        && y < to_y as usize
        && z >= from_z as usize
        && z < to_z as usize
    {
        let slot = cells[i] as usize;
        if slot >= 240 {
            next += drive[turn as usize * 16 + (slot & 15)];
        }
    }
    other[i] = store(if pull < 0.0 { 0.0 } else { next });
}
