//! `#[cfg(…)]` and `#[cfg_attr(…)]` in a file that rustc does not see: what does not hold is left out. The file counts as compiled for
//! this machine, with debug assertions, without features, and not as a test. Must not know what the items are.

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::{Pair, Punctuated};
use syn::{Attribute, Item, LitBool, LitStr, Meta, Token};

/// Leaves out of a file what its conditions leave out.
///
/// # Errors
/// All conditions of which nobody knows here whether they hold.
pub(super) fn apply(file: &mut syn::File) -> syn::Result<()> {
    let mut conditions = Conditions { error: None };
    if conditions.hold(&mut file.attrs) {
        conditions.items(&mut file.items);
    } else {
        file.items.clear();
    }
    conditions.error.map_or(Ok(()), Err)
}

struct Conditions {
    error: Option<syn::Error>,
}

impl Conditions {
    /// Whether what has these attributes is there. Conditions are taken away, and those of attributes with them.
    fn hold(&mut self, attrs: &mut Vec<Attribute>) -> bool {
        let mut is_there = true;
        let mut left: Vec<Attribute> = std::mem::take(attrs).into_iter().rev().collect();
        while let Some(attr) = left.pop() {
            let read = if attr.path().is_ident("cfg") {
                attr.parse_args_with(whole).map(|holds| is_there &= holds)
            } else if attr.path().is_ident("cfg_attr") {
                let added = attr.parse_args_with(conditional);
                added.map(|added| {
                    let added = added.into_iter().rev();
                    left.extend(added.map(|meta| Attribute { meta, ..attr.clone() }));
                })
            } else {
                attrs.push(attr);
                continue;
            };
            if let Err(error) = read {
                match &mut self.error {
                    Some(all) => all.combine(error),
                    none => *none = Some(error),
                }
            }
        }
        is_there
    }

    fn items(&mut self, items: &mut Vec<Item>) {
        items.retain_mut(|item| attributes(item).is_none_or(|attrs| self.hold(attrs)));
        for item in items {
            match item {
                Item::Mod(item) => {
                    if let Some((_, items)) = &mut item.content {
                        self.items(items);
                    }
                }
                Item::Fn(item) => self.parameters(&mut item.sig),
                Item::Struct(item) => self.fields(&mut item.fields),
                Item::Enum(item) => {
                    self.each(&mut item.variants, |variant| &mut variant.attrs);
                    for variant in &mut item.variants {
                        self.fields(&mut variant.fields);
                    }
                }
                Item::Impl(item) => {
                    item.items.retain_mut(|member| {
                        let attrs = match member {
                            syn::ImplItem::Const(member) => &mut member.attrs,
                            syn::ImplItem::Fn(member) => &mut member.attrs,
                            syn::ImplItem::Type(member) => &mut member.attrs,
                            syn::ImplItem::Macro(member) => &mut member.attrs,
                            _ => return true,
                        };
                        self.hold(attrs)
                    });
                    for member in &mut item.items {
                        if let syn::ImplItem::Fn(member) = member {
                            self.parameters(&mut member.sig);
                        }
                    }
                }
                Item::Trait(item) => {
                    item.items.retain_mut(|member| {
                        let attrs = match member {
                            syn::TraitItem::Const(member) => &mut member.attrs,
                            syn::TraitItem::Fn(member) => &mut member.attrs,
                            syn::TraitItem::Type(member) => &mut member.attrs,
                            syn::TraitItem::Macro(member) => &mut member.attrs,
                            _ => return true,
                        };
                        self.hold(attrs)
                    });
                    for member in &mut item.items {
                        if let syn::TraitItem::Fn(member) = member {
                            self.parameters(&mut member.sig);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn fields(&mut self, fields: &mut syn::Fields) {
        match fields {
            syn::Fields::Named(fields) => self.each(&mut fields.named, |field| &mut field.attrs),
            syn::Fields::Unnamed(fields) => self.each(&mut fields.unnamed, |field| &mut field.attrs),
            syn::Fields::Unit => {}
        }
    }

    fn parameters(&mut self, signature: &mut syn::Signature) {
        self.each(&mut signature.inputs, |input| match input {
            syn::FnArg::Receiver(own) => &mut own.attrs,
            syn::FnArg::Typed(typed) => &mut typed.attrs,
        });
    }

    fn each<T>(&mut self, list: &mut Punctuated<T, Token![,]>, attrs: fn(&mut T) -> &mut Vec<Attribute>) {
        let all = std::mem::take(list).into_pairs();
        let there = all.filter_map(|mut pair: Pair<T, Token![,]>| {
            let is_there = self.hold(attrs(pair.value_mut()));
            is_there.then_some(pair)
        });
        *list = there.collect();
    }
}

/// An item's attributes; a text that `syn` does not know has none.
fn attributes(item: &mut Item) -> Option<&mut Vec<Attribute>> {
    Some(match item {
        Item::Const(item) => &mut item.attrs,
        Item::Enum(item) => &mut item.attrs,
        Item::ExternCrate(item) => &mut item.attrs,
        Item::Fn(item) => &mut item.attrs,
        Item::ForeignMod(item) => &mut item.attrs,
        Item::Impl(item) => &mut item.attrs,
        Item::Macro(item) => &mut item.attrs,
        Item::Mod(item) => &mut item.attrs,
        Item::Static(item) => &mut item.attrs,
        Item::Struct(item) => &mut item.attrs,
        Item::Trait(item) => &mut item.attrs,
        Item::TraitAlias(item) => &mut item.attrs,
        Item::Type(item) => &mut item.attrs,
        Item::Union(item) => &mut item.attrs,
        Item::Use(item) => &mut item.attrs,
        _ => return None,
    })
}

/// The condition of `cfg`.
fn whole(input: ParseStream<'_>) -> syn::Result<bool> {
    let holds = condition(input)?;
    input.parse::<Option<Token![,]>>()?;
    Ok(holds)
}

/// The attributes that `cfg_attr` adds.
fn conditional(input: ParseStream<'_>) -> syn::Result<Vec<Meta>> {
    let holds = condition(input)?;
    input.parse::<Option<Token![,]>>()?;
    // What does not hold need not be read.
    let rest: TokenStream = input.parse()?;
    if !holds {
        return Ok(Vec::new());
    }
    let added = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(rest)?;
    Ok(added.into_iter().collect())
}

fn condition(input: ParseStream<'_>) -> syn::Result<bool> {
    if input.peek(LitBool) {
        return Ok(input.parse::<LitBool>()?.value);
    }
    let name = input.call(Ident::parse_any)?;
    if input.peek(syn::token::Paren) {
        let inner;
        syn::parenthesized!(inner in input);
        let parts: Vec<bool> = inner
            .parse_terminated(condition, Token![,])?
            .into_iter()
            .collect();
        return match (name.to_string().as_str(), &parts[..]) {
            ("all", parts) => Ok(parts.iter().all(|holds| *holds)),
            ("any", parts) => Ok(parts.iter().any(|holds| *holds)),
            ("not", [holds]) => Ok(!holds),
            ("not", _) => Err(syn::Error::new_spanned(name, "`not` takes one condition")),
            _ => Err(unknown(&name, &name)),
        };
    }
    if input.parse::<Option<Token![=]>>()?.is_some() {
        let value: LitStr = input.parse()?;
        return is_set(&name, &value);
    }
    match name.to_string().as_str() {
        "debug_assertions" => Ok(true),
        "unix" => Ok(cfg!(unix)),
        "windows" => Ok(cfg!(windows)),
        "test" | "doc" | "doctest" | "docsrs" | "miri" | "proc_macro" => Ok(false),
        _ => Err(unknown(&name, &name)),
    }
}

/// Whether a name has this value.
fn is_set(name: &Ident, value: &LitStr) -> syn::Result<bool> {
    use std::env::consts;
    let value_text = value.value();
    let is = |found: &str| value_text == found;
    match name.to_string().as_str() {
        "feature" => Ok(false),
        "target_os" => Ok(is(consts::OS)),
        "target_arch" => Ok(is(consts::ARCH)),
        "target_family" => Ok(is(consts::FAMILY)),
        "target_endian" => Ok(is(if cfg!(target_endian = "little") {
            "little"
        } else {
            "big"
        })),
        "target_pointer_width" => Ok(is(&usize::BITS.to_string())),
        "panic" => Ok(is("unwind")),
        _ => Err(unknown(
            name,
            &format_args!("{name} = {}", value.to_token_stream()),
        )),
    }
}

fn unknown(name: &Ident, condition: &dyn std::fmt::Display) -> syn::Error {
    syn::Error::new_spanned(
        name,
        format!(
            "nobody says here whether `{condition}` holds, as rustc's command line would: leave this condition out; known are \
             `feature` (none is on), `test` (off), `debug_assertions` (on), `unix`, `windows`, and `target_os`, `target_arch`, \
             `target_family`, `target_endian`, `target_pointer_width` (this machine's)"
        ),
    )
}
