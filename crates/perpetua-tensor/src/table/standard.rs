//! Rows that bear names of the array API standard or of PyTorch for what has another name here, and parts of tensors assigned as values.

use std::panic::Location;

use super::composed::composed;
use crate::dtype::DType;
use crate::node::Tensor;
use crate::place::here;
use crate::shape::{Shape, broadcast, text};
use crate::view::Slice;

composed! {
    astype(x, dtype: DType) "cast" "As `cast`, with the array API's name." { x.cast(dtype) }
    bitwise_invert(x) "invert" "As `invert`, with the array API's name." { x.invert() }
    bitwise_left_shift(x, y: impl Into<crate::Operand>) "left_shift" "As `left_shift`, with the array API's name." { x.left_shift(y) }
    bitwise_right_shift(x, y: impl Into<crate::Operand>) "right_shift" "As `right_shift`, with the array API's name." { x.right_shift(y) }
    broadcast_arrays(x, others: &[&Tensor]) -> [Vec<Tensor>] "expand" "This and others, repeated to one shape." {
        let at = here(Location::caller());
        let shape = others.iter().try_fold(Shape::from_slice(x.shape()), |shape, other| broadcast(&shape, other.shape()));
        let all = || std::iter::once(x).chain(others.iter().copied());
        match shape {
            Some(shape) if all().all(|of| of.error().is_none()) => all().map(|of| of.expanded(&shape, at)).collect(),
            _ => vec![x.refuse("broadcast_arrays", others, "shapes are aligned at their ends; of two extents one must be 1, or both be equal", at)],
        }
    }
    meshgrid(x, others: &[&Tensor], first_down: bool) -> [Vec<Tensor>] "expand" "The coordinates of a grid, of vectors of them, each in the grid's shape. With `first_down` axis i has the coordinates of vector i (NumPy's `\"ij\"`), else the first two change places (`\"xy\"`)." {
        let at = here(Location::caller());
        let all: Vec<&Tensor> = std::iter::once(x).chain(others.iter().copied()).collect();
        if all.iter().any(|of| of.rank() != 1 || of.error().is_some()) {
            return vec![x.refuse("meshgrid", others, "it takes vectors", at)];
        }
        let axis = |number: usize| match number {
            0 | 1 if !first_down && all.len() > 1 => 1 - number,
            number => number,
        };
        let mut shape: Shape = all.iter().map(|_| 1).collect();
        all.iter().enumerate().for_each(|(number, of)| shape[axis(number)] = of.len());
        let grid = |(number, of): (usize, &&Tensor)| {
            let mut own: Shape = all.iter().map(|_| 1).collect();
            own[axis(number)] = of.len();
            of.reshaped(&own, at).expanded(&shape, at)
        };
        all.iter().enumerate().map(grid).collect()
    }
    assign(x, slices: &[Slice], value: impl Into<crate::Operand>) "where(inside, value between zeros, x)" "A new version, in which a part, as `slice` has it, is a value: its type is this one's, and it is repeated to the part's shape." {
        let at = here(Location::caller());
        let part = x.slice(slices);
        let value = match value.into() {
            crate::Operand::Tensor(value) => value.clone(),
            number => number.like(&part, at),
        };
        if part.error().or(value.error()).is_some() || x.device().id() != value.device().id() {
            return part.refuse("assign", &[&value], "this and the value are on different devices: move one with `to`", at);
        }
        if broadcast(part.shape(), value.shape()).is_none_or(|shape| *shape != *part.shape()) {
            return x.refuse("assign", &[&value], format!("the value cannot be repeated to the part's shape {}", text(part.shape())), at);
        }
        let value = value.cast_at(x.dtype(), at).expanded(part.shape(), at);
        x.with_part(slices, &value, at)
    }
    add_(x, y: impl Into<crate::Operand>) "cast(x + y)" "A new version: the sum in this type and shape. As all names that end in `_`, a value: `let x = x.add_(&y)`." { version("add_", x, x.add(y)) }
    sub_(x, y: impl Into<crate::Operand>) "cast(x - y)" "A new version: the difference in this type and shape." { version("sub_", x, x.subtract(y)) }
    mul_(x, y: impl Into<crate::Operand>) "cast(x * y)" "A new version: the product in this type and shape." { version("mul_", x, x.multiply(y)) }
    div_(x, y: impl Into<crate::Operand>) "cast(x / y)" "A new version: the quotient in this type and shape." { version("div_", x, x.divide(y)) }
    copy_(x, y: &Tensor) "cast(expand(y))" "A new version: another tensor in this type and shape." {
        match x.error().or(y.error()).is_none() && broadcast(x.shape(), y.shape()).is_some_and(|shape| *shape == *x.shape()) {
            true => version("copy_", x, y.expand(x.shape())),
            false => x.refuse("copy_", &[y], "it cannot be repeated to the first one's shape", here(Location::caller())),
        }
    }
    fill_(x, value: f64) "full" "A new version: a value everywhere." { x.full_like(value) }
    zero_(x) "zeros" "A new version: zeros." { x.zeros_like() }
}

fn version(name: &'static str, x: &Tensor, found: Tensor) -> Tensor {
    match found.error().is_some() || found.shape() == x.shape() {
        true => found.cast(x.dtype()),
        false => {
            let rule = format!(
                "it would have the shape {}: use the operator without `_`",
                text(found.shape())
            );
            x.refuse(name, &[], rule, here(Location::caller()))
        }
    }
}
