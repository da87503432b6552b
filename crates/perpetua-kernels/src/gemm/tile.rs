//! How much of a product in stages a block computes at a time. Must not know kernels.

use super::Factors;

/// Most tiles of a product.
pub(super) const MOST_TILES: usize = 1 << 25;
/// Most slices of the depth, and the least stages that one has.
const MOST_SLICES: usize = 32;
const LEAST_STAGES: usize = 4;

/// Rows and columns of a block's sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tile {
    /// As the next one, side by side with another block below it, which has the same columns.
    Pair,
    Large,
    /// As [`Tile::Pair`], with fewer columns: where each lane has its sums twice.
    SquarePair,
    Square,
    Small,
    /// For few columns.
    Thin,
}

impl Tile {
    pub(super) const ALL: [Tile; 6] = [
        Tile::Pair,
        Tile::Large,
        Tile::SquarePair,
        Tile::Square,
        Tile::Small,
        Tile::Thin,
    ];

    /// Those in which a product can be computed; `promoted` says whether lanes have each sum twice.
    pub(super) fn possible(factors: Factors, promoted: bool) -> impl Iterator<Item = Tile> {
        Tile::ALL.into_iter().filter(move |tile| match tile {
            Tile::Pair | Tile::Large => !promoted,
            Tile::SquarePair => promoted && factors.is_byte(),
            Tile::Square | Tile::Small | Tile::Thin => true,
        })
    }

    /// Its rows and columns.
    pub(super) const fn size(self) -> [usize; 2] {
        match self {
            Tile::Pair | Tile::Large => [128, 256],
            Tile::SquarePair | Tile::Square => [128, 128],
            Tile::Small => [64, 128],
            Tile::Thin => [128, 64],
        }
    }

    /// Lanes of a block.
    pub(super) const fn lanes(self) -> u32 {
        match self {
            Tile::Small => 256,
            _ => 384,
        }
    }

    /// Blocks that have the same columns at a time.
    pub(super) const fn together(self) -> usize {
        match self {
            Tile::Pair | Tile::SquarePair => 2,
            Tile::Large | Tile::Square | Tile::Small | Tile::Thin => 1,
        }
    }

    /// How many of them a product has.
    pub(super) fn count(self, m: usize, n: usize) -> usize {
        let ([rows, columns], together) = (self.size(), self.together());
        m.div_ceil(rows * together)
            .saturating_mul(n.div_ceil(columns))
            .saturating_mul(together)
    }

    /// How many blocks compute a product on so many multiprocessors, whose depth is divided into so many slices.
    pub(super) fn blocks(self, m: usize, n: usize, slices: usize, multiprocessors: usize) -> usize {
        let together = self.together();
        (multiprocessors / together * together)
            .max(together)
            .min(self.count(m, n).saturating_mul(slices))
    }

    /// How long a product of so many stages takes on so many multiprocessors, its depth divided into so many slices, in units of 10 ns on an H200.
    pub(super) fn time(
        self,
        [m, n]: [usize; 2],
        stages: usize,
        multiprocessors: usize,
        slices: usize,
    ) -> usize {
        // For a stage, and for the rest of a tile.
        let (stage, rest) = match self {
            Tile::Pair => (68, 240),
            Tile::Large => (72, 100),
            Tile::SquarePair => (40, 80),
            Tile::Square => (42, 75),
            Tile::Small => (31, 50),
            Tile::Thin => (30, 50),
        };
        let tiles = self.count(m, n).saturating_mul(slices);
        let rounds = tiles.div_ceil(multiprocessors.max(1));
        let products =
            rounds.saturating_mul(stages.div_ceil(slices).saturating_mul(stage).saturating_add(rest));
        // A launch of its own adds the slices up, from memory.
        let sums = m.saturating_mul(n).saturating_mul(8 * slices) / 50_000;
        products.saturating_add(if slices > 1 { 200 + sums } else { 0 })
    }

    /// In how many slices the depth of a product of so many stages is divided best on so many multiprocessors, and how long it takes then.
    pub(super) fn slices(self, size: [usize; 2], stages: usize, multiprocessors: usize) -> (usize, usize) {
        let most = (stages / LEAST_STAGES).clamp(1, MOST_SLICES);
        (1..=most)
            .map(|slices| (slices, self.time(size, stages, multiprocessors, slices)))
            .min_by_key(|(_, time)| *time)
            .unwrap_or((1, usize::MAX))
    }

    /// Most slices that a choice may ask for: with more, blocks would have four tiles each, and the slices take the more memory; or those that are best, if they are more.
    pub(super) fn most_slices(self, size: [usize; 2], stages: usize, multiprocessors: usize) -> usize {
        let [m, n] = size;
        let busy = multiprocessors.saturating_mul(4) / self.count(m, n).max(1);
        let most = busy.min(stages / LEAST_STAGES).min(MOST_SLICES);
        most.max(self.slices(size, stages, multiprocessors).0)
    }

    /// The one of several with which a product of so many stages takes the least time on so many multiprocessors.
    pub(super) fn fastest(
        tiles: impl Iterator<Item = Tile>,
        size: [usize; 2],
        stages: usize,
        multiprocessors: usize,
    ) -> Tile {
        let time = |tile: &Tile| tile.slices(size, stages, multiprocessors).1;
        tiles.min_by_key(time).unwrap_or(Tile::Square)
    }
}
