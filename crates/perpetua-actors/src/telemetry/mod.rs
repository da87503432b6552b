//! What actors do: counted while they run ([`ActorCounters`], [`LatencyHistogram`]), read at any time
//! ([`ActorMetrics`], [`Reading`]) without stopping an actor, and told to other programs: over a socket ([`observe`], what
//! `perpetua top` attaches to), to Prometheus (feature `prometheus`), to the crate `metrics` (feature `metrics`).
//!
//! Any part of a program can publish rows of its own beside the runtimes':
//!
//! ```
//! use perpetua::actors::telemetry::{self, ActorMetrics, ActorReading, Reading};
//!
//! let tiles = telemetry::register("wave", || {
//!     let metrics = ActorMetrics { messages_processed: 41, ..ActorMetrics::default() };
//!     Some(Reading::new("CPU").with(ActorReading::new("tile", 0, "Active", metrics)))
//! });
//! let (name, reading) = telemetry::readings().remove(0);
//! assert_eq!((name.as_str(), reading.actors[0].metrics.messages_processed), ("wave", 41));
//! drop(tiles); // no longer shown
//! assert!(telemetry::readings().is_empty());
//! ```
//!
//! Must not know engines, nor how a table looks.

mod counters;
#[cfg(all(feature = "prometheus", not(target_arch = "wasm32")))]
mod endpoint;
#[cfg(feature = "prometheus")]
mod exposition;
#[cfg(feature = "metrics")]
mod facade;
mod histogram;
#[cfg(not(target_arch = "wasm32"))]
pub mod observe;
mod reading;
mod report;
#[cfg(any(feature = "metrics", feature = "prometheus"))]
mod series;
mod sources;

pub use counters::{ActorCounters, ActorMetrics};
#[cfg(all(feature = "prometheus", not(target_arch = "wasm32")))]
pub use endpoint::PrometheusEndpoint;
#[cfg(feature = "prometheus")]
pub use exposition::exposition;
#[cfg(feature = "metrics")]
pub use facade::Publisher;
pub use histogram::{Latencies, LatencyHistogram};
pub use reading::{ActorReading, Reading};
pub use report::{ActorRow, LatencySummary, ProcessInfo, ProcessReport, SourceReport};
pub use sources::{Registration, readings, register};
