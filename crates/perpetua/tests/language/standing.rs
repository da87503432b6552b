//! Iterators that a `let mut` names: they stop between two items and go on, from both ends, and their copies go on by themselves.

use perpetua::prelude::*;

use crate::harness::check;
use crate::sweep::SIZE;

#[device]
fn mix(all: u32, v: u32) -> u32 {
    all.wrapping_mul(5) ^ v.wrapping_mul(0x9e37_79b9).rotate_left(7)
}

fn run(kernel: KernelFn, host: fn(&[u32], &mut [u32])) {
    let x: Vec<u32> = (0..SIZE as u32).collect();
    check(kernel, host, &x, &[0; SIZE]);
}

#[kernel]
fn copies(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[..i];
    let mut all = 1u32;
    let mut odd = part.iter().filter(|v| **v % 3 != 0).enumerate().peekable();
    while let Some((at, v)) = odd.next() {
        if let Some((n, w)) = odd.peek() {
            all = mix(all, *n as u32 + **w);
        }
        let mut other = odd.clone();
        other.next();
        if let Some((n, w)) = other.next() {
            all = mix(all, n as u32 * w);
        }
        all = mix(all, at as u32 * v);
    }
    let mut sums = part.iter().skip_while(|v| **v < 5).scan(0u32, |s, v| {
        *s += v;
        Some(*s)
    });
    all = mix(all, sums.next().unwrap_or(1));
    let ahead = sums.clone();
    all = mix(all, *sums.peekable().peek().unwrap_or(&3));
    for v in ahead {
        all = mix(all, v);
    }
    // What a copy is asked for, the first one still has.
    let mut it = part.iter();
    all = mix(all, it.next().map_or(3, |v| *v));
    all = mix(all, it.clone().next().map_or(5, |v| *v));
    all = mix(all, it.clone().any(|v| *v > 4) as u32);
    all = mix(all, it.clone().position(|v| *v > 4).map_or(9, |v| v as u32));
    all = mix(all, it.clone().nth(2).map_or(5, |v| *v));
    y[i] = it.fold(all, |all, v| mix(all, *v));
}

#[kernel]
fn ends(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[..i];
    let mut all = 1u32;
    let mut it = part.iter().copied().filter(|v| v % 3 != 1).map(|v| v * 2);
    all = mix(all, it.nth_back(2).unwrap_or(91));
    all = mix(all, it.rfind(|v| v % 8 == 0).unwrap_or(77));
    all = mix(all, it.next().unwrap_or(11));
    all = mix(all, it.by_ref().rev().take(2).sum::<u32>());
    while let Some(v) = it.next_back() {
        all = mix(all, v);
        if let Some(w) = it.next() {
            all = mix(all, w);
        }
    }
    let mut steps = part.iter().skip(2).step_by(3).enumerate();
    steps.next();
    let saved = steps.clone();
    all = mix(all, steps.next_back().map_or(7, |(a, b)| a as u32 * 100 + b));
    for (a, v) in steps.by_ref().rev() {
        all = mix(all, v + a as u32);
    }
    all = mix(all, steps.next().is_none() as u32);
    for (a, v) in saved {
        all = mix(all, v * a as u32);
    }
    let mut seen = [0u32; 8];
    let mut cells = seen.iter_mut().enumerate().filter(|(a, _)| a % 3 != 1);
    if let Some((a, c)) = cells.next() {
        *c = 5 + a as u32;
    }
    if let Some((a, c)) = cells.next_back() {
        *c = 50 + a as u32;
    }
    for (a, c) in cells.rev() {
        *c = i as u32 * a as u32;
    }
    y[i] = seen.iter().fold(all, |all, v| mix(all, *v));
}

#[kernel]
fn nests(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut all = 1u32;
    let cube = [[[1u32, 2], [3, 4]], [[5, 6], [7, x[i]]]];
    let mut cells = cube.iter().flatten().flatten();
    for _ in 0..i % 9 {
        all = mix(all, cells.next().copied().unwrap_or(50));
    }
    let ahead = cells.clone();
    for v in cells.by_ref().take(2) {
        all = mix(all, *v);
    }
    all = mix(all, cells.clone().count() as u32);
    all = mix(all, cells.next().copied().unwrap_or(50));
    all = ahead.skip(1).step_by(2).fold(all, |all, v| mix(all, *v));
    let mut pairs = (0..3u32)
        .flat_map(|i| (0..i + 2).map(move |b| i * 10 + b))
        .filter(|v| v % 3 != 1)
        .enumerate();
    while let Some((at, v)) = pairs.next() {
        all = mix(all, at as u32 * v);
        if v > 10
            && let Some((at, v)) = pairs.next()
        {
            all = mix(all, at as u32 + v);
        }
    }
    all = mix(all, pairs.next().is_none() as u32);
    let mut board = [[0u32; 3]; 3];
    let mut places = board.iter_mut().flatten();
    for n in 0..i as u32 % 10 {
        if let Some(place) = places.next() {
            *place = n + 1;
        }
    }
    for place in places {
        *place = 7;
    }
    for v in board.iter().flatten() {
        all = mix(all, *v);
    }
    y[i] = all;
}

#[kernel]
fn zipped(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[..i];
    let mut all = 1u32;
    let (a, b) = ([[1u32, 2, 3], [4, 5, 6]], [[7u32, 8], [9, 10], [11, x[i]]]);
    for (p, q) in a.iter().flatten().zip(b.iter().flatten()) {
        all = mix(all, p * q);
    }
    let one = (0..4u32).flat_map(|i| (0..i).map(move |j| i * j));
    for (p, q) in one.zip((0..i as u32).flat_map(|i| 0..i)) {
        all = mix(all, p * 100 + q);
    }
    let odd = part.iter().filter(|v| **v % 2 == 1);
    let mut both = odd.zip(part.iter().skip_while(|v| **v < 4).filter(|v| **v % 3 == 0));
    all = mix(all, both.next().map_or(3, |(a, b)| a * b));
    let copy = both.clone();
    all = mix(all, both.peekable().peek().map_or(8, |(a, b)| **a + **b));
    all = copy.clone().fold(all, |all, (a, b)| mix(all, a + b * 2));
    all = mix(all, copy.count() as u32);
    // A second iterator that changes something is asked once for each item of the first.
    let mut asked = 0u32;
    let counted = x.iter().filter(|v| {
        asked += 1;
        **v % 3 == 0
    });
    for (a, b) in part.iter().filter(|v| **v % 2 == 0).zip(counted) {
        all = mix(all, a * b);
    }
    y[i] = mix(all, asked);
}

#[kernel]
fn whiles(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut all = 1u32;
    let mut small = x.iter().take_while(|v| **v < i as u32 / 2);
    while let Some(v) = small.next() {
        all = mix(all, *v);
    }
    // Once it has ended, it has none any more.
    all = mix(all, small.next().map_or(5, |v| *v));
    let mut it = x.iter();
    all = mix(all, it.by_ref().take_while(|v| **v < 5).sum());
    all = mix(all, it.next().map_or(5, |v| *v));
    let until = i as u32 % 11;
    let mut some = [5u32, 3, 9, 1, 2]
        .into_iter()
        .take_while(|v| *v != until)
        .peekable();
    let mut count = 0;
    while let Some(v) = some.peek() {
        all = mix(all, *v);
        some.next();
        count += 1;
    }
    let mut fewer = (0..i as u32).filter(|v| v % 5 != 2).step_by(2).peekable();
    while let Some(v) = fewer.next_if(|v| *v < 20) {
        all = mix(all, v);
    }
    all = mix(all, fewer.next_if_eq(&20).unwrap_or(1));
    y[i] = mix(all, count + fewer.peek().map_or(6, |v| *v));
}

/// Numbers and words of a text.
#[kernel]
fn parsed(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let text = b"ab12 cd 345";
    let mut left = text.iter().copied().skip(x[i] as usize % 4).peekable();
    let mut all = 1u32;
    while let Some(c) = left.peek() {
        if c.is_ascii_digit() {
            let mut n = 0u32;
            while let Some(d) = left.next_if(|c| c.is_ascii_digit()) {
                n = n * 10 + u32::from(d - b'0');
            }
            all = mix(all, n);
        } else if *c == b' ' {
            left.next();
        } else {
            let len = left.clone().take_while(|c| c.is_ascii_alphabetic()).count();
            for _ in 0..len {
                left.next();
            }
            all = mix(all, len as u32);
        }
    }
    y[i] = all;
}

#[device]
fn pairs(mut items: impl Iterator<Item = u32>) -> u32 {
    let mut all = 7u32;
    while let (Some(a), Some(b)) = (items.next(), items.next()) {
        all = mix(all, a * b);
    }
    all
}

#[kernel]
fn given(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let rows = [[1u32, 2, 3], [4, 5, x[i]]];
    let mut all = pairs(rows.iter().flatten().copied());
    all = mix(
        all,
        pairs(
            rows.iter()
                .flat_map(|row| row.iter().copied())
                .filter(|v| *v != 3),
        ),
    );
    all = mix(all, pairs(x[..i].iter().copied().take_while(|v| *v < 9)));
    all = mix(all, pairs((0..4u32).flat_map(|i| i..i + 3)));
    y[i] = mix(all, pairs(rows.into_iter().flatten()));
}

#[test]
fn copies_go_on_by_themselves() {
    run(copies::kernel(), copies);
}

#[test]
fn items_come_from_both_ends() {
    run(ends::kernel(), ends);
}

#[test]
fn items_of_items_stop_and_go_on() {
    run(nests::kernel(), nests);
}

#[test]
fn pairs_of_any_iterators() {
    run(zipped::kernel(), zipped);
}

#[test]
fn what_has_ended_stays_ended() {
    run(whiles::kernel(), whiles);
}

#[test]
fn texts_are_parsed() {
    run(parsed::kernel(), parsed);
}

#[test]
fn iterators_of_items_are_given() {
    run(given::kernel(), given);
}
