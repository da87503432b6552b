//! Random numbers and random places.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 12: MRG32k3a

const M1: u64 = 4_294_967_087;
const M2: u64 = 4_294_944_443;

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Mrg {
    first: [u64; 3],
    second: [u64; 3],
}

#[device]
impl Mrg {
    fn next(&mut self) -> f32 {
        let [a, b, c] = self.first;
        let p = (1_403_580 * b + 810_728 * (M1 - a)) % M1;
        self.first = [b, c, p];
        let [d, e, f] = self.second;
        let q = (527_612 * f + 1_370_589 * (M2 - d)) % M2;
        self.second = [e, f, q];
        let difference = if p > q { p - q } else { p + M1 - q };
        difference as f32 / M1 as f32
    }
}

#[kernel]
fn streams(states: &mut [Mrg], y: &mut [f32]) {
    let i = global_id_x();
    let Some(state) = states.get_mut(i) else {
        return;
    };
    let mut generator = *state;
    let each = 32;
    for value in &mut y[i * each..(i + 1) * each] {
        *value = generator.next();
    }
    *state = generator;
}

/// In floats of 64 bits, as it was published.
fn published(state: &mut [f64; 6]) -> f64 {
    let (m1, m2) = (4_294_967_087.0, 4_294_944_443.0);
    let p = (1_403_580.0 * state[1] - 810_728.0 * state[0]).rem_euclid(m1);
    let q = (527_612.0 * state[5] - 1_370_589.0 * state[3]).rem_euclid(m2);
    *state = [state[1], state[2], p, state[4], state[5], q];
    if p > q { p - q } else { p - q + m1 }
}

#[test]
fn mrg32k3a_draws_what_was_published() {
    let mut random = Random(12);
    let lanes = 200;
    let seeds: Vec<[u64; 6]> = (0..lanes)
        .map(|_| std::array::from_fn(|_| 1 + random.bits() % (M2 - 1)))
        .collect();
    let states: Vec<Mrg> = seeds
        .iter()
        .map(|s| Mrg {
            first: [s[0], s[1], s[2]],
            second: [s[3], s[4], s[5]],
        })
        .collect();
    let mut expected = Vec::new();
    for seed in &seeds {
        let mut state = seed.map(|s| s as f64);
        expected.extend((0..32).map(|_| published(&mut state) as f32 / M1 as f32));
    }
    everywhere(|run| {
        let (states, y) = (run.upload(&states), run.zeros(32 * lanes));
        let config = LaunchConfig::linear(lanes, 64);
        run.launch(streams::kernel(), config, args![&states, &y]);
        let wide: Vec<f64> = expected.iter().map(|y| f64::from(*y)).collect();
        match run.is_wgpu() {
            true => run.near(&y, &wide, 2f64.powi(-23)),
            false => run.holds(&y, &expected),
        }
    });
}

// 13: random access

const POLYNOMIAL: u32 = 0x0000_0007;

#[device]
const fn step(random: u32) -> u32 {
    (random << 1) ^ if (random as i32) < 0 { POLYNOMIAL } else { 0 }
}

#[kernel]
fn update(starts: &[u32], steps: u32, table: &mut [u32]) {
    let Some(&start) = starts.get(global_id_x()) else {
        return;
    };
    let mut random = start;
    for _ in 0..steps {
        random = step(random);
        let at = random as usize & (table.len() - 1);
        atomic_xor(&mut table[at], random);
    }
}

#[test]
fn random_access_updates_each_place_as_often() {
    let (lanes, steps, size) = (300, 100u32, 1024usize);
    let mut random = Random(13);
    let starts: Vec<u32> = (0..lanes).map(|_| random.bits() as u32 | 1).collect();
    let table: Vec<u32> = (0..size as u32).collect();
    let mut expected = table.clone();
    for start in &starts {
        let mut value = u64::from(*start);
        for _ in 0..steps {
            value <<= 1;
            if value >> 32 != 0 {
                value = (value & 0xffff_ffff) ^ 7;
            }
            expected[value as usize % size] ^= value as u32;
        }
    }
    everywhere(|run| {
        let (starts, table) = (run.upload(&starts), run.upload(&table));
        let config = LaunchConfig::linear(lanes, 64);
        run.launch(update::kernel(), config, args![&starts, steps, &table]);
        run.holds(&table, &expected);
    });
}
