//! Constants in patterns: numbers, what paths name, ends of ranges.

use perpetua_syntax as syntax;
use perpetua_syntax::{PatternConst, Scalar};

use super::consteval::as_integer;
use super::signature::{not_a, path_meaning, path_text};
use super::tree::{FloatBounds, Pat};
use super::ty::{Kind, Ty};
use super::variant::constant_pat;
use super::{Checker, Result};
use crate::front::rust::describe::ConstValue;
use crate::front::rust::error::LowerError;
use crate::front::rust::resolve::Resolved;

impl Checker<'_> {
    /// The constant that a path names.
    pub(super) fn constant_named(&self, path: syntax::PathId, line: u32) -> Result<ConstValue> {
        match path_meaning(&self.loaded, path.0, line)? {
            Resolved::Const(value) => Ok(value.clone()),
            other => Err(not_a(&self.loaded, path.0, line, "a constant", other)),
        }
    }

    /// A constant, of whatever type, as a pattern.
    pub(super) fn whole_constant(
        &mut self,
        value: &ConstValue,
        text: &str,
        ty: &Ty,
        line: u32,
    ) -> Result<Pat> {
        self.unify(line, ty, &Ty::from_desc(&value.type_desc()))?;
        constant_pat(value).ok_or_else(|| self.not_matched(value, text, line))
    }

    fn not_matched(&self, value: &ConstValue, text: &str, line: u32) -> LowerError {
        self.error(
            line,
            format!("the constant `{text}` of a pattern is a `{}`", value.type_desc()),
            "patterns match numbers, bools and enums: compare with `==` in a guard",
        )
    }

    /// What a pattern with a float meets is one.
    pub(super) fn float_met(&mut self, suffix: Option<Scalar>, ty: &Ty, line: u32) -> Result<()> {
        let float = match suffix {
            Some(scalar) => Ty::Scalar(scalar),
            None => self.types.var(Kind::Float),
        };
        self.unify(line, ty, &float)
    }

    /// Whether the end of a range is a float.
    pub(super) fn is_float_end(&self, end: &PatternConst) -> bool {
        match end {
            PatternConst::Float { .. } => true,
            PatternConst::Path(path) => matches!(
                path_meaning(&self.loaded, path.0, 0),
                Ok(Resolved::Const(ConstValue::Scalar(scalar, _))) if scalar.is_float()
            ),
            PatternConst::TypeConst(member) => {
                matches!(member.ty, syntax::Type::Scalar(scalar) if scalar.is_float())
            }
            PatternConst::Bool(_) | PatternConst::Int { .. } => false,
        }
    }

    pub(super) fn float_bound(&mut self, end: &PatternConst, ty: &Ty, line: u32) -> Result<String> {
        let (value, text) = match end {
            PatternConst::Float { text, suffix } => {
                self.float_met(*suffix, ty, line)?;
                return Ok(text.clone());
            }
            PatternConst::Path(path) => (self.constant_named(*path, line)?, path_text(&self.loaded, path.0)),
            PatternConst::TypeConst(member) => (self.type_constant(member, line)?, member.name.clone()),
            PatternConst::Bool(_) | PatternConst::Int { .. } => {
                return Err(self.error(line, "a range from a float to an integer", "write both as floats"));
            }
        };
        match self.whole_constant(&value, &text, ty, line)? {
            Pat::Floats(FloatBounds::Equal(digits)) => Ok(digits),
            _ => Err(self.not_matched(&value, &text, line)),
        }
    }

    fn beyond_patterns(&self, line: u32) -> LowerError {
        self.error(
            line,
            "an integer of a pattern that is greater than `i128::MAX`",
            "compare with `==` or `>=` in a guard",
        )
    }

    pub(super) fn pattern_const(&mut self, value: &PatternConst, ty: &Ty, line: u32) -> Result<i128> {
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
                let value = match negative {
                    true => 0i128.checked_sub_unsigned(*value),
                    false => i128::try_from(*value).ok(),
                };
                return value.ok_or_else(|| self.beyond_patterns(line));
            }
            PatternConst::Float { text, suffix } => {
                self.float_met(*suffix, ty, line)?;
                return Err(self.error(
                    line,
                    format!("the float `{text}` where a pattern takes an integer"),
                    "",
                ));
            }
            PatternConst::Path(path) => (self.constant_named(*path, line)?, path_text(&self.loaded, path.0)),
            PatternConst::TypeConst(member) => (self.type_constant(member, line)?, member.name.clone()),
        };
        self.unify(line, ty, &Ty::from_desc(&found.type_desc()))?;
        let integer = match &found {
            ConstValue::Scalar(s, bits) => as_integer(*s, *bits),
            ConstValue::Wide(Scalar::I128, bits) => Some(*bits as i128),
            ConstValue::Wide(_, bits) => match i128::try_from(*bits) {
                Ok(value) => Some(value),
                Err(_) => return Err(self.beyond_patterns(line)),
            },
            ConstValue::Enum(_, value) => Some(*value),
            _ => None,
        };
        integer.ok_or_else(|| self.not_matched(&found, &text, line))
    }
}
