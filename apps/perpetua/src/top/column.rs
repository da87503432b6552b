//! What there is to see of an actor, in which order, and how it is written. Must not know where.

use std::cmp::Ordering;

use clap::ValueEnum;

use super::sample::Line;
use crate::say::name;

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Column {
    Name,
    Id,
    Source,
    State,
    Processed,
    Rate,
    Queue,
    Dropped,
    Errors,
    P50,
    P99,
}

impl Column {
    /// From left to right.
    pub(super) const ALL: [Column; 11] = [
        Column::Name,
        Column::Id,
        Column::Source,
        Column::State,
        Column::Processed,
        Column::Rate,
        Column::Queue,
        Column::Dropped,
        Column::Errors,
        Column::P50,
        Column::P99,
    ];

    /// Where there is little room, the first of these are left out first.
    #[cfg(feature = "top")]
    pub(super) const LEAST: [Column; 7] = [
        Column::Source,
        Column::Id,
        Column::P50,
        Column::Dropped,
        Column::State,
        Column::Processed,
        Column::Errors,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Column::Name => "NAME",
            Column::Id => "ID",
            Column::Source => "OF",
            Column::State => "STATE",
            Column::Processed => "PROCESSED",
            Column::Rate => "RATE/S",
            Column::Queue => "QUEUE",
            Column::Dropped => "DROPPED",
            Column::Errors => "ERRORS",
            Column::P50 => "P50",
            Column::P99 => "P99",
        }
    }

    /// Whether it is written from the left.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Column::Name | Column::Source | Column::State)
    }

    /// What stands in it.
    pub(super) fn cell(self, line: &Line<'_>) -> String {
        let row = line.row;
        match self {
            Column::Name if row.actors > 1 => format!("{} x{}", name(&row.name), row.actors),
            Column::Name => name(&row.name),
            Column::Id if row.id == u32::MAX => "-".into(),
            Column::Id => row.id.to_string(),
            Column::Source => name(line.source),
            Column::State if row.in_state < row.actors && !row.state.is_empty() => {
                format!("{} {}", row.in_state, name(&row.state))
            }
            Column::State => name(&row.state),
            Column::Processed => number(row.processed),
            Column::Rate => rate(line.rate),
            Column::Queue => number(row.queue_depth),
            Column::Dropped => number(row.dropped),
            Column::Errors => number(row.errors),
            Column::P50 => time(row.latency.count, row.latency.p50),
            Column::P99 => time(row.latency.count, row.latency.p99),
        }
    }

    /// Which of two stands above the other when this is sorted by: greater figures, earlier names and numbers. Equal ones are in the
    /// order of their numbers, so that they do not change places from look to look.
    pub(super) fn order(self, a: &Line<'_>, b: &Line<'_>) -> Ordering {
        let (x, y) = (a.row, b.row);
        let greater = |figure: fn(&Line<'_>) -> u64| figure(b).cmp(&figure(a));
        let order = match self {
            Column::Name => natural(&x.name, &y.name),
            Column::Id => x.id.cmp(&y.id),
            Column::Source => a.source.cmp(b.source),
            Column::State => x.state.cmp(&y.state),
            Column::Processed => greater(|line| line.row.processed),
            Column::Rate => b.rate.unwrap_or(0.0).total_cmp(&a.rate.unwrap_or(0.0)),
            Column::Queue => greater(|line| line.row.queue_depth),
            Column::Dropped => greater(|line| line.row.dropped),
            Column::Errors => greater(|line| line.row.errors),
            Column::P50 => greater(|line| line.row.latency.p50),
            Column::P99 => greater(|line| line.row.latency.p99),
        };
        order.then(a.source.cmp(b.source)).then(x.id.cmp(&y.id))
    }
}

/// Names as people order them: `tile[2]` before `tile[10]`.
fn natural(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| -> Vec<(String, Option<u64>)> {
        let mut parts = vec![(String::new(), None::<u64>)];
        for c in text.chars() {
            let Some((word, number)) = parts.last_mut() else {
                break;
            };
            match (c.to_digit(10), *number) {
                (Some(digit), before) => {
                    let tens = before.unwrap_or(0).saturating_mul(10);
                    *number = Some(tens.saturating_add(digit.into()));
                }
                (None, Some(_)) => parts.push((c.to_string(), None)),
                (None, None) => word.push(c),
            }
        }
        parts
    };
    parts(a).cmp(&parts(b)).then_with(|| a.cmp(b))
}

/// A count; from ten millions on with three digits and a letter.
pub(super) fn number(count: u64) -> String {
    match count {
        0..10_000_000 => count.to_string(),
        _ => short(count as f64),
    }
}

fn short(count: f64) -> String {
    let (value, letter) = match count {
        ..1e3 => return format!("{count:.0}"),
        ..1e6 => (count / 1e3, 'k'),
        ..1e9 => (count / 1e6, 'M'),
        ..1e12 => (count / 1e9, 'G'),
        _ => (count / 1e12, 'T'),
    };
    match value {
        ..10.0 => format!("{value:.2}{letter}"),
        ..100.0 => format!("{value:.1}{letter}"),
        _ => format!("{value:.0}{letter}"),
    }
}

/// Messages a second, if they are known.
pub(super) fn rate(rate: Option<f64>) -> String {
    match rate {
        None => "-".into(),
        Some(rate) if rate > 0.0 && rate < 10.0 => format!("{rate:.1}"),
        Some(rate) => short(rate),
    }
}

/// A time in nanoseconds, if there were any.
pub(super) fn time(count: u64, nanos: u64) -> String {
    if count == 0 {
        return "-".into();
    }
    let (value, unit) = match nanos {
        0..1_000 => return format!("{nanos}ns"),
        1_000..1_000_000 => (nanos as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (nanos as f64 / 1e6, "ms"),
        _ => (nanos as f64 / 1e9, "s"),
    };
    match value {
        ..10.0 => format!("{value:.2}{unit}"),
        ..100.0 => format!("{value:.1}{unit}"),
        _ => format!("{value:.0}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        let check = |got: String, expected: &str| assert_eq!(got, expected);
        check(number(9_999_999), "9999999");
        check(number(12_345_678), "12.3M");
        check(number(u64::MAX), "18446744T");
        check(rate(None), "-");
        check(rate(Some(0.0)), "0");
        check(rate(Some(1.25)), "1.2");
        check(rate(Some(1234.0)), "1.23k");
        check(time(0, 0), "-");
        check(time(1, 0), "0ns");
        check(time(1, 1_500), "1.50us");
        check(time(1, 23_456_000), "23.5ms");
        check(time(1, 100_000_000_000), "100s");
    }

    #[test]
    fn names_are_ordered_as_people_do() {
        let mut names = ["tile[10]", "b", "tile[2]", "a10", "a9", "tile[0]", "tile"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            ["a9", "a10", "b", "tile", "tile[0]", "tile[2]", "tile[10]"]
        );
    }
}
