//! The inside of rows, which runs without comparisons: borders, boxes of cells and ends of buffers lie where they like.

use super::*;

/// A step of a stencil with borders, a box of cells that gets more, and an index that is `more` further on.
fn stencil() -> Verified {
    let mut k = KernelBuilder::new("stencil");
    let a = k.buffer("a", Type::F32, Access::Read);
    let b = k.buffer("b", Type::F32, Access::ReadWrite);
    let [w, h, from, to, row, more] =
        ["w", "h", "from", "to", "row", "more"].map(|name| k.param(name, Scalar::U64.into()));
    // With 64 bits, as the kernel language has them.
    let mut along = |axis| {
        let parts = [
            Builtin::BlockIdx(axis),
            Builtin::BlockDim(axis),
            Builtin::ThreadIdx(axis),
        ];
        let [block, dim, lane] = parts.map(|b| {
            let v = k.builtin(b);
            k.cast(Scalar::U64, v).unwrap()
        });
        let start = k.binary(BinaryOp::Mul, block, dim).unwrap();
        k.binary(BinaryOp::Add, start, lane).unwrap()
    };
    let (x, y) = (along(Axis::X), along(Axis::Y));
    let (zero, one) = (k.constant(Scalar::U64, 0), k.constant(Scalar::U64, 1));
    for (at, end) in [(x, w), (y, h)] {
        let beyond = k.binary(BinaryOp::Ge, at, end).unwrap();
        k.if_(beyond, |k| {
            k.push(Inst::Return(None));
            Ok(())
        })
        .unwrap();
    }
    let mut op = |op, a, b| k.binary(op, a, b).unwrap();
    let start = op(BinaryOp::Mul, y, w);
    let i = op(BinaryOp::Add, start, x);
    let (next_x, next_y) = (op(BinaryOp::Add, x, one), op(BinaryOp::Add, y, one));
    let mut edge = op(BinaryOp::Eq, x, zero);
    for (at, end) in [(y, zero), (next_x, w), (next_y, h)] {
        let is = op(BinaryOp::Eq, at, end);
        edge = op(BinaryOp::Or, edge, is);
    }
    let mut inside = op(BinaryOp::Ge, x, from);
    for (cmp, at, end) in [(BinaryOp::Lt, x, to), (BinaryOp::Eq, y, row)] {
        let is = op(cmp, at, end);
        inside = op(BinaryOp::And, inside, is);
    }
    let around = [
        op(BinaryOp::Sub, i, one),
        op(BinaryOp::Add, i, more),
        op(BinaryOp::Sub, i, w),
        op(BinaryOp::Add, i, w),
    ];
    k.if_(edge, |k| {
        let now = k.load(Place::element(a, i))?;
        k.store(Place::element(b, i), now)?;
        k.push(Inst::Return(None));
        Ok(())
    })
    .unwrap();
    let mut sum = k.load(Place::element(b, i)).unwrap();
    for at in around {
        let v = k.load(Place::element(a, at)).unwrap();
        sum = k.binary(BinaryOp::Add, sum, v).unwrap();
    }
    k.store(Place::element(b, i), sum).unwrap();
    k.if_(inside, |k| {
        let (v, one) = (k.load(Place::element(b, i))?, k.f32(1.0));
        let v = k.binary(BinaryOp::Add, v, one)?;
        k.store(Place::element(b, i), v)
    })
    .unwrap();
    let last = k.load(Place::element(b, i)).unwrap();
    k.store(Place::element(b, i), last).unwrap();
    verify(k.finish()).unwrap()
}

/// What a launch leaves in `b`, or what it says.
fn run(
    runner: &Interpreter,
    [w, h]: [u64; 2],
    lengths: [usize; 2],
    rest: [u64; 4],
    block: [u32; 3],
) -> String {
    let mut a: Vec<f32> = (0..lengths[0]).map(|i| (i * i % 251) as f32).collect();
    let mut b: Vec<f32> = (0..lengths[1]).map(|i| (i % 17) as f32).collect();
    let values: Vec<[u8; 8]> = [w, h].iter().chain(&rest).map(|v| v.to_ne_bytes()).collect();
    let mut args = vec![
        Arg::Buffer(BufferRef::from_slice(&mut a)),
        Arg::Buffer(BufferRef::from_slice(&mut b)),
    ];
    args.extend(values.iter().map(|v| Arg::Value(v)));
    let [x, y] = [0, 1].map(|axis| ([w, h][axis] as u32 + 3).div_ceil(block[axis]));
    let done = runner.launch(&LaunchConfig::new([x, y, 1], block, &args));
    drop(args);
    match done {
        Ok(_) => format!("{b:?}"),
        Err(e) => format!("{e:?}"),
    }
}

#[test]
fn the_inside_of_rows_is_as_the_rest() {
    let kernel = stencil();
    let reference = Interpreter::new(&kernel).unwrap();
    for width in Width::detect() {
        let code = compiled(&kernel, *width).unwrap();
        for (number, w) in [17, 64, 96, 127, 128, 129, 200, 333].into_iter().enumerate() {
            let (h, cells) = (7, 7 * w as usize);
            for block in [[64, 1, 1], [256, 1, 1], [32, 4, 1], [40, 2, 1]] {
                for lengths in [
                    [cells, cells],
                    [cells - 1, cells],
                    [cells / 2, cells],
                    [cells, cells - w as usize / 2],
                ] {
                    for at in [0, 1, w / 2, w - 2, w] {
                        let rest = [
                            at,
                            at + number as u64 % 3,
                            3,
                            [1, w / 3, 5 * w, u64::MAX][at as usize % 4],
                        ];
                        let expected = run(&reference, [w, h], lengths, rest, block);
                        let found = run(&code, [w, h], lengths, rest, block);
                        // Of several faults of a block the first is told by turns.
                        if expected.starts_with("Fault") && found.starts_with("Fault") {
                            continue;
                        }
                        assert_eq!(
                            expected, found,
                            "{width:?}, {w} cells, {block:?}, {lengths:?}, {rest:?}"
                        );
                    }
                }
            }
        }
    }
}
