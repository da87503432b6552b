//! The greatest and least numbers of rows.

use half::{bf16, f16};
use libtest_mimic::Failed;
use perpetua_device::args;
use perpetua_kernels::{ArgmaxKernel, Kernel, TopKKernel, reference};

use crate::harness::{Case, Stored, in_f64};
use crate::rows::{COLUMNS, ROWS, with_a_type};

/// Numbers of which some, or most, are equal, zeros of both signs among them.
fn numbers<T: Stored>(case: &mut Case, len: usize) -> Vec<f32> {
    let steps = case.one_of(&[2.0, 40.0, 1e6]);
    case.numbers(len, 3.0)
        .into_iter()
        .map(|x| T::of((x * steps).round() / steps).number())
        .collect()
}

/// Whether two numbers have the same bits, or are none.
fn is_same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

pub(crate) fn argmax(case: &mut Case) -> Result<(), Failed> {
    with_a_type!(case, argmax_of)
}

fn argmax_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    case.aligned = case.chance(2);
    let (rows, columns) = (case.one_of(&ROWS), case.one_of(&COLUMNS).max(1));
    let pitch = columns + case.one_of(&[0, 0, 1, 8]);
    let x = numbers::<T>(case, rows * columns);
    let x_buffer = case.matrix::<T>([rows, columns, pitch], &x)?;
    let indices = case.device.full(rows + 1, 12_345u32)?;
    let least = case.chance(2);
    let mut kernel = ArgmaxKernel::new(rows, columns)
        .with_pitch(pitch)
        .with_element(T::ELEMENT);
    if least {
        kernel = kernel.least();
    }
    kernel.launch(&case.device.default_stream(), args![&x_buffer.part, &indices])?;
    let mut expected: Vec<u32> = in_f64(&x)
        .chunks(columns)
        .map(|row| reference::top_k(row, 1, least)[0] as u32)
        .collect();
    expected.push(12_345);
    let found = indices.read()?;
    match found == expected {
        true => Ok(()),
        false => Err(format!("{kernel:?}: {found:?}, not {expected:?}").into()),
    }
}

pub(crate) fn top_k(case: &mut Case) -> Result<(), Failed> {
    with_a_type!(case, top_k_of)
}

fn top_k_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    let (rows, columns) = (case.one_of(&ROWS).min(9), case.one_of(&COLUMNS).min(9000));
    let k = case.one_of(&[0, 1, 2, 5, 50, 64, 300, 1000, 1024]).min(columns);
    let pitches = [columns, k].map(|n| n + case.one_of(&[0, 0, 1, 8]));
    let x = numbers::<T>(case, rows * columns);
    let x_buffer = case.matrix::<T>([rows, columns, pitches[0]], &x)?;
    let values = case.matrix::<T>([rows, k, pitches[1]], &vec![7.0; rows * k])?;
    let indices = case.device.full(rows * pitches[1], 12_345u32)?;
    let least = case.chance(2);
    let mut kernel = TopKKernel::new(rows, columns, k)
        .with_pitches(pitches[0], pitches[1])
        .with_element(T::ELEMENT);
    if least {
        kernel = kernel.least();
    }
    let args = args![&x_buffer.part, &values.part, &indices];
    kernel.launch(&case.device.default_stream(), args)?;
    let (values, indices) = (values.read()?, indices.read()?);
    for row in 0..rows {
        let numbers = &x[row * columns..(row + 1) * columns];
        let places = reference::top_k(&in_f64(numbers), k, least);
        for at in 0..pitches[1] {
            let index = indices[row * pitches[1] + at];
            let expected = places.get(at).map_or(12_345, |place| *place as u32);
            if index != expected {
                return Err(format!("{kernel:?}: row {row} has {index} at {at}, not {expected}").into());
            }
            if let Some(place) = places.get(at)
                && !is_same(values[row * k + at], numbers[*place])
            {
                let (found, number) = (values[row * k + at], numbers[*place]);
                return Err(format!("{kernel:?}: row {row} has {found} at {at}, not {number}").into());
            }
        }
    }
    Ok(())
}
