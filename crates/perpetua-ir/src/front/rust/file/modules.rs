//! Modules that stand in files of their own. Knows where rustc looks for one, and no file system: a function gives texts by their paths.

use std::path::{Component, Path, PathBuf};

use super::collect::{Collector, plain};
use super::{ModulePath, parse};
use crate::front::rust::source::{SourceError, SourceRefusal};

/// Gives a file's text by its path, beside the path that the first file was given: `None` where there is none, or why it cannot be read.
pub type Files<'f> = &'f (dyn Fn(&str) -> Result<Option<String>, String> + Sync);

/// Files of modules that are read at most: two modules may share one, and double its own at every step.
const MOST_FILES: usize = 1024;

/// Tokens of a module around others: its keyword, its name, its braces.
const TOKENS: usize = 3;

/// Where modules are looked for.
#[derive(Clone)]
pub(super) struct Beside<'f> {
    pub(super) files: Files<'f>,
    /// The folder of the file that is collected, with a slash behind it, or nothing.
    folder: String,
    /// Those of its modules, which rustc names after those around them; two where the first file may be a crate's root or a module of one.
    below: Vec<String>,
    /// Whether the items stand in a module that has braces.
    is_inline: bool,
    /// The files around the items, from the first one on.
    open: Vec<String>,
}

/// A path's folder, with its slash.
fn folder(path: &str) -> &str {
    let end = path.rfind(std::path::is_separator).map_or(0, |at| at + 1);
    &path[..end]
}

/// A path as it is told from others: without `.` and `..` where these can be left out.
fn told_apart(path: &str) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(plain.components().next_back(), Some(Component::Normal(_))) => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
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
        let mut below = vec![folder(file).to_owned()];
        below.extend(file.strip_suffix(".rs").map(|stem| format!("{stem}/")));
        Beside {
            files,
            folder: folder(file).to_owned(),
            below,
            is_inline: false,
            open: vec![file.to_owned()],
        }
    }

    /// Where what `#[path]` says may lie.
    fn written(&self, attrs: &[syn::Attribute]) -> Option<Vec<String>> {
        let path = written(attrs)?;
        let from = match self.is_inline {
            _ if Path::new(&path).is_absolute() => return Some(vec![path]),
            true => &self.below[..],
            false => std::slice::from_ref(&self.folder),
        };
        Some(from.iter().map(|from| format!("{from}{path}")).collect())
    }

    /// Within a module that has braces.
    fn inline(&self, item: &syn::ItemMod) -> Beside<'f> {
        let folders = self.written(&item.attrs).unwrap_or_else(|| {
            let name = plain(&item.ident);
            self.below.iter().map(|below| format!("{below}{name}")).collect()
        });
        Beside {
            below: folders.into_iter().map(|folder| folder + "/").collect(),
            is_inline: true,
            ..self.clone()
        }
    }

    /// The text of a module's file, and where the modules in it are looked for.
    fn find(&self, item: &syn::ItemMod) -> Result<Option<(String, Beside<'f>)>, String> {
        let name = plain(&item.ident);
        let candidates: Vec<(String, String)> = match self.written(&item.attrs) {
            Some(paths) => paths
                .into_iter()
                .map(|path| (path.clone(), folder(&path).to_owned()))
                .collect(),
            None => {
                let each = self.below.iter().flat_map(|at| {
                    let below = format!("{at}{name}/");
                    [format!("{at}{name}.rs"), format!("{below}mod.rs")].map(|path| (path, below.clone()))
                });
                each.collect()
            }
        };
        for (path, below) in candidates {
            let Some(text) = (self.files)(&path)? else {
                continue;
            };
            if self.open.iter().any(|open| told_apart(open) == told_apart(&path)) {
                return Err(format!("the file of the module `{name}` is within itself"));
            }
            let mut open = self.open.clone();
            let folder = folder(&path).to_owned();
            open.push(path);
            let beside = Beside {
                files: self.files,
                folder,
                below: vec![below],
                is_inline: false,
                open,
            };
            return Ok(Some((text, beside)));
        }
        Ok(None)
    }
}

impl Collector<'_> {
    /// Collects a module's items: from between its braces, or from its own file.
    pub(super) fn submodule(&mut self, item: &syn::ItemMod, module: &ModulePath, path: ModulePath) {
        let before = self.beside.clone();
        let refused = |text: String| syn::Error::new(item.ident.span(), text);
        match &item.content {
            Some((_, items)) => {
                self.beside = before.inline(item);
                self.module(items, &path);
            }
            None if self.read == MOST_FILES => {
                let text = format!("more than {MOST_FILES} files of modules are not read");
                self.keep::<()>(Err(refused(text)));
            }
            None => match self.keep(before.find(item).map_err(refused)) {
                Some(Some((text, beside))) => {
                    self.read += 1;
                    let file = beside.open.last().cloned().unwrap_or_default();
                    self.beside = beside;
                    let outer = std::mem::replace(&mut self.items.file, file);
                    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                    match parse::file_within(text, &self.items.file, TOKENS * path.len()) {
                        Ok(parsed) => self.module(&parsed.items, &path),
                        Err(SourceError { refusals, .. }) => self.note(refusals),
                    }
                    self.items.file = outer;
                }
                Some(None) => self.elsewhere.push((module.clone(), path)),
                None => {}
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
