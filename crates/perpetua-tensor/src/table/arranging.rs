//! Rows of operators that put elements beside each other, apart, or elsewhere.

use std::panic::Location;

use super::composed::composed;
use crate::dtype::promote;
use crate::node::Tensor;
use crate::place::here;
use crate::shape::{Axes, Shape};
use crate::view::Slice;

composed! {
    concat(x, others: &[&Tensor], axis: isize) "where(coordinates < n, pad(x), pad(y))" "This and others, one behind the other along an axis." {
        let at = here(Location::caller());
        let refuse = |rule: String| x.refuse("concat", others, rule, at);
        if x.error().is_some() || others.iter().any(|other| other.error().is_some()) {
            return refuse(String::new());
        }
        let axis = match Axes::from(axis).of(x.rank()) {
            Ok(axes) => axes[0],
            Err(rule) => return refuse(rule),
        };
        let mut shape: Shape = x.shape().into();
        let mut dtype = x.dtype();
        for other in others {
            let fits = other.rank() == x.rank() && (0..x.rank()).all(|own| own == axis || other.shape()[own] == shape[own]);
            if !fits {
                return refuse(format!("but for axis {axis} all must have the same shape"));
            }
            dtype = match promote(dtype, other.dtype()) {
                Some(dtype) => dtype,
                None => return refuse("no integer type holds all values: cast one".into()),
            };
            shape[axis] = shape[axis].saturating_add(other.shape()[axis]);
        }
        let mut end = 0;
        let mut joined: Option<Tensor> = None;
        for part in std::iter::once(&x).chain(others) {
            let mut starts: Shape = shape.iter().map(|_| 0).collect();
            let steps: Shape = shape.iter().map(|_| 1).collect();
            starts[axis] = end;
            end += part.shape()[axis];
            let spread = part.cast(dtype).padded(starts, steps, &shape, 0, at);
            joined = Some(match joined {
                None => spread,
                Some(before) => {
                    let begin = (end - part.shape()[axis]) as i64;
                    Tensor::coordinates(&shape, axis, x.device()).less(begin).select(before, spread)
                }
            });
        }
        joined.unwrap_or_else(|| x.clone())
    }
    stack(x, others: &[&Tensor], axis: isize) "concat(expand_dims(x), expand_dims(y))" "This and others of the same shape along a new axis." {
        let others: Vec<Tensor> = others.iter().map(|other| other.expand_dims(axis)).collect();
        x.expand_dims(axis).concat(&others.iter().collect::<Vec<_>>(), axis)
    }
    split(x, sizes: &[usize], axis: isize) -> [Vec<Tensor>] "slice" "Parts of these sizes along an axis, which they fill." {
        let at = here(Location::caller());
        let axis = match Axes::from(axis).of(x.rank()) {
            Ok(axes) => axes[0],
            Err(rule) => return vec![x.refuse("split", &[], rule, at); sizes.len().max(1)],
        };
        if sizes.iter().try_fold(0usize, |sum, n| sum.checked_add(*n)) != Some(x.shape()[axis]) {
            let rule = format!("the sizes {sizes:?} do not add up to the {} elements along axis {axis}", x.shape()[axis]);
            return vec![x.refuse("split", &[], rule, at); sizes.len().max(1)];
        }
        let mut begin = 0;
        let part = |n: &usize| {
            let mut slices = vec![Slice::from(..); axis];
            slices.push(Slice::from(begin..begin + *n as isize));
            begin += *n as isize;
            x.slice(slices)
        };
        sizes.iter().map(part).collect()
    }
    roll(x, by: isize, axis: isize) "concat(x[n - by..], x[..n - by])" "Moved along an axis; what goes over the end comes in at the beginning." {
        match Axes::from(axis).of(x.rank()) {
            Ok(axes) if x.shape()[axes[0]] > 0 => {
                let n = x.shape()[axes[0]];
                let by = by.rem_euclid(n as isize) as usize;
                match &x.split(&[n - by, by], axis)[..] {
                    [first, second] => second.concat(&[first], axis),
                    _ => x.clone(),
                }
            }
            Ok(_) => x.clone(),
            Err(rule) => x.refuse("roll", &[], rule, here(Location::caller())),
        }
    }
    tile(x, times: usize, axis: isize) "expand, reshape" "Repeated as a whole along an axis." {
        let at = here(Location::caller());
        match Axes::from(axis).of(x.rank()) {
            Ok(axes) => {
                let mut shape: Shape = x.shape().into();
                shape.insert(axes[0], times);
                let all = x.expand_dims(axes[0] as isize).expanded(&shape, at);
                shape.remove(axes[0]);
                shape[axes[0]] = shape[axes[0]].saturating_mul(times);
                all.reshaped(&shape, at)
            }
            Err(rule) => x.refuse("tile", &[], rule, at),
        }
    }
    tril(x, diagonal: i64) "where(column <= row + diagonal, x, 0)" "The lower triangle of the last two axes, up to a diagonal; 0 elsewhere." {
        triangle(x, "tril", |distance| distance.less_equal(diagonal))
    }
    triu(x, diagonal: i64) "where(column >= row + diagonal, x, 0)" "The upper triangle of the last two axes, from a diagonal on; 0 elsewhere." {
        triangle(x, "triu", |distance| distance.greater_equal(diagonal))
    }
    diff(x, axis: isize) "x[1..] - x[..-1]" "Differences of neighbours along an axis." {
        match Axes::from(axis).of(x.rank()) {
            Ok(axes) => {
                let part = |slice: Slice| {
                    let mut slices = vec![Slice::from(..); axes[0]];
                    slices.push(slice);
                    x.slice(slices)
                };
                part(Slice::from(1..)) - part(Slice::from(..-1))
            }
            Err(rule) => x.refuse("diff", &[], rule, here(Location::caller())),
        }
    }
    einsum(x, others: &[&Tensor], subscripts: &str) "matmul in the order of the smallest results" "Sums of products by letters, as in NumPy: `\"ij,jk->ik\"` is the matrix product." {
        let at = here(Location::caller());
        let all: Vec<&Tensor> = std::iter::once(x).chain(others.iter().copied()).collect();
        match all.iter().find(|operand| operand.error().is_some()) {
            Some(failed) => (*failed).clone(),
            None => match crate::einsum::einsum(subscripts, &all, at) {
                Ok(sum) => sum,
                Err(rule) => x.refuse("einsum", others, rule, at),
            },
        }
    }
}

fn triangle(x: &Tensor, name: &'static str, holds: impl FnOnce(Tensor) -> Tensor) -> Tensor {
    let rank = x.rank();
    if rank < 2 {
        return x.refuse(name, &[], "it takes at least two axes", here(Location::caller()));
    }
    let [row, column] = [rank - 2, rank - 1].map(|axis| Tensor::coordinates(x.shape(), axis, x.device()));
    holds(column - row).select(x, 0).cast(x.dtype())
}
