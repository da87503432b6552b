//! Appends IR statement by statement for code whose types are right by construction: nothing here can fail. The
//! checked way is [`crate::ir::KernelBuilder`].

use crate::ir::{Block, Body, Function, Inst, Op, Scalar, Stmt, Type, Value};
use crate::ops::eval::result_scalar;
use crate::ops::{BinaryOp, Row, TernaryOp, UnaryOp};

/// The body of a function under construction.
pub(super) struct Code {
    body: Body,
    open: Vec<Block>,
}

impl Code {
    /// A function of `params` whose last value is what `f` gives.
    pub(super) fn function(
        name: String,
        params: &[(&str, Type)],
        result: Type,
        f: impl FnOnce(&mut Code, &[Value]) -> Value,
    ) -> Function {
        let mut code = Code {
            body: Body {
                values: params.iter().map(|(_, ty)| ty.clone()).collect(),
                ..Body::default()
            },
            open: vec![Block::default()],
        };
        let args: Vec<Value> = (0..params.len() as u32).map(Value).collect();
        let value = f(&mut code, &args);
        code.ret(value);
        let mut body = code.body;
        body.block = code.open.pop().unwrap_or_default();
        Function {
            name,
            params: params
                .iter()
                .map(|(n, ty)| ((*n).to_owned(), ty.clone()))
                .collect(),
            result: Some(result),
            body,
        }
    }

    fn push(&mut self, inst: Inst) {
        if let Some(block) = self.open.last_mut() {
            block.0.push(Stmt { line: 0, inst });
        }
    }

    /// Appends an operation that gives a value of type `ty`.
    pub(super) fn op(&mut self, ty: impl Into<Type>, op: Op) -> Value {
        let value = Value(self.body.values.len() as u32);
        self.body.values.push(ty.into());
        self.push(Inst::Let(value, op));
        value
    }

    /// The scalar type of a value.
    pub(super) fn scalar(&self, v: Value) -> Scalar {
        self.body
            .values
            .get(v.0 as usize)
            .and_then(Type::as_scalar)
            .unwrap_or(Scalar::U32)
    }

    fn result(&self, row: &Row, a: Value) -> Scalar {
        result_scalar(row.result, self.scalar(a))
    }

    /// A constant from its bits.
    pub(super) fn bits(&mut self, s: Scalar, bits: u64) -> Value {
        let mask = if s.bits() == 64 {
            u64::MAX
        } else {
            (1 << s.bits()) - 1
        };
        self.op(s, Op::Const(s, bits & mask))
    }

    /// A number as a constant of an integer type or of f32 or f64.
    pub(super) fn number(&mut self, s: Scalar, v: f64) -> Value {
        match s {
            Scalar::F32 => self.bits(s, u64::from((v as f32).to_bits())),
            Scalar::F64 => self.bits(s, v.to_bits()),
            _ => self.bits(s, v as i64 as u64),
        }
    }

    pub(super) fn unary(&mut self, op: UnaryOp, a: Value) -> Value {
        let s = self.result(op.row(), a);
        self.op(s, Op::Unary(op, a))
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        let s = self.result(op.row(), a);
        self.op(s, Op::Binary(op, a, b))
    }

    /// A binary operator whose second operand is a constant of the first one's type.
    pub(super) fn binary_bits(&mut self, op: BinaryOp, a: Value, bits: u64) -> Value {
        let s = self.scalar(a);
        let b = self.bits(s, bits);
        self.binary(op, a, b)
    }

    /// A shift by a constant.
    pub(super) fn shift(&mut self, op: BinaryOp, a: Value, amount: u32) -> Value {
        let b = self.bits(Scalar::U32, amount.into());
        self.binary(op, a, b)
    }

    pub(super) fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        let s = self.scalar(a);
        self.op(s, Op::Ternary(TernaryOp::Fma, a, b, c))
    }

    pub(super) fn select(&mut self, c: Value, a: Value, b: Value) -> Value {
        let s = self.scalar(a);
        self.op(s, Op::Ternary(TernaryOp::Select, c, a, b))
    }

    pub(super) fn cast(&mut self, to: Scalar, a: Value) -> Value {
        if self.scalar(a) == to {
            return a;
        }
        self.op(to, Op::Cast(to, a))
    }

    pub(super) fn bitcast(&mut self, to: Scalar, a: Value) -> Value {
        if self.scalar(a) == to {
            return a;
        }
        self.op(to, Op::Bitcast(to, a))
    }

    fn block(&mut self, f: impl FnOnce(&mut Code)) -> Block {
        self.open.push(Block::default());
        f(self);
        self.open.pop().unwrap_or_default()
    }

    pub(super) fn if_(&mut self, c: Value, then: impl FnOnce(&mut Code)) {
        let then = self.block(then);
        self.push(Inst::If(c, then, Block::default()));
    }

    pub(super) fn ret(&mut self, v: Value) {
        self.push(Inst::Return(Some(v)));
    }
}
