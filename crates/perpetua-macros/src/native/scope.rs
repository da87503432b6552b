//! Names in a function's body, and what native code must know of them.

/// What a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// A kernel's slice parameter: a buffer.
    Buffer {
        /// Whether it is `&mut`.
        writable: bool,
    },
    /// A stencil's position.
    Position,
    /// A value.
    Value,
}

/// Names, innermost last.
#[derive(Default)]
pub(super) struct Scope {
    names: Vec<(String, Name)>,
}

impl Scope {
    pub(super) fn declare(&mut self, ident: &syn::Ident, name: Name) {
        self.names.push((ident.to_string(), name));
    }

    /// What a name is; `None` where it is no local.
    pub(super) fn find(&self, ident: &syn::Ident) -> Option<Name> {
        let found = self.names.iter().rev().find(|(known, _)| ident == known);
        found.map(|(_, name)| *name)
    }

    pub(super) fn mark(&self) -> usize {
        self.names.len()
    }

    pub(super) fn reset(&mut self, mark: usize) {
        self.names.truncate(mark);
    }

    /// Declares all names that a pattern binds. Constants and variants without a path look the same; they are declared,
    /// too: of a name that is declared here nothing is known, which is never wrong.
    pub(super) fn declare_pattern(&mut self, pattern: &syn::Pat, name: Name) {
        struct Names<'s>(&'s mut Scope, Name);
        impl syn::visit::Visit<'_> for Names<'_> {
            fn visit_pat_ident(&mut self, ident: &syn::PatIdent) {
                self.0.declare(&ident.ident, self.1);
                if let Some((_, pattern)) = &ident.subpat {
                    self.visit_pat(pattern);
                }
            }
        }
        syn::visit::Visit::visit_pat(&mut Names(self, name), pattern);
    }
}
