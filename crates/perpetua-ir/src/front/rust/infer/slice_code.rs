//! Methods of slices as code in the language.

use perpetua_syntax::{
    BinaryOp, ELEMENT, Expr, ExprKind, PART, PICK, PrintFormat, PrintPiece, UnaryOp, Variant,
};

use super::written::{ARGUMENT, RECEIVER, Writer};

/// What a sort goes by.
pub(super) enum SortBy<'a> {
    /// The elements' order.
    Order,
    /// What a function gives for each.
    Key(&'a Expr),
    /// What a function says of two.
    Compare(&'a Expr),
}

/// What a search seeks.
pub(super) enum Seek<'a> {
    /// The argument.
    Value,
    /// The first element for which a function does not hold.
    Point(&'a Expr),
    /// An element that a function calls equal.
    By(&'a Expr),
    /// An element of which a function gives the argument.
    Key(&'a Expr),
}

impl Writer {
    /// `receiver.contains(argument)`, a reference.
    pub(super) fn contains(self) -> Expr {
        let found = "found";
        let wanted = self.unary(UnaryOp::Deref, self.local(ARGUMENT));
        let element = self.element(RECEIVER, self.index());
        let equal = self.binary(BinaryOp::Eq, element, wanted);
        let yes = self.assign(self.local(found), self.bool(true));
        let then = self.block(vec![yes, self.leave()], None);
        let test = self.stmt(self.when(equal, then, None));
        let stmts = vec![
            self.bind(found, self.bool(false)),
            self.count(self.int(0), self.len(RECEIVER), vec![test]),
        ];
        self.block_expr(stmts, Some(self.local(found)))
    }

    /// `receiver.copy_from_slice(argument)`.
    pub(super) fn copy(self) -> Expr {
        let differ = self.binary(BinaryOp::Ne, self.len(RECEIVER), self.len(ARGUMENT));
        let arg = |index| PrintPiece::Arg {
            index,
            format: PrintFormat::default(),
        };
        let text = |text: &str| PrintPiece::Text(text.to_owned());
        let pieces = vec![
            text("copy_from_slice: source slice length ("),
            arg(0),
            text(") does not match destination slice length ("),
            arg(1),
            text(")"),
        ];
        let args = vec![self.len(ARGUMENT), self.len(RECEIVER)];
        let panic = self.expr(ExprKind::Panic { pieces, args });
        let then = self.block(vec![self.stmt(panic)], None);
        let element = |of| self.element(of, self.index());
        let stmts = vec![
            self.stmt(self.when(differ, then, None)),
            self.count(
                self.int(0),
                self.len(RECEIVER),
                vec![self.assign(element(RECEIVER), element(ARGUMENT))],
            ),
        ];
        self.block_expr(stmts, None)
    }

    /// `receiver.reverse()`.
    pub(super) fn reverse(self) -> Expr {
        let half = self.binary(BinaryOp::Div, self.len(RECEIVER), self.int(2));
        let last = self.binary(BinaryOp::Sub, self.len(RECEIVER), self.int(1));
        let other = self.binary(BinaryOp::Sub, last, self.index());
        let swap = self.method(self.local(RECEIVER), "swap", vec![self.index(), other]);
        let stmts = vec![self.count(self.int(0), half, vec![self.stmt(swap)])];
        self.block_expr(stmts, None)
    }

    /// The receiver's elements from `start`, as many as `len`, which are there.
    fn part(self, start: Expr, len: Expr) -> Expr {
        self.method(self.local(RECEIVER), PART, vec![start, len])
    }

    /// `receiver.split_first()` or `split_last`.
    pub(super) fn split_end(self, first: bool) -> Expr {
        let last = self.method(self.len(RECEIVER), "wrapping_sub", vec![self.int(1)]);
        let (at, start) = match first {
            true => (self.int(0), self.int(1)),
            false => (last.clone(), self.int(0)),
        };
        let one = self.method(self.local(RECEIVER), ELEMENT, vec![at]);
        let both = self.expr(ExprKind::Tuple(vec![one, self.part(start, last)]));
        let there = self.not(self.method(self.local(RECEIVER), "is_empty", Vec::new()));
        self.method(both, PICK, vec![there])
    }

    /// `receiver.starts_with(argument)` or `ends_with`.
    pub(super) fn at_end(self, first: bool) -> Expr {
        let fits = self.binary(BinaryOp::Le, self.len(ARGUMENT), self.len(RECEIVER));
        let start = match first {
            true => self.int(0),
            false => self.binary(BinaryOp::Sub, self.len(RECEIVER), self.len(ARGUMENT)),
        };
        let part = self.part(start, self.len(ARGUMENT));
        let same = self.binary(BinaryOp::Eq, part, self.local(ARGUMENT));
        self.binary(BinaryOp::And, fits, same)
    }

    /// `receiver.rotate_left(argument)` or `rotate_right`: both parts reversed, then all.
    pub(super) fn rotate(self, left: bool) -> Expr {
        let (len, rest) = (
            self.len(RECEIVER),
            self.binary(BinaryOp::Sub, self.len(RECEIVER), self.local(ARGUMENT)),
        );
        let far = self.binary(BinaryOp::Gt, self.local(ARGUMENT), len.clone());
        let text = "assertion failed: mid <= self.len()";
        let pieces = vec![PrintPiece::Text(text.to_owned())];
        let panic = self.expr(ExprKind::Panic {
            pieces,
            args: Vec::new(),
        });
        let mid = "mid";
        let at = if left { self.local(ARGUMENT) } else { rest };
        let reverse = |part: Expr| self.stmt(self.method(part, "reverse", Vec::new()));
        let behind = self.binary(BinaryOp::Sub, len, self.local(mid));
        let stmts = vec![
            self.stmt(self.when(far, self.block(vec![self.stmt(panic)], None), None)),
            self.bind(mid, at),
            reverse(self.part(self.int(0), self.local(mid))),
            reverse(self.part(self.local(mid), behind)),
            reverse(self.local(RECEIVER)),
        ];
        self.block_expr(stmts, None)
    }

    /// `receiver.binary_search(argument)` and its kin, or `partition_point(function)`: as the standard library goes.
    pub(super) fn search(self, by: &Seek<'_>) -> Expr {
        // A closure of the user's stands among them.
        let (size, base, half, mid) = ("the size", "the base", "the half", "the middle");
        let at = |index: Expr| self.method(self.local(RECEIVER), ELEMENT, vec![index]);
        // Whether the element is beyond what is sought.
        let given = |function: &Expr, index: Expr| {
            let (function, args) = (Box::new(function.clone()), vec![at(index)]);
            self.expr(ExprKind::Apply { function, args })
        };
        let key =
            |op, function: &Expr, index: Expr| self.binary(op, given(function, index), self.target(ARGUMENT));
        let is =
            |name: &str, function: &Expr, index: Expr| self.method(given(function, index), name, Vec::new());
        let beyond = |index: Expr| match by {
            Seek::Value => self.binary(BinaryOp::Gt, at(index), self.local(ARGUMENT)),
            Seek::Point(function) => self.not(given(function, index)),
            Seek::By(function) => is("is_gt", function, index),
            Seek::Key(function) => key(BinaryOp::Gt, function, index),
        };
        let equals = |index: Expr| match by {
            Seek::By(function) => is("is_eq", function, index),
            Seek::Key(function) => key(BinaryOp::Eq, function, index),
            _ => self.binary(BinaryOp::Eq, at(index), self.local(ARGUMENT)),
        };
        let next = vec![
            self.bind(half, self.binary(BinaryOp::Div, self.local(size), self.int(2))),
            self.bind(
                mid,
                self.binary(BinaryOp::Add, self.local(base), self.local(half)),
            ),
            self.stmt(self.when(
                self.not(beyond(self.local(mid))),
                self.block(vec![self.assign(self.local(base), self.local(mid))], None),
                None,
            )),
            self.assign(
                self.local(size),
                self.binary(BinaryOp::Sub, self.local(size), self.local(half)),
            ),
        ];
        let looped = self.expr(ExprKind::While {
            label: None,
            cond: Box::new(self.binary(BinaryOp::Gt, self.local(size), self.int(1))),
            body: self.block(next, None),
        });
        let behind = self.binary(BinaryOp::Add, self.local(base), self.int(1));
        let empty = self.binary(BinaryOp::Eq, self.local(size), self.int(0));
        let found = match by {
            Seek::Value | Seek::By(_) | Seek::Key(_) => {
                let (ok, err) = (self.variant(Variant::Ok, Some(self.local(base))), |at: Expr| {
                    self.variant(Variant::Err, Some(at))
                });
                let equal = equals(self.local(base));
                let other = self.choose(beyond(self.local(base)), err(self.local(base)), err(behind));
                self.choose(empty, err(self.int(0)), self.choose(equal, ok, other))
            }
            Seek::Point(_) => {
                let other = self.choose(beyond(self.local(base)), self.local(base), behind);
                self.choose(empty, self.int(0), other)
            }
        };
        let stmts = vec![
            self.bind(size, self.len(RECEIVER)),
            self.bind(base, self.int(0)),
            self.stmt(looped),
        ];
        self.block_expr(stmts, Some(found))
    }

    /// `receiver.sort()` and its kin: each element moves to the front until what stands before it is not greater. Stable, and
    /// quick for the few elements that one lane sorts.
    pub(super) fn sort(self, by: &SortBy<'_>) -> Expr {
        let at = "the place";
        let before = || self.binary(BinaryOp::Sub, self.local(at), self.int(1));
        let element = |index: Expr| {
            let place = self.method(self.local(RECEIVER), ELEMENT, vec![index]);
            self.unary(UnaryOp::Ref, self.unary(UnaryOp::Deref, place))
        };
        let apply = |function: &Expr, args: Vec<Expr>| {
            let function = Box::new(function.clone());
            self.expr(ExprKind::Apply { function, args })
        };
        let (own, other) = (element(self.local(at)), element(before()));
        let less = match by {
            SortBy::Order => self.binary(BinaryOp::Lt, own, other),
            SortBy::Key(key) => self.binary(BinaryOp::Lt, apply(key, vec![own]), apply(key, vec![other])),
            SortBy::Compare(compare) => self.method(apply(compare, vec![own, other]), "is_lt", Vec::new()),
        };
        let some = self.binary(BinaryOp::Gt, self.local(at), self.int(0));
        let swap = self.method(self.local(RECEIVER), "swap", vec![self.local(at), before()]);
        let looped = self.expr(ExprKind::While {
            label: None,
            cond: Box::new(self.binary(BinaryOp::And, some, less)),
            body: self.block(vec![self.stmt(swap), self.assign(self.local(at), before())], None),
        });
        let body = vec![self.bind(at, self.index()), self.stmt(looped)];
        self.block_expr(vec![self.count(self.int(1), self.len(RECEIVER), body)], None)
    }

    /// `receiver.is_sorted()` and its kin.
    pub(super) fn is_sorted(self, by: &SortBy<'_>) -> Expr {
        let sorted = "is sorted";
        let before = self.binary(BinaryOp::Sub, self.index(), self.int(1));
        let element = |index: Expr| {
            let place = self.method(self.local(RECEIVER), ELEMENT, vec![index]);
            self.unary(UnaryOp::Ref, self.unary(UnaryOp::Deref, place))
        };
        let apply = |function: &Expr, args: Vec<Expr>| {
            let function = Box::new(function.clone());
            self.expr(ExprKind::Apply { function, args })
        };
        let fine = match by {
            SortBy::Order => self.binary(
                BinaryOp::Le,
                self.of_receiver(before),
                self.of_receiver(self.index()),
            ),
            SortBy::Key(key) => self.binary(
                BinaryOp::Le,
                apply(key, vec![element(before)]),
                apply(key, vec![element(self.index())]),
            ),
            SortBy::Compare(compare) => apply(compare, vec![element(before), element(self.index())]),
        };
        let then = vec![self.assign(self.local(sorted), self.bool(false)), self.leave()];
        let test = self.stmt(self.when(self.not(fine), self.block(then, None), None));
        let stmts = vec![
            self.bind(sorted, self.bool(true)),
            self.count(self.int(1), self.len(RECEIVER), vec![test]),
        ];
        self.block_expr(stmts, Some(self.local(sorted)))
    }

    /// `receiver.select_nth_unstable(argument)` and its kin: all is sorted.
    pub(super) fn select(self, by: &SortBy<'_>) -> Expr {
        let one = self.method(self.local(RECEIVER), ELEMENT, vec![self.local(ARGUMENT)]);
        let behind = self.binary(BinaryOp::Add, self.local(ARGUMENT), self.int(1));
        let left = self.binary(BinaryOp::Sub, self.len(RECEIVER), behind.clone());
        let parts = vec![
            self.part(self.int(0), self.local(ARGUMENT)),
            one,
            self.part(behind, left),
        ];
        let inside = self.binary(BinaryOp::Lt, self.local(ARGUMENT), self.len(RECEIVER));
        let stmts = vec![
            self.never(self.not(inside), "partition_at_index index out of bounds"),
            self.stmt(self.sort(by)),
        ];
        self.block_expr(stmts, Some(self.expr(ExprKind::Tuple(parts))))
    }
}
