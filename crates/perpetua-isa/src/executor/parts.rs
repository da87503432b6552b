//! What a launch of an untrusted program is held to where a driver's watchdog may end it. Lanes that may run as long as their budget lets
//! them are launched as many at a time as the device runs at once, so that what the watchdog sees is one budget, whatever the grid. What has
//! no loops ends by itself: there the lanes are bounded.

use std::time::Duration;

use perpetua_device::{DeviceInfo, Dim3, LaunchConfig};

use crate::error::{Error, Result};

/// Lanes that a multiprocessor runs at once; a block takes the room of so many of them at least.
const OF_A_MULTIPROCESSOR: u64 = 2048;
const LEAST_BLOCK: u64 = 64;

/// Lanes that run at once where a device does not say how many multiprocessors it has.
const UNKNOWN: u64 = 1 << 16;

/// Most instructions for each lane that runs at once, in a launch of a program without loops.
const STRAIGHT: u64 = 1 << 20;

/// A part that took longer makes the next ones smaller: far from the two seconds after which watchdogs end launches.
const LONG: Duration = Duration::from_millis(250);
/// One that took less makes them larger.
const SHORT: Duration = Duration::from_millis(25);

/// How many blocks the next part may have, by how long those before it took: lanes that wait for one another's atomics, or for memory, take longer
/// the more of them run.
pub(super) struct Pace {
    blocks: u64,
}

impl Pace {
    /// The first part is a small one: nobody knows yet how long it takes.
    pub(super) fn new(room: &Room, config: &LaunchConfig) -> Pace {
        Pace {
            blocks: (room.blocks(config) / 8).max(1),
        }
    }

    /// Two parts in the place of one that may take too long; clusters stay whole.
    pub(super) fn halves(&self, (first, size): (Dim3, Dim3), cluster: Dim3) -> Option<[(Dim3, Dim3); 2]> {
        if size.count() <= self.blocks {
            return None;
        }
        let (first, size) = (first.to_array(), size.to_array());
        let cluster = cluster.to_array().map(|n| n.max(1));
        let clusters = |axis: &usize| size[*axis] / cluster[*axis];
        let axis = (0..3).max_by_key(clusters).filter(|axis| clusters(axis) > 1)?;
        let here = clusters(&axis) / 2 * cluster[axis];
        let (mut behind, mut one, mut other) = (first, size, size);
        behind[axis] += here;
        one[axis] = here;
        other[axis] -= here;
        Some([(first.into(), one.into()), (behind.into(), other.into())])
    }

    /// A part of so many blocks has taken so long.
    pub(super) fn took(&mut self, blocks: u64, time: Duration) {
        if time > LONG {
            self.blocks = (blocks / 2).max(1);
        } else if time < SHORT {
            self.blocks = self.blocks.saturating_mul(2);
        }
    }
}

/// What runs at once on a device, of one program.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Lanes.
    lanes: u64,
    /// Shared memory that a block may have.
    shared_limit: u64,
    /// And that it has.
    shared: u64,
    /// How many instructions a lane runs at most, if the program has no loops.
    pub(super) straight: Option<u64>,
}

fn lanes_at_once(multiprocessors: Option<u32>) -> u64 {
    UNKNOWN.max(multiprocessors.map_or(0, u64::from) * OF_A_MULTIPROCESSOR)
}

impl Room {
    pub(super) fn new(info: &DeviceInfo, shared: u32, straight: Option<u64>) -> Room {
        Room {
            lanes: lanes_at_once(info.multiprocessors),
            shared_limit: info.limits.shared_bytes_per_block.into(),
            shared: shared.into(),
            straight,
        }
    }

    /// Refuses a launch of a program without loops that takes too long in one.
    pub(super) fn check(&self, config: &LaunchConfig) -> Result<()> {
        let within = |instructions: u64| {
            // A block's lanes set its memory to zero in turns, and a small block takes the room of a larger one.
            let lanes = config.block.count().max(1);
            let shared = self.shared.saturating_add(config.shared_bytes.into());
            let each = instructions.saturating_add(shared.div_ceil(lanes));
            let blocks = config.grid.count();
            let found = blocks.saturating_mul(lanes.max(LEAST_BLOCK)).saturating_mul(each);
            let limit = self.lanes.saturating_mul(STRAIGHT);
            match found <= limit {
                true => Ok(()),
                false => Err(Error::Limit {
                    what: "instructions that all lanes of a launch run (more lanes need several launches)",
                    found,
                    limit,
                }),
            }
        };
        self.straight.map_or(Ok(()), within)
    }

    /// Blocks that run at once.
    fn blocks(&self, config: &LaunchConfig) -> u64 {
        let shared = self.shared.saturating_add(config.shared_bytes.into());
        let beside = self.shared_limit / shared.max(1);
        let of_shared = OF_A_MULTIPROCESSOR / beside.clamp(1, OF_A_MULTIPROCESSOR);
        self.lanes / config.block.count().max(LEAST_BLOCK).max(of_shared)
    }

    /// The parts of a grid, each its first block and its blocks; clusters stay whole, and so does a grid that is to run at once.
    pub(super) fn parts(&self, config: &LaunchConfig) -> impl Iterator<Item = (Dim3, Dim3)> {
        let most = match config.cooperative {
            true => u64::MAX,
            false => (self.blocks(config) / config.cluster.count().max(1)).max(1),
        };
        let cluster = config.cluster.to_array().map(|n| n.max(1));
        let grid = config.grid.to_array();
        let [x, y, z] = std::array::from_fn(|axis| grid[axis].div_ceil(cluster[axis]));
        // Whole planes if one fits, else whole rows, else pieces of a row.
        let row = u64::from(x);
        let along = |extent: u32, each: u64| {
            let fit = u32::try_from(most / each.max(1)).unwrap_or(u32::MAX);
            fit.clamp(1, extent.max(1))
        };
        let step = [along(x, 1), along(y, row), along(z, row * u64::from(y))];
        let starts = move |extent: u32, axis: usize| (0..extent).step_by(step[axis] as usize);
        let part = move |start: [u32; 3]| {
            let first: [u32; 3] = std::array::from_fn(|axis| start[axis] * cluster[axis]);
            let size = |axis: usize| {
                step[axis]
                    .saturating_mul(cluster[axis])
                    .min(grid[axis] - first[axis])
            };
            (
                Dim3::from(first),
                Dim3::from(std::array::from_fn::<_, 3, _>(size)),
            )
        };
        starts(z, 2)
            .flat_map(move |z| starts(y, 1).flat_map(move |y| starts(x, 0).map(move |x| part([x, y, z]))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn room(lanes: u64) -> Room {
        Room {
            lanes,
            shared_limit: 1 << 16,
            shared: 0,
            straight: None,
        }
    }

    #[test]
    fn parts_are_the_grid() {
        for (grid, most, cluster) in [
            ([1, 1, 1], 1, 1),
            ([7, 5, 3], 1, 1),
            ([7, 5, 3], 10, 1),
            ([7, 5, 3], 37, 1),
            ([7, 5, 3], 1 << 20, 1),
            ([1, 1, 9], 2, 1),
            ([100, 1, 1], 3, 1),
            ([100, 3, 1], 9, 4),
            ([0, 1, 1], 9, 1),
        ] {
            let config = LaunchConfig {
                cluster: cluster.into(),
                ..LaunchConfig::new(grid, 64)
            };
            let grid = Dim3::from(grid);
            let mut seen = HashSet::new();
            for (first, size) in room(64 * most).parts(&config) {
                assert!(size.count() <= most, "{size} of {grid}");
                assert_eq!((first.x % cluster, size.x % cluster), (0, 0), "{size} of {grid}");
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
        // Nothing is listed in front: also a grid that no device launches has a first part.
        let endless = LaunchConfig::new([u32::MAX; 3], 1);
        assert_eq!(
            room(640).parts(&endless).next(),
            Some((Dim3::new(0, 0, 0), Dim3::new(10, 1, 1)))
        );
        let together = LaunchConfig {
            cooperative: true,
            ..LaunchConfig::new([7, 5, 3], 64)
        };
        assert_eq!(room(64).parts(&together).count(), 1);
    }

    #[test]
    fn parts_are_as_large_as_their_time_allows() {
        let config = LaunchConfig {
            cluster: (2, 1, 1).into(),
            ..LaunchConfig::new([14, 5, 3], 64)
        };
        // How long a block takes, and how large the parts become in the end.
        for (each, most) in [
            (Duration::from_micros(1), 210),
            (Duration::from_millis(10), 25),
            (Duration::from_secs(10), 2),
        ] {
            let mut pace = Pace::new(&room(64 * 1000), &config);
            let (mut seen, mut last) = (0, 0);
            for _ in 0..4 {
                let mut rest = vec![(Dim3::new(0, 0, 0), config.grid)];
                let mut blocks = HashSet::new();
                while let Some(part) = rest.pop() {
                    if let Some([one, other]) = pace.halves(part, config.cluster) {
                        rest.extend([other, one]);
                        continue;
                    }
                    let (first, size) = part;
                    assert_eq!((first.x % 2, size.x % 2), (0, 0), "{size}");
                    for i in 0..size.count() {
                        let [x, y, z] = size.position(i);
                        assert!(blocks.insert((first.x + x, first.y + y, first.z + z)));
                    }
                    last = size.count();
                    seen += last;
                    pace.took(last, each * u32::try_from(last).expect("few"));
                }
                assert_eq!(blocks.len() as u64, config.grid.count());
            }
            assert_eq!(seen, 4 * config.grid.count());
            assert!(last <= most && last * 4 >= most, "{each:?}: {last}");
        }
    }

    #[test]
    fn a_device_that_tells_its_multiprocessors_gets_larger_parts() {
        // 512 x 512 lanes are one part on an H200, whichever driver is asked, and four where nobody knows.
        let config = LaunchConfig::new((32, 32), (16, 16));
        let parts = |lanes: u64| room(lanes).parts(&config).count();
        assert_eq!(parts(lanes_at_once(Some(132))), 1);
        assert_eq!(parts(lanes_at_once(None)), 4);
        assert_eq!(lanes_at_once(Some(1)), UNKNOWN);
    }

    #[test]
    fn blocks_take_room_by_lanes_and_shared_memory() {
        let check = |block: u32, shared: u64, blocks: u64| {
            let room = Room {
                shared,
                ..room(10 * 2048)
            };
            assert_eq!(
                room.blocks(&LaunchConfig::new(1, block)),
                blocks,
                "{block} lanes, {shared} bytes"
            );
        };
        check(256, 0, 80);
        check(1, 0, 320);
        check(32, 1 << 16, 10);
        check(32, 1 << 15, 20);
        check(1024, 1 << 14, 20);
    }

    #[test]
    fn straight_programs_are_bounded_by_their_lanes() {
        let room = Room {
            straight: Some(1024),
            ..room(1 << 16)
        };
        assert!(room.check(&LaunchConfig::new(1 << 18, 256)).is_ok());
        assert!(room.check(&LaunchConfig::new((1 << 18) + 1, 256)).is_err());
        assert!(room.check(&LaunchConfig::new([u32::MAX; 3], 1024)).is_err());
        // Blocks of a lane that set 32 KiB to zero.
        let zeroing = Room {
            shared: 1 << 15,
            straight: Some(3),
            ..room
        };
        assert!(zeroing.check(&LaunchConfig::new(20_000, 1)).is_ok());
        assert!(zeroing.check(&LaunchConfig::new(40_000, 1)).is_err());
        assert!(zeroing.check(&LaunchConfig::new(40_000, 64)).is_ok());
    }
}
