//! What has a name or is chosen at run time: ranges, iterators that look ahead, parts of slices, places. Sorted elements, and literals.

use perpetua::prelude::*;

use crate::harness::{check, floats};

const SIZE: usize = 96;

fn numbers() -> Vec<u32> {
    (0..SIZE + 24).map(|i| (i * 37 % 101) as u32).collect()
}

fn run(kernel: KernelFn, host: fn(&[u32], &mut [u32])) {
    check(kernel, host, &numbers(), &[0; SIZE]);
}

#[kernel]
fn ranges(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let own = i..i + i % 7;
    let part = &x[own.clone()];
    let mut sum = part.len() as u32 + own.len() as u32 + (own.end - own.start) as u32;
    for k in own.clone() {
        sum += x[k] * k as u32;
    }
    sum += own.clone().map(|k| k as u32).sum::<u32>();
    sum += u32::from(own.contains(&(i + 2)));
    sum += own
        .clone()
        .rev()
        .enumerate()
        .map(|(at, k)| (at * k) as u32)
        .sum::<u32>();
    let values = 3..x[i];
    for v in values {
        sum += v;
    }
    let mut rest = 0..i % 5;
    sum += rest.next().unwrap_or(7) as u32;
    sum += rest.map(|k| k as u32 + 1).sum::<u32>();
    let signed = -3..(i as i32 % 4);
    sum += signed.filter(|k| *k < 0).count() as u32;
    sum += x[i..i + 9].iter().map(|v| v / 2).len() as u32;
    y[i] = sum;
}

#[test]
fn ranges_behind_names() {
    run(ranges::kernel(), ranges);
}

#[kernel]
fn merged(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut a = x[i..i + 6].iter().peekable();
    let mut b = x[i + 6..i + 10].iter().peekable();
    let mut hash = 0u32;
    loop {
        let from_a = match (a.peek(), b.peek()) {
            (Some(v), Some(w)) => v <= w,
            (v, _) => v.is_some(),
        };
        let next = if from_a { a.next() } else { b.next() };
        let Some(v) = next else { break };
        hash = hash.wrapping_mul(31).wrapping_add(*v);
    }
    let mut counted = 0u32;
    let mut values = x[i..i + 12].iter().copied().peekable();
    while let Some(v) = values.next() {
        if values.peek().is_some_and(|w| *w > v) {
            counted += 1;
        }
    }
    y[i] = hash ^ counted;
}

#[test]
fn iterators_that_look_ahead() {
    run(merged::kernel(), merged);
}

#[device]
fn longer<'a>(a: &'a [u32], b: &'a [u32]) -> &'a [u32] {
    if a.iter().sum::<u32>() > b.iter().sum::<u32>() {
        return a;
    }
    for (k, v) in b.iter().enumerate() {
        if *v > 90 {
            return &b[k..];
        }
    }
    b
}

#[device]
fn first_over(x: &mut [u32], least: u32) -> Option<&mut u32> {
    for v in x {
        if *v > least {
            return Some(v);
        }
    }
    None
}

#[kernel]
fn chosen(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut own = [0u32; 6];
    for (k, v) in own.iter_mut().enumerate() {
        *v = x[i + k];
    }
    let part = longer(&x[i..i + 4], &x[i + 4..i + 9]);
    let row = x.chunks_exact(5).nth(i % 7).unwrap();
    let tail = x.get(i..).filter(|tail| tail[0] % 2 == 0);
    let mut sum = part.iter().sum::<u32>() + row[2] + tail.map_or(5, |tail| tail[1]);
    if let Some(v) = first_over(&mut own, 60) {
        *v /= 2;
        sum += *v;
    }
    let place = if i % 2 == 0 {
        &mut own[i % 6]
    } else {
        &mut own[(i + 1) % 6]
    };
    *place += 7;
    y[i] = own.iter().fold(sum, |all, v| all.wrapping_mul(7) + v);
}

#[test]
fn parts_and_places_are_chosen_at_run_time() {
    run(chosen::kernel(), chosen);
}

#[kernel]
fn sorted(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut own: [u32; 9] = x[i..i + 9].try_into().unwrap();
    own.sort_unstable();
    let mut hash = own[4] + 128 * u32::from(own.is_sorted());
    let mut pairs = [(0u32, 0u32); 8];
    for (k, pair) in pairs.iter_mut().enumerate() {
        *pair = (x[i + k] % 4, k as u32);
    }
    pairs.sort_by_key(|pair| pair.0);
    for (a, b) in pairs {
        hash = hash.wrapping_mul(31) + 8 * a + b;
    }
    pairs[2..].sort_by(|a, b| b.1.cmp(&a.1));
    hash = pairs.iter().fold(hash, |all, pair| all.wrapping_mul(29) + pair.1);
    let mut floats = [0.5f32, -1.0, 3.0, x[i] as f32];
    floats.sort_by(|a, b| b.total_cmp(a));
    y[i] = hash ^ floats[1] as u32;
}

#[test]
fn elements_are_sorted() {
    run(sorted::kernel(), sorted);
}

static PRIMES: [u32; 5] = [2, 3, 5, 7, 11];

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Flag {
    Read = 1 << 0,
    Write = 1 << 4,
    Both = (1 << 4) + 1,
}

#[kernel]
fn literals(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let text = b"perpetua";
    let flag = [Flag::Read, Flag::Write, Flag::Both][i % 3];
    let count = text.iter().filter(|b| b.is_ascii_lowercase()).count() as u32;
    y[i] = u32::from(text[i % text.len()]) + const { 3 * 14 } + PRIMES[i % 5] * flag as u32 + count + x[i];
}

#[test]
fn bytes_statics_and_constants() {
    run(literals::kernel(), literals);
}

#[kernel]
fn flattened(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let rows = [[x[i], 1, 2], [x[i + 1], 3, 4]];
    let mut sum: u32 = rows.iter().flatten().sum();
    sum += (0..4usize)
        .flat_map(|a| (a..5).map(move |b| (a * b) as u32))
        .sum::<u32>();
    sum += x[i..i + 9]
        .chunks(4)
        .flat_map(|part| part)
        .filter(|v| **v % 2 == 0)
        .count() as u32;
    sum += (0..3)
        .flat_map(|a| x[i + a..].iter().take(2))
        .nth(3)
        .copied()
        .unwrap_or(9);
    sum += rows.iter().flatten().position(|v| *v == 3).unwrap_or(99) as u32;
    sum += u32::from((0..9u32).flat_map(|a| 0..a).any(|v| v > 6));
    for (k, v) in rows.into_iter().flatten().enumerate() {
        if v == 2 {
            continue;
        }
        if k == 4 {
            break;
        }
        sum = sum * 3 + v;
    }
    'all: for a in (0..4u32).flat_map(|a| [a, a + 1]) {
        for b in 0..a {
            if a * b > x[i] % 7 {
                break 'all;
            }
            if b == 2 {
                continue 'all;
            }
            sum += b;
        }
        sum += 1;
    }
    y[i] = sum;
}

#[test]
fn items_of_items() {
    run(flattened::kernel(), flattened);
}

const fn tiles(n: usize) -> usize {
    n.div_ceil(3)
}

/// The lengths of its arrays are computed by functions, which only rustc does.
#[device]
fn spread(x: [f32; tiles(7)]) -> [f32; tiles(7) + 1] {
    let mut all = [0.5; tiles(7) + 1];
    for (to, from) in all.iter_mut().zip(x) {
        *to += from;
    }
    all
}

#[kernel]
fn lengths(x: &[f32], y: &mut [[f32; tiles(10)]]) {
    const fn twice(n: usize) -> usize {
        n * 2
    }
    let i = global_id_x();
    let kept: [f32; usize::next_power_of_two(3)] = [x[i]; twice(tiles(5))];
    let shared = [[kept[1]; tiles(7)]; const { tiles(1) }];
    y[i] = spread(shared[0]);
    y[i][3] += kept.len() as f32 + kept[3];
}

#[test]
fn functions_compute_lengths() {
    check(lengths::kernel(), lengths, &floats(64), &[[0.0; 4]; 64]);
}
