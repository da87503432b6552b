//! `macro_rules!`: the macros of a file or a function are expanded before it is read. What no such macro is stays as it is.
//!
//! Names that a macro's body declares by itself are its own, as in Rust: they are given other names in each expansion.

mod rule;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};

use super::path::single_name;
use super::reader::name_of;
use rule::{Bound, Names, Rule, declared, repetition, rules, take_all, used_names};

/// Expansions within each other, and in all.
const DEEPEST: u32 = 128;
const MOST: u32 = 20_000;

struct Expander {
    rules: HashMap<String, Rc<Vec<Rule>>>,
    deep: u32,
    count: u32,
    errors: Option<syn::Error>,
}

impl Expander {
    fn fail(&mut self, error: syn::Error) {
        match &mut self.errors {
            Some(errors) => errors.combine(error),
            None => self.errors = Some(error),
        }
    }

    /// What a macro's call stands for; `None` where it is none of these macros.
    fn expanded(&mut self, mac: &syn::Macro) -> Option<TokenStream> {
        let name = single_name(&mac.path)?;
        let rules = self.rules.get(&name)?.clone();
        self.count += 1;
        if self.deep >= DEEPEST || self.count > MOST {
            let text = format!(
                "`{name}!` expands to itself too often: {DEEPEST} expansions within each other are the most"
            );
            self.fail(syn::Error::new(mac.path.span(), text));
            return Some(TokenStream::new());
        }
        for rule in rules.iter() {
            let mut names = Names::new();
            let read = |input: ParseStream<'_>| take_all(&rule.takes, input, &mut names);
            if read.parse2(mac.tokens.clone()).is_err() {
                continue;
            }
            let mut own = HashSet::new();
            declared(rule.gives.clone(), &mut own);
            let given = self.given(rule.gives.clone(), &names, &own);
            return Some(given);
        }
        let text = format!("no rule of `{name}!` takes this");
        self.fail(syn::Error::new(mac.path.span(), text));
        Some(TokenStream::new())
    }

    fn given(&mut self, body: TokenStream, names: &Names, own: &HashSet<String>) -> TokenStream {
        let mut tokens = body.into_iter().peekable();
        let mut given = TokenStream::new();
        let mut field = false;
        while let Some(token) = tokens.next() {
            let is_dot = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '.');
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '$' => match tokens.next() {
                    Some(TokenTree::Group(group)) => {
                        let Some((between, _)) = repetition(&mut tokens) else {
                            continue;
                        };
                        let mut used = HashSet::new();
                        used_names(group.stream(), &mut used);
                        let turns = names.iter().find_map(|(name, bound)| match bound {
                            Bound::Many(turns) if used.contains(name) => Some(turns),
                            _ => None,
                        });
                        let count = turns.map_or(0, Vec::len);
                        for turn in 0..count {
                            if turn > 0 {
                                given.extend(between.clone());
                            }
                            let mut inner = names.clone();
                            for (name, bound) in names {
                                if let (true, Bound::Many(turns)) = (used.contains(name), bound)
                                    && let Some(own) = turns.get(turn).and_then(|turn| turn.get(name))
                                {
                                    inner.insert(name.clone(), own.clone());
                                }
                            }
                            given.extend(self.given(group.stream(), &inner, own));
                        }
                    }
                    Some(TokenTree::Ident(name)) => match names.get(&name.to_string()) {
                        Some(Bound::One(tokens)) => given.extend(tokens.clone()),
                        Some(Bound::Many(_)) => {
                            let text = format!("`${name}` stands for several here: write it in `$(…)*`");
                            self.fail(syn::Error::new(name.span(), text));
                        }
                        None => given.extend([TokenTree::Ident(name)]),
                    },
                    Some(token) => given.extend([token]),
                    None => {}
                },
                TokenTree::Group(group) => {
                    let inner = self.given(group.stream(), names, own);
                    let mut made = Group::new(group.delimiter(), inner);
                    made.set_span(group.span());
                    given.extend([TokenTree::Group(made)]);
                }
                TokenTree::Ident(name) if !field && own.contains(&name.to_string()) => {
                    let hidden = format!("__{}_{}", name_of(&name), self.count);
                    given.extend([TokenTree::Ident(Ident::new(&hidden, name.span()))]);
                }
                token => given.extend([token]),
            }
            field = is_dot;
        }
        given
    }

    /// Expands within what an expansion gave.
    fn within(&mut self, visit: impl FnOnce(&mut Self)) {
        self.deep += 1;
        visit(self);
        self.deep -= 1;
    }

    fn parsed<T>(
        &mut self,
        tokens: TokenStream,
        mac: &syn::Macro,
        parse: impl Parser<Output = T>,
    ) -> Option<T> {
        match parse.parse2(tokens) {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                if self.errors.is_none() {
                    let text = format!(
                        "what `{}!` expands to cannot be read: {error}",
                        mac.path.to_token_stream()
                    );
                    self.fail(syn::Error::new(mac.path.span(), text));
                }
                None
            }
        }
    }

    /// Notes the rules of a definition.
    fn define(&mut self, item: &syn::ItemMacro) -> bool {
        let (Some(name), true) = (&item.ident, item.mac.path.is_ident("macro_rules")) else {
            return false;
        };
        let rules = rules(&item.mac);
        let known = rules.is_some();
        if let Some(rules) = rules {
            self.rules.insert(name_of(name), Rc::new(rules));
        }
        known
    }

    fn items(&mut self, items: &mut Vec<syn::Item>) {
        for mut item in std::mem::take(items) {
            if let syn::Item::Macro(mac) = &item {
                if self.define(mac) {
                    continue;
                }
                if let Some(tokens) = self.expanded(&mac.mac) {
                    if let Some(mut file) =
                        self.parsed(tokens, &mac.mac, <syn::File as syn::parse::Parse>::parse)
                    {
                        self.within(|this| this.items(&mut file.items));
                        items.append(&mut file.items);
                    }
                    continue;
                }
            }
            visit_mut::visit_item_mut(self, &mut item);
            items.push(item);
        }
    }

    fn statements(&mut self, stmts: &mut Vec<syn::Stmt>) {
        for mut stmt in std::mem::take(stmts) {
            if let syn::Stmt::Item(syn::Item::Macro(mac)) = &stmt
                && self.define(mac)
            {
                continue;
            }
            let called = match &stmt {
                syn::Stmt::Macro(called) => Some((called.mac.clone(), called.semi_token)),
                syn::Stmt::Expr(syn::Expr::Macro(called), semi) => Some((called.mac.clone(), *semi)),
                _ => None,
            };
            if let Some((mac, semi)) = called
                && let Some(tokens) = self.expanded(&mac)
            {
                if let Some(mut given) = self.parsed(tokens, &mac, syn::Block::parse_within) {
                    if let (Some(syn::Stmt::Expr(_, end @ None)), Some(semi)) = (given.last_mut(), semi) {
                        *end = Some(semi);
                    }
                    self.within(|this| this.statements(&mut given));
                    stmts.append(&mut given);
                }
                continue;
            }
            visit_mut::visit_stmt_mut(self, &mut stmt);
            stmts.push(stmt);
        }
    }
}

impl VisitMut for Expander {
    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        let before = self.rules.clone();
        self.statements(&mut block.stmts);
        self.rules = before;
    }

    fn visit_expr_mut(&mut self, expr: &mut syn::Expr) {
        if let syn::Expr::Macro(called) = expr
            && let Some(tokens) = self.expanded(&called.mac)
        {
            let mac = called.mac.clone();
            // Statements stand in a block of their own.
            let read = match syn::parse2::<syn::Expr>(tokens.clone()) {
                Ok(read) => Some(read),
                Err(_) => self.parsed(
                    quote::quote!({ #tokens }),
                    &mac,
                    <syn::Expr as syn::parse::Parse>::parse,
                ),
            };
            if let Some(read) = read {
                *expr = read;
                self.within(|this| this.visit_expr_mut(expr));
            }
            return;
        }
        visit_mut::visit_expr_mut(self, expr);
    }

    fn visit_pat_mut(&mut self, pat: &mut syn::Pat) {
        if let syn::Pat::Macro(called) = pat
            && let Some(tokens) = self.expanded(&called.mac)
        {
            let mac = called.mac.clone();
            if let Some(read) = self.parsed(tokens, &mac, syn::Pat::parse_multi_with_leading_vert) {
                *pat = read;
                self.within(|this| this.visit_pat_mut(pat));
            }
            return;
        }
        visit_mut::visit_pat_mut(self, pat);
    }

    fn visit_type_mut(&mut self, ty: &mut syn::Type) {
        if let syn::Type::Macro(called) = ty
            && let Some(tokens) = self.expanded(&called.mac)
        {
            let mac = called.mac.clone();
            if let Some(read) = self.parsed(tokens, &mac, <syn::Type as syn::parse::Parse>::parse) {
                *ty = read;
                self.within(|this| this.visit_type_mut(ty));
            }
            return;
        }
        visit_mut::visit_type_mut(self, ty);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            let before = self.rules.clone();
            self.items(items);
            if !module.attrs.iter().any(|attr| attr.path().is_ident("macro_use")) {
                self.rules = before;
            }
        }
    }

    fn visit_item_impl_mut(&mut self, item: &mut syn::ItemImpl) {
        for mut member in std::mem::take(&mut item.items) {
            if let syn::ImplItem::Macro(called) = &member
                && let Some(tokens) = self.expanded(&called.mac)
            {
                let read = |input: ParseStream<'_>| {
                    let mut members = Vec::new();
                    while !input.is_empty() {
                        members.push(input.parse::<syn::ImplItem>()?);
                    }
                    Ok(members)
                };
                if let Some(mut given) = self.parsed(tokens, &called.mac, read) {
                    self.within(|this| {
                        given
                            .iter_mut()
                            .for_each(|member| this.visit_impl_item_mut(member))
                    });
                    item.items.append(&mut given);
                }
                continue;
            }
            self.visit_impl_item_mut(&mut member);
            item.items.push(member);
        }
        self.visit_type_mut(&mut item.self_ty);
    }
}

fn expand(change: impl FnOnce(&mut Expander)) -> syn::Result<()> {
    let mut expander = Expander {
        rules: HashMap::new(),
        deep: 0,
        count: 0,
        errors: None,
    };
    change(&mut expander);
    match expander.errors {
        Some(errors) => Err(errors),
        None => Ok(()),
    }
}

/// Expands the macros that a file defines.
///
/// # Errors
/// No rule of a macro takes what it is called with, or what it gives cannot be read.
pub fn expand_file(file: &mut syn::File) -> syn::Result<()> {
    expand(|expander| expander.items(&mut file.items))
}

/// A function's body with the macros expanded that it defines; `None` where it defines none.
pub(super) fn expanded_body(body: &syn::Block) -> syn::Result<Option<syn::Block>> {
    #[derive(Default)]
    struct Defines(bool);
    impl syn::visit::Visit<'_> for Defines {
        fn visit_item_macro(&mut self, _: &syn::ItemMacro) {
            self.0 = true;
        }
    }
    let mut defines = Defines::default();
    syn::visit::Visit::visit_block(&mut defines, body);
    if !defines.0 {
        return Ok(None);
    }
    let mut expanded = body.clone();
    expand(|expander| expander.visit_block_mut(&mut expanded))?;
    Ok(Some(expanded))
}
