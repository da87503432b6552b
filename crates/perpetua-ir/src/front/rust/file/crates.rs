//! Other crates that a file's paths lead to: each is collected as a module of its name at the root. Knows no package manager: a function
//! gives the paths of their first files.

use std::collections::BTreeSet;

use syn::visit::Visit;

use super::collect::{Collector, plain};
use super::modules::Beside;
use super::{ModulePath, parse};
use crate::front::rust::source::SourceError;

/// Gives the path of a crate's first file by the path of the first file of the crate that names it and by its name there: `None` where there is
/// no such crate with device functions, or why nobody knows.
pub type Crates<'f> = &'f (dyn Fn(&str, &str) -> Result<Option<String>, String> + Sync);

/// Crates whose names mean what the language has, and words that are none.
const KNOWN: [&str; 8] = [
    "perpetua", "std", "core", "alloc", "crate", "self", "super", "Self",
];

/// The names with which paths of items begin, their modules left out: these are collected by themselves.
pub(super) fn first_names(items: &[syn::Item]) -> BTreeSet<String> {
    #[derive(Default)]
    struct Names(BTreeSet<String>);
    impl Names {
        fn add(&mut self, name: &syn::Ident) {
            let name = plain(name);
            if !KNOWN.contains(&&*name) && name.starts_with(|c: char| c.is_ascii_lowercase()) {
                self.0.insert(name);
            }
        }
    }
    impl<'ast> Visit<'ast> for Names {
        fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

        fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

        fn visit_path(&mut self, path: &'ast syn::Path) {
            if let (Some(first), true) = (path.segments.first(), path.segments.len() > 1) {
                self.add(&first.ident);
            }
            syn::visit::visit_path(self, path);
        }

        fn visit_use_tree(&mut self, tree: &'ast syn::UseTree) {
            match tree {
                syn::UseTree::Path(path) => self.add(&path.ident),
                syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.visit_use_tree(tree)),
                _ => {}
            }
        }
    }
    let mut names = Names::default();
    items.iter().for_each(|item| names.visit_item(item));
    names.0
}

impl Collector<'_> {
    /// Collects the crates that the collected items name, and those that these name.
    pub(super) fn dependencies(&mut self, own: &str, crates: Crates<'_>) {
        let mut from = own.to_owned();
        let mut within: ModulePath = Vec::new();
        let mut waiting = Vec::new();
        loop {
            for name in std::mem::take(&mut self.names) {
                let is_module = |path: &ModulePath| path.starts_with(&within) && path.last() == Some(&name);
                let mut used = within.clone();
                used.push(name.clone());
                if self.items.modules.iter().any(is_module) || self.items.uses.contains_key(&used) {
                    continue;
                }
                match crates(&from, &name) {
                    Ok(Some(path)) => waiting.push((name, path)),
                    Ok(None) => {}
                    Err(why) => self.items.no_crates = Some(why),
                }
            }
            let Some((name, path)) = waiting.pop() else {
                return;
            };
            if self.items.crates.contains(&name) {
                continue;
            }
            let text = match (self.beside.files)(&path) {
                Ok(Some(text)) => text,
                Ok(None) => continue,
                Err(why) => {
                    self.items.no_crates = Some(why);
                    continue;
                }
            };
            within = vec![name.clone()];
            self.items.modules.push(within.clone());
            self.items.crates.push(name);
            self.beside = Beside::of(&path, self.beside.files);
            let outer = std::mem::replace(&mut self.items.file, path.clone());
            match parse::file(&text, &path) {
                Ok(parsed) => self.module(&parsed.items, &within),
                Err(SourceError { refusals, .. }) => self.note(refusals),
            }
            self.items.file = outer;
            from = path;
        }
    }
}
