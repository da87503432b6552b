//! Ranges as values: parameters of device functions, variables with a type, their ends and methods.

use std::ops::{Range, RangeInclusive};

use perpetua::prelude::*;

use crate::harness::check;

const SIZE: usize = 64;

fn numbers() -> Vec<u32> {
    (0..SIZE + 24).map(|i| (i * 37 % 101) as u32).collect()
}

#[device]
fn sum(x: &[u32], part: Range<usize>) -> u32 {
    let mut all = part.len() as u32;
    for v in &x[part.clone()] {
        all = all.wrapping_mul(3) ^ v;
    }
    for k in part.start..part.end {
        all ^= x[k] << (k % 5);
    }
    all
}

#[device]
fn halves(x: &[u32], part: Range<usize>) -> u32 {
    let middle = part.start.midpoint(part.end);
    sum(x, part.start..middle) ^ sum(x, middle..part.end).rotate_left(7) ^ sum(x, part)
}

#[device]
fn within(range: RangeInclusive<u32>, v: u32) -> bool {
    range.contains(&v) && *range.start() < 90 && !range.is_empty() && *range.end() > 3
}

#[device]
fn taken(mut left: Range<u32>, count: u32) -> u32 {
    let mut all = 0;
    for _ in 0..count {
        match left.next() {
            Some(v) => all = all * 10 + v,
            None => all += 1,
        }
    }
    all + left.sum::<u32>()
}

#[device]
fn through(items: impl Iterator<Item = usize>, x: &[u32]) -> u32 {
    items.fold(0, |all: u32, k| all.wrapping_mul(5) ^ x[k])
}

#[kernel]
fn ranges(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = i % 7..i % 11 + 7;
    let mut n = 3;
    let counted = sum(
        x,
        {
            n += 1;
            n
        }..n + 2,
    );
    let small: Range<u8> = 250..(x[i] % 6) as u8 + 250;
    let mut all =
        halves(x, part.clone()) ^ through(part.clone(), x) ^ counted.rotate_left(9) ^ through(0..i % 5, x);
    all ^= u32::from(within(5..=60, x[i])) << 4 | u32::from(within(x[i]..=x[i + 1], 50)) << 5;
    all ^= taken(1..x[i] % 9, 4) << 8;
    for v in small.clone() {
        all = all.wrapping_mul(7) ^ u32::from(v);
    }
    all ^= x.get(part.clone()).map_or(0, |found| found.len() as u32) << 9;
    all ^= x[..9].get(part.clone()).map_or(5, |found| found[0]) << 11;
    y[i] = all ^ small.len() as u32 ^ u32::from(small.start.wrapping_mul(3)) ^ sum(x, part);
}

#[test]
fn ranges_are_parameters_and_variables() {
    check(ranges::kernel(), ranges, &numbers(), &[0; SIZE]);
}

#[device]
fn row(i: usize, width: usize) -> Range<usize> {
    if width == 0 {
        return 0..0;
    }
    i % width..i % width + width
}

#[device]
fn digits(v: u32) -> RangeInclusive<u32> {
    match v % 3 {
        0 => v % 10..=v % 17,
        1 => 0..=9,
        _ => v..=v,
    }
}

#[device]
fn clipped<T: Copy + PartialOrd>(range: Range<T>, least: T) -> Range<T> {
    let start = if range.start < least { least } else { range.start };
    start..range.end
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Rows {
    first: usize,
    width: usize,
}

#[device]
impl Rows {
    fn of(&self, k: usize) -> Range<usize> {
        let start = self.first + k * self.width;
        start..start + self.width
    }

    fn all(&self, count: usize) -> Range<usize> {
        self.of(0).start..self.of(count).start
    }
}

#[kernel]
fn range_values(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut all = 0u32;
    for k in row(i, 7) {
        all = all.wrapping_mul(3) ^ x[k];
    }
    // Named, and used in every way.
    let part = if x[i] % 2 == 0 { i % 5..i % 11 + 5 } else { 0..0 };
    all ^= part.len() as u32 ^ (part.clone().rev().map(|k| x[k] << 3).sum::<u32>()) << 2;
    all ^= x[part.clone()].iter().sum::<u32>() ^ u32::from(part.contains(&3)) << 7;
    for k in part {
        all = all.rotate_left(3) ^ x[k];
    }
    let mut left: Range<usize> = row(i, 3);
    all ^= left.next().map_or(5, |k| x[k]) << 9;
    all ^= left.map(|k| x[k]).fold(1, |a: u32, b| a.wrapping_mul(7) ^ b);
    // Of calls, where they stand.
    all ^= x[row(i, 4)].iter().fold(2, |a: u32, b| a.wrapping_mul(5) ^ b);
    all ^= u32::from(digits(x[i]).contains(&x[i + 1])) << 11;
    all ^= *digits(x[i]).start() << 12 ^ *digits(x[i]).end() << 13;
    all ^= digits(x[i]).into_iter().map(|v| v * v).sum::<u32>() << 4;
    all ^= u32::from(digits(x[i]).is_empty()) << 17;
    all ^= through(row(i, 3).into_iter(), x) ^ sum(x, row(i, 3)) ^ through(row(i, 5), x).rotate_left(4);
    for v in clipped(-3..(x[i] % 5) as i8, -1) {
        all = all.wrapping_mul(11) ^ (v as i32) as u32;
    }
    for v in (0..3).flat_map(|k| row(k + i, 2)) {
        all = all.rotate_left(5) ^ x[v];
    }
    let rows = Rows {
        first: i % 3,
        width: 4,
    };
    for k in 0..3 {
        let of = rows.of(k);
        all = all.wrapping_mul(13) ^ of.start as u32 ^ x[of.end];
        all ^= x[of].iter().max().copied().unwrap_or(0);
    }
    all ^= u32::from(rows.all(2) == (i % 3..i % 3 + 8)) << 21 | u32::from(rows.all(1) != rows.of(0)) << 22;
    let pair = [row(i, 2), row(i, 5)];
    for r in pair {
        all = all.wrapping_mul(17) ^ r.len() as u32;
    }
    let maybe = (x[i] % 3 != 0).then(|| row(i, 6));
    if let Some(part) = maybe {
        all ^= (part.start * 5 + part.end) as u32;
    }
    let mut at = 0..0;
    if x[i] > 50 {
        at = row(i, 9);
        at.start += 1;
        all ^= at.next().map_or(3, |k| x[k]) << 5;
    }
    y[i] = all ^ at.len() as u32 ^ at.start as u32;
}

#[test]
fn ranges_are_values() {
    check(range_values::kernel(), range_values, &numbers(), &[0; SIZE]);
}

/// As a sceptic wrote it: a range that is a value goes on where a loop over `&mut` of it ended.
#[device]
fn first_big(r: &mut Range<u32>, least: u32) -> u32 {
    for k in r {
        if k > least {
            return k;
        }
    }
    99
}

#[device]
fn two(items: &mut impl Iterator<Item = u32>) -> u32 {
    items.next().unwrap_or(7) * 10 + items.next().unwrap_or(8)
}

#[device]
fn advanced(mut r: Range<u32>) -> Range<u32> {
    for k in &mut r {
        if k % 3 == 0 {
            break;
        }
    }
    r.start..r.end + 1
}

#[kernel]
fn loops_over_references(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut all = 0u32;
    let mut r = x[i] % 5..9 + x[i] % 3;
    for k in &mut r {
        if k == 5 {
            break;
        }
        all = all * 3 + k;
    }
    all = all.rotate_left(3) ^ r.start ^ r.next().unwrap_or(3) << 4 ^ r.next_back().unwrap_or(2) << 6;
    'a: for _ in 0..2 {
        for k in &mut r {
            if k == 7 {
                continue 'a;
            }
            all = all.wrapping_mul(3) + k;
        }
    }
    let mut big = 2..x[i] % 11;
    all ^= r.len() as u32 ^ first_big(&mut big, 4) << 8 ^ big.start << 16;
    let mut pair = (3..9u32, 1u32);
    for k in &mut pair.0 {
        if k > x[i] % 7 {
            break;
        }
        pair.1 += k;
    }
    let mut rows = [x[i] % 4..9, 1..5];
    for row in rows.iter_mut() {
        for k in row {
            if k == 4 {
                break;
            }
        }
    }
    all ^= pair.0.start << 3 ^ pair.1 << 5 ^ rows[0].start << 7 ^ rows[1].end << 9;
    let mut s = 2..x[i] % 13;
    all = all.rotate_left(5) ^ two(&mut s) ^ two(&mut s) << 3 ^ s.start << 4;
    let mut it = x[i..].iter().copied().filter(|v| v % 2 == 0);
    all ^= two(&mut it) ^ two(&mut it) << 2;
    all ^= advanced(1 + x[i] % 3..9).start << 11;
    // Moved to another name, and to what was there before.
    let short = 0..x[i] % 5;
    let mut best = 0..0;
    let long = short.start..x[i] % 9;
    if long.len() > best.len() {
        best = long;
    }
    let mut own = short;
    own.start += 1;
    y[i] = all ^ best.end << 13 ^ own.start << 14 ^ own.end << 15;
}

#[test]
fn loops_go_on_in_ranges_that_are_values() {
    check(
        loops_over_references::kernel(),
        loops_over_references,
        &numbers(),
        &[0; SIZE],
    );
}

#[kernel]
fn long_ranges(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let n = u64::from(x[i]) << 24;
    let counted = (n..u64::from(u32::MAX) - 5).count() as u32 ^ (0..x[i]).skip(7).step_by(3).count() as u32;
    let picked = (0..u64::MAX >> 33).nth(1 << 20).map_or(3, |v| v as u32)
        ^ (i32::MIN..=i32::MAX).nth(77).unwrap_or(1) as u32;
    let ends = (1..=u32::MAX).last().unwrap_or(2)
        ^ (x[i]..u32::MAX).max().unwrap_or(3)
        ^ (x[i]..=u32::MAX).min().unwrap_or(4);
    let mut it = (x[i]..4_000_000_000).skip(5);
    let mut last = it.nth(1 << 28).unwrap_or(9) ^ it.next().unwrap_or(8).rotate_left(3);
    last ^= (5..x[i] % 9).last().unwrap_or(77)
        ^ (5..x[i] % 9).count() as u32
        ^ (5..(x[i] % 4) as u8).max().map_or(1, u32::from);
    y[i] = counted
        ^ picked.rotate_left(7)
        ^ ends
        ^ last.rotate_left(11)
        ^ std::iter::repeat_n(x[i], 9).skip(1).step_by(2).count() as u32;
}

#[test]
fn long_ranges_end_at_once() {
    check(long_ranges::kernel(), long_ranges, &numbers(), &[0; SIZE]);
}
