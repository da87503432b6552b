//! The examples of actors: each runs to its end on the CPU's threads, in kernels that stay in the interpreter, and in batches on
//! wgpu, and says the same, the handler runs that were counted included.

#![cfg(feature = "actors")]
// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::panic)]

mod example_program;

use std::path::Path;
use std::process::Command;

use example_program::program;

fn check(name: &str, expected: &[&str]) {
    let program = program(name);
    check_on("cpu", &program, expected);
    if cfg!(target_arch = "x86_64") {
        check_on("interpreter", &program, expected);
    }
    if cfg!(feature = "wgpu") {
        check_on("wgpu", &program, expected);
    }
}

fn check_on(backend: &str, program: &Path, expected: &[&str]) {
    check_with(backend, program, &[], expected);
}

fn check_with(backend: &str, program: &Path, arguments: &[&str], expected: &[&str]) {
    let name = format!("{} on {backend}", program.display());
    let output = Command::new(program)
        .args(["--backend", backend])
        .args(arguments)
        // Asked for, Rust tells of every panic.
        .env_remove("RUST_BACKTRACE")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}:\n{text}{errors}");
    // A fault that an example causes on purpose is told by who caught it, not by Rust.
    assert!(!errors.contains("panicked at"), "{name}: {errors}");
    for line in expected {
        assert!(text.contains(line), "{name}: no `{line}` in\n{text}{errors}");
    }
}

#[test]
fn basic_hello_kernel() {
    check(
        "basic_hello_kernel",
        &[
            "backend: ",
            "launched: Active",
            "8 says hello; the answer is Welcome { to: 8, greeted: 2 }",
            "deactivated: Deactivated; a message waits now\nwaiting: 1",
            "active again: Welcome { to: 9, greeted: 3 }",
            "terminated: Terminated",
            "`processor` is terminated: launch another before sending",
            "handler runs: 3\n",
        ],
    );
}

#[test]
fn kernel_states() {
    check(
        "kernel_states",
        &[
            "booked -45050 in month 1: Balance { cents: 82450 }",
            "bookings: 3, months: [-2500, 74950, 0,",
            "a fault: index out of bounds: the len",
            "is 12 but the index is 12",
            "it is Faulted now",
            "restarted: Account { cents: 10000, bookings: 0",
            "restored: Account { cents: 82450, bookings: 3",
            "and on: Balance { cents: 82449 }",
            "handler runs: 4\n",
        ],
    );
}

#[test]
fn request_response() {
    check(
        "request_response",
        &[
            "Statistics { samples: 100, mean: ",
            "smallest: 0.0, largest: 100.0 }",
            "`statistics` did not answer within 20ms",
            "`statistics` does not take messages of type Statistics",
            "drained: true",
            "handler runs: 2102\n",
        ],
    );
}

#[test]
fn kernel_to_kernel() {
    check(
        "kernel_to_kernel",
        &[
            "2000 hops",
            "ring[0] passed it 251 times\nring[1] passed it 250 times",
            "to actor 3: Queued",
            "to actor 4000: Refused(Unknown)\ndead letters: 1",
            "handler runs: 2002\n",
        ],
    );
}

#[test]
fn pub_sub() {
    check(
        "pub_sub",
        &[
            "the host got 100",
            "display got Seen { readings: 101, highest: 99.0 }",
            "alarm got Seen { readings: 51, highest: 99.0 }",
            "late got Seen { readings: 1, highest: 99.0 }",
            "handler runs: 253\n",
        ],
    );
}

#[test]
fn batch_processor() {
    // Steps from all numbers up to 2000, by a loop of another kind.
    let steps = |from: u32| {
        std::iter::successors(Some(from), |n| {
            (*n > 1).then_some(if n & 1 == 0 { n / 2 } else { 3 * n + 1 })
        })
        .count()
            - 1
    };
    let sum = (1..=2000).map(steps).sum::<usize>();
    check(
        "batch_processor",
        &[
            "2000 jobs in",
            "the longest: Some(Outcome { number: 1161, steps: 181 })",
            &format!("steps in all: {sum}\n"),
            "workers[3] did 500 jobs",
            "dead letters: 0",
            "handler runs: 2000\n",
        ],
    );
}

#[test]
fn order_book() {
    let program = program("order_book");
    let check = |backend, orders: u32, symbols, further: &[&str]| {
        let orders_text = orders.to_string();
        let arguments = ["--orders", &orders_text, "--symbols", symbols];
        let all = [
            "every report and every book is the reference's",
            "dead letters: 0",
            &format!("handler runs: {orders}, {orders} of them counted in the books\n"),
        ];
        check_with(backend, &program, &arguments, &[&all, further].concat());
    };
    // One symbol has more orders than find room.
    let fills = "1946 fills of 169635 in all";
    check("cpu", 5_000, "1", &[fills]);
    check("cpu", 30_000, "1000", &[]);
    if cfg!(target_arch = "x86_64") {
        check("interpreter", 2_000, "1000", &[]);
    }
    if cfg!(feature = "wgpu") {
        check("wgpu", 5_000, "1", &[fills]);
        check("wgpu", 2_000, "1000", &[]);
    }
    let none = Command::new(&program).args(["--symbols", "0"]).output().unwrap();
    assert!(String::from_utf8_lossy(&none.stderr).contains("0 is not in 1..=1000000"));
}

#[test]
#[cfg(unix)]
fn bank() {
    let program = program("bank");
    let check = |backend, accounts: u32, kills: u32| {
        let arguments = ["--accounts", &accounts.to_string(), "--kills", &kills.to_string()];
        let all = [
            &*format!("{accounts} accounts hold {}", 1000 * accounts),
            &*format!("killed {kills} times in"),
            "all money is there",
        ];
        check_with(backend, &program, &arguments, &all);
    };
    check("cpu", 10_000, 4);
    check("cpu", 100, 0);
    check("batches", 300, 2);
    if cfg!(target_arch = "x86_64") {
        check("interpreter", 300, 2);
    }
    if cfg!(feature = "wgpu") {
        // A driver in software compiles for ten seconds whenever the bank opens.
        check("wgpu", 60, 1);
    }
}

#[test]
#[cfg(unix)]
fn supervised() {
    check(
        "supervised",
        &[
            "child 0 begins with 0 numbers",
            "child 1 begins with 100 numbers",
            "child 3 begins with 300 numbers",
            "child 3 ends with Total { count: 400, sum: 80200 }",
            "handler runs: 400\nchild 0: signal 6 ended it\nchild 1: ",
        ],
    );
}

#[test]
fn telemetry() {
    check(
        "telemetry",
        &["dead letters: 1 (deadline passed)", "handler runs: 1000\n"],
    );
}

#[test]
#[cfg(feature = "wgpu")]
fn wgpu_hello() {
    // Marsaglia's xorshift, once more.
    let step = |mut x: u32| {
        x ^= x << 13;
        x ^= x >> 17;
        x ^ x << 5
    };
    let mut sum = 0;
    for actor in 0..1000 {
        let mut number = actor + 1;
        for _ in 0..4 {
            number = (0..10).fold(number, |number, _| step(number));
            sum += u64::from(number);
        }
    }
    let sum = format!("the sum of all numbers: {sum}\n");
    check("wgpu_hello", &[&sum, "handler runs: 4000\n"]);
}

#[test]
fn each_says_whether_handlers_stay() {
    let program = program("basic_hello_kernel");
    check_on(
        "cpu",
        &program,
        &["backend: CPU (handlers stay there and wait for messages)"],
    );
    if cfg!(feature = "wgpu") {
        let batches = "backend: wgpu (the host launches batches of messages until all are handled)";
        check_on("wgpu", &program, &[batches]);
    }
}

#[test]
fn a_backend_that_does_not_exist_is_named() {
    let output = Command::new(program("basic_hello_kernel"))
        .args(["--backend", "abacus"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no backend `abacus`"));
}
