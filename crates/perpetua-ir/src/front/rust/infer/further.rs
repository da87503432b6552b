//! Methods of scalars, options and slices that Rust has beside the first ones, as code in the language.

use perpetua_syntax::{
    BinaryOp, Expr, ExprKind, PART, PICK, PrintPiece, Scalar, Stmt, Type, TypeMember, UnaryOp, Variant,
};

use super::written::{ARGUMENT, RECEIVER, Writer};

impl Writer {
    fn own(self) -> Expr {
        self.local(RECEIVER)
    }

    fn other(self) -> Expr {
        self.local(ARGUMENT)
    }

    fn call(self, receiver: Expr, name: &str) -> Expr {
        self.method(receiver, name, Vec::new())
    }

    fn pair(self, a: Expr, b: Expr) -> Expr {
        self.expr(ExprKind::Tuple(vec![a, b]))
    }

    fn apply(self, function: &Expr, args: Vec<Expr>) -> Expr {
        let function = Box::new(function.clone());
        self.expr(ExprKind::Apply { function, args })
    }

    fn panic(self, text: &str) -> Stmt {
        let (pieces, args) = (vec![PrintPiece::Text(text.to_owned())], Vec::new());
        self.stmt(self.expr(ExprKind::Panic { pieces, args }))
    }

    /// A fault with this text where the condition holds.
    pub(super) fn never(self, cond: Expr, text: &str) -> Stmt {
        self.stmt(self.when(cond, self.block(vec![self.panic(text)], None), None))
    }

    pub(super) fn most(self, scalar: Scalar) -> Expr {
        let member = TypeMember {
            ty: Type::Scalar(scalar),
            via: None,
            name: "MAX".to_owned(),
        };
        self.expr(ExprKind::TypeConst(Box::new(member)))
    }

    fn of_bits(self, scalar: Scalar, bits: Expr) -> Expr {
        let member = TypeMember {
            ty: Type::Scalar(scalar),
            via: None,
            name: "from_bits".to_owned(),
        };
        let (member, args) = (Box::new(member), vec![bits]);
        self.expr(ExprKind::TypeCall { member, args })
    }

    /// A method of the scalar; `bits`: its width. `None` where there is no such method.
    pub(super) fn number(self, name: &str, scalar: Scalar, signed: bool, bits: u32) -> Option<Expr> {
        let (own, other) = (self.own(), self.other());
        let zero = || self.binary(BinaryOp::Sub, self.own(), self.own());
        let result = "the result";
        // What `name` of the rest gives, behind its name.
        let of = |how: &str, value: Expr| {
            let how = self.method(self.own(), how, vec![self.other()]);
            self.block_expr(vec![self.bind(result, how)], Some(value))
        };
        let found = || self.local(result);
        let grew = |op| self.binary(op, found(), self.own());
        Some(match name {
            "saturating_neg" => self.method(zero(), "saturating_sub", vec![own]),
            "saturating_abs" => {
                let negated = self.method(zero(), "saturating_sub", vec![own.clone()]);
                self.choose(self.to_zero(BinaryOp::Lt), negated, own)
            }
            "saturating_div" if signed => {
                let minus_one = self.unary(UnaryOp::Neg, self.int(1));
                let negate = self.binary(BinaryOp::Eq, other.clone(), minus_one);
                let negated = self.method(zero(), "saturating_sub", vec![own.clone()]);
                self.choose(negate, negated, self.binary(BinaryOp::Div, own, other))
            }
            "saturating_div" => self.binary(BinaryOp::Div, own, other),
            "overflowing_shl" | "overflowing_shr" => {
                let shifted = name.replace("overflowing", "wrapping");
                let far = self.binary(BinaryOp::Ge, other.clone(), self.int(bits.into()));
                self.pair(self.method(own, &shifted, vec![other]), far)
            }
            "checked_add_unsigned" => of("wrapping_add_unsigned", self.some_if(grew(BinaryOp::Ge), found())),
            "checked_sub_unsigned" => of("wrapping_sub_unsigned", self.some_if(grew(BinaryOp::Le), found())),
            "overflowing_add_unsigned" => of("wrapping_add_unsigned", self.pair(found(), grew(BinaryOp::Lt))),
            "overflowing_sub_unsigned" => of("wrapping_sub_unsigned", self.pair(found(), grew(BinaryOp::Gt))),
            "saturating_add_unsigned" => {
                let most = self.most(scalar);
                of(
                    "wrapping_add_unsigned",
                    self.choose(grew(BinaryOp::Ge), found(), most),
                )
            }
            "saturating_sub_unsigned" => {
                let least = self.unary(UnaryOp::Not, self.most(scalar));
                of(
                    "wrapping_sub_unsigned",
                    self.choose(grew(BinaryOp::Le), found(), least),
                )
            }
            "checked_signed_diff" => {
                let way = self.call(
                    self.method(own.clone(), "wrapping_sub", vec![other.clone()]),
                    "cast_signed",
                );
                let up = self.binary(BinaryOp::Ge, own, other);
                let down = self.binary(BinaryOp::Lt, found(), self.int(0));
                let fits = self.binary(BinaryOp::Ne, up, down);
                self.block_expr(vec![self.bind(result, way)], Some(self.some_if(fits, found())))
            }
            "checked_next_multiple_of" => {
                let none = self.variant(Variant::None, None);
                let rest = self.binary(BinaryOp::Rem, own.clone(), other.clone());
                let missing = self.binary(BinaryOp::Sub, other.clone(), found());
                let more = self.method(own.clone(), "checked_add", vec![missing]);
                let exact = self.binary(BinaryOp::Eq, found(), self.int(0));
                let some = self.variant(Variant::Some, Some(own));
                let next = self.choose(exact, some, more);
                let next = self.block_expr(vec![self.bind(result, rest)], Some(next));
                self.choose(self.binary(BinaryOp::Eq, other, self.int(0)), none, next)
            }
            "ilog" => {
                let left = "what is left";
                let next = self.binary(BinaryOp::Div, self.local(left), self.other());
                let more = self.binary(BinaryOp::Add, found(), self.int(1));
                let body = vec![self.assign(self.local(left), next), self.assign(found(), more)];
                let looped = self.expr(ExprKind::While {
                    label: None,
                    cond: Box::new(self.binary(BinaryOp::Ge, self.local(left), other.clone())),
                    body: self.block(body, None),
                });
                let small = self.binary(BinaryOp::Lt, other, self.int(2));
                let count = ExprKind::Int {
                    value: 0,
                    suffix: Some(Scalar::U32),
                };
                let stmts = vec![
                    self.never(small, "base of integer logarithm must be at least 2"),
                    self.never(
                        self.to_zero(BinaryOp::Le),
                        "argument of integer logarithm must be positive",
                    ),
                    self.bind(left, own),
                    self.bind(result, self.expr(count)),
                    self.stmt(looped),
                ];
                self.block_expr(stmts, Some(found()))
            }
            "checked_ilog" => {
                let base = self.binary(BinaryOp::Ge, other.clone(), self.int(2));
                let both = self.binary(BinaryOp::And, self.to_zero(BinaryOp::Gt), base);
                self.some_if(both, self.method(own, "ilog", vec![other]))
            }
            "next_up" | "next_down" => {
                // Towards the end, a step of the bits; from either zero, the least number of that sign.
                let up = name == "next_up";
                let bit = "the bits";
                let sign = self.binary(BinaryOp::Shl, self.int(1), self.int((bits - 1).into()));
                let least = match up {
                    true => self.int(1),
                    false => self.binary(BinaryOp::BitOr, sign, self.int(1)),
                };
                let by = |op| self.binary(op, self.local(bit), self.int(1));
                let (forth, back) = match up {
                    true => (BinaryOp::Add, BinaryOp::Sub),
                    false => (BinaryOp::Sub, BinaryOp::Add),
                };
                let step = self.choose(self.to_float_zero(BinaryOp::Gt), by(forth), by(back));
                let stepped = self.choose(self.to_float_zero(BinaryOp::Eq), least, step);
                let (nan, infinite) = (
                    self.call(own.clone(), "is_nan"),
                    self.call(own.clone(), "is_infinite"),
                );
                let away = self.to_float_zero(if up { BinaryOp::Gt } else { BinaryOp::Lt });
                let end = self.binary(BinaryOp::And, infinite, away);
                let stays = self.binary(BinaryOp::Or, nan, end);
                let next = self.of_bits(scalar, stepped);
                let bind = self.bind(bit, self.call(own.clone(), "to_bits"));
                self.block_expr(vec![bind], Some(self.choose(stays, own, next)))
            }
            _ => return None,
        })
    }

    /// `receiver op 0.0`.
    fn to_float_zero(self, op: BinaryOp) -> Expr {
        let zero = self.expr(ExprKind::Float {
            text: "0".to_owned(),
            suffix: None,
        });
        self.binary(op, self.own(), zero)
    }

    /// What the receiver, a reference to an `Option`, holds, by reference.
    fn inside(self) -> Expr {
        self.held(true)
    }

    /// A method that looks into or changes the `Option` that the receiver refers to; `None` where there is no such method.
    pub(super) fn option_place(self, name: &str, function: Option<&Expr>) -> Option<Expr> {
        let inside = "what is inside";
        let put = |value: Expr| self.assign(self.target(RECEIVER), self.variant(Variant::Some, Some(value)));
        let fill = |value: Expr| {
            let empty = self.call(self.own(), "is_none");
            let stmt = self.stmt(self.when(empty, self.block(vec![put(value)], None), None));
            self.block_expr(vec![stmt], Some(self.inside()))
        };
        Some(match (name, function) {
            ("as_mut", None) => {
                let some = self.variant(Variant::Some, Some(self.local(inside)));
                let arms = vec![
                    (self.pattern(Variant::Some, Some(inside)), some),
                    (None, self.variant(Variant::None, None)),
                ];
                self.arms(self.own(), arms)
            }
            ("insert", None) => self.block_expr(vec![put(self.other())], Some(self.inside())),
            ("get_or_insert", None) => fill(self.other()),
            ("get_or_insert_with", Some(f)) => fill(self.apply(f, Vec::new())),
            ("take_if", Some(f)) => {
                let wanted = "is wanted";
                let arms = vec![
                    (
                        self.pattern(Variant::Some, Some(inside)),
                        self.apply(f, vec![self.local(inside)]),
                    ),
                    (None, self.bool(false)),
                ];
                let bind = self.bind(wanted, self.arms(self.own(), arms));
                let taken = self.call(self.own(), "take");
                let none = self.variant(Variant::None, None);
                self.block_expr(vec![bind], Some(self.choose(self.local(wanted), taken, none)))
            }
            _ => return None,
        })
    }

    /// `receiver.unzip()`, `transpose()` of a value; `option`: of an `Option`.
    pub(super) fn option_value(self, name: &str, option: bool, function: Option<&Expr>) -> Option<Expr> {
        let (held, inner) = ("what is held", "what that holds");
        let some = |value| self.variant(Variant::Some, Some(value));
        let none = || self.variant(Variant::None, None);
        let arms = |variant, then: Expr, otherwise: Expr| {
            self.arms(
                self.own(),
                vec![(self.pattern(variant, Some(held)), then), (None, otherwise)],
            )
        };
        let within = |list| self.arms(self.local(held), list);
        Some(match (name, function) {
            ("unzip", None) if option => {
                let both = self.pair(some(self.field(held, 0)), some(self.field(held, 1)));
                arms(Variant::Some, both, self.pair(none(), none()))
            }
            ("transpose", None) if option => {
                let ok = self.variant(Variant::Ok, Some(some(self.local(inner))));
                let err = self.variant(Variant::Err, Some(self.local(inner)));
                let then = within(vec![
                    (self.pattern(Variant::Ok, Some(inner)), ok),
                    (self.pattern(Variant::Err, Some(inner)), err),
                ]);
                arms(Variant::Some, then, self.variant(Variant::Ok, Some(none())))
            }
            ("transpose", None) => {
                let ok = some(self.variant(Variant::Ok, Some(self.local(inner))));
                let then = within(vec![
                    (self.pattern(Variant::Some, Some(inner)), ok),
                    (None, none()),
                ]);
                let err = some(self.variant(Variant::Err, Some(self.local(held))));
                self.arms(
                    self.own(),
                    vec![
                        (self.pattern(Variant::Ok, Some(held)), then),
                        (self.pattern(Variant::Err, Some(held)), err),
                    ],
                )
            }
            ("is_err_and", Some(f)) if !option => arms(
                Variant::Err,
                self.apply(f, vec![self.local(held)]),
                self.bool(false),
            ),
            _ => return None,
        })
    }

    /// `receiver.split_at_checked(argument)`.
    pub(super) fn split_checked(self) -> Expr {
        let mid = "mid";
        let there = self.binary(BinaryOp::Le, self.other(), self.len(RECEIVER));
        let at = self.method(self.len(RECEIVER), "min", vec![self.other()]);
        let behind = self.binary(BinaryOp::Sub, self.len(RECEIVER), self.local(mid));
        let part = |start, len| self.method(self.own(), PART, vec![start, len]);
        let both = self.pair(part(self.int(0), self.local(mid)), part(self.local(mid), behind));
        self.block_expr(
            vec![self.bind(mid, at)],
            Some(self.method(both, PICK, vec![there])),
        )
    }

    /// `receiver.strip_prefix(argument)` or `strip_suffix`.
    pub(super) fn strip(self, first: bool) -> Expr {
        let left = self.method(self.len(RECEIVER), "wrapping_sub", vec![self.len(ARGUMENT)]);
        let start = if first { self.len(ARGUMENT) } else { self.int(0) };
        let part = self.method(self.own(), PART, vec![start, left]);
        self.method(part, PICK, vec![self.at_end(first)])
    }

    /// `receiver.fill_with(function)`.
    pub(super) fn fill_with(self, function: &Expr) -> Expr {
        let next = self.assign(self.of_receiver(self.index()), self.apply(function, Vec::new()));
        self.block_expr(
            vec![self.count(self.int(0), self.len(RECEIVER), vec![next])],
            None,
        )
    }

    /// `receiver.swap_with_slice(argument)`.
    pub(super) fn swap_all(self) -> Expr {
        let held = "held";
        let differ = self.binary(BinaryOp::Ne, self.len(ARGUMENT), self.len(RECEIVER));
        let text = "destination and source slices have different lengths";
        let element = |of| self.element(of, self.index());
        let body = vec![
            self.bind(held, element(RECEIVER)),
            self.assign(element(RECEIVER), element(ARGUMENT)),
            self.assign(element(ARGUMENT), self.local(held)),
        ];
        let stmts = vec![
            self.never(differ, text),
            self.count(self.int(0), self.len(RECEIVER), body),
        ];
        self.block_expr(stmts, None)
    }
}
