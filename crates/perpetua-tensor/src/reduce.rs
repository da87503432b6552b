//! Combinations along axes, as they are recorded.

use std::panic::Location;

use smallvec::{SmallVec, smallvec};

use crate::dtype::DType;
use crate::node::{Op, Tensor};
use crate::order::{Parts, Reduction};
use crate::shape::{Axes, Shape, reduced};

impl Tensor {
    pub(crate) fn reduce(
        &self,
        how: Reduction,
        axes: &Axes,
        keep: bool,
        at: &'static Location<'static>,
    ) -> Tensor {
        let name = how.name();
        let axes: SmallVec<[usize; 4]> = match axes.of(self.rank()) {
            Ok(axes) => axes,
            Err(rule) => return self.refuse(name, &[], rule, at),
        };
        if self.error().is_some() {
            return self.clone();
        }
        let is_extreme = matches!(how, Reduction::Max | Reduction::Min);
        if is_extreme && self.0.dtype == DType::Bool {
            return self.refuse(name, &[], "bool has no order: use `any` or `all`, or cast", at);
        }
        if is_extreme && axes.iter().any(|axis| self.0.shape[*axis] == 0) {
            return self.refuse(
                name,
                &[],
                "no elements have no extreme: the axes must not be empty",
                at,
            );
        }
        let dtype = how.result(self.0.dtype);
        // Nothing to combine.
        let kept = reduced(self.shape(), &axes, true);
        let all = match *kept == *self.shape() {
            true => self.cast_at(dtype, at),
            false => match Parts::of(self.shape(), &axes) {
                _ if let Some(done) = self.combined_on_host(how, &axes, at) => done,
                None => self.reduced(how, axes.clone(), dtype, at),
                Some(parts) => {
                    let joined = self.in_parts(how, &axes, parts, at).reshaped(&kept, at);
                    let joined = joined.cast_at(dtype, at);
                    let (axes, ty) = (axes.clone(), (kept.clone(), dtype));
                    let sources = smallvec![joined, self.clone()];
                    Tensor::record(Op::Joined { how, axes }, sources, ty, &self.0.device, at)
                }
            },
        };
        match keep {
            true => all,
            false => all.reshaped(&reduced(self.shape(), &axes, false), at),
        }
    }

    fn reduced(
        &self,
        how: Reduction,
        axes: SmallVec<[usize; 4]>,
        dtype: DType,
        at: &'static Location<'static>,
    ) -> Tensor {
        let ty = (reduced(self.shape(), &axes, true), dtype);
        Tensor::record(
            Op::Reduce { how, axes },
            smallvec![self.clone()],
            ty,
            &self.0.device,
            at,
        )
    }

    // First the parts of an axis, which becomes two axes, then their results. In the type in which it is computed.
    fn in_parts(
        &self,
        how: Reduction,
        axes: &[usize],
        parts: Parts,
        at: &'static Location<'static>,
    ) -> Tensor {
        let ty = how.accumulator(self.0.dtype);
        let wide = self.detached(at).cast_at(ty, at);
        let mut whole: Shape = self.0.shape.clone();
        whole[parts.axis] = parts.len * parts.count;
        let (starts, steps) = whole.iter().map(|_| (0, 1)).unzip();
        let filled = wide.padded(starts, steps, &whole, how.identity(ty), at);
        whole[parts.axis] = parts.len;
        whole.insert(parts.axis, parts.count);
        // An axis behind the new one is one further.
        let within = axes.iter().map(|axis| axis + usize::from(*axis >= parts.axis));
        let apart = filled.reshaped(&whole, at).reduced(how, within.collect(), ty, at);
        apart.reduced(how, smallvec![parts.axis], ty, at)
    }
}
