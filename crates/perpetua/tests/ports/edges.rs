//! Pictures: edges and seams.

use perpetua::prelude::*;

use crate::harness::{Random, Run, everywhere};
use crate::images::{noise, tiles};

// 37: Canny

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u8)]
enum Direction {
    East,
    NorthEast,
    North,
    NorthWest,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Gradient {
    magnitude: i32,
    direction: Direction,
}

#[kernel(edge = clamp)]
fn gradient(at: GridPos, image: &[i32], gradients: &mut [Gradient]) {
    let across = |dx: i32| at.at(image, dx, -1) + 2 * at.at(image, dx, 0) + at.at(image, dx, 1);
    let down = |dy: i32| at.at(image, -1, dy) + 2 * at.at(image, 0, dy) + at.at(image, 1, dy);
    let (gx, gy) = (across(1) - across(-1), down(1) - down(-1));
    // tan(22.5 degrees) = 0.41421, tan(67.5 degrees) = 2.41421
    let (ax, ay) = (gx.abs() * 10000, gy.abs() * 10000);
    let direction = if ay < gx.abs() * 4142 {
        Direction::East
    } else if ax < gy.abs() * 4142 {
        Direction::North
    } else if (gx < 0) == (gy < 0) {
        Direction::NorthEast
    } else {
        Direction::NorthWest
    };
    gradients[at.idx()] = Gradient {
        magnitude: gx.abs() + gy.abs(),
        direction,
    };
}

const WEAK: u32 = 1;
const STRONG: u32 = 2;

#[kernel(block_size = (8, 8))]
fn thin(width: usize, height: usize, low: i32, high: i32, gradients: &[Gradient], edges: &mut [u32]) {
    let (x, y) = (global_id_x(), global_id_y());
    if x >= width || y >= height {
        return;
    }
    let magnitude = |dx: i32, dy: i32| {
        let (x, y) = (x as i32 + dx, y as i32 + dy);
        let inside = (0..width as i32).contains(&x) && (0..height as i32).contains(&y);
        if inside {
            gradients[y as usize * width + x as usize].magnitude
        } else {
            0
        }
    };
    let Gradient {
        magnitude: own,
        direction,
    } = gradients[y * width + x];
    let (dx, dy) = match direction {
        Direction::East => (1, 0),
        Direction::NorthEast => (1, 1),
        Direction::North => (0, 1),
        Direction::NorthWest => (-1, 1),
    };
    let ridge = own > magnitude(-dx, -dy) && own >= magnitude(dx, dy);
    edges[y * width + x] = match own {
        m if !ridge || m < low => 0,
        m if m < high => WEAK,
        _ => STRONG,
    };
}

#[kernel(block_size = (8, 8))]
fn grow(width: usize, height: usize, edges: &mut [u32], changed: &mut [u32]) {
    let (x, y) = (global_id_x(), global_id_y());
    if x >= width || y >= height || atomic_load(&edges[y * width + x]) != WEAK {
        return;
    }
    for sy in y.saturating_sub(1)..(y + 2).min(height) {
        for sx in x.saturating_sub(1)..(x + 2).min(width) {
            if atomic_load(&edges[sy * width + sx]) == STRONG {
                atomic_store(&mut edges[y * width + x], STRONG);
                atomic_store(&mut changed[0], 1);
                return;
            }
        }
    }
}

#[test]
fn canny_finds_edges() {
    let (width, height) = (32usize, 24usize);
    let mut random = Random(37);
    let image: Vec<i32> = (0..width * height)
        .map(|i| {
            let (x, y) = ((i % width) as i32 - 15, (i / width) as i32 - 11);
            let inside = x * x + 2 * y * y < 90;
            100 * i32::from(inside) + (random.bits() % 30) as i32
        })
        .collect();
    let (low, high) = (120, 260);
    let clamped = |x: i32, y: i32| {
        image[y.clamp(0, height as i32 - 1) as usize * width + x.clamp(0, width as i32 - 1) as usize]
    };
    let sobel = |x: i32, y: i32| {
        let (mut gx, mut gy) = (0, 0);
        for (d, w) in [(-1, 1), (0, 2), (1, 1)] {
            gx += w * (clamped(x + 1, y + d) - clamped(x - 1, y + d));
            gy += w * (clamped(x + d, y + 1) - clamped(x + d, y - 1));
        }
        (gx, gy)
    };
    let size = |x: i32, y: i32| {
        if x < 0 || y < 0 || x >= width as i32 || y >= height as i32 {
            return 0;
        }
        let (gx, gy) = sobel(x, y);
        gx.abs() + gy.abs()
    };
    let mut expected = vec![0u32; width * height];
    for y in 0..height as i32 {
        for x in 0..width as i32 {
            let (gx, gy) = sobel(x, y);
            let (ax, ay) = (f64::from(gx).abs(), f64::from(gy).abs());
            let (dx, dy) = if ay < ax * 0.4142 {
                (1, 0)
            } else if ax < ay * 0.4142 {
                (0, 1)
            } else if (gx < 0) == (gy < 0) {
                (1, 1)
            } else {
                (-1, 1)
            };
            let own = size(x, y);
            if own >= low && own > size(x - dx, y - dy) && own >= size(x + dx, y + dy) {
                expected[y as usize * width + x as usize] = if own < high { WEAK } else { STRONG };
            }
        }
    }
    // From the strong ones to what touches them.
    let mut open: Vec<usize> = (0..expected.len()).filter(|i| expected[*i] == STRONG).collect();
    while let Some(i) = open.pop() {
        for k in 0..9 {
            let (x, y) = (
                i as i32 % width as i32 + k % 3 - 1,
                (i / width) as i32 + k / 3 - 1,
            );
            if x >= 0 && y >= 0 && x < width as i32 && y < height as i32 {
                let at = y as usize * width + x as usize;
                if expected[at] == WEAK {
                    expected[at] = STRONG;
                    open.push(at);
                }
            }
        }
    }
    let none = Gradient {
        magnitude: 0,
        direction: Direction::East,
    };
    everywhere(|run: &Run| {
        let (image, edges) = (run.upload(&image), run.zeros::<u32>(width * height));
        let gradients = run.upload(&vec![none; width * height]);
        run.launch(
            gradient::kernel(),
            tiles(width, height),
            args![&image, &gradients, width as u32, height as u32],
        );
        run.launch(
            thin::kernel(),
            tiles(width, height),
            args![width, height, low, high, &gradients, &edges],
        );
        loop {
            let changed = run.zeros::<u32>(1);
            run.launch(
                grow::kernel(),
                tiles(width, height),
                args![width, height, &edges, &changed],
            );
            if run.read(&changed)[0] == 0 {
                break;
            }
        }
        run.holds(&edges, &expected);
    });
}

// 40: seams

#[kernel]
fn seam_row(width: usize, row: usize, energy: &[u32], costs: &mut [u32], steps: &mut [i8]) {
    let x = global_id_x();
    if x >= width {
        return;
    }
    let at = row * width + x;
    if row == 0 {
        costs[at] = energy[at];
        return;
    }
    let above = &costs[(row - 1) * width..row * width];
    let (mut step, mut least) = (0i8, above[x]);
    if x > 0 && above[x - 1] < least {
        (step, least) = (-1, above[x - 1]);
    }
    if let Some(right) = above.get(x + 1).copied()
        && right < least
    {
        (step, least) = (1, right);
    }
    costs[at] = energy[at] + least;
    steps[at] = step;
}

#[kernel]
fn seam_back(width: usize, height: usize, costs: &[u32], steps: &[i8], seam: &mut [u32]) {
    if global_id_x() > 0 {
        return;
    }
    let last = &costs[(height - 1) * width..height * width];
    let mut x = (0..width).min_by_key(|x| last[*x]).unwrap();
    for row in (0..height).rev() {
        seam[row] = x as u32;
        x = x.wrapping_add_signed(steps[row * width + x] as isize);
    }
}

#[test]
fn seams_cost_least() {
    let (width, height) = (40usize, 25usize);
    let energy: Vec<u32> = noise(width * height, 40).iter().map(|v| u32::from(*v)).collect();
    let mut costs = vec![vec![0u32; width]; height + 1];
    for row in 0..height {
        for x in 0..width {
            let reach = &costs[row][x.saturating_sub(1)..(x + 2).min(width)];
            costs[row + 1][x] = energy[row * width + x] + reach.iter().min().unwrap();
        }
    }
    let least = *costs[height].iter().min().unwrap();
    everywhere(|run| {
        let energy_there = run.upload(&energy);
        let (costs, steps) = (run.zeros::<u32>(energy.len()), run.zeros::<i8>(energy.len()));
        let seam = run.zeros::<u32>(height);
        for row in 0..height {
            run.launch(
                seam_row::kernel(),
                LaunchConfig::linear(width, 64),
                args![width, row, &energy_there, &costs, &steps],
            );
        }
        run.launch(
            seam_back::kernel(),
            LaunchConfig::linear(1, 64),
            args![width, height, &costs, &steps, &seam],
        );
        let seam = run.read(&seam);
        let sum: u32 = seam
            .iter()
            .enumerate()
            .map(|(row, x)| energy[row * width + *x as usize])
            .sum();
        assert_eq!(sum, least, "on {}", run.place());
        assert!(seam.windows(2).all(|w| w[0].abs_diff(w[1]) <= 1));
    });
}
