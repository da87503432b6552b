//! From launch to shutdown, and what is refused on the way.

use std::time::Duration;

use perpetua_actors::ActorState::{self, *};
use perpetua_actors::echo::Echo;
use perpetua_actors::runtime::RuntimeBuilder;
use perpetua_actors::{ActorError, Backend, CpuRuntime, LaunchOptions, PerpetuaRuntime, RingKernel, message};
use perpetua_device::Device;
use perpetua_device::future::block_on;

use crate::handlers::{self, *};
use crate::{eventually, launch, runtime, tally};

#[test]
fn the_first_example_runs() {
    let run = async {
        let runtime = RingKernel::builder().backend(Backend::Cpu).build().await?;
        runtime.register(handlers::tally());
        let kernel = runtime.launch("tally", LaunchOptions::default()).await?;
        assert_eq!(kernel.state(), Active);
        kernel.deactivate().await?;
        assert_eq!(kernel.state(), Deactivated);
        kernel.activate().await?;
        kernel.terminate().await?;
        assert_eq!(kernel.state(), Terminated);
        runtime.shutdown().await
    };
    let report = block_on(run).expect("each step is legal");
    assert!(report.drained);
    assert_eq!(report.dead_letters, 0);
}

#[test]
fn the_backend_says_whether_handlers_stay() {
    let runtime = block_on(CpuRuntime::new()).expect("threads start");
    assert_eq!(runtime.backend().kind, Backend::Cpu);
    assert!(runtime.backend().stays());
}

#[test]
fn devices_that_cannot_are_refused_by_name() {
    let refused = |builder: RuntimeBuilder| {
        let built = builder.build_blocking().map(drop);
        built.expect_err("no actor can run there").to_string()
    };
    let null = || PerpetuaRuntime::builder().backend(Backend::Null);
    for error in [
        refused(null()),
        refused(null().in_batches()),
        refused(null().resident()),
    ] {
        assert!(error.contains("it runs no kernels"), "{error}");
    }
    if let Err(missing) = Device::new(Backend::Cuda, 0) {
        let error = refused(PerpetuaRuntime::builder().backend(Backend::Cuda));
        assert_eq!(error, missing.to_string());
    }
}

#[test]
fn illegal_moves_are_refused_by_name() {
    let runtime = runtime();
    let options = LaunchOptions::default().without_auto_activate();
    let kernel = launch(&runtime, "worker", options);
    let check = |result: Result<(), ActorError>, expect: &str| {
        let error = result.expect_err(expect).to_string();
        assert!(error.starts_with(expect), "{error}");
    };
    assert_eq!(kernel.state(), Launched);
    check(
        block_on(kernel.deactivate()),
        "`worker` is Launched: it cannot become Deactivated",
    );
    block_on(kernel.activate()).expect("it is launched");
    check(
        block_on(kernel.activate()),
        "`worker` is Active: it cannot become Active",
    );
    block_on(kernel.terminate()).expect("it is active");
    for result in [
        block_on(kernel.terminate()),
        block_on(kernel.activate()),
        block_on(kernel.restart()),
    ] {
        check(result, "`worker` is Terminated: it cannot become ");
    }
}

#[test]
fn a_capacity_that_is_no_power_of_two_is_refused() {
    let runtime = runtime();
    for (capacity, ok) in [
        (0, false),
        (1, false),
        (2, true),
        (100, false),
        (4096, true),
        (1 << 25, false),
    ] {
        let options = LaunchOptions::new(handlers::tally()).with_queue_capacity(capacity);
        let launched = runtime.launch_blocking(&format!("of {capacity}"), options);
        match launched {
            Ok(_) => assert!(ok, "{capacity}"),
            Err(ActorError::Capacity { capacity: named }) => assert!(!ok && named == capacity),
            Err(other) => panic!("{capacity}: {other}"),
        }
    }
}

#[test]
fn names_are_taken_once_and_free_after_termination() {
    let runtime = runtime();
    let first = tally(&runtime, "only");
    let second = runtime.launch_blocking("only", LaunchOptions::new(handlers::tally()));
    assert!(matches!(second, Err(ActorError::NameTaken { .. })));
    assert_eq!(runtime.find("only").expect("it is there").id(), first.id());
    block_on(first.terminate()).expect("it is active");
    assert!(matches!(
        runtime.find("only"),
        Err(ActorError::NoSuchActor { .. })
    ));
    let third = tally(&runtime, "only");
    assert_ne!(third.id(), first.id());
}

#[test]
fn without_a_handler_an_actor_gives_back_what_it_gets() {
    let runtime = runtime();
    let kernel = runtime
        .launch_blocking("processor", LaunchOptions::default())
        .expect("it echoes");
    let words = std::array::from_fn(|i| i as u32);
    let back: Echo = kernel.ask_blocking(&Echo { words }).expect("it answers");
    assert_eq!(back.words, words);
    assert_eq!(kernel.read_state::<u64>().expect("a count"), 1);
}

#[test]
fn a_state_must_be_the_handlers_own() {
    let runtime = runtime();
    let options = LaunchOptions::new(handlers::tally()).with_state(7u32);
    let error = runtime.launch_blocking("wrong", options).expect_err("no tally");
    assert!(matches!(error, ActorError::State { .. }), "{error}");
    let begin = Tally {
        count: 41,
        ..Tally::default()
    };
    let kernel = launch(&runtime, "right", LaunchOptions::default().with_state(begin));
    let total: Total = kernel.ask_blocking(&Add::default()).expect("it answers");
    assert_eq!(total.count, 42);
    assert_eq!(kernel.read_state::<Tally>().expect("it is one").count, 42);
    assert!(matches!(
        kernel.read_state::<u32>(),
        Err(ActorError::State { .. })
    ));
}

#[test]
fn messages_wait_while_the_actor_does_not_run() {
    let runtime = runtime();
    let kernel = launch(
        &runtime,
        "waits",
        LaunchOptions::default().without_auto_activate(),
    );
    for sequence in 0..10 {
        let note = Note {
            amount: 1,
            source: 0,
            sequence,
        };
        kernel.send(&note).expect("there is room");
    }
    assert_eq!(kernel.metrics().queue_depth, 10);
    assert_eq!(kernel.read_state::<Tally>().expect("a tally").count, 0);
    block_on(kernel.activate()).expect("it is launched");
    eventually("all are handled", || kernel.metrics().messages_processed == 10);
    block_on(kernel.deactivate()).expect("it is active");
    kernel.send(&Note::default()).expect("there is room");
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(kernel.metrics().messages_processed, 10);
}

#[test]
fn many_actors_of_one_launch_have_states_of_their_own() {
    let runtime = runtime();
    let all = launch(&runtime, "many", LaunchOptions::default().with_actors(1000));
    assert_eq!(all.actors(), 1000);
    for i in 0..1000 {
        let one = all.actor(i).expect("there are 1000");
        let amount = i;
        let add = Add {
            amount,
            ..Add::default()
        };
        let total: Total = one.ask_blocking(&add).expect("it answers");
        assert_eq!((total.count, total.sum), (1, i));
        let identity: Identity = one.ask_blocking(&Who::default()).expect("it answers");
        assert_eq!(identity.actor, all.id().0 + i);
        assert_eq!(identity.sender, message::ActorId::HOST.0);
    }
    assert_eq!(all.metrics().messages_processed, 2000);
    assert!(all.actor(1000).is_err());
    let seventeenth = all.actor(17).expect("there are 1000");
    block_on(seventeenth.terminate()).expect("it is active");
    let error = seventeenth.send(&Note::default()).expect_err("it is gone");
    assert!(
        error.to_string().starts_with("`many[17]` is terminated"),
        "{error}"
    );
    assert_eq!(all.actor(18).expect("there are 1000").state(), ActorState::Active);
}

#[test]
fn a_shutdown_drains_full_queues() {
    let runtime = runtime();
    let kernels: Vec<_> = (0..4)
        .map(|i| {
            launch(
                &runtime,
                &format!("k{i}"),
                LaunchOptions::default().with_queue_capacity(256),
            )
        })
        .collect();
    // Each sends on to the next, whose mailbox is full, too; the last to none: in a circle nobody could wait.
    for pair in kernels.windows(2) {
        let forward = Forward {
            to: pair[1].id().0,
            ..Forward::default()
        };
        while pair[0].send(&forward).is_ok() {}
    }
    while kernels[3].send(&Note::default()).is_ok() {}
    let report = runtime.shutdown_blocking().expect("it was open");
    assert!(report.drained);
    assert_eq!(report.dead_letters, 0);
    let late = kernels[0].send(&Note::default()).expect_err("it is shut down");
    assert!(matches!(late, ActorError::ShutDown), "{late}");
    assert!(matches!(runtime.shutdown_blocking(), Err(ActorError::ShutDown)));
    let again = runtime.launch_blocking("late", LaunchOptions::new(handlers::tally()));
    assert!(matches!(again, Err(ActorError::ShutDown)));
}

#[test]
fn what_was_done_is_known_after_the_end() {
    let runtime = runtime();
    let many = launch(&runtime, "many", LaunchOptions::default().with_actors(50_000));
    let one = tally(&runtime, "one");
    for actor in [0, 1, 49_999] {
        let actor = many.actor(actor).expect("it is launched");
        actor.send(&Add::default()).expect("there is room");
    }
    let _: Total = one.ask_blocking(&Add::default()).expect("it answers");
    block_on(one.terminate()).expect("it is active");
    assert_eq!(one.metrics().messages_processed, 1);
    // Its name is free.
    let again = tally(&runtime, "one");
    assert_eq!(again.metrics().messages_processed, 0);
    runtime.shutdown_blocking().expect("it was open");
    assert_eq!(many.metrics().messages_processed, 3);
    assert_eq!(again.metrics().messages_processed, 0);
}

#[test]
fn what_a_shutdown_cannot_drain_is_reported() {
    let runtime = runtime();
    let kernel = launch(
        &runtime,
        "sleeps",
        LaunchOptions::default().without_auto_activate(),
    );
    for _ in 0..5 {
        kernel.send(&Note::default()).expect("there is room");
    }
    let report = runtime.shutdown_blocking().expect("it was open");
    assert_eq!(report.dead_letters, 5);
    assert_eq!(runtime.dead_letters().letters().len(), 5);
}

#[test]
fn a_runtime_that_is_dropped_ends_its_threads() {
    let kernel = {
        let runtime = PerpetuaRuntime::builder()
            .threads(2)
            .build_blocking()
            .expect("threads start");
        tally(&runtime, "stays")
    };
    // The handle keeps it alive.
    let total: Total = kernel.ask_blocking(&Add::default()).expect("it answers");
    assert_eq!(total.count, 1);
    drop(kernel);
}

#[test]
fn one_call_tells_how_an_actor_is() {
    let runtime = runtime();
    let kernel = tally(&runtime, "asked");
    let before = kernel.status();
    let _: Total = kernel
        .ask_blocking(&Add {
            amount: 4,
            ..Add::default()
        })
        .expect("it answers");
    eventually("the message is counted", || {
        kernel.status().metrics.messages_processed == 1
    });
    let after = kernel.status();
    assert_eq!(
        (after.id, after.name.as_str(), after.state),
        (kernel.id(), "asked", Active)
    );
    assert!(
        after.uptime > before.uptime,
        "{:?} after {:?}",
        after.uptime,
        before.uptime
    );
    assert_eq!((after.metrics.queue_depth, after.last_fault), (0, None));
    let block = kernel.control_block();
    assert_eq!(
        (block.messages_processed, block.is_active, block.should_terminate),
        (1, 1, 0)
    );
    assert_eq!(block.input_capacity, after.queue_capacity as u64);
    runtime.shutdown_blocking().expect("it ends");
    let block = kernel.control_block();
    assert_eq!(
        (block.is_active, block.should_terminate, block.has_terminated),
        (0, 1, 1)
    );
}

#[test]
fn a_capacity_holds_what_comes_while_an_actor_is_busy() {
    let runtime = runtime();
    let capacity = |rate, busy| {
        let options = LaunchOptions::default().with_queue_for(rate, Duration::from_millis(busy));
        let launched =
            runtime.launch_blocking(&format!("{rate}-{busy}"), options.with_handler(handlers::tally()));
        launched.map(|kernel| kernel.status().queue_capacity)
    };
    for (rate, busy, expected) in [
        (0, 0, 16),
        (10_000, 100, 1024),
        (10_250, 100, 2048),
        (16, 1000, 16),
    ] {
        assert_eq!(
            capacity(rate, busy).expect("it launches"),
            expected,
            "{rate} a second, {busy} ms"
        );
    }
    for rate in [1 << 40, u64::MAX] {
        let refused = capacity(rate, 1000);
        assert!(matches!(refused, Err(ActorError::Capacity { .. })), "{refused:?}");
    }
}
