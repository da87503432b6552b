//! Reductions over axes of tensors that lie in any way.

use half::{bf16, f16};
use libtest_mimic::Failed;
use perpetua_device::args;
use perpetua_kernels::{Kernel, ReduceKernel};

use crate::harness::{Case, Stored, compare};
use crate::rows::with_a_type;

pub(crate) fn reduce(case: &mut Case) -> Result<(), Failed> {
    with_a_type!(case, reduce_of)
}

fn reduce_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    case.aligned = case.chance(2);
    let rank = case.below(5);
    let large = case.chance(3);
    let mut shape: Vec<usize> = (0..rank).map(|_| case.one_of(&[1, 2, 3, 4, 8, 16, 0])).collect();
    if rank > 0 && large {
        // Several slices, and rows that are read 16 bytes at a time.
        shape.iter_mut().for_each(|size| *size = (*size).clamp(1, 3));
        let at = case.below(rank);
        shape[at] = case.one_of(&[1000, 4096, 30_001, 66_000]);
    }
    let axes: Vec<usize> = (0..rank).filter(|_| case.chance(2)).collect();
    // Axes in any order, with gaps, the innermost ones first.
    let mut order: Vec<usize> = (0..rank).rev().collect();
    if case.chance(2) {
        for i in (1..rank).rev() {
            order.swap(i, case.below(i + 1));
        }
    }
    let gap = case.one_of(&[0, 0, 1, 8]);
    let mut strides = vec![0; rank];
    let mut step = 1;
    for axis in order {
        strides[axis] = step;
        step = step * shape[axis].max(1) + gap;
    }
    // One that is read again and again.
    if rank > 0 && case.chance(6) {
        let at = case.below(rank);
        strides[at] = 0;
    }
    let is_empty = shape.contains(&0);
    let extent = match is_empty {
        true => 0,
        false => {
            1 + shape
                .iter()
                .zip(&strides)
                .map(|(size, step)| (size - 1) * step)
                .sum::<usize>()
        }
    };
    let which = case.below(5);
    // Products of numbers near one.
    let (size, offset) = if which == 4 { (0.01, 1.0) } else { (2.0, 0.0) };
    let x: Vec<f32> = case
        .numbers(extent, size)
        .into_iter()
        .map(|x| T::of(x + offset).number())
        .collect();
    let kept: Vec<usize> = (0..rank).filter(|axis| !axes.contains(axis)).collect();
    let results: usize = kept.iter().map(|axis| shape[*axis]).product();
    let count: usize = axes.iter().map(|axis| shape[*axis]).product();
    let kernel = match which {
        0 => ReduceKernel::sum(&shape, &axes),
        1 => ReduceKernel::mean(&shape, &axes),
        2 => ReduceKernel::max(&shape, &axes),
        3 => ReduceKernel::min(&shape, &axes),
        _ => ReduceKernel::product(&shape, &axes),
    };
    let kernel = kernel.with_strides(&strides).with_element(T::ELEMENT);
    let x_buffer = case.matrix::<T>([1, extent, extent], &x)?;
    let y = case.matrix::<T>([1, results, results], &vec![7.0; results])?;
    kernel.launch(&case.device.default_stream(), args![&x_buffer.part, &y.part])?;

    let place = |axes: &[usize], mut index: usize| {
        let mut at = 0;
        for axis in axes.iter().rev() {
            at += index % shape[*axis] * strides[*axis];
            index /= shape[*axis];
        }
        at
    };
    let expected: Vec<(f64, f64)> = (0..results)
        .map(|result| {
            let from = place(&kept, result);
            let all = (0..count).map(|i| f64::from(x[from + place(&axes, i)]));
            let size: f64 = all.clone().map(f64::abs).sum();
            let error = (count as f64 / 1024.0 + 64.0) * 6e-8;
            let first = |a: f64, b: f64, is: bool| if a.is_nan() || !is && !b.is_nan() { a } else { b };
            match which {
                0 => (all.sum(), size * error),
                1 => (all.sum::<f64>() / count as f64, size / count as f64 * error),
                2 => (all.fold(f64::NEG_INFINITY, |a, b| first(a, b, b > a)), 0.0),
                3 => (all.fold(f64::INFINITY, |a, b| first(a, b, b < a)), 0.0),
                _ => {
                    let product: f64 = all.product();
                    (product, product.abs() * (count as f64 + 1.0) * 6e-8 + 1e-37)
                }
            }
        })
        .collect();
    compare::<T>(&format!("{kernel:?}"), &y.read()?, &expected)
}
