//! Patterns.

use std::rc::Rc;

use perpetua_syntax as syntax;
use perpetua_syntax::{PatternConst, PatternKind, StructName};

use super::instance::Fields;
use super::signature::path_text;
use super::tree::{FloatBounds, Pat};
use super::ty::{Kind, Len, Ty};
use super::variant::VariantParts;
use super::{Checker, Result};

/// Whether what a pattern meets lies behind a reference that the pattern does not show, so that its names are references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Borrowed {
    No,
    Shared,
    Mutably,
}

impl Borrowed {
    /// Behind one reference more.
    pub(super) fn through(self, mutable: bool) -> Borrowed {
        match self {
            Borrowed::No | Borrowed::Mutably if mutable => Borrowed::Mutably,
            _ => Borrowed::Shared,
        }
    }
}

/// Whether a pattern stands for the elements that are not written, by a name or without.
fn is_rest(pattern: &syntax::Pattern) -> bool {
    match &pattern.kind {
        PatternKind::Rest => true,
        PatternKind::At { pattern, .. } => pattern.kind == PatternKind::Rest,
        _ => false,
    }
}

impl Checker<'_> {
    /// Checks a pattern against the type that it meets, and declares its names in the present scope.
    pub(super) fn pattern(&mut self, pattern: &syntax::Pattern, ty: &Ty, borrowed: Borrowed) -> Result<Pat> {
        let line = pattern.line;
        if let Ty::Ref(mutable, target) = self.types.shallow(ty)
            && !matches!(
                pattern.kind,
                PatternKind::Wild | PatternKind::Binding { .. } | PatternKind::At { .. }
            )
        {
            let (inner, borrowed) = match &pattern.kind {
                PatternKind::Ref(inner) => (&**inner, Borrowed::No),
                _ => (pattern, borrowed.through(mutable)),
            };
            return Ok(Pat::Deref(Box::new(self.pattern(inner, &target, borrowed)?)));
        }
        Ok(match &pattern.kind {
            PatternKind::Wild | PatternKind::Rest => Pat::Wild,
            PatternKind::Binding { name, mutable } => self.binding(name, ty, *mutable, borrowed, line),
            PatternKind::At {
                name,
                mutable,
                pattern,
            } => {
                let binding = self.binding(name, ty, *mutable, borrowed, line);
                Pat::At(Box::new(binding), Box::new(self.pattern(pattern, ty, borrowed)?))
            }
            PatternKind::Ref(inner) if borrowed != Borrowed::No => self.pattern(inner, ty, Borrowed::No)?,
            // Of a constant that is a reference, the value alone is known here.
            PatternKind::Ref(inner) if !matches!(self.types.shallow(ty), Ty::Ref(..) | Ty::Var(_)) => {
                self.pattern(inner, ty, Borrowed::No)?
            }
            PatternKind::Ref(inner) => {
                let target = self.types.var(Kind::General);
                self.unify(line, ty, &Ty::Ref(false, Rc::new(target.clone())))?;
                Pat::Deref(Box::new(self.pattern(inner, &target, Borrowed::No)?))
            }
            PatternKind::Variant { variant, payload } => {
                self.variant_pattern(*variant, payload.as_deref(), ty, borrowed, line)?
            }
            PatternKind::Struct { name, fields, rest } => {
                self.struct_pattern(name, fields, *rest, ty, borrowed, line)?
            }
            PatternKind::TupleStruct { name, parts } => {
                let (known, variant) = self.taken_apart(name, ty, line)?;
                let types: Vec<Ty> = known.all.into_iter().map(|(_, ty)| ty).collect();
                let rest = parts.iter().any(|part| part.kind == PatternKind::Rest);
                if parts.len() != types.len() && !(rest && parts.len() <= types.len() + 1) {
                    return Err(self.error(
                        line,
                        format!(
                            "a pattern of {} fields meets `{}`, which has {}",
                            parts.len(),
                            known.name,
                            types.len()
                        ),
                        "write `..` for the others",
                    ));
                }
                let parts = self.parts(parts, &types, borrowed)?;
                match variant {
                    Some(variant) => variant.pattern(parts),
                    None => Pat::Tuple(parts),
                }
            }
            PatternKind::Array(parts) => self.array_pattern(parts, ty, borrowed, line)?,
            PatternKind::Const(PatternConst::TypeConst(member)) if member.via.is_none() => {
                let own = self.ty(&member.ty, line)?;
                match self.unit_pattern(&own, &member.name, ty, line)? {
                    Some(pattern) => pattern,
                    None => {
                        let value = self.type_constant(member, line)?;
                        self.whole_constant(&value, &member.name, ty, line)?
                    }
                }
            }
            PatternKind::Const(PatternConst::Path(path)) => match self.generic_pattern(*path, ty, line)? {
                Some(pattern) => pattern,
                None => {
                    let value = self.constant_named(*path, line)?;
                    self.whole_constant(&value, &path_text(&self.loaded, path.0), ty, line)?
                }
            },
            PatternKind::Const(PatternConst::Float { text, suffix }) => {
                self.float_met(*suffix, ty, line)?;
                Pat::Floats(FloatBounds::Equal(text.clone()))
            }
            PatternKind::Const(value) => {
                let value = self.pattern_const(value, ty, line)?;
                Pat::Range(Some(value), Some(value))
            }
            PatternKind::Range {
                start,
                end,
                inclusive,
            } if [start, end]
                .into_iter()
                .flatten()
                .any(|end| self.is_float_end(end)) =>
            {
                let mut bound = |end: &Option<PatternConst>| match end {
                    Some(end) => self.float_bound(end, ty, line).map(Some),
                    None => Ok(None),
                };
                let (start, end) = (bound(start)?, bound(end)?);
                Pat::Floats(FloatBounds::Between(start, end.map(|end| (end, *inclusive))))
            }
            PatternKind::Range {
                start,
                end,
                inclusive,
            } => {
                let start = match start {
                    Some(start) => Some(self.pattern_const(start, ty, line)?),
                    None => None,
                };
                let end = match end {
                    Some(end) => {
                        let end = self.pattern_const(end, ty, line)?;
                        Some(if *inclusive { end } else { end - 1 })
                    }
                    None => None,
                };
                if let (Some(start), Some(end)) = (start, end)
                    && start > end
                {
                    return Err(self.error(line, "the range of a pattern is empty", "swap its bounds"));
                }
                Pat::Range(start, end)
            }
            PatternKind::Or(patterns) => {
                let before = self.locals.len();
                let patterns = patterns
                    .iter()
                    .map(|p| self.pattern(p, ty, borrowed))
                    .collect::<Result<_>>()?;
                if self.locals.len() != before {
                    return Err(self.error(
                        line,
                        "a name is bound in alternatives of a pattern",
                        "match the alternatives in arms of their own",
                    ));
                }
                Pat::Or(patterns)
            }
            PatternKind::Tuple(patterns) => {
                let rest = patterns.iter().any(|part| part.kind == PatternKind::Rest);
                let elements: Rc<[Ty]> = match self.types.shallow(ty) {
                    Ty::Tuple(elements) if elements.len() == patterns.len() => elements,
                    Ty::Tuple(elements) if rest && elements.len() + 1 >= patterns.len() => elements,
                    Ty::Var(_) if !rest => {
                        let fresh: Rc<[Ty]> =
                            patterns.iter().map(|_| self.types.var(Kind::General)).collect();
                        self.unify(line, ty, &Ty::Tuple(fresh.clone()))?;
                        fresh
                    }
                    other => {
                        let shown = self.show(&other);
                        return Err(self.error(
                            line,
                            format!("a pattern of {} elements meets a `{shown}`", patterns.len()),
                            "",
                        ));
                    }
                };
                Pat::Tuple(self.parts(patterns, &elements, borrowed)?)
            }
        })
    }

    fn binding(&mut self, name: &str, ty: &Ty, mutable: bool, borrowed: Borrowed, line: u32) -> Pat {
        let mut declare = |mutable_target| {
            let ty = Ty::Ref(mutable_target, Rc::new(ty.clone()));
            self.declare(name, ty, mutable, line)
        };
        match borrowed {
            Borrowed::Mutably => Pat::BorrowMut(declare(true)),
            Borrowed::Shared => Pat::Borrow(declare(false)),
            Borrowed::No => Pat::Binding(self.declare(name, ty.clone(), mutable, line)),
        }
    }

    /// The parts of a tuple, a struct or an array, of which `..` stands for those that are not written.
    fn parts(&mut self, patterns: &[syntax::Pattern], types: &[Ty], borrowed: Borrowed) -> Result<Vec<Pat>> {
        let mut parts = vec![Pat::Wild; types.len()];
        let at = patterns.iter().position(|part| part.kind == PatternKind::Rest);
        for (i, pattern) in patterns.iter().enumerate() {
            let i = match at {
                Some(at) if i == at => continue,
                Some(at) if i > at => i + types.len() - patterns.len(),
                _ => i,
            };
            if let (Some(part), Some(ty)) = (parts.get_mut(i), types.get(i)) {
                *part = self.pattern(pattern, ty, borrowed)?;
            }
        }
        Ok(parts)
    }

    fn array_pattern(
        &mut self,
        patterns: &[syntax::Pattern],
        ty: &Ty,
        borrowed: Borrowed,
        line: u32,
    ) -> Result<Pat> {
        let at = patterns.iter().position(is_rest);
        let (element, len) = match self.types.shallow(ty) {
            Ty::Array(element, len) => {
                if at.is_none() && matches!(self.types.len(len), Len::Var(_)) {
                    let given = Len::Known(patterns.len() as u64);
                    self.unify(line, ty, &Ty::Array(element.clone(), given))?;
                }
                (element, self.known_len(len, line)?)
            }
            Ty::Slice(element) => return self.slice_pattern(patterns, at, &element, None, borrowed),
            Ty::Var(_) if at.is_none() => {
                let element = Rc::new(self.types.var(Kind::General));
                let len = patterns.len() as u64;
                self.unify(line, ty, &Ty::Array(element.clone(), Len::Known(len)))?;
                (element, len)
            }
            other => {
                let shown = self.show(&other);
                return Err(self.error(line, format!("a pattern of elements meets a `{shown}`"), ""));
            }
        };
        let given = patterns.len() as u64;
        let fits = if at.is_some() {
            given <= len + 1
        } else {
            given == len
        };
        if fits && at.is_some() && len > 256 {
            return self.slice_pattern(patterns, at, &element, Some(len), borrowed);
        }
        if !fits || len > 256 {
            let shown = self.show(ty);
            return Err(self.error(
                line,
                format!("a pattern of {given} elements meets a `{shown}`"),
                "a pattern is for all elements, or has `..`, and for 256 at most",
            ));
        }
        if at.is_some_and(|at| {
            patterns
                .get(at)
                .is_some_and(|part| part.kind != PatternKind::Rest)
        }) {
            return self.slice_pattern(patterns, at, &element, Some(len), borrowed);
        }
        let types = vec![(*element).clone(); len as usize];
        self.parts(patterns, &types, borrowed).map(Pat::Tuple)
    }

    /// A pattern of the elements of a slice, or of an array of `of` elements where those between have a name.
    fn slice_pattern(
        &mut self,
        patterns: &[syntax::Pattern],
        at: Option<usize>,
        element: &Rc<Ty>,
        of: Option<u64>,
        borrowed: Borrowed,
    ) -> Result<Pat> {
        let (front, behind) = patterns.split_at(at.unwrap_or(patterns.len()));
        let mut all = |patterns: &[syntax::Pattern]| {
            patterns
                .iter()
                .map(|part| self.pattern(part, element, borrowed))
                .collect::<Result<Vec<_>>>()
        };
        let front = all(front)?;
        let (between, back) = match behind.split_first() {
            Some((between, back)) => (Some(between), all(back)?),
            None => (None, Vec::new()),
        };
        let rest = match between.map(|between| (&between.kind, between.line)) {
            None => None,
            Some((PatternKind::At { name, mutable, .. }, line)) => {
                let n = of.map(|n| n.saturating_sub(patterns.len() as u64 - 1));
                let ty = match n {
                    Some(n) => Ty::Array(element.clone(), Len::Known(n)),
                    None => Ty::Slice(element.clone()),
                };
                let borrowed = match (borrowed, of) {
                    (Borrowed::No, None) => Borrowed::Shared,
                    (Borrowed::Mutably, Some(_)) => {
                        return Err(self.error(
                            line,
                            "a name for the rest of an array that is changed",
                            "match the slice: `&mut array[..]`",
                        ));
                    }
                    (borrowed, _) => borrowed,
                };
                let bound = self.binding(name, &ty, *mutable, borrowed, line);
                // A part of a slice is a reference already.
                Some(Box::new(match bound {
                    Pat::Borrow(id) | Pat::BorrowMut(id) if of.is_none() => Pat::Binding(id),
                    bound => bound,
                }))
            }
            Some(_) => Some(Box::new(Pat::Wild)),
        };
        Ok(Pat::Slice {
            front,
            rest,
            back,
            of,
        })
    }

    /// The fields of the struct or the variant that a pattern names; of a variant, where they are.
    fn taken_apart(
        &mut self,
        name: &StructName,
        ty: &Ty,
        line: u32,
    ) -> Result<(Fields, Option<VariantParts>)> {
        if let StructName::Variant(member) = name {
            let found = self.named_variant(member, line)?;
            self.unify(line, ty, &found.ty)?;
            return Ok((found.own, Some(found.at)));
        }
        let named = self.struct_type(name, line)?;
        self.unify(line, ty, &named)?;
        match self.fields_of(&named) {
            Some(known) => Ok((known, None)),
            None => Err(self.error(line, format!("`{}` is not a struct", self.show(&named)), "")),
        }
    }

    fn struct_pattern(
        &mut self,
        name: &StructName,
        fields: &[(String, syntax::Pattern)],
        rest: bool,
        ty: &Ty,
        borrowed: Borrowed,
        line: u32,
    ) -> Result<Pat> {
        let (known, variant) = self.taken_apart(name, ty, line)?;
        let mut parts = vec![Pat::Wild; known.all.len()];
        for (field, pattern) in fields {
            let Some((index, ty)) = known.get(field) else {
                return Err(self.error(line, format!("`{}` has no field `{field}`", known.name), ""));
            };
            let part = self.pattern(pattern, &ty, borrowed)?;
            if let Some(slot) = parts.get_mut(index as usize) {
                *slot = part;
            }
        }
        if !rest && fields.len() < parts.len() {
            return Err(self.error(
                line,
                format!(
                    "a pattern of {} fields meets `{}`, which has {}",
                    fields.len(),
                    known.name,
                    parts.len()
                ),
                "write `..` for the others",
            ));
        }
        Ok(match variant {
            Some(variant) => variant.pattern(parts),
            None => Pat::Tuple(parts),
        })
    }
}
