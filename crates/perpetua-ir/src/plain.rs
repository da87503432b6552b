//! Texts that somebody else chose, as they are shown: nothing in them commands a terminal, begins a line or turns the direction of
//! writing. Must not know who shows them.

use std::borrow::Cow;

/// Whether a terminal, a page, or who reads it, takes a character for something else than text: control characters, separators of
/// lines, and Unicode's controls of direction (its property `Bidi_Control`).
#[must_use]
pub fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A name with everything that [`misleads`] written out, as Rust's literals have it.
#[must_use]
pub fn plain(name: &str) -> Cow<'_, str> {
    plain_but(name, |_| false)
}

/// The same where what is `kept` stays as it is.
#[must_use]
pub fn plain_but(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_written_out = |c: char| misleads(c) && !kept(c);
    if !text.contains(is_written_out) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match is_written_out(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_misleads_is_written_out() {
        assert_eq!(plain("a\u{1b}[31m\r\n\tä"), "a\\u{1b}[31m\\r\\n\\tä");
        let turns = "\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{9b}\u{7f}";
        assert!(plain(turns).is_ascii());
        assert_eq!(plain_but("a\n\u{7}", |c| c == '\n'), "a\n\\u{7}");
        assert!(matches!(plain("plain ü \u{5d0}"), Cow::Borrowed(_)));
    }
}
