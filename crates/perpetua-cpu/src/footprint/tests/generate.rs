//! Kernels at random whose indices and conditions are sums of everything: of the lane's place, of parameters, of what was loaded.

use perpetua_ir::ir::*;
use perpetua_ir::ops::{BinaryOp, TernaryOp, UnaryOp};

type Result<T> = std::result::Result<T, TypeError>;

/// Numbers from a seed (splitmix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % u64::from(n)) as u32
    }

    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u32) as usize]
    }
}

/// Makes kernels whose indices and conditions are sums of everything.
struct Maker<'r> {
    r: &'r mut Random,
    k: KernelBuilder,
    values: Vec<(Value, Scalar)>,
    locals: Vec<(LocalId, Scalar)>,
    data: Base,
    out: Base,
    conditions: Vec<(u32, LocalId)>,
}

const INTS: [Scalar; 7] = [
    Scalar::U64,
    Scalar::U32,
    Scalar::I32,
    Scalar::I64,
    Scalar::U8,
    Scalar::I16,
    Scalar::U32,
];

impl Maker<'_> {
    fn any(&mut self) -> (Value, Scalar) {
        // What was made last is used most.
        let from = self.values.len().saturating_sub(6) as u32;
        let late = self.r.below(2) == 0;
        let at = if late {
            from + self.r.below(self.values.len() as u32 - from)
        } else {
            self.r.below(self.values.len() as u32)
        };
        self.values[at as usize]
    }

    fn of(&mut self, s: Scalar) -> Result<Value> {
        let (v, t) = self.any();
        if s == t { Ok(v) } else { self.k.cast(s, v) }
    }

    fn value(&mut self) -> Result<()> {
        use BinaryOp::*;
        let s = self.r.pick(&INTS);
        let v = match self.r.below(12) {
            0 => {
                let n = self
                    .r
                    .pick(&[0, 1, 2, 3, 5, 7, 8, 16, 31, 64, 100, u64::MAX, 1 << 31, 1 << 63]);
                self.k.constant(s, n & u64::MAX >> (64 - s.bits()))
            }
            1 => {
                let a = self.of(s)?;
                let signed = s.is_signed_int();
                let op = self
                    .r
                    .pick(&[UnaryOp::Not, UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Signum]);
                self.k.unary(if signed { op } else { UnaryOp::Not }, a)?
            }
            2 => {
                let (low, high) = (
                    self.k.constant(s, self.r.below(9).into()),
                    self.k.constant(s, self.r.below(99).into()),
                );
                let a = self.of(s)?;
                self.k.ternary(TernaryOp::Clamp, a, low, high)?
            }
            3 => {
                let (a, b, c) = (self.of(s)?, self.of(s)?, self.condition()?);
                self.k.ternary(TernaryOp::Select, c, a, b)?
            }
            4 if !self.locals.is_empty() => {
                let at = self.r.below(self.locals.len() as u32);
                let (local, t) = self.locals[at as usize];
                let v = self.k.load(Place::local(local))?;
                self.values.push((v, t));
                return Ok(());
            }
            5 => {
                let a = self.of(s)?;
                let b = self.k.constant(s, self.r.pick(&[1, 2, 3, 4, 7, 8, 10]));
                let op = self.r.pick(&[Div, Rem, Shl, Shr, Mul, And]);
                self.k.binary(op, a, b)?
            }
            _ => {
                let (a, b) = (self.of(s)?, self.of(s)?);
                let op = self.r.pick(&[
                    Add,
                    Sub,
                    Mul,
                    Min,
                    Max,
                    Add,
                    Sub,
                    Mul,
                    And,
                    Or,
                    Xor,
                    Div,
                    Rem,
                    Shl,
                    Shr,
                    SaturatingSub,
                    SaturatingAdd,
                    AbsDiff,
                    RotateLeft,
                    MulHigh,
                ]);
                let v = self.k.binary(op, a, b)?;
                let t = self.k.type_of(v)?.as_scalar().unwrap_or(s);
                self.values.push((v, t));
                return Ok(());
            }
        };
        self.values.push((v, s));
        Ok(())
    }

    fn condition(&mut self) -> Result<Value> {
        use BinaryOp::*;
        let s = self.r.pick(&INTS);
        let (a, b) = (self.of(s)?, self.of(s)?);
        let op = self.r.pick(&[Lt, Le, Gt, Ge, Eq, Ne]);
        let one = self.k.binary(op, a, b)?;
        if self.r.below(3) > 0 {
            return Ok(one);
        }
        let two = self.condition()?;
        let op = self.r.pick(&[And, Or, Xor]);
        let both = self.k.binary(op, one, two)?;
        match self.r.below(3) {
            0 => self.k.unary(UnaryOp::Not, both),
            _ => Ok(both),
        }
    }

    fn access(&mut self) -> Result<()> {
        let (index, s) = self.any();
        // A small index, more often than not.
        let index = match self.r.below(3) {
            0 => index,
            _ => {
                let n = self.k.constant(s, 50);
                self.k
                    .binary(self.r.pick(&[BinaryOp::Rem, BinaryOp::Min]), index, n)?
            }
        };
        if self.r.below(2) == 0 {
            let v = self.k.load(Place::element(self.data, index))?;
            self.values.push((v, Scalar::U32));
        } else {
            let one = self.k.u32(1);
            let place = Place::element(self.out, index);
            self.k.op(Op::Atomic(
                AtomicOp::Add,
                place,
                one,
                perpetua_ir::ir::Sync::RELAXED,
            ))?;
        }
        Ok(())
    }

    fn block(&mut self, depth: u32) -> Result<()> {
        let known = self.values.len();
        for _ in 0..2 + self.r.below(5) {
            self.value()?;
            match self.r.below(8) {
                0 | 1 => self.access()?,
                2 if !self.locals.is_empty() => {
                    let at = self.r.below(self.locals.len() as u32);
                    let (local, s) = self.locals[at as usize];
                    let v = self.of(s)?;
                    self.k.store(Place::local(local), v)?;
                }
                3 | 4 if depth > 0 => self.construct(depth - 1)?,
                _ => {}
            }
        }
        self.access()?;
        self.values.truncate(known);
        Ok(())
    }

    fn nested(&mut self, depth: u32) -> Result<Block> {
        let mut made = Ok(());
        let mut inner = std::mem::replace(&mut self.k, KernelBuilder::new(""));
        let block = inner.block(|k| {
            std::mem::swap(&mut self.k, k);
            made = self.block(depth);
            std::mem::swap(&mut self.k, k);
            Ok::<(), TypeError>(())
        });
        self.k = inner;
        made?;
        block
    }

    fn construct(&mut self, depth: u32) -> Result<()> {
        let condition = self.condition()?;
        if self.r.below(2) == 0 {
            let number = self.conditions.len() as u32 % 60;
            let known = self.conditions.iter().find(|(known, _)| *known == number);
            let local = match known {
                Some((_, local)) => *local,
                None => self.k.local(format!("condition{number}"), Scalar::Bool.into()),
            };
            self.conditions.push((number, local));
            self.k.store(Place::local(local), condition)?;
        }
        match self.r.below(4) {
            0 => {
                self.k.push(Inst::If(
                    condition,
                    Block(vec![Stmt {
                        line: 0,
                        inst: Inst::Return(None),
                    }]),
                    Block::default(),
                ));
            }
            1 => {
                // A counted loop.
                let s = self.r.pick(&[Scalar::U32, Scalar::U64, Scalar::I32]);
                let end = self.of(s)?;
                let limit = self.k.constant(s, 20);
                let end = self.k.binary(BinaryOp::Min, end, limit)?;
                let zero = self.k.constant(s, self.r.below(3).into());
                let counter = self.k.local("k", s.into());
                self.k.store(Place::local(counter), zero)?;
                let mut block = Vec::new();
                let mut inner = std::mem::replace(&mut self.k, KernelBuilder::new(""));
                let mut made = Ok(());
                let body = inner.block(|k| {
                    std::mem::swap(&mut self.k, k);
                    made = self.turn(counter, s, end, depth);
                    std::mem::swap(&mut self.k, k);
                    Ok::<(), TypeError>(())
                });
                self.k = inner;
                made?;
                block.extend(body?.0);
                self.k.push(Inst::Loop(Block(block)));
            }
            _ => {
                let then = self.nested(depth)?;
                let otherwise = match self.r.below(2) {
                    0 => Block::default(),
                    _ => self.nested(depth)?,
                };
                self.k.push(Inst::If(condition, then, otherwise));
            }
        }
        Ok(())
    }

    fn turn(&mut self, counter: LocalId, s: Scalar, end: Value, depth: u32) -> Result<()> {
        let v = self.k.load(Place::local(counter))?;
        let done = self.k.binary(BinaryOp::Ge, v, end)?;
        self.k.push(Inst::If(
            done,
            Block(vec![Stmt {
                line: 0,
                inst: Inst::Break(0),
            }]),
            Block::default(),
        ));
        self.values.push((v, s));
        self.block(depth)?;
        self.values.pop();
        let one = self.k.constant(s, 1 + u64::from(self.r.below(2)));
        let again = self.k.load(Place::local(counter))?;
        let next = self.k.binary(BinaryOp::Add, again, one)?;
        self.k.store(Place::local(counter), next)
    }
}

/// A kernel with parameters `data: &[u32]`, `out: &mut [u32]`, `a: u32`, `b: i32`, `c: u64`, `marks: &mut [u32]`, which is not
/// accessed; and the variables that it writes numbered conditions to.
pub(super) fn indices(seed: u64) -> Result<(Kernel, Vec<(u32, LocalId)>)> {
    let mut r = Random(seed);
    let mut k = KernelBuilder::new("indices");
    let data = k.buffer("data", Type::U32, Access::Read);
    let out = k.buffer("out", Type::U32, Access::ReadWrite);
    let mut values = Vec::new();
    for (name, s) in [("a", Scalar::U32), ("b", Scalar::I32), ("c", Scalar::U64)] {
        values.push((k.param(name, s.into()), s));
    }
    k.buffer("marks", Type::U32, Access::ReadWrite);
    for axis in Axis::ALL {
        values.push((k.builtin(Builtin::ThreadIdx(axis)), Scalar::U32));
        values.push((k.builtin(Builtin::BlockIdx(axis)), Scalar::U32));
        values.push((k.global_id(axis)?, Scalar::U32));
    }
    let mut locals = Vec::new();
    for i in 0..r.below(3) {
        let s = r.pick(&INTS);
        let local = k.local(format!("l{i}"), s.into());
        let zero = k.constant(s, i.into());
        k.store(Place::local(local), zero)?;
        locals.push((local, s));
    }
    let mut maker = Maker {
        r: &mut r,
        k,
        values,
        locals,
        data,
        out,
        conditions: Vec::new(),
    };
    for _ in 0..3 {
        maker.block(3)?;
    }
    Ok((maker.k.finish(), maker.conditions))
}
