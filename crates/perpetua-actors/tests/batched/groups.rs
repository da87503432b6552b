//! Handlers for groups of lanes: however many lanes there are, the answers are the same.

use perpetua::actors::{Context, LaunchOptions, ring_kernel};
use perpetua::prelude::*;

use super::{Add, message, runtimes};

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Table {
    numbers: [u32; 100],
    partial: [u32; 32],
}

/// Adds up the table, however many lanes there are, each number times the message's place.
#[ring_kernel(group)]
fn add_up(ctx: &mut Context, state: &mut Table, message: Add) -> Add {
    let own = ctx.thread_index();
    let mut sum = 0;
    let mut at = own;
    while at < 100 {
        sum += state.numbers[at as usize] * message.place;
        at += ctx.group_size();
    }
    state.partial[own as usize] = sum;
    ctx.sync();
    let mut all = 0;
    for lane in 0..ctx.group_size() {
        all += state.partial[lane as usize];
    }
    Add {
        place: all,
        ..message
    }
}

pub(crate) fn a_group_of_lanes_does_what_one_does() {
    let mut table = Table {
        numbers: [0; 100],
        partial: [0; 32],
    };
    (3u32..).zip(&mut table.numbers).for_each(|(i, n)| *n = i);
    for runtime in runtimes() {
        let options = LaunchOptions::new(add_up::handler())
            .with_state(table)
            .with_block_size(256);
        let adder = runtime.launch_blocking("adder", options).unwrap();
        for i in 0..20 {
            let sums: Add = adder.ask_blocking(&message(i)).unwrap();
            assert_eq!(sums.place, (3..103).sum::<u32>() * message(i).place);
        }
        assert!(runtime.shutdown_blocking().unwrap().drained);
    }
}
