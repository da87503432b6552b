//! Checkpoints and reads of state while messages are under way: nothing dies, and what is restored is whole.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use perpetua::actors::{ActorState, KernelHandle, LaunchOptions, PerpetuaRuntime};
use perpetua::device::future::block_on;

use super::handlers::*;
use super::{builder, engines, eventually};

pub(super) const SENDERS: u32 = 4;
pub(super) const SINKS: u32 = 64;
const BURSTS: u32 = 100;

/// What all have been paid, and how often the senders have paid eight.
pub(super) fn totals(runtime: &PerpetuaRuntime, senders: &KernelHandle, sinks: &KernelHandle) -> (i32, i32) {
    block_on(runtime.idle());
    let state = |of: &KernelHandle, i| of.actor(i).unwrap().read_state::<Account>().unwrap();
    let paid = (0..SINKS).map(|i| state(sinks, i).balance).sum();
    let bursts: u32 = (0..SENDERS).map(|i| state(senders, i).changes).sum();
    (paid, bursts as i32)
}

fn patient() -> PerpetuaRuntime {
    let builder = builder().patience(Duration::from_secs(300));
    builder.build_blocking().unwrap()
}

/// So many bursts from each sender while `meanwhile` runs, which is told how many were accepted; what is left of them.
fn under_load(bursts: u32, meanwhile: impl FnOnce(&PerpetuaRuntime, &KernelHandle, &AtomicU32)) {
    let runtime = patient();
    let launch = |name: &str, actors| {
        let options = LaunchOptions::new(burst::handler()).with_actors(actors);
        runtime.launch_blocking(name, options).unwrap()
    };
    let (sinks, senders) = (launch("sinks", SINKS), launch("senders", SENDERS));
    let first = sinks.actor(0).unwrap().id().0;
    let accepted = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (sender, accepted) = (senders.actor(sender).unwrap(), &accepted);
            scope.spawn(move || {
                for turn in 0..bursts {
                    let burst = Burst {
                        first,
                        accounts: SINKS,
                        at: 8 * turn,
                    };
                    block_on(sender.send_when_room(&burst)).unwrap();
                    accepted.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        meanwhile(&runtime, &sinks, &accepted);
    });
    let all = (SENDERS * bursts) as i32;
    assert_eq!(totals(&runtime, &senders, &sinks), (8 * all, all));
    assert_eq!(gaps(&senders), 0);
    assert_eq!(runtime.dead_letters().counts().total(), 0);
}

/// How often a burst has come out of order.
fn gaps(senders: &KernelHandle) -> u32 {
    let state = |i| senders.actor(i).unwrap().read_state::<Account>().unwrap();
    (0..SENDERS).map(|i| state(i).places[0]).sum()
}

pub(crate) fn nothing_dies_under_load() {
    under_load(4 * BURSTS, |_, _, _| {});
}

pub(crate) fn a_checkpoint_loses_nothing_under_load() {
    let file = engines::file("perpetua-load");
    let mut before = 0;
    let mut after = 0;
    under_load(BURSTS, |runtime, sinks, accepted| {
        for _ in 0..3 {
            before = accepted.load(Ordering::SeqCst);
            runtime.checkpoint_blocking(&file).unwrap();
            // Each sender may have one more in a mailbox than it has counted.
            after = accepted.load(Ordering::SeqCst) + SENDERS;
            sinks.actor(5).unwrap().read_state::<Account>().unwrap();
        }
    });

    // Of each burst all payments are in the checkpoint, or none is; and all bursts of a sender up to its last one.
    let again = patient();
    again.register(burst::handler());
    let restored = again.restore_blocking(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let (paid, done) = totals(&again, &restored[1], &restored[0]);
    assert_eq!(paid, 8 * done);
    assert!(
        (before..=after).contains(&(done as u32)),
        "{done} of {before} to {after}"
    );
    assert_eq!(gaps(&restored[1]), 0);
    assert_eq!(again.dead_letters().counts().total(), 0);
}

/// Each of two actors sends the other one more than their boxes hold, while the other does the same.
pub(crate) fn actors_that_fill_each_others_boxes_go_on() {
    let runtime = patient();
    let launch = |name: &str| {
        let options = LaunchOptions::new(branch::handler()).with_queue_capacity(1 << 16);
        runtime.launch_blocking(name, options).unwrap()
    };
    let [left, right] = [launch("left"), launch("right")];
    let message = Branch {
        to: right.id().0,
        back: left.id().0,
        depth: 4,
    };
    left.send(&message).unwrap();
    let handled = || [&left, &right].map(|kernel| kernel.metrics().messages_processed);
    let (mut since, mut last) = (Instant::now(), handled());
    while last != [1 + 64 + 4096, 8 + 512] {
        let now = handled();
        if now != last {
            (since, last) = (Instant::now(), now);
        }
        assert!(since.elapsed() < Duration::from_secs(60), "{last:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    block_on(runtime.idle());
    assert_eq!(runtime.dead_letters().counts().total(), 0);
}

/// A sender on threads waits for room; what it has sent goes on where the checkpoint is restored.
pub(crate) fn what_found_no_room_is_in_the_checkpoint() {
    let file = engines::file("perpetua-unsent");
    let runtime = PerpetuaRuntime::builder()
        .threads(1)
        .patience(Duration::from_secs(300))
        .build_blocking()
        .unwrap();
    let options = LaunchOptions::new(burst::handler()).with_queue_capacity(4);
    let sink = options.clone().without_auto_activate();
    let sink = runtime.launch_blocking("sink", sink).unwrap();
    let sender = runtime.launch_blocking("sender", options).unwrap();
    let burst = Burst {
        first: sink.id().0,
        accounts: 1,
        at: 0,
    };
    sender.send(&burst).unwrap();
    eventually("its handler has run", || sender.metrics().messages_processed == 1);
    runtime.checkpoint_blocking(&file).unwrap();
    drop((sender, sink, runtime));

    let again = builder().build_blocking().unwrap();
    again.register(burst::handler());
    let restored = again.restore_blocking(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    block_on(restored[0].activate()).unwrap();
    eventually("all eight", || {
        restored[0].read_state::<Account>().unwrap().balance == 8
    });
    assert_eq!(again.dead_letters().counts().total(), 0);
}

pub(crate) fn a_thousand_actors_are_restored_together() {
    let file = engines::file("perpetua-thousand");
    let runtime = builder().build_blocking().unwrap();
    let options = LaunchOptions::new(burst::handler()).with_actors(1000);
    let all = runtime.launch_blocking("all", options).unwrap();
    for i in (0..1000).step_by(37) {
        let amount = i as i32 + 1;
        all.actor(i).unwrap().send(&Deposit { amount }).unwrap();
    }
    block_on(runtime.idle());
    runtime.checkpoint_blocking(&file).unwrap();
    drop((all, runtime));
    let again = builder().build_blocking().unwrap();
    again.register(burst::handler());
    let restored = again.restore_blocking(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    for i in [0, 1, 37, 999] {
        let state: Account = restored[0].actor(i).unwrap().read_state().unwrap();
        let expected = if i % 37 == 0 { i as i32 + 1 } else { 0 };
        assert_eq!(state.balance, expected, "actor {i}");
    }
}

pub(crate) fn what_is_drained_has_handled_what_it_got() {
    let runtime = builder().build_blocking().unwrap();
    let options = LaunchOptions::new(burst::handler()).with_actors(3);
    let all = runtime.launch_blocking("all", options).unwrap();
    for i in 0..60 {
        let one = all.actor(i % 3).unwrap();
        block_on(one.send_when_room(&Deposit { amount: 2 })).unwrap();
    }
    block_on(all.drain()).unwrap();
    assert_eq!(all.states(), [ActorState::Deactivated; 3]);
    let late = all.actor(1).unwrap();
    late.send(&Deposit { amount: 5 }).unwrap();
    for i in 0..3 {
        let state: Account = all.actor(i).unwrap().read_state().unwrap();
        assert_eq!(state.balance, 40, "actor {i}");
    }
    block_on(late.activate()).unwrap();
    eventually("what came later", || {
        late.read_state::<Account>().unwrap().balance == 45
    });
}
