//! Remarks under the lines that they are about, as rustc draws them. Must not know what they say.

use std::collections::BTreeMap;
use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use console::measure_text_width;

use super::remarks::Remark;
use crate::say::shown;
use crate::text::wrapped;

/// Least room for a text beside its carets; below that it stands in rows of its own.
const ROOM: usize = 36;

const FRAME: Style = AnsiColor::BrightBlue.on_default().bold();
const PLAIN: Style = AnsiColor::BrightGreen.on_default();
const COSTS: Style = AnsiColor::BrightYellow.on_default();

/// Lines with remarks, and dots where others are left out.
pub(super) fn under_lines(text: &str, remarks: &BTreeMap<u32, Vec<Remark>>, columns: usize) -> String {
    let gutter = remarks
        .keys()
        .next_back()
        .map_or(1, |line| line.to_string().len());
    let lines: Vec<&str> = text.lines().collect();
    let bar = format!("{FRAME}{:gutter$} |{FRAME:#}", "");
    let mut out = format!("{bar}\n");
    let mut last = None;
    for (line, remarks) in remarks {
        let Some(text) = lines.get(*line as usize - 1) else {
            continue;
        };
        if last.is_some_and(|last| last + 1 < *line) {
            let _ = writeln!(out, "{FRAME}...{FRAME:#}");
        }
        last = Some(*line);
        // Carets count columns.
        let text = text.replace('\t', " ");
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{FRAME}{line:>gutter$} |{FRAME:#} {}", shown(&text));
        for remark in remarks {
            drawn(&text, remark, &bar, columns.saturating_sub(gutter + 3), &mut out);
        }
    }
    out
}

fn drawn(line: &str, remark: &Remark, bar: &str, columns: usize, out: &mut String) {
    let width =
        |bytes: std::ops::Range<usize>| measure_text_width(&shown(line.get(bytes).unwrap_or_default()));
    let (mut carets, mut at) = (String::new(), 0);
    for place in &remark.places {
        let start = width(0..place.start);
        carets += &" ".repeat(start.saturating_sub(at));
        carets += &"^".repeat(width(place.clone()).max(1));
        at = measure_text_width(&carets);
    }
    let style = if remark.costs { COSTS } else { PLAIN };
    let first = remark.places.first().map_or(0, |place| width(0..place.start));
    let beside = columns.saturating_sub(at + 1) >= ROOM;
    let indent = if beside {
        at + 1
    } else {
        first.min(columns.saturating_sub(ROOM)) + 2
    };
    let rows = remark.rows.iter().flat_map(|row| {
        let text = wrapped(row, 0, columns.saturating_sub(indent));
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    let mut rows = rows.peekable();
    let head = if beside {
        rows.next().unwrap_or_default()
    } else {
        String::new()
    };
    let _ = writeln!(
        out,
        "{bar} {style}{}{style:#}",
        format!("{carets} {head}").trim_end()
    );
    for row in rows {
        let _ = writeln!(out, "{bar} {:indent$}{style}{row}{style:#}", "");
    }
}
