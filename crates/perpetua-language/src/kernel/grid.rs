//! The position of a stencil's cell: its coordinates, its index, and its neighbours under the rule at the grid's edge.
//!
//! The rows of a grid lie one after another, and the layers of a volume: cell (x, y, z) has the index
//! `(z * height + y) * width + x`. North is towards smaller y, west towards smaller x, up towards smaller z.

use perpetua_ir::front::rust::Edge;

use super::element::Element;

/// What lies at a stencil's lane: a cell of a grid of this size. As plain Rust: `GridPos::new(Cell::new(…))`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    at: [usize; 3],
    size: [usize; 3],
    edge: Edge,
}

impl Cell {
    /// The cell at `at` of a grid of `size` (x, y, z) with this rule at its edge.
    pub const fn new(at: [usize; 3], size: [usize; 3], edge: Edge) -> Cell {
        Cell { at, size, edge }
    }

    fn index(&self, [x, y, z]: [usize; 3]) -> usize {
        let [width, height, _] = self.size;
        z.wrapping_mul(height)
            .wrapping_add(y)
            .wrapping_mul(width)
            .wrapping_add(x)
    }

    /// Where the neighbour at an offset is; `None` where it does not exist.
    fn neighbour(&self, offset: [i32; 3]) -> Option<usize> {
        let mut at = self.at;
        for axis in 0..3 {
            if offset[axis] == 0 {
                continue;
            }
            let to = self.at[axis] as i64 + i64::from(offset[axis]);
            let size = self.size[axis] as i64;
            at[axis] = match self.edge {
                Edge::Interior | Edge::Constant(_) => {
                    if to < 0 || to >= size {
                        return None;
                    }
                    to
                }
                Edge::Clamp => to.min(size - 1).max(0),
                Edge::Wrap => to.checked_rem_euclid(size)?,
            } as usize;
        }
        Some(self.index(at))
    }

    fn read<T: Element>(&self, grid: &[T], offset: [i32; 3]) -> T {
        match (self.neighbour(offset), self.edge) {
            (Some(index), _) => grid[index],
            (None, Edge::Constant(outside)) => T::from_f64(outside),
            // As an index that lies outside of every slice: the caller's mistake, as with `grid[index]`.
            (None, _) => grid[grid.len()],
        }
    }
}

macro_rules! position {
    ($(#[$doc:meta])* ($($d:ident),*) $at_doc:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct GridPos(super::Cell);

        impl GridPos {
            /// The position of this cell.
            pub const fn new(cell: super::Cell) -> GridPos {
                GridPos(cell)
            }

            /// Column.
            pub fn x(self) -> usize {
                self.0.at[0]
            }

            /// Row.
            pub fn y(self) -> usize {
                self.0.at[1]
            }

            /// Layer; 0 in a flat grid.
            pub fn z(self) -> usize {
                self.0.at[2]
            }

            /// The cell's index in a slice.
            pub fn idx(self) -> usize {
                self.0.index(self.0.at)
            }

            /// The cell's value.
            pub fn center<T: super::Element>(self, grid: &[T]) -> T {
                self.0.read(grid, [0, 0, 0])
            }

            /// The neighbour at y - 1.
            pub fn north<T: super::Element>(self, grid: &[T]) -> T {
                self.0.read(grid, [0, -1, 0])
            }

            /// The neighbour at y + 1.
            pub fn south<T: super::Element>(self, grid: &[T]) -> T {
                self.0.read(grid, [0, 1, 0])
            }

            /// The neighbour at x - 1.
            pub fn west<T: super::Element>(self, grid: &[T]) -> T {
                self.0.read(grid, [-1, 0, 0])
            }

            /// The neighbour at x + 1.
            pub fn east<T: super::Element>(self, grid: &[T]) -> T {
                self.0.read(grid, [1, 0, 0])
            }

            /// The neighbour at z - 1.
            pub fn up<T: super::Element>(self, grid: &[T]) -> T {
                self.0.read(grid, [0, 0, -1])
            }

            /// The neighbour at z + 1.
            pub fn down<T: super::Element>(self, grid: &[T]) -> T {
                self.0.read(grid, [0, 0, 1])
            }

            #[doc = $at_doc]
            pub fn at<T: super::Element>(self, grid: &[T], $($d: i32),*) -> T {
                let mut offset = [0; 3];
                for (to, by) in offset.iter_mut().zip([$($d),*]) {
                    *to = by;
                }
                self.0.read(grid, offset)
            }
        }
    };
}

mod flat {
    position! {
        /// The position of a cell, as a parameter of a stencil: `fn blur(a: &[f32], b: &mut [f32], pos: GridPos)`.
        (dx, dy) "The neighbour at (x + dx, y + dy)."
    }
}

pub use flat::GridPos;

/// Stencils over volumes: [`volume::GridPos`] has an offset in z, too.
pub mod volume {
    position! {
        /// The position of a cell in a volume, as a parameter of a stencil: `fn blur(…, pos: volume::GridPos)`.
        (dx, dy, dz) "The neighbour at (x + dx, y + dy, z + dz)."
    }
}
