//! What is computed of each number, or pair of numbers, by itself.

use half::{bf16, f16};
use libtest_mimic::Failed;
use perpetua_device::args;
use perpetua_kernels::{DropoutKernel, Kernel, RandomKernel, RotaryKernel, philox, reference};

use crate::harness::{Case, Stored, compare, in_f64};
use crate::rows::with_a_type;

pub(crate) fn rotary(case: &mut Case) -> Result<(), Failed> {
    with_a_type!(case, rotary_of)
}

fn rotary_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    case.aligned = case.chance(2);
    let (tokens, heads) = (case.one_of(&[0, 1, 3, 40]), case.one_of(&[0, 1, 3, 8, 11]));
    let (dim, turning) = case.one_of(&[
        (0, 0),
        (2, 2),
        (8, 8),
        (7, 6),
        (16, 16),
        (64, 64),
        (96, 32),
        (128, 128),
    ]);
    let width = heads * dim;
    let pitches = [(); 2].map(|()| width + case.one_of(&[0, 0, 1, 16]));
    let (interleaved, backward) = (case.chance(2), case.chance(2));
    let x: Vec<f32> = case
        .numbers(tokens * width, 2.0)
        .into_iter()
        .map(|x| T::of(x).number())
        .collect();
    let positions: Vec<u32> = (0..tokens)
        .map(|i| case.one_of(&[i as u32, 100_000, 12_345_678, u32::MAX]))
        .collect();
    let mut kernel = RotaryKernel::new(tokens, heads, dim)
        .with_turning(turning)
        .with_pitches(pitches[0], pitches[1])
        .with_element(T::ELEMENT);
    if interleaved {
        kernel = kernel.interleaved();
    }
    if backward {
        kernel = kernel.backward();
    }
    let rates = kernel.rates(case.one_of(&[10_000.0, 500_000.0]));
    let x_buffer = case.matrix::<T>([tokens, width, pitches[0]], &x)?;
    let y_buffer = case.matrix::<T>([tokens, width, pitches[1]], &vec![7.0; tokens * width])?;
    let (positions_buffer, rates_buffer) = (case.device.upload(&positions)?, case.device.upload(&rates)?);
    let in_place = pitches[0] == pitches[1] && case.chance(3);
    let y = if in_place { &x_buffer } else { &y_buffer };
    let args = args![&x_buffer.part, &positions_buffer, &rates_buffer, &y.part];
    kernel.launch(&case.device.default_stream(), args)?;
    let mut expected = Vec::new();
    for (at, head) in in_f64(&x).chunks(dim.max(1)).enumerate() {
        // In whole units of 2^-64 of a turn, of which only the part of a turn counts.
        let turn = |rate: &u64| {
            let part = u64::from(positions[at / heads]).wrapping_mul(*rate) as f64 / 2f64.powi(64);
            if backward { -part } else { part }
        };
        let turns: Vec<f64> = rates.iter().map(turn).collect();
        let all = reference::rotary(head, &turns, interleaved);
        let size = head
            .iter()
            .filter(|x| x.is_finite())
            .fold(0.0f64, |most, x| most.max(x.abs()));
        expected.extend(all.into_iter().enumerate().map(|(i, y)| {
            let bound = if i < turning { size * 1.2e-6 } else { 0.0 };
            (y, bound)
        }));
    }
    compare::<T>(&format!("{kernel:?}"), &y.read()?, &expected)
}

pub(crate) fn random(case: &mut Case) -> Result<(), Failed> {
    with_a_type!(case, random_of)
}

fn random_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    case.aligned = case.chance(2);
    let count = case.one_of(&[0, 1, 7, 8, 1000, 4096]);
    let (seed, of) = (case.bits(), case.bits());
    let first = case.one_of(&[0, 5, u32::MAX - count as u32]);
    let bits = |of: u64, i: usize| perpetua_ir::math::philox::philox(seed, of, first + i as u32);
    let uniform = |of: u64, i: usize| f64::from(bits(of, i) >> 8) / f64::from(1 << 24);
    let stream = case.device.default_stream();
    let y = case.device.zeros::<u32>(count)?;
    RandomKernel::bits(count, seed, of)
        .starting_at(first)
        .launch(&stream, args![&y])?;
    if y.read()? != (0..count).map(|i| bits(of, i)).collect::<Vec<u32>>() {
        return Err(format!("bits of {seed}, {of} from {first} on: {:?}", y.read()?).into());
    }
    let normal = case.chance(2);
    let kernel = match normal {
        false => RandomKernel::uniform(count, seed, of),
        true => RandomKernel::normal(count, seed, of),
    };
    let kernel = kernel.starting_at(first).with_element(T::ELEMENT);
    let y = case.matrix::<T>([1, count, count], &vec![7.0; count])?;
    kernel.launch(&stream, args![&y.part])?;
    let expected = (0..count).map(|i| match normal {
        false => (uniform(of, i), 0.0),
        true => {
            let radius = (-2.0 * (1.0 - uniform(of, i)).ln()).sqrt();
            let angle = uniform(of.wrapping_add(1), i) * std::f64::consts::TAU;
            (radius * angle.cos(), radius * 1e-6 + 1e-6)
        }
    });
    compare::<T>(&format!("{kernel:?}"), &y.read()?, &expected.collect::<Vec<_>>())
}

pub(crate) fn dropout(case: &mut Case) -> Result<(), Failed> {
    with_a_type!(case, dropout_of)
}

fn dropout_of<T: Stored>(case: &mut Case) -> Result<(), Failed> {
    case.aligned = case.chance(2);
    let count = case.one_of(&[0, 1, 7, 8, 1000, 4096]);
    let (seed, of, share) = (case.bits(), case.bits(), case.one_of(&[0.0f32, 0.1, 0.5, 0.999]));
    let first = case.one_of(&[0, 5, u32::MAX - count as u32]);
    let x: Vec<f32> = case
        .numbers(count, 2.0)
        .into_iter()
        .map(|x| T::of(x).number())
        .collect();
    let x_buffer = case.matrix::<T>([1, count, count], &x)?;
    let y = case.matrix::<T>([1, count, count], &vec![7.0; count])?;
    let kernel = DropoutKernel::new(count, share, seed, of)
        .starting_at(first)
        .with_element(T::ELEMENT);
    kernel.launch(&case.device.default_stream(), args![&x_buffer.part, &y.part])?;
    let expected: Vec<(f64, f64)> = in_f64(&x)
        .iter()
        .enumerate()
        .map(|(i, x)| {
            let number = (philox(seed, of, first + i as u32) >> 8) as f32 / (1 << 24) as f32;
            let y = if number < share {
                0.0
            } else {
                x / (1.0 - f64::from(share))
            };
            (y, y.abs() * 2e-7)
        })
        .collect();
    compare::<T>(&format!("{kernel:?}"), &y.read()?, &expected)
}
