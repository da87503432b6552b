//! Blocks and statements.

use super::Refusal;
use super::effects::mentions;
use super::ranges::is_used_range;
use super::reader::{Reader, line_of, name_of};
use crate::ast::{Block, Expr, Stmt, StmtKind, Type};
use syn::spanned::Spanned;

impl Reader {
    /// A block with a scope of its own.
    pub(super) fn read_block(&mut self, block: &syn::Block) -> Block {
        let end_line = line_of(block.brace_token.span.close());
        self.scoped(|reader| {
            let mut read = Block {
                stmts: Vec::with_capacity(block.stmts.len()),
                value: None,
                end_line,
            };
            for (index, stmt) in block.stmts.iter().enumerate() {
                if let Some(stmts) = reader.read_let_each(stmt) {
                    read.stmts.extend(stmts);
                    continue;
                }
                let is_last = index + 1 == block.stmts.len();
                let (expr, ends) = match stmt {
                    syn::Stmt::Local(local)
                        if is_used_range(local, block.stmts.get(index + 1..).unwrap_or_default()) =>
                    {
                        read.stmts.push(reader.read_let(local));
                        continue;
                    }
                    syn::Stmt::Local(local)
                        if let Some(init) = &local.init
                            && init.diverge.is_none()
                            && let Some(stmts) = reader.read_bound_iterator(&local.pat, &init.expr) =>
                    {
                        read.stmts.extend(stmts);
                        continue;
                    }
                    syn::Stmt::Local(local) if let Some(stmts) = reader.read_range_let(local) => {
                        read.stmts.extend(stmts);
                        continue;
                    }
                    syn::Stmt::Local(local) if reader.read_named_function(local) => continue,
                    syn::Stmt::Local(local) if let Some(stmts) = reader.read_chosen_function(local) => {
                        read.stmts.extend(stmts);
                        continue;
                    }
                    syn::Stmt::Local(local) => {
                        read.stmts.push(reader.read_let(local));
                        continue;
                    }
                    // The code that resolves names has them, too.
                    syn::Stmt::Item(
                        syn::Item::Const(_)
                        | syn::Item::Use(_)
                        | syn::Item::Struct(_)
                        | syn::Item::Enum(_)
                        | syn::Item::Type(_)
                        | syn::Item::Fn(_)
                        | syn::Item::Impl(_),
                    ) => continue,
                    syn::Stmt::Item(item) => {
                        reader.refuse_named(item, Refusal::InnerItem, item_keyword(item));
                        continue;
                    }
                    // A semicolon by itself.
                    syn::Stmt::Expr(syn::Expr::Verbatim(tokens), Some(_)) if tokens.is_empty() => continue,
                    syn::Stmt::Expr(expr, semicolon) => (reader.read_expr(expr), semicolon.is_some()),
                    syn::Stmt::Macro(stmt) => {
                        let line = line_of(stmt.mac.path.span());
                        (
                            Expr::new(line, reader.read_macro(&stmt.mac)),
                            stmt.semi_token.is_some(),
                        )
                    }
                };
                if is_last && !ends {
                    read.value = Some(Box::new(expr));
                } else {
                    read.stmts.push(Stmt {
                        line: line_of(stmt.span()),
                        kind: StmtKind::Expr(expr),
                    });
                }
            }
            read
        })
    }

    /// `let (a, b) = (x.iter(), y.iter());`, each by itself, since iterators are no values; `None` of other statements.
    fn read_let_each(&mut self, stmt: &syn::Stmt) -> Option<Vec<Stmt>> {
        let syn::Stmt::Local(local) = stmt else {
            return None;
        };
        let init = local.init.as_ref().filter(|init| init.diverge.is_none())?;
        let (syn::Pat::Tuple(names), syn::Expr::Tuple(values)) = (&local.pat, &*init.expr) else {
            return None;
        };
        let is_name = |pattern: &syn::Pat| match pattern {
            // A value behind would mean the new name.
            syn::Pat::Ident(of) => !values
                .elems
                .iter()
                .any(|value| mentions(value, &name_of(&of.ident))),
            _ => false,
        };
        let is_iterator =
            |value: &syn::Expr| matches!(value, syn::Expr::MethodCall(call) if self.is_chain(call));
        if names.elems.len() != values.elems.len()
            || !names.elems.iter().all(is_name)
            || !values.elems.iter().any(is_iterator)
        {
            return None;
        }
        let mut stmts = Vec::new();
        for (pattern, value) in names.elems.iter().zip(&values.elems) {
            match self.read_bound_iterator(pattern, value) {
                Some(read) => stmts.extend(read),
                None => {
                    let single = syn::parse_quote!(let #pattern = #value;);
                    if let syn::Stmt::Local(single) = single {
                        stmts.push(self.read_let(&single));
                    }
                }
            }
        }
        Some(stmts)
    }

    pub(super) fn read_let(&mut self, local: &syn::Local) -> Stmt {
        let (pattern, ty) = match &local.pat {
            syn::Pat::Type(typed) => (&*typed.pat, Some(self.read_type(&typed.ty))),
            pattern => (pattern, None),
        };
        if let Some(init) = &local.init
            && let Some((_, otherwise)) = &init.diverge
        {
            let line = line_of(local.let_token.span);
            return self.read_let_else(pattern, ty, &init.expr, otherwise, line);
        }
        let met = local
            .init
            .as_ref()
            .map(|init| self.read_met(&init.expr, &[pattern]));
        let (init, by_ref) = met.map_or((None, None), |(init, by_ref)| (Some(init), by_ref));
        let ty = behind(by_ref, ty);
        // After the value: `let x = x + 1` means the older x.
        self.by_ref = by_ref.is_some();
        let pattern = self.read_let_pattern(pattern);
        self.by_ref = false;
        Stmt {
            line: line_of(local.let_token.span),
            kind: StmtKind::Let { pattern, ty, init },
        }
    }
}

/// The type of what a pattern meets, where names of it have `ref`.
pub(super) fn behind(by_ref: Option<bool>, ty: Option<Type>) -> Option<Type> {
    match (by_ref, ty) {
        (Some(mutable), Some(ty)) => Some(Type::Ref {
            mutable,
            target: Box::new(ty),
        }),
        (_, ty) => ty,
    }
}

/// The keyword of an item, for the error that names it.
fn item_keyword(item: &syn::Item) -> &'static str {
    match item {
        syn::Item::Macro(_) => "macro_rules!",
        syn::Item::Mod(_) => "mod",
        syn::Item::Static(_) => "static",
        syn::Item::Trait(_) => "trait",
        syn::Item::Union(_) => "union",
        _ => "extern",
    }
}
