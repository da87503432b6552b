//! Tests that run once for each engine that is compared with threads: batches by the interpreter, and kernels that stay in the
//! interpreter, which handle a message at a time or several in lanes side by side; or the backend that `PERPETUA_ACTORS_ON` names (on a
//! GPU machine: `cuda`), both ways.

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use perpetua::actors::Backend;
use perpetua::actors::runtime::RuntimeBuilder;

const BATCHES: &str = "batches";
const RESIDENT: &str = "resident";
/// Behind the engine's name where handlers run in lanes side by side.
const LANES: &str = " in lanes";

thread_local! {
    /// The engine of the test that runs on this thread.
    static ENGINE: RefCell<String> = RefCell::default();
}

/// The test's engine.
pub(crate) fn other(builder: RuntimeBuilder) -> RuntimeBuilder {
    ENGINE.with_borrow(|name| match name.trim_end_matches(LANES) {
        BATCHES => builder.in_batches(),
        // The interpreter's stays there, that of x86-64 processors alone.
        RESIDENT => builder.resident(),
        name => builder.backend(Backend::from_name(name).expect("a backend's name")),
    })
}

/// A file of the test's own.
pub(crate) fn file(name: &str) -> PathBuf {
    let engine = ENGINE.with_borrow(String::clone);
    std::env::temp_dir().join(format!(
        "{name}-{}-{}",
        engine.replace(' ', "-"),
        std::process::id()
    ))
}

/// Whether handlers are to be those that lanes run side by side.
pub(crate) fn side_by_side() -> bool {
    ENGINE.with_borrow(|name| name.ends_with(LANES))
}

pub(crate) fn run(tests: &[(&str, fn())]) -> ExitCode {
    let both_ways = |name: &str| vec![name.to_owned(), format!("{name}{LANES}")];
    let engines = match std::env::var("PERPETUA_ACTORS_ON") {
        Ok(name) => both_ways(&name),
        Err(_) if cfg!(target_arch = "x86_64") => [vec![BATCHES.to_owned()], both_ways(RESIDENT)].concat(),
        Err(_) => vec![BATCHES.to_owned()],
    };
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
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
