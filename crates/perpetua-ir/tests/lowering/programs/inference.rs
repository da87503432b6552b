//! Places where types come from far away.

use super::super::lanes::*;

const COUNT: usize = 5;
const SCALE: f64 = 0.5;

#[cfg_attr(any(), device)]
fn pick<T: Copy>(first: bool, a: T, b: T) -> T {
    if first { a } else { b }
}

#[cfg_attr(any(), device)]
fn mix(a: f32, k: u8) -> f32 {
    let bits = a.to_bits();
    let low = bits & 0xff;
    let shift = k % 32;
    let high = bits >> shift;
    (low + (high & 15)) as f32
}

#[cfg_attr(any(), device)]
fn count_up(x: &[i16]) -> (usize, i16) {
    let mut n = 0;
    let mut last = 0;
    for i in 0..x.len() {
        if x[i] > last {
            n += 1;
            last = x[i];
        }
    }
    (n, last)
}

#[cfg_attr(any(), kernel)]
pub fn literals(x: &[i16], out: &mut [f64]) {
    let i = global_id_x();
    let plain = 3;
    let wide = 3_000_000_000u64;
    let float = 2.5;
    let narrow = 1.5f32;
    let from_use = 7;
    let from_later;
    let masked = x[i] & 0x7f;
    let shifted = masked << 3;
    let by_u64 = masked >> (wide & 3);
    let compared = 100 < x[i];
    let negated = -x[i].wrapping_add(-5).clamp(-300, 300);
    let as_index = plain * 2 % 7;
    let mixed = x[(i + as_index as usize) % x.len()] / 2;
    let array = [0, 1, 2, 3];
    let element = array[i % 4] + x[i];
    let nested = [[1.0, 2.0], [float, 4.0]];
    let tuple = (from_use, 2.0, compared);
    let from_tuple = tuple.0 + x.len();
    let through_if = if compared { 1 } else { mixed };
    let through_block = {
        let inner = 10;
        inner + through_if
    };
    let through_loop = loop {
        break if compared { 3.0 } else { 4.5 };
    };
    let through_match = match x[i] {
        0 => 1,
        n if n > 5 => n,
        _ => -1,
    };
    let through_call = pick(compared, 1, x[i]);
    let through_call_float = pick(compared, through_loop, narrow);
    let free_call = pick(true, 1, 2);
    from_later = through_call_float * 2.0;
    let cast_only = 255 as u8;
    let cast_chain = (1 + 2) as u16 as f32;
    let cast_shift = (1 << 4) as u64;
    let method = 5i64.pow(2).max(3);
    let ones = (plain as u32).count_ones() + 1;
    let unsigned = x[i].unsigned_abs() + 1;
    let difference = x[i].abs_diff(3);
    let rotated = unsigned.rotate_left(3) ^ 1;
    let (up, last) = count_up(x);
    let half = up / 2 + COUNT;
    let (s, c) = narrow.sin_cos();
    let scaled = SCALE * (half as f64 + 1.0);
    let pi = std::f32::consts::PI / 4.0;
    let most = u8::MAX - 1;
    let widened = i32::from(x[i]) + 1;
    let into: i64 = widened.into();
    let bits = f64::from_bits(0x3ff0_0000_0000_0000 + up as u64);
    let reference = &mixed;
    let followed = *reference + 1;
    let compare = *reference == 3 || *reference == 4;
    let swapped = if compare { (1, 2.0f32) } else { (half, pi) };
    let ordered = 1.0 < pi && 2.0 > scaled;
    let mut total = 0;
    for k in (0..half).rev().step_by(2) {
        total += k * array.len();
    }
    let mut small = 0;
    for k in 0..4 {
        small ^= k;
    }
    let after = small as u8 | cast_only;
    let mut grows = 1;
    while grows < x[i] as i64 {
        grows *= 2;
    }
    let mut filled = [0; 3];
    filled[1] = last;
    let smallest = if filled[1] < filled[0] {
        filled[1]
    } else {
        filled[2]
    };
    let sum = (plain + ones as i32) as f64
        + float
        + nested[1][0]
        + nested[0][1]
        + tuple.1
        + from_tuple as f64
        + (through_block as f64)
        + through_match as f64
        + through_call as f64
        + from_later as f64
        + cast_only as f64
        + cast_chain as f64
        + cast_shift as f64
        + method as f64
        + difference as f64
        + rotated as f64
        + scaled
        + most as f64
        + into as f64
        + bits
        + followed as f64
        + swapped.0 as f64
        + swapped.1 as f64
        + ordered as u8 as f64
        + total as f64
        + after as f64
        + grows as f64
        + smallest as f64
        + shifted as f64
        + by_u64 as f64
        + negated as f64
        + element as f64
        + free_call as f64
        + (s.abs() < 2.0 && c.abs() < 2.0) as i32 as f64
        + tuple.2 as u8 as f64;
    out[i] = sum + mix(narrow, (i % 200) as u8) as f64;
}
