//! What branches choose that is no value, iterators of one's own as arguments, iterators under other names, and variants that say their types.

use perpetua::prelude::*;

use crate::harness::{check, panics};
use crate::sweep::{SIZE, numbers};

/// The places of the bits that are set, from the lowest on.
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

#[device]
fn bits(left: u32) -> Bits {
    Bits { left }
}

#[device]
fn hash(items: impl Iterator<Item = u32>) -> u32 {
    let mut hash = 17u32;
    for item in items {
        hash = hash.rotate_left(5) ^ item;
    }
    hash
}

#[device]
fn doubled<I: Iterator<Item = u32>>(items: I) -> u32 {
    items.map(|item| item * 2).sum()
}

#[device]
fn front(items: &mut impl Iterator<Item = u32>) -> u32 {
    items.next().unwrap_or(40) * 64 + items.next().unwrap_or(41)
}

#[device]
fn second(items: impl Iterator<Item = u32>) -> u32 {
    let mut rest = items;
    rest.next();
    rest.next().unwrap_or(9)
}

#[kernel]
fn given_own(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let named = Bits { left: x[i] };
    let mut all = hash(named) ^ hash(Bits { left: x[i] >> 3 });
    all ^= doubled(bits(x[i] % 1000)) ^ second(bits(x[i]));
    let mut several = bits(x[i]);
    all ^= front(&mut several).rotate_left(9);
    all ^= hash(&mut several).rotate_left(several.left % 7);
    for at in bits(x[i]).skip(2) {
        all = all.wrapping_mul(3) ^ at;
    }
    for at in bits(x[i]).step_by(2).take(3) {
        all = all.wrapping_mul(5) ^ at;
    }
    for (k, at) in (0u32..4).zip(bits(x[i]).take(2)) {
        all ^= (k + 1) << at % 16;
    }
    y[i] = all
        ^ bits(x[i])
            .zip(bits(x[i] >> 1).take(5))
            .map(|(a, b)| a * b)
            .sum::<u32>();
}

#[test]
fn iterators_of_ones_own_are_arguments() {
    check(given_own::kernel(), given_own, &numbers(), &[0; SIZE]);
}

const ODD: [u8; 4] = [1, 3, 5, 7];

#[device]
fn word(k: u32) -> &'static [u8] {
    match k % 4 {
        0 => b"zero",
        1 => b"a",
        2 => b"",
        _ => &ODD,
    }
}

#[kernel]
fn words(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let text: &[u8] = match x[i] % 3 {
        0 => b"ab",
        1 => b"cde",
        _ => b"",
    };
    let mut all = text.len() as u32;
    for &byte in text {
        all = all.wrapping_mul(31) ^ u32::from(byte);
    }
    let pair = if x[i] % 5 < 2 { b"no" } else { b"on" };
    all ^= u32::from(pair[(x[i] % 2) as usize]) << 8 ^ u32::from(pair == b"on") << 20;
    all = all.wrapping_add(word(x[i]).iter().map(|byte| u32::from(*byte)).sum());
    y[i] = all ^ word(x[i] >> 2).first().map_or(3, |byte| u32::from(*byte)) << 12;
}

/// Words between zeros.
#[kernel]
fn parted(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let data = [x[i] % 3, 4, 0, x[i + 1] % 2, 7, 0, 0, x[i + 2] % 5];
    let (mut all, mut rest) = (0u32, &data[..]);
    while !rest.is_empty() {
        let len = rest.iter().position(|v| *v == 0).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(len);
        all = all.wrapping_mul(7) ^ word.iter().sum::<u32>();
        rest = tail.get(1..).unwrap_or(&[]);
    }
    let mut none: &[u32] = &[];
    for k in 0..x[i] % 3 {
        all ^= none.len() as u32 + none.iter().sum::<u32>();
        none = &x[i..i + k as usize + 1];
    }
    let (at, text): (u32, &[u8]) = if x[i] % 2 == 0 { (3, b"no") } else { (4, b"yes") };
    let empty: &[u32] = &[];
    all ^= empty.first().copied().unwrap_or(7) << 3 ^ empty.get(i).map_or(3, |v| *v) << 5;
    let tails: [&[u8]; 3] = [b"a", b"bcd", b""];
    let tail = tails[(x[i] % 3) as usize];
    all ^= (tail.len() as u32) << 20 ^ tail.first().map_or(1, |byte| u32::from(*byte)) << 23;
    y[i] = all ^ at << 9 ^ (text.len() as u32) << 12;
}

#[test]
fn slices_may_be_empty() {
    check(parted::kernel(), parted, &numbers(), &[0; SIZE]);
}

#[test]
fn branches_choose_byte_strings() {
    check(words::kernel(), words, &numbers(), &[0; SIZE]);
}

#[device]
fn square(v: u32) -> u32 {
    v.wrapping_mul(v)
}

#[device]
fn applied(f: impl Fn(u32) -> u32, v: u32) -> u32 {
    f(v) ^ f(v + 1)
}

#[kernel]
fn functions(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut k = x[i] % 5;
    let f: fn(u32) -> u32 = match k {
        0 => square,
        1 => u32::count_ones,
        2 => {
            y[i] = 77;
            return;
        }
        _ => u32::swap_bytes,
    };
    let join: fn(u32, u32) -> u32 = if x[i] % 2 == 0 {
        u32::max
    } else {
        u32::wrapping_add
    };
    // What was chosen stays.
    k += 1;
    let all = x[i..i + 4].iter().copied().map(f).fold(k, join);
    y[i] = applied(f, x[i]) ^ join(all, 5) ^ x[i..i + 3].iter().copied().fold(0, std::ops::BitXor::bitxor);
}

#[test]
fn branches_choose_functions() {
    check(functions::kernel(), functions, &numbers(), &[0; SIZE]);
}

#[kernel]
fn named_again(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[i..i + 6];
    let (mut up, mut down) = (part.iter(), part.iter().rev());
    let mut all = 0u32;
    while let (Some(a), Some(b)) = (up.next(), down.next()) {
        all = all.wrapping_mul(3) ^ a.wrapping_sub(*b);
    }
    let mut it = part.iter().copied().filter(|v| v % 3 != 0);
    all ^= it.next().unwrap_or(5);
    let mut rest = it;
    all ^= rest.next().unwrap_or(6) << 1;
    let last = rest;
    all = all.wrapping_add(last.map(|v| v.rotate_left(4)).fold(0, |a, b| a ^ b));
    let back = (0..x[i] % 9).rev();
    let again = back;
    for v in again {
        all = all.wrapping_mul(7) ^ v;
    }
    let chosen = match x[i] % 3 {
        0 => part.iter(),
        1 => {
            let inner = &part[1..];
            inner.iter()
        }
        _ => x[i + 2..i + 4].iter(),
    };
    y[i] = all ^ chosen.fold(1, |all, v| all * 5 ^ v % 100);
}

#[test]
fn iterators_have_other_names() {
    check(named_again::kernel(), named_again, &numbers(), &[0; SIZE]);
}

#[device]
fn found(x: &[u32], at: usize) -> Result<&u32, u32> {
    x.get(at).ok_or(9)
}

#[kernel]
fn typed(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let good = Ok::<u32, u8>(x[i]);
    let bad = Err::<u8, _>(x[i]);
    let none = Option::<u32>::None;
    let order = match 1000.cmp(&x[i]) {
        std::cmp::Ordering::Less => 1,
        std::cmp::Ordering::Equal => 2,
        std::cmp::Ordering::Greater => 3,
    };
    let copied = found(&x[..5], (x[i] % 8) as usize).copied();
    y[i] = good.unwrap_or(2)
        ^ bad.map_or_else(|e| e >> 4, u32::from)
        ^ none.unwrap_or(order)
        ^ copied.unwrap_or(77) << 9;
}

#[test]
fn variants_say_their_types() {
    check(typed::kernel(), typed, &numbers(), &[0; SIZE]);
}

#[device]
fn small(v: u32) -> u32 {
    assert!(v < 200, "{v} is too much");
    v
}

/// `map` of an `Option` runs also where nobody asks for its item.
#[kernel]
fn at_once(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = x[i..i + 2].iter().copied();
    y[i] = part.chain(x.get(i).map(|v| small(*v))).take(1).sum();
}

#[test]
fn methods_of_options_run_at_once_in_chains() {
    let mut x = [3; 2 * SIZE + 2];
    x[70] = 300;
    panics(at_once::kernel(), at_once, &x, &[0; 2 * SIZE], 70);
}

/// Also where the iterator that it is compared with has ended.
#[kernel]
fn compared_at_once(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    y[i] = u32::from(x[i..i].iter().copied().eq(x.get(i).map(|v| small(*v))));
}

#[test]
fn methods_of_options_run_at_once_in_comparisons() {
    let mut x = [3; 2 * SIZE + 2];
    x[70] = 300;
    panics(
        compared_at_once::kernel(),
        compared_at_once,
        &x,
        &[0; 2 * SIZE],
        70,
    );
}
