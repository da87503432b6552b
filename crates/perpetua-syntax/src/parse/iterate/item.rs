//! What an iterator gives at an index, and how the loop's parts are written.

use crate::ast::{
    BinaryOp, EITHER, ELEMENT, Expr, ExprKind, Line, PART, Pattern, PatternKind, Stmt, StmtKind, Type,
    UnaryOp,
};
use crate::parse::chain::Item;
use crate::parse::reader::Reader;
use crate::parse::sugar::{block, expr, local, statement};

/// Statements that declare a variable of the reader's own.
pub(super) fn declare(name: &str, value: Expr, mutable: bool) -> Stmt {
    let line = value.line;
    Stmt {
        line,
        kind: StmtKind::Let {
            pattern: Pattern {
                line,
                kind: PatternKind::Binding {
                    name: name.to_owned(),
                    mutable,
                },
            },
            ty: None,
            init: Some(value),
        },
    }
}

pub(super) fn method(receiver: Expr, name: &str, args: Vec<Expr>) -> Expr {
    expr(
        receiver.line,
        ExprKind::MethodCall {
            receiver: Box::new(receiver),
            name: name.to_owned(),
            generics: Vec::new(),
            args,
        },
    )
}

pub(super) fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    expr(
        left.line,
        ExprKind::Binary {
            op,
            left: Box::new(left),
            right: Box::new(right),
        },
    )
}

pub(super) fn pair(line: Line, a: Expr, b: Expr) -> Expr {
    expr(line, ExprKind::Tuple(vec![a, b]))
}

/// `if cond { then }`.
pub(super) fn when(cond: Expr, then: ExprKind) -> Stmt {
    let line = cond.line;
    statement(expr(
        line,
        ExprKind::If {
            cond: Box::new(cond),
            then: block(line, vec![statement(expr(line, then))], None),
            otherwise: None,
        },
    ))
}

pub(super) fn not(operand: Expr) -> Expr {
    let (line, op) = (operand.line, UnaryOp::Not);
    let operand = Box::new(operand);
    expr(line, ExprKind::Unary { op, operand })
}

pub(super) const CONTINUE: ExprKind = ExprKind::Continue { label: None };

impl Item {
    /// The locals whose elements it gives.
    pub(super) fn bases<'a>(&'a self, found: &mut Vec<&'a str>) {
        if let Item::Element(base) = self {
            found.push(base);
        }
        self.parts().for_each(|part| part.bases(found));
    }

    /// The item at the index that the local holds, with statements before it.
    pub(super) fn at(&self, reader: &mut Reader, index: &str, line: Line, before: &mut Vec<Stmt>) -> Expr {
        let at = || local(index, line);
        match self {
            Item::Element(base) => method(local(base, line), ELEMENT, vec![at()]),
            Item::Part {
                base,
                step,
                width,
                end: Some(end),
                back: true,
            } => {
                // Saturating, for an index beyond the last.
                let way = binary(BinaryOp::Mul, at(), step.clone());
                let name = reader.fresh("end");
                before.push(declare(
                    &name,
                    method(local(end, line), "saturating_sub", vec![way]),
                    false,
                ));
                let start = reader.fresh("start");
                let first = method(local(&name, line), "saturating_sub", vec![width.clone()]);
                before.push(declare(&start, first, false));
                let len = binary(BinaryOp::Sub, local(&name, line), local(&start, line));
                method(local(base, line), PART, vec![local(&start, line), len])
            }
            Item::Part {
                base,
                step,
                width,
                end,
                ..
            } => {
                let start = reader.fresh("start");
                before.push(declare(&start, binary(BinaryOp::Mul, at(), step.clone()), false));
                let mut len = width.clone();
                if let Some(end) = end {
                    let left = binary(BinaryOp::Sub, local(end, line), local(&start, line));
                    len = method(len, "min", vec![left]);
                }
                method(local(base, line), PART, vec![local(&start, line), len])
            }
            Item::Count(start) => {
                let (value, ty) = (Box::new(at()), Type::Infer);
                let way = expr(line, ExprKind::Cast { value, ty });
                binary(BinaryOp::Add, start.clone(), way)
            }
            Item::Same(value) => value.clone(),
            Item::Cycle(inner, count) => {
                let name = reader.fresh("at");
                before.push(declare(&name, binary(BinaryOp::Rem, at(), count.clone()), false));
                inner.at(reader, &name, line, before)
            }
            Item::Enumerate(inner) => {
                let item = inner.at(reader, index, line, before);
                pair(line, at(), item)
            }
            Item::Zip(a, b) => {
                let a = a.at(reader, index, line, before);
                let b = b.at(reader, index, line, before);
                pair(line, a, b)
            }
            Item::From(inner, first, step) => {
                let way = match step.kind {
                    ExprKind::Int { value: 1, .. } => at(),
                    _ => binary(BinaryOp::Mul, at(), step.clone()),
                };
                let name = reader.fresh("at");
                before.push(declare(&name, binary(BinaryOp::Add, first.clone(), way), false));
                inner.at(reader, &name, line, before)
            }
            Item::Rev(inner, last) => {
                let name = reader.fresh("at");
                before.push(declare(&name, binary(BinaryOp::Sub, last.clone(), at()), false));
                inner.at(reader, &name, line, before)
            }
            Item::Chain(first, count, second) => {
                let (mut here, mut there) = (Vec::new(), Vec::new());
                let one = first.at(reader, index, line, &mut here);
                let name = reader.fresh("at");
                let rest = method(at(), "wrapping_sub", vec![count.clone()]);
                there.push(declare(&name, rest, false));
                let other = second.at(reader, &name, line, &mut there);
                let items = [(here, one), (there, other)].map(|(stmts, item)| {
                    let block = block(line, stmts, Some(item));
                    expr(line, ExprKind::Block { label: None, block })
                });
                let within = binary(BinaryOp::Lt, at(), count.clone());
                method(within, EITHER, items.into())
            }
            Item::Changed(inner, steps) => {
                let item = inner.at(reader, index, line, before);
                reader.read_steps(steps.clone(), item, before)
            }
        }
    }
}
