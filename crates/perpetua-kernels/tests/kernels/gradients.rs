//! Cross entropy, and gradients of what is computed of rows.

use half::{bf16, f16};
use libtest_mimic::Failed;
use perpetua_device::args;
use perpetua_kernels::{
    CrossEntropyBackwardKernel, CrossEntropyKernel, Kernel, LayerNormBackwardKernel, Reduction,
    RmsNormBackwardKernel, RmsNormKernel, SoftmaxBackwardKernel, reference,
};

use crate::harness::{Case, Stored, compare, in_f64};
use crate::rows::{COLUMNS, ROWS, sum_error, with_a_type};

/// Numbers as a type stores them, perhaps with one that is none.
fn stored<T: Stored>(case: &mut Case, len: usize, size: f32, offset: f32) -> Vec<f32> {
    let mut all: Vec<f32> = (0..len)
        .map(|_| T::of(size * case.number() + offset).number())
        .collect();
    if len > 0 && case.chance(10) {
        let at = case.below(len);
        all[at] = f32::NAN;
    }
    all
}

/// A shape, and the pitches of what is read and of what is written.
fn shape(case: &mut Case) -> ([usize; 2], [usize; 2]) {
    let (rows, columns) = (case.one_of(&ROWS), case.one_of(&COLUMNS));
    case.aligned = case.chance(2);
    let pitches = [(); 2].map(|()| columns + case.one_of(&[0, 0, 1, 8]));
    ([rows, columns], pitches)
}

pub(crate) fn softmax(case: &mut Case) -> Result<(), Failed> {
    with_a_type!(case, softmax_of)
}

fn softmax_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    let ([rows, columns], pitches) = shape(case);
    let logarithm = case.chance(2);
    let y: Vec<f32> = (0..rows * columns)
        .map(|_| {
            let x = case.number();
            T::of(if logarithm { 9.0 * (x - 1.0) } else { x.abs() / 8.0 }).number()
        })
        .collect();
    let dy = stored::<T>(case, rows * columns, 4.0, 0.0);
    let y_buffer = case.matrix::<T>([rows, columns, pitches[0]], &y)?;
    let dy_buffer = case.matrix::<T>([rows, columns, pitches[0]], &dy)?;
    let dx = case.matrix::<T>([rows, columns, pitches[1]], &vec![7.0; rows * columns])?;
    let mut kernel = SoftmaxBackwardKernel::new(rows, columns)
        .with_pitches(pitches[0], pitches[1])
        .with_element(T::ELEMENT);
    if logarithm {
        kernel = kernel.log();
    }
    let args = args![&y_buffer.part, &dy_buffer.part, &dx.part];
    kernel.launch(&case.device.default_stream(), args)?;
    let (y, dy) = (in_f64(&y), in_f64(&dy));
    let mut expected = Vec::new();
    for (y, dy) in y.chunks(columns.max(1)).zip(dy.chunks(columns.max(1))) {
        let share = |y: f64| if logarithm { y.exp() } else { y };
        let size: f64 = match logarithm {
            true => dy.iter().map(|dy| dy.abs()).sum(),
            false => y.iter().zip(dy).map(|(y, dy)| (y * dy).abs()).sum(),
        };
        let all = reference::softmax_backward(y, dy, logarithm);
        expected.extend(all.iter().zip(y.iter().zip(dy)).map(|(dx, (y, dy))| {
            let of_sum = size * (sum_error(columns) + 3e-7 + y.abs() * 6e-8);
            (*dx, share(*y) * of_sum + 2e-7 * dy.abs())
        }));
    }
    compare::<T>(&format!("{kernel:?}"), &dx.read()?, &expected)
}

pub(crate) fn layer_norm(case: &mut Case) -> Result<(), Failed> {
    with_a_type!(case, layer_norm_of)
}

fn layer_norm_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    norm_of::<T>(case, true)
}

pub(crate) fn rms_norm(case: &mut Case) -> Result<(), Failed> {
    with_a_type!(case, rms_norm_of)
}

fn rms_norm_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    norm_of::<T>(case, false)
}

fn norm_of<T: Stored>(case: &mut Case, centred: bool) -> Result<(), Failed> {
    let (mut shape, pitches) = shape(case);
    if case.chance(4) {
        // Several slices of rows.
        shape[0] = 150;
        shape[1] = shape[1].min(200);
    }
    let [rows, columns] = shape;
    let offset = case.one_of(&[0.0, 0.0, 3.0]);
    let x = stored::<T>(case, rows * columns, 4.0, offset);
    let dy = stored::<T>(case, rows * columns, 2.0, 0.0);
    let beside = stored::<T>(case, rows * columns, 2.0, 0.0);
    let weight = stored::<T>(case, columns, 2.0, 0.0);
    let residual = !centred && case.chance(2);
    let epsilon = 1e-3f32;
    let of = |case: &mut Case, values: &[f32]| case.matrix::<T>([rows, columns, pitches[0]], values);
    let (x_buffer, dy_buffer) = (of(case, &x)?, of(case, &dy)?);
    let beside_buffer = of(case, &beside)?;
    let weight_buffer = case.matrix::<T>([1, columns, columns], &weight)?;
    let dx = case.matrix::<T>([rows, columns, pitches[1]], &vec![7.0; rows * columns])?;
    let of_columns = [(); 2].map(|()| case.matrix::<T>([1, columns, columns], &vec![7.0; columns]));
    let [dweight, dbias] = of_columns;
    let (dweight, dbias) = (dweight?, dbias?);
    // The gradient may go where one of the matrices is.
    let dx = match case.below(4) {
        0 if pitches[0] == pitches[1] => dy_buffer.clone(),
        1 if pitches[0] == pitches[1] => x_buffer.clone(),
        _ => dx,
    };
    let once = !case.chance(3);
    let stream = case.device.default_stream();
    let (given, what) = (
        args![&x_buffer.part, &weight_buffer.part, &dy_buffer.part],
        pitches,
    );
    let mut all = given.to_vec();
    let name = match (centred, residual) {
        (true, _) => {
            let mut kernel = LayerNormBackwardKernel::new(rows, columns, epsilon)
                .with_pitches(what[0], what[1])
                .with_element(T::ELEMENT);
            kernel = kernel.reading_once(once);
            all.extend([dx.part.arg(), dweight.part.arg(), dbias.part.arg()]);
            kernel.launch(&stream, &all)?;
            format!("{kernel:?}")
        }
        (false, residual) => {
            let mut kernel = RmsNormBackwardKernel::new(rows, columns, epsilon)
                .with_pitches(what[0], what[1])
                .with_element(T::ELEMENT);
            kernel = kernel.reading_once(once);
            if residual {
                kernel = kernel.with_residual();
                all.push(beside_buffer.part.arg());
            }
            all.extend([dx.part.arg(), dweight.part.arg()]);
            kernel.launch(&stream, &all)?;
            format!("{kernel:?}")
        }
    };

    let (x, dy, beside, weight) = (in_f64(&x), in_f64(&dy), in_f64(&beside), in_f64(&weight));
    let mut expected = Vec::new();
    let mut expected_weight = vec![(0.0, 0.0); columns];
    let mut expected_bias = vec![(0.0, 0.0); columns];
    let (size, error) = (columns.max(1), sum_error(columns));
    let rows_of = |all: &[f64]| -> Vec<Vec<f64>> { all.chunks(size).map(<[f64]>::to_vec).collect() };
    for ((x, dy), beside) in rows_of(&x).iter().zip(&rows_of(&dy)).zip(&rows_of(&beside)) {
        let (dx, of_weight) = reference::norm_backward(x, &weight, dy, epsilon.into(), centred);
        let mean_of = |all: &mut dyn Iterator<Item = f64>| all.sum::<f64>() / columns as f64;
        let mean = if centred {
            mean_of(&mut x.iter().copied())
        } else {
            0.0
        };
        let variance = mean_of(&mut x.iter().map(|x| (x - mean).powi(2)));
        let scale = 1.0 / (variance + f64::from(epsilon)).sqrt();
        let of_mean = match centred {
            true => error * mean_of(&mut x.iter().map(|x| x.abs())) * scale,
            false => 0.0,
        };
        let relative = error + 4e-7 + of_mean;
        let normed: Vec<f64> = x.iter().map(|x| (x - mean) * scale).collect();
        let slopes: Vec<f64> = dy.iter().zip(&weight).map(|(dy, w)| (dy * w).abs()).collect();
        let off = |n: f64| of_mean + relative * n.abs();
        let pairs = || slopes.iter().zip(&normed);
        let (mean_slope, along) = (
            mean_of(&mut slopes.iter().copied()),
            mean_of(&mut pairs().map(|(g, n)| g * n.abs())),
        );
        let off_along = error * along + mean_of(&mut pairs().map(|(g, n)| g * off(*n)));
        for (i, dx) in dx.into_iter().enumerate() {
            let n = normed[i].abs();
            let sizes = slopes[i] + if centred { mean_slope } else { 0.0 } + n * along;
            let bound = scale
                * (relative * sizes + error * mean_slope + off(n) * along + n * off_along + 2e-7 * sizes);
            let further = if residual { beside[i] } else { 0.0 };
            expected.push((dx + further, bound + 2e-7 * further.abs()));
        }
        for i in 0..columns {
            expected_weight[i].0 += of_weight[i];
            expected_weight[i].1 += dy[i].abs() * off(normed[i]) + 4e-6 * of_weight[i].abs();
            expected_bias[i].0 += dy[i];
            expected_bias[i].1 += 4e-6 * dy[i].abs();
        }
    }
    compare::<T>(&name, &dx.read()?, &expected)?;
    compare::<T>(&format!("weights of {name}"), &dweight.read()?, &expected_weight)?;
    match centred {
        true => compare::<T>(&format!("biases of {name}"), &dbias.read()?, &expected_bias),
        false => compare::<T>(
            &format!("none of {name}"),
            &dbias.read()?,
            &vec![(7.0, 0.0); columns],
        ),
    }
}

pub(crate) fn rms_norm_of_sum(case: &mut Case) -> Result<(), Failed> {
    with_a_type!(case, rms_norm_of_sum_of)
}

fn rms_norm_of_sum_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    let ([rows, columns], pitches) = shape(case);
    let [x, other] = [(); 2].map(|()| stored::<T>(case, rows * columns, 3.0, 0.0));
    let weight = stored::<T>(case, columns, 2.0, 0.0);
    let of = |case: &mut Case, values: &[f32], pitch: usize| case.matrix::<T>([rows, columns, pitch], values);
    let (x_buffer, other_buffer) = (of(case, &x, pitches[0])?, of(case, &other, pitches[0])?);
    let weight_buffer = case.matrix::<T>([1, columns, columns], &weight)?;
    let before = vec![7.0; rows * columns];
    let (all, y) = (of(case, &before, pitches[1])?, of(case, &before, pitches[1])?);
    let kernel = RmsNormKernel::new(rows, columns, 1e-5)
        .with_pitches(pitches[0], pitches[1])
        .with_element(T::ELEMENT)
        .with_residual();
    let given = args![
        &x_buffer.part,
        &other_buffer.part,
        &weight_buffer.part,
        &all.part,
        &y.part
    ];
    kernel.launch(&case.device.default_stream(), given)?;
    let weight = in_f64(&weight);
    let sums: Vec<f64> = in_f64(&x)
        .iter()
        .zip(in_f64(&other))
        .map(|(a, b)| a + b)
        .collect();
    let expected: Vec<(f64, f64)> = sums.iter().map(|x| (*x, 1e-7 * x.abs())).collect();
    compare::<T>(&format!("sum of {kernel:?}"), &all.read()?, &expected)?;
    let expected: Vec<(f64, f64)> = sums
        .chunks(columns.max(1))
        .flat_map(|row| {
            // What does not stay in registers is normed as it was stored; a sum may be small against what was added.
            let size = row.iter().map(|x| x * x).sum::<f64>() / columns as f64;
            let scale = 1.0 / (size + 1e-5).sqrt();
            let all = reference::rms_norm(row, &weight, 1e-5f32.into());
            let bound = |(y, (x, w)): (f64, (&f64, &f64))| {
                (
                    y,
                    (sum_error(columns) + 5e-7 + T::EPSILON) * y.abs()
                        + (6e-7 + T::LEAST) * scale * w.abs() * (1.0 + x.abs()),
                )
            };
            all.into_iter()
                .zip(row.iter().zip(&weight))
                .map(bound)
                .collect::<Vec<_>>()
        })
        .collect();
    compare::<T>(&format!("{kernel:?}"), &y.read()?, &expected)
}

pub(crate) fn cross_entropy(case: &mut Case) -> Result<(), Failed> {
    with_a_type!(case, cross_entropy_of)
}

fn cross_entropy_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    let ([mut rows, columns], mut pitches) = shape(case);
    if case.chance(3) {
        // Whole pieces of 16 bytes together, but not each.
        (rows, pitches[0], case.aligned) = (8, columns, true);
    }
    let offset = case.one_of(&[0.0, 0.0, 20.0]);
    let mut x = stored::<T>(case, rows * columns, 8.0, offset);
    if !x.is_empty() && case.chance(6) {
        let at = case.below(x.len());
        x[at] = case.one_of(&[f32::INFINITY, f32::NEG_INFINITY]);
    }
    let smoothing = case.one_of(&[0.0f32, 0.0, 0.1, 1.0]);
    let ignored = case.one_of(&[-100i32, 0]);
    let reduction = case.one_of(&[Reduction::None, Reduction::Mean, Reduction::Sum]);
    let labels: Vec<i32> = (0..rows)
        .map(|_| match case.below(12) {
            0 => ignored,
            1 => case.one_of(&[-1, columns as i32, i32::MIN, i32::MAX]),
            _ => case.below(columns.max(1)) as i32,
        })
        .collect();
    let x_buffer = case.matrix::<T>([rows, columns, pitches[0]], &x)?;
    let dx = case.matrix::<T>([rows, columns, pitches[1]], &vec![7.0; rows * columns])?;
    let labels_buffer = case.device.upload(&labels)?;
    let line = |case: &mut Case, len: usize| case.matrix::<f32>([1, len, len], &vec![7.0; len]);
    let (losses, logs, total) = (line(case, rows)?, line(case, rows)?, line(case, 2)?);
    let kernel = CrossEntropyKernel::new(rows, columns)
        .with_pitches(pitches[0], columns)
        .with_element(T::ELEMENT)
        .with_ignored(ignored)
        .with_smoothing(smoothing)
        .with_reduction(reduction);
    let stream = case.device.default_stream();
    let mut all = args![&x_buffer.part, &labels_buffer, &losses.part, &logs.part].to_vec();
    if reduction != Reduction::None {
        all.push(total.part.arg());
    }
    kernel.launch(&stream, &all)?;

    let x = in_f64(&x);
    let (size, error) = (columns.max(1), sum_error(columns));
    let rows_of: Vec<&[f64]> = match columns {
        0 => vec![&[]; rows],
        _ => x.chunks(size).collect(),
    };
    let smooth = f64::from(smoothing);
    let mut expected = Vec::new();
    let mut of_logs = Vec::new();
    for (row, label) in rows_of.iter().zip(&labels) {
        let (loss, log) =
            reference::cross_entropy(row, usize::try_from(*label).unwrap_or(usize::MAX), smooth);
        let most = row.iter().copied().fold(0.0f64, |most, x| most.max(x.abs()));
        let far = if most.is_finite() { most } else { 0.0 };
        of_logs.push((log, error + 4e-7 * (far + 10.0)));
        let bound = error * (1.0 + far) + 6e-7 * (far + 10.0);
        expected.push(match *label == ignored {
            true => (0.0, 0.0),
            false => (loss, bound),
        });
    }
    let name = format!("{kernel:?}");
    compare::<f32>(&name, &losses.read()?, &expected)?;
    for (found, (log, bound)) in logs.read()?.iter().zip(&of_logs) {
        let found = f64::from(*found);
        if log.is_finite() && (found - log).abs() > *bound || !log.is_finite() && found.is_finite() {
            return Err(format!("{name}: a logarithm is {found}, not {log} within {bound:e}").into());
        }
    }
    let counted = labels.iter().filter(|label| **label != ignored).count() as f64;
    let sum = |all: &dyn Fn(&(f64, f64)) -> f64| expected.iter().map(all).sum::<f64>();
    let sums = (sum(&|x| x.0), sum(&|x| x.1 + 2e-6 * x.0.abs()));
    let both = match reduction {
        Reduction::None => [(7.0, 0.0), (7.0, 0.0)],
        Reduction::Sum => [sums, (counted, 0.0)],
        Reduction::Mean => [(sums.0 / counted, sums.1 / counted), (counted, 0.0)],
    };
    compare::<f32>(&format!("total of {name}"), &total.read()?, &both)?;

    let slopes: Vec<f32> = match reduction {
        Reduction::None => (0..rows).map(|_| 2.0 * case.number()).collect(),
        _ => vec![1.5],
    };
    let slopes_buffer = case.device.upload(&slopes)?;
    let kernel = CrossEntropyBackwardKernel::new(rows, columns)
        .with_pitches(pitches[0], pitches[1])
        .with_element(T::ELEMENT)
        .with_ignored(ignored)
        .with_smoothing(smoothing)
        .with_reduction(reduction);
    let mut all = args![&x_buffer.part, &labels_buffer, &logs.part, &slopes_buffer].to_vec();
    if reduction == Reduction::Mean {
        all.push(total.part.arg());
    }
    all.push(dx.part.arg());
    kernel.launch(&stream, &all)?;
    let mut expected = Vec::new();
    for (i, (row, label)) in rows_of.iter().zip(&labels).enumerate() {
        let mut slope = f64::from(slopes[i % slopes.len()]);
        if reduction == Reduction::Mean {
            slope /= counted;
        }
        let at = usize::try_from(*label).unwrap_or(usize::MAX);
        let (log, off) = of_logs[i];
        for (x, dx) in row.iter().zip(reference::cross_entropy_backward(row, at, smooth)) {
            let far = if (x - log).is_finite() {
                (x - log).abs()
            } else {
                0.0
            };
            let share = (x - log).exp();
            let bound = slope.abs() * (share * (off + 3e-7 + far * 1.2e-7) + 2e-7);
            expected.push(match *label == ignored {
                true => (0.0, 0.0),
                false => (dx * slope, bound),
            });
        }
    }
    compare::<T>(&format!("{kernel:?}"), &dx.read()?, &expected)
}

/// The gradients of the references themselves, by differences.
pub(crate) fn differences(case: &mut Case) -> Result<(), Failed> {
    let n = 1 + case.below(9);
    let mut numbers = |n: usize| -> Vec<f64> { (0..n).map(|_| f64::from(2.0 * case.number())).collect() };
    let (x, dy, weight) = (numbers(n), numbers(n), numbers(n));
    let smoothing = case.one_of(&[0.0, 0.3]);
    let label = case.below(n);
    let (logarithm, centred) = (case.chance(2), case.chance(2));
    let along = |of: &dyn Fn(&[f64]) -> f64, at: usize| {
        let mut moved = [x.clone(), x.clone()];
        moved[0][at] += 1e-5;
        moved[1][at] -= 1e-5;
        (of(&moved[0]) - of(&moved[1])) / 2e-5
    };
    let times = |all: Vec<f64>| all.iter().zip(&dy).map(|(y, dy)| y * dy).sum::<f64>();
    let normed = |x: &[f64]| match centred {
        true => reference::layer_norm(x, &weight, &vec![0.5; n], 0.1),
        false => reference::rms_norm(x, &weight, 0.1),
    };
    let softmax = reference::softmax_backward(&reference::softmax(&x, logarithm), &dy, logarithm);
    let (norm, of_weight) = reference::norm_backward(&x, &weight, &dy, 0.1, centred);
    let loss = reference::cross_entropy_backward(&x, label, smoothing);
    for at in 0..n {
        let all = [
            (
                softmax[at],
                along(&|x| times(reference::softmax(x, logarithm)), at),
            ),
            (norm[at], along(&|x| times(normed(x)), at)),
            (
                loss[at],
                along(&|x| reference::cross_entropy(x, label, smoothing).0, at),
            ),
            // Where weights are linear, one of 1 alone gives the derivative.
            (
                of_weight[at] * weight[at],
                (normed(&x)[at] - if centred { 0.5 } else { 0.0 }) * dy[at],
            ),
        ];
        for (i, (found, expected)) in all.into_iter().enumerate() {
            if (found - expected).abs() > 1e-7 {
                return Err(format!("gradient {i} of {x:?} at {at} is {found}, not {expected}").into());
            }
        }
    }
    Ok(())
}
