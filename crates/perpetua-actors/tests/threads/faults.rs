//! Handlers that fault or do not return: the actor is isolated, its message reported, the others live on.

use std::process::Command;
use std::time::{Duration, Instant};

use perpetua_actors::ActorState::*;
use perpetua_actors::DeadReason;
use perpetua_actors::{ActorError, LaunchOptions, RingMessage};
use perpetua_device::future::block_on;

use crate::handlers::*;
use crate::{eventually, launch, runtime, tally};

/// A fault's text without where the handler panicked, which it tells unless `RUST_BACKTRACE` lets the panic tell that itself.
pub(crate) fn without_place(text: &str) -> String {
    let Some((before, place)) = text.split_once(", at ") else {
        return text.to_owned();
    };
    let after = place
        .split_once(';')
        .map_or(String::new(), |(_, after)| format!(";{after}"));
    format!("{before}{after}")
}

#[test]
fn a_fault_is_reported_with_its_message_and_harms_nobody_else() {
    let runtime = runtime();
    let kernel = tally(&runtime, "faulty");
    let other = tally(&runtime, "healthy");
    let error = kernel
        .ask_blocking::<_, Total>(&Boom { number: 7, micros: 0 })
        .expect_err("it panics");
    assert_eq!(
        without_place(&error.to_string()),
        "the handler of `faulty` faulted: boom 7; restart, restore or terminate the actor"
    );
    assert_eq!(kernel.state(), Faulted);
    let fault = kernel.last_fault().expect("it faulted");
    assert_eq!(without_place(&fault), "boom 7");
    assert_eq!(kernel.metrics().errors_encountered, 1);
    let letters = runtime.dead_letters().letters();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].reason, DeadReason::Faulted);
    assert_eq!(letters[0].packet.header.type_id, Boom::TYPE_ID);
    // Messages wait meanwhile.
    kernel.send(&Note::default()).expect("there is room");
    let total: Total = other.ask_blocking(&Add::default()).expect("it answers");
    assert_eq!(total.count, 1);
    assert_eq!(kernel.metrics().messages_processed, 0);
    // The state is new; what waited is handled.
    block_on(kernel.restart()).expect("it is faulted");
    eventually("what waited is handled", || {
        kernel.metrics().messages_processed == 1
    });
    let state: Tally = kernel.read_state().expect("a tally");
    assert_eq!((state.count, state.sum), (1, 0));
}

/// Asks the test below to be the program whose stderr is looked at.
const QUIET: &str = "PERPETUA_TEST_QUIET";

#[test]
fn a_fault_says_nothing_on_stderr_unless_asked() {
    if std::env::var_os(QUIET).is_some() {
        let kernel = tally(&runtime(), "faulty");
        let boom = Boom { number: 7, micros: 0 };
        kernel.ask_blocking::<_, Total>(&boom).expect_err("it panics");
        return;
    }
    let stderr = |backtrace: &str| {
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "faults::a_fault_says_nothing_on_stderr_unless_asked"])
            .arg("--nocapture")
            .env(QUIET, "1")
            .env("RUST_BACKTRACE", backtrace)
            .output()
            .expect("this program starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(stderr("0"), "");
    assert!(stderr("1").contains("boom 7"));
}

#[test]
fn an_actor_that_faults_while_it_is_deactivated_is_not_said_to_be() {
    let runtime = runtime();
    let kernel = tally(&runtime, "late");
    let boom = Boom {
        number: 8,
        micros: 50_000,
    };
    kernel.send(&boom).expect("there is room");
    eventually("its handler runs", || kernel.metrics().queue_depth == 0);
    let outcome = block_on(kernel.deactivate());
    // The handler may have faulted before: then it could not be deactivated at all.
    let error = outcome.expect_err("it faulted").to_string();
    assert!(
        error.starts_with("`late` is Faulted: it cannot become Deactivated"),
        "{error}"
    );
    assert_eq!(kernel.state(), Faulted);
}

#[test]
fn what_is_restarted_while_it_faults_is_active() {
    let runtime = runtime();
    let kernel = tally(&runtime, "late");
    let boom = Boom {
        number: 9,
        micros: 50_000,
    };
    kernel.send(&boom).expect("there is room");
    eventually("its handler runs", || kernel.metrics().queue_depth == 0);
    block_on(kernel.restart()).expect("it is active or faulted");
    assert_eq!((kernel.state(), kernel.metrics().errors_encountered), (Active, 1));
    let total: Total = kernel.ask_blocking(&Add::default()).expect("it answers");
    assert_eq!(total.count, 1);
}

#[test]
fn a_handler_that_does_not_return_is_left_behind() {
    let runtime = runtime();
    let options = LaunchOptions::default().with_run_limit(Duration::from_millis(20));
    let kernel = launch(&runtime, "hangs", options);
    let other = tally(&runtime, "healthy");
    let began = Instant::now();
    let error = kernel
        .ask_blocking::<_, Total>(&Sleep { micros: 400_000 })
        .expect_err("it hangs");
    assert!(
        error
            .to_string()
            .contains("deadline: it ran for longer than 20ms"),
        "{error}"
    );
    assert!(
        began.elapsed() < Duration::from_millis(300),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(kernel.state(), Faulted);
    kernel.send(&Note::default()).expect("there is room");
    block_on(kernel.restart()).expect("it is faulted");
    let total: Total = kernel.ask_blocking(&Add::default()).expect("it answers");
    assert_eq!(total.count, 2);
    let total: Total = block_on(other.ask(&Add::default())).expect("it answers");
    assert_eq!(total.count, 1);
    // What the hung handler does in the end is seen by nobody.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(kernel.read_state::<Tally>().expect("a tally").count, 2);
    assert_eq!(runtime.dead_letters().counts().total(), 1);
}

#[test]
fn both_workers_may_hang_and_be_replaced() {
    let runtime = runtime();
    let options = LaunchOptions::default().with_run_limit(Duration::from_millis(10));
    let hung = launch(&runtime, "hang", options.with_actors(4));
    let other = tally(&runtime, "healthy");
    for i in 0..4 {
        let one = hung.actor(i).expect("there are four");
        one.send(&Sleep { micros: 300_000 }).expect("there is room");
    }
    let total: Total = block_on(other.ask(&Add::default())).expect("it answers");
    assert_eq!(total.count, 1);
    eventually("all four are given up", || {
        runtime.dead_letters().counts().total() == 4
    });
}

#[test]
fn nothing_is_sent_to_the_terminated() {
    let runtime = runtime();
    let kernel = launch(&runtime, "gone", LaunchOptions::default().without_auto_activate());
    kernel.send(&Note::default()).expect("there is room");
    let asking = {
        let kernel = kernel.clone();
        std::thread::spawn(move || block_on(kernel.ask::<_, Total>(&Add::default())))
    };
    eventually("both wait", || kernel.metrics().queue_depth == 2);
    block_on(kernel.terminate()).expect("it is launched");
    let asked = asking.join().expect("no panic");
    assert!(matches!(asked, Err(ActorError::Terminated { .. })), "{asked:?}");
    let letters = runtime.dead_letters().letters();
    assert_eq!(letters.len(), 2);
    assert!(
        letters
            .iter()
            .all(|letter| letter.reason == DeadReason::Terminated)
    );
    let error = kernel.send(&Note::default()).expect_err("it is gone");
    assert!(matches!(error, ActorError::Terminated { .. }), "{error}");
    let error = kernel
        .ask_blocking::<_, Total>(&Add::default())
        .expect_err("it is gone");
    assert!(matches!(error, ActorError::Terminated { .. }), "{error}");
}

#[test]
fn a_message_that_an_actor_sends_to_one_that_does_not_take_it_is_reported() {
    let runtime = runtime();
    let kernel = tally(&runtime, "picky");
    // The reply to this goes to its sender, which takes no `Total`: nobody asked, so it is counted only.
    let other = tally(&runtime, "sender");
    let forward = Forward {
        to: kernel.id().0,
        ..Forward::default()
    };
    other.send(&forward).expect("there is room");
    eventually("it arrives", || kernel.metrics().messages_processed == 1);
    assert_eq!(runtime.dead_letters().counts().total(), 0);
}
