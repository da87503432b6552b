//! Instructions of memory, atomics and tiles: each of the table's rows at each type that it takes, over edge values, against the operators
//! that it is made of. `combining` has the reductions.

use perpetua_device::BackendKind;
use perpetua_device::conformance::rows;
use perpetua_ir::ir::{AtomicOp, ReduceOp, Scalar};
use perpetua_ir::ops::{BinaryOp, Domain, TernaryOp, eval};
use perpetua_isa::{Executor, LaunchConfig, Meaning, Opcode, Program, Space};

use super::common::{bind, computes_exactly, executors, missing, upload};
use super::{bytes, is_nan};

/// Lanes of a block: odd, as is what is left at some levels of a reduction's tree.
pub(super) const LANES: usize = 9;

/// Whether its cells are here.
pub(super) fn has(opcode: Opcode) -> bool {
    match opcode.meaning() {
        Meaning::Load(space) | Meaning::Store(space) => space != Space::Pool,
        meaning => matches!(
            meaning,
            Meaning::Reduce(_)
                | Meaning::Group(_)
                | Meaning::Grid(_)
                | Meaning::Atomic(_)
                | Meaning::CompareExchange
                | Meaning::Copy
                | Meaning::Fill
                | Meaning::Tile
        ),
    }
}

/// The types of a row, predicates aside, which lie in no memory.
fn types(opcode: Opcode) -> impl Iterator<Item = Scalar> {
    let domain = opcode.row().types.unwrap_or(Domain::Number);
    let is_atomic = matches!(
        opcode.meaning(),
        Meaning::Atomic(_) | Meaning::CompareExchange | Meaning::Grid(_)
    );
    let fits = move |ty: &Scalar| domain.contains(*ty) && (!is_atomic || ty.bits() >= 32);
    Scalar::ALL
        .into_iter()
        .filter(|ty| *ty != Scalar::Bool)
        .filter(fits)
}

/// A type's rows of one kind: `None` where it has none.
pub(super) fn opcodes<T>(ty: Scalar, of: impl Fn(Meaning) -> Option<T>) -> Option<Vec<(Opcode, T)>> {
    let mut found = Vec::new();
    for opcode in Opcode::all().filter(|opcode| has(*opcode)) {
        if let Some(what) = of(opcode.meaning())
            && types(opcode).any(|known| known == ty)
        {
            found.push((opcode, what));
        }
    }
    (!found.is_empty()).then_some(found)
}

/// A buffer: its name, its type, and what it holds, before a run and after it.
pub(super) struct Column(pub(super) &'static str, pub(super) Scalar, pub(super) Vec<u64>);

/// Runs a program; whether the device has what it needs.
pub(super) fn run(executor: &Executor, text: &str, config: LaunchConfig, columns: &mut [Column]) -> bool {
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let lacks = missing(executor, &program);
    let mut handles = Vec::new();
    for Column(name, ty, values) in columns.iter() {
        // Sizes are multiples of four bytes on all devices.
        assert_eq!(values.len() * ty.size() as usize % 4, 0, "{name} of {ty}");
        handles.push((*name, upload(executor, &bytes(*ty, values.iter().copied()))));
    }
    let program = bind(program, &handles);
    let done = executor.execute_program(&program, &config);
    let has_run = match (lacks, done) {
        (None, Ok(())) => true,
        (Some(lacks), Err(error)) => {
            assert!(error.to_string().contains(&lacks.to_string()), "{lacks}: {error}");
            eprintln!("skipped on {:?}: {lacks}", executor.device().backend());
            false
        }
        (lacks, done) => panic!("{:?} lacks {lacks:?}: {done:?}\n{program}", executor.device()),
    };
    for (Column(_, ty, values), (_, handle)) in columns.iter_mut().zip(handles) {
        let size = ty.size() as usize;
        if has_run {
            let found = executor.read_buffer::<u8>(handle, 0, values.len() * size);
            let found = found.unwrap_or_else(|error| panic!("{error}\n{program}"));
            for (value, bytes) in values.iter_mut().zip(found.chunks(size)) {
                *value = bytes
                    .iter()
                    .rev()
                    .fold(0, |all, byte| all << 8 | u64::from(*byte));
            }
        }
        executor.free_buffer(handle).expect("there");
    }
    has_run
}

/// What an instruction must give.
pub(super) struct Expected<'a> {
    pub(super) executor: &'a Executor,
    pub(super) opcode: Opcode,
    pub(super) ty: Scalar,
}

impl Expected<'_> {
    pub(super) fn is(&self, found: u64, expected: u64) -> bool {
        let ty = self.ty;
        if found == expected || is_nan(ty, found) && is_nan(ty, expected) {
            return true;
        }
        if !ty.is_float() {
            return false;
        }
        let [x, y] = [found, expected].map(|bits| f64::from_bits(eval::eval_cast(ty, Scalar::F64, bits)));
        // Either zero is the larger one of two.
        let name = &self.opcode.row().name;
        if x == y && (name.ends_with("_min") || name.ends_with("_max")) {
            return true;
        }
        // What only moves a value keeps it, but that a device may take a denormal for zero.
        let moves = ["ldg", "lds", "ldc", "copy", "fill", "atom_exchange", "atom_cas"];
        if moves.contains(&&*self.opcode.row().name) {
            return x == 0.0 && y.abs() < 2f64.powi(-126);
        }
        // Devices that round otherwise, or flush denormals, are a few steps away.
        !computes_exactly(self.executor)
            && ((x - y).abs() <= 2f64.powi(-18) * y.abs() + 2f64.powi(-120)
                || x.abs() > 1e37 && y.abs() > 1e37 && x.signum() == y.signum())
    }

    /// Whether the device may take denormals for zero on the way to the result: all that compute otherwise, and CUDA's atomic sums of f32s.
    fn flushes(&self) -> bool {
        let sums = matches!(
            self.opcode.meaning(),
            Meaning::Atomic(AtomicOp::Add | AtomicOp::Sub) | Meaning::Grid(ReduceOp::Add)
        );
        let is_cuda = self.executor.device().backend() == BackendKind::Cuda;
        !computes_exactly(self.executor) || is_cuda && sums && self.ty == Scalar::F32
    }

    /// `steps` computes what is expected, and calls its argument with each operand and each result on the way.
    pub(super) fn is_by(&self, found: u64, steps: impl Fn(&dyn Fn(u64) -> u64) -> u64) -> bool {
        // What was rounded up to the least normal number was less before.
        let least = 2f64.powi(-126);
        let flushed = |limit: f64| {
            move |bits| match self.ty {
                Scalar::F32 | Scalar::BF16 => {
                    let x = f64::from_bits(eval::eval_cast(self.ty, Scalar::F64, bits));
                    let sign = bits & 1 << (self.ty.bits() - 1);
                    if x.abs() < limit { sign } else { bits }
                }
                _ => bits,
            }
        };
        self.is(found, steps(&|bits| bits))
            || self.flushes()
                && [least, least * 1.001]
                    .iter()
                    .any(|limit| self.is(found, steps(&flushed(*limit))))
    }

    /// As [`Expected::check`], of [`Expected::is_by`].
    pub(super) fn check_by(&self, found: u64, of: &[u64], steps: impl Fn(&dyn Fn(u64) -> u64) -> u64) {
        if !self.is_by(found, &steps) {
            self.check(found, steps(&|bits| bits), of);
        }
    }

    pub(super) fn check(&self, found: u64, expected: u64, of: &[u64]) {
        assert!(
            self.is(found, expected),
            "{:?}.{} of {of:#x?} gives {found:#x}, not {expected:#x}, on {:?}",
            self.opcode,
            self.ty,
            self.executor.device()
        );
    }
}

pub(super) fn combine(op: BinaryOp, ty: Scalar, a: u64, b: u64) -> u64 {
    eval::eval_binary(op, ty, a, b).expect("no division")
}

pub(super) fn number(ty: Scalar, value: i64) -> u64 {
    eval::eval_cast(Scalar::I64, ty, value as u64)
}

/// Pairs of edge values, as many as fill blocks and words.
pub(super) fn pairs(ty: Scalar) -> Vec<Vec<u64>> {
    let mut rows = rows(&[ty, ty]);
    rows.truncate(rows.len() / (4 * LANES) * (4 * LANES));
    rows
}

pub(super) fn each_type(check: impl Fn(&Executor, Scalar)) {
    for executor in executors() {
        for ty in Scalar::ALL.into_iter().filter(|ty| *ty != Scalar::Bool) {
            check(&executor, ty);
        }
    }
}

// The lane's number in the grid, in r1.
pub(super) const NUMBER: &str = " mad.u32 r1, r253, r254, r252\n";

#[test]
fn memory_holds_what_was_stored() {
    each_type(|executor, ty| {
        let values: Vec<u64> = pairs(ty).iter().map(|row| row[0]).collect();
        let constants: Vec<String> = values[..LANES]
            .iter()
            .map(|bits| match ty.is_float() {
                true => format!("0f{bits:0width$x}", width = 2 * ty.size() as usize),
                false => eval::eval_cast(ty, Scalar::I64, *bits).to_string(),
            })
            .map(|text| match ty {
                Scalar::U64 => text,
                _ => text.parse::<u64>().map_or(text, |bits| (bits as i64).to_string()),
            })
            .collect();
        let text = format!(
            ".buffer x: {ty}\n.buffer out: {ty}\n.shared s: {ty}[{LANES}]\n.const t: {ty} = {}\n{NUMBER} \
             mul.u32 r2, r1, 6\n ldg.{ty} r3, x[r1]\n stg.{ty} out[r2], r3\n \
             sts.{ty} s[r252], r3\n bar\n sub.u32 r4, {}, r252\n lds.{ty} r5, s[r4]\n stg.{ty} out[r2 + 1], r5\n \
             ldc.{ty} r6, t[r252]\n stg.{ty} out[r2 + 2], r6\n \
             copy.{ty} out[r2 + 3], x[r1], 1\n fill.{ty} out[r2 + 4], r3, 2\n",
            constants.join(", "),
            LANES - 1,
        );
        let mut columns = [
            Column("x", ty, values.clone()),
            Column("out", ty, vec![0; 6 * values.len()]),
        ];
        let config = LaunchConfig::new((values.len() / LANES) as u32, LANES as u32);
        if !run(executor, &text, config, &mut columns) {
            return;
        }
        for (i, found) in columns[1].2.chunks(6).enumerate() {
            let (block, lane) = (i / LANES, i % LANES);
            let own = values[i];
            let opposite = values[block * LANES + LANES - 1 - lane];
            for (name, found, expected) in [
                ("ldg", found[0], own),
                ("lds", found[1], opposite),
                ("ldc", found[2], values[lane]),
                ("copy", found[3], own),
                ("fill", found[4], own),
                ("fill", found[5], own),
            ] {
                let opcode = Opcode::from_name(name).expect(name);
                Expected { executor, opcode, ty }.check(found, expected, &[own]);
            }
        }
    });
}

fn changed(op: AtomicOp, ty: Scalar, old: u64, operand: u64, step: &dyn Fn(u64) -> u64) -> u64 {
    let by = |op| step(combine(op, ty, step(old), step(operand)));
    match op {
        AtomicOp::Add => by(BinaryOp::Add),
        AtomicOp::Sub => by(BinaryOp::Sub),
        AtomicOp::Min => by(BinaryOp::Min),
        AtomicOp::Max => by(BinaryOp::Max),
        AtomicOp::And => by(BinaryOp::And),
        AtomicOp::Or => by(BinaryOp::Or),
        AtomicOp::Xor => by(BinaryOp::Xor),
        AtomicOp::Exchange => operand,
    }
}

#[test]
fn atomics_change_elements_and_give_what_was_there() {
    each_type(|executor, ty| {
        let atomic = |meaning| match meaning {
            Meaning::Atomic(op) => Some(op),
            _ => None,
        };
        let Some(ops) = opcodes(ty, atomic) else { return };
        let pairs = pairs(ty);
        let n = pairs.len();
        // Each lane at an element of a buffer and of the block's memory that are its own; then integers all at one.
        let shared_by_all = ty.is_int();
        let mut text = format!(
            ".buffer x: {ty}\n.buffer all: {ty}\n.buffer old: {ty}\n.buffer y: {ty}\n.shared s: {ty}[{LANES}]\n{NUMBER}"
        );
        for (i, (opcode, op)) in ops.iter().enumerate() {
            let at = i * n;
            text += &format!(
                " ldg.{ty} r3, y[r1]\n ldg.{ty} r7, x[r1 + {at}]\n sts.{ty} s[r252], r7\n bar\n {opcode:?}.{ty} r4, x[r1 + {at}], r3\n \
                 stg.{ty} old[r1 + {at}], r4\n {opcode:?}.{ty} r5, s[r252], r3\n bar\n lds.{ty} r6, s[r252]\n \
                 seteq.{ty} p1, r5, r4\n sel.{ty} r6, p1, r6, r4\n stg.{ty} old[r1 + {}], r6\n",
                (ops.len() + i) * n
            );
            if shared_by_all && *op != AtomicOp::Exchange {
                text += &format!(" {opcode:?}.{ty} r4, all[{i}], r3\n");
            }
        }
        let begins: Vec<u64> = (0..ops.len() * n).map(|i| pairs[i % n][0]).collect();
        let alls = ops.len().next_multiple_of(4);
        let mut columns = [
            Column("x", ty, begins),
            Column("all", ty, vec![number(ty, 5); alls]),
            Column("old", ty, vec![0; 2 * ops.len() * n]),
            Column("y", ty, pairs.iter().map(|pair| pair[1]).collect()),
        ];
        let config = LaunchConfig::new((n / LANES) as u32, LANES as u32);
        if !run(executor, &text, config, &mut columns) {
            return;
        }
        let [Column(.., x), Column(.., all), Column(.., old), _] = &columns;
        for (i, (opcode, op)) in ops.iter().enumerate() {
            let expected = Expected {
                executor,
                opcode: *opcode,
                ty,
            };
            for (lane, pair) in pairs.iter().enumerate() {
                let new = |step: &dyn Fn(u64) -> u64| changed(*op, ty, pair[0], pair[1], step);
                expected.check(old[i * n + lane], pair[0], pair);
                expected.check_by(x[i * n + lane], pair, new);
                // A NaN that was there is equal to none.
                if !is_nan(ty, pair[0]) {
                    expected.check_by(old[(ops.len() + i) * n + lane], pair, new);
                }
            }
            if shared_by_all && *op != AtomicOp::Exchange {
                let end = pairs.iter().fold(number(ty, 5), |all, pair| {
                    changed(*op, ty, all, pair[1], &|bits| bits)
                });
                expected.check(all[i], end, &[]);
            }
        }
    });
}

#[test]
fn compare_and_exchange_replaces_what_is_expected() {
    each_type(|executor, ty| {
        let exchange = |meaning| (meaning == Meaning::CompareExchange).then_some(());
        let Some(ops) = opcodes(ty, exchange) else { return };
        let pairs = pairs(ty);
        let n = pairs.len();
        // Every other lane expects what is there.
        let expects = |lane: usize| pairs[lane][lane % 2];
        let text = format!(
            ".buffer x: {ty}\n.buffer e: {ty}\n.buffer y: {ty}\n{NUMBER} ldg.{ty} r3, e[r1]\n ldg.{ty} r4, y[r1]\n \
             atom_cas.{ty} r5, x[r1], r3, r4\n stg.{ty} e[r1], r5\n"
        );
        let mut columns = [
            Column("x", ty, pairs.iter().map(|pair| pair[0]).collect()),
            Column("e", ty, (0..n).map(expects).collect()),
            Column("y", ty, pairs.iter().map(|pair| pair[1]).collect()),
        ];
        let config = LaunchConfig::new((n / LANES) as u32, LANES as u32);
        if !run(executor, &text, config, &mut columns) {
            return;
        }
        for (lane, pair) in pairs.iter().enumerate() {
            let expected = Expected {
                executor,
                opcode: ops[0].0,
                ty,
            };
            let new = if expects(lane) == pair[0] {
                pair[1]
            } else {
                pair[0]
            };
            expected.check(columns[0].2[lane], new, pair);
            expected.check(columns[1].2[lane], pair[0], pair);
        }
    });
}

#[test]
fn tiles_grow_by_products() {
    const M: usize = 2;
    const N: usize = 2;
    const K: usize = 3;
    const VALUES: usize = M * N + M * K + K * N;
    each_type(|executor, ty| {
        let tile = |meaning| (meaning == Meaning::Tile).then_some(());
        let Some(ops) = opcodes(ty, tile) else { return };
        let edges: Vec<u64> = pairs(ty).concat();
        let lanes = edges.len() / (4 * LANES) * (4 * LANES);
        // Every other lane has small numbers alone, of which no sum is lost to NaN and infinities.
        let value = |lane: usize, i: usize| match lane % 2 {
            0 => edges[(lane * 5 + i * i) % edges.len()],
            _ => number(
                ty,
                ((lane * 3 + i * 7) % 13) as i64 - if ty.is_float() { 6 } else { 0 },
            ),
        };
        let values: Vec<u64> = (0..lanes * VALUES)
            .map(|i| value(i / VALUES, i % VALUES))
            .collect();
        let mut text = format!(
            ".buffer x: {ty}\n.buffer out: {ty}\n{NUMBER} mul.u32 r2, r1, {VALUES}\n mul.u32 r3, r1, {}\n",
            M * N
        );
        for i in 0..VALUES {
            text += &format!(" ldg.{ty} r{}, x[r2 + {i}]\n", 10 + i);
        }
        let (a, b) = (10 + M * N, 10 + M * N + M * K);
        text += &format!(" tile_mma.{ty} r10, r{a}, r{b}, {M}, {N}, {K}\n");
        for i in 0..M * N {
            text += &format!(" stg.{ty} out[r3 + {i}], r{}\n", 10 + i);
        }
        let mut columns = [
            Column("x", ty, values.clone()),
            Column("out", ty, vec![0; M * N * lanes]),
        ];
        let config = LaunchConfig::new((lanes / LANES) as u32, LANES as u32);
        if !run(executor, &text, config, &mut columns) {
            return;
        }
        for (of, found) in values.chunks(VALUES).zip(columns[1].2.chunks(M * N)) {
            let (d, rest) = of.split_at(M * N);
            let (a, b) = rest.split_at(M * K);
            for (i, found) in found.iter().enumerate() {
                let steps = |step: &dyn Fn(u64) -> u64| {
                    (0..K).fold(step(d[i]), |sum, k| {
                        let (x, y) = (step(a[i / N * K + k]), step(b[k * N + i % N]));
                        step(match ty.is_float() {
                            true => eval::eval_ternary(TernaryOp::Fma, ty, x, y, sum),
                            false => combine(BinaryOp::Add, ty, sum, combine(BinaryOp::Mul, ty, x, y)),
                        })
                    })
                };
                Expected {
                    executor,
                    opcode: ops[0].0,
                    ty,
                }
                .check_by(*found, of, steps);
            }
        }
    });
}
