//! Branches on several conditions at once: limits along a row, what all lanes share, and what each lane has of its own.

use super::*;

const COMPARISONS: [BinaryOp; 6] = [
    BinaryOp::Lt,
    BinaryOp::Le,
    BinaryOp::Gt,
    BinaryOp::Ge,
    BinaryOp::Eq,
    BinaryOp::Ne,
];

/// Adds to an element's count in the lanes whose place `x`, `y` in the grid has `x` on one side of `limit`, and of a number besides, `y`
/// on one side of five, and an odd element. `constant`: the limit, where it is none of the kernel's parameters.
fn kernel(compare: BinaryOp, turned: bool, s: Scalar, constant: Option<i32>) -> Verified {
    let mut k = KernelBuilder::new("conditions");
    let out = k.buffer("out", Type::U32, Access::ReadWrite);
    let limit = k.param("limit", Type::Scalar(s));
    let limit = constant.map_or(limit, |limit| {
        k.constant(s, i64::from(limit) as u64 & u64::MAX >> (64 - s.bits()))
    });
    let [x, y] = [Axis::X, Axis::Y].map(|axis| k.global_id(axis).unwrap());
    let (size, count) = (
        k.builtin(Builtin::BlockDim(Axis::X)),
        k.builtin(Builtin::GridDim(Axis::X)),
    );
    let width = k.binary(BinaryOp::Mul, size, count).unwrap();
    let row = k.binary(BinaryOp::Mul, y, width).unwrap();
    let i = k.binary(BinaryOp::Add, row, x).unwrap();
    let here = k.load(Place::element(out, i)).unwrap();
    let one = k.u32(1);
    let odd = k.binary(BinaryOp::And, here, one).unwrap();
    let own = k.binary(BinaryOp::Eq, odd, one).unwrap();
    let five = k.u32(5);
    let shared = k.binary(BinaryOp::Lt, y, five).unwrap();
    let place = k.cast(s, x).unwrap();
    let (a, b) = if turned { (limit, place) } else { (place, limit) };
    let limited = k.binary(compare, a, b).unwrap();
    let three = k.constant(s, 3);
    let second = k.binary(BinaryOp::Gt, place, three).unwrap();
    let mut all = limited;
    for condition in [shared, own, second] {
        all = k.binary(BinaryOp::And, all, condition).unwrap();
    }
    k.if_(all, |k| {
        let hundred = k.u32(100);
        let more = k.binary(BinaryOp::Add, here, hundred)?;
        k.store(Place::element(out, i), more)
    })
    .unwrap();
    // The same conditions, one of which is read again.
    let both = k.binary(BinaryOp::And, limited, shared).unwrap();
    k.if_else(
        both,
        |k| {
            let now = k.load(Place::element(out, i))?;
            let more = k.binary(BinaryOp::Add, now, five)?;
            k.store(Place::element(out, i), more)
        },
        |_| Ok(()),
    )
    .unwrap();
    verify(k.finish()).unwrap()
}

#[test]
fn conditions_of_a_branch_are_told_apart() {
    let limits = [i32::MIN, -1, 0, 1, 4, 15, 16, 17, 40, 63, 64, i32::MAX];
    for s in [Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64] {
        for compare in COMPARISONS {
            for turned in [false, true] {
                for (limit, is_constant) in limits.into_iter().flat_map(|n| [(n, false), (n, true)]) {
                    let kernel = kernel(compare, turned, s, is_constant.then_some(limit));
                    let run = |of: &Interpreter| {
                        let mut out: Vec<u32> = (0..64 * 8).map(|i| i * 7 % 5).collect();
                        let bytes = (i64::from(limit)).to_ne_bytes();
                        let args = [
                            Arg::Buffer(BufferRef::from_slice(&mut out)),
                            Arg::Value(&bytes[..s.size() as usize]),
                        ];
                        of.launch(&LaunchConfig::new([4, 2, 1], [16, 4, 1], &args))
                            .unwrap();
                        out
                    };
                    let expected = run(&Interpreter::new(&kernel).unwrap());
                    for width in Width::detect() {
                        let found = run(&compiled(&kernel, *width).unwrap());
                        assert!(
                            found == expected,
                            "{width:?}: {compare:?} of {s:?}, turned: {turned}, {limit} (a constant: {is_constant}):\n{found:?}\n{expected:?}"
                        );
                    }
                }
            }
        }
    }
}
