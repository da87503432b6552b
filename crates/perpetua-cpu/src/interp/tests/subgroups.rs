//! Subgroup operations against a reading lane by lane, with subgroups of all sizes, short ones, and lanes missing.

use super::*;
use crate::eval::{eval_binary, reduce_identity};

const LANES: u32 = 45;

/// `out[t] = op(value(t), arg(t))` where lane `t` takes part; the lanes divisible by `skip` do not.
fn one(op: SubgroupOp, s: Scalar, skip: Option<u32>) -> Verified {
    kernel("subgroup", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let t = thread(k);
        let seven = k.u32(7);
        let v = k.binary(BinaryOp::Mul, t, seven)?;
        let five = k.u32(5);
        let v = k.binary(BinaryOp::Xor, v, five)?;
        let v = match s {
            Scalar::Bool => {
                let four = k.u32(4);
                let bit = k.binary(BinaryOp::And, v, four)?;
                let zero = k.u32(0);
                k.binary(BinaryOp::Ne, bit, zero)?
            }
            s => k.cast(s, v)?,
        };
        let three = k.u32(3);
        let arg = k.binary(BinaryOp::And, t, three)?;
        let lane_argument = matches!(
            op,
            SubgroupOp::Shuffle | SubgroupOp::ShuffleUp | SubgroupOp::ShuffleDown | SubgroupOp::ShuffleXor
        );
        let every = k.u32(skip.unwrap_or(1));
        let rest = k.binary(BinaryOp::Rem, t, every)?;
        let zero = k.u32(0);
        let never = k.u32(if skip.is_some() { 0 } else { 1 });
        let takes_part = k.binary(BinaryOp::Ne, rest, never)?;
        k.if_(takes_part, |k| {
            let r = k.op(Op::subgroup(op, v, lane_argument.then_some(arg)))?;
            let two = k.u32(2);
            let first = k.binary(BinaryOp::Mul, t, two)?;
            let one = k.u32(1);
            let second = k.binary(BinaryOp::Add, first, one)?;
            let (low, high) = match (op, s) {
                (SubgroupOp::Ballot, _) => (k.op(Op::Extract(r, 0))?, k.op(Op::Extract(r, 1))?),
                (_, Scalar::Bool) => (k.cast(Scalar::U32, r)?, zero),
                (_, s) if s.size() == 4 => (k.op(Op::Bitcast(Scalar::U32, r))?, zero),
                _ => {
                    let r = k.op(Op::Bitcast(Scalar::U64, r))?;
                    let by = k.u32(32);
                    let high = k.binary(BinaryOp::Shr, r, by)?;
                    (k.cast(Scalar::U32, r)?, k.cast(Scalar::U32, high)?)
                }
            };
            k.store(Place::element(out, first), low)?;
            k.store(Place::element(out, second), high)
        })
    })
}

/// The result in lane `t`, or `None` where it is unspecified.
fn expected(op: SubgroupOp, s: Scalar, size: u32, skip: Option<u32>, t: u32) -> Option<u64> {
    let value = |t: u32| {
        let v = (t * 7) ^ 5;
        match s {
            Scalar::Bool => u64::from(v & 4 != 0),
            Scalar::F32 => u64::from((v as f32).to_bits()),
            Scalar::F64 => f64::from(v).to_bits(),
            _ => v.into(),
        }
    };
    let active = |t: u32| skip.is_none_or(|skip| !t.is_multiple_of(skip));
    let start = t / size * size;
    let all = start..(start + size).min(LANES);
    let group: Vec<u32> = all.clone().filter(|t| active(*t)).collect();
    let (lane, arg) = (t - start, t & 3);
    let fold = |lanes: &[u32], op: ReduceOp| {
        let first = lanes.first().map_or(reduce_identity(op, s), |t| value(*t));
        lanes.iter().skip(1).fold(first, |sum, t| {
            eval_binary(op.binary(), s, sum, value(*t)).unwrap()
        })
    };
    let from = |lane: Option<u32>| {
        let source = lane.map(|lane| start + lane).filter(|t| all.contains(t));
        match source {
            None => Some(value(t)),
            Some(source) => active(source).then(|| value(source)),
        }
    };
    let below = |inclusive: bool| {
        let lanes = group.iter().copied().filter(|l| *l < t || inclusive && *l == t);
        lanes.collect::<Vec<u32>>()
    };
    let votes = || group.iter().filter(|t| value(**t) != 0);
    match op {
        SubgroupOp::Shuffle => {
            let source = start + arg;
            (arg < size && all.contains(&source) && active(source)).then(|| value(source))
        }
        SubgroupOp::ShuffleUp => from(lane.checked_sub(arg)),
        SubgroupOp::ShuffleDown => from(Some(lane + arg)),
        SubgroupOp::ShuffleXor => from(Some(lane ^ arg)),
        SubgroupOp::BroadcastFirst => group.first().map(|t| value(*t)),
        SubgroupOp::Any => Some(u64::from(votes().count() > 0)),
        SubgroupOp::All => Some(u64::from(votes().count() == group.len())),
        SubgroupOp::Ballot => Some(votes().map(|t| 1u64 << (t - start)).sum()),
        SubgroupOp::Reduce(r) => Some(fold(&group, r)),
        SubgroupOp::InclusiveScan(r) => Some(fold(&below(true), r)),
        SubgroupOp::ExclusiveScan(r) => Some(fold(&below(false), r)),
    }
}

#[test]
fn subgroup_operations_of_all_sizes() {
    let mut cases = Vec::new();
    for op in [SubgroupOp::Any, SubgroupOp::All, SubgroupOp::Ballot] {
        cases.push((op, Scalar::Bool));
    }
    for s in [Scalar::U32, Scalar::I64, Scalar::F32, Scalar::F64] {
        use SubgroupOp::{BroadcastFirst, Shuffle, ShuffleDown, ShuffleUp, ShuffleXor};
        cases.extend([Shuffle, ShuffleUp, ShuffleDown, ShuffleXor, BroadcastFirst].map(|op| (op, s)));
        for r in ReduceOp::ALL {
            let bits = matches!(r, ReduceOp::And | ReduceOp::Or | ReduceOp::Xor);
            if !(bits && s.is_float()) {
                cases.push((SubgroupOp::Reduce(r), s));
                cases.push((SubgroupOp::InclusiveScan(r), s));
                cases.push((SubgroupOp::ExclusiveScan(r), s));
            }
        }
    }
    let mut compared = 0;
    for (op, s) in cases {
        for skip in [None, Some(3), Some(2)] {
            let kernel = one(op, s, skip);
            for size in [1u32, 4, 8, 32, 64] {
                let run = Run {
                    subgroup: size,
                    ..Run::of(&kernel, 1, LANES)
                };
                let out = run.gives(2 * LANES as usize).unwrap();
                for t in 0..LANES {
                    let found = u64::from(out[2 * t as usize]) | u64::from(out[2 * t as usize + 1]) << 32;
                    let takes_part = skip.is_none_or(|skip| !t.is_multiple_of(skip));
                    let expect = if takes_part {
                        expected(op, s, size, skip, t)
                    } else {
                        Some(0)
                    };
                    if let Some(expect) = expect {
                        assert_eq!(
                            found, expect,
                            "{op:?} {s}, size {size}, without {skip:?}, lane {t}"
                        );
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 50_000, "{compared}");
}

#[test]
fn ballots_have_128_bits() {
    let kernel = kernel("ballot", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let t = thread(k);
        let three = k.u32(3);
        let rest = k.binary(BinaryOp::Rem, t, three)?;
        let zero = k.u32(0);
        let vote = k.binary(BinaryOp::Eq, rest, zero)?;
        let ballot = k.op(Op::subgroup(SubgroupOp::Ballot, vote, None))?;
        let lane = k.builtin(Builtin::SubgroupLane);
        let size = k.builtin(Builtin::SubgroupSize);
        let v = k.binary(BinaryOp::Mul, lane, size)?;
        let five = k.u32(5);
        let at = k.binary(BinaryOp::Add, t, five)?;
        k.store(Place::element(out, at), v)?;
        if_eq(k, t, 140, |k| {
            for word in 0..4 {
                let bits = k.op(Op::Extract(ballot, word))?;
                let at = k.u32(word);
                k.store(Place::element(out, at), bits)?;
            }
            Ok(())
        })
    });
    let run = Run {
        subgroup: 128,
        ..Run::of(&kernel, 1, 256)
    };
    let out = run.gives(5 + 256).unwrap();
    let votes = (128..256u32)
        .filter(|t| t % 3 == 0)
        .fold(0u128, |bits, t| bits | 1 << (t - 128));
    assert_eq!(out[..4], [0, 32, 64, 96].map(|at| (votes >> at) as u32));
    assert_eq!(out[5 + 130], 2 * 128);
}
