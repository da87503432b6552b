//! Mistakes in a source file as rustc shows them: the line, and carets under what is wrong. Must not know who found them.

use std::io::Write;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use perpetua_ir::fault::Fault;
use perpetua_ir::front::rust::{LowerError, SourceError};

use crate::Failure;

/// A source file.
pub(crate) struct File<'a> {
    /// As it is said: nothing in it commands a terminal.
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

impl File<'_> {
    /// Shows every refusal, and gives what to end with.
    pub(crate) fn refused(&self, error: SourceError) -> Failure {
        for refusal in &error.refusals {
            // What is found in the program's own texts has no place in the file.
            let is_here = error.file == self.name;
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
        if *error.file == *self.name && !error.place.is_empty() {
            return show(&self.report(&title, error.place.clone(), true));
        }
        self.marked_in(&error.file, &title, &error.cause, error.line);
    }

    /// Shows what a kernel met while it ran: carets stand under what is spoken of.
    pub(crate) fn fault(&self, fault: &Fault) {
        let title = fault.to_string();
        self.marked_in(&fault.source, &title, &title, fault.site.line);
    }

    /// Shows a mistake in a line.
    pub(crate) fn marked(&self, title: &str, line: u32) {
        self.marked_in(self.name, title, title, line);
    }

    fn marked_in(&self, file: &str, title: &str, cause: &str, line: u32) {
        let line = self.line(line).filter(|_| *file == *self.name);
        let place = line.map(|line| named_in(&self.text[line.clone()], cause, line.start));
        show(&self.report(title, place.clone().unwrap_or(0..0), place.is_some()));
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
        let group = Level::ERROR.primary_title(title);
        let end = place.end.max(place.start + 1).min(self.text.len());
        if !is_placed || self.text.get(place.start..end).is_none() {
            return Renderer::styled().render(&[group.element(Level::NOTE.message(self.name))]);
        }
        let mark = AnnotationKind::Primary.span(place.start..end);
        let snippet = Snippet::source(self.text).path(self.name).annotation(mark);
        Renderer::styled().render(&[group.element(snippet)])
    }
}

/// Where the first name in backquotes stands in the line, if it does so once; else the whole line.
fn named_in(line: &str, cause: &str, start: usize) -> Range<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let name = cause.split('`').nth(1).filter(|name| !name.is_empty());
    let places: Vec<usize> = name.map_or(Vec::new(), |name| {
        let whole = line.match_indices(name).filter(|(at, _)| {
            let (before, after) = (&line[..*at], &line[at + name.len()..]);
            let goes_on = (before.ends_with(is_word) && name.starts_with(is_word))
                || (after.starts_with(is_word) && name.ends_with(is_word));
            !goes_on
        });
        whole.map(|(at, _)| at).collect()
    });
    match (&places[..], name) {
        ([at], Some(name)) => start + at..start + at + name.len(),
        _ => start..start + line.len(),
    }
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
        let file = File { name: "k.rs", text };
        let error = kernels_in_file(text, "k.rs").unwrap_err();
        let refusal = &error.refusals[0];
        let report = plain(&file.report("no strings", refusal.place.clone(), true));
        let expect = "error: no strings\n --> k.rs:3:12\n  |\n3 |     y[0] = \"äö\".len() + (\"x\");\n  |            ^^^^";
        assert_eq!(report, expect);
    }

    #[test]
    fn a_line_is_marked_where_a_name_is_not_found() {
        let check = |body: &str, expect: &str| {
            let text = format!("#[kernel]\nfn k(y: &mut [f32], n: u32) {{\n    {body}\n}}\n");
            let all = kernels_in_file(&text, "k.rs").unwrap();
            let error = lower(&all[0].function, &all[0].how).unwrap_err();
            let file = File {
                name: "k.rs",
                text: &text,
            };
            let line = file.line(error.line).unwrap();
            let place = match error.place.is_empty() {
                true => named_in(&text[line.clone()], &error.cause, line.start),
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
