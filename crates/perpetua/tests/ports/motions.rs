//! Moving pictures: vectors of motion.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 230: vectors of motion

const SEARCH: usize = 4;
const POSITIONS: usize = (2 * SEARCH + 1) * (2 * SEARCH + 1);

/// Where a position of the window is, from its middle.
#[device]
fn shift(position: usize) -> [i32; 2] {
    let side = 2 * SEARCH + 1;
    [position % side, position / side].map(|p| p as i32 - SEARCH as i32)
}

/// A block for 4 x 4 samples, compared at each position of the window; beyond the edge the picture goes on as there.
#[kernel(block_size = 32)]
fn sad_blocks<T: Copy + Into<i32>>(width: usize, height: usize, now: &[T], before: &[T], sums: &mut [u16]) {
    let own = shared_array::<[i32; 16]>();
    let lane = local_id_x();
    let (left, top) = (group_id_x() * 4, group_id_y() * 4);
    if lane < 16 {
        own[lane] = now[(top + lane / 4) * width + left + lane % 4].into();
    }
    sync_threads();
    let block = group_id_y() * (width / 4) + group_id_x();
    let sums = &mut sums[block * POSITIONS..][..POSITIONS];
    for (position, sum) in sums.iter_mut().enumerate().skip(lane).step_by(32) {
        let [dx, dy] = shift(position);
        let differences = own.iter().enumerate().map(|(k, own)| {
            let x = (left + k % 4).saturating_add_signed(dx as isize).min(width - 1);
            let y = (top + k / 4).saturating_add_signed(dy as isize).min(height - 1);
            let other: i32 = before[y * width + x].into();
            own.abs_diff(other)
        });
        *sum = differences.sum::<u32>() as u16;
    }
}

/// The best position of blocks of `SIDE` x `SIDE` of those, the first of several.
#[kernel(block_size = 32)]
fn sad_best<const SIDE: usize>(columns: usize, sums: &[u16], vectors: &mut [[i32; 2]], best: &mut [u32]) {
    let least = shared_array::<[u32; 1]>();
    let lane = local_id_x();
    if lane == 0 {
        least[0] = u32::MAX;
    }
    sync_threads();
    for position in (lane..POSITIONS).step_by(32) {
        let sum: u32 = (0..SIDE * SIDE)
            .map(|k| {
                let (x, y) = (group_id_x() * SIDE + k % SIDE, group_id_y() * SIDE + k / SIDE);
                u32::from(sums[(y * columns + x) * POSITIONS + position])
            })
            .sum();
        atomic_min(&mut least[0], sum << 8 | position as u32);
    }
    sync_threads();
    if lane == 0 {
        let found = least[0];
        let block = group_id_y() * (columns / SIDE) + group_id_x();
        vectors[block] = shift((found & 255) as usize);
        best[block] = found >> 8;
    }
}

#[test]
fn motion_is_where_differences_are_least() {
    let mut random = Random(230);
    let (width, height) = (28usize, 20usize);
    let (columns, rows) = (7usize, 5usize);
    let before: Vec<u8> = random.bytes(width * height);
    // Mostly the picture before, moved by (2, -1).
    let now: Vec<u8> = (0..width * height)
        .map(|i| {
            let (x, y) = ((i % width + 2).min(width - 1), (i / width).saturating_sub(1));
            before[y * width + x] ^ (random.bits() % 4) as u8
        })
        .collect();
    let clamped = |x: i32, y: i32| before[y.clamp(0, 19) as usize * width + x.clamp(0, 27) as usize];
    let sad = |left: usize, top: usize, side: usize, dx: i32, dy: i32| -> u32 {
        let mut sum = 0;
        for y in top..top + side {
            for x in left..left + side {
                let other = clamped(x as i32 + dx, y as i32 + dy);
                sum += u32::from(now[y * width + x].abs_diff(other));
            }
        }
        sum
    };
    let mut all = vec![];
    for block in 0..columns * rows {
        for dy in -4..=4 {
            for dx in -4..=4 {
                all.push(sad(block % columns * 4, block / columns * 4, 4, dx, dy) as u16);
            }
        }
    }
    let best_of = |side: usize| {
        let (mut vectors, mut best) = (vec![], vec![]);
        for block_y in 0..rows / side {
            for block_x in 0..columns / side {
                let mut found = (u32::MAX, [0, 0]);
                for dy in -4..=4 {
                    for dx in -4..=4 {
                        let sum = sad(block_x * side * 4, block_y * side * 4, side * 4, dx, dy);
                        if sum < found.0 {
                            found = (sum, [dx, dy]);
                        }
                    }
                }
                best.push(found.0);
                vectors.push(found.1);
            }
        }
        (vectors, best)
    };
    let (small, large) = (best_of(1), best_of(2));
    let wide = |picture: &[u8]| -> Vec<u16> { picture.iter().map(|v| u16::from(*v) * 4).collect() };
    let four_times: Vec<u16> = all.iter().map(|v| v * 4).collect();
    everywhere(|run| {
        let sums = run.zeros::<u16>(columns * rows * POSITIONS);
        let config = || LaunchConfig::new((columns as u32, rows as u32), 32);
        let (tens, tens_before) = (run.upload(&wide(&now)), run.upload(&wide(&before)));
        run.launch(
            sad_blocks::kernel::<u16>(),
            config(),
            args![width, height, &tens, &tens_before, &sums],
        );
        run.holds(&sums, &four_times);
        let (now, before) = (run.upload(&now), run.upload(&before));
        run.launch(
            sad_blocks::kernel::<u8>(),
            config(),
            args![width, height, &now, &before, &sums],
        );
        run.holds(&sums, &all);
        let (vectors, best) = (
            run.zeros::<[i32; 2]>(columns * rows),
            run.zeros::<u32>(columns * rows),
        );
        run.launch(
            sad_best::kernel::<1>(),
            config(),
            args![columns, &sums, &vectors, &best],
        );
        run.holds(&vectors, &small.0);
        run.holds(&best, &small.1);
        let count = columns / 2 * (rows / 2);
        let (vectors, best) = (run.zeros::<[i32; 2]>(count), run.zeros::<u32>(count));
        let config = LaunchConfig::new((columns as u32 / 2, rows as u32 / 2), 32);
        run.launch(
            sad_best::kernel::<2>(),
            config,
            args![columns, &sums, &vectors, &best],
        );
        run.holds(&vectors, &large.0);
        run.holds(&best, &large.1);
    });
}
