//! Patterns: in `let`, `match`, `if let`, `while let`, `let … else`, `matches!`, parameters of closures and assignments.

use perpetua::prelude::*;

use crate::harness::{check, floats};

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
    kind: Kind,
    steps: [u32; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Pair(u32, f32);

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Kind {
    Free,
    Bound,
    Gone,
}

#[device]
impl Point {
    fn size(&self) -> f32 {
        let Self { x, y, .. } = *self;
        x * x + y * y
    }
}

/// What is far goes by its kind; the rest by its steps.
#[device]
fn weight(p: &Point) -> f32 {
    match p {
        Point { kind: Kind::Gone, .. } => -1.0,
        Point { x, y, .. } if *x > 6.0 => x - y,
        Point {
            kind: kind @ (Kind::Free | Kind::Bound),
            steps: [first @ 1..=3, .., last],
            ..
        } => {
            if matches!(kind, Kind::Bound) {
                (first * 10 + last) as f32
            } else {
                (first + last) as f32
            }
        }
        &Point { steps: [a, b, c], .. } => (a * b + c) as f32 * 0.25,
    }
}

#[device]
fn of_pair(pair: Pair) -> f32 {
    let Pair(count, value) = pair;
    let Pair(0..=4, small) = pair else {
        return value * 2.0;
    };
    small + count as f32
}

#[kernel]
fn patterns(x: &[Point], y: &mut [f32]) {
    let i = global_id_x();
    let p = x[i];
    let Point {
        x: mut across,
        y: along,
        steps,
        ..
    } = p;
    let [a, b, _] = steps;
    let (first, .., last) = (a, 0.5f32, true, b);
    across += (first + last) as f32;
    let mut sum = weight(&p) + p.size() + across * along;
    sum += of_pair(Pair(a, along)) + of_pair(Pair(b * 2, across));

    let (mut low, mut high) = (along, p.x);
    if low > high {
        (low, high) = (high, low);
    }
    let mut kept = [0.0f32; 2];
    [kept[1], _, kept[0]] = [low, 7.0, high];
    Point { x: low, kind: _, .. } = x[(i + 1) % 64];
    sum += low * 2.0 + high + kept[0] - kept[1];

    if let Point {
        kind: Kind::Free,
        x: by,
        ..
    } = p
        && by > 0.0
        && let [1 | 2, second, _] = p.steps
    {
        sum += by * second as f32;
    } else if let (1, n) = (a, b) {
        sum -= n as f32;
    } else {
        sum += 0.125;
    }

    let mut left = (a, b);
    while let (n @ 1.., m) = left {
        left = (n - 1, m + 2);
        if m > 9 {
            continue;
        }
        sum += 1.0;
    }
    let sign = match (p.kind, left.1) {
        (Kind::Free, ..=4) => 1.0,
        (Kind::Free | Kind::Bound, n) if n % 2 == 0 => -1.0,
        (_, n) => n as f32 * 0.5,
    };
    let swap = |(a, [b, c]): (f32, [f32; 2])| a * 2.0 + b - c;
    y[i] = sum * sign + swap((along, kept));
}

#[test]
fn patterns_take_values_apart() {
    let f = floats(128);
    let points: Vec<Point> = (0..64)
        .map(|i| Point {
            x: f[i],
            y: f[i + 64],
            kind: [Kind::Free, Kind::Bound, Kind::Gone, Kind::Free][i % 4],
            steps: [i as u32 % 5, i as u32 / 5 % 4, i as u32 % 7],
        })
        .collect();
    check(patterns::kernel(), patterns, &points, &[0.0f32; 64]);
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Row(u32, f32, f32, u32);

#[device]
fn level(x: f32) -> u32 {
    const LIMIT: f32 = 6.5;
    match (x, x < 1.0) {
        (-8.0, _) => 1,
        (f32::MIN..-4.0, true) => 2,
        (0.0, _) => 3,
        (0.25..=2.0, false) => 4,
        (LIMIT, _) => 5,
        (3.5..LIMIT | 7.0f32.., _) => 6,
        _ => 7,
    }
}

#[kernel]
fn further(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let Row(first, .., last) = Row(i as u32, x[i], 2.0, 3);
    let mut sum = (level(x[i]) * 100 + first * last) as f32;
    if let Row(.., 2.0, 0..4) = Row(i as u32, x[i], x[i + 1], last) {
        sum += 0.5;
    }
    let mut kept = [x[i], 1.0];
    if let Some(&mut v) = kept.get_mut(i % 3) {
        sum += v;
    }
    let taken = std::mem::take(&mut kept[0]);
    y[i] = sum + taken * 4.0 + kept[0];
}

#[test]
fn patterns_of_floats_and_rows() {
    let mut x = floats(66);
    x[9] = -0.0;
    check(further::kernel(), further, &x, &[0.0f32; 64]);
}

#[device]
fn grow(by: &mut f32, most: &f32) -> f32 {
    *by = (*by + 1.0).min(*most);
    *by
}

#[kernel]
fn references(x: &[[f32; 2]], y: &mut [[f32; 6]]) {
    let i = global_id_x();
    let mut pair = (x[i], x[i + 1]);
    let ref first = pair.0;
    let seen = first[1] + x[i][0];
    let (ref mut low, [high, _]) = pair;
    low[0] += high;
    let mut shape = if seen > 0.0 { Some(pair.0[0]) } else { None };
    match shape {
        Some(ref mut v) if *v > 4.0 => *v -= 4.0,
        Some(ref v) => y[i][0] = *v,
        None => y[i][0] = -1.0,
    }
    let [ref mut a, b, ref mut c] = [pair.0[1], 3.0, seen];
    let grown = grow(a, &b);
    *c *= 2.0;
    let Some(ref kept): Option<f32> = shape else {
        y[i][5] = grown;
        return;
    };
    if let Some(ref v) = shape
        && *v > seen
    {
        y[i][1] = *v;
    }
    while let [ref mut left, right] = y[i][2..4]
        && *left < right + 2.0
    {
        *left += 1.0;
    }
    y[i][4] = *kept + *c + grown + matches!(pair, (ref p, [q, _]) if p[0] > q) as u32 as f32;
    y[i][5] = pair.0[0];
}

#[test]
fn names_refer() {
    let x: Vec<[f32; 2]> = floats(130).chunks(2).map(|two| [two[0], two[1]]).collect();
    check(
        references::kernel(),
        references,
        &x,
        &[[0.5, 0.25, -0.5, 1.5, 2.0, 3.0]; 64],
    );
}
