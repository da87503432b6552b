//! What actors do, looked at from outside while they do it: figures, latencies, Prometheus, the crate `metrics`, and the socket that
//! `perpetua top` attaches to.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use perpetua::actors::telemetry::observe::{Watcher, observe};
use perpetua::actors::telemetry::{self, ActorMetrics, ActorReading, Publisher, Reading};
use perpetua::actors::{
    ActorError, Context, KernelHandle, LaunchOptions, PerpetuaRuntime, RingMessage, ring_kernel,
};
use perpetua::prelude::*;

#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Work {
    rounds: u32,
}

#[derive(Clone, Copy, Debug, GpuType, RingMessage)]
#[repr(C)]
struct Done {
    value: u32,
}

#[ring_kernel]
fn worker(_ctx: &mut Context, state: &mut u32, work: Work) -> Done {
    for i in 0..work.rounds {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223 + i);
    }
    Done { value: *state }
}

// The list of sources is the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn launch(runtime: &PerpetuaRuntime, name: &str, options: LaunchOptions) -> KernelHandle {
    let options = options.with_handler(worker::handler());
    runtime.launch_blocking(name, options).unwrap()
}

fn ask(kernel: &KernelHandle, times: u32) {
    for _ in 0..times {
        let _: Done = kernel.ask_blocking(&Work { rounds: 3 }).unwrap();
    }
}

fn eventually(what: &str, done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !done() {
        assert!(Instant::now() < until, "not within ten seconds: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What waited for a while before it was handled says so, on this engine.
fn check_latency(runtime: &PerpetuaRuntime) {
    const WAITED: Duration = Duration::from_millis(20);
    let kernel = launch(runtime, "late", LaunchOptions::default());
    pollster(kernel.deactivate()).unwrap();
    for _ in 0..10 {
        kernel.send(&Work { rounds: 1 }).unwrap();
    }
    assert_eq!(kernel.metrics().queue_depth, 10);
    std::thread::sleep(WAITED);
    let began = Instant::now();
    pollster(kernel.activate()).unwrap();
    eventually("all are handled", || kernel.metrics().messages_processed == 10);
    let (took, metrics) = (began.elapsed(), kernel.metrics());
    let latency = &metrics.latency;
    assert_eq!((latency.count(), metrics.queue_depth), (10, 0));
    // Stamps may lie in one microsecond, and a quantile is off by a 32nd.
    assert!(
        latency.quantile(0.0) > WAITED * 31 / 32,
        "{:?}",
        latency.quantile(0.0)
    );
    assert!(
        latency.p99() < (WAITED + took) * 2 + Duration::from_millis(20),
        "{:?}",
        latency.p99()
    );
    assert!(latency.p50() <= latency.p99() && latency.p99() <= latency.max());
}

fn pollster<T>(future: impl Future<Output = T>) -> T {
    perpetua::device::future::block_on(future)
}

#[test]
fn latency_counts_from_sending_to_the_end_of_the_handler() {
    let _alone = alone();
    let threads = PerpetuaRuntime::builder().threads(2).build_blocking().unwrap();
    check_latency(&threads);
    let batches = PerpetuaRuntime::builder().in_batches().build_blocking().unwrap();
    check_latency(&batches);
}

#[test]
fn the_actors_of_a_large_launch_are_read_as_one() {
    let _alone = alone();
    let runtime = PerpetuaRuntime::builder().threads(2).build_blocking().unwrap();
    let many = launch(&runtime, "many", LaunchOptions::default().with_actors(5000));
    let few = launch(&runtime, "few", LaunchOptions::default().with_actors(3));
    ask(&many.actor(4999).unwrap(), 2);
    ask(&many.actor(0).unwrap(), 1);
    ask(&few.actor(1).unwrap(), 4);
    pollster(many.actor(7).unwrap().deactivate()).unwrap();
    let reading = runtime.reading();
    let rows: Vec<(&str, u32, u32, &str, u32, u64)> = reading
        .actors
        .iter()
        .map(|row| {
            (
                row.name.as_str(),
                row.id,
                row.actors,
                row.state.as_str(),
                row.in_state,
                row.metrics.messages_processed,
            )
        })
        .collect();
    let expected = [
        ("many", 0, 5000, "Active", 4999, 3),
        ("few[0]", 5000, 1, "Active", 1, 0),
        ("few[1]", 5001, 1, "Active", 1, 4),
        ("few[2]", 5002, 1, "Active", 1, 0),
    ];
    assert_eq!(rows, expected);
    assert_eq!(reading.actors[0].metrics.latency.count(), 3);
    assert_eq!(reading.totals().latency.count(), 7);
    // They share one histogram.
    assert_eq!(many.actor(7).unwrap().metrics().latency.count(), 3);
    assert_eq!(many.metrics(), reading.actors[0].metrics);
}

fn get(address: std::net::SocketAddr) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.into()
}

#[test]
fn prometheus_is_told_until_shutdown() {
    let _alone = alone();
    let runtime = PerpetuaRuntime::builder()
        .threads(1)
        .observable("market")
        .prometheus("127.0.0.1:0")
        .build_blocking()
        .unwrap();
    let address = runtime.prometheus_address().unwrap();
    let books = launch(&runtime, "books", LaunchOptions::default().with_actors(2));
    ask(&books.actor(1).unwrap(), 5);
    let text = get(address);
    let check = |line: &str| assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
    let labels = |id| format!(r#"{{runtime="market",backend="CPU",actor="books",id="{id}"}}"#);
    check(&format!("perpetua_actor_messages_processed_total{} 0", labels(0)));
    check(&format!("perpetua_actor_messages_processed_total{} 5", labels(1)));
    check(&format!("perpetua_actor_latency_seconds_count{} 5", labels(1)));
    check(r#"perpetua_runtime_failed{runtime="market",backend="CPU"} 0"#);

    let taken = PerpetuaRuntime::builder()
        .prometheus(address.to_string())
        .build_blocking();
    let error = taken.map(drop).unwrap_err();
    assert!(matches!(error, ActorError::Observe(_)), "{error:?}");
    let remedy = "take another port, 0 for one that is free, or end what listens there";
    assert!(error.to_string().ends_with(remedy), "{error}");

    runtime.shutdown_blocking().unwrap();
    assert_eq!(runtime.prometheus_address(), None);
    assert!(std::net::TcpStream::connect(address).is_err());
}

/// Keeps what it is told.
#[derive(Default)]
struct Recorder(std::sync::Arc<Mutex<std::collections::BTreeMap<String, f64>>>);

struct Figure(
    std::sync::Arc<Mutex<std::collections::BTreeMap<String, f64>>>,
    String,
);

impl Figure {
    fn change(&self, to: impl FnOnce(f64) -> f64) {
        let mut all = self.0.lock().unwrap();
        let value = all.entry(self.1.clone()).or_default();
        *value = to(*value);
    }
}

impl metrics::CounterFn for Figure {
    fn increment(&self, value: u64) {
        self.change(|old| old + value as f64);
    }
    fn absolute(&self, value: u64) {
        self.change(|_| value as f64);
    }
}

impl metrics::GaugeFn for Figure {
    fn increment(&self, value: f64) {
        self.change(|old| old + value);
    }
    fn decrement(&self, value: f64) {
        self.change(|old| old - value);
    }
    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

impl metrics::HistogramFn for Figure {
    fn record(&self, _seconds: f64) {
        self.change(|count| count + 1.0);
    }
}

impl Recorder {
    fn figure(&self, key: &metrics::Key) -> std::sync::Arc<Figure> {
        let actor = key.labels().find(|label| label.key() == "actor");
        let actor = actor
            .map(|label| format!(" {}", label.value()))
            .unwrap_or_default();
        std::sync::Arc::new(Figure(
            std::sync::Arc::clone(&self.0),
            format!("{}{actor}", key.name()),
        ))
    }
}

impl metrics::Recorder for Recorder {
    fn describe_counter(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
    fn describe_gauge(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
    fn describe_histogram(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
    fn register_counter(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Counter {
        metrics::Counter::from_arc(self.figure(key))
    }
    fn register_gauge(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Gauge {
        metrics::Gauge::from_arc(self.figure(key))
    }
    fn register_histogram(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Histogram {
        metrics::Histogram::from_arc(self.figure(key))
    }
}

#[test]
fn the_recorder_of_the_program_is_told() {
    let _alone = alone();
    let runtime = PerpetuaRuntime::builder().threads(1).build_blocking().unwrap();
    let kernel = launch(&runtime, "told", LaunchOptions::default());
    let recorder = Recorder::default();
    let told = std::sync::Arc::clone(&recorder.0);
    let mut publisher = Publisher::new();
    for asked in [3.0, 6.0] {
        ask(&kernel, 3);
        metrics::with_local_recorder(&recorder, || publisher.publish());
        let told = told.lock().unwrap();
        assert_eq!(told["perpetua_actor_messages_processed_total told"], asked);
        assert_eq!(told["perpetua_actor_latency_seconds told"], asked);
        assert_eq!(told["perpetua_actor_queue_depth told"], 0.0);
        assert_eq!(told["perpetua_actors told"], 1.0);
        assert_eq!(told["perpetua_dead_letters_total"], 0.0);
    }
}

#[test]
fn a_runtime_is_looked_at_until_shutdown() {
    let _alone = alone();
    let runtime = PerpetuaRuntime::builder()
        .threads(1)
        .observable("looked at")
        .build_blocking()
        .unwrap();
    let kernel = launch(&runtime, "seen", LaunchOptions::default());
    ask(&kernel, 4);
    let tiles = telemetry::register("tiles", || {
        let metrics = ActorMetrics {
            messages_processed: 9,
            ..ActorMetrics::default()
        };
        Some(Reading::new("CPU").with(ActorReading::new("tile", 0, "Active", metrics)))
    });
    let second = observe("another name").unwrap();
    let path = second.path().to_path_buf();

    let mut watcher = Watcher::attach(std::process::id()).unwrap();
    assert_eq!(watcher.info().name, "looked at");
    let report = watcher.report().unwrap();
    let found: Vec<(&str, u64)> = report
        .sources
        .iter()
        .map(|source| (source.name.as_str(), source.totals.processed))
        .collect();
    assert_eq!(found, [("looked at", 4), ("tiles", 9)]);
    assert_eq!(report.sources[0].actors[0].latency.count, 4);

    drop(tiles);
    runtime.shutdown_blocking().unwrap();
    // The second observer keeps the socket.
    assert_eq!(watcher.report().unwrap().sources, []);
    assert!(path.exists());
    drop(second);
    assert!(!path.exists());
    assert!(watcher.report().is_err());
}

/// Reading stops nobody: a handler that does not come back is read meanwhile.
#[test]
fn an_actor_that_is_busy_is_read() {
    let _alone = alone();
    let runtime = PerpetuaRuntime::builder().threads(1).build_blocking().unwrap();
    let kernel = launch(&runtime, "busy", LaunchOptions::default());
    kernel.send(&Work { rounds: 200_000_000 }).unwrap();
    kernel.send(&Work { rounds: 1 }).unwrap();
    eventually("it runs", || kernel.metrics().queue_depth == 1);
    let began = Instant::now();
    let reading = runtime.reading();
    let took = began.elapsed();
    assert_eq!(
        reading.actors[0].metrics.messages_processed, 0,
        "it ran for {took:?} only"
    );
    assert_eq!(reading.actors[0].metrics.queue_depth, 1);
    drop(kernel);
}
