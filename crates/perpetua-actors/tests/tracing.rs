//! What the runtime tells whoever listens by the crate `tracing`: spans and events of a life, as a subscriber of the test's gets them.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use perpetua::actors::{
    ActorState, Context, LaunchOptions, PerpetuaRuntime, RingMessage, Supervision, ring_kernel,
};
use perpetua::device::future::block_on;
use perpetua::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Index {
    at: u32,
}

#[ring_kernel]
fn picker(_ctx: &mut Context, state: &mut [u32; 4], index: Index) -> Index {
    state[index.at as usize] += 1;
    Index {
        at: state[index.at as usize],
    }
}

/// Keeps what this crate tells: `LEVEL message field=value …`; spans as `LEVEL [name field=value …]`.
#[derive(Clone, Default)]
struct Listener {
    lines: Arc<Mutex<Vec<String>>>,
    spans: Arc<Mutex<HashMap<u64, &'static str>>>,
    next: Arc<AtomicU64>,
}

#[derive(Default)]
struct Fields {
    message: String,
    rest: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => write!(self.rest, " {name}={value:?}").unwrap(),
        }
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("perpetua_actors")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        let metadata = span.metadata();
        let line = format!("{} [{}{}]", metadata.level(), metadata.name(), fields.rest);
        self.lines.lock().unwrap().push(line);
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        self.spans.lock().unwrap().insert(id, metadata.name());
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = format!("{} {}{}", event.metadata().level(), fields.message, fields.rest);
        self.lines.lock().unwrap().push(line);
    }

    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}

    fn try_close(&self, id: Id) -> bool {
        self.spans.lock().unwrap().remove(&id.into_u64());
        true
    }
}

impl Listener {
    /// What was told since the last time, but for what other threads may tell at any time.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }

    /// Waits until something that begins so is told.
    fn wait_for(&self, what: &str) {
        let until = Instant::now() + Duration::from_secs(10);
        let told = || {
            self.lines
                .lock()
                .unwrap()
                .iter()
                .any(|line| line.starts_with(what))
        };
        while !told() {
            assert!(Instant::now() < until, "`{what}` is not told: {:?}", self.take());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

// One test: faults are told by the runtime's own threads, to the subscriber of all.
#[test]
fn a_life_is_told() {
    let listener = Listener::default();
    tracing::subscriber::set_global_default(listener.clone()).unwrap();
    let check = |expected: &[&str]| assert_eq!(listener.take(), expected);

    let runtime = PerpetuaRuntime::builder().threads(1).build_blocking().unwrap();
    check(&["INFO engine started backend=CPU stays=true"]);

    let restart = Supervision::Restart {
        max: 1,
        backoff: Duration::from_millis(1),
    };
    let options = LaunchOptions::new(picker::handler()).with_supervision(restart);
    let kernel = runtime.launch_blocking("picker", options).unwrap();
    check(&[
        "DEBUG [launch actor=\"picker\"]",
        "DEBUG launched first=0 actors=1 handler=\"picker\" active=true",
    ]);

    block_on(kernel.deactivate()).unwrap();
    block_on(kernel.activate()).unwrap();
    check(&[
        "DEBUG deactivated actor=\"picker\"",
        "DEBUG activated actor=\"picker\"",
    ]);

    let ask = "TRACE [ask actor=\"picker\" request=\"Index\"]";
    let _: Index = block_on(kernel.ask(&Index { at: 1 })).unwrap();
    check(&[ask]);
    let _: Index = kernel.ask_blocking(&Index { at: 1 }).unwrap();
    check(&[ask]);

    let fault = kernel.ask_blocking::<_, Index>(&Index { at: 4 }).unwrap_err();
    assert!(fault.to_string().contains("index out of bounds"));
    listener.wait_for("INFO restarted");
    let told = listener.take();
    let starts = [
        ask,
        "ERROR the handler faulted actor=`picker` fault=index out of bounds",
        "DEBUG dead letter",
        "INFO supervision actor=`picker` decision=RestartAfter(1ms)",
        "DEBUG activated actor=\"picker\"",
        "INFO restarted actor=\"picker\"",
    ];
    assert_eq!(told.len(), starts.len(), "{told:?}");
    for (line, start) in told.iter().zip(starts) {
        assert!(line.starts_with(start), "{line:?} is not {start:?}");
    }
    assert_eq!(kernel.state(), ActorState::Active);

    let path = std::env::temp_dir().join(format!("tracing-{}.checkpoint", std::process::id()));
    runtime.checkpoint_blocking(&path).unwrap();
    check(&[
        &format!("INFO [checkpoint path={}]", path.display()),
        "DEBUG [freeze]",
        "DEBUG frozen",
        "INFO checkpoint written actors=1",
    ]);
    std::fs::remove_file(&path).unwrap();

    block_on(kernel.terminate()).unwrap();
    check(&["DEBUG terminated actor=\"picker\""]);
    runtime.shutdown_blocking().unwrap();
    check(&["INFO engine stopped drained=true dead_letters=1"]);
    assert!(listener.spans.lock().unwrap().is_empty(), "spans that never end");
    assert_eq!(tracing::level_filters::LevelFilter::current(), Level::TRACE);
}
