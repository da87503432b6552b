//! Elements by their index: looked up (`gather`), and the other way, combined at their index (`scatter` and its kin).
//!
//! What is to be combined is sorted by place, so that all that has one place is a run of it, and a lane combines each run in its order: no
//! atomics, the same bits on every device.

use std::panic::Location;

use smallvec::{SmallVec, smallvec};

use crate::dtype::{DType, promote};
use crate::node::{Op, Tensor};
use crate::order::Reduction;
use crate::shape::{Axes, Shape, broadcast, count};

/// An index along an axis, brought to `i32`, and the shape of what it looks up.
struct Lookup {
    axis: usize,
    index: Tensor,
    shape: Shape,
}

/// Elements sorted by their places.
struct Runs {
    /// The number of each, in their new order, and its place.
    order: Tensor,
    places: Tensor,
    /// By place: where its run begins and ends.
    begin: Tensor,
    end: Tensor,
}

impl Runs {
    fn bounds(&self) -> [&Tensor; 3] {
        [&self.begin, &self.end, &self.places]
    }
}

impl Tensor {
    /// Elements by their index along an axis: element `[.., j, ..]` is `self[.., index[.., j, ..], ..]`, as in NumPy's `take_along_axis`. Both
    /// have the same number of axes; the others are repeated to meet. Negative places count from the end; one that is not there is a fault.
    ///
    /// ```
    /// # use perpetua_device::{BackendKind, Device};
    /// # use perpetua_tensor::Tensor;
    /// # let device = Device::new(BackendKind::Cpu, 0)?;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2], &device);
    /// let index = Tensor::from_slice(&[-1i32, 0], [2, 1], &device);
    /// assert_eq!(x.gather(1, &index).to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn gather(&self, axis: isize, index: &Tensor) -> Tensor {
        let at = here!();
        match self.lookup("gather", axis, index, at) {
            Ok(lookup) => self.gathered(lookup, at),
            Err(failed) => failed,
        }
    }

    fn gathered(&self, lookup: Lookup, at: &'static Location<'static>) -> Tensor {
        let op = Op::Gather { axis: lookup.axis };
        let ty = (lookup.shape, self.0.dtype);
        Tensor::record(op, smallvec![self.clone(), lookup.index], ty, &self.0.device, at)
    }

    // Or the tensor that carries the error.
    fn lookup(
        &self,
        name: &'static str,
        axis: isize,
        index: &Tensor,
        at: &'static Location<'static>,
    ) -> Result<Lookup, Tensor> {
        let refuse = |rule: String| Err(self.refuse(name, &[index], rule, at));
        if self.error().or(index.error()).is_some() {
            return refuse(String::new());
        }
        let axis = match Axes::from(axis).of(self.rank()) {
            Ok(axes) => axes[0],
            Err(rule) => return refuse(rule),
        };
        if self.device().id() != index.device().id() {
            return refuse("the operands are on different devices: move one with `to`".into());
        }
        if index.dtype().is_float() || index.dtype() == DType::Bool {
            return refuse("an index has integers: cast it".into());
        }
        if self.rank() != index.rank() {
            return refuse("an index has as many axes as what it looks up: reshape it".into());
        }
        let n = self.shape()[axis];
        if n > i32::MAX as usize || (n == 0 && !index.is_empty()) {
            return refuse(format!(
                "axis {axis} has {n} places: an index takes 1 to {}",
                i32::MAX
            ));
        }
        let (mut own, extent) = (self.0.shape.clone(), index.shape()[axis]);
        own[axis] = extent;
        match broadcast(&own, index.shape()) {
            Some(mut shape) => {
                shape[axis] = extent;
                let index = index.index_type(at);
                Ok(Lookup { axis, index, shape })
            }
            None => refuse(format!(
                "but for axis {axis}, of two extents one must be 1, or both be equal"
            )),
        }
    }

    // What is beyond `i32` stays beyond every axis.
    fn index_type(&self, at: &'static Location<'static>) -> Tensor {
        crate::place::inside(at, || {
            let within = match self.0.dtype {
                DType::U32 | DType::U64 => self.minimum(i32::MAX),
                DType::I64 => self.clip(i32::MIN, i32::MAX),
                _ => self.clone(),
            };
            within.cast(DType::I32)
        })
    }

    /// Combinations of runs along the first axis, one after the other: what starts at `begin` and ends before `end`.
    pub(crate) fn segments(
        &self,
        how: Reduction,
        [begin, end, places]: [&Tensor; 3],
        at: &'static Location<'static>,
    ) -> Tensor {
        let shape = std::iter::once(begin.len()).chain(self.shape().iter().skip(1).copied());
        let ty = (shape.collect(), how.result(self.0.dtype));
        let sources = smallvec![self.clone(), begin.clone(), end.clone(), places.clone()];
        Tensor::record(Op::Segments { how }, sources, ty, &self.0.device, at)
    }

    /// The elements of `updates` combined at their index along an axis, or the last one of each.
    pub(crate) fn scattered(
        &self,
        name: &'static str,
        how: Option<Reduction>,
        (axis, index, updates): (isize, &Tensor, &Tensor),
        at: &'static Location<'static>,
    ) -> Tensor {
        let lookup = match self.lookup(name, axis, index, at) {
            Ok(lookup) => lookup,
            Err(failed) => return failed,
        };
        let refuse = |rule: &str| self.refuse(name, &[index, updates], rule, at);
        if updates.error().is_some() {
            return refuse("");
        }
        if self.device().id() != updates.device().id() {
            return refuse("the operands are on different devices: move one with `to`");
        }
        let mut whole = lookup.shape.clone();
        whole[lookup.axis] = self.shape()[lookup.axis];
        if *whole != *self.shape()
            || broadcast(updates.shape(), &lookup.shape).as_ref() != Some(&lookup.shape)
        {
            return refuse(
                "index and updates must be repeatable to one shape, which is the first's but for the axis",
            );
        }
        if promote(self.0.dtype, updates.0.dtype) != Some(self.0.dtype) {
            return refuse("the updates' type must not be wider than the first's: cast them");
        }
        let updates = updates.cast_at(self.0.dtype, at).expanded(&lookup.shape, at);
        if updates.is_empty() {
            return self.clone();
        }
        crate::place::inside(at, || {
            match updates.by_place(&lookup, self.shape()[lookup.axis], at) {
                Some((runs, updates, back)) => {
                    let base = back.forward(self, at);
                    let wide = |part: Tensor| part.cast_at(base.0.dtype, at);
                    let sorted = || updates.rows(&runs.order);
                    let joined = match how {
                        None => {
                            // Of a run the last.
                            let last = runs.order.rows(&(&runs.end - 1).maximum(0));
                            let shape: Vec<isize> = base
                                .shape()
                                .iter()
                                .enumerate()
                                .map(|(axis, n)| if axis == 0 { *n as isize } else { 1 })
                                .collect();
                            let has = runs.end.greater(&runs.begin).reshape(shape);
                            has.select(updates.rows(&last), &base)
                        }
                        Some(how) => {
                            let part = wide(sorted().segments(how, runs.bounds(), at));
                            match how {
                                Reduction::Sum => &base + part,
                                Reduction::Product => &base * part,
                                Reduction::Max => base.maximum(part),
                                Reduction::Min => base.minimum(part),
                            }
                        }
                    };
                    back.backward(&joined, at)
                }
                None => refuse("its places have more than 32 bits: work in parts"),
            }
        })
    }

    /// The gradient of a lookup: what was looked up at a place is added up there.
    pub(crate) fn added_up(
        &self,
        axis: usize,
        index: &Tensor,
        shape: &[usize],
        at: &'static Location<'static>,
    ) -> Tensor {
        let lookup = Lookup {
            axis,
            index: index.clone(),
            shape: self.0.shape.clone(),
        };
        let mut whole = lookup.shape.clone();
        whole[axis] = shape[axis];
        if self.is_empty() || count(&whole) == 0 {
            return self.fixed(0.0, at).resized(shape, at);
        }
        match self.by_place(&lookup, shape[axis], at) {
            Some((runs, updates, back)) => {
                let sum = updates
                    .rows(&runs.order)
                    .segments(Reduction::Sum, runs.bounds(), at);
                let sum = back.backward(&sum.cast_at(self.0.dtype, at), at);
                let repeated =
                    (0..shape.len()).filter(|other| *other != axis && shape[*other] != whole[*other]);
                let repeated: Vec<isize> = repeated.map(|axis| axis as isize).collect();
                if repeated.is_empty() {
                    sum
                } else {
                    sum.sum_keep(&repeated[..])
                }
            }
            None => self.refuse(
                "gather",
                &[index],
                "the places of its gradient have more than 32 bits: work in parts",
                at,
            ),
        }
    }

    fn resized(&self, shape: &[usize], at: &'static Location<'static>) -> Tensor {
        Tensor::record(
            self.0.op.clone(),
            Default::default(),
            (shape.into(), self.0.dtype),
            &self.0.device,
            at,
        )
    }

    /// Rows by their index.
    pub(crate) fn rows(&self, index: &Tensor) -> Tensor {
        let mut shape: SmallVec<[isize; 4]> = self.shape().iter().map(|_| 1).collect();
        if let Some(first) = shape.first_mut() {
            *first = index.len() as isize;
        }
        self.gather(0, &index.reshape(shape))
    }

    // Sorted by place along the first axis; how a tensor is brought to the form in which places are rows.
    fn by_place(
        &self,
        lookup: &Lookup,
        n: usize,
        at: &'static Location<'static>,
    ) -> Option<(Runs, Tensor, Form)> {
        let (axis, device) = (lookup.axis, self.device());
        // An index is looked up itself, so that one that is not there is a fault, and negative ones count from the end.
        let all = Tensor::coordinates([n], 0, device);
        let index = all.rows(&lookup.index.reshape([-1]));
        let others = lookup.index.shape().iter().enumerate();
        let is_one_for_all = others
            .clone()
            .all(|(other, extent)| other == axis || *extent == 1);
        let (places, count, updates, form) = match is_one_for_all {
            true => {
                let mut axes: SmallVec<[usize; 4]> =
                    (0..lookup.shape.len()).filter(|other| *other != axis).collect();
                axes.insert(0, axis);
                let form = Form::Rows(axes);
                (index, n, form.forward(self, at), form)
            }
            false => {
                let mut whole = lookup.shape.clone();
                whole[axis] = n;
                let total = i32::try_from(count(&whole)).ok()?;
                let index = index
                    .reshaped(lookup.index.shape(), at)
                    .expanded(&lookup.shape, at);
                let mut place = self
                    .fixed(0.0, at)
                    .resized(&lookup.shape, at)
                    .cast_at(DType::I32, at);
                for (other, extent) in whole.iter().enumerate() {
                    let own = if other == axis {
                        index.clone()
                    } else {
                        Tensor::coordinates(&lookup.shape, other, device)
                    };
                    place = place * (*extent as i64) + own;
                }
                let form = Form::Flat(whole);
                (place.reshape([-1]), total as usize, self.reshape([-1]), form)
            }
        };
        let order = places.argsort(0, false);
        let places = places.rows(&order);
        let all = Tensor::coordinates([count], 0, device);
        let (begin, end) = (places.searchsorted(&all, false), places.searchsorted(&all, true));
        Some((
            Runs {
                order,
                places,
                begin,
                end,
            },
            updates,
            form,
        ))
    }
}

/// How places become rows.
enum Form {
    /// By bringing the axis to the front.
    Rows(SmallVec<[usize; 4]>),
    /// By numbering all elements of a shape.
    Flat(Shape),
}

impl Form {
    fn forward(&self, x: &Tensor, at: &'static Location<'static>) -> Tensor {
        match self {
            Form::Rows(axes) => x.permuted(axes.clone(), at),
            Form::Flat(_) => x.reshape([-1]),
        }
    }

    fn backward(&self, x: &Tensor, at: &'static Location<'static>) -> Tensor {
        match self {
            Form::Rows(axes) => {
                let mut back = axes.clone();
                axes.iter()
                    .enumerate()
                    .for_each(|(place, axis)| back[*axis] = place);
                x.permuted(back, at)
            }
            Form::Flat(shape) => x.reshaped(shape, at),
        }
    }
}
