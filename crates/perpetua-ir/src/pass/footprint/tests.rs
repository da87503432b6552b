//! What the interpreter accesses lies in what was foretold, for kernels at random; and how much is foretold of usual ones.

use proptest::prelude::*;

use super::*;
use crate::interp::{BufferRef, InterpError, Interpreter, RaceMode, trace};
use crate::ir::*;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::verify::verify;

type Result<T> = std::result::Result<T, TypeError>;

/// Numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % u64::from(n)) as u32
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u32) as usize]
    }
}

/// Runs a launch; every access must be foretold. How many were checked, and how many of them by less than the whole buffer.
fn check(kernel: &Kernel, launch: &LaunchConfig<'_>, about: &str) -> (usize, usize) {
    let verified = verify(kernel.clone()).unwrap_or_else(|e| panic!("{about}: {e}"));
    let reaches = Footprint::of(&verified).and_then(|footprint| footprint.reaches(launch));
    let reaches = reaches.unwrap_or_else(|| panic!("{about}: nothing is known of\n{kernel}"));
    trace::take();
    let run = Interpreter::new(&verified).unwrap().launch(&LaunchConfig {
        races: RaceMode::Detect,
        step_budget: Some(1 << 20),
        ..*launch
    });
    assert!(
        !matches!(run, Err(InterpError::Shape { .. } | InterpError::Argument { .. })),
        "{about}: {run:?}"
    );
    let buffers: Vec<usize> = (0..kernel.params.len())
        .filter(|i| matches!(kernel.params[*i].kind, ParamKind::Buffer { .. }))
        .collect();
    let rows = BlockRows::of(launch.grid);
    let (mut all, mut narrow) = (0, 0);
    for seen in trace::take() {
        let Some(param) = buffers.get(seen.region as usize) else {
            continue;
        };
        let row = u64::from(seen.block) / rows.blocks;
        let (from, to) = (seen.offset as i64, seen.offset as i64 + i64::from(seen.size));
        let holds = |reach: &&Reach| {
            let by = reach.stride * row as i64;
            reach.param as usize == *param
                && (reach.stores || !seen.writes)
                && reach.rows.contains(&row)
                && reach.low + by <= from
                && to <= reach.high + by
        };
        let Some(reach) = reaches.iter().find(holds) else {
            panic!("{about}: {seen:?} in row {row} was not foretold: {reaches:?}\n{kernel}");
        };
        let Arg::Buffer(buffer) = launch.args[*param] else {
            panic!("{about}: a value");
        };
        all += 1;
        narrow += usize::from(reach.high - reach.low < buffer.len() as i64);
    }
    (all, narrow)
}

/// Makes kernels whose indices and conditions are sums of everything.
struct Maker<'r> {
    r: &'r mut Random,
    k: KernelBuilder,
    values: Vec<(Value, Scalar)>,
    locals: Vec<(LocalId, Scalar)>,
    data: Base,
    out: Base,
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
            self.k
                .op(Op::Atomic(AtomicOp::Add, place, one, crate::ir::Sync::RELAXED))?;
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

fn indices(seed: u64) -> Result<Kernel> {
    let mut r = Random(seed);
    let mut k = KernelBuilder::new("indices");
    let data = k.buffer("data", Type::U32, Access::Read);
    let out = k.buffer("out", Type::U32, Access::ReadWrite);
    let mut values = Vec::new();
    for (name, s) in [("a", Scalar::U32), ("b", Scalar::I32), ("c", Scalar::U64)] {
        values.push((k.param(name, s.into()), s));
    }
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
    };
    for _ in 0..3 {
        maker.block(3)?;
    }
    Ok(maker.k.finish())
}

fn check_indices(seed: u64) -> (usize, usize) {
    let kernel = indices(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let mut r = Random(seed ^ 0x5555);
    let mut data: Vec<u32> = (0..r.below(70))
        .map(|_| {
            let bits = r.below(32);
            r.below(u32::MAX) >> bits
        })
        .collect();
    let mut out = vec![0u32; r.below(70) as usize];
    let number = |r: &mut Random| u64::from(r.pick(&[0, 1, 3, 7, 20, 64, u32::MAX, 1 << 31]));
    let (a, b, c) = (
        number(&mut r) as u32,
        number(&mut r) as u32,
        number(&mut r) << r.pick(&[0, 32]),
    );
    let (a, b, c) = (a.to_ne_bytes(), b.to_ne_bytes(), c.to_ne_bytes());
    let args = [
        Arg::Buffer(BufferRef::from_slice(&mut data)),
        Arg::Buffer(BufferRef::from_slice(&mut out)),
        Arg::Value(&a),
        Arg::Value(&b),
        Arg::Value(&c),
    ];
    let grid = r.pick(&[[9, 1, 1], [2, 7, 1], [3, 2, 4], [1, 1, 5], [1, 1, 1]]);
    let block = r.pick(&[[4, 1, 1], [3, 2, 1], [2, 2, 2], [16, 1, 1]]);
    check(
        &kernel,
        &LaunchConfig::new(grid, block, &args),
        &format!("seed {seed}"),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn what_kernels_access_was_foretold(seed: u64) {
        check_indices(seed);
    }
}

/// The test above is worth its keep: many accesses are made, and a good part of them is known to be near.
#[test]
fn random_indices_differ() {
    let (mut all, mut narrow) = (0, 0);
    for seed in 0..100 {
        let (seen, near) = check_indices(seed);
        all += seen;
        narrow += near;
    }
    assert!(all > 20_000 && narrow * 4 > all, "{narrow} of {all}");
}

#[cfg(feature = "testing")]
#[test]
fn what_generated_kernels_access_was_foretold() {
    use crate::testing::{Choices, Config, generate, tape};
    let mut all = 0;
    for seed in 0..300 {
        let config = Config {
            faults: seed % 2 == 0,
            ..Config::full()
        };
        let mut case = generate(&config, &mut Choices::new(&tape(seed, config.statements * 30))).unwrap();
        let mut lines: Vec<Vec<u64>> = case
            .args
            .iter()
            .map(|bytes| vec![0; bytes.len().div_ceil(8) + 4])
            .collect();
        let args: Vec<Arg<'_>> = lines
            .iter_mut()
            .zip(&case.args)
            .zip(&case.kernel.params)
            .map(|((line, bytes), param)| match param.kind {
                ParamKind::Value(_) => Arg::Value(bytes),
                ParamKind::Buffer { .. } => {
                    let content: &mut [u8] = bytemuck::cast_slice_mut(line);
                    let at = content.as_ptr().align_offset(32);
                    let content = &mut content[at..at + bytes.len()];
                    content.copy_from_slice(bytes);
                    Arg::Buffer(BufferRef::from_slice(content))
                }
            })
            .collect();
        case.kernel.name = format!("seed{seed}");
        let launch = LaunchConfig {
            dynamic_shared_bytes: case.dynamic_shared,
            ..LaunchConfig::new(case.grid, case.block, &args)
        };
        all += check(&case.kernel, &launch, &format!("seed {seed}")).0;
    }
    assert!(all > 10_000, "{all}");
}

/// A step of a grid of `width` by `height`, as everybody writes it: text, for it is what the front end gives.
const STEP: &str = "\
kernel step(now: buffer<f32, read>, next: buffer<f32, read_write>, width: u32, height: u32) {
  %0: u32 = param width
  %1: u64 = cast %0
  %2: u32 = param height
  %3: u64 = cast %2
  %4: u32 = block_idx.x
  %5: u32 = block_dim.x
  %6: u32 = mul %4, %5
  %7: u32 = thread_idx.x
  %8: u32 = add %6, %7
  %9: u64 = cast %8
  %10: u32 = block_idx.y
  %11: u32 = block_dim.y
  %12: u32 = mul %10, %11
  %13: u32 = thread_idx.y
  %14: u32 = add %12, %13
  %15: u64 = cast %14
  %16: bool = ge %9, %1
  %17: bool = ge %15, %3
  %18: bool = or %16, %17
  if %18 {
    return
  }
  %19: u64 = mul %15, %1
  %20: u64 = add %19, %9
  %21: u64 = const 0
  %22: bool = eq %15, %21
  %23: u64 = const 1
  %24: u64 = add %15, %23
  %25: bool = eq %24, %3
  %26: bool = or %22, %25
  if %26 {
    %27: f32 = const 0.0
    store next[%20], %27
    return
  }
  %28: u64 = sub %20, %1
  %29: f32 = load now[%28]
  %30: u64 = add %20, %1
  %31: f32 = load now[%30]
  %32: f32 = add %29, %31
  store next[%20], %32
}
";

#[test]
fn inner_rows_of_a_stencil_are_one_piece() {
    let kernel = STEP.parse::<Kernel>().unwrap();
    let verified = verify(kernel).unwrap();
    // 60 of 64 columns, 37 of 40 rows.
    let (width, height) = (60u32.to_ne_bytes(), 37u32.to_ne_bytes());
    let (mut now, mut next) = (vec![0f32; 60 * 37], vec![0f32; 60 * 37]);
    let args = [
        Arg::Buffer(BufferRef::from_slice(&mut now)),
        Arg::Buffer(BufferRef::from_slice(&mut next)),
        Arg::Value(&width),
        Arg::Value(&height),
    ];
    let launch = LaunchConfig::new([2, 10, 1], [32, 4, 1], &args);
    let reaches = Footprint::of(&verified).unwrap().reaches(&launch).unwrap();
    let row = 60 * 4;
    let reach = |stores: bool, rows: Range<u64>, lines: Range<i64>, stride: i64| Reach {
        param: stores.into(),
        stores,
        rows,
        low: lines.start * row,
        high: lines.end * row,
        stride: stride * row,
    };
    // Lines 0 to 3, of which the first is the border; 4 to 35; 36, which is the border.
    let expect = [
        reach(true, 0..1, 0..4, 0),
        reach(false, 0..1, 0..5, 0),
        reach(false, 1..9, -1..5, 4),
        reach(true, 1..9, 0..4, 4),
        reach(true, 9..10, 36..37, 0),
    ];
    assert_eq!(reaches, expect);
    assert_eq!(BlockRows::of([2, 10, 1]).blocks, 2);
}
