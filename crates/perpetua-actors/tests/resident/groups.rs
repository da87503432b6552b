//! Handlers that several lanes run together, and handlers that do not end.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use perpetua::actors::grid::{Commons, Grid, GridOptions, Shape};
use perpetua::actors::{Context, Handler, Kind, RingMessage, ring_kernel};
use perpetua::device::layout::with_bytes;
use perpetua::prelude::*;

use super::{active, ask, packet, receive, send};

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Work {
    /// 0: add up. 1: one lane faults, others wait for it. 2: loop for ever. 3: one lane waits once more.
    what: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Found {
    sum: u32,
    lanes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Table {
    numbers: [u32; 1000],
    partial: [u32; 32],
}

/// Adds up the table: lanes their shares, then halves of the lanes the others' sums.
#[ring_kernel(group)]
fn add_up(ctx: &mut Context, state: &mut Table, message: Work) -> Found {
    let own = ctx.thread_index();
    let lanes = ctx.group_size();
    let mut sum = 0;
    let mut at = own;
    while at < 1000 {
        sum += state.numbers[at as usize];
        at += lanes;
    }
    state.partial[own as usize] = sum;
    if message.what == 1 && own == 3 {
        state.partial[(own + 1000) as usize] = 0;
    }
    // It stays odd, and so is never zero.
    let mut odd = 1u32;
    while message.what == 2 && odd != 0 {
        odd = odd.wrapping_mul(3);
    }
    if message.what == 3 && own == 5 {
        ctx.sync();
    }
    ctx.sync();
    let mut width = 16;
    while width > 0 {
        if own < width && own + width < lanes {
            state.partial[own as usize] += state.partial[(own + width) as usize];
        }
        ctx.sync();
        width /= 2;
    }
    Found {
        sum: state.partial[0],
        lanes,
    }
}

fn grid(handler: &Handler, state: &[u8], options: &GridOptions) -> (Arc<Commons>, Grid) {
    let device = super::device();
    let commons = Arc::new(Commons::new(&device, Shape::new(options.homes, 16)).unwrap());
    let grid = active(Grid::new(&commons, handler, state, options).unwrap());
    (commons, grid)
}

pub(super) fn groups() {
    let mut table = Table {
        numbers: [0; 1000],
        partial: [0; 32],
    };
    (0u32..).zip(&mut table.numbers).for_each(|(i, n)| *n = i * i);
    let expected = table.numbers.iter().sum::<u32>();
    for group_size in [1, 7, 32] {
        let options = GridOptions {
            group_size,
            // The interpreter may take long for a right answer.
            run_limit: Some(Duration::from_millis(if super::has_gpu() { 50 } else { 1000 })),
            ..GridOptions::new(6, 2)
        };
        let state = with_bytes(&[table], <[u8]>::to_vec);
        let (_commons, grid) = grid(&add_up::handler(), &state, &options);
        for turn in 0..100 {
            let back = ask(&grid, turn % 4, &Work { what: 0 });
            assert_eq!(back.header.kind, Kind::Reply);
            let expected = Found {
                sum: expected,
                lanes: group_size,
            };
            assert_eq!(Found::from_payload(&back.payload), expected);
        }
        // The interpreter's lanes go in step: one cannot wait elsewhere than the others.
        if super::has_gpu() {
            assert_eq!(ask(&grid, 3, &Work { what: 3 }).header.kind, Kind::Reply);
        }
        for (actor, what) in [(4, if group_size > 3 { 1 } else { 2 }), (5, 2)] {
            let back = ask(&grid, actor, &Work { what });
            let why = grid.fault_text(back.header.deadline);
            assert_eq!(back.header.kind, Kind::Fault, "{why}");
            // The interpreter's lanes go in step: who has faulted cannot tell those that wait, until their time is over.
            let part = match what {
                1 if super::has_gpu() => "out of bounds",
                _ => "time",
            };
            assert!(why.contains(part), "{why}");
            assert_eq!(ask(&grid, 0, &Work { what: 0 }).header.kind, Kind::Reply);
        }
        grid.end().unwrap();
    }
}

#[ring_kernel]
fn count_down(_ctx: &mut Context, state: &mut u32, message: Work) -> Work {
    let mut left = message.what;
    // What is odd stays odd, and so is never zero.
    while left != 0 {
        left = left.wrapping_mul(3);
        *state += 1;
    }
    message
}

pub(super) fn loops_end() {
    let options = GridOptions {
        run_limit: Some(Duration::from_millis(100)),
        ..GridOptions::new(8, 2)
    };
    let (_commons, grid) = grid(&count_down::handler(), &[0; 4], &options);
    for (actor, what) in [(0, 0), (1, 1), (2, 0), (3, 5), (4, 0)] {
        let started = Instant::now();
        let back = ask(&grid, actor, &Work { what });
        if what == 0 {
            assert_eq!(back.header.kind, Kind::Reply);
            continue;
        }
        assert_eq!(back.header.kind, Kind::Fault);
        let why = grid.fault_text(back.header.deadline);
        assert!(why.contains("time"), "{why}");
        let took = started.elapsed();
        assert!(took > Duration::from_millis(90), "{took:?}");
        if super::has_gpu() {
            assert!(took < Duration::from_millis(400), "{took:?}");
            assert!(grid.silence(grid.home_of(actor)) < Duration::from_millis(100));
        }
    }
    // The device is as usable as before.
    assert_eq!(grid.read_states().unwrap().len(), 32);
    assert_eq!(ask(&grid, 6, &Work { what: 0 }).header.kind, Kind::Reply);
}

pub(super) fn latencies() {
    let (_commons, grid) = grid(&count_down::handler(), &[0; 4], &GridOptions::new(2, 1));
    for _ in 0..1000 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let mut words = packet(Kind::Ask, 1, &Work { what: 0 }, 1);
        let sent = (since.as_micros() as u64) << 12;
        (words[4], words[5]) = (sent as u32, (sent >> 32) as u32);
        send(&grid, &words);
        receive(&grid);
    }
    assert_eq!(grid.latencies(0).unwrap().count(), 0);
    // The last one is counted a moment after its answer.
    let started = Instant::now();
    let mut all = grid.latencies(1).unwrap();
    while all.count() < 1000 && started.elapsed() < Duration::from_secs(5) {
        all = grid.latencies(1).unwrap();
    }
    assert_eq!(all.count(), 1000);
    if super::has_gpu() {
        assert!(all.p99() < Duration::from_millis(10), "{:?}", all.p99());
    }
    println!(
        "latencies on the device: p50 {:?}, p99 {:?}",
        all.p50(),
        all.p99()
    );
}
