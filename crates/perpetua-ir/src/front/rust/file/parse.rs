//! Text to tokens to `syn`'s tree, whatever the text: the parser and everything that walks its tree recurse, so how deep they can
//! get is bounded before, and they have a stack for it.

use std::borrow::Cow;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::front::rust::source::{SourceError, SourceRefusal};

/// Tokens of one expression that may follow each other, with those around it: each may be a level of the parser's recursion. What is
/// in use has some hundreds.
const MOST_TOKENS: usize = 4096;

/// 48 KiB a token: four times what the parser takes without optimisation.
const STACK: usize = MOST_TOKENS * (48 << 10);

/// Runs `read` on a stack that is large enough for what [`file`] lets through.
pub(super) fn with_room<T: Send>(
    read: impl FnOnce() -> Result<T, SourceError> + Send,
) -> Result<T, SourceError> {
    let failed = |text: String| SourceError {
        file: String::new(),
        refusals: vec![SourceRefusal {
            line: 0,
            place: 0..0,
            text,
        }],
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let reader = thread.spawn_scoped(scope, read);
        match reader.map(|reader| reader.join()) {
            Ok(Ok(read)) => read,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(failed(format!("the parser's thread cannot be started: {error}"))),
        }
    })
}

/// A file's tree, without what its conditions leave out. To be called within [`with_room`].
pub(super) fn file(text: &str, file: &str) -> Result<syn::File, SourceError> {
    file_within(text, file, 0)
}

/// As [`file`], of a module's file: so many tokens stand around it, for those who collect it recurse from the first file on.
pub(super) fn file_within(text: &str, file: &str, around: usize) -> Result<syn::File, SourceError> {
    let failed = |error: syn::Error| SourceError::of(&error, file);
    let text = &*without_interpreter(text);
    let tokens: TokenStream = text.parse().map_err(|error| match open_bracket(text, &error) {
        Some(error) => failed(error),
        None => SourceError {
            file: file.to_owned(),
            refusals: vec![unread(text, &error)],
        },
    })?;
    if let Some(error) = too_deep(tokens, around) {
        return Err(failed(error));
    }
    let mut parsed = syn::parse_file(text).map_err(|error| without_end(text, failed(error)))?;
    super::conditions::apply(&mut parsed).map_err(failed)?;
    perpetua_syntax::parse::by_example::expand_file(&mut parsed).map_err(failed)?;
    super::conditions::apply(&mut parsed).map_err(failed)?;
    Ok(parsed)
}

/// The text with spaces for a first line that names an interpreter: the parser would leave it out, and show all that follows in another
/// place.
fn without_interpreter(text: &str) -> Cow<'_, str> {
    let is_named = text
        .strip_prefix("#!")
        .is_some_and(|rest| !rest.trim_start().starts_with('['));
    match is_named {
        true => {
            let (line, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
            Cow::Owned(" ".repeat(line.len()) + rest)
        }
        false => Cow::Borrowed(text),
    }
}

/// A parser's error, where an end of a statement is missed shown where it belongs: the parser shows what comes instead.
fn without_end(text: &str, mut error: SourceError) -> SourceError {
    for refusal in &mut error.refusals {
        let before = text.get(..refusal.place.start).map(str::trim_end);
        if let Some(before) = before.filter(|_| refusal.text.ends_with("expected `;`")) {
            refusal.text = "expected `;`".to_owned();
            refusal.place = before.len()..before.len() + 1;
            refusal.line = line_of(text, before.len());
        }
    }
    error
}

/// The line, from 1, in which a byte stands.
fn line_of(text: &str, at: usize) -> u32 {
    let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
    u32::try_from(line).unwrap_or(u32::MAX)
}

/// Why a text is not one of tokens, where no bracket is to blame.
fn unread(text: &str, error: &proc_macro2::LexError) -> SourceRefusal {
    let shown = error.span().byte_range().start;
    let (at, why) = match open_comment(text) {
        Some(at) => (at, "this comment is not closed"),
        None => match text.get(shown..).unwrap_or_default().chars().next() {
            Some('"') => (shown, "this text is not closed"),
            Some('\'') => (shown, "this is neither a character nor a lifetime"),
            Some(c) if c.is_control() => (shown, "this character is none of Rust's"),
            _ => (shown, "no word, number or sign of Rust begins here"),
        },
    };
    SourceRefusal {
        line: line_of(text, at),
        place: at..at + 1,
        text: why.to_owned(),
    }
}

/// Where a comment begins that does not end.
fn open_comment(text: &str) -> Option<usize> {
    let is_open = |at: usize| {
        let mut depth = 0usize;
        let mut rest = &text[at..];
        while let Some(next) = rest.find(['/', '*']) {
            rest = &rest[next..];
            let skip = match &rest.as_bytes()[..rest.len().min(2)] {
                b"/*" => {
                    depth += 1;
                    2
                }
                b"*/" if depth == 1 => return false,
                b"*/" => {
                    depth -= 1;
                    2
                }
                _ => 1,
            };
            rest = &rest[skip..];
        }
        true
    };
    // Within a line's comment or a text it begins nothing.
    let begins = |at: usize| {
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        let before = text[..at].parse::<TokenStream>();
        let is_code = before.map_or_else(|error| open_bracket(&text[..at], &error).is_some(), |_| true);
        !line.contains("//") && is_code
    };
    let mut all = text.match_indices("/*").map(|(at, _)| at);
    all.find(|at| is_open(*at) && begins(*at))
}

/// The bracket because of which a text is not one of tokens, where it is for one: the lexer shows where the file ends within it, or which
/// bracket of another kind comes before its own.
fn open_bracket(text: &str, error: &proc_macro2::LexError) -> Option<syn::Error> {
    let place = error.span();
    let rest = text.get(place.byte_range().start..)?;
    let first = rest.chars().next()?;
    if matches!(first, '(' | '[' | '{') {
        return Some(syn::Error::new(place, format!("this `{first}` is not closed")));
    }
    if !matches!(first, ')' | ']' | '}') {
        return None;
    }
    // Without what follows, the lexer shows the bracket that is open there.
    let before = text.get(..place.byte_range().start)?;
    let Err(open) = before.parse::<TokenStream>() else {
        return Some(syn::Error::new(place, format!("this `{first}` closes nothing")));
    };
    let opening = before.get(open.span().byte_range().start..)?.chars().next()?;
    let mut both = syn::Error::new(open.span(), format!("this `{opening}` is not closed"));
    both.combine(syn::Error::new(
        place,
        format!("this `{first}` stands where `{opening}` is to be closed"),
    ));
    Some(both)
}

/// Tokens between two brackets.
struct Inside {
    rest: proc_macro2::token_stream::IntoIter,
    /// Tokens of the expressions around it.
    around: usize,
    /// Tokens of the expression that goes on here.
    run: usize,
    is_after_block: bool,
    is_attribute: bool,
}

impl Inside {
    fn new(tokens: TokenStream, around: usize) -> Inside {
        Inside {
            rest: tokens.into_iter(),
            around,
            run: 0,
            is_after_block: false,
            is_attribute: false,
        }
    }

    /// Counts a token. An expression ends at a comma or a semicolon, and after a block that nothing goes on from, as `else` does;
    /// attributes add nothing.
    fn count(&mut self, token: &TokenTree) {
        let after_block = std::mem::take(&mut self.is_after_block);
        let attribute = std::mem::take(&mut self.is_attribute);
        self.run += 1;
        match token {
            TokenTree::Punct(punct) if matches!(punct.as_char(), ',' | ';') => self.run = 0,
            TokenTree::Punct(punct) if punct.as_char() == '#' || (attribute && punct.as_char() == '!') => {
                self.run -= 1;
                self.is_attribute = true;
            }
            TokenTree::Ident(word) if after_block && word != "else" && word != "as" => self.run = 1,
            TokenTree::Group(group) => {
                self.run -= usize::from(attribute);
                self.is_after_block = group.delimiter() == Delimiter::Brace;
            }
            _ => {}
        }
    }
}

/// An error at the first token that may lie too deep. Does not recurse.
fn too_deep(tokens: TokenStream, around: usize) -> Option<syn::Error> {
    let mut open = vec![Inside::new(tokens, around)];
    while let Some(inside) = open.last_mut() {
        let Some(token) = inside.rest.next() else {
            open.pop();
            continue;
        };
        inside.count(&token);
        let depth = inside.around + inside.run;
        if depth > MOST_TOKENS {
            let message = "this nests too deeply, or is too long: split it";
            return Some(syn::Error::new(token.span(), message));
        }
        if let TokenTree::Group(group) = token {
            open.push(Inside::new(group.stream(), depth));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::rust::kernels_in_file;

    fn check(body: &str, expect: &str) {
        let text = format!("#[kernel] fn k(y: &mut [f32]) {{ {body} }}");
        match kernels_in_file(&text, "k.rs") {
            Ok(kernels) => assert!(expect.is_empty() && kernels.len() == 1, "{body:.60}"),
            Err(error) => assert!(
                !expect.is_empty() && error.refusals[0].text.contains(expect),
                "{body:.60}: {:.300}",
                error.to_string()
            ),
        }
    }

    #[test]
    fn no_text_exhausts_the_stack() {
        let n = 10_000;
        let deep = |open: &str, close: &str| open.repeat(n) + "y[0] = 1.0;" + &close.repeat(n);
        let value = |open: &str, close: &str| format!("y[0] = {}1.0{};", open.repeat(n), close.repeat(n));
        let expect = "this nests too deeply";
        check(&value("(", ")"), expect);
        check(&value("-", ""), expect);
        check(&value("- #[a] ", ""), expect);
        check(&value("y[0] = ", ""), expect);
        check(&value("{ 1.0 } = ", ""), expect);
        check(&value("1.0 + ", ""), expect);
        check(&deep("{", "}"), expect);
        check(&deep("if true {", "}"), expect);
        check(&deep("if y[0] > 1.0 {} else ", ""), expect);
        check(&format!("let x: {}f32 = 0.0;", "&".repeat(5000)), expect);
        // Just below the bound the parser has room: parentheses mean nothing, the reader refuses the rest.
        let count = MOST_TOKENS - 40;
        check(
            &format!("y[0] = {}1.0{};", "(".repeat(count), ")".repeat(count)),
            "",
        );
        for open in ["-", "!", "y[0] = ", "if true {} else ", "&", "|x| "] {
            let tokens: TokenStream = open.parse().unwrap_or_else(|_| TokenStream::new());
            let each = tokens.into_iter().count().max(1);
            let count = (MOST_TOKENS - 40) / each;
            check(
                &format!("y[0] = {}{{ 1.0 }};", open.repeat(count)),
                "outside the kernel language",
            );
        }
    }

    #[test]
    fn what_is_long_and_not_deep_is_read() {
        check(&"let x = if y[0] > 1.0 { 1.0 } else { 2.0 };".repeat(2000), "");
        check(
            &"if y[0] > 1.0 { y[0] = 1.0; }
"
            .repeat(3000),
            "",
        );
        check(&format!("let x = [{}];", "1.0, ".repeat(6000)), "");
        let documented = "/// A line.
"
        .repeat(3000)
            + "#[kernel] fn k(y: &mut [f32]) {}";
        assert!(kernels_in_file(&documented, "k.rs").is_ok());
    }

    const STRING: &str =
        "a string is outside the kernel language: print with `gpu_println!`; pass bytes as `&[u8]`";

    #[test]
    fn a_bracket_that_does_not_close_is_shown_where_it_is() {
        let check = |text: &str, expect: &[(usize, &str)]| {
            let error = kernels_in_file(text, "k.rs").unwrap_err();
            let found: Vec<(usize, &str)> =
                error.refusals.iter().map(|r| (r.place.start, &*r.text)).collect();
            assert_eq!(found, expect, "{text}");
        };
        check(
            "fn k() { (1; }",
            &[
                (9, "this `(` is not closed"),
                (13, "this `}` stands where `(` is to be closed"),
            ],
        );
        check(
            "fn k() {
 (1)",
            &[(7, "this `{` is not closed")],
        );
        check("fn k() {} ]", &[(10, "this `]` closes nothing")]);
        check(
            "fn k() {\n    /* a /* b */\n}\n",
            &[(13, "this comment is not closed")],
        );
        check("fn k() { \0 }", &[(9, "this character is none of Rust's")]);
        check("fn k() { \" }", &[(9, "this text is not closed")]);
        // In a comment it may stand.
        check("// \u{1b}\nfn k() { \" }", &[(14, "this text is not closed")]);
        check("#! a '\nfn k() { \" }", &[(16, "this text is not closed")]);
        check(
            "#!a\n#[kernel] fn k(y: &mut [f32]) { y[0] = \"a\"; }",
            &[(43, STRING)],
        );
        check(
            "#![allow(a)] #[kernel] fn k(y: &mut [f32]) { y[0] = \"a\"; }",
            &[(52, STRING)],
        );
    }
}
