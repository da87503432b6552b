//! Sending, asking, receiving; order, priorities, deadlines, back-pressure.

use std::time::{Duration, Instant};

use perpetua_actors::DeadReason;
use perpetua_actors::message::priority;
use perpetua_actors::{ActorError, LaunchOptions, PerpetuaRuntime, SendOptions};
use perpetua_device::future::block_on;

use crate::handlers::*;
use crate::{eventually, launch, runtime, tally};

fn note(sequence: u32) -> Note {
    Note {
        amount: 1,
        source: 0,
        sequence,
    }
}

#[test]
fn an_ask_is_answered_whoever_runs_the_actor() {
    let runtime = runtime();
    let kernel = tally(&runtime, "answers");
    for i in 1..=1000 {
        let total: Total = match i % 2 {
            0 => kernel.ask_blocking(&Add::default()),
            _ => block_on(kernel.ask(&Add::default())),
        }
        .expect("it answers");
        assert_eq!(total.count, i);
    }
}

#[test]
fn four_threads_ask_at_once() {
    let runtime = runtime();
    let kernel = tally(&runtime, "asked");
    std::thread::scope(|scope| {
        for source in 0..4 {
            let kernel = &kernel;
            scope.spawn(move || {
                for sequence in 0..2000 {
                    let add = Add {
                        amount: 1,
                        source,
                        sequence,
                    };
                    let _: Total = kernel.ask_blocking(&add).expect("it answers");
                }
            });
        }
    });
    let state: Tally = kernel.read_state().expect("a tally");
    assert_eq!((state.count, state.sum, state.disorder), (8000, 8000, 0));
}

#[test]
fn an_ask_times_out_and_its_late_answer_harms_nobody() {
    let runtime = runtime();
    let kernel = tally(&runtime, "slow");
    let slow = Sleep { micros: 50_000 };
    let began = Instant::now();
    let error = block_on(kernel.ask_timeout::<_, Total>(&slow, Duration::from_millis(5)));
    assert!(matches!(error, Err(ActorError::Timeout { .. })), "{error:?}");
    assert!(
        began.elapsed() < Duration::from_millis(40),
        "{:?}",
        began.elapsed()
    );
    let error = kernel.ask_blocking_timeout::<_, Total>(&slow, Duration::from_millis(5));
    assert!(matches!(error, Err(ActorError::Timeout { .. })), "{error:?}");
    let total: Total = kernel.ask_blocking(&Add::default()).expect("it answers");
    assert_eq!(total.count, 3);
}

#[test]
fn what_nobody_can_answer_is_told_at_once() {
    let runtime = runtime();
    let kernel = tally(&runtime, "mute");
    let error = kernel.ask_blocking::<_, Total>(&note(0)).expect_err("no reply");
    assert!(matches!(error, ActorError::NoReply { .. }), "{error}");
    let error = kernel
        .ask_blocking::<_, Total>(&Who::default())
        .expect_err("another type");
    assert!(
        matches!(
            error,
            ActorError::WrongReply {
                expected: "Total",
                ..
            }
        ),
        "{error}"
    );
    let error = kernel.send(&Foreign::default()).expect_err("it is foreign");
    let text = error.to_string();
    assert!(
        text.contains("Foreign (id 10)") && text.contains("it takes Add, Note"),
        "{text}"
    );
}

#[test]
fn replies_to_sends_are_received_in_order() {
    let runtime = runtime();
    let kernel = tally(&runtime, "replies");
    for sequence in 0..100 {
        let add = Add {
            amount: 1,
            source: 0,
            sequence,
        };
        kernel.send(&add).expect("there is room");
    }
    for i in 1..=50 {
        let total: Total = block_on(kernel.receive()).expect("it replies");
        assert_eq!(total.count, i);
    }
    for i in 51..=100 {
        let total: Total = kernel
            .receive_blocking(Duration::from_secs(5))
            .expect("it replies");
        assert_eq!(total.count, i);
    }
    assert_eq!(kernel.try_receive::<Total>().expect("none is no error"), None);
    let late = kernel.receive_blocking::<Total>(Duration::from_millis(5));
    assert!(matches!(late, Err(ActorError::Timeout { .. })));
}

#[test]
fn outputs_are_a_stream_that_ends() {
    use futures_core::Stream;
    let runtime = runtime();
    let kernel = tally(&runtime, "streams");
    for _ in 0..3 {
        kernel.send(&Report::default()).expect("there is room");
    }
    eventually("all are handled", || kernel.metrics().messages_processed == 3);
    block_on(kernel.terminate()).expect("it is active");
    let mut stream = kernel.outputs();
    let mut counts = Vec::new();
    while let Some(received) = block_on(std::future::poll_fn(|cx| {
        std::pin::Pin::new(&mut stream).poll_next(cx)
    })) {
        assert_eq!(received.sender(), kernel.id());
        counts.push(received.get::<Total>().expect("a total").count);
    }
    assert_eq!(counts, [1, 2, 3]);
    let gone = block_on(kernel.receive::<Total>());
    assert!(matches!(gone, Err(ActorError::Terminated { .. })), "{gone:?}");
}

#[test]
fn one_ask_may_have_many_replies() {
    let runtime = runtime();
    let kernel = tally(&runtime, "bursts");
    let first: Total = kernel.ask_blocking(&Burst { replies: 5 }).expect("it answers");
    assert_eq!(first.count, 1);
    for i in 2..=5 {
        let next: Total = block_on(kernel.receive()).expect("it replies");
        assert_eq!(next.count, i);
    }
    // What the outbox does not hold is counted.
    let _: Total = kernel.ask_blocking(&Burst { replies: 10 }).expect("it answers");
    eventually("the refused are counted", || {
        kernel.metrics().messages_dropped == 2
    });
}

#[test]
fn a_full_mailbox_pushes_back_and_loses_nothing() {
    let runtime = runtime();
    let options = LaunchOptions::default()
        .with_queue_capacity(8)
        .without_auto_activate();
    let kernel = launch(&runtime, "full", options);
    for sequence in 0..8 {
        kernel.send(&note(sequence)).expect("there is room");
    }
    let error = kernel.send(&note(8)).expect_err("there is no room");
    assert!(matches!(error, ActorError::Full { capacity: 8, .. }), "{error}");
    let error = kernel
        .ask_blocking::<_, Total>(&Add::default())
        .expect_err("there is no room");
    assert!(matches!(error, ActorError::Full { .. }), "{error}");
    block_on(kernel.activate()).expect("it is launched");
    for sequence in 8..1000 {
        block_on(kernel.send_when_room(&note(sequence))).expect("room comes");
    }
    eventually("all are handled", || kernel.metrics().messages_processed == 1000);
    let state: Tally = kernel.read_state().expect("a tally");
    assert_eq!((state.count, state.disorder), (1000, 0));
}

#[test]
fn a_slow_consumer_holds_the_actor_back() {
    let runtime = runtime();
    let kernel = launch(&runtime, "held", LaunchOptions::default().with_queue_capacity(4));
    let mut accepted = 0u32;
    let mut received = 0u32;
    // Mailbox, outputs and one on its way are full before long.
    while accepted < 1000 {
        if kernel.send(&Report::default()).is_ok() {
            accepted += 1;
        } else if let Some(total) = kernel.try_receive::<Total>().expect("it lives") {
            received += 1;
            assert_eq!(total.count, received);
        }
    }
    while received < accepted {
        let total: Total = kernel.receive_blocking(Duration::from_secs(5)).expect("it sends");
        received += 1;
        assert_eq!(total.count, received);
    }
    assert_eq!(runtime.dead_letters().counts().total(), 0);
}

#[test]
fn what_nobody_receives_is_reported_in_the_end() {
    let runtime = runtime();
    let kernel = launch(
        &runtime,
        "unread",
        LaunchOptions::default().with_queue_capacity(2),
    );
    for _ in 0..3 {
        block_on(kernel.send_when_room(&Report::default())).expect("room comes");
    }
    eventually("the third is given up", || {
        runtime.dead_letters().counts().total() == 1
    });
    assert_eq!(runtime.dead_letters().letters()[0].reason, DeadReason::Full);
}

#[test]
fn a_sender_that_is_run_all_the_time_is_given_up_too() {
    let runtime = PerpetuaRuntime::builder()
        .threads(2)
        .patience(Duration::from_millis(1))
        .build_blocking()
        .expect("threads start");
    let full = LaunchOptions::default().with_queue_capacity(2);
    let full = launch(&runtime, "full", full.without_auto_activate());
    let sender = tally(&runtime, "sender");
    for _ in 0..2 {
        full.send(&note(0)).expect("there is room");
    }
    for letters in 1..=100 {
        let forward = Forward {
            to: full.id().0,
            ..Forward::default()
        };
        sender.send(&forward).expect("there is room");
        // Whoever gives it up may find it running.
        eventually("the letter", || {
            block_on(sender.deactivate()).expect("it is active");
            block_on(sender.activate()).expect("it is deactivated");
            runtime.dead_letters().counts().of(DeadReason::Full) == letters
        });
    }
}

#[test]
fn higher_priorities_go_first() {
    let runtime = runtime();
    let kernel = launch(
        &runtime,
        "orders",
        LaunchOptions::default().without_auto_activate(),
    );
    let order = [
        (priority::LOW, 30),
        (priority::NORMAL, 20),
        (priority::CRITICAL, 0),
        (priority::HIGH, 10),
        (priority::NORMAL, 21),
        (priority::HIGH, 11),
    ];
    for (priority, sequence) in order {
        let options = SendOptions {
            priority: Some(priority),
            ..SendOptions::default()
        };
        kernel.send_with(&note(sequence), options).expect("there is room");
    }
    block_on(kernel.activate()).expect("it is launched");
    eventually("all are handled", || kernel.metrics().messages_processed == 6);
    assert_eq!(kernel.read_state::<Tally>().expect("a tally").disorder, 0);
}

#[test]
fn expired_messages_become_dead_letters() {
    let runtime = runtime();
    let options = LaunchOptions::default().with_deadline(Duration::from_millis(5));
    let kernel = launch(&runtime, "late", options.without_auto_activate());
    kernel.send(&note(0)).expect("there is room");
    let patient = SendOptions {
        deadline: Some(Duration::from_secs(60)),
        ..SendOptions::default()
    };
    kernel.send_with(&note(1), patient).expect("there is room");
    std::thread::sleep(Duration::from_millis(20));
    block_on(kernel.activate()).expect("it is launched");
    eventually("one is handled", || kernel.metrics().messages_processed == 1);
    let letters = runtime.dead_letters().letters();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].reason, DeadReason::Expired);
    assert_eq!(letters[0].packet.payload[2], 0);
}

#[test]
fn actors_send_to_each_other() {
    let runtime = runtime();
    let receiver = launch(
        &runtime,
        "receiver",
        LaunchOptions::default().with_queue_capacity(4),
    );
    let senders = launch(&runtime, "senders", LaunchOptions::default().with_actors(4));
    for sequence in 0..500 {
        for source in 0..4 {
            let forward = Forward {
                to: receiver.id().0,
                amount: 2,
                source,
                sequence,
            };
            let sender = senders.actor(source).expect("there are four");
            block_on(sender.send_when_room(&forward)).expect("room comes");
        }
    }
    eventually("all arrive", || receiver.metrics().messages_processed == 2000);
    let state: Tally = receiver.read_state().expect("a tally");
    assert_eq!((state.count, state.sum, state.disorder), (2000, 4000, 0));
    assert_eq!(runtime.dead_letters().counts().total(), 0);
    // To nobody.
    let lost = Forward {
        to: 1_000_000,
        ..Forward::default()
    };
    senders.send(&lost).expect("there is room");
    eventually("it is reported", || runtime.dead_letters().counts().total() == 1);
    assert_eq!(runtime.dead_letters().letters()[0].reason, DeadReason::Unknown);
}

#[test]
fn a_circle_of_full_mailboxes_ends() {
    let runtime = runtime();
    let options = || {
        LaunchOptions::default()
            .with_queue_capacity(2)
            .without_auto_activate()
    };
    let one = launch(&runtime, "one", options());
    let other = launch(&runtime, "other", options());
    let forward = |to: u32| Forward {
        to,
        ..Forward::default()
    };
    for _ in 0..2 {
        one.send(&forward(other.id().0)).expect("there is room");
        other.send(&forward(one.id().0)).expect("there is room");
    }
    block_on(one.activate()).expect("it is launched");
    block_on(other.activate()).expect("it is launched");
    eventually("each message is handled or reported", || {
        let handled = one.metrics().messages_processed + other.metrics().messages_processed;
        handled + runtime.dead_letters().counts().total() == 8
    });
}

#[test]
fn handles_work_on_tokio() {
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("threads start");
    let runtime = runtime();
    let kernel = tally(&runtime, "awaited");
    executor.block_on(async {
        let tasks: Vec<_> = (0..16)
            .map(|_| {
                let kernel = kernel.clone();
                tokio::spawn(async move {
                    for _ in 0..100 {
                        let _: Total = kernel.ask(&Add::default()).await.expect("it answers");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic");
        }
        let nothing = tokio::time::timeout(Duration::from_millis(5), kernel.receive::<Total>()).await;
        assert!(nothing.is_err(), "nobody has sent anything");
        kernel.send(&Report::default()).expect("there is room");
        let total: Total = kernel.receive().await.expect("it reports");
        assert_eq!(total.count, 1601);
        kernel.deactivate().await.expect("it is active");
        let late = kernel
            .ask_timeout::<_, Total>(&Add::default(), Duration::from_millis(5))
            .await;
        assert!(matches!(late, Err(ActorError::Timeout { .. })));
        assert!(runtime.shutdown().await.is_ok());
    });
}

#[test]
fn ticks_come_while_the_actor_is_active() {
    let runtime = runtime();
    let kernel = launch(
        &runtime,
        "ticks",
        LaunchOptions::default().with_tick(Duration::from_millis(2)),
    );
    let ticks = || kernel.read_state::<Tally>().expect("a tally").ticks;
    eventually("five ticks", || ticks() >= 5);
    block_on(kernel.deactivate()).expect("it is active");
    let then = ticks();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(ticks(), then);
    assert_eq!(kernel.metrics().queue_depth, 0);
}
