//! Softmax and norms.

use half::{bf16, f16};
use libtest_mimic::Failed;
use perpetua_device::args;
use perpetua_kernels::{Kernel, LayerNormKernel, RmsNormKernel, SoftmaxKernel, reference};

use crate::harness::{Case, Guarded, Stored, compare, in_f64};

// Some are longer than what the registers of a row's lanes hold.
pub(crate) const COLUMNS: [usize; 22] = [
    0, 1, 2, 31, 32, 33, 100, 128, 129, 500, 1000, 1024, 1025, 3000, 4096, 4097, 5003, 8193, 16384, 16385,
    16392, 20000,
];
pub(crate) const ROWS: [usize; 7] = [0, 1, 2, 7, 8, 9, 20];

/// What a test is given: a matrix, where its result goes, and both pitches.
struct Matrix<T: Stored> {
    columns: usize,
    values: Vec<f32>,
    x: Guarded<T>,
    y: Guarded<T>,
    shape: [usize; 2],
    pitches: [usize; 2],
}

impl<T: Stored> Matrix<T> {
    fn new(case: &mut Case) -> Result<Matrix<T>, Failed> {
        let (rows, columns) = (case.one_of(&ROWS), case.one_of(&COLUMNS));
        let size = case.one_of(&[1.0, 8.0, 40.0]);
        let offset = case.one_of(&[0.0, 0.0, 10.0]);
        let rounded = |x: f32| T::of(x + offset).number();
        let mut values: Vec<f32> = case
            .numbers(rows * columns, size)
            .into_iter()
            .map(rounded)
            .collect();
        if case.chance(8) {
            // What is no number makes its row none.
            values.iter_mut().rev().take(1).for_each(|last| *last = f32::NAN);
        }
        let pitches = [(); 2].map(|()| columns + case.one_of(&[0, 0, 1, 6]));
        let x = case.matrix([rows, columns, pitches[0]], &values)?;
        let y = case.matrix([rows, columns, pitches[1]], &vec![f32::NAN; rows * columns])?;
        Ok(Matrix {
            columns,
            values,
            x,
            y,
            shape: [rows, columns],
            pitches,
        })
    }

    /// Compares what was written with what is expected of each row.
    fn check(
        &self,
        what: &dyn std::fmt::Display,
        expect: impl Fn(&[f64]) -> Vec<(f64, f64)>,
    ) -> Result<(), Failed> {
        let values = in_f64(&self.values);
        let rows = values.chunks(self.columns.max(1));
        let expected: Vec<(f64, f64)> = rows.flat_map(expect).collect();
        compare::<T>(what, &self.y.read()?, &expected)
    }
}

/// Rounding errors of a sum over a row of `columns` numbers, against the sum of their magnitudes.
pub(crate) fn sum_error(columns: usize) -> f64 {
    (columns as f64 / 256.0 + 20.0) * 6e-8
}

/// Runs a test with one of the types.
macro_rules! with_a_type {
    ($case:ident, $test:ident) => {
        match $case.below(3) {
            0 => $test::<f32>($case),
            1 => $test::<f16>($case),
            _ => $test::<bf16>($case),
        }
    };
}
pub(crate) use with_a_type;

pub(crate) fn softmax(case: &mut Case) -> Result<(), Failed> {
    with_a_type!(case, softmax_of)
}

fn softmax_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    let matrix = Matrix::<T>::new(case)?;
    let logarithm = case.chance(3);
    let [rows, columns] = matrix.shape;
    let mut kernel = SoftmaxKernel::new(rows, columns)
        .with_pitches(matrix.pitches[0], matrix.pitches[1])
        .with_element(T::ELEMENT);
    if logarithm {
        kernel = kernel.log();
    }
    kernel.launch(
        &case.device.default_stream(),
        args![&matrix.x.part, &matrix.y.part],
    )?;
    matrix.check(&format!("{kernel:?}"), |row| {
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let all = reference::softmax(row, logarithm);
        let bound = |(x, y): (&f64, &f64)| {
            // Of -inf the exponential is exactly 0.
            let far = Some((x - most).abs()).filter(|far| far.is_finite());
            // Of types of 16 bits exponentials are the hardware's.
            let each = if size_of::<T>() == 2 { 2.5e-7 } else { 6e-8 };
            let error = sum_error(columns) + far.unwrap_or(0.0) * each;
            if logarithm {
                error * (1.0 + y.abs())
            } else {
                error * y
            }
        };
        row.iter().zip(&all).map(|pair| (*pair.1, bound(pair))).collect()
    })
}

pub(crate) fn layer_norm(case: &mut Case) -> Result<(), Failed> {
    with_a_type!(case, layer_norm_of)
}

fn layer_norm_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    let matrix = Matrix::<T>::new(case)?;
    let [rows, columns] = matrix.shape;
    let [weight, bias] = [(); 2].map(|()| {
        let values = case.numbers(columns, 2.0);
        values
            .into_iter()
            .map(|x| T::of(x).number())
            .collect::<Vec<f32>>()
    });
    let weight_buffer = case.matrix::<T>([1, columns, columns], &weight)?;
    let bias_buffer = case.matrix::<T>([1, columns, columns], &bias)?;
    let kernel = LayerNormKernel::new(rows, columns, 1e-5)
        .with_pitches(matrix.pitches[0], matrix.pitches[1])
        .with_element(T::ELEMENT);
    let args = args![
        &matrix.x.part,
        &weight_buffer.part,
        &bias_buffer.part,
        &matrix.y.part
    ];
    kernel.launch(&case.device.default_stream(), args)?;
    let (weight, bias) = (in_f64(&weight), in_f64(&bias));
    matrix.check(&format!("{kernel:?}"), |row| {
        let all = reference::layer_norm(row, &weight, &bias, 1e-5f32.into());
        let mean = row.iter().sum::<f64>() / columns as f64;
        let size = row.iter().map(|x| x.abs()).sum::<f64>() / columns as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / columns as f64;
        let scale = 1.0 / (variance + 1e-5).sqrt();
        // An error of the mean counts in every deviation, and twice in the variance.
        let of_mean = sum_error(columns) * size * scale;
        let bounds = row.iter().zip(weight.iter().zip(&bias)).map(|(x, (w, b))| {
            let deviation = ((x - mean) * scale).abs();
            let error = of_mean * (1.0 + of_mean * deviation) + deviation * (sum_error(columns) + 3e-7);
            error * w.abs() + 2e-7 * b.abs()
        });
        all.into_iter().zip(bounds).collect()
    })
}

pub(crate) fn rms_norm(case: &mut Case) -> Result<(), Failed> {
    with_a_type!(case, rms_norm_of)
}

fn rms_norm_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    let matrix = Matrix::<T>::new(case)?;
    let [rows, columns] = matrix.shape;
    let weight: Vec<f32> = case
        .numbers(columns, 2.0)
        .into_iter()
        .map(|x| T::of(x).number())
        .collect();
    let weight_buffer = case.matrix::<T>([1, columns, columns], &weight)?;
    let kernel = RmsNormKernel::new(rows, columns, 1e-5)
        .with_pitches(matrix.pitches[0], matrix.pitches[1])
        .with_element(T::ELEMENT);
    let args = args![&matrix.x.part, &weight_buffer.part, &matrix.y.part];
    kernel.launch(&case.device.default_stream(), args)?;
    let weight = in_f64(&weight);
    matrix.check(&format!("{kernel:?}"), |row| {
        let all = reference::rms_norm(row, &weight, 1e-5f32.into());
        all.into_iter()
            .map(|y| (y, (sum_error(columns) + 3e-7) * y.abs()))
            .collect()
    })
}
