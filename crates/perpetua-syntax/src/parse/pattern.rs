//! Patterns of `match`, `let` and `for`. Each binding is declared in the innermost scope as it is read.

use super::Refusal;
use super::expr::peel;
use super::path::{segment_names, starts_upper};
use super::reader::{Reader, line_of, name_of};
use crate::ast::{PathUsage, Pattern, PatternConst, PatternKind, Scalar};
use crate::nesting::Level;
use syn::spanned::Spanned;

/// A pattern that matches everything and binds nothing.
fn wild(pat: &syn::Pat) -> Pattern {
    Pattern {
        line: line_of(pat.span()),
        kind: PatternKind::Wild,
    }
}

impl Reader {
    /// A pattern of a `match`.
    pub(super) fn read_pattern(&mut self, pat: &syn::Pat) -> Pattern {
        let Some(_level) = Level::enter() else {
            self.refuse(pat, Refusal::TooDeep);
            return wild(pat);
        };
        let kind = match pat {
            syn::Pat::Paren(paren) => return self.read_pattern(&paren.pat),
            syn::Pat::Wild(_) => PatternKind::Wild,
            // A constant and a new name look alike; rustc's naming lints keep them apart.
            syn::Pat::Ident(ident) if is_constant(ident) => {
                let path = syn::Path::from(ident.ident.clone());
                PatternKind::Const(self.read_pattern_path(&path))
            }
            syn::Pat::Ident(ident) => self.read_binding(ident),
            syn::Pat::Lit(lit) => PatternKind::Const(
                self.read_pattern_literal(&lit.lit)
                    .unwrap_or(PatternConst::Bool(false)),
            ),
            syn::Pat::Path(syn::ExprPath {
                qself: Some(qself),
                path,
                ..
            }) => {
                let member = self.qualified_member(qself, path);
                PatternKind::Const(PatternConst::TypeConst(Box::new(member)))
            }
            syn::Pat::Path(path) => PatternKind::Const(self.read_pattern_path(&path.path)),
            syn::Pat::Range(range) => PatternKind::Range {
                start: range
                    .start
                    .as_ref()
                    .and_then(|start| self.read_pattern_const(start)),
                end: range.end.as_ref().and_then(|end| self.read_pattern_const(end)),
                inclusive: matches!(range.limits, syn::RangeLimits::Closed(_)),
            },
            syn::Pat::Or(or) => {
                PatternKind::Or(or.cases.iter().map(|case| self.read_pattern(case)).collect())
            }
            syn::Pat::Tuple(tuple) => PatternKind::Tuple(
                tuple
                    .elems
                    .iter()
                    .map(|element| self.read_pattern(element))
                    .collect(),
            ),
            other => {
                self.refuse_pattern(other, Refusal::OtherPattern);
                PatternKind::Wild
            }
        };
        Pattern {
            line: line_of(pat.span()),
            kind,
        }
    }

    /// A pattern of a `let`: a binding, `_`, or a tuple of these.
    pub(super) fn read_let_pattern(&mut self, pat: &syn::Pat) -> Pattern {
        let Some(_level) = Level::enter() else {
            self.refuse(pat, Refusal::TooDeep);
            return wild(pat);
        };
        let kind = match pat {
            syn::Pat::Paren(paren) => return self.read_let_pattern(&paren.pat),
            syn::Pat::Wild(_) => PatternKind::Wild,
            syn::Pat::Ident(ident) => self.read_binding(ident),
            syn::Pat::Tuple(tuple) => PatternKind::Tuple(
                tuple
                    .elems
                    .iter()
                    .map(|element| self.read_let_pattern(element))
                    .collect(),
            ),
            syn::Pat::Lit(_) | syn::Pat::Range(_) | syn::Pat::Path(_) | syn::Pat::Or(_) => {
                self.refuse(pat, Refusal::RefutableLet);
                PatternKind::Wild
            }
            other => {
                self.refuse_pattern(other, Refusal::LetPattern);
                PatternKind::Wild
            }
        };
        Pattern {
            line: line_of(pat.span()),
            kind,
        }
    }

    /// The variable of a `for` loop: a binding or `_`.
    pub(super) fn read_for_pattern(&mut self, pat: &syn::Pat) -> Pattern {
        match pat {
            syn::Pat::Ident(_) | syn::Pat::Wild(_) => self.read_let_pattern(pat),
            syn::Pat::Paren(paren) => self.read_for_pattern(&paren.pat),
            other => {
                self.refuse(other, Refusal::ForPattern);
                wild(pat)
            }
        }
    }

    fn read_binding(&mut self, ident: &syn::PatIdent) -> PatternKind {
        if let Some(token) = &ident.by_ref {
            self.refuse(token, Refusal::RefBinding);
        }
        if ident.subpat.is_some() {
            self.refuse(ident, Refusal::AtBinding);
        }
        let name = name_of(&ident.ident);
        self.declare(&name);
        PatternKind::Binding {
            name,
            mutable: ident.mutability.is_some(),
        }
    }

    fn read_pattern_path(&mut self, path: &syn::Path) -> PatternConst {
        if path.is_ident("None") {
            self.refuse_named(path, Refusal::OptionCall, "None");
        }
        match self.type_member(path) {
            Some(member) => PatternConst::TypeConst(Box::new(member)),
            None => PatternConst::Path(self.path(path, PathUsage::Pattern)),
        }
    }

    /// The end of a range in a pattern.
    fn read_pattern_const(&mut self, expr: &syn::Expr) -> Option<PatternConst> {
        match peel(expr) {
            syn::Expr::Lit(lit) => self.read_pattern_literal(&lit.lit),
            syn::Expr::Path(path) if path.qself.is_none() => Some(self.read_pattern_path(&path.path)),
            other => {
                self.refuse(other, Refusal::OtherPattern);
                None
            }
        }
    }

    fn read_pattern_literal(&mut self, lit: &syn::Lit) -> Option<PatternConst> {
        let refusal = match lit {
            syn::Lit::Bool(lit) => return Some(PatternConst::Bool(lit.value)),
            syn::Lit::Byte(lit) => {
                let (value, suffix) = (lit.value().into(), Some(Scalar::U8));
                return Some(PatternConst::Int {
                    negative: false,
                    value,
                    suffix,
                });
            }
            syn::Lit::Int(lit) => {
                let suffix = self.read_suffix(lit, lit.suffix());
                if suffix.is_some_and(Scalar::is_float) {
                    self.refuse(lit, Refusal::FloatPattern);
                    return None;
                }
                let digits = lit.base10_digits();
                let magnitude = digits.strip_prefix('-').unwrap_or(digits);
                let value = self.read_magnitude(lit, magnitude);
                return Some(PatternConst::Int {
                    negative: magnitude.len() < digits.len(),
                    value,
                    suffix,
                });
            }
            syn::Lit::Float(_) => Refusal::FloatPattern,
            _ => Refusal::StringPattern,
        };
        self.refuse(lit, refusal);
        None
    }

    /// Notes why a form of pattern is not in the language; `otherwise` where no row names it.
    fn refuse_pattern(&mut self, pat: &syn::Pat, otherwise: Refusal) {
        let refusal = match pat {
            syn::Pat::Slice(_) => Refusal::SlicePattern,
            syn::Pat::Struct(_) => Refusal::StructPattern,
            syn::Pat::TupleStruct(pattern) => {
                let name = segment_names(&pattern.path).join("::");
                return self.refuse_named(pat, Refusal::TupleStructPattern, &name);
            }
            syn::Pat::Reference(_) => Refusal::RefPattern,
            syn::Pat::Rest(_) => Refusal::RestPattern,
            _ => otherwise,
        };
        self.refuse(pat, refusal);
    }
}

/// Whether a name alone in a pattern means a constant.
fn is_constant(ident: &syn::PatIdent) -> bool {
    ident.by_ref.is_none()
        && ident.mutability.is_none()
        && ident.subpat.is_none()
        && starts_upper(&name_of(&ident.ident))
}
