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
    let (own, n) = (&x[i..i + 4], x[i] % 5);
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
    'a: for k in (0..3).flat_map(|k| 0..k) {
        'b: for z in (0..3).flat_map(|k| 0..k + n) {
            all = all.rotate_left(1) ^ z;
            if z == 2 {
                break 'b;
            }
            if z + k > 4 {
                continue 'a;
            }
        }
        all = all.wrapping_add(100);
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

/// Numbers up to an end, by a `next` of the user's.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Up {
    at: u32,
    end: u32,
}

#[device]
impl Iterator for Up {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.at < self.end {
            self.at += 1;
            Some(self.at)
        } else {
            None
        }
    }
}

#[device]
fn up(end: u32) -> Up {
    Up { at: 0, end }
}

#[kernel]
fn own_iterators(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let n = x[i] % 9;
    let mut all = up(n).into_iter().skip(2).fold(1, |all: u32, v| all * 3 + v);
    all ^= up(n).into_iter().step_by(2).sum::<u32>() << 3;
    all ^= up(n).into_iter().zip(up(4)).map(|(a, b)| a * b).sum::<u32>() << 5;
    all ^= (up(n).into_iter().take(4).skip(1).enumerate())
        .map(|(i, v)| i as u32 * v)
        .sum::<u32>()
        << 7;
    all ^= up(n).into_iter().nth(2).unwrap_or(9) << 9 ^ up(n).into_iter().last().unwrap_or(8) << 11;
    all ^= x[i..i + 3].iter().zip(up(n)).map(|(a, b)| a * b).sum::<u32>();
    all ^= (up(n).into_iter().zip(&x[i..i + 5]).skip(1).step_by(2))
        .map(|(a, b)| a + b)
        .sum::<u32>()
        << 2;
    let mut it = up(n).into_iter();
    it.next();
    all = all.rotate_left(3) ^ it.next().unwrap_or(7) ^ it.skip(1).map(|v| v * 2).sum::<u32>();
    let mut own = up(9);
    for v in &mut own {
        if v > n {
            break;
        }
    }
    all ^= own.at << 13 ^ (&mut own).into_iter().take(2).sum::<u32>() << 15 ^ own.at << 17;
    let mut r = n..n + 9;
    for k in (&mut r).into_iter().skip(2).step_by(2) {
        if k % 5 == 0 {
            break;
        }
        all = all.rotate_left(1) ^ k;
    }
    all ^= r.start;
    let mut named = 2..9 + n;
    all ^= named.by_ref().take(3).sum::<u32>() << 4 ^ (&mut named).step_by(2).sum::<u32>() << 6;
    y[i] = all ^ named.len() as u32;
}

#[test]
fn iterators_of_ones_own_give_one_item_after_the_other() {
    check(own_iterators::kernel(), own_iterators, &numbers(), &[0; 64]);
}

fn numbers() -> Vec<u32> {
    (0..80).map(|i| i * 37 % 101).collect()
}
