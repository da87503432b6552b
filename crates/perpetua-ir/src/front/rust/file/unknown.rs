//! What is said of a path that means nothing in the file: a name that is not there, or one that leads out.

use perpetua_syntax::{INTRINSICS, PathRef, PathUsage};

use super::lookup::{Found, Refusal, Result};
use super::{Item, ItemKind, Items, ModulePath};
use crate::nearest::nearest;

/// Crates of which no name is missing: what the language has of them, the reader knows.
const KNOWN: [&str; 3] = ["perpetua", "std", "core"];

/// The crates of the standard library.
const LIBRARY: [&str; 3] = ["std", "core", "alloc"];

impl Items {
    /// Why a path has no meaning, and what may have been meant.
    pub(super) fn unknown(&self, path: &PathRef, module: &ModulePath) -> Refusal {
        let names: Vec<&str> = path.segments.iter().map(|segment| &*segment.name).collect();
        let is_alone = names.len() == 1 && !path.leading_colon;
        let (name, before) = names.split_last().unwrap_or((&"", &[]));
        let at = match is_alone {
            true => (!self.is_brought(name, module)).then(|| module.clone()),
            false => self.module_of(before, module),
        };
        // What belongs to an item that is there.
        if at.is_none()
            && let Ok(Some(Found::Item(at, item))) = self.find_item(before, module, path.leading_colon)
        {
            let of = at.join("::");
            return match &item.kind {
                ItemKind::Unusable(why) => (format!("`{of}` cannot be used in a kernel"), why.clone()),
                ItemKind::Trait(_) => (
                    format!("`{of}` is a trait, and whose `{name}` is called is not seen here"),
                    format!("call it on the value, `x.{name}()`, or write `<_ as {of}>::{name}(…)`"),
                ),
                _ => (
                    format!("there is no {}`{name}` in `{of}`", kind(path.usage)),
                    String::new(),
                ),
            };
        }
        if path.usage != PathUsage::Call
            && matches!(*name, "Range" | "RangeInclusive")
            && self.is_ranges(name, before, module)
        {
            return (
                format!(
                    "`{}` is taken for Rust's type of ranges, which kernels have no literals and patterns of",
                    path.text()
                ),
                "write `start..end`, and `range.start` and `range.end`".into(),
            );
        }
        let library = before.first().is_some_and(|first| self.is_library(first, module));
        if at.is_none() && library {
            return (
                format!("`{}` is none of what kernels know of Rust's library", path.text()),
                "write a closure in the place of a function, such as `|x| x.abs()`, or write out what it does".into(),
            );
        }
        let Some(at) = at else {
            let remedy = match &self.no_crates {
                Some(why) => format!("other crates are not known: {why}"),
                None => "only this file and crates with device functions are read: move the definition here, or use `#[kernel]` in its crate".into(),
            };
            return (
                format!("`{}` leads out of {}", path.text(), self.file_text()),
                remedy,
            );
        };
        // What stands for a module whose file is missing.
        if let Some((
            at,
            Item {
                kind: ItemKind::Unusable(why),
                ..
            },
        )) = self.items.get_key_value(&at)
        {
            return (
                format!("`{}` leads into `{}`: {why}", path.text(), at.join("::")),
                String::new(),
            );
        }
        let kind = kind(path.usage);
        let cause = match is_alone {
            true => format!("there is no {kind}`{name}` here"),
            false => format!("there is no {kind}`{name}` in `{}`", before.join("::")),
        };
        let items = self.items.iter().filter_map(|(path, item)| {
            let (name, of) = path.split_last()?;
            Some((name, item)).filter(|_| *of == at[..])
        });
        let of_kind = items.filter(|(_, item)| fits(&item.kind, path.usage));
        let functions = INTRINSICS.iter().copied();
        let functions = functions.filter(|_| is_alone && path.usage == PathUsage::Call);
        let known = of_kind.map(|(name, _)| name.as_str());
        let known = known
            .chain(functions)
            .chain(path.locals.0.iter().map(String::as_str));
        (cause, nearest(name, known).unwrap_or_default())
    }

    fn find_item(&self, names: &[&str], module: &ModulePath, absolute: bool) -> Result<Option<Found<'_>>> {
        if names.is_empty() {
            return Ok(None);
        }
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        self.find(&names, module, None, absolute, 1)
    }

    /// Whether a name is of the standard library: by a `use`, or because nothing else has it.
    fn is_library(&self, name: &str, module: &ModulePath) -> bool {
        let mut at = module.clone();
        at.push(name.to_owned());
        match self.uses.get(&at) {
            Some(path) => path.first().is_some_and(|first| LIBRARY.contains(&&**first)),
            None => {
                let is_type = name.starts_with(char::is_uppercase);
                LIBRARY.contains(&name) || is_type && !self.is_brought(name, module)
            }
        }
    }

    /// Whether a `use` says where the name comes from, or leaves it open.
    fn is_brought(&self, name: &str, module: &ModulePath) -> bool {
        let mut at = module.clone();
        at.push(name.to_owned());
        let globs = self.globs.get(module).into_iter().flatten();
        let leads_out = |glob: &Vec<String>| {
            let names: Vec<&str> = glob.iter().map(String::as_str).collect();
            let is_known = names.first().is_some_and(|first| KNOWN.contains(first));
            !is_known && self.module_of(&names, module).is_none()
        };
        self.uses.contains_key(&at) || globs.into_iter().any(leads_out)
    }

    /// The module of the file that a path from `module` leads to.
    fn module_of(&self, names: &[&str], module: &ModulePath) -> Option<ModulePath> {
        let mut at = module.clone();
        for (i, name) in names.iter().enumerate() {
            match *name {
                "crate" if i == 0 => at.truncate(self.root_of(&at)),
                "self" if i == 0 => {}
                "super" => drop(at.pop()?),
                name if i == 0 && KNOWN.contains(&name) => return None,
                name if i == 0 && self.crates.iter().any(|known| known == name) => at = vec![name.to_owned()],
                name => {
                    at.push(name.to_owned());
                    if !self.modules.contains(&at) {
                        return None;
                    }
                }
            }
        }
        (!names.is_empty()).then_some(at)
    }

    /// Whether a name that is not found is that of the standard library's type: by a `use`, or by the path.
    fn is_ranges(&self, name: &str, before: &[&str], module: &ModulePath) -> bool {
        let mut at = module.clone();
        at.push(name.to_owned());
        let of_use = self
            .uses
            .get(&at)
            .map(|path| path.iter().map(String::as_str).collect::<Vec<_>>());
        let path = of_use.unwrap_or_else(|| before.iter().copied().chain([name]).collect());
        path.iter().rev().nth(1) == Some(&"ops")
    }

    fn file_text(&self) -> String {
        match self.file.is_empty() {
            true => "the file".to_owned(),
            false => format!("`{}`", self.file),
        }
    }
}

fn kind(usage: PathUsage) -> &'static str {
    match usage {
        PathUsage::Call => "function ",
        PathUsage::Type | PathUsage::StructLiteral => "type ",
        _ => "",
    }
}

/// Whether an item can be used so.
fn fits(item: &ItemKind, usage: PathUsage) -> bool {
    match usage {
        PathUsage::Call => matches!(item, ItemKind::Function(_)),
        PathUsage::Type | PathUsage::StructLiteral => matches!(
            item,
            ItemKind::Struct(_) | ItemKind::Enum(_) | ItemKind::Described(_) | ItemKind::Alias(_)
        ),
        _ => matches!(item, ItemKind::Const(_)),
    }
}

/// What a struct or an enum without `derive(GpuType)` lacks.
pub(super) fn lacking(input: &syn::DeriveInput) -> String {
    let fields: Vec<&syn::Field> = match &input.data {
        syn::Data::Struct(data) => data.fields.iter().collect(),
        syn::Data::Enum(data) => data.variants.iter().flat_map(|variant| &variant.fields).collect(),
        syn::Data::Union(_) => return "it is a union: use a struct, or an enum with data".to_owned(),
    };
    if fields
        .iter()
        .any(|field| matches!(field.ty, syn::Type::Reference(_)))
    {
        return "it holds references, which values of kernels do not: keep indices, and pass what they point into beside them".to_owned();
    }
    let has_repr = input.attrs.iter().any(|attr| attr.path().is_ident("repr"));
    let repr = match &input.data {
        _ if has_repr => None,
        // What memory does not take has no layout.
        syn::Data::Struct(_) => {
            (!fields.is_empty() && fields.iter().all(|field| is_stored(&field.ty))).then_some("C")
        }
        _ => fields.is_empty().then_some("u32"),
    };
    match repr {
        Some(repr) => format!("it lacks `#[derive(Clone, Copy, GpuType)]` and `#[repr({repr})]`: add both"),
        None => "it lacks `#[derive(Clone, Copy, GpuType)]`: add it".to_owned(),
    }
}

/// Whether memory may take values of a type, as it is written.
fn is_stored(ty: &syn::Type) -> bool {
    match ty {
        syn::Type::Tuple(_) => false,
        syn::Type::Path(path) => {
            let last = path.path.segments.last();
            last.is_none_or(|last| last.ident != "Option" && last.ident != "Result")
        }
        _ => true,
    }
}
