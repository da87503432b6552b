//! Types that are called something else than they are, or that nothing says: native bodies and the IR must take them for the same.

use perpetua::prelude::*;

use crate::harness::{Argument, B, Proven, V, agree, check, numbers};

type C = u32;
type Wide = u64;
type Short = i8;
type Flag = bool;

mod units {
    #[allow(non_camel_case_types, reason = "the test's point")]
    pub(super) type u32 = u8;
    pub(super) type Count = usize;
}

use std::primitive::u16 as Half;

const LIMIT: C = 3;
const SMALL: Short = -3;

fn words(count: usize, seed: u64) -> Vec<u32> {
    numbers(count, seed, |bits| bits as u32)
}

#[kernel]
fn chosen_by_alias(flag: u32, out: &mut [u32]) {
    let i = global_id_x();
    let n: C = if flag > 3 { 5 } else { 7 };
    if i < out.len() {
        out[i] = n;
    }
}

#[kernel]
fn chosen_twice(flag: u32, out: &mut [u32]) {
    let i = global_id_x();
    let n: Half = if flag > 3 {
        if flag > 8 { 50_000 } else { 5 }
    } else {
        7
    };
    let (_, m): (usize, Wide) = (i, if flag == 2 { 5_000_000_000 } else { 1 });
    let k: units::Count = if flag < 9 { 1 } else { 2 };
    if i < out.len() {
        out[i] = n as u32 + (m >> 8) as u32 + k as u32;
    }
}

#[kernel]
fn half_followed(flag: u32, from: C, out: &mut [u32]) {
    let i = global_id_x();
    let mut sum = 0;
    for k in from..if flag > 3 { 5 } else { 7 } {
        sum += k * 3;
    }
    for k in (if flag > 5 { 1 } else { 2 })..from + 4 {
        sum += k;
    }
    if i < out.len() {
        out[i] = sum;
    }
}

#[kernel]
fn within_conditions(flag: u32, n: C, out: &mut [u32]) {
    let i = global_id_x();
    let mut v = 1;
    if i < out.len() && (if flag > 3 { 5 } else { 7 }) > flag && n > 1 {
        v = 2;
    }
    if i > 1000 || (if flag > 6 { i } else { 9 }) < 9 {
        v += 4;
    }
    if i < out.len() {
        out[i] = v;
    }
}

#[kernel]
fn conditions_that_fault(flag: u32, zero: u32, out: &mut [u32]) {
    let i = global_id_x();
    if (if i < 5 { 7 } else { 8 }) / zero == 3 && i > 1000 {
        out[i] = flag;
    }
}

#[test]
fn conditions_are_asked_whatever_the_value_is_called() {
    let out = words(70, 1);
    for config in [LaunchConfig::linear(70, 32), LaunchConfig::new(1, 16)] {
        for flag in [0u32, 2, 3, 4, 6, 8, 9, 20] {
            let run =
                |kernel: KernelFn, args: &[&dyn Argument]| agree(kernel, config, args, Proven::AtLeast(16));
            run(chosen_by_alias::kernel(), &[&V(flag), &B(&out)]);
            run(chosen_twice::kernel(), &[&V(flag), &B(&out)]);
            run(half_followed::kernel(), &[&V(flag), &V(3u32), &B(&out)]);
            run(within_conditions::kernel(), &[&V(flag), &V(2u32), &B(&out)]);
            run(conditions_that_fault::kernel(), &[&V(flag), &V(4u32), &B(&out)]);
        }
    }
    let fault = check(
        conditions_that_fault::kernel(),
        LaunchConfig::new(1, 16),
        &[&V(1u32), &V(0u32), &B(&out)],
        Proven::AtLeast(0),
    );
    assert!(fault.is_some(), "a division by zero");
}

#[kernel]
fn aliases_everywhere(x: &[C], y: &mut [u32], n: C, short: Short, on: Flag) {
    let i = global_id_x() as Wide as usize;
    // 200 does not fit the type that inference finds for `low`.
    let low: Short = 100;
    let wrapped = low.wrapping_add(100);
    let byte = 250;
    let narrow: units::u32 = byte;
    let mut v: C = LIMIT;
    if on && (i as C) < n {
        v += narrow as C + wrapped as u8 as C;
    }
    if wrapped < SMALL && (short as Wide) > 5 {
        v += (SMALL as C) >> 4;
    }
    let next = i + (LIMIT as usize) - (narrow + 1) as usize;
    if next < x.len() && i < y.len() {
        y[i] = x[next] + v;
    }
}

#[kernel]
fn unsigned_by_alias(x: &[u32], y: &mut [u32], from: Wide) {
    let i = global_id_x();
    let back = 7;
    let at: C = i as C - back;
    let far = from - 4_294_967_296;
    if at < 1000 && far < 100 {
        y[i] = x[at as usize] + far as u32;
    }
}

#[test]
fn aliases_are_what_they_stand_for() {
    let (x, y) = (words(300, 2), words(300, 3));
    let config = LaunchConfig::linear(300, 64);
    for (n, short, on) in [
        (0u32, 0i8, true),
        (100, 9, false),
        (77, -1, true),
        (u32::MAX, 127, true),
    ] {
        let args: [&dyn Argument; 5] = [&B(&x), &B(&y), &V(n), &V(short), &V(on)];
        agree(aliases_everywhere::kernel(), config, &args, Proven::AtLeast(0));
    }
    for from in [0u64, 4_294_967_296, 4_294_967_300, u64::MAX] {
        let config = LaunchConfig::new(1, 64);
        let args: [&dyn Argument; 3] = [&B(&x), &B(&y), &V(from)];
        agree(unsigned_by_alias::kernel(), config, &args, Proven::AtLeast(0));
    }
}
