//! Boxes of lanes. Knows neither values nor kernels.

/// Coordinates of a lane: three in its block, or in the grid, and three of the block.
pub const AXES: usize = 6;

/// A box of lanes: each coordinate from `from` up to, and without, `to`. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// First coordinates.
    pub from: [i64; AXES],
    /// Coordinates behind the last ones.
    pub to: [i64; AXES],
    /// Axes along which a condition that holds in a part of the box only may ask to have it cut.
    pub(super) cuts: [bool; AXES],
    /// Whether the lesser or greater of two numbers may ask for it, too.
    pub(super) chooses: bool,
}

/// The box must be cut in front of this coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) axis: usize,
    pub(super) at: i64,
}

impl Space {
    /// A box of lanes; `None` of none.
    #[inline]
    pub fn new(from: [i64; AXES], to: [i64; AXES]) -> Option<Space> {
        let has_lanes = from.iter().zip(to).all(|(from, to)| *from < to);
        has_lanes.then_some(Space {
            from,
            to,
            cuts: [false; AXES],
            chooses: false,
        })
    }

    /// The lanes from one coordinate along an axis up to, and without, another; `None` where there are none.
    #[inline]
    pub fn between(&self, axis: usize, from: i64, to: i64) -> Option<Space> {
        let (from, to) = (self.from[axis].max(from), self.to[axis].min(to));
        (from < to).then(|| {
            let mut part = *self;
            (part.from[axis], part.to[axis]) = (from, to);
            part
        })
    }

    /// The number of lanes.
    pub fn lanes(&self) -> u64 {
        let extents = self.from.iter().zip(self.to).map(|(from, to)| (to - from) as u64);
        extents.product()
    }

    /// The smallest box with both.
    #[must_use]
    pub fn hull(&self, other: &Space) -> Space {
        let mut hull = *self;
        for axis in 0..AXES {
            hull.from[axis] = self.from[axis].min(other.from[axis]);
            hull.to[axis] = self.to[axis].max(other.to[axis]);
        }
        hull
    }

    /// The parts below a cut and from it on; both have lanes.
    pub(super) fn cut(&self, Cut { axis, at }: Cut) -> (Space, Space) {
        let (mut below, mut above) = (*self, *self);
        below.to[axis] = at;
        above.from[axis] = at;
        (below, above)
    }
}

impl Cut {
    /// Of two cuts that along the axis farther out, which leaves rows long.
    pub(super) fn outermost(a: Option<Cut>, b: Option<Cut>) -> Option<Cut> {
        match (a, b) {
            (Some(a), Some(b)) if b.axis > a.axis => Some(b),
            (a, b) => a.or(b),
        }
    }
}
