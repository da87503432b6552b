//! Generic arguments of a file's kernels, as they could stand in the kernel's module. Must not know who asks.

use std::fmt;
use std::sync::Arc;

use perpetua_syntax::DecodeError;
use perpetua_syntax::{Generic, InScope, PathRef, PathSegment, PathUsage, parse};

use super::lookup::Refusal;
use super::{FileKernel, Items, ModulePath};
use crate::front::rust::describe::ConstValue;
use crate::front::rust::instantiate::{GenericValue, Instantiation};
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

/// What types and numbers are likely arguments, the likeliest first.
const TYPES: [&str; 7] = ["f32", "u32", "i32", "f64", "u64", "u8", "f16"];
const NUMBERS: [&str; 14] = [
    "4", "16", "1", "2", "3", "8", "32", "64", "128", "256", "512", "1024", "0", "5",
];
const BOOLS: [&str; 2] = ["true", "false"];

/// The likely arguments of a parameter; none where it takes a function.
fn likely(param: &Generic) -> &'static [&'static str] {
    match param {
        Generic::Type { call: None, .. } => &TYPES,
        Generic::Type { .. } => &[],
        Generic::Const {
            ty: perpetua_syntax::Scalar::Bool,
            ..
        } => &BOOLS,
        Generic::Const { .. } => &NUMBERS,
    }
}

impl FileKernel {
    /// Instances of a generic kernel with likely arguments, each with its name, for who wants to know whether it is a kernel at all and has no
    /// arguments; none of a kernel that takes a function. Not all of them need to be kernels.
    ///
    /// # Errors
    /// The kernel's tree cannot be read.
    pub fn likely_instances(&self) -> Result<Vec<(String, Instantiation)>, DecodeError> {
        let tree = self.function.tree()?;
        let choices: Vec<_> = tree.generics.iter().map(likely).collect();
        let turns = match choices.iter().any(|choice| choice.is_empty()) {
            true => 0,
            false => choices.iter().map(|choice| choice.len()).max().unwrap_or(0),
        };
        let instance = |turn: usize| {
            let texts = choices.iter();
            let texts: Vec<&str> = texts
                .filter_map(|choice| choice.get(turn % choice.len()).copied())
                .collect();
            let generics = tree.generics.iter().zip(&texts);
            let generics = generics.map(|(param, text)| self.generic(param, text).ok());
            let how = Instantiation {
                generics: generics.collect::<Option<_>>()?,
                ..self.how.clone()
            };
            Some((format!("{}::<{}>", self.name, texts.join(", ")), how))
        };
        Ok((0..turns).filter_map(instance).collect())
    }

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
