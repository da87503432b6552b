//! Kernels that look proven and are not: numbers that wrap, names that change their meaning. In these tests' builds fast
//! code asserts what was proven of each access.

#![allow(
    clippy::needless_range_loop,
    clippy::never_loop,
    clippy::eq_op,
    reason = "kernels are written to be hard to follow"
)]

use perpetua::prelude::*;

use crate::harness::{B, Proven, V, agree, check, numbers, only_fault, proves};

fn words(count: usize, seed: u64) -> Vec<u32> {
    numbers(count, seed, |bits| bits as u32)
}

#[kernel]
fn narrow(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    y[i] = x[i as u8 as usize] + x[(i as u32 * 0x4000_0001) as usize % 256];
}

#[kernel]
fn wraps_to_zero(x: &[u32], y: &mut [u32], n: usize) {
    let i = global_id_x();
    y[i] = x[i * n];
}

#[kernel]
fn wraps_below(x: &[u32], y: &mut [u32], n: usize) {
    let i = global_id_x();
    y[i + n + 1] = x[i];
}

#[kernel]
fn signed(x: &[u32], y: &mut [u32], back: i32) {
    let i = global_id_x() as i32;
    if i - back >= 0 {
        y[i as usize] = x[(i - back) as usize];
    }
    if -i < -3 && i as u32 - 4 < 10 {
        y[i as usize] += x[(i as i64 - 4) as usize];
    }
}

#[kernel]
fn unsigned_below_zero(x: &[u32], y: &mut [u32]) {
    let i = global_id_x() as u32;
    // Holds for lane 0, too: the difference wraps.
    if i - 1 < 20 || i - 1 > 4_000_000_000 {
        y[i as usize] = x[((i - 1) & 31) as usize];
    }
}

#[kernel]
fn shifts(x: &[u32], y: &mut [u32], by: u32) {
    let i = global_id_x();
    y[i] = x[(i << 1) >> 1] + x[i >> by] + x[((i as u8) << 7) as usize] + x[(i << (by + 60)) & 15];
}

#[kernel]
fn halves(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    y[i / 2] = x[i % 7] + x[i.min(5)] + x[i.max(3) - 3] + x[i.saturating_sub(9)] + x[i.clamp(2, 6)];
}

#[test]
fn numbers_that_wrap() {
    let (x, y) = (words(300, 1), words(300, 2));
    let config = LaunchConfig::new(3, 100);
    let some = Proven::AtLeast(0);
    agree(narrow::kernel(), config, &[&B(&x), &B(&y)], some);
    let n = 1usize << 61;
    agree(
        wraps_to_zero::kernel(),
        LaunchConfig::new(1, 1),
        &[&B(&x), &B(&y), &V(n)],
        some,
    );
    check(
        wraps_to_zero::kernel(),
        LaunchConfig::new(1, 9),
        &[&B(&x), &B(&y), &V(n)],
        some,
    );
    check(
        wraps_to_zero::kernel(),
        LaunchConfig::new(1, 9),
        &[&B(&x), &B(&y), &V(usize::MAX)],
        some,
    );
    for n in [
        usize::MAX,
        usize::MAX - 1,
        i64::MAX as usize,
        i64::MAX as usize - 5,
        1 << 62,
    ] {
        check(
            wraps_below::kernel(),
            LaunchConfig::new(1, 16),
            &[&B(&x), &B(&y), &V(n)],
            some,
        );
    }
    for back in [0, 5, -5, i32::MIN, i32::MAX] {
        check(signed::kernel(), config, &[&B(&x), &B(&y), &V(back)], some);
    }
    agree(unsigned_below_zero::kernel(), config, &[&B(&x), &B(&y)], some);
    for by in [0u32, 1, 4, 63, 64, 100] {
        agree(shifts::kernel(), config, &[&B(&x), &B(&y), &V(by)], some);
    }
    // Two lanes an element.
    proves(halves::kernel(), config, &[&B(&x), &B(&y)], Proven::None);
    agree(halves::kernel(), LaunchConfig::new(1, 1), &[&B(&x), &B(&y)], some);
}

#[kernel]
#[allow(non_snake_case, reason = "the test's point")]
fn shadows(order: &[u32], y: &mut [u32]) {
    let I = global_id_x();
    let i = I;
    let (i, I) = (I, order[i] as usize);
    y[I] = i as u32;
    let i = order[i] as usize % 16;
    y[I] += i as u32;
}

#[kernel]
fn bound_by_match(order: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    match order[i] {
        0 => y[0] = 1,
        i => y[i as usize] = i,
    }
}

#[kernel]
fn loop_variable_shadows(order: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let k = i;
    let mut sum = 0;
    for i in 0..order[k] as usize % 5 {
        let k = order[i] as usize;
        sum += order[k] + i as u32;
    }
    y[k] = sum;
}

#[test]
fn names_that_change() {
    // A permutation, and one that is none.
    let order: Vec<u32> = (0..64).map(|i| (i * 37 + 11) % 64).collect();
    let y = words(64, 3);
    let config = LaunchConfig::new(4, 16);
    agree(shadows::kernel(), config, &[&B(&order), &B(&y)], Proven::None);
    agree(
        bound_by_match::kernel(),
        config,
        &[&B(&order), &B(&y)],
        Proven::None,
    );
    agree(
        loop_variable_shadows::kernel(),
        config,
        &[&B(&order), &B(&y)],
        Proven::None,
    );
    let order: Vec<u32> = (0..64).map(|i| i * 5).collect();
    check(shadows::kernel(), config, &[&B(&order), &B(&y)], Proven::None);
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Pair {
    a: f32,
    b: f32,
}

#[device]
fn pulled(pair: Pair, by: f32) -> Pair {
    Pair {
        a: pair.a * by,
        b: pair.b * by,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Op {
    A,
    B,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Scene {
    pull: Pair,
    dt: f32,
    op: Op,
}

const PULL: Pair = Pair { a: 1.5, b: -2.0 };
const DT: f32 = 0.25;
const WIDTH: usize = 8;
const HEIGHT: usize = 4;

#[kernel]
fn constants(scene: Scene, y: &mut [f32]) {
    let (x, row) = (global_id_x(), global_id_y());
    let mut pull: Pair = pulled(PULL, DT);
    pull.b += 1.0;
    let other = pulled(scene.pull, scene.dt);
    let pull_of = scene.pull;
    let op = Op::A;
    let chosen = if x < WIDTH - 1 { Op::B } else { Op::A };
    let mut sum = pull.a + other.b + pull_of.a + op as u32 as f32;
    if op == scene.op {
        sum += 1.0;
    }
    if Op::A == Op::B || scene.dt == DT || scene.dt * 2.0 > DT * scene.dt {
        sum += 2.0;
    }
    if chosen == Op::B {
        sum += 4.0;
    }
    if x < WIDTH && row < HEIGHT {
        y[(HEIGHT * WIDTH - WIDTH * HEIGHT) + row * WIDTH + x] = sum;
    }
}

#[test]
fn constants_of_any_type() {
    let scene = Scene {
        pull: PULL,
        dt: 3.0,
        op: Op::A,
    };
    let y = vec![0f32; 32];
    let config = LaunchConfig::tiled(8, 4, (16, 8));
    agree(constants::kernel(), config, &[&V(scene), &B(&y)], Proven::All);
}

#[kernel]
fn sparse_rows(starts: &[u32], values: &[f32], y: &mut [f32]) {
    let row = global_id_x();
    let mut sum = 0.0;
    for k in starts[row]..starts[row + 1] {
        if values[k as usize] < 0.0 {
            continue;
        }
        if values[k as usize] > 90.0 {
            break;
        }
        sum += values[k as usize];
    }
    y[row] = sum;
}

#[kernel]
fn returns_early(x: &[u32], y: &mut [u32], n: usize) {
    let i = global_id_x();
    for k in 0..n {
        if x[i] & 1 == 0 && k > 1 {
            return;
        }
        y[i] += k as u32;
        if i + k >= 30 {
            return;
        }
        y[i + 32] += x[k];
    }
    if i > 5 {
        return;
    }
    y[i] = 0;
}

#[kernel]
fn ranges(x: &[u32], y: &mut [u32], from: i32, to: i32) {
    let i = global_id_x();
    let mut sum = 0;
    for k in (from..=to).rev().step_by(3) {
        sum += x[(k - from) as usize];
    }
    for k in i..i + 3 {
        sum += x[k] * 3;
    }
    let k = 'found: loop {
        for k in 0..5 {
            if x[k] == sum {
                break 'found k;
            }
        }
        break 4;
    };
    y[i] = sum + x[k];
}

#[test]
fn loops_whose_bounds_are_data() {
    let starts: Vec<u32> = (0..=16).map(|i| (i * i) / 3).collect();
    let values: Vec<f32> = numbers(90, 4, |bits| (bits % 130) as f32 - 20.0);
    let (x, y) = (words(64, 5), words(64, 6));
    let config = LaunchConfig::new(1, 16);
    agree(
        sparse_rows::kernel(),
        config,
        &[&B(&starts), &B(&values), &B(&[0f32; 16])],
        Proven::None,
    );
    for n in [0usize, 1, 7, 33] {
        let args: [&dyn crate::harness::Argument; 3] = [&B(&x), &B(&y), &V(n)];
        agree(returns_early::kernel(), config, &args, Proven::AtLeast(0));
    }
    check(
        returns_early::kernel(),
        LaunchConfig::new(1, 64),
        &[&B(&x), &B(&y), &V(70usize)],
        Proven::AtLeast(0),
    );
    for (from, to) in [
        (0, 0),
        (-3, 20),
        (5, 4),
        (i32::MIN, i32::MIN),
        (i32::MAX - 7, i32::MAX),
    ] {
        let args: [&dyn crate::harness::Argument; 4] = [&B(&x), &B(&y), &V(from), &V(to)];
        agree(ranges::kernel(), config, &args, Proven::AtLeast(0));
    }
}

#[kernel]
fn looks_around(a: &[f32], b: &mut [f32], pos: GridPos) {
    let around = pos.north(a) + pos.south(a) + pos.east(a) + pos.west(a);
    if around > 1e9 {
        b[pos.idx()] = around;
    }
}

#[kernel(edge = clamp)]
fn reads_only(a: &[f32], pos: GridPos) {
    let mut sum = pos.center(a) + pos.north(a) + pos.at(a, -1, 1);
    sum += a[pos.idx()];
    if sum == -1.5 {
        gpu_println!("{}", sum);
    }
}

#[kernel(edge = wrap, halo = 2)]
fn reaches(a: &[f32], b: &mut [f32], dx: i32, pos: GridPos) {
    b[pos.idx()] = pos.at(a, dx, -dx);
}

#[test]
fn stencils_on_odd_launches() {
    let numbers = |count| numbers(count, 10, |bits| (bits % 2001) as f32 / 8.0);
    let check_on = |w: u32, h: u32, config: LaunchConfig| {
        let (a, b) = (numbers((w * h) as usize), numbers((w * h) as usize));
        let some = Proven::AtLeast(0);
        agree(reads_only::kernel(), config, &[&B(&a), &V(w), &V(h)], some);
        agree(
            looks_around::kernel(),
            config,
            &[&B(&a), &B(&b), &V(w), &V(h)],
            some,
        );
        for dx in [-2, 0, 1] {
            agree(
                reaches::kernel(),
                config,
                &[&B(&a), &B(&b), &V(dx), &V(w), &V(h)],
                some,
            );
        }
        for dx in [3, -3, i32::MAX, i32::MIN] {
            check(
                reaches::kernel(),
                config,
                &[&B(&a), &B(&b), &V(dx), &V(w), &V(h)],
                some,
            );
        }
        // Too few cells for the grid that is told.
        let short = &a[..a.len() - 1];
        check(reads_only::kernel(), config, &[&B(short), &V(w), &V(h)], some);
    };
    check_on(20, 10, LaunchConfig::tiled(20, 10, (16, 16)));
    check_on(20, 10, LaunchConfig::new((2, 1, 3), (16, 16, 2)));
    check_on(1, 10, LaunchConfig::tiled(1, 10, (16, 16)));
    check_on(10, 1, LaunchConfig::new((1, 1), (16, 16)));
    check_on(2, 2, LaunchConfig::new((1, 1), (4, 4)));
    let config = LaunchConfig::new(1, (4, 4));
    let none: [f32; 0] = [];
    agree(
        reads_only::kernel(),
        config,
        &[&B(&none), &V(0u32), &V(0u32)],
        Proven::All,
    );
    check(
        reads_only::kernel(),
        config,
        &[&B(&none), &V(u32::MAX), &V(u32::MAX)],
        Proven::AtLeast(0),
    );
}

#[kernel]
fn scaled(x: &[f32], y: &mut [f32], by: f32) {
    let i = global_id_x();
    y[i] = x[i] * by + (0.0 - x[i]) * by.min(x[i]) - f32::MIN_POSITIVE / 3.0 % x[i];
}

#[test]
fn denormals_and_nans_keep_their_bits() {
    let x: Vec<f32> = numbers(4096, 11, |bits| {
        f32::from_bits((bits % (1 << 24)) as u32 | ((bits >> 39) as u32) << 31)
    });
    let config = LaunchConfig::linear(4096, 256);
    for by in [1.0f32, 0.5, 1e-3, f32::MIN_POSITIVE, 2.0] {
        agree(scaled::kernel(), config, &[&B(&x), &B(&x), &V(by)], Proven::All);
    }
}

#[kernel]
fn quotient(x: &[i32], y: &mut [i32]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = 1_000_000 / x[i];
    }
}

#[kernel]
fn looked_up(x: &[i32], table: &[i32], y: &mut [i32]) {
    let i = global_id_x();
    y[i] = 7;
    y[i] = table[(x[i] - 1) as usize];
}

/// One lane of many faults: the same fault, whatever way it was run.
#[test]
fn a_fault_names_its_lane() {
    for (at, blocks, lanes) in [(0, 1, 64), (37, 4, 16), (63, 2, 32), (1000, 40, 32)] {
        let mut x = vec![2i32; (blocks * lanes) as usize];
        x[at] = 0;
        let config = LaunchConfig::new(blocks, lanes);
        only_fault(quotient::kernel(), config, &[&B(&x), &B(&x)], Proven::All);
        only_fault(
            looked_up::kernel(),
            config,
            &[&B(&x), &B(&[5, 6]), &B(&x)],
            Proven::None,
        );
    }
}
