//! Comparisons of two iterators, item by item: `eq`, `lt`, `cmp` and their kin.

use super::item::{binary, declare, method, not, when};
use super::{Source, number};
use crate::ast::{BinaryOp, Expr, ExprKind, Line, Scalar, UnaryOp};
use crate::parse::Refusal;
use crate::parse::reader::{Reader, line_of, name_of};
use crate::parse::sugar::{block, expr, local, statement};

/// What is known where items differ, where the second ends first, where the first does, and where both end.
fn results(name: &str, a: Expr, b: Expr, line: Line) -> Option<[Expr; 4]> {
    let is = |value: bool| expr(line, ExprKind::Bool(value));
    let order = |name: &str, a: Expr, b: Expr| {
        let (op, operand) = (UnaryOp::Ref, Box::new(b));
        method(a, name, vec![expr(line, ExprKind::Unary { op, operand })])
    };
    let int = |value| {
        let suffix = Some(Scalar::I32);
        expr(line, ExprKind::Int { value, suffix })
    };
    let known = |first, second| order(name, int(first), int(second));
    Some(match name {
        "eq" => [is(false), is(false), is(false), is(true)],
        "ne" => [is(true), is(true), is(true), is(false)],
        "lt" => [binary(BinaryOp::Lt, a, b), is(false), is(true), is(false)],
        "le" => [binary(BinaryOp::Le, a, b), is(false), is(true), is(true)],
        "gt" => [binary(BinaryOp::Gt, a, b), is(true), is(false), is(false)],
        "ge" => [binary(BinaryOp::Ge, a, b), is(true), is(false), is(true)],
        "cmp" | "partial_cmp" => [order(name, a, b), known(1, 0), known(0, 1), known(0, 0)],
        _ => return None,
    })
}

impl Reader {
    /// `a.eq(b)` and its kin; `None` of other methods.
    pub(super) fn read_items_compared(&mut self, call: &syn::ExprMethodCall) -> Option<ExprKind> {
        let (name, line) = (name_of(&call.method), line_of(call.method.span()));
        let (a, b) = (self.fresh("item"), self.fresh("item"));
        let given = results(&name, local(&a, line), local(&b, line), line)?;
        let [differ, longer, shorter, same] = given;
        let other = call.args.first().filter(|_| call.args.len() == 1)?;
        let mut chain = self.read_iterable(&call.receiver);
        let mut second = self.read_beside(other);
        self.by_places(&mut second);
        let indexed = self.indexed(&mut second);
        let (Some(()), Source::Items(item, count)) = (indexed, second.source) else {
            self.refuse_named(&call.method, Refusal::IteratorOrder, &name);
            return Some(ExprKind::Tuple(Vec::new()));
        };
        let mut setup = std::mem::take(&mut chain.setup);
        chain.setup = second.setup;
        let (count, counter) = (chain.name(self, "count", count), self.counter(&mut chain));
        let (result, over) = (self.fresh("result"), self.fresh("over"));
        let assign = |place: &str, value: Expr| {
            let (place, value) = (Box::new(local(place, line)), Box::new(value));
            statement(expr(line, ExprKind::Assign { place, value }))
        };
        let is = |value: bool| expr(line, ExprKind::Bool(value));
        let (stmts, looped) = self.read_loop(chain, None, |reader, value| {
            let stop = |reader: &Reader, value: Expr| {
                let left = statement(expr(line, reader.leave()));
                let block = block(
                    line,
                    vec![assign(&result, value), assign(&over, is(true)), left],
                    None,
                );
                ExprKind::Block { label: None, block }
            };
            let full = binary(BinaryOp::Ge, local(&counter, line), count.clone());
            let mut stmts = vec![declare(&a, value, false), when(full, stop(reader, longer))];
            let other = item.at(reader, &counter, line, &mut stmts);
            stmts.push(declare(&b, other, false));
            let equal = binary(BinaryOp::Eq, local(&a, line), local(&b, line));
            stmts.push(when(not(equal), stop(reader, differ)));
            let (op, place) = (BinaryOp::Add, Box::new(local(&counter, line)));
            let value = Box::new(number(line, 1));
            stmts.push(statement(expr(
                line,
                ExprKind::CompoundAssign { op, place, value },
            )));
            block(line, stmts, None)
        });
        setup.push(declare(&result, same, true));
        setup.push(declare(&over, is(false), true));
        setup.extend(stmts);
        setup.push(statement(looped));
        let left = binary(BinaryOp::Lt, local(&counter, line), count);
        let left = binary(BinaryOp::And, not(local(&over, line)), left);
        let (place, value) = (Box::new(local(&result, line)), Box::new(shorter));
        setup.push(when(left, ExprKind::Assign { place, value }));
        Some(ExprKind::Block {
            label: None,
            block: block(line, setup, Some(local(&result, line))),
        })
    }
}
