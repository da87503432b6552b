//! Patterns of the elements of slices, parts as arrays, arrays whose length comes from a type, patterns as parameters.

use std::array;

use perpetua::prelude::*;

use crate::harness::check;

const SIZE: usize = 96;

fn bytes() -> Vec<u8> {
    (0..SIZE + 16).map(|i| (i * 37 % 251) as u8).collect()
}

/// As base64 takes three bytes, two or one.
#[device]
fn packed(group: &[u8]) -> u32 {
    match *group {
        [a, b, c] => u32::from(a) << 16 | u32::from(b) << 8 | u32::from(c),
        [a, b] => u32::from(a) << 8 | u32::from(b),
        [a] => u32::from(a),
        [] => 7,
        [first @ 0..=99, .., last] => u32::from(first) * u32::from(last),
        [_, second, .., before, _] if second > before => u32::from(second - before),
        [_, ..] => 11,
    }
}

/// Behind the reference, with names for what is left.
#[device]
fn summed(all: &[u8]) -> u32 {
    match all {
        [] => 0,
        [only] => u32::from(*only),
        [first, rest @ .., last] if rest.len() < 4 => {
            let mut sum = u32::from(*first) + 3 * u32::from(*last);
            for value in rest {
                sum += 2 * u32::from(*value);
            }
            sum
        }
        [_, rest @ ..] => u32::from(rest[0]) + rest.len() as u32,
    }
}

#[kernel]
fn slice_patterns(x: &[u8], y: &mut [u32]) {
    let i = global_id_x();
    let group = &x[i..i + i % 7];
    let mut sum = packed(group) + 5 * summed(group);
    if let [a, b, ..] = group {
        sum += u32::from(*a ^ *b);
    }
    if let [.., 0..=60] = group {
        sum += 1000;
    }
    let [low, high] = x[i..i + 2] else {
        return;
    };
    sum += u32::from(low.max(high));
    let mut left = group;
    let mut steps = 0;
    while let [_, rest @ ..] = &left[steps..] {
        sum += rest.len() as u32;
        steps += 1;
    }
    left = &x[i..];
    let local = [x[i], x[i + 1], 3, 4];
    let [head, between @ .., tail] = local;
    let [_, ref_between @ ..] = &local;
    sum += u32::from(head & tail) + u32::from(between[1]) + u32::from(ref_between[i % 3]);
    y[i] = sum + left.len() as u32;
}

#[test]
fn patterns_of_slices() {
    check(slice_patterns::kernel(), slice_patterns, &bytes(), &[0; SIZE]);
}

#[device]
fn mixed(state: &[u32; 4], [a, b]: [usize; 2], (x, y): (u32, u32)) -> u32 {
    state[a] ^ state[b].rotate_left(5) ^ x.wrapping_mul(y)
}

#[device]
fn squares() -> [u32; 6] {
    array::from_fn(|k| (k * k) as u32)
}

#[device]
fn sums(rows: [[u32; 3]; 2]) -> [[u32; 3]; 2] {
    rows.map(|row| array::from_fn(|k| row[k] + row[(k + 1) % 3]))
}

/// Bytes as words, from their ends.
#[device]
fn words(part: &[u8]) -> u32 {
    let first = u32::from_le_bytes(part[..4].try_into().unwrap());
    let second: [u8; 4] = part[8..12].try_into().unwrap();
    let third = <[u8; 2]>::try_from(&part[12..14]).unwrap();
    first ^ u32::from_be_bytes(second) ^ u32::from(u16::from_le_bytes(third))
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Key {
    parts: [u32; 4],
    kind: u32,
}

#[kernel]
fn arrays(x: &[u8], y: &mut [u32]) {
    let i = global_id_x();
    // What takes them says how many there are.
    let state = array::from_fn(|k| u32::from(x[i + k]) * 3);
    let mut sum = mixed(&state, [1, i % 4], (2, 5));
    let key = Key {
        parts: array::from_fn(|k| u32::from(x[i + 2 * k])),
        kind: 1,
    };
    let [a, b, c] = array::from_fn(|k| (k + i) as u32);
    let four = array::from_fn::<u32, 4, _>(|k| key.parts[k] + state[3 - k]);
    let later = four.map(|v| v % 5);
    let doubled: [u32; 4] = later.map(|v| v * 2);
    sum += a * b + c + key.kind + doubled[i % 4] + squares()[i % 6];
    sum += sums([[a, b, c], [1, 2, 3]])[i % 2][i % 3];
    sum ^= words(&x[i..i + 14]);
    let short: Result<[u8; 4], _> = x[i..i + i % 6].try_into();
    sum = (sum >> 8)
        + match short {
            Ok(four) => u32::from_le_bytes(four),
            Err(_) => 9,
        } % 1000;
    sum += u32::from(u8::try_from(i * 3).unwrap_or(1)) + i8::try_from(sum).map_or(3, |v| v as u32);
    let small: Result<u8, _> = u8::try_from(-(i as i32));
    sum += u32::from(small.is_ok());
    let wide: u16 = (i * 100).try_into().unwrap();
    let pair = |[p, q]: [u32; 2], Key { kind, .. }: Key| p * q + kind;
    y[i] = sum + u32::from(wide) + pair([a, c], key);
}

#[test]
fn arrays_from_types_and_parts() {
    check(arrays::kernel(), arrays, &bytes(), &[0; SIZE]);
}

#[device]
fn small(x: u8) -> Result<u32, ()> {
    if x < 200 { Ok(u32::from(x)) } else { Err(()) }
}

/// Which part a reference means changes.
#[kernel]
fn kept(x: &[u8], y: &mut [u32]) {
    let i = global_id_x();
    let mut rest = &x[i..i + 12];
    let mut sum = 0u32;
    while let [a, b, tail @ ..] = rest {
        sum = sum * 3 % 1009 + u32::from(*a) + u32::from(*b);
        rest = if a > b {
            &tail[..tail.len().saturating_sub(1)]
        } else {
            tail
        };
    }
    let half = if i % 2 == 0 { &x[..50] } else { &x[40..] };
    sum += u32::from(half[i % 50]) + half.len() as u32;
    sum += match (x[i] % 4, x[i + 1] % 4) {
        (0, n) | (n, 0) => u32::from(n),
        (n @ (1 | 3), _) | (_, n) if n > 1 => 10 * u32::from(n),
        _ => 7,
    };
    if let Some(1 | 2) | None = half.get(i + 20) {
        sum += 100;
    }
    let mut last = small(x[i]);
    if i % 3 == 0 {
        last = small(x[i + 2]).map(|v| v + 1);
    }
    sum += last.unwrap_or(500) + u32::from(last.is_err());
    match rest {
        [] => sum += 1,
        all @ [first, ..] => sum += u32::from(*first) + all.len() as u32,
    }
    let letter = x[i] % 128;
    let folded = letter.to_ascii_lowercase();
    sum += u32::from(letter.is_ascii_alphanumeric()) * 2 + u32::from(folded.is_ascii_punctuation());
    sum += u32::from(folded.eq_ignore_ascii_case(&letter.to_ascii_uppercase())) + u32::from(folded);
    y[i] = sum;
}

#[test]
fn references_to_changing_parts() {
    check(kept::kernel(), kept, &bytes(), &[0; SIZE]);
}

/// References to change what a pattern met.
#[kernel]
fn changed(x: &[u8], y: &mut [u32]) {
    let i = global_id_x();
    let mut key = Key {
        parts: [1, 2, 3, u32::from(x[i])],
        kind: 4,
    };
    let Key {
        parts: [first, .., last],
        kind,
    } = &mut key;
    *first += *last;
    *kind = *first * 2;
    let mut some = (x[i] > 100).then_some(u32::from(x[i]));
    if let Some(value) = &mut some {
        *value += 5;
    }
    match &mut some {
        Some(value @ 110..=180) => *value *= 3,
        Some(value) => *value -= 1,
        None => {}
    }
    let mut local = [7, 8, 9, u32::from(x[i + 1])];
    if let [a, b, rest @ ..] = &mut local[i % 3..] {
        *a += *b;
        for v in rest {
            *v *= 2;
        }
    }
    let mut points = [(1, 2u32), (3, 4)];
    for (a, b) in points.iter_mut() {
        *a += 1;
        *b += *a;
    }
    let (low, high) = &mut points[1];
    *low += *high;
    if let Some(last) = local.last_mut() {
        *last ^= 21;
    }
    y[i] = key.parts[0]
        + key.kind
        + some.unwrap_or(1)
        + local[0]
        + local[2] * local[3]
        + points[0].1
        + points[1].0;
}

#[test]
fn references_in_patterns_change_what_they_met() {
    check(changed::kernel(), changed, &bytes(), &[0; SIZE]);
}

const STEPS: [i8; 3] = [-1, 0, 1];
const LEVELS: [i32; 4] = [-7, -2, 0, 5];

/// Tables of negative numbers: their elements are compared, and what they lead to.
#[kernel]
fn negative_tables(x: &[i32], y: &mut [i32]) {
    let i = global_id_x();
    if i >= y.len() {
        return;
    }
    let (v, width) = (x[i], x.len() as i32);
    let mut all = 0;
    for (k, step) in STEPS.iter().enumerate() {
        all += ((*step as i32) < v) as i32 + ((*step == -1) as i32) * 2;
        all += (STEPS[k] >= STEPS[(k + i) % 3]) as i32 * 4;
    }
    for level in LEVELS {
        all += (level < v) as i32 * 32 + (level.min(v) == v) as i32 * 256;
    }
    all += (LEVELS[i % 4] < LEVELS[(i / 4) % 4]) as i32 * 4096;
    let (mut way, mut least) = (9, i32::MAX);
    for step in [-1i8, 0, 1] {
        let at = i as i32 + step as i32;
        if at < 0 || at >= width {
            continue;
        }
        if x[at as usize] < least {
            (way, least) = (step, x[at as usize]);
        }
    }
    for step in STEPS {
        if let Some(at) = i.checked_add_signed(step as isize)
            && at < x.len()
            && x[at] == least
        {
            all += (step as i32 + 3) * 8192;
        }
    }
    y[i] = all + way as i32 * 65536;
}

#[test]
fn tables_of_negative_numbers() {
    let x: Vec<i32> = (0..100).map(|i| (i * 37 + 11) % 23 - 12).collect();
    check(negative_tables::kernel(), negative_tables, &x, &[0; 100]);
}

/// Elements that are written at constant places where lanes leave at different times, and read at places that run time chooses.
#[kernel]
fn left(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut bins = [0u32; 4];
    for _ in 0..x[i] {
        bins[3] += 1;
    }
    let mut pairs = [(0u16, 0u16); 3];
    'a: {
        pairs[1] = (1, 2);
        if x[i] % 3 == 0 {
            break 'a;
        }
        pairs[1] = (7, x[i] as u16);
    }
    let at = (x[i] as usize + i) % 3;
    y[i] = bins.iter().sum::<u32>() * 1000 + (pairs[at].0 + pairs[at].1) as u32;
}

/// The distance of two words, in one row of the table.
#[kernel]
fn levenshtein(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let (n, m) = ((x[i] % 7) as usize, (x[i + 1] % 9) as usize);
    let mut row = [0u32; 10];
    for j in 0..=m {
        row[j] = j as u32;
    }
    for p in 1..=n {
        let mut before = row[0];
        row[0] = p as u32;
        for q in 1..=m {
            let up = row[q];
            let same = x[i + p] % 3 == x[i + q + 4] % 3;
            row[q] = if same {
                before
            } else {
                1 + before.min(up).min(row[q - 1])
            };
            before = up;
        }
    }
    y[i] = row[m];
}

#[test]
fn elements_of_lanes_that_have_left_stay() {
    let x: Vec<u32> = (0..120).map(|i| i * 37 % 23 + i * i % 5).collect();
    check(left::kernel(), left, &x, &[0; 96]);
    check(levenshtein::kernel(), levenshtein, &x, &[0; 96]);
}
