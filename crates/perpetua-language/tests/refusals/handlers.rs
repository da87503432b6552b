//! What `#[ring_kernel]` refuses.

use perpetua::actors::{Context, RingMessage, ring_kernel};
use perpetua::prelude::*;

#[derive(Clone, Copy, GpuType, RingMessage)]
#[repr(C)]
struct Number {
    value: u32,
}

#[ring_kernel]
fn nobody_to_wait_for(ctx: &mut Context, state: &mut u32, message: Number) {
    *state += message.value;
    ctx.sync();
}

#[ring_kernel(lanes = 32)]
fn unknown_option(ctx: &mut Context, state: &mut u32, message: Number) {
    *state += message.value + ctx.actor();
}

#[ring_kernel]
fn no_state(ctx: &mut Context, message: Number) {
    let _ = (ctx, message);
}

#[ring_kernel]
fn generic<T: Copy>(ctx: &mut Context, state: &mut T, message: Number) {
    let _ = (ctx, state, message);
}

#[ring_kernel(also(together))]
fn alone(_ctx: &mut Context, state: &mut u32, message: Number) {
    *state += message.value;
}

#[ring_kernel(group)]
fn together(ctx: &mut Context, state: &mut u32, message: Number) {
    if ctx.thread_index() == 0 {
        *state += message.value;
    }
}

fn main() {}
