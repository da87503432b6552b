//! Windows that go over axes: where they lie, convolutions and pooling by them. All of it is views and products, so kernels and gradients follow. Must not know
//! tables.

use std::panic::Location;

use smallvec::SmallVec;

use crate::node::Tensor;
use crate::shape::Shape;
use crate::view::Slice;

/// One number for all axes, or one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Each(SmallVec<[usize; 3]>);

impl From<usize> for Each {
    fn from(all: usize) -> Each {
        Each(SmallVec::from_slice(&[all]))
    }
}

impl<const N: usize> From<[usize; N]> for Each {
    fn from(each: [usize; N]) -> Each {
        Each(SmallVec::from_slice(&each))
    }
}

impl Each {
    // For so many axes.
    fn of(&self, what: &str, axes: usize) -> Result<SmallVec<[usize; 3]>, String> {
        match self.0.len() {
            1 => Ok(std::iter::repeat_n(self.0[0], axes).collect()),
            n if n == axes => Ok(self.0.clone()),
            n => Err(format!(
                "{what} has {n} numbers for {axes} axes: give one, or one for each"
            )),
        }
    }
}

/// How windows of convolutions and pooling go over the last axes. By themselves they have distance 1 (in pooling their own size), nothing around
/// the tensor, neighbours as elements, and one group.
///
/// ```
/// # use perpetua_device::{BackendKind, Device};
/// # use perpetua_tensor::{DType, Tensor, Window};
/// # let device = Device::new(BackendKind::Cpu, 0)?;
/// let pictures = Tensor::ones([8, 3, 32, 32], DType::F32, &device);
/// let weights = Tensor::ones([16, 3, 3, 3], DType::F32, &device);
/// let features = pictures.conv2d(&weights, &Window::new().stride(2).padding(1));
/// assert_eq!(features.shape(), [8, 16, 16, 16]);
/// assert_eq!(features.max_pool2d(2, &Window::new()).shape(), [8, 16, 8, 8]);
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    stride: Option<Each>,
    padding: Each,
    dilation: Each,
    output_padding: Each,
    groups: usize,
}

impl Default for Window {
    fn default() -> Window {
        Window::new()
    }
}

impl Window {
    /// As it is by itself.
    pub fn new() -> Window {
        Window {
            stride: None,
            padding: 0.into(),
            dilation: 1.into(),
            output_padding: 0.into(),
            groups: 1,
        }
    }

    /// Distance from window to window; at least 1.
    pub fn stride(mut self, stride: impl Into<Each>) -> Window {
        self.stride = Some(stride.into());
        self
    }

    /// Elements around the tensor, on both sides of each axis: zeros, and for maxima what no element is less than.
    pub fn padding(mut self, padding: impl Into<Each>) -> Window {
        self.padding = padding.into();
        self
    }

    /// Distance from element to element within a window; at least 1.
    pub fn dilation(mut self, dilation: impl Into<Each>) -> Window {
        self.dilation = dilation.into();
        self
    }

    /// Of transposed convolutions: elements more at the end of each axis, fewer than the stride.
    pub fn output_padding(mut self, more: impl Into<Each>) -> Window {
        self.output_padding = more.into();
        self
    }

    /// Groups of channels that know nothing of each other.
    pub fn groups(mut self, groups: usize) -> Window {
        self.groups = groups;
        self
    }

    // For windows of these sizes.
    fn over(&self, sizes: &[usize], own_stride: Option<&[usize]>) -> Result<Vec<Along>, String> {
        let axes = sizes.len();
        let stride = match (&self.stride, own_stride) {
            (Some(stride), _) => stride.of("the stride", axes)?,
            (None, Some(sizes)) => sizes.into(),
            (None, None) => std::iter::repeat_n(1, axes).collect(),
        };
        let padding = self.padding.of("the padding", axes)?;
        let dilation = self.dilation.of("the dilation", axes)?;
        let more = self.output_padding.of("the output padding", axes)?;
        if stride.contains(&0) || dilation.contains(&0) || sizes.contains(&0) {
            return Err("sizes, strides and dilations are at least 1".into());
        }
        let along = (0..axes).map(|i| Along {
            size: sizes[i],
            stride: stride[i],
            padding: padding[i],
            dilation: dilation[i],
            more: more[i],
        });
        Ok(along.collect())
    }
}

/// A window along one axis.
#[derive(Clone, Copy)]
struct Along {
    size: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    more: usize,
}

impl Along {
    // From its first element to its last.
    fn span(&self) -> usize {
        (self.size - 1).saturating_mul(self.dilation).saturating_add(1)
    }
}

/// What becomes of a window's elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Combine {
    Max,
    Mean,
}

type At = &'static Location<'static>;

impl Tensor {
    /// A part of one axis.
    pub(crate) fn part_of(&self, axis: usize, part: impl Into<Slice>) -> Tensor {
        let mut slices = vec![Slice::from(..); axis];
        slices.push(part.into());
        self.slice(slices)
    }

    /// Windows along an axis, whose elements are a new last axis; or what is wrong.
    pub(crate) fn windows(
        &self,
        axis: usize,
        size: usize,
        step: usize,
        dilation: usize,
    ) -> Result<Tensor, String> {
        let along = Along {
            size,
            stride: step,
            padding: 0,
            dilation,
            more: 0,
        };
        if size == 0 || step == 0 {
            return Err("windows have at least one element, and a distance of at least 1".into());
        }
        let n = self.shape()[axis];
        let Some(left) = n.checked_sub(along.span()) else {
            return Err(format!("a window spans {} elements of {n}", along.span()));
        };
        // However far the second window would lie beyond the end.
        let step = step.min(left + 1);
        let count = left / step + 1;
        // The axis again and again, in rows that are `dilation` longer than it (or than it several times): what lies below each other is that far apart.
        let times = (count * step).saturating_sub(dilation).div_ceil(n).max(1);
        let row = n * times + dilation;
        let mut shape: Shape = self.shape().into();
        let repeated = self.tile((size * row).div_ceil(n), axis as isize);
        let rows = repeated.part_of(axis, ..(size * row) as isize);
        shape[axis] = row;
        shape.insert(axis, size);
        let at = here!();
        let rows = rows
            .reshaped(&shape, at)
            .part_of(axis + 1, ..(count * step) as isize);
        shape[axis + 1] = count;
        shape.insert(axis + 2, step);
        let firsts = rows.reshaped(&shape, at).part_of(axis + 2, ..1);
        shape.remove(axis + 2);
        let mut order: SmallVec<[usize; 4]> = (0..shape.len()).filter(|i| *i != axis).collect();
        order.push(axis);
        Ok(firsts.reshaped(&shape, at).permuted(order, at))
    }

    // Windows over the axes from `first` on, whose elements are as many new last axes.
    fn windows_over(&self, first: usize, along: &[Along], fill: f64) -> Result<Tensor, String> {
        let around = |axis: usize| match axis.checked_sub(first).and_then(|i| along.get(i)) {
            Some(along) => (along.padding, along.padding),
            None => (0, 0),
        };
        let widths: Vec<(usize, usize)> = (0..self.rank()).map(around).collect();
        let there = |x: Tensor| match x.check() {
            Ok(()) => Ok(x),
            Err(error) => Err(error.to_string()),
        };
        let padded = there(self.pad(widths, fill));
        (first..).zip(along).fold(padded, |x, (axis, a)| {
            there(x?.windows(axis, a.size, a.stride, a.dilation)?)
        })
    }

    pub(crate) fn convolved(
        &self,
        weight: &Tensor,
        window: &Window,
        axes: usize,
        at: At,
    ) -> Result<Tensor, String> {
        let rank = axes + 2;
        if self.rank() != rank || weight.rank() != rank {
            return Err(format!(
                "it takes {rank} axes: examples, channels and {axes} more of the first, and channels out, channels of a group and {axes} more of the weights"
            ));
        }
        let (examples, channels) = (self.shape()[0], self.shape()[1]);
        let (out, of_group) = (weight.shape()[0], weight.shape()[1]);
        let groups = window.groups;
        if groups == 0 || channels != groups.saturating_mul(of_group) || !out.is_multiple_of(groups) {
            return Err(format!(
                "{groups} groups of {of_group} channels must be the {channels} of the first, and divide the {out} channels out"
            ));
        }
        let along = window.over(&weight.shape()[2..], None)?;
        let windows = self.windows_over(2, &along, 0.0)?;
        // Examples, channels, places, elements: of each group a matrix whose columns are the places.
        let places: Shape = windows.shape()[2..2 + axes].into();
        let of_window: usize = weight.shape()[2..].iter().product();
        let count: usize = places.iter().product();
        let mut order: SmallVec<[usize; 4]> = SmallVec::from_slice(&[0, 1]);
        order.extend(rank..rank + axes);
        order.extend(2..rank);
        let columns = windows
            .permuted(order, at)
            .reshaped(&[examples, groups, of_group * of_window, count], at);
        let rows = weight.reshaped(&[groups, out / groups, of_group * of_window], at);
        let shape: Shape = [examples, out].into_iter().chain(places).collect();
        Ok(rows.product(&columns, at).reshaped(&shape, at))
    }

    pub(crate) fn convolved_back(
        &self,
        weight: &Tensor,
        window: &Window,
        axes: usize,
        at: At,
    ) -> Result<Tensor, String> {
        let rank = axes + 2;
        if self.rank() != rank || weight.rank() != rank {
            return Err(format!(
                "it takes {rank} axes: examples, channels and {axes} more of the first, and channels, channels out of a group and {axes} more of the weights"
            ));
        }
        let (channels, of_group) = (self.shape()[1], weight.shape()[1]);
        let groups = window.groups;
        if groups == 0 || channels != weight.shape()[0] || !channels.is_multiple_of(groups) {
            return Err(format!(
                "the weights are of {} channels, and the first has {channels}, in {groups} groups: they must be the same, and as many in each group",
                weight.shape()[0]
            ));
        }
        let along = window.over(&weight.shape()[2..], None)?;
        if along.iter().any(|a| a.more >= a.stride) {
            return Err("the output padding is less than the stride".into());
        }
        // Zeros between the elements, and around them as many as a window reaches beyond; then what the padding takes away.
        let mut starts: Shape = self.shape().iter().map(|_| 0).collect();
        let mut steps: Shape = self.shape().iter().map(|_| 1).collect();
        let mut spread: Shape = self.shape().into();
        for (axis, a) in (2..).zip(&along) {
            let reach = a.span() - 1;
            starts[axis] = reach;
            steps[axis] = a.stride;
            spread[axis] = [
                self.shape()[axis].saturating_sub(1).saturating_mul(a.stride),
                1,
                reach,
                reach,
                a.more,
            ]
            .into_iter()
            .fold(0, usize::saturating_add);
        }
        let mut spread = self.padded(starts, steps, &spread, 0, at);
        for (axis, a) in (2..).zip(&along) {
            let end = spread.shape()[axis]
                .checked_sub(a.padding)
                .filter(|end| *end >= a.padding);
            let end = end.ok_or("the padding takes all away")?;
            spread = spread.part_of(axis, a.padding as isize..end as isize);
        }
        // The weights the other way round, from channels to channels out.
        let turned = weight.flipped((2..rank).collect(), at);
        let mut shape: Shape = SmallVec::from_slice(&[groups, channels / groups, of_group]);
        shape.extend_from_slice(&weight.shape()[2..]);
        let mut order: SmallVec<[usize; 4]> = (0..shape.len()).collect();
        order.swap(1, 2);
        let turned = turned.reshaped(&shape, at).permuted(order, at);
        let mut shape: Shape = SmallVec::from_slice(&[groups * of_group, channels / groups]);
        shape.extend_from_slice(&weight.shape()[2..]);
        let plain = Window {
            stride: None,
            padding: 0.into(),
            ..window.clone()
        };
        spread.convolved(&turned.reshaped(&shape, at), &plain, axes, at)
    }

    pub(crate) fn pooled(
        &self,
        how: Combine,
        size: &Each,
        window: &Window,
        axes: usize,
    ) -> Result<Tensor, String> {
        let rank = self.rank();
        let Some(first) = rank.checked_sub(axes) else {
            return Err(format!("it takes at least {axes} axes"));
        };
        let sizes = size.of("the size", axes)?;
        let along = window.over(&sizes, Some(&sizes))?;
        if along.iter().any(|a| a.padding > a.size / 2) {
            return Err("the padding is at most half of the size".into());
        }
        let fill = match how {
            Combine::Max => f64::NEG_INFINITY,
            Combine::Mean => 0.0,
        };
        let windows = self.windows_over(first, &along, fill)?;
        let last: Vec<isize> = (rank..rank + axes).map(|axis| axis as isize).collect();
        Ok(match how {
            Combine::Max => windows.max(&last[..]),
            Combine::Mean => windows.mean(&last[..]),
        })
    }
}
