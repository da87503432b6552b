//! Which lanes are proven: guards, edges, rows, loops, blocks.

use perpetua::prelude::*;

use crate::harness::{B, Proven, V, agree, check, numbers, proves};

fn floats(count: usize, seed: u64) -> Vec<f32> {
    numbers(count, seed, |bits| (bits % 2001) as f32 / 8.0 - 100.0)
}

#[kernel]
fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] += a * x[i];
    }
}

#[kernel]
fn cuda_scale(data: &mut [f32], scale: f32, n: i32) {
    let idx = block_idx_x() * block_dim_x() + thread_idx_x();
    if idx >= n {
        return;
    }
    data[idx as usize] *= scale;
}

#[kernel]
fn unguarded(x: &[f32], y: &mut [f32]) {
    y[global_id_x()] = x[global_id_x()];
}

#[test]
fn guards_are_known_on_either_side() {
    let (x, y) = (floats(1000, 1), floats(1000, 2));
    let config = LaunchConfig::linear(1000, 256);
    agree(
        saxpy::kernel(),
        config,
        &[&V(1.5f32), &B(&x), &B(&y)],
        Proven::All,
    );
    agree(
        cuda_scale::kernel(),
        config,
        &[&B(&y), &V(3.0f32), &V(999i32)],
        Proven::All,
    );
    // x is shorter than the guard believes.
    let fault = check(
        saxpy::kernel(),
        config,
        &[&V(1.5f32), &B(&x[..900]), &B(&y)],
        Proven::Exactly(900 + 24),
    );
    assert!(fault.is_some());
    let fault = check(
        unguarded::kernel(),
        config,
        &[&B(&x), &B(&y)],
        Proven::Exactly(1000),
    );
    assert!(fault.is_some());
}

#[kernel]
fn wave(p: &[f32], q: &mut [f32], c: f32, width: u32, height: u32) {
    let x = global_id_x() as u32;
    let y = global_id_y() as u32;
    if x < 1 || x >= width - 1 || y < 1 || y >= height - 1 {
        return;
    }
    let i = (y * width + x) as usize;
    let w = width as usize;
    let around = p[i - 1] + p[i + 1] + p[i - w] + p[i + w];
    q[i] = 2.0 * p[i] - q[i] + c * (around - 4.0 * p[i]);
}

#[kernel]
fn shifted(x: &[f32], y: &mut [f32], w: usize) {
    let (i, j) = (global_id_x(), global_id_y());
    let left = if i > 0 { i - 1 } else { w - 1 };
    y[j * w + i] = x[j * w + left];
}

#[test]
fn grids_of_two_axes_are_cut_at_their_edges() {
    let (w, h) = (100u32, 37u32);
    let (p, q) = (floats((w * h) as usize, 3), floats((w * h) as usize, 4));
    let config = LaunchConfig::tiled(w, h, (16, 8));
    let lanes = Proven::Exactly(config.lanes());
    agree(
        wave::kernel(),
        config,
        &[&B(&p), &B(&q), &V(0.25f32), &V(w), &V(h)],
        lanes,
    );
    let config = LaunchConfig::new((5, 37), (20, 1));
    agree(
        shifted::kernel(),
        config,
        &[&B(&p), &B(&q), &V(w as usize)],
        Proven::All,
    );
    // Rows that overlap: lanes are not told apart.
    let config = LaunchConfig::new((5, 30), (20, 1));
    proves(
        shifted::kernel(),
        config,
        &[&B(&p), &B(&q), &V(90usize)],
        Proven::None,
    );
}

#[kernel]
fn rows(x: &[f32], y: &mut [f32], n: usize) {
    let row = global_id_x();
    let mut sum = 0.0;
    for k in 0..n {
        sum += x[row * n + k];
    }
    y[row] = sum;
}

#[kernel]
fn product(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
    let (col, row) = (global_id_x(), global_id_y());
    if col < n && row < n {
        let mut sum = 0.0f32;
        for k in 0..n {
            sum = a[row * n + k].mul_add(b[k * n + col], sum);
        }
        c[row * n + col] = sum;
    }
}

#[kernel]
fn pairs(y: &mut [f32]) {
    let i = global_id_x() * 2;
    for k in 0..2 {
        y[i + k] = y[i + k] * 2.0 + k as f32;
    }
}

#[kernel]
fn triples_apart_by_two(y: &mut [f32]) {
    let i = global_id_x() * 2;
    for k in 0..3 {
        y[i + k] = 1.0;
    }
}

#[test]
fn loops_reach_an_interval() {
    let (x, y) = (floats(64 * 50, 5), floats(64, 6));
    agree(
        rows::kernel(),
        LaunchConfig::new(2, 32),
        &[&B(&x), &B(&y), &V(50usize)],
        Proven::All,
    );
    let (a, b, c) = (floats(900, 7), floats(900, 8), floats(900, 9));
    let config = LaunchConfig::tiled(30, 30, (8, 8));
    agree(
        product::kernel(),
        config,
        &[&B(&a), &B(&b), &B(&c), &V(30usize)],
        Proven::All,
    );
    agree(pairs::kernel(), LaunchConfig::new(2, 16), &[&B(&y)], Proven::All);
    agree(
        triples_apart_by_two::kernel(),
        LaunchConfig::new(2, 15),
        &[&B(&y)],
        Proven::None,
    );
}

#[kernel]
fn within_groups(y: &mut [u32]) {
    let group = group_id_x();
    let lane = local_id_x();
    let n = block_dim_x() as usize;
    y[group * n + (n - 1 - lane)] = (thread_idx_x() * 1000 + block_idx_x()) as u32;
}

#[kernel]
fn one_lane_a_group(y: &mut [u32]) {
    if thread_idx_x() == 0 {
        y[block_idx_x() as usize] = grid_dim_x() as u32;
    }
}

#[kernel]
fn in_three_axes(y: &mut [u32], w: u32, h: u32) {
    let (x, yy, z) = (global_id_x() as u32, global_id_y() as u32, global_id_z() as u32);
    if x < w && yy < h {
        y[((z * h + yy) * w + x) as usize] = x + 100 * yy + 10_000 * z + global_size_z() as u32;
    }
}

#[test]
fn blocks_and_axes_are_told_apart() {
    let y = vec![7u32; 96];
    agree(
        within_groups::kernel(),
        LaunchConfig::new(6, 16),
        &[&B(&y)],
        Proven::All,
    );
    agree(
        one_lane_a_group::kernel(),
        LaunchConfig::new(6, 16),
        &[&B(&y)],
        Proven::All,
    );
    let y = vec![7u32; 5 * 3 * 4];
    let config = LaunchConfig::new((2, 1, 2), (3, 4, 2));
    agree(
        in_three_axes::kernel(),
        config,
        &[&B(&y), &V(5u32), &V(3u32)],
        Proven::All,
    );
}

#[kernel]
fn gather(x: &[f32], index: &[u32], y: &mut [f32]) {
    let i = global_id_x();
    y[i] = x[index[i] as usize];
}

#[kernel]
fn grid_stride(x: &[f32], y: &mut [f32]) {
    let mut i = global_id_x();
    while i < x.len() {
        y[i] = x[i] * 2.0;
        i += global_size_x();
    }
}

#[kernel]
fn counted_stride(x: &[f32], y: &mut [f32]) {
    for i in (global_id_x()..x.len()).step_by(global_size_x()) {
        y[i] = x[i] * 2.0;
    }
}

#[kernel]
fn soft(x: &[u32], y: &mut [u32]) {
    // The loop's type is only known from `small`, where it wraps.
    let i = global_id_x();
    for k in 0..3 {
        let small: u8 = k;
        y[i] = x[((k + 254) % 255) as usize] + small as u32;
    }
}

#[test]
fn what_cannot_be_proven_is_checked() {
    let (x, y) = (floats(100, 10), floats(100, 11));
    let index: Vec<u32> = numbers(100, 12, |bits| (bits % 100) as u32);
    agree(
        gather::kernel(),
        LaunchConfig::new(4, 25),
        &[&B(&x), &B(&index), &B(&y)],
        Proven::None,
    );
    agree(
        grid_stride::kernel(),
        LaunchConfig::new(1, 16),
        &[&B(&x), &B(&y)],
        Proven::None,
    );
    agree(
        counted_stride::kernel(),
        LaunchConfig::new(1, 16),
        &[&B(&x), &B(&y)],
        Proven::None,
    );
}

#[test]
fn types_that_inference_finds_are_known() {
    let (a, b) = (vec![5u32; 300], vec![0u32; 8]);
    let config = LaunchConfig::new(1, 8);
    agree(soft::kernel(), config, &[&B(&a), &B(&b)], Proven::All);
    proves(soft::kernel(), config, &[&B(&a[..254]), &B(&b)], Proven::None);
}

#[kernel]
fn in_place(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    y[i] = x[i] + 1.0;
}

#[test]
fn one_buffer_under_two_names() {
    use perpetua::device::Overlap;
    use perpetua::device::native::{NativeArg, NativeLaunch};
    let mut data = floats(64, 13);
    let start = data.as_mut_ptr();
    let part = |from: usize, len: usize| NativeArg::Buffer {
        ptr: start.wrapping_add(from).cast(),
        len,
    };
    let proven = |x, y, overlaps: &[Overlap]| {
        let launch = NativeLaunch {
            grid: 2.into(),
            block: 16.into(),
            shared_bytes: 0,
            overlaps,
        };
        in_place::kernel().proven(&launch, &[x, y])
    };
    let overlap = |same| Overlap {
        first: 0,
        second: 1,
        same,
    };
    assert_eq!(proven(part(0, 32), part(32, 32), &[]), Some(32), "side by side");
    assert_eq!(
        proven(part(0, 32), part(0, 32), &[overlap(true)]),
        Some(32),
        "the same"
    );
    assert_eq!(
        proven(part(0, 32), part(1, 32), &[overlap(false)]),
        Some(0),
        "one beside the other"
    );
}

#[kernel]
fn sum_of_neighbours(x: &[f32], y: &[f32], z: &mut [f32]) {
    let i = global_id_x();
    z[i] = x[i] + y[i + 1];
}

/// Lanes read by the second name what others store to by the third.
#[test]
fn one_buffer_under_three_names() {
    use perpetua::device::Overlap;
    use perpetua::device::native::{NativeArg, NativeLaunch};
    let mut data = floats(33, 14);
    let buffer = NativeArg::Buffer {
        ptr: data.as_mut_ptr().cast(),
        len: data.len(),
    };
    let pair = |first, second| Overlap {
        first,
        second,
        same: true,
    };
    let launch = NativeLaunch {
        grid: 2.into(),
        block: 16.into(),
        shared_bytes: 0,
        overlaps: &[pair(0, 1), pair(0, 2), pair(1, 2)],
    };
    let proven = sum_of_neighbours::kernel().proven(&launch, &[buffer; 3]);
    assert_eq!(proven, Some(0));
}

#[kernel]
fn blur(a: &[f32], b: &mut [f32], pos: GridPos) {
    let sum = pos.north(a) + pos.south(a) + pos.east(a) + pos.west(a) + pos.center(a);
    b[pos.idx()] = sum / 5.0 + pos.x() as f32 - pos.y() as f32;
}

#[kernel(edge = clamp)]
fn blur_clamped(a: &[f32], b: &mut [f32], pos: GridPos) {
    b[pos.idx()] = pos.north(a) + pos.south(a) + pos.east(a) + pos.west(a) + pos.at(a, 1, -1);
}

#[kernel(edge = wrap, halo = 2)]
fn blur_wrapped(a: &[f32], b: &mut [f32], pos: GridPos) {
    let mut sum = 0.0;
    for dy in -2..=2 {
        for dx in -2..=2 {
            sum += pos.at(a, dx, dy);
        }
    }
    b[pos.idx()] = sum;
}

#[kernel(edge = constant(-7.5))]
fn blur_constant(a: &[f32], b: &mut [f32], pos: GridPos) {
    b[pos.idx()] = pos.north(a) + pos.south(a) + pos.east(a) + pos.west(a);
}

#[kernel(edge = clamp)]
fn blur_volume(a: &[f32], b: &mut [f32], pos: volume::GridPos) {
    b[pos.idx()] = pos.up(a) + pos.down(a) + pos.at(a, 1, 1, 1) + pos.z() as f32;
}

#[kernel(tile = (16, 16), edge = wrap)]
fn blur_tiled(a: &[f32], b: &mut [f32], pos: GridPos) {
    b[pos.idx()] = pos.north(a) + pos.south(a) + pos.east(a) + pos.west(a);
}

#[test]
fn stencils_follow_their_edge_rule() {
    let (w, h) = (45u32, 23u32);
    let (a, b) = (floats((w * h) as usize, 14), floats((w * h) as usize, 15));
    let config = LaunchConfig::tiled(w, h, (16, 16));
    let run = |kernel, inner: u64| {
        agree(
            kernel,
            config,
            &[&B(&a), &B(&b), &V(w), &V(h)],
            Proven::AtLeast(inner),
        );
    };
    run(blur::kernel(), config.lanes());
    run(blur_clamped::kernel(), 43 * 21);
    run(blur_wrapped::kernel(), 41 * 19);
    run(blur_constant::kernel(), 43 * 21);
    run(blur_tiled::kernel(), 43 * 21);
    let config = LaunchConfig::new((2, 2, 1), (8, 4, 4));
    let (a, b) = (floats(15 * 7 * 4, 16), floats(15 * 7 * 4, 17));
    let args: [&dyn crate::harness::Argument; 5] = [&B(&a), &B(&b), &V(15u32), &V(7u32), &V(4u32)];
    agree(blur_volume::kernel(), config, &args, Proven::AtLeast(13 * 5 * 2));
}
