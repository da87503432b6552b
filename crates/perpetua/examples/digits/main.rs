//! A small network learns the 1,797 handwritten digits of the UCI repository, by the same program on every backend: five-fold validation,
//! stratified and seeded. `cargo run --release --features tensor --example digits -- cpu`, or `cuda`, or `wgpu`

use std::{error::Error, process::ExitCode, time::Instant};

use perpetua::device::{BackendKind, Device};
use perpetua::tensor::{Adam, DType, Random, Slice, Tensor};

/// Lines of 64 brightnesses from 0 to 16, and the digit: scikit-learn's copy, whose licence lies beside it.
const DATA: &str = include_str!("digits.csv");
const FOLDS: usize = 5;
const EPOCHS: usize = 60;
const BATCH: usize = 128;
const SEED: u64 = 1;

fn lines() -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let read = |line: &str| line.split(',').map(str::parse).collect();
    let mut all: Vec<Vec<u8>> = DATA.lines().map(read).collect::<Result<_, _>>()?;
    // Mixed by a hash that depends on the seed (FNV-1a).
    let mix = |hash: u64, x: &u8| (hash ^ u64::from(*x)).wrapping_mul(0x0100_0000_01b3);
    all.sort_by_cached_key(|line| line.iter().fold(0xcbf2_9ce4_8422_2325 ^ SEED, mix));
    Ok(all)
}

/// Pictures and digits of a fold, or of all others: of each digit's lines every fifth belongs to a fold.
fn part(lines: &[Vec<u8>], fold: usize, is_test: bool, device: &Device) -> [Tensor; 2] {
    let mut seen = [0; 10];
    let belongs = lines.iter().filter(|line| {
        seen[usize::from(line[64])] += 1;
        (seen[usize::from(line[64])] % FOLDS == fold) == is_test
    });
    let all: Vec<u8> = belongs.flatten().copied().collect();
    let all = Tensor::from_slice(&all, [all.len() / 65, 65], device);
    let pixels = all.slice([Slice::from(..), Slice::from(..64)]).cast(DType::F32) / 16.0;
    [pixels, all.slice([Slice::from(..), Slice::from(64)]).squeeze(1)]
}

fn network(x: &Tensor, w: &[Tensor]) -> Tensor {
    (x.matmul(&w[0]) + &w[1]).relu().matmul(&w[2]) + &w[3]
}

/// Trains on all but a fold and gives the share of the fold that is recognised.
fn recognised(lines: &[Vec<u8>], fold: usize, epochs: usize, device: &Device) -> Result<f32, Box<dyn Error>> {
    let random = Random::new(SEED + fold as u64, device);
    let weight = |from: usize, to| random.normal([from, to]) * (2.0 / from as f64).sqrt();
    let bias = |n: usize| Tensor::zeros([n], DType::F32, device);
    let mut adam = Adam::new([weight(64, 128), bias(128), weight(128, 10), bias(10)], 0.003);
    let [x, digits] = part(lines, fold, false, device);
    Tensor::realize_all(&[&x, &digits])?;
    for start in (0..epochs).flat_map(|_| (0..x.shape()[0]).step_by(BATCH)) {
        let batch = [Slice::from(start as isize..(start + BATCH) as isize)];
        let loss = network(&x.slice(batch), adam.weights()).cross_entropy(&digits.slice(batch));
        adam.step(&loss)?;
    }
    let [x, digits] = part(lines, fold, true, device);
    let is_right = network(&x, adam.weights()).argmax(1).equal(digits);
    Ok(is_right.mean(..).to_vec::<f32>()?[0])
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "auto".into());
    let kind = BackendKind::from_name(&name).ok_or("take cpu, cuda, wgpu or auto")?;
    let (device, lines, mut sum) = (Device::new(kind, 0)?, lines()?, 0.0);
    println!("| fold on {name} | recognised | seconds |\n|---|---|---|");
    for fold in 0..FOLDS {
        let begun = Instant::now();
        let share = 100.0 * recognised(&lines, fold, EPOCHS, &device)?;
        println!("| {fold} | {share:.2}% | {:.2} |", begun.elapsed().as_secs_f32());
        sum += share / FOLDS as f32;
    }
    println!("| mean | {sum:.2}% | |");
    Ok(())
}

#[cfg(test)]
mod tests;
