//! `#[kernel]`: the function, its description, its handle.

use perpetua_syntax::parse::Read;
use perpetua_syntax::parse::options::{KernelOptions, StencilOptions};
use perpetua_syntax::{Function, FunctionKind};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::visit::Visit;

use crate::device::file_of;
use crate::native::generics::{is, without_lifetimes};
use crate::native::program::{arguments, program};
use crate::{describe, output};

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let function = match syn::parse2::<syn::ItemFn>(item.clone()) {
        Ok(function) => function,
        Err(_) => {
            let message = "`#[kernel]` stands before a function: `fn name(x: &[f32], y: &mut [f32]) { … }`";
            let error = syn::Error::new_spanned(item.clone(), message);
            return output::with_error(item, &error);
        }
    };
    let options = match KernelOptions::read(options, &function.sig) {
        Ok(options) => options,
        Err(error) => return refused(&function, &output::facade(None), &error),
    };
    let facade = output::facade(options.krate.as_ref());
    match options.read_kernel(&function, &file_of(&function.sig)) {
        Ok(read) => accepted(&function, &item, &read, &options, &facade),
        Err(error) => refused(&function, &facade, &error),
    }
}

/// The function and a stand-in for its siblings, so that the error is the only one.
fn refused(function: &syn::ItemFn, facade: &TokenStream, error: &syn::Error) -> TokenStream {
    let members = quote! {
        pub fn kernel() -> #facade::KernelFn {
            ::core::unreachable!()
        }
    };
    let sibling = describe::sibling(function, &quote!(#facade::refused()), &members, facade);
    output::with_error(quote!(#function #sibling), error)
}

/// `item`: the function as it stands, which costs less to give back than to print.
fn accepted(
    function: &syn::ItemFn,
    item: &TokenStream,
    read: &Read<Function>,
    options: &KernelOptions,
    facade: &TokenStream,
) -> TokenStream {
    let definition = describe::definition(read, &function.sig, &function.block, None, facade);
    let members = handle(function, read, options, facade);
    let sibling = describe::sibling(function, &definition, &members, facade);
    let allowed = output::unwarned();
    let registered = registered(function, facade);
    quote! { #allowed #item #sibling #registered }
}

/// Lets checks find the kernel. Instances of a generic one are found where they are asked for.
fn registered(function: &syn::ItemFn, facade: &TokenStream) -> Option<TokenStream> {
    let name = &function.sig.ident;
    let is_generic = !without_lifetimes(&function.sig.generics).params.is_empty();
    let (conditions, quiet) = (output::conditions(&function.attrs), output::quiet());
    let plain = plain(function, &[], facade);
    (!is_generic).then(|| {
        quote! {
            #conditions
            #quiet
            #[cfg(all(debug_assertions, not(target_family = "wasm")))]
            const _: () = {
                #facade::inventory::submit! { #facade::registered! { #name::kernel, #plain } }
            };
        }
    })
}

/// Whether it is the type of a stencil's position.
fn is_position(ty: &syn::Type) -> bool {
    match ty {
        syn::Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| last.ident == "GridPos"),
        _ => false,
    }
}

/// What calls the function with arguments that it asks for, and gives them back: `|args| { … }`. Nothing where it takes more than slices
/// and values.
fn plain(function: &syn::ItemFn, arguments: &[TokenStream], facade: &TokenStream) -> TokenStream {
    let (mut made, mut passed, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for (i, input) in function.sig.inputs.iter().enumerate() {
        let syn::FnArg::Typed(typed) = input else {
            return TokenStream::new();
        };
        let name = quote::format_ident!("p{i}");
        let of = |ty: &syn::Type| quote!((&__Of::<#ty>::NEW));
        match &*typed.ty {
            syn::Type::Reference(reference) => {
                let (of, how) = match &*reference.elem {
                    syn::Type::Slice(slice) => (of(&slice.elem), quote!(slice)),
                    one => (of(one), quote!(one)),
                };
                made.push(quote!(let mut #name = #of.#how(args);));
                passed.push(
                    match (
                        matches!(&*reference.elem, syn::Type::Slice(_)),
                        reference.mutability,
                    ) {
                        (true, Some(_)) => quote!(#name.as_mut_slice()),
                        (true, None) => quote!(#name.as_slice()),
                        (false, Some(_)) => quote!(&mut #name[0]),
                        (false, None) => quote!(&#name[0]),
                    },
                );
                left.push(quote!(#of.left(args, &#name);));
            }
            ty @ (syn::Type::Path(_) | syn::Type::Array(_)) if !is_position(ty) => {
                let of = of(ty);
                made.push(quote!(let #name = #of.value(args);));
                passed.push(quote!(#name));
            }
            _ => return TokenStream::new(),
        }
    }
    if function.sig.unsafety.is_some() {
        return TokenStream::new();
    }
    let (name, turbofish) = (
        &function.sig.ident,
        (!arguments.is_empty()).then(|| quote!(::<#(#arguments),*>)),
    );
    quote! {
        |args| {
            use #facade::compare::{Known as _, Of as __Of, Unknown as _};
            #(#made)*
            args.run(&mut || #name #turbofish (#(#passed),*));
            #(#left)*
        }
    }
}

/// `kernel()`, the handle that launches take.
fn handle(
    function: &syn::ItemFn,
    read: &Read<Function>,
    options: &KernelOptions,
    facade: &TokenStream,
) -> TokenStream {
    let (name, sig) = (&read.tree.name, &function.sig);
    let own = &sig.ident;
    let program = program(function, read, options, facade);
    let instantiation = instantiation(function, read, options, facade);
    let generics = match &program {
        Some(program) => program.generics.clone(),
        None => interpreted_generics(&function.sig, facade),
    };
    let (params, clause) = (&generics.params, &generics.where_clause);
    let (markers, arguments) = (markers(&generics), arguments(&generics));
    let native = match &program {
        Some(_) => quote!(#facade::native::available::<Instance<#(#arguments),*>>()),
        None => quote!(::core::option::Option::None),
    };
    let items = program.map(|program| program.items);
    let entry = quote!(#facade::Entry::new(#name, #own::__perpetua_function(), || #instantiation, #native));
    // A function cannot be called by the name of a parameter that stands for another one.
    let takes_functions = sig
        .generics
        .type_params()
        .any(|param| called_as(&sig.generics, &param.ident).is_some());
    let plain = (!takes_functions).then(|| {
        let plain = plain(function, &arguments, facade);
        quote!(#facade::plain! { #plain })
    });
    let found = if arguments.is_empty() {
        quote! {
            static ENTRY: #facade::Entry = #entry;
            #facade::KernelFn::new(&ENTRY)
        }
    } else {
        quote! {
            impl<#params> #facade::Instance for Instance<#(#arguments),*> #clause {
                fn entry() -> #facade::Entry {
                    #entry
                }
                #plain
            }
            #facade::KernelFn::instance::<Instance<#(#arguments),*>>()
        }
    };
    let doc = format!("The kernel `{name}`, for launches.");
    quote! {
        #[doc = #doc]
        pub fn kernel<#params>() -> #facade::KernelFn #clause {
            struct Instance<#params>(#markers) #clause;
            #items
            #found
        }
    }
}

/// The function's generic parameters without lifetimes: each type is one of device memory where the function's parameters have it,
/// else one of kernels' values, or it stands for a device function.
fn interpreted_generics(sig: &syn::Signature, facade: &TokenStream) -> syn::Generics {
    let generics = &sig.generics;
    let mut plain = without_lifetimes(generics);
    let mut functions = Vec::new();
    for param in plain.type_params_mut() {
        let bound: syn::TypeParamBound = match called_as(generics, &param.ident) {
            None if !is_held(&sig.inputs, &param.ident) => {
                syn::parse_quote!(#facade::GpuValue)
            }
            None => syn::parse_quote!(#facade::GpuType),
            Some(pointer) => {
                param.bounds.clear();
                functions.push(param.ident.clone());
                syn::parse_quote!(#facade::DeviceFunction<#pointer>)
            }
        };
        param.bounds.push(bound);
    }
    if let Some(clause) = &mut plain.where_clause {
        let predicates = std::mem::take(&mut clause.predicates).into_iter();
        let of_function = |predicate: &syn::WherePredicate| match predicate {
            syn::WherePredicate::Type(of) => functions.iter().any(|name| is(&of.bounded_ty, name)),
            _ => false,
        };
        clause.predicates = predicates.filter(|predicate| !of_function(predicate)).collect();
    }
    plain
}

/// Whether parameters hold values of the type; of `T::Output` they hold another.
fn is_held(inputs: &Punctuated<syn::FnArg, syn::Token![,]>, name: &syn::Ident) -> bool {
    struct Held<'a>(&'a syn::Ident, bool);
    impl Visit<'_> for Held<'_> {
        fn visit_type_path(&mut self, path: &syn::TypePath) {
            self.1 |= path.qself.is_none() && path.path.is_ident(self.0);
            self.visit_path(&path.path);
        }
    }
    let mut held = Held(name, false);
    inputs.iter().for_each(|input| held.visit_fn_arg(input));
    held.1
}

/// The type of the functions that a parameter's bound such as `Fn(f32) -> f32` takes.
fn called_as(generics: &syn::Generics, name: &syn::Ident) -> Option<TokenStream> {
    let own = generics.type_params().filter(|param| param.ident == *name);
    let own = own.flat_map(|param| &param.bounds).map(|bound| (bound, None));
    let clause = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let more = clause.filter_map(|predicate| match predicate {
        syn::WherePredicate::Type(of) if is(&of.bounded_ty, name) => Some(of),
        _ => None,
    });
    let more = more.flat_map(|of| of.bounds.iter().map(|bound| (bound, of.lifetimes.as_ref())));
    own.chain(more).find_map(|(bound, lifetimes)| {
        let syn::TypeParamBound::Trait(bound) = bound else {
            return None;
        };
        let syn::PathArguments::Parenthesized(args) = &bound.path.segments.last()?.arguments else {
            return None;
        };
        let (lifetimes, inputs, output) =
            (bound.lifetimes.as_ref().or(lifetimes), &args.inputs, &args.output);
        Some(quote!(#lifetimes fn(#inputs) #output))
    })
}

/// What makes a struct use its type parameters.
fn markers(generics: &syn::Generics) -> TokenStream {
    let types = generics.type_params().map(|param| &param.ident);
    quote!(::core::marker::PhantomData<fn() -> (#(#types,)*)>)
}

/// The value `Instantiation { … }`: generic arguments and what the attribute's options say.
fn instantiation(
    function: &syn::ItemFn,
    read: &Read<Function>,
    options: &KernelOptions,
    facade: &TokenStream,
) -> TokenStream {
    let generics = function
        .sig
        .generics
        .params
        .iter()
        .filter_map(|param| match param {
            syn::GenericParam::Lifetime(_) => None,
            syn::GenericParam::Type(param) => {
                let name = &param.ident;
                Some(match called_as(&function.sig.generics, name) {
                    None => quote!(#facade::GenericValue::Type(<#name as #facade::GpuValue>::value_type())),
                    Some(pointer) => quote! {
                        #facade::GenericValue::Function(<#name as #facade::DeviceFunction<#pointer>>::function())
                    },
                })
            }
            syn::GenericParam::Const(param) => {
                let name = &param.ident;
                Some(quote!(#facade::GenericValue::Const(#facade::GpuConst::to_const(&#name))))
            }
        });
    let block_size = match options.block_size {
        Some([x, y, z]) => quote!(::core::option::Option::Some([#x, #y, #z])),
        None => quote!(::core::option::Option::None),
    };
    let contract = options.contract;
    let stencil = (read.tree.kind == FunctionKind::Stencil).then(|| {
        let config = stencil(&options.stencil, facade);
        quote!(stencil: #config,)
    });
    quote! {
        #facade::Instantiation {
            generics: ::std::vec![#(#generics),*],
            block_size: #block_size,
            contract: #contract,
            #stencil
            ..::core::default::Default::default()
        }
    }
}

fn stencil(options: &StencilOptions, facade: &TokenStream) -> TokenStream {
    let mut config = quote!(#facade::StencilConfig::new(""));
    if let Some(([x, y, z], at)) = options.tile {
        config = match options.volume {
            true => quote_spanned!(at=> #config.with_tile_size_3d(#x, #y, #z)),
            false => quote_spanned!(at=> #config.with_tile_size(#x, #y)),
        };
    }
    if let Some(halo) = options.halo {
        config = quote!(#config.with_halo(#halo));
    }
    if let Some(edge) = options.edge {
        let edge = output::edge(edge);
        config = quote!(#config.with_edge(#facade::Edge::#edge));
    }
    if options.volume {
        config = quote!(#facade::StencilConfig { three_d: true, ..#config });
    }
    config
}
