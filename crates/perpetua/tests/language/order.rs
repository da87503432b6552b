//! In which order receivers and arguments are computed, and that a receiver is a copy of its own; what a cast does not tell its operand.

use std::cmp::Ordering;

use perpetua::prelude::*;

use crate::harness::check;

/// One more than before; nothing above 20.
#[device]
fn step(s: &mut i32) -> Option<i32> {
    *s += 1;
    (*s < 21).then_some(*s)
}

#[device]
fn bounded(s: &mut i32) -> Result<i32, u32> {
    *s += 1;
    if *s < 21 { Ok(*s) } else { Err(*s as u32) }
}

#[device]
fn replaced(o: &mut Option<i32>) -> i32 {
    *o = Some(30);
    9
}

#[kernel]
fn eager(x: &[i32], y: &mut [[i32; 16]]) {
    let i = global_id_x();
    let mut s = x[i];
    let mut all = [0; 16];
    all[0] = step(&mut s).unwrap_or(s);
    all[1] = step(&mut s).or(Some(s * 2)).unwrap_or(-1);
    all[2] = step(&mut s).and(Some(s * 3)).unwrap_or(-1);
    all[3] = step(&mut s).xor(step(&mut s)).unwrap_or(s);
    all[4] = match step(&mut s).zip(step(&mut s)) {
        Some((a, b)) => a * 100 + b,
        None => s,
    };
    all[5] = step(&mut s).map_or(s, |v| v * 7);
    all[6] = match step(&mut s).ok_or(s) {
        Ok(v) => v * 5,
        Err(e) => e * 11,
    };
    all[7] = bounded(&mut s).unwrap_or(s);
    all[8] = bounded(&mut s).and(bounded(&mut s)).unwrap_or(s + 500);
    all[9] = bounded(&mut s).map_or(s * 3, |v| v + s);
    let mut o = Some(x[i]);
    all[10] = o.unwrap_or(replaced(&mut o));
    let mut at = x[i];
    all[11] = x
        .get({
            at += 1;
            at as usize
        })
        .copied()
        .unwrap_or(at);
    let mut v = i32::MAX - 31 + x[i];
    all[12] = v.checked_add(1).unwrap_or({
        v = 30;
        v - 21
    }) ^ v;
    all[13] = v.min({
        v += 5;
        v
    }) + v;
    let mut kept = Some(4);
    all[14] = kept.replace(kept.unwrap_or(1) + x[i]).unwrap_or(0) * 100 + kept.unwrap_or(0);
    all[15] = o.map_or(0, |v| v) + s;
    y[i] = all;
}

#[test]
fn receivers_are_computed_before_their_arguments() {
    let x: Vec<i32> = (0..32).collect();
    check(eager::kernel(), eager, &x, &[[0; 16]; 32]);
}

#[kernel]
fn starts(x: &[i32], y: &mut [[i32; 2]]) {
    let i = global_id_x();
    let mut s = i % 4;
    let sum = x
        .iter()
        .skip({
            s += 1;
            s
        })
        .take(4)
        .fold(s as i32 * 100, |a, v| a + *v);
    let mut n = x[i];
    n += {
        n += 7;
        n * 2
    };
    y[i] = [sum, n];
}

#[test]
fn a_fold_starts_behind_what_it_goes_over() {
    let x: Vec<i32> = (0..32).collect();
    check(starts::kernel(), starts, &x, &[[0; 2]; 32]);
}

#[kernel]
fn then(x: &[i32], y: &mut [i32]) {
    let i = global_id_x();
    let mut n = 0;
    let order = x[i].cmp(&2).then({
        n += 1;
        x[i].cmp(&3)
    });
    y[i] = n + (order == Ordering::Less) as i32 * 10 + (order == Ordering::Greater) as i32 * 20;
}

#[test]
fn then_computes_its_argument() {
    let x: Vec<i32> = (0..32).collect();
    check(then::kernel(), then, &x, &[0; 32]);
}

#[allow(clippy::unnecessary_cast, reason = "what a cast tells is what is tested")]
#[kernel]
fn casts(x: &[i16], y: &mut [[i64; 8]]) {
    let i = global_id_x();
    let small = x[i] < 0;
    y[i] = [
        (if small { 0 } else { 1 << 31 }) as i64,
        (if small { 0 } else { (200 + 100) / 3 }) as u8 as i64,
        (if small { 0 } else { x[i] }) as i64,
        (if small { 1 } else { -1 }) as u32 as i64,
        (if small { 300 } else { 200 }) as u8 as i64,
        (match x[i] {
            0 => 1 << 31,
            1 => -7,
            v => v as i32,
        }) as i64,
        // What is no branch is told.
        ({ 3_000_000_000 }) as i64 + 5_000_000_000 as i64,
        (-{ if small { 1 << 30 } else { 5 } }) as i64,
    ];
}

#[test]
fn casts_do_not_tell_branches_their_type() {
    let x: Vec<i16> = (-16..16).collect();
    check(casts::kernel(), casts, &x, &[[0; 8]; 32]);
}

#[kernel]
fn unknown_yet(x: &[i32], y: &mut [[u32; 8]]) {
    let i = global_id_x();
    let v = x[i];
    let good: Result<i32, u32> = if v > 3 { Ok(v) } else { Err(1) };
    let some = (v > 5).then_some(v);
    let left: Option<i32> = 'l: {
        if v > 10 {
            break 'l ({
                if v > 20 {
                    break 'l None;
                }
                Some(v)
            });
        }
        Some(v + 1)
    };
    let least: u32 = [7, 5, 9].iter().copied().min().unwrap_or(0);
    y[i] = [
        good.and(Ok(7)).unwrap_or(1),
        some.xor(None).unwrap_or(0) as u32,
        some.and(Some(4)).unwrap_or(9),
        left.unwrap_or(4) as u32,
        [1, 2, 3].iter().copied().max().unwrap_or(0),
        [1, 2, 3].into_iter().map(|n| n * 2).max().unwrap_or(0),
        [3, 8, 6].iter().max().map_or(0, |n| *n),
        least,
    ];
}

#[test]
fn types_are_found_from_what_follows() {
    let x: Vec<i32> = (0..32).collect();
    check(unknown_yet::kernel(), unknown_yet, &x, &[[0; 8]; 32]);
}

const DEBUG: bool = true;

#[kernel]
fn ended(x: &[i32], y: &mut [i32]) {
    let i = global_id_x();
    y[i] = x[i];
    let v = {
        if ({
            if DEBUG {
                return;
            }
            3
        }) != 3
            && x[i] == 2
        {
            return;
        }
        1
    };
    y[i] = v;
}

#[test]
fn a_condition_may_end_its_kernel() {
    check(ended::kernel(), ended, &[5; 32], &[0; 32]);
}

#[device]
fn drawn(n: &mut u32) -> u32 {
    *n = n.wrapping_mul(5) + 3;
    *n % 16
}

#[device]
fn weighed(a: u32, items: impl Iterator<Item = u32>, b: u32) -> u32 {
    let mut all = a;
    for item in items {
        all = all.wrapping_mul(7) ^ item;
    }
    all.wrapping_mul(31).wrapping_add(b)
}

#[device]
fn both(a: u32, x: impl Iterator<Item = u32>, b: u32, y: impl Iterator<Item = u32>) -> u32 {
    weighed(a, x, b).wrapping_mul(3) ^ weighed(b, y, a)
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Weighed {
    of: u32,
}

#[device]
impl Weighed {
    fn with(self, items: impl Iterator<Item = u32>) -> u32 {
        weighed(self.of, items, 1)
    }

    fn add(&mut self, a: u32, items: impl Iterator<Item = u32>) -> u32 {
        self.of = weighed(self.of ^ a, items, a);
        self.of
    }
}

#[device]
fn sum_of(n: &mut u32) -> Weighed {
    Weighed { of: drawn(n) }
}

#[kernel]
fn iterators(x: &[u32], y: &mut [[u32; 8]]) {
    let i = global_id_x();
    let mut n = x[i];
    let mut all = [0; 8];
    all[0] = weighed(drawn(&mut n), 0..drawn(&mut n), drawn(&mut n));
    all[1] = weighed(n, x[drawn(&mut n) as usize..].iter().copied().take(3), n);
    all[2] = both(n, 0..drawn(&mut n), drawn(&mut n), drawn(&mut n)..20);
    all[3] = sum_of(&mut n).with(drawn(&mut n)..20);
    let mut sums = [sum_of(&mut n), sum_of(&mut n)];
    all[4] = sums[drawn(&mut n) as usize % 2].add(drawn(&mut n), drawn(&mut n)..17);
    all[5] = sums[1].add(n, x[1..drawn(&mut n) as usize + 1].iter().map(|v| v * 2));
    all[6] = (drawn(&mut n)..20)
        .map(|v| v * 3)
        .try_fold(drawn(&mut n), |all, v| all.checked_add(v))
        .unwrap_or(7);
    all[6] ^= (0..drawn(&mut n)).rfold(drawn(&mut n), |all, v| all.wrapping_mul(3) ^ v);
    all[6] ^= (drawn(&mut n)..20)
        .step_by(drawn(&mut n) as usize + 1)
        .skip(drawn(&mut n) as usize % 3)
        .scan(drawn(&mut n), |all, v| {
            *all = all.wrapping_mul(3) ^ v;
            Some(*all)
        })
        .last()
        .unwrap_or(n);
    all[7] = sums[0].of ^ sums[1].of.rotate_left(5) ^ n;
    y[i] = all;
}

#[test]
fn iterators_that_are_arguments_keep_their_place() {
    let x: Vec<u32> = (0..48).map(|i| i * 37 % 101).collect();
    check(iterators::kernel(), iterators, &x, &[[0; 8]; 32]);
}

#[device]
fn slotted(slot: Option<u32>, items: impl Iterator<Item = u32>) -> u32 {
    weighed(slot.unwrap_or(50), items, 2)
}

#[kernel]
fn emptied(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut slot = (x[i] % 3 != 0).then_some(x[i]);
    let all = slotted(slot, slot.take().into_iter());
    y[i] = all ^ slot.map_or(0, |v| v << 9);
}

#[test]
fn an_option_is_emptied_in_its_turn() {
    let x: Vec<u32> = (0..48).map(|i| i * 37 % 101).collect();
    check(emptied::kernel(), emptied, &x, &[0; 32]);
}
