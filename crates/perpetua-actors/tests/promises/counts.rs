//! Counters mean the same everywhere; what finds no place and what comes too late is told.

use std::time::Duration;

use perpetua::actors::{ActorError, DeadReason, KernelHandle, LaunchOptions, PerpetuaRuntime, Topic};
use perpetua::device::future::block_on;

use super::handlers::*;
use super::{eventually, runtime};

fn launch(runtime: &PerpetuaRuntime, name: &str) -> KernelHandle {
    let options = LaunchOptions::new(flood::handler());
    runtime.launch_blocking(name, options).unwrap()
}

pub(crate) fn counters_count_what_took_effect() {
    let runtime = runtime();
    let topic = runtime.pubsub().number(&Topic::new("paid")).unwrap();
    let (payer, paid) = (launch(&runtime, "payer"), launch(&runtime, "paid"));
    let pay = Pay {
        to: paid.id().0,
        topic,
        amount: 1,
        place: 0,
    };
    for _ in 0..3 {
        let _: Balance = payer.ask_blocking(&pay).unwrap();
    }
    payer
        .ask_blocking::<_, Balance>(&Pay { place: 4, ..pay })
        .unwrap_err();
    // To the other, to the host, to the topic, and the answer. Devices count behind the answer.
    eventually("all is counted", || payer.metrics().messages_sent == 12);
    block_on(runtime.idle());
    let metrics = payer.metrics();
    assert_eq!(metrics.messages_processed, 3);
    assert_eq!(metrics.messages_sent, 12);
    assert_eq!(metrics.messages_dropped, 0);
    assert_eq!(metrics.errors_encountered, 1);
    let other = paid.metrics();
    assert_eq!((other.messages_processed, other.messages_sent), (3, 0));
}

pub(crate) fn a_full_outbox_is_told_and_counted() {
    let runtime = runtime();
    let (floods, paid) = (launch(&runtime, "floods"), launch(&runtime, "paid"));
    let answer: Balance = floods.ask_blocking(&Flood { to: paid.id().0 }).unwrap();
    assert_eq!(answer.amount, 8);
    eventually("the others are counted", || {
        floods.metrics().messages_dropped == 12
    });
    eventually("eight come", || paid.metrics().messages_processed == 8);
    assert_eq!(floods.metrics().messages_sent, 9);
    assert_eq!(paid.read_state::<Account>().unwrap().balance, 28);
    assert_eq!(runtime.dead_letters().counts().total(), 0);
}

pub(crate) fn an_answer_that_comes_too_late_is_a_dead_letter() {
    let runtime = runtime();
    let kernel = launch(&runtime, "slow");
    block_on(kernel.deactivate()).unwrap();
    let question = Flood { to: u32::MAX - 1 };
    let late = kernel.ask_blocking_timeout::<_, Balance>(&question, Duration::from_millis(5));
    assert!(matches!(late, Err(ActorError::Timeout { .. })), "{late:?}");
    block_on(kernel.activate()).unwrap();
    eventually("the answer", || {
        runtime.dead_letters().counts().of(DeadReason::Late) == 1
    });
    assert_eq!(kernel.try_receive::<Balance>().unwrap(), None);
    // To nobody: each is told.
    eventually("what it sent", || {
        runtime.dead_letters().counts().of(DeadReason::Unknown) == 8
    });
}
