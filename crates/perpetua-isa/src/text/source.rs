//! The lines of a program: files with what they include, and macros written out.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::directives::DIRECTIVES;
use super::lexer::{Cursor, Token, TokenKind, tokens};
use super::mnemonic::mnemonic;
use crate::diagnostic::AssembleError;

/// Most lines of a program with includes and macros written out.
pub(crate) const MAX_LINES: usize = 200_000;
/// Deepest nesting of includes and macros.
pub(crate) const MAX_DEPTH: usize = 32;
/// Longest line.
pub(crate) const MAX_LINE: usize = 1 << 20;
/// Most bytes of all lines, written out.
pub(crate) const MAX_BYTES: usize = 1 << 24;
/// Most arguments of a macro.
pub(crate) const MAX_ARGUMENTS: usize = 64;

/// A line with what messages say of it.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) text: Arc<str>,
    pub(super) file: Arc<str>,
    pub(super) number: u32,
    /// The line of the program's own file that brought it.
    pub(super) origin: u32,
    pub(super) within: Option<Arc<str>>,
}

impl Line {
    /// The first line of a text, for what is wrong with all of it.
    pub(super) fn first(file: &str, text: &str) -> Line {
        Line {
            text: text.lines().next().unwrap_or_default().into(),
            file: file.into(),
            number: 1,
            origin: 1,
            within: None,
        }
    }

    pub(super) fn error(&self, span: std::ops::Range<usize>, message: impl Into<String>) -> AssembleError {
        AssembleError {
            message: message.into(),
            help: None,
            file: Arc::clone(&self.file),
            line: self.number,
            text: Arc::clone(&self.text),
            span,
            within: self.within.clone(),
        }
    }

    /// The line's tokens.
    pub(super) fn tokens(&self) -> Result<Vec<Token>, AssembleError> {
        tokens(&self.text).map_err(|(span, message)| self.error(span, message))
    }
}

/// Where included files come from: a name's text, or why there is none.
pub(super) type Includes<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// All lines of a text, written out, with their tokens.
pub(super) fn lines(
    file: &str,
    text: &str,
    includes: &Includes<'_>,
) -> Result<Vec<(Line, Vec<Token>)>, AssembleError> {
    let mut reader = Reader {
        includes,
        macros: HashMap::new(),
        out: Vec::new(),
        uses: 0,
        seen: 0,
        bytes: 0,
    };
    reader.file(file, text, None, 0)?;
    Ok(reader.out)
}

struct Macro {
    parameters: Vec<String>,
    body: Vec<Line>,
}

struct Reader<'a> {
    includes: &'a Includes<'a>,
    macros: HashMap<String, Rc<Macro>>,
    out: Vec<(Line, Vec<Token>)>,
    // How often macros were used.
    uses: usize,
    // How many lines were looked at, and their bytes: what comes to nothing counts, too.
    seen: usize,
    bytes: usize,
}

impl Reader<'_> {
    fn file(
        &mut self,
        file: &str,
        text: &str,
        from: Option<&Line>,
        depth: usize,
    ) -> Result<(), AssembleError> {
        let file: Arc<str> = file.into();
        // A macro that is being read, with the line that began it.
        let mut open: Option<(Line, String, Macro)> = None;
        // Editors put a mark of the encoding in front.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (i, text) in text.lines().enumerate() {
            let number = u32::try_from(i + 1).unwrap_or(u32::MAX);
            let line = Line {
                text: text.into(),
                file: Arc::clone(&file),
                number,
                origin: from.map_or(number, |from| from.origin),
                within: None,
            };
            if text.len() > MAX_LINE {
                let short = Line {
                    text: text.chars().take(80).collect::<String>().into(),
                    ..line
                };
                let message = format!("a line of {} bytes: at most {MAX_LINE} can be", text.len());
                return Err(short.error(0..short.text.len(), message));
            }
            let first = text.split_whitespace().next().unwrap_or_default();
            match (&mut open, first) {
                (Some(_), ".endmacro") => {
                    if let Some((line, name, found)) = open.take() {
                        self.define(&line, name, found)?;
                    }
                }
                (Some(_), ".macro") => return Err(line.error(0..text.len(), "a macro within a macro")),
                (Some((_, _, found)), _) => {
                    self.count(&line)?;
                    found.body.push(line);
                }
                (None, ".macro") => open = Some(begin(line)?),
                (None, ".endmacro") => return Err(line.error(0..text.len(), "no macro ends here")),
                (None, _) => self.line(line, depth)?,
            }
        }
        match open {
            None => Ok(()),
            Some((line, ..)) => Err(AssembleError {
                help: Some("a macro ends with a line `.endmacro`".into()),
                ..line.error(0..line.text.len(), "this macro does not end in its file")
            }),
        }
    }

    // A macro may come again as it is, as with a file that is included twice.
    fn define(&mut self, line: &Line, name: String, found: Macro) -> Result<(), AssembleError> {
        let texts = |of: &Macro| {
            of.body
                .iter()
                .map(|line| Arc::clone(&line.text))
                .collect::<Vec<_>>()
        };
        let known = self.macros.get(&name);
        if known.is_some_and(|known| known.parameters != found.parameters || texts(known) != texts(&found)) {
            let message = format!("a second macro `{name}`, which is not the first");
            return Err(line.error(0..line.text.len(), message));
        }
        self.macros.insert(name, Rc::new(found));
        Ok(())
    }

    // What is looked at costs time, whatever becomes of it.
    fn count(&mut self, line: &Line) -> Result<(), AssembleError> {
        self.seen += 1;
        self.bytes += line.text.len();
        if self.seen <= MAX_LINES && self.bytes <= MAX_BYTES {
            return Ok(());
        }
        let most = format!(
            "more than {MAX_LINES} lines or {MAX_BYTES} bytes with all macros and includes written out"
        );
        let shown = line.text.chars().take(80).collect::<String>();
        let line = Line {
            text: shown.into(),
            ..line.clone()
        };
        Err(line.error(0..line.text.len(), most))
    }

    fn line(&mut self, line: Line, depth: usize) -> Result<(), AssembleError> {
        self.count(&line)?;
        let tokens = line.tokens()?;
        // A macro may stand behind labels.
        let mut cursor = Cursor::new(&tokens, line.text.len());
        while let (Some(TokenKind::Word(_)), Some(TokenKind::Mark(':'))) =
            (cursor.peek(), cursor.peek_second())
        {
            cursor.next();
            cursor.next();
        }
        let span = cursor.span();
        let deep = |line: &Line| {
            line.error(
                span.clone(),
                format!("more than {MAX_DEPTH} includes and macros within each other"),
            )
        };
        match cursor.word() {
            Some(".include") => {
                let span = cursor.span();
                let Some(TokenKind::Text(name)) = cursor.next() else {
                    return Err(line.error(span, "a file's name in quotes belongs here"));
                };
                if depth == MAX_DEPTH {
                    return Err(deep(&line));
                }
                let text = (self.includes)(name)
                    .map_err(|why| line.error(span.clone(), format!("`{name}` cannot be included: {why}")))?;
                self.file(name, &text, Some(&line), depth + 1)
            }
            Some(word) if self.macros.contains_key(word) => {
                if depth == MAX_DEPTH {
                    return Err(deep(&line));
                }
                let before = line.text.get(..span.start).unwrap_or_default();
                if !before.trim().is_empty() {
                    let labels = Line {
                        text: before.into(),
                        ..line.clone()
                    };
                    let tokens = labels.tokens()?;
                    self.out.push((labels, tokens));
                }
                self.expand(&line, word, span, depth)
            }
            _ => {
                self.out.push((line, tokens));
                Ok(())
            }
        }
    }

    fn expand(
        &mut self,
        line: &Line,
        name: &str,
        span: std::ops::Range<usize>,
        depth: usize,
    ) -> Result<(), AssembleError> {
        let Some(found) = self.macros.get(name).map(Rc::clone) else {
            return Ok(());
        };
        let rest = line.text.get(span.end..).unwrap_or_default();
        let rest = [";", "#", "//"]
            .iter()
            .fold(rest, |rest, mark| rest.split(mark).next().unwrap_or(rest));
        let arguments: Vec<&str> = match rest.trim() {
            "" => Vec::new(),
            rest => rest.split(',').map(str::trim).collect(),
        };
        if arguments.len() != found.parameters.len() {
            let message = format!(
                "the macro `{name}` takes {} arguments, not {}",
                found.parameters.len(),
                arguments.len()
            );
            return Err(line.error(span, message));
        }
        let number = self.uses;
        self.uses += 1;
        for body in &found.body {
            let too_long = || {
                line.error(
                    span.clone(),
                    format!("a line of the macro grows beyond {MAX_LINE} bytes"),
                )
            };
            // Also where its arguments leave nothing of it.
            self.bytes += body.text.len();
            let mut text = replaced(&body.text, "\\@", &number.to_string()).ok_or_else(too_long)?;
            // Longer names first: `\ab` is not `\a` and a b.
            let mut named: Vec<_> = found.parameters.iter().zip(&arguments).collect();
            named.sort_by_key(|(parameter, _)| std::cmp::Reverse(parameter.len()));
            for (parameter, argument) in named {
                text = replaced(&text, &format!("\\{parameter}"), argument).ok_or_else(too_long)?;
            }
            let expanded = Line {
                text: text.into(),
                origin: line.origin,
                within: Some(name.into()),
                ..body.clone()
            };
            self.line(expanded, depth + 1)?;
        }
        Ok(())
    }
}

// A text with something in the place of all that is `from`; `None` where it would be longer than a line may be, before it is made.
fn replaced(text: &str, from: &str, to: &str) -> Option<String> {
    let count = text.matches(from).count();
    let len = (text.len() - count * from.len()).saturating_add(count.saturating_mul(to.len()));
    (len <= MAX_LINE).then(|| text.replace(from, to))
}

// `.macro NAME A, B`
fn begin(line: Line) -> Result<(Line, String, Macro), AssembleError> {
    let tokens = line.tokens()?;
    let mut cursor = Cursor::new(&tokens, line.text.len());
    cursor.next();
    let span = cursor.span();
    let Some(name) = cursor.word().map(String::from) else {
        return Err(line.error(span, "the macro's name"));
    };
    let is_directive = DIRECTIVES
        .iter()
        .any(|(form, _)| form.split(' ').next() == Some(&name));
    if is_directive || mnemonic(&name).is_some() {
        return Err(AssembleError {
            help: Some("whoever reads the program takes the line for that: choose another name".into()),
            ..line.error(
                span,
                format!(
                    "`{name}` is {}, and no name for a macro",
                    if is_directive {
                        "a directive"
                    } else {
                        "an instruction"
                    }
                ),
            )
        });
    }
    let mut parameters = Vec::new();
    while !cursor.is_done() {
        let span = cursor.span();
        match cursor.word() {
            Some(parameter) => parameters.push(parameter.into()),
            None => return Err(line.error(span, "the name of an argument")),
        }
        if parameters.len() > MAX_ARGUMENTS {
            return Err(line.error(span, format!("more than {MAX_ARGUMENTS} arguments")));
        }
        if !cursor.takes(',') && !cursor.is_done() {
            return Err(line.error(cursor.span(), "`,` between two arguments"));
        }
    }
    let body = Vec::new();
    Ok((line, name, Macro { parameters, body }))
}
