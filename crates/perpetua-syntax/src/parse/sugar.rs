//! Forms that are others written shortly: `if let`, `while let`, `let … else`, `matches!`, assignments to patterns. The tree
//! has the longer form, so that nothing behind the reader knows them.

use super::Refusal;
use super::block::behind;
use super::expr::peel;
use super::reader::{Reader, line_of, name_of, stand_in};
use crate::ast::{
    Arm, Block, Expr, ExprKind, Line, Pattern, PatternKind, Scalar, Stmt, StmtKind, Type, TypeMember,
};
use syn::spanned::Spanned;

/// The label of the block that stands for an `if let`; no label of the user's has a space.
const LEFT: &str = "if let";

/// A part of a condition.
enum Part<'a> {
    Let(&'a syn::ExprLet),
    Plain(&'a syn::Expr),
}

/// The parts of a condition, which `&&` joins.
fn parts_of<'a>(cond: &'a syn::Expr, parts: &mut Vec<Part<'a>>) {
    match peel(cond) {
        syn::Expr::Let(cond) => parts.push(Part::Let(cond)),
        syn::Expr::Binary(binary) if matches!(binary.op, syn::BinOp::And(_)) => {
            parts_of(&binary.left, parts);
            parts_of(&binary.right, parts);
        }
        other => parts.push(Part::Plain(other)),
    }
}

pub(super) fn expr(line: Line, kind: ExprKind) -> Expr {
    Expr::new(line, kind)
}

pub(super) fn block(line: Line, stmts: Vec<Stmt>, value: Option<Expr>) -> Block {
    Block {
        stmts,
        value: value.map(Box::new),
        end_line: line,
    }
}

/// `{ }`, or the value in a block of its own.
fn block_expr(line: Line, value: Option<Expr>) -> Expr {
    let block = block(line, Vec::new(), value);
    expr(line, ExprKind::Block { label: None, block })
}

pub(super) fn statement(kind: Expr) -> Stmt {
    Stmt {
        line: kind.line,
        kind: StmtKind::Expr(kind),
    }
}

pub(super) fn arm(line: Line, pattern: PatternKind, body: Expr) -> Arm {
    Arm {
        line,
        pattern: Pattern { line, kind: pattern },
        guard: None,
        body,
    }
}

pub(super) fn local(name: &str, line: Line) -> Expr {
    expr(line, ExprKind::Local(name.to_owned()))
}

impl Reader {
    /// `if let P = x { A } else { B }` is a `match`; behind `&&` each part nests in the one before, and a block around all is left
    /// with what they give.
    pub(super) fn read_if_let(&mut self, cond: &syn::ExprIf) -> ExprKind {
        let line = line_of(cond.if_token.span);
        let mut parts = Vec::new();
        parts_of(&cond.cond, &mut parts);
        let otherwise = cond.else_branch.as_ref().map(|(_, branch)| branch);
        if let [Part::Let(only)] = parts[..] {
            let (scrutinee, by_ref) = self.read_met(&only.expr, &[&*only.pat]);
            let scrutinee = Box::new(scrutinee);
            let first = self.scoped(|reader| Arm {
                line: line_of(only.pat.span()),
                pattern: reader.read_pattern(&only.pat, by_ref),
                guard: None,
                body: reader.read_body(&cond.then_branch),
            });
            let otherwise = match otherwise {
                Some(branch) => self.read_expr(branch),
                None => block_expr(line, None),
            };
            let arms = vec![first, arm(line, PatternKind::Wild, otherwise)];
            return ExprKind::Match { scrutinee, arms };
        }
        let nested = self.read_parts(&parts, line, |reader| {
            let value = reader.read_body(&cond.then_branch);
            let label = Some(LEFT.to_owned());
            let value = Some(Box::new(value));
            expr(line, ExprKind::Break { label, value })
        });
        let otherwise = otherwise.map(|branch| self.read_expr(branch));
        ExprKind::Block {
            label: Some(LEFT.to_owned()),
            block: block(line, vec![statement(nested)], otherwise),
        }
    }

    /// `while let P = x { A }` is a `loop` that is left where the pattern does not match.
    pub(super) fn read_while_let(&mut self, label: Option<String>, cond: &syn::ExprWhile) -> ExprKind {
        let line = line_of(cond.while_token.span);
        let mut parts = Vec::new();
        parts_of(&cond.cond, &mut parts);
        let nested = self.read_parts(&parts, line, |reader| {
            let body = reader.read_body(&cond.body);
            let again = expr(line, ExprKind::Continue { label: None });
            let stmts = vec![statement(body), statement(again)];
            let block = block(line, stmts, None);
            expr(line, ExprKind::Block { label: None, block })
        });
        let leave = expr(
            line,
            ExprKind::Break {
                label: None,
                value: None,
            },
        );
        ExprKind::Loop {
            label,
            body: block(line, vec![statement(nested), statement(leave)], None),
        }
    }

    /// The parts of a condition nested, with `then` where all hold; it gives `()`.
    fn read_parts(&mut self, parts: &[Part<'_>], line: Line, then: impl FnOnce(&mut Self) -> Expr) -> Expr {
        let Some((part, rest)) = parts.split_first() else {
            return then(self);
        };
        match part {
            Part::Plain(cond) => {
                let cond = Box::new(self.read_expr(cond));
                let inner = self.read_parts(rest, line, then);
                let then = block(line, vec![statement(inner)], None);
                expr(
                    line,
                    ExprKind::If {
                        cond,
                        then,
                        otherwise: None,
                    },
                )
            }
            Part::Let(cond) => {
                let (scrutinee, by_ref) = self.read_met(&cond.expr, &[&*cond.pat]);
                let scrutinee = Box::new(scrutinee);
                let first = self.scoped(|reader| {
                    let pattern = reader.read_pattern(&cond.pat, by_ref);
                    let inner = reader.read_parts(rest, line, then);
                    let block = block(line, vec![statement(inner)], None);
                    Arm {
                        line: pattern.line,
                        pattern,
                        guard: None,
                        body: expr(line, ExprKind::Block { label: None, block }),
                    }
                });
                let arms = vec![first, arm(line, PatternKind::Wild, block_expr(line, None))];
                expr(line, ExprKind::Match { scrutinee, arms })
            }
        }
    }

    fn read_body(&mut self, body: &syn::Block) -> Expr {
        let block = self.read_block(body);
        expr(block.end_line, ExprKind::Block { label: None, block })
    }

    /// `let P = x else { A };` binds the pattern's names to what a `match` gives for them.
    pub(super) fn read_let_else(
        &mut self,
        pat: &syn::Pat,
        ty: Option<Type>,
        init: &syn::Expr,
        otherwise: &syn::Expr,
        line: Line,
    ) -> Stmt {
        let (scrutinee, by_ref) = self.read_met(init, &[pat]);
        let ty = behind(by_ref, ty);
        let otherwise = self.read_expr(otherwise);
        // Behind what stands before it: the names are those of the block.
        let pattern = self.read_pattern(pat, by_ref);
        let names = pattern.names();
        let parts = names.iter().map(|(name, _)| local(name, line)).collect();
        let value = expr(line, ExprKind::Tuple(parts));
        let scrutinee = match ty {
            None => scrutinee,
            Some(_) => {
                let name = "__let_else".to_owned();
                let value = local(&name, line);
                let bind = Stmt {
                    line,
                    kind: StmtKind::Let {
                        pattern: binding(&name, line),
                        ty,
                        init: Some(scrutinee),
                    },
                };
                let block = block(line, vec![bind], Some(value));
                expr(line, ExprKind::Block { label: None, block })
            }
        };
        let arms = vec![
            Arm {
                line,
                pattern,
                guard: None,
                body: value,
            },
            arm(line, PatternKind::Wild, otherwise),
        ];
        let bound = names.into_iter().map(|(name, mutable)| Pattern {
            line,
            kind: PatternKind::Binding { name, mutable },
        });
        Stmt {
            line,
            kind: StmtKind::Let {
                pattern: Pattern {
                    line,
                    kind: PatternKind::Tuple(bound.collect()),
                },
                ty: None,
                init: Some(expr(
                    line,
                    ExprKind::Match {
                        scrutinee: Box::new(scrutinee),
                        arms,
                    },
                )),
            },
        }
    }

    /// `matches!(x, P if guard)` is a `match` that gives a `bool`.
    pub(super) fn read_matches(&mut self, mac: &syn::Macro) -> ExprKind {
        let read = mac.parse_body_with(|input: syn::parse::ParseStream<'_>| {
            let scrutinee: syn::Expr = input.parse()?;
            input.parse::<syn::Token![,]>()?;
            let pattern = syn::Pat::parse_multi_with_leading_vert(input)?;
            let guard = match input.parse::<Option<syn::Token![if]>>()? {
                Some(_) => Some(input.parse::<syn::Expr>()?),
                None => None,
            };
            input.parse::<Option<syn::Token![,]>>()?;
            Ok((scrutinee, pattern, guard))
        });
        let (scrutinee, pattern, guard) = match read {
            Ok(read) => read,
            Err(error) => {
                self.error(&mac.path, format!("{error}: write `matches!(x, pattern)`"));
                return ExprKind::Tuple(Vec::new());
            }
        };
        let line = line_of(mac.path.span());
        let (scrutinee, by_ref) = self.read_met(&scrutinee, &[&pattern]);
        let scrutinee = Box::new(scrutinee);
        let first = self.scoped(|reader| Arm {
            line,
            pattern: reader.read_pattern(&pattern, by_ref),
            guard: guard.as_ref().map(|guard| reader.read_expr(guard)),
            body: expr(line, ExprKind::Bool(true)),
        });
        let arms = vec![
            first,
            arm(line, PatternKind::Wild, expr(line, ExprKind::Bool(false))),
        ];
        ExprKind::Match { scrutinee, arms }
    }

    /// `(a, x[i]) = value` binds the parts and stores each.
    pub(super) fn read_destructuring(&mut self, left: &syn::Expr, value: &syn::Expr) -> ExprKind {
        let line = line_of(left.span());
        let value = self.read_expr(value);
        let mut places = Vec::new();
        let pattern = self.read_places(left, &mut places);
        let mut stmts = vec![Stmt {
            line,
            kind: StmtKind::Let {
                pattern,
                ty: None,
                init: Some(value),
            },
        }];
        for (name, place) in places {
            let place = Box::new(place);
            let value = Box::new(local(&name, line));
            stmts.push(statement(expr(line, ExprKind::Assign { place, value })));
        }
        ExprKind::Block {
            label: None,
            block: block(line, stmts, None),
        }
    }

    /// The pattern that an assignment's left side is, with a name for each place.
    fn read_places(&mut self, left: &syn::Expr, places: &mut Vec<(String, Expr)>) -> Pattern {
        let line = line_of(left.span());
        let kind = match peel(left) {
            syn::Expr::Infer(_) => PatternKind::Wild,
            syn::Expr::Range(range) if range.start.is_none() && range.end.is_none() => PatternKind::Rest,
            syn::Expr::Tuple(tuple) => PatternKind::Tuple(
                tuple
                    .elems
                    .iter()
                    .map(|part| self.read_places(part, places))
                    .collect(),
            ),
            syn::Expr::Array(array) => PatternKind::Array(
                array
                    .elems
                    .iter()
                    .map(|part| self.read_places(part, places))
                    .collect(),
            ),
            syn::Expr::Struct(literal) if literal.qself.is_none() && literal.rest.is_none() => {
                let fields = literal.fields.iter().map(|field| {
                    let name = match &field.member {
                        syn::Member::Named(name) => name_of(name),
                        syn::Member::Unnamed(index) => index.index.to_string(),
                    };
                    (name, self.read_places(&field.expr, places))
                });
                let fields = fields.collect();
                PatternKind::Struct {
                    name: self.read_struct_name(&literal.path),
                    fields,
                    rest: literal.dot2_token.is_some(),
                }
            }
            other => {
                let place = match other {
                    syn::Expr::Path(_) | syn::Expr::Index(_) | syn::Expr::Field(_) => self.read_expr(other),
                    syn::Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => {
                        self.read_expr(other)
                    }
                    other => {
                        self.refuse(other, Refusal::NotAPlace);
                        stand_in(other.span())
                    }
                };
                let name = format!("__part{}", places.len());
                places.push((name.clone(), place));
                return binding(&name, line);
            }
        };
        Pattern { line, kind }
    }
}

pub(super) fn binding(name: &str, line: Line) -> Pattern {
    Pattern {
        line,
        kind: PatternKind::Binding {
            name: name.to_owned(),
            mutable: false,
        },
    }
}

/// `usize::MAX`.
pub(super) fn most(line: Line) -> Expr {
    let most = TypeMember {
        ty: Type::Scalar(Scalar::Usize),
        via: None,
        name: "MAX".to_owned(),
    };
    expr(line, ExprKind::TypeConst(Box::new(most)))
}
