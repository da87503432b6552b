//! References of which run time says what they mean: to one of several slices, arrays and variables.

use perpetua::prelude::*;

use crate::harness::check;

fn numbers(count: u32) -> Vec<u32> {
    (0..count).map(|i| i.wrapping_mul(2_654_435_761) >> 20).collect()
}

#[device]
fn total(part: &[u32]) -> u32 {
    part.iter().sum::<u32>() + part.first().map_or(7, |v| *v)
}

#[device]
fn longer<'a>(a: &'a [u32], b: &'a [u32]) -> &'a [u32] {
    if a.len() > b.len() { a } else { b }
}

#[kernel]
fn slices(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let table = [3, 1, 4, 1, 5, 9, 2, 6];
    let n = x[i] as usize;
    let chosen = if n % 3 == 0 { &table[..] } else { &x[..n % 40] };
    let (first, second) = match n % 4 {
        0 => (x, &table[1..5]),
        1 => (&table[..n % 8], x),
        _ => (&x[i..], &x[..i]),
    };
    let mut sum = total(chosen) ^ chosen.len() as u32;
    if let Some(v) = first.get(n % 16) {
        sum = sum.rotate_left(5) ^ v;
    }
    if !second.is_empty() {
        sum += second[n % second.len()];
    }
    if let [a, .., b] = longer(chosen, &second[..second.len().min(9)]) {
        sum ^= a + b * 3;
    }
    for (k, v) in first.iter().rev().enumerate().take(5) {
        sum += v * k as u32;
    }
    y[i] = sum;
}

#[test]
fn slices_are_chosen() {
    check(slices::kernel(), slices, &numbers(64), &[0u32; 64]);
}

#[kernel]
fn changed(x: &[u32], y: &mut [[u32; 12]]) {
    let i = global_id_x();
    let (mut a, mut b) = ([1u32; 4], [10u32; 8]);
    let (mut first, mut second) = (0, 100);
    for k in 0..6 {
        let v = x[(i + k) % x.len()];
        let part: &mut [u32] = if v % 2 == 0 { &mut a } else { &mut b[..5] };
        part[v as usize % 4] += v;
        part.swap(0, 3);
        if v % 5 == 0 {
            part[1..3].fill(v);
        }
        let one = if v % 3 == 0 { &mut first } else { &mut second };
        *one += v + part.len() as u32;
        *one ^= 1;
    }
    y[i][..4].copy_from_slice(&a);
    y[i][4..].copy_from_slice(&b);
    y[i][11] ^= first ^ second << 8;
}

#[test]
fn what_is_chosen_changes() {
    check(changed::kernel(), changed, &numbers(64), &[[0u32; 12]; 64]);
}

#[kernel]
fn arrays(x: &[u32], y: &mut [[u32; 4]]) {
    let i = global_id_x();
    let (mut a, mut b) = ([0u32; 8], [0u32; 8]);
    a.copy_from_slice(&x[i..i + 8]);
    // Two buffers that take turns.
    let buffers = [&mut a, &mut b];
    for step in 0..3 {
        for k in 0..8 {
            buffers[(step + 1) % 2][k] =
                buffers[step % 2][k].wrapping_mul(3) + buffers[step % 2][(k + 1) % 8];
        }
    }
    y[i][0] = b.iter().fold(a[0], |all, v| all.rotate_left(3) ^ v);
    let mut sums = [0; 3];
    for (sum, part) in sums.iter_mut().zip([&x[..i], &x[i..], &a[..]]) {
        *sum = part.iter().copied().max().unwrap_or(9) + part.len() as u32;
    }
    for counted in [&mut a, &mut b] {
        counted[i % 8] += 1;
    }
    let found: [Option<&u32>; 3] = std::array::from_fn(|k| x.get(i + 20 * k).filter(|v| **v % 2 == 0));
    y[i][1] = sums[0] ^ sums[1] << 8 ^ sums[2] << 16;
    y[i][2] = found.into_iter().flatten().sum::<u32>() + found.iter().flatten().count() as u32;
    y[i][3] = a[i % 8] ^ b[i % 8] << 7;
}

#[test]
fn arrays_hold_references() {
    check(arrays::kernel(), arrays, &numbers(72), &[[0u32; 4]; 64]);
}

#[kernel]
fn counted(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let (low, high) = y.split_at_mut(32);
    let own = if i < 32 { &mut low[i] } else { &mut high[i - 32] };
    atomic_add(own, x[i]);
    let more = if x[i] % 3 == 0 { high } else { low };
    atomic_add(&mut more[x[i] as usize % 32], 5000);
}

#[test]
fn atomics_reach_what_is_chosen() {
    use crate::harness::on_devices;
    let x = numbers(64);
    let mut expected = x.clone();
    for v in &x {
        expected[if v % 3 == 0 { 32 } else { 0 } + *v as usize % 32] += 5000;
    }
    on_devices(counted::kernel(), &x, &[0u32; 64], |found, on| {
        assert_eq!(found.unwrap(), expected, "{on}");
    });
}

/// References to one value are buffers of which the first element is meant.
#[kernel]
fn above(x: &[u32], limit: &u32, last: &mut [f32; 2], count: &mut u32) {
    let i = global_id_x();
    if i < x.len() && x[i] > *limit {
        atomic_add(count, 1);
        if i + 1 == x.len() {
            *last = [x[i] as f32, *limit as f32];
            last[1] += 0.5;
        }
    }
}

#[test]
fn kernels_take_references_to_one_value() {
    let x = [3, 9, 4, 8, 1, 5];
    let (mut last, mut count) = ([0.0; 2], 10);
    for lane in 0..6 {
        let lane = perpetua::kernel::index::Lane {
            thread: [lane, 0, 0],
            block: [0; 3],
            block_dim: [8, 1, 1],
            grid_dim: [1; 3],
        };
        lane.run(|| above(&x, &3, &mut last, &mut count));
    }
    assert_eq!((last, count), ([5.0, 3.5], 14));
    for device in crate::harness::devices() {
        let (x, limit) = (device.upload(&x).unwrap(), device.upload(&[3u32]).unwrap());
        let (last, count) = (
            device.zeros::<[f32; 2]>(1).unwrap(),
            device.full(1, 10u32).unwrap(),
        );
        let args = args![&x, &limit, &last, &count];
        device
            .launch(&above::kernel(), LaunchConfig::new(1, 8), args)
            .unwrap();
        assert_eq!(
            (last.read().unwrap()[0], count.read().unwrap()[0]),
            ([5.0, 3.5], 14)
        );
        // Of none there is no first.
        let none = device.zeros::<u32>(0);
        let Ok(none) = none else { continue };
        let launched = device.launch(
            &above::kernel(),
            LaunchConfig::new(1, 8),
            args![&x, &none, &last, &count],
        );
        let error = launched.and_then(|()| count.read()).unwrap_err().to_string();
        assert!(error.contains("index out of bounds"), "{error}");
    }
    crate::harness::renders(above::kernel());
}

const TABLE: [u32; 4] = [1, 2, 3, 4];

/// References that change mean literals, constants and arrays as they mean parts of slices.
#[kernel]
fn literals(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut all = 1u32;
    let mut text: &[u8] = b"abcdefg";
    while let Some((first, rest)) = text.split_first() {
        all = all.wrapping_mul(3) ^ u32::from(*first);
        text = rest;
    }
    let mut table: &[u32] = &TABLE;
    while table.len() > i % 4 {
        all = all.wrapping_mul(3) ^ table[0];
        table = &table[1..];
    }
    let fixed = [x[i], 2, 3];
    let mut part: &[u32] = &fixed;
    while let [first, rest @ ..] = part {
        all = all.wrapping_mul(3) ^ first;
        part = rest;
    }
    for j in 0..i % 4 {
        let mut word: &[u8] = b"hello";
        while word.len() > j {
            all = all.wrapping_mul(3) ^ u32::from(word[0]);
            word = &word[1..];
        }
    }
    y[i] = all;
}

#[test]
fn references_to_literals_change() {
    check(literals::kernel(), literals, &numbers(64), &[0u32; 64]);
}
