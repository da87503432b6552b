//! A runtime with nothing to do takes no processor's time. By itself in this file: other tests would take some.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use perpetua_actors::echo::Echo;
use perpetua_actors::{LaunchOptions, PerpetuaRuntime};

// Hundredths of a second that this process has run: fields 14 and 15, behind the name in brackets.
fn run_time() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = text.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    [11, 12]
        .iter()
        .map(|at| fields[*at].parse::<u64>().unwrap())
        .sum()
}

#[test]
fn no_core_is_busy_while_there_is_nothing_to_do() {
    let runtime = PerpetuaRuntime::builder().threads(4).build_blocking().unwrap();
    let options = LaunchOptions::default().with_actors(100);
    let kernel = runtime.launch_blocking("idle", options).unwrap();
    let _: Echo = kernel.ask_blocking(&Echo::default()).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let (before, began) = (run_time(), Instant::now());
    std::thread::sleep(Duration::from_secs(1));
    let taken = run_time() - before;
    // Four workers and a timer: one busy core would have taken a hundred.
    assert!(
        taken <= 3,
        "{taken} hundredths of a second in {:?}",
        began.elapsed()
    );
    let _: Echo = kernel.ask_blocking(&Echo::default()).unwrap();
}
