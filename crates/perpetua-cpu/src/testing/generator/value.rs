//! Types, operands and operators.

use super::{Generator, Known, Result};
use crate::testing::inputs::edge_values;
use perpetua_ir::ir::*;
use perpetua_ir::ops::{BinaryOp, Domain, Exactness, Row, Second, TernaryOp, UnaryOp};

impl Generator<'_, '_> {
    pub(super) fn any_scalar(&mut self) -> Scalar {
        self.choices.pick(&self.scalars).copied().unwrap_or(Scalar::U32)
    }

    /// A scalar that the kernel may use and that satisfies `fits`.
    pub(super) fn scalar_where(&mut self, fits: impl Fn(Scalar) -> bool) -> Option<Scalar> {
        let all: Vec<Scalar> = self.scalars.iter().copied().filter(|s| fits(*s)).collect();
        self.choices.pick(&all).copied()
    }

    pub(super) fn any_integer(&mut self) -> Scalar {
        self.scalar_where(Scalar::is_int).unwrap_or(Scalar::U32)
    }

    pub(super) fn any_type(&mut self) -> Type {
        let s = self.any_scalar();
        match self.choices.below(8) {
            5 if s != Scalar::Bool => Type::Vector(s, 2 + self.choices.below(3) as u8),
            6 => {
                let row = Type::array(s.into(), 1 + self.choices.below(8) as u32);
                match self.choices.below(3) {
                    2 => Type::array(row, 1 + self.choices.below(3) as u32),
                    _ => row,
                }
            }
            7 => self.choices.pick(&self.structs).cloned().unwrap_or(s.into()),
            _ => s.into(),
        }
    }

    /// Appends an operation; statements do not find its value.
    pub(super) fn emit(&mut self, k: &mut KernelBuilder, op: Op) -> Result<Value> {
        let uniform = self.is_uniform_op(k, &op);
        let v = k.op(op)?;
        self.note(v, uniform);
        Ok(v)
    }

    /// Appends an operation whose value later statements may read.
    pub(super) fn define(&mut self, k: &mut KernelBuilder, op: Op) -> Result<Value> {
        let value = self.emit(k, op)?;
        self.know(k, value)?;
        Ok(value)
    }

    /// Lets later statements read a value.
    pub(super) fn know(&mut self, k: &KernelBuilder, value: Value) -> Result<()> {
        let ty = k.type_of(value)?.clone();
        self.body.values.push(Known { value, ty });
        Ok(())
    }

    fn note(&mut self, v: Value, uniform: bool) {
        let at = v.0 as usize;
        if self.body.uniform.len() <= at {
            self.body.uniform.resize(at + 1, false);
        }
        if let Some(slot) = self.body.uniform.get_mut(at) {
            *slot = uniform;
        }
    }

    pub(super) fn is_uniform(&self, v: Value) -> bool {
        self.body.uniform.get(v.0 as usize).copied().unwrap_or(false)
    }

    fn is_uniform_op(&mut self, k: &mut KernelBuilder, op: &Op) -> bool {
        let source = match op {
            Op::Builtin(b) => !matches!(b, Builtin::ThreadIdx(_) | Builtin::SubgroupLane),
            Op::Atomic(..) | Op::CompareExchange { .. } | Op::Device(..) | Op::Call(..) => false,
            Op::Load(place, sync) => match place.base {
                Base::Buffer(i) => {
                    let param = k.kernel_mut().params.get(i as usize);
                    let read = param.is_some_and(|p| {
                        matches!(
                            p.kind,
                            ParamKind::Buffer {
                                access: Access::Read,
                                ..
                            }
                        )
                    });
                    read && sync.is_none()
                }
                Base::Shared(_) => false,
                Base::Local(id) => self.body.variables.iter().any(|v| v.id == id && v.uniform),
                Base::Constant(_) => true,
            },
            _ => true,
        };
        let mut all = source;
        op.operands(&mut |v| all &= self.is_uniform(v));
        all
    }

    /// A `u32` constant.
    pub(super) fn number(&mut self, k: &mut KernelBuilder, v: u32) -> Result<Value> {
        self.emit(k, Op::Const(Scalar::U32, v.into()))
    }

    fn constant(&mut self, k: &mut KernelBuilder, s: Scalar) -> Result<Value> {
        let edges = edge_values(s);
        let bits = self.choices.pick(&edges).copied().unwrap_or(0);
        self.emit(k, Op::Const(s, bits))
    }

    /// A value of a type: one that is known, or a new one.
    pub(super) fn operand(&mut self, k: &mut KernelBuilder, ty: &Type) -> Result<Value> {
        self.choose_operand(k, ty, false)
    }

    /// A value of a type that is the same for all lanes of a block.
    pub(super) fn uniform_operand(&mut self, k: &mut KernelBuilder, ty: &Type) -> Result<Value> {
        self.choose_operand(k, ty, true)
    }

    fn choose_operand(&mut self, k: &mut KernelBuilder, ty: &Type, uniform: bool) -> Result<Value> {
        let fresh = self.choices.chance(1, 6);
        let fitting: Vec<Value> = self
            .body
            .values
            .iter()
            .rev()
            .filter(|known| known.ty == *ty && (!uniform || self.is_uniform(known.value)))
            .map(|known| known.value)
            .take(12)
            .collect();
        match self.choices.pick(&fitting) {
            Some(v) if !fresh => Ok(*v),
            _ => self.fresh(k, ty, uniform),
        }
    }

    fn fresh(&mut self, k: &mut KernelBuilder, ty: &Type, uniform: bool) -> Result<Value> {
        let Some(s) = ty.as_scalar() else {
            return if self.choices.chance(1, 2) {
                let mut parts = Vec::new();
                for i in 0..ty.component_count() {
                    if let Some(ty) = ty.component(i) {
                        parts.push(self.choose_operand(k, &ty, uniform)?);
                    }
                }
                self.define(k, Op::Compose(ty.clone(), parts))
            } else {
                self.emit(k, Op::Zero(ty.clone()))
            };
        };
        match self.choices.below(6) {
            2 if self.body.entry.is_some() => self.param(k, ty),
            3..=5 if s != Scalar::Bool => {
                let from: Vec<Value> = self
                    .body
                    .values
                    .iter()
                    .rev()
                    .filter(|known| {
                        known
                            .ty
                            .as_scalar()
                            .is_some_and(|from| from != Scalar::Bool || s.is_int())
                    })
                    .map(|known| known.value)
                    .filter(|v| !uniform || self.is_uniform(*v))
                    .take(8)
                    .collect();
                match self.choices.pick(&from) {
                    Some(v) => self.emit(k, Op::Cast(s, *v)),
                    None => self.constant(k, s),
                }
            }
            _ => self.constant(k, s),
        }
    }

    /// A value parameter of the kernel: an earlier one, or a new one.
    fn param(&mut self, k: &mut KernelBuilder, ty: &Type) -> Result<Value> {
        let params = &mut k.kernel_mut().params;
        let same = |p: &Param| matches!(&p.kind, ParamKind::Value(other) if other == ty);
        let index = params.iter().position(same).unwrap_or_else(|| {
            params.push(Param {
                name: format!("p{}", params.len()),
                kind: ParamKind::Value(ty.clone()),
            });
            self.counts.push(1);
            params.len() - 1
        });
        self.emit(k, Op::Param(index as u32))
    }

    /// An index below `len`, of some integer type. With faults allowed, sometimes any.
    pub(super) fn index(&mut self, k: &mut KernelBuilder, len: usize) -> Result<Value> {
        let s = self.any_integer();
        let v = self.operand(k, &s.into())?;
        self.index_from(k, v, s, len)
    }

    fn index_from(&mut self, k: &mut KernelBuilder, v: Value, s: Scalar, len: usize) -> Result<Value> {
        if self.config.faults && self.choices.chance(1, 5) {
            return Ok(v);
        }
        let mut s = s;
        let mut v = v;
        if s.is_signed_int() || s.bits() < 32 {
            s = if s.bits() < 32 {
                Scalar::U32
            } else {
                s.to_unsigned()
            };
            v = self.emit(k, Op::Cast(s, v))?;
        }
        let len = self.emit(k, Op::Const(s, len as u64))?;
        let v = self.emit(k, Op::Binary(BinaryOp::Rem, v, len))?;
        if self.choices.chance(1, 4) {
            self.emit(k, Op::Cast(Scalar::I32, v))
        } else {
            Ok(v)
        }
    }

    fn select(&mut self, k: &mut KernelBuilder, c: Value, a: Value, b: Value) -> Result<Value> {
        self.emit(k, Op::Ternary(TernaryOp::Select, c, a, b))
    }

    fn equals(&mut self, k: &mut KernelBuilder, s: Scalar, v: Value, bits: u64) -> Result<Value> {
        let c = self.emit(k, Op::Const(s, bits))?;
        self.emit(k, Op::Binary(BinaryOp::Eq, v, c))
    }

    /// A divisor at which division does not fault.
    fn safe_divisor(&mut self, k: &mut KernelBuilder, s: Scalar, v: Value) -> Result<Value> {
        if self.config.faults && self.choices.chance(1, 2) {
            // Numbers are seldom zero by themselves.
            if self.choices.chance(1, 2) {
                let three = self.emit(k, Op::Const(s, 3))?;
                return self.emit(k, Op::Binary(BinaryOp::And, v, three));
            }
            return Ok(v);
        }
        let mut bad = self.equals(k, s, v, 0)?;
        if s.is_signed_int() {
            let minus_one = self.equals(k, s, v, u64::MAX >> (64 - s.bits()))?;
            bad = self.emit(k, Op::Binary(BinaryOp::Or, bad, minus_one))?;
        }
        let three = self.emit(k, Op::Const(s, 3))?;
        self.select(k, bad, three, v)
    }

    /// The same float, but any NaN replaced by one: what follows sees its bits or its sign.
    fn canonical_nan(&mut self, k: &mut KernelBuilder, s: Scalar, v: Value) -> Result<Value> {
        let nan = edge_values(s).last().copied().unwrap_or(0);
        let is_nan = self.emit(k, Op::Unary(UnaryOp::IsNan, v))?;
        let nan = self.emit(k, Op::Const(s, nan))?;
        self.select(k, is_nan, nan, v)
    }

    /// The same float, but either zero replaced by the positive one: minimum and maximum may give either.
    fn canonical_zero(&mut self, k: &mut KernelBuilder, s: Scalar, v: Value) -> Result<Value> {
        let is_zero = self.equals(k, s, v, 0)?;
        let zero = self.emit(k, Op::Const(s, 0))?;
        self.select(k, is_zero, zero, v)
    }

    /// Whether targets agree on an operator's bits.
    fn allows(&self, row: &Row) -> bool {
        self.config.library || row.exactness == Exactness::Exact
    }

    fn scalar_of(&mut self, domain: Domain) -> Option<Scalar> {
        self.scalar_where(|s| domain.contains(s))
    }

    /// Computes something from what is known.
    pub(super) fn compute(&mut self, k: &mut KernelBuilder) -> Result<()> {
        match self.choices.below(12) {
            0..=3 => self.binary(k),
            4 | 5 => self.unary(k),
            6 => self.ternary(k),
            7 | 8 => self.cast(k),
            9 => self.bitcast(k),
            10 => self.aggregate(k),
            _ => self.load_table(k),
        }
    }

    fn unary(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let op = *self.choices.pick(UnaryOp::ALL).unwrap_or(&UnaryOp::Neg);
        let Some(s) = self.scalar_of(op.row().domain) else {
            return Ok(());
        };
        if !self.allows(op.row()) {
            return Ok(());
        }
        let mut a = self.operand(k, &s.into())?;
        if op == UnaryOp::IsSignNegative {
            a = self.canonical_nan(k, s, a)?;
        }
        self.define(k, Op::Unary(op, a)).map(|_| ())
    }

    fn binary(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let op = *self.choices.pick(BinaryOp::ALL).unwrap_or(&BinaryOp::Add);
        let Some(s) = self.scalar_of(op.row().domain) else {
            return Ok(());
        };
        if !self.allows(op.row()) {
            return Ok(());
        }
        let a = self.operand(k, &s.into())?;
        let second = match op.row().second {
            Second::Same => s,
            Second::Amount => self.any_integer(),
        };
        let mut b = self.operand(k, &second.into())?;
        match op {
            BinaryOp::Div | BinaryOp::Rem if s.is_int() => b = self.safe_divisor(k, s, b)?,
            BinaryOp::Copysign => b = self.canonical_nan(k, s, b)?,
            _ => {}
        }
        let op_value = Op::Binary(op, a, b);
        if matches!(op, BinaryOp::Min | BinaryOp::Max) && s.is_float() {
            let v = self.emit(k, op_value)?;
            let v = self.canonical_zero(k, s, v)?;
            return self.know(k, v);
        }
        self.define(k, op_value).map(|_| ())
    }

    fn ternary(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let op = *self.choices.pick(TernaryOp::ALL).unwrap_or(&TernaryOp::Select);
        if op == TernaryOp::Select {
            let ty = self.any_type();
            let c = self.operand(k, &Type::BOOL)?;
            let a = self.operand(k, &ty)?;
            let b = self.operand(k, &ty)?;
            return self.define(k, Op::Ternary(op, c, a, b)).map(|_| ());
        }
        let Some(s) = self.scalar_of(op.row().domain) else {
            return Ok(());
        };
        let a = self.operand(k, &s.into())?;
        let b = self.operand(k, &s.into())?;
        let c = self.operand(k, &s.into())?;
        let v = self.emit(k, Op::Ternary(op, a, b, c))?;
        let v = if op == TernaryOp::Clamp && s.is_float() {
            self.canonical_zero(k, s, v)?
        } else {
            v
        };
        self.know(k, v)
    }

    fn cast(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let from = self.any_scalar();
        let to = self.scalar_where(|to| match from {
            Scalar::Bool => to.is_int(),
            _ => to != Scalar::Bool,
        });
        let Some(to) = to else { return Ok(()) };
        let v = self.operand(k, &from.into())?;
        self.define(k, Op::Cast(to, v)).map(|_| ())
    }

    fn bitcast(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let from = self.any_scalar();
        let Some(to) = self.scalar_where(|to| to.bits() == from.bits()) else {
            return Ok(());
        };
        let mut v = self.operand(k, &from.into())?;
        if from.is_float() {
            v = self.canonical_nan(k, from, v)?;
        }
        self.define(k, Op::Bitcast(to, v)).map(|_| ())
    }

    /// Builds, changes or takes apart an aggregate.
    fn aggregate(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let ty = self.any_type();
        let n = ty.component_count();
        if n == 0 {
            return Ok(());
        }
        let v = self.operand(k, &ty)?;
        let i = self.choices.below(n as usize) as u32;
        let Some(part) = ty.component(i) else {
            return Ok(());
        };
        match self.choices.below(3) {
            0 => self.define(k, Op::Extract(v, i))?,
            1 => {
                let part = self.operand(k, &part)?;
                self.define(k, Op::Insert(v, i, part))?
            }
            _ => {
                let mut parts = Vec::new();
                for i in 0..n {
                    if let Some(ty) = ty.component(i) {
                        parts.push(self.operand(k, &ty)?);
                    }
                }
                self.define(k, Op::Compose(ty, parts))?
            }
        };
        Ok(())
    }

    /// Mixes a value into the lane's result.
    pub(super) fn mix(&mut self, k: &mut KernelBuilder, v: Value, ty: &Type) -> Result<()> {
        let Some(entry) = self.body.entry else {
            return Ok(());
        };
        let (mut v, mut ty) = (v, ty.clone());
        while ty.component_count() > 0 {
            let i = self.choices.below(ty.component_count() as usize) as u32;
            v = self.emit(k, Op::Extract(v, i))?;
            ty = ty.component(i).unwrap_or(Type::U32);
        }
        let mut s = ty.as_scalar().unwrap_or(Scalar::U32);
        if s.is_float() {
            v = self.canonical_nan(k, s, v)?;
            s = s.to_unsigned();
            v = self.emit(k, Op::Bitcast(s, v))?;
        }
        if s.bits() == 64 {
            let half = self.number(k, 32)?;
            let high = self.emit(k, Op::Binary(BinaryOp::Shr, v, half))?;
            v = self.emit(k, Op::Binary(BinaryOp::Xor, v, high))?;
        }
        if s != Scalar::U32 {
            v = self.emit(k, Op::Cast(Scalar::U32, v))?;
        }
        let five = self.number(k, 5)?;
        let old = self.emit(k, Op::Load(Place::local(entry.mix), None))?;
        let turned = self.emit(k, Op::Binary(BinaryOp::RotateLeft, old, five))?;
        let new = self.emit(k, Op::Binary(BinaryOp::Xor, turned, v))?;
        k.store(Place::local(entry.mix), new)
    }
}
