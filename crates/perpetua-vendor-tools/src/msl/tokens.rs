//! MSL source as words and punctuation with their places. Skips comments, literals and preprocessor lines; knows no
//! grammar.

use std::ops::Range;

/// A piece of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    /// An identifier, keyword or number.
    Word(&'a str),
    /// One character of punctuation.
    Mark(char),
}

/// A piece of source and where it lies.
#[derive(Clone, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind<'a>,
    /// Bytes in the source.
    pub(crate) bytes: Range<usize>,
    /// The line, from 1.
    pub(crate) line: usize,
}

impl Token<'_> {
    pub(crate) fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word(word)
    }

    pub(crate) fn is_mark(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }
}

/// Splits a source.
pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line, mut line_is_blank) = (0, 1, true);
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if c == '#' && line_is_blank {
            preprocessor_line(rest)
        } else if c == '"' || c == '\'' {
            literal(rest, c)
        } else if c.is_alphanumeric() || c == '_' {
            let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
            let whole = if c.is_ascii_digit() {
                rest.find(|c| !is_word(c))
            } else {
                rest.find(|c| !is_word(c) || c == '.')
            };
            let length = whole.unwrap_or(rest.len());
            found.push(Token {
                kind: Kind::Word(&rest[..length]),
                bytes: at..at + length,
                line,
            });
            length
        } else {
            if !c.is_whitespace() {
                found.push(Token {
                    kind: Kind::Mark(c),
                    bytes: at..at + c.len_utf8(),
                    line,
                });
            }
            c.len_utf8()
        };
        let passed = &rest[..length];
        line += passed.matches('\n').count();
        line_is_blank = if c.is_whitespace() {
            line_is_blank || c == '\n'
        } else {
            passed.ends_with('\n')
        };
        at += length;
    }
    found
}

/// The length of a preprocessor line with its continuations, without the last line's end.
fn preprocessor_line(rest: &str) -> usize {
    let mut end = 0;
    loop {
        match rest[end..].find('\n') {
            None => return rest.len(),
            Some(length) if rest[..end + length].ends_with('\\') => end += length + 1,
            Some(length) => return end + length,
        }
    }
}

/// The length of a literal that `quote` opens.
fn literal(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (place, c) in rest.char_indices().skip(1) {
        if c == quote && !escaped {
            return place + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_literals_and_directives_are_no_tokens() {
        let source = "#include <a> \\\n more\n/* kernel\n */ kernel void f(device float* p) // end\n{ x = 1.5e3f + 'k'; }";
        let check = |expect: &[(&str, usize)]| {
            let found: Vec<(String, usize)> = tokens(source)
                .iter()
                .map(|token| (source[token.bytes.clone()].to_owned(), token.line))
                .collect();
            let found: Vec<(&str, usize)> = found.iter().map(|(text, line)| (text.as_str(), *line)).collect();
            assert_eq!(found, expect);
        };
        check(&[
            ("kernel", 4),
            ("void", 4),
            ("f", 4),
            ("(", 4),
            ("device", 4),
            ("float", 4),
            ("*", 4),
            ("p", 4),
            (")", 4),
            ("{", 5),
            ("x", 5),
            ("=", 5),
            ("1.5e3f", 5),
            ("+", 5),
            (";", 5),
            ("}", 5),
        ]);
    }
}
