//! The body of one lane: state, blocks, statements and control flow.

use std::collections::HashMap;

use perpetua_syntax::parse::Conditions;
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::language::peel;
use super::scope::{Name, Scope};

/// What the body of a function is written for.
pub(super) struct Setting<'a> {
    /// The facade's module of generated code.
    pub(super) facade: &'a TokenStream,
    /// The source file.
    pub(super) file: &'a str,
    /// Names of the type parameters.
    pub(super) types: Vec<String>,
}

impl Setting<'_> {
    /// The facade's module of native code.
    pub(super) fn native(&self) -> TokenStream {
        let facade = self.facade;
        quote!(#facade::native)
    }
}

/// Writes the body of one lane.
pub(super) struct Lane<'a> {
    pub(super) setting: &'a Setting<'a>,
    pub(super) scope: Scope,
    conditions: &'a Conditions,
    /// Conditions that the body asks for, by the bits of their numbers.
    pub(super) asked: u64,
    /// Those of them whose lanes end there.
    pub(super) leaving: u64,
    /// Loads and stores of each buffer.
    pub(super) accesses: HashMap<String, [usize; 2]>,
    /// The mode of access, a reference.
    pub(super) mode: syn::Ident,
    /// The stencil's grid.
    pub(super) grid: syn::Ident,
    /// Whether indices of lanes and blocks are asked for, and not only those in the grid.
    pub(super) local: bool,
    /// Whether something was met that native code cannot do.
    pub(super) unsupported: bool,
    /// Constants that say whether a callee has native code.
    pub(super) callees: Vec<TokenStream>,
}

impl<'a> Lane<'a> {
    pub(super) fn new(setting: &'a Setting<'a>, conditions: &'a Conditions) -> Lane<'a> {
        Lane {
            setting,
            scope: Scope::default(),
            conditions,
            asked: 0,
            leaving: 0,
            accesses: HashMap::new(),
            mode: internal("m"),
            grid: internal("grid"),
            local: false,
            unsupported: false,
            callees: Vec::new(),
        }
    }

    /// Notes that native code cannot do this; what is written for it does not matter.
    pub(super) fn refuse(&mut self) -> TokenStream {
        self.unsupported = true;
        TokenStream::new()
    }

    /// Notes a load or a store of a buffer's element.
    pub(super) fn accesses(&mut self, buffer: &syn::Ident, stores: bool) {
        self.accesses.entry(buffer.to_string()).or_default()[usize::from(stores)] += 1;
    }

    /// A reference to the place that a fault is reported at.
    pub(super) fn site(&self, span: Span, subject: &str) -> TokenStream {
        let (native, file) = (self.setting.native(), self.setting.file);
        let line = u32::try_from(span.start().line).unwrap_or(0);
        quote!(&#native::Site { file: #file, line: #line, subject: #subject })
    }

    /// A block with its braces.
    pub(super) fn block(&mut self, block: &syn::Block) -> TokenStream {
        let mark = self.scope.mark();
        let stmts: Vec<TokenStream> = block.stmts.iter().map(|stmt| self.stmt(stmt)).collect();
        self.scope.reset(mark);
        quote_spanned!(block.span()=> { #(#stmts)* })
    }

    fn stmt(&mut self, stmt: &syn::Stmt) -> TokenStream {
        match stmt {
            syn::Stmt::Local(local) => self.local(local),
            syn::Stmt::Expr(expr, semicolon) => {
                let expr = self.expr(expr);
                quote!(#expr #semicolon)
            }
            syn::Stmt::Macro(stmt) => {
                let (expr, semicolon) = (self.macro_call(&stmt.mac), stmt.semi_token);
                quote!(#expr #semicolon)
            }
            syn::Stmt::Item(_) => self.refuse(),
        }
    }

    fn local(&mut self, local: &syn::Local) -> TokenStream {
        let pattern = &local.pat;
        let init = local.init.as_ref().map(|init| &*init.expr);
        let value = init.map(|init| {
            let value = self.expr(init);
            quote!(= #value)
        });
        self.scope.declare_pattern(pattern, Name::Value);
        quote_spanned!(local.span()=> let #pattern #value;)
    }

    /// Control flow; `None` where the expression is something else.
    pub(super) fn control(&mut self, expr: &syn::Expr) -> Option<TokenStream> {
        Some(match expr {
            syn::Expr::If(expr) => self.branch(expr),
            syn::Expr::Match(expr) => self.choice(expr),
            syn::Expr::Loop(expr) => {
                let (label, body) = (&expr.label, self.block(&expr.body));
                quote!(#label loop #body)
            }
            syn::Expr::While(expr) => {
                let (label, condition) = (&expr.label, self.expr(&expr.cond));
                let body = self.block(&expr.body);
                quote!(#label while #condition #body)
            }
            syn::Expr::ForLoop(expr) => self.counted(expr),
            syn::Expr::Block(expr) => {
                let (label, block) = (&expr.label, self.block(&expr.block));
                quote!(#label #block)
            }
            syn::Expr::Break(expr) => {
                let (label, value) = (&expr.label, expr.expr.as_ref().map(|value| self.expr(value)));
                quote!(break #label #value)
            }
            syn::Expr::Continue(expr) => {
                let label = &expr.label;
                quote!(continue #label)
            }
            syn::Expr::Return(expr) => {
                let value = match &expr.expr {
                    Some(value) => self.expr(value),
                    None => quote!(()),
                };
                quote!(return ::core::result::Result::Ok(#value))
            }
            _ => return None,
        })
    }

    fn branch(&mut self, expr: &syn::ExprIf) -> TokenStream {
        let condition = self.expr(&expr.cond);
        let number = self.conditions.get(&std::ptr::from_ref(expr)).copied();
        let condition = match number {
            Some(number) => {
                self.asked |= 1 << number;
                let last = expr.then_branch.stmts.last();
                let leaves = matches!(last, Some(syn::Stmt::Expr(syn::Expr::Return(_), _)));
                self.leaving |= u64::from(leaves) << number;
                let mode = &self.mode;
                quote!(#mode.guard(#number, #condition))
            }
            None => condition,
        };
        let then = self.block(&expr.then_branch);
        let otherwise = expr.else_branch.as_ref().map(|(_, branch)| {
            let branch = self.expr(branch);
            quote!(else #branch)
        });
        quote!(if #condition #then #otherwise)
    }

    fn choice(&mut self, expr: &syn::ExprMatch) -> TokenStream {
        let scrutinee = self.expr(&expr.expr);
        let arms: Vec<TokenStream> = expr
            .arms
            .iter()
            .map(|arm| {
                let mark = self.scope.mark();
                self.scope.declare_pattern(&arm.pat, Name::Value);
                let pattern = &arm.pat;
                let guard = arm.guard.as_ref().map(|(_, guard)| {
                    let guard = self.expr(guard);
                    quote!(if #guard)
                });
                let body = self.expr(&arm.body);
                self.scope.reset(mark);
                quote!(#pattern #guard => #body,)
            })
            .collect();
        quote!(match #scrutinee { #(#arms)* })
    }

    fn counted(&mut self, expr: &syn::ExprForLoop) -> TokenStream {
        let (label, pattern) = (&expr.label, &expr.pat);
        let range = self.range(&expr.expr);
        let mark = self.scope.mark();
        self.scope.declare_pattern(pattern, Name::Value);
        let body = self.block(&expr.body);
        self.scope.reset(mark);
        quote!(#label for #pattern in #range #body)
    }

    /// The range of a `for` with its adaptors, as a block.
    fn range(&mut self, expr: &syn::Expr) -> TokenStream {
        let mut adaptors = Vec::new();
        let mut inner = peel(expr);
        while let syn::Expr::MethodCall(call) = inner {
            adaptors.push(call);
            inner = peel(&call.receiver);
        }
        let syn::Expr::Range(range) = inner else {
            return self.refuse();
        };
        let (Some(start), Some(end)) = (&range.start, &range.end) else {
            return self.refuse();
        };
        let (from, to) = (internal("from"), internal("to"));
        let (start, end, limits) = (self.expr(start), self.expr(end), &range.limits);
        let adaptors: Vec<TokenStream> = adaptors
            .iter()
            .rev()
            .map(|call| match call.args.first() {
                None => quote!(.rev()),
                Some(step) => {
                    let (native, step) = (self.setting.native(), self.expr(step));
                    let site = self.site(call.method.span(), "");
                    quote!(.step_by(#native::number::step(#step, #site)?))
                }
            })
            .collect();
        quote!({
            let #from = #start;
            let #to = #end;
            (#from #limits #to) #(#adaptors)*
        })
    }
}

/// A name of generated code that no name of the user's can meet.
pub(super) fn internal(name: &str) -> syn::Ident {
    format_ident!("__{name}", span = Span::mixed_site())
}
