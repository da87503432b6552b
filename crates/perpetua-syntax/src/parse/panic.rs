//! Macros that panic: `panic!`, `todo!`, `unimplemented!`, `unreachable!`, and the assertions, which are an `if` around one.

use super::format::PrintArgs;
use super::reader::{Reader, line_of};
use super::sugar::{binding, block, expr, local, statement};
use crate::ast::{
    BinaryOp, DEBUG_ASSERTIONS, Expr, ExprKind, Line, MESSAGE_VALUES, PrintFormat, PrintNotation, PrintPiece,
    Stmt, StmtKind, UnaryOp,
};
use syn::Token;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;

/// Whether a macro panics.
pub(super) fn is_panic(name: &str) -> bool {
    matches!(
        name.strip_prefix("debug_").unwrap_or(name),
        "assert" | "assert_eq" | "assert_ne"
    ) || matches!(name, "panic" | "todo" | "unimplemented" | "unreachable")
}

/// `value == value` or `value != value`, and what holds where the assertion does not.
struct Comparison {
    /// Whether the values must be equal.
    equal: bool,
    left: syn::Expr,
    right: syn::Expr,
}

impl Reader {
    pub(super) fn read_panic(&mut self, name: &str, mac: &syn::Macro) -> ExprKind {
        let line = line_of(mac.path.span());
        let read = match name.strip_prefix("debug_").unwrap_or(name) {
            "assert" => mac.parse_body_with(|input: ParseStream| {
                let cond: syn::Expr = input.parse()?;
                Ok(self.read_assert(&cond, &message_of(input)?, mac, line))
            }),
            equality @ ("assert_eq" | "assert_ne") => mac.parse_body_with(|input: ParseStream| {
                let left = input.parse()?;
                input.parse::<Token![,]>()?;
                let equal = equality == "assert_eq";
                let right = input.parse()?;
                let values = Comparison { equal, left, right };
                Ok(self.read_comparison(&values, &message_of(input)?, mac, line))
            }),
            _ => mac
                .parse_body::<PrintArgs>()
                .map(|message| self.read_plain_panic(name, &message, mac)),
        };
        let kind = match read {
            Ok(kind) => kind,
            Err(error) => {
                let example = match name {
                    "panic" | "todo" | "unimplemented" | "unreachable" => "\"x = {}\", x",
                    _ if name.ends_with("assert") => "x > 0, \"x = {}\", x",
                    _ => "x, y, \"at {}\", i",
                };
                self.error(&mac.path, format!("{error}: write `{name}!({example})`"));
                return ExprKind::Tuple(Vec::new());
            }
        };
        match name.starts_with("debug_") {
            true => self.only_in_debug(kind, mac, line),
            false => kind,
        }
    }

    fn read_plain_panic(&mut self, name: &str, message: &PrintArgs, mac: &syn::Macro) -> ExprKind {
        let head = match name {
            "todo" => "not yet implemented",
            "unimplemented" => "not implemented",
            "unreachable" if message.format.is_none() => return ExprKind::Unreachable,
            "unreachable" => "entered unreachable code",
            _ => "",
        };
        self.panic(name, head, Vec::new(), message, mac)
    }

    fn read_assert(
        &mut self,
        cond: &syn::Expr,
        message: &PrintArgs,
        mac: &syn::Macro,
        line: Line,
    ) -> ExprKind {
        let holds = self.read_expr(cond);
        let head = match message.format {
            None => format!("assertion failed: {}", source_of(mac)),
            Some(_) => String::new(),
        };
        let panic = self.panic("assert", &head, Vec::new(), message, mac);
        unless(holds, panic, line)
    }

    fn read_comparison(
        &mut self,
        values: &Comparison,
        message: &PrintArgs,
        mac: &syn::Macro,
        line: Line,
    ) -> ExprKind {
        let (name, op) = match values.equal {
            true => ("assert_eq", BinaryOp::Eq),
            false => ("assert_ne", BinaryOp::Ne),
        };
        let mut stmts = Vec::new();
        let names = [&values.left, &values.right].map(|value| {
            let init = self.read_expr(value);
            let name = self.fresh("side");
            stmts.push(Stmt {
                line,
                kind: StmtKind::Let {
                    pattern: binding(&name, line),
                    ty: None,
                    init: Some(init),
                },
            });
            name
        });
        let [left, right] = [0, 1].map(|i| Box::new(local(&names[i], line)));
        let holds = expr(line, ExprKind::Binary { op, left, right });
        let head = format!("assertion `left {} right` failed", op.symbol());
        let sides = names.iter().map(|name| local(name, line)).collect();
        let panic = self.panic(name, &head, sides, message, mac);
        let test = expr(line, unless(holds, panic, line));
        stmts.push(statement(test));
        let block = block(line, stmts, None);
        ExprKind::Block { label: None, block }
    }

    /// The panic with `head`, the message behind it, and the two sides of a comparison on lines of their own.
    fn panic(
        &mut self,
        name: &str,
        head: &str,
        sides: Vec<Expr>,
        message: &PrintArgs,
        mac: &syn::Macro,
    ) -> ExprKind {
        let (message, mut args) = self.read_format(name, message);
        let given = args.len();
        let between = if head.is_empty() || message.is_empty() {
            ""
        } else {
            ": "
        };
        let mut pieces = text(format!("{head}{between}"));
        pieces.extend(message);
        for (i, (side, label)) in sides.into_iter().zip(["\n  left: ", "\n right: "]).enumerate() {
            args.push(side);
            pieces.extend(text(label.to_owned()));
            pieces.push(PrintPiece::Arg {
                index: u32::try_from(given + i).unwrap_or(u32::MAX),
                format: PrintFormat {
                    notation: PrintNotation::Debug,
                    ..PrintFormat::default()
                },
            });
        }
        let shown = pieces
            .iter()
            .filter(|p| matches!(p, PrintPiece::Arg { .. }))
            .count();
        if shown > MESSAGE_VALUES {
            let message = format!(
                "this message shows {shown} values, and a device has room for {MESSAGE_VALUES}: leave some out, or print \
                 them with `gpu_println!`"
            );
            self.error(&mac.path, message);
        }
        ExprKind::Panic { pieces, args }
    }

    /// What stands in it only where debug assertions are on.
    fn only_in_debug(&mut self, kind: ExprKind, mac: &syn::Macro, line: Line) -> ExprKind {
        let path = syn::ExprPath {
            attrs: Vec::new(),
            qself: None,
            path: syn::Ident::new(DEBUG_ASSERTIONS, mac.path.span()).into(),
        };
        let on = self.read_path_value(&path);
        ExprKind::If {
            cond: Box::new(expr(line, on)),
            then: block(line, vec![statement(expr(line, kind))], None),
            otherwise: None,
        }
    }
}

/// `if !holds { panic }`.
fn unless(holds: Expr, panic: ExprKind, line: Line) -> ExprKind {
    let (op, operand) = (UnaryOp::Not, Box::new(holds));
    ExprKind::If {
        cond: Box::new(expr(line, ExprKind::Unary { op, operand })),
        then: block(line, vec![statement(expr(line, panic))], None),
        otherwise: None,
    }
}

fn text(text: String) -> Vec<PrintPiece> {
    match text.is_empty() {
        true => Vec::new(),
        false => vec![PrintPiece::Text(text)],
    }
}

/// What is left of an assertion's arguments: its message, where it has one.
fn message_of(input: ParseStream) -> syn::Result<PrintArgs> {
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    PrintArgs::parse(input)
}

/// The arguments of a macro as they stand in the source.
fn source_of(mac: &syn::Macro) -> String {
    let written = mac.delimiter.span().join().source_text();
    let inside = written
        .as_deref()
        .and_then(|text| text.strip_prefix(['(', '[', '{']))
        .and_then(|text| text.strip_suffix([')', ']', '}']))
        .map(|text| {
            text.trim()
                .trim_end_matches(',')
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        });
    inside.unwrap_or_else(|| mac.tokens.to_string())
}
