//! Rows of operators whose shape depends on values: they compute their operand now, and wait for one number.

use std::panic::Location;

use super::composed::composed;
use crate::dtype::DType;
use crate::error::Result;
use crate::node::Tensor;
use crate::place::here;

composed! {
    flatnonzero(x) -> [Result<Tensor>] "searchsorted(cumsum(x != 0), 1..=count)" "The indices of the elements that are not zero, of all elements in a row, as `i32`." {
        let at = here(Location::caller());
        x.check()?;
        let is_there = x.cast(DType::Bool).reshaped(&[x.len()], at).cast(DType::I32);
        if x.is_empty() {
            return Ok(is_there);
        }
        if x.len() >= 1 << 30 {
            x.refuse("flatnonzero", &[], "at most 2^30 elements are numbered: work in parts", at).check()?;
        }
        let count = is_there.cumsum(0);
        let total = count.part_of(0, -1..).to_vec::<i32>()?;
        let found = total.first().copied().unwrap_or(0) as usize;
        Ok(count.searchsorted(&(Tensor::coordinates([found], 0, x.device()) + 1), false))
    }
    nonzero(x) -> [Result<Vec<Tensor>>] "flatnonzero, divided by the extents" "The indices of the elements that are not zero, a vector of `i32` an axis." {
        let mut left = x.flatnonzero()?;
        let mut along = Vec::new();
        for extent in x.shape().iter().rev() {
            let n = (*extent).max(1) as i64;
            along.push(left.remainder(n));
            left = left.divide_toward_zero(n);
        }
        along.reverse();
        Ok(along)
    }
    masked_select(x, mask: &Tensor) -> [Result<Tensor>] "gather(flatnonzero(mask))" "The elements where a mask of the same shape is true, in a row." {
        let at = here(Location::caller());
        if x.shape() != mask.shape() || mask.dtype() != DType::Bool {
            x.refuse("masked_select", &[mask], "the mask is bool, of the same shape", at).check()?;
        }
        let places = mask.flatnonzero()?;
        Ok(x.reshaped(&[x.len()], at).gather(0, &places))
    }
    unique(x) -> [Result<Unique>] "sort, flatnonzero(x[i] != x[i - 1])" "The elements that are there, each once, in order, with the first index of each, the place of each element among them, and how often it is there. Each NaN is its own." {
        let at = here(Location::caller());
        x.check()?;
        let flat = x.reshaped(&[x.len()], at);
        let order = flat.argsort(0, false);
        let sorted = flat.gather(0, &order);
        if x.is_empty() {
            return Ok(Unique { values: sorted, indices: order.clone(), inverse: order.reshaped(x.shape(), at), counts: order });
        }
        let before = Tensor::coordinates([x.len()], 0, x.device()).equal(0);
        let is_first = before.logical_or(sorted.not_equal(sorted.roll(1, 0)));
        let begins = is_first.flatnonzero()?;
        let all = Tensor::full([1], x.len() as i64, DType::I32, x.device());
        let ends = begins.part_of(0, 1..).concat(&[&all], 0);
        let places = is_first.cast(DType::I32).cumsum(0) - 1;
        Ok(Unique {
            values: sorted.gather(0, &begins),
            indices: order.gather(0, &begins),
            inverse: places.scatter(0, &order, &places).reshaped(x.shape(), at),
            counts: ends - begins,
        })
    }
    unique_all(x) -> [Result<Unique>] "unique" "As `unique`, with the array API's name." { x.unique() }
    unique_values(x) -> [Result<Tensor>] "unique" "The values of `unique`." { x.unique().map(|found| found.values) }
    unique_counts(x) -> [Result<(Tensor, Tensor)>] "unique" "The values of `unique`, and how often each is there." { x.unique().map(|found| (found.values, found.counts)) }
    unique_inverse(x) -> [Result<(Tensor, Tensor)>] "unique" "The values of `unique`, and the place of each element among them." { x.unique().map(|found| (found.values, found.inverse)) }
}

/// What [`Tensor::unique`] finds. Indices and counts are `i32`.
#[derive(Clone, Debug)]
pub struct Unique {
    /// The elements, in order.
    pub values: Tensor,
    /// Where each is for the first time, among all elements in a row.
    pub indices: Tensor,
    /// Of each element of the operand, its place among the values.
    pub inverse: Tensor,
    /// How often each is there.
    pub counts: Tensor,
}
