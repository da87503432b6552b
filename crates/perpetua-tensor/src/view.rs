//! Views: other shapes of the same elements, without copies. Each is an operation like any other, whose index is computed where its elements
//! are wanted.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use std::panic::Location;

use smallvec::SmallVec;

use crate::dtype::{DType, number};
use crate::node::Op;
use crate::node::Tensor;
use crate::shape::{Axes, Shape, broadcast, count, text};

/// A part of an axis: from `start` to `end`, every `step`-th; negative places count from the end, a negative step goes backwards (from
/// `start` down, `end` not included), as in NumPy. Rust's ranges and single indices are slices, too; an index keeps its axis, and must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Where it starts; the first element in its direction if none.
    pub start: Option<isize>,
    /// Where it ends, exclusive; behind the last element in its direction if none.
    pub end: Option<isize>,
    /// Distance of two elements; not 0.
    pub step: isize,
    /// Whether it is an index, which must be there: places of ranges beyond the ends are the ends.
    pub is_index: bool,
}

impl Slice {
    /// The whole axis in steps.
    pub const fn every(step: isize) -> Slice {
        Slice {
            start: None,
            end: None,
            step,
            is_index: false,
        }
    }

    /// The same part in steps.
    pub const fn step(self, step: isize) -> Slice {
        Slice { step, ..self }
    }
}

impl From<RangeFull> for Slice {
    fn from(_: RangeFull) -> Slice {
        Slice::every(1)
    }
}

impl From<Range<isize>> for Slice {
    fn from(range: Range<isize>) -> Slice {
        Slice {
            start: Some(range.start),
            end: Some(range.end),
            ..Slice::every(1)
        }
    }
}

impl From<RangeFrom<isize>> for Slice {
    fn from(range: RangeFrom<isize>) -> Slice {
        Slice {
            start: Some(range.start),
            ..Slice::every(1)
        }
    }
}

impl From<RangeTo<isize>> for Slice {
    fn from(range: RangeTo<isize>) -> Slice {
        Slice {
            end: Some(range.end),
            ..Slice::every(1)
        }
    }
}

impl From<RangeToInclusive<isize>> for Slice {
    fn from(range: RangeToInclusive<isize>) -> Slice {
        Slice {
            end: behind(range.end),
            ..Slice::every(1)
        }
    }
}

impl From<RangeInclusive<isize>> for Slice {
    fn from(range: RangeInclusive<isize>) -> Slice {
        Slice {
            start: Some(*range.start()),
            ..Slice::from(..=*range.end())
        }
    }
}

impl From<isize> for Slice {
    fn from(index: isize) -> Slice {
        Slice {
            is_index: true,
            ..Slice::from(index..=index)
        }
    }
}

// Behind -1 there is no place with a number.
fn behind(place: isize) -> Option<isize> {
    place.checked_add(1).filter(|end| *end != 0)
}

/// Slices of axes, from the first one on, as [`Tensor::slice`] and [`Tensor::assign`] take them: indices and Rust's ranges, a step behind `;`.
///
/// ```
/// use perpetua_device::{BackendKind, Device};
/// use perpetua_tensor::{Tensor, s};
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = Tensor::arange(0, 12, 1, &device).reshape([3, 4]);
/// assert_eq!(x.slice(s![-1, 1..]).to_vec::<i32>()?, [9, 10, 11]);
/// assert_eq!(x.slice(s![.., ..;-2]).to_vec::<i32>()?, [3, 1, 7, 5, 11, 9]);
/// assert_eq!(x.slice(s![0..=1, 0]).shape(), [2, 1]);
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
#[macro_export]
macro_rules! s {
    ($($part:expr $(; $step:expr)?),* $(,)?) => {
        [$($crate::Slice::from($part)$(.step($step))?),*]
    };
}

/// A part of an axis, resolved: the first element, how many, the step, and whether backwards.
struct Part {
    first: usize,
    count: usize,
    step: usize,
    backwards: bool,
}

/// What slices take: axes that are turned first, and then every so many elements.
struct Taken {
    turned: SmallVec<[usize; 4]>,
    starts: Shape,
    steps: Shape,
    shape: Shape,
}

impl Slice {
    // Places of ranges beyond the ends are the ends.
    fn of(self, extent: usize) -> Result<Part, String> {
        let n = extent as isize;
        let from_end = |place: isize| if place < 0 { place + n } else { place };
        if let Some(index) = self.start.filter(|_| self.is_index)
            && !(0..n).contains(&from_end(index))
        {
            return Err(format!(
                "the index {index} is not among the {n} places of its axis"
            ));
        }
        // A step beyond the end leads there, however long it is.
        let step = match self.step.unsigned_abs() {
            0 => return Err("a step must not be 0".into()),
            step => step.min(extent.max(1)),
        };
        if self.step > 0 {
            let start = self.start.map_or(0, from_end).clamp(0, n);
            let end = self.end.map_or(n, from_end).clamp(start, n);
            Ok(Part {
                first: start as usize,
                count: ((end - start) as usize).div_ceil(step),
                step,
                backwards: false,
            })
        } else {
            let start = self.start.map_or(n - 1, from_end).clamp(-1, n - 1);
            let end = self.end.map_or(-1, from_end).clamp(-1, start);
            let count = ((start - end) as usize).div_ceil(step);
            Ok(Part {
                // Counted from the end: the axis is turned round first.
                first: (n - 1 - start) as usize,
                count,
                step,
                backwards: true,
            })
        }
    }
}

impl Tensor {
    /// The same elements in another shape; one extent may be -1: what the others leave.
    #[track_caller]
    pub fn reshape(&self, shape: impl AsRef<[isize]>) -> Tensor {
        let at = here!();
        let wanted = shape.as_ref();
        let known: Option<usize> = wanted
            .iter()
            .filter(|n| **n != -1)
            .try_fold(1usize, |product, n| {
                usize::try_from(*n).ok().and_then(|n| product.checked_mul(n))
            });
        let open = wanted.iter().filter(|n| **n == -1).count();
        let total = self.len();
        let left = match (known, open) {
            (Some(known), 0) if known == total => Some(1),
            (Some(known), 1) if known > 0 && total.is_multiple_of(known) => Some(total / known),
            _ => None,
        };
        let Some(left) = left else {
            let rule = format!(
                "{total} elements do not fill the shape {wanted:?} (-1 stands for one extent that the others leave)"
            );
            return self.refuse("reshape", &[], rule, at);
        };
        let shape: Shape = wanted
            .iter()
            .map(|n| usize::try_from(*n).unwrap_or(left))
            .collect();
        self.reshaped(&shape, at)
    }

    /// The same elements in a shape of as many.
    pub(crate) fn reshaped(&self, shape: &[usize], at: &'static Location<'static>) -> Tensor {
        match self.shape() == shape {
            true => self.clone(),
            false => self.of_one(Op::Reshape, shape.into(), at),
        }
    }

    /// Axes in another order: axis `i` of the result is axis `axes[i]` of this.
    #[track_caller]
    pub fn permute(&self, axes: impl Into<Axes>) -> Tensor {
        let at = here!();
        match axes.into().in_order(self.rank()) {
            Ok(axes) if axes.len() == self.rank() => self.permuted(axes, at),
            Ok(_) => {
                let rule = format!("all of its {} axes must be named, each once", self.rank());
                self.refuse("permute", &[], rule, at)
            }
            Err(rule) => self.refuse("permute", &[], rule, at),
        }
    }

    pub(crate) fn permuted(&self, axes: SmallVec<[usize; 4]>, at: &'static Location<'static>) -> Tensor {
        if axes.iter().enumerate().all(|(i, axis)| i == *axis) {
            return self.clone();
        }
        let shape = axes.iter().map(|axis| self.0.shape[*axis]).collect();
        self.of_one(Op::Permute { axes }, shape, at)
    }

    /// The last two axes exchanged.
    #[track_caller]
    pub fn transpose(&self) -> Tensor {
        let at = here!();
        let rank = self.rank();
        if rank < 2 {
            return self.refuse("transpose", &[], "it takes at least two axes", at);
        }
        let mut axes: SmallVec<[usize; 4]> = (0..rank).collect();
        axes.swap(rank - 2, rank - 1);
        self.permuted(axes, at)
    }

    /// Repeated to a shape, as operands of different shapes are: axes of extent 1 are repeated, axes in front added.
    #[track_caller]
    pub fn expand(&self, shape: impl AsRef<[usize]>) -> Tensor {
        let (shape, at) = (shape.as_ref(), here!());
        match broadcast(self.shape(), shape) {
            Some(found) if *found == *shape => self.expanded(shape, at),
            _ => {
                let rule = format!(
                    "it cannot be repeated to {}: extents must be equal or 1, counted from the end",
                    text(shape)
                );
                self.refuse("expand", &[], rule, at)
            }
        }
    }

    /// Repeated to a shape that fits.
    pub(crate) fn expanded(&self, shape: &[usize], at: &'static Location<'static>) -> Tensor {
        if self.shape() == shape {
            return self.clone();
        }
        // A number is the same in any shape.
        if let Op::Scalar { .. } = self.0.op {
            let ty = (shape.into(), self.0.dtype);
            return Tensor::record(self.0.op.clone(), Default::default(), ty, &self.0.device, at);
        }
        let mut in_front: Shape = std::iter::repeat_n(1, shape.len() - self.rank()).collect();
        in_front.extend_from_slice(self.shape());
        let same_rank = self.reshaped(&in_front, at);
        match *in_front == *shape {
            true => same_rank,
            false => same_rank.of_one(Op::Expand, shape.into(), at),
        }
    }

    /// Parts of the first axes, as many as there are slices; the other axes whole.
    ///
    /// ```
    /// # use perpetua_device::{BackendKind, Device};
    /// # use perpetua_tensor::{Slice, Tensor};
    /// # let device = Device::new(BackendKind::Cpu, 0)?;
    /// let x = Tensor::arange(0, 12, 1, &device).reshape([3, 4]);
    /// let part = x.slice([Slice::from(1..), Slice::every(-2)]);
    /// assert_eq!(part.to_vec::<i32>()?, [7, 5, 11, 9]);
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn slice(&self, slices: impl AsRef<[Slice]>) -> Tensor {
        let at = here!();
        match self.taken(slices.as_ref()) {
            Ok(taken) if *taken.shape == *self.shape() => self.flipped(taken.turned, at),
            Ok(taken) => {
                let (starts, steps) = (taken.starts, taken.steps);
                self.flipped(taken.turned, at)
                    .of_one(Op::Slice { starts, steps }, taken.shape, at)
            }
            Err(rule) => self.refuse("slice", &[], rule, at),
        }
    }

    /// With a value, of the shape that these slices leave and this type, in their place.
    pub(crate) fn with_part(
        &self,
        slices: &[Slice],
        value: &Tensor,
        at: &'static Location<'static>,
    ) -> Tensor {
        let taken = match self.taken(slices) {
            Ok(taken) => taken,
            Err(rule) => return self.refuse("assign", &[value], rule, at),
        };
        if *taken.shape == *self.shape() {
            return value.flipped(taken.turned, at);
        }
        let placed = |of: &Tensor| {
            of.padded(taken.starts.clone(), taken.steps.clone(), self.shape(), 0, at)
                .flipped(taken.turned.clone(), at)
        };
        let inside = Tensor::ones(&taken.shape, DType::Bool, self.device());
        placed(&inside).select(placed(value), self)
    }

    fn taken(&self, slices: &[Slice]) -> Result<Taken, String> {
        if slices.len() > self.rank() {
            return Err(format!("{} slices of {} axes", slices.len(), self.rank()));
        }
        let parts = slices.iter().zip(self.shape()).map(|(s, n)| s.of(*n));
        let parts = parts.collect::<Result<Vec<Part>, String>>()?;
        let turned = parts.iter().enumerate().filter(|(_, part)| part.backwards);
        let whole = self.shape()[parts.len()..].iter();
        Ok(Taken {
            turned: turned.map(|(axis, _)| axis).collect(),
            starts: parts
                .iter()
                .map(|p| p.first)
                .chain(whole.clone().map(|_| 0))
                .collect(),
            steps: parts
                .iter()
                .map(|p| p.step)
                .chain(whole.clone().map(|_| 1))
                .collect(),
            shape: parts.iter().map(|p| p.count).chain(whole.copied()).collect(),
        })
    }

    /// Backwards along axes.
    #[track_caller]
    pub fn flip(&self, axes: impl Into<Axes>) -> Tensor {
        let at = here!();
        match axes.into().of(self.rank()) {
            Ok(axes) => self.flipped(axes, at),
            Err(rule) => self.refuse("flip", &[], rule, at),
        }
    }

    pub(crate) fn flipped(&self, axes: SmallVec<[usize; 4]>, at: &'static Location<'static>) -> Tensor {
        match axes.is_empty() {
            true => self.clone(),
            false => self.of_one(Op::Flip { axes }, self.0.shape.clone(), at),
        }
    }

    /// With elements of a value before and behind it along each axis.
    #[track_caller]
    pub fn pad(&self, widths: impl AsRef<[(usize, usize)]>, value: f64) -> Tensor {
        let (widths, at) = (widths.as_ref(), here!());
        if widths.len() != self.rank() {
            let rule = format!(
                "{} widths for {} axes: give one pair an axis",
                widths.len(),
                self.rank()
            );
            return self.refuse("pad", &[], rule, at);
        }
        let shape: Shape = self
            .shape()
            .iter()
            .zip(widths)
            .map(|(n, (a, b))| n.saturating_add(*a).saturating_add(*b))
            .collect();
        let starts = widths.iter().map(|(before, _)| *before).collect();
        let steps = widths.iter().map(|_| 1).collect();
        self.padded(starts, steps, &shape, number(self.0.dtype, value), at)
    }

    pub(crate) fn padded(
        &self,
        starts: Shape,
        steps: Shape,
        shape: &[usize],
        fill: u64,
        at: &'static Location<'static>,
    ) -> Tensor {
        if self.shape() == shape {
            return self.clone();
        }
        if self.error().is_none() && count(self.shape()) == 0 {
            let op = Op::Scalar {
                bits: fill,
                fixed: true,
            };
            return Tensor::record(
                op,
                Default::default(),
                (shape.into(), self.0.dtype),
                &self.0.device,
                at,
            );
        }
        self.of_one(Op::Pad { starts, steps, fill }, shape.into(), at)
    }

    /// An axis of extent 1 more, before axis `axis` (up to the rank).
    #[track_caller]
    pub fn expand_dims(&self, axis: isize) -> Tensor {
        let at = here!();
        let place = if axis < 0 {
            axis + self.rank() as isize + 1
        } else {
            axis
        };
        let Some(place) = usize::try_from(place).ok().filter(|place| *place <= self.rank()) else {
            let rule = format!("there is no place {axis} among {} axes", self.rank());
            return self.refuse("expand_dims", &[], rule, at);
        };
        let mut shape = self.0.shape.clone();
        shape.insert(place, 1);
        self.reshaped(&shape, at)
    }

    /// Without axes, which must have extent 1.
    #[track_caller]
    pub fn squeeze(&self, axes: impl Into<Axes>) -> Tensor {
        let at = here!();
        match axes.into().of(self.rank()) {
            Ok(axes) if axes.iter().all(|axis| self.0.shape[*axis] == 1) => {
                let shape = crate::shape::reduced(self.shape(), &axes, false);
                self.reshaped(&shape, at)
            }
            Ok(_) => self.refuse("squeeze", &[], "an axis that goes must have extent 1", at),
            Err(rule) => self.refuse("squeeze", &[], rule, at),
        }
    }
}
