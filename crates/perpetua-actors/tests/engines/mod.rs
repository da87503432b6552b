//! Tests that run once for each engine that is compared with threads: batches by the interpreter, and kernels that stay in the
//! interpreter; or the backend that `PERPETUA_ACTORS_ON` names (on a GPU machine: `cuda`).

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use perpetua::actors::Backend;
use perpetua::actors::runtime::RuntimeBuilder;

const BATCHES: &str = "batches";
const RESIDENT: &str = "resident";

thread_local! {
    /// The engine of the test that runs on this thread.
    static ENGINE: RefCell<String> = RefCell::default();
}

/// The test's engine.
pub(crate) fn other(builder: RuntimeBuilder) -> RuntimeBuilder {
    ENGINE.with_borrow(|name| match name.as_str() {
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

pub(crate) fn run(tests: &[(&str, fn())]) -> ExitCode {
    let engines = match std::env::var("PERPETUA_ACTORS_ON") {
        Ok(name) => vec![name],
        Err(_) if cfg!(target_arch = "x86_64") => vec![BATCHES.to_owned(), RESIDENT.to_owned()],
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
