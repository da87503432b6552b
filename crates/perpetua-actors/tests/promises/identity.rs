//! Names are not identities: messages are told apart by their layout, too, handlers by their path.

use std::collections::BTreeMap;

use perpetua::actors::{ActorError, Context, LaunchOptions, RingMessage, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

use super::{builder, engines, eventually, runtime};

mod one {
    use perpetua::actors::{Context, RingMessage, ring_kernel};
    use perpetua::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
    #[repr(C)]
    pub(crate) struct Ping {
        pub(crate) value: f32,
    }

    #[ring_kernel]
    pub(crate) fn handle(_ctx: &mut Context, count: &mut u32, ping: Ping) -> Ping {
        *count += 1;
        ping
    }
}

mod other {
    use perpetua::actors::{Context, RingMessage, ring_kernel};
    use perpetua::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
    #[repr(C)]
    pub(crate) struct Ping {
        pub(crate) value: u32,
    }

    #[ring_kernel]
    pub(crate) fn handle(_ctx: &mut Context, count: &mut u32, ping: Ping) -> Ping {
        *count += 100;
        ping
    }
}

pub(crate) fn types_and_handlers_are_told_apart() {
    assert_ne!(one::Ping::TYPE_ID, other::Ping::TYPE_ID);
    let file = engines::file("perpetua-identity");
    let runtime = builder().build_blocking().unwrap();
    let options = LaunchOptions::new(one::handle::handler());
    let kernel = runtime.launch_blocking("one", options).unwrap();
    let error = kernel.send(&other::Ping { value: 1 }).unwrap_err();
    assert!(matches!(error, ActorError::ForeignMessage { .. }), "{error}");
    let _: one::Ping = kernel.ask_blocking(&one::Ping { value: 1.5 }).unwrap();
    runtime.checkpoint_blocking(&file).unwrap();
    drop((kernel, runtime));

    let again = builder().build_blocking().unwrap();
    again.register(other::handle::handler());
    let error = again.restore_blocking(&file).unwrap_err().to_string();
    assert!(
        error.contains("identity::one::handle` is not known here"),
        "{error}"
    );
    again.register(one::handle::handler());
    let error = again
        .launch_blocking("handle", LaunchOptions::default())
        .unwrap_err();
    assert!(
        error.to_string().contains("the name of several handlers"),
        "{error}"
    );
    let restored = again.restore_blocking(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let _: one::Ping = restored[0].ask_blocking(&one::Ping { value: 2.5 }).unwrap();
    assert_eq!(restored[0].read_state::<u32>().unwrap(), 2);
}

/// As [`one::Ping`] but for its place.
mod twin {
    use perpetua::actors::RingMessage;
    use perpetua::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
    #[repr(C)]
    pub(crate) struct Ping {
        pub(crate) value: f32,
    }
}

/// A program as it was.
mod then {
    use perpetua::actors::{Context, RingMessage, ring_kernel};
    use perpetua::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
    #[repr(C)]
    pub(crate) struct Note {
        pub(crate) value: u32,
    }

    #[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
    #[repr(C)]
    pub(crate) struct Tally {
        pub(crate) count: u32,
    }

    #[ring_kernel]
    pub(crate) fn keep(_ctx: &mut Context, tally: &mut Tally, note: Note) {
        tally.count += note.value;
    }
}

/// The same program later.
mod now {
    use perpetua::actors::{Context, Handler, RingMessage, ring_kernel};
    use perpetua::prelude::*;

    /// The message as it was.
    #[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
    #[message(path = "promises::identity::then::Note", version = 1)]
    #[repr(C)]
    pub(crate) struct NoteThen {
        pub(crate) value: u32,
    }

    #[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
    #[message(path = "promises::identity::then::Note", version = 2)]
    #[repr(C)]
    pub(crate) struct Note {
        pub(crate) value: f32,
        pub(crate) weight: u32,
    }

    /// The state as it was.
    #[derive(Clone, Copy, Debug, PartialEq, GpuType)]
    #[repr(C)]
    pub(crate) struct TallyThen {
        pub(crate) count: u32,
    }

    #[derive(Clone, Copy, Debug, PartialEq, GpuType)]
    #[repr(C)]
    pub(crate) struct Tally {
        pub(crate) sum: f32,
        pub(crate) weights: u32,
    }

    #[ring_kernel(version = 2)]
    fn keep(_ctx: &mut Context, tally: &mut Tally, note: Note) {
        tally.sum += note.value;
        tally.weights += note.weight;
    }

    /// In this test alone both programs are one, so their modules differ.
    pub(crate) fn handler() -> Handler {
        Handler {
            path: super::then::keep::handler().path,
            ..keep::handler()
        }
    }
}

pub(crate) fn types_of_one_name_and_layout_are_told_apart() {
    assert_ne!(one::Ping::TYPE_ID, twin::Ping::TYPE_ID);
    let runtime = builder().build_blocking().unwrap();
    let options = LaunchOptions::new(one::handle::handler());
    let kernel = runtime.launch_blocking("one", options).unwrap();
    let error = kernel.send(&twin::Ping { value: 1.0 }).unwrap_err();
    let expected = "does not take messages of type promises::identity::twin::Ping";
    assert!(error.to_string().contains(expected), "{error}");
    let expected = "it takes promises::identity::one::Ping (version 1) { value: f32 }";
    assert!(error.to_string().contains(expected), "{error}");
}

pub(crate) fn what_has_changed_since_a_checkpoint_is_migrated_or_refused() {
    assert_eq!(then::Note::TYPE_ID, now::NoteThen::TYPE_ID);
    assert_ne!(then::Note::TYPE_ID, now::Note::TYPE_ID);
    let file = engines::file("perpetua-versions");
    let runtime = builder().build_blocking().unwrap();
    let options = LaunchOptions::new(then::keep::handler()).without_auto_activate();
    let kernel = runtime.launch_blocking("keeps", options).unwrap();
    kernel.write_state(then::Tally { count: 5 }).unwrap();
    for value in [3, 4] {
        kernel.send(&then::Note { value }).unwrap();
    }
    runtime.checkpoint_blocking(&file).unwrap();
    drop((kernel, runtime));

    let again = builder().build_blocking().unwrap();
    again.register(now::handler());
    let refused = |layouts: [&str; 2]| {
        let error = again.restore_blocking(&file).unwrap_err().to_string();
        assert!(layouts.iter().all(|layout| error.contains(layout)), "{error}");
    };
    refused([
        "(version 1) { count at 0: u32 } of 4 bytes",
        "(version 2) { sum at 0: f32, weights at 4: u32 } of 8 bytes",
    ]);
    let error = again
        .migrate_state(now::handler(), 1, |old: now::TallyThen| old.count)
        .unwrap_err();
    assert!(matches!(error, ActorError::State { .. }), "{error}");
    let state = |old: now::TallyThen| now::Tally {
        sum: old.count as f32,
        weights: 1,
    };
    again.migrate_state(now::handler(), 1, state).unwrap();
    refused([
        "then::Note (version 1) { value: u32 }",
        "then::Note (version 2) { value: f32, weight: u32 }",
    ]);
    again.migrate_message(|old: now::NoteThen| now::Note {
        value: old.value as f32 + 0.5,
        weight: 10,
    });
    let restored = again.restore_blocking(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    block_on(restored[0].activate()).unwrap();
    eventually("both notes", || {
        restored[0].read_state::<now::Tally>().unwrap()
            == now::Tally {
                sum: 13.0,
                weights: 21,
            }
    });
    // And it begins anew with what its first state has become.
    block_on(restored[0].restart()).unwrap();
    let first: now::Tally = restored[0].read_state().unwrap();
    assert_eq!((first.sum, first.weights), (0.0, 1));
}

/// A question that says itself which it is.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Question {
    #[message(correlation)]
    number: u32,
    value: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Solution {
    #[message(correlation)]
    number: u32,
    square: u32,
}

#[ring_kernel]
fn solve(_ctx: &mut Context, solved: &mut u32, question: Question) -> Solution {
    *solved += 1;
    Solution {
        number: question.number,
        square: question.value * question.value,
    }
}

pub(crate) fn replies_are_matched_by_their_correlation() {
    let runtime = runtime();
    let options = LaunchOptions::new(solve::handler()).with_actors(4);
    let kernel = runtime.launch_blocking("solves", options).unwrap();
    let mut open: BTreeMap<u64, u32> = BTreeMap::new();
    for number in 1..=40 {
        let question = Question {
            number,
            value: number + 7,
        };
        open.insert(question.correlation().unwrap(), question.value);
        kernel.actor(number % 4).unwrap().send(&question).unwrap();
    }
    // Actors answer in any order.
    for at in (0..40).rev() {
        let actor = kernel.actor(at % 4).unwrap();
        let solution: Solution = block_on(actor.receive()).unwrap();
        let value = open.remove(&solution.correlation().unwrap()).unwrap();
        assert_eq!(solution.square, value * value);
    }
    assert!(open.is_empty());
}

pub(crate) fn clocks_of_runtimes_are_told_apart() {
    let nodes = [runtime(), runtime()].map(|runtime| runtime.clock().node());
    // Random numbers of 64 bits.
    assert_ne!(nodes[0], nodes[1]);
    let named = super::builder().clock_node(7).build_blocking().unwrap();
    assert_eq!(named.clock().node(), 7);
    assert_eq!(named.clock().tick().node, 7);
}
