//! Products of different sizes in one launch.

use half::{bf16, f16};
use libtest_mimic::Failed;
use perpetua_device::args;
use perpetua_ir::back::Capability;
use perpetua_kernels::{GroupedGemmKernel, Kernel, reference};

use crate::harness::{Case, Stored, compare, in_f64};

pub(crate) fn grouped(case: &mut Case) -> Result<(), Failed> {
    if !case.device.info().capabilities.contains(&Capability::Matrices) {
        return Ok(());
    }
    case.aligned = case.chance(2);
    match case.chance(2) {
        true => grouped_of::<f16>(case),
        false => grouped_of::<bf16>(case),
    }
}

fn grouped_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    let unit = if case.aligned { 8 } else { 1 };
    let [n, k] = [(); 2].map(|()| case.one_of(&[0, 1, 8, 33, 100, 131usize]).next_multiple_of(unit));
    let groups = case.below(6);
    let sizes: Vec<usize> = (0..groups)
        .map(|_| case.one_of(&[0, 0, 1, 9, 127, 128, 130]))
        .collect();
    // Rows before the first group and behind the last one belong to nobody.
    let (before, behind) = (case.below(3), case.below(3));
    let mut offsets = vec![before];
    offsets.extend(sizes.iter().scan(before, |at, size| {
        *at += size;
        Some(*at)
    }));
    let rows = offsets[groups] + behind;
    let transposed = case.chance(2);
    let (alpha, beta) = case.one_of(&[(1.0f32, 0.0f32), (-0.5, 2.0)]);
    let mut numbers = |len: usize| -> Vec<f32> { (0..len).map(|_| T::of(case.number()).number()).collect() };
    let (mut a, b, c) = (numbers(rows * k), numbers(groups * k * n), numbers(rows * n));
    for row in (0..before).chain(rows - behind..rows) {
        a[row * k..(row + 1) * k].fill(f32::NAN);
    }
    let (b_rows, b_columns) = if transposed {
        (groups * n, k)
    } else {
        (groups * k, n)
    };
    let a_buffer = case.matrix::<T>([rows, k, k], &a)?;
    let b_buffer = case.matrix::<T>([b_rows, b_columns, b_columns], &b)?;
    let c_buffer = case.matrix::<T>([rows, n, n], &c)?;
    let words: Vec<u32> = offsets.iter().map(|at| *at as u32).collect();
    let words = case.device.upload(&words)?;
    let kernel = GroupedGemmKernel::new(groups, rows, n, k)
        .with_transposed(transposed)
        .with_scales(alpha, beta)
        .with_element(T::ELEMENT);
    let args = args![&a_buffer.part, &b_buffer.part, &words, &c_buffer.part];
    kernel.launch(&case.device.default_stream(), args)?;

    let (a, b, c) = (in_f64(&a), in_f64(&b), in_f64(&c));
    let mut expected: Vec<(f64, f64)> = c.iter().map(|x| (*x, 0.0)).collect();
    for (group, size) in sizes.iter().enumerate() {
        let from = offsets[group];
        let left = &a[from * k..(from + size) * k];
        let right = &b[group * k * n..(group + 1) * k * n];
        let products = reference::gemm([*size, n, k], [false, transposed], left, right);
        for (i, (sum, of)) in products.into_iter().enumerate() {
            let at = from * n + i;
            let (alpha, beta) = (f64::from(alpha), f64::from(beta));
            let before = if beta == 0.0 { 0.0 } else { beta * c[at] };
            let bound = alpha.abs() * of * (k as f64 + 8.0) * 2.4e-7 + before.abs() * 1.2e-7;
            expected[at] = (alpha * sum + before, bound);
        }
    }
    compare::<T>(&format!("{kernel:?}, {sizes:?}"), &c_buffer.read()?, &expected)
}
