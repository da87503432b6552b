//! Fields in space: light on a staggered grid, substances that react, the arrival of a front.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 161: gprMax's update of the fields

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Material {
    keep: f32,
    curl: [f32; 3],
}

#[device]
fn strides([_, ny, nz]: [usize; 3]) -> [usize; 3] {
    [ny * nz, nz, 1]
}

#[device]
fn inside(at: [usize; 3], size: [usize; 3]) -> bool {
    at.iter().zip(size).all(|(a, s)| *a < s)
}

/// The components of a field, changed by the curl of the other one behind them.
#[kernel]
fn electric(
    size: [usize; 3],
    materials: &[Material],
    ids: &[[u8; 3]],
    ex: &mut [f32],
    ey: &mut [f32],
    ez: &mut [f32],
    hx: &[f32],
    hy: &[f32],
    hz: &[f32],
) {
    let at = [global_id_x(), global_id_y(), global_id_z()];
    if !inside(at, size) {
        return;
    }
    let steps = strides(size);
    let here: usize = at.iter().zip(steps).map(|(a, s)| a * s).sum();
    let e = [ex, ey, ez];
    let h = [hx, hy, hz];
    for c in 0..3 {
        let (p, q) = ((c + 1) % 3, (c + 2) % 3);
        if at[p] == 0 || at[q] == 0 {
            continue;
        }
        let material = materials[usize::from(ids[here][c])];
        let along = material.curl[p] * (h[q][here] - h[q][here - steps[p]]);
        let across = material.curl[q] * (h[p][here] - h[p][here - steps[q]]);
        e[c][here] = material.keep * e[c][here] + along - across;
    }
}

/// The same of the magnetic field, by the curl before it.
#[kernel]
fn magnetic(
    size: [usize; 3],
    materials: &[Material],
    ids: &[[u8; 3]],
    hx: &mut [f32],
    hy: &mut [f32],
    hz: &mut [f32],
    ex: &[f32],
    ey: &[f32],
    ez: &[f32],
) {
    let at = [global_id_x(), global_id_y(), global_id_z()];
    if !inside(at, size) {
        return;
    }
    let steps = strides(size);
    let here: usize = at.iter().zip(steps).map(|(a, s)| a * s).sum();
    let h = [hx, hy, hz];
    let e = [ex, ey, ez];
    for (c, field) in h.into_iter().enumerate() {
        let (p, q) = ((c + 1) % 3, (c + 2) % 3);
        if at[p] + 1 == size[p] || at[q] + 1 == size[q] {
            continue;
        }
        let Material { keep, curl } = materials[ids[here][c] as usize];
        let along = curl[p] * (e[q][here + steps[p]] - e[q][here]);
        let across = curl[q] * (e[p][here + steps[q]] - e[p][here]);
        field[here] = keep * field[here] - along + across;
    }
}

#[test]
fn fields_of_light_move_as_on_a_staggered_grid() {
    let mut random = Random(161);
    let size = [9usize, 7, 6];
    let cells = size.iter().product::<usize>();
    let materials: Vec<Material> = (0..4)
        .map(|_| Material {
            keep: random.between(0.8, 1.0) as f32,
            curl: std::array::from_fn(|_| random.between(0.1, 0.3) as f32),
        })
        .collect();
    let ids: Vec<[u8; 3]> = (0..cells)
        .map(|_| std::array::from_fn(|_| random.below(4) as u8))
        .collect();
    let fields: Vec<Vec<f32>> = (0..6)
        .map(|_| (0..cells).map(|_| random.between(-1.0, 1.0) as f32).collect())
        .collect();
    let mut expected: Vec<Vec<f64>> = fields
        .iter()
        .map(|f| f.iter().map(|v| f64::from(*v)).collect())
        .collect();
    let index = |[i, j, k]: [usize; 3]| (i * size[1] + j) * size[2] + k;
    for step in 0..6 {
        // The electric field is 0 to 2, the magnetic one 3 to 5.
        let (own, other, sign) = if step % 2 == 0 { (0, 3, 1.0) } else { (3, 0, -1.0) };
        let before = expected.clone();
        for i in 0..size[0] {
            for j in 0..size[1] {
                for k in 0..size[2] {
                    let at = [i, j, k];
                    for c in 0..3 {
                        let moved = |axis: usize| -> Option<[usize; 3]> {
                            let mut to = at;
                            if sign > 0.0 {
                                to[axis] = to[axis].checked_sub(1)?;
                            } else {
                                to[axis] += 1;
                            }
                            (to[axis] < size[axis]).then_some(to)
                        };
                        let (p, q) = ((c + 1) % 3, (c + 2) % 3);
                        let (Some(to_p), Some(to_q)) = (moved(p), moved(q)) else {
                            continue;
                        };
                        let m = &materials[usize::from(ids[index(at)][c])];
                        let change = |component: usize, to: [usize; 3]| {
                            let f = &before[other + component];
                            sign * (f[index(at)] - f[index(to)])
                        };
                        let curl =
                            f64::from(m.curl[p]) * change(q, to_p) - f64::from(m.curl[q]) * change(p, to_q);
                        expected[own + c][index(at)] =
                            f64::from(m.keep) * before[own + c][index(at)] + sign * curl;
                    }
                }
            }
        }
    }
    everywhere(|run| {
        let (materials, ids) = (run.upload(&materials), run.upload(&ids));
        let f: Vec<_> = fields.iter().map(|f| run.upload(f)).collect();
        let config = LaunchConfig::new((3, 2, 2), (4, 4, 4));
        for _ in 0..3 {
            let args = args![size, &materials, &ids, &f[0], &f[1], &f[2], &f[3], &f[4], &f[5]];
            run.launch(electric::kernel(), config, args);
            let args = args![size, &materials, &ids, &f[3], &f[4], &f[5], &f[0], &f[1], &f[2]];
            run.launch(magnetic::kernel(), config, args);
        }
        for (found, expected) in f.iter().zip(&expected) {
            run.near(found, expected, 1e-5);
        }
    });
}

// 169: Gray and Scott's substances

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Rates {
    diffusion: [f32; 2],
    feed: f32,
    kill: f32,
    noise: f32,
    step: f32,
}

#[device]
fn scrambled(seed: u32) -> u32 {
    let state = seed.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
    (word >> 22) ^ word
}

#[kernel(edge = wrap)]
fn react(
    at: volume::GridPos,
    rates: Rates,
    seed: u32,
    u: &[f32],
    v: &[f32],
    next_u: &mut [f32],
    next_v: &mut [f32],
) {
    let laplacian = |grid: &[f32]| {
        let sides = at.north(grid) + at.south(grid) + at.east(grid) + at.west(grid);
        (sides + at.up(grid) + at.down(grid)) / 6.0 - at.center(grid)
    };
    let (here_u, here_v) = (at.center(u), at.center(v));
    let reaction = here_u * here_v * here_v;
    let i = at.idx();
    let noise = scrambled(seed ^ i as u32) as f32 / u32::MAX as f32 * 2.0 - 1.0;
    let change_u =
        rates.diffusion[0] * laplacian(u) - reaction + rates.feed * (1.0 - here_u) + rates.noise * noise;
    let change_v = rates.diffusion[1] * laplacian(v) + reaction - (rates.feed + rates.kill) * here_v;
    next_u[i] = here_u + rates.step * change_u;
    next_v[i] = here_v + rates.step * change_v;
}

#[test]
fn substances_react_in_a_periodic_volume() {
    let mut random = Random(169);
    let [width, height, depth] = [12usize, 10, 6];
    let cells = width * height * depth;
    let rates = Rates {
        diffusion: [0.2, 0.1],
        feed: 0.02,
        kill: 0.048,
        noise: 0.01,
        step: 0.5,
    };
    let u: Vec<f32> = (0..cells).map(|_| random.unit() as f32).collect();
    let v: Vec<f32> = (0..cells).map(|_| random.unit() as f32).collect();
    let wide = |v: &[f32]| v.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
    let (mut a, mut b) = (wide(&u), wide(&v));
    for step in 0..4u32 {
        let spread = |grid: &[f64], i: usize| {
            let (x, y, z) = (i % width, i / width % height, i / (width * height));
            let get =
                |x: usize, y: usize, z: usize| grid[((z % depth) * height + y % height) * width + x % width];
            let sum = get(x + 1, y, z)
                + get(x + width - 1, y, z)
                + get(x, y + 1, z)
                + get(x, y + height - 1, z)
                + get(x, y, z + 1)
                + get(x, y, z + depth - 1);
            sum / 6.0 - grid[i]
        };
        let hash = |i: usize| {
            let seed = u64::from((7 + step) ^ i as u32);
            let state = (seed * 747_796_405 + 2_891_336_453) & 0xffff_ffff;
            let word = ((state >> ((state >> 28) + 4)) ^ state) * 277_803_737 & 0xffff_ffff;
            ((word >> 22) ^ word) as f64 / f64::from(u32::MAX) * 2.0 - 1.0
        };
        let [feed, kill, noise, dt] = [rates.feed, rates.kill, rates.noise, rates.step].map(f64::from);
        let after: Vec<(f64, f64)> = (0..cells)
            .map(|i| {
                let r = a[i] * b[i] * b[i];
                let du = f64::from(0.2f32) * spread(&a, i) - r + feed * (1.0 - a[i]) + noise * hash(i);
                let dv = f64::from(0.1f32) * spread(&b, i) + r - (feed + kill) * b[i];
                (a[i] + dt * du, b[i] + dt * dv)
            })
            .collect();
        (a, b) = after.into_iter().unzip();
    }
    everywhere(|run| {
        let mut now = (run.upload(&u), run.upload(&v));
        let mut next = (run.zeros::<f32>(cells), run.zeros::<f32>(cells));
        for step in 0..4u32 {
            let config = LaunchConfig::new((3, 3, 2), (4, 4, 4));
            let extent = (width as u32, height as u32, depth as u32);
            let args = args![
                rates,
                7 + step,
                &now.0,
                &now.1,
                &next.0,
                &next.1,
                extent.0,
                extent.1,
                extent.2
            ];
            run.launch(react::kernel(), config, args);
            std::mem::swap(&mut now, &mut next);
        }
        run.near(&now.0, &a, 1e-5);
        run.near(&now.1, &b, 1e-5);
    });
}

// 163: the fast iterative method

const TILE: usize = 4;

/// When a front arrives that has reached the neighbours at these times.
#[device]
fn arrival(mut times: [f32; 3], slowness: f32) -> f32 {
    times.sort_unstable_by(f32::total_cmp);
    let [a, b, c] = times;
    let one = a + slowness;
    if one <= b {
        return one;
    }
    let squared = slowness * slowness;
    let two = 0.5 * (a + b + (2.0 * squared - (b - a) * (b - a)).sqrt());
    if two <= c {
        return two;
    }
    let apart = (b - a) * (b - a) + (c - b) * (c - b) + (c - a) * (c - a);
    (a + b + c + (3.0 * squared - apart).sqrt()) / 3.0
}

#[kernel(block_size = (4, 4, 4))]
fn solve(
    size: [usize; 3],
    sweeps: u32,
    active: &[bool],
    slowness: &[f32],
    from: &[f32],
    to: &mut [f32],
    changed: &mut [bool],
) {
    let values = shared_array::<[[[f32; TILE + 2]; TILE + 2]; TILE + 2]>();
    let any = shared_array::<[u32; 1]>();
    let tile = [group_id_x(), group_id_y(), group_id_z()];
    let local = [local_id_x(), local_id_y(), local_id_z()];
    let index = |x: usize, y: usize, z: usize| (z * size[1] + y) * size[0] + x;
    let number = (tile[2] * (size[1] / TILE) + tile[1]) * (size[0] / TILE) + tile[0];
    let here = index(global_id_x(), global_id_y(), global_id_z());
    if !active[number] {
        to[here] = from[here];
        if local == [0, 0, 0] {
            changed[number] = false;
        }
        return;
    }
    let lane = (local[2] * TILE + local[1]) * TILE + local[0];
    let edge = TILE + 2;
    for cell in (lane..edge * edge * edge).step_by(TILE * TILE * TILE) {
        let [x, y, z] = [cell % edge, cell / edge % edge, cell / (edge * edge)];
        let place = |axis: usize, offset: usize| {
            (tile[axis] * TILE + offset)
                .checked_sub(1)
                .filter(|p| *p < size[axis])
        };
        values[z][y][x] = match (place(0, x), place(1, y), place(2, z)) {
            (Some(x), Some(y), Some(z)) => from[index(x, y, z)],
            _ => f32::INFINITY,
        };
    }
    if lane == 0 {
        any[0] = 0;
    }
    sync_threads();
    let [x, y, z] = local.map(|l| l + 1);
    let before = values[z][y][x];
    for _ in 0..sweeps {
        let least = [
            values[z][y][x - 1].min(values[z][y][x + 1]),
            values[z][y - 1][x].min(values[z][y + 1][x]),
            values[z - 1][y][x].min(values[z + 1][y][x]),
        ];
        let better = values[z][y][x].min(arrival(least, slowness[here]));
        sync_threads();
        values[z][y][x] = better;
        sync_threads();
    }
    let after = values[z][y][x];
    to[here] = after;
    if before - after > 1e-5 {
        atomic_or(&mut any[0], 1);
    }
    sync_threads();
    if lane == 0 {
        changed[number] = any[0] != 0;
    }
}

/// A tile is looked at again where it or a neighbour has changed.
#[kernel]
fn activate(tiles: [usize; 3], changed: &[bool], active: &mut [bool]) {
    let i = global_id_x();
    if i >= active.len() {
        return;
    }
    let at = [i % tiles[0], i / tiles[0] % tiles[1], i / (tiles[0] * tiles[1])];
    let steps = [1, tiles[0], tiles[0] * tiles[1]];
    active[i] = changed[i]
        || (0..3).any(|axis| {
            (at[axis] > 0 && changed[i - steps[axis]])
                || (at[axis] + 1 < tiles[axis] && changed[i + steps[axis]])
        });
}

#[test]
fn fronts_arrive_as_by_sweeps_of_the_whole_volume() {
    let mut random = Random(163);
    let size = [16usize, 12, 8];
    let tiles = size.map(|s| s / TILE);
    let cells: usize = size.iter().product();
    let slowness: Vec<f32> = (0..cells).map(|_| random.between(0.5, 1.5) as f32).collect();
    let source = cells / 2 + size[0] / 2;
    let mut times = vec![f64::INFINITY; cells];
    times[source] = 0.0;
    for _ in 0..100 {
        for i in 0..cells {
            let at = [i % size[0], i / size[0] % size[1], i / (size[0] * size[1])];
            let mut least = [f64::INFINITY; 3];
            let mut step = 1;
            for axis in 0..3 {
                if at[axis] > 0 {
                    least[axis] = times[i - step];
                }
                if at[axis] + 1 < size[axis] {
                    least[axis] = least[axis].min(times[i + step]);
                }
                step *= size[axis];
            }
            least.sort_by(f64::total_cmp);
            // The least number of neighbours whose solution lies before the next one.
            let s = f64::from(slowness[i]);
            for count in 1..=3 {
                let part = &least[..count];
                let (n, sum) = (count as f64, part.iter().sum::<f64>());
                let squares = part.iter().map(|t| t * t).sum::<f64>();
                let t = (sum + (sum * sum - n * (squares - s * s)).sqrt()) / n;
                if count == 3 || t <= least[count] || !t.is_finite() {
                    times[i] = times[i].min(t);
                    break;
                }
            }
        }
    }
    everywhere(|run| {
        let mut start = vec![f32::INFINITY; cells];
        start[source] = 0.0;
        let slowness = run.upload(&slowness);
        let (mut from, mut to) = (run.upload(&start), run.upload(&start));
        let count = tiles.iter().product::<usize>();
        let (active, changed) = (run.upload(&vec![true; count]), run.zeros::<bool>(count));
        let grid = (tiles[0] as u32, tiles[1] as u32, tiles[2] as u32);
        let mut launches = 0;
        while run.read(&active).contains(&true) {
            let args = args![size, 3u32, &active, &slowness, &from, &to, &changed];
            run.launch(solve::kernel(), LaunchConfig::new(grid, (4, 4, 4)), args);
            let args = args![tiles, &changed, &active];
            run.launch(activate::kernel(), LaunchConfig::linear(count, 32), args);
            std::mem::swap(&mut from, &mut to);
            launches += 1;
            assert!(launches < 200, "on {}", run.place());
        }
        run.near(&from, &times, 1e-4);
    });
}
