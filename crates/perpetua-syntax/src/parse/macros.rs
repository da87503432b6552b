//! Macros inside functions: `gpu_println!` with its format string, `unreachable!`, and why there are no others.

use super::Refusal;
use super::path::segment_names;
use super::reader::{Reader, line_of};
use crate::ast::{Expr, ExprKind, PrintFormat, PrintPiece};
use syn::Token;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;

impl Reader {
    /// A macro's call, as an expression or as a statement.
    pub(super) fn read_macro(&mut self, mac: &syn::Macro) -> ExprKind {
        let name = segment_names(&mac.path).pop().unwrap_or_default();
        let refusal = match name.as_str() {
            "gpu_println" => match mac.parse_body::<PrintArgs>() {
                Ok(args) => return self.read_print(&args),
                Err(error) => {
                    let message = format!("{error}: write `gpu_println!(\"x = {{}}\", x)`");
                    self.error(&mac.path, message);
                    return ExprKind::Tuple(Vec::new());
                }
            },
            "matches" => return self.read_matches(mac),
            "unreachable" if mac.tokens.is_empty() => return ExprKind::Unreachable,
            "unreachable" => Refusal::UnreachableMessage,
            "assert" | "assert_eq" | "assert_ne" | "debug_assert" | "debug_assert_eq" | "debug_assert_ne" => {
                Refusal::AssertMacro
            }
            "panic" | "todo" | "unimplemented" => Refusal::PanicMacro,
            "println" | "print" | "eprintln" | "eprint" | "dbg" | "write" | "writeln" => Refusal::PrintMacro,
            "format" | "format_args" | "concat" | "stringify" => Refusal::FormatMacro,
            "vec" => Refusal::VecMacro,
            _ => Refusal::OtherMacro,
        };
        self.refuse_named(mac, refusal, &name);
        ExprKind::Tuple(Vec::new())
    }

    fn read_print(&mut self, print: &PrintArgs) -> ExprKind {
        let mut args = Vec::with_capacity(print.args.len());
        for arg in &print.args {
            if let syn::Expr::Assign(named) = arg {
                let message =
                    "`gpu_println!` takes no named arguments: write `{}` and the value after the text";
                self.error(named, message);
            }
            args.push(self.read_expr(arg));
        }
        let Some(text) = &print.format else {
            return ExprKind::Print {
                pieces: Vec::new(),
                args,
            };
        };
        match split_format(&text.value()) {
            Ok(parts) => ExprKind::Print {
                pieces: self.place_args(parts, print, text, &mut args),
                args,
            },
            Err(message) => {
                self.error(text, message);
                ExprKind::Print {
                    pieces: Vec::new(),
                    args,
                }
            }
        }
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
                    args.push(Expr {
                        line: line_of(text.span()),
                        kind: self.read_path_value(&path),
                    });
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

/// The arguments of `gpu_println!`.
struct PrintArgs {
    format: Option<syn::LitStr>,
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
