//! The code that tells the lowering what a function's names mean. It is ordinary Rust in the user's own scope, so that
//! rustc's name resolution does the work; what it must look like is the contract of the lowering's module `resolve`.

use std::collections::BTreeMap;

use perpetua_syntax::parse::{Read, as_local, is_reverse};
use perpetua_syntax::{DEBUG_ASSERTIONS, Function, PathUsage, STD_TRAITS, operator_functions};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// A closure that tells a `Resolver` what the paths of `read` mean. `own` is what `Self` is, where it is anything.
pub(crate) fn closure(
    read: &Read<Function>,
    sig: &syn::Signature,
    body: &syn::Block,
    own: Option<&TokenStream>,
    facade: &TokenStream,
) -> TokenStream {
    let r = resolver();
    let mut entries = Vec::with_capacity(read.paths.len());
    for (id, (tokens, entry)) in (0u32..).zip(read.paths.iter().zip(&read.tree.paths)) {
        let path = Plain::of(tokens);
        let whole = path.whole(own);
        let span = tokens.span();
        entries.push(match entry.usage {
            PathUsage::Type if !path.has_args => quote_spanned!(span=> #r.ty::<#whole>(#id);),
            PathUsage::Type | PathUsage::StructLiteral => path.generic_type(&whole, id, facade),
            PathUsage::Value | PathUsage::Pattern => match path.head(None) {
                // Of a generic type, what it is by itself: then the type's arguments follow from elsewhere.
                Some(ty) if !path.begins_with_self() => quote_spanned! {span=> {
                    use #facade::Described as _;
                    #ty::__perpetua_value(#r, #id, &#whole);
                }},
                _ => quote_spanned!(span=> #r.constant(#id, &#whole);),
            },
            PathUsage::Call => match path.head(own) {
                Some(ty) => {
                    let known = path
                        .idents
                        .last()
                        .filter(|name| !is_std_function(name))
                        .map(|name| {
                            let mark = mark(name);
                            match path.begins_with_self() {
                                true => quote_spanned!(span=> let _ = <#ty>::#mark;),
                                false => quote_spanned!(span=> let _ = #ty::#mark;),
                            }
                        });
                    let described = match path.begins_with_self() {
                        true => quote_spanned!(span=> #r.ty::<#ty>(#id);),
                        false => path.generic_type(&ty, id, facade),
                    };
                    quote_spanned!(span=> #described #known)
                }
                None => {
                    let function = path.of_function(&quote!(__perpetua_function()));
                    quote_spanned!(span=> #r.device(#id, #function);)
                }
            },
        });
    }
    entries.extend(Named::of(sig, body).statements(facade));
    let own = own.map(|own| quote!(#r.self_type::<#own>();));
    // Types of the function's own need no `derive` for kernels.
    let gpu = syn::parse_quote!(#facade::GpuType);
    let items = items_of(body).into_iter().map(|item| as_local(item, &gpu));
    let quiet = crate::output::quiet();
    let items = items.map(|item| quote!(#quiet #item));
    let asserts = read.paths.iter().find(|path| path.is_ident(DEBUG_ASSERTIONS));
    let asserts = asserts.map(|name| quote!(const #name: bool = ::core::cfg!(debug_assertions);));
    let lengths = read
        .lengths
        .iter()
        .map(|(name, len)| quote!(const #name: usize = #len;));
    quote!(|#r: &mut #facade::Resolver| { #asserts #(#items)* #(#lengths)* #own #(#entries)* })
}

/// The constant beside each free function that says whether it has a native body, which depends on those that it calls. Its name
/// is what rustc shows where functions call each other in a circle.
pub(crate) const NATIVE: &str = "__WRITE_A_LOOP_BECAUSE_DEVICE_FUNCTIONS_CALL_EACH_OTHER_IN_NO_CIRCLE";

/// The constants of the free functions that a function calls; none where its own items hide what its names mean outside.
pub(crate) fn called_flags(read: &Read<Function>, body: &syn::Block) -> Vec<TokenStream> {
    if !items_of(body).is_empty() {
        return Vec::new();
    }
    let flag = format_ident!("{NATIVE}");
    let calls = read.paths.iter().zip(&read.tree.paths);
    calls
        .filter(|(_, entry)| entry.usage == PathUsage::Call)
        .map(|(tokens, _)| Plain::of(tokens))
        .filter(|path| path.head(None).is_none())
        .map(|path| path.of_function(&quote!(#flag)))
        .collect()
}

/// The items inside a body: what its names mean, they mean here.
fn items_of(body: &syn::Block) -> Vec<&syn::Item> {
    struct Items<'a>(Vec<&'a syn::Item>);
    impl<'a> Visit<'a> for Items<'a> {
        fn visit_item(&mut self, item: &'a syn::Item) {
            self.0.push(item);
        }
    }
    let mut items = Items(Vec::new());
    items.visit_block(body);
    items.0
}

/// Statements that compile only where names mean what the reader, who knows no more of them, takes them for.
#[derive(Default)]
struct Named {
    /// Types called like primitive ones are those.
    primitives: BTreeMap<String, syn::Ident>,
    /// Names that patterns bind are no constants: one that begins with a small letter is new.
    bound: BTreeMap<String, syn::Ident>,
    /// What is called like a trait of the standard library is a trait, and what is called `Reverse` is its struct.
    called: Vec<TokenStream>,
    /// What is called like a module of the standard library is one: its functions are known by their last two names.
    modules: BTreeMap<String, TokenStream>,
}

impl Named {
    fn of(sig: &syn::Signature, body: &syn::Block) -> Named {
        let mut named = Named::default();
        for input in &sig.inputs {
            match input {
                syn::FnArg::Receiver(receiver) => named.visit_receiver(receiver),
                syn::FnArg::Typed(typed) => named.visit_type(&typed.ty),
            }
        }
        named.visit_return_type(&sig.output);
        named.visit_block(body);
        named
    }

    fn statements(self, facade: &TokenStream) -> impl Iterator<Item = TokenStream> {
        let primitives = self.primitives.into_values().map(move |name| {
            let span = name.span();
            quote_spanned!(span=> #facade::primitive::<#name, ::core::primitive::#name>();)
        });
        let bound = self.bound.into_values().map(|name| {
            let span = name.span();
            quote_spanned!(span=> { let #name @ _ = (); })
        });
        primitives
            .chain(bound)
            .chain(self.called)
            .chain(self.modules.into_values())
    }

    fn turned(&mut self, function: &syn::Expr) {
        if let syn::Expr::Path(path) = function
            && is_reverse(&path.path)
        {
            let path = Plain::of(&path.path).whole(None);
            let turned = quote_spanned!(path.span()=> let _: fn(u8) -> ::core::cmp::Reverse<u8> = #path;);
            self.called.push(turned);
        }
    }

    /// `Trait::function`, `module::function`.
    fn member(&mut self, path: &syn::Path, of: &syn::Ident, name: &syn::Ident) {
        let (of, name) = (of.unraw().to_string(), name.unraw().to_string());
        // A type of each module, which no other module has by chance.
        let ty = match &*of {
            "cmp" => Some(quote!(Reverse)),
            "mem" => Some(quote!(ManuallyDrop)),
            "array" => Some(quote!(TryFromSliceError)),
            "iter" => Some(quote!(Peekable)),
            _ => None,
        };
        let is_trait = operator_functions(&of).contains(&&*name);
        if ty.is_none() && !is_trait {
            return;
        }
        let plain = Plain::of(path);
        let parent = plain.prefix(plain.idents.len() - 1, None);
        if is_trait {
            let args = matches!(&*of, "Index" | "IndexMut" | "From" | "Into").then(|| quote!(<()>));
            self.called.push(
                quote_spanned!(path.span()=> { #[allow(dead_code)] fn is_trait<T: #parent #args>() {} }),
            );
        }
        if let Some(ty) = ty {
            let asked = quote_spanned!(path.span()=> { use #parent::#ty as _; });
            self.modules.entry(of).or_insert(asked);
        }
    }
}

impl Visit<'_> for Named {
    fn visit_path(&mut self, path: &syn::Path) {
        const PRIMITIVES: [&str; 15] = [
            "bool", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize",
            "f32", "f64",
        ];
        if let Some(first) = path.segments.first() {
            let name = first.ident.to_string();
            if PRIMITIVES.contains(&&*name) {
                self.primitives.entry(name).or_insert_with(|| first.ident.clone());
            }
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_pat_ident(&mut self, bound: &syn::PatIdent) {
        let name = bound.ident.to_string();
        if !name.trim_start_matches("r#").starts_with(char::is_uppercase) {
            self.bound.entry(name).or_insert_with(|| bound.ident.clone());
        }
        syn::visit::visit_pat_ident(self, bound);
    }

    fn visit_expr_call(&mut self, call: &syn::ExprCall) {
        self.turned(&call.func);
        syn::visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
        call.args.iter().for_each(|arg| self.turned(arg));
        syn::visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_path(&mut self, path: &syn::ExprPath) {
        let mut segments = path.path.segments.iter().rev();
        if let (Some(name), Some(of), None) = (segments.next(), segments.next(), &path.qself) {
            self.member(&path.path, &of.ident, &name.ident);
        }
        syn::visit::visit_expr_path(self, path);
    }

    fn visit_macro(&mut self, called: &syn::Macro) {
        if let Ok(args) = called.parse_body_with(Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated) {
            args.iter().for_each(|arg| self.visit_expr(arg));
        }
    }
}

/// Whether a function of this name may belong to a trait of the standard library, which has no marks.
fn is_std_function(name: &syn::Ident) -> bool {
    let name = name.unraw().to_string();
    STD_TRAITS
        .iter()
        .any(|(_, functions)| functions.contains(&&*name))
}

/// The hidden function beside each function of a `#[device] impl` block or trait, so that a call of another does not compile.
/// Its name is what rustc shows then.
pub(crate) fn mark(name: &syn::Ident) -> syn::Ident {
    let (name, span) = (name.unraw(), name.span());
    format_ident!(
        "__write_the_attribute_device_before_the_impl_block_that_has_{name}",
        span = span
    )
}

/// The closure's parameter, by one name: spans of the user's tokens would make several of it where a macro wrote them.
fn resolver() -> syn::Ident {
    format_ident!("r")
}

/// A path without generic arguments.
pub(crate) struct Plain {
    leading: Option<syn::Token![::]>,
    idents: Vec<syn::Ident>,
    /// Whether its last segment has generic arguments.
    has_args: bool,
}

impl Plain {
    pub(crate) fn of(path: &syn::Path) -> Plain {
        Plain {
            leading: path.leading_colon,
            has_args: path.segments.last().is_some_and(|last| !last.arguments.is_none()),
            idents: path
                .segments
                .iter()
                .map(|segment| segment.ident.clone())
                .collect(),
        }
    }

    /// The first segments; where they start with `Self`, it is `own`, which has no name where the tokens are put.
    fn prefix(&self, len: usize, own: Option<&TokenStream>) -> TokenStream {
        let (leading, idents) = (self.leading, &self.idents[..len]);
        match (idents, own) {
            ([first], Some(own)) if first == "Self" => quote!(#own),
            ([first, rest @ ..], Some(own)) if first == "Self" => quote!(<#own>::#(#rest)::*),
            _ => quote!(#leading #(#idents)::*),
        }
    }

    /// `item` of the type that stands for the free function of this path. rustc shows the name of the import where there is no
    /// such type.
    pub(crate) fn of_function(&self, item: &TokenStream) -> TokenStream {
        let whole = self.whole(None);
        match self.idents.last() {
            // An import would find the prelude's, too.
            Some(name) if PRELUDE_NAMES.iter().any(|known| name == known) => quote!(#whole::#item),
            Some(name) => {
                let span = name.span();
                let marked = format_ident!(
                    "__write_the_attribute_device_before_the_function_{}",
                    name.unraw(),
                    span = span
                );
                quote_spanned!(span=> { use #whole as #marked; #marked::#item })
            }
            None => quote!(#whole::#item),
        }
    }

    fn begins_with_self(&self) -> bool {
        self.idents.first().is_some_and(|first| first == "Self")
    }

    /// Says what the type `ty` is, which this path names: a generic struct says it by itself. One with arguments must stand by its
    /// own name, since an alias may order them otherwise.
    fn generic_type(&self, ty: &TokenStream, id: u32, facade: &TokenStream) -> TokenStream {
        let (r, span) = (resolver(), ty.span());
        let named = self.is_named(ty, facade);
        quote_spanned!(span=> { use #facade::Described as _; #named #ty::__perpetua_type(#r, #id); })
    }

    /// What does not compile where a path with arguments stands by another name than the generic struct's own.
    pub(crate) fn is_named(&self, ty: &TokenStream, facade: &TokenStream) -> Option<TokenStream> {
        let name = self.idents.last().filter(|_| self.has_args)?;
        let (span, name) = (name.span(), name.unraw().to_string());
        Some(quote_spanned!(span=> const _: () = #facade::is_named(#ty::__PERPETUA_NAME, #name);))
    }

    pub(crate) fn whole(&self, own: Option<&TokenStream>) -> TokenStream {
        self.prefix(self.idents.len(), own)
    }

    /// The type before the last segment, where there is one that is written like a type.
    pub(crate) fn head(&self, own: Option<&TokenStream>) -> Option<TokenStream> {
        let [.., ty, _] = &self.idents[..] else {
            return None;
        };
        is_type(ty).then(|| self.prefix(self.idents.len() - 1, own))
    }

    /// Whether it is written like a type.
    pub(crate) fn is_type(&self) -> bool {
        self.idents.last().is_some_and(is_type)
    }
}

/// What the prelude has and functions of programs may be called, too: its modules, and the standard library's functions.
const PRELUDE_NAMES: [&str; 7] = ["priority", "volume", "max", "min", "replace", "swap", "take"];

/// Whether a name is written like a type's.
fn is_type(name: &syn::Ident) -> bool {
    let name = name.unraw().to_string();
    name.chars().find(|&c| c != '_').is_some_and(char::is_uppercase)
}
