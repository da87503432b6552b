//! The options in an attribute's parentheses, and what they and the function must agree on.

use proc_macro2::{Span, TokenStream};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Token, parenthesized};

use super::{Read, read_function};
use crate::ast::{Function, FunctionKind};

/// What `#[kernel(…)]` says.
#[derive(Default)]
pub struct KernelOptions {
    /// Where the facade is.
    pub krate: Option<syn::Path>,
    /// The block size that the kernel requires.
    pub block_size: Option<[u32; 3]>,
    /// Whether multiplications and additions may be fused.
    pub contract: bool,
    /// Whether there is no native body.
    pub interpret: bool,
    /// How a stencil runs.
    pub stencil: StencilOptions,
}

/// The options that only stencils take.
#[derive(Default)]
pub struct StencilOptions {
    /// Where the first one stands.
    first: Option<Span>,
    /// Cells per block, and where that stands.
    pub tile: Option<([u32; 3], Span)>,
    /// How far a neighbour may be.
    pub halo: Option<u32>,
    /// The rule at the grid's edge.
    pub edge: Option<EdgeOption>,
    /// Whether tile or position say that the grid has a depth.
    pub volume: bool,
}

/// The rule at a stencil's edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EdgeOption {
    /// Cells at the edge are not computed.
    Interior,
    /// The nearest cell inside.
    Clamp,
    /// The cell on the other side.
    Wrap,
    /// This number.
    Constant(f64),
}

const KERNEL_OPTIONS: &str = "`block_size = (x, y)`, `contract`, `interpret`, `tile = (x, y)`, `halo = n`, `edge = clamp`, `crate = path`";

/// Reads the options of an attribute that takes `crate = path` alone.
///
/// # Errors
/// Another option, or one that is ill-formed, at its span.
pub fn read_crate(tokens: TokenStream) -> syn::Result<Option<syn::Path>> {
    let mut options = KernelOptions::default();
    for entry in entries(tokens)? {
        if entry.name != "crate" {
            let message = format!("unknown option `{}`: this takes only `crate = path`", entry.name);
            return Err(syn::Error::new(entry.span, message));
        }
        options.take(entry)?;
    }
    Ok(options.krate)
}

/// Each option, none of them twice.
fn entries(tokens: TokenStream) -> syn::Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    for entry in Punctuated::<Entry, Token![,]>::parse_terminated.parse2(tokens)? {
        if entries.iter().any(|known| known.name == entry.name) {
            let message = format!("`{}` is given twice: leave one out", entry.name);
            return Err(syn::Error::new(entry.span, message));
        }
        entries.push(entry);
    }
    Ok(entries)
}

impl KernelOptions {
    /// Reads what stands in the parentheses before a function.
    ///
    /// # Errors
    /// An option that is unknown or ill-formed, at its span.
    pub fn read(tokens: TokenStream, sig: &syn::Signature) -> syn::Result<KernelOptions> {
        let mut options = KernelOptions::default();
        for entry in entries(tokens)? {
            options.take(entry)?;
        }
        options.stencil.volume |= is_volume(sig);
        Ok(options)
    }

    /// Reads the function that has these options.
    ///
    /// # Errors
    /// All that is outside the language, and options that do not fit the function, each at its span.
    pub fn read_kernel(&self, item: &syn::ItemFn, file: &str) -> syn::Result<Read<Function>> {
        let read = read_function(item, FunctionKind::Kernel, file)?;
        self.check(&read.tree)?;
        Ok(read)
    }

    fn check(&self, tree: &Function) -> syn::Result<()> {
        if tree.kind != FunctionKind::Stencil
            && let Some(first) = self.stencil.first
        {
            let message = "`tile`, `halo` and `edge` are for stencils: add a parameter `pos: GridPos`";
            return Err(syn::Error::new(first, message));
        }
        if self.block_size.is_some()
            && let Some((_, at)) = self.stencil.tile
        {
            let message = "a stencil's `tile` is its block size: remove `block_size` or `tile`";
            return Err(syn::Error::new(at, message));
        }
        Ok(())
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
                if sizes.len() == 1 {
                    return Err(wrong("tile = (16, 16)"));
                }
                self.stencil.tile = Some((three(&sizes, at)?, at));
                self.stencil.volume |= sizes.len() == 3;
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

/// Whether the position is `volume::GridPos`.
fn is_volume(sig: &syn::Signature) -> bool {
    sig.inputs.iter().any(|input| match input {
        syn::FnArg::Typed(typed) => match &*typed.ty {
            syn::Type::Path(path) => {
                let mut names = path.path.segments.iter().rev().map(|segment| &segment.ident);
                names.next().is_some_and(|name| name == "GridPos")
                    && names.next().is_some_and(|name| name == "volume")
            }
            _ => false,
        },
        syn::FnArg::Receiver(_) => false,
    })
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
