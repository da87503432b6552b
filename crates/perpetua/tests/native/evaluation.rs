//! Expressions that change what others read: each is evaluated once, in Rust's order.

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
