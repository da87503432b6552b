//! What is said about each line, and what of the line it is about. Analyses know lines; which part of one is meant is found by its
//! names. Must not know how it is drawn.

use std::collections::BTreeMap;
use std::ops::Range;

use perpetua_cpu::interp::{Apart, Done, Note, Noted};
use perpetua_ir::pass::checks::{Check, Checked, Proof};
use perpetua_ir::verify::Divergence;

use crate::source::spoken;

/// Where something is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Cpu,
    Gpu,
}

/// Something about a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Remark {
    /// Bytes of the line that it is about, in order.
    pub(super) places: Vec<Range<usize>>,
    /// One row each.
    pub(super) rows: Vec<String>,
    /// Whether it costs time.
    pub(super) costs: bool,
}

/// What the analyses have found.
pub(super) struct Found<'a> {
    pub(super) text: &'a str,
    pub(super) checks: &'a [Check],
    pub(super) notes: &'a [Note],
    pub(super) reasons: &'a [(u32, Divergence)],
    /// Lanes that the processor runs side by side.
    pub(super) lanes: u32,
    /// On one side alone, or on both.
    pub(super) side: Option<Side>,
}

/// An access in a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Load,
    Store,
    Atomic,
}

impl Kind {
    fn of(what: Checked) -> Option<Kind> {
        match what {
            Checked::Load => Some(Kind::Load),
            Checked::Store => Some(Kind::Store),
            Checked::Atomic => Some(Kind::Atomic),
            Checked::Divisor | Checked::Overflow => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Load => "load",
            Kind::Store => "store",
            Kind::Atomic => "atomic operation",
        }
    }
}

/// What is known of one access.
#[derive(Clone, PartialEq, Eq, Default)]
struct Access {
    /// By index; where one is checked, the access is.
    proofs: Vec<Option<Proof>>,
    reached: Option<(Apart, Done)>,
}

impl Found<'_> {
    /// Remarks by line, from 1.
    pub(super) fn remarks(&self) -> BTreeMap<u32, Vec<Remark>> {
        let mut lines: Vec<u32> = self.checks.iter().map(|c| c.line).collect();
        lines.extend(self.notes.iter().map(|n| n.line));
        lines.sort_unstable();
        lines.dedup();
        let mut all = BTreeMap::new();
        for line in lines.into_iter().filter(|line| *line > 0) {
            let Some(text) = self.text.lines().nth(line as usize - 1) else {
                continue;
            };
            let mut remarks = Vec::new();
            self.flow(line, text, &mut remarks);
            self.accesses(line, text, &mut remarks);
            self.operations(line, text, &mut remarks);
            remarks.sort_by_key(|remark| remark.places.first().map_or(0, |place| place.start));
            if !remarks.is_empty() {
                all.insert(line, remarks);
            }
        }
        all
    }

    fn notes_of(&self, line: u32) -> impl Iterator<Item = &Noted> {
        self.notes.iter().filter(move |n| n.line == line).map(|n| &n.what)
    }

    /// Where lanes part and meet.
    fn flow(&self, line: u32, text: &str, remarks: &mut Vec<Remark>) {
        let mut rows = Vec::new();
        let parts = |leaves: bool| self.notes_of(line).any(|n| *n == Noted::Part { leaves });
        for (leaves, what) in [
            (true, "lanes leave this loop in different turns"),
            (false, "lanes part here"),
        ] {
            if !parts(leaves) {
                continue;
            }
            let why = self
                .reasons
                .iter()
                .find(|(at, _)| *at == line)
                .map(|(_, why)| why);
            rows.push(match why {
                Some(why) if why.line > 0 && why.line != line => {
                    format!("{what}: {} (line {})", self.spoken(why), why.line)
                }
                Some(why) => format!("{what}: {}", self.spoken(why)),
                None => format!("{what}: what decides differs between them"),
            });
        }
        if !rows.is_empty() {
            let costs = true;
            let places = vec![statement(text)];
            remarks.push(Remark { places, rows, costs });
        }
        let meets = |exchanges: bool| self.notes_of(line).any(|n| *n == Noted::Meet { exchanges });
        for (exchanges, row) in [
            (false, "all lanes of the block wait here"),
            (true, "lanes exchange values here"),
        ] {
            if meets(exchanges) {
                remarks.push(Remark {
                    places: vec![statement(text)],
                    rows: vec![row.to_owned()],
                    costs: false,
                });
            }
        }
    }

    /// Why lanes part, in the words of the source: the IR has one name for a lane's place, Rust several.
    fn spoken(&self, why: &Divergence) -> String {
        let line = usize::try_from(why.line)
            .ok()
            .and_then(|line| line.checked_sub(1));
        let line = line
            .and_then(|line| self.text.lines().nth(line))
            .unwrap_or_default();
        spoken(&why.what, line)
    }

    /// What the host evaluates, and divisions that are checked.
    fn operations(&self, line: u32, text: &str, remarks: &mut Vec<Remark>) {
        let mut rows: Vec<String> = Vec::new();
        let mut add = |row: String| {
            if !rows.contains(&row) {
                rows.push(row);
            }
        };
        for note in self.notes_of(line) {
            if let (Noted::Host(name), true) = (note, self.side != Some(Side::Gpu)) {
                add(format!("CPU: {name} is evaluated lane by lane"));
            }
        }
        for check in self
            .checks
            .iter()
            .filter(|c| c.line == line && self.side != Some(Side::Cpu))
        {
            match (check.what, check.proof) {
                (Checked::Divisor, None) => add(format!(
                    "GPU: the {} is checked for a divisor of zero",
                    check.subject
                )),
                (Checked::Divisor, Some(Proof::Constant)) => {}
                (Checked::Divisor, Some(proof)) => {
                    add(format!("GPU: no check of the divisor, {}", because(proof, line)))
                }
                (Checked::Overflow, None) => {
                    add(format!("GPU: the {} is checked for MIN by -1", check.subject))
                }
                _ => {}
            }
        }
        if !rows.is_empty() {
            remarks.push(Remark {
                places: vec![statement(text)],
                rows,
                costs: true,
            });
        }
    }

    fn accesses(&self, line: u32, text: &str, remarks: &mut Vec<Remark>) {
        let mut subjects: Vec<&str> = Vec::new();
        let checked = self
            .checks
            .iter()
            .filter(|c| c.line == line && Kind::of(c.what).is_some());
        let reached = self.notes_of(line).filter_map(|note| match note {
            Noted::Access { subject, .. } => Some(&**subject),
            _ => None,
        });
        for subject in checked.map(|c| &*c.subject).chain(reached) {
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
        for subject in subjects {
            for kind in [Kind::Store, Kind::Atomic, Kind::Load] {
                let all = self.found(line, subject, kind);
                let places = places(text, subject, kind);
                let apart = all.len() == places.len();
                for (number, access) in all.iter().enumerate() {
                    let Some((rows, costs)) = self.said(access, kind, line) else {
                        continue;
                    };
                    let places = if apart {
                        vec![places[number].clone()]
                    } else {
                        places.clone()
                    };
                    match remarks.iter_mut().find(|r| r.rows == rows) {
                        Some(same) => {
                            same.places.extend(places);
                            same.places.sort_by_key(|place| place.start);
                            same.places.dedup();
                        }
                        None => remarks.push(Remark { places, rows, costs }),
                    }
                }
            }
        }
    }

    /// The accesses of one kind to one thing in a line. Where both analyses have found as many, they speak of the same ones in order.
    fn found(&self, line: u32, subject: &str, kind: Kind) -> Vec<Access> {
        let mut all: Vec<Access> = Vec::new();
        let mut last = None;
        for check in self.checks {
            if check.line != line || check.subject != subject || Kind::of(check.what) != Some(kind) {
                continue;
            }
            match (last == Some(check.statement), all.last_mut()) {
                (true, Some(access)) => access.proofs.push(check.proof),
                _ => all.push(Access {
                    proofs: vec![check.proof],
                    reached: None,
                }),
            }
            last = Some(check.statement);
        }
        let stores = kind != Kind::Load;
        let reached: Vec<(Apart, Done)> = self
            .notes_of(line)
            .filter_map(|note| match note {
                Noted::Access {
                    subject: of,
                    stores: s,
                    apart,
                    done,
                } if of == subject && *s == stores => Some((*apart, *done)),
                _ => None,
            })
            .collect();
        if kind == Kind::Atomic && all.is_empty() {
            return all;
        }
        if all.len() == reached.len() {
            for (access, reached) in all.iter_mut().zip(reached) {
                access.reached = Some(reached);
            }
        } else if let (Some(first), true) = (reached.first(), reached.windows(2).all(|w| w[0] == w[1])) {
            all.iter_mut().for_each(|access| access.reached = Some(*first));
        }
        all.dedup_by(|a, b| a == b && kind != Kind::Load);
        all
    }

    /// Rows about an access, and whether it costs more than it might.
    fn said(&self, access: &Access, kind: Kind, line: u32) -> Option<(Vec<String>, bool)> {
        let mut rows = Vec::new();
        let name = kind.name();
        rows.push(match access.reached {
            Some((Apart::Same, _)) => format!("{name} of one element for all lanes"),
            Some((Apart::Next, _)) => format!("{name}, neighbouring lanes side by side"),
            Some((Apart::Bytes(bytes), _)) => format!("{name}, neighbouring lanes {bytes} bytes apart"),
            Some((Apart::Own, _)) => format!("{name}, each lane at a place of its own"),
            None => name.to_owned(),
        });
        let mut costs = matches!(access.reached, Some((Apart::Bytes(_) | Apart::Own, _)));
        if self.side != Some(Side::Cpu) {
            let checked = access.proofs.contains(&None);
            costs |= checked;
            let mut whys: Vec<String> = access
                .proofs
                .iter()
                .flatten()
                .map(|proof| because(*proof, line))
                .collect();
            whys.dedup();
            rows.push(match checked {
                true => "GPU: checked, no test before it bounds the index".to_owned(),
                false => format!("GPU: no check, {}", whys.join("; ")),
            });
        }
        if let (Some((_, done)), true) = (access.reached, self.side != Some(Side::Gpu)) {
            let (lanes, a) = (self.lanes, if kind == Kind::Load { "a load" } else { "a store" });
            costs |= matches!(done, Done::Lanes | Done::Host);
            rows.push(match (done, kind) {
                (Done::Once, _) => format!("CPU: {a} and a comparison for all {lanes} lanes"),
                (Done::Vector, _) => format!("CPU: {a} and a comparison by {lanes} lanes"),
                (Done::Gather, Kind::Load) => "CPU: a gather, compared lane by lane in vectors".to_owned(),
                (Done::Gather, _) => "CPU: a scatter, compared lane by lane in vectors".to_owned(),
                (Done::Lanes, _) => "CPU: lane by lane, compared in vectors".to_owned(),
                (Done::Host, _) => "CPU: lane by lane, by the interpreter's code".to_owned(),
            });
        }
        Some((rows, costs))
    }
}

/// Why a check is superfluous.
fn because(proof: Proof, line: u32) -> String {
    match proof {
        Proof::Compared(at) if at == line => "this line tests it".to_owned(),
        Proof::Compared(at) => format!("line {at} tests it"),
        Proof::Checked(at) if at == line => "checked before in this line".to_owned(),
        Proof::Checked(at) => format!("checked in line {at}"),
        Proof::AtMost(most) => format!("it is at most {most}"),
        Proof::Remainder => "it is a remainder by the length".to_owned(),
        Proof::Constant => "it is a constant".to_owned(),
        Proof::NotNegative => "it is never negative".to_owned(),
    }
}

/// A line's statement, without the spaces around it, the comment behind it and what opens a block.
fn statement(line: &str) -> Range<usize> {
    let code = line.find("//").map_or(line, |at| &line[..at]);
    let start = line.len() - line.trim_start().len();
    let end = code.trim_end().trim_end_matches(['{', ';']).trim_end().len();
    start..end.max(start + 1).min(line.len().max(start + 1))
}

/// Where a line speaks of a buffer or variable: with its index, where it has one. A store's are left of the assignment, what is loaded
/// is on its right; an assignment that also computes does both on its left.
fn places(line: &str, subject: &str, kind: Kind) -> Vec<Range<usize>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let code = line.find("//").map_or(line, |at| &line[..at]);
    let all = code.match_indices(subject).filter(|(at, _)| {
        let (before, after) = (&code[..*at], &code[at + subject.len()..]);
        !subject.is_empty()
            && !before.ends_with(is_word)
            && (!before.ends_with('.') || before.ends_with(".."))
            && !after.starts_with(is_word)
    });
    let all: Vec<Range<usize>> = all
        .map(|(at, _)| at..at + subject.len() + index_of(&code[at + subject.len()..]))
        .collect();
    let indexed: Vec<_> = all
        .iter()
        .filter(|place| place.len() > subject.len())
        .cloned()
        .collect();
    let all = if indexed.is_empty() { all } else { indexed };
    let of_kind = match assignment(code) {
        Some((at, computes)) => {
            let (left, right): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|place| place.start < at);
            match (kind, computes) {
                (Kind::Store | Kind::Atomic, _) => left,
                // What is added is loaded before what it is added to.
                (Kind::Load, true) => right.into_iter().chain(left).collect(),
                (Kind::Load, false) => right,
            }
        }
        None => Vec::new(),
    };
    match (of_kind.is_empty(), all.is_empty()) {
        (false, _) => of_kind,
        (true, false) => all,
        (true, true) => vec![statement(line)],
    }
}

/// Bytes of the index that begins a text.
fn index_of(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return if c == ']' { at + 1 } else { 0 };
        }
    }
    0
}

/// Where a line assigns, and whether it computes with what was there.
fn assignment(code: &str) -> Option<(usize, bool)> {
    let bytes = code.as_bytes();
    (1..bytes.len()).find_map(|at| {
        let (before, after) = (bytes[at - 1], bytes.get(at + 1).copied());
        let assigns = bytes[at] == b'=' && after != Some(b'=') && after != Some(b'>');
        let shifts = at > 1 && bytes[at - 2] == before;
        match before {
            b'=' | b'!' | b'.' => None,
            b'<' | b'>' if !shifts => None,
            b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'<' | b'>' => {
                assigns.then_some((at - 1, true))
            }
            _ => assigns.then_some((at, false)),
        }
    })
}
