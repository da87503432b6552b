//! Rows of operators on windows that go over the last axes, and of pictures.

use std::panic::Location;

use super::composed::composed;
use crate::node::Tensor;
use crate::place::here;
use crate::shape::Axes;
use crate::window::{Combine, Each, Window};

composed! {
    unfold(x, axis: isize, size: usize, step: usize) "tile, reshape, slice, permute" "Windows of a size along an axis, `step` apart, whose elements are a new last axis." {
        let windows = Axes::from(axis).of(x.rank()).and_then(|axes| x.windows(axes[0], size, step, 1));
        windows.unwrap_or_else(|rule| refuse(x, "unfold", &[], rule))
    }
    conv1d(x, weight: &Tensor, window: &Window) "matmul(weight, windows of x)" "Convolution (without turning the weights round) over the last axis: `[examples, channels, n]` with `[channels out, channels of a group, size]`." {
        x.convolved(weight, window, 1, here(Location::caller())).unwrap_or_else(|rule| refuse(x, "conv1d", &[weight], rule))
    }
    conv2d(x, weight: &Tensor, window: &Window) "matmul(weight, windows of x)" "The same over the last two axes." {
        x.convolved(weight, window, 2, here(Location::caller())).unwrap_or_else(|rule| refuse(x, "conv2d", &[weight], rule))
    }
    conv3d(x, weight: &Tensor, window: &Window) "matmul(weight, windows of x)" "The same over the last three axes." {
        x.convolved(weight, window, 3, here(Location::caller())).unwrap_or_else(|rule| refuse(x, "conv3d", &[weight], rule))
    }
    conv_transpose1d(x, weight: &Tensor, window: &Window) "conv1d(x with zeros between its elements, weight turned round)" "The transposed convolution: `[examples, channels, n]` with `[channels, channels out of a group, size]`." {
        x.convolved_back(weight, window, 1, here(Location::caller())).unwrap_or_else(|rule| refuse(x, "conv_transpose1d", &[weight], rule))
    }
    conv_transpose2d(x, weight: &Tensor, window: &Window) "conv2d(x with zeros between its elements, weight turned round)" "The same over the last two axes." {
        x.convolved_back(weight, window, 2, here(Location::caller())).unwrap_or_else(|rule| refuse(x, "conv_transpose2d", &[weight], rule))
    }
    max_pool1d(x, size: impl Into<Each>, window: &Window) "max(windows of x)" "The largest of each window over the last axis." {
        x.pooled(Combine::Max, &size.into(), window, 1).unwrap_or_else(|rule| refuse(x, "max_pool1d", &[], rule))
    }
    max_pool2d(x, size: impl Into<Each>, window: &Window) "max(windows of x)" "The largest of each window over the last two axes." {
        x.pooled(Combine::Max, &size.into(), window, 2).unwrap_or_else(|rule| refuse(x, "max_pool2d", &[], rule))
    }
    avg_pool1d(x, size: impl Into<Each>, window: &Window) "mean(windows of x)" "The mean of each window over the last axis; zeros around the tensor count." {
        x.pooled(Combine::Mean, &size.into(), window, 1).unwrap_or_else(|rule| refuse(x, "avg_pool1d", &[], rule))
    }
    avg_pool2d(x, size: impl Into<Each>, window: &Window) "mean(windows of x)" "The mean of each window over the last two axes; zeros around the tensor count." {
        x.pooled(Combine::Mean, &size.into(), window, 2).unwrap_or_else(|rule| refuse(x, "avg_pool2d", &[], rule))
    }
    interpolate_nearest(x, sizes: &[usize]) "index_select(axis, floor(i n / m))" "The last axes, as many as there are sizes, in other sizes: of each place the element that it lies in." {
        resized(x, "interpolate_nearest", sizes, |x, axis, n, m| {
            let places = Tensor::coordinates([m], 0, x.device()) * n as i64;
            x.index_select(axis, &places.divide_toward_zero(m as i64))
        })
    }
    interpolate_linear(x, sizes: &[usize]) "lerp(x[floor(p)], x[floor(p) + 1]), p = (i + 1/2) n / m - 1/2" "The last axes, as many as there are sizes, in other sizes: between the two nearest along each axis (bilinear for two)." {
        resized(&x.real(here(Location::caller())), "interpolate_linear", sizes, |x, axis, n, m| {
            let place = ((Tensor::coordinates([m], 0, x.device()) + 0.5) * (n as f64 / m as f64) - 0.5).maximum(0.0);
            let below = place.floor();
            let weight = (&place - &below).cast(x.dtype());
            let below = below.cast(crate::DType::I32);
            let above = (&below + 1).minimum(n as i64 - 1);
            let mut shape = vec![1; x.rank()];
            shape[axis as usize] = m as isize;
            let weight = weight.reshape(shape);
            let (low, high) = (x.index_select(axis, &below), x.index_select(axis, &above));
            &low + (high - &low) * weight
        })
    }
}

fn refuse(x: &Tensor, name: &'static str, others: &[&Tensor], rule: String) -> Tensor {
    let failed = std::iter::once(x)
        .chain(others.iter().copied())
        .find(|operand| operand.error().is_some());
    match failed {
        Some(failed) => failed.clone(),
        None => x.refuse(name, others, rule, here(Location::caller())),
    }
}

fn resized(
    x: &Tensor,
    name: &'static str,
    sizes: &[usize],
    along: impl Fn(&Tensor, isize, usize, usize) -> Tensor,
) -> Tensor {
    let Some(first) = x.rank().checked_sub(sizes.len()) else {
        return refuse(
            x,
            name,
            &[],
            format!("{} sizes for {} axes", sizes.len(), x.rank()),
        );
    };
    if x.shape()[first..].contains(&0) {
        return refuse(
            x,
            name,
            &[],
            "an axis without elements has none between them".into(),
        );
    }
    let pairs = x.shape()[first..].iter().zip(sizes);
    if let Some((n, m)) = pairs
        .into_iter()
        .find(|(n, m)| n.saturating_mul(**m) > i32::MAX as usize)
    {
        let rule = format!(
            "{n} elements at {m} places: their product is at most {}",
            i32::MAX
        );
        return refuse(x, name, &[], rule);
    }
    (first..)
        .zip(sizes)
        .fold(x.clone(), |x, (axis, size)| match x.shape()[axis] {
            n if n == *size => x,
            n => along(&x, axis as isize, n, *size),
        })
}
