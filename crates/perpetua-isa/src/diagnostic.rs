//! Errors of the assembler: file, line and column, with the offending text underlined.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// A text that is no program: the first thing that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssembleError {
    /// What is wrong.
    pub message: String,
    /// What to do about it, where that is known.
    pub help: Option<String>,
    /// The file.
    pub file: Arc<str>,
    /// Line in the file, from 1.
    pub line: u32,
    /// The line's text; of a macro's line with its arguments in place.
    pub text: Arc<str>,
    /// The offending bytes of the line.
    pub span: Range<usize>,
    /// The macro whose line it is.
    pub within: Option<Arc<str>>,
}

impl AssembleError {
    /// Column of the first offending character, from 1.
    pub fn column(&self) -> usize {
        self.text
            .get(..self.span.start)
            .map_or(0, |before| before.chars().count())
            + 1
    }
}

impl fmt::Display for AssembleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let snippet = Snippet::source(&*self.text)
            .line_start(self.line as usize)
            .path(&*self.file)
            .annotation(AnnotationKind::Primary.span(self.span.clone()));
        let mut group = Level::ERROR.primary_title(self.message.as_str()).element(snippet);
        let within = self
            .within
            .as_ref()
            .map(|name| format!("in a use of the macro `{name}`"));
        if let Some(within) = &within {
            group = group.element(Level::NOTE.message(within.as_str()));
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        f.write_str(&Renderer::plain().render(&[group]))
    }
}

impl std::error::Error for AssembleError {}
