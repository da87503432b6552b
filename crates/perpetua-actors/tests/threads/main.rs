//! Actors on the CPU's threads: life cycle, messages, faults, supervision, checkpoints, and all of it at random for a while.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod checkpoints;
mod devices;
mod faults;
mod handlers;
mod lifecycle;
mod messages;
mod supervision;
mod topics;

use std::time::{Duration, Instant};

use perpetua_actors::{KernelHandle, LaunchOptions, PerpetuaRuntime};

/// A runtime on two threads that gives up after a tenth of a second.
fn runtime() -> PerpetuaRuntime {
    PerpetuaRuntime::builder()
        .threads(2)
        .patience(Duration::from_millis(100))
        .build_blocking()
        .expect("threads start")
}

/// One actor of the test's handler.
fn tally(runtime: &PerpetuaRuntime, name: &str) -> KernelHandle {
    launch(runtime, name, LaunchOptions::default())
}

/// Actors of the test's handler.
fn launch(runtime: &PerpetuaRuntime, name: &str, options: LaunchOptions) -> KernelHandle {
    let options = options.with_handler(handlers::tally());
    runtime.launch_blocking(name, options).expect("it launches")
}

/// Waits until `done`, for ten seconds.
fn eventually(what: &str, done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !done() {
        assert!(Instant::now() < until, "not within ten seconds: {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}
