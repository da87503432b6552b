//! The options in an attribute's parentheses.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Token, parenthesized};

/// What may be written in the parentheses of an attribute.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) krate: Option<syn::Path>,
    pub(crate) block_size: Option<[u32; 3]>,
    pub(crate) contract: bool,
    pub(crate) interpret: bool,
    pub(crate) stencil: StencilOptions,
}

/// The options that only stencils take, and where the first one stands.
#[derive(Default)]
pub(crate) struct StencilOptions {
    pub(crate) first: Option<Span>,
    pub(crate) tile: Option<(Vec<u32>, Span)>,
    pub(crate) halo: Option<u32>,
    pub(crate) edge: Option<EdgeOption>,
}

/// The rule at a stencil's edge.
pub(crate) enum EdgeOption {
    Interior,
    Clamp,
    Wrap,
    Constant(f64),
}

/// Which options an attribute takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Those of `#[kernel]`.
    Kernel,
    /// `crate = path` only.
    Crate,
}

const KERNEL_OPTIONS: &str = "`block_size = (x, y)`, `contract`, `interpret`, `tile = (x, y)`, `halo = n`, `edge = clamp`, `crate = path`";

impl Options {
    pub(crate) fn read(tokens: proc_macro2::TokenStream, takes: Takes) -> syn::Result<Options> {
        let mut options = Options::default();
        let entries = Punctuated::<Entry, Token![,]>::parse_terminated.parse2(tokens)?;
        for entry in entries {
            if takes == Takes::Crate && entry.name != "crate" {
                let message = format!("unknown option `{}`: this takes only `crate = path`", entry.name);
                return Err(syn::Error::new(entry.span, message));
            }
            options.take(entry)?;
        }
        Ok(options)
    }

    fn take(&mut self, entry: Entry) -> syn::Result<()> {
        let Entry { name, span, value } = entry;
        if matches!(name.as_str(), "tile" | "halo" | "edge") {
            self.stencil.first.get_or_insert(span);
        }
        let wrong = |usage: &str| syn::Error::new(span, format!("`{name}` is written `{usage}`"));
        match (name.as_str(), value) {
            ("crate", Value::Path(path)) => self.krate = Some(path),
            ("crate", _) => return Err(wrong("crate = path::to::perpetua")),
            ("block_size", Value::Sizes(sizes, at)) => self.block_size = Some(three(&sizes, at)?),
            ("block_size", _) => return Err(wrong("block_size = (16, 16)")),
            ("contract", Value::None) => self.contract = true,
            ("contract", _) => return Err(wrong("contract")),
            ("interpret", Value::None) => self.interpret = true,
            ("interpret", _) => return Err(wrong("interpret")),
            ("tile", Value::Sizes(sizes, at)) => {
                three(&sizes, at)?;
                if sizes.len() < 2 {
                    return Err(wrong("tile = (16, 16)"));
                }
                self.stencil.tile = Some((sizes, at));
            }
            ("tile", _) => return Err(wrong("tile = (16, 16)")),
            ("halo", Value::Sizes(sizes, _)) if sizes.len() == 1 => self.stencil.halo = Some(sizes[0]),
            ("halo", _) => return Err(wrong("halo = 1")),
            ("edge", Value::Path(path)) if path.is_ident("interior") => {
                self.stencil.edge = Some(EdgeOption::Interior);
            }
            ("edge", Value::Path(path)) if path.is_ident("clamp") => {
                self.stencil.edge = Some(EdgeOption::Clamp);
            }
            ("edge", Value::Path(path)) if path.is_ident("wrap") => {
                self.stencil.edge = Some(EdgeOption::Wrap);
            }
            ("edge", Value::Constant(value)) => self.stencil.edge = Some(EdgeOption::Constant(value)),
            ("edge", _) => {
                return Err(wrong(
                    "edge = interior`, `edge = clamp`, `edge = wrap` or `edge = constant(0.0)",
                ));
            }
            _ => {
                let message = format!("unknown option `{name}`: `#[kernel]` takes {KERNEL_OPTIONS}");
                return Err(syn::Error::new(span, message));
            }
        }
        Ok(())
    }
}

/// One to three sizes, none zero, as three.
fn three(sizes: &[u32], at: Span) -> syn::Result<[u32; 3]> {
    if sizes.is_empty() || sizes.len() > 3 || sizes.contains(&0) {
        return Err(syn::Error::new(
            at,
            "sizes are one to three numbers, none of them 0: write `(16, 16)`",
        ));
    }
    let size = |i: usize| sizes.get(i).copied().unwrap_or(1);
    Ok([size(0), size(1), size(2)])
}

/// `name`, or `name = value`.
struct Entry {
    name: String,
    span: Span,
    value: Value,
}

enum Value {
    None,
    /// `16` or `(16, 16)`.
    Sizes(Vec<u32>, Span),
    /// `constant(0.5)`.
    Constant(f64),
    Path(syn::Path),
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Entry> {
        let name: syn::Ident = input.call(syn::ext::IdentExt::parse_any)?;
        let value = if input.parse::<Option<Token![=]>>()?.is_some() {
            input.parse()?
        } else {
            Value::None
        };
        Ok(Entry {
            name: name.to_string(),
            span: name.span(),
            value,
        })
    }
}

impl Parse for Value {
    fn parse(input: ParseStream<'_>) -> syn::Result<Value> {
        if input.peek(syn::LitInt) {
            let size: syn::LitInt = input.parse()?;
            return Ok(Value::Sizes(vec![size.base10_parse()?], size.span()));
        }
        if input.peek(syn::token::Paren) {
            let sizes;
            let paren = parenthesized!(sizes in input);
            let sizes = Punctuated::<syn::LitInt, Token![,]>::parse_terminated(&sizes)?;
            let sizes = sizes
                .iter()
                .map(syn::LitInt::base10_parse)
                .collect::<syn::Result<_>>()?;
            return Ok(Value::Sizes(sizes, paren.span.join()));
        }
        let path: syn::Path = input.call(syn::Path::parse_mod_style)?;
        if path.is_ident("constant") && input.peek(syn::token::Paren) {
            let content;
            parenthesized!(content in input);
            let negative = content.parse::<Option<Token![-]>>()?.is_some();
            let number: syn::Lit = content.parse()?;
            let value: f64 = match &number {
                syn::Lit::Float(float) => float.base10_parse()?,
                syn::Lit::Int(int) => int.base10_parse()?,
                _ => return Err(syn::Error::new(number.span(), "write a number: `constant(0.0)`")),
            };
            return Ok(Value::Constant(if negative { -value } else { value }));
        }
        Ok(Value::Path(path))
    }
}
