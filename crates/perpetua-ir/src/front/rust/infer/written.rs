//! Methods that are code in the language itself: the checker writes what a user would write, over locals that it has declared.

use perpetua_syntax::{
    Arm, BinaryOp, Block, Expr, ExprKind, Pattern, PatternKind, Place, Range, Scalar, Stmt, StmtKind, Type,
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
    pub(super) fn expr(self, kind: ExprKind) -> Expr {
        Expr {
            place: Place::default(),
            line: self.0,
            kind,
        }
    }
    pub(super) fn local(self, name: &str) -> Expr {
        self.expr(ExprKind::Local(name.to_owned()))
    }
    pub(super) fn int(self, value: u128) -> Expr {
        self.expr(ExprKind::Int { value, suffix: None })
    }
    pub(super) fn typed_int(self, value: u128) -> Expr {
        let suffix = Some(Scalar::I32);
        self.expr(ExprKind::Int { value, suffix })
    }
    pub(super) fn binary(self, op: BinaryOp, left: Expr, right: Expr) -> Expr {
        let (left, right) = (Box::new(left), Box::new(right));
        self.expr(ExprKind::Binary { op, left, right })
    }
    pub(super) fn unary(self, op: UnaryOp, operand: Expr) -> Expr {
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
    pub(super) fn variant(self, variant: Variant, payload: Option<Expr>) -> Expr {
        let payload = payload.map(Box::new);
        self.expr(ExprKind::Variant { variant, payload })
    }
    pub(super) fn element(self, base: &str, index: Expr) -> Expr {
        let (base, index) = (Box::new(self.local(base)), Box::new(index));
        self.expr(ExprKind::Index { base, index })
    }
    pub(super) fn assign(self, place: Expr, value: Expr) -> Stmt {
        let (place, value) = (Box::new(place), Box::new(value));
        self.stmt(self.expr(ExprKind::Assign { place, value }))
    }
    pub(super) fn stmt(self, expr: Expr) -> Stmt {
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
    pub(super) fn bind(self, name: &str, value: Expr) -> Stmt {
        Stmt {
            line: self.0,
            kind: StmtKind::Let {
                pattern: self.binding(name, true),
                ty: None,
                init: Some(value),
            },
        }
    }
    pub(super) fn block(self, stmts: Vec<Stmt>, value: Option<Expr>) -> Block {
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
    pub(super) fn when(self, cond: Expr, then: Block, otherwise: Option<Expr>) -> Expr {
        let (cond, otherwise) = (Box::new(cond), otherwise.map(Box::new));
        self.expr(ExprKind::If {
            cond,
            then,
            otherwise,
        })
    }
    /// `for i in start..end { body }`.
    pub(super) fn count(self, start: Expr, end: Expr, body: Vec<Stmt>) -> Stmt {
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
    pub(super) fn bool(self, value: bool) -> Expr {
        self.expr(ExprKind::Bool(value))
    }
    /// The counter of [`Writer::count`].
    pub(super) fn index(self) -> Expr {
        self.local(INDEX)
    }
    pub(super) fn field(self, of: &str, index: u32) -> Expr {
        let base = Box::new(self.local(of));
        self.expr(ExprKind::TupleField { base, index })
    }
    /// What a reference refers to.
    pub(super) fn target(self, of: &str) -> Expr {
        self.unary(UnaryOp::Deref, self.local(of))
    }
    /// `break`.
    pub(super) fn leave(self) -> Stmt {
        self.stmt(self.expr(ExprKind::Break {
            label: None,
            value: None,
        }))
    }
    /// A variant with a name for what it holds.
    pub(super) fn pattern(self, variant: Variant, name: Option<&str>) -> Option<PatternKind> {
        let payload = name.map(|name| Box::new(self.binding(name, false)));
        Some(PatternKind::Variant { variant, payload })
    }
    /// A `match`; no pattern is `_`.
    pub(super) fn arms(self, scrutinee: Expr, arms: Vec<(Option<PatternKind>, Expr)>) -> Expr {
        let arms = arms.into_iter().map(|(kind, body)| Arm {
            line: self.0,
            pattern: Pattern {
                line: self.0,
                kind: kind.unwrap_or(PatternKind::Wild),
            },
            guard: None,
            body,
        });
        self.expr(ExprKind::Match {
            scrutinee: Box::new(scrutinee),
            arms: arms.collect(),
        })
    }
    pub(super) fn len(self, of: &str) -> Expr {
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

    /// A method of a byte as a character; `None` where there is no such method.
    pub(super) fn ascii(self, name: &str, args: usize) -> Option<Expr> {
        let within = |low: u8, high: u8| {
            let above = self.binary(BinaryOp::Ge, self.local(RECEIVER), self.int(low.into()));
            let below = self.binary(BinaryOp::Le, self.local(RECEIVER), self.int(high.into()));
            self.binary(BinaryOp::And, above, below)
        };
        let any = |ranges: &[(u8, u8)]| {
            let all = ranges.iter().map(|(low, high)| within(*low, *high));
            all.reduce(|a, b| self.binary(BinaryOp::Or, a, b))
        };
        let (upper, lower, digit) = ((b'A', b'Z'), (b'a', b'z'), (b'0', b'9'));
        // Letters differ by this bit in their case.
        let switched = |of: &str, when: (u8, u8)| {
            let range = |low: u8, high: u8| {
                let above = self.binary(BinaryOp::Ge, self.local(of), self.int(low.into()));
                let below = self.binary(BinaryOp::Le, self.local(of), self.int(high.into()));
                self.binary(BinaryOp::And, above, below)
            };
            let other = self.binary(BinaryOp::BitXor, self.local(of), self.int(0x20));
            self.choose(range(when.0, when.1), other, self.local(of))
        };
        match (name, args) {
            ("is_ascii", 0) => any(&[(0, 127)]),
            ("is_ascii_alphabetic", 0) => any(&[upper, lower]),
            ("is_ascii_uppercase", 0) => any(&[upper]),
            ("is_ascii_lowercase", 0) => any(&[lower]),
            ("is_ascii_digit", 0) => any(&[digit]),
            ("is_ascii_alphanumeric", 0) => any(&[upper, lower, digit]),
            ("is_ascii_hexdigit", 0) => any(&[digit, (b'A', b'F'), (b'a', b'f')]),
            ("is_ascii_whitespace", 0) => any(&[(9, 10), (12, 13), (b' ', b' ')]),
            ("is_ascii_graphic", 0) => any(&[(b'!', b'~')]),
            ("is_ascii_control", 0) => any(&[(0, 31), (127, 127)]),
            ("is_ascii_punctuation", 0) => any(&[(b'!', b'/'), (b':', b'@'), (b'[', b'`'), (b'{', b'~')]),
            ("to_ascii_lowercase", 0) => Some(switched(RECEIVER, upper)),
            ("to_ascii_uppercase", 0) => Some(switched(RECEIVER, lower)),
            ("eq_ignore_ascii_case", 1) => {
                let (a, b) = (switched(RECEIVER, upper), switched(ARGUMENT, upper));
                Some(self.binary(BinaryOp::Eq, a, b))
            }
            _ => None,
        }
    }

    /// What the receiver, an `Option` or a `Result` that is known to hold something, holds.
    pub(super) fn held(self, option: bool) -> Expr {
        let held = "held";
        let good = if option { Variant::Some } else { Variant::Ok };
        let (pieces, args) = (Vec::new(), Vec::new());
        let none = self.expr(ExprKind::Panic { pieces, args });
        let arms = vec![(self.pattern(good, Some(held)), self.local(held)), (None, none)];
        self.arms(self.local(RECEIVER), arms)
    }

    /// How much that is: 1 or 0.
    pub(super) fn held_count(self, option: bool) -> Expr {
        let is = self.method(
            self.local(RECEIVER),
            if option { "is_some" } else { "is_ok" },
            Vec::new(),
        );
        self.expr(ExprKind::Cast {
            value: Box::new(is),
            ty: Type::Scalar(Scalar::Usize),
        })
    }

    /// What the receiver, `&mut Option`, holds, with the argument or `None` in its place.
    pub(super) fn exchange(self, replaced: bool) -> Expr {
        let old = "old";
        let new = self.variant(
            if replaced { Variant::Some } else { Variant::None },
            replaced.then(|| self.local(ARGUMENT)),
        );
        let stmts = vec![
            self.bind(old, self.target(RECEIVER)),
            self.assign(self.target(RECEIVER), new),
        ];
        self.block_expr(stmts, Some(self.local(old)))
    }

    /// An array of `len` elements, each what `function` gives for what `of` gives for its index.
    pub(super) fn mapped(self, len: &Expr, function: &Expr, of: impl Fn(Expr) -> Expr) -> Expr {
        let apply = |index: Expr| {
            self.expr(ExprKind::Apply {
                function: Box::new(function.clone()),
                args: vec![of(index)],
            })
        };
        // A closure of the user's stands beside it.
        let all = "all elements";
        let repeat = self.expr(ExprKind::Repeat {
            value: Box::new(apply(self.int(0))),
            len: Box::new(len.clone()),
        });
        let next = self.assign(self.element(all, self.local(INDEX)), apply(self.local(INDEX)));
        let rest = self.count(self.int(1), len.clone(), vec![next]);
        self.block_expr(vec![self.bind(all, repeat), rest], Some(self.local(all)))
    }

    /// `Ok(value)` where `cond` holds, else `Err(())`.
    fn ok_if(self, cond: Expr, value: Expr) -> Expr {
        let ok = self.variant(Variant::Ok, Some(value));
        let nothing = self.expr(ExprKind::Tuple(Vec::new()));
        let err = self.block_expr(Vec::new(), Some(self.variant(Variant::Err, Some(nothing))));
        self.when(cond, self.block(Vec::new(), Some(ok)), Some(err))
    }

    /// The receiver's elements as an array of `len`, where there are as many; `shared`: behind a reference.
    pub(super) fn to_array(self, len: &Expr, shared: bool) -> Expr {
        let all = "all";
        let first = self.of_receiver(self.int(0));
        let repeat = self.expr(ExprKind::Repeat {
            value: Box::new(first),
            len: Box::new(len.clone()),
        });
        let index = || self.local(INDEX);
        let next = self.assign(self.element(all, index()), self.of_receiver(index()));
        let copy = self.count(self.int(1), len.clone(), vec![next]);
        let value = match shared {
            true => self.unary(UnaryOp::Ref, self.local(all)),
            false => self.local(all),
        };
        let value = self.block_expr(vec![self.bind(all, repeat), copy], Some(value));
        let fits = self.binary(BinaryOp::Eq, self.len(RECEIVER), len.clone());
        self.ok_if(fits, value)
    }

    /// The receiver's first or last elements as an array of `len` behind a reference, where there are as many.
    pub(super) fn end_chunk(self, len: &Expr, last: bool) -> Expr {
        let (all, start) = ("all", "start");
        let at = |index: Expr| self.of_receiver(self.binary(BinaryOp::Add, self.local(start), index));
        let repeat = self.expr(ExprKind::Repeat {
            value: Box::new(at(self.int(0))),
            len: Box::new(len.clone()),
        });
        let next = self.assign(self.element(all, self.local(INDEX)), at(self.local(INDEX)));
        let first = match last {
            true => self.binary(BinaryOp::Sub, self.len(RECEIVER), len.clone()),
            false => self.int(0),
        };
        let stmts = vec![
            self.bind(start, first),
            self.bind(all, repeat),
            self.count(self.int(1), len.clone(), vec![next]),
        ];
        let value = self.block_expr(stmts, Some(self.unary(UnaryOp::Ref, self.local(all))));
        let fits = self.binary(BinaryOp::Le, len.clone(), self.len(RECEIVER));
        self.some_if(fits, value)
    }

    /// The receiver as another integer, where that has its value.
    pub(super) fn to_integer(self, to: Scalar) -> Expr {
        let cast = |value: Expr, ty: Type| {
            let value = Box::new(value);
            self.expr(ExprKind::Cast { value, ty })
        };
        let other = "other";
        let value = cast(self.local(RECEIVER), Type::Scalar(to));
        let back = self.binary(
            BinaryOp::Eq,
            cast(self.local(other), Type::Infer),
            self.local(RECEIVER),
        );
        let negative = |name: &str| self.binary(BinaryOp::Lt, self.local(name), self.int(0));
        let sign = self.binary(BinaryOp::Eq, negative(other), negative(RECEIVER));
        let fits = self.binary(BinaryOp::And, back, sign);
        let chosen = self.ok_if(fits, self.local(other));
        self.block_expr(vec![self.bind(other, value)], Some(chosen))
    }

    /// The receiver's element.
    pub(super) fn of_receiver(self, index: Expr) -> Expr {
        self.element(RECEIVER, index)
    }
}
