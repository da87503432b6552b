//! Types as written, and the generic arguments of calls.

use std::rc::Rc;
use std::sync::Arc;

use perpetua_syntax as syntax;
use perpetua_syntax::{GenericArg, Scalar};

use super::consteval::evaluate;
use super::tree::Loaded;
use super::ty::{Generic, Kind, Len, Ty, Unifier};
use super::{Checker, Program, Result};
use crate::front::rust::describe::{ConstValue, GenericStruct, TypeParam};
use crate::front::rust::resolve::Resolved;
use crate::front::rust::resolve::members::MemberKind;

/// The type that syntax of the function `loaded` means, its generic parameters standing for `generics`.
pub(crate) fn convert_type(
    program: &Program,
    loaded: &Rc<Loaded>,
    generics: &[Generic],
    types: &mut Unifier,
    ty: &syntax::Type,
    line: u32,
) -> Result<Ty> {
    let again = |types: &mut Unifier, ty| convert_type(program, loaded, generics, types, ty, line);
    Ok(match ty {
        syntax::Type::Unit => Ty::unit(),
        syntax::Type::Infer => types.var(Kind::General),
        syntax::Type::Scalar(s) => Ty::Scalar(*s),
        syntax::Type::Ref { mutable, target } => Ty::Ref(*mutable, Rc::new(again(types, target)?)),
        syntax::Type::Slice(element) => Ty::Slice(Rc::new(again(types, element)?)),
        syntax::Type::Array { element, len } => {
            let element = again(types, element)?;
            Ty::Array(Rc::new(element), convert_len(program, loaded, generics, len)?)
        }
        syntax::Type::Tuple(elements) => Ty::Tuple(
            elements
                .iter()
                .map(|e| again(types, e))
                .collect::<Result<Vec<_>>>()?
                .into(),
        ),
        syntax::Type::Named(path) => match path_meaning(loaded, path.0, line)? {
            Resolved::Type(desc) => Ty::from_desc(desc),
            Resolved::GenericStruct(of) => {
                let args = loaded.tree.path(*path).map_or(&[][..], syntax::PathRef::args);
                instance_written(program, loaded, generics, types, of, args, line)?
            }
            other => return Err(not_a(loaded, path.0, line, "a type", other)),
        },
        syntax::Type::Generic(index) => match generics.get(*index as usize) {
            Some(Generic::Type(ty)) => ty.clone(),
            _ => {
                let name = loaded
                    .tree
                    .generics
                    .get(*index as usize)
                    .map_or("?", syntax::Generic::name);
                return Err(loaded.error(
                    line,
                    format!("generic parameter `{name}` of `{}` has no type", loaded.tree.name),
                    "give it in the instantiation",
                ));
            }
        },
        syntax::Type::SelfType => match (&loaded.tree.own, loaded.names.self_type()) {
            (Some(own), _) => again(types, &own.ty)?,
            (None, Some(desc)) => Ty::from_desc(desc),
            (None, None) => return Err(loaded.error(line, "`Self` has no meaning here", "name the type")),
        },
        syntax::Type::Option(some) => Ty::Option(Rc::new(again(types, some)?)),
        syntax::Type::Result(parts) => {
            Ty::Result(Rc::new(again(types, &parts.0)?), Rc::new(again(types, &parts.1)?))
        }
        syntax::Type::Assoc(member) => {
            let base = again(types, &member.ty)?;
            associated(program, loaded, types, &base, member, line)?
        }
        syntax::Type::Range(of, closed) => {
            let of = Generic::Type(again(types, of)?);
            types.instance(&GenericStruct::range(*closed), &[of], false)
        }
        syntax::Type::GridPos => Ty::GridPos,
    })
}

/// The type `name` that belongs to `base`.
fn associated(
    program: &Program,
    loaded: &Loaded,
    types: &mut Unifier,
    base: &Ty,
    member: &syntax::TypeMember,
    line: u32,
) -> Result<Ty> {
    let (via, name) = (member.via.as_deref(), member.name.as_str());
    // What bounds a type parameter says whose type of the name is meant.
    let bounds: Vec<&str> = match (via, &member.ty) {
        (Some(via), _) => vec![via],
        (None, syntax::Type::Generic(index)) => {
            let param = loaded.tree.generics.get(*index as usize);
            param.map_or_else(Vec::new, |param| param.traits().collect())
        }
        _ => Vec::new(),
    };
    let bound = |of: &Option<String>| of.as_deref().is_some_and(|of| bounds.contains(&of));
    let mut found = associated_of(program, loaded, types, base, name, &bound, line)?;
    // Those of a bound's own bounds; an operator of two scalars gives what it takes, whatever else a scalar is multiplied with.
    let scalar = matches!(types.deep(base, false), Ty::Scalar(_)) && name == "Output";
    if found.is_empty() && via.is_none() {
        let operators = |of: &Option<String>| {
            let of_operator = |of: &String| !syntax::operator_functions(of).is_empty();
            !(scalar && of.as_ref().is_some_and(of_operator))
        };
        found = associated_of(program, loaded, types, base, name, &operators, line)?;
    }
    let shown = types.show(base);
    match &found[..] {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => Ok(first.clone()),
        [] => match types.deep(base, false).to_desc() {
            None => Err(loaded.error(
                line,
                format!("`{shown}::{name}` is not known before its type is"),
                "give the generic arguments of the call: `f::<T>(…)`",
            )),
            Some(_) if scalar => Ok(base.clone()),
            Some(_) => Err(loaded.error(
                line,
                format!("`{shown}` has no type `{name}` that kernels can use"),
                "write `#[device]` before the `impl` block that has it",
            )),
        },
        _ => Err(loaded.error(
            line,
            format!("`{shown}::{name}` may be several types"),
            format!("name the trait: `<{shown} as Trait>::{name}`"),
        )),
    }
}

/// The types `name` of `base`, of the traits that `wanted` takes.
fn associated_of(
    program: &Program,
    loaded: &Loaded,
    types: &mut Unifier,
    base: &Ty,
    name: &str,
    wanted: &dyn Fn(&Option<String>) -> bool,
    line: u32,
) -> Result<Vec<Ty>> {
    let mut all = Vec::new();
    if let Some(desc) = types.deep(base, false).to_desc() {
        for member in loaded.members.get(&desc, name) {
            if let Resolved::Type(desc) = &member.meaning
                && wanted(&member.of_trait)
            {
                all.push(Ty::from_desc(desc));
            }
        }
    }
    for member in loaded.members.generic(name) {
        if member.kind == MemberKind::Type && wanted(&member.of_trait) {
            let alias = program.load(&member.definition)?;
            if let Some(generics) = block_arguments(program, &alias, types, base)
                && let Some(ty) = &alias.tree.ret
            {
                let ty = convert_type(program, &alias, &generics, types, ty, line)?;
                all.push(types.deep(&ty, false));
            }
        }
    }
    Ok(all)
}

/// The length that an expression of the function `loaded` means.
pub(crate) fn convert_len(
    program: &Program,
    loaded: &Rc<Loaded>,
    generics: &[Generic],
    len: &syntax::Expr,
) -> Result<Len> {
    match &len.kind {
        syntax::ExprKind::Int { value, .. } => {
            if let Ok(n) = u64::try_from(*value) {
                return Ok(Len::Known(n));
            }
        }
        syntax::ExprKind::ConstParam(index) => {
            if let Some(Generic::Len(len)) = generics.get(*index as usize) {
                return Ok(*len);
            }
        }
        _ => {}
    }
    match constant(program, loaded, generics, len, &Ty::USIZE)? {
        ConstValue::Scalar(_, bits) => Ok(Len::Known(bits)),
        _ => Err(loaded.error(
            len.line,
            "an array's length is not a number",
            "write a constant of type usize",
        )),
    }
}

/// The value of a constant expression of the function `loaded`.
pub(crate) fn constant(
    program: &Program,
    loaded: &Rc<Loaded>,
    generics: &[Generic],
    expr: &syntax::Expr,
    ty: &Ty,
) -> Result<ConstValue> {
    let mut checker = Checker::new(program, loaded.clone(), generics.to_vec());
    let checked = checker.expr_as(expr, ty)?;
    evaluate(program, &checked, &checker.types)
        .map_err(|e| loaded.error(e.line, e.cause, "constants are computed from constants"))
}

/// What a path of the function means; an error where nobody said.
pub(crate) fn path_meaning(loaded: &Loaded, path: u32, line: u32) -> Result<&Resolved> {
    match loaded.names.path(path) {
        Some(Resolved::Refused { cause, remedy }) => Err(loaded.error(line, cause.clone(), remedy.clone())),
        Some(meaning) => Ok(meaning),
        None => Err(loaded.error(
            line,
            format!("`{}` is not known here", path_text(loaded, path)),
            "kernels use constants, types with `#[derive(GpuType)]` and functions with `#[device]`",
        )),
    }
}

/// A path as written.
pub(crate) fn path_text(loaded: &Loaded, path: u32) -> String {
    loaded
        .tree
        .paths
        .get(path as usize)
        .map_or_else(String::new, syntax::PathRef::text)
}

/// A path's last name.
pub(crate) fn last_name(loaded: &Loaded, path: u32) -> String {
    let path = loaded.tree.paths.get(path as usize);
    let last = path.and_then(|path| path.segments.last());
    last.map_or_else(String::new, |segment| segment.name.clone())
}

/// The error of a path that means something else.
pub(crate) fn not_a(
    loaded: &Loaded,
    path: u32,
    line: u32,
    what: &str,
    found: &Resolved,
) -> crate::front::rust::LowerError {
    let is = match found {
        Resolved::Const(_) => "a constant",
        Resolved::Computed(_) => "what a function gives",
        Resolved::Type(_) | Resolved::GenericStruct(_) => "a type",
        Resolved::Device(_) => "a function",
        Resolved::Refused { .. } => "not usable",
    };
    loaded.error(
        line,
        format!("`{}` is {is}, not {what}", path_text(loaded, path)),
        "",
    )
}

impl Checker<'_> {
    /// A generic struct as a path of this function names it, with the arguments that stand there.
    pub(super) fn named_instance(
        &mut self,
        of: &Arc<GenericStruct>,
        args: &[GenericArg],
        line: u32,
    ) -> Result<Ty> {
        let (program, loaded, generics) = (self.program, self.loaded.clone(), self.generics.clone());
        instance_written(program, &loaded, &generics, &mut self.types, of, args, line)
    }

    /// Generic arguments for a call of `callee`: those written, new variables for the others.
    pub(super) fn call_generics(
        &mut self,
        callee: &Loaded,
        written: &[GenericArg],
        line: u32,
    ) -> Result<Vec<Generic>> {
        let params = &callee.tree.generics;
        let outer = callee.tree.own.as_ref().map_or(0, |own| own.generics as usize);
        let named = callee.tree.written_generics().len();
        if !written.is_empty() && written.len() != named {
            return Err(self.error(
                line,
                format!(
                    "`{}` takes {} generic arguments, {} were given",
                    callee.tree.name,
                    named,
                    written.len()
                ),
                "give all of them or none",
            ));
        }
        let mut generics = Vec::new();
        for (i, param) in params.iter().enumerate() {
            let given = i.checked_sub(outer).and_then(|i| written.get(i));
            generics.push(match param {
                syntax::Generic::Type { .. } => match given {
                    None => Generic::Type(self.types.var(Kind::General)),
                    Some(GenericArg::Type(ty)) => Generic::Type(self.ty(ty, line)?),
                    Some(GenericArg::Const(_)) => {
                        return Err(self.error(
                            line,
                            format!("a constant stands where `{}` takes a type", param.name()),
                            "",
                        ));
                    }
                },
                syntax::Generic::Const { ty, .. } => match given {
                    None | Some(GenericArg::Type(syntax::Type::Infer)) => Generic::Len(self.types.len_var()),
                    Some(given) => {
                        let (program, loaded) = (self.program, self.loaded.clone());
                        const_argument(program, &loaded, &self.generics, *ty, param.name(), given, line)?
                    }
                },
            });
        }
        Ok(generics)
    }

    /// Generic arguments for a call of `callee`, which belongs to a generic block or a trait, and there to the type `own`.
    pub(super) fn bind_own(
        &mut self,
        callee: &Rc<Loaded>,
        generics: &[Generic],
        own: &Ty,
        line: u32,
    ) -> Result<()> {
        let ty = convert_type(
            self.program,
            callee,
            generics,
            &mut self.types,
            &syntax::Type::SelfType,
            line,
        )?;
        self.unify(line, &ty, own)
    }
}

/// The const argument `given` of a parameter, written in the function `loaded`.
pub(super) fn const_argument(
    program: &Program,
    loaded: &Rc<Loaded>,
    generics: &[Generic],
    ty: Scalar,
    name: &str,
    given: &GenericArg,
    line: u32,
) -> Result<Generic> {
    let value = match given {
        GenericArg::Const(expr) => match expr.kind {
            syntax::ExprKind::ConstParam(index) => match generics.get(index as usize) {
                Some(known) => return Ok(known.clone()),
                None => {
                    return Err(loaded.error(line, format!("the const argument `{name}` is not known"), ""));
                }
            },
            _ => constant(program, loaded, generics, expr, &Ty::Scalar(ty))?,
        },
        GenericArg::Type(syntax::Type::Named(path)) => match path_meaning(loaded, path.0, line)? {
            Resolved::Const(value) => value.clone(),
            other => return Err(not_a(loaded, path.0, line, "a constant", other)),
        },
        GenericArg::Type(_) => {
            return Err(loaded.error(line, format!("a type stands where `{name}` takes a constant"), ""));
        }
    };
    const_generic(&value, ty).ok_or_else(|| {
        loaded.error(
            line,
            format!(
                "the const argument `{name}` is a `{}`, not a `{}`",
                value.type_desc(),
                ty.name()
            ),
            "",
        )
    })
}

/// A constant as a generic argument of type `ty`.
pub(crate) fn const_generic(value: &ConstValue, ty: Scalar) -> Option<Generic> {
    match value {
        ConstValue::Scalar(s, bits) if *s == ty && ty == Scalar::Usize => {
            Some(Generic::Len(Len::Known(*bits)))
        }
        ConstValue::Scalar(s, bits) if *s == ty => {
            Some(Generic::Value(super::consteval::as_integer(*s, *bits)?))
        }
        ConstValue::Wide(s, bits) if *s == ty => Some(Generic::Value(*bits as i128)),
        _ => None,
    }
}

/// The generic arguments under which a generic block, or a trait's default, is one of `ty`, with variables for the function's own;
/// `None` where it is not, and then nothing is decided.
pub(super) fn block_arguments(
    program: &Program,
    loaded: &Rc<Loaded>,
    types: &mut Unifier,
    ty: &Ty,
) -> Option<Vec<Generic>> {
    let own = loaded.tree.own.as_ref()?;
    let saved = types.clone();
    let generics: Vec<Generic> = loaded
        .tree
        .generics
        .iter()
        .map(|param| types.any(param))
        .collect();
    let own = convert_type(program, loaded, &generics, types, &own.ty, 0).ok();
    if own.is_some_and(|own| types.unify(&own, ty).is_ok()) {
        return Some(generics);
    }
    *types = saved;
    None
}

/// A generic struct with the arguments that a path of the function `loaded` gives it; variables where it gives none.
pub(super) fn instance_written(
    program: &Program,
    loaded: &Rc<Loaded>,
    generics: &[Generic],
    types: &mut Unifier,
    of: &Arc<GenericStruct>,
    args: &[GenericArg],
    line: u32,
) -> Result<Ty> {
    if !args.is_empty() && args.len() != of.params.len() {
        return Err(loaded.error(
            line,
            format!(
                "`{}` takes {} arguments, {} were given",
                of.name,
                of.params.len(),
                args.len()
            ),
            "write all of them",
        ));
    }
    let mut given = Vec::with_capacity(of.params.len());
    for (i, param) in of.params.iter().enumerate() {
        given.push(match (param, args.get(i)) {
            (TypeParam::Type, None) => Generic::Type(types.var(Kind::General)),
            (TypeParam::Type, Some(GenericArg::Type(ty))) => {
                Generic::Type(convert_type(program, loaded, generics, types, ty, line)?)
            }
            (TypeParam::Type, Some(GenericArg::Const(_))) => {
                let cause = format!("a constant stands where `{}` takes a type", of.name);
                return Err(loaded.error(line, cause, ""));
            }
            (TypeParam::Const(_), None | Some(GenericArg::Type(syntax::Type::Infer))) => {
                Generic::Len(types.len_var())
            }
            (TypeParam::Const(scalar), Some(given)) => {
                const_argument(program, loaded, generics, *scalar, &of.name, given, line)?
            }
        });
    }
    Ok(types.instance(of, &given, false))
}
