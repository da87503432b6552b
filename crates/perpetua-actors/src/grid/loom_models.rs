//! loom's models of what rides on a packet's tag: the host's end of a ring as it ships, and on the other side threads that do what a
//! home's lanes do, each with the orders that the kernel has (`ring/README.md` names the steps). A plain cell stands for the block:
//! loom ends a model in which nothing orders two accesses to it. Each model is also run without its fence, and must then fail.

use std::ptr::NonNull;

use loom::thread;

use super::port::Slots;
use crate::kernels::layout::SLOT_VECTORS;
use crate::message::PACKET_WORDS;
use crate::sync::{Arc, Ordering, UnsafeCell, Vector, fence};

/// The vector with a packet's flags.
const MARK_PART: usize = 2;

/// A ring of one slot, and a block.
struct World {
    vectors: Vec<Vector>,
    block: UnsafeCell<u32>,
}

// SAFETY: the cell is loom's, which ends a model that shares it wrongly.
unsafe impl Send for World {}
// SAFETY: as above.
unsafe impl Sync for World {}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World {
            vectors: (0..SLOT_VECTORS).map(|_| Vector::zero()).collect(),
            block: UnsafeCell::new(0),
        })
    }

    fn slots(&self) -> Slots {
        // SAFETY: as many vectors as one slot has, which the model keeps.
        unsafe { Slots::new(NonNull::from(&self.vectors[0]), 1) }
    }

    fn write_block(&self) {
        // SAFETY: loom ends the model where this is not alone.
        self.block.with_mut(|block| unsafe { *block = 7 });
    }

    fn read_block(&self) {
        // SAFETY: loom ends the model where somebody writes meanwhile.
        self.block.with(|block| assert_eq!(unsafe { *block }, 7));
    }
}

fn host_to_home(fenced: bool) {
    loom::model(move || {
        let world = World::new();
        let shared = Arc::clone(&world);
        let host = thread::spawn(move || {
            shared.write_block();
            shared.slots().write(0, &[3; PACKET_WORDS]);
        });
        let seen = world.vectors[MARK_PART].load_relaxed()[3] == 1;
        if seen {
            if fenced {
                // Acquire: pairs with the Release of the host's stores.
                fence(Ordering::Acquire);
            }
            // The lanes converge; another one runs the handler.
            let shared = Arc::clone(&world);
            thread::spawn(move || shared.read_block()).join().unwrap();
        }
        host.join().unwrap();
    });
}

fn home_to_host(fenced: bool) {
    loom::model(move || {
        let world = World::new();
        let shared = Arc::clone(&world);
        let home = thread::spawn(move || {
            shared.write_block();
            if fenced {
                // Release: pairs with the Acquire of the host's loads.
                fence(Ordering::Release);
            }
            for vector in &shared.vectors {
                vector.store_relaxed([3, 3, 3, 1]);
            }
        });
        if world.slots().read(0).is_some() {
            world.read_block();
        }
        home.join().unwrap();
        assert_eq!(world.slots().read(0), Some([3; PACKET_WORDS]));
    });
}

#[test]
fn loom_a_block_rides_on_the_tag_to_a_home() {
    host_to_home(true);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn loom_a_home_that_does_not_fence_is_found() {
    host_to_home(false);
}

#[test]
fn loom_a_block_rides_on_the_tag_to_the_host() {
    home_to_host(true);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn loom_a_lane_that_sends_without_a_fence_is_found() {
    home_to_host(false);
}
