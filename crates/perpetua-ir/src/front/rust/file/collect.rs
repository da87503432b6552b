//! Collects the items of a file.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use perpetua_syntax::parse::options::{KernelOptions, read_crate};
use perpetua_syntax::{FunctionKind, Scalar, parse};
use proc_macro2::TokenStream;

use super::constants::UNMARKED;
use super::crates::{Crates, first_names};
use super::defined::{Defined, Space};
use super::handlers::Templates;
use super::marks::{Mark, derives, instantiation, is_device, judge_gpu, marks_of};
use super::modules::{Beside, Files};
use super::unknown::lacking;
use super::{Block, Defaults, Item, ItemKind, Items, Kernel, ModulePath};
use crate::front::rust::describe::TypeDesc;
use crate::front::rust::resolve::members::MemberKind;
use crate::front::rust::source::{SourceError, SourceRefusal};

/// Why nothing uses what is refused: the remedy of an error about it.
pub const REFUSED: &str = "it is refused where it stands";

pub(super) struct Collector<'f> {
    pub(super) items: Items,
    /// The kernels around handlers, where these are collected, too.
    pub(super) templates: Option<Rc<Templates>>,
    /// What is wrong, and in which file.
    pub(super) errors: Vec<(String, SourceRefusal)>,
    defined: Defined,
    pub(super) beside: Beside<'f>,
    /// How many files of modules were read.
    pub(super) read: usize,
    /// Modules in files that were not found.
    pub(super) elsewhere: Vec<(ModulePath, Vec<String>)>,
    /// Names with which paths begin, since other crates were looked for.
    pub(super) names: BTreeSet<String>,
}

impl Items {
    /// The items of a parsed file, and of its modules in files of their own, and what of them is refused.
    pub(super) fn collect(
        parsed: &syn::File,
        file: &str,
        files: Files<'_>,
        crates: Crates<'_>,
    ) -> (Items, Option<SourceError>) {
        Items::collect_with(&[parsed], Beside::of(file, files), file, None, &[], crates)
    }

    /// The items of a file and of what its handlers refer to.
    pub(super) fn collect_handlers(
        parsed: &[&syn::File],
        file: &str,
        (files, crates): (Files<'_>, Crates<'_>),
        templates: Templates,
        types: &[(&str, TypeDesc)],
    ) -> Result<Items, SourceError> {
        let beside = Beside::of(file, files);
        match Items::collect_with(parsed, beside, file, Some(Rc::new(templates)), types, crates) {
            (items, None) => Ok(items),
            (_, Some(refused)) => Err(refused),
        }
    }

    fn collect_with(
        parsed: &[&syn::File],
        beside: Beside<'_>,
        file: &str,
        templates: Option<Rc<Templates>>,
        types: &[(&str, TypeDesc)],
        crates: Crates<'_>,
    ) -> (Items, Option<SourceError>) {
        let mut collector = Collector {
            items: Items {
                file: file.to_owned(),
                modules: vec![Vec::new()],
                ..Items::default()
            },
            templates,
            errors: Vec::new(),
            defined: Defined::default(),
            beside,
            read: 0,
            elsewhere: Vec::new(),
            names: BTreeSet::new(),
        };
        for parsed in parsed {
            collector.module(&parsed.items, &Vec::new());
        }
        collector.dependencies(file, crates);
        for (module, path) in std::mem::take(&mut collector.elsewhere) {
            let kind = ItemKind::Unusable("its module is in another file, which was not found".to_owned());
            // What has its name is no module.
            collector.items.items.entry(path).or_insert(Item { module, kind });
        }
        collector.standard_library(types);
        // One file after the other, as they are mended.
        let first = collector.errors.first().map(|(file, _)| file.clone());
        let refused = first.map(|file| {
            let errors = collector.errors.into_iter();
            let refusals = errors.filter(|(of, _)| *of == file).map(|(_, refusal)| refusal);
            SourceError {
                refusals: refusals.collect(),
                file,
            }
        });
        collector.items.settle();
        (collector.items, refused)
    }
}

pub(super) fn child(module: &ModulePath, name: &syn::Ident) -> Vec<String> {
    let mut path = module.clone();
    path.push(plain(name));
    path
}

/// A name without `r#`.
pub(super) fn plain(name: &syn::Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#")
        .map_or_else(|| name.clone(), str::to_owned)
}

/// A constant. One that refers to an array is that array.
fn constant(name: &syn::Ident, ty: &syn::Type, value: &syn::Expr) -> ItemKind {
    let read = match (ty, value) {
        (syn::Type::Reference(ty), syn::Expr::Reference(value)) => {
            let ty = match (&*ty.elem, &*value.expr) {
                (syn::Type::Slice(slice), syn::Expr::Array(array)) => {
                    let (element, n) = (&slice.elem, array.elems.len());
                    syn::parse_quote!([#element; #n])
                }
                (syn::Type::Slice(slice), syn::Expr::Repeat(repeat)) => {
                    let (element, n) = (&slice.elem, &repeat.len);
                    syn::parse_quote!([#element; #n])
                }
                (other, _) => other.clone(),
            };
            parse::read_const(name, &ty, &value.expr)
        }
        _ => parse::read_const(name, ty, value),
    };
    match read {
        Ok(read) => ItemKind::Const(read.tree),
        Err(error) => ItemKind::Unusable(error.to_string()),
    }
}

/// The trait that a block implements, as written.
pub(super) fn trait_of(item: &syn::ItemImpl) -> Option<Vec<String>> {
    let (_, path, _) = item.trait_.as_ref()?;
    Some(
        path.segments
            .iter()
            .map(|segment| plain(&segment.ident))
            .collect(),
    )
}

/// A type by another name.
fn alias(name: &syn::Ident, ty: &syn::Type) -> ItemKind {
    let zero: syn::Expr = syn::parse_quote!(0);
    match parse::read_const(name, ty, &zero) {
        Ok(read) => ItemKind::Alias(read.tree),
        Err(error) => ItemKind::Unusable(error.to_string()),
    }
}

impl Collector<'_> {
    pub(super) fn keep<T>(&mut self, read: syn::Result<T>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(error) => {
                self.note(SourceError::of(&error, &self.items.file).refusals);
                None
            }
        }
    }

    /// Gives a name; one that is given already is reported.
    fn insert(&mut self, module: &ModulePath, name: &syn::Ident, spaces: &[Space], kind: ItemKind) {
        if name == "_" {
            return;
        }
        if name == parse::REVERSE && spaces.contains(&Space::Values) {
            let text = "`Reverse` is that of `std::cmp` in kernels: give this another name";
            self.keep::<()>(Err(syn::Error::new(name.span(), text)));
        }
        let given = self.defined.give(module, name, spaces);
        let item = Item {
            module: module.clone(),
            kind,
        };
        let path = child(module, name);
        if self.keep(given).is_some() && self.items.items.insert(path, item).is_some() {
            let other = match spaces {
                [Space::Values] => "type",
                _ => "value",
            };
            let text = format!(
                "`{}` names a {other} here, too, and a file of kernels has one meaning for a name: rename one",
                plain(name)
            );
            self.keep::<()>(Err(syn::Error::new(name.span(), text)));
        }
    }

    pub(super) fn module(&mut self, items: &[syn::Item], module: &ModulePath) {
        self.names.extend(first_names(items));
        for item in items {
            match item {
                syn::Item::Fn(item) => self.function(item, module),
                syn::Item::Const(item) => {
                    let name = &item.ident;
                    // A constant that no kernel uses may be anything.
                    let kind = constant(name, &item.ty, &item.expr);
                    self.insert(module, name, &[Space::Values], kind);
                }
                syn::Item::Static(item) => {
                    let kind = match item.mutability {
                        syn::StaticMutability::None => constant(&item.ident, &item.ty, &item.expr),
                        _ => ItemKind::Unusable("it is a `static mut`: pass it as a `&mut [T]`".to_owned()),
                    };
                    self.insert(module, &item.ident, &[Space::Values], kind);
                }
                syn::Item::Type(item) => {
                    let kind = alias(&item.ident, &item.ty);
                    self.insert(module, &item.ident, &[Space::Types], kind);
                }
                syn::Item::Trait(item) => self.of_trait(item, module),
                syn::Item::Struct(item) => {
                    self.data(&item.attrs, &item.ident, item.clone().into(), module);
                }
                syn::Item::Enum(item) => {
                    self.data(&item.attrs, &item.ident, item.clone().into(), module);
                }
                syn::Item::Impl(item) => self.implementation(item, module),
                syn::Item::Mod(item) => {
                    let path = child(module, &item.ident);
                    let given = self.defined.give(module, &item.ident, &[Space::Types]);
                    self.keep(given);
                    self.items.modules.push(path.clone());
                    self.submodule(item, module, path);
                }
                syn::Item::Use(item) => self.import(&item.tree, module, Vec::new()),
                _ => {}
            }
        }
    }

    fn function(&mut self, item: &syn::ItemFn, module: &ModulePath) {
        if self.handler(item, module) {
            return;
        }
        match marks_of(&item.attrs) {
            (Mark::Kernel, options) => self.kernel(item, options, module),
            (Mark::Device, options) => {
                self.keep(read_crate(options));
                self.device(item, module);
            }
            (Mark::None, _) => {
                // A function that is outside the language may still be one that no constant calls.
                let read = item
                    .sig
                    .constness
                    .is_some()
                    .then(|| parse::read_function(item, FunctionKind::Device, &self.items.file));
                let kind = match read {
                    Some(Ok(read)) => ItemKind::ConstFunction(Arc::new(read.tree)),
                    _ => ItemKind::Unusable(UNMARKED.to_owned()),
                };
                self.insert(module, &item.sig.ident, &[Space::Values], kind);
            }
        }
    }

    /// Collects a function that kernels can call.
    pub(super) fn device(&mut self, item: &syn::ItemFn, module: &ModulePath) {
        let read = parse::read_function(item, FunctionKind::Device, &self.items.file);
        let kind = match self.keep(read) {
            Some(read) => ItemKind::Function(Arc::new(read.tree)),
            None => ItemKind::Unusable(REFUSED.to_owned()),
        };
        self.insert(module, &item.sig.ident, &[Space::Values], kind);
        self.inner(item, module);
    }

    /// Collects a kernel with the options of its attribute.
    pub(super) fn kernel(&mut self, item: &syn::ItemFn, options: TokenStream, module: &ModulePath) {
        let Some(options) = self.keep(KernelOptions::read(options, &item.sig)) else {
            return;
        };
        let read = options.read_kernel(item, &self.items.file);
        if let Some(read) = self.keep(read) {
            let name = &item.sig.ident;
            let lacks = match (options.interpret, options.contract) {
                (true, _) => Some(("what `interpret` leaves out", name.span())),
                (_, true) => Some(("fused operations (`contract`)", name.span())),
                _ => parse::lacks_native(&item.sig, &item.block),
            };
            self.items.kernels.push(Kernel {
                path: child(module, name),
                how: instantiation(&options),
                lacks_native: lacks.map(|(what, at)| (what, at.start().line as u32)),
            });
            let kind = ItemKind::Function(Arc::new(read.tree));
            self.insert(module, name, &[Space::Values], kind);
            self.inner(item, module);
        }
    }

    pub(super) fn data(
        &mut self,
        attrs: &[syn::Attribute],
        name: &syn::Ident,
        input: syn::DeriveInput,
        module: &ModulePath,
    ) {
        let spaces: &[Space] = match &input.data {
            syn::Data::Struct(data) if !matches!(data.fields, syn::Fields::Named(_)) => {
                &[Space::Types, Space::Values]
            }
            _ => &[Space::Types],
        };
        self.message(&input, module);
        self.keep(judge_gpu(attrs));
        let device = self.keep(is_device(attrs)) == Some(true);
        // Without the attribute kernels take the host's `Default`, which nobody runs here.
        let gpu = derives(attrs, "GpuType");
        let default = gpu && derives(attrs, "Default") && input.generics.const_params().next().is_none();
        if (device || default)
            && let Some(blocks) = self.keep(parse::derived_blocks(&input))
        {
            let of_default = |block: &syn::ItemImpl| {
                let last = block
                    .trait_
                    .as_ref()
                    .and_then(|(_, path, _)| path.segments.last());
                last.is_some_and(|last| last.ident == "Default")
            };
            for mut block in blocks.into_iter().filter(|block| device || of_default(block)) {
                block.attrs.push(syn::parse_quote!(#[device]));
                self.implementation(&block, module);
            }
        }
        let kind = if gpu {
            match self.keep(parse::read_gpu_type(&input)) {
                Some(parse::GpuType::Struct(read)) => ItemKind::Struct(read.tree),
                Some(parse::GpuType::Enum(tree)) => ItemKind::Enum(tree),
                None => ItemKind::Unusable(REFUSED.to_owned()),
            }
        } else {
            ItemKind::Unusable(lacking(&input))
        };
        self.insert(module, name, spaces, kind);
    }

    pub(super) fn implementation(&mut self, item: &syn::ItemImpl, module: &ModulePath) {
        if parse::is_generic_block(item) {
            return self.generic_implementation(item, module);
        }
        let syn::Type::Path(path) = &*item.self_ty else {
            return;
        };
        if path.qself.is_some() {
            return;
        }
        let written: Vec<String> = path.path.segments.iter().map(|s| plain(&s.ident)).collect();
        let owner = match written.as_slice() {
            [name] if Scalar::from_name(name).is_some() => written.clone(),
            _ => module.iter().chain(&written).cloned().collect(),
        };
        let file = self.items.file.clone();
        let is_marked = self.keep(is_device(&item.attrs)).unwrap_or(true);
        let mut members = Vec::new();
        for member in &item.items {
            let ident = match member {
                syn::ImplItem::Const(member) => Some(&member.ident),
                syn::ImplItem::Fn(member) => Some(&member.sig.ident),
                _ => None,
            };
            // Traits give a type methods of one name.
            if let Some(name) = ident.filter(|_| item.trait_.is_none()) {
                let given = self.defined.give(&owner, name, &[Space::Values]);
                self.keep(given);
            }
            let mut module = module.clone();
            let (name, kind) = match member {
                syn::ImplItem::Const(member) => {
                    let kind = constant(&member.ident, &member.ty, &member.expr);
                    (plain(&member.ident), kind)
                }
                syn::ImplItem::Type(member) => (plain(&member.ident), alias(&member.ident, &member.ty)),
                syn::ImplItem::Fn(member) if is_marked || marks_of(&member.attrs).0 == Mark::Device => {
                    let read = parse::read_method(member, item, &file);
                    let name = plain(&member.sig.ident);
                    let Some(read) = self.keep(read) else {
                        let kind = ItemKind::Unusable(REFUSED.to_owned());
                        members.push((name, Item { module, kind }));
                        continue;
                    };
                    // Several blocks of traits may have methods of a name.
                    let within = format!("{}::{name} {}", owner.join("::"), self.items.blocks.len());
                    module = self.inner_of(&member.block, &within, &module);
                    (name, ItemKind::Function(Arc::new(read.tree)))
                }
                syn::ImplItem::Fn(member) => (
                    plain(&member.sig.ident),
                    ItemKind::Unusable("it is a method without `#[device]`: add it".into()),
                ),
                _ => continue,
            };
            members.push((name, Item { module, kind }));
        }
        self.items.blocks.push(Block {
            owner,
            written,
            module: module.clone(),
            of_trait: trait_of(item),
            members,
        });
    }

    /// A trait with its default methods and constants.
    fn of_trait(&mut self, item: &syn::ItemTrait, module: &ModulePath) {
        if self.keep(is_device(&item.attrs)) != Some(true) {
            return;
        }
        let file = self.items.file.clone();
        let mut defaults = Defaults::default();
        for member in &item.items {
            match member {
                syn::TraitItem::Fn(member) => {
                    let read = parse::read_default_method(member, &item.ident, &file);
                    if let Some(read) = read.and_then(|read| self.keep(read)) {
                        let (name, tree) = (plain(&member.sig.ident), Arc::new(read.tree));
                        defaults
                            .known
                            .push((name.clone(), ItemKind::Function(tree.clone())));
                        defaults.generic.push((name, MemberKind::Function, tree));
                    }
                }
                syn::TraitItem::Const(member) => {
                    if let Some((_, value)) = &member.default {
                        let name = plain(&member.ident);
                        let kind = constant(&member.ident, &member.ty, value);
                        defaults.known.push((name.clone(), kind));
                        let member = parse::Member::Default(member, &item.ident);
                        // Where it is used, the lack is reported.
                        if let Ok(read) = parse::read_member(&member, &file) {
                            defaults
                                .generic
                                .push((name, MemberKind::Constant, Arc::new(read.tree)));
                        }
                    }
                }
                _ => {}
            }
        }
        self.insert(module, &item.ident, &[Space::Types], ItemKind::Trait(defaults));
    }

    pub(super) fn import(&mut self, tree: &syn::UseTree, module: &ModulePath, mut before: Vec<String>) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(plain(&path.ident));
                self.import(&path.tree, module, before);
            }
            syn::UseTree::Name(name) => {
                let name = plain(&name.ident);
                if name != "self" {
                    before.push(name);
                }
                if let Some(last) = before.last().cloned() {
                    let mut alias = module.clone();
                    alias.push(last);
                    self.items.uses.insert(alias, before);
                }
            }
            syn::UseTree::Rename(rename) => {
                before.push(plain(&rename.ident));
                self.items.uses.insert(child(module, &rename.rename), before);
            }
            syn::UseTree::Glob(_) => {
                self.items.globs.entry(module.clone()).or_default().push(before);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, module, before.clone());
                }
            }
        }
    }
}
