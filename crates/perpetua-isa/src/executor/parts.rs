//! Grids in parts: lanes that may run as long as their budget lets them are launched about as many at a time as a device runs at once.
//! So what a driver's watchdog sees is a few budgets rather than the whole grid's: more of them where blocks are of few lanes or hold
//! much shared memory, or where a grid is so large that its parts are.

use perpetua_device::{DeviceInfo, Dim3};

/// Most launches of a grid: one of more blocks has larger parts.
const MOST_PARTS: u64 = 1 << 12;

/// Most lanes of a launch: about as many as a device runs at once.
pub(super) fn most_lanes(info: &DeviceInfo) -> u64 {
    const OF_A_MULTIPROCESSOR: u64 = 2048;
    const LEAST: u64 = 1 << 16;
    let multiprocessors = info.multiprocessors.map_or(0, u64::from);
    LEAST.max(multiprocessors * OF_A_MULTIPROCESSOR)
}

/// A part of a grid: its first block, and its blocks.
pub(super) type Part = (Dim3, Dim3);

/// The parts of a grid, of at most so many lanes each where a block has no more.
pub(super) fn parts(grid: Dim3, block: Dim3, most_lanes: u64) -> Vec<Part> {
    let most = (most_lanes / block.count().max(1))
        .max(grid.count().div_ceil(MOST_PARTS))
        .max(1);
    // Whole planes if one fits, else whole rows, else pieces of a row.
    let row = u64::from(grid.x);
    let plane = row * u64::from(grid.y);
    let along = |extent: u32, each: u64| {
        u32::try_from(most / each.max(1))
            .unwrap_or(u32::MAX)
            .clamp(1, extent.max(1))
    };
    let size = match (most >= plane, most >= row) {
        (true, _) => Dim3::new(grid.x, grid.y, along(grid.z, plane)),
        (false, true) => Dim3::new(grid.x, along(grid.y, row), 1),
        (false, false) => Dim3::new(along(grid.x, 1), 1, 1),
    };
    let rounds = |extent: u32, step: u32| u64::from(extent.div_ceil(step.max(1)));
    let number = rounds(grid.x, size.x)
        .saturating_mul(rounds(grid.y, size.y))
        .saturating_mul(rounds(grid.z, size.z));
    if number > 4 * MOST_PARTS {
        // More blocks than are counted, which no device launches: the launch says so.
        return vec![(Dim3::new(0, 0, 0), grid)];
    }
    let starts = |extent: u32, step: u32| (0..extent).step_by(step.max(1) as usize);
    let mut all = Vec::new();
    for z in starts(grid.z, size.z) {
        for y in starts(grid.y, size.y) {
            for x in starts(grid.x, size.x) {
                let left = Dim3::new(
                    size.x.min(grid.x - x),
                    size.y.min(grid.y - y),
                    size.z.min(grid.z - z),
                );
                all.push((Dim3::new(x, y, z), left));
            }
        }
    }
    if all.is_empty() {
        // The launch says what is wrong with it.
        all.push((Dim3::new(0, 0, 0), grid));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn parts_are_the_grid() {
        let block = Dim3::new(4, 2, 1);
        for (grid, most) in [
            ([1, 1, 1], 1),
            ([7, 5, 3], 8),
            ([7, 5, 3], 80),
            ([7, 5, 3], 300),
            ([7, 5, 3], 1 << 20),
            ([1, 1, 9], 16),
            ([100, 1, 1], 24),
        ] {
            let grid = Dim3::from(grid);
            let mut seen = HashSet::new();
            for (first, size) in parts(grid, block, most) {
                assert!(
                    size.count() * block.count() <= most.max(block.count()),
                    "{size} of {grid}"
                );
                for i in 0..size.count() {
                    let [x, y, z] = size.position(i);
                    assert!(seen.insert((first.x + x, first.y + y, first.z + z)), "{grid}");
                }
            }
            assert_eq!(seen.len() as u64, grid.count(), "{grid}, {most}");
            assert!(
                seen.iter()
                    .all(|(x, y, z)| *x < grid.x && *y < grid.y && *z < grid.z)
            );
        }
        let many = parts(Dim3::new(u32::MAX, 1, 1), Dim3::ONE, 16);
        assert!(many.len() as u64 <= MOST_PARTS, "{}", many.len());
        // Rounding makes some more of them, and never so many that the grid is left whole.
        let rounded = parts(Dim3::new(3, 0xffff, 0x7fff), Dim3::ONE, 16);
        assert!(
            (2..=4 * MOST_PARTS).contains(&(rounded.len() as u64)),
            "{}",
            rounded.len()
        );
    }

    #[test]
    fn what_no_device_launches_is_one_part() {
        for grid in [
            Dim3::new(u32::MAX, u32::MAX, u32::MAX),
            Dim3::new(1 << 16, u32::MAX, u32::MAX),
        ] {
            for most in [1 << 16, u64::MAX] {
                assert_eq!(parts(grid, Dim3::ONE, most), [(Dim3::new(0, 0, 0), grid)]);
            }
        }
    }
}
