//! Control flow.

use super::super::lanes::*;

#[cfg_attr(any(), kernel)]
pub fn ranges(x: &[i32], out: &mut [i64]) {
    let i = global_id_x();
    let a = x[i];
    let b = x[(i + 1) % x.len()];
    let (lo, hi) = (a as i8, b as i8);
    let mut s: i64 = 0;
    for k in lo..hi {
        s = s.wrapping_mul(3).wrapping_add(k as i64);
    }
    for k in lo..=hi {
        s = s.wrapping_mul(5).wrapping_add(k as i64);
    }
    for k in (lo..hi).rev() {
        s = s.wrapping_mul(7).wrapping_add(k as i64);
    }
    for k in (lo..=hi).rev() {
        s = s.wrapping_mul(11).wrapping_add(k as i64);
    }
    let step = (a as usize & 63) + 1;
    for k in (lo..hi).step_by(3) {
        s = s.wrapping_mul(13).wrapping_add(k as i64);
    }
    for k in (lo..hi).step_by(200) {
        s = s.wrapping_mul(17).wrapping_add(k as i64);
    }
    for k in (lo..hi).step_by(1000) {
        s = s.wrapping_mul(19).wrapping_add(k as i64);
    }
    for k in (lo..=hi).step_by(step) {
        s = s.wrapping_mul(23).wrapping_add(k as i64);
    }
    for k in (lo..hi).step_by(step).rev() {
        s = s.wrapping_mul(29).wrapping_add(k as i64);
    }
    for k in (lo..=hi).rev().step_by(step) {
        s = s.wrapping_mul(31).wrapping_add(k as i64);
    }
    for k in (lo..=hi).rev().step_by(step).rev().step_by(2) {
        s = s.wrapping_mul(37).wrapping_add(k as i64);
    }
    for k in (250..=u8::MAX).step_by(2) {
        s = s.wrapping_mul(41).wrapping_add(k as i64);
    }
    for k in (u64::MAX - 3..=u64::MAX).rev() {
        s = s.wrapping_mul(43).wrapping_add(k as i64);
    }
    for _ in 0..3 {
        s = s.wrapping_mul(47);
    }
    out[i] = s;
}

#[cfg_attr(any(), kernel)]
pub fn loops(x: &[u32], out: &mut [u32]) {
    let i = global_id_x();
    let n = x[i] % 50;
    let mut s = 0u32;
    let mut k = 0;
    while k < n {
        k += 1;
        if k % 7 == 0 {
            continue;
        }
        if k > 40 {
            break;
        }
        s = s.wrapping_mul(3).wrapping_add(k);
    }
    let found = loop {
        k += 1;
        if k * k % 13 == n % 13 || k > 100 {
            break k;
        }
    };
    'outer: for a in 0..10u32 {
        for b in 0..10 {
            if a * b == n {
                s = s.wrapping_add(a * 100 + b);
                break 'outer;
            }
            if b > a {
                continue 'outer;
            }
            s ^= b << a;
        }
    }
    let (last, even) = 'search: loop {
        for c in (0..n).rev() {
            if c % 11 == 5 {
                break 'search (c, c % 2 == 0);
            }
        }
        break (n, false);
    };
    let checked = 'block: {
        if n < 10 {
            break 'block 1;
        }
        if even {
            break 'block 2;
        }
        3
    };
    out[i] = s.wrapping_add(found * 3 + last * 5 + even as u32 + checked);
}

#[cfg_attr(any(), kernel)]
pub fn matches(x: &[i32], out: &mut [i32]) {
    let i = global_id_x();
    let v = x[i];
    let b = v as u8;
    let a = match v {
        0 => 10,
        1 | 2 | 3 => 20,
        i32::MIN..=-1 => -1,
        100..200 => 5,
        _ => 7,
    };
    let c = match (v % 3, b > 100) {
        (0, true) => 1,
        (1, _) | (2, false) => 2,
        (k, true) if k > 1 => k,
        (k, big) => k - big as i32,
    };
    let d = match b {
        n if n > 250 => n as i32,
        0..=9 => 1,
        10..=99 => 2,
        100..=255 => 3,
    };
    let mut e = 0;
    match b & 7 {
        0 => e += 1,
        1 => {
            e += 2;
            e *= 3;
        }
        2 | 4 => e = 9,
        3 => {}
        _ if a == 7 => e = -3,
        _ => e = 4,
    }
    let f = match b % 20 {
        0 => 3,
        1 => 1,
        2 => 4,
        3 => 1,
        4 => 5,
        5 => 9,
        6 => 2,
        7 => 6,
        8 => 5,
        9 => 3,
        10 if v > 0 => 5,
        11 => 8,
        12 => 9,
        13 => 7,
        14 => 9,
        15 => 3,
        16 => 2,
        17 => 3,
        18 => 8,
        n => n as i32,
    };
    let g = match v > 5 {
        true => 1,
        false => 2,
    };
    out[i] = a * 100000 + c * 10000 + d * 1000 + e * 100 + f * 10 + g;
}

#[cfg_attr(any(), kernel)]
pub fn values(x: &[f32], out: &mut [f32]) {
    let i = global_id_x();
    if i + 1 >= x.len() {
        return;
    }
    let v = x[i];
    let sign = if v > 0.0 {
        1.0
    } else if v < 0.0 {
        -1.0
    } else {
        0.0
    };
    let near = i > 0 && x[i - 1] > v || v > 10.0 && x[i + 1] < v;
    let clipped = {
        let low = -2.0;
        let high = low + 5.0;
        if v < low {
            low
        } else if v > high {
            high
        } else {
            v
        }
    };
    let (a, b) = if near { (v, sign) } else { (sign, v) };
    let v = a * 2.0;
    let v = v + if b > 1.0 { x[i + 1] } else { return };
    out[i] = v + clipped;
}

#[cfg_attr(any(), kernel)]
pub fn order(x: &[i32], out: &mut [i32]) {
    let i = global_id_x();
    let mut k = x[i];
    let a = k + {
        k += 1;
        k
    } * {
        k *= 2;
        k
    };
    let mut t = [0i32; 4];
    t[(k & 3) as usize] += {
        k = k.wrapping_add(5);
        k
    };
    let at = (k & 3) as usize;
    t[at] = t[at] * 2 + {
        k -= 1;
        k
    };
    let lazy = k > 0 && {
        k = 100;
        true
    } || {
        k += 7;
        k > 3
    };
    out[i] = a ^ t[0] ^ t[1] << 1 ^ t[2] << 2 ^ t[3] << 3 ^ k << 4 ^ lazy as i32;
}
