//! A stencil's grid in native code: its size, the rule at its edge, and where neighbours lie. The rules are those of the
//! lowering, which every device follows.

use perpetua_ir::front::rust::Edge;

use super::mode::Mode;
use super::stop::{Site, Stop};

/// The grid that a stencil is launched over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// Cells along each axis; 1 in the depth of a flat grid.
    pub(super) size: [usize; 3],
    /// Whether it has a depth. Of a flat one all layers of lanes compute the same cells.
    pub(super) deep: bool,
    pub(super) halo: u32,
    pub(super) edge: Edge,
}

impl Grid {
    /// A grid; the depth of a flat one is `None`.
    pub fn new(width: u32, height: u32, depth: Option<u32>, halo: u32, edge: Edge) -> Grid {
        Grid {
            size: [width as usize, height as usize, depth.unwrap_or(1) as usize],
            deep: depth.is_some(),
            halo,
            edge,
        }
    }

    /// The lane's cell.
    #[inline(always)]
    fn cell(&self, [x, y, z]: [usize; 3]) -> [usize; 3] {
        [x, y, if self.deep { z } else { 0 }]
    }

    /// How far from the edge cells are computed.
    #[inline(always)]
    fn inner_halo(&self) -> usize {
        match self.edge {
            Edge::Interior => self.halo as usize,
            _ => 0,
        }
    }

    /// Whether the lane's cell is computed.
    #[inline(always)]
    pub fn computes<M: Mode>(&self, m: &M) -> bool {
        let at = m.position().global;
        let halo = self.inner_halo();
        let inside = |axis: usize| at[axis] >= halo && at[axis] + halo < self.size[axis];
        inside(0) && inside(1) && (!self.deep || inside(2))
    }

    /// The lane's column.
    #[inline(always)]
    pub fn x<M: Mode>(&self, m: &M) -> usize {
        m.position().global[0]
    }

    /// The lane's row.
    #[inline(always)]
    pub fn y<M: Mode>(&self, m: &M) -> usize {
        m.position().global[1]
    }

    /// The lane's layer.
    #[inline(always)]
    pub fn z<M: Mode>(&self, m: &M) -> usize {
        m.position().global[2]
    }

    /// The index of the lane's cell.
    #[inline(always)]
    pub fn idx<M: Mode>(&self, m: &M) -> usize {
        self.index(self.cell(m.position().global))
    }

    #[inline(always)]
    fn index(&self, [x, y, z]: [usize; 3]) -> usize {
        let [width, height, _] = self.size;
        z.wrapping_mul(height)
            .wrapping_add(y)
            .wrapping_mul(width)
            .wrapping_add(x)
    }

    /// The index at a fixed way off a cell.
    #[inline(always)]
    pub(super) fn near(&self, at: [usize; 3], [dx, dy, dz]: [i32; 3]) -> usize {
        let at = self.cell(at);
        let [width, height, _] = self.size;
        let rows = (dz as isize as usize)
            .wrapping_mul(height)
            .wrapping_add(dy as isize as usize);
        self.index(at)
            .wrapping_add(rows.wrapping_mul(width))
            .wrapping_add(dx as isize as usize)
    }

    /// The index of the neighbour at an offset, or the number that lies outside of the grid.
    ///
    /// # Errors
    /// An offset beyond the halo.
    #[inline]
    pub(super) fn neighbour(
        &self,
        at: [usize; 3],
        offset: [i32; 3],
        site: &'static Site,
    ) -> Result<Result<usize, f64>, Stop> {
        let halo = self.halo as i32;
        let count = self.halo.wrapping_mul(2).wrapping_add(1);
        for o in offset {
            let from_edge = o.wrapping_add(halo) as u32;
            if from_edge >= count {
                return Err(Stop::offset(site, from_edge, count));
            }
        }
        if self.edge == Edge::Interior {
            return Ok(Ok(self.near(at, offset)));
        }
        let mut cell = self.cell(at);
        for axis in 0..3 {
            if offset[axis] == 0 {
                continue;
            }
            let (to, size) = (
                cell[axis] as i64 + i64::from(offset[axis]),
                self.size[axis] as i64,
            );
            cell[axis] = match self.edge {
                Edge::Constant(outside) if to < 0 || to >= size => return Ok(Err(outside)),
                Edge::Clamp => to.min(size - 1).max(0),
                Edge::Wrap if to < 0 || to >= size => to.rem_euclid(size.max(1)),
                _ => to,
            } as usize;
        }
        Ok(Ok(self.index(cell)))
    }
}
