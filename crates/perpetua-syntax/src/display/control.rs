//! Control flow as text.

use super::Printer;
use super::expr::{Binding, binding_of, shows_struct_literal};
use crate::ast::{Arm, Expr, ExprKind, Range, RangeAdaptor};
use std::fmt::Result;

impl Printer<'_, '_> {
    pub(super) fn control(&mut self, kind: &ExprKind) -> Result {
        match kind {
            ExprKind::If {
                cond,
                then,
                otherwise,
            } => {
                self.text("if ")?;
                self.head(cond)?;
                self.text(" ")?;
                self.block(then)?;
                let Some(otherwise) = otherwise else { return Ok(()) };
                self.text(" else ")?;
                self.expr(otherwise)
            }
            ExprKind::Match { scrutinee, arms } => {
                self.text("match ")?;
                self.head(scrutinee)?;
                self.text(" {")?;
                self.indent += 1;
                for arm in arms {
                    self.new_line()?;
                    self.arm(arm)?;
                }
                self.indent -= 1;
                self.new_line()?;
                self.text("}")
            }
            ExprKind::Loop { label, body } => {
                self.label(label.as_deref())?;
                self.text("loop ")?;
                self.block(body)
            }
            ExprKind::While { label, cond, body } => {
                self.label(label.as_deref())?;
                self.text("while ")?;
                self.head(cond)?;
                self.text(" ")?;
                self.block(body)
            }
            ExprKind::For {
                label,
                pattern,
                range,
                body,
            } => {
                self.label(label.as_deref())?;
                self.text("for ")?;
                self.pattern(pattern)?;
                self.text(" in ")?;
                self.range(range)?;
                self.text(" ")?;
                self.block(body)
            }
            ExprKind::Block { label, block } => {
                self.label(label.as_deref())?;
                self.block(block)
            }
            ExprKind::Break { label, value } => {
                self.text("break")?;
                if let Some(label) = label {
                    self.text(format_args!(" '{label}"))?;
                }
                self.jump_value(value.as_deref())
            }
            ExprKind::Continue { label } => {
                self.text("continue")?;
                label
                    .as_ref()
                    .map_or(Ok(()), |label| self.text(format_args!(" '{label}")))
            }
            ExprKind::Return(value) => {
                self.text("return")?;
                self.jump_value(value.as_deref())
            }
            // `expr` printed all others.
            _ => Ok(()),
        }
    }

    fn jump_value(&mut self, value: Option<&Expr>) -> Result {
        let Some(value) = value else { return Ok(()) };
        self.text(" ")?;
        self.expr(value)
    }

    fn label(&mut self, label: Option<&str>) -> Result {
        label.map_or(Ok(()), |label| self.text(format_args!("'{label}: ")))
    }

    fn arm(&mut self, arm: &Arm) -> Result {
        self.pattern(&arm.pattern)?;
        if let Some(guard) = &arm.guard {
            self.text(" if ")?;
            self.expr(guard)?;
        }
        self.text(" => ")?;
        self.expr(&arm.body)?;
        self.text(if matches!(arm.body.kind, ExprKind::Block { .. }) {
            ""
        } else {
            ","
        })
    }

    fn range(&mut self, range: &Range) -> Result {
        if !range.adaptors.is_empty() {
            self.text("(")?;
        }
        self.range_end(&range.start)?;
        self.text(if range.inclusive { "..=" } else { ".." })?;
        self.range_end(&range.end)?;
        if !range.adaptors.is_empty() {
            self.text(")")?;
        }
        for adaptor in &range.adaptors {
            match adaptor {
                RangeAdaptor::Rev => self.text(".rev()")?,
                RangeAdaptor::StepBy(step) => {
                    self.text(".step_by(")?;
                    self.expr(step)?;
                    self.text(")")?;
                }
            }
        }
        Ok(())
    }

    fn range_end(&mut self, end: &Expr) -> Result {
        self.expr_in(
            end,
            binding_of(&end.kind) < Binding::Or || shows_struct_literal(&end.kind),
        )
    }
}
