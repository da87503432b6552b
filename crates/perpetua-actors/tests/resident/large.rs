//! States that registers cannot hold: an actor starts again with its first one, and its neighbours keep theirs; health is good.

use std::time::{Duration, Instant};

use perpetua::actors::{Context, LaunchOptions, RingMessage, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

const CELLS: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Change {
    cell: u32,
    value: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Table {
    cells: [u32; CELLS],
    changes: u32,
}

#[ring_kernel]
fn change(_ctx: &mut Context, table: &mut Table, message: Change) -> Change {
    let cell = message.cell as usize;
    let before = table.cells[cell];
    table.cells[cell] = message.value;
    table.changes += 1;
    Change {
        cell: message.cell,
        value: before,
    }
}

pub(crate) fn large_states() {
    let runtime = super::builder()
        .ask_timeout(Duration::from_secs(20))
        .build_blocking()
        .unwrap();
    let first = Table {
        cells: std::array::from_fn(|i| i as u32 * 7),
        changes: 0,
    };
    let options = LaunchOptions::new(change::handler())
        .with_actors(3)
        .with_state(first);
    let tables = runtime.launch_blocking("tables", options).unwrap();
    for actor in 0..3 {
        for cell in [0, 500, 999] {
            let value = 1 + actor;
            let before: Change = tables
                .actor(actor)
                .unwrap()
                .ask_blocking(&Change { cell, value })
                .unwrap();
            assert_eq!(before.value, cell * 7);
        }
    }
    let middle = tables.actor(1).unwrap();
    block_on(middle.restart()).unwrap();
    let before: Change = middle.ask_blocking(&Change { cell: 999, value: 5 }).unwrap();
    assert_eq!(before.value, 999 * 7);
    for actor in 0..3 {
        let mut expected = first;
        for cell in [0, 500, 999] {
            expected.cells[cell] = 1 + actor;
        }
        expected.changes = 3;
        if actor == 1 {
            expected = first;
            expected.cells[999] = 5;
            expected.changes = 1;
        }
        let found: Table = tables.actor(actor).unwrap().read_state().unwrap();
        assert!(found == expected, "actor {actor}");
    }
    runtime.health().unwrap();
    runtime.shutdown_blocking().unwrap();
}

/// More launches than fit at once, one after the other: those whose actors are gone leave their place.
pub(crate) fn come_and_go() {
    let runtime = super::builder().build_blocking().unwrap();
    let first = Table {
        cells: [3; CELLS],
        changes: 0,
    };
    let turns = if super::has_gpu() { 150 } else { 50 };
    for turn in 0..turns {
        let options = LaunchOptions::new(change::handler())
            .with_actors(3)
            .with_state(first);
        let table = runtime
            .launch_blocking(&format!("table {turn}"), options)
            .unwrap();
        for actor in 0..3 {
            let one = table.actor(actor).unwrap();
            let before: Change = one
                .ask_blocking(&Change {
                    cell: actor,
                    value: turn,
                })
                .unwrap();
            assert_eq!((before.cell, before.value), (actor, 3));
        }
        // Counted a moment after the answer.
        let started = Instant::now();
        while table.metrics().messages_processed != 3 {
            assert!(started.elapsed() < Duration::from_secs(5), "not counted");
        }
        block_on(table.terminate()).unwrap();
    }
    assert!(runtime.shutdown_blocking().unwrap().drained);
}
