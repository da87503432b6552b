//! Generic parameters of native code: each type is one of device memory, and a number where its bounds ask for
//! arithmetic.

use proc_macro2::TokenStream;
use quote::quote;

/// What a type parameter's bounds make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Copied about.
    Element,
    /// Added and multiplied.
    Number,
    /// Shifted and masked.
    Integer,
}

/// What a bound asks for; `None` for traits that are not Rust's own.
fn kind_of(bound: &syn::TypeParamBound) -> Option<Kind> {
    let path = match bound {
        syn::TypeParamBound::Lifetime(_) => return Some(Kind::Element),
        syn::TypeParamBound::Trait(bound) => &bound.path,
        _ => return None,
    };
    let last = path.segments.last()?;
    // `Mul<f32>` says nothing of numbers.
    if let syn::PathArguments::AngleBracketed(args) = &last.arguments
        && args
            .args
            .iter()
            .any(|arg| matches!(arg, syn::GenericArgument::Type(_)))
    {
        return None;
    }
    let name = last.ident.to_string();
    Some(match name.as_str() {
        "Copy" | "Clone" | "Send" | "Sync" | "Debug" | "Display" | "Default" | "PartialEq" | "PartialOrd"
        | "From" | "Into" | "GpuType" => Kind::Element,
        "Add" | "Sub" | "Mul" | "Div" | "Rem" | "Neg" | "AddAssign" | "SubAssign" | "MulAssign"
        | "DivAssign" | "RemAssign" => Kind::Number,
        "Eq" | "Ord" | "Not" | "BitAnd" | "BitOr" | "BitXor" | "Shl" | "Shr" | "BitAndAssign"
        | "BitOrAssign" | "BitXorAssign" | "ShlAssign" | "ShrAssign" => Kind::Integer,
        _ => return None,
    })
}

/// The generic parameters for native code: without lifetimes, with the bounds that native code needs. The second is whether
/// all bounds were understood; if not, the parameters are as they were.
pub(super) fn bounded(generics: &syn::Generics, facade: &TokenStream) -> (syn::Generics, bool) {
    let plain = without_lifetimes(generics);
    let mut bounded = plain.clone();
    for param in bounded.params.iter_mut() {
        let syn::GenericParam::Type(param) = param else {
            continue;
        };
        let clause = plain.where_clause.iter().flat_map(|clause| &clause.predicates);
        let more = clause.filter_map(|predicate| match predicate {
            syn::WherePredicate::Type(predicate) if is(&predicate.bounded_ty, &param.ident) => {
                Some(&predicate.bounds)
            }
            _ => None,
        });
        let mut kind = Kind::Element;
        for bound in param.bounds.iter().chain(more.flatten()) {
            match kind_of(bound) {
                Some(found) => kind = kind.max(found),
                None => return (plain, false),
            }
        }
        let element: syn::TypeParamBound = syn::parse_quote!(#facade::Element);
        param.bounds.push(element);
        if let Some(number) = match kind {
            Kind::Element => None,
            Kind::Number => Some(quote!(#facade::native::number::Number)),
            Kind::Integer => Some(quote!(#facade::native::number::Integer)),
        } {
            param.bounds.push(syn::parse_quote!(#number));
        }
    }
    (bounded, true)
}

/// Whether the type is the parameter of this name.
pub(crate) fn is(ty: &syn::Type, name: &syn::Ident) -> bool {
    matches!(ty, syn::Type::Path(path) if path.path.is_ident(name))
}

/// The parameters without lifetimes.
pub(crate) fn without_lifetimes(generics: &syn::Generics) -> syn::Generics {
    let mut generics = generics.clone();
    generics.params = generics
        .params
        .into_iter()
        .filter(|param| !matches!(param, syn::GenericParam::Lifetime(_)))
        .collect();
    for param in &mut generics.params {
        if let syn::GenericParam::Type(param) = param {
            param.bounds = std::mem::take(&mut param.bounds)
                .into_iter()
                .filter(|bound| !matches!(bound, syn::TypeParamBound::Lifetime(_)))
                .collect();
        }
    }
    if let Some(clause) = &mut generics.where_clause {
        clause.predicates = std::mem::take(&mut clause.predicates)
            .into_iter()
            .filter(|predicate| !matches!(predicate, syn::WherePredicate::Lifetime(_)))
            .collect();
    }
    generics
}
