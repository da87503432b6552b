//! What the program says beside its results, on stderr: a stderr that is closed or full ends nothing, and a name that somebody else
//! chose does nothing to the terminal.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{Write, stderr};

/// Says a line.
pub(crate) fn say(line: impl Display) {
    // Whoever closed it wants to hear nothing.
    let _ = writeln!(stderr(), "{}", shown(&line.to_string()));
}

/// Whether a terminal, or who reads it, would take a character for something else than text: control characters, and those that turn
/// the direction of writing.
fn misleads(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text with everything that is not text written out.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(misleads) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if misleads(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The same for a name, which has one line.
pub(crate) fn name(text: &str) -> String {
    shown(text).replace('\n', "\\n").replace('\t', "\\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_command_the_terminal() {
        assert_eq!(
            shown("a\u{1b}[31mred\u{202e}\rx\nä"),
            "a\\u{1b}[31mred\\u{202e}\\rx\nä"
        );
        assert_eq!(name("two\nlines\u{7}"), "two\\nlines\\u{7}");
        assert!(matches!(shown("plain ü\n"), Cow::Borrowed(_)));
    }
}
