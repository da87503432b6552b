//! Faults of native code: the interpreter's, with kernel, line, lane and operands.

use perpetua::device::Error;
use perpetua::prelude::*;

use crate::harness::{Argument, B, Proven, V, check};

#[kernel]
fn half_beyond(x: &mut [u32]) {
    let i = global_id_x();
    x[i * 2] = 1;
}

#[kernel]
fn below_zero(x: &mut [u32], n: usize) {
    let i = global_id_x();
    x[i - n] = 1;
}

#[kernel]
fn divides(x: &[i32], y: &[i32], out: &mut [i32]) {
    let i = global_id_x();
    out[i] = 1;
    out[i] = x[i] / y[i];
    out[i] += x[i] % y[i];
}

#[kernel]
fn private_index(x: &[u32], out: &mut [u32]) {
    let i = global_id_x();
    let table = [3, 1, 4, 1, 5];
    out[i] = table[x[i] as usize];
}

#[kernel]
fn unreached(out: &mut [u32]) {
    if out[global_id_x()] == 7 {
        unreachable!();
    }
    out[global_id_x()] = 9;
}

#[kernel]
fn euclid(x: &[i32], out: &mut [i32]) {
    out[0] = 5i32.rem_euclid(x[0]);
}

/// Lanes that leave without a store may have faulted before.
#[kernel]
fn faults_and_leaves(table: &[u32], out: &mut [u32], by: u32, at: usize, step: usize) {
    let i = global_id_x();
    let quotient = 7 / by;
    let known = [3u32, 1, 4];
    let element = known[at];
    let mut turns = 0;
    for _ in (0..4u32).step_by(step) {
        turns += 1;
    }
    if by == 5 {
        unreachable!();
    }
    if i < 64 {
        return;
    }
    out[i] = quotient + element + turns + table[i];
}

/// The fault's text.
fn text(fault: Option<Error>) -> String {
    fault.map_or_else(|| "no fault".to_owned(), |fault| fault.to_string())
}

#[test]
fn faults_are_the_interpreters() {
    let one = LaunchConfig::new(1, 1);
    let many = LaunchConfig::new(1, 64);
    let zeros = vec![0u32; 64];
    let fault = check(half_beyond::kernel(), many, &[&B(&zeros)], Proven::Exactly(32));
    let fault = text(fault);
    assert!(
        fault.starts_with(
            "index out of bounds: the length of `x` is 64 but the index is 64 (kernel `half_beyond`, "
        ) && fault.ends_with("faults.rs:11, block (0, 0, 0), lane (32, 0, 0))"),
        "{fault}"
    );
    check(below_zero::kernel(), one, &[&B(&zeros), &V(1usize)], Proven::None);
    let fault = check(
        below_zero::kernel(),
        many,
        &[&B(&zeros), &V(10usize)],
        Proven::Exactly(54),
    );
    assert!(text(fault).contains("the index is 18446744073709551606"));

    let divide = |x: i32, y: i32, expect: &str| {
        let out = [0i32];
        let fault = text(check(
            divides::kernel(),
            one,
            &[&B(&[x]), &B(&[y]), &B(&out)],
            Proven::All,
        ));
        assert!(fault.starts_with(expect), "{fault}");
    };
    divide(7, 0, "division by zero: the dividend is 7");
    divide(i32::MIN, -1, "division with overflow: -2147483648 by -1");
    divide(7, -2, "no fault");
    let y: Vec<i32> = (0..64).map(|i| i % 5).collect();
    let x = vec![100i32; 64];
    check(divides::kernel(), many, &[&B(&x), &B(&y), &B(&x)], Proven::All);

    let fault = check(
        private_index::kernel(),
        one,
        &[&B(&[5u32]), &B(&[0u32])],
        Proven::All,
    );
    assert!(text(fault).starts_with("index out of bounds: the length of `table` is 5 but the index is 5"));
    check(unreached::kernel(), one, &[&B(&[7u32])], Proven::All);
    check(euclid::kernel(), one, &[&B(&[0i32]), &B(&[0i32])], Proven::All);

    let leave = |by: u32, at: usize, step: usize, expect: &str| {
        let buffer = [0u32; 64];
        let args: [&dyn Argument; 5] = [&B(&buffer), &B(&buffer), &V(by), &V(at), &V(step)];
        let fault = text(check(faults_and_leaves::kernel(), one, &args, Proven::All));
        assert!(fault.starts_with(expect), "{fault}");
    };
    leave(1, 1, 1, "no fault");
    leave(0, 1, 1, "division by zero");
    leave(
        1,
        3,
        1,
        "index out of bounds: the length of `known` is 3 but the index is 3",
    );
    leave(1, 1, 0, "");
    leave(5, 1, 1, "");
}
