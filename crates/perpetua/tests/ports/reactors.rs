//! Neutrons: tables of cross-sections, in floats of 64 bits.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 91: XSBench's macroscopic cross-sections

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct GridPoint {
    energy: f64,
    xs: [f64; 5],
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Constituent {
    nuclide: u32,
    density: f64,
}

/// How often each material is met.
const SHARES: [f64; 12] = [
    0.140, 0.052, 0.275, 0.134, 0.154, 0.064, 0.066, 0.055, 0.008, 0.015, 0.025, 0.013,
];

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Lcg {
    seed: u64,
}

#[device]
impl Lcg {
    const MODULUS: u64 = 1 << 63;
    const FACTOR: u64 = 2_806_196_910_506_780_709;

    /// The generator after `n` steps, in log2 n turns.
    fn after(seed: u64, mut n: u64) -> Self {
        let (mut a, mut c) = (Self::FACTOR, 1u64);
        let (mut factor, mut summand) = (1u64, 0u64);
        n %= Self::MODULUS;
        while n > 0 {
            if n & 1 == 1 {
                factor = factor.wrapping_mul(a);
                summand = summand.wrapping_mul(a).wrapping_add(c);
            }
            c = c.wrapping_mul(a.wrapping_add(1));
            a = a.wrapping_mul(a);
            n >>= 1;
        }
        Self {
            seed: factor.wrapping_mul(seed).wrapping_add(summand) % Self::MODULUS,
        }
    }

    fn next(&mut self) -> f64 {
        self.seed = Self::FACTOR.wrapping_mul(self.seed).wrapping_add(1) % Self::MODULUS;
        self.seed as f64 / Self::MODULUS as f64
    }
}

#[device]
fn pick_material(roll: f64) -> usize {
    let mut running = 0.0;
    for (material, share) in SHARES.iter().enumerate().skip(1) {
        running += share;
        if roll < running {
            return material;
        }
    }
    0
}

#[device]
fn macroscopic(
    energy: f64,
    contents: &[Constituent],
    common: &[f64],
    indices: &[u32],
    grids: &[GridPoint],
    points: usize,
) -> [f64; 5] {
    let nuclides = grids.len() / points;
    let at = common.partition_point(|e| *e <= energy).saturating_sub(1);
    let row = &indices[at * nuclides..][..nuclides];
    let mut total = [0.0; 5];
    for &Constituent { nuclide, density } in contents {
        let nuclide = nuclide as usize;
        let grid = &grids[nuclide * points..][..points];
        let low = (row[nuclide] as usize).min(points - 2);
        let [below, above] = [grid[low], grid[low + 1]];
        let part = (above.energy - energy) / (above.energy - below.energy);
        for (sum, (high, low)) in total.iter_mut().zip(above.xs.iter().zip(&below.xs)) {
            *sum += density * (high - part * (high - low));
        }
    }
    total
}

#[kernel]
fn cross_sections(
    seed: u64,
    points: usize,
    common: &[f64],
    indices: &[u32],
    grids: &[GridPoint],
    starts: &[u32],
    contents: &[Constituent],
    sums: &mut [[f64; 5]],
    channels: &mut [u8],
) {
    let i = global_id_x();
    if i >= sums.len() {
        return;
    }
    let mut random = Lcg::after(seed, 2 * i as u64);
    let energy = random.next();
    let material = pick_material(random.next());
    let contents = &contents[starts[material] as usize..starts[material + 1] as usize];
    let total = macroscopic(energy, contents, common, indices, grids, points);
    let (channel, _) = total
        .iter()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(b.1))
        .unwrap();
    sums[i] = total;
    channels[i] = channel as u8 + 1;
}

#[test]
fn cross_sections_are_those_of_each_nuclide_by_itself() {
    let (nuclides, points, lookups) = (20, 33, 300);
    let mut random = Random(91);
    let mut grids = Vec::new();
    for _ in 0..nuclides {
        let mut energies: Vec<f64> = (0..points).map(|_| random.unit()).collect();
        energies.sort_by(f64::total_cmp);
        for energy in energies {
            grids.push(GridPoint {
                energy,
                xs: std::array::from_fn(|_| random.unit()),
            });
        }
    }
    let mut common: Vec<f64> = grids.iter().map(|p| p.energy).collect();
    common.sort_by(f64::total_cmp);
    let mut indices = Vec::new();
    for energy in &common {
        for grid in grids.chunks(points) {
            let below = grid.iter().filter(|p| p.energy <= *energy).count();
            indices.push(below.max(1) as u32 - 1);
        }
    }
    let (mut starts, mut contents) = (vec![0], Vec::new());
    for _ in 0..SHARES.len() {
        for _ in 0..1 + random.below(9) {
            contents.push(Constituent {
                nuclide: random.below(nuclides) as u32,
                density: random.unit(),
            });
        }
        starts.push(contents.len() as u32);
    }
    let (mut sums, mut channels) = (Vec::new(), Vec::new());
    let mut seed = 1070u64;
    let mut next = || {
        seed = (u128::from(seed) * 2_806_196_910_506_780_709 + 1).rem_euclid(1 << 63) as u64;
        seed as f64 / 2f64.powi(63)
    };
    for _ in 0..lookups {
        let (energy, roll) = (next(), next());
        let upto = |m: usize| SHARES[1..=m].iter().fold(0.0, |a, b| a + b);
        let material = (1..12).find(|m| roll < upto(*m)).unwrap_or(0);
        let mut total = [0.0f64; 5];
        for c in &contents[starts[material] as usize..starts[material + 1] as usize] {
            let grid = &grids[c.nuclide as usize * points..(c.nuclide as usize + 1) * points];
            let k = grid
                .iter()
                .rposition(|p| p.energy <= energy)
                .unwrap_or(0)
                .min(points - 2);
            let part = (grid[k + 1].energy - energy) / (grid[k + 1].energy - grid[k].energy);
            for j in 0..5 {
                let (a, b) = (grid[k].xs[j], grid[k + 1].xs[j]);
                total[j] += c.density * (b - part * (b - a));
            }
        }
        channels.push((0..5).fold(0, |best, j| if total[j] >= total[best] { j } else { best }) as u8 + 1);
        sums.push(total);
    }
    everywhere(|run| {
        let (common, indices, grids) = (run.upload(&common), run.upload(&indices), run.upload(&grids));
        let (starts, contents) = (run.upload(&starts), run.upload(&contents));
        let (y, which) = (run.zeros::<[f64; 5]>(lookups), run.zeros::<u8>(lookups));
        run.launch(
            cross_sections::kernel(),
            LaunchConfig::linear(lookups, 64),
            args![
                1070u64, points, &common, &indices, &grids, &starts, &contents, &y, &which
            ],
        );
        run.holds(&which, &channels);
        run.near(&y.cast::<f64>().unwrap(), &sums.concat(), 1e-12);
    });
}
