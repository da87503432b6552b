//! Types with variants, `Option`, `Result` and the user's enums with data, as the parts that they are: which variant it is, and what
//! each variant holds, one behind the other. Where a value is of another variant, parts are zero.

use half::{bf16, f16};
use perpetua_syntax as syntax;
use perpetua_syntax::{Scalar, Variant};

use super::instance::Fields;
use super::signature::{last_name, path_meaning};
use super::tree::{Block, Expr, ExprKind, FloatBounds, Pat, Stmt, StmtKind};
use super::ty::Ty;
use super::{Checker, Result};
use crate::front::rust::describe::{ConstValue, TypeDesc, VariantDesc};
use crate::front::rust::resolve::Resolved;

/// A variant among the parts of its type.
#[derive(Clone, Copy, Debug)]
pub(super) struct VariantParts {
    /// Its number.
    number: u32,
    /// Where its own parts begin.
    first: usize,
    /// How many parts the type has in all.
    parts: usize,
}

impl From<Variant> for VariantParts {
    fn from(variant: Variant) -> VariantParts {
        let (number, first, parts) = match variant {
            Variant::None => (0, 1, 2),
            Variant::Some => (1, 1, 2),
            Variant::Err => (0, 2, 3),
            Variant::Ok => (1, 1, 3),
        };
        VariantParts { number, first, parts }
    }
}

impl VariantParts {
    /// The variant's pattern, over the parts.
    pub(super) fn pattern(self, fields: Vec<Pat>) -> Pat {
        let number = Some(i128::from(self.number));
        let mut parts = vec![Pat::Wild; self.parts];
        for (part, field) in parts.iter_mut().skip(self.first).zip(fields) {
            *part = field;
        }
        if let Some(tag) = parts.first_mut() {
            *tag = Pat::Range(number, number);
        }
        Pat::Tuple(parts)
    }
}

/// The pattern of a variant of `Option` or `Result`.
pub(super) fn variant_pat(variant: Variant, payload: Pat) -> Pat {
    let payload = Some(payload).filter(|_| variant != Variant::None);
    VariantParts::from(variant).pattern(payload.into_iter().collect())
}

/// A variant of a user's enum with data.
pub(super) struct OwnVariant {
    /// The enum.
    pub(super) ty: Ty,
    pub(super) at: VariantParts,
    /// The enum's name and the variant's, and the variant's fields.
    pub(super) own: Fields,
    /// The types of all parts.
    all: Vec<Ty>,
}

impl Checker<'_> {
    /// A variant: which one, and its fields; `types` are those of all parts.
    pub(super) fn made(
        &self,
        at: VariantParts,
        fields: Vec<Expr>,
        types: impl IntoIterator<Item = Ty>,
        ty: &Ty,
        line: u32,
    ) -> Expr {
        let zero = |ty| self.make(line, ty, ExprKind::Zero);
        let mut parts: Vec<Expr> = types.into_iter().map(zero).collect();
        for (part, field) in parts.iter_mut().skip(at.first).zip(fields) {
            *part = field;
        }
        if let Some(tag) = parts.first_mut() {
            tag.kind = match tag.ty {
                Ty::BOOL => ExprKind::Bool(at.number != 0),
                _ => ExprKind::Int(at.number.into()),
            };
        }
        self.make(line, ty.clone(), ExprKind::Tuple(parts))
    }

    /// A variant of `Option` or `Result` with its payload.
    pub(super) fn variant_of(&self, variant: Variant, payload: Option<Expr>, ty: &Ty, line: u32) -> Expr {
        let types = match self.types.shallow(ty) {
            Ty::Option(some) => vec![Ty::BOOL, (*some).clone()],
            Ty::Result(ok, err) => vec![Ty::BOOL, (*ok).clone(), (*err).clone()],
            _ => vec![Ty::BOOL],
        };
        self.made(variant.into(), payload.into_iter().collect(), types, ty, line)
    }

    /// The variants of an enum with data; `None` of other types.
    pub(super) fn variants_of(&self, ty: &Ty) -> Option<Vec<VariantDesc>> {
        let variants = match self.types.shallow(ty) {
            Ty::Struct(desc) => desc.variants.clone(),
            Ty::Instance(of, _) => of.variants.clone(),
            _ => Vec::new(),
        };
        (!variants.is_empty()).then_some(variants)
    }

    /// The variant of this name of a user's enum with data; `None` where it is something else.
    pub(super) fn own_variant(&self, ty: &Ty, name: &str) -> Option<OwnVariant> {
        let variants = self.variants_of(ty)?;
        let (number, variant) = (0..).zip(&variants).find(|(_, variant)| variant.name == name)?;
        let fields = self.fields_of(ty)?;
        let own = fields.all.get(variant.fields.clone())?.to_vec();
        let mut all: Vec<Ty> = fields.all.into_iter().map(|(_, ty)| ty).collect();
        if let Some(tag) = all.first_mut() {
            *tag = Ty::U32;
        }
        Some(OwnVariant {
            ty: ty.clone(),
            at: VariantParts {
                number,
                first: variant.fields.start,
                parts: all.len(),
            },
            own: Fields {
                name: format!("{}::{name}", fields.name),
                all: own,
            },
            all,
        })
    }

    /// The variant that a literal or a pattern names.
    pub(super) fn named_variant(&mut self, member: &syntax::TypeMember, line: u32) -> Result<OwnVariant> {
        let ty = self.ty(&member.ty, line)?;
        self.own_variant(&ty, &member.name).ok_or_else(|| {
            let shown = self.show(&ty);
            self.error(
                line,
                format!("`{shown}` has no variant `{}` with data", member.name),
                "",
            )
        })
    }

    /// A variant that holds nothing, as a value.
    pub(super) fn unit_variant(&self, ty: &Ty, name: &str, line: u32) -> Option<Expr> {
        let found = self
            .own_variant(ty, name)
            .filter(|found| found.own.all.is_empty())?;
        Some(self.made(found.at, Vec::new(), found.all, ty, line))
    }

    /// The pattern of a variant that holds nothing; `None` where the name is something else.
    pub(super) fn unit_pattern(&mut self, own: &Ty, name: &str, met: &Ty, line: u32) -> Result<Option<Pat>> {
        let found = self
            .own_variant(own, name)
            .filter(|found| found.own.all.is_empty());
        let Some(found) = found else {
            return Ok(None);
        };
        self.unify(line, met, &found.ty)?;
        Ok(Some(found.at.pattern(Vec::new())))
    }

    /// The same of a path whose enum takes its arguments from elsewhere.
    pub(super) fn generic_pattern(
        &mut self,
        path: syntax::PathId,
        met: &Ty,
        line: u32,
    ) -> Result<Option<Pat>> {
        let loaded = self.loaded.clone();
        match path_meaning(&loaded, path.0, line)? {
            Resolved::GenericStruct(of) => {
                let own = self.named_instance(of, &[], line)?;
                self.unit_pattern(&own, &last_name(&loaded, path.0), met, line)
            }
            _ => Ok(None),
        }
    }

    /// `Shape::Circle(r)`, `Shape::Rect { w, h }`.
    pub(super) fn variant_literal(
        &mut self,
        member: &syntax::TypeMember,
        fields: &[(String, syntax::Expr)],
        line: u32,
    ) -> Result<Expr> {
        let found = self.named_variant(member, line)?;
        let checked = self.given_fields(&found.own, fields)?;
        if let Some(field) = self.missing_field(&found.own, &checked) {
            return Err(self.no_value(&found.own, field, line));
        }
        let mut before = Vec::new();
        let in_order = checked.iter().map(|(index, _)| *index).is_sorted()
            || checked.iter().all(|(_, value)| is_constant(value));
        let mut values: Vec<(u32, Expr)> = Vec::with_capacity(checked.len());
        for (index, value) in checked {
            // They are computed in the order written.
            let value = match in_order {
                true => value,
                false => {
                    let id = self.hidden(value.ty.clone(), line);
                    let kind = StmtKind::Let(Pat::Binding(id), Some(value));
                    before.push(Stmt { line, kind });
                    self.local(id, line)
                }
            };
            values.push((index, value));
        }
        values.sort_by_key(|(index, _)| *index);
        let values = values.into_iter().map(|(_, value)| value).collect();
        let made = self.made(found.at, values, found.all, &found.ty, line);
        if before.is_empty() {
            return Ok(made);
        }
        let block = Block {
            stmts: before,
            value: Some(Box::new(made)),
        };
        Ok(self.make(line, found.ty, ExprKind::Block(None, block)))
    }
}

/// Whether an expression gives the same whenever it is computed.
fn is_constant(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::Constant(..)
        | ExprKind::Len(_) => true,
        ExprKind::Neg(inner) | ExprKind::Not(inner) | ExprKind::Cast(inner) => is_constant(inner),
        ExprKind::Binary(_, left, right) => is_constant(left) && is_constant(right),
        ExprKind::Tuple(parts) | ExprKind::Array(parts) => parts.iter().all(is_constant),
        _ => false,
    }
}

/// A constant as a pattern; `None` where it holds what patterns do not compare.
pub(super) fn constant_pat(value: &ConstValue) -> Option<Pat> {
    let all = |values: &[ConstValue]| values.iter().map(constant_pat).collect::<Option<Vec<_>>>();
    Some(match value {
        ConstValue::Scalar(s, bits) if s.is_float() => {
            let digits = match s {
                Scalar::F32 => f32::from_bits(*bits as u32).to_string(),
                Scalar::F16 => f16::from_bits(*bits as u16).to_string(),
                Scalar::Bf16 => bf16::from_bits(*bits as u16).to_string(),
                _ => f64::from_bits(*bits).to_string(),
            };
            Pat::Floats(FloatBounds::Equal(digits))
        }
        ConstValue::Scalar(s, bits) => {
            let integer = super::consteval::as_integer(*s, *bits)?;
            Pat::Range(Some(integer), Some(integer))
        }
        ConstValue::Wide(s, bits) => {
            let integer = match s {
                Scalar::I128 => *bits as i128,
                _ => i128::try_from(*bits).ok()?,
            };
            Pat::Range(Some(integer), Some(integer))
        }
        ConstValue::Enum(_, number) => Pat::Range(Some(*number), Some(*number)),
        // What the other variants hold is nothing that a value of this one has.
        ConstValue::Struct(desc, values) if !desc.variants.is_empty() => {
            let Some(Pat::Range(Some(number), _)) = values.first().and_then(constant_pat) else {
                return None;
            };
            let variant = desc.variants.get(usize::try_from(number).ok()?)?;
            VariantParts {
                number: u32::try_from(number).ok()?,
                first: variant.fields.start,
                parts: values.len(),
            }
            .pattern(all(values.get(variant.fields.clone())?)?)
        }
        ConstValue::Standard(ty, values) => {
            let good = matches!(values.first(), Some(ConstValue::Scalar(_, 1)));
            let variant = match (ty, good) {
                (TypeDesc::Option(_), true) => Variant::Some,
                (TypeDesc::Option(_), false) => Variant::None,
                (_, true) => Variant::Ok,
                (_, false) => Variant::Err,
            };
            let held = values.get(VariantParts::from(variant).first..)?.first();
            variant_pat(variant, held.map_or(Some(Pat::Wild), constant_pat)?)
        }
        ConstValue::Struct(_, values) | ConstValue::Tuple(values) | ConstValue::Array(_, values) => {
            Pat::Tuple(all(values)?)
        }
    })
}
