//! Tuples, arrays and structs: their literals and their fields.

use std::rc::Rc;

use perpetua_syntax as syntax;
use perpetua_syntax::StructName;

use super::instance::Fields;
use super::signature::{convert_len, not_a, path_meaning};
use super::tree::{Expr, ExprKind};
use super::ty::{Generic, Kind, Len, Ty};
use super::{Checker, Result};
use crate::front::rust::describe::GenericStruct;
use crate::front::rust::error::LowerError;
use crate::front::rust::resolve::Resolved;

impl Checker<'_> {
    pub(super) fn tuple(&mut self, elements: &[syntax::Expr], hint: Option<&Ty>, line: u32) -> Result<Expr> {
        let hints = match hint.map(|h| self.types.shallow(h)) {
            Some(Ty::Tuple(t)) if t.len() == elements.len() => t.iter().cloned().map(Some).collect(),
            _ => vec![None; elements.len()],
        };
        let elements = elements
            .iter()
            .zip(hints)
            .map(|(e, hint)| match hint.map(|hint| self.types.shallow(&hint)) {
                // A reference to an array is one to a slice where that is asked for.
                Some(Ty::Ref(mutable, of)) if matches!(self.types.shallow(&of), Ty::Slice(_)) => {
                    self.expr_as(e, &Ty::Ref(mutable, of))
                }
                hint => self.expr(e, hint.as_ref()),
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Expr {
            line,
            ty: Ty::Tuple(elements.iter().map(|e| e.ty.clone()).collect()),
            kind: ExprKind::Tuple(elements),
        })
    }

    pub(super) fn array(&mut self, elements: &[syntax::Expr], hint: Option<&Ty>, line: u32) -> Result<Expr> {
        let element = self.element_hint(hint);
        let elements = elements
            .iter()
            .map(|e| self.expr_as(e, &element))
            .collect::<Result<Vec<_>>>()?;
        let len = Len::Known(elements.len() as u64);
        Ok(Expr {
            line,
            ty: Ty::Array(Rc::new(element), len),
            kind: ExprKind::Array(elements),
        })
    }

    pub(super) fn repeat(
        &mut self,
        value: &syntax::Expr,
        len: &syntax::Expr,
        hint: Option<&Ty>,
        line: u32,
    ) -> Result<Expr> {
        let element = self.element_hint(hint);
        let value = self.expr_as(value, &element)?;
        let len = convert_len(self.program, &self.loaded.clone(), &self.generics, len)?;
        Ok(Expr {
            line,
            ty: Ty::Array(Rc::new(element), len),
            kind: ExprKind::Repeat(Box::new(value), len),
        })
    }

    fn element_hint(&mut self, hint: Option<&Ty>) -> Ty {
        match hint.map(|h| self.types.shallow(h)) {
            Some(Ty::Array(element, _) | Ty::Slice(element)) => (*element).clone(),
            _ => self.types.var(Kind::General),
        }
    }

    pub(super) fn field(&mut self, base: &syntax::Expr, name: &str, line: u32) -> Result<Expr> {
        let base = self.expr(base, None)?;
        let base = self.deref_all(base);
        let found = match self.types.shallow(&base.ty) {
            Ty::Tuple(elements) => name
                .parse::<usize>()
                .ok()
                .and_then(|i| Some((i as u32, elements.get(i)?.clone()))),
            ty if self.variants_of(&ty).is_some() => None,
            ty => self.fields_of(&ty).and_then(|fields| fields.get(name)),
        };
        match found {
            Some((index, ty)) => Ok(Expr {
                line,
                ty,
                kind: ExprKind::Field(Box::new(base), index),
            }),
            None => Err(self.error(
                line,
                format!("`{}` has no field `{name}`", self.show(&base.ty)),
                "",
            )),
        }
    }

    /// The type that a literal or a pattern names.
    pub(super) fn struct_type(&mut self, name: &StructName, line: u32) -> Result<Ty> {
        match name {
            StructName::Variant(member) => self.named_variant(member, line).map(|found| found.ty),
            StructName::SelfType => self.ty(&syntax::Type::SelfType, line),
            StructName::Range(closed) => {
                let of = Generic::Type(self.types.var(Kind::General));
                Ok(self.types.instance(&GenericStruct::range(*closed), &[of], false))
            }
            StructName::Steps => {
                let of = Generic::Type(self.types.var(Kind::General));
                let count = Generic::Type(Ty::USIZE);
                Ok(self.types.instance(&GenericStruct::steps(), &[of, count], false))
            }
            StructName::Path(path) => match path_meaning(&self.loaded, path.0, line)? {
                Resolved::Type(desc) => Ok(Ty::from_desc(desc)),
                Resolved::GenericStruct(of) => {
                    let (of, loaded) = (of.clone(), self.loaded.clone());
                    let args = loaded.tree.path(*path).map_or(&[][..], syntax::PathRef::args);
                    self.named_instance(&of, args, line)
                }
                other => Err(not_a(&self.loaded, path.0, line, "a struct", other)),
            },
        }
    }

    pub(super) fn struct_literal(
        &mut self,
        name: &StructName,
        fields: &[(String, syntax::Expr)],
        base: Option<&syntax::Expr>,
        line: u32,
    ) -> Result<Expr> {
        if let StructName::Variant(member) = name {
            return self.variant_literal(member, fields, line);
        }
        let ty = self.struct_type(name, line)?;
        let Some(known) = self.fields_of(&ty) else {
            return Err(self.error(line, format!("`{}` is not a struct", self.show(&ty)), ""));
        };
        let checked = self.given_fields(&known, fields)?;
        let base = match base {
            Some(base) => Some(Box::new(self.expr_as(base, &ty)?)),
            None => match self.missing_field(&known, &checked) {
                Some(field) => return Err(self.no_value(&known, field, line)),
                None => None,
            },
        };
        Ok(Expr {
            line,
            ty,
            kind: ExprKind::Struct(checked, base),
        })
    }

    /// The fields of a literal with their indices, in the order written.
    pub(super) fn given_fields(
        &mut self,
        known: &Fields,
        fields: &[(String, syntax::Expr)],
    ) -> Result<Vec<(u32, Expr)>> {
        let mut checked: Vec<(u32, Expr)> = Vec::with_capacity(fields.len());
        for (field, value) in fields {
            let line = value.line;
            let Some((index, field_ty)) = known.get(field) else {
                return Err(self.error(line, format!("`{}` has no field `{field}`", known.name), ""));
            };
            if checked.iter().any(|(i, _)| *i == index) {
                return Err(self.error(line, format!("the field `{field}` is given twice"), ""));
            }
            let value = self.expr_as(value, &field_ty)?;
            checked.push((index, value));
        }
        Ok(checked)
    }

    /// The first field of a literal that is not given.
    pub(super) fn missing_field<'f>(&self, known: &'f Fields, given: &[(u32, Expr)]) -> Option<&'f str> {
        let missing = |index: &u32| !given.iter().any(|(given, _)| given == index);
        let mut fields = (0u32..).zip(&known.all);
        fields
            .find(|(index, _)| missing(index))
            .map(|(_, (field, _))| field.as_str())
    }

    pub(super) fn no_value(&self, known: &Fields, field: &str, line: u32) -> LowerError {
        self.error(
            line,
            format!("the field `{field}` of `{}` has no value", known.name),
            "give it one",
        )
    }
}
