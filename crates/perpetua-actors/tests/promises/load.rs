//! Checkpoints and reads of state while messages are under way: nothing dies, and what is restored is whole.

use std::time::Duration;

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

pub(crate) fn a_checkpoint_loses_nothing_under_load() {
    let patient = || {
        builder()
            .patience(Duration::from_secs(300))
            .build_blocking()
            .unwrap()
    };
    let file = engines::file("perpetua-load");
    let runtime = patient();
    let launch = |name: &str, actors| {
        let options = LaunchOptions::new(burst::handler()).with_actors(actors);
        runtime.launch_blocking(name, options).unwrap()
    };
    let (sinks, senders) = (launch("sinks", SINKS), launch("senders", SENDERS));
    let first = sinks.actor(0).unwrap().id().0;
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let sender = senders.actor(sender).unwrap();
            scope.spawn(move || {
                for turn in 0..BURSTS {
                    let burst = Burst {
                        first,
                        accounts: SINKS,
                        at: 8 * turn,
                    };
                    block_on(sender.send_when_room(&burst)).unwrap();
                }
            });
        }
        for _ in 0..3 {
            runtime.checkpoint_blocking(&file).unwrap();
            sinks.actor(5).unwrap().read_state::<Account>().unwrap();
        }
    });
    let bursts = (SENDERS * BURSTS) as i32;
    assert_eq!(totals(&runtime, &senders, &sinks), (8 * bursts, bursts));
    assert_eq!(runtime.dead_letters().counts().total(), 0);
    drop((senders, sinks, runtime));

    // Of each burst all payments are in the checkpoint, or none is.
    let again = patient();
    again.register(burst::handler());
    let restored = again.restore_blocking(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let (paid, done) = totals(&again, &restored[1], &restored[0]);
    assert_eq!(paid, 8 * done);
    assert_eq!(again.dead_letters().counts().total(), 0);
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

/// However many there are, they come back at once.
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
    let began = std::time::Instant::now();
    let restored = again.restore_blocking(&file).unwrap();
    println!("restored in {:?}", began.elapsed());
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
