//! Modules that stand in files of their own. Knows where rustc looks for one, and no file system: a function gives texts by their paths.

use super::collect::{Collector, plain};
use super::{ModulePath, parse};
use crate::front::rust::source::{SourceError, SourceRefusal};

/// Gives a file's text by its path, beside the path that the first file was given; `None` where there is none.
pub type Files<'f> = &'f (dyn Fn(&str) -> Option<String> + Sync);

/// Files within files: beyond, a file is its own module.
const DEEPEST: u32 = 64;

/// Where modules are looked for.
#[derive(Clone)]
pub(super) struct Beside<'f> {
    pub(super) files: Files<'f>,
    /// The folder of the file that is collected, with a slash behind it, or nothing.
    folder: String,
    /// That of its modules, which rustc names after those around them.
    below: String,
    /// Whether the items stand in a module that has braces.
    is_inline: bool,
    depth: u32,
}

/// A path's folder, with its slash.
fn folder(path: &str) -> &str {
    let end = path.rfind(['/', '\\']).map_or(0, |at| at + 1);
    &path[..end]
}

/// What `#[path = "…"]` says.
fn written(attrs: &[syn::Attribute]) -> Option<String> {
    attrs.iter().find_map(|attr| match &attr.meta {
        syn::Meta::NameValue(meta) if meta.path.is_ident("path") => match &meta.value {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

impl<'f> Beside<'f> {
    pub(super) fn of(file: &str, files: Files<'f>) -> Beside<'f> {
        Beside {
            files,
            folder: folder(file).to_owned(),
            below: folder(file).to_owned(),
            is_inline: false,
            depth: 0,
        }
    }

    /// Within a module that has braces.
    fn inline(&self, name: &str) -> Beside<'f> {
        Beside {
            below: format!("{}{name}/", self.below),
            is_inline: true,
            ..self.clone()
        }
    }

    /// The file of a module, its text, and where the modules in it are looked for.
    fn find(&self, item: &syn::ItemMod, file: &str) -> Option<(String, String, Beside<'f>)> {
        let name = plain(&item.ident);
        let candidates = match written(&item.attrs) {
            Some(path) => {
                let from = if self.is_inline { &self.below } else { &self.folder };
                let path = format!("{from}{path}");
                vec![(path.clone(), folder(&path).to_owned())]
            }
            None => {
                let mut folders = vec![self.below.clone()];
                // The first file may be a crate's root or a module of one.
                if self.depth == 0 {
                    folders.extend(file.strip_suffix(".rs").map(|stem| format!("{stem}/")));
                }
                let each = folders.into_iter().flat_map(|at| {
                    let below = format!("{at}{name}/");
                    [format!("{at}{name}.rs"), format!("{below}mod.rs")].map(|path| (path, below.clone()))
                });
                each.collect()
            }
        };
        candidates.into_iter().find_map(|(path, below)| {
            let text = (self.files)(&path)?;
            let beside = Beside {
                files: self.files,
                folder: folder(&path).to_owned(),
                below,
                is_inline: false,
                depth: self.depth + 1,
            };
            Some((path, text, beside))
        })
    }
}

impl Collector<'_> {
    /// Collects a module's items: from between its braces, or from its own file.
    pub(super) fn submodule(&mut self, item: &syn::ItemMod, module: &ModulePath, path: ModulePath) {
        let before = self.beside.clone();
        match &item.content {
            Some((_, items)) => {
                self.beside = before.inline(&plain(&item.ident));
                self.module(items, &path);
            }
            None if before.depth >= DEEPEST => {
                let text = format!("the file of the module `{}` is within itself", plain(&item.ident));
                self.keep::<()>(Err(syn::Error::new(item.ident.span(), text)));
            }
            None => match before.find(item, &self.items.file) {
                Some((file, text, beside)) => {
                    self.beside = beside;
                    let outer = std::mem::replace(&mut self.items.file, file);
                    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                    match parse::file(text, &self.items.file) {
                        Ok(parsed) => self.module(&parsed.items, &path),
                        Err(SourceError { refusals, .. }) => self.note(refusals),
                    }
                    self.items.file = outer;
                }
                None => self.elsewhere.push((module.clone(), path)),
            },
        }
        self.beside = before;
    }

    /// Notes what is wrong with the present file.
    pub(super) fn note(&mut self, refusals: Vec<SourceRefusal>) {
        let file = &self.items.file;
        self.errors
            .extend(refusals.into_iter().map(|refusal| (file.clone(), refusal)));
    }
}
