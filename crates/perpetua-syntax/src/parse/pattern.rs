//! Patterns of `match`, `let` and `for`. Each binding is declared in the innermost scope as it is read.

use super::Refusal;
use super::expr::peel;
use super::path::{starts_upper, variant_of};
use super::reader::{Reader, line_of, name_of};
use crate::ast::{Expr, ExprKind, PathUsage, Pattern, PatternConst, PatternKind, Scalar, UnaryOp, Variant};
use crate::nesting::Level;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// Whether patterns have a name with `ref`, and whether one of those has `ref mut`.
#[derive(Default)]
struct Refs(Option<bool>);

impl Visit<'_> for Refs {
    fn visit_pat_ident(&mut self, ident: &syn::PatIdent) {
        if ident.by_ref.is_some() {
            self.0 = Some(self.0 == Some(true) || ident.mutability.is_some());
        }
        syn::visit::visit_pat_ident(self, ident);
    }
}

/// A pattern that matches everything and binds nothing.
fn wild(pat: &syn::Pat) -> Pattern {
    Pattern {
        line: line_of(pat.span()),
        kind: PatternKind::Wild,
    }
}

impl Reader {
    /// A pattern that need not match. `by_ref`: how its value was read.
    pub(super) fn read_pattern(&mut self, pat: &syn::Pat, by_ref: Option<bool>) -> Pattern {
        self.by_ref = by_ref.is_some();
        let pattern = self.read_any_pattern(pat, true);
        self.by_ref = false;
        pattern
    }

    /// A pattern that always matches.
    pub(super) fn read_let_pattern(&mut self, pat: &syn::Pat) -> Pattern {
        self.read_any_pattern(pat, false)
    }

    /// What patterns meet. Where one of their names has `ref`, they meet a reference, and names without `ref` copy what is behind it:
    /// whether that is `&mut` is the second.
    pub(super) fn read_met(&mut self, value: &syn::Expr, pats: &[&syn::Pat]) -> (Expr, Option<bool>) {
        let mut refs = Refs::default();
        pats.iter().for_each(|pat| refs.visit_pat(pat));
        let read = self.read_expr(value);
        let Some(mutable) = refs.0 else {
            return (read, None);
        };
        let op = if mutable { UnaryOp::RefMut } else { UnaryOp::Ref };
        let operand = Box::new(read);
        let kind = ExprKind::Unary { op, operand };
        (Expr::new(line_of(value.span()), kind), refs.0)
    }

    /// A pattern; `may_fail`: whether it need not match.
    fn read_any_pattern(&mut self, pat: &syn::Pat, may_fail: bool) -> Pattern {
        let Some(_level) = Level::enter() else {
            self.refuse(pat, Refusal::TooDeep);
            return wild(pat);
        };
        let kind = match pat {
            syn::Pat::Paren(paren) => return self.read_any_pattern(&paren.pat, may_fail),
            syn::Pat::Wild(_) => PatternKind::Wild,
            syn::Pat::Ident(ident) if may_fail && ident.ident == "None" => PatternKind::Variant {
                variant: Variant::None,
                payload: None,
            },
            syn::Pat::Path(path) if may_fail && variant_of(&path.path) == Some(Variant::None) => {
                PatternKind::Variant {
                    variant: Variant::None,
                    payload: None,
                }
            }
            syn::Pat::TupleStruct(pattern) if may_fail && variant_of(&pattern.path).is_some() => {
                let mut parts = self.read_patterns(&pattern.elems, true);
                let (Some(variant), Some(payload), true) =
                    (variant_of(&pattern.path), parts.pop(), parts.is_empty())
                else {
                    self.refuse(pattern, Refusal::OtherPattern);
                    return wild(pat);
                };
                let payload = Some(Box::new(payload));
                PatternKind::Variant { variant, payload }
            }
            syn::Pat::TupleStruct(pattern) if variant_of(&pattern.path).is_some() => {
                self.refuse(pat, Refusal::RefutableLet);
                PatternKind::Wild
            }
            // A constant and a new name look alike; rustc's naming lints keep them apart.
            syn::Pat::Ident(ident) if may_fail && is_constant(ident) => {
                let path = syn::Path::from(ident.ident.clone());
                PatternKind::Const(self.read_pattern_path(&path))
            }
            syn::Pat::Ident(ident) => self.read_binding(ident, may_fail),
            syn::Pat::Tuple(tuple) => PatternKind::Tuple(self.read_patterns(&tuple.elems, may_fail)),
            syn::Pat::Slice(slice) => PatternKind::Array(self.read_patterns(&slice.elems, may_fail)),
            syn::Pat::Rest(_) => PatternKind::Rest,
            syn::Pat::Reference(reference) => {
                PatternKind::Ref(Box::new(self.read_any_pattern(&reference.pat, may_fail)))
            }
            syn::Pat::Struct(pattern) if pattern.qself.is_none() => {
                let fields = pattern.fields.iter().map(|field| {
                    let name = match &field.member {
                        syn::Member::Named(name) => name_of(name),
                        syn::Member::Unnamed(index) => index.index.to_string(),
                    };
                    (name, self.read_any_pattern(&field.pat, may_fail))
                });
                let fields = fields.collect();
                PatternKind::Struct {
                    name: self.read_struct_name(&pattern.path),
                    fields,
                    rest: pattern.rest.is_some(),
                }
            }
            syn::Pat::TupleStruct(pattern) if pattern.qself.is_none() => PatternKind::TupleStruct {
                name: self.read_struct_name(&pattern.path),
                parts: self.read_patterns(&pattern.elems, may_fail),
            },
            syn::Pat::Lit(_) | syn::Pat::Range(_) | syn::Pat::Path(_) | syn::Pat::Or(_) if !may_fail => {
                self.refuse(pat, Refusal::RefutableLet);
                PatternKind::Wild
            }
            syn::Pat::Lit(lit) if let syn::Lit::ByteStr(text) = &lit.lit => {
                let line = line_of(text.span());
                let byte = |byte: u8| Pattern {
                    line,
                    kind: PatternKind::Const(PatternConst::Int {
                        negative: false,
                        value: byte.into(),
                        suffix: Some(Scalar::U8),
                    }),
                };
                PatternKind::Array(text.value().into_iter().map(byte).collect())
            }
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
            syn::Pat::Or(or) => PatternKind::Or(
                or.cases
                    .iter()
                    .map(|case| self.read_any_pattern(case, true))
                    .collect(),
            ),
            other => {
                let refusal = match may_fail {
                    true => Refusal::OtherPattern,
                    false => Refusal::LetPattern,
                };
                self.refuse(other, refusal);
                PatternKind::Wild
            }
        };
        Pattern {
            line: line_of(pat.span()),
            kind,
        }
    }

    /// The elements of a tuple's or an array's pattern.
    fn read_patterns<'a>(
        &mut self,
        parts: impl IntoIterator<Item = &'a syn::Pat>,
        may_fail: bool,
    ) -> Vec<Pattern> {
        let mut rest = false;
        let parts = parts.into_iter();
        parts
            .map(|part| {
                if is_rest(part) && std::mem::replace(&mut rest, true) {
                    self.refuse(part, Refusal::RestPattern);
                }
                self.read_any_pattern(part, may_fail)
            })
            .collect()
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

    fn read_binding(&mut self, ident: &syn::PatIdent, may_fail: bool) -> PatternKind {
        if let Some(token) = &ident.by_ref
            && (!self.by_ref || ident.subpat.is_some())
        {
            self.refuse(token, Refusal::RefBinding);
        }
        let name = name_of(&ident.ident);
        // `ref mut` says that what is behind changes.
        let mutable = ident.mutability.is_some() && ident.by_ref.is_none();
        let met_by_ref = std::mem::replace(&mut self.by_ref, false);
        let copies = met_by_ref && ident.by_ref.is_none();
        if mutable {
            self.declare_mutable(&name);
        }
        self.declare(&name);
        let kind = match &ident.subpat {
            None => PatternKind::Binding { name, mutable },
            Some((_, pattern)) => PatternKind::At {
                name,
                mutable,
                pattern: Box::new(self.read_any_pattern(pattern, may_fail)),
            },
        };
        self.by_ref = met_by_ref;
        if !copies {
            return kind;
        }
        let line = line_of(ident.span());
        PatternKind::Ref(Box::new(Pattern { line, kind }))
    }

    fn read_pattern_path(&mut self, path: &syn::Path) -> PatternConst {
        match self.type_member(path).or_else(|| self.unit_variant(path)) {
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
        match lit {
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
                let digits = lit.base10_digits();
                if suffix.is_some_and(Scalar::is_float) {
                    let text = digits.to_owned();
                    return Some(PatternConst::Float { text, suffix });
                }
                let magnitude = digits.strip_prefix('-').unwrap_or(digits);
                let value = self.read_magnitude(lit, magnitude);
                return Some(PatternConst::Int {
                    negative: magnitude.len() < digits.len(),
                    value,
                    suffix,
                });
            }
            syn::Lit::Float(lit) => {
                let suffix = self.read_suffix(lit, lit.suffix());
                let text = lit.base10_digits().to_owned();
                return Some(PatternConst::Float { text, suffix });
            }
            _ => {}
        }
        self.refuse(lit, Refusal::StringPattern);
        None
    }
}

/// Whether a pattern stands for the elements that are not written.
fn is_rest(pat: &syn::Pat) -> bool {
    match pat {
        syn::Pat::Rest(_) => true,
        syn::Pat::Ident(ident) => ident.subpat.as_ref().is_some_and(|(_, rest)| is_rest(rest)),
        _ => false,
    }
}

/// Whether a name alone in a pattern means a constant.
fn is_constant(ident: &syn::PatIdent) -> bool {
    ident.by_ref.is_none()
        && ident.mutability.is_none()
        && ident.subpat.is_none()
        && starts_upper(&name_of(&ident.ident))
}
