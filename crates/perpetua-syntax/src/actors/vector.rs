//! A message's field that is a vector.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

/// A field `Vec<T>`: the type of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vector {
    /// `Vec<f32>`
    F32,
    /// `Vec<u32>`
    U32,
    /// `Vec<i32>`
    I32,
}

impl Vector {
    /// Whether a field is one; an error where its elements are none that a block can hold.
    pub(super) fn of(ty: &syn::Type) -> syn::Result<Option<Vector>> {
        let syn::Type::Path(path) = ty else {
            return Ok(None);
        };
        let Some(last) = path.path.segments.last().filter(|last| last.ident == "Vec") else {
            return Ok(None);
        };
        let element = match &last.arguments {
            syn::PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
                Some(syn::GenericArgument::Type(element)) => quote!(#element).to_string(),
                _ => String::new(),
            },
            _ => String::new(),
        };
        let remedy = match element.as_str() {
            "f32" => return Ok(Some(Vector::F32)),
            "u32" => return Ok(Some(Vector::U32)),
            "i32" => return Ok(Some(Vector::I32)),
            "f64" => "carry them as `Vec<f32>`, or their bits, two words each, as `Vec<u32>`",
            "u64" | "i64" | "usize" | "isize" => {
                "carry each as two words in a `Vec<u32>`, the lower half first"
            }
            "bool" | "u8" | "i8" | "u16" | "i16" => {
                "carry them as `Vec<u32>` or `Vec<i32>`, or several in a word"
            }
            _ => "carry each of its fields in a vector of its own",
        };
        let message = format!("a message's vectors are `Vec<f32>`, `Vec<u32>` and `Vec<i32>`: {remedy}");
        Err(syn::Error::new_spanned(ty, message))
    }

    /// The type of its elements.
    #[must_use]
    pub fn element(self) -> TokenStream {
        match self {
            Vector::F32 => quote!(f32),
            Vector::U32 => quote!(u32),
            Vector::I32 => quote!(i32),
        }
    }

    /// Its type in the view.
    #[must_use]
    pub fn span(self) -> TokenStream {
        match self {
            Vector::F32 => quote!(::perpetua::actors::span::SpanF32),
            Vector::U32 => quote!(::perpetua::actors::span::SpanU32),
            Vector::I32 => quote!(::perpetua::actors::span::SpanI32),
        }
    }

    /// Appends the words of its span; gives the expression that reads it back.
    pub(super) fn read(
        self,
        value: &TokenStream,
        words: &mut Vec<TokenStream>,
        at: &mut usize,
    ) -> TokenStream {
        let span = self.span();
        words.push(quote!(#span::__perpetua_offset(#value)));
        words.push(quote!(#span::__perpetua_len(#value)));
        let [offset, len] =
            [*at, *at + 1].map(|index| Literal::usize_unsuffixed(index.min(super::message::ROOM - 1)));
        *at += 2;
        quote!(#span::__perpetua_of(w[#offset], w[#len]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Message;

    fn check(fields: &str, expect: &str) {
        let text = format!("#[derive(RingMessage)] struct M {fields}");
        let input = syn::parse_str::<syn::DeriveInput>(&text).unwrap();
        let found = match Message::read(&input) {
            Ok(message) => format!("{} words, {} vectors", message.count, message.vectors.len()),
            Err(error) => error.to_string(),
        };
        assert!(found.contains(expect), "{fields}: {found}");
    }

    #[test]
    fn vectors_of_words_are_taken_and_others_refused_with_what_to_write() {
        check(
            "{ a: f32, b: Vec<f32>, c: std::vec::Vec<u32> }",
            "5 words, 2 vectors",
        );
        check("{ a: Vec<i32> }", "2 words, 1 vectors");
        check("{ a: Vec<f64> }", "carry them as `Vec<f32>`, or their bits");
        check("{ a: Vec<u64> }", "carry each as two words in a `Vec<u32>`");
        check("{ a: Vec<u8> }", "several in a word");
        check(
            "{ a: Vec<Vec<f32>> }",
            "each of its fields in a vector of its own",
        );
        check("{ a: String }", "carry a text's bytes in a `Vec<u32>`");
        check("(Vec<f32>);", "has named fields");
        check(
            "{ a: [u32; 13], b: Vec<f32> }",
            "takes 15 words of 32 bits, a packet has room for 14",
        );
        check("{ a: [u32; 12], b: Vec<f32> }", "14 words, 1 vectors");
    }
}
