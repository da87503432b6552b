//! Structs and enums of `derive(GpuType)`: what has the same layout on the host and on every device, and enums with data, whose values
//! live in kernels only.

use super::path::segment_names;
use super::reader::{Reader, line_of, name_of};
use super::types::range_of;
use super::{GpuType, Refusal};
use crate::ast::{EnumDef, FieldDef, Scalar, StructDef, Type};
use quote::ToTokens;
use syn::spanned::Spanned;

/// Reads a struct or an enum.
pub(super) fn read(input: &syn::DeriveInput) -> syn::Result<GpuType> {
    let mut reader = Reader::default();
    reader.read_parameters(input);
    let repr = reader.read_repr(&input.attrs);
    match &input.data {
        syn::Data::Struct(data) => {
            let fields = reader.read_struct(input, data, repr);
            let tuple = matches!(data.fields, syn::Fields::Unnamed(_));
            reader.finish_struct(input, tuple, fields, Vec::new())
        }
        syn::Data::Enum(data) if has_data(data) => {
            let mut fields = Vec::new();
            let mut variants = Vec::with_capacity(data.variants.len());
            for variant in &data.variants {
                variants.push((name_of(&variant.ident), variant.fields.len() as u32));
                fields.extend(reader.read_fields(&variant.fields, is_value));
            }
            reader.finish_struct(input, false, fields, variants)
        }
        syn::Data::Enum(data) => {
            let definition = reader.read_enum(input, data, repr);
            reader.finish(|_| definition).map(|read| GpuType::Enum(read.tree))
        }
        syn::Data::Union(data) => Err(syn::Error::new_spanned(
            data.union_token,
            Refusal::UnionType.message(""),
        )),
    }
}

/// What `#[repr(…)]` says, where that is something the language knows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repr {
    C,
    Integer(Scalar),
}

/// The traits that the type parameters of a struct may be bound by: those of every scalar. A resolver names the struct with a
/// scalar in their place, and what only some have, `impl` blocks ask for.
const BOUNDS: [&str; 8] = [
    "Copy",
    "Clone",
    "Send",
    "Sync",
    "Debug",
    "Default",
    "PartialEq",
    "GpuType",
];

impl Reader {
    /// The generic parameters of a struct.
    fn read_parameters(&mut self, input: &syn::DeriveInput) {
        if let Some(lifetime) = input.generics.lifetimes().next() {
            self.refuse(lifetime, Refusal::TypeLifetime);
        }
        let plain = matches!(&input.data, syn::Data::Enum(data) if !has_data(data));
        if super::signature::is_generic(&input.generics) && plain {
            self.refuse(&input.generics, Refusal::GenericType);
        }
        let clause = input
            .generics
            .where_clause
            .iter()
            .flat_map(|clause| &clause.predicates);
        let more = clause.filter_map(|predicate| match predicate {
            syn::WherePredicate::Type(predicate) => Some(&predicate.bounds),
            _ => None,
        });
        for bound in input
            .generics
            .type_params()
            .map(|param| &param.bounds)
            .chain(more)
            .flatten()
        {
            let last = match bound {
                syn::TypeParamBound::Trait(bound) => bound.path.segments.last(),
                syn::TypeParamBound::Lifetime(_) => continue,
                _ => None,
            };
            if last.is_none_or(|last| !BOUNDS.iter().any(|known| last.ident == known)) {
                self.refuse(bound, Refusal::TypeBound);
            }
        }
        for param in &input.generics.params {
            match param {
                syn::GenericParam::Type(syn::TypeParam {
                    default: Some(ty), ..
                }) => {
                    self.refuse(ty, Refusal::TypeDefault);
                }
                syn::GenericParam::Const(syn::ConstParam {
                    default: Some(value), ..
                }) => {
                    self.refuse(value, Refusal::TypeDefault);
                }
                _ => {}
            }
        }
        self.read_generics(&input.generics);
    }

    fn read_repr(&mut self, attrs: &[syn::Attribute]) -> Option<Repr> {
        let mut found = None;
        for attr in attrs.iter().filter(|attr| attr.path().is_ident("repr")) {
            let metas = attr
                .parse_args_with(syn::punctuated::Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated);
            let Ok(metas) = metas else {
                self.refuse_named(attr, Refusal::ReprOption, "repr");
                continue;
            };
            for meta in &metas {
                let name = segment_names(meta.path()).join("::");
                match (name.as_str(), Scalar::from_name(&name)) {
                    ("C", _) => found = found.or(Some(Repr::C)),
                    (_, Some(scalar)) if scalar.is_integer() => found = Some(Repr::Integer(scalar)),
                    _ => self.refuse_named(meta, Refusal::ReprOption, &name),
                }
            }
        }
        found
    }

    fn finish_struct(
        mut self,
        input: &syn::DeriveInput,
        tuple: bool,
        fields: Vec<FieldDef>,
        variants: Vec<(String, u32)>,
    ) -> syn::Result<GpuType> {
        let name = name_of(&input.ident);
        let generics = std::mem::take(&mut self.generics);
        self.finish(|paths| StructDef {
            name,
            tuple,
            generics,
            fields,
            variants,
            paths,
        })
        .map(GpuType::Struct)
    }

    fn read_struct(
        &mut self,
        input: &syn::DeriveInput,
        data: &syn::DataStruct,
        repr: Option<Repr>,
    ) -> Vec<FieldDef> {
        let generic = super::signature::is_generic(&input.generics);
        if data.fields.is_empty() {
            if generic {
                self.refuse(&input.ident, Refusal::EmptyStruct);
            }
            return Vec::new();
        }
        let fields = self.read_fields(&data.fields, if generic { has_layout } else { is_value });
        if repr != Some(Repr::C) && fields.iter().all(|field| has_layout(&field.ty)) {
            self.refuse(&input.ident, Refusal::NoReprC);
        }
        fields
    }

    /// The fields of a struct or a variant, of types of which `fits` holds.
    fn read_fields(&mut self, fields: &syn::Fields, fits: fn(&Type) -> bool) -> Vec<FieldDef> {
        let mut read = Vec::with_capacity(fields.len());
        for (index, field) in fields.iter().enumerate() {
            let ty = self.read_type(&field.ty);
            if range_of(&field.ty).is_some() {
                let name = field.ty.to_token_stream().to_string().replace(' ', "");
                self.refuse_named(&field.ty, Refusal::RangeType, &name);
            } else if !fits(&ty) {
                self.refuse(&field.ty, Refusal::FieldType);
            }
            let name = field.ident.as_ref().map_or_else(|| index.to_string(), name_of);
            read.push(FieldDef {
                name,
                ty,
                line: line_of(field.ty.span()),
            });
        }
        read
    }

    fn read_enum(&mut self, input: &syn::DeriveInput, data: &syn::DataEnum, repr: Option<Repr>) -> EnumDef {
        let repr = match repr {
            Some(Repr::Integer(scalar)) => scalar,
            Some(Repr::C) | None => {
                self.refuse(&input.ident, Refusal::NoEnumRepr);
                Scalar::I32
            }
        };
        if data.variants.is_empty() {
            self.refuse(&input.ident, Refusal::EmptyEnum);
        }
        let mut variants = Vec::with_capacity(data.variants.len());
        let mut next: i128 = 0;
        for variant in &data.variants {
            if let Some((_, value)) = &variant.discriminant {
                match discriminant(value) {
                    Some(value) => next = value,
                    None => self.refuse(value, Refusal::Discriminant),
                }
            }
            variants.push((name_of(&variant.ident), next));
            next = next.saturating_add(1);
        }
        EnumDef {
            name: name_of(&input.ident),
            repr,
            variants,
        }
    }
}

/// Whether a variant of an enum has fields.
fn has_data(data: &syn::DataEnum) -> bool {
    data.variants.iter().any(|variant| !variant.fields.is_empty())
}

/// Whether a type may be a field of a variant, or of a struct that no memory takes.
fn is_value(ty: &Type) -> bool {
    match ty {
        Type::Tuple(parts) => parts.iter().all(is_value),
        Type::Option(some) => is_value(some),
        Type::Result(both) => is_value(&both.0) && is_value(&both.1),
        Type::Array { element, .. } => is_value(element),
        ty => has_layout(ty),
    }
}

/// Whether a type may be a field of a struct in memory.
fn has_layout(ty: &Type) -> bool {
    match ty {
        Type::Scalar(_) | Type::Named(_) | Type::Generic(_) => true,
        Type::Array { element, .. } => has_layout(element),
        // `_` stands for a type that was refused, too.
        Type::Infer => true,
        Type::Unit
        | Type::Ref { .. }
        | Type::Slice(_)
        | Type::Tuple(_)
        | Type::SelfType
        | Type::Assoc(_)
        | Type::Option(_)
        | Type::Result(_)
        | Type::Range(..)
        | Type::GridPos => false,
    }
}

/// The value of a discriminant written as a number, or computed of numbers.
fn discriminant(expr: &syn::Expr) -> Option<i128> {
    match super::expr::peel(expr) {
        syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Int(lit),
            ..
        }) => lit.base10_parse::<u64>().ok().map(i128::from),
        syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Byte(lit),
            ..
        }) => Some(lit.value().into()),
        syn::Expr::Unary(syn::ExprUnary {
            op: syn::UnOp::Neg(_),
            expr,
            ..
        }) => discriminant(expr)?.checked_neg(),
        syn::Expr::Binary(binary) => {
            let (a, b) = (discriminant(&binary.left)?, discriminant(&binary.right)?);
            match binary.op {
                syn::BinOp::Add(_) => a.checked_add(b),
                syn::BinOp::Sub(_) => a.checked_sub(b),
                syn::BinOp::Mul(_) => a.checked_mul(b),
                syn::BinOp::BitOr(_) => Some(a | b),
                syn::BinOp::BitAnd(_) => Some(a & b),
                syn::BinOp::BitXor(_) => Some(a ^ b),
                // More than the widest enum holds is rustc's to refuse.
                syn::BinOp::Shl(_) => a.checked_mul(1 << u32::try_from(b).ok().filter(|b| *b < 64)?),
                _ => None,
            }
        }
        _ => None,
    }
}
