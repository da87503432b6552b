//! Copies: transposes, rows of tables, and their gradient.

use half::{bf16, f16};
use libtest_mimic::Failed;
use perpetua_device::{GpuType, args};
use perpetua_kernels::{EmbeddingBackwardKernel, GatherKernel, Kernel, TransposeKernel};

use crate::harness::{Case, Stored, compare};
use crate::rows::with_a_type;

const EXTENTS: [usize; 11] = [0, 1, 2, 7, 31, 64, 65, 100, 128, 130, 200];

/// Compares numbers with what they must be, to the bit.
fn same<T: GpuType + PartialEq + std::fmt::Debug>(
    what: &str,
    found: &[T],
    expected: &[T],
) -> Result<(), Failed> {
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        Some(at) => Err(format!("{what}: element {at} is {:?}, not {:?}", found[at], expected[at]).into()),
        None if found.len() != expected.len() => Err(format!("{what}: {} elements", found.len()).into()),
        None => Ok(()),
    }
}

pub(crate) fn transpose(case: &mut Case) -> Result<(), Failed> {
    let bits = |case: &mut Case| case.bits();
    match case.below(5) {
        0 => transpose_of::<u8>(case, |case| bits(case) as u8),
        1 => transpose_of::<u16>(case, |case| bits(case) as u16),
        2 => transpose_of::<u32>(case, |case| bits(case) as u32),
        3 => transpose_of::<[u16; 3]>(case, |case| [0, 1, 2].map(|i| (bits(case) >> i) as u16)),
        _ => transpose_of::<[u32; 2]>(case, |case| [0, 1].map(|i| (bits(case) >> i) as u32)),
    }
}

fn transpose_of<T: GpuType + PartialEq + std::fmt::Debug>(
    case: &mut Case,
    of: impl Fn(&mut Case) -> T,
) -> Result<(), Failed> {
    let (rows, columns, layers) = (case.one_of(&EXTENTS), case.one_of(&EXTENTS), 1 + case.below(3));
    let pitches = [columns + case.below(3), rows + case.below(3)];
    let apart = [
        rows * pitches[0] + case.below(3),
        columns * pitches[1] + case.below(3),
    ];
    let numbers = |case: &mut Case, len: usize| -> Vec<T> { (0..len).map(|_| of(case)).collect() };
    let (x, before) = (numbers(case, layers * apart[0]), numbers(case, layers * apart[1]));
    let (x_buffer, y_buffer) = (case.device.upload(&x)?, case.device.upload(&before)?);
    let mut kernel = TransposeKernel::of::<T>(rows, columns).with_pitches(pitches[0], pitches[1]);
    if layers > 1 {
        kernel = kernel.with_batch(layers, apart);
    }
    kernel.launch(&case.device.default_stream(), args![&x_buffer, &y_buffer])?;
    let mut expected = before;
    for layer in 0..layers {
        for row in 0..rows {
            for column in 0..columns {
                expected[layer * apart[1] + column * pitches[1] + row] =
                    x[layer * apart[0] + row * pitches[0] + column];
            }
        }
    }
    same(&format!("{kernel:?}"), &y_buffer.read()?, &expected)
}

pub(crate) fn gather(case: &mut Case) -> Result<(), Failed> {
    case.aligned = case.chance(2);
    match case.below(4) {
        0 => gather_of::<u8>(case, |bits| bits as u8, u8::MAX),
        1 => gather_of::<u16>(case, |bits| bits as u16, u16::MAX),
        2 => gather_of::<u64>(case, |bits| bits, u64::MAX),
        _ => gather_of::<u32>(case, |bits| bits as u32, u32::MAX),
    }
}

fn gather_of<T: GpuType + PartialEq + std::fmt::Debug>(
    case: &mut Case,
    of: fn(u64) -> T,
    absent: T,
) -> Result<(), Failed> {
    let (rows, count) = (case.one_of(&[0, 1, 5, 100]), case.one_of(&[0, 1, 33, 300]));
    let columns = case.one_of(&[0, 1, 3, 8, 16, 33, 64, 256, 500]);
    let pitches = [(); 2].map(|()| columns + case.one_of(&[0, 0, 1, 16]));
    let numbers = |case: &mut Case, len: usize| -> Vec<T> { (0..len).map(|_| of(case.bits())).collect() };
    // Where a buffer begins, in elements, so that wide words do not always fit; 256 bytes are where any binding may.
    let margin = match case.device.backend() {
        perpetua_device::BackendKind::Wgpu => 256,
        _ => case.one_of(&[0, 1, 16]),
    };
    let table = numbers(case, margin + rows * pitches[0]);
    let before = numbers(case, margin + count * pitches[1]);
    let indices: Vec<u32> = (0..count)
        .map(|_| match case.below(8) {
            0 => case.one_of(&[rows as u32, u32::MAX, 1 << 31]),
            _ => case.below(rows.max(1)) as u32,
        })
        .collect();
    let (whole_table, whole_y) = (case.device.upload(&table)?, case.device.upload(&before)?);
    let (x, y) = (whole_table.slice(margin..)?, whole_y.slice(margin..)?);
    let indices_buffer = case.device.upload(&indices)?;
    let kernel = GatherKernel::of::<T>([rows, columns], count).with_pitches(pitches[0], pitches[1]);
    let stream = case.device.default_stream();
    match case.chance(2) {
        true => kernel.launch(&stream, args![&x, &indices_buffer, &y])?,
        false => kernel.launch(&stream, args![&x, &indices_buffer.cast::<i32>()?, &y])?,
    }
    let mut expected = before;
    for (row, index) in indices.iter().enumerate() {
        for column in 0..columns {
            expected[margin + row * pitches[1] + column] = match (*index as usize) < rows {
                true => table[margin + *index as usize * pitches[0] + column],
                false => absent,
            };
        }
    }
    same(&format!("{kernel:?}, {indices:?}"), &whole_y.read()?, &expected)
}

pub(crate) fn embedding_backward(case: &mut Case) -> Result<(), Failed> {
    with_a_type!(case, embedding_backward_of)
}

fn embedding_backward_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    case.aligned = case.chance(2);
    let (rows, count) = (
        case.one_of(&[0, 1, 5, 300, 70_000]),
        case.one_of(&[0, 1, 33, 1024, 2500]),
    );
    let columns = case.one_of(&[0, 1, 3, 8, 16, 33, 64, 300]);
    let columns = if rows * columns > 300_000 { 3 } else { columns };
    let pitches = [(); 2].map(|()| columns + case.one_of(&[0, 0, 1, 8]));
    let dy: Vec<f32> = case
        .numbers(count * columns, 2.0)
        .into_iter()
        .map(|x| T::of(x).number())
        .collect();
    // Some come often.
    let indices: Vec<u32> = (0..count)
        .map(|_| match case.below(8) {
            0 => case.one_of(&[rows as u32, u32::MAX, 1 << 31]),
            1..4 => case.below(rows.clamp(1, 2)) as u32,
            _ => case.below(rows.max(1)) as u32,
        })
        .collect();
    let ignored = case.one_of(&[u32::MAX, 1]);
    let dy_buffer = case.matrix::<T>([count, columns, pitches[0]], &dy)?;
    let table = case.matrix::<T>([rows, columns, pitches[1]], &vec![7.0; rows * columns])?;
    let indices_buffer = case.device.upload(&indices)?;
    let kernel = EmbeddingBackwardKernel::new([rows, columns], count)
        .with_pitches(pitches[0], pitches[1])
        .with_element(T::ELEMENT)
        .with_ignored(ignored);
    let args = args![&dy_buffer.part, &indices_buffer, &table.part];
    kernel.launch(&case.device.default_stream(), args)?;
    let mut expected = vec![(0.0f64, 0.0f64); rows * columns];
    for (row, index) in indices.iter().enumerate() {
        for column in 0..if *index == ignored || *index as usize >= rows {
            0
        } else {
            columns
        } {
            let (sum, bound) = &mut expected[*index as usize * columns + column];
            *sum += f64::from(dy[row * columns + column]);
            // Each of up to 2500 sums is rounded.
            *bound += f64::from(dy[row * columns + column]).abs() * 1.5e-4;
        }
    }
    compare::<T>(&format!("{kernel:?}"), &table.read()?, &expected)
}
