//! Matrix products.

use std::panic::Location;

use smallvec::smallvec;

use crate::dtype::{DType, promote};
use crate::node::Op;
use crate::node::Tensor;
use crate::shape::{Shape, broadcast, count};

impl Tensor {
    /// The matrix product over the last two axes; axes in front are repeated to meet. A vector on the left is a row, on the right a column, and
    /// its axis of extent 1 is left out of the result, as in NumPy: such a product is recorded as the sum of products that it is.
    #[track_caller]
    pub fn matmul(&self, other: impl AsRef<Tensor>) -> Tensor {
        self.product(other.as_ref(), here!())
    }

    /// Scores of attention, but of keys behind a query's own place, counted from the end.
    pub(crate) fn seen(&self) -> Tensor {
        let &[.., queries, keys] = self.shape() else {
            return self.clone();
        };
        let place = |axis| Tensor::coordinates([queries, keys], axis, self.device());
        let sees = place(1).less_equal(place(0) + (keys as i64 - queries as i64));
        sees.select(self, f64::NEG_INFINITY)
    }

    pub(crate) fn product(&self, other: &Tensor, at: &'static Location<'static>) -> Tensor {
        const NAME: &str = "matmul";
        let refuse = |rule: String| self.refuse(NAME, &[other], rule, at);
        if self.error().or(other.error()).is_some() {
            return refuse(String::new());
        }
        if self.rank() == 0 || other.rank() == 0 {
            return refuse("it takes tensors of at least one axis: multiply by a number with `*`".into());
        }
        if self.device().id() != other.device().id() {
            return refuse("the operands are on different devices: move one with `to`".into());
        }
        let dtype = match promote(self.dtype(), other.dtype()) {
            Some(dtype) if dtype != DType::Bool => dtype,
            _ => return refuse("it is defined for numbers of a common type: cast one".into()),
        };
        let (is_row, is_column) = (self.rank() == 1, other.rank() == 1);
        let left: Shape = match is_row {
            true => smallvec![1, self.shape()[0]],
            false => self.shape().into(),
        };
        let right: Shape = match is_column {
            true => smallvec![other.shape()[0], 1],
            false => other.shape().into(),
        };
        let (&[ref left_front @ .., m, k], &[ref right_front @ .., inner, n]) = (&left[..], &right[..])
        else {
            return refuse("it takes tensors of at least one axis".into());
        };
        if k != inner {
            return refuse(format!(
                "the last extent of the first ({k}) must be the last but one of the second ({inner})"
            ));
        }
        let Some(front) = broadcast(left_front, right_front) else {
            return refuse("the axes in front of the last two must be equal or 1".into());
        };
        if is_row || is_column {
            return crate::place::inside(at, || {
                let ty = crate::order::Reduction::Sum.accumulator(dtype);
                let [a, b] = [self, other].map(|of| of.cast_at(ty, at));
                let both = match is_column {
                    true => (a * b).sum(-1),
                    false => (a.expand_dims(-1) * b).sum(-2),
                };
                both.cast_at(dtype, at)
            });
        }
        // Many matrices times one are one product of all their rows.
        if let (2, [_, ..]) = (right.len(), left_front) {
            let rows = count(&left[..left.len() - 1]);
            let all = self
                .reshaped(&[rows, k], at)
                .product(&other.reshaped(&right, at), at);
            let shape: Shape = left[..left.len() - 1].iter().copied().chain([n]).collect();
            return all.reshaped(&shape, at);
        }
        let of = |a: usize, b: usize| -> Shape { front.iter().copied().chain([a, b]).collect() };
        let left = self
            .cast_at(dtype, at)
            .reshaped(&left, at)
            .expanded(&of(m, k), at);
        let right = other
            .cast_at(dtype, at)
            .reshaped(&right, at)
            .expanded(&of(k, n), at);
        let ty = (of(m, n), dtype);
        Tensor::record(Op::Product, smallvec![left, right], ty, self.device(), at)
    }
}

impl AsRef<Tensor> for Tensor {
    fn as_ref(&self) -> &Tensor {
        self
    }
}
