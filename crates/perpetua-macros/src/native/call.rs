//! Calls in a lane's body: the language's own functions, device functions, methods, macros.

use perpetua_syntax::IntrinsicGroup;
use perpetua_syntax::parse::intrinsic_of;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Token;
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;

use super::lane::Lane;
use super::language::{
    Index, index_function, is_array_method, is_plain_function, is_plain_method, is_scalar_method, name_of,
    peel,
};
use super::scope::Name;
use crate::resolver::{NATIVE, Plain};

/// Offsets of the neighbours that have names.
pub(super) fn near(name: &str) -> Option<[i32; 3]> {
    Some(match name {
        "center" => [0, 0, 0],
        "north" => [0, -1, 0],
        "south" => [0, 1, 0],
        "west" => [-1, 0, 0],
        "east" => [1, 0, 0],
        "up" => [0, 0, -1],
        "down" => [0, 0, 1],
        _ => return None,
    })
}

impl Lane<'_> {
    pub(super) fn call(&mut self, call: &syn::ExprCall) -> TokenStream {
        let syn::Expr::Path(path) = peel(&call.func) else {
            return self.refuse();
        };
        let path = &path.path;
        if path
            .get_ident()
            .is_some_and(|name| self.scope.find(name).is_some())
        {
            return self.refuse();
        }
        if let Some(intrinsic) = intrinsic_of(path) {
            if intrinsic.group() == IntrinsicGroup::Atomic {
                // The lane's own memory is nobody else's: there they are what they are in plain Rust. Elements of
                // buffers are refused as arguments.
                let args: Vec<TokenStream> = call.args.iter().map(|arg| self.expr(arg)).collect();
                return quote!(#path(#(#args),*));
            }
            let Some(function) = index_function(intrinsic) else {
                return self.refuse();
            };
            self.local |= matches!(function.what, Index::Thread | Index::Block);
            let (mode, name) = (
                &self.mode,
                format_ident!("{}", intrinsic.name(), span = path.span()),
            );
            return quote!(#mode.#name());
        }
        let args: Vec<TokenStream> = call.args.iter().map(|arg| self.expr(arg)).collect();
        if let Some(name) = self.scalar_function(path) {
            let name_text = name.to_string();
            let ty = &path.segments[path.segments.len() - 2];
            if ty.ident == "f16" && name_text == "from_f32" {
                let native = self.setting.native();
                return quote!(#native::halves::narrow(#(#args),*));
            }
            if name_text == "from_f64" {
                // `half`'s rounds twice on most processors.
                return self.refuse();
            }
            if is_plain_function(&name_text) {
                return quote!(#path(#(#args),*));
            }
            // Another may be a trait's, which has no native body.
            let Some((receiver, args)) = args.split_first().filter(|_| is_scalar_method(&name_text)) else {
                return self.refuse();
            };
            let receiver = quote!(::core::convert::identity::<#ty>(#receiver));
            return self.native_method(&receiver, &name, None, args);
        }
        let plain = Plain::of(path);
        if plain.is_type() {
            return quote!((#path(#(#args),*)));
        }
        let generics = match path.segments.last().map(|segment| &segment.arguments) {
            Some(syn::PathArguments::AngleBracketed(args)) => {
                let args = args
                    .args
                    .iter()
                    .filter(|arg| !matches!(arg, syn::GenericArgument::Lifetime(_)));
                quote!(::<#(#args),*>)
            }
            _ => TokenStream::new(),
        };
        let (mode, native) = (&self.mode, self.setting.native());
        let site = self.site(path.segments.last().span(), "");
        if plain.head(None).is_some() {
            // A type's function may be a trait's, which has no native body.
            return self.refuse();
        }
        let callee = plain.of_function(&quote!(__perpetua_native #generics(#mode, #site, #(#args),*)));
        let flag = format_ident!("{NATIVE}");
        self.callees.push(plain.of_function(&quote!(#flag)));
        quote_spanned!(call.span()=> #native::stop::returned(#callee, #site)?)
    }

    /// The function's name, where the path is `f32::max`, `T::from` or the like.
    fn scalar_function(&self, path: &syn::Path) -> Option<syn::Ident> {
        let mut segments = path.segments.iter().rev();
        let (name, ty) = (segments.next()?, segments.next()?);
        let ty = ty.ident.to_string();
        let known = perpetua_syntax::Scalar::from_name(&ty).is_some() || self.setting.types.contains(&ty);
        known.then(|| name.ident.clone())
    }

    pub(super) fn method_call(&mut self, call: &syn::ExprMethodCall) -> TokenStream {
        let name = call.method.unraw().to_string();
        match name_of(&call.receiver).and_then(|receiver| self.scope.find(receiver)) {
            Some(Name::Position) => return self.position_method(call, &name),
            Some(Name::Buffer { .. }) => {
                let (receiver, method) = (&call.receiver, &call.method);
                return match name.as_str() {
                    "len" | "is_empty" => quote!(#receiver.#method()),
                    _ => self.refuse(),
                };
            }
            _ => {}
        }
        let args: Vec<TokenStream> = call.args.iter().map(|arg| self.expr(arg)).collect();
        if is_plain_method(&name) {
            let (receiver, method) = (self.expr(&call.receiver), &call.method);
            return quote!((#receiver).#method(#(#args),*));
        }
        let of_array = is_array_method(&name) && matches!(peel(&call.receiver), syn::Expr::Path(_));
        if !is_scalar_method(&name) && !of_array {
            // It may be a trait's, which has no native body.
            return self.refuse();
        }
        let receiver = self.expr(&call.receiver);
        let turbofish = call.turbofish.as_ref().map(|turbofish| {
            let args = &turbofish.args;
            quote!(::<#args>)
        });
        self.native_method(&quote!((#receiver)), &call.method, turbofish.as_ref(), &args)
    }

    fn native_method(
        &self,
        receiver: &TokenStream,
        name: &syn::Ident,
        turbofish: Option<&TokenStream>,
        args: &[TokenStream],
    ) -> TokenStream {
        let method = format_ident!("__perpetua_native_{}", name.unraw(), span = name.span());
        // Methods that divide are reported under the operation's name.
        let subject = match name.unraw().to_string().as_str() {
            "wrapping_rem" | "rem_euclid" | "next_multiple_of" => "remainder",
            _ => "division",
        };
        let (mode, native, site) = (&self.mode, self.setting.native(), self.site(name.span(), subject));
        let call = quote_spanned!(name.span()=> #receiver.#method #turbofish(#mode, #site, #(#args),*));
        quote_spanned!(name.span()=> #native::stop::returned(#call, #site)?)
    }

    fn position_method(&mut self, call: &syn::ExprMethodCall, name: &str) -> TokenStream {
        let (mode, grid, method) = (self.mode.clone(), self.grid.clone(), &call.method);
        if matches!(name, "x" | "y" | "z" | "idx") {
            return quote!(#grid.#method(#mode));
        }
        let Some(buffer) = call.args.first().and_then(name_of).cloned() else {
            return self.refuse();
        };
        if !matches!(self.scope.find(&buffer), Some(Name::Buffer { .. })) {
            return self.refuse();
        }
        let offset = match near(name) {
            Some([x, y, z]) => quote!([#x, #y, #z]),
            None if name == "at" => {
                let mut offsets: Vec<TokenStream> =
                    call.args.iter().skip(1).map(|arg| self.expr(arg)).collect();
                offsets.resize(3, quote!(0));
                quote!([#(#offsets),*])
            }
            None => return self.refuse(),
        };
        self.accesses(&buffer, false);
        let site = self.site(call.method.span(), &buffer.to_string());
        quote_spanned!(call.span()=> #mode.neighbour(&#grid, #buffer, #offset, #site)?)
    }

    pub(super) fn macro_call(&mut self, mac: &syn::Macro) -> TokenStream {
        let name = mac.path.segments.last().map(|segment| segment.ident.to_string());
        match name.as_deref() {
            Some("gpu_println") => {
                let parser = Punctuated::<syn::Expr, Token![,]>::parse_terminated;
                let Ok(args) = mac.parse_body_with(parser) else {
                    return self.refuse();
                };
                let args = self.exprs(&args);
                quote!(::std::println!(#(#args),*))
            }
            Some("unreachable") if mac.tokens.is_empty() => {
                let (native, site) = (self.setting.native(), self.site(mac.path.span(), ""));
                quote!(return ::core::result::Result::Err(#native::Stop::unreachable(#site)))
            }
            _ => self.refuse(),
        }
    }
}
