//! What a stencil is launched over: tile, halo and the rule at the grid's edge.
//!
//! A cell's index is `(z * height + y) * width + x`. North is y - 1, south y + 1, west x - 1, east x + 1, up z - 1,
//! down z + 1; `at(grid, dx, dy, dz)` adds the offsets, none of which may be farther than the halo: a constant one
//! that is does not lower, one known at run time only is a fault.

/// What a neighbour outside the grid is.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Edge {
    /// There is none: cells nearer to an edge than the halo are not computed.
    #[default]
    Interior,
    /// The nearest cell inside.
    Clamp,
    /// The cell on the other side: the grid is a torus.
    Wrap,
    /// This number, converted to the element type as by `as`.
    Constant(f64),
}

/// How a stencil function becomes a kernel.
///
/// ```
/// use perpetua_ir::front::rust::{Edge, StencilConfig};
/// let config = StencilConfig::new("laplacian")
///     .with_tile_size(16, 16)
///     .with_halo(1)
///     .with_edge(Edge::Clamp);
/// assert_eq!(config.tile, Some([16, 16, 1]));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StencilConfig {
    /// The kernel's name; empty for the function's.
    pub name: String,
    /// Cells per block in x, y and z. With it each block first copies its cells and their halo to
    /// shared memory; without it neighbours are loaded from global memory.
    pub tile: Option<[u32; 3]>,
    /// How far a neighbour may be, in cells, along each axis.
    pub halo: u32,
    /// What is outside the grid.
    pub edge: Edge,
    /// Whether the grid has a depth. A function that uses `up`, `down`, `z` or an offset in z has one anyway.
    pub three_d: bool,
}

impl Default for StencilConfig {
    fn default() -> Self {
        StencilConfig::new("")
    }
}

impl StencilConfig {
    /// A kernel of this name (empty: the function's), with a halo of 1, interior cells only, no tile.
    pub fn new(name: impl Into<String>) -> StencilConfig {
        StencilConfig {
            name: name.into(),
            tile: None,
            halo: 1,
            edge: Edge::Interior,
            three_d: false,
        }
    }

    /// Copies tiles of `x` × `y` cells to shared memory; blocks then have that size.
    #[must_use]
    pub fn with_tile_size(mut self, x: u32, y: u32) -> StencilConfig {
        self.tile = Some([x, y, 1]);
        self
    }

    /// Copies tiles of `x` × `y` × `z` cells to shared memory; blocks then have that size.
    #[must_use]
    pub fn with_tile_size_3d(mut self, x: u32, y: u32, z: u32) -> StencilConfig {
        self.tile = Some([x, y, z]);
        self.three_d = true;
        self
    }

    /// Loads neighbours from global memory.
    #[must_use]
    pub fn without_tile(mut self) -> StencilConfig {
        self.tile = None;
        self
    }

    /// Sets how far a neighbour may be.
    #[must_use]
    pub fn with_halo(mut self, halo: u32) -> StencilConfig {
        self.halo = halo;
        self
    }

    /// Sets what is outside the grid.
    #[must_use]
    pub fn with_edge(mut self, edge: Edge) -> StencilConfig {
        self.edge = edge;
        self
    }
}
