//! Generic arguments of a file's kernels, as they could stand in the kernel's module. Must not know who asks.

use std::fmt;
use std::sync::Arc;

use perpetua_syntax::{Generic, InScope, PathRef, PathSegment, PathUsage, parse};

use super::lookup::Refusal;
use super::{FileKernel, Items, ModulePath};
use crate::front::rust::describe::ConstValue;
use crate::front::rust::instantiate::GenericValue;
use crate::front::rust::resolve::Resolved;
use crate::ir::Scalar;

/// Where names of a kernel's module are looked up.
#[derive(Clone)]
pub(super) struct Scope {
    pub(super) items: Arc<Items>,
    pub(super) module: ModulePath,
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "module `{}`", self.module.join("::"))
    }
}

impl FileKernel {
    /// Reads an argument of the kernel's `param` as it stands in Rust: for a type a scalar's name (`f32`), a struct or another type of the
    /// file, an array or a tuple; for a constant a literal or an expression of the file's constants; for what is called a device function of the file.
    ///
    /// # Errors
    /// What the parameter takes, where `text` is something else or does not fit.
    pub fn generic(&self, param: &Generic, text: &str) -> Result<GenericValue, String> {
        let plain = GenericValue::parse(param, text);
        if plain.is_ok() {
            return plain;
        }
        let Scope { items, module } = &self.scope;
        let said = |(cause, remedy): Refusal| {
            let place = format!("`{}` is given `{text}`: ", param.name());
            match remedy.is_empty() {
                true => format!("{place}{cause}"),
                false => format!("{place}{cause}: {remedy}"),
            }
        };
        let name = syn::Ident::new("argument", proc_macro2::Span::call_site());
        let read = |ty: &syn::Type, value: &syn::Expr| {
            parse::read_const(&name, ty, value).map_err(|e| said((e.to_string(), String::new())))
        };
        match param {
            Generic::Type { call: Some(_), .. } => {
                let Ok(path) = syn::parse_str::<syn::Path>(text) else {
                    return plain;
                };
                let segment = |segment: &syn::PathSegment| PathSegment {
                    name: segment.ident.to_string(),
                    args: Vec::new(),
                };
                let path = PathRef {
                    leading_colon: path.leading_colon.is_some(),
                    segments: path.segments.iter().map(segment).collect(),
                    usage: PathUsage::Call,
                    line: 0,
                    locals: InScope::default(),
                };
                match items.meaning(&path, module, None, 1).map_err(said)? {
                    Resolved::Device(function)
                        if function.tree().is_ok_and(|tree| tree.generics.is_empty()) =>
                    {
                        Ok(GenericValue::Function(function))
                    }
                    _ => plain,
                }
            }
            Generic::Type { .. } => {
                let Ok(ty) = syn::parse_str::<syn::Type>(text) else {
                    return plain;
                };
                let read = read(&ty, &syn::parse_quote!(0))?.tree;
                let found = items.written_type(&read.ty, &read.paths, module, None, 1);
                found.map(GenericValue::Type).map_err(said)
            }
            Generic::Const { ty, .. } => {
                let Ok(value) = syn::parse_str::<syn::Expr>(text) else {
                    return plain;
                };
                let is_type = Scalar::from_name(text).is_some();
                if is_type || matches!(&value, syn::Expr::Lit(_) | syn::Expr::Unary(_)) {
                    return plain;
                }
                let written: syn::Type = syn::parse_str(ty.name()).map_err(|e| e.to_string())?;
                let def = read(&written, &value)?.tree;
                match items.value(&def, module, None, 1).map_err(said)? {
                    value @ ConstValue::Scalar(found, _) if found == *ty => Ok(GenericValue::Const(value)),
                    _ => plain,
                }
            }
        }
    }
}
