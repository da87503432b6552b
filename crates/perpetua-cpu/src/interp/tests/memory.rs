//! Memory: every type through buffers, shared variables and private arrays, at all kinds of indices.

use proptest::prelude::*;

use super::*;
use crate::eval::eval_atomic;

/// `to[i] = from[perm[i]]` for elements of any type.
fn gather(ty: &Type, through: fn(&mut KernelBuilder, &Type) -> Option<Base>) -> Verified {
    kernel("gather", |k| {
        let to = k.buffer("to", ty.clone(), Access::ReadWrite);
        let from = k.buffer("from", ty.clone(), Access::Read);
        let perm = k.buffer("perm", Type::U32, Access::Read);
        let via = through(k, ty);
        let i = k.global_id(Axis::X)?;
        let at = k.load(Place::element(perm, i))?;
        let v = k.load(Place::element(from, at))?;
        let v = match via {
            Some(via @ Base::Shared(_)) => {
                let t = thread(k);
                k.store(Place::element(via, t), v)?;
                k.load(Place::element(via, t))?
            }
            Some(via) => {
                let three = k.u32(3);
                let slot = k.binary(BinaryOp::And, at, three)?;
                k.store(Place::element(via, slot), v)?;
                k.load(Place::element(via, slot))?
            }
            None => v,
        };
        k.store(Place::element(to, i), v)
    })
}

fn launch_bytes(kernel: &Verified, grid: u32, block: u32, buffers: &mut [&mut [u64]], lens: &[usize]) {
    let args: Vec<Arg<'_>> = buffers
        .iter_mut()
        .zip(lens)
        .map(|(b, len)| {
            assert!(*len <= size_of_val(&**b));
            // SAFETY: the first `len` bytes of a slice that is lent for the launch.
            Arg::Buffer(unsafe { BufferRef::from_raw(b.as_mut_ptr().cast(), *len) })
        })
        .collect();
    let config = LaunchConfig {
        races: RaceMode::Detect,
        ..LaunchConfig::new([grid, 1, 1], [block, 1, 1], &args)
    };
    Interpreter::new(kernel).unwrap().launch(&config).unwrap();
}

fn bytes(words: &mut [u64]) -> &mut [u8] {
    bytemuck::cast_slice_mut(words)
}

#[test]
fn every_type_moves_whole() {
    let record = Type::Struct(std::sync::Arc::new(StructType::repr_c(
        "Mixed",
        vec![
            ("a".into(), Scalar::U8.into()),
            ("b".into(), Scalar::F64.into()),
            ("c".into(), Type::array(Scalar::U16.into(), 3)),
            ("d".into(), Type::Vector(Scalar::F32, 3)),
        ],
        1,
    )));
    let mut types: Vec<Type> = Scalar::ALL
        .into_iter()
        .filter(|s| *s != Scalar::Bool)
        .map(Type::from)
        .collect();
    types.extend([
        record,
        Type::Vector(Scalar::U8, 3),
        Type::array(Type::Vector(Scalar::I16, 2), 3),
    ]);
    let vias: [fn(&mut KernelBuilder, &Type) -> Option<Base>; 3] = [
        |_, _| None,
        |k, ty| Some(k.shared("tile", Type::array(ty.clone(), 64))),
        |k, ty| Some(Base::Local(k.local("slots", Type::array(ty.clone(), 4)))),
    ];
    for ty in types {
        for (number, via) in vias.iter().enumerate() {
            let kernel = kernel_with_slots(&ty, *via, number == 2);
            let size = ty.size() as usize;
            let (n, lanes) = (128usize, 64);
            let mut from = vec![0u64; n * size / 8 + 1];
            bytes(&mut from)
                .iter_mut()
                .enumerate()
                .for_each(|(i, b)| *b = (i * 37 + i / 256) as u8);
            // Forwards, backwards, all over, all one.
            let mut perm = vec![0u64; n / 2];
            let order = |i: usize| match i / 32 {
                0 => i,
                1 => 63 - i % 32,
                2 => (i * 29) % n,
                _ => 99,
            };
            for i in 0..n {
                bytes(&mut perm)[4 * i..4 * i + 4].copy_from_slice(&(order(i) as u32).to_ne_bytes());
            }
            let mut to = vec![0u64; n * size / 8 + 1];
            launch_bytes(
                &kernel,
                2,
                lanes,
                &mut [&mut to, &mut from, &mut perm],
                &[n * size, n * size, 4 * n],
            );
            for i in 0..n {
                for (s, offset) in ty.leaves() {
                    let range =
                        |e: usize| e * size + offset as usize..e * size + (offset + s.size()) as usize;
                    assert_eq!(
                        bytes(&mut to)[range(i)].to_vec(),
                        bytes(&mut from)[range(order(i))].to_vec(),
                        "{ty} {number} element {i}"
                    );
                }
            }
        }
    }
}

/// As [`gather`]; private slots are zeroed first, so that the verifier knows them written.
fn kernel_with_slots(
    ty: &Type,
    via: fn(&mut KernelBuilder, &Type) -> Option<Base>,
    private: bool,
) -> Verified {
    if !private {
        return gather(ty, via);
    }
    kernel("private", |k| {
        let to = k.buffer("to", ty.clone(), Access::ReadWrite);
        let from = k.buffer("from", ty.clone(), Access::Read);
        let perm = k.buffer("perm", Type::U32, Access::Read);
        let array = Type::array(ty.clone(), 4);
        let slots = k.local("slots", array.clone());
        let zero = k.op(Op::Zero(array))?;
        k.store(Place::local(slots), zero)?;
        let i = k.global_id(Axis::X)?;
        let at = k.load(Place::element(perm, i))?;
        let v = k.load(Place::element(from, at))?;
        let three = k.u32(3);
        let slot = k.binary(BinaryOp::And, at, three)?;
        k.store(Place::local(slots).step(Step::Index(slot)), v)?;
        let v = k.load(Place::local(slots).step(Step::Index(slot)))?;
        k.store(Place::element(to, i), v)
    })
}

#[test]
fn bytes_in_memory_are_bools_by_being_zero() {
    let kernel = kernel("bools", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let flags = k.buffer("flags", Type::BOOL, Access::Read);
        let t = thread(k);
        let v = k.load(Place::element(flags, t))?;
        let v = k.cast(Scalar::U32, v)?;
        k.store(Place::element(out, t), v)
    });
    let (mut out, mut flags) = ([0u32; 4], [0u8, 1, 2, 255]);
    let args = [
        Arg::Buffer(BufferRef::from_slice(&mut out)),
        Arg::Buffer(BufferRef::from_slice(&mut flags)),
    ];
    Interpreter::new(&kernel)
        .unwrap()
        .launch(&LaunchConfig::new([1; 3], [4, 1, 1], &args))
        .unwrap();
    assert_eq!(out, [0, 1, 1, 1]);
}

/// Parts of one allocation as several buffers: one writes what the other reads in the next block.
#[test]
fn parts_of_one_allocation_may_overlap() {
    let kernel = kernel("overlap", |k| {
        let to = k.buffer("to", Type::U32, Access::ReadWrite);
        let from = k.buffer("from", Type::U32, Access::Read);
        let (b, one) = (block(k), k.u32(1));
        let v = k.load(Place::element(from, b))?;
        let v = k.binary(BinaryOp::Add, v, one)?;
        k.store(Place::element(to, b), v)
    });
    let mut words = [10u32, 0, 0, 0, 0];
    let whole = BufferRef::from_slice(&mut words);
    // SAFETY: words 1 to 4 and words 0 to 3 of `words`.
    let (tail, head) = unsafe {
        (
            BufferRef::from_raw(whole.ptr.add(4), 16),
            BufferRef::from_raw(whole.ptr, 16),
        )
    };
    let args = [Arg::Buffer(tail), Arg::Buffer(head)];
    Interpreter::new(&kernel)
        .unwrap()
        .launch(&LaunchConfig::new([4, 1, 1], [1; 3], &args))
        .unwrap();
    assert_eq!(words, [10, 11, 12, 13, 14]);
}

#[test]
fn constant_tables_and_lengths() {
    let kernel = kernel("tables", |k| {
        k.kernel_mut().constants.extend([
            ConstTable {
                name: "small".into(),
                element: Scalar::U8,
                data: vec![3, 1, 2],
            },
            ConstTable {
                name: "wide".into(),
                element: Scalar::F64,
                data: vec![1.5f64.to_bits(), (-2.0f64).to_bits(), 7.0f64.to_bits(), 0],
            },
        ]);
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let tile = k.dynamic_shared("tile", Type::Vector(Scalar::F32, 4));
        let t = thread(k);
        let small = k.load(Place::element(Base::Constant(0), t))?;
        let wide = k.load(Place::element(Base::Constant(1), small))?;
        let v = k.cast(Scalar::I32, wide)?;
        let v = k.cast(Scalar::U32, v)?;
        k.store(Place::element(out, t), v)?;
        let (three, four) = (k.u32(3), k.u32(4));
        let n = k.op(Op::Len(out, Scalar::U64))?;
        let n = k.cast(Scalar::U32, n)?;
        k.store(Place::element(out, three), n)?;
        let n = k.op(Op::Len(tile, Scalar::U32))?;
        k.store(Place::element(out, four), n)
    });
    let run = Run {
        dynamic: 95,
        ..Run::of(&kernel, 1, 3)
    };
    assert_eq!(run.gives(9).unwrap(), [0, -2i32 as u32, 7, 9, 5, 0, 0, 0, 0]);
}

/// Each lane in turn, lowest first, for every operation and type, in buffers and shared memory.
#[test]
fn atomics_go_lane_by_lane() {
    for op in AtomicOp::ALL {
        for s in [
            Scalar::I32,
            Scalar::U32,
            Scalar::I64,
            Scalar::U64,
            Scalar::F32,
            Scalar::F64,
        ] {
            if s.is_float() && matches!(op, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor) {
                continue;
            }
            for in_group in [false, true] {
                let kernel = kernel("atomics", |k| {
                    let data = k.buffer("data", s.into(), Access::ReadWrite);
                    let tile = k.shared("tile", s.into());
                    let t = thread(k);
                    let at = if in_group {
                        Place {
                            base: tile,
                            path: Vec::new(),
                        }
                    } else {
                        let zero = k.u32(0);
                        Place::element(data, zero)
                    };
                    let three = k.u32(3);
                    let v = k.binary(BinaryOp::Mul, t, three)?;
                    let v = k.cast(s, v)?;
                    let old = k.op(Op::Atomic(
                        op,
                        at.clone(),
                        v,
                        sync(MemOrder::AcqRel, Scope::Block),
                    ))?;
                    let one = k.u32(1);
                    let next = k.binary(BinaryOp::Add, t, one)?;
                    k.store(Place::element(data, next), old)?;
                    k.effect(DeviceOp::Barrier.into())?;
                    if_eq(k, t, 0, |k| {
                        let last = k.op(Op::Load(at, Some(Sync::RELAXED)))?;
                        let six = k.u32(6);
                        k.store(Place::element(data, six), last)
                    })
                });
                let size = s.size() as usize;
                let mut words = vec![0u64; 7];
                launch_bytes(&kernel, 1, 5, &mut [&mut words], &[7 * size]);
                let found: Vec<u64> = match size {
                    4 => bytemuck::cast_slice::<u64, u32>(&words)[..7]
                        .iter()
                        .map(|w| u64::from(*w))
                        .collect(),
                    _ => words,
                };
                let mut value = 0;
                for t in 0..5u64 {
                    assert_eq!(found[t as usize + 1], value, "{} {s} lane {t}", op.name());
                    let operand = crate::eval::eval_cast(Scalar::U64, s, 3 * t);
                    value = eval_atomic(op, s, value, operand);
                }
                assert_eq!(found[6], value, "{} {s}", op.name());
            }
        }
    }
}

/// Exactly one lane of each block wins, the lowest; the others see its word.
#[test]
fn compare_and_exchange_is_won_once() {
    let kernel = kernel("claim", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let (t, b) = (thread(k), block(k));
        let (hundred, zero) = (k.u32(100), k.u32(0));
        let mine = k.binary(BinaryOp::Add, t, hundred)?;
        let old = k.op(Op::CompareExchange {
            place: Place::element(out, b),
            expected: zero,
            new: mine,
            sync: sync(MemOrder::AcqRel, Scope::Device),
        })?;
        let i = k.global_id(Axis::X)?;
        let two = k.u32(2);
        let at = k.binary(BinaryOp::Add, i, two)?;
        k.store(Place::element(out, at), old)
    });
    let out = Run::of(&kernel, 2, 3).watched().gives(8).unwrap();
    assert_eq!(out, [100, 100, 0, 100, 100, 0, 100, 100]);
}

proptest! {
    /// Loads and stores at arbitrary indices of any type, by some of the lanes, are those of single lanes.
    #[test]
    fn arbitrary_indices_reach_their_elements(
        kind in proptest::sample::select(vec![Scalar::U8, Scalar::I16, Scalar::U32, Scalar::I64]),
        pieces in proptest::collection::vec((0u32..100, 1u32..20, 0u32..3), 1..40),
        active in any::<u64>(),
    ) {
        // Pieces of ascending, equal and descending indices, 100 lanes in all.
        let mut index = pieces.into_iter().flat_map(|(start, n, way)| {
            (0..n).map(move |i| match way { 0 => start + i, 1 => start, _ => start.saturating_sub(i) })
        }).map(|i| i % 100).cycle().take(100).collect::<Vec<u32>>();
        index.truncate(100);
        let kernel = kernel("index", |k| {
            let out = k.buffer("out", Type::U32, Access::ReadWrite);
            let data = k.buffer("data", Type::U32, Access::Read);
            let at = k.buffer("at", Type::U32, Access::Read);
            let on = k.buffer("on", Type::U32, Access::Read);
            let hit = k.buffer("hit", Type::U32, Access::ReadWrite);
            let t = thread(k);
            let on = k.load(Place::element(on, t))?;
            let zero = k.u32(0);
            let on = k.binary(BinaryOp::Ne, on, zero)?;
            k.if_(on, |k| {
                let i = k.load(Place::element(at, t))?;
                let i = k.cast(kind, i)?;
                let v = k.load(Place::element(data, i))?;
                k.store(Place::element(out, t), v)?;
                k.store(Place::element(hit, i), t)
            })
        });
        let data: Vec<u32> = (0..100).map(|i| i * 1000 + 1).collect();
        let on: Vec<u32> = (0..100).map(|t| (active >> (t % 61) & 1) as u32).collect();
        let mut buffers = [vec![0; 100], data.clone(), index.clone(), on.clone(), vec![777; 100]];
        Run::of(&kernel, 1, 100).on(&mut buffers).unwrap();
        let (mut out, mut hit) = (vec![0; 100], vec![777; 100]);
        for t in 0..100usize {
            if on[t] != 0 {
                out[t] = data[index[t] as usize];
                hit[index[t] as usize] = t as u32;
            }
        }
        prop_assert_eq!(&buffers[0], &out);
        // Of several lanes that store to one place the last one wins.
        prop_assert_eq!(&buffers[4], &hit);
    }
}
