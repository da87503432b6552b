//! Forms that ports of other projects' kernels brought: iterators beside each other, references to what others change, types
//! without fields, parameters that are references to one value.

#![allow(clippy::double_ended_iterator_last, reason = "`last` is what is tested")]

use std::cmp::Reverse;

use perpetua::device::{BackendKind, Device};
use perpetua::prelude::*;

use crate::harness::{check, devices, renders};

const SIZE: usize = 64;

fn numbers() -> Vec<u32> {
    (0..SIZE + 24).map(|i| (i * 37 % 101) as u32).collect()
}

#[kernel]
fn beside(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[i..i + i % 11];
    let pairs = [[part.len() as u32, 3], [5, 7], [11, 13]];
    let mut sum = 0u32;
    for (a, b) in part.iter().filter(|v| **v % 2 == 1).zip(x) {
        sum = sum.rotate_left(3) ^ (a * 3 + b);
    }
    for ((at, a), b) in part.iter().enumerate().zip(pairs.iter().flatten()) {
        sum = sum.rotate_left(5) ^ (a + b * at as u32);
    }
    sum ^= pairs
        .iter()
        .flat_map(|pair| pair.iter().map(|v| v + 1))
        .zip(part)
        .map(|(a, b)| a * b)
        .sum::<u32>();
    sum ^= part
        .iter()
        .skip_while(|v| **v < 50)
        .zip((0..=40u8).rev())
        .fold(0, |all, (a, b)| all * 7 % 1009 + a * u32::from(b));
    for (a, b) in (-100i8..100)
        .step_by(3)
        .zip(part.iter().take_while(|v| **v != 36))
    {
        sum = sum.wrapping_mul(5) ^ (a as u32).wrapping_add(*b);
    }
    for (a, b) in part.iter().zip((0..).step_by(7)) {
        sum ^= a << (b % 8);
    }
    // How often a closure runs is the same, too.
    let (mut left, mut right) = (0, 0);
    let both = part
        .iter()
        .filter(|_| {
            left += 1;
            left % 3 != 0
        })
        .zip(x[..4].iter().inspect(|_| right += 1))
        .count();
    sum ^= both as u32 * 100 + left * 10 + right;
    y[i] = sum;
}

#[test]
fn iterators_beside_each_other() {
    check(beside::kernel(), beside, &numbers(), &[0; SIZE]);
}

#[kernel]
fn ranges(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[i..i + i % 11];
    let mut sum = 0u32;
    for k in 1.. {
        sum += k;
        if sum > x[i] {
            break;
        }
    }
    for shift in (3u32..).step_by(4) {
        if x[i] >> (shift % 32) < 5 {
            break;
        }
        sum = sum.rotate_left(shift);
    }
    let rows = (i..i + 20).skip(3);
    for k in rows.step_by(4) {
        sum = sum.wrapping_mul(3) ^ x[k];
    }
    let back = (0..=part.len()).rev();
    for (at, k) in back.enumerate().take(4) {
        sum = sum.rotate_left(7) ^ (at * 5 + k) as u32;
    }
    sum ^= part
        .iter()
        .filter(|v| **v % 3 != 0)
        .step_by(2)
        .fold(0, |all, v| all * 11 % 1009 + v);
    sum ^= part
        .iter()
        .copied()
        .enumerate()
        .rev()
        .fold(0, |all, (at, v)| all * 13 % 1009 + v * at as u32);
    sum ^= part.iter().map(|v| v + 2).step_by(3).sum::<u32>();
    sum ^= (0..9u32)
        .map(|v| v * x[i])
        .enumerate()
        .nth(i % 12)
        .map_or(17, |(at, v)| v + at as u32);
    sum ^= part
        .iter()
        .map(|v| v * 2)
        .enumerate()
        .last()
        .map_or(19, |(at, v)| v + at as u32);
    y[i] = sum;
}

#[test]
fn ranges_go_on_as_others_do() {
    check(ranges::kernel(), ranges, &numbers(), &[0; SIZE]);
}

#[kernel]
fn found(x: &[u32], y: &mut [[u32; 8]]) {
    let i = global_id_x();
    for k in 0..8 {
        y[i][k] = x[i + k] % 40;
    }
    // What another lane may change is looked at where it lies.
    let first = y[i].iter().find(|v| **v > 20);
    let mut sum = first.copied().unwrap_or(7);
    let least = y[i].iter().min_by_key(|v| v.abs_diff(x[i] % 30));
    sum = sum * 41 + least.map_or(3, |v| *v);
    let most = y[i][1..6].iter().max_by(|a, b| (*a % 16).cmp(&(*b % 16)));
    if let Some(v) = most {
        sum = sum * 41 + v;
    }
    let other = 50;
    let mut best = &other;
    for v in &y[i] {
        if *v % 8 < *best % 8 {
            best = v;
        }
    }
    sum = sum * 41 + best;
    let last = y[i].iter().filter(|v| **v % 3 == 0).last();
    let chosen = match (first, last) {
        (Some(a), Some(b)) if a < b => a,
        (_, Some(b)) => b,
        (Some(a), None) => a,
        (None, None) => &x[i],
    };
    sum = sum * 41 + chosen;
    y[i][7] = sum;
}

#[test]
fn elements_are_found_in_what_changes() {
    check(found::kernel(), found, &numbers(), &[[0; 8]; SIZE]);
}

#[kernel]
fn through(x: &[u32], y: &mut [[u32; 4]]) {
    let i = global_id_x();
    let (mut a, mut b) = (x[i], x[i + 1]);
    let mut local = [1, 2, 3];
    let mut places = [&mut a, &mut b, &mut local[i % 3], &mut y[i][3]];
    let sum: u32 = places.iter().map(|place| **place).sum();
    for (k, place) in places.iter_mut().enumerate() {
        **place += sum + k as u32;
    }
    for place in &mut places {
        **place = place.rotate_left(3) ^ 5;
    }
    let mut others = [6, 7, 8, 9];
    let mut rows = [&mut local[..], &mut others[1..]];
    for row in &mut rows {
        row[1] += 9;
        row.swap(0, 1);
    }
    y[i][2] = a ^ b << 3 ^ local.iter().sum::<u32>() << 7 ^ others[2] << 11;
    y[i][1] = others[1];
}

#[test]
fn arrays_of_references_are_gone_over() {
    check(through::kernel(), through, &numbers(), &[[4; 4]; SIZE]);
}

#[kernel]
fn orders(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[i..i + i % 11 + 1];
    let mut sorted: [(u32, i8); 6] = std::array::from_fn(|k| (x[i + k] % 4, x[i + k] as i8 - 50));
    sorted.sort_by_key(|(a, b)| (Reverse(*a), *b));
    let mut sum = sorted
        .iter()
        .fold(0, |all, (a, b)| all * 31 % 10007 + a * 100 + (*b as u32 & 63));
    sorted.sort_unstable_by(|a, b| a.1.cmp(&b.1).reverse().then_with(|| a.0.cmp(&b.0)));
    sum = sorted.iter().fold(sum, |all, (a, _)| all * 7 % 10007 + a);
    let last = part
        .iter()
        .min_by_key(|v| std::cmp::Reverse(**v % 16))
        .copied()
        .unwrap_or(0);
    let first = part
        .iter()
        .copied()
        .enumerate()
        .max_by_key(|(at, v)| (v % 3 == 0, Reverse((*v / 9, *at))));
    let (place, found) = first.unwrap_or_default();
    let greatest = part.iter().map(|v| v % 50).map(Reverse).min() == Some(Reverse(last % 50));
    let below = Reverse(x[i]) < Reverse(x[i + 1]) && Reverse(i64::MIN) > Reverse(i64::from(x[i]));
    y[i] = sum
        ^ last << 14
        ^ found << 18
        ^ (place as u32) << 24
        ^ u32::from(greatest) << 29
        ^ u32::from(below) << 30;
}

#[test]
fn orders_are_turned_round() {
    check(orders::kernel(), orders, &numbers(), &[0; SIZE]);
}

/// A way to count that needs no data.
#[device]
trait Shape {
    const POINTS: u32;
    fn weight(x: u32) -> u32;
    fn scaled(&self, x: u32) -> u32 {
        Self::weight(x) * Self::POINTS
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
struct Linear;

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
struct Cubic {}

#[device]
impl Shape for Linear {
    const POINTS: u32 = 2;

    fn weight(x: u32) -> u32 {
        x + 1
    }
}

#[device]
impl Shape for Cubic {
    const POINTS: u32 = 4;

    fn weight(x: u32) -> u32 {
        x * x
    }
}

#[device]
fn weighed<S: Shape>(shape: S, x: u32) -> u32 {
    S::weight(x) + shape.scaled(x)
}

#[kernel]
fn shaped<S: Shape + Copy + Default + PartialEq>(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let shapes = (S::default(), Linear, Cubic {});
    let same = shapes.0 == S::default();
    let kept = Some(Linear).filter(|_| x[i] > 30);
    y[i] = weighed(shapes.0, x[i]) + 7 * weighed(shapes.1, x[i]) + weighed(Cubic {}, 2) + u32::from(same);
    if let Some(linear) = kept {
        y[i] ^= linear.scaled(3);
    }
}

#[test]
fn types_without_fields() {
    check(
        shaped::kernel::<Linear>(),
        shaped::<Linear>,
        &numbers(),
        &[0; SIZE],
    );
    check(shaped::kernel::<Cubic>(), shaped::<Cubic>, &numbers(), &[0; SIZE]);
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Bounds {
    low: u32,
    high: u32,
    count: u32,
}

#[kernel]
fn bounded(table: &[u32; 4], limits: &Bounds, x: &[u32], seen: &mut Bounds, total: &mut u32) {
    let i = global_id_x();
    if let Some(v) = x.get(i).filter(|v| (limits.low..limits.high).contains(*v)) {
        atomic_min(&mut seen.low, *v);
        atomic_max(&mut seen.high, *v);
        atomic_add(&mut seen.count, 1);
        atomic_add(total, v * table[i % table.len()]);
    }
}

#[test]
fn references_to_one_value_are_buffers() {
    let (x, table) = (numbers(), [1, 2, 3, 5]);
    let limits = Bounds {
        low: 20,
        high: 70,
        count: 0,
    };
    let inside: Vec<(usize, u32)> = x
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, v)| (20..70).contains(v))
        .collect();
    let total: u32 = inside.iter().map(|(i, v)| v * table[i % 4]).sum();
    for device in devices() {
        let seen = device
            .upload(&[Bounds {
                low: 1000,
                high: 0,
                count: 0,
            }])
            .unwrap();
        let sum = device.zeros::<u32>(1).unwrap();
        let (table, limits) = (device.upload(&table).unwrap(), device.upload(&[limits]).unwrap());
        let table = table.cast::<[u32; 4]>().unwrap();
        let numbers = device.upload(&x).unwrap();
        let config = LaunchConfig::linear(x.len(), 32);
        device
            .launch(
                &bounded::kernel(),
                config,
                args![&table, &limits, &numbers, &seen, &sum],
            )
            .unwrap();
        assert_eq!(sum.read().unwrap(), [total]);
        let seen = seen.read().unwrap()[0];
        assert_eq!(seen.count as usize, inside.len());
        assert_eq!((seen.low, seen.high), (20, 69));
    }
    renders(bounded::kernel());
    // Called as a function it is one lane.
    let (mut seen, mut sum) = (Bounds::default(), 0);
    bounded(&table, &limits, &[50], &mut seen, &mut sum);
    assert_eq!((seen.count, sum), (1, 50));
}

#[test]
fn nothing_is_no_value() {
    let device = Device::new(BackendKind::Cpu, 0).unwrap();
    let nothing = device.zeros::<u32>(0).unwrap();
    let some = device.zeros::<u32>(8).unwrap();
    let bounds = device.zeros::<Bounds>(1).unwrap();
    let table = some.cast::<[u32; 4]>().unwrap();
    let arguments = args![&table, &bounds, &some, &bounds, &nothing];
    device
        .launch(&bounded::kernel(), LaunchConfig::linear(8, 8), arguments)
        .unwrap();
    let error = some.read().unwrap_err().to_string();
    let text = "the length of `total` is 0 but the index is 0";
    assert!(error.contains(text), "{error}");
}

mod named {
    use perpetua::prelude::*;

    #[device]
    fn twice(v: u32) -> u32 {
        v.wrapping_mul(2)
    }

    #[device]
    fn through(x: &[u32], f: impl Fn(u32) -> u32) -> u32 {
        x.iter().fold(0, |all, v| all ^ f(*v))
    }

    /// A function that `let` gives a name.
    #[kernel]
    pub(super) fn functions(x: &[u32], y: &mut [u32]) {
        let i = global_id_x();
        let f = twice;
        let ones: fn(u32) -> u32 = u32::count_ones;
        let least = std::cmp::min;
        let sum = f(x[i]) ^ ones(x[i]) ^ least(x[i], 50);
        let f = |v: u32| v ^ 3;
        let g = twice;
        y[i] = sum
            ^ through(&x[..3], g)
            ^ x[..4].iter().copied().map(g).max().map_or(0, f)
            ^ Some(7).map_or(1, ones);
    }

    #[derive(Clone, Copy, GpuType)]
    #[repr(C)]
    struct Padded {
        a: u8,
        b: u32,
        c: [f64; 2],
    }

    #[device]
    fn bytes<T: Copy, const N: usize>(_: [T; N]) -> usize {
        size_of::<T>() * N + align_of::<[T; 2]>()
    }

    #[kernel]
    pub(super) fn sizes(x: &[u32], y: &mut [u32]) {
        let i = global_id_x();
        let all = std::mem::size_of::<Padded>() * 1000
            + core::mem::align_of::<Padded>() * 100
            + size_of::<[u16; 3]>();
        y[i] = x[i] % 9 + (all + bytes([1.5f32; 3]) * 1_000_000 + bytes([1u128]) * 7) as u32;
    }

    #[derive(Clone, Copy, GpuType)]
    #[repr(C)]
    struct Halves {
        n: u32,
    }

    #[device]
    impl Iterator for Halves {
        type Item = u32;

        fn next(&mut self) -> Option<u32> {
            self.n /= 2;
            (self.n > 0).then_some(self.n)
        }
    }

    /// Adaptors behind an iterator of one's own.
    #[kernel]
    pub(super) fn adaptors(x: &[u32], y: &mut [u32]) {
        let i = global_id_x();
        let n = x[i];
        let odd = Halves { n }.into_iter().filter(|v| v % 2 == 1).count() as u32;
        let zipped = Halves { n }
            .into_iter()
            .zip(x)
            .take(3)
            .fold(0, |all: u32, (a, b)| all.wrapping_mul(5) ^ a ^ b);
        let (low, high) = ((n % 7, 1), (n % 11, 2));
        y[i] = odd ^ zipped ^ (5, 0).clamp(low.min(high), low.max(high)).0;
    }
}

#[test]
fn functions_have_names() {
    check(
        named::functions::kernel(),
        named::functions,
        &numbers(),
        &[0; SIZE],
    );
}

#[test]
fn types_have_sizes() {
    check(named::sizes::kernel(), named::sizes, &numbers(), &[0; SIZE]);
}

#[test]
fn adaptors_stand_behind_iterators_of_ones_own() {
    check(named::adaptors::kernel(), named::adaptors, &numbers(), &[0; SIZE]);
}
