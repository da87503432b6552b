//! Iterators that functions are given, types that are iterators, types of a kernel's own, and operators of references.

use perpetua::prelude::*;

use crate::harness::check;
use crate::sweep::{SIZE, numbers};

/// Iterators are given to device functions, which ask for item after item.
mod items {
    use perpetua::prelude::*;

    #[device]
    fn hash(items: impl Iterator<Item = u32>) -> u32 {
        let mut hash = 17u32;
        for v in items {
            hash = hash.rotate_left(3) ^ v;
        }
        hash
    }

    #[device]
    fn pairs<'a, I: Iterator<Item = &'a u32>>(mut items: I) -> u32 {
        let mut sum = 0u32;
        while let (Some(a), Some(b)) = (items.next(), items.next()) {
            sum = sum.wrapping_mul(5) ^ a.wrapping_sub(*b);
        }
        sum
    }

    #[device]
    fn weighted<T: Copy + Into<u32>>(items: impl Iterator<Item = T>, from: u32) -> u32 {
        items
            .enumerate()
            .filter(|(at, _)| at % 3 != 1)
            .map(|(at, v)| {
                let v: u32 = v.into();
                v.wrapping_mul(at as u32 + from)
            })
            .fold(from, |all, v| all ^ v)
    }

    #[kernel]
    pub(super) fn given(x: &[u32], y: &mut [u32]) {
        let i = global_id_x();
        let part = &x[i..i + i % 11];
        let mut sum = hash(part.iter().copied());
        sum ^= hash((0..x[i] % 7).map(|v| v * v));
        sum ^= pairs(part.iter().filter(|v| **v % 3 != 0));
        sum ^= weighted(
            part.iter().map(|v| *v as u8),
            hash(part.iter().rev().cloned()) % 5,
        );
        let mut all = part.iter();
        let first = all.next().copied().unwrap_or(3);
        sum ^= pairs(&mut all).rotate_left(first % 31);
        let odd = part.iter().copied().filter(|v| v % 2 == 1);
        y[i] = sum ^ hash(odd).rotate_left(7) ^ hash(0..x[i] % 5);
    }
}

#[test]
fn iterators_given_to_functions() {
    check(items::given::kernel(), items::given, &numbers(), &[0; SIZE]);
}

#[kernel]
fn worded(x: &[u8], y: &mut [u32]) {
    let i = global_id_x();
    let word = [b'a' + x[i] % 2, b'b'];
    let mut sum = match &word {
        b"ab" => 1,
        b"bb" => 2,
        _ => 3,
    };
    sum += match &x[i..i + 2] {
        b"\x05\x2a" => 10,
        [b'a', ..] => 20,
        _ => 30,
    };
    y[i] = sum;
}

#[test]
fn bytes_in_patterns() {
    let bytes: Vec<u8> = numbers().iter().map(|v| *v as u8).collect();
    check(worded::kernel(), worded, &bytes, &[0; SIZE]);
}

/// Types of a kernel's own need no `derive` for kernels, but where a block of theirs has `#[device]`.
#[kernel]
fn local_types(x: &[u32], y: &mut [u32]) {
    #[derive(Clone, Copy)]
    struct Best {
        key: u32,
        at: Option<usize>,
    }
    #[derive(Clone, Copy, GpuType)]
    #[repr(C)]
    struct Random {
        state: u32,
    }
    #[derive(Clone, Copy, PartialEq)]
    struct Pair(u32, u32);
    #[derive(Clone, Copy, PartialEq)]
    enum Side {
        Left,
        Right,
    }
    #[device]
    impl Random {
        fn next(&mut self) -> u32 {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 17;
            self.state ^= self.state << 5;
            self.state
        }
    }
    let i = global_id_x();
    let mut best = Best { key: 0, at: None };
    let mut random = Random { state: x[i] | 1 };
    for k in 0..5 {
        let key = x[i + k] ^ (random.next() % 64);
        if best.at.is_none() || key > best.key {
            best = Best { key, at: Some(k) };
        }
    }
    let pair = Pair(best.key, random.next() % 7);
    let side = if best.key % 2 == 0 {
        Side::Left
    } else {
        Side::Right
    };
    let bonus = if pair == Pair(3, 1) || side == Side::Left {
        5
    } else {
        9
    };
    y[i] = best.at.map_or(11, |at| at as u32) ^ pair.0 ^ pair.1 << 8 ^ bonus << 12;
}

#[test]
fn types_of_a_kernels_own() {
    check(local_types::kernel(), local_types, &numbers(), &[0; SIZE]);
}

mod referred {
    use std::ops::{Add, Neg};

    use perpetua::prelude::*;

    #[device]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, GpuType)]
    #[repr(C)]
    pub(super) struct Pair {
        pub(super) a: u32,
        pub(super) b: u32,
    }

    #[device]
    impl Neg for &Pair {
        type Output = Pair;

        fn neg(self) -> Pair {
            Pair {
                a: self.a.wrapping_neg(),
                b: !self.b,
            }
        }
    }

    #[device]
    impl Add for &Pair {
        type Output = Pair;

        fn add(self, other: &Pair) -> Pair {
            Pair {
                a: self.a.wrapping_add(other.a),
                b: self.b.wrapping_add(other.b),
            }
        }
    }

    #[kernel]
    pub(super) fn referred(x: &[u32], y: &mut [u32]) {
        let i = global_id_x();
        let pairs = [
            Pair { a: x[i] % 4, b: 1 },
            Pair {
                a: x[i + 1] % 4,
                b: i as u32,
            },
            Pair {
                a: x[i + 2] % 4,
                b: 3,
            },
        ];
        let most = pairs.iter().max().unwrap();
        let least = pairs.iter().min().unwrap();
        let both = &(most + least) + &-most;
        y[i] = both.a ^ both.b << 8 ^ most.b << 16;
    }
}

#[test]
fn operators_and_orders_of_references() {
    check(
        referred::referred::kernel(),
        referred::referred,
        &numbers(),
        &[0; SIZE],
    );
}

/// Types that are iterators, and ranges with their ends.
mod stepped_by_hand {
    use perpetua::prelude::*;

    #[derive(Clone, Copy, GpuType)]
    #[repr(C)]
    struct Bits {
        left: u32,
    }

    #[device]
    impl Iterator for Bits {
        type Item = u32;

        fn next(&mut self) -> Option<u32> {
            if self.left == 0 {
                return None;
            }
            let at = self.left.trailing_zeros();
            self.left &= self.left - 1;
            Some(at)
        }
    }

    #[derive(Clone, Copy, PartialEq, Debug, GpuType)]
    #[repr(u32)]
    enum Kind {
        Low = 1,
        High = 2,
    }

    #[device]
    impl TryFrom<u32> for Kind {
        type Error = u32;

        fn try_from(v: u32) -> Result<Self, u32> {
            match v {
                1 => Ok(Kind::Low),
                2 => Ok(Kind::High),
                other => Err(other * 3),
            }
        }
    }

    #[kernel]
    pub(super) fn stepped(x: &[u32], y: &mut [u32]) {
        let i = global_id_x();
        let mut sum = 0u32;
        for at in (Bits { left: x[i] }) {
            if at == 19 {
                continue;
            }
            sum = sum.wrapping_mul(33) + at;
        }
        let mut bits = Bits { left: x[i + 1] };
        for at in &mut bits {
            if at > 3 {
                break;
            }
            sum = sum.wrapping_mul(5) + at;
        }
        sum ^= bits.left << 4;
        let own = i..=i + x[i] as usize % 5;
        sum ^= x[own.clone()].iter().fold(0, |all, v| all ^ v.rotate_left(3));
        sum ^= u32::from(own.contains(&(i + 2))) << 20;
        sum ^= (*own.start() * 3 + *own.end()) as u32;
        for k in own {
            sum = sum.rotate_left(1) ^ k as u32;
        }
        let kind: Result<Kind, u32> = (x[i] % 4).try_into();
        y[i] = sum
            ^ match kind {
                Ok(kind) => kind as u32 + 10,
                Err(e) => e + 100,
            };
    }
}

#[test]
fn iterators_of_ones_own() {
    check(
        stepped_by_hand::stepped::kernel(),
        stepped_by_hand::stepped,
        &numbers(),
        &[0; SIZE],
    );
}

/// What longer forms evaluate once, in Rust's order, and as a whole.
mod whole {
    use perpetua::prelude::*;

    #[device]
    fn next(s: &mut u32) -> u32 {
        *s += 1;
        *s
    }

    #[device]
    fn times<T: Copy>(x: T, _: T) -> T {
        x
    }

    #[kernel]
    pub(super) fn evaluated(x: &[u32], y: &mut [u32]) {
        let i = global_id_x();
        let n = x[i] as usize % 4;
        let mut copied = [1u32, 2, 3, 4, 5, 6, 7, 8];
        copied.copy_within(0..=n & 2, 4);
        let mut s = 0u32;
        copied.copy_within(0..next(&mut s) as usize, next(&mut s) as usize);
        let part = x[i] as f32 / 4096.0;
        let none = (part..part + 0.25).is_empty();
        let some = (part..=part).is_empty();
        let mut it = x[i..].iter().copied().peekable();
        let mut sum = 0u32;
        while let Some(v) = it.next_if(|v| v % 3 != 0) {
            sum = sum.wrapping_mul(7) ^ v;
        }
        let first = times(it.next(), None).unwrap_or(5);
        let k = first % 5;
        let scaled = x[..i % 9].iter().map(|v| v.wrapping_mul(k)).enumerate();
        for (j, v) in scaled {
            sum ^= v.rotate_left(j as u32);
        }
        y[i] = copied.iter().fold(sum, |all, v| all.wrapping_mul(9) ^ v)
            ^ u32::from(none) << 3
            ^ u32::from(some) << 4;
    }
}

#[test]
fn longer_forms_are_whole() {
    check(
        whole::evaluated::kernel(),
        whole::evaluated,
        &numbers(),
        &[0; SIZE],
    );
}

/// What a macro declares is its own, in arms, too; a literal with a sign is one operand.
mod of_macros {
    use perpetua::prelude::*;

    #[kernel]
    pub(super) fn expanded(x: &[u32], y: &mut [u32]) {
        macro_rules! get {
            ($o:expr, $d:expr) => {
                match $o {
                    Some(v) if v < 90 => v + $d,
                    Some(v) => v.wrapping_mul($d),
                    None => $d,
                }
            };
        }
        macro_rules! squared {
            ($l:literal) => {
                $l.pow(2)
            };
        }
        let i = global_id_x();
        let v = x[i] % 100;
        let some = if v % 3 == 0 { None } else { Some(v + 200) };
        y[i] = get!(Some(v), 10 + v) ^ get!(some, v) << 8 ^ squared!(-2i32) as u32;
    }

    #[kernel]
    pub(super) fn hidden(x: &[u32], y: &mut [u32]) {
        let i = global_id_x();
        let a = x[i] % 1000;
        macro_rules! plus {
            ($v:expr) => {
                $v + a
            };
        }
        macro_rules! swapped {
            ($p:ident, $q:ident) => {{
                let old = $p;
                $p = $q + 1;
                $q = old;
            }};
        }
        macro_rules! stepped {
            ($v:expr, $label:lifetime) => {{
                let v = $v;
                'all: loop {
                    let v = v + 1;
                    if v % 2 == 0 {
                        break 'all v + offset(2);
                    }
                    if v % 3 == 0 {
                        break $label;
                    }
                    break 'all v;
                }
            }};
        }
        let first = plus!(1);
        let a = 1000;
        let a = a + plus!(a);
        let (mut old, mut new) = (5, first);
        swapped!(old, new);
        let offset = |v: u32| v * 7;
        let mut sum = first.wrapping_add(old * 100_000) ^ new ^ offset(a);
        'all: for k in 0..9 {
            sum = sum.wrapping_mul(3) + stepped!(k + first, 'all);
        }
        if let Some(a) = Some(2) {
            sum ^= plus!(a).wrapping_mul(8);
        }
        assert!(a > 0, "{a}, {}", plus!(a));
        y[i] = sum;
    }

    #[device]
    fn offset(v: u32) -> u32 {
        v * 100
    }
}

#[test]
fn names_of_macros_mean_what_they_do_where_macros_are_defined() {
    check(
        of_macros::hidden::kernel(),
        of_macros::hidden,
        &numbers(),
        &[0; SIZE],
    );
}

#[test]
fn names_of_macros_are_their_own() {
    check(
        of_macros::expanded::kernel(),
        of_macros::expanded,
        &numbers(),
        &[0; SIZE],
    );
}
