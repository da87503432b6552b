//! Many homes that want room in one box, which has little: each finds some, since no packet waits for another one of its subgroup.

use std::sync::Arc;
use std::time::{Duration, Instant};

use perpetua::actors::grid::{Commons, Grid, GridOptions, Shape};
use perpetua::actors::{Context, Kind, RingMessage, ring_kernel};
use perpetua::prelude::*;

use super::{Number, active, device, packet, send};

const SENDERS: u32 = 64;
const HOMES: u32 = 16;
/// Messages to each sender, which sends eight for each.
const TURNS: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Flood {
    to: u32,
}

#[ring_kernel]
fn flood(ctx: &mut Context, state: &mut u32, message: Flood) {
    for i in 0..8 {
        ctx.send(message.to, Number { value: i });
    }
    *state += 1;
}

#[ring_kernel]
fn drink(_ctx: &mut Context, state: &mut u32, message: Number) {
    *state += message.value;
}

pub(crate) fn crowds() {
    let shape = Shape {
        boxes: 32,
        ..Shape::new(HOMES + 1, SENDERS + 1)
    };
    let commons = Arc::new(Commons::new(&device(), shape).unwrap());
    // Nobody gives up.
    let options = |actors, homes| GridOptions {
        actors,
        patience: Duration::from_secs(300),
        ..GridOptions::new(0, homes)
    };
    let launch = |handler, options| active(Grid::new(&commons, &handler, &[0; 4], &options).unwrap());
    let floods = launch(flood::handler(), options(0..SENDERS, HOMES));
    let drinks = launch(drink::handler(), options(SENDERS..SENDERS + 1, 1));
    for _ in 0..TURNS {
        for actor in 0..SENDERS {
            send(&floods, &packet(Kind::Message, actor, &Flood { to: SENDERS }, 0));
        }
    }
    let all = u64::from(8 * SENDERS * TURNS);
    let (mut since, mut last) = (Instant::now(), 0);
    while last < all {
        let handled = drinks.handled(0).unwrap();
        if handled > last {
            (since, last) = (Instant::now(), handled);
        }
        assert!(since.elapsed() < Duration::from_secs(20), "{last} of {all}");
    }
    assert!((0..HOMES).all(|home| !floods.drain_waits(home)));
}
