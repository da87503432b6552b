//! Lanes that share elements, and arguments that share memory.

use perpetua::device::{BackendKind, Buffer, Device};
use perpetua::prelude::*;

use crate::harness::{B, Proven, agree, numbers, proves};

fn words(count: usize, seed: u64) -> Vec<u32> {
    numbers(count, seed, |bits| bits as u32)
}

#[kernel]
fn either_end(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let n = y.len();
    if x[i] & 1 == 0 {
        y[i] = x[i];
    } else {
        y[n - 1 - i] = x[i];
    }
}

#[kernel]
fn spread_over_rows(y: &mut [u32]) {
    let i = global_id_x();
    y[i] = y[i] * 3 + global_id_y() as u32;
}

#[kernel]
fn exchanged(y: &mut [u32]) {
    let i = global_id_x();
    y[i ^ 1] = i as u32;
}

#[kernel]
fn odd_and_even(y: &mut [u32]) {
    let i = global_id_x();
    y[2 * i] = y[2 * i + 1] + 7;
    y[2 * i + 1] = i as u32;
}

#[kernel]
fn reads_the_next(y: &mut [u32]) {
    let i = global_id_x();
    if i + 1 < y.len() {
        y[i] = y[i + 1];
    }
}

#[test]
fn lanes_that_share_elements() {
    let (x, y) = (words(64, 7), words(64, 8));
    let config = LaunchConfig::new(2, 32);
    proves(either_end::kernel(), config, &[&B(&x), &B(&y)], Proven::None);
    proves(
        spread_over_rows::kernel(),
        LaunchConfig::new((2, 3), (32, 1)),
        &[&B(&y)],
        Proven::None,
    );
    agree(spread_over_rows::kernel(), config, &[&B(&y)], Proven::All);
    agree(exchanged::kernel(), config, &[&B(&y)], Proven::None);
    agree(
        odd_and_even::kernel(),
        LaunchConfig::new(2, 16),
        &[&B(&y)],
        Proven::All,
    );
    // The last lane does nothing.
    proves(reads_the_next::kernel(), config, &[&B(&y)], Proven::Exactly(1));
}

#[kernel]
fn sum_of(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    if i < y.len() && i < x.len() {
        y[i] += x[i] * 2;
    }
}

#[kernel]
fn sum_of_wide(x: &[u64], y: &mut [u32]) {
    let i = global_id_x();
    if i < y.len() && i < x.len() {
        y[i] += x[i] as u32;
    }
}

/// Buffers that overlap: fast where lanes meet nobody, and no lane sees more than old or new values.
#[test]
fn arguments_that_overlap() {
    let device = Device::new(BackendKind::Cpu, 0).unwrap();
    let config = LaunchConfig::linear(1 << 17, 256);
    let data = words(1 << 17, 9);
    type Two = (Buffer<u32>, Buffer<u32>);
    let launch = |kernel: KernelFn, with: &dyn Fn(&Buffer<u32>) -> Two| {
        let buffer = device.upload(&data).unwrap();
        let (x, y) = with(&buffer);
        device.launch(&kernel, config, args![&x, &y]).unwrap();
        device.synchronize().unwrap();
        buffer.read().unwrap()
    };
    let same = launch(sum_of::kernel(), &|b| (b.clone(), b.clone()));
    assert!(
        same.iter()
            .zip(&data)
            .all(|(new, old)| *new == old.wrapping_mul(3))
    );
    for shift in [1, 2, 17, 1 << 16] {
        let n = data.len();
        let shifted = launch(sum_of::kernel(), &|b| {
            (b.slice(0..n - shift).unwrap(), b.slice(shift..n).unwrap())
        });
        assert_eq!(shifted[..shift], data[..shift]);
        // What a lane read may be what it was before, or after that element's own lane.
        let (mut old, mut new) = (0, 0);
        for i in shift..n {
            let sum = |x: u32| data[i].wrapping_add(x.wrapping_mul(2));
            if shifted[i] == sum(data[i - shift]) {
                old += 1;
            } else if shifted[i] == sum(shifted[i - shift]) {
                new += 1;
            }
        }
        assert_eq!(old + new, n - shift, "shift {shift}: {old} old, {new} new");
    }
    let wide = device.upload(&data).unwrap();
    let x: Buffer<u64> = wide.cast().unwrap();
    device
        .launch(&sum_of_wide::kernel(), config, args![&x, &wide])
        .unwrap();
    device.synchronize().unwrap();
}
