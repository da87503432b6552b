//! Kernels at random: every kind of statement and value, lanes that have nothing to do with each other, loops that
//! end. Some fault.

use perpetua_ir::ir::*;
use perpetua_ir::ops::{BinaryOp, TernaryOp, UnaryOp};

type Result<T> = std::result::Result<T, TypeError>;

/// Words of the output buffer for each lane.
pub(super) const WORDS: u32 = 4;

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

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u32) as usize]
    }

    /// Whether something that happens once in `n` times does.
    fn once_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }
}

/// What surrounds the statement to be made.
#[derive(Clone)]
struct Scene {
    locals: Vec<(LocalId, Type)>,
    /// Whether each enclosing loop or labelled block, outermost first, is a loop.
    frames: Vec<bool>,
    /// Values visible here.
    values: Vec<Value>,
    /// Functions that may be called, with their parameter counts; all take and give `u32`.
    functions: Vec<(u32, usize)>,
    /// Result type of the function being built.
    result: Option<Type>,
    /// Index of the lane's first output word; none in functions.
    out: Option<Value>,
    depth: u32,
}

struct Generator<'r> {
    r: &'r mut Random,
    faults: bool,
    line: u32,
}

const SCALARS: [Scalar; 9] = [
    Scalar::Bool,
    Scalar::U8,
    Scalar::U32,
    Scalar::I32,
    Scalar::F32,
    Scalar::U64,
    Scalar::I8,
    Scalar::U16,
    Scalar::F64,
];

fn record() -> Type {
    Type::Struct(std::sync::Arc::new(StructType::repr_c(
        "Record",
        vec![
            ("a".into(), Scalar::U8.into()),
            (
                "b".into(),
                Type::array(Type::tuple(vec![Type::U32, Scalar::F64.into()]), 3),
            ),
            ("c".into(), Type::Vector(Scalar::I32, 3)),
        ],
        1,
    )))
}

/// A kernel with parameters `out: &mut [u32]` ([`WORDS`] words a lane), `data: &[u32]`, `a: u32`. Whether it may
/// fault is part of the choice.
pub(super) fn kernel(seed: u64) -> Result<Kernel> {
    let mut r = Random(seed);
    let faults = r.once_in(3);
    let mut g = Generator {
        r: &mut r,
        faults,
        line: 0,
    };
    let mut k = KernelBuilder::new("random");
    let out = k.buffer("out", Type::U32, Access::ReadWrite);
    k.buffer("data", Type::U32, Access::Read);
    k.kernel_mut().constants.push(ConstTable {
        name: "table".into(),
        element: Scalar::U32,
        data: (0..7).map(|i| i * 31 + 5).collect(),
    });
    let mut functions = Vec::new();
    for i in 0..g.r.below(4) {
        let params = 1 + g.r.below(3) as usize;
        let named = (0..params).map(|p| (format!("p{p}"), Type::U32)).collect();
        let known = functions.clone();
        let f = k.function(format!("f{i}"), named, Some(Type::U32), |k| {
            let mut scope = Scene {
                locals: Vec::new(),
                frames: Vec::new(),
                values: (0..params as u32).map(Value).collect(),
                functions: known,
                result: Some(Type::U32),
                out: None,
                depth: 1,
            };
            g.locals(k, &mut scope)?;
            g.block(k, &mut scope, 5)?;
            let v = g.value(k, &mut scope, Scalar::U32, 2)?;
            k.push(Inst::Return(Some(v)));
            Ok(())
        })?;
        functions.push((f, params));
    }
    let a = k.param("a", Type::U32);
    let i = k.global_id(Axis::X)?;
    let words = k.u32(WORDS);
    let first = k.binary(BinaryOp::Mul, i, words)?;
    let mut scope = Scene {
        locals: Vec::new(),
        frames: Vec::new(),
        values: vec![a, i],
        functions,
        result: None,
        out: Some(first),
        depth: 0,
    };
    g.locals(&mut k, &mut scope)?;
    g.block(&mut k, &mut scope, 12)?;
    // What the variables hold in the end shows in the output.
    for word in 0..WORDS {
        let v = g.value(&mut k, &mut scope, Scalar::U32, 3)?;
        let at = g.word(&mut k, first, word)?;
        k.store(Place::element(out, at), v)?;
    }
    Ok(k.finish())
}

impl Generator<'_> {
    fn next_line(&mut self, k: &mut KernelBuilder) {
        self.line += 1;
        k.set_line(self.line);
    }

    fn word(&mut self, k: &mut KernelBuilder, first: Value, word: u32) -> Result<Value> {
        let word = k.u32(word);
        k.binary(BinaryOp::Add, first, word)
    }

    fn locals(&mut self, k: &mut KernelBuilder, scope: &mut Scene) -> Result<()> {
        let mut types: Vec<Type> = SCALARS.iter().map(|s| (*s).into()).collect();
        types.extend([Type::array(Type::U32, 5), record()]);
        for (i, ty) in types.into_iter().enumerate() {
            let local = k.local(format!("l{i}"), ty.clone());
            let zero = k.op(Op::Zero(ty.clone()))?;
            k.store(Place::local(local), zero)?;
            scope.locals.push((local, ty));
        }
        Ok(())
    }

    fn block(&mut self, k: &mut KernelBuilder, scope: &mut Scene, most: u32) -> Result<()> {
        let values = scope.values.len();
        for _ in 0..self.r.below(most) + 1 {
            if !self.statement(k, scope)? {
                break;
            }
        }
        scope.values.truncate(values);
        Ok(())
    }

    /// Whether statements may follow.
    fn statement(&mut self, k: &mut KernelBuilder, scope: &mut Scene) -> Result<bool> {
        self.next_line(k);
        let nested = scope.depth < 4;
        match self.r.below(14) {
            0 if nested => {
                let c = self.value(k, scope, Scalar::Bool, 2)?;
                let then = self.inner(k, scope, None)?;
                let otherwise = if self.r.once_in(2) {
                    Block::default()
                } else {
                    self.inner(k, scope, None)?
                };
                k.push(Inst::If(c, then, otherwise));
            }
            1 if nested => self.counted(k, scope)?,
            2 if nested => {
                let block = self.inner(k, scope, Some(false))?;
                k.push(Inst::Labeled(block));
            }
            3 if nested => {
                let s = self.r.pick(&[Scalar::U32, Scalar::I8]);
                let v = self.value(k, scope, s, 2)?;
                let mask = k.constant(s, 7);
                let selector = k.binary(BinaryOp::And, v, mask)?;
                let mut cases = Vec::new();
                for labels in [vec![0], vec![1, 5], vec![6]] {
                    cases.push((labels, self.inner(k, scope, None)?));
                }
                let default = self.inner(k, scope, None)?;
                k.push(Inst::Switch {
                    selector,
                    cases,
                    default,
                });
            }
            4 if !scope.frames.is_empty() && scope.depth > 1 => {
                k.push(Inst::Break(self.r.below(scope.frames.len() as u32)));
                return Ok(false);
            }
            5 if scope.depth > 1 => {
                let loops: Vec<u32> = (0..scope.frames.len() as u32)
                    .filter(|depth| scope.frames[scope.frames.len() - 1 - *depth as usize])
                    .collect();
                if !loops.is_empty() {
                    k.push(Inst::Continue(self.r.pick(&loops)));
                    return Ok(false);
                }
            }
            6 if scope.depth > 1 && self.r.once_in(3) => {
                let v = match scope.result {
                    Some(_) => Some(self.value(k, scope, Scalar::U32, 2)?),
                    None => None,
                };
                k.push(Inst::Return(v));
                return Ok(false);
            }
            7 => {
                if let Some(first) = scope.out {
                    let word = self.r.below(WORDS);
                    let at = self.word(k, first, word)?;
                    let v = self.value(k, scope, Scalar::U32, 3)?;
                    k.store(Place::element(Base::Buffer(0), at), v)?;
                }
            }
            8 => {
                let s = self.scalar_type();
                let v = self.value(k, scope, s, 3)?;
                scope.values.push(v);
            }
            9 if self.faults && self.r.once_in(4) => {
                let c = self.value(k, scope, Scalar::Bool, 2)?;
                let v = self.value(k, scope, Scalar::I32, 1)?;
                k.if_(c, |k| {
                    k.effect(Effect::fault(FaultKind::UnreachableEnum, vec![v]))
                })?;
            }
            10 => {
                // A whole aggregate from one variable to another, or back into itself with a part changed.
                let (local, ty) = scope.locals[SCALARS.len() + self.r.below(2) as usize].clone();
                let whole = k.load(Place::local(local))?;
                let part = self.r.below(ty.component_count());
                let part_ty = ty.component(part).unwrap_or(Type::U32);
                let new = match part_ty.as_scalar() {
                    Some(s) => self.value(k, scope, s, 2)?,
                    None => k.op(Op::Zero(part_ty))?,
                };
                let changed = k.op(Op::Insert(whole, part, new))?;
                k.store(Place::local(local), changed)?;
                scope.values.push(whole);
            }
            _ => {
                let (place, s) = self.place(k, scope)?;
                let v = self.value(k, scope, s, 3)?;
                k.store(place, v)?;
            }
        }
        Ok(true)
    }

    fn scalar_type(&mut self) -> Scalar {
        self.r.pick(&SCALARS)
    }

    fn inner(&mut self, k: &mut KernelBuilder, scope: &Scene, frame: Option<bool>) -> Result<Block> {
        let mut inner = scope.clone();
        inner.depth += 1;
        inner.frames.extend(frame);
        k.block(|k| self.block(k, &mut inner, 4))
    }

    /// A loop of at most a few turns, whatever its body does.
    fn counted(&mut self, k: &mut KernelBuilder, scope: &mut Scene) -> Result<()> {
        // Read on every turn, and by nothing after that.
        let outside = self.operator(k, scope, Scalar::U32, 1)?;
        let sum = scope
            .locals
            .iter()
            .find(|(_, ty)| *ty == Type::U32)
            .map(|(id, _)| Place::local(*id));
        let counter = k.local("counter", Type::U32);
        let zero = k.u32(0);
        k.store(Place::local(counter), zero)?;
        let most = self.r.below(5) + 1;
        let body = k.block(|k| {
            let n = k.load(Place::local(counter))?;
            let most = k.u32(most);
            let done = k.binary(BinaryOp::Ge, n, most)?;
            k.if_(done, |k| {
                k.break_(0);
                Ok(())
            })?;
            let one = k.u32(1);
            let next = k.binary(BinaryOp::Add, n, one)?;
            k.store(Place::local(counter), next)?;
            if let Some(sum) = sum {
                let v = k.load(sum.clone())?;
                let v = k.binary(BinaryOp::Add, v, outside)?;
                k.store(sum, v)?;
            }
            let mut inner = scope.clone();
            inner.depth += 1;
            inner.frames.push(true);
            // Its value before the increment outlives the increment.
            inner.values.push(n);
            self.block(k, &mut inner, 5)
        })?;
        k.push(Inst::Loop(body));
        Ok(())
    }

    /// An index that stays below `n`, or one that may not.
    fn index(&mut self, k: &mut KernelBuilder, scope: &mut Scene, n: u32) -> Result<Value> {
        if self.r.once_in(3) {
            return Ok(k.u32(self.r.below(n)));
        }
        let s = self.r.pick(&[Scalar::U32, Scalar::I32, Scalar::U16, Scalar::U64]);
        let v = self.value(k, scope, s, 1)?;
        if self.faults && self.r.once_in(6) {
            let mask = k.constant(s, 15);
            return k.binary(BinaryOp::And, v, mask);
        }
        // The remainder of a signed number could be negative.
        let u = k.op(Op::Bitcast(s.to_unsigned(), v))?;
        let n = k.constant(s.to_unsigned(), n.into());
        k.binary(BinaryOp::Rem, u, n)
    }

    /// A scalar place in a local variable.
    fn place(&mut self, k: &mut KernelBuilder, scope: &mut Scene) -> Result<(Place, Scalar)> {
        let (local, ty) = scope.locals[self.r.below(scope.locals.len() as u32) as usize].clone();
        let mut place = Place::local(local);
        let mut at = ty;
        while at.as_scalar().is_none() {
            let n = at.component_count();
            let step = match at {
                Type::Array(..) => Step::Index(self.index(k, scope, n)?),
                _ => Step::Field(self.r.below(n)),
            };
            at = at
                .component(if let Step::Field(i) = step { i } else { 0 })
                .unwrap_or(Type::U32);
            place = place.step(step);
        }
        Ok((place, at.as_scalar().unwrap_or(Scalar::U32)))
    }

    /// A value of type `s`.
    fn value(&mut self, k: &mut KernelBuilder, scope: &mut Scene, s: Scalar, depth: u32) -> Result<Value> {
        let known: Vec<Value> = scope.values.clone();
        let known: Vec<Value> = known
            .into_iter()
            .filter(|v| k.type_of(*v).is_ok_and(|ty| *ty == s.into()))
            .collect();
        match self.r.below(if depth == 0 { 3 } else { 9 }) {
            0 if !known.is_empty() => Ok(self.r.pick(&known)),
            0 | 1 => {
                let bits = u64::from(self.r.below(u32::MAX)) << self.r.below(33);
                let bits = match s {
                    Scalar::F32 => u64::from((self.r.below(1000) as f32 / 8.0 - 20.0).to_bits()),
                    Scalar::F64 => (f64::from(self.r.below(1000)) / 8.0 - 20.0).to_bits(),
                    _ if self.r.once_in(2) => bits % 11,
                    _ => bits,
                };
                Ok(k.constant(s, bits & (u64::MAX >> (64 - s.bits()))))
            }
            2 => {
                let locals: Vec<LocalId> = scope
                    .locals
                    .iter()
                    .filter(|(_, ty)| *ty == s.into())
                    .map(|(id, _)| *id)
                    .collect();
                let v = k.load(Place::local(self.r.pick(&locals)))?;
                // Kept, so that it is read again after the variable has changed.
                scope.values.push(v);
                Ok(v)
            }
            3 => {
                let (place, t) = self.place(k, scope)?;
                let v = k.load(place)?;
                self.converted(k, v, t, s)
            }
            4 if s == Scalar::U32 => {
                if self.r.once_in(2) {
                    let at = self.index(k, scope, 7)?;
                    return k.load(Place::element(Base::Constant(0), at));
                }
                if scope.out.is_none() {
                    return self.value(k, scope, s, depth - 1);
                }
                let at = self.index(k, scope, 13)?;
                k.load(Place::element(Base::Buffer(1), at))
            }
            4 if s == Scalar::Bool => {
                let t = self.scalar_type();
                let t = if t == Scalar::Bool { Scalar::I32 } else { t };
                let (a, b) = (
                    self.value(k, scope, t, depth - 1)?,
                    self.value(k, scope, t, depth - 1)?,
                );
                let op = self
                    .r
                    .pick(&[BinaryOp::Lt, BinaryOp::Eq, BinaryOp::Ge, BinaryOp::Ne]);
                k.binary(op, a, b)
            }
            5 => {
                let c = self.value(k, scope, Scalar::Bool, depth - 1)?;
                let (a, b) = (
                    self.value(k, scope, s, depth - 1)?,
                    self.value(k, scope, s, depth - 1)?,
                );
                k.ternary(TernaryOp::Select, c, a, b)
            }
            6 if s == Scalar::U32 && !scope.functions.is_empty() => {
                let (f, params) = self.r.pick(&scope.functions);
                let mut args = Vec::new();
                for _ in 0..params {
                    args.push(self.value(k, scope, Scalar::U32, depth - 1)?);
                }
                let v = k.op(Op::Call(f, args))?;
                scope.values.push(v);
                Ok(v)
            }
            7 => {
                let t = self.scalar_type();
                let v = self.value(k, scope, t, depth - 1)?;
                self.converted(k, v, t, s)
            }
            _ => self.operator(k, scope, s, depth - 1),
        }
    }

    /// `v` of type `t` as a value of type `s`.
    fn converted(&mut self, k: &mut KernelBuilder, v: Value, t: Scalar, s: Scalar) -> Result<Value> {
        match (t, s) {
            _ if t == s => Ok(v),
            (t, Scalar::Bool) => {
                let zero = k.constant(t, 0);
                k.binary(BinaryOp::Ne, v, zero)
            }
            (Scalar::Bool, s) if s.is_float() => {
                let v = k.cast(Scalar::U32, v)?;
                k.cast(s, v)
            }
            (t, s) if t.bits() == s.bits() && self.r.once_in(2) && !s.is_float() => k.op(Op::Bitcast(s, v)),
            _ => k.cast(s, v),
        }
    }

    fn operator(&mut self, k: &mut KernelBuilder, scope: &mut Scene, s: Scalar, depth: u32) -> Result<Value> {
        let a = self.value(k, scope, s, depth)?;
        if self.r.once_in(4) {
            let op = match s {
                Scalar::Bool => UnaryOp::Not,
                s if s.is_float() => UnaryOp::Abs,
                s if s.is_signed_int() => UnaryOp::Neg,
                _ => UnaryOp::ReverseBits,
            };
            return k.unary(op, a);
        }
        let b = self.value(k, scope, s, depth)?;
        let op = match s {
            Scalar::Bool => self.r.pick(&[BinaryOp::And, BinaryOp::Or, BinaryOp::Xor]),
            s if s.is_float() => self
                .r
                .pick(&[BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Max]),
            _ => self.r.pick(&[
                BinaryOp::Add,
                BinaryOp::Sub,
                BinaryOp::Mul,
                BinaryOp::Xor,
                BinaryOp::Shl,
                BinaryOp::Shr,
                BinaryOp::Min,
                BinaryOp::Div,
            ]),
        };
        if op == BinaryOp::Div && s.is_int() && !self.faults {
            let one = k.constant(s, 1);
            let b = k.binary(BinaryOp::Or, b, one)?;
            let one = k.constant(s, 1);
            let a = k.binary(BinaryOp::Shr, a, one)?;
            let a = k.binary(BinaryOp::Max, a, one)?;
            return k.binary(BinaryOp::Rem, a, b);
        }
        if matches!(op, BinaryOp::Shl | BinaryOp::Shr) && self.r.once_in(2) {
            let amount = self.value(k, scope, Scalar::U32, depth)?;
            return k.binary(op, a, amount);
        }
        k.binary(op, a, b)
    }
}
