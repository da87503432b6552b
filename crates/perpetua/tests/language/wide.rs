//! `u128` and `i128`: operators, methods, casts, literals, patterns and memory give what plain Rust gives, on values at the edges and
//! random ones.

use perpetua::prelude::*;

use crate::harness::{check, devices, panics, renders};

const COUNT: usize = 256;

/// Values at the edges, and random ones of all lengths.
fn numbers() -> Vec<u128> {
    let mut edges = vec![
        0,
        1,
        2,
        3,
        7,
        10,
        u128::MAX,
        u128::MAX - 1,
        1 << 127,
        (1 << 127) - 1,
        (1 << 127) + 1,
    ];
    for bit in [31, 32, 33, 63, 64, 65, 95, 96, 126] {
        edges.extend([1 << bit, (1u128 << bit) - 1, (1u128 << bit) + 1, !(1u128 << bit)]);
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834_u128;
    let random = std::iter::repeat_with(move || {
        state = state
            .wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645)
            .wrapping_add(0x5851_f42d_4c95_7f2d);
        state.rotate_left(64) >> (state >> 121)
    });
    edges.into_iter().chain(random).take(COUNT + 64).collect()
}

fn run<const N: usize>(kernel: KernelFn, host: fn(&[u128], &mut [[u128; N]])) {
    let input = numbers();
    check(kernel, host, &input, &[[0; N]; COUNT]);
    // Each beside each other one at some time.
    let turned: Vec<u128> = input
        .iter()
        .rev()
        .copied()
        .chain(input.iter().copied())
        .step_by(2)
        .collect();
    check(kernel, host, &turned, &[[0; N]; COUNT]);
}

#[kernel]
fn unsigned(x: &[u128], y: &mut [[u128; 10]]) {
    let i = global_id_x();
    if i < y.len() {
        let (a, b) = (x[i], x[i + 1]);
        let n = (b >> 3) as u32;
        y[i] = [
            a.wrapping_add(b),
            a.wrapping_sub(b),
            a.wrapping_mul(b),
            a / (b | 1),
            a % (b | 1),
            (a & b) ^ (a | !b),
            a << (n & 127),
            a >> (n & 127),
            u128::from(a < b) | u128::from(a <= b) << 1 | u128::from(a == b) << 2 | u128::from(a != b) << 3,
            u128::from(a > b) | u128::from(a >= b) << 1 | a.min(b) ^ a.max(b),
        ];
    }
}

#[kernel]
fn signed(x: &[u128], y: &mut [[u128; 10]]) {
    let i = global_id_x();
    if i < y.len() {
        let (a, b) = (x[i] as i128, x[i + 1].cast_signed());
        y[i] = [
            a.wrapping_mul(b) as u128,
            a.wrapping_div(b | 1) as u128,
            a.wrapping_rem(b | 1) as u128,
            (a >> (b & 127)) as u128,
            (a < b) as u128 | ((a <= b) as u128) << 1 | a.abs_diff(b) << 2,
            a.wrapping_neg() as u128 ^ a.wrapping_abs() as u128,
            a.signum() as u128 ^ a.unsigned_abs(),
            a.saturating_add(b) as u128 ^ a.saturating_sub(b).rotate_left(9) as u128,
            a.saturating_mul(b >> 60) as u128 ^ a.midpoint(b) as u128,
            a.is_negative() as u128 | (a.clamp(-5, 1 << 100) as u128) << 1,
        ];
    }
}

#[kernel]
fn methods(x: &[u128], y: &mut [[u128; 10]]) {
    let i = global_id_x();
    if i < y.len() {
        let (a, b) = (x[i], x[i + 1]);
        let counted = [
            a.count_ones(),
            a.count_zeros(),
            a.leading_zeros(),
            a.trailing_zeros(),
            a.leading_ones(),
            a.trailing_ones(),
            (a | 1).ilog2(),
            (a | 1).ilog10(),
        ];
        let mut sum = 0u128;
        for n in counted {
            sum = sum * 131 + n as u128;
        }
        let (added, carry) = a.carrying_add(b, a & 1 == 1);
        let (less, borrow) = a.borrowing_sub(b, a & 2 == 2);
        let (wrapped, over) = a.overflowing_mul(b >> 61);
        let whole = (a as u64 as u128) * (b as u64 as u128);
        let (low, high) = (a as u64).widening_mul(b as u64);
        y[i] = [
            sum,
            a.reverse_bits() ^ b.swap_bytes(),
            a.rotate_left(b as u32 & 255) ^ a.rotate_right((b >> 70) as u32 & 127),
            added ^ carry as u128,
            less ^ borrow as u128,
            wrapped ^ over as u128,
            a.saturating_add(b) ^ a.saturating_sub(b).rotate_left(5) ^ a.saturating_mul(b),
            a.isqrt() ^ a.abs_diff(b) ^ (a >> 1).next_power_of_two(),
            a.wrapping_pow(b as u32 % 9) ^ (a >> 100).saturating_pow(b as u32 % 7),
            (whole == ((high as u128) << 64 | low as u128)) as u128 ^ u128::from_le_bytes(a.to_be_bytes()),
        ];
    }
}

#[kernel]
fn checked(x: &[u128], y: &mut [[u128; 4]]) {
    let i = global_id_x();
    if i < y.len() {
        let (a, b) = (x[i], x[i + 1]);
        let (c, d) = (a as i128, b as i128);
        y[i] = [
            a.checked_add(b).unwrap_or(1) ^ a.checked_sub(b).unwrap_or(2).rotate_left(3),
            a.checked_mul(b >> 62).unwrap_or(3) ^ a.checked_div(b >> 100).unwrap_or(4),
            c.checked_add(d).unwrap_or(5) as u128 ^ c.checked_neg().unwrap_or(6) as u128,
            c.checked_div(d >> 64).unwrap_or(7) as u128 ^ c.checked_mul(d >> 63).unwrap_or(8) as u128,
        ];
    }
}

#[kernel]
fn casts(x: &[u128], y: &mut [[u128; 10]]) {
    let i = global_id_x();
    if i < y.len() {
        let (a, b) = (x[i], x[i + 1] as i128);
        y[i] = [
            a as u8 as u128 ^ (a as i16 as u128) << 3,
            a as i64 as i128 as u128 ^ (b as i8 as i128 as u128),
            (b as u32 as u128) << 40 | (b as usize & 7) as u128,
            (a as f32).to_bits() as u128 | ((b as f32).to_bits() as u128) << 32,
            (a as f32) as u128,
            (b as f32 * 1.5) as i128 as u128,
            (a as f32 * -3.0) as u128 ^ (a as f32 * 7.888_609e-31) as i128 as u128,
            u128::from(a as u16).wrapping_add(i128::from(b as i32) as u128),
            u64::try_from(a).unwrap_or(9) as u128 ^ i128::try_from(a).unwrap_or(10) as u128,
            u128::from(a > 5)
                ^ ((a as f32 * f32::NAN) as u128)
                ^ (f32::INFINITY as u128)
                ^ (f32::NEG_INFINITY as i128 as u128),
        ];
    }
}

const BIG: u128 = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;
const TABLE: [i128; 3] = [
    -170_141_183_460_469_231_731_687_303_715_884_105_728,
    -1,
    i128::MAX,
];

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Both {
    tag: u32,
    wide: i128,
    narrow: u8,
}

#[device]
fn gcd(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[kernel]
fn forms(x: &[u128], y: &mut [Both]) {
    let i = global_id_x();
    if i < y.len() {
        let a = x[i];
        let class = match a {
            0 => 1,
            1..=9 => 2,
            BIG => 3,
            10..=18_446_744_073_709_551_616 => 4,
            _ => 5,
        };
        let mut sum = 0i128;
        for k in (a % 5)..a % 5 + 3 {
            sum += k as i128;
        }
        for k in (-3..=(a % 4) as i128).rev() {
            sum = sum.wrapping_mul(7).wrapping_sub(k);
        }
        sum =
            sum.wrapping_add(TABLE[i % 3]) ^ x[i..i + 4].iter().fold(0, |s, v| s ^ v.rotate_left(3)) as i128;
        let other = y[i];
        y[i] = Both {
            tag: class + u32::from(other.wide == -1) + u128::BITS,
            wide: sum ^ gcd(a >> 96, 360).cast_signed() ^ (BIG & u128::MAX >> 1) as i128,
            narrow: other.narrow + (a & 1) as u8,
        };
    }
}

#[test]
fn operators_are_rusts() {
    run(unsigned::kernel(), unsigned);
    run(signed::kernel(), signed);
}

#[test]
fn methods_are_rusts() {
    run(methods::kernel(), methods);
    run(checked::kernel(), checked);
}

#[test]
fn casts_round_and_saturate_as_rusts() {
    run(casts::kernel(), casts);
}

#[test]
fn forms_of_the_language_take_them() {
    let value = Both {
        tag: 0,
        wide: -1,
        narrow: 3,
    };
    check(forms::kernel(), forms, &numbers(), &[value; COUNT]);
}

#[kernel]
fn asserted(x: &[u128], y: &mut [u128]) {
    let i = global_id_x();
    if i < y.len() {
        let (a, b) = (x[i], x[i] as i128);
        assert!(a == 1 || i != 1, "{a}");
        assert!(a == 1 || i != 2, "{a:#x}");
        assert!(a == 1 || i != 3, "{b:?}");
        assert_eq!(a, 1);
        y[i] = a;
    }
}

#[test]
fn messages_have_all_their_digits() {
    let all = [u64::MAX.into(), 10u128.pow(19), 10u128.pow(38) + 7, 1 << 127];
    for value in all {
        for at in 1..4 {
            let mut x = [1u128; 40];
            x[at] = value;
            panics(asserted::kernel(), asserted, &x, &[0; 40], at);
        }
    }
}

#[kernel]
fn divided(x: &[i128], y: &mut [i128]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = i128::MIN / x[i];
    }
}

#[test]
fn divisions_without_a_result_are_faults() {
    let least = "-170141183460469231731687303715884105728";
    for (bad, text) in [
        (0, format!("division by zero: the dividend is {least}")),
        (-1, format!("division with overflow: {least} by -1")),
    ] {
        let mut x = [3i128; 40];
        x[33] = bad;
        for device in devices() {
            let (x, y) = (device.upload(&x).unwrap(), device.zeros::<i128>(40).unwrap());
            let config = LaunchConfig::linear(40, 32);
            let fault = device
                .launch(&divided::kernel(), config, args![&x, &y])
                .and_then(|()| device.synchronize());
            let fault = fault.unwrap_err().to_string();
            assert!(
                fault.contains(&text) && fault.contains("lane (1, 0, 0)"),
                "{fault}"
            );
        }
    }
    renders(divided::kernel());
}
