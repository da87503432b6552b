//! Combinations along axes, as they are recorded.

use std::panic::Location;

use smallvec::{SmallVec, smallvec};

use crate::dtype::DType;
use crate::node::{Op, Tensor};
use crate::order::Reduction;
use crate::shape::{Axes, reduced};

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
            false => {
                let op = Op::Reduce {
                    how,
                    axes: axes.clone(),
                };
                let ty = (kept.clone(), dtype);
                Tensor::record(op, smallvec![self.clone()], ty, &self.0.device, at)
            }
        };
        match keep {
            true => all,
            false => all.reshaped(&reduced(self.shape(), &axes, false), at),
        }
    }
}
