//! Items in inner blocks: to the reader, an item in a function holds everywhere in it, so its name stands in its block alone.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

use super::reader::{Reader, name_of};

/// Blocks within a function that have items.
#[derive(Default)]
struct Blocks<'a>(Vec<&'a syn::Block>);

impl<'a> Visit<'a> for Blocks<'a> {
    fn visit_block(&mut self, block: &'a syn::Block) {
        if block.stmts.iter().any(|stmt| matches!(stmt, syn::Stmt::Item(_))) {
            self.0.push(block);
        }
        syn::visit::visit_block(self, block);
    }

    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// How often a name is mentioned.
struct Mentions<'n> {
    name: &'n str,
    count: usize,
}

impl Mentions<'_> {
    fn note(&mut self, name: &syn::Ident) {
        self.count += usize::from(name_of(name) == self.name);
    }

    fn look_at(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => self.note(&ident),
                TokenTree::Group(group) => self.look_at(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

impl Visit<'_> for Mentions<'_> {
    fn visit_path(&mut self, path: &syn::Path) {
        path.segments
            .iter()
            .take(1)
            .for_each(|first| self.note(&first.ident));
        syn::visit::visit_path(self, path);
    }

    fn visit_pat_ident(&mut self, pattern: &syn::PatIdent) {
        // A constant, perhaps.
        if name_of(&pattern.ident).starts_with(char::is_uppercase) {
            self.note(&pattern.ident);
        }
        syn::visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, called: &syn::Macro) {
        self.look_at(called.tokens.clone());
    }
}

impl Reader {
    /// Refuses an item of an inner block whose name stands elsewhere in the function, too, where Rust takes it for another one's.
    pub(super) fn check_inner_items(&mut self, sig: &syn::Signature, body: &syn::Block) {
        let mut blocks = Blocks::default();
        syn::visit::visit_block(&mut blocks, body);
        for block in blocks.0 {
            for stmt in &block.stmts {
                let syn::Stmt::Item(item) = stmt else { continue };
                let mut names = Vec::new();
                named_by(item, &mut names);
                for ident in names {
                    let name = name_of(&ident);
                    let count = |look: &dyn Fn(&mut Mentions<'_>)| {
                        let mut mentions = Mentions {
                            name: &name,
                            count: 0,
                        };
                        look(&mut mentions);
                        mentions.count
                    };
                    let everywhere = count(&|mentions| {
                        mentions.visit_signature(sig);
                        mentions.visit_block(body);
                    });
                    if everywhere > count(&|mentions| mentions.visit_block(block)) {
                        self.error(
                            &ident,
                            format!(
                                "`{name}` is an item of this block, and its name stands outside of the block, too: to a kernel it is one thing in the whole function. Give it another name, or write the item at the head of the function"
                            ),
                        );
                    }
                }
            }
        }
    }
}

/// The names that an item declares.
fn named_by(item: &syn::Item, names: &mut Vec<syn::Ident>) {
    match item {
        syn::Item::Const(item) => names.push(item.ident.clone()),
        syn::Item::Static(item) => names.push(item.ident.clone()),
        syn::Item::Fn(item) => names.push(item.sig.ident.clone()),
        syn::Item::Struct(item) => names.push(item.ident.clone()),
        syn::Item::Enum(item) => names.push(item.ident.clone()),
        syn::Item::Type(item) => names.push(item.ident.clone()),
        syn::Item::Trait(item) => names.push(item.ident.clone()),
        syn::Item::Use(item) => used(&item.tree, names),
        _ => {}
    }
}

fn used(tree: &syn::UseTree, names: &mut Vec<syn::Ident>) {
    match tree {
        syn::UseTree::Path(path) => used(&path.tree, names),
        syn::UseTree::Name(name) => names.push(name.ident.clone()),
        syn::UseTree::Rename(renamed) => names.push(renamed.rename.clone()),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| used(tree, names)),
        syn::UseTree::Glob(_) => {}
    }
}
