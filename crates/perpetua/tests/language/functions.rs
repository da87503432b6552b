//! Methods and functions of numbers, slices and arrays: what each gives is what plain Rust gives.

use std::array;

use perpetua::prelude::*;
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::eval::float_bits;

use crate::harness::{check, floats, on_devices, panics};

#[kernel]
fn integers(x: &[u32], y: &mut [[u32; 8]]) {
    let i = global_id_x();
    if i < y.len() {
        let (a, b) = (x[i], x[i + 1]);
        let bytes = a.to_be_bytes();
        let (sum, carry) = a.carrying_add(b, a & 1 == 1);
        let (rest, borrow) = a.borrowing_sub(b, a & 2 == 2);
        let (low, high) = a.carrying_mul(b, 77);
        let (narrow, wide) = a.widening_mul(b);
        y[i] = [
            a.midpoint(b) ^ (a | 1).ilog10(),
            a.saturating_pow(b % 5) ^ a.wrapping_add_signed(b as i32),
            u32::from(bytes[0]) ^ u32::from_le_bytes(b.to_be_bytes()) ^ u32::from_be_bytes(bytes),
            sum ^ carry as u32,
            rest ^ borrow as u32,
            low ^ high ^ a.abs_diff(b) ^ narrow ^ wide.rotate_left(7),
            a.unbounded_shl(b % 40) ^ a.unbounded_shr(a % 40) ^ a.is_multiple_of(b % 4) as u32,
            a.saturating_add_signed(b as i32) ^ a.div_ceil(b | 1) ^ a.cast_signed().unsigned_abs(),
        ];
    }
}

#[kernel]
fn signed(x: &[i32], y: &mut [[i32; 6]]) {
    let i = global_id_x();
    if i < y.len() {
        let (a, b) = (x[i], x[i + 1]);
        y[i] = [
            a.midpoint(b),
            (a % 50).saturating_pow((b & 15) as u32),
            a.wrapping_add_unsigned(b as u32) ^ a.wrapping_sub_unsigned(7),
            i32::from_be_bytes(a.to_le_bytes()),
            a.abs_diff(b) as i32 ^ (a as i8).midpoint(b as i8) as i32,
            a.rem_euclid(b | 1) ^ a.div_euclid(b | 1),
        ];
    }
}

#[kernel]
fn checked(x: &[i32], y: &mut [[i32; 6]]) {
    let i = global_id_x();
    if i < y.len() {
        let (a, b) = (x[i], x[i + 1]);
        y[i] = [
            a.checked_div(b).unwrap_or(-7) ^ a.checked_rem(b).unwrap_or(-9),
            a.checked_neg().unwrap_or(1) ^ a.checked_abs().unwrap_or(2),
            a.checked_shl(b as u32 & 63).unwrap_or(3) ^ a.checked_shr(b as u32 & 63).unwrap_or(4),
            a.checked_pow(b as u32 & 7).unwrap_or(5) ^ a.checked_rem_euclid(b).unwrap_or(6),
            a.checked_ilog2().unwrap_or(99) as i32 ^ a.checked_ilog10().unwrap_or(77) as i32,
            (a as u32).checked_add_signed(b).unwrap_or(8) as i32
                ^ (a as u32).checked_next_power_of_two().unwrap_or(9) as i32,
        ];
    }
}

#[kernel]
fn real(x: &[f32], y: &mut [[f32; 4]]) {
    let i = global_id_x();
    if i < y.len() {
        let (a, b) = (x[i], x[i + 1]);
        let order = match a.total_cmp(&b) {
            std::cmp::Ordering::Less => 1.0,
            std::cmp::Ordering::Equal => 2.0,
            std::cmp::Ordering::Greater => 3.0,
        };
        y[i] = [
            a.midpoint(b),
            order,
            (a.is_normal() as u32 + 2 * a.is_subnormal() as u32) as f32,
            f32::from_le_bytes(a.to_le_bytes()).clamp(-3.0, 3.0) + a.rem_euclid(2.5),
        ];
    }
}

#[device]
fn changed(part: &mut [i32], by: i32) {
    if let Some(first) = part.first_mut() {
        *first += by;
    }
    if let Some(last) = part.last_mut() {
        *last -= by;
    }
    if let Some(v) = part.get_mut(2) {
        *v *= 2;
    }
    part.reverse();
}

#[kernel]
fn slices(x: &[i32], y: &mut [[i32; 4]]) {
    let i = global_id_x();
    if i < y.len() {
        let mut near = [0; 4];
        near.copy_from_slice(&x[i..i + 4]);
        changed(&mut near, x[i]);
        near[1..3].copy_from_slice(&[x[i], 5]);
        let doubled = near.map(|v| v * 2);
        let made: [i32; 4] = array::from_fn(|k| doubled[3 - k] + k as i32);
        let known = x[..8].contains(&x[i]) as i32;
        y[i] = made.map(|v| v + known);
    }
}

#[kernel]
fn copied(x: &[i32], y: &mut [i32]) {
    let i = global_id_x();
    if i < y.len() {
        let mut part = [0; 4];
        part[..2].copy_from_slice(&x[..x[i] as usize]);
        y[i] = part[0] + (x[i] - 2).ilog10() as i32;
    }
}

/// Integers with few and with many bits.
fn words(count: u32) -> Vec<u32> {
    let edges = [
        0,
        1,
        2,
        9,
        10,
        99,
        100,
        i32::MAX as u32,
        1 << 31,
        (1 << 31) + 1,
        u32::MAX,
        u32::MAX - 1,
        5,
        1,
        0,
    ];
    let rest = (0..count).map(|i| i.wrapping_mul(0x9e37_79b9) >> (i % 31));
    edges.into_iter().chain(rest).collect()
}

#[test]
fn methods_of_numbers() {
    let x = words(82);
    check(integers::kernel(), integers, &x, &[[0; 8]; 96]);
    let x: Vec<i32> = x.into_iter().map(|v| v as i32).collect();
    // What overflows in plain Rust is not asked.
    let divided: Vec<i32> = x.iter().map(|v| v.wrapping_sub(3) / 2).collect();
    check(signed::kernel(), signed, &divided, &[[0; 6]; 96]);
    check(checked::kernel(), checked, &x, &[[0; 6]; 96]);
    let mut x = floats(90);
    x.extend([0.0, -0.0, f32::MAX, f32::MAX, f32::MIN, 1.0, -1.5]);
    check(real::kernel(), real, &x, &[[0.0; 4]; 96]);
}

#[test]
fn methods_of_slices() {
    let x: Vec<i32> = (0..80).map(|i| i * i % 37 - 9).collect();
    check(slices::kernel(), slices, &x, &[[0; 4]; 64]);
    panics(copied::kernel(), copied, &[3, 4, 5], &[0], 0);
    panics(copied::kernel(), copied, &[2, 4], &[0], 0);
}

#[device]
fn double(x: f64, y: f64) -> [f64; 4] {
    let (s, c) = x.sin_cos();
    [
        s * c + x.exp() - y.abs().ln(),
        x.tanh() + y.atan2(x) + (x * 0.01).sinh(),
        x.abs().powf(y * 0.1) + y.cbrt(),
        x.hypot(y) + (x * 0.05).tan() + y.abs().log10(),
    ]
}

#[kernel]
fn wide(x: &[f64], y: &mut [[f64; 4]]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = double(x[i], x[i + 1]);
    }
}

/// The host's functions may differ in their last bits, so that this is a comparison of its own.
#[test]
fn functions_of_f64() {
    let x: Vec<f64> = floats(65).into_iter().map(|v| f64::from(v) + 0.1).collect();
    crate::harness::near(wide::kernel(), wide, &x, &[[0.0; 4]; 64], |found, expected| {
        let all = found.iter().flatten().zip(expected.iter().flatten());
        for (found, expected) in all {
            let bound = 8.0 * f64::EPSILON * expected.abs().max(4000.0);
            assert!((found - expected).abs() <= bound, "{found} and {expected}");
        }
    });
}

#[kernel]
fn special(x: &[f32], y: &mut [[f32; 3]]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = [x[i].erf(), x[i].erfc(), x[i].lgamma()];
    }
}

#[kernel]
fn special_wide(x: &[f64], y: &mut [[f64; 3]]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = [x[i].erf(), x[i].erfc(), f64::lgamma(x[i])];
    }
}

/// Targets that round a fused product twice may differ in last bits, which are more where a result is near zero.
#[test]
fn special_functions() {
    let mut x = floats(90);
    x.extend([0.0, -0.0, 1.0, 2.0, f32::MIN_POSITIVE, 9.5]);
    let wide: Vec<f64> = x.iter().map(|v| f64::from(*v) + 0.1).collect();
    let mut known = [[0.0; 3]];
    special_wide(&[0.6], &mut known);
    let expected = [
        0.603_856_090_847_925_9,
        0.396_143_909_152_074_1,
        0.398_233_858_069_234_95,
    ];
    assert_eq!(known, [expected]);
    crate::harness::near(
        special::kernel(),
        special,
        &x,
        &[[0.0; 3]; 96],
        |found, expected| {
            let all = found.iter().flatten().zip(expected.iter().flatten());
            for (found, expected) in all {
                let bound = 8.0 * f32::EPSILON * expected.abs().max(1e-30);
                assert!(
                    found == expected || (found - expected).abs() <= bound,
                    "{found} and {expected}"
                );
            }
        },
    );
    crate::harness::near(
        special_wide::kernel(),
        special_wide,
        &wide,
        &[[0.0; 3]; 96],
        |found, expected| {
            assert_eq!(found, expected);
        },
    );
}

#[kernel]
fn narrowed(x: &[f64], y: &mut [[u16; 2]]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = [f16::from_f64(x[i]).to_bits(), bf16::from_f64(x[i]).to_bits()];
    }
}

/// Numbers on and beside the middle between two neighbours, with the bits of the nearest: a first rounding to f32 would move those beside it
/// there.
fn middles(value: fn(u16) -> f64, bits: impl Iterator<Item = u16>) -> Vec<(f64, u16)> {
    let around = |bits: u16| {
        let middle = (value(bits) + value(bits + 1)) / 2.0;
        let even = bits + (bits & 1);
        let all = [
            (middle.next_down(), bits),
            (middle, even),
            (middle.next_up(), bits + 1),
        ];
        all.into_iter()
            .flat_map(|(x, bits)| [(x, bits), (-x, bits | 0x8000)])
    };
    bits.flat_map(around).collect()
}

#[test]
fn halves_of_f64_are_rounded_once() {
    let of_f16 = middles(|b| f16::from_bits(b).to_f64(), (0..0x7bff).step_by(37));
    let of_bf16 = middles(|b| bf16::from_bits(b).to_f64(), (0..0x7f7f).step_by(41));
    for (cases, at, scalar) in [(of_f16, 0, Scalar::F16), (of_bf16, 1, Scalar::BF16)] {
        for (x, bits) in &cases {
            assert_eq!(float_bits(scalar, *x), u64::from(*bits), "{x:e}");
        }
        let x: Vec<f64> = cases.iter().map(|(x, _)| *x).collect();
        on_devices(
            narrowed::kernel(),
            &x,
            &vec![[0u16; 2]; x.len()],
            |found, on| match found {
                Ok(found) => {
                    // Vulkan's devices may take numbers below the least normal one for 0.
                    let kept = |x: f64| !on.contains("wgpu") || x.abs() >= f64::from(f32::MIN_POSITIVE);
                    for ((x, bits), found) in cases.iter().zip(found).filter(|((x, _), _)| kept(*x)) {
                        assert_eq!(found[at], *bits, "{x:e} on {on}");
                    }
                }
                Err(e) => assert!(on.contains("wgpu"), "{on}: {e}"),
            },
        );
    }
}

#[kernel]
fn of_halves(x: &[f32], y: &mut [[u16; 2]]) {
    let i = global_id_x();
    let (a, b) = (f16::from_f32(x[i]), bf16::from_f32(x[i]));
    let (c, d) = (f16::from_f32(x[i + 1]), bf16::from_f32(x[i + 1]));
    let short =
        a.abs().sqrt().floor() + c.fract() - (a.mul_add(c, a).abs() / (c.abs() + f16::ONE)).round_ties_even();
    let long = b.abs().sqrt().ceil() + d.trunc() - b.mul_add(d, b).recip().abs().min(bf16::ONE).round();
    y[i] = [short.to_bits(), long.to_bits()];
}

#[test]
fn halves_have_the_methods_of_floats() {
    check(of_halves::kernel(), of_halves, &floats(70), &[[0; 2]; 64]);
}
