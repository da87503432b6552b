//! Operators on scalars, with constants folded by the operator table's own meaning.

use super::value::Val;
use super::{Emitter, Result};
use crate::front::rust::infer::methods::{Num, num_of};
use crate::front::rust::infer::ty::{Ty, show};
use crate::ir::{Op, Scalar, Type, Value};
use crate::ops::{self, BinaryOp, Exactness, TernaryOp, UnaryOp};

/// Constants of which a value may be one, at most.
const FEW: usize = 8;

impl Emitter<'_> {
    /// A constant: a scalar's bits, or an integer's of two words as far as they lie in the lower one.
    pub(super) fn constant(&mut self, s: impl Into<Num>, bits: u64) -> Value {
        let s = match s.into() {
            Num::Word(s) => s,
            wide => return self.integer(wide, bits.into()),
        };
        let bits = match s.bits() {
            64 => bits,
            n => bits & ((1 << n) - 1),
        };
        let value = self.k.constant(s, bits);
        self.body.known.insert(value, bits);
        value
    }

    /// A constant `bool`.
    pub(super) fn bool(&mut self, b: bool) -> Value {
        self.constant(Scalar::Bool, u64::from(b))
    }

    /// The bits of a value that is a constant.
    pub(super) fn known(&self, v: Value) -> Option<u64> {
        self.body.known.get(&v).copied()
    }

    /// Whether the value is this constant `bool`.
    pub(super) fn is(&self, v: Value, b: bool) -> bool {
        self.known(v) == Some(u64::from(b))
    }

    /// The number that a value is.
    pub(super) fn num_of(&self, v: Value, line: u32) -> Result<Num> {
        let ty = self.typed(line, self.k.type_of(v))?;
        num_of(ty).ok_or_else(|| self.error(line, format!("a scalar is needed here, not `{ty}`"), ""))
    }

    /// `usize` in this lowering.
    pub(super) fn usize_scalar(&self) -> Scalar {
        if self.program.width == 32 {
            Scalar::U32
        } else {
            Scalar::U64
        }
    }

    /// An operator of one operand.
    pub(super) fn unary(&mut self, op: UnaryOp, a: Value, line: u32) -> Result<Value> {
        let s = match self.num_of(a, line)? {
            Num::Word(s) => s,
            wide => return self.wide_unary(op, wide, a, line),
        };
        if let Some(bits) = self.known(a)
            && op.row().exactness == Exactness::Exact
            && op.row().domain.contains(s)
        {
            let result = ops::eval::result_scalar(op.row().result, s);
            return Ok(self.constant(result, ops::eval::eval_unary(op, s, bits)));
        }
        let done = self.k.unary(op, a);
        self.typed(line, done)
    }

    /// An operator of two operands.
    pub(super) fn binary(&mut self, op: BinaryOp, a: Value, b: Value, line: u32) -> Result<Value> {
        let s = match self.num_of(a, line)? {
            Num::Word(s) => s,
            wide => return self.wide_binary(op, wide, a, b, line),
        };
        if let (Some(x), Some(y)) = (self.known(a), self.known(b))
            && op.row().exactness == Exactness::Exact
            && op.row().domain.contains(s)
            && let Ok(bits) = ops::eval::eval_binary(op, s, x, y)
        {
            let result = ops::eval::result_scalar(op.row().result, s);
            return Ok(self.constant(result, bits));
        }
        if s == Scalar::Bool {
            match (op, self.known(a), self.known(b)) {
                (BinaryOp::And, Some(1), _) | (BinaryOp::Or, Some(0), _) => return Ok(b),
                (BinaryOp::And, _, Some(1)) | (BinaryOp::Or, _, Some(0)) => return Ok(a),
                _ => {}
            }
        }
        if s.is_int()
            && let Some(same) = identity(op, (a, self.known(a)), (b, self.known(b)))
        {
            return Ok(same);
        }
        let done = self.k.binary(op, a, b);
        self.typed(line, done)
    }

    /// An operator of three operands.
    pub(super) fn ternary(
        &mut self,
        op: TernaryOp,
        a: Value,
        b: Value,
        c: Value,
        line: u32,
    ) -> Result<Value> {
        if op == TernaryOp::Select {
            match self.known(a) {
                Some(0) => return Ok(c),
                Some(_) => return Ok(b),
                None => {}
            }
            if self.num_of(b, line).is_ok_and(|s| s == Scalar::Bool) {
                match (self.known(b), self.known(c)) {
                    (Some(1), Some(0)) => return Ok(a),
                    (Some(0), Some(1)) => return self.not(a, line),
                    _ => {}
                }
            }
        }
        if op == TernaryOp::Clamp && self.num_of(a, line)?.word().is_none() {
            let above = self.binary(BinaryOp::Max, a, b, line)?;
            return self.binary(BinaryOp::Min, above, c, line);
        }
        let done = self.k.ternary(op, a, b, c);
        let done = self.typed(line, done)?;
        if op == TernaryOp::Select
            && let (Some(mut all), Some(others)) = (self.constants_of(b), self.constants_of(c))
            && all.len() + others.len() <= FEW
        {
            all.extend(others);
            self.body.few.insert(done, all);
        }
        Ok(done)
    }

    /// The bits of the few constants of which the value is one.
    pub(super) fn constants_of(&self, v: Value) -> Option<Vec<u64>> {
        let known = self.known(v).map(|bits| vec![bits]);
        known.or_else(|| self.body.few.get(&v).cloned())
    }

    /// `!a` for a `bool`.
    pub(super) fn not(&mut self, a: Value, line: u32) -> Result<Value> {
        self.unary(UnaryOp::Not, a, line)
    }

    /// Rust's `as` between numbers.
    pub(super) fn cast(&mut self, to: impl Into<Num>, a: Value, line: u32) -> Result<Value> {
        let (from, to) = (self.num_of(a, line)?, to.into());
        if from == to {
            return Ok(a);
        }
        let (Num::Word(from), Num::Word(to)) = (from, to) else {
            return self.wide_cast(from, to, a, line);
        };
        if let Some(bits) = self.known(a)
            && to != Scalar::Bool
            && !(from == Scalar::Bool && to.is_float())
        {
            return Ok(self.constant(to, ops::eval::eval_cast(from, to, bits)));
        }
        let done = self.k.cast(to, a);
        self.typed(line, done)
    }

    /// The same bits as another type of the same width.
    pub(super) fn bitcast(&mut self, to: impl Into<Num>, a: Value, line: u32) -> Result<Value> {
        let (from, to) = (self.num_of(a, line)?, to.into());
        if from == to {
            return Ok(a);
        }
        let Num::Word(to) = to else {
            return self.wide_cast(from, to, a, line);
        };
        if let Some(bits) = self.known(a) {
            return Ok(self.constant(to, bits));
        }
        let done = self.k.op(Op::Bitcast(to, a));
        self.typed(line, done)
    }

    /// A launch's value as `usize`.
    pub(super) fn builtin_usize(&mut self, b: crate::ir::Builtin, line: u32) -> Result<Value> {
        let value = self.k.builtin(b);
        self.cast(self.usize_scalar(), value, line)
    }

    /// Whether two values are equal: of scalars, tuples, structs and arrays, as `derive(PartialEq)` says.
    pub(super) fn equal(&mut self, a: &Val, b: &Val, ty: &Ty, line: u32) -> Result<Value> {
        match ty {
            Ty::Scalar(_) | Ty::Enum(_) | Ty::Tag(_) => {
                let (a, b) = (self.value_of(a, line)?, self.value_of(b, line)?);
                self.binary(BinaryOp::Eq, a, b, line)
            }
            Ty::Tuple(_) | Ty::Struct(_) | Ty::Array(..) => {
                let parts = match ty {
                    Ty::Tuple(elements) => elements.to_vec(),
                    Ty::Struct(desc) => desc.fields.iter().map(|f| Ty::from_desc(&f.ty)).collect(),
                    Ty::Array(element, crate::front::rust::infer::ty::Len::Known(n)) if *n <= 64 => {
                        vec![(**element).clone(); *n as usize]
                    }
                    _ => {
                        return Err(self.error(
                            line,
                            format!("`{}` values are compared", show(ty)),
                            "compare the elements in a loop",
                        ));
                    }
                };
                let mut all = self.bool(true);
                for (i, part) in parts.iter().enumerate() {
                    let x = self.component(a, i as u32, line)?;
                    let y = self.component(b, i as u32, line)?;
                    let same = self.equal(&x, &y, part, line)?;
                    all = self.binary(BinaryOp::And, all, same, line)?;
                }
                Ok(all)
            }
            _ => Err(self.error(
                line,
                format!("`{}` values are compared", show(ty)),
                "compare scalars",
            )),
        }
    }

    /// A component of an aggregate.
    pub(super) fn component(&mut self, aggregate: &Val, index: u32, line: u32) -> Result<Val> {
        match aggregate {
            Val::Tuple(elements) => match elements.get(index as usize) {
                Some(element) => Ok(element.clone()),
                None => Err(self.error(line, format!("there is no element {index}"), "")),
            },
            Val::Value(v) => {
                let done = self.k.op(Op::Extract(*v, index));
                Ok(Val::Value(self.typed(line, done)?))
            }
            Val::Ref(_) | Val::Grid | Val::Closure(..) => {
                Err(self.error(line, "a reference has no components", ""))
            }
        }
    }

    /// The value as one value of the IR.
    pub(super) fn value_of(&mut self, val: &Val, line: u32) -> Result<Value> {
        match val {
            Val::Value(v) => Ok(*v),
            Val::Tuple(elements) if !elements.is_empty() => {
                let parts = elements
                    .iter()
                    .map(|e| match e {
                        Val::Tuple(unit) if unit.is_empty() => Ok(self.bool(false)),
                        e => self.value_of(e, line),
                    })
                    .collect::<Result<Vec<_>>>()?;
                let mut types = Vec::new();
                for part in &parts {
                    types.push(self.typed(line, self.k.type_of(*part))?.clone());
                }
                let done = self.k.op(Op::Compose(Type::tuple(types), parts));
                self.typed(line, done)
            }
            Val::Tuple(_) => Err(self.error(line, "`()` is used as a value", "leave it out")),
            Val::Ref(_) => Err(self.error(
                line,
                "a reference is kept as a value",
                "references are bound once, or passed to functions: keep an index or a copy instead",
            )),
            Val::Closure(..) => Err(self.error(line, "a closure is kept as a value", "pass it to functions")),
            Val::Grid => Err(self.error(line, "a `GridPos` is kept as a value", "pass it to functions")),
        }
    }
}

/// The operand that an operator on integers gives unchanged, where the other one is zero or one.
fn identity(op: BinaryOp, a: (Value, Option<u64>), b: (Value, Option<u64>)) -> Option<Value> {
    match (op, a.1, b.1) {
        (BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor, Some(0), _) | (BinaryOp::Mul, Some(1), _) => Some(b.0),
        (
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr,
            _,
            Some(0),
        )
        | (BinaryOp::Mul | BinaryOp::Div, _, Some(1)) => Some(a.0),
        _ => None,
    }
}
