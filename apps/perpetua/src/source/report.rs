//! Mistakes in a source file as rustc shows them: the line, and carets under what is wrong. Must not know who found them.

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use perpetua_cpu::interp::{Race, RacingAccess};
use perpetua_ir::fault::Fault;
use perpetua_ir::front::rust::{LowerError, SourceError};
use perpetua_ir::ir::FaultKind;

use crate::Failure;
use crate::say;

/// A source file.
pub(crate) struct File<'a> {
    path: &'a Path,
    /// Its path as the compiler knows it: what is no text in that is replaced.
    pub(crate) known: String,
    /// As it is said: nothing in it commands a terminal.
    pub(crate) name: String,
    pub(crate) text: &'a str,
}

/// A path's text up to its last slash.
fn folder(path: &str) -> &str {
    let end = path.rfind(std::path::is_separator).map_or(0, |at| at + 1);
    &path[..end]
}

impl<'a> File<'a> {
    pub(crate) fn new(path: &'a (impl AsRef<Path> + ?Sized), text: &'a str) -> File<'a> {
        let path = path.as_ref();
        File {
            path,
            known: path.to_string_lossy().into_owned(),
            name: say::file(path),
            text,
        }
    }

    pub(super) fn path(&self) -> &'a Path {
        self.path
    }

    /// Where a file lies that the compiler knows so: one of its modules lies in its folder, or below what is called as it is, and neither needs to be text.
    pub(super) fn place_of(&self, known: &str) -> PathBuf {
        let below = self.path.with_extension("");
        let own = format!("{}/", below.to_string_lossy());
        let beside = self.path.parent().unwrap_or(Path::new(""));
        for (known_so, folder) in [(&*own, &*below), (folder(&self.known), beside)] {
            if let Some(rest) = known.strip_prefix(known_so) {
                return folder.join(rest);
            }
        }
        known.into()
    }

    /// Does something with the file that the compiler knows so: this one, or that of a module.
    pub(crate) fn within<T>(&self, known: &str, then: impl FnOnce(&File<'_>) -> T) -> T {
        let is_other = known != self.known && known.ends_with(".rs");
        let path = self.place_of(known);
        match is_other.then(|| super::module(&path)) {
            Some(Ok(Some(text))) => then(&File {
                path: &path,
                known: known.to_owned(),
                name: say::file(&path),
                text: &text,
            }),
            _ => then(self),
        }
    }
}

impl File<'_> {
    /// Shows every refusal, and gives what to end with.
    pub(crate) fn refused(&self, error: SourceError) -> Failure {
        self.within(&error.file, |file| file.refused_here(&error))
    }

    fn refused_here(&self, error: &SourceError) -> Failure {
        for refusal in &error.refusals {
            // What is found in the program's own texts has no place in the file.
            let is_here = error.file == self.known;
            show(&self.report(&refusal.text, refusal.place.clone(), is_here && refusal.line > 0));
        }
        let count = match error.refusals.len() {
            1 => "a mistake".to_owned(),
            n => format!("{n} mistakes"),
        };
        format!("{} has {count}", self.name).into()
    }

    /// Shows why a function cannot be lowered. Where the expression is not known, carets stand under the name that is spoken of, or else
    /// under the line.
    pub(crate) fn not_lowered(&self, error: &LowerError) {
        let title = match error.remedy.is_empty() {
            true => error.cause.clone(),
            false => format!("{}: {}", error.cause, error.remedy),
        };
        self.within(&error.file, |file| {
            if *error.file == *file.known && !error.place.is_empty() {
                return show(&file.report(&title, error.place.clone(), true));
            }
            file.marked_in(&error.file, &title, &error.cause, error.line);
        });
    }

    /// Shows what a kernel met while it ran: carets stand under what is spoken of.
    pub(crate) fn fault(&self, fault: &Fault) {
        let site = &fault.site;
        let find = |line: &str| match site.kind {
            FaultKind::DivisionByZero | FaultKind::DivisionOverflow => dividing(line, &site.subject),
            FaultKind::IndexOutOfBounds => accessed(line, &site.subject),
            _ => named(line, &site.subject),
        };
        self.within(&fault.source, |file| {
            let place = file.place(&fault.source, site.line, find);
            show(&file.report(&fault.to_string(), place.clone().unwrap_or(0..0), place.is_some()));
        });
    }

    /// Shows both sides of a race.
    pub(crate) fn race(&self, race: &Race) {
        self.within(&race.source, |file| file.race_here(race));
    }

    fn race_here(&self, race: &Race) {
        let side = |access: &RacingAccess, said: &str| {
            let find = |line: &str| accessed(line, &race.subject);
            let place = self.place(&race.source, access.line, find)?;
            Some((place, said.replace("access", &access.kind.to_string())))
        };
        let sides = [
            side(&race.first, "first this access"),
            side(&race.second, "then this access, with no order between them"),
        ];
        let mut snippet = Snippet::source(self.text).path(&*self.name);
        for ((place, said), kind) in sides
            .into_iter()
            .flatten()
            .zip([AnnotationKind::Context, AnnotationKind::Primary])
        {
            snippet = snippet.annotation(kind.span(place).label(said));
        }
        let group = Level::ERROR.primary_title(say::shown(&race.to_string()).into_owned());
        show(&Renderer::styled().render(&[group.element(snippet)]));
    }

    /// Shows a mistake in a line.
    pub(crate) fn marked(&self, title: &str, line: u32) {
        self.marked_in(&self.known, title, title, line);
    }

    /// A barrier's mistake names what parts lanes as the source does.
    fn as_written(&self, title: &str) -> String {
        let line = title.split_once(" is each lane's own (line ");
        let line = line.and_then(|(_, rest)| rest.split(')').next()?.parse().ok());
        let line = line.and_then(|line| self.line(line));
        spoken(title, line.map_or("", |line| &self.text[line]))
    }

    fn marked_in(&self, file: &str, title: &str, cause: &str, line: u32) {
        let title = match *file == *self.known {
            true => &self.as_written(title),
            false => title,
        };
        let place = self.place(file, line, |line| {
            let mut names = cause.split('`').skip(1).step_by(2);
            names.find_map(|name| named(line, name))
        });
        show(&self.report(title, place.clone().unwrap_or(0..0), place.is_some()));
    }

    /// Where in a line of a file something is, if it is this file: what `find` has found there, or else all of it.
    fn place(
        &self,
        file: &str,
        line: u32,
        find: impl Fn(&str) -> Option<Range<usize>>,
    ) -> Option<Range<usize>> {
        let line = self.line(line).filter(|_| *file == *self.known)?;
        Some(match find(&self.text[line.clone()]) {
            Some(found) => line.start + found.start..line.start + found.end,
            None => line,
        })
    }

    /// The bytes of a line, without the spaces around it.
    fn line(&self, number: u32) -> Option<Range<usize>> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let line = self.text.split_inclusive('\n').nth(index)?;
        let start = self
            .text
            .split_inclusive('\n')
            .take(index)
            .map(str::len)
            .sum::<usize>();
        let indent = line.len() - line.trim_start().len();
        Some(start + indent..start + line.trim_end().len().max(indent))
    }

    fn report(&self, title: &str, place: Range<usize>, is_placed: bool) -> String {
        let group = Level::ERROR.primary_title(say::shown(title));
        let end = place.end.max(place.start + 1).min(self.text.len());
        if !is_placed || self.text.get(place.start..end).is_none() {
            return Renderer::styled().render(&[group.element(Level::NOTE.message(&*self.name))]);
        }
        let mark = AnnotationKind::Primary.span(place.start..end);
        let snippet = Snippet::source(self.text).path(&*self.name).annotation(mark);
        Renderer::styled().render(&[group.element(snippet)])
    }
}

/// What parts lanes in this line, in the words of the source: the IR has one name for a lane's place, Rust several.
pub(crate) fn spoken(what: &str, line: &str) -> String {
    for axis in ["x", "y", "z"] {
        let named = format!("`thread_idx.{axis}`");
        if !what.contains(&named) {
            continue;
        }
        let mut known = ["global_id", "local_id", "thread_idx"]
            .iter()
            .map(|name| format!("{name}_{axis}()"));
        let written = match known.find(|name| line.contains(name)) {
            Some(name) => format!("`{name}`"),
            None => format!("the lane's index in {axis}"),
        };
        return what.replace(&named, &written);
    }
    what.to_owned()
}

/// Where a name stands in a line.
fn places<'a>(line: &'a str, name: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let all = line.match_indices(name).filter(move |(at, _)| {
        let (before, after) = (&line[..*at], &line[at + name.len()..]);
        let goes_on = (before.ends_with(is_word) && name.starts_with(is_word))
            || (after.starts_with(is_word) && name.ends_with(is_word));
        !goes_on && !name.is_empty()
    });
    all.map(|(at, name)| at..at + name.len())
}

/// The only one, if there is one.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    all.next().filter(|_| all.next().is_none())
}

/// Where a name stands in the line, if it does so once.
fn named(line: &str, name: &str) -> Option<Range<usize>> {
    only(places(line, name))
}

/// Where what has this name is accessed in the line, if that is so once.
fn accessed(line: &str, name: &str) -> Option<Range<usize>> {
    let indexed = places(line, name).filter(|place| line[place.end..].trim_start().starts_with('['));
    named(line, name).or_else(|| only(indexed))
}

/// The statement in a line that divides, if there is one.
fn dividing(line: &str, what: &str) -> Option<Range<usize>> {
    let code = line.find("//").map_or(line, |at| &line[..at]);
    let sign = if what == "division" { '/' } else { '%' };
    let (at, _) = only(code.match_indices(sign))?;
    let edge = [';', '{', '}'];
    let start = code[..at].rfind(edge).map_or(0, |edge| edge + 1);
    let end = code[at..].find(edge).map_or(code.len(), |edge| at + edge);
    let part = &code[start..end];
    let start = start + part.len() - part.trim_start().len();
    Some(start..start + part.trim().len())
}

/// Colours go where a terminal is.
fn show(report: &str) {
    // As in `say`: whoever closed it wants to hear nothing.
    let _ = writeln!(anstream::stderr(), "{report}\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use perpetua_ir::front::rust::{kernels_in_file, lower};

    fn plain(report: &str) -> String {
        anstream::adapter::strip_str(report).to_string()
    }

    #[test]
    fn carets_stand_under_what_is_refused() {
        let text = "#[kernel]\nfn k(y: &mut [f32]) {\n    y[0] = \"äö\".len() + (\"x\");\n}\n";
        let file = File::new("k.rs", text);
        let error = kernels_in_file(text, "k.rs").unwrap_err();
        let refusal = &error.refusals[0];
        let report = plain(&file.report("no strings", refusal.place.clone(), true));
        let expect = "error: no strings\n --> k.rs:3:12\n  |\n3 |     y[0] = \"äö\".len() + (\"x\");\n  |            ^^^^";
        assert_eq!(report, expect);
    }

    #[test]
    fn what_divides_is_found_in_its_line() {
        for (line, what, expect) in [
            ("y[0] = 1 / n;", "division", Some("y[0] = 1 / n")),
            (
                "fn k(n: u32) { let z = 5; y[0] = z % n; } // a % b",
                "remainder",
                Some("y[0] = z % n"),
            ),
            ("y[0] = 1 / n / m;", "division", None),
            ("y[0] = n.div_euclid(m);", "division", None),
            ("y[0] = 1 /", "division", Some("y[0] = 1 /")),
        ] {
            assert_eq!(dividing(line, what).map(|place| &line[place]), expect, "{line}");
        }
        let line = "fn k(x: &[u32]) { y[x] = x[5]; }";
        assert_eq!(accessed(line, "x"), Some(25..26));
    }

    #[test]
    fn a_line_is_marked_where_a_name_is_not_found() {
        let check = |body: &str, expect: &str| {
            let text = format!("#[kernel]\nfn k(y: &mut [f32], n: u32) {{\n    {body}\n}}\n");
            let all = kernels_in_file(&text, "k.rs").unwrap();
            let error = lower(&all[0].function, &all[0].how).unwrap_err();
            let file = File::new("k.rs", &text);
            let name = error.cause.split('`').nth(1).unwrap_or_default();
            let place = match error.place.is_empty() {
                true => file.place("k.rs", error.line, |line| named(line, name)).unwrap(),
                false => error.place.clone(),
            };
            assert_eq!(&text[place], expect, "{error}");
        };
        check("y[0] = nowhere;", "nowhere");
        check("y[0] = n;", "n");
        check("y[0] = 1;", "1");
        check("for a in 0..10u32 { y[0] += a; }", "a");
        check("y[0] = (n + 1) * y[0];", "y[0]");
        check("y[0] = 2 * y[0];", "2");
        check("if n { y[0] = 1.0; }", "n");
    }
}
