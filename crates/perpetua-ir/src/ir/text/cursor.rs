//! Reading text character by character, with the place of every error. Knows words, numbers and strings, not what
//! they mean.

/// Why a text is not a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: found {found}, expected {expected}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What stands there.
    pub found: String,
    /// What could have stood there.
    pub expected: String,
}

pub(super) type Result<T> = std::result::Result<T, ParseError>;

/// Longest piece of the text that an error quotes, in characters.
const QUOTE: usize = 40;

/// A place in a text.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

pub(super) const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Cursor<'t> {
        Cursor { text, at: 0 }
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Takes characters as long as they are wanted.
    pub(super) fn take(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.bump(end);
        rest.get(..end).unwrap_or("")
    }

    /// Skips blanks in a line.
    pub(super) fn space(&mut self) {
        self.take(|c| matches!(c, ' ' | '\t' | '\r'));
    }

    /// Skips blanks, line ends and comments.
    pub(super) fn gap(&mut self) {
        loop {
            self.take(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
            if !self.rest().starts_with("//") {
                return;
            }
            self.take(|c| c != '\n');
        }
    }

    /// Whether a line's statement ends here: at a comment, a line end or a brace.
    pub(super) fn at_end_of_statement(&mut self) -> bool {
        self.space();
        self.rest().starts_with("//") || matches!(self.peek(), None | Some('\n' | '}'))
    }

    /// What stands here, for an error.
    fn found(&self) -> String {
        match self.peek() {
            None => "the end of the text".into(),
            Some('\n') => "the end of the line".into(),
            Some(c) if is_word(c) => {
                let mut ahead = *self;
                let word = ahead.take(is_word);
                match word.char_indices().nth(QUOTE) {
                    Some((end, _)) => format!("`{}…`", word.get(..end).unwrap_or("")),
                    None => format!("`{word}`"),
                }
            }
            Some(c) => format!("`{}`", c.escape_debug()),
        }
    }

    /// An error here.
    pub(super) fn expected(&self, expected: impl Into<String>) -> ParseError {
        self.error(self.found(), expected)
    }

    /// An error here that names what was found.
    pub(super) fn error(&self, found: impl Into<String>, expected: impl Into<String>) -> ParseError {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        ParseError {
            line: count(before.matches('\n').count()).saturating_add(1),
            column: count(before.get(line_start..).unwrap_or("").chars().count()).saturating_add(1),
            found: found.into(),
            expected: expected.into(),
        }
    }

    /// Takes `token` if it stands here.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        let here = self.rest().starts_with(token);
        if here {
            self.bump(token.len());
        }
        here
    }

    /// Takes `token` or fails.
    pub(super) fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) {
            Ok(())
        } else {
            Err(self.expected(format!("`{token}`")))
        }
    }

    /// Takes the word `word` if it stands here, whole.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let mut ahead = *self;
        let here = ahead.take(is_word) == word;
        if here {
            *self = ahead;
        }
        here
    }

    /// Takes an identifier.
    pub(super) fn identifier(&mut self, what: &str) -> Result<&'t str> {
        match self.peek() {
            Some(c) if is_word(c) && !c.is_ascii_digit() => Ok(self.take(is_word)),
            _ => Err(self.expected(what)),
        }
    }

    /// Takes a decimal number.
    pub(super) fn number(&mut self, what: &str) -> Result<u32> {
        let start = *self;
        let digits = self.take(|c| c.is_ascii_digit());
        digits.parse().map_err(|_| {
            if digits.is_empty() {
                start.expected(what)
            } else {
                start.error(
                    format!("a number of {} digits", digits.len()),
                    format!("{what} below 4294967296"),
                )
            }
        })
    }

    /// Takes a string literal with Rust's escapes.
    pub(super) fn string(&mut self) -> Result<String> {
        self.expect("\"")?;
        let mut out = String::new();
        loop {
            let here = *self;
            let Some(c) = self.peek() else {
                return Err(here.expected("`\"` at the end of the string"));
            };
            self.bump(c.len_utf8());
            match c {
                '"' => return Ok(out),
                '\\' => out.push(self.escape().ok_or_else(|| {
                    here.error(
                        "an unknown escape",
                        "one of `\\n`, `\\r`, `\\t`, `\\0`, `\\\\`, `\\\"`, `\\'`, `\\u{…}`",
                    )
                })?),
                '\n' => return Err(here.expected("`\"` at the end of the string")),
                c => out.push(c),
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.bump(c.len_utf8());
        Some(match c {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '0' => '\0',
            '\\' | '"' | '\'' => c,
            'u' => {
                if !self.eat("{") {
                    return None;
                }
                let digits = self.take(|c| c.is_ascii_hexdigit());
                let c = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
                if !self.eat("}") {
                    return None;
                }
                c
            }
            _ => return None,
        })
    }
}
