//! Exchanges among the lanes of subgroups: the interpreter's own are the measure.

use super::*;

/// Every operation of subgroups, in loops and branches that lanes and whole gangs take differently, over blocks of several shapes.
#[test]
fn subgroup_operations_equal_the_interpreters() {
    use ReduceOp::*;
    let mut ops: Vec<SubgroupOp> = vec![
        SubgroupOp::Shuffle,
        SubgroupOp::ShuffleUp,
        SubgroupOp::ShuffleDown,
        SubgroupOp::ShuffleXor,
        SubgroupOp::BroadcastFirst,
        SubgroupOp::Any,
        SubgroupOp::All,
        SubgroupOp::Ballot,
    ];
    for op in [Add, Mul, Min, Max, And, Or, Xor] {
        ops.extend([
            SubgroupOp::Reduce(op),
            SubgroupOp::InclusiveScan(op),
            SubgroupOp::ExclusiveScan(op),
        ]);
    }
    let scalars = [Scalar::U32, Scalar::I32, Scalar::F32, Scalar::I64, Scalar::F64];
    let shapes = [[64, 1, 1], [40, 1, 1], [24, 3, 1], [5, 7, 3], [1, 33, 1]];
    for op in ops {
        for s in scalars {
            let bits = matches!(
                op,
                SubgroupOp::Reduce(And | Or | Xor)
                    | SubgroupOp::InclusiveScan(And | Or | Xor)
                    | SubgroupOp::ExclusiveScan(And | Or | Xor)
            );
            if bits && !s.is_int() {
                continue;
            }
            let kernel = verify(exchanging(op, s)).unwrap();
            for width in Width::detect() {
                let code = compiled(&kernel, *width).unwrap();
                let plain = Interpreter::new(&kernel).unwrap();
                for block in shapes {
                    for subgroup in [32, 8, 64] {
                        let run = |of: &Interpreter| {
                            let mut data: Vec<u64> = (0..2 * 256u64)
                                .map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15))
                                .collect();
                            let mut out = vec![0u64; 2 * 256];
                            let args = [
                                Arg::Buffer(BufferRef::from_slice(&mut data)),
                                Arg::Buffer(BufferRef::from_slice(&mut out)),
                            ];
                            let mut config = LaunchConfig::new([2, 1, 1], block, &args);
                            config.subgroup_size = subgroup;
                            of.launch(&config).unwrap();
                            out
                        };
                        let (expected, found) = (run(&plain), run(&code));
                        assert_eq!(
                            expected,
                            found,
                            "{op:?} of {s}, {width:?}, {block:?}, {subgroup}\n{}",
                            kernel.kernel()
                        );
                    }
                }
            }
        }
    }
}

/// A kernel that exchanges in loops of different lengths, in both arms of a branch, and behind them.
fn exchanging(op: SubgroupOp, s: Scalar) -> Kernel {
    let mut k = KernelBuilder::new("exchanges");
    let input = k.buffer("input", Type::U64, Access::Read);
    let out = k.buffer("out", Type::U64, Access::ReadWrite);
    let [x, y, z] = [Axis::X, Axis::Y, Axis::Z].map(|a| k.builtin(Builtin::ThreadIdx(a)));
    let [w, h] = [Axis::X, Axis::Y].map(|a| k.builtin(Builtin::BlockDim(a)));
    let z = k.binary(BinaryOp::Mul, z, h).unwrap();
    let y = k.binary(BinaryOp::Add, y, z).unwrap();
    let y = k.binary(BinaryOp::Mul, y, w).unwrap();
    let lane = k.binary(BinaryOp::Add, x, y).unwrap();
    let block = k.builtin(Builtin::BlockIdx(Axis::X));
    let start = k.u32(256);
    let start = k.binary(BinaryOp::Mul, block, start).unwrap();
    let index = k.binary(BinaryOp::Add, start, lane).unwrap();
    let word = k.load(Place::element(input, index)).unwrap();
    let vote = matches!(op, SubgroupOp::Any | SubgroupOp::All | SubgroupOp::Ballot);
    let shuffles = matches!(
        op,
        SubgroupOp::Shuffle | SubgroupOp::ShuffleUp | SubgroupOp::ShuffleDown | SubgroupOp::ShuffleXor
    );
    let sum = k.local("sum", Type::U64);
    k.store(Place::local(sum), word).unwrap();
    // What lanes exchange is made of what they have; what they get is added to it.
    let exchange = |k: &mut KernelBuilder| {
        let old = k.load(Place::local(sum))?;
        let value = match s {
            _ if vote => {
                let three = k.constant(Scalar::U64, 3);
                let low = k.binary(BinaryOp::And, old, three)?;
                let zero = k.constant(Scalar::U64, 0);
                k.binary(BinaryOp::Ne, low, zero)?
            }
            // Small whole numbers: of other bits some are NaN, whose payloads may differ.
            _ if !s.is_int() => {
                let low = k.cast(Scalar::U8, old)?;
                k.cast(s, low)?
            }
            _ => k.cast(s, old)?,
        };
        let arg = match shuffles {
            true => {
                let arg = k.cast(Scalar::U32, old)?;
                let few = k.u32(40);
                Some(k.binary(BinaryOp::Rem, arg, few)?)
            }
            false => None,
        };
        let got = k.op(Op::subgroup(op, value, arg))?;
        let got = match op {
            SubgroupOp::Ballot => k.op(Op::Extract(got, 0))?,
            _ => got,
        };
        let got = k.cast(Scalar::U64, got)?;
        let factor = k.constant(Scalar::U64, 0x2545_F491_4F6C_DD1D);
        let old = k.binary(BinaryOp::Mul, old, factor)?;
        let new = k.binary(BinaryOp::Add, old, got)?;
        k.store(Place::local(sum), new)
    };
    exchange(&mut k).unwrap();
    let turn = k.local("turn", Type::U32);
    let zero = k.u32(0);
    k.store(Place::local(turn), zero).unwrap();
    k.loop_(|k| {
        let n = k.load(Place::local(turn))?;
        let few = k.u32(5);
        let most = k.binary(BinaryOp::Rem, lane, few)?;
        let row = k.u32(16);
        let row = k.binary(BinaryOp::Div, lane, row)?;
        let most = k.binary(BinaryOp::Add, most, row)?;
        let over = k.binary(BinaryOp::Gt, n, most)?;
        k.if_(over, |k| {
            k.break_(0);
            Ok(())
        })?;
        let one = k.u32(1);
        let next = k.binary(BinaryOp::Add, n, one)?;
        k.store(Place::local(turn), next)?;
        let odd = k.binary(BinaryOp::And, lane, one)?;
        let odd = k.binary(BinaryOp::Eq, odd, one)?;
        k.if_else(
            odd,
            |k| exchange(k),
            |k| {
                exchange(k)?;
                let many = k.u32(20);
                let some = k.binary(BinaryOp::Lt, lane, many)?;
                k.if_(some, |k| exchange(k))
            },
        )
    })
    .unwrap();
    exchange(&mut k).unwrap();
    let sum = k.load(Place::local(sum)).unwrap();
    k.store(Place::element(out, index), sum).unwrap();
    k.finish()
}
