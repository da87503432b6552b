//! Names that a file gives twice in one module, which rustc would refuse. Must not know what has them.

use std::collections::HashMap;

use proc_macro2::{Ident, Span};

use super::collect::plain;

/// Where Rust looks a name up: a type and a value may share one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Space {
    Types,
    Values,
}

/// The names given so far, by full path, with their places.
#[derive(Default)]
pub(super) struct Defined(HashMap<(Vec<String>, Space), Span>);

impl Defined {
    /// Gives a name in `scope`, a module or a type.
    ///
    /// # Errors
    /// It has been given: both places.
    pub(super) fn give(&mut self, scope: &[String], name: &Ident, spaces: &[Space]) -> syn::Result<()> {
        let path: Vec<String> = scope.iter().cloned().chain([plain(name)]).collect();
        let mut first = None;
        for space in spaces {
            let before = *self.0.entry((path.clone(), *space)).or_insert(name.span());
            first = first.or(Some(before).filter(|_| !is_same(before, name.span())));
        }
        match first {
            None => Ok(()),
            Some(before) => {
                let text = format!("`{}` is defined here a second time: rename one", plain(name));
                let mut error = syn::Error::new(name.span(), text);
                let text = format!("`{}` is defined here first", plain(name));
                error.combine(syn::Error::new(before, text));
                Err(error)
            }
        }
    }
}

fn is_same(one: Span, other: Span) -> bool {
    one.byte_range() == other.byte_range()
}
