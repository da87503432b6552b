//! Which checks remain, and that what the pass writes is well-formed IR with its sites in order.

use super::*;
use crate::ir::*;
use crate::ops::BinaryOp::{Add, And, Div, Ge, Lt, Min, Mul, Rem, Sub};
use crate::verify::verify;

type R = Result<(), TypeError>;

/// Types every statement, looks at every depth, and compares the sites with the statements.
fn check_form(explicit: &Explicit) {
    fn block(b: &Block, d: Declarations<'_>, depth: u32, defined: &mut [bool]) {
        let mut here = Vec::new();
        for stmt in &b.0 {
            let mut uses = Vec::new();
            match &stmt.inst {
                Inst::Let(v, op) => {
                    op.operands(&mut |v| uses.push(v));
                    let ty = d.op(op).expect("well typed");
                    if let Some(ty) = ty {
                        assert_eq!(&ty, d.value(*v).unwrap());
                    }
                    uses.iter()
                        .for_each(|u| assert!(defined[u.0 as usize], "{u:?} is visible"));
                    assert!(!defined[v.0 as usize], "{v:?} is defined once");
                    defined[v.0 as usize] = true;
                    here.push(*v);
                }
                Inst::Do(e) => d.effect(e).expect("well typed"),
                Inst::If(c, ..) => assert_eq!(d.value(*c).unwrap(), &Type::BOOL),
                Inst::Break(n) | Inst::Continue(n) => assert!(*n < depth),
                _ => {}
            }
            let inside = depth + u32::from(matches!(stmt.inst, Inst::Loop(_) | Inst::Labeled(_)));
            for inner in stmt.inst.blocks() {
                block(inner, d, inside, defined);
            }
        }
        here.iter().for_each(|v| defined[v.0 as usize] = false);
    }
    let kernel = explicit.kernel();
    // Barriers of the explicit kernel stand in uniform flow, and variables are written before they are read.
    if let Err(errors) = verify(kernel.clone()) {
        panic!("{errors}\n{kernel}");
    }
    let params = kernel.functions.iter().map(|f| f.params.len()).chain([0]);
    let mut found = Vec::new();
    for (body, params) in bodies(kernel).zip(params) {
        let mut defined = vec![false; body.values.len()];
        defined[..params].fill(true);
        block(&body.block, Declarations { kernel, body }, 0, &mut defined);
        body.block.walk(&mut |stmt| {
            if let Inst::Do(Effect::Fault(kind, _, operands)) = &stmt.inst {
                let types: Vec<Scalar> = operands.iter().filter_map(|v| scalar_of(body, *v)).collect();
                found.push((*kind, stmt.line, types));
            }
        });
    }
    let sites: Vec<_> = explicit
        .faults()
        .iter()
        .map(|s| (s.kind, s.line, s.operands.clone()))
        .collect();
    assert_eq!(sites, found);
}

fn built(f: impl FnOnce(&mut KernelBuilder) -> R) -> Explicit {
    let mut k = KernelBuilder::new("k");
    f(&mut k).expect("builds");
    let explicit = make_explicit(&verify(k.finish()).expect("verifies"));
    check_form(&explicit);
    explicit
}

/// The subjects of the checks that remain.
fn subjects(f: impl FnOnce(&mut KernelBuilder) -> R) -> Vec<String> {
    built(f).faults().iter().map(|s| s.subject.clone()).collect()
}

fn check(what: &str, expected: &[&str], f: impl FnOnce(&mut KernelBuilder) -> R) {
    assert_eq!(subjects(f), expected, "{what}");
}

fn buffers(k: &mut KernelBuilder) -> (Base, Base) {
    let x = k.buffer("x", Type::F32, Access::Read);
    let y = k.buffer("y", Type::F32, Access::ReadWrite);
    (x, y)
}

/// `global_id().x as u64`.
fn index(k: &mut KernelBuilder) -> Result<Value, TypeError> {
    let i = k.global_id(Axis::X)?;
    k.cast(Scalar::U64, i)
}

fn copy(k: &mut KernelBuilder, from: Base, to: Base, i: Value) -> R {
    let v = k.load(Place::element(from, i))?;
    k.store(Place::element(to, i), v)
}

#[test]
fn comparisons_with_the_length_prove_accesses() {
    check("saxpy keeps one check", &["x"], |k| {
        let (x, y) = buffers(k);
        let a = k.param("a", Type::F32);
        let i = index(k)?;
        let n = k.op(Op::Len(y, Scalar::U64))?;
        let inside = k.binary(Lt, i, n)?;
        k.if_(inside, |k| {
            let u = k.load(Place::element(x, i))?;
            let v = k.load(Place::element(y, i))?;
            let u = k.binary(Mul, a, u)?;
            let v = k.binary(Add, u, v)?;
            k.store(Place::element(y, i), v)
        })
    });
    check("early return", &["x"], |k| {
        let (x, y) = buffers(k);
        let i = index(k)?;
        let n = k.op(Op::Len(y, Scalar::U64))?;
        let outside = k.binary(Ge, i, n)?;
        k.if_(outside, |k| {
            k.push(Inst::Return(None));
            Ok(())
        })?;
        copy(k, x, y, i)
    });
    check("u32 index, 32-bit length", &["x"], |k| {
        let (x, y) = buffers(k);
        let i = k.global_id(Axis::X)?;
        let n = k.op(Op::Len(y, Scalar::U64))?;
        let n = k.cast(Scalar::U32, n)?;
        let inside = k.binary(Lt, i, n)?;
        k.if_(inside, |k| {
            let i = k.cast(Scalar::U64, i)?;
            copy(k, x, y, i)
        })
    });
    check("a signed index can be negative", &["x", "y"], |k| {
        let (x, y) = buffers(k);
        let i = k.param("i", Type::I32);
        let n = k.op(Op::Len(y, Scalar::U32))?;
        let n = k.cast(Scalar::I32, n)?;
        let inside = k.binary(Lt, i, n)?;
        k.if_(inside, |k| copy(k, x, y, i))
    });
    check("the minimum of two lengths, through a variable", &[], |k| {
        let (x, y) = buffers(k);
        let i = k.local("i", Type::U64);
        let start = index(k)?;
        k.store(Place::local(i), start)?;
        let n = k.op(Op::Len(x, Scalar::U64))?;
        let m = k.op(Op::Len(y, Scalar::U64))?;
        let n = k.binary(Min, n, m)?;
        let at = k.load(Place::local(i))?;
        let inside = k.binary(Lt, at, n)?;
        k.if_(inside, |k| {
            let at = k.load(Place::local(i))?;
            copy(k, x, y, at)
        })
    });
    check("another branch proves nothing", &["x", "y"], |k| {
        let (x, y) = buffers(k);
        let i = index(k)?;
        let n = k.op(Op::Len(y, Scalar::U64))?;
        let inside = k.binary(Lt, i, n)?;
        k.if_(inside, |_| Ok(()))?;
        copy(k, x, y, i)
    });
}

#[test]
fn loops_and_short_circuits_are_seen_through() {
    let counted = |k: &mut KernelBuilder, wrong: bool| -> R {
        let (x, y) = buffers(k);
        let n = k.op(Op::Len(y, Scalar::U64))?;
        let i = k.local("i", Type::U64);
        let zero = k.constant(Scalar::U64, 0);
        k.store(Place::local(i), zero)?;
        k.loop_(|k| {
            let at = k.load(Place::local(i))?;
            let inside = k.binary(Lt, at, n)?;
            k.if_else(
                inside,
                |_| Ok(()),
                |k| {
                    k.break_(0);
                    Ok(())
                },
            )?;
            let one = k.constant(Scalar::U64, 1);
            let next = k.binary(Add, at, one)?;
            if wrong {
                k.store(Place::local(i), next)?;
            }
            let again = k.load(Place::local(i))?;
            copy(k, x, y, again)?;
            k.store(Place::local(i), next)
        })
    };
    check("a counted loop", &["x"], |k| counted(k, false));
    check("a counted loop that counts first", &["x", "y"], |k| {
        counted(k, true)
    });
    check("i < x.len() && i < y.len()", &[], |k| {
        let (x, y) = buffers(k);
        let i = index(k)?;
        let n = k.op(Op::Len(x, Scalar::U64))?;
        let both = k.local("both", Type::BOOL);
        let first = k.binary(Lt, i, n)?;
        k.if_else(
            first,
            |k| {
                let m = k.op(Op::Len(y, Scalar::U64))?;
                let second = k.binary(Lt, i, m)?;
                k.store(Place::local(both), second)
            },
            |k| {
                let no = k.bool(false);
                k.store(Place::local(both), no)
            },
        )?;
        let both = k.load(Place::local(both))?;
        k.if_(both, |k| copy(k, x, y, i))
    });
    check(
        "the first iteration's comparison is no later one's",
        &["x", "y"],
        |k| {
            let (x, y) = buffers(k);
            let i = k.local("i", Type::U64);
            let start = index(k)?;
            k.store(Place::local(i), start)?;
            let n = k.op(Op::Len(y, Scalar::U64))?;
            let inside = k.binary(Lt, start, n)?;
            k.if_(inside, |k| {
                k.loop_(|k| {
                    let at = k.load(Place::local(i))?;
                    copy(k, x, y, at)?;
                    let one = k.constant(Scalar::U64, 1);
                    let next = k.binary(Add, at, one)?;
                    k.store(Place::local(i), next)
                })
            })
        },
    );
}

#[test]
fn earlier_checks_and_bounded_indices_prove_accesses() {
    check("the same access twice", &["x"], |k| {
        let (x, _) = buffers(k);
        let i = index(k)?;
        k.load(Place::element(x, i))?;
        k.load(Place::element(x, i)).map(|_| ())
    });
    check("a check in a branch proves nothing after it", &["x", "x"], |k| {
        let (x, _) = buffers(k);
        let c = k.param("c", Type::BOOL);
        let i = index(k)?;
        k.if_(c, |k| k.load(Place::element(x, i)).map(|_| ()))?;
        k.load(Place::element(x, i)).map(|_| ())
    });
    let array = |index: fn(&mut KernelBuilder) -> Result<Value, TypeError>| {
        move |k: &mut KernelBuilder| -> R {
            let t = k.shared("t", Type::array(Type::F32, 256));
            let i = index(k)?;
            k.load(Place::element(t, i)).map(|_| ())
        }
    };
    check("a constant", &[], array(|k| Ok(k.u32(255))));
    check("a constant beyond", &["t"], array(|k| Ok(k.u32(256))));
    check("a negative constant", &["t"], array(|k| Ok(k.i32(-1))));
    check(
        "a byte",
        &[],
        array(|k| {
            let v = k.param("b", Type::U32);
            k.cast(Scalar::U8, v)
        }),
    );
    check(
        "a masked signed index",
        &[],
        array(|k| {
            let v = k.param("b", Type::I32);
            let mask = k.i32(255);
            k.binary(And, v, mask)
        }),
    );
    check(
        "a remainder",
        &[],
        array(|k| {
            let v = k.param("b", Type::U32);
            let n = k.u32(256);
            k.binary(Rem, v, n)
        }),
    );
    check(
        "a signed remainder",
        &["t"],
        array(|k| {
            let v = k.param("b", Type::I32);
            let n = k.i32(256);
            k.binary(Rem, v, n)
        }),
    );
    check(
        "a lane index in an unknown group",
        &["t"],
        array(|k| Ok(k.builtin(Builtin::ThreadIdx(Axis::X)))),
    );
    check(
        "lane indices in a fixed group",
        &[],
        array(|k| {
            k.kernel_mut().block_size = Some([16, 16, 1]);
            let x = k.builtin(Builtin::ThreadIdx(Axis::X));
            let y = k.builtin(Builtin::ThreadIdx(Axis::Y));
            let n = k.u32(16);
            let y = k.binary(Mul, y, n)?;
            k.binary(Add, y, x)
        }),
    );
    check("the left neighbour of an index that is not zero", &[], |k| {
        let (x, _) = buffers(k);
        let i = index(k)?;
        let n = k.op(Op::Len(x, Scalar::U64))?;
        let inside = k.binary(Lt, i, n)?;
        let zero = k.constant(Scalar::U64, 0);
        let positive = k.binary(Lt, zero, i)?;
        let both = k.binary(And, inside, positive)?;
        k.if_(both, |k| {
            let one = k.constant(Scalar::U64, 1);
            let left = k.binary(Sub, i, one)?;
            k.load(Place::element(x, left)).map(|_| ())
        })
    });
}

#[test]
fn divisions_by_harmless_divisors_are_not_checked() {
    let by = |s: Scalar, op, divisor: Option<u64>| {
        move |k: &mut KernelBuilder| -> R {
            let a = k.param("a", s.into());
            let b = match divisor {
                Some(bits) => k.constant(s, bits),
                None => k.param("b", s.into()),
            };
            k.binary(op, a, b).map(|_| ())
        }
    };
    check("unsigned", &["division"], by(Scalar::U32, Div, None));
    check("signed", &["remainder", "remainder"], by(Scalar::I64, Rem, None));
    check("by seven", &[], by(Scalar::I32, Div, Some(7)));
    check("by minus one", &["division"], by(Scalar::I8, Div, Some(0xff)));
    check("by zero", &["remainder"], by(Scalar::U16, Rem, Some(0)));
    check("float", &[], by(Scalar::F32, Rem, None));
    check("tested before", &[], |k| {
        let a = k.param("a", Type::U32);
        let b = k.param("b", Type::U32);
        let zero = k.u32(0);
        let positive = k.binary(Lt, zero, b)?;
        k.if_(positive, |k| k.binary(Div, a, b).map(|_| ()))
    });
}

/// Counts statements of a kernel's body.
fn count_of(explicit: &Explicit, what: impl Fn(&Inst) -> bool) -> usize {
    let mut n = 0;
    explicit
        .kernel()
        .body
        .block
        .walk(&mut |s| n += usize::from(what(&s.inst)));
    n
}

fn is_return(inst: &Inst) -> bool {
    matches!(inst, Inst::Return(_))
}

fn is_dead(inst: &Inst) -> bool {
    inst.device() == Some(DeviceOp::IsDead)
}

#[test]
fn faults_in_functions_reach_the_caller() {
    let e = built(|k| {
        let y = k.buffer("y", Type::U32, Access::ReadWrite);
        let params = vec![("a".into(), Type::U32), ("b".into(), Type::U32)];
        let f = k.function("quotient", params, Some(Type::U32), |k| {
            let q = k.binary(Div, Value(0), Value(1))?;
            k.push(Inst::Return(Some(q)));
            Ok::<(), TypeError>(())
        })?;
        let i = k.global_id(Axis::X)?;
        let v = k.call(f, vec![i, i])?.expect("a value");
        k.store(Place::element(y, i), v)
    });
    assert_eq!(
        e.faults().iter().map(|s| &*s.subject).collect::<Vec<_>>(),
        ["division", "y"]
    );
    assert_eq!(count_of(&e, is_dead), 1);
    assert_eq!(first_sites(e.kernel()), [(0, 0), (1, 0)]);
}

#[test]
fn dead_lanes_come_to_every_barrier() {
    // Divergent load before a barrier, divergent statement after it, a store after the last barrier.
    let e = built(|k| {
        let (x, y) = buffers(k);
        let t = k.shared("t", Type::array(Type::F32, 64));
        let i = index(k)?;
        let lane = k.builtin(Builtin::ThreadIdx(Axis::X));
        let v = k.load(Place::element(x, i))?;
        k.store(Place::element(t, lane), v)?;
        k.effect(DeviceOp::Barrier.into())?;
        let n = k.u32(32);
        let low = k.binary(Lt, lane, n)?;
        k.if_(low, |k| {
            let far = k.binary(Add, lane, n)?;
            let v = k.load(Place::element(t, far))?;
            k.store(Place::element(t, lane), v)
        })?;
        k.effect(DeviceOp::Barrier.into())?;
        let v = k.load(Place::element(t, lane))?;
        k.store(Place::element(y, i), v)
    });
    let found: Vec<_> = e.faults().iter().map(|s| &*s.subject).collect();
    // The lane's bound in `t` is tested once, in the branch the sum is bounded by 64, and `y` is tested at the end.
    assert_eq!(found, ["x", "t", "y"]);
    assert_eq!(count_of(&e, is_barrier), 2);
    // One return of dead lanes after the last barrier, one of lanes that fault there.
    assert_eq!(count_of(&e, is_return), 2);
}

#[test]
fn faults_that_all_lanes_meet_end_the_group() {
    let e = built(|k| {
        let (x, _) = buffers(k);
        let n = k.param("n", Type::U32);
        let count = k.load(Place::element(x, n))?;
        let zero = k.f32(0.0);
        let go = k.binary(Lt, zero, count)?;
        k.if_(go, |k| k.effect(DeviceOp::Barrier.into()))
    });
    assert_eq!(e.faults().len(), 1);
    assert_eq!((count_of(&e, is_return), count_of(&e, is_dead)), (1, 0));
}

#[test]
fn divergent_loops_are_left_and_uniform_variables_kept_in_step() {
    let e = built(|k| {
        let (x, y) = buffers(k);
        let lane = k.builtin(Builtin::ThreadIdx(Axis::X));
        // A divergent loop without barrier: left at once.
        let j = k.local("j", Type::U32);
        k.store(Place::local(j), lane)?;
        k.loop_(|k| {
            let at = k.load(Place::local(j))?;
            let v = k.load(Place::element(x, at))?;
            let step = k.cast(Scalar::U32, v)?;
            let at = k.binary(Add, at, step)?;
            k.store(Place::local(j), at)?;
            let n = k.u32(100);
            let done = k.binary(Ge, at, n)?;
            k.if_(done, |k| {
                k.break_(0);
                Ok(())
            })
        })?;
        // A uniform loop without barrier whose counter a barrier depends on: walked through.
        let i = k.local("i", Type::U32);
        let zero = k.u32(0);
        k.store(Place::local(i), zero)?;
        k.loop_(|k| {
            let at = k.load(Place::local(i))?;
            let n = k.u32(4);
            let done = k.binary(Ge, at, n)?;
            k.if_(done, |k| {
                k.break_(0);
                Ok(())
            })?;
            let to = k.binary(Add, at, lane)?;
            let one = k.f32(1.0);
            k.store(Place::element(y, to), one)?;
            let one = k.u32(1);
            let at = k.binary(Add, at, one)?;
            k.store(Place::local(i), at)
        })?;
        let at = k.load(Place::local(i))?;
        let n = k.u32(4);
        let go = k.binary(Ge, at, n)?;
        k.if_(go, |k| k.effect(DeviceOp::Barrier.into()))
    });
    assert_eq!(e.faults().len(), 2);
    let mut labels = Vec::new();
    e.kernel().body.block.walk(&mut |s| {
        if let Inst::Labeled(b) = &s.inst {
            labels.push(b.0.len());
        }
    });
    assert_eq!(labels, [1], "only the divergent loop is left");
    // Dead lanes skip the store in the second loop.
    assert_eq!(count_of(&e, is_dead), 1);
}

#[test]
fn only_loops_whose_faults_are_caught_look_at_the_clock() {
    let text = "kernel k(out: buffer<u32, read_write>) checks(caught) {
  %0: u64 = clock
  %1: u32 = const 0
  loop {
    store out[%1], %1
    break 0
  }
  block {
    loop {
      loop {
        store out[%1], %1
      }
    }
  }
  %2: u32 = catch_fault %0
  loop {
    break 0
  }
}
";
    let kernel: Kernel = text.parse().expect("parses");
    let explicit = make_explicit(&verify(kernel).expect("verifies"));
    check_form(&explicit);
    let kinds: Vec<_> = explicit.faults().iter().map(|s| s.kind).collect();
    // Each of the two loops, and the store in the inner one.
    let limit = FaultKind::TimeLimit;
    assert_eq!(kinds, [limit, limit, FaultKind::IndexOutOfBounds]);
    assert_eq!(
        count_of(&explicit, |inst| inst.device() == Some(DeviceOp::Clock)),
        3
    );
}
