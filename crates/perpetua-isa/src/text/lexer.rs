//! A line's tokens. Knows no instructions.

use std::ops::Range;

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Range<usize>,
}

/// What a piece is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name, mnemonic, directive (`.x`) or special (`%x`).
    Word(String),
    /// What begins with a digit.
    Number(String),
    /// What stands between quotes.
    Text(String),
    /// Any other character.
    Mark(char),
}

/// Most bytes of a name, and of a number or a quoted text: what is longer is none, and messages show it.
const MAX_NAME: usize = 255;
const MAX_NUMBER: usize = 2000;

/// What is no token, where, and why.
pub(super) type Broken = (Range<usize>, String);

/// Tokens of a line up to its comment.
pub(super) fn tokens(line: &str) -> Result<Vec<Token>, Broken> {
    let mut tokens = Vec::new();
    let mut rest = line.char_indices().peekable();
    while let Some((start, c)) = rest.next() {
        let mut take = |ends: &dyn Fn(char, char) -> bool| {
            let mut last = c;
            let mut end = start + c.len_utf8();
            while let Some((at, next)) = rest.peek().copied().filter(|(_, next)| !ends(last, *next)) {
                rest.next();
                last = next;
                end = at + next.len_utf8();
            }
            start..end
        };
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
        let (kind, span) = match c {
            _ if c.is_whitespace() => continue,
            ';' | '#' => break,
            '/' if line.get(start..).is_some_and(|rest| rest.starts_with("//")) => break,
            '"' => {
                let inner = start + 1;
                let Some(len) = line.get(inner..).and_then(|rest| rest.find('"')) else {
                    return Err((start..line.len(), "a quote that does not end on this line".into()));
                };
                while rest.next_if(|(at, _)| *at <= inner + len).is_some() {}
                let text = line.get(inner..inner + len).unwrap_or_default();
                (TokenKind::Text(text.into()), start..inner + len + 1)
            }
            '0'..='9' => {
                // The sign of an exponent belongs to a decimal number.
                let hexadecimal = line
                    .get(start..)
                    .is_some_and(|rest| rest.starts_with("0x") || rest.starts_with("0f"));
                let span = take(&|last, next| {
                    let sign = matches!(next, '+' | '-') && matches!(last, 'e' | 'E') && !hexadecimal;
                    !is_word(next) && !sign
                });
                (
                    TokenKind::Number(line.get(span.clone()).unwrap_or_default().into()),
                    span,
                )
            }
            _ if is_word(c) || c == '%' => {
                let span = take(&|_, next| !is_word(next));
                (
                    TokenKind::Word(line.get(span.clone()).unwrap_or_default().into()),
                    span,
                )
            }
            _ => (TokenKind::Mark(c), start..start + c.len_utf8()),
        };
        let (what, most) = match &kind {
            TokenKind::Word(_) => ("a name", MAX_NAME),
            TokenKind::Number(_) => ("a number", MAX_NUMBER),
            TokenKind::Text(_) => ("a quoted text", MAX_NUMBER),
            TokenKind::Mark(_) => ("", usize::MAX),
        };
        if span.len() > most {
            let message = format!("{what} of {} bytes: at most {most} can be", span.len());
            return Err((span, message));
        }
        tokens.push(Token { kind, span });
    }
    Ok(tokens)
}

/// Reads tokens one after the other.
pub(super) struct Cursor<'a> {
    tokens: &'a [Token],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// `len`: the line's.
    pub(super) fn new(tokens: &'a [Token], len: usize) -> Cursor<'a> {
        Cursor {
            tokens,
            at: 0,
            end: tokens.last().map_or(len, |token| token.span.end),
        }
    }

    pub(super) fn peek(&self) -> Option<&'a TokenKind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    pub(super) fn peek_second(&self) -> Option<&'a TokenKind> {
        self.tokens.get(self.at + 1).map(|token| &token.kind)
    }

    /// The next token's place; behind the last one where there is none.
    pub(super) fn span(&self) -> Range<usize> {
        self.tokens
            .get(self.at)
            .map_or(self.end..self.end, |token| token.span.clone())
    }

    /// From a place to the end of what was read last.
    pub(super) fn since(&self, start: usize) -> Range<usize> {
        let end = self
            .at
            .checked_sub(1)
            .and_then(|at| self.tokens.get(at))
            .map_or(start, |token| token.span.end);
        start..end.max(start)
    }

    pub(super) fn next(&mut self) -> Option<&'a TokenKind> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(&token.kind)
    }

    pub(super) fn takes(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(&TokenKind::Mark(mark));
        self.at += usize::from(found);
        found
    }

    pub(super) fn takes_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(TokenKind::Word(found)) if found == word);
        self.at += usize::from(found);
        found
    }

    /// A word, if one is next.
    pub(super) fn word(&mut self) -> Option<&'a str> {
        match self.peek() {
            Some(TokenKind::Word(word)) => {
                self.at += 1;
                Some(word)
            }
            _ => None,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.at == self.tokens.len()
    }
}
