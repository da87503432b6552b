//! Iterators further: single items, names for iterators, what is left of chunks, keys, parts from the end.

use perpetua::prelude::*;

use crate::harness::check;

const SIZE: usize = 96;

fn numbers() -> Vec<u32> {
    (0..SIZE + 24).map(|i| (i * 37 % 101) as u32).collect()
}

fn run(kernel: KernelFn, host: fn(&[u32], &mut [u32])) {
    check(kernel, host, &numbers(), &[0; SIZE]);
}

#[kernel]
fn picked(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[i..i + i % 9];
    let mut sum = part.iter().nth(3).copied().unwrap_or(1);
    sum += part
        .chunks(2)
        .nth(1)
        .map_or(2, |pair| pair[0] * pair.len() as u32);
    sum += part.iter().copied().last().unwrap_or(3) + part.iter().next().map_or(4, |v| *v);
    sum += part.windows(3).last().map_or(5, |w| w[0] + w[2]);
    sum += part
        .iter()
        .enumerate()
        .rev()
        .nth(1)
        .map_or(6, |(at, v)| at as u32 * *v);
    sum += part.iter().zip(x).nth(2).map_or(7, |(a, b)| a * b);
    sum += part.iter().map(|v| v * 3).nth(i % 4).unwrap_or(8);
    sum += part.iter().filter(|v| **v % 2 == 1).nth(1).copied().unwrap_or(9);
    sum += (i..i + 5).nth(3).unwrap_or(0) as u32 + (0..i).step_by(3).nth(1).unwrap_or(11) as u32;
    sum += [1, sum, 3].into_iter().nth(i % 5).unwrap_or(10);
    sum += part.iter().find_map(|v| v.checked_sub(60)).unwrap_or(12);
    sum += part.iter().max().map_or(5, |v| *v * 3) + part.iter().skip(1).min().copied().unwrap_or(7);
    sum += part.iter().min_by_key(|v| v.abs_diff(50)).copied().unwrap_or(13);
    sum += part.iter().copied().max_by_key(|v| (v % 4, *v)).unwrap_or(14);
    if let Some((first, rest)) = part.split_first() {
        sum += first * rest.len() as u32;
    }
    if let Some((last, rest)) = part.split_last() {
        sum += last + rest.iter().sum::<u32>();
    }
    y[i] = sum;
}

#[test]
fn single_items_of_chains() {
    run(picked::kernel(), picked);
}

#[kernel]
fn steps(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[i..i + 20];
    let mut sum: u32 = part.iter().skip_while(|v| **v < 40).take_while(|v| **v > 3).sum();
    sum += part.iter().map_while(|v| v.checked_sub(5)).count() as u32;
    sum += part
        .iter()
        .scan(1u32, |state, v| {
            *state = state.wrapping_mul(3) ^ v;
            (*state < 1 << 30).then_some(*state)
        })
        .fold(0, |all, v| all ^ v);
    sum += part
        .iter()
        .map(|v| v + 1)
        .rev()
        .fold(0, |all, v| all * 2 % 1009 + v);
    sum += part
        .iter()
        .copied()
        .zip(x.iter().map(|v| v % 7))
        .map(|(a, b)| a * b)
        .sum::<u32>();
    for (a, b) in part.iter().map(|v| v / 2).zip(part.iter().copied().rev()).skip(3) {
        sum += a ^ b;
    }
    for (at, block) in part.rchunks(3).enumerate() {
        sum += block[0] * at as u32 + block.len() as u32;
    }
    sum += part
        .rchunks_exact(7)
        .map(|block| block[6] - block[0].min(block[6]))
        .sum::<u32>();
    y[i] = sum;
}

#[test]
fn further_steps_of_chains() {
    run(steps::kernel(), steps);
}

/// As hashes go over words and then over what is left.
#[device]
fn hashed(key: &[u32]) -> u32 {
    let blocks = key.chunks_exact(4);
    let tail = blocks.remainder();
    let mut hash = 17;
    for block in blocks {
        for word in block {
            hash = (hash ^ word).rotate_left(5).wrapping_mul(0x9e37_79b9);
        }
    }
    tail.iter()
        .fold(hash, |hash, word| hash.wrapping_add(*word).rotate_right(3))
}

#[kernel]
fn named(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[i..i + i % 14];
    let mut sum = hashed(part);
    let mut items = part.iter();
    if let Some(first) = items.next() {
        sum ^= first;
    }
    let next = items.nth(1).copied();
    sum ^= next.unwrap_or(21);
    for v in items.by_ref().take(2) {
        sum = sum.rotate_left(3) ^ v;
    }
    let above = items.any(|v| *v > 60);
    while let Some(v) = items.next() {
        sum = sum.wrapping_mul(5) ^ v;
        if *v % 8 == 1 {
            break;
        }
    }
    sum = sum.wrapping_add(items.copied().sum::<u32>()) ^ u32::from(above);
    let pairs = part.iter().zip(x).enumerate();
    for (at, (a, b)) in pairs {
        sum ^= (a * b) << (at % 8);
    }
    let mut chunks = part.chunks(3).rev();
    let last = chunks.next().map_or(0, |chunk| chunk.len() as u32);
    let others: u32 = chunks.map(|chunk| chunk[2]).sum();
    y[i] = sum.wrapping_add(last * others);
}

#[test]
fn iterators_behind_names() {
    run(named::kernel(), named);
}

#[kernel]
fn methods(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[i..i + i % 9];
    let mut local = [x[i], x[i + 1], x[i + 2], 3, 4, x[i + 5]];
    local.rotate_left(i % 7);
    local[1..5].rotate_right(i % 4);
    let all = 3;
    let squares = local.map(|v| v * v % (all + 50));
    let mut sum = squares[0] + 2 * squares[i % 6];
    let sorted = [2, 3, 5, 7, 11, 13, 17, 19, 23];
    let by = x[i] % 25;
    sum += match sorted.binary_search(&by) {
        Ok(at) => at as u32,
        Err(at) => 100 + at as u32,
    };
    let (size, base) = (by, 2);
    sum += sorted[i % 9..].partition_point(|v| *v * base < size + 10) as u32;
    sum += u32::from(x.starts_with(part)) + 2 * u32::from(part.ends_with(&[x[i]]));
    sum += 4 * u32::from(part.is_sorted()) + 8 * u32::from(sorted.is_sorted());
    if let Some((first, rest)) = local.split_first_mut() {
        *first += rest[0];
        rest[1] = 9;
    }
    let (key, at) = (local[0] % 5, 2).max((x[i] % 5, i as u32 % 4)).min((3, 3));
    y[i] = sum + local[2] + key * 10 + at;
}

#[test]
fn further_methods_of_slices() {
    run(methods::kernel(), methods);
}
