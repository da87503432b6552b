//! Which element of a tensor a lane is about, and what becomes of that through views. Must not know values.

use std::collections::HashMap;

use perpetua_ir::ops::BinaryOp;
use smallvec::SmallVec;

use super::recipe::{Id, Step, Steps};
use crate::dtype::DType;
use crate::node::Op;
use crate::shape::Shape;

/// Indices along axes.
pub(crate) type Along = SmallVec<[Id; 4]>;

/// An element: its number in row-major order, its indices along the axes, or both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Index {
    pub(crate) flat: Option<Id>,
    pub(crate) along: Option<Along>,
}

/// Makes indices; what was divided into indices along axes is not put together again.
#[derive(Default)]
pub(crate) struct Indices {
    divided: HashMap<(Along, Shape), Id>,
}

// The axes that have more than one index.
fn long(shape: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    shape.iter().copied().enumerate().filter(|(_, n)| *n != 1)
}

impl Indices {
    /// The element's number.
    pub(crate) fn flat(&mut self, steps: &mut Steps, index: &Index, shape: &[usize]) -> Id {
        if long(shape).next().is_none() {
            return steps.size(0);
        }
        match (&index.flat, &index.along) {
            (Some(flat), _) => *flat,
            (None, Some(along)) => self.join(steps, along, shape),
            (None, None) => steps.size(0),
        }
    }

    fn join(&mut self, steps: &mut Steps, along: &[Id], shape: &[usize]) -> Id {
        let key: (Along, Shape) = long(shape).map(|(axis, n)| (along[axis], n)).unzip();
        if let Some(flat) = self.divided.get(&key) {
            return *flat;
        }
        let (indices, extents) = key;
        let mut flat = steps.size(0);
        let mut stride = 1;
        for (index, extent) in indices.iter().zip(&extents).rev() {
            let by = steps.size(stride);
            let part = steps.binary(BinaryOp::Mul, *index, by);
            flat = steps.binary(BinaryOp::Add, part, flat);
            stride *= extent;
        }
        flat
    }

    /// The element's indices along the axes.
    pub(crate) fn along(&mut self, steps: &mut Steps, index: &Index, shape: &[usize]) -> Along {
        match (&index.along, index.flat) {
            (Some(along), _) => along.clone(),
            (None, Some(flat)) => self.divide(steps, flat, shape),
            (None, None) => Along::new(),
        }
    }

    /// Indices along axes of a number in row-major order.
    pub(crate) fn divide(&mut self, steps: &mut Steps, flat: Id, shape: &[usize]) -> Along {
        let zero = steps.size(0);
        let mut along: Along = shape.iter().map(|_| zero).collect();
        let mut rest = flat;
        let axes: Vec<(usize, usize)> = long(shape).collect();
        for (place, (axis, extent)) in axes.iter().enumerate().rev() {
            if place == 0 {
                along[*axis] = rest;
                continue;
            }
            // One division: the remainder is what the quotient leaves.
            let by = steps.size(*extent);
            let whole = steps.binary(BinaryOp::Div, rest, by);
            let before = steps.binary(BinaryOp::Mul, whole, by);
            along[*axis] = steps.binary(BinaryOp::Sub, rest, before);
            rest = whole;
        }
        let key = axes.iter().map(|(axis, n)| (along[*axis], *n)).unzip();
        self.divided.insert(key, flat);
        along
    }

    /// The element of a view's source, and for padding the condition that there is one.
    pub(crate) fn through(
        &mut self,
        steps: &mut Steps,
        op: &Op,
        index: &Index,
        (shape, source): (&[usize], &[usize]),
    ) -> (Index, Option<Id>) {
        let of = |along: Along| Index {
            flat: None,
            along: Some(along),
        };
        match op {
            Op::Reshape => (self.reshape(steps, index, shape, source), None),
            Op::Permute { axes } => {
                let own = self.along(steps, index, shape);
                let mut along = own.clone();
                for (place, axis) in axes.iter().enumerate() {
                    along[*axis] = own[place];
                }
                (of(along), None)
            }
            Op::Expand => {
                let zero = steps.size(0);
                let own = self.along(steps, index, shape);
                let along = own
                    .iter()
                    .zip(source)
                    .map(|(i, n)| if *n == 1 { zero } else { *i });
                (of(along.collect()), None)
            }
            Op::Slice { starts, steps: by } => {
                let own = self.along(steps, index, shape);
                let along = own.iter().zip(starts.iter().zip(by)).map(|(i, (start, by))| {
                    let (start, by) = (steps.size(*start), steps.size(*by));
                    let far = steps.binary(BinaryOp::Mul, *i, by);
                    steps.binary(BinaryOp::Add, far, start)
                });
                (of(along.collect()), None)
            }
            Op::Flip { axes } => {
                let mut along = self.along(steps, index, shape);
                for axis in axes {
                    let last = steps.size(shape[*axis].saturating_sub(1));
                    along[*axis] = steps.binary(BinaryOp::Sub, last, along[*axis]);
                }
                (of(along), None)
            }
            Op::Pad {
                starts, steps: by, ..
            } => {
                let own = self.along(steps, index, shape);
                self.inside(steps, &own, (starts, by), source)
            }
            _ => (index.clone(), None),
        }
    }

    // Where only axes of extent 1 come and go, indices stay with their axes.
    fn reshape(&mut self, steps: &mut Steps, index: &Index, shape: &[usize], source: &[usize]) -> Index {
        let same = long(shape).map(|(_, n)| n).eq(long(source).map(|(_, n)| n));
        match &index.along {
            Some(own) if same => {
                let zero = steps.size(0);
                let mut along: Along = source.iter().map(|_| zero).collect();
                for ((from, _), (to, _)) in long(shape).zip(long(source)) {
                    along[to] = own[from];
                }
                Index {
                    flat: index.flat,
                    along: Some(along),
                }
            }
            _ => Index {
                flat: Some(self.flat(steps, index, shape)),
                along: None,
            },
        }
    }

    fn inside(
        &mut self,
        steps: &mut Steps,
        own: &[Id],
        (starts, by): (&[usize], &[usize]),
        source: &[usize],
    ) -> (Index, Option<Id>) {
        let mut all: Option<Id> = None;
        let mut along = Along::new();
        let zero = steps.size(0);
        let mut require = |steps: &mut Steps, condition: Id| {
            all = Some(match all {
                None => condition,
                Some(all) => steps.binary(BinaryOp::And, all, condition),
            });
        };
        for (axis, i) in own.iter().enumerate() {
            let (start, by, n) = (steps.size(starts[axis]), by[axis], steps.size(source[axis]));
            // Before the start it wraps, which is beyond the end.
            let distance = steps.binary(BinaryOp::Sub, *i, start);
            let mut place = distance;
            if by != 1 {
                let by = steps.size(by);
                let over = steps.binary(BinaryOp::Rem, distance, by);
                place = steps.binary(BinaryOp::Div, distance, by);
                let meets = steps.push(Step::Binary(BinaryOp::Eq, over, zero), DType::Bool);
                require(steps, meets);
            }
            let is_inside = steps.push(Step::Binary(BinaryOp::Lt, place, n), DType::Bool);
            require(steps, is_inside);
            along.push(steps.select(is_inside, place, zero));
        }
        let index = Index {
            flat: None,
            along: Some(along),
        };
        (index, all)
    }
}
