//! Patterns.

use std::rc::Rc;

use perpetua_syntax as syntax;
use perpetua_syntax::{PatternConst, PatternKind};

use super::consteval::as_integer;
use super::signature::{not_a, path_meaning, path_text};
use super::tree::Pat;
use super::ty::{Kind, Ty};
use super::{Checker, Result};
use crate::front::rust::describe::ConstValue;
use crate::front::rust::resolve::Resolved;

impl Checker<'_> {
    /// Checks a pattern against the type that it meets, and declares its names in the present scope.
    pub(super) fn pattern(&mut self, pattern: &syntax::Pattern, ty: &Ty) -> Result<Pat> {
        let line = pattern.line;
        Ok(match &pattern.kind {
            PatternKind::Wild => Pat::Wild,
            PatternKind::Binding { name, mutable } => {
                Pat::Binding(self.declare(name, ty.clone(), *mutable, line))
            }
            PatternKind::Const(value) => {
                let value = self.pattern_const(value, ty, line)?;
                Pat::Range(Some(value), Some(value))
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
                    .map(|p| self.pattern(p, ty))
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
                let elements: Rc<[Ty]> = match self.types.shallow(ty) {
                    Ty::Tuple(elements) if elements.len() == patterns.len() => elements,
                    Ty::Var(_) => {
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
                Pat::Tuple(
                    patterns
                        .iter()
                        .zip(elements.iter())
                        .map(|(p, ty)| self.pattern(p, ty))
                        .collect::<Result<_>>()?,
                )
            }
        })
    }

    fn pattern_const(&mut self, value: &PatternConst, ty: &Ty, line: u32) -> Result<i128> {
        let (found, text) = match value {
            PatternConst::Bool(b) => {
                self.unify(line, ty, &Ty::BOOL)?;
                return Ok(i128::from(*b));
            }
            PatternConst::Int {
                negative,
                value,
                suffix,
            } => {
                let literal = match suffix {
                    Some(s) => Ty::Scalar(*s),
                    None => self.int_var(),
                };
                self.unify(line, ty, &literal)?;
                let value = i128::try_from(*value).unwrap_or(i128::MAX);
                return Ok(if *negative { -value } else { value });
            }
            PatternConst::Path(path) => match path_meaning(&self.loaded, path.0, line)? {
                Resolved::Const(value) => (value.clone(), path_text(&self.loaded, path.0)),
                other => return Err(not_a(&self.loaded, path.0, line, "a constant", other)),
            },
            PatternConst::TypeConst(member) => (self.type_constant(member, line)?, member.name.clone()),
        };
        self.unify(line, ty, &Ty::from_desc(&found.type_desc()))?;
        let integer = match &found {
            ConstValue::Scalar(s, bits) => as_integer(*s, *bits),
            ConstValue::Enum(_, value) => Some(*value),
            _ => None,
        };
        integer.ok_or_else(|| {
            self.error(
                line,
                format!("the constant `{text}` of a pattern is a `{}`", found.type_desc()),
                "patterns match integers, bools and enums: compare with `==` in a guard",
            )
        })
    }
}
