//! What is compared, and how: options, tuples, slices, long arrays, types with functions of their own.

use perpetua::prelude::*;

use crate::harness::{check, floats};

const SIZE: usize = 96;

/// Two are equal whose signs are.
#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Sign(f32);

#[device]
impl PartialEq for Sign {
    fn eq(&self, other: &Sign) -> bool {
        (self.0 < 0.0) == (other.0 < 0.0)
    }
}

/// Derived, of what is compared by a function.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Signed {
    sign: Sign,
    half: f16,
    kind: Kind,
}

#[device]
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, GpuType)]
#[repr(i32)]
enum Kind {
    Low = -3,
    High = 5,
}

/// Ordered as derived, without `#[device]`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, GpuType)]
#[repr(i32)]
enum Rank {
    Second = 2,
    First = 1,
}

#[kernel]
fn equal(x: &[f32], y: &mut [u32]) {
    let i = global_id_x();
    let (a, b) = (x[i], x[(i + 1) % 100]);
    let mut bits = u32::from(Sign(a) == Sign(b)) + 2 * u32::from(Sign(a) != Sign(b));
    let of = |v: f32| Signed {
        sign: Sign(v),
        half: f16::from_f32(1.5),
        kind: if v < 2.0 { Kind::Low } else { Kind::High },
    };
    bits += 4 * u32::from(of(a) == of(b));
    bits += 8 * u32::from([Sign(a), Sign(b)] == [Sign(b), Sign(b)]);
    bits += 16 * u32::from(Kind::Low < of(a).kind);
    let rank = if a < b { Rank::First } else { Rank::Second };
    bits += 32 * u32::from(rank < Rank::Second);
    let n = (a + 8.0) as u32;
    bits += 64 * u32::from(n.checked_sub(40) == None);
    bits += 128 * u32::from(n.checked_add(u32::MAX - 30) == n.checked_mul(1 << 29));
    bits += 256 * u32::from(Some(n) != Some(7) && x.get(i + 60).copied() != Some(a));
    let found: Result<u32, u8> = if n > 20 { Ok(n) } else { Err(3) };
    bits += 512 * u32::from(found == Err(3));
    bits += 1024 * u32::from((a, n) < (b, 9)) + 2048 * u32::from((n, a, true) >= (8, b, false));
    bits += 4096 * u32::from([n, 3] <= [4, n]) + 8192 * u32::from((n.checked_sub(3), 1) == (None, 1));
    let mut long = [n; 70];
    long[i % 70] = 5;
    bits += 16384 * u32::from(long == [n; 70]);
    bits += 32768 * u32::from(x[i..] == x[..100 - i]) + 65536 * u32::from(x[i..i + 1] == [a]);
    bits += 131072 * u32::from(x[i..] < x[..60]);
    bits +=
        262144 * u32::from((n, a) == (n.max(3), a)) + 524288 * u32::from([Some(n), None] != [None, Some(4)]);
    y[i] = bits;
}

#[test]
fn what_is_equal_is_so_everywhere() {
    check(equal::kernel(), equal, &floats(100), &[0; SIZE]);
}

#[kernel]
fn further(x: &[f32], y: &mut [u32]) {
    let i = global_id_x();
    let n = (x[i] + 8.0) as u32;
    let some = (n > 6).then_some(n);
    let other = x.get(i + 40).map(|v| (*v + 9.0) as u32);
    let mut sum = some.filter(|v| v % 2 == 0).unwrap_or(1) + some.xor(other).unwrap_or(2);
    sum += some.zip(other).map_or(3, |(a, b)| a * b) + some.or_else(|| other).unwrap_or(4);
    sum += some.map_or_else(|| 5, |v| v + 1) + some.and(other).unwrap_or(6);
    sum += u32::from(some.is_none_or(|v| v > 9)) + some.as_ref().map_or(7, |v| *v);
    let result = some.ok_or_else(|| n * 2);
    sum += result.err().unwrap_or(8) + Some(other).flatten().unwrap_or(9);
    let mut kept = some;
    let first = kept.take();
    sum += u32::from(kept.is_none()) + kept.replace(5).unwrap_or(10) + kept.unwrap_or(11);
    sum += first.inspect(|v| debug_assert!(*v > 6)).unwrap_or(12);
    sum += match (n, i).cmp(&(8, 50)) {
        std::cmp::Ordering::Less => 1,
        std::cmp::Ordering::Equal => 2,
        std::cmp::Ordering::Greater => 3,
    };
    sum += u32::from([x[i], 1.0].partial_cmp(&[2.0, f32::NAN]) == None);
    y[i] = sum;
}

#[test]
fn further_methods_of_options() {
    check(further::kernel(), further, &floats(100), &[0; SIZE]);
}
