//! Methods that are code in the language itself: the checker writes what a user would write, over locals that it has declared.

use perpetua_syntax::{
    BinaryOp, Block, Expr, ExprKind, Pattern, PatternKind, PrintFormat, PrintPiece, Range, Stmt, StmtKind,
    UnaryOp, Variant,
};

/// The locals that stand for a receiver and an argument; no name of the user's has a space.
pub(super) const RECEIVER: &str = "the receiver";
pub(super) const ARGUMENT: &str = "the argument";
const INDEX: &str = "the index";

/// Writes expressions that stand in one line.
#[derive(Clone, Copy)]
pub(super) struct Writer(pub(super) u32);

impl Writer {
    fn expr(self, kind: ExprKind) -> Expr {
        Expr { line: self.0, kind }
    }
    pub(super) fn local(self, name: &str) -> Expr {
        self.expr(ExprKind::Local(name.to_owned()))
    }
    fn int(self, value: u128) -> Expr {
        self.expr(ExprKind::Int { value, suffix: None })
    }
    pub(super) fn binary(self, op: BinaryOp, left: Expr, right: Expr) -> Expr {
        let (left, right) = (Box::new(left), Box::new(right));
        self.expr(ExprKind::Binary { op, left, right })
    }
    fn unary(self, op: UnaryOp, operand: Expr) -> Expr {
        let operand = Box::new(operand);
        self.expr(ExprKind::Unary { op, operand })
    }
    pub(super) fn method(self, receiver: Expr, name: &str, args: Vec<Expr>) -> Expr {
        self.expr(ExprKind::MethodCall {
            receiver: Box::new(receiver),
            name: name.to_owned(),
            generics: Vec::new(),
            args,
        })
    }
    fn variant(self, variant: Variant, payload: Option<Expr>) -> Expr {
        let payload = payload.map(Box::new);
        self.expr(ExprKind::Variant { variant, payload })
    }
    fn element(self, base: &str, index: Expr) -> Expr {
        let (base, index) = (Box::new(self.local(base)), Box::new(index));
        self.expr(ExprKind::Index { base, index })
    }
    fn assign(self, place: Expr, value: Expr) -> Stmt {
        let (place, value) = (Box::new(place), Box::new(value));
        self.stmt(self.expr(ExprKind::Assign { place, value }))
    }
    fn stmt(self, expr: Expr) -> Stmt {
        Stmt {
            line: self.0,
            kind: StmtKind::Expr(expr),
        }
    }
    fn binding(self, name: &str, mutable: bool) -> Pattern {
        let name = name.to_owned();
        Pattern {
            line: self.0,
            kind: PatternKind::Binding { name, mutable },
        }
    }
    fn bind(self, name: &str, value: Expr) -> Stmt {
        Stmt {
            line: self.0,
            kind: StmtKind::Let {
                pattern: self.binding(name, true),
                ty: None,
                init: Some(value),
            },
        }
    }
    fn block(self, stmts: Vec<Stmt>, value: Option<Expr>) -> Block {
        Block {
            stmts,
            value: value.map(Box::new),
            end_line: self.0,
        }
    }
    pub(super) fn block_expr(self, stmts: Vec<Stmt>, value: Option<Expr>) -> Expr {
        let block = self.block(stmts, value);
        self.expr(ExprKind::Block { label: None, block })
    }
    fn when(self, cond: Expr, then: Block, otherwise: Option<Expr>) -> Expr {
        let (cond, otherwise) = (Box::new(cond), otherwise.map(Box::new));
        self.expr(ExprKind::If {
            cond,
            then,
            otherwise,
        })
    }
    /// `for i in start..end { body }`.
    fn count(self, start: Expr, end: Expr, body: Vec<Stmt>) -> Stmt {
        let range = Range {
            start,
            end,
            inclusive: false,
            adaptors: Vec::new(),
        };
        self.stmt(self.expr(ExprKind::For {
            label: None,
            pattern: self.binding(INDEX, false),
            range: Box::new(range),
            body: self.block(body, None),
        }))
    }
    fn len(self, of: &str) -> Expr {
        self.method(self.local(of), "len", Vec::new())
    }

    pub(super) fn not(self, operand: Expr) -> Expr {
        self.unary(UnaryOp::Not, operand)
    }

    /// `Some(value)` where `cond` holds, else `None`.
    pub(super) fn some_if(self, cond: Expr, value: Expr) -> Expr {
        let some = self.variant(Variant::Some, Some(value));
        let none = self.block_expr(Vec::new(), Some(self.variant(Variant::None, None)));
        self.when(cond, self.block(Vec::new(), Some(some)), Some(none))
    }

    /// Whether `receiver op argument` is defined, of a division.
    pub(super) fn divides(self, signed: bool) -> Expr {
        let some = self.binary(BinaryOp::Ne, self.local(ARGUMENT), self.int(0));
        if !signed {
            return some;
        }
        // Of -MIN and -1.
        let minus_one = self.unary(UnaryOp::Neg, self.int(1));
        let negated = self.binary(BinaryOp::Eq, self.local(ARGUMENT), minus_one);
        let mirrored = self.method(self.local(RECEIVER), "wrapping_neg", Vec::new());
        let same = self.binary(BinaryOp::Eq, mirrored, self.local(RECEIVER));
        let zero = self.binary(BinaryOp::Eq, self.local(RECEIVER), self.int(0));
        let over = self.binary(BinaryOp::And, same, self.unary(UnaryOp::Not, zero));
        let over = self.binary(BinaryOp::And, negated, over);
        self.binary(BinaryOp::And, some, self.unary(UnaryOp::Not, over))
    }

    /// `receiver op 0`.
    pub(super) fn to_zero(self, op: BinaryOp) -> Expr {
        self.binary(op, self.local(RECEIVER), self.int(0))
    }

    /// `argument < bits`.
    pub(super) fn shifts(self, bits: u32) -> Expr {
        self.binary(BinaryOp::Lt, self.local(ARGUMENT), self.int(bits.into()))
    }

    /// `receiver.contains(argument)`, a reference.
    pub(super) fn contains(self) -> Expr {
        let found = "found";
        let wanted = self.unary(UnaryOp::Deref, self.local(ARGUMENT));
        let element = self.element(RECEIVER, self.local(INDEX));
        let equal = self.binary(BinaryOp::Eq, element, wanted);
        let yes = self.assign(self.local(found), self.expr(ExprKind::Bool(true)));
        let leave = self.expr(ExprKind::Break {
            label: None,
            value: None,
        });
        let then = self.block(vec![yes, self.stmt(leave)], None);
        let test = self.stmt(self.when(equal, then, None));
        let stmts = vec![
            self.bind(found, self.expr(ExprKind::Bool(false))),
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
        let element = |of| self.element(of, self.local(INDEX));
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
        let other = self.binary(BinaryOp::Sub, last, self.local(INDEX));
        let swap = self.method(self.local(RECEIVER), "swap", vec![self.local(INDEX), other]);
        let stmts = vec![self.count(self.int(0), half, vec![self.stmt(swap)])];
        self.block_expr(stmts, None)
    }

    /// An array of `len` elements, each what `function` gives for what `of` gives for its index.
    pub(super) fn mapped(self, len: u64, function: &Expr, of: impl Fn(Expr) -> Expr) -> Expr {
        let apply = |index: Expr| {
            self.expr(ExprKind::Apply {
                function: Box::new(function.clone()),
                args: vec![of(index)],
            })
        };
        let all = "all";
        let repeat = self.expr(ExprKind::Repeat {
            value: Box::new(apply(self.int(0))),
            len: Box::new(self.int(len.into())),
        });
        let next = self.assign(self.element(all, self.local(INDEX)), apply(self.local(INDEX)));
        let rest = self.count(self.int(1), self.int(len.into()), vec![next]);
        self.block_expr(vec![self.bind(all, repeat), rest], Some(self.local(all)))
    }

    /// The receiver's element.
    pub(super) fn of_receiver(self, index: Expr) -> Expr {
        self.element(RECEIVER, index)
    }
}
