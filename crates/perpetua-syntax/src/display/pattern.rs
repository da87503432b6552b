//! Patterns as text.

use super::Printer;
use crate::ast::{Pattern, PatternConst, PatternKind};
use std::fmt::Result;

impl Printer<'_, '_> {
    pub(super) fn pattern(&mut self, pattern: &Pattern) -> Result {
        match &pattern.kind {
            PatternKind::Wild => self.text("_"),
            PatternKind::Binding { name, mutable } => {
                self.text(if *mutable { "mut " } else { "" })?;
                self.text(name)
            }
            PatternKind::Const(value) => self.pattern_const(value),
            PatternKind::Range {
                start,
                end,
                inclusive,
            } => {
                start.as_ref().map_or(Ok(()), |start| self.pattern_const(start))?;
                self.text(if *inclusive { "..=" } else { ".." })?;
                end.as_ref().map_or(Ok(()), |end| self.pattern_const(end))
            }
            PatternKind::Or(cases) => {
                for (index, case) in cases.iter().enumerate() {
                    self.text(if index > 0 { " | " } else { "" })?;
                    self.alternative(case)?;
                }
                Ok(())
            }
            PatternKind::Rest => self.text(".."),
            PatternKind::Array(elements) => {
                self.text("[")?;
                self.list(elements, Self::pattern)?;
                self.text("]")
            }
            PatternKind::Struct { name, fields, rest } => {
                self.struct_name(name)?;
                self.text(" { ")?;
                self.list(fields, |printer, (name, pattern)| {
                    printer.text(format_args!("{name}: "))?;
                    printer.pattern(pattern)
                })?;
                self.text(match (fields.is_empty(), rest) {
                    (true, true) => ".. }",
                    (false, true) => ", .. }",
                    (_, false) => " }",
                })
            }
            PatternKind::TupleStruct { name, parts } => {
                self.struct_name(name)?;
                self.text("(")?;
                self.list(parts, Self::pattern)?;
                self.text(")")
            }
            PatternKind::At {
                name,
                mutable,
                pattern,
            } => {
                self.text(if *mutable { "mut " } else { "" })?;
                self.text(format_args!("{name} @ "))?;
                self.alternative(pattern)
            }
            PatternKind::Variant { variant, payload } => {
                self.text(variant.name())?;
                let Some(payload) = payload else { return Ok(()) };
                self.text("(")?;
                self.pattern(payload)?;
                self.text(")")
            }
            PatternKind::Ref(pattern) => {
                self.text("&")?;
                self.alternative(pattern)
            }
            PatternKind::Tuple(elements) => {
                self.text("(")?;
                self.list(elements, Self::pattern)?;
                self.text(if elements.len() == 1 { ",)" } else { ")" })
            }
        }
    }

    /// A case of an or-pattern; one that is an or-pattern itself stands in parentheses.
    fn alternative(&mut self, case: &Pattern) -> Result {
        if !matches!(case.kind, PatternKind::Or(_)) {
            return self.pattern(case);
        }
        self.text("(")?;
        self.pattern(case)?;
        self.text(")")
    }

    fn pattern_const(&mut self, value: &PatternConst) -> Result {
        match value {
            PatternConst::Bool(value) => self.text(value),
            PatternConst::Int {
                negative,
                value,
                suffix,
            } => {
                self.text(if *negative { "-" } else { "" })?;
                self.number(value, *suffix)
            }
            PatternConst::Float { text, suffix } => self.number(text, *suffix),
            PatternConst::Path(path) => self.path(*path, "::"),
            PatternConst::TypeConst(member) => self.member(member),
        }
    }
}
