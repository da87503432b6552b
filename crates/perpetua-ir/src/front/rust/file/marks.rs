//! Attributes: what marks an item, and what the options in their parentheses say.

use perpetua_syntax::parse::options::{EdgeOption, KernelOptions, StencilOptions, read_crate};
use proc_macro2::TokenStream;

use crate::front::rust::instantiate::Instantiation;
use crate::front::rust::stencil::{Edge, StencilConfig};

/// What marks an item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Kernel,
    Device,
    None,
}

/// What marks an item, and the tokens in the attribute's parentheses.
pub(super) fn marks_of(attrs: &[syn::Attribute]) -> (Mark, TokenStream) {
    for attr in attrs {
        let mark = match attr.path().segments.last() {
            Some(name) if name.ident == "kernel" => Mark::Kernel,
            Some(name) if name.ident == "device" => Mark::Device,
            _ => continue,
        };
        return (mark, tokens_of(attr));
    }
    (Mark::None, TokenStream::new())
}

/// The tokens in an attribute's parentheses.
pub(super) fn tokens_of(attr: &syn::Attribute) -> TokenStream {
    match &attr.meta {
        syn::Meta::List(list) => list.tokens.clone(),
        _ => TokenStream::new(),
    }
}

/// Whether an item has `#[device]`, whose options are judged.
pub(super) fn is_device(attrs: &[syn::Attribute]) -> syn::Result<bool> {
    let (mark, options) = marks_of(attrs);
    if mark == Mark::Device {
        read_crate(options)?;
    }
    Ok(mark == Mark::Device)
}

/// Judges the options of `#[gpu(…)]`.
pub(super) fn judge_gpu(attrs: &[syn::Attribute]) -> syn::Result<()> {
    let mut marked = attrs.iter().filter(|attr| attr.path().is_ident("gpu"));
    marked.try_for_each(|attr| read_crate(tokens_of(attr)).map(drop))
}

/// Whether `derive(name)` stands among the attributes.
pub(super) fn derives(attrs: &[syn::Attribute], name: &str) -> bool {
    attrs.iter().any(|attr| {
        let mut found = false;
        if attr.path().is_ident("derive") {
            // A derive that does not parse is rustc's to refuse.
            let _ = attr.parse_nested_meta(|meta| {
                found |= meta.path.segments.last().is_some_and(|s| s.ident == name);
                Ok(())
            });
        }
        found
    })
}

/// How a kernel with these options is lowered. Where the facade is and what code there is beside the tree does not matter here.
pub(super) fn instantiation(options: &KernelOptions) -> Instantiation {
    Instantiation {
        block_size: options.block_size,
        contract: options.contract,
        stencil: stencil(&options.stencil),
        ..Instantiation::default()
    }
}

fn stencil(options: &StencilOptions) -> StencilConfig {
    let plain = StencilConfig::default();
    StencilConfig {
        tile: options.tile.map(|(sizes, _)| sizes),
        halo: options.halo.unwrap_or(plain.halo),
        edge: match options.edge {
            None | Some(EdgeOption::Interior) => Edge::Interior,
            Some(EdgeOption::Clamp) => Edge::Clamp,
            Some(EdgeOption::Wrap) => Edge::Wrap,
            Some(EdgeOption::Constant(value)) => Edge::Constant(value),
        },
        three_d: options.volume,
        ..plain
    }
}
