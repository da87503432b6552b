//! Looks at a process, and what changed between the last two. Must not know how they are shown.

use std::collections::HashMap;
use std::time::Instant;

use perpetua::actors::telemetry::{ActorRow, ProcessReport};

use super::column::Column;

/// One look.
pub(super) struct Sample {
    pub(super) at: Instant,
    pub(super) report: ProcessReport,
}

impl Sample {
    /// One that was had just now.
    pub(super) fn now(report: ProcessReport) -> Sample {
        Sample {
            at: Instant::now(),
            report,
        }
    }
}

/// The last look, with rates since the one before.
pub(super) struct View {
    last: Sample,
    // By source, name and number: figures of the look before, and when that was.
    before: HashMap<(String, String, u32), u64>,
    seconds: f64,
}

/// An actor, or many in one row, and how many messages a second it handles, if that is known.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) source: &'a str,
    pub(super) row: &'a ActorRow,
    pub(super) rate: Option<f64>,
}

impl View {
    /// Of the first look: no rates are known.
    pub(super) fn new(first: Sample) -> View {
        View {
            last: first,
            before: HashMap::new(),
            seconds: 0.0,
        }
    }

    /// Takes the next look.
    pub(super) fn add(&mut self, next: Sample) {
        self.seconds = next.at.duration_since(self.last.at).as_secs_f64();
        let sources = &self.last.report.sources;
        let rows = sources.iter().flat_map(|source| {
            let all = source.actors.iter().chain([&source.totals]);
            all.map(|row| (key(&source.name, row), row.processed))
        });
        self.before = rows.collect();
        self.last = next;
    }

    /// The last look.
    pub(super) fn report(&self) -> &ProcessReport {
        &self.last.report
    }

    /// A row of a source, with its rate.
    pub(super) fn line<'a>(&self, source: &'a str, row: &'a ActorRow) -> Line<'a> {
        let before = self.before.get(&key(source, row)).filter(|_| self.seconds > 0.0);
        // A process that was restored may count from less.
        let rate = before.map(|before| row.processed.saturating_sub(*before) as f64 / self.seconds);
        Line { source, row, rate }
    }

    /// All rows whose name contains `filter`, sorted.
    pub(super) fn lines(&self, sort: Column, reverse: bool, filter: &str) -> Vec<Line<'_>> {
        let filter = filter.to_lowercase();
        let sources = self.last.report.sources.iter();
        let mut lines: Vec<Line<'_>> = sources
            .flat_map(|source| source.actors.iter().map(|row| self.line(&source.name, row)))
            .filter(|line| line.row.name.to_lowercase().contains(&filter))
            .collect();
        lines.sort_by(|a, b| {
            let order = sort.order(a, b);
            if reverse { order.reverse() } else { order }
        });
        lines
    }
}

// Totals have the source's own name; no actor's row has the number of all and an empty state.
fn key(source: &str, row: &ActorRow) -> (String, String, u32) {
    let name = match row.state.is_empty() {
        true => format!("{} (total)", row.name),
        false => row.name.clone(),
    };
    (source.into(), name, row.id)
}
