//! Texts with arguments: `"x = {}", x` in macros that print or panic.

use super::reader::{Reader, line_of};
use super::sugar;
use crate::ast::{Expr, PrintFormat, PrintPiece};
use syn::Token;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;

impl Reader {
    /// The text and the arguments of a macro that formats.
    pub(super) fn read_format(&mut self, name: &str, print: &PrintArgs) -> (Vec<PrintPiece>, Vec<Expr>) {
        let mut args = Vec::with_capacity(print.args.len());
        for arg in &print.args {
            if let syn::Expr::Assign(named) = arg {
                let message =
                    format!("`{name}!` takes no named arguments: write `{{}}` and the value after the text");
                self.error(named, message);
            }
            args.push(self.read_expr(arg));
        }
        let Some(text) = &print.format else {
            return (Vec::new(), args);
        };
        let pieces = match split_format(&text.value()) {
            Ok(parts) => self.place_args(parts, print, text, &mut args),
            Err(message) => {
                self.error(text, message);
                Vec::new()
            }
        };
        (pieces, args)
    }

    /// Gives each `{…}` its argument; names written inside the braces become arguments of their own, after
    /// those given.
    fn place_args(
        &mut self,
        parts: Vec<FormatPart>,
        print: &PrintArgs,
        text: &syn::LitStr,
        args: &mut Vec<Expr>,
    ) -> Vec<PrintPiece> {
        let given = args.len();
        let mut used = vec![false; given];
        let mut next = 0;
        let mut pieces = Vec::with_capacity(parts.len());
        for part in parts {
            let (place, format) = match part {
                FormatPart::Text(text) => {
                    pieces.push(PrintPiece::Text(text));
                    continue;
                }
                FormatPart::Arg(place, format) => (place, format),
            };
            let index = match place {
                ArgPlace::Name(mut ident) => {
                    ident.set_span(text.span());
                    let path = syn::ExprPath {
                        attrs: Vec::new(),
                        qself: None,
                        path: ident.into(),
                    };
                    let kind = self.read_path_value(&path);
                    args.push(sugar::expr(line_of(text.span()), kind));
                    args.len() - 1
                }
                place => {
                    let index = place.index().unwrap_or_else(|| {
                        next += 1;
                        next - 1
                    });
                    match used.get_mut(index) {
                        Some(used) => *used = true,
                        None => {
                            let message = format!(
                                "the text prints argument {index} (counted from 0), but {given} are given: add \
                                 it, or remove a `{{}}`"
                            );
                            self.error(text, message);
                        }
                    }
                    index
                }
            };
            pieces.push(PrintPiece::Arg {
                index: u32::try_from(index).unwrap_or(u32::MAX),
                format,
            });
        }
        for (arg, used) in print.args.iter().zip(used) {
            if !used {
                self.error(
                    arg,
                    "this argument is never printed: add a `{}` to the text, or remove it",
                );
            }
        }
        pieces
    }
}

/// A text and its arguments.
pub(super) struct PrintArgs {
    pub(super) format: Option<syn::LitStr>,
    args: Punctuated<syn::Expr, Token![,]>,
}

impl Parse for PrintArgs {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        if input.is_empty() {
            return Ok(Self {
                format: None,
                args: Punctuated::new(),
            });
        }
        let format = Some(input.parse()?);
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        Ok(Self {
            format,
            args: Punctuated::parse_terminated(input)?,
        })
    }
}

/// A piece of a format string, before its arguments are known.
#[derive(Debug, PartialEq, Eq)]
enum FormatPart {
    Text(String),
    Arg(ArgPlace, PrintFormat),
}

/// Which argument a `{…}` means.
#[derive(Debug, PartialEq, Eq)]
enum ArgPlace {
    Next,
    Index(usize),
    Name(syn::Ident),
}

impl ArgPlace {
    fn index(&self) -> Option<usize> {
        match self {
            Self::Index(index) => Some(*index),
            Self::Next | Self::Name(_) => None,
        }
    }
}

/// A format string in pieces, or what is wrong with it.
fn split_format(text: &str) -> Result<Vec<FormatPart>, String> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(brace) = rest.find(['{', '}']) {
        let (before, after) = rest.split_at(brace);
        literal.push_str(before);
        if let Some(tail) = after.strip_prefix("{{") {
            literal.push('{');
            rest = tail;
        } else if let Some(tail) = after.strip_prefix("}}") {
            literal.push('}');
            rest = tail;
        } else {
            let inside = after
                .strip_prefix('{')
                .ok_or("a `}` stands alone in the text: write `}}`")?;
            let (inside, tail) = inside
                .split_once('}')
                .ok_or("a `{` stands alone in the text: write `{{`")?;
            if !literal.is_empty() {
                parts.push(FormatPart::Text(std::mem::take(&mut literal)));
            }
            let (place, format) = inside.split_once(':').unwrap_or((inside, ""));
            parts.push(FormatPart::Arg(read_place(place)?, read_format(format)?));
            rest = tail;
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        parts.push(FormatPart::Text(literal));
    }
    Ok(parts)
}

fn read_place(text: &str) -> Result<ArgPlace, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(ArgPlace::Next);
    }
    if let Ok(index) = text.parse() {
        return Ok(ArgPlace::Index(index));
    }
    syn::parse_str(text)
        .map(ArgPlace::Name)
        .map_err(|_| format!("`{{{text}}}` names no argument: write a local's name, or `{{}}` and the value"))
}

/// What stands after the colon in a `{…}`.
fn read_format(spec: &str) -> Result<PrintFormat, String> {
    spec.parse().map_err(|_| unknown_format(spec))
}

fn unknown_format(spec: &str) -> String {
    format!(
        "the format `{{:{spec}}}` is outside the kernel language: write `{{}}`, `{{:?}}`, `{{:x}}`, `{{:X}}` or \
         `{{:e}}`, with `<`, `>`, `+`, `#`, `0`, a width and a precision, such as `{{:>+8.3}}`"
    )
}
