//! `macro_rules!`: the macros of a file or a function are expanded before it is read. What no such macro is stays as it is.

mod hygiene;
mod marks;
mod rule;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use proc_macro2::{Delimiter, Group, Ident, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};

use super::path::single_name;
use super::reader::name_of;
use hygiene::Walk;
use marks::{formatted, marked, may_be_local};
use rule::{Bound, Names, Rule, repetition, rules, take_all, used_names};

/// Expansions within each other, and in all.
const DEEPEST: u32 = 128;
const MOST: u32 = 20_000;

struct Expander {
    /// With the number of the definition.
    rules: HashMap<String, (u32, Rc<Vec<Rule>>)>,
    definitions: u32,
    deep: u32,
    count: u32,
    /// The definition and the macro's name of each expansion.
    expansions: HashMap<u32, (u32, String)>,
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
        let (definition, rules) = self.rules.get(&name)?.clone();
        self.count += 1;
        self.expansions.insert(self.count, (definition, name.clone()));
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
            return Some(self.given(rule.gives.clone(), &names));
        }
        let text = format!("no rule of `{name}!` takes this");
        self.fail(syn::Error::new(mac.path.span(), text));
        Some(TokenStream::new())
    }

    fn given(&mut self, body: TokenStream, names: &Names) -> TokenStream {
        let mut tokens = body.into_iter().peekable();
        let mut given = TokenStream::new();
        // Behind a dot stands no local.
        let mut is_member = false;
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
                            given.extend(self.given(group.stream(), &inner));
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
                    let inner = self.given(group.stream(), names);
                    let mut made = Group::new(group.delimiter(), inner);
                    made.set_span(group.span());
                    given.extend([TokenTree::Group(made)]);
                }
                TokenTree::Ident(name)
                    if !is_member && may_be_local(&name) && !names_macro(tokens.peek()) =>
                {
                    let marked = marked(self.count, &name.to_string());
                    given.extend([TokenTree::Ident(Ident::new(&marked, name.span()))]);
                }
                TokenTree::Literal(literal) => {
                    let marked = formatted(&literal, |name| Some(marked(self.count, name)));
                    given.extend([TokenTree::Literal(marked)]);
                }
                token => given.extend([token]),
            }
            is_member = is_dot;
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

    /// Notes the rules of a definition, and gives its number.
    fn define(&mut self, item: &syn::ItemMacro) -> Option<u32> {
        let (Some(name), true) = (&item.ident, item.mac.path.is_ident("macro_rules")) else {
            return None;
        };
        let rules = rules(&item.mac)?;
        self.definitions += 1;
        let name = marks::plain(&name_of(name)).to_owned();
        self.rules.insert(name, (self.definitions, Rc::new(rules)));
        Some(self.definitions)
    }

    fn items(&mut self, items: &mut Vec<syn::Item>) {
        for mut item in std::mem::take(items) {
            if let syn::Item::Macro(mac) = &item {
                if self.define(mac).is_some() {
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
                && let Some(number) = self.define(mac)
            {
                stmts.push(hygiene::definition(number));
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

impl Expander {
    /// Expands the macros among the arguments of one that is none of these.
    fn among(&mut self, tokens: TokenStream) -> TokenStream {
        let mut left = tokens.into_iter().peekable();
        let mut made = TokenStream::new();
        while let Some(token) = left.next() {
            match token {
                TokenTree::Ident(name)
                    if names_macro(left.peek()) && self.rules.contains_key(&name_of(&name)) =>
                {
                    let bang = left.next();
                    match left.next() {
                        Some(TokenTree::Group(group)) => {
                            let inner = group.stream();
                            let mut read: syn::Expr = syn::parse_quote!(#name!(#inner));
                            self.visit_expr_mut(&mut read);
                            let read = read.into_token_stream();
                            made.extend([TokenTree::from(Group::new(Delimiter::None, read))]);
                        }
                        other => made.extend([Some(name.into()), bang, other].into_iter().flatten()),
                    }
                }
                TokenTree::Group(group) => {
                    let mut inner = Group::new(group.delimiter(), self.among(group.stream()));
                    inner.set_span(group.span());
                    made.extend([TokenTree::Group(inner)]);
                }
                token => made.extend([token]),
            }
        }
        made
    }
}

impl VisitMut for Expander {
    fn visit_macro_mut(&mut self, mac: &mut syn::Macro) {
        mac.tokens = self.among(mac.tokens.clone());
    }

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

/// Whether what follows makes a name a macro's.
fn names_macro(next: Option<&TokenTree>) -> bool {
    matches!(next, Some(TokenTree::Punct(punct)) if punct.as_char() == '!' && punct.spacing() == Spacing::Alone)
}

/// Expands what `visit` visits, and gives names their meaning.
fn expand<T>(
    what: &mut T,
    change: fn(&mut Expander, &mut T),
    visit: fn(&mut Walk<'_>, &mut T),
) -> syn::Result<()> {
    let mut expander = Expander {
        rules: HashMap::new(),
        definitions: 0,
        deep: 0,
        count: 0,
        expansions: HashMap::new(),
        errors: None,
    };
    change(&mut expander, what);
    if expander.definitions > 0 {
        let expansions = std::mem::take(&mut expander.expansions);
        for error in Walk::through(&expansions, |walk| visit(walk, what)) {
            expander.fail(error);
        }
    }
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
    expand(
        file,
        |expander, file| expander.items(&mut file.items),
        |walk, file| walk.visit_file_mut(file),
    )
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
    expand(
        &mut expanded,
        |expander, body| expander.visit_block_mut(body),
        |walk, body| walk.visit_block_mut(body),
    )?;
    Ok(Some(expanded))
}
