//! Tests that run once for each engine: batches by the interpreter, and kernels that stay in the interpreter; or the backend that
//! `PERPETUA_ACTORS_ON` names (on a GPU machine: `cuda`). Some run on the CPU's threads, too, and in batches by wgpu where there is an adapter.

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use perpetua::actors::Backend;
use perpetua::actors::runtime::RuntimeBuilder;
use perpetua::device::Device;

const THREADS: &str = "threads";
const BATCHES: &str = "batches";
const WGPU: &str = "wgpu";
const RESIDENT: &str = "resident";

thread_local! {
    /// The engine of the test that runs on this thread.
    static ENGINE: RefCell<String> = RefCell::default();
}

/// The test's engine.
pub(crate) fn other(builder: RuntimeBuilder) -> RuntimeBuilder {
    ENGINE.with_borrow(|name| match name.as_str() {
        THREADS => builder.threads(2),
        BATCHES => builder.in_batches(),
        // The interpreter's stays there, that of x86-64 processors alone.
        RESIDENT => builder.resident(),
        name => builder.backend(Backend::from_name(name).expect("a backend's name")),
    })
}

/// The engine's name.
#[allow(dead_code, reason = "some test programs do not ask")]
pub(crate) fn name() -> String {
    ENGINE.with_borrow(String::clone)
}

/// A file of the test's own.
#[allow(dead_code, reason = "some test programs have none")]
pub(crate) fn file(name: &str) -> PathBuf {
    let engine = ENGINE.with_borrow(String::clone);
    std::env::temp_dir().join(format!(
        "{name}-{}-{}",
        engine.replace(' ', "-"),
        std::process::id()
    ))
}

/// Runs the tests on engines that are compared with threads.
#[allow(dead_code, reason = "a test program runs either")]
pub(crate) fn run(tests: &[(&str, fn())]) -> ExitCode {
    run_on(&kernels(), tests)
}

/// Runs the tests on each engine that there is.
#[allow(dead_code, reason = "a test program runs either")]
pub(crate) fn run_everywhere(tests: &[(&str, fn())]) -> ExitCode {
    let mut engines = kernels();
    engines.insert(0, THREADS.to_owned());
    let adapter = Backend::from_name(WGPU).is_some_and(|backend| Device::new(backend, 0).is_ok());
    if adapter && !engines.iter().any(|engine| engine == WGPU) {
        engines.push(WGPU.to_owned());
    }
    run_on(&engines, tests)
}

fn kernels() -> Vec<String> {
    match std::env::var("PERPETUA_ACTORS_ON") {
        Ok(name) => vec![name],
        Err(_) if cfg!(target_arch = "x86_64") => vec![BATCHES.to_owned(), RESIDENT.to_owned()],
        Err(_) => vec![BATCHES.to_owned()],
    }
}

fn run_on(engines: &[String], tests: &[(&str, fn())]) -> ExitCode {
    let trials = engines.iter().flat_map(|engine| {
        tests.iter().map(move |(name, test)| {
            let (engine, test) = (engine.clone(), *test);
            Trial::test(format!("{name} ({engine})"), move || {
                ENGINE.set(engine);
                test();
                Ok::<(), Failed>(())
            })
        })
    });
    let mut arguments = Arguments::from_args();
    if std::env::var_os("PERPETUA_ACTORS_ON").is_some() {
        // A device has room for 24 launches; no test has more than four at once.
        arguments.test_threads = Some(arguments.test_threads.map_or(6, |asked| asked.min(6)));
    }
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
