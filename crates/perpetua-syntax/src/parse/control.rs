//! Control flow: `if`, `match`, loops, blocks, jumps.

use super::Refusal;
use super::expr::peel;
use super::reader::{Reader, line_of, name_of, stand_in};
use crate::ast::{Arm, Expr, ExprKind, Range, RangeAdaptor};
use proc_macro2::Span;
use syn::spanned::Spanned;

impl Reader {
    /// Control flow, with the span that names its line; `None` where the expression is something else.
    pub(super) fn read_control(&mut self, expr: &syn::Expr) -> Option<(Span, ExprKind)> {
        Some(match expr {
            syn::Expr::If(expr) => (expr.if_token.span, self.read_if(expr)),
            syn::Expr::Match(expr) => (expr.match_token.span, self.read_match(expr)),
            syn::Expr::Loop(expr) => {
                let label = label_of(expr.label.as_ref());
                let body = self.in_loop(label.as_ref(), |reader| reader.read_block(&expr.body));
                (expr.loop_token.span, ExprKind::Loop { label, body })
            }
            syn::Expr::While(expr) => {
                let label = label_of(expr.label.as_ref());
                if has_let(&expr.cond) {
                    let own = label.clone();
                    let read = self.in_loop(own.as_ref(), |reader| reader.read_while_let(label, expr));
                    return Some((expr.while_token.span, read));
                }
                let cond = Box::new(self.read_expr(&expr.cond));
                let body = self.in_loop(label.as_ref(), |reader| reader.read_block(&expr.body));
                (expr.while_token.span, ExprKind::While { label, cond, body })
            }
            syn::Expr::ForLoop(expr) => (expr.for_token.span, self.read_for(expr)),
            syn::Expr::Block(expr) => {
                let label = label_of(expr.label.as_ref());
                let block = self.read_block(&expr.block);
                (
                    expr.block.brace_token.span.open(),
                    ExprKind::Block { label, block },
                )
            }
            syn::Expr::Break(expr) => {
                let value = expr.expr.as_ref().map(|value| Box::new(self.read_expr(value)));
                (
                    expr.break_token.span,
                    ExprKind::Break {
                        label: self.left(name_of_label(expr.label.as_ref())),
                        value,
                    },
                )
            }
            syn::Expr::Continue(expr) => (
                expr.continue_token.span,
                ExprKind::Continue {
                    label: name_of_label(expr.label.as_ref()),
                },
            ),
            syn::Expr::Return(expr) => {
                let value = expr.expr.as_ref().map(|value| Box::new(self.read_expr(value)));
                (expr.return_token.span, ExprKind::Return(value))
            }
            _ => return None,
        })
    }

    fn read_if(&mut self, expr: &syn::ExprIf) -> ExprKind {
        if has_let(&expr.cond) {
            return self.read_if_let(expr);
        }
        let mut cond = Box::new(self.read_expr(&expr.cond));
        if let Some(number) = self.conditions.get(&std::ptr::from_ref(expr)) {
            let (place, line, number) = (cond.place, cond.line, *number);
            let kind = ExprKind::Condition { number, value: cond };
            cond = Box::new(Expr { place, line, kind });
        }
        let then = self.read_block(&expr.then_branch);
        let otherwise = expr
            .else_branch
            .as_ref()
            .map(|(_, branch)| Box::new(self.read_expr(branch)));
        ExprKind::If {
            cond,
            then,
            otherwise,
        }
    }

    fn read_match(&mut self, expr: &syn::ExprMatch) -> ExprKind {
        let patterns: Vec<&syn::Pat> = expr.arms.iter().map(|arm| &arm.pat).collect();
        let (scrutinee, by_ref) = self.read_met(&expr.expr, &patterns);
        let scrutinee = Box::new(scrutinee);
        let mut arms = Vec::with_capacity(expr.arms.len());
        for arm in &expr.arms {
            arms.push(self.scoped(|reader| Arm {
                line: line_of(arm.pat.span()),
                pattern: reader.read_pattern(&arm.pat, by_ref),
                guard: arm.guard.as_ref().map(|(_, guard)| reader.read_expr(guard)),
                body: reader.read_expr(&arm.body),
            }));
        }
        ExprKind::Match { scrutinee, arms }
    }

    fn read_for(&mut self, expr: &syn::ExprForLoop) -> ExprKind {
        let label = label_of(expr.label.as_ref());
        if !is_plain_range(&expr.expr) {
            return self.read_for_chain(expr, label);
        }
        let range = Box::new(self.read_range(&expr.expr));
        self.scoped(|reader| {
            let pattern = reader.read_for_pattern(&expr.pat);
            let body = reader.in_loop(label.as_ref(), |reader| reader.read_block(&expr.body));
            ExprKind::For {
                label,
                pattern,
                range,
                body,
            }
        })
    }

    /// What a `for` loop counts: a range, under `.rev()` and `.step_by(n)`.
    pub(super) fn read_range(&mut self, expr: &syn::Expr) -> Range {
        match peel(expr) {
            syn::Expr::Range(range) => {
                let (Some(start), Some(end)) = (&range.start, &range.end) else {
                    self.refuse(range, Refusal::OpenRange);
                    return empty_range(expr.span());
                };
                let start = self.read_expr(start);
                let end = self.read_expr(end);
                let inclusive = matches!(range.limits, syn::RangeLimits::Closed(_));
                Range {
                    start,
                    end,
                    inclusive,
                    adaptors: Vec::new(),
                }
            }
            syn::Expr::MethodCall(call) => {
                let mut range = self.read_range(&call.receiver);
                range.adaptors.push(match call.args.first() {
                    Some(step) => RangeAdaptor::StepBy(Box::new(self.read_expr(step))),
                    None => RangeAdaptor::Rev,
                });
                range
            }
            _ => empty_range(expr.span()),
        }
    }
}

/// Whether a `for` loop counts a range, under `.rev()` and `.step_by(n)`.
fn is_plain_range(expr: &syn::Expr) -> bool {
    match peel(expr) {
        syn::Expr::Range(range) => range.start.is_none() || range.end.is_some(),
        syn::Expr::MethodCall(call) => {
            matches!(
                (name_of(&call.method).as_str(), call.args.len()),
                ("rev", 0) | ("step_by", 1)
            ) && is_plain_range(&call.receiver)
        }
        _ => false,
    }
}

/// What stands for a range that was refused.
fn empty_range(span: Span) -> Range {
    Range {
        start: stand_in(span),
        end: stand_in(span),
        inclusive: false,
        adaptors: Vec::new(),
    }
}

/// Whether a condition contains `let`, alone or in a chain.
fn has_let(cond: &syn::Expr) -> bool {
    match peel(cond) {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) if matches!(binary.op, syn::BinOp::And(_)) => {
            has_let(&binary.left) || has_let(&binary.right)
        }
        _ => false,
    }
}

fn label_of(label: Option<&syn::Label>) -> Option<String> {
    name_of_label(label.map(|label| &label.name))
}

fn name_of_label(label: Option<&syn::Lifetime>) -> Option<String> {
    label.map(|label| name_of(&label.ident))
}
