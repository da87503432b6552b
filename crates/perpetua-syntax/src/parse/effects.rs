//! What computing an expression may do beside giving its value. Must not know what is called: a call may do anything.

use quote::ToTokens;
use syn::visit::Visit;

use super::path::single_name;
use super::reader::{Reader, name_of};

/// Methods that only look at their receiver, where iterators are arguments.
const READING: [&str; 17] = [
    "iter",
    "into_iter",
    "copied",
    "cloned",
    "enumerate",
    "zip",
    "rev",
    "skip",
    "take",
    "step_by",
    "chunks",
    "chunks_exact",
    "windows",
    "chain",
    "len",
    "min",
    "max",
];

/// Methods that change nothing behind a `&mut` on which they are called.
const LOOKING: [&str; 10] = [
    "len", "is_empty", "get", "first", "last", "iter", "contains", "chunks", "windows", "to_bits",
];

/// How methods begin that change something, or panic.
const CHANGING: [&str; 16] = [
    "fetch_",
    "compare_exchange",
    "store",
    "swap",
    "replace",
    "take",
    "insert",
    "get_or_insert",
    "sort",
    "fill",
    "copy_",
    "next",
    "write",
    "set",
    "expect",
    "unwrap",
];

/// What computing an expression may do.
pub(super) struct Effects<'a> {
    reader: &'a Reader,
    /// The state of a `scan`, which its function may change.
    state: Option<&'a syn::Ident>,
    /// Whether what closures do counts: they are called.
    called: bool,
    /// It changes, prints or panics by itself: by assignments, `&mut`, macros, atomics, methods that change their receiver, and calls that
    /// are given the name of a `&mut`.
    pub(super) acts: bool,
    /// It calls what may do anything.
    pub(super) calls: bool,
    /// It looks at what may not be there, or divides.
    pub(super) faults: bool,
}

impl<'a> Effects<'a> {
    /// Of a value; closures in it are not called.
    pub(super) fn of_value(reader: &'a Reader, value: &syn::Expr) -> Effects<'a> {
        Effects::of(reader, value, None, false)
    }

    /// Of calling a function, the state of a `scan` left out.
    pub(super) fn of_function(
        reader: &'a Reader,
        function: &syn::Expr,
        state: Option<&'a syn::Ident>,
    ) -> Effects<'a> {
        let mut found = Effects::of(reader, function, state, true);
        found.calls |= matches!(function, syn::Expr::Path(_));
        found
    }

    fn of(reader: &'a Reader, value: &syn::Expr, state: Option<&'a syn::Ident>, called: bool) -> Effects<'a> {
        let mut found = Effects {
            reader,
            state,
            called,
            acts: false,
            calls: false,
            faults: false,
        };
        found.visit_expr(value);
        found
    }

    /// Whether it is the name of a `&mut`, which a call may change something through.
    fn is_mutable_ref(&self, value: &syn::Expr) -> bool {
        matches!(value, syn::Expr::Path(path) if single_name(&path.path).is_some_and(|name| self.reader.is_mutable_ref(&name)))
    }

    /// Whether it is the state, as in `*state = 1`.
    fn is_state(&self, place: &syn::Expr) -> bool {
        match place {
            syn::Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => self.is_state(&unary.expr),
            syn::Expr::Field(field) => self.is_state(&field.base),
            syn::Expr::Path(path) => self.state.is_some_and(|state| path.path.is_ident(state)),
            _ => false,
        }
    }
}

impl Visit<'_> for Effects<'_> {
    fn visit_expr_call(&mut self, call: &syn::ExprCall) {
        self.calls = true;
        self.acts |= call.args.iter().any(|arg| self.is_mutable_ref(arg));
        syn::visit::visit_expr_call(self, call);
    }

    fn visit_expr_assign(&mut self, assign: &syn::ExprAssign) {
        self.acts |= !self.is_state(&assign.left);
        syn::visit::visit_expr_assign(self, assign);
    }

    fn visit_expr_binary(&mut self, binary: &syn::ExprBinary) {
        use syn::BinOp::{
            AddAssign, BitAndAssign, BitOrAssign, BitXorAssign, Div, DivAssign, MulAssign, Rem, RemAssign,
            ShlAssign, ShrAssign, SubAssign,
        };
        let assigns = matches!(
            binary.op,
            AddAssign(_)
                | SubAssign(_)
                | MulAssign(_)
                | DivAssign(_)
                | RemAssign(_)
                | BitXorAssign(_)
                | BitAndAssign(_)
                | BitOrAssign(_)
                | ShlAssign(_)
                | ShrAssign(_)
        );
        self.acts |= assigns && !self.is_state(&binary.left);
        self.faults |= matches!(binary.op, Div(_) | DivAssign(_) | Rem(_) | RemAssign(_));
        syn::visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_reference(&mut self, reference: &syn::ExprReference) {
        self.acts |= reference.mutability.is_some();
        syn::visit::visit_expr_reference(self, reference);
    }

    fn visit_expr_index(&mut self, index: &syn::ExprIndex) {
        self.faults = true;
        syn::visit::visit_expr_index(self, index);
    }

    fn visit_expr_closure(&mut self, closure: &syn::ExprClosure) {
        if self.called {
            syn::visit::visit_expr_closure(self, closure);
        }
    }

    fn visit_macro(&mut self, called: &syn::Macro) {
        self.calls = true;
        self.acts |= !called.path.is_ident("matches");
    }

    fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
        let name = name_of(&call.method);
        // That of an `Option` has no argument, and empties it.
        let empties = name == "take" && call.args.is_empty();
        self.calls |= empties || !READING.contains(&&*name);
        if self.called {
            // Numbers have a method of this name that only computes.
            self.acts |= CHANGING.iter().any(|known| name.starts_with(known)) && name != "swap_bytes";
            let given = self.is_mutable_ref(&call.receiver) && !LOOKING.contains(&&*name);
            self.acts |= given || call.args.iter().any(|arg| self.is_mutable_ref(arg));
        }
        syn::visit::visit_expr_method_call(self, call);
    }
}

/// Whether the tokens of a value name something.
pub(super) fn mentions(value: &syn::Expr, name: &str) -> bool {
    fn any(tokens: proc_macro2::TokenStream, name: &str) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Ident(ident) => ident == name,
            proc_macro2::TokenTree::Group(group) => any(group.stream(), name),
            _ => false,
        })
    }
    any(value.to_token_stream(), name)
}
