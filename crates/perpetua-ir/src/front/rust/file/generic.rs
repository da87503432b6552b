//! Generic structs and generic blocks of a file.

use std::sync::Arc;

use perpetua_syntax::{ExprKind, Generic, GenericArg, Scalar, StructDef, Type, parse};

use super::collect::{Collector, plain, trait_of};
use super::lookup::{MAX_STEPS, Result};
use super::marks::is_device;
use super::{GenericBlock, ItemKind, Items, ModulePath};
use crate::front::rust::describe::TypeDesc;
use crate::front::rust::describe::{FieldType, GenericStruct, TypeParam, parts};
use crate::front::rust::resolve::Resolved;
use crate::front::rust::resolve::members::{MemberKind, Members};

impl Collector<'_> {
    /// A block of a generic type, or of several types.
    pub(super) fn generic_implementation(&mut self, item: &syn::ItemImpl, module: &ModulePath) {
        if self.keep(is_device(&item.attrs)) != Some(true) {
            return;
        }
        let file = self.items.file.clone();
        let Some(own) = self.keep(parse::read_member(&parse::Member::Block(item), &file)) else {
            return;
        };
        let mut members = Vec::new();
        for member in &item.items {
            let (name, kind, read) = match member {
                syn::ImplItem::Fn(member) => {
                    let read = parse::read_method(member, item, &file);
                    (&member.sig.ident, MemberKind::Function, read)
                }
                syn::ImplItem::Const(member) => {
                    let read = parse::read_member(&parse::Member::Constant(member, item), &file);
                    (&member.ident, MemberKind::Constant, read)
                }
                syn::ImplItem::Type(member) => {
                    let read = parse::read_member(&parse::Member::Type(member, item), &file);
                    (&member.ident, MemberKind::Type, read)
                }
                _ => continue,
            };
            if let Some(read) = self.keep(read) {
                members.push((plain(name), kind, Arc::new(read.tree)));
            }
        }
        self.items.generic_blocks.push(GenericBlock {
            module: module.clone(),
            of_trait: trait_of(item),
            own: Arc::new(own.tree),
            members,
        });
    }
}

impl Items {
    /// The members of generic blocks.
    pub(super) fn generic_members(self: &Arc<Self>, members: &mut Members) {
        for block in &self.generic_blocks {
            let of_trait = block.of_trait.as_ref().and_then(|path| path.last());
            let own = self.function(block.own.clone(), block.module.clone(), None);
            let mut found = members.generic_block(of_trait.map(String::as_str), own);
            for (name, kind, tree) in &block.members {
                found.add(
                    name,
                    *kind,
                    self.function(tree.clone(), block.module.clone(), None),
                );
            }
            if let Some((module, defaults)) = self.trait_at(block.of_trait.as_ref(), &block.module) {
                for (name, kind, tree) in &defaults.generic {
                    found.default(name, *kind, self.function(tree.clone(), module.clone(), None));
                }
            }
        }
    }

    /// What the name of a type means.
    pub(super) fn type_named(self: &Arc<Self>, at: &[String], steps: u32) -> Result<Resolved> {
        match self.items.get(at).map(|item| (&item.module, &item.kind)) {
            Some((module, ItemKind::Struct(def))) if !def.generics.is_empty() => self
                .generic_struct(def, at, module, steps)
                .map(Resolved::GenericStruct),
            _ => self.type_at(at, steps).map(Resolved::Type),
        }
    }

    fn generic_struct(
        self: &Arc<Self>,
        def: &StructDef,
        at: &[String],
        module: &ModulePath,
        steps: u32,
    ) -> Result<Arc<GenericStruct>> {
        if steps > MAX_STEPS {
            return Err((format!("`{}` holds itself", def.name), String::new()));
        }
        let mut fields = Vec::with_capacity(def.fields.len());
        for field in &def.fields {
            let ty = self.field_type(&field.ty, def, module, steps + 1)?;
            fields.push((field.name.clone(), ty));
        }
        let params = def.generics.iter().map(|param| match param {
            Generic::Type { .. } => TypeParam::Type,
            Generic::Const { ty, .. } => TypeParam::Const(*ty),
        });
        let key = self.key(at);
        let (fields, variants) = match def.variants.is_empty() {
            true => (fields, Vec::new()),
            false => parts(&key, &def.name, def.by_variant(fields), FieldType::Known),
        };
        Ok(Arc::new(GenericStruct {
            key,
            name: def.name.clone(),
            tuple: def.tuple,
            params: params.collect(),
            fields,
            variants,
            default: None,
        }))
    }

    fn field_type(
        self: &Arc<Self>,
        ty: &Type,
        def: &StructDef,
        module: &ModulePath,
        steps: u32,
    ) -> Result<FieldType> {
        let constant = |expr: &perpetua_syntax::Expr| match expr.kind {
            ExprKind::ConstParam(index) => Ok(FieldType::Param(index as usize)),
            // As the length of an array, all constants that are known can be computed.
            _ => {
                let array = Type::Array {
                    element: Box::new(Type::Scalar(Scalar::U8)),
                    len: Box::new(expr.clone()),
                };
                match self.written_type(&array, &def.paths, module, None, steps)? {
                    TypeDesc::Array(_, len) => Ok(FieldType::Const(len as u64)),
                    other => Err((format!("`{other}` is no array"), String::new())),
                }
            }
        };
        match ty {
            Type::Generic(index) => Ok(FieldType::Param(*index as usize)),
            Type::Array { element, len } => {
                let element = self.field_type(element, def, module, steps)?;
                Ok(FieldType::Array(Box::new((element, constant(len)?))))
            }
            Type::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.field_type(part, def, module, steps));
                Ok(FieldType::Tuple(parts.collect::<Result<_>>()?))
            }
            Type::Option(some) => {
                let some = self.field_type(some, def, module, steps)?;
                Ok(FieldType::Option(Box::new(some)))
            }
            Type::Result(both) => {
                let ok = self.field_type(&both.0, def, module, steps)?;
                let err = self.field_type(&both.1, def, module, steps)?;
                Ok(FieldType::Result(Box::new([ok, err])))
            }
            Type::Named(path)
                if def
                    .paths
                    .get(path.index())
                    .is_some_and(|path| !path.args().is_empty()) =>
            {
                let Some(path) = def.paths.get(path.index()) else {
                    return Err((format!("a field of `{}` has no type", def.name), String::new()));
                };
                let of = match self.meaning(path, module, None, steps)? {
                    Resolved::GenericStruct(of) => of,
                    _ => return Err((format!("`{}` has no parameters", path.text()), String::new())),
                };
                let args = path.args().iter().map(|arg| match arg {
                    GenericArg::Type(ty) => self.field_type(ty, def, module, steps),
                    GenericArg::Const(expr) => constant(expr),
                });
                Ok(FieldType::Instance(of, args.collect::<Result<_>>()?))
            }
            _ => self
                .written_type(ty, &def.paths, module, None, steps)
                .map(FieldType::Known),
        }
    }
}
