//! What the names in a macro's body mean. A local or a label that the body declares is its own; any other name means what it does
//! where the macro is defined, whatever is declared where it is called. Each expansion marks the names of its body; when all is expanded,
//! a walk through the scopes finds what each means, renames what would hide that, and takes the marks away.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Group, Ident, Literal, TokenStream, TokenTree};
use syn::visit_mut::{self, VisitMut};

use super::marks::{formatted, parts, plain};

/// The macro by which a block says that a definition stood here.
const DEFINED: &str = "__defined";

/// What stands where a definition stood.
pub(super) fn definition(number: u32) -> syn::Stmt {
    let (name, number) = (
        Ident::new(DEFINED, proc_macro2::Span::call_site()),
        Literal::u32_unsuffixed(number),
    );
    syn::Stmt::Item(syn::parse_quote!(#name! { #number }))
}

fn defined(stmt: &syn::Stmt) -> Option<u32> {
    match stmt {
        syn::Stmt::Item(syn::Item::Macro(mac)) if mac.mac.path.is_ident(DEFINED) => {
            mac.mac.tokens.to_string().parse().ok()
        }
        _ => None,
    }
}

#[derive(Clone, Default)]
struct Scope {
    /// Names, innermost last, each with its number and whether it is a parameter.
    locals: Vec<(String, u32, bool)>,
    labels: Vec<String>,
}

impl Scope {
    fn find(&self, name: &str, hidden: &HashSet<u32>) -> Option<(u32, bool)> {
        let mut inner_first = self.locals.iter().rev();
        inner_first
            .find(|(local, number, _)| local == name && !hidden.contains(number))
            .map(|(_, number, is_param)| (*number, *is_param))
    }
}

/// The walk: first it finds what is in the way, then it renames.
pub(super) struct Walk<'a> {
    /// The definition and the macro's name of each expansion.
    expansions: &'a HashMap<u32, (u32, String)>,
    scope: Scope,
    definitions: HashMap<u32, Scope>,
    /// The locals in the way of what a macro means.
    hidden: HashSet<u32>,
    count: u32,
    renames: bool,
    is_param: bool,
    errors: Vec<syn::Error>,
}

impl<'a> Walk<'a> {
    /// Gives the names of expansions their meaning.
    pub(super) fn through(
        expansions: &'a HashMap<u32, (u32, String)>,
        mut visit: impl FnMut(&mut Walk<'a>),
    ) -> Vec<syn::Error> {
        let mut walk = Walk {
            expansions,
            scope: Scope::default(),
            definitions: HashMap::new(),
            hidden: HashSet::new(),
            count: 0,
            renames: false,
            is_param: false,
            errors: Vec::new(),
        };
        visit(&mut walk);
        walk.renames = true;
        walk.count = 0;
        visit(&mut walk);
        walk.errors
    }

    fn scoped(&mut self, visit: impl FnOnce(&mut Self)) {
        let (locals, labels) = (self.scope.locals.len(), self.scope.labels.len());
        visit(self);
        self.scope.locals.truncate(locals);
        self.scope.labels.truncate(labels);
    }

    /// A function's body sees no locals from outside.
    fn function(&mut self, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::take(&mut self.scope);
        visit(self);
        self.scope = outer;
    }

    fn labelled(&mut self, label: Option<&syn::Label>, visit: impl FnOnce(&mut Self)) {
        self.scoped(|this| {
            this.scope
                .labels
                .extend(label.map(|label| label.name.ident.to_string()));
            visit(this);
        });
    }

    fn hidden_name(name: &str, number: u32) -> String {
        format!("__{}_{number}", plain(name))
    }

    /// What a use of a name is called in the end.
    fn meaning(&mut self, name: &str, span: Option<proc_macro2::Span>) -> String {
        match self.scope.find(name, &HashSet::new()) {
            Some((number, _)) if self.hidden.contains(&number) => return Self::hidden_name(name, number),
            // Who launches a kernel knows its parameters by their names.
            Some((_, true)) => return plain(name).to_owned(),
            Some(_) => return name.to_owned(),
            None => {}
        }
        let Some((expansion, inner)) = parts(name) else {
            return name.to_owned();
        };
        let definition = self.expansions.get(&expansion);
        let meant = definition
            .and_then(|(number, _)| self.definitions.get(number))
            .and_then(|scope| scope.find(inner, &HashSet::new()));
        while let Some((number, is_param)) = self.scope.find(inner, &self.hidden) {
            if meant.is_some_and(|(meant, _)| meant == number) {
                break;
            }
            if is_param {
                if let (Some(span), Some((_, of)), false) = (span, definition, self.renames) {
                    let text = format!(
                        "`{inner}` in `{of}!` means what it does where the macro is defined, not the parameter `{inner}` of the function \
                         that calls it: hand it to the macro"
                    );
                    self.errors.push(syn::Error::new(span, text));
                }
                break;
            }
            self.hidden.insert(number);
        }
        match parts(inner) {
            // Of a macro that a macro defines.
            Some(_) => self.meaning(inner, span),
            None => inner.to_owned(),
        }
    }

    fn bind(&mut self, pat: &mut syn::Pat) {
        let mut binder = Binder {
            walk: self,
            names: HashMap::new(),
        };
        binder.visit_pat_mut(pat);
        let (names, is_param) = (binder.names, self.is_param);
        let named = names.into_iter().map(|(name, number)| (name, number, is_param));
        self.scope.locals.extend(named);
    }

    fn tokens(&mut self, tokens: TokenStream) -> TokenStream {
        let mut before = String::new();
        let tokens = tokens.into_iter().map(|token| {
            let is_name = !matches!(before.as_str(), "." | "'");
            before = match &token {
                TokenTree::Punct(punct) => punct.to_string(),
                _ => String::new(),
            };
            match token {
                TokenTree::Group(group) => {
                    let mut made = Group::new(group.delimiter(), self.tokens(group.stream()));
                    made.set_span(group.span());
                    TokenTree::Group(made)
                }
                TokenTree::Ident(mut ident) => {
                    let text = ident.to_string();
                    let name = match is_name {
                        true => self.meaning(&text, None),
                        false => plain(&text).to_owned(),
                    };
                    self.rename(&mut ident, &name);
                    TokenTree::Ident(ident)
                }
                TokenTree::Literal(literal) => TokenTree::Literal(formatted(&literal, |name| {
                    let meaning = self.meaning(name, None);
                    self.renames.then_some(meaning)
                })),
                token => token,
            }
        });
        tokens.collect()
    }

    fn rename(&self, ident: &mut Ident, name: &str) {
        if self.renames && ident != name {
            *ident = Ident::new(name, ident.span());
        }
    }

    fn inputs(&mut self, sig: &mut syn::Signature) {
        self.is_param = true;
        for input in &mut sig.inputs {
            if let syn::FnArg::Typed(typed) = input {
                self.bind(&mut typed.pat);
            }
        }
        self.is_param = false;
    }
}

/// Finds what a pattern binds.
struct Binder<'a, 'b> {
    walk: &'a mut Walk<'b>,
    names: HashMap<String, u32>,
}

impl VisitMut for Binder<'_, '_> {
    fn visit_pat_ident_mut(&mut self, pat: &mut syn::PatIdent) {
        let name = pat.ident.to_string();
        let plain_name = plain(&name);
        if plain_name.starts_with(|c: char| c.is_lowercase() || c == '_') {
            let count = &mut self.walk.count;
            let number = *self.names.entry(name.clone()).or_insert_with(|| {
                *count += 1;
                *count
            });
            if self.walk.hidden.contains(&number) {
                self.walk
                    .rename(&mut pat.ident, &Walk::hidden_name(&name, number));
            } else if self.walk.is_param {
                self.walk.rename(&mut pat.ident, plain_name);
            }
        }
        if let Some((_, inner)) = &mut pat.subpat {
            self.visit_pat_mut(inner);
        }
    }

    fn visit_field_pat_mut(&mut self, field: &mut syn::FieldPat) {
        self.visit_pat_mut(&mut field.pat);
        self.walk.visit_member_mut(&mut field.member);
        if let (None, syn::Pat::Ident(pat), syn::Member::Named(name)) =
            (&field.colon_token, &*field.pat, &field.member)
            && pat.ident != *name
        {
            field.colon_token = Some(syn::Token![:](name.span()));
        }
    }

    fn visit_expr_mut(&mut self, expr: &mut syn::Expr) {
        self.walk.visit_expr_mut(expr);
    }

    fn visit_path_mut(&mut self, path: &mut syn::Path) {
        self.walk.visit_path_mut(path);
    }

    fn visit_type_mut(&mut self, ty: &mut syn::Type) {
        self.walk.visit_type_mut(ty);
    }

    fn visit_macro_mut(&mut self, mac: &mut syn::Macro) {
        self.walk.visit_macro_mut(mac);
    }
}

impl VisitMut for Walk<'_> {
    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        self.scoped(|this| {
            for stmt in &mut block.stmts {
                match defined(stmt) {
                    Some(number) => {
                        this.definitions.insert(number, this.scope.clone());
                    }
                    None => this.visit_stmt_mut(stmt),
                }
            }
        });
        if self.renames {
            block.stmts.retain(|stmt| defined(stmt).is_none());
        }
    }

    fn visit_local_mut(&mut self, local: &mut syn::Local) {
        if let Some(init) = &mut local.init {
            self.visit_expr_mut(&mut init.expr);
            if let Some((_, diverge)) = &mut init.diverge {
                self.visit_expr_mut(diverge);
            }
        }
        self.bind(&mut local.pat);
    }

    fn visit_expr_let_mut(&mut self, expr: &mut syn::ExprLet) {
        self.visit_expr_mut(&mut expr.expr);
        self.bind(&mut expr.pat);
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        self.scoped(|this| {
            this.bind(&mut arm.pat);
            if let Some((_, guard)) = &mut arm.guard {
                this.visit_expr_mut(guard);
            }
            this.visit_expr_mut(&mut arm.body);
        });
    }

    fn visit_expr_if_mut(&mut self, expr: &mut syn::ExprIf) {
        self.scoped(|this| {
            this.visit_expr_mut(&mut expr.cond);
            this.visit_block_mut(&mut expr.then_branch);
        });
        if let Some((_, otherwise)) = &mut expr.else_branch {
            self.visit_expr_mut(otherwise);
        }
    }

    fn visit_expr_while_mut(&mut self, expr: &mut syn::ExprWhile) {
        self.labelled(expr.label.clone().as_ref(), |this| {
            visit_mut::visit_expr_while_mut(this, expr);
        });
    }

    fn visit_expr_loop_mut(&mut self, expr: &mut syn::ExprLoop) {
        self.labelled(expr.label.clone().as_ref(), |this| {
            visit_mut::visit_expr_loop_mut(this, expr);
        });
    }

    fn visit_expr_block_mut(&mut self, expr: &mut syn::ExprBlock) {
        self.labelled(expr.label.clone().as_ref(), |this| {
            visit_mut::visit_expr_block_mut(this, expr);
        });
    }

    fn visit_expr_for_loop_mut(&mut self, expr: &mut syn::ExprForLoop) {
        self.visit_expr_mut(&mut expr.expr);
        self.labelled(expr.label.clone().as_ref(), |this| {
            if let Some(label) = &mut expr.label {
                this.visit_label_mut(label);
            }
            this.bind(&mut expr.pat);
            this.visit_block_mut(&mut expr.body);
        });
    }

    fn visit_expr_closure_mut(&mut self, closure: &mut syn::ExprClosure) {
        self.scoped(|this| {
            closure.inputs.iter_mut().for_each(|input| this.bind(input));
            this.visit_return_type_mut(&mut closure.output);
            this.visit_expr_mut(&mut closure.body);
        });
    }

    fn visit_item_fn_mut(&mut self, function: &mut syn::ItemFn) {
        self.function(|this| {
            this.inputs(&mut function.sig);
            visit_mut::visit_item_fn_mut(this, function);
        });
    }

    fn visit_impl_item_fn_mut(&mut self, function: &mut syn::ImplItemFn) {
        self.function(|this| {
            this.inputs(&mut function.sig);
            visit_mut::visit_impl_item_fn_mut(this, function);
        });
    }

    fn visit_trait_item_fn_mut(&mut self, function: &mut syn::TraitItemFn) {
        self.function(|this| {
            this.inputs(&mut function.sig);
            visit_mut::visit_trait_item_fn_mut(this, function);
        });
    }

    /// Patterns of parameters were bound.
    fn visit_pat_mut(&mut self, _: &mut syn::Pat) {}

    fn visit_fn_arg_mut(&mut self, arg: &mut syn::FnArg) {
        match arg {
            syn::FnArg::Typed(typed) => self.visit_type_mut(&mut typed.ty),
            syn::FnArg::Receiver(receiver) => self.visit_receiver_mut(receiver),
        }
    }

    fn visit_field_value_mut(&mut self, field: &mut syn::FieldValue) {
        visit_mut::visit_field_value_mut(self, field);
        if let (None, syn::Expr::Path(path), syn::Member::Named(name)) =
            (&field.colon_token, &field.expr, &field.member)
            && !path.path.is_ident(name)
        {
            field.colon_token = Some(syn::Token![:](name.span()));
        }
    }

    fn visit_expr_path_mut(&mut self, path: &mut syn::ExprPath) {
        match (&path.qself, path.path.get_ident()) {
            (None, Some(ident)) => {
                let (text, span) = (ident.to_string(), ident.span());
                let name = self.meaning(&text, Some(span));
                if let Some(segment) = path.path.segments.first_mut() {
                    self.rename(&mut segment.ident, &name);
                }
            }
            _ => visit_mut::visit_expr_path_mut(self, path),
        }
    }

    fn visit_macro_mut(&mut self, mac: &mut syn::Macro) {
        self.visit_path_mut(&mut mac.path);
        let tokens = self.tokens(mac.tokens.clone());
        if self.renames {
            mac.tokens = tokens;
        }
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut syn::Lifetime) {
        let text = lifetime.ident.to_string();
        if self.scope.labels.contains(&text) {
            return;
        }
        let Some((expansion, name)) = parts(&text) else {
            return;
        };
        let definition = self.expansions.get(&expansion);
        let meant = definition
            .and_then(|(number, _)| self.definitions.get(number))
            .is_some_and(|scope| scope.labels.iter().any(|label| label == name));
        if let (false, false, true, Some((_, of))) = (
            meant,
            self.renames,
            self.scope.labels.iter().any(|label| label == name),
            definition,
        ) {
            let text = format!(
                "the label `'{name}` of `{of}!` is none where the macro is defined: hand it to the macro, as `$label:lifetime`"
            );
            self.errors.push(syn::Error::new(lifetime.ident.span(), text));
        }
        let name = plain(name).to_owned();
        self.rename(&mut lifetime.ident, &name);
    }

    /// What is no local's name needs no mark.
    fn visit_ident_mut(&mut self, ident: &mut Ident) {
        let text = ident.to_string();
        let name = plain(&text).to_owned();
        self.rename(ident, &name);
    }

    fn visit_attribute_mut(&mut self, attribute: &mut syn::Attribute) {
        visit_mut::visit_attribute_mut(self, attribute);
        if let syn::Meta::List(list) = &mut attribute.meta {
            let tokens = self.tokens(list.tokens.clone());
            if self.renames {
                list.tokens = tokens;
            }
        }
    }
}
