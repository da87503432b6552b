//! What kernels that stay on a device ask of it, in the CPU's interpreter: subgroups wait for each other, four words move at once,
//! faults are caught while others go on, and the race detector knows what orders what.
#![allow(
    clippy::unwrap_used,
    unused_labels,
    reason = "tests; kernels name blocks to catch their faults"
)]

use perpetua::device::cpu::CpuContext;
use perpetua::device::{BackendKind, Device};
use perpetua::kernel::atomic::{Ordering, Scope};
use perpetua::kernel::resident::U32x4;
use perpetua::prelude::*;

fn device(detects_races: bool) -> Device {
    let device = Device::new(BackendKind::Cpu, 0).unwrap();
    let cpu: &CpuContext = device.context().as_any().downcast_ref().unwrap();
    cpu.detect_races(detects_races);
    device
}

/// Each subgroup in its turn writes its number, and hands the turn on to the next one.
#[kernel(block_size = (96), interpret)]
fn in_turn(out: &mut [u32], rounds: u32) {
    let turn = shared_array::<[u32; 1]>();
    if local_id_x() == 0 {
        turn[0] = 0;
    }
    meet();
    let own = local_id_x() as u32 / 32;
    let mut next = own;
    while next < rounds * 3 {
        converge();
        let now = atomic_load_explicit(&turn[0], Ordering::Acquire, Scope::Block);
        if now == next {
            if subgroup_lane() == 5 {
                out[next as usize] = own;
                atomic_store_explicit(&mut turn[0], next + 1, Ordering::Release, Scope::Block);
            }
            next += 3;
        } else {
            nap(500);
        }
    }
    meet();
    // Lanes of all subgroups see what all have written.
    if local_id_x() < rounds as usize * 3 {
        out[local_id_x()] += 10;
    }
}

#[test]
fn subgroups_wait_for_each_other() {
    for detects_races in [false, true] {
        let device = device(detects_races);
        let out = device.zeros::<u32>(96).unwrap();
        device
            .launch(&in_turn::kernel(), LaunchConfig::new(2, 96), args![&out, 20u32])
            .unwrap();
        // Both blocks do the same, in shared memory of their own; with races looked for, one of them is enough.
        let _ = out.read();
        let out = device.zeros::<u32>(96).unwrap();
        device
            .launch(&in_turn::kernel(), LaunchConfig::new(1, 96), args![&out, 20u32])
            .unwrap();
        let expected: Vec<u32> = (0..96).map(|i| if i < 60 { i % 3 + 10 } else { 0 }).collect();
        assert_eq!(out.read().unwrap(), expected);
    }
}

/// The first block writes vectors, the second one reads them: the last word says when.
#[kernel(block_size = (32), interpret)]
fn vectors(slots: &mut [U32x4], torn: &mut [u32], rounds: u32) {
    let lane = subgroup_lane();
    let mut round = 1u32;
    while round <= rounds {
        converge();
        if block_idx_x() == 0 {
            let value = round * 77 + lane;
            let vector = U32x4 {
                x: value,
                y: value,
                z: value,
                w: round,
            };
            atomic_store_explicit(
                &mut slots[lane as usize],
                vector,
                Ordering::Relaxed,
                Scope::Device,
            );
            round += 1;
        } else {
            let seen = atomic_load_explicit(&slots[lane as usize], Ordering::Relaxed, Scope::Device);
            let value = seen.w * 77 + lane;
            if seen.w != 0 && (seen.x != value || seen.y != value || seen.z != value) {
                torn[lane as usize] += 1;
            }
            round = (seen.w + 1).max(round);
            nap(100);
        }
    }
}

#[test]
fn four_words_move_at_once() {
    let device = device(false);
    let slots = device.zeros::<U32x4>(32).unwrap();
    let torn = device.zeros::<u32>(32).unwrap();
    // Two launches, on threads of their own.
    let (writer, reader) = (device.create_stream().unwrap(), device.create_stream().unwrap());
    let kernel = device.kernel(&vectors::kernel()).unwrap();
    for stream in [&writer, &reader] {
        stream
            .launch(&kernel, LaunchConfig::new(2, 32), args![&slots, &torn, 3000u32])
            .unwrap();
    }
    writer.synchronize().unwrap();
    reader.synchronize().unwrap();
    assert_eq!(torn.read().unwrap(), [0; 32]);
}

/// Lanes divide by their numbers, and loop for ever where these are odd; all go on.
#[kernel(block_size = (8), interpret)]
fn catches(numbers: &[u32], out: &mut [u32], sites: &mut [u32], time: u64) {
    let lane = local_id_x();
    let until = clock_nanos() + time;
    converge();
    'risky: {
        let mut left = numbers[lane];
        out[lane] = 1000 / left;
        while left % 2 == 1 {
            left += 2;
        }
    }
    let fault = catch_fault(until);
    converge();
    sites[lane] = fault;
    if fault == 0 {
        out[lane] += 1;
    }
}

#[test]
fn faults_are_caught_and_told() {
    let device = device(false);
    let numbers = device.upload(&[2u32, 0, 10, 7, 4, 0, 1, 100]).unwrap();
    let [out, sites] = [0, 1].map(|_| device.zeros::<u32>(8).unwrap());
    // SAFETY: outside the block whose faults are caught, indices are lanes, of which there are eight.
    let kernel = unsafe { catches::kernel().checked_where_caught() };
    let kernel = device.kernel(&kernel).unwrap();
    let stream = device.create_stream().unwrap();
    let time = 20_000_000u64;
    stream
        .launch(
            &kernel,
            LaunchConfig::new(1, 8),
            args![&numbers, &out, &sites, time],
        )
        .unwrap();
    let told = stream.synchronize().unwrap_err().to_string();
    assert!(told.contains("division by zero: the dividend is 1000"), "{told}");
    assert_eq!(out.read().unwrap(), [501, 0, 101, 142, 251, 0, 1000, 11]);
    let kinds: Vec<&str> = sites
        .read()
        .unwrap()
        .into_iter()
        .map(|site| match site.checked_sub(1) {
            None => "",
            Some(site) => {
                let registry = perpetua::device::fault::FaultRegistry::global();
                let (kernel, number) = registry.kernel(site).unwrap();
                kernel.faults[number as usize].kind.name()
            }
        })
        .collect();
    let (zero, time) = ("division_by_zero", "time_limit");
    assert_eq!(kinds, ["", zero, "", time, "", zero, time, ""]);
}

/// One lane writes, another one reads: in order only if they come together in between.
#[kernel(block_size = (64), interpret)]
fn hands_over(out: &mut [u32], comes_together: u32) {
    let word = shared_array::<[u32; 1]>();
    if local_id_x() == 3 {
        word[0] = 42;
    }
    if comes_together == 1 {
        converge();
    }
    if local_id_x() == 7 {
        out[0] = word[0];
    }
}

#[test]
fn lanes_that_converge_see_what_they_wrote() {
    let device = device(true);
    let out = device.zeros::<u32>(1).unwrap();
    let run = |comes_together: u32| {
        device.launch(
            &hands_over::kernel(),
            LaunchConfig::new(1, 64),
            args![&out, comes_together],
        )?;
        out.read()
    };
    assert_eq!(run(1).unwrap(), [42]);
    let race = run(0).unwrap_err().to_string();
    assert!(race.contains("race for `word`[0]"), "{race}");
}
