//! Sizes of grids and blocks, and how a launch is shaped. Must not know kernels or devices.

use std::fmt;

/// Extents in x, y and z; x varies fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dim3 {
    /// Extent in x.
    pub x: u32,
    /// Extent in y.
    pub y: u32,
    /// Extent in z.
    pub z: u32,
}

impl Dim3 {
    /// One in each direction.
    pub const ONE: Dim3 = Dim3::new(1, 1, 1);

    /// Extents in x, y and z.
    pub const fn new(x: u32, y: u32, z: u32) -> Dim3 {
        Dim3 { x, y, z }
    }

    /// Product of the extents.
    pub const fn count(self) -> u64 {
        // Saturates: 2^96 does not fit, and no launch of that size passes the limits.
        (self.x as u64 * self.y as u64).saturating_mul(self.z as u64)
    }

    /// As an array.
    pub const fn to_array(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }

    /// Position of linear index `i` (x fastest) in a grid of these extents.
    pub const fn position(self, i: u64) -> [u32; 3] {
        let (x, y) = (self.x as u64, self.y as u64);
        [(i % x) as u32, (i / x % y) as u32, (i / (x * y)) as u32]
    }
}

impl Default for Dim3 {
    fn default() -> Dim3 {
        Dim3::ONE
    }
}

impl From<u32> for Dim3 {
    fn from(x: u32) -> Dim3 {
        Dim3::new(x, 1, 1)
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Dim3 {
        Dim3::new(x, y, 1)
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Dim3 {
        Dim3::new(x, y, z)
    }
}

impl From<[u32; 3]> for Dim3 {
    fn from([x, y, z]: [u32; 3]) -> Dim3 {
        Dim3::new(x, y, z)
    }
}

impl fmt::Display for Dim3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {})", self.x, self.y, self.z)
    }
}

/// Shape of a launch: how many blocks, how many lanes in each, how much dynamic shared memory, and which blocks
/// run at the same time.
///
/// ```
/// use perpetua_device::LaunchConfig;
/// let rows = LaunchConfig::linear(1000, 256); // at least 1000 lanes: kernels test their index, or fault
/// assert_eq!((rows.grid.x, rows.block.x, rows.lanes()), (4, 256, 1024));
/// let picture = LaunchConfig::tiled(640, 480, (16, 16)).with_shared_bytes(1024);
/// assert_eq!((picture.grid.to_array(), picture.block.to_array()), ([40, 30, 1], [16, 16, 1]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct LaunchConfig {
    /// Blocks.
    pub grid: Dim3,
    /// Lanes per block.
    pub block: Dim3,
    /// Bytes of dynamic shared memory for each block.
    pub shared_bytes: u32,
    /// Blocks of a cluster: they run at the same time, side by side. One block is a cluster by itself.
    pub cluster: Dim3,
    /// Whether all blocks run at the same time, so that they may wait for each other.
    pub cooperative: bool,
}

impl LaunchConfig {
    /// `grid` blocks of `block` lanes.
    pub fn new(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> LaunchConfig {
        LaunchConfig {
            grid: grid.into(),
            block: block.into(),
            ..LaunchConfig::default()
        }
    }

    /// At least `n` lanes in one dimension, in blocks of `block` (which must not be zero: the launch says so). A
    /// grid too large for x alone is refused by every launch (more than `u32::MAX` blocks stay `u32::MAX`, which is past each
    /// device's limit); use a loop with the grid's stride in the kernel instead.
    pub fn linear(n: usize, block: u32) -> LaunchConfig {
        let groups = n.div_ceil(block.max(1) as usize);
        LaunchConfig::new(u32::try_from(groups).unwrap_or(u32::MAX), block)
    }

    /// At least `width` × `height` lanes, in blocks of `block`. Sizes are integers of any type; where one is negative or larger than a
    /// `u32`, every launch refuses the grid.
    pub fn tiled(width: impl TryInto<u32>, height: impl TryInto<u32>, block: (u32, u32)) -> LaunchConfig {
        let grid = match (width.try_into(), height.try_into()) {
            (Ok(width), Ok(height)) => (width.div_ceil(block.0.max(1)), height.div_ceil(block.1.max(1))),
            _ => (u32::MAX, u32::MAX),
        };
        LaunchConfig::new(grid, block)
    }

    /// At least as many lanes as `extent` has in each direction, in blocks of `block`.
    pub fn volume(extent: Dim3, block: Dim3) -> LaunchConfig {
        let grid = Dim3::new(
            extent.x.div_ceil(block.x.max(1)),
            extent.y.div_ceil(block.y.max(1)),
            extent.z.div_ceil(block.z.max(1)),
        );
        LaunchConfig::new(grid, block)
    }

    /// The same with `bytes` of dynamic shared memory for each block.
    pub fn with_shared_bytes(mut self, bytes: u32) -> LaunchConfig {
        self.shared_bytes = bytes;
        self
    }

    /// The same in clusters of `cluster` blocks, which must divide the grid. A device that has no clusters refuses the launch
    /// ([`DeviceLimits::max_cluster`](crate::DeviceLimits::max_cluster) says how large they may be).
    pub fn with_cluster(mut self, cluster: impl Into<Dim3>) -> LaunchConfig {
        self.cluster = cluster.into();
        self
    }

    /// The same with all blocks on the device at the same time. A device that cannot promise it
    /// ([`DeviceLimits::cooperative`](crate::DeviceLimits::cooperative)), or that has no room for all, refuses the launch.
    pub fn cooperative(mut self) -> LaunchConfig {
        self.cooperative = true;
        self
    }

    /// Lanes in all.
    pub fn lanes(&self) -> u64 {
        self.grid.count().saturating_mul(self.block.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_cover_what_was_asked_for() {
        let check = |config: LaunchConfig, grid: [u32; 3]| assert_eq!(config.grid.to_array(), grid);
        check(LaunchConfig::linear(0, 256), [0, 1, 1]);
        check(LaunchConfig::linear(1, 256), [1, 1, 1]);
        check(LaunchConfig::linear(257, 256), [2, 1, 1]);
        check(LaunchConfig::linear(5, 0), [5, 1, 1]);
        check(LaunchConfig::tiled(33, 16, (16, 16)), [3, 1, 1]);
        check(LaunchConfig::tiled(33_usize, 17_u8, (16, 16)), [3, 2, 1]);
        check(LaunchConfig::tiled(-1, 17, (16, 16)), [u32::MAX, u32::MAX, 1]);
        check(
            LaunchConfig::volume(Dim3::new(9, 8, 7), Dim3::new(8, 8, 1)),
            [2, 1, 7],
        );
    }

    #[test]
    fn a_position_is_the_inverse_of_the_linear_index() {
        let grid = Dim3::new(3, 4, 5);
        for i in 0..grid.count() {
            let [x, y, z] = grid.position(i).map(u64::from);
            assert_eq!(x + 3 * (y + 4 * z), i);
        }
    }
}
