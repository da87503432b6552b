//! How a grid is cut into tiles, and where a tile's cells lie in what it is given. Must not know devices.

/// Most steps that an exchange of halos is good for.
pub(crate) const MOST_SPAN: u32 = 8;

/// A grid cut into tiles for kernels: 64 cells wide, `rows * strips` high, of which all but `span` on each side are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Cells of the grid in x and y.
    pub(crate) size: [u32; 2],
    /// Rows of a lane: 2, 4 or 8.
    pub(crate) rows: u32,
    /// Subgroups of a tile.
    pub(crate) strips: u32,
    /// Steps between two exchanges, and width of the halo.
    pub(crate) span: u32,
}

impl Cut {
    /// Rows of a tile, its halo included.
    pub(crate) fn high(&self) -> u32 {
        self.rows * self.strips
    }

    /// Whether its numbers fit each other.
    pub(crate) fn is_possible(&self) -> bool {
        matches!(self.rows, 2 | 4 | 8)
            && (3..=16).contains(&self.strips)
            && (2..=MOST_SPAN).contains(&self.span)
            && self.span.is_multiple_of(self.tall())
            && self.high().is_multiple_of(self.tall())
            && self.high() > 2 * self.span
    }

    /// Tiles side by side.
    pub(crate) fn across(&self) -> u32 {
        self.size[0].div_ceil(64 - 2 * self.span)
    }

    /// Tiles.
    pub(crate) fn count(&self) -> u32 {
        self.across() * self.size[1].div_ceil(self.high() - 2 * self.span)
    }

    /// What a step costs, roughly, in a 16th of a cycle: a tile's cells by four schedulers, waiting for its strips, and the
    /// exchange, shared by the steps that it is good for.
    pub(crate) fn cost(&self) -> u32 {
        64 * self.high() * 2 + 16 * 150 + 16 * (1200 + 20 * self.vectors()) / self.span
    }

    /// Rows of a patch.
    fn tall(&self) -> u32 {
        self.rows.min(4)
    }

    /// Vectors of a patch, three numbers each: both fields of two cells a row.
    fn vectors(&self) -> u32 {
        (4 * self.tall()).div_ceil(3)
    }

    /// Vectors on the board.
    pub(crate) fn board(&self) -> usize {
        let patches = self.size[0].div_ceil(2) as usize * self.size[1].div_ceil(self.tall()) as usize;
        2 * self.vectors() as usize * patches
    }

    /// What fills the cells, tile by tile, as the tiles' lanes hold them; `slots` has a byte a cell of the grid.
    pub(crate) fn spread(&self, slots: &[u8]) -> Vec<u32> {
        let mut spread = Vec::with_capacity((self.count() * self.high() * 64) as usize);
        let [width, height] = self.size.map(i64::from);
        let (across, span) = (self.across(), i64::from(self.span));
        for tile in 0..self.count() {
            let left = i64::from(tile % across * (64 - 2 * self.span)) - span;
            let top = i64::from(tile / across * (self.high() - 2 * self.span)) - span;
            for row in 0..i64::from(self.high()) {
                for column in 0..2 {
                    for lane in 0..32 {
                        let (x, y) = (left + 2 * lane + column, top + row);
                        let inside = (0..width).contains(&x) && (0..height).contains(&y);
                        let slot = inside.then(|| slots.get((y * width + x) as usize)).flatten();
                        spread.push(slot.copied().unwrap_or(0).into());
                    }
                }
            }
        }
        spread
    }
}
