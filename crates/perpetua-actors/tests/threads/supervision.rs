//! What becomes of faulted actors.

use std::time::Duration;

use perpetua_actors::ActorState::*;
use perpetua_actors::{ActorError, LaunchOptions, OnFault, Supervision};

use crate::faults::without_place;
use crate::handlers::*;
use crate::{eventually, launch, runtime, tally};

#[test]
fn it_restarts_and_ends_after_too_many_faults() {
    let runtime = runtime();
    let restart = Supervision::Restart {
        max: 2,
        backoff: Duration::from_millis(1),
    };
    let kernel = launch(
        &runtime,
        "restarts",
        LaunchOptions::default()
            .with_supervision(restart)
            .with_on_fault(OnFault::Restart),
    );
    for number in 0..2 {
        kernel.send(&Boom { number, micros: 0 }).expect("there is room");
        eventually("it faulted", || {
            runtime.dead_letters().counts().total() == u64::from(number) + 1
        });
        eventually("it is active again", || kernel.state() == Active);
        let total: Total = kernel.ask_blocking(&Add::default()).expect("it answers");
        assert_eq!(total.count, 1, "the state is the first again");
    }
    kernel
        .send(&Boom { number: 2, micros: 0 })
        .expect("there is room");
    eventually("it is terminated", || kernel.state() == Terminated);
    eventually("its name is free", || runtime.find("restarts").is_err());
}

#[test]
fn it_stops() {
    let runtime = runtime();
    let kernel = launch(
        &runtime,
        "stops",
        LaunchOptions::default().with_supervision(Supervision::Stop),
    );
    kernel
        .send(&Boom { number: 1, micros: 0 })
        .expect("there is room");
    eventually("it is terminated", || kernel.state() == Terminated);
}

#[test]
fn a_supervisor_faults_with_its_own() {
    let runtime = runtime();
    let restart = Supervision::Restart {
        max: 1,
        backoff: Duration::from_millis(1),
    };
    let above = launch(
        &runtime,
        "above",
        LaunchOptions::default()
            .with_supervision(restart)
            .with_on_fault(OnFault::Restart),
    );
    let _: Total = above.ask_blocking(&Add::default()).expect("it answers");
    let options = LaunchOptions::default().with_supervision(Supervision::Escalate);
    let below = launch(&runtime, "below", options.with_supervisor(above.id()));
    below.send(&Boom { number: 3, micros: 0 }).expect("there is room");
    eventually("the supervisor has begun again", || {
        above.last_fault().is_some() && above.state() == Active
    });
    let fault = above.last_fault().expect("it faulted");
    assert_eq!(without_place(&fault), "`below` faulted: boom 3");
    assert_eq!(below.state(), Faulted);
    let total: Total = above.ask_blocking(&Add::default()).expect("it answers");
    assert_eq!(total.count, 1);
}

#[test]
fn a_fault_that_nobody_is_above_stops_all() {
    let runtime = runtime();
    let other = tally(&runtime, "bystander");
    let options = LaunchOptions::default().with_supervision(Supervision::Escalate);
    let kernel = launch(&runtime, "root", options);
    kernel
        .send(&Boom { number: 4, micros: 0 })
        .expect("there is room");
    eventually("all stand still", || other.state() == Deactivated);
    let failure = runtime.failure().expect("it failed");
    assert_eq!(without_place(&failure), "`root` faulted: boom 4");
    let error = other.send(&Note::default()).expect_err("it has failed");
    assert!(matches!(error, ActorError::Faulted { .. }), "{error}");
    assert!(runtime.shutdown_blocking().is_ok());
}
