//! Places: what is read, stored to and borrowed. A place is an element of a buffer, or lies in the lane's own memory, and
//! below that a path of fields and indices.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;

use super::lane::{Lane, internal};
use super::language::{name_of, peel};
use super::scope::Name;

/// A place.
#[derive(Clone)]
struct Place {
    root: Root,
    path: Vec<Step>,
}

#[derive(Clone)]
enum Root {
    /// `buffer[index]`.
    Element {
        buffer: syn::Ident,
        index: TokenStream,
        site: TokenStream,
    },
    /// A local, a dereferenced reference, a constant, or a value without a place.
    Own(TokenStream),
}

#[derive(Clone)]
enum Step {
    Field(TokenStream),
    Index { index: TokenStream, site: TokenStream },
}

impl Place {
    /// Whether it lies behind an index into an element.
    fn is_inside(&self) -> bool {
        let indexed = self.path.iter().any(|step| matches!(step, Step::Index { .. }));
        indexed && matches!(self.root, Root::Element { .. })
    }

    /// Names the indices of an element and of the path into it. The IR evaluates each once, in this order, before it
    /// reaches the element; so does a body that begins with what this gives.
    fn name_indices(&mut self) -> TokenStream {
        let Root::Element { index, .. } = &mut self.root else {
            return TokenStream::new();
        };
        let inner = self.path.iter_mut().filter_map(|step| match step {
            Step::Index { index, .. } => Some(index),
            Step::Field(_) => None,
        });
        let named = std::iter::once(index).chain(inner).enumerate().map(|(i, index)| {
            let name = internal(&format!("index{i}"));
            let value = std::mem::replace(index, quote!(#name));
            quote!(let #name: ::core::primitive::usize = #value;)
        });
        named.collect()
    }
}

/// What is indexed, for a fault.
fn subject(base: &syn::Expr) -> String {
    match peel(base) {
        syn::Expr::Path(path) => match path.path.segments.last() {
            Some(segment) => segment.ident.to_string(),
            None => String::new(),
        },
        // A path into a variable is reported as the variable.
        syn::Expr::Field(field) => subject(&field.base),
        syn::Expr::Index(index) => subject(&index.expr),
        syn::Expr::Unary(unary) => subject(&unary.expr),
        _ => String::new(),
    }
}

impl Lane<'_> {
    fn place(&mut self, expr: &syn::Expr) -> Place {
        match peel(expr) {
            syn::Expr::Field(field) => {
                let mut place = self.place(&field.base);
                place.path.push(Step::Field(field.member.to_token_stream()));
                place
            }
            syn::Expr::Index(index) => {
                let site = self.site(index.bracket_token.span.open(), &subject(&index.expr));
                let buffer = name_of(&index.expr)
                    .filter(|name| matches!(self.scope.find(name), Some(Name::Buffer { .. })))
                    .cloned();
                if let Some(buffer) = buffer {
                    let index = self.expr(&index.index);
                    return Place {
                        root: Root::Element { buffer, index, site },
                        path: Vec::new(),
                    };
                }
                let mut place = self.place(&index.expr);
                let index = self.expr(&index.index);
                place.path.push(Step::Index { index, site });
                place
            }
            syn::Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => {
                // `*&x[i]` and the like are not written; what is dereferenced is the lane's own.
                let inner = self.expr(&unary.expr);
                Place {
                    root: Root::Own(quote!((*#inner))),
                    path: Vec::new(),
                }
            }
            other => Place {
                root: Root::Own(self.expr(other)),
                path: Vec::new(),
            },
        }
    }

    /// The value of a place.
    pub(super) fn value_of(&mut self, expr: &syn::Expr) -> TokenStream {
        let span = expr.span();
        let mut place = self.place(expr);
        if !place.is_inside() {
            return self.read(place, span);
        }
        let indices = place.name_indices();
        let value = self.read(place, span);
        quote_spanned!(span=> { #indices #value })
    }

    fn read(&mut self, place: Place, span: Span) -> TokenStream {
        let value = match place.root {
            Root::Element { buffer, index, site } => {
                self.accesses(&buffer, false);
                let mode = &self.mode;
                quote_spanned!(span=> #mode.load(#buffer, #index, #site)?)
            }
            Root::Own(tokens) => tokens,
        };
        descend(value, place.path, span)
    }

    /// A place of the lane's own memory as a place of Rust.
    pub(super) fn own_place(&mut self, expr: &syn::Expr, mutable: bool) -> TokenStream {
        let span = expr.span();
        let place = self.place(expr);
        match place.root {
            Root::Element { .. } => self.refuse(),
            Root::Own(tokens) if mutable => descend_mut(tokens, place.path, span),
            Root::Own(tokens) => descend(tokens, place.path, span),
        }
    }

    /// `&place`, `&mut place`: of the lane's own memory only.
    pub(super) fn reference(&mut self, reference: &syn::ExprReference) -> TokenStream {
        let mutable = reference.mutability.is_some();
        let place = self.own_place(&reference.expr, mutable);
        let mutability = &reference.mutability;
        quote!((& #mutability #place))
    }

    /// `place = value`.
    pub(super) fn assign(&mut self, place: &syn::Expr, value: &syn::Expr) -> TokenStream {
        let (span, at) = (place.span(), value.span());
        let value = self.expr(value);
        if name_of(place).is_some() {
            let place = self.expr(place);
            return quote_spanned!(span=> #place = #value);
        }
        let mut place = self.place(place);
        // A value of another type is told of where it stands.
        let mut new = internal("value");
        new.set_span(new.span().located_at(at));
        let indices = if place.is_inside() {
            place.name_indices()
        } else {
            TokenStream::new()
        };
        let store = self.store(place, &quote!(#new), span);
        quote_spanned!(span=> { let #new = #value; #indices #store; })
    }

    /// Stores to a place.
    fn store(&mut self, place: Place, value: &TokenStream, span: Span) -> TokenStream {
        if let Root::Element { buffer, .. } = &place.root {
            self.accesses(buffer, true);
        }
        let mode = &self.mode;
        match place.root {
            Root::Element { buffer, index, site } if place.path.is_empty() => {
                quote_spanned!(span=> #mode.store(#buffer, #index, #value, #site)?)
            }
            Root::Element { buffer, index, site } => {
                let element = internal("element");
                let part = descend_mut(quote!(#element), place.path, span);
                quote_spanned! {span=>
                    #mode.store_part(
                        #buffer,
                        #index,
                        |#element| ::core::result::Result::Ok(&mut #part),
                        #value,
                        #site,
                    )?
                }
            }
            Root::Own(tokens) => {
                let place = descend_mut(tokens, place.path, span);
                quote_spanned!(span=> #place = #value)
            }
        }
    }

    /// `place op= value`.
    pub(super) fn compound(
        &mut self,
        op: &syn::BinOp,
        place: &syn::Expr,
        value: &syn::Expr,
        op_span: Span,
    ) -> TokenStream {
        let span = place.span();
        let value = self.expr(value);
        let (new, old) = (internal("value"), internal("old"));
        let changed = self.arithmetic(op, &quote!(#old), &quote!(#new), op_span);
        let mut place = self.place(place);
        let indices = place.name_indices();
        match place.root {
            Root::Element { .. } => {
                let (read, store) = (self.read(place.clone(), span), self.store(place, &changed, span));
                quote_spanned! {span=> {
                    let #new = #value;
                    #indices
                    let #old = #read;
                    #store;
                }}
            }
            Root::Own(tokens) => {
                let (target, place) = (internal("target"), descend_mut(tokens, place.path, span));
                quote_spanned! {span=> {
                    let #new = #value;
                    let #target = &mut #place;
                    let #old = *#target;
                    *#target = #changed;
                }}
            }
        }
    }
}

/// A place below a value, for reading.
fn descend(value: TokenStream, path: Vec<Step>, span: Span) -> TokenStream {
    path.into_iter().fold(value, |value, step| match step {
        Step::Field(member) => quote_spanned!(span=> #value.#member),
        Step::Index { index, site } => {
            quote_spanned!(span=> (*(#value).__perpetua_native_at(#index, #site)?))
        }
    })
}

/// A place below a value, for storing.
fn descend_mut(value: TokenStream, path: Vec<Step>, span: Span) -> TokenStream {
    path.into_iter().fold(value, |value, step| match step {
        Step::Field(member) => quote_spanned!(span=> #value.#member),
        Step::Index { index, site } => {
            quote_spanned!(span=> (*(#value).__perpetua_native_at_mut(#index, #site)?))
        }
    })
}
