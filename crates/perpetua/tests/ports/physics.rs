//! Physics on grids.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 47: lattice Boltzmann, D2Q9

const STEPS: [(i32, i32); 9] = [
    (0, 0),
    (1, 0),
    (0, 1),
    (-1, 0),
    (0, -1),
    (1, 1),
    (-1, 1),
    (-1, -1),
    (1, -1),
];
const WEIGHTS: [f32; 9] = [
    4.0 / 9.0,
    1.0 / 9.0,
    1.0 / 9.0,
    1.0 / 9.0,
    1.0 / 9.0,
    1.0 / 36.0,
    1.0 / 36.0,
    1.0 / 36.0,
    1.0 / 36.0,
];
const OPPOSITE: [usize; 9] = [0, 3, 4, 1, 2, 7, 8, 5, 6];

#[kernel(block_size = (8, 8))]
fn lattice(width: usize, height: usize, omega: f32, wall: &[bool], from: &[[f32; 9]], to: &mut [[f32; 9]]) {
    let (x, y) = (global_id_x(), global_id_y());
    if x >= width || y >= height {
        return;
    }
    // What comes here from the neighbours, around the edges.
    let mut here = [0.0; 9];
    for (k, (dx, dy)) in STEPS.into_iter().enumerate() {
        let sx = (x as i32 - dx).rem_euclid(width as i32) as usize;
        let sy = (y as i32 - dy).rem_euclid(height as i32) as usize;
        here[k] = from[sy * width + sx][k];
    }
    let at = y * width + x;
    if wall[at] {
        to[at] = OPPOSITE.map(|k| here[k]);
        return;
    }
    let density: f32 = here.iter().sum();
    let (mut ux, mut uy) = (0.0, 0.0);
    for (f, (dx, dy)) in here.iter().zip(STEPS) {
        ux += f * dx as f32 / density;
        uy += f * dy as f32 / density;
    }
    let square = 1.5 * (ux * ux + uy * uy);
    to[at] = std::array::from_fn(|k| {
        let along = 3.0 * (STEPS[k].0 as f32 * ux + STEPS[k].1 as f32 * uy);
        let equilibrium = WEIGHTS[k] * density * (1.0 + along + 0.5 * along * along - square);
        here[k] + omega * (equilibrium - here[k])
    });
}

#[test]
fn lbm_flows_around_obstacles() {
    let (width, height, omega) = (24usize, 17usize, 1.2f64);
    let mut random = Random(47);
    let wall: Vec<bool> = (0..width * height)
        .map(|i| i / width == 0 || (i % width).abs_diff(8) + (i / width).abs_diff(8) < 4)
        .collect();
    let start: Vec<[f32; 9]> = (0..width * height)
        .map(|_| std::array::from_fn(|k| WEIGHTS[k] * (0.95 + (random.bits() % 100) as f32 / 1000.0)))
        .collect();
    let mut cells: Vec<[f64; 9]> = start.iter().map(|c| c.map(f64::from)).collect();
    for _ in 0..5 {
        // Collides after it streams: first each value is pushed to where it goes.
        let mut moved = vec![[0.0; 9]; cells.len()];
        for (i, cell) in cells.iter().enumerate() {
            for k in 0..9 {
                let x = (i % width + width).wrapping_add_signed(STEPS[k].0 as isize) % width;
                let y = (i / width + height).wrapping_add_signed(STEPS[k].1 as isize) % height;
                moved[y * width + x][k] = cell[k];
            }
        }
        for (i, cell) in moved.iter_mut().enumerate() {
            let f = *cell;
            if wall[i] {
                (1..9).for_each(|k| cell[k] = f[(k - 1) / 4 * 4 + (k + 1) % 4 + 1]);
                continue;
            }
            let density: f64 = f.iter().sum();
            let u = [
                (f[1] + f[5] + f[8] - f[3] - f[6] - f[7]) / density,
                (f[2] + f[5] + f[6] - f[4] - f[7] - f[8]) / density,
            ];
            for k in 0..9 {
                let c = [f64::from(STEPS[k].0), f64::from(STEPS[k].1)];
                let cu = c[0] * u[0] + c[1] * u[1];
                let uu = u[0] * u[0] + u[1] * u[1];
                let weight = [4.0 / 9.0, 1.0 / 9.0, 1.0 / 36.0][usize::from(k > 0) + usize::from(k > 4)];
                cell[k] += omega * (weight * density * (1.0 + 3.0 * cu + 4.5 * cu * cu - 1.5 * uu) - f[k]);
            }
        }
        cells = moved;
    }
    everywhere(|run| {
        let walls = run.upload(&wall);
        let (mut from, mut to) = (run.upload(&start), run.upload(&start));
        for _ in 0..5 {
            run.launch(
                lattice::kernel(),
                LaunchConfig::tiled(width as u32, height as u32, (8, 8)),
                args![width, height, omega as f32, &walls, &from, &to],
            );
            std::mem::swap(&mut from, &mut to);
        }
        let found = run.upload(&run.read(&from).concat());
        run.near(&found, &cells.concat(), 1e-5);
    });
}

// 49: the Ising model

#[device]
fn scrambled(seed: u32, step: u32, cell: u32) -> u32 {
    [step, cell].iter().fold(seed, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b1);
        (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca77) ^ mixed >> 13
    })
}

#[kernel(block_size = (8, 8))]
fn ising(width: usize, height: usize, colour: usize, step: u32, beta: f32, spins: &mut [i8]) {
    let (x, y) = (global_id_x(), global_id_y());
    if x >= width || y >= height || (x + y) % 2 != colour {
        return;
    }
    let (west, east) = ((x + width - 1) % width, (x + 1) % width);
    let (north, south) = ((y + height - 1) % height, (y + 1) % height);
    let around = [(west, y), (east, y), (x, north), (x, south)];
    let sum: i8 = around.iter().map(|(x, y)| spins[y * width + x]).sum();
    let spin = &mut spins[y * width + x];
    let cost = 2 * i32::from(*spin) * i32::from(sum);
    let drawn = scrambled(49, step, (y * width + x) as u32);
    if cost <= 0 || (drawn as f32) < 4_294_967_296.0 * (-beta * cost as f32).exp() {
        *spin = -*spin;
    }
}

#[test]
fn ising_flips_spins() {
    let (width, height, beta) = (20usize, 14usize, 0.4f64);
    let mut random = Random(49);
    let start: Vec<i8> = (0..width * height)
        .map(|_| [-1, 1][random.bits() as usize % 2])
        .collect();
    let mut expected = start.clone();
    for step in 0..6u32 {
        let before = expected.clone();
        for i in 0..expected.len() {
            let (x, y) = (i % width, i / width);
            if (x + y) % 2 != step as usize % 2 {
                continue;
            }
            let at = |x: usize, y: usize| i32::from(before[y % height * width + x % width]);
            let sum = at(x + 1, y) + at(x + width - 1, y) + at(x, y + 1) + at(x, y + height - 1);
            let cost = 2 * sum * i32::from(before[i]);
            let mut hash = 49u32;
            for word in [step, i as u32] {
                hash = (hash ^ word).wrapping_mul(0x9e37_79b1);
                hash = (hash ^ hash >> 15).wrapping_mul(0x85eb_ca77) ^ hash >> 13;
            }
            let chance = (-beta * f64::from(cost)).exp();
            if cost <= 0 || f64::from(hash) / 4_294_967_296.0 < chance {
                expected[i] = -before[i];
            }
        }
    }
    everywhere(|run| {
        let spins = run.upload(&start);
        for step in 0..6u32 {
            run.launch(
                ising::kernel(),
                LaunchConfig::tiled(width as u32, height as u32, (8, 8)),
                args![width, height, step as usize % 2, step, beta as f32, &spins],
            );
        }
        run.holds(&spins, &expected);
    });
}

// 52: pressure in a driven cavity

#[kernel(block_size = (8, 8))]
fn relax_cells(
    size: usize,
    colour: usize,
    omega: f32,
    source: &[f32],
    pressure: &mut [f32],
    residual: &mut [f32],
) {
    let sums = shared_array::<[f32; 64]>();
    let (x, y) = (global_id_x() + 1, global_id_y() + 1);
    let lane = local_id_y() * 8 + local_id_x();
    let mut own = 0.0;
    if x <= size && y <= size && (x + y) % 2 == colour {
        let row = size + 2;
        let at = y * row + x;
        let around = pressure[at - 1] + pressure[at + 1] + pressure[at - row] + pressure[at + row];
        let change = (around - source[at]) / 4.0 - pressure[at];
        pressure[at] += omega * change;
        own = change * change;
    }
    sums[lane] = own;
    sync_threads();
    let mut half = 32;
    while half > 0 {
        if lane < half {
            sums[lane] += sums[lane + half];
        }
        sync_threads();
        half >>= 1;
    }
    if lane == 0 {
        atomic_add(&mut residual[0], sums[0]);
    }
}

#[test]
fn cavity_pressure_settles() {
    let (size, omega) = (22usize, 1.6f64);
    let row = size + 2;
    let mut random = Random(52);
    let source: Vec<f32> = (0..row * row)
        .map(|_| (random.bits() % 100) as f32 / 100.0 - 0.5)
        .collect();
    let mut expected = vec![0f64; row * row];
    let mut residuals = Vec::new();
    for half in 0..12 {
        let mut sum = 0.0;
        for i in 0..size * size {
            let (x, y) = (i % size + 1, i / size + 1);
            if (x + y) % 2 == half % 2 {
                let near = [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)];
                let mean: f64 = near.iter().map(|(x, y)| expected[y * row + x]).sum();
                let change = (mean - f64::from(source[y * row + x])) / 4.0 - expected[y * row + x];
                expected[y * row + x] += omega * change;
                sum += change * change;
            }
        }
        residuals.push(sum);
    }
    everywhere(|run| {
        let (source, pressure) = (run.upload(&source), run.zeros::<f32>(row * row));
        for half in 0..12 {
            let residual = run.zeros::<f32>(1);
            run.launch(
                relax_cells::kernel(),
                LaunchConfig::tiled(size as u32, size as u32, (8, 8)),
                args![size, half % 2, omega as f32, &source, &pressure, &residual],
            );
            run.near(&residual, &residuals[half..=half], 1e-4);
        }
        run.near(&pressure, &expected, 1e-5);
    });
}
