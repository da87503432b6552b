//! Generic structs: what an instance's fields are while its arguments are not known.

use std::rc::Rc;
use std::sync::Arc;

use perpetua_syntax as syntax;
use perpetua_syntax::Scalar;

use super::Checker;
use super::consteval::as_integer;
use super::ty::{Generic, Kind, Len, Mismatch, Ty, Unifier};
use crate::front::rust::describe::{FieldType, GenericStruct, StructDesc, TypeArg};

impl Generic {
    fn of_arg(arg: &TypeArg) -> Generic {
        match arg {
            TypeArg::Type(ty) => Generic::Type(Ty::from_desc(ty)),
            TypeArg::Const(bits) => Generic::Len(Len::Known(*bits)),
        }
    }

    fn to_arg(&self) -> Option<TypeArg> {
        match self {
            Generic::Type(ty) => Some(TypeArg::Type(ty.to_desc()?)),
            constant => match constant.as_len()? {
                Len::Known(bits) => Some(TypeArg::Const(bits)),
                Len::Var(_) => None,
            },
        }
    }

    /// A constant of any type as a length has it: a variable, or bits.
    fn as_len(&self) -> Option<Len> {
        match self {
            Generic::Type(_) => None,
            Generic::Len(len) => Some(*len),
            Generic::Value(value) => Some(Len::Known(*value as u64)),
        }
    }

    /// An argument of the parameter with nothing unknown; of a constant its value.
    pub(crate) fn settled(self, param: &syntax::Generic) -> Generic {
        match (self, param) {
            (Generic::Len(Len::Known(bits)), syntax::Generic::Const { ty, .. }) if *ty != Scalar::Usize => {
                as_integer(*ty, bits).map_or(Generic::Len(Len::Known(bits)), Generic::Value)
            }
            (known, _) => known,
        }
    }
}

/// The generic struct that a struct is an instance of, with its arguments.
fn instance_of(desc: &StructDesc) -> Option<(Arc<GenericStruct>, Vec<Generic>)> {
    let (of, args) = desc.of.as_ref()?;
    Some((of.clone(), args.iter().map(Generic::of_arg).collect()))
}

impl Unifier {
    /// A generic struct with arguments: a struct like others once these are known.
    pub(crate) fn instance(&self, of: &Arc<GenericStruct>, args: &[Generic], defaults: bool) -> Ty {
        let args: Rc<[Generic]> = args.iter().map(|arg| self.argument(arg, defaults)).collect();
        let known = args.iter().map(Generic::to_arg).collect::<Option<_>>();
        match known.and_then(|known| of.instance(known)) {
            Some(desc) => Ty::from_desc(&desc),
            None => Ty::Instance(of.clone(), args),
        }
    }

    /// The argument with all that is known.
    pub(crate) fn argument(&self, arg: &Generic, defaults: bool) -> Generic {
        match arg {
            Generic::Type(ty) => Generic::Type(self.deep(ty, defaults)),
            Generic::Len(len) => Generic::Len(self.len(*len)),
            Generic::Value(value) => Generic::Value(*value),
        }
    }

    /// Makes two types equal of which one is an instance whose arguments are not all known.
    pub(super) fn unify_instances(&mut self, a: &Ty, b: &Ty) -> std::result::Result<(), Mismatch> {
        let parts = |ty: &Ty| match ty {
            Ty::Instance(of, args) => Some((of.clone(), args.to_vec())),
            Ty::Struct(desc) => instance_of(desc),
            _ => None,
        };
        let (Some((of, a)), Some((other, b))) = (parts(a), parts(b)) else {
            return Err(Mismatch);
        };
        if of != other {
            return Err(Mismatch);
        }
        a.iter().zip(&b).try_for_each(|(a, b)| self.unify_arguments(a, b))
    }

    fn unify_arguments(&mut self, a: &Generic, b: &Generic) -> std::result::Result<(), Mismatch> {
        match (a, b) {
            (Generic::Type(a), Generic::Type(b)) => self.unify(a, b),
            _ => match (a.as_len(), b.as_len()) {
                (Some(a), Some(b)) => self.unify_len(a, b),
                _ => Err(Mismatch),
            },
        }
    }
}

/// What a generic struct's field, or a part of its type, is.
fn field_type(ty: &FieldType, args: &[Generic], types: &Unifier) -> Option<Generic> {
    let inner = |ty| field_type(ty, args, types);
    Some(match ty {
        FieldType::Known(desc) => Generic::Type(Ty::from_desc(desc)),
        FieldType::Const(bits) => Generic::Len(Len::Known(*bits)),
        FieldType::Param(index) => args.get(*index)?.clone(),
        FieldType::Array(parts) => match (inner(&parts.0)?, inner(&parts.1)?) {
            (Generic::Type(element), Generic::Len(len)) => Generic::Type(Ty::Array(Rc::new(element), len)),
            _ => return None,
        },
        FieldType::Tuple(parts) => {
            let parts = parts.iter().map(|part| match inner(part)? {
                Generic::Type(part) => Some(part),
                _ => None,
            });
            Generic::Type(Ty::Tuple(parts.collect::<Option<_>>()?))
        }
        FieldType::Option(some) => match inner(some)? {
            Generic::Type(some) => Generic::Type(Ty::Option(Rc::new(some))),
            _ => return None,
        },
        FieldType::Result(both) => match (inner(&both[0])?, inner(&both[1])?) {
            (Generic::Type(ok), Generic::Type(err)) => Generic::Type(Ty::Result(Rc::new(ok), Rc::new(err))),
            _ => return None,
        },
        FieldType::Instance(other, given) => {
            let given = given.iter().map(inner).collect::<Option<Vec<_>>>()?;
            Generic::Type(types.instance(other, &given, false))
        }
    })
}

/// A struct's name and its fields, for literals and patterns.
pub(super) struct Fields {
    pub(super) name: String,
    pub(super) all: Vec<(String, Ty)>,
}

impl Fields {
    /// The field of this name.
    pub(super) fn get(&self, name: &str) -> Option<(u32, Ty)> {
        let index = self.all.iter().position(|(field, _)| field == name)?;
        Some((index as u32, self.all.get(index)?.1.clone()))
    }
}

impl Unifier {
    /// A variable for a parameter.
    pub(super) fn any(&mut self, param: &syntax::Generic) -> Generic {
        match param {
            syntax::Generic::Type { .. } => Generic::Type(self.var(Kind::General)),
            syntax::Generic::Const { .. } => Generic::Len(self.len_var()),
        }
    }
}

impl Checker<'_> {
    /// A struct's fields; `None` of other types.
    pub(super) fn fields_of(&self, ty: &Ty) -> Option<Fields> {
        match self.types.shallow(ty) {
            Ty::Struct(desc) => Some(Fields {
                name: desc.name.clone(),
                all: desc
                    .fields
                    .iter()
                    .map(|f| (f.name.clone(), Ty::from_desc(&f.ty)))
                    .collect(),
            }),
            Ty::Instance(of, args) => {
                let fields = of
                    .fields
                    .iter()
                    .map(|(name, ty)| match field_type(ty, &args, &self.types)? {
                        Generic::Type(ty) => Some((name.clone(), ty)),
                        _ => None,
                    });
                Some(Fields {
                    name: of.name.clone(),
                    all: fields.collect::<Option<_>>()?,
                })
            }
            _ => None,
        }
    }
}
