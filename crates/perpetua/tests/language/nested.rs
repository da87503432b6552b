//! Chains of iterators within chains: which loop is left where one of them ends.

use perpetua::prelude::*;

use crate::harness::check;

#[kernel]
fn own_ends(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let n = x[i] % 7;
    // What a closure's own chain ends, goes on with the next item of the one around.
    let mut all: u32 = (0..n).flat_map(|e| (0..10).take_while(move |k| *k < e)).sum();
    all ^= (0..n)
        .flat_map(|e| (0..6).map_while(move |k| (k != e).then_some(k * 3)))
        .fold(1, |all: u32, v| all.wrapping_mul(5) ^ v);
    all ^= (0..n)
        .flat_map(|e| (e..9).take(2))
        .fold(2, |all: u32, v| all.rotate_left(3) ^ v)
        << 3;
    all ^= (0..n)
        .flat_map(|e| (0..3).flat_map(move |k| (0..5).take_while(move |m| *m + k < e)))
        .fold(3, |all: u32, v| all.wrapping_mul(7) ^ v);
    for v in (0..4).flat_map(|e| (0..9).take_while(move |k| k + e < n)) {
        if v == 3 {
            break;
        }
        all = all.rotate_left(1) ^ v;
    }
    y[i] = all;
}

#[test]
fn inner_chains_end_by_themselves() {
    check(own_ends::kernel(), own_ends, &numbers(), &[0; 64]);
}

#[kernel]
fn whole_ends(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let own = &x[i..i + 4];
    let mut all = 0u32;
    for v in own.iter().flat_map(|e| [*e, 5]).flat_map(|e| [e, e + 1]) {
        if v % 8 == 5 {
            break;
        }
        all = all.wrapping_mul(10) + v;
    }
    all ^= own
        .iter()
        .flat_map(|e| [*e % 9, 5])
        .flat_map(|e| [e, e])
        .take_while(|v| *v != 5)
        .fold(1, |all: u32, v| all.rotate_left(4) ^ v);
    all ^= own
        .iter()
        .flat_map(|e| [*e % 9, 5])
        .flat_map(|e| [e, e + 2])
        .map_while(|v| (v < 9).then_some(v))
        .count() as u32;
    all ^= own
        .iter()
        .flat_map(|e| [*e, *e + 1])
        .flat_map(|e| [e, e * 10])
        .position(|v| v % 4 == 1)
        .map_or(77, |at| at as u32)
        << 5;
    all ^= own
        .iter()
        .flat_map(|e| [*e, 1])
        .flat_map(|e| [e, e * 10])
        .nth(3)
        .unwrap_or(9)
        << 7;
    all ^= own
        .iter()
        .flat_map(|e| [*e, 1])
        .flat_map(|e| [e, e * 10])
        .find(|v| *v > 50)
        .unwrap_or(8)
        << 9;
    all ^= own
        .iter()
        .flat_map(|e| [*e, 1])
        .flat_map(|e| [e, e * 10])
        .next()
        .unwrap_or(7)
        << 11;
    all ^= own
        .iter()
        .take_while(|e| **e % 5 != 0)
        .flat_map(|e| [*e, *e + 1, 3])
        .take_while(|e| e % 7 != 0)
        .flat_map(|e| [e, e + 1])
        .take_while(|e| e % 11 != 0)
        .fold(5, |all: u32, v| all.wrapping_mul(3) ^ v);
    'rows: for v in own
        .iter()
        .flat_map(|e| (0..3).flat_map(move |k| [*e + k, *e * k]))
    {
        for k in 0..3 {
            if (v + k) % 13 == 0 {
                break 'rows;
            }
            if (v + k) % 5 == 0 {
                continue 'rows;
            }
            all = all.rotate_left(1) ^ v;
        }
    }
    let cube = [[[x[i], 5], [2, 3]], [[4, x[i + 1]], [4, 6]]];
    for p in cube.iter().flatten().flatten() {
        if *p == 5 {
            break;
        }
        all = all.wrapping_add(*p);
    }
    y[i] = all
        ^ cube
            .iter()
            .flatten()
            .flatten()
            .skip(3)
            .step_by(2)
            .take(2)
            .sum::<u32>()
            << 13;
}

#[test]
fn chains_of_three_loops_end_as_one() {
    check(whole_ends::kernel(), whole_ends, &numbers(), &[0; 64]);
}

fn numbers() -> Vec<u32> {
    (0..80).map(|i| i * 37 % 101).collect()
}
