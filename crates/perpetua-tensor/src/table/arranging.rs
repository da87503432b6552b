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
    repeat(x, times: usize, axis: isize) "expand, reshape" "Each element so many times along an axis." {
        let at = here(Location::caller());
        match Axes::from(axis).of(x.rank()) {
            Ok(axes) => {
                let mut shape: Shape = x.shape().into();
                shape.insert(axes[0] + 1, times);
                let all = x.expand_dims(axes[0] as isize + 1).expanded(&shape, at);
                shape.remove(axes[0] + 1);
                shape[axes[0]] = shape[axes[0]].saturating_mul(times);
                all.reshaped(&shape, at)
            }
            Err(rule) => x.refuse("repeat", &[], rule, at),
        }
    }
    moveaxis(x, from: isize, to: isize) "permute" "An axis in another place; the others keep their order." {
        let found = Axes::from(from).of(x.rank()).and_then(|from| Ok((from[0], Axes::from(to).of(x.rank())?[0])));
        match found {
            Ok((from, to)) => {
                let mut order: smallvec::SmallVec<[usize; 4]> = (0..x.rank()).filter(|axis| *axis != from).collect();
                order.insert(to, from);
                x.permuted(order, here(Location::caller()))
            }
            Err(rule) => x.refuse("moveaxis", &[], rule, here(Location::caller())),
        }
    }
    swapaxes(x, a: isize, b: isize) "permute" "Two axes exchanged." {
        let found = Axes::from(a).of(x.rank()).and_then(|a| Ok((a[0], Axes::from(b).of(x.rank())?[0])));
        match found {
            Ok((a, b)) => {
                let mut order: smallvec::SmallVec<[usize; 4]> = (0..x.rank()).collect();
                order.swap(a, b);
                x.permuted(order, here(Location::caller()))
            }
            Err(rule) => x.refuse("swapaxes", &[], rule, here(Location::caller())),
        }
    }
    permute_dims(x, axes: impl Into<Axes>) "permute" "As `permute`, with the array API's name." { x.permute(axes) }
    matrix_transpose(x) "transpose" "As `transpose`, with the array API's name." { x.transpose() }
    broadcast_to(x, shape: &[usize]) "expand" "As `expand`, with the array API's name." { x.expand(shape) }
    rot90(x, times: isize) "flip, transpose" "The last two axes turned by so many quarters, from the first towards the second." {
        if x.rank() < 2 {
            return x.refuse("rot90", &[], "it takes at least two axes", here(Location::caller()));
        }
        match times.rem_euclid(4) {
            0 => x.clone(),
            1 => x.flip(-1).transpose(),
            2 => x.flip([-2, -1]),
            _ => x.transpose().flip(-1),
        }
    }
    zeros_like(x) "zeros" "Zeros of the same shape, type and device." { Tensor::zeros(x.shape(), x.dtype(), x.device()) }
    ones_like(x) "ones" "Ones of the same shape, type and device." { Tensor::ones(x.shape(), x.dtype(), x.device()) }
    full_like(x, value: f64) "full" "A value in the same shape and type, on the same device." { Tensor::full(x.shape(), value, x.dtype(), x.device()) }
    flatten(x) "reshape" "All elements along one axis." { x.reshape([-1]) }
    unstack(x, axis: isize) -> [Vec<Tensor>] "slice, squeeze" "The parts along an axis, without it." {
        match Axes::from(axis).of(x.rank()) {
            Ok(axes) => {
                let part = |i: usize| x.part_of(axes[0], i as isize).squeeze(axes[0] as isize);
                (0..x.shape()[axes[0]]).map(part).collect()
            }
            Err(rule) => vec![x.refuse("unstack", &[], rule, here(Location::caller()))],
        }
    }
    diagonal(x, offset: i64) "sum(where(column == row + offset, x, 0))" "The diagonal of the last two axes, or one beside it, as a last axis." {
        let at = here(Location::caller());
        let &[.., rows, columns] = x.shape() else {
            return x.refuse("diagonal", &[], "it takes at least two axes", at);
        };
        let (down, right) = (offset.min(0).unsigned_abs() as usize, offset.max(0) as usize);
        let n = rows.saturating_sub(down).min(columns.saturating_sub(right));
        let axis = x.rank() - 2;
        let square = x.part_of(axis, down as isize..(down + n) as isize).part_of(axis + 1, right as isize..(right + n) as isize);
        // Row after row with one element more than it has: what is on the diagonal is then below itself.
        let mut shape: Shape = x.shape()[..axis].into();
        let mut widths = vec![(0, 0); x.rank() - 1];
        widths[axis] = (0, n);
        shape.push(n * n);
        let long = square.reshaped(&shape, at).pad(widths, 0.0);
        shape[axis] = n;
        shape.push(n + 1);
        let firsts = long.reshaped(&shape, at).part_of(axis + 1, ..1);
        shape.pop();
        firsts.reshaped(&shape, at)
    }
    trace(x) "sum(diagonal(x))" "The sum of the diagonal of the last two axes." { x.diagonal(0).sum(-1) }
    outer(x, y: &Tensor) "x[:, None] y" "All products of the elements of two vectors." {
        match (x.rank(), y.rank()) {
            (1, 1) => x.expand_dims(1) * y,
            _ => x.refuse("outer", &[y], "it takes two vectors", here(Location::caller())),
        }
    }
    cross(x, y: &Tensor) "roll(x, -1) roll(y, 1) - roll(x, 1) roll(y, -1)" "The cross product of vectors of three elements along the last axis." {
        match (x.shape().last(), y.shape().last()) {
            (Some(3), Some(3)) => x.roll(-1, -1) * y.roll(1, -1) - x.roll(1, -1) * y.roll(-1, -1),
            _ => x.refuse("cross", &[y], "the last axes must have three elements", here(Location::caller())),
        }
    }
    matrix_power(x, n: u32) "x x .. x" "The power of the square matrices of the last two axes; 0 gives the identity." {
        let at = here(Location::caller());
        let &[.., rows, columns] = x.shape() else {
            return x.refuse("matrix_power", &[], "it takes at least two axes", at);
        };
        if rows != columns {
            return x.refuse("matrix_power", &[], "the last two extents must be equal", at);
        }
        let identity = Tensor::eye(rows, rows, x.dtype(), x.device()).expanded(x.shape(), at);
        let (mut power, mut square, mut left) = (None, x.clone(), n);
        while left > 0 {
            if left & 1 == 1 {
                power = Some(power.map_or(square.clone(), |power: Tensor| power.matmul(&square)));
            }
            left >>= 1;
            if left > 0 {
                square = square.matmul(&square);
            }
        }
        power.unwrap_or(identity)
    }
    tensordot(x, y: &Tensor, axes: usize) "matmul of reshaped" "Sums of products over the last axes of the first and the first of the second." {
        let at = here(Location::caller());
        let split = x.rank().checked_sub(axes).filter(|split| axes <= y.rank() && x.shape()[*split..] == y.shape()[..axes]);
        let Some(split) = split else {
            return x.refuse("tensordot", &[y], format!("the last {axes} extents of the first must be the first of the second"), at);
        };
        let shape: Shape = x.shape()[..split].iter().chain(&y.shape()[axes..]).copied().collect();
        let inner: usize = y.shape()[..axes].iter().product();
        let side = |of: &[usize]| of.iter().product::<usize>();
        let (rows, columns) = (side(&x.shape()[..split]), side(&y.shape()[axes..]));
        x.reshaped(&[rows, inner], at).product(&y.reshaped(&[inner, columns], at), at).reshaped(&shape, at)
    }
    glu(x, axis: isize) "a sigmoid(b), x = concat(a, b)" "The first half along an axis times the logistic function of the second." {
        match Axes::from(axis).of(x.rank()) {
            Ok(axes) if x.shape()[axes[0]].is_multiple_of(2) => {
                let half = (x.shape()[axes[0]] / 2) as isize;
                x.part_of(axes[0], ..half) * x.part_of(axes[0], half..).sigmoid()
            }
            Ok(_) => x.refuse("glu", &[], "the axis must divide into two halves", here(Location::caller())),
            Err(rule) => x.refuse("glu", &[], rule, here(Location::caller())),
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
