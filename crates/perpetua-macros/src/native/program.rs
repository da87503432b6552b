//! A kernel's native program: its arguments, and what a lane does.

use perpetua_syntax::parse::options::{EdgeOption, KernelOptions};
use perpetua_syntax::parse::{Conditions, Read, conditions, lacks_native};
use perpetua_syntax::{Function, FunctionKind, MOST_CONDITIONS};
use proc_macro2::TokenStream;
use quote::quote;

use super::generics::bounded;
use super::hygiene;
use super::lane::{Lane, Setting, internal};
use super::scope::Name;
use crate::output;

/// Buffers that the fast body tells apart: the facade's `native::PLACES`.
const PLACES: usize = 8;

/// What a kernel's handle needs of its native code.
pub(crate) struct Program {
    /// The generic parameters, with the bounds of native code.
    pub(crate) generics: syn::Generics,
    /// Implements `Program` for the type `Instance` with those parameters.
    pub(crate) items: TokenStream,
}

/// The number of the condition that a stencil's cell is computed: `perpetua_ir::front::rust::COMPUTED`.
const COMPUTED: u32 = MOST_CONDITIONS + 1;

/// A kernel's parameter.
enum Param<'a> {
    /// A slice: its name, element type, and whether it is `&mut`.
    Buffer(&'a syn::Ident, &'a syn::Type, bool),
    /// A value: its binding, name and type.
    Value(&'a syn::Pat, &'a syn::Ident, &'a syn::Type),
    /// The stencil's position: its name.
    Position(&'a syn::Ident),
}

/// The native program of a kernel; `None` where it runs as machine code or in the interpreter only.
pub(crate) fn program(
    function: &syn::ItemFn,
    read: &Read<Function>,
    options: &KernelOptions,
    facade: &TokenStream,
) -> Option<Program> {
    if options.interpret || options.contract || lacks_native(&function.sig, &function.block).is_some() {
        return None;
    }
    let (sig, block) = hygiene::unified(&function.sig, &function.block);
    let params = sig.inputs.iter().map(param).collect::<Option<Vec<_>>>()?;
    let (generics, understood) = bounded(&function.sig.generics, facade);
    if !understood {
        return None;
    }
    let setting = Setting {
        facade,
        file: &read.tree.file,
        types: generics
            .type_params()
            .map(|param| param.ident.to_string())
            .collect(),
    };
    let native = setting.native();
    let is_stencil = read.tree.kind == FunctionKind::Stencil;

    // Without a use of the lanes' places in their blocks these need not be told apart.
    let conditions = conditions(&block);
    let mut first = lane(&params, &setting, &conditions);
    first.block(&block);
    let merged = !first.local;
    if first.unsupported || is_stencil && !merged {
        return None;
    }
    let mut lane = lane(&params, &setting, &conditions);
    let lane_body = lane.block(&block);
    let asked = lane.asked | if is_stencil { 1 << COMPUTED } else { 0 };
    let leaving = lane.leaving;
    let accesses = params.iter().filter_map(|param| accesses(param, &lane));
    let names: Vec<TokenStream> = params.iter().filter_map(binding).collect();
    let grid = internal("grid");
    let (grid_name, grid_type, grid_value) = match is_stencil {
        true => (quote!(#grid), quote!(#native::Grid), grid_of(options, facade)),
        false => (TokenStream::new(), TokenStream::new(), TokenStream::new()),
    };
    let types = params.iter().filter_map(|param| argument_type(param, &native));
    let values = params.iter().filter_map(taken);
    let Placed {
        unnamed,
        places,
        placed,
    } = placed(&params);
    let mode = internal("m");
    let start = is_stencil.then(|| {
        quote! {
            if !#mode.guard(#COMPUTED, #grid.computes(#mode)) {
                return ::core::result::Result::Ok(());
            }
        }
    });
    let (name, file, own) = (&read.tree.name, &read.tree.file, &function.sig.ident);
    let (params_tokens, clause) = (&generics.params, &generics.where_clause);
    let arguments = arguments(&generics);
    let turbofish = (!arguments.is_empty()).then(|| quote!(::<#(#arguments),*>));
    let available = callees(&lane.callees);
    let quiet = crate::output::quiet();
    let items = quote! {
        #quiet
        // SAFETY: `lane` and the tree that `kernel` lowers are written of one body, and both number its conditions alike.
        unsafe impl<#params_tokens> #native::Program for Instance<#(#arguments),*> #clause {
            const NAME: &'static str = #name;
            const FILE: &'static str = #file;
            const MERGED: bool = #merged;
            const CONDITIONS: u64 = #asked;
            const LEAVING: u64 = #leaving;
            const ACCESSES: &'static [[usize; 2]] = &[#(#accesses),*];
            const AVAILABLE: bool = #available;

            type Args<'__args> = (#(#types,)* #grid_type);

            fn kernel() -> #facade::KernelFn {
                #own::kernel #turbofish ()
            }

            fn decode<'__args>(args: &mut #native::Arguments<'_>) -> ::core::option::Option<Self::Args<'__args>> {
                ::core::option::Option::Some((#(#values,)* #grid_value))
            }

            fn places(args: &Self::Args<'_>) -> [*mut u8; #native::PLACES] {
                let (#(#unnamed,)* #grid_name) = *args;
                [#(#places),*]
            }

            #[inline(always)]
            fn placed<'__args>(
                args: Self::Args<'__args>,
                at: [*mut u8; #native::PLACES],
            ) -> Self::Args<'__args> {
                let (#(#unnamed,)* #grid_name) = args;
                (#(#placed,)* #grid_name)
            }

            #[inline(always)]
            fn lane<__M: #native::Mode>(
                #mode: &__M,
                args: Self::Args<'_>,
            ) -> ::core::result::Result<(), #native::Stop> {
                use #native::methods::{Booleans as _, Elements as _, Floats as _, Halves as _, Integers as _, Ordered as _};
                use #native::operators::{AsWritten as _, Indexed as _};
                let (#(#names,)* #grid_name) = args;
                #start
                #lane_body;
                ::core::result::Result::Ok(())
            }
        }
    };
    Some(Program { generics, items })
}

fn param(input: &syn::FnArg) -> Option<Param<'_>> {
    let syn::FnArg::Typed(typed) = input else {
        return None;
    };
    let syn::Pat::Ident(pattern) = &*typed.pat else {
        return None;
    };
    let name = &pattern.ident;
    Some(match &*typed.ty {
        syn::Type::Reference(reference) => match &*reference.elem {
            syn::Type::Slice(slice) => Param::Buffer(name, &slice.elem, reference.mutability.is_some()),
            _ => return None,
        },
        syn::Type::Path(path)
            if path
                .path
                .segments
                .last()
                .is_some_and(|last| last.ident == "GridPos") =>
        {
            Param::Position(name)
        }
        ty => Param::Value(&typed.pat, name, ty),
    })
}

fn binding(param: &Param<'_>) -> Option<TokenStream> {
    match param {
        Param::Buffer(name, ..) => Some(quote!(#name)),
        Param::Value(pattern, ..) => Some(quote!(#pattern)),
        Param::Position(_) => None,
    }
}

fn argument_type(param: &Param<'_>, native: &TokenStream) -> Option<TokenStream> {
    match param {
        Param::Buffer(_, ty, _) => Some(quote!(#native::View<'__args, #ty>)),
        Param::Value(_, _, ty) => Some(quote!(#ty)),
        Param::Position(_) => None,
    }
}

fn taken(param: &Param<'_>) -> Option<TokenStream> {
    match param {
        Param::Buffer(_, ty, _) => Some(quote!(args.view::<#ty>()?)),
        Param::Value(_, _, ty) => Some(quote!(args.value::<#ty>()?)),
        Param::Position(_) => None,
    }
}

/// What `places` and `placed` are made of.
struct Placed {
    /// A name for each argument.
    unnamed: Vec<TokenStream>,
    /// The addresses of the first buffers.
    places: Vec<TokenStream>,
    /// The arguments again, the first buffers at other addresses.
    placed: Vec<TokenStream>,
}

fn placed(params: &[Param<'_>]) -> Placed {
    let mut all = Placed {
        unnamed: Vec::new(),
        places: Vec::new(),
        placed: Vec::new(),
    };
    for (i, param) in params.iter().enumerate() {
        let name = internal(&format!("arg{i}"));
        match param {
            Param::Position(_) => continue,
            Param::Buffer(..) if all.places.len() < PLACES => {
                let number = all.places.len();
                all.places.push(quote!(#name.place()));
                all.placed.push(quote!(#name.placed(at[#number])));
            }
            _ => all.placed.push(quote!(#name)),
        }
        all.unnamed.push(quote!(#name));
    }
    all.places.resize(PLACES, quote!(::core::ptr::null_mut()));
    all
}

/// The stencil's grid, of the arguments that follow the function's own.
fn grid_of(options: &KernelOptions, facade: &TokenStream) -> TokenStream {
    let halo = options.stencil.halo.unwrap_or(1);
    let edge = output::edge(options.stencil.edge.unwrap_or(EdgeOption::Interior));
    quote! {
        #facade::native::Grid::new(
            args.value::<u32>()?,
            args.value::<u32>()?,
            // The depth, where the kernel has one.
            args.value::<u32>(),
            #halo,
            #facade::Edge::#edge,
        )
    }
}

fn lane<'a>(params: &[Param<'_>], setting: &'a Setting<'a>, conditions: &'a Conditions) -> Lane<'a> {
    let mut lane = Lane::new(setting, conditions);
    for param in params {
        match param {
            Param::Buffer(name, _, writable) => {
                lane.scope.declare(name, Name::Buffer { writable: *writable })
            }
            Param::Value(_, name, _) => lane.scope.declare(name, Name::Value),
            Param::Position(name) => lane.scope.declare(name, Name::Position),
        }
    }
    lane
}

/// How many loads and stores of a parameter stand in a lane's body.
fn accesses(param: &Param<'_>, lane: &Lane<'_>) -> Option<TokenStream> {
    let [loads, stores] = match param {
        Param::Buffer(name, ..) => lane.accesses.get(&name.to_string()).copied().unwrap_or_default(),
        Param::Value(..) => [0; 2],
        Param::Position(_) => return None,
    };
    Some(quote!([#loads, #stores]))
}

/// Whether all functions that code calls have native code, as a constant expression.
pub(super) fn callees(functions: &[TokenStream]) -> TokenStream {
    quote!(true #(&& #functions)*)
}

/// Generic parameters as arguments.
pub(crate) fn arguments(generics: &syn::Generics) -> Vec<TokenStream> {
    let argument = |param: &syn::GenericParam| match param {
        syn::GenericParam::Type(param) => {
            let name = &param.ident;
            Some(quote!(#name))
        }
        syn::GenericParam::Const(param) => {
            let name = &param.ident;
            Some(quote!(#name))
        }
        syn::GenericParam::Lifetime(_) => None,
    };
    generics.params.iter().filter_map(argument).collect()
}
