//! Shapes and axes: broadcasting, counting from the end, what a reduction leaves. Must not know tensors.

use std::ops::RangeFull;

use smallvec::SmallVec;

/// Extents of a tensor, the last axis varying fastest.
pub type Shape = SmallVec<[usize; 4]>;

/// Number of elements; the greatest `usize` where it has none as great, which no device holds.
pub(crate) fn count(shape: &[usize]) -> usize {
    if shape.contains(&0) {
        return 0;
    }
    shape
        .iter()
        .fold(1, |count, extent| count.saturating_mul(*extent))
}

/// Most elements, but for axes without any: so many that no device holds them, and so few that no product of extents overflows, nor a sum of some.
pub(crate) const MOST: usize = if usize::BITS < 64 {
    usize::MAX >> 2
} else {
    1 << 48
};

/// Whether the extents of a shape, but for zeros, multiply to [`MOST`] at most; so do those of each part of it.
pub(crate) fn is_possible(shape: &[usize]) -> bool {
    let all = shape.iter().filter(|extent| **extent != 0);
    all.fold(1usize, |count, extent| count.saturating_mul(*extent)) <= MOST
}

/// A shape in an error: `[2, 3]`.
pub(crate) fn text(shape: &[usize]) -> String {
    format!("{shape:?}")
}

/// The shape that both are repeated to: axes are aligned at the end; of two extents, one is 1 or both are equal.
pub(crate) fn broadcast(a: &[usize], b: &[usize]) -> Option<Shape> {
    let rank = a.len().max(b.len());
    let extent = |shape: &[usize], axis: usize| {
        let behind = rank - axis;
        if behind > shape.len() {
            1
        } else {
            shape[shape.len() - behind]
        }
    };
    (0..rank)
        .map(|axis| match (extent(a, axis), extent(b, axis)) {
            (1, n) | (n, 1) => Some(n),
            (n, m) if n == m => Some(n),
            _ => None,
        })
        .collect()
}

/// Axes that an operation is about. Negative ones count from the end, `..` are all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axes(Option<SmallVec<[isize; 4]>>);

impl From<RangeFull> for Axes {
    fn from(_: RangeFull) -> Axes {
        Axes(None)
    }
}

impl From<isize> for Axes {
    fn from(axis: isize) -> Axes {
        Axes(Some(SmallVec::from_slice(&[axis])))
    }
}

impl From<&[isize]> for Axes {
    fn from(axes: &[isize]) -> Axes {
        Axes(Some(axes.into()))
    }
}

impl<const N: usize> From<[isize; N]> for Axes {
    fn from(axes: [isize; N]) -> Axes {
        Axes(Some(axes.as_slice().into()))
    }
}

impl Axes {
    /// The axes of a tensor of so many, in ascending order, each once; or what is wrong with them.
    pub(crate) fn of(&self, rank: usize) -> Result<SmallVec<[usize; 4]>, String> {
        let Some(axes) = &self.0 else {
            return Ok((0..rank).collect());
        };
        let mut found = resolve(axes, rank)?;
        found.sort_unstable();
        Ok(found)
    }

    /// The same in the order given.
    pub(crate) fn in_order(&self, rank: usize) -> Result<SmallVec<[usize; 4]>, String> {
        match &self.0 {
            None => Ok((0..rank).collect()),
            Some(axes) => resolve(axes, rank),
        }
    }
}

fn resolve(axes: &[isize], rank: usize) -> Result<SmallVec<[usize; 4]>, String> {
    let mut found = SmallVec::new();
    for &axis in axes {
        let from_start = if axis < 0 { axis + rank as isize } else { axis };
        let axis = usize::try_from(from_start).ok().filter(|axis| *axis < rank).ok_or_else(|| {
            format!("axis {axis} is not there: a tensor of {rank} axes has 0 to {}, or -{rank} to -1 from the end", rank.saturating_sub(1))
        })?;
        if found.contains(&axis) {
            return Err(format!("axis {axis} is named twice"));
        }
        found.push(axis);
    }
    Ok(found)
}

/// The shape without the axes, or with 1 in their places.
pub(crate) fn reduced(shape: &[usize], axes: &[usize], keep: bool) -> Shape {
    let extents = shape.iter().enumerate();
    extents
        .filter_map(|(axis, n)| match axes.contains(&axis) {
            false => Some(*n),
            true if keep => Some(1),
            true => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_meet_from_the_end() {
        let check = |a: &[usize], b: &[usize], expect: Option<&[usize]>| {
            assert_eq!(broadcast(a, b).as_deref(), expect);
        };
        check(&[2, 3], &[3], Some(&[2, 3]));
        check(&[4, 1], &[3], Some(&[4, 3]));
        check(&[], &[2], Some(&[2]));
        check(&[0], &[1], Some(&[0]));
        check(&[2], &[3], None);
    }

    #[test]
    fn shapes_have_a_bound_of_their_extents() {
        assert!(is_possible(&[]) && is_possible(&[MOST]) && is_possible(&[0, MOST, 1]));
        assert!(
            !is_possible(&[MOST, 2])
                && !is_possible(&[MOST, 0, 2])
                && !is_possible(&[usize::MAX, usize::MAX])
        );
    }

    #[test]
    fn axes_count_from_both_ends() {
        assert_eq!(Axes::from([-1, 0]).of(3).as_deref(), Ok(&[0, 2][..]));
        assert_eq!(Axes::from(..).of(2).as_deref(), Ok(&[0, 1][..]));
        assert!(Axes::from(2).of(2).is_err());
        assert!(Axes::from([1, -1]).of(2).is_err());
    }
}
