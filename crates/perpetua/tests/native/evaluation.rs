//! Expressions that change what others read: each is evaluated once, in Rust's order.

#![allow(unused_assignments, reason = "the tests' point")]

use perpetua::prelude::*;

use crate::harness::{B, Proven, agree};

#[kernel]
fn index_that_counts(x: &mut [[u32; 4]], out: &mut [u32]) {
    let i = global_id_x();
    if i < x.len() {
        let mut k = 0usize;
        x[i][{
            k += 1;
            k
        }] += 5;
        out[i + k] = 7;
    }
}

#[kernel]
fn index_that_stores(x: &mut [[usize; 4]], y: &mut [u32]) {
    let i = global_id_x();
    if i < x.len() {
        x[i][3] = 3 * i;
        let at = x[i][{
            x[i][3] = i;
            3
        }];
        y[at] = 1;
        let mut k = i;
        x[k][{
            k = 0;
            1
        }] = k;
        y[i + k] += 1;
    }
}

/// An index that changes what the place is made of is evaluated once, before the element is reached.
#[test]
fn indices_into_elements_are_evaluated_once() {
    let (x, out) = (vec![[1u32, 10, 100, 1000]; 64], vec![0u32; 65]);
    let config = LaunchConfig::new(4, 16);
    agree(
        index_that_counts::kernel(),
        config,
        &[&B(&x), &B(&out)],
        Proven::AtLeast(0),
    );
    let (x, y) = (vec![[9usize; 4]; 64], vec![0u32; 64]);
    agree(
        index_that_stores::kernel(),
        config,
        &[&B(&x), &B(&y)],
        Proven::AtLeast(0),
    );
}

#[kernel]
fn operands_that_change(out: &mut [usize]) {
    let i = global_id_x();
    let mut k = 3usize;
    out[i * 8] = k + {
        k = 5;
        1
    };
    out[i * 8 + 1] = {
        k += 1;
        k
    } * k;
    let mut s = 2;
    s += {
        s = 10;
        1
    };
    out[i * 8 + 2] = s;
    out[i * 8 + 3] = k.min({
        k = 0;
        9
    });
    let pair = (k, {
        k = 2;
        k
    });
    out[i * 8 + 4] = pair.0 * 10 + pair.1;
    let both = [k, {
        k = 7;
        k
    }];
    out[i * 8 + 5] = both[0] * 10 + both[1];
    let same = k == {
        k = 1;
        7
    };
    out[i * 8 + 6] = same as usize * 10 + k;
    out[i * 8 + 7] = both[{
        k += 1;
        k - 1
    }] + k;
}

#[test]
fn operands_are_evaluated_in_order() {
    let out = vec![0usize; 64];
    agree(
        operands_that_change::kernel(),
        LaunchConfig::new(1, 8),
        &[&B(&out)],
        Proven::AtLeast(0),
    );
}
