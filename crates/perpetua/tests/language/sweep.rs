//! Forms that a sweep of small kernels brought: what `std::iter` makes, ends of iterators, iterators with functions behind names,
//! and further methods of options, slices and numbers.

#![allow(
    clippy::double_ended_iterator_last,
    clippy::manual_repeat_n,
    clippy::option_map_or_none,
    reason = "kernels are written as users write them"
)]

use perpetua::prelude::*;

use crate::harness::{check, floats, renders};

pub(crate) const SIZE: usize = 64;

pub(crate) fn numbers() -> Vec<u32> {
    let number = |i: usize| match i % 7 {
        5 => (i as u32 * 37 % 101).wrapping_mul(0x9e37_79b9),
        6 => (i as u32 * 37 % 101).wrapping_neg(),
        _ => (i * 37 % 101) as u32,
    };
    (0..SIZE + 24).map(number).collect()
}

/// What is expected of a `fold` types what it starts with; `Ord`'s methods take an integer whose type is found later.
#[kernel]
fn started(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[i..i + i % 11];
    let hash: u32 = part.iter().fold(0, |all, v| all.rotate_left(3) ^ v);
    let (low, high) = part
        .iter()
        .fold((u32::MAX, 0), |(low, high), &v| (low.min(v), high.max(v)));
    let span = |part: &[u32]| {
        let mut high = 0;
        for &v in part {
            high = high.max(v);
        }
        high
    };
    y[i] = part.iter().fold(0, |all, v| all.wrapping_mul(31) ^ v);
    y[i] ^= hash ^ low ^ high.rotate_left(7) ^ span(part).rotate_left(9);
}

#[test]
fn a_fold_starts_with_what_is_expected_of_it() {
    check(started::kernel(), started, &numbers(), &[0; SIZE]);
}

#[kernel]
fn made(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[i..i + i % 11];
    let mut sum = std::iter::once(x[i])
        .chain(part.iter().copied())
        .fold(0, |all: u32, v| all.rotate_left(3) ^ v);
    sum ^= std::iter::repeat(x[i])
        .take(5)
        .fold(0, |all: u32, v| all.rotate_left(3) ^ v);
    sum ^= std::iter::repeat_n(x[i], i % 5).fold(1, |all: u32, v| all.rotate_left(3) ^ v);
    sum ^= std::iter::zip(part, &x[i + 1..]).fold(0, |all: u32, (a, b)| all.rotate_left(3) ^ (a & !b));
    let mut state = x[i] | 1;
    sum ^= std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    })
    .take(4)
    .fold(0, |all, v| all ^ v);
    let mut left = x[i];
    let digits = std::iter::from_fn(|| {
        left /= 3;
        (left > 0).then_some(left % 3)
    });
    for digit in digits {
        sum = sum.wrapping_mul(5) ^ digit;
    }
    sum ^= std::iter::successors(Some(x[i] % 1000 + 1), |v| match *v {
        1 => None,
        v if v % 2 == 0 => Some(v / 2),
        v => Some(3 * v + 1),
    })
    .count() as u32;
    let keys = [1u32, 5, 7];
    for (v, key) in part.iter().zip(keys.iter().cycle().skip(i % 4)) {
        sum = sum.wrapping_mul(31).wrapping_add(v ^ key);
    }
    y[i] = sum
        ^ part
            .iter()
            .cycle()
            .take(7)
            .fold(0, |all: u32, v| all.rotate_left(3) ^ v);
}

#[test]
fn functions_that_make_iterators() {
    check(made::kernel(), made, &numbers(), &[0; SIZE]);
}

#[kernel]
fn ended(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[i..i + i % 11];
    let mut sum = part.iter().rfold(0u32, |all, v| all.rotate_left(3) ^ v);
    sum ^= part.iter().rfind(|v| **v > 60).copied().unwrap_or(7);
    sum ^= part.iter().rposition(|v| *v > 60).map_or(99, |at| at as u32);
    sum ^= part.iter().map(|v| v ^ 5).next_back().unwrap_or(11);
    sum ^= part.iter().nth_back(2).map_or(13, |v| v << 3);
    sum ^= part
        .iter()
        .try_fold(0u32, |all, v| all.checked_add(*v))
        .unwrap_or(17);
    let found: Result<u32, usize> = part.iter().enumerate().try_fold(1u32, |all, (at, v)| {
        if *v > 1000 {
            Err(at)
        } else {
            Ok(all * 3 % 1009 + v)
        }
    });
    sum ^= match found {
        Ok(v) => v,
        Err(at) => at as u32 + 5000,
    };
    let mut count = 0;
    let all = part.iter().try_for_each(|v| {
        if *v > 1000 {
            return None;
        }
        count += v;
        Some(())
    });
    sum ^= count + u32::from(all.is_some());
    let other = &x[i + 1..i + 1 + (i + 3) % 11];
    let order = part.iter().cmp(other.iter());
    sum ^= (order as i32 as u32) << 4;
    sum ^= u32::from(part.iter().rev().eq(part.iter())) << 8;
    sum ^= u32::from(part.iter().ne(part.iter().take(3))) << 9;
    sum ^= u32::from(part.iter().lt(other)) << 10;
    sum ^= u32::from(part.iter().filter(|v| **v % 2 == 0).ge(other)) << 11;
    sum ^= u32::from(part.iter().take(2).is_sorted()) << 12;
    sum ^= u32::from(part.iter().map(|v| v % 8).is_sorted_by(|a, b| a <= b)) << 13;
    sum ^= u32::from(part.iter().take(3).is_sorted_by_key(|v| *v % 5)) << 14;
    sum ^= u32::from((i..i % 11).is_empty()) << 15;
    y[i] = sum;
}

#[test]
fn ends_of_iterators() {
    check(ended::kernel(), ended, &numbers(), &[0; SIZE]);
}

/// A name for an iterator with functions, which are called where its items are asked for.
#[kernel]
fn named(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[i..i + i % 11];
    let factor = x[i] | 1;
    let scaled = part.iter().map(|v| v.wrapping_mul(factor));
    let mut sum = scaled.clone().fold(0, |all: u32, v| all.rotate_left(5) ^ v);
    for (at, v) in scaled.enumerate() {
        sum = sum.wrapping_mul(3) ^ v.wrapping_add(at as u32);
    }
    let even = part.iter().filter(|v| **v % 2 == 0).map(|v| v / 2);
    sum ^= even.fold(0, u32::wrapping_add);
    let mut left = part.iter().filter(|v| **v % 3 != 0).enumerate();
    let first = left.next().map_or(3, |(at, v)| v.wrapping_add(at as u32));
    let second = left.next().map_or(5, |(at, v)| v ^ (at as u32) << 7);
    sum ^= first
        ^ second.rotate_left(1)
        ^ left
            .map(|(at, v)| v.wrapping_mul(at as u32))
            .fold(0, |a, b| a ^ b);
    let mut both = part.iter();
    while let (Some(a), Some(b)) = (both.next(), both.next_back()) {
        sum = sum.rotate_left(1) ^ a.wrapping_sub(*b);
    }
    let mut ids = 0..x[i] % 9;
    sum ^= ids.next_back().unwrap_or(77) * 100 + ids.next().unwrap_or(88);
    sum ^= ids.map(|id| id * id).sum::<u32>() << 16;
    let mut runs = part.iter().copied().peekable();
    while let Some(v) = runs.next() {
        let mut length = 1;
        while runs.next_if(|next| *next > v).is_some() {
            length += 1;
        }
        sum = sum.wrapping_mul(7) ^ length;
    }
    let ones = [3, 3, x[i] % 4, 3];
    let mut same = ones.iter().peekable();
    while same.next_if_eq(&&3).is_some() {
        sum = sum.wrapping_add(1);
    }
    y[i] = sum;
}

#[test]
fn names_of_iterators_with_functions() {
    check(named::kernel(), named, &numbers(), &[0; SIZE]);
}

#[kernel]
fn optional(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut slot = x[i].checked_sub(50);
    let before = slot;
    let mut sum = *slot.get_or_insert(7);
    *slot.get_or_insert_with(|| 9) += 1;
    sum ^= slot.unwrap_or(0) << 4;
    let taken = slot.take_if(|v| {
        *v += 1;
        *v % 2 == 0
    });
    sum ^= taken.map_or(1, |v| v << 8) ^ slot.map_or(3, |v| v << 9);
    *slot.insert(5) += x[i] % 3;
    if let Some(v) = slot.as_mut() {
        *v *= 2;
    }
    sum ^= slot.max(before).unwrap_or(9) ^ slot.min(before).map_or(21, |v| v << 2);
    let (a, b) = before.map(|v| (v, v % 7)).unzip();
    sum ^= a.unwrap_or(11) ^ b.map_or(13, |b| b << 5);
    let checked: Result<u32, u32> = if x[i] % 3 == 0 { Err(x[i]) } else { Ok(x[i] / 3) };
    sum ^= u32::from(checked.is_err_and(|e| e > 40)) << 20;
    sum ^= match before.map(|_| checked).transpose() {
        Ok(Some(v)) => v << 3,
        Ok(None) => 19,
        Err(e) => e << 1,
    };
    let nested: Result<Option<u32>, u32> = checked.map(|v| (v > 9).then_some(v));
    sum ^= match nested.transpose() {
        Some(Ok(v)) => v << 6,
        Some(Err(e)) => e << 7,
        None => 23,
    };
    y[i] = sum;
}

#[test]
fn further_methods_of_options() {
    check(optional::kernel(), optional, &numbers(), &[0; SIZE]);
}

#[kernel]
fn sliced(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let table = [3u32, 10, 20, 30, 50, 80];
    let pairs = [(1u32, 3u32), (2, 10), (3, 20), (4, 50)];
    let wanted = x[i] % 90;
    let mut sum = match table.binary_search_by(|v| v.cmp(&wanted)) {
        Ok(at) => at as u32,
        Err(at) => 100 + at as u32,
    };
    sum ^= (pairs
        .binary_search_by_key(&wanted, |&(_, key)| key)
        .unwrap_or_else(|at| at + 10) as u32)
        << 8;
    let mut part = [x[i], x[i + 1], x[i + 2], x[i + 3], x[i + 4]];
    sum ^= u32::from(part.is_sorted_by(|a, b| a >= b)) << 16;
    sum ^= u32::from(part[..3].is_sorted_by_key(|v| v % 10)) << 17;
    sum ^= match part.split_at_checked(i % 8) {
        Some((a, b)) => (a.len() * 10 + b.len()) as u32,
        None => 7,
    };
    sum ^= part.strip_prefix(&[x[i], x[i + 1]]).map_or(1, |rest| rest[0]);
    sum ^= part.strip_suffix(&x[i + 3..i + 5]).map_or(1, |rest| rest[2] << 1);
    sum ^= part.strip_prefix(&[7, 8]).map_or(2, |rest| rest[0] << 2);
    if let Some([a, b]) = x[i..].first_chunk() {
        sum ^= a.rotate_left(3) ^ b;
    }
    sum ^= part
        .last_chunk::<3>()
        .map_or(5, |last| last[0] ^ last[2].rotate_left(9));
    sum ^= u32::from(part.first_chunk::<6>().is_none()) << 18;
    sum ^= match part[..2].cmp(&part[2..4]) {
        std::cmp::Ordering::Less => 1,
        std::cmp::Ordering::Equal => 2,
        std::cmp::Ordering::Greater => 3,
    } << 20;
    let (_, middle, _) = part.select_nth_unstable(2);
    sum ^= middle.rotate_left(13);
    let (left, right) = part.split_at_mut(2);
    left.swap_with_slice(&mut right[..2]);
    let mut state = x[i];
    right[1..].fill_with(|| {
        state = state.wrapping_mul(5) + 1;
        state
    });
    part.copy_within(1..4, 0);
    part.copy_within(..3, 2);
    part.copy_within(3..=3, i % 5);
    y[i] = part.iter().fold(sum, |all, v| all.rotate_left(5) ^ v);
}

#[test]
fn further_methods_of_slices() {
    check(sliced::kernel(), sliced, &numbers(), &[0; SIZE]);
}

#[kernel]
fn counted(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let (a, b) = (x[i], x[i + 1]);
    let (s, t) = (a as i32, b as i32);
    let mut sum = s.saturating_neg() ^ s.saturating_abs() ^ s.saturating_div(t | 1);
    sum ^= i32::MIN.saturating_neg() ^ i32::MIN.saturating_abs() ^ i32::MIN.saturating_div(-1);
    sum ^= s.checked_add_unsigned(b).unwrap_or(3) ^ s.checked_sub_unsigned(b).unwrap_or(5);
    sum ^= s.saturating_add_unsigned(b) ^ s.saturating_sub_unsigned(b).rotate_left(1);
    let (up, over) = s.overflowing_add_unsigned(b);
    let (down, under) = s.overflowing_sub_unsigned(b);
    sum ^= up ^ down ^ i32::from(over) << 3 ^ i32::from(under) << 4;
    sum ^= a.checked_signed_diff(b).unwrap_or(7);
    let (left, far) = a.overflowing_shl(b % 40);
    let (right, near) = s.overflowing_shr(b % 40);
    let mut bits = left ^ right as u32 ^ u32::from(far) << 5 ^ u32::from(near) << 6;
    bits ^=
        a.checked_next_multiple_of(b % 5).unwrap_or(9) ^ u32::MAX.checked_next_multiple_of(8).unwrap_or(11);
    bits ^= (a | 1).ilog(3) ^ a.checked_ilog(b % 4).unwrap_or(13) << 8;
    bits ^= u32::from((a as u8 | 1).ilog(2) != (a as u8 | 1).ilog2()) << 9;
    bits ^= a.to_be() ^ a.to_le().rotate_left(1) ^ u32::from_be(b) ^ u32::from_le(b).rotate_left(2);
    y[i] = bits ^ sum as u32;
}

#[kernel]
fn stepped(x: &[f32], y: &mut [u32]) {
    let i = global_id_x();
    let mut v = match i % 8 {
        0 => 0.0,
        1 => -0.0,
        2 => f32::MAX,
        3 => f32::INFINITY,
        4 => f32::NEG_INFINITY,
        5 => f32::from_bits(1),
        _ => x[i],
    };
    let up = v.next_up();
    v = v.next_down();
    y[i] = up.to_bits() ^ v.to_bits().rotate_left(7);
}

#[test]
fn further_methods_of_numbers() {
    check(counted::kernel(), counted, &numbers(), &[0; SIZE]);
    check(stepped::kernel(), stepped, &floats(SIZE), &[0; SIZE]);
    renders(stepped::kernel());
}

mod brought {
    use std::cmp::{max, min};
    use std::mem::{self, replace, swap};

    use perpetua::prelude::*;

    const STEPS: &[(i32, i32)] = &[(0, 1), (1, 0), (-1, 2)];

    #[device]
    fn within(v: u32, low: u32, high: u32) -> u32 {
        max(min(v, high), low)
    }

    #[kernel]
    pub(super) fn brought(x: &[u32], y: &mut [u32]) {
        let i = global_id_x();
        let mut pair = [x[i], x[i + 1]];
        let (mut a, mut b) = (x[i + 2], 7);
        swap(&mut a, &mut b);
        let old = replace(&mut pair[i % 2], within(x[i], 20, 60));
        mem::swap(&mut pair[0], &mut a);
        let (least, most) = (min((x[i] % 3, 1), (1, x[i + 1] % 3)), max(3, i % 5));
        let mut sum = a ^ b.rotate_left(3) ^ old.rotate_left(5) ^ pair[0] ^ pair[1].rotate_left(7);
        for &(dx, dy) in STEPS {
            sum = sum.wrapping_mul(5).wrapping_add((dx * 3 - dy) as u32);
        }
        for step in STEPS {
            sum = sum.wrapping_mul(7).wrapping_add(step.0 as u32);
        }
        y[i] = sum ^ least.0 ^ least.1 << 9 ^ (most as u32) << 12;
    }
}

#[test]
fn names_of_the_standard_library() {
    check(
        brought::brought::kernel(),
        brought::brought,
        &numbers(),
        &[0; SIZE],
    );
}

/// A macro of the kernel's own: what it declares is its own, whatever it is given.
#[kernel]
fn by_example(x: &[u32], y: &mut [u32]) {
    macro_rules! most {
        ($a:expr) => { $a };
        ($a:expr, $($rest:expr),+ $(,)?) => {{
            let t = most!($($rest),+);
            if $a > t { $a } else { t }
        }};
    }
    macro_rules! round {
        ($a:ident, $b:ident, $by:literal) => {
            $a = $a.wrapping_add($b);
            $b = ($b ^ $a).rotate_left($by);
        };
    }
    let i = global_id_x();
    let (mut t, mut u) = (x[i], x[i + 1]);
    round!(t, u, 7);
    round!(u, t, 12);
    y[i] = most!(t, u % 8 + 1, t ^ u,) ^ most!(x[i] | 1);
}

#[test]
fn macros_of_a_kernel() {
    check(by_example::kernel(), by_example, &numbers(), &[0; SIZE]);
}

/// A method called as one of a scalar is, which it calls.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Half {
    bits: f16,
}

#[device]
impl Half {
    fn to_f32(self) -> f32 {
        self.bits.to_f32() * 0.5
    }
}

#[kernel]
fn halves(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let half = Half {
        bits: f16::from_f32(x[i]),
    };
    y[i] = half.to_f32();
}

#[test]
fn a_method_named_as_one_of_scalars_calls_it() {
    check(halves::kernel(), halves, &floats(SIZE), &[0.0; SIZE]);
}
