//! A process as text: what stands above the table, and the table. Must not know terminals.

use std::fmt::Write;

use perpetua::actors::telemetry::SourceReport;
use perpetua::actors::telemetry::observe::Found;

use super::column::{Column, number, rate, time};
use super::gpu;
use super::sample::View;
use crate::say::name;

/// The processes that can be watched.
pub(super) fn list(found: &[Found]) -> String {
    if found.is_empty() {
        return "No program can be watched: start one with PERPETUA_TOP=1, or build its runtime with `.observable(\"name\")`.\n".into();
    }
    let mut text = format!("{:>8}  {:>8}  {:<20}  {}\n", "PID", "UP", "NAME", "PROGRAM");
    for one in found {
        // Writing to a string does not fail.
        let _ = match &one.info {
            Ok(info) => writeln!(
                text,
                "{:>8}  {:>8}  {:<20}  {}",
                info.pid,
                uptime(info.uptime_ms),
                name(&info.name),
                name(&info.program)
            ),
            Err(error) => writeln!(text, "{:>8}  {error}", one.pid),
        };
    }
    text.push_str("\nWatch one: perpetua top PID\n");
    text
}

/// For how long: `7s`, `3m 02s`, `5h 07m`, `2d 03h`.
pub(super) fn uptime(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m {:02}s", seconds % 60),
        3600..86400 => format!("{hours}h {:02}m", minutes % 60),
        _ => format!("{days}d {:02}h", hours % 24),
    }
}

/// Which process it is.
pub(super) fn title(view: &View) -> String {
    let process = &view.report().process;
    format!(
        "{}, process {} ({}), Perpetua {}, up {}",
        name(&process.name),
        process.pid,
        name(&process.program),
        name(&process.perpetua),
        uptime(process.uptime_ms)
    )
}

/// What a source does in all.
pub(super) fn summary(view: &View, source: &SourceReport) -> String {
    let all = &source.totals;
    let how = match source.stays {
        true => "",
        false => " in batches",
    };
    let mut text = format!(
        "{} on {}{how}: {} actors, {} processed ({}/s), {} queued, {} dropped, {} errors, {} dead letters",
        name(&source.name),
        name(&source.backend),
        number(all.actors.into()),
        number(all.processed),
        rate(view.line(&source.name, all).rate),
        number(all.queue_depth),
        number(all.dropped),
        number(all.errors),
        number(source.dead_letters)
    );
    let latency = &all.latency;
    if latency.count > 0 {
        let [p50, p99] = [latency.p50, latency.p99].map(|nanos| time(latency.count, nanos));
        let _ = write!(text, ", p50 {p50}, p99 {p99}");
    }
    if let Some(failure) = &source.failure {
        let _ = write!(text, "; STANDS STILL: {}", name(failure));
    }
    text
}

/// The columns that tell something: those of the source only where there are several.
pub(super) fn columns(view: &View) -> Vec<Column> {
    let several = view.report().sources.len() > 1;
    let mut columns = Column::ALL.to_vec();
    columns.retain(|column| several || *column != Column::Source);
    columns
}

/// The process once, as a table.
pub(super) fn table(view: &View, gpus: &gpu::Lines, sort: Column, filter: &str) -> String {
    let mut text = title(view) + "\n";
    for source in &view.report().sources {
        text += &summary(view, source);
        text.push('\n');
    }
    for line in gpus {
        text += line;
        text.push('\n');
    }
    text.push('\n');
    let columns = columns(view);
    let titles: Vec<String> = columns.iter().map(|column| column.title().to_owned()).collect();
    let lines = view.lines(sort, false, filter);
    let rows: Vec<Vec<String>> = std::iter::once(titles)
        .chain(
            lines
                .iter()
                .map(|line| columns.iter().map(|column| column.cell(line)).collect()),
        )
        .collect();
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    for row in &rows {
        let mut line = String::new();
        for ((column, cell), width) in columns.iter().zip(row).zip(&widths) {
            // Writing to a string does not fail.
            let _ = match column.is_text() {
                true => write!(line, "{cell:<width$}  "),
                false => write!(line, "{cell:>width$}  "),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    if lines.is_empty() {
        text += match filter {
            "" => "(no actors)\n",
            _ => "(no actor's name contains that)\n",
        };
    }
    text
}
