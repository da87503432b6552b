//! Reductions of tensors over any of their axes. Must not know how lanes go over them.

mod kernels;

use perpetua_device::{Buffer, KernelArg, LaunchConfig, Stream};
use perpetua_language::{KernelFn, args};

use crate::element::{Bf16s, Element, F16s, F32s};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, number, ptx_unchecked, unchecked_on};
use crate::operand::{Operand, check, check_held};
use half::{bf16, f16};
use kernels::{AXES, Greatest, Least, Product, Sum, reduce_across, reduce_along};

/// Blocks that a large GPU is busy with, and the fewest numbers that a lane of a slice has.
const BLOCKS: usize = 1056;
const LEAST: usize = 16;

/// What is made of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Sum,
    Mean,
    Greatest,
    Least,
    Product,
}

/// An axis: its extent, and elements from one place to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    size: usize,
    step: usize,
}

/// Axes as one where they lie as one, those of one place left out.
fn joined(axes: impl Iterator<Item = Axis>) -> Vec<Axis> {
    let mut all: Vec<Axis> = Vec::new();
    for axis in axes.filter(|axis| axis.size != 1) {
        match all.last_mut() {
            Some(last) if last.step == axis.size * axis.step => {
                *last = Axis {
                    size: last.size * axis.size,
                    step: axis.step,
                };
            }
            _ => all.push(axis),
        }
    }
    all
}

/// The same as kernels take them: the last axis last, in front of it ones.
fn padded(axes: &[Axis]) -> Option<[[usize; AXES]; 2]> {
    let front = AXES.checked_sub(axes.len())?;
    let mut all = [[1; AXES], [0; AXES]];
    for (i, axis) in axes.iter().enumerate() {
        all[0][front + i] = axis.size;
        all[1][front + i] = axis.step;
    }
    Some(all)
}

/// The sum, the mean, the greatest or least number, or the product over some axes of a tensor. Launched with two buffers: `x`, whose first element is the tensor's, and `y`, which has the axes that stay, side by side.
///
/// The tensor lies in any way: [`ReduceKernel::with_strides`]. Numbers are combined in `f32`, in an order that depends on shape and strides alone: a sum of `n` numbers is off by at most about `(n / 1024 + 64) * 2^-24` times the sum of
/// their magnitudes. A NaN makes its result NaN. Of no numbers the sum is 0, the product 1, the mean NaN, the greatest -inf, the least +inf.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{Kernel, ReduceKernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let y = device.zeros::<f32>(3)?;
/// ReduceKernel::sum(&[2, 3], &[0]).launch(&device.default_stream(), args![&x, &y])?;
/// assert_eq!(y.read()?, [5.0, 7.0, 9.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReduceKernel {
    of: Of,
    shape: Vec<usize>,
    axes: Vec<usize>,
    strides: Option<Vec<usize>>,
    element: Element,
}

/// How a launch goes over the tensor.
struct Plan {
    kept: Vec<Axis>,
    combined: Vec<Axis>,
    /// Whether lanes side by side go along what is combined.
    along: bool,
    /// Lanes of a result then.
    lanes: usize,
    /// Whether 16 bytes are read at a time.
    pieces: bool,
}

impl Plan {
    /// Slices of results, which lie so far apart.
    fn of_slices(results: usize, slices: usize, step: usize) -> Plan {
        let (kept, combined) = (
            Axis {
                size: results,
                step: 1,
            },
            Axis { size: slices, step },
        );
        Plan {
            kept: vec![kept],
            combined: vec![combined],
            along: false,
            lanes: 32,
            pieces: false,
        }
    }

    fn results(&self) -> usize {
        self.kept.iter().map(|axis| axis.size).product()
    }

    fn count(&self) -> usize {
        self.combined.iter().map(|axis| axis.size).product()
    }

    /// The axes in pieces of so many numbers: those along which lanes go count pieces.
    fn in_units(&self, unit: usize) -> [Vec<Axis>; 2] {
        let of = |axes: &[Axis], is_inner: bool| -> Vec<Axis> {
            let last = axes.len().saturating_sub(1);
            let scaled = |(i, axis): (usize, &Axis)| match is_inner && i == last {
                true => Axis {
                    size: axis.size / unit,
                    step: 1,
                },
                false => Axis {
                    step: axis.step / unit,
                    ..*axis
                },
            };
            match unit {
                1 => axes.to_vec(),
                _ => axes.iter().enumerate().map(scaled).collect(),
            }
        };
        [of(&self.kept, !self.along), of(&self.combined, self.along)]
    }
}

impl ReduceKernel {
    fn new(of: Of, shape: &[usize], axes: &[usize]) -> ReduceKernel {
        ReduceKernel {
            of,
            shape: shape.to_vec(),
            axes: axes.to_vec(),
            strides: None,
            element: Element::F32,
        }
    }

    /// The sum over these axes of a tensor of this shape.
    pub fn sum(shape: &[usize], axes: &[usize]) -> ReduceKernel {
        ReduceKernel::new(Of::Sum, shape, axes)
    }

    /// The mean.
    pub fn mean(shape: &[usize], axes: &[usize]) -> ReduceKernel {
        ReduceKernel::new(Of::Mean, shape, axes)
    }

    /// The greatest number.
    pub fn max(shape: &[usize], axes: &[usize]) -> ReduceKernel {
        ReduceKernel::new(Of::Greatest, shape, axes)
    }

    /// The least number.
    pub fn min(shape: &[usize], axes: &[usize]) -> ReduceKernel {
        ReduceKernel::new(Of::Least, shape, axes)
    }

    /// The product.
    pub fn product(shape: &[usize], axes: &[usize]) -> ReduceKernel {
        ReduceKernel::new(Of::Product, shape, axes)
    }

    /// How many elements lie from one place of each axis to the next; axes that lie side by side, the last one innermost, unless said otherwise.
    pub fn with_strides(mut self, strides: &[usize]) -> ReduceKernel {
        self.strides = Some(strides.to_vec());
        self
    }

    /// The type of what is read and written, `f32` unless said otherwise.
    pub fn with_element(mut self, element: Element) -> ReduceKernel {
        self.element = element;
        self
    }

    /// Every axis as it lies.
    fn all_axes(&self) -> Vec<Axis> {
        let mut step = 1usize;
        let mut all: Vec<Axis> = self
            .shape
            .iter()
            .rev()
            .map(|size| {
                let axis = Axis { size: *size, step };
                step = step.saturating_mul((*size).max(1));
                axis
            })
            .collect();
        all.reverse();
        for (axis, stride) in all.iter_mut().zip(self.strides.iter().flatten()) {
            axis.step = *stride;
        }
        all
    }

    fn plan(&self) -> Plan {
        let all = self.all_axes();
        let of = |is_combined: bool| {
            let all = all.iter().enumerate();
            all.filter(move |(i, _)| self.axes.contains(i) == is_combined)
                .map(|(_, axis)| *axis)
        };
        let kept = joined(of(false));
        // In which order numbers are combined does not matter: as they lie.
        let mut combined: Vec<Axis> = of(true).collect();
        combined.sort_by_key(|axis| std::cmp::Reverse(axis.step));
        let combined = joined(combined.into_iter());
        let step = |axes: &[Axis]| axes.last().map_or(usize::MAX, |axis| axis.step);
        let count: usize = combined.iter().map(|axis| axis.size).product();
        let along = step(&combined) <= step(&kept);
        let inner = if along { &combined } else { &kept };
        let unit = self.element.piece();
        let mut others = kept.iter().chain(&combined).filter(|axis| axis.step != 1);
        let pieces = inner
            .last()
            .is_some_and(|axis| axis.step == 1 && axis.size.is_multiple_of(unit))
            && others.all(|axis| axis.step.is_multiple_of(unit))
            && kept.iter().chain(&combined).filter(|axis| axis.step == 1).count() == 1;
        Plan {
            kept,
            combined,
            along,
            lanes: if count <= 4096 { 32 } else { 256 },
            pieces,
        }
    }

    /// The kernel of a plan; with `parts` of what slices have left.
    fn instance(&self, plan: &Plan, parts: bool) -> KernelFn {
        let (kept, many) = (plan.kept.len() > 1, plan.combined.len() > 1);
        macro_rules! of {
            ($M:ty, $N:literal, $T:ty) => {
                match self.of {
                    Of::Sum | Of::Mean => of!($M, $N, $T, Sum),
                    Of::Greatest => of!($M, $N, $T, Greatest),
                    Of::Least => of!($M, $N, $T, Least),
                    Of::Product => of!($M, $N, $T, Product),
                }
            };
            ($M:ty, $N:literal, $T:ty, $C:ty) => {
                match (kept, many) {
                    (false, false) => of!($M, $N, $T, $C, false, false),
                    (false, true) => of!($M, $N, $T, $C, false, true),
                    (true, false) => of!($M, $N, $T, $C, true, false),
                    (true, true) => of!($M, $N, $T, $C, true, true),
                }
            };
            ($M:ty, $N:literal, $T:ty, $C:ty, $kept:literal, $many:literal) => {
                match (plan.along, plan.lanes) {
                    (true, 32) => reduce_along::kernel::<$M, $N, $T, $C, 32, $kept, $many>(),
                    (true, _) => reduce_along::kernel::<$M, $N, $T, $C, 256, $kept, $many>(),
                    (false, _) => reduce_across::kernel::<$M, $N, $T, $C, $kept, $many>(),
                }
            };
        }
        match (self.element, parts, plan.pieces) {
            (Element::F32, _, false) => of!(f32, 1, f32),
            (Element::F32, _, true) => of!(F32s, 4, f32),
            (Element::F16, false, false) => of!(f16, 1, f16),
            (Element::F16, false, true) => of!(F16s, 8, f16),
            (Element::F16, true, false) => of!(f32, 1, f16),
            (Element::F16, true, true) => of!(F32s, 4, f16),
            (Element::Bf16, false, false) => of!(bf16, 1, bf16),
            (Element::Bf16, false, true) => of!(Bf16s, 8, bf16),
            (Element::Bf16, true, false) => of!(f32, 1, bf16),
            (Element::Bf16, true, true) => of!(F32s, 4, bf16),
        }
    }

    /// Launches a plan. In several slices it leaves in `parts` what they have.
    fn launch_plan(
        &self,
        stream: &Stream,
        plan: &Plan,
        function: KernelFn,
        (slices, factor): (usize, f32),
        [x, y, parts]: [KernelArg<'_>; 3],
        unit: usize,
    ) -> Result<()> {
        let [kept, combined] = plan.in_units(unit);
        let too_many = |what, axes: &[Axis]| Error::Range {
            kernel: function.name(),
            what,
            found: axes.len(),
            needed: format!("at most {AXES}: reduce some of them first, or a copy"),
        };
        let what = "the number of axes that stay and do not lie as one";
        let [kept_sizes, kept_steps] = padded(&kept).ok_or_else(|| too_many(what, &kept))?;
        let what = "the number of axes that are reduced and do not lie as one";
        let [sizes, steps] = padded(&combined).ok_or_else(|| too_many(what, &combined))?;
        let (results, count) = (
            plan.results(),
            combined.iter().map(|axis| axis.size).product::<usize>(),
        );
        let blocks = match plan.along {
            true => results.div_ceil(256 / plan.lanes),
            false => (results / unit).div_ceil(32),
        };
        let each = count.div_ceil(slices);
        let all = args![
            results, count, each, kept_sizes, kept_steps, sizes, steps, factor, x, y, parts
        ];
        // SAFETY: `check` has found room for the tensor's last element and for all results, and parts have been made for each slice's; results and numbers are compared with how many there are. Sizes that places are divided by are not 0 where there is
        // a result, or a number to combine. Indices into variables and into the block's memory are constants, or below its lanes.
        let function = unsafe { unchecked_on(stream, function) };
        let grid = (number(blocks), number(slices));
        Ok(stream.launch(&function, LaunchConfig::new(grid, 256), all)?)
    }
}

impl Kernel for ReduceKernel {
    fn function(&self) -> KernelFn {
        self.instance(&self.plan(), false)
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let mut plan = self.plan();
        let name = self.function().name();
        let range = |what, found, needed| Error::Range {
            kernel: name,
            what,
            found,
            needed,
        };
        let rank = self.shape.len();
        if let Some(axis) = self.axes.iter().find(|axis| **axis >= rank) {
            return Err(range("an axis", *axis, format!("below {rank}")));
        }
        if let Some(strides) = &self.strides
            && strides.len() != rank
        {
            return Err(range(
                "the number of strides",
                strides.len(),
                format!("{rank}, one an axis"),
            ));
        }
        let too_large = Error::TooLarge {
            kernel: name,
            operand: "x",
            shape: format!("{:?}", self.shape),
        };
        let is_empty = self.shape.contains(&0);
        let extent = self.all_axes().iter().try_fold(1usize, |extent, axis| {
            extent.checked_add(axis.size.saturating_sub(1).checked_mul(axis.step)?)
        });
        let extent = if is_empty { 0 } else { extent.ok_or(too_large)? };
        let results = plan.results();
        check(
            name,
            &[Operand::vector("x", extent), Operand::vector("y", results)],
            args,
        )?;
        let [x, y] = args else {
            // `check` has counted them.
            return Ok(());
        };
        check_held(name, "x", x, self.element)?;
        check_held(name, "y", y, self.element)?;
        if results == 0 {
            return Ok(());
        }
        let pieces = self.element.in_pieces(x).filter(|_| plan.pieces);
        plan.pieces = pieces.is_some();
        let x = pieces.unwrap_or(x.clone());
        let factor = match self.of {
            Of::Mean => 1.0 / plan.count() as f32,
            _ => 1.0,
        };
        self.launch_slices(stream, &plan, false, factor, [x, y.clone()])
    }
}

impl ReduceKernel {
    /// Launches a plan, of the kernel's type or with `parts` of sums in `f32`: in slices, which a launch of its own adds up, where there are few results.
    fn launch_slices(
        &self,
        stream: &Stream,
        plan: &Plan,
        parts: bool,
        factor: f32,
        [x, y]: [KernelArg<'_>; 2],
    ) -> Result<()> {
        let (results, count) = (plan.results(), plan.count());
        let unit = match (plan.pieces, parts) {
            (false, _) => 1,
            (true, false) => self.element.piece(),
            (true, true) => Element::F32.piece(),
        };
        let (blocks, of_block) = match plan.along {
            true => (results.div_ceil(256 / plan.lanes), plan.lanes * unit),
            false => (results.div_ceil(32 * unit), 8),
        };
        let slices = (BLOCKS / blocks).min(count / (of_block * LEAST)).max(1);
        let of_slices: Buffer<f32> = stream
            .device()
            .alloc(if slices > 1 { slices * results } else { 0 })?;
        let function = self.instance(plan, parts);
        let buffers = [x, y.clone(), of_slices.arg()];
        self.launch_plan(stream, plan, function, (slices, factor), buffers, unit)?;
        match slices {
            1 => Ok(()),
            _ => self.launch_slices(
                stream,
                &Plan::of_slices(results, slices, results),
                true,
                factor,
                [of_slices.arg(), y],
            ),
        }
    }

    /// Adds up slices of sums in `f32`, in their order, that lie `step` apart, into results of a type. `x` and `y` have room for them.
    pub(crate) fn add_slices(
        stream: &Stream,
        element: Element,
        [results, slices, step]: [usize; 3],
        buffers: [KernelArg<'_>; 2],
    ) -> Result<()> {
        let plan = Plan::of_slices(results, slices, step);
        match results {
            0 => Ok(()),
            _ => ReduceKernel::sum(&[], &[])
                .with_element(element)
                .launch_slices(stream, &plan, true, 1.0, buffers),
        }
    }
}
