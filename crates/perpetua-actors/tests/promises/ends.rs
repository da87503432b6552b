//! How actors and runtimes end: moves of one and of many, shutdown, and a process that is killed.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use perpetua::actors::{
    ActorError, ActorState, Context, DeadReason, KernelHandle, LaunchOptions, PerpetuaRuntime, RingMessage,
    Supervision, ring_kernel,
};
use perpetua::device::future::block_on;
use perpetua::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::handlers::*;
use super::load::totals;
use super::{builder, engines, eventually, runtime};

/// Takes its time, and then faults where `place` is above 3.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Slow {
    turns: u32,
    place: u32,
}

#[ring_kernel]
fn slow(_ctx: &mut Context, account: &mut Account, message: Slow) -> Balance {
    let mut at = 1u32;
    for i in 0..message.turns {
        at = at * 3 + i;
    }
    account.changes += 1;
    account.places[message.place as usize] = at;
    Balance {
        amount: 0,
        changes: account.changes,
    }
}

pub(crate) fn what_is_deactivated_stays_so_or_its_fault_is_told() {
    let runtime = runtime();
    let options = LaunchOptions::new(slow::handler());
    let kernel = runtime.launch_blocking("slow", options).unwrap();
    let mut faults = 0;
    for turns in [1, 10, 100, 1000, 1000, 1000, 300, 30] {
        kernel.send(&Slow { turns, place: 4 }).unwrap();
        match block_on(kernel.deactivate()) {
            Ok(()) => {
                // Whatever ran, it stays so; the message may wait still.
                block_on(runtime.idle());
                assert_eq!(kernel.state(), ActorState::Deactivated);
                block_on(kernel.activate()).unwrap();
            }
            Err(error) => {
                assert!(matches!(error, ActorError::IllegalMove { .. }), "{error}");
                assert_eq!(kernel.state(), ActorState::Faulted);
            }
        }
        eventually("the fault", || kernel.state() == ActorState::Faulted);
        faults += 1;
        assert_eq!(runtime.dead_letters().counts().of(DeadReason::Faulted), faults);
        block_on(kernel.activate()).unwrap();
    }
}

/// What is done when the runtime says that the handler of an actor faulted, by the actor's name in its words.
static FAULTS: Mutex<BTreeMap<String, Box<dyn Fn() + Send>>> = Mutex::new(BTreeMap::new());

/// Listens to what the runtime tells of faults.
struct Faults;

impl Subscriber for Faults {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() == Level::ERROR
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        struct Actor(String);
        impl Visit for Actor {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                if field.name() == "actor" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut actor = Actor(String::new());
        event.record(&mut actor);
        if let Some(act) = FAULTS.lock().unwrap().get(&actor.0) {
            act();
        }
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

pub(crate) fn who_sees_a_fault_finds_its_letter() {
    // Another engine's test may have done it.
    let _ = tracing::subscriber::set_global_default(Faults);
    let runtime = runtime();
    let limited = LaunchOptions::new(super::faults::loops::handler());
    let limited = limited.with_run_limit(Duration::from_millis(30));
    for (what, options) in [
        ("faults", LaunchOptions::new(slow::handler())),
        ("loops", limited),
    ] {
        let name = format!("{what} on {}", engines::name());
        let kernel = runtime.launch_blocking(&name, options).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let look = (kernel.clone(), Arc::clone(&seen));
        // Before the letter is there.
        let look = move || look.1.lock().unwrap().push(look.0.state());
        FAULTS.lock().unwrap().insert(format!("`{name}`"), Box::new(look));
        let letters = runtime.dead_letters().len();
        let outcome = match what {
            "loops" => kernel.send(&Deposit { amount: 4 }),
            _ => kernel.send(&Slow { turns: 1, place: 4 }),
        };
        outcome.unwrap();
        eventually("the fault", || kernel.state() == ActorState::Faulted);
        assert_eq!(runtime.dead_letters().len(), letters + 1);
        assert_eq!(*seen.lock().unwrap(), [ActorState::Active]);
        FAULTS.lock().unwrap().remove(&format!("`{name}`"));
    }
}

pub(crate) fn what_is_given_a_state_stays_where_it_is() {
    let runtime = runtime();
    let options = LaunchOptions::new(burst::handler());
    let payer = runtime.launch_blocking("payer", options.clone()).unwrap();
    let launch = |name: &str, options| runtime.launch_blocking(name, options).unwrap();
    let launched = launch("launched", options.clone().without_auto_activate());
    let deactivated = launch("deactivated", options);
    let faulted = launch("faulted", LaunchOptions::new(slow::handler()));
    block_on(deactivated.deactivate()).unwrap();
    faulted.send(&Slow { turns: 1, place: 4 }).unwrap();
    eventually("the fault", || faulted.state() == ActorState::Faulted);
    let states = [
        (launched, ActorState::Launched),
        (deactivated, ActorState::Deactivated),
        (faulted, ActorState::Faulted),
    ];
    for (kernel, life) in &states {
        // The first state, which is on the device, and another.
        for state in [
            Account::default(),
            Account {
                changes: 70,
                ..Account::default()
            },
            Account::default(),
        ] {
            kernel.write_state(state).unwrap();
            assert_eq!(
                (kernel.state(), kernel.read_state::<Account>().unwrap()),
                (*life, state)
            );
        }
        // Actors of its own engine reach it without the host.
        let burst = Burst {
            first: kernel.id().0,
            accounts: 1,
            at: 0,
        };
        payer.send(&burst).unwrap();
        block_on(runtime.idle());
        let state: Account = kernel.read_state().unwrap();
        assert_eq!((kernel.state(), state), (*life, Account::default()));
    }
    assert_eq!(payer.read_state::<Account>().unwrap().changes, 3);
    // What came to them has waited.
    let [(launched, _), (deactivated, _), _] = &states;
    for kernel in [launched, deactivated] {
        block_on(kernel.activate()).unwrap();
        block_on(runtime.idle());
        let state: Account = kernel.read_state().unwrap();
        assert_eq!((state.balance, state.changes), (8, 8));
    }
}

pub(crate) fn what_many_are_told_is_done_by_all_who_can() {
    use ActorState::{Active, Deactivated, Terminated};
    let runtime = runtime();
    let options = LaunchOptions::new(burst::handler()).with_actors(4);
    let all = runtime.launch_blocking("many", options).unwrap();
    block_on(async {
        let second = all.actor(1)?;
        second.deactivate().await?;
        let outcome = all.deactivate().await;
        match &outcome {
            Err(ActorError::Several {
                actors: 4, failed, ..
            }) if failed.len() == 1 => {}
            other => panic!("{other:?}"),
        }
        let error = outcome.unwrap_err().to_string();
        let expected = "1 of 4 actors of `many` could not, the others did: `many[1]` is Deactivated";
        assert!(error.starts_with(expected), "{error}");
        assert_eq!(all.states(), [Deactivated; 4]);
        all.activate().await?;
        all.wait_for(Active).await?;

        for i in 0..100 {
            all.actor(i % 4)?.send_when_room(&Deposit { amount: 1 }).await?;
        }
        runtime.idle().await;
        // A device counts a message behind its answer: the states are exact.
        for i in 0..4 {
            assert_eq!(all.actor(i)?.read_state::<Account>()?.balance, 25);
        }

        second.terminate().await?;
        assert_eq!(all.states(), [Active, Terminated, Active, Active]);
        let error = all.wait_for(Deactivated).await.unwrap_err().to_string();
        assert!(error.contains("`many[1]` is Terminated"), "{error}");
        all.terminate().await.unwrap_err();
        assert_eq!(all.states(), [Terminated; 4]);
        Ok::<(), ActorError>(())
    })
    .unwrap();
    assert!(runtime.shutdown_blocking().unwrap().drained);
}

pub(crate) fn an_actor_that_awaits_its_restart_comes_back_and_is_restarted() {
    let file = engines::file("perpetua-awaits");
    let first = runtime();
    let options = LaunchOptions::new(slow::handler()).with_supervision(Supervision::Restart {
        max: 3,
        backoff: Duration::from_millis(300),
    });
    let kernel = first.launch_blocking("awaits", options).unwrap();
    let bad = Slow { turns: 1, place: 4 };
    kernel.ask_blocking::<_, Balance>(&bad).unwrap_err();
    kernel.send(&Slow { place: 0, ..bad }).unwrap();
    first.checkpoint_blocking(&file).unwrap();
    drop((kernel, first));

    // Were this machine so slow that it was restarted before the checkpoint, the answer would be in that.
    let again = builder().build_blocking().unwrap();
    again.register(slow::handler());
    let restored = again.restore_blocking(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let balance: Balance = block_on(restored[0].receive()).unwrap();
    assert_eq!(balance.changes, 1);
}

pub(crate) fn what_waits_for_an_actor_that_ends_is_in_the_checkpoint() {
    const MESSAGES: usize = 40;
    let file = engines::file("perpetua-ends");
    // What was handled has given its answer out; the rest are letters.
    let outcome = |runtime: &PerpetuaRuntime, kernel: &KernelHandle| {
        assert_eq!(kernel.state(), ActorState::Terminated);
        let letters = runtime.dead_letters().counts();
        assert_eq!(letters.total(), letters.of(DeadReason::Terminated));
        let answers = std::iter::from_fn(|| kernel.try_receive::<Balance>().ok().flatten()).count();
        assert_eq!(answers as u64 + letters.total(), MESSAGES as u64);
        letters.total()
    };
    // Until one is caught between its end and its removal.
    for turn in 0..1000 {
        let first = runtime();
        let mut options = LaunchOptions::new(super::faults::counts::handler()).with_actors(2);
        // Threads and batches are caught while a handler runs; a device that has heard of messages handles them, but hears late of an end.
        if turn % 2 == 1 {
            options = options.without_auto_activate();
        }
        let both = first.launch_blocking("ends", options).unwrap();
        let ends = both.actor(0).unwrap();
        (0..MESSAGES).for_each(|_| ends.send(&Deposit { amount: 2000 }).unwrap());
        let mut end = std::pin::pin!(ends.terminate());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let caught = end.as_mut().poll(&mut context).is_pending();
        first.checkpoint_blocking(&file).unwrap();
        if caught {
            block_on(end).unwrap();
        }
        outcome(&first, &ends);

        let again = runtime();
        again.register(super::faults::counts::handler());
        let restored = again.restore_blocking(&file).unwrap().remove(0);
        std::fs::remove_file(&file).unwrap();
        let beside = both.actor(1).unwrap().state();
        assert_eq!(restored.actor(1).unwrap().state(), beside);
        if caught && outcome(&again, &restored.actor(0).unwrap()) > 0 {
            return;
        }
    }
    panic!("none of a thousand actors was caught");
}

pub(crate) fn a_shutdown_handles_what_was_sent() {
    let runtime = builder()
        .patience(Duration::from_secs(300))
        .build_blocking()
        .unwrap();
    let launch = |name: &str, options: LaunchOptions| {
        let options = options.with_handler(burst::handler());
        runtime.launch_blocking(name, options).unwrap()
    };
    let sinks = launch("sinks", LaunchOptions::default().with_actors(3));
    let sender = launch("sender", LaunchOptions::default());
    let sleeps = launch("sleeps", LaunchOptions::default().without_auto_activate());
    for turn in 0..30 {
        let burst = Burst {
            first: sinks.id().0,
            accounts: 3,
            at: 8 * turn,
        };
        block_on(sender.send_when_room(&burst)).unwrap();
    }
    for _ in 0..3 {
        sleeps.send(&Deposit { amount: 1 }).unwrap();
    }
    let asker = sleeps.clone();
    let asked = std::thread::spawn(move || asker.ask_blocking::<_, Balance>(&Deposit { amount: 1 }));
    eventually("the question waits", || sleeps.metrics().queue_depth == 4);

    let report = runtime.shutdown_blocking().unwrap();
    // What the host had sent, and what that sent on, is handled.
    assert!(report.drained);
    assert_eq!(sender.metrics().messages_processed, 30);
    assert_eq!(sinks.metrics().messages_processed, 240);
    // What could not be handled is told of, once.
    assert_eq!(report.dead_letters, 4);
    assert_eq!(runtime.dead_letters().counts().of(DeadReason::ShutDown), 4);
    let error = asked.join().unwrap().unwrap_err();
    assert!(matches!(error, ActorError::ShutDown), "{error}");
    // Nothing is taken any more.
    let late = sender.send(&Deposit { amount: 1 }).unwrap_err();
    assert!(matches!(late, ActorError::ShutDown), "{late}");
    assert_eq!(sleeps.state(), ActorState::Terminated);
    assert!(matches!(runtime.shutdown_blocking(), Err(ActorError::ShutDown)));
    let again = runtime.launch_blocking("late", LaunchOptions::new(burst::handler()));
    assert!(matches!(again, Err(ActorError::ShutDown)));
}

const KILLED: &str = "PERPETUA_PROMISES_KILLED";

/// What the killed process does: pays, and writes checkpoints one after the other.
fn pay_until_killed(folder: &std::path::Path) -> ! {
    let runtime = builder()
        .patience(Duration::from_secs(300))
        .build_blocking()
        .unwrap();
    let launch = |name: &str, actors| {
        let options = LaunchOptions::new(burst::handler())
            .with_actors(actors)
            .with_queue_capacity(32);
        runtime.launch_blocking(name, options).unwrap()
    };
    let (sinks, senders) = (
        launch("sinks", super::load::SINKS),
        launch("senders", super::load::SENDERS),
    );
    std::thread::scope(|scope| {
        for i in 0..super::load::SENDERS {
            let (sender, first) = (senders.actor(i).unwrap(), sinks.id().0);
            scope.spawn(move || {
                for turn in 0.. {
                    let burst = Burst {
                        first,
                        accounts: super::load::SINKS,
                        at: turn,
                    };
                    block_on(sender.send_when_room(&burst)).unwrap();
                }
            });
        }
        loop {
            runtime.checkpoint_blocking(folder.join("checkpoint")).unwrap();
        }
    })
}

pub(crate) fn a_killed_process_goes_on_from_its_last_checkpoint() {
    if let Some(folder) = std::env::var_os(KILLED) {
        pay_until_killed(folder.as_ref());
    }
    let folder = engines::file("perpetua-killed");
    std::fs::create_dir_all(&folder).unwrap();
    let name = format!(
        "a_killed_process_goes_on_from_its_last_checkpoint ({})",
        engines::name()
    );
    for times in 0..3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name])
            .env(KILLED, &folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let file = folder.join("checkpoint");
        eventually("a checkpoint", || file.exists());
        std::thread::sleep(Duration::from_millis(20 + 30 * times));
        // SIGKILL, in the midst of a write more often than not.
        child.kill().unwrap();
        child.wait().unwrap();

        // What is there is whole: of each burst all payments, or none.
        let again = builder()
            .patience(Duration::from_secs(300))
            .build_blocking()
            .unwrap();
        again.register(burst::handler());
        let restored = again.restore_blocking(&file).unwrap();
        let (paid, done) = totals(&again, &restored[1], &restored[0]);
        assert_eq!(paid, 8 * done);
        assert_eq!(again.dead_letters().counts().total(), 0);
        std::fs::remove_file(&file).unwrap();
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
