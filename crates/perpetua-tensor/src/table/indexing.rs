//! Rows of operators about places: which element is where.

use std::panic::Location;

use super::composed::composed;
use crate::dtype::DType;
use crate::node::Tensor;
use crate::order::Reduction;
use crate::place::here;
use crate::shape::Axes;

composed! {
    one_hot(x, classes: usize) "x[.., None] == coordinates" "For each integer a row of bool, true at its place; nowhere if it is not among the places." {
        if x.dtype().is_float() || x.dtype() == DType::Bool {
            return x.refuse("one_hot", &[], "places are integers: cast it", here(Location::caller()));
        }
        let places = Tensor::coordinates([classes], 0, x.device());
        x.expand_dims(-1).equal(places.cast(x.dtype()))
    }
    index_select(x, axis: isize, index: &Tensor) "gather(axis, index)" "Whole parts by a vector of their indices along an axis." {
        match along(x, "index_select", axis, index) {
            Ok(index) => x.gather(axis, &index),
            Err(failed) => failed,
        }
    }
    take(x, index: &Tensor, axis: isize) "index_select(axis, index)" "Whole parts by a vector of their indices along an axis, with the array API's name and order." { x.index_select(axis, index) }
    take_along_axis(x, index: &Tensor, axis: isize) "gather(axis, index)" "Elements by their index along an axis, with the array API's name and order." { x.gather(axis, index) }
    isin(x, values: &Tensor) "any(x[.., None] == values)" "Whether an element is among the values of a vector." { x.expand_dims(-1).equal(values.flatten()).any(-1) }
    embedding(x, index: &Tensor) "index_select(0, index)" "Rows by their index, of whatever shape: the result has the index' axes, then the rows'." {
        let rows = x.index_select(0, &index.reshape([-1]));
        let shape: Vec<isize> = index.shape().iter().chain(x.shape().iter().skip(1)).map(|n| *n as isize).collect();
        rows.reshape(shape)
    }
    scatter(x, axis: isize, index: &Tensor, updates: &Tensor) "x, with updates at index" "The same with other elements at an index along an axis, as in NumPy's `put_along_axis`; of several for one place the last." {
        x.scattered("scatter", None, (axis, index, updates), here(Location::caller()))
    }
    scatter_add(x, axis: isize, index: &Tensor, updates: &Tensor) "x + sum of updates at index" "The same with elements added at an index along an axis; several for one place are added up in their order." {
        x.scattered("scatter_add", Some(Reduction::Sum), (axis, index, updates), here(Location::caller()))
    }
    scatter_max(x, axis: isize, index: &Tensor, updates: &Tensor) "maximum(x, max of updates at index)" "The larger of each element and of the updates at its index along an axis." {
        x.scattered("scatter_max", Some(Reduction::Max), (axis, index, updates), here(Location::caller()))
    }
    scatter_min(x, axis: isize, index: &Tensor, updates: &Tensor) "minimum(x, min of updates at index)" "The smaller of each element and of the updates at its index along an axis." {
        x.scattered("scatter_min", Some(Reduction::Min), (axis, index, updates), here(Location::caller()))
    }
    scatter_mul(x, axis: isize, index: &Tensor, updates: &Tensor) "x * product of updates at index" "The same with elements multiplied at an index along an axis, several for one place in their order. Of the updates there is no gradient." {
        x.scattered("scatter_mul", Some(Reduction::Product), (axis, index, updates), here(Location::caller()))
    }
    bincount(x, bins: usize) "scatter_add of ones" "How often each integer from 0 to `bins` is there, as `i32`; one that is not among them is an error." {
        if let Some(found) = x.count_on_host(bins) {
            return found;
        }
        let one = Tensor::full([1], 1, DType::I32, x.device());
        Tensor::zeros([bins], DType::I32, x.device()).scatter_add(0, &x.flatten(), &one)
    }
    index_add(x, axis: isize, index: &Tensor, updates: &Tensor) "scatter_add(axis, index, updates)" "The same with whole parts added at a vector of indices along an axis." {
        match along(x, "index_add", axis, index) {
            Ok(index) => x.scatter_add(axis, &index, updates),
            Err(failed) => failed,
        }
    }
    masked_fill(x, mask: &Tensor, value: f64) "where(mask, value, x)" "A value where a mask is true." { mask.select(value, x) }
    argsort(x, axis: isize, descending: bool) "a bitonic network over (x, coordinates)" "The index along an axis of what comes first, second and so on, as `i32`. Equal elements stay in their order; NaN is last." {
        let at = here(Location::caller());
        let axis = match Axes::from(axis).of(x.rank()) {
            Ok(axes) => axes[0],
            Err(rule) => return x.refuse("argsort", &[], rule, at),
        };
        match x.shape()[axis] {
            n if n > 1 << 30 => x.refuse("argsort", &[], "at most 2^30 elements can be sorted", at),
            _ if x.is_empty() => Tensor::zeros(x.shape(), DType::I32, x.device()),
            _ => x.order_of(axis, descending),
        }
    }
    sort(x, axis: isize, descending: bool) "gather(axis, argsort(x, axis, descending))" "In order along an axis; NaN is last." {
        x.gather(axis, &x.argsort(axis, descending))
    }
    topk(x, k: usize, axis: isize) -> [(Tensor, Tensor)] "i = argsort(x, axis, true)[..k]; gather(axis, i), i" "The k largest along an axis, in order, and their indices." {
        let order = x.argsort(axis, true);
        let axis = match Axes::from(axis).of(x.rank()) {
            Ok(axes) if order.error().is_none() && k <= x.shape()[axes[0]] => axes[0],
            _ => {
                let failed = x.refuse("topk", &[&order], format!("there are not {k} along axis {axis}"), here(Location::caller()));
                return (failed.clone(), failed);
            }
        };
        let mut part = vec![crate::Slice::from(..); axis];
        part.push(crate::Slice::from(..k as isize));
        let index = order.slice(part);
        (x.gather(axis as isize, &index), index)
    }
    searchsorted(x, values: &Tensor, right: bool) "halving, by gather" "How many elements of a sorted vector come before each value, as `i32`: those that are less, or with `right` also those that are equal." {
        let at = here(Location::caller());
        if x.error().or(values.error()).is_some() || x.rank() != 1 || x.dtype() != values.dtype() {
            return x.refuse("searchsorted", &[values], "it takes a vector and values of its type", at);
        }
        match i32::try_from(x.len()) {
            Ok(n) if n < 1 << 30 => crate::sort::places_in(x, values, right),
            _ => x.refuse("searchsorted", &[values], "it searches in at most 2^30 elements", at),
        }
    }
}

// An index of whole parts in as many axes as they have.
fn along(x: &Tensor, name: &'static str, axis: isize, index: &Tensor) -> Result<Tensor, Tensor> {
    let at = here(Location::caller());
    match Axes::from(axis).of(x.rank()) {
        Ok(_) if x.error().or(index.error()).is_some() || index.rank() != 1 => {
            Err(x.refuse(name, &[index], "the index is a vector", at))
        }
        Ok(axes) => {
            let mut shape = vec![1; x.rank()];
            shape[axes[0]] = index.len();
            Ok(index.reshaped(&shape, at))
        }
        Err(rule) => Err(x.refuse(name, &[index], rule, at)),
    }
}
