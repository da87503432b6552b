//! Blocks, statements and control flow.

use perpetua_syntax as syntax;
use perpetua_syntax::{PatternKind, RangeAdaptor};

use super::alternatives::{MOST_ALTERNATIVES, alternatives};
use super::pattern::Borrowed;
use super::tree::{Adaptor, Arm, Block, Expr, ExprKind, Pat, Range, Stmt, StmtKind, TargetId};
use super::ty::{Kind, Ty};
use super::{Checker, Result, Target};

impl Checker<'_> {
    /// A function's body, which gives the function's result.
    pub(super) fn function_body(&mut self, body: &syntax::Block, ret: &Ty) -> Result<Block> {
        self.scoped(|c| {
            // `return x;` at the end is the body's value.
            let (stmts, value) = match (&body.stmts[..], &body.value) {
                ([rest @ .., last], None) => match &last.kind {
                    syntax::StmtKind::Expr(syntax::Expr {
                        kind: syntax::ExprKind::Return(value),
                        ..
                    }) => (rest, Some(value.as_deref())),
                    _ => (&body.stmts[..], None),
                },
                (stmts, Some(value)) => match &value.kind {
                    syntax::ExprKind::Return(value) => (stmts, Some(value.as_deref())),
                    _ => (stmts, Some(Some(&**value))),
                },
                (stmts, None) => (stmts, None),
            };
            let (stmts, diverges) = c.stmts(stmts)?;
            let value = match value.flatten() {
                Some(value) => Some(Box::new(c.expr_as(value, ret)?)),
                None => {
                    if !diverges {
                        c.unify(body.end_line, ret, &Ty::unit())?;
                    }
                    None
                }
            };
            Ok(Block { stmts, value })
        })
    }

    fn stmts(&mut self, stmts: &[syntax::Stmt]) -> Result<(Vec<Stmt>, bool)> {
        let mut checked = Vec::with_capacity(stmts.len());
        let mut diverges = false;
        for stmt in stmts {
            let kind = match &stmt.kind {
                syntax::StmtKind::Expr(expr) => {
                    let expr = self.expr(expr, None)?;
                    diverges |= matches!(self.types.shallow(&expr.ty), Ty::Never);
                    StmtKind::Expr(expr)
                }
                syntax::StmtKind::Let { pattern, ty, init } => {
                    let annotated = match ty {
                        Some(ty) => Some(self.ty(ty, stmt.line)?),
                        None => None,
                    };
                    let init = match (init, &annotated) {
                        (Some(init), Some(ty)) => Some(self.expr_as(init, ty)?),
                        (Some(init), None) => {
                            let hint = self.expected_of(pattern);
                            Some(self.expr(init, hint.as_ref())?)
                        }
                        (None, _) => None,
                    };
                    let ty = match (annotated, &init) {
                        (Some(ty), _) => ty,
                        (None, Some(init)) if !matches!(self.types.shallow(&init.ty), Ty::Never) => {
                            init.ty.clone()
                        }
                        _ => self.types.var(Kind::General),
                    };
                    if let Some(init) = &init {
                        diverges |= matches!(self.types.shallow(&init.ty), Ty::Never);
                    }
                    StmtKind::Let(self.let_pattern(pattern, &ty, init.is_none())?, init)
                }
            };
            checked.push(Stmt {
                line: stmt.line,
                kind,
            });
        }
        Ok((checked, diverges))
    }

    /// What is expected of a variable that is what its block gives: how a `fold` starts, whose closure asks for the type.
    fn expected_of(&mut self, pattern: &syntax::Pattern) -> Option<Ty> {
        match (&pattern.kind, &self.expected) {
            (PatternKind::Binding { name, .. }, Some((expected, _))) if name == expected => {
                self.expected.take().map(|(_, ty)| ty)
            }
            _ => None,
        }
    }

    /// A block and the type of its value.
    pub(super) fn block(&mut self, block: &syntax::Block, hint: Option<&Ty>) -> Result<(Block, Ty)> {
        self.scoped(|c| {
            if let (Some(value), Some(hint)) = (&block.value, hint)
                && let syntax::ExprKind::Local(name) = &value.kind
                && name.contains(' ')
            {
                c.expected = Some((name.clone(), hint.clone()));
            }
            let (stmts, diverges) = c.stmts(&block.stmts)?;
            let value = match &block.value {
                Some(value) => Some(Box::new(c.expr(value, hint)?)),
                None => None,
            };
            let ty = match &value {
                _ if diverges => Ty::Never,
                Some(value) => value.ty.clone(),
                None => Ty::unit(),
            };
            Ok((Block { stmts, value }, ty))
        })
    }

    /// A block as an expression, so that it can be coerced.
    fn block_expr(&mut self, block: &syntax::Block, hint: Option<&Ty>) -> Result<Expr> {
        let (checked, ty) = self.block(block, hint)?;
        Ok(Expr {
            line: block.end_line,
            ty,
            kind: ExprKind::Block(None, checked),
        })
    }

    /// The block that [`Checker::block_expr`] made, with a coerced value where there is one.
    pub(super) fn into_block(expr: Expr) -> Block {
        match expr.kind {
            ExprKind::Block(None, block) => block,
            _ => Block {
                stmts: Vec::new(),
                value: Some(Box::new(expr)),
            },
        }
    }

    /// The body of a loop: gives `()`.
    fn loop_body(&mut self, body: &syntax::Block) -> Result<Block> {
        let body = self.block_expr(body, None)?;
        let body = self.coerce(body, &Ty::unit())?;
        Ok(Self::into_block(body))
    }

    pub(super) fn open_target(
        &mut self,
        label: &Option<String>,
        is_loop: bool,
        takes_value: bool,
    ) -> TargetId {
        let id = TargetId(self.targets.len() as u32);
        self.targets.push(Target {
            label: label.clone(),
            is_loop,
            takes_value,
            ty: None,
        });
        self.open.push(id);
        id
    }

    pub(super) fn close_target(&mut self, id: TargetId) -> Option<Ty> {
        self.open.pop();
        self.targets.get(id.0 as usize).and_then(|t| t.ty.clone())
    }

    fn find_target(&self, label: &Option<String>, line: u32, what: &str) -> Result<TargetId> {
        let found = self.open.iter().rev().copied().find(|id| {
            self.targets.get(id.0 as usize).is_some_and(|t| match label {
                Some(label) => t.label.as_ref() == Some(label),
                None => t.is_loop,
            })
        });
        found.ok_or_else(|| match label {
            Some(label) => self.error(line, format!("no loop or block has the label '{label}"), ""),
            None => self.error(line, format!("`{what}` stands outside of a loop"), ""),
        })
    }

    pub(super) fn loop_expr(
        &mut self,
        label: &Option<String>,
        body: &syntax::Block,
        line: u32,
    ) -> Result<Expr> {
        let target = self.open_target(label, true, true);
        let body = self.loop_body(body)?;
        Ok(Expr {
            line,
            ty: self.close_target(target).unwrap_or(Ty::Never),
            kind: ExprKind::Loop(target, body),
        })
    }

    pub(super) fn while_expr(
        &mut self,
        label: &Option<String>,
        cond: &syntax::Expr,
        body: &syntax::Block,
        line: u32,
    ) -> Result<Expr> {
        let target = self.open_target(label, true, false);
        let cond = self.expr_as(cond, &Ty::BOOL)?;
        let body = self.loop_body(body)?;
        self.close_target(target);
        Ok(Expr {
            line,
            ty: Ty::unit(),
            kind: ExprKind::While(target, Box::new(cond), body),
        })
    }

    pub(super) fn for_expr(
        &mut self,
        label: &Option<String>,
        pattern: &syntax::Pattern,
        range: &syntax::Range,
        body: &syntax::Block,
        line: u32,
    ) -> Result<Expr> {
        let range = self.range(range)?;
        let item = range.start.ty.clone();
        let target = self.open_target(label, true, false);
        let (local, body) = self.scoped(|c| {
            let local = match &pattern.kind {
                PatternKind::Binding { name, mutable } => Some(c.declare(name, item, *mutable, pattern.line)),
                PatternKind::Wild => None,
                _ => {
                    return Err(c.error(
                        pattern.line,
                        "a `for` loop counts into one name",
                        "write `for i in …`",
                    ));
                }
            };
            Ok((local, c.loop_body(body)?))
        })?;
        self.close_target(target);
        Ok(Expr {
            line,
            ty: Ty::unit(),
            kind: ExprKind::For(target, local, Box::new(range), body),
        })
    }

    pub(super) fn plain_block(
        &mut self,
        block: &syntax::Block,
        hint: Option<&Ty>,
        line: u32,
    ) -> Result<Expr> {
        let (block, ty) = self.block(block, hint)?;
        Ok(Expr {
            line,
            ty,
            kind: ExprKind::Block(None, block),
        })
    }

    pub(super) fn labelled_block(
        &mut self,
        label: &Option<String>,
        block: &syntax::Block,
        hint: Option<&Ty>,
        line: u32,
    ) -> Result<Expr> {
        let target = self.open_target(label, false, true);
        let inner = self.block_expr(block, hint)?;
        let mut joined = self.close_target(target);
        let inner = self.join(&mut joined, inner)?;
        Ok(Expr {
            line,
            ty: joined.unwrap_or(Ty::Never),
            kind: ExprKind::Block(Some(target), Self::into_block(inner)),
        })
    }

    pub(super) fn break_expr(
        &mut self,
        label: &Option<String>,
        value: Option<&syntax::Expr>,
        line: u32,
    ) -> Result<Expr> {
        let target = self.find_target(label, line, "break")?;
        let value = self.break_value(target, value, line)?;
        Ok(Expr {
            line,
            ty: Ty::Never,
            kind: ExprKind::Break(target, value),
        })
    }

    pub(super) fn continue_expr(&mut self, label: &Option<String>, line: u32) -> Result<Expr> {
        let target = self.find_target(label, line, "continue")?;
        if !self.targets.get(target.0 as usize).is_some_and(|t| t.is_loop) {
            return Err(self.error(line, "`continue` names a block, not a loop", "use `break`"));
        }
        Ok(Expr {
            line,
            ty: Ty::Never,
            kind: ExprKind::Continue(target),
        })
    }

    pub(super) fn return_expr(&mut self, value: Option<&syntax::Expr>, line: u32) -> Result<Expr> {
        if let Some(left) = self.closure_return(value, line) {
            return left;
        }
        self.early_return = true;
        let ret = self.ret.clone();
        let value = match value {
            Some(value) => Some(Box::new(self.expr_as(value, &ret)?)),
            None => {
                self.unify(line, &ret, &Ty::unit())?;
                None
            }
        };
        Ok(Expr {
            line,
            ty: Ty::Never,
            kind: ExprKind::Return(value),
        })
    }

    fn break_value(
        &mut self,
        target: TargetId,
        value: Option<&syntax::Expr>,
        line: u32,
    ) -> Result<Option<Box<Expr>>> {
        let at = target.0 as usize;
        let met = |c: &Self| c.targets.get(at).and_then(|t| t.ty.clone());
        let mut joined = met(self);
        if value.is_some() && !self.targets.get(at).is_some_and(|t| t.takes_value) {
            return Err(self.error(
                line,
                "`break` gives a value to a loop that has none",
                "use `loop`, or a mutable variable",
            ));
        }
        let value = match value {
            Some(value) => {
                let value = self.expr(value, joined.as_ref())?;
                // The value may have left for the same place.
                joined = met(self);
                Some(Box::new(self.join(&mut joined, value)?))
            }
            None => {
                match &joined {
                    Some(ty) => self.unify(line, &ty.clone(), &Ty::unit())?,
                    None => joined = Some(Ty::unit()),
                }
                None
            }
        };
        if let Some(target) = self.targets.get_mut(at) {
            target.ty = joined;
        }
        Ok(value)
    }

    fn range(&mut self, range: &syntax::Range) -> Result<Range> {
        let start = self.expr(&range.start, None)?;
        let start = self.deref_all(start);
        let end = self.expr(&range.end, Some(&start.ty))?;
        let end = self.deref_all(end);
        self.unify(end.line, &start.ty.clone(), &end.ty.clone())?;
        let adaptors = range
            .adaptors
            .iter()
            .map(|a| {
                Ok(match a {
                    RangeAdaptor::Rev => Adaptor::Rev,
                    RangeAdaptor::StepBy(step) => Adaptor::StepBy(self.expr_as(step, &Ty::USIZE)?),
                })
            })
            .collect::<Result<_>>()?;
        Ok(Range {
            start,
            end,
            inclusive: range.inclusive,
            adaptors,
        })
    }

    pub(super) fn if_expr(
        &mut self,
        cond: &syntax::Expr,
        then: &syntax::Block,
        otherwise: Option<&syntax::Expr>,
        hint: Option<&Ty>,
        line: u32,
    ) -> Result<Expr> {
        let cond = self.expr_as(cond, &Ty::BOOL)?;
        let then = self.block_expr(then, hint)?;
        let (ty, then, otherwise) = match otherwise {
            None => (Ty::unit(), self.coerce(then, &Ty::unit())?, None),
            Some(otherwise) => {
                let mut joined = self.slice_wanted(hint);
                let then = self.join(&mut joined, then)?;
                let otherwise = self.expr(otherwise, joined.as_ref().or(hint))?;
                let otherwise = self.join(&mut joined, otherwise)?;
                (joined.unwrap_or(Ty::Never), then, Some(Box::new(otherwise)))
            }
        };
        Ok(Expr {
            line,
            ty,
            kind: ExprKind::If(Box::new(cond), Self::into_block(then), otherwise),
        })
    }

    pub(super) fn match_expr(
        &mut self,
        scrutinee: &syntax::Expr,
        arms: &[syntax::Arm],
        hint: Option<&Ty>,
        line: u32,
    ) -> Result<Expr> {
        let scrutinee = self.expr(scrutinee, None)?;
        let (mut borrowed, mut met) = (Borrowed::No, self.types.shallow(&scrutinee.ty));
        while let Ty::Ref(mutable, target) = met {
            borrowed = borrowed.through(mutable);
            met = self.types.shallow(&target);
        }
        let scrutinee = self.deref_all(scrutinee);
        let ty = scrutinee.ty.clone();
        let mut joined = self.slice_wanted(hint);
        let mut checked = Vec::with_capacity(arms.len());
        // Alternatives that bind names are arms of their own.
        let mut cases = Vec::new();
        for arm in arms {
            let Some(patterns) = alternatives(&arm.pattern) else {
                return Err(self.error(
                    arm.line,
                    format!("a pattern that binds names stands for more than {MOST_ALTERNATIVES} patterns without `|`"),
                    "bind the names before the `match`, or write a guard",
                ));
            };
            cases.extend(patterns.into_iter().map(|pattern| (pattern, arm)));
        }
        for (pattern, arm) in cases {
            let arm = self.scoped(|c| {
                let pattern = c.pattern(&pattern, &ty, borrowed)?;
                let guard = match &arm.guard {
                    Some(guard) => Some(c.expr_as(guard, &Ty::BOOL)?),
                    None => None,
                };
                let body = c.expr(&arm.body, joined.clone().as_ref().or(hint))?;
                let body = c.join(&mut joined, body)?;
                Ok(Arm {
                    line: arm.line,
                    pattern,
                    guard,
                    body,
                })
            })?;
            checked.push(arm);
        }
        Ok(Expr {
            line,
            ty: joined.unwrap_or(Ty::Never),
            kind: ExprKind::Match(Box::new(scrutinee), checked),
        })
    }

    fn let_pattern(&mut self, pattern: &syntax::Pattern, ty: &Ty, deferred: bool) -> Result<Pat> {
        let pat = self.pattern(pattern, ty, Borrowed::No)?;
        if deferred {
            self.defer(&pat);
        }
        Ok(pat)
    }

    fn defer(&mut self, pat: &Pat) {
        match pat {
            Pat::Binding(id) => {
                if let Some(local) = self.locals.get_mut(id.0 as usize) {
                    local.deferred = true;
                    local.assigned = true;
                }
            }
            Pat::Tuple(parts) => parts.iter().for_each(|p| self.defer(p)),
            _ => {}
        }
    }
}
