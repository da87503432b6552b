//! What the text form cannot say: kernels that only code can build.

use std::sync::Arc;

use super::*;
use crate::ir::*;
use crate::ops::BinaryOp;

fn check(kernel: Kernel, expect: &str) {
    let answer = verify(kernel).map_or_else(|e| e.to_string(), |_| "ok".into());
    assert_eq!(answer, expect);
}

/// A kernel with a local variable of this type.
fn with_local(ty: Type) -> Kernel {
    let mut k = KernelBuilder::new("k");
    k.local("v", ty);
    k.finish()
}

fn structure(name: &str, fields: &[(&str, Type)], change: impl FnOnce(&mut StructType)) -> Type {
    let fields = fields
        .iter()
        .map(|(n, ty)| ((*n).to_owned(), ty.clone()))
        .collect();
    let mut s = StructType::repr_c(name, fields, 1);
    change(&mut s);
    Type::Struct(Arc::new(s))
}

#[test]
fn types_are_sane() {
    let pair = [("a", Type::from(Scalar::U8)), ("b", Type::U32)];
    let cases = [
        (structure("S", &pair, |_| ()), ""),
        (
            structure("S", &pair, |s| s.align = 16),
            "struct `S` has 8 bytes, repr(C) makes it 16",
        ),
        (
            structure("S", &pair, |s| s.align = 2),
            "struct `S` is aligned to 2, a power of two from 4 to 256 is expected",
        ),
        (
            structure("S", &pair, |s| s.size = 5),
            "struct `S` has 5 bytes, repr(C) makes it 8",
        ),
        (
            structure("S", &pair, |s| s.fields[1].offset = 1),
            "field `b` of struct `S` is at byte 1, repr(C) puts it at 4",
        ),
        (
            structure("a b", &pair, |_| ()),
            "the struct's name `a b` is not an identifier",
        ),
        (
            structure("f32x2", &pair, |_| ()),
            "a struct cannot be called `f32x2`, which is a type already",
        ),
        (
            structure("S", &[("é", Type::U32)], |_| ()),
            "the name `é` of field 0 of struct `S` is neither an identifier nor its number",
        ),
        (
            Type::Vector(Scalar::F32, 5),
            "a vector has 2, 3 or 4 elements, not 5",
        ),
        (Type::Vector(Scalar::Bool, 2), "vectors of bool do not exist"),
        (
            (0..40).fold(Type::U32, |ty, _| Type::array(ty, 1)),
            "it is nested more than 15 deep",
        ),
        (
            (0..30).fold(Type::U32, |ty, i| {
                structure(&format!("S{i}"), &[("x", ty.clone()), ("y", ty)], |_| ())
            }),
            "it is nested more than 15 deep",
        ),
        (
            (0..4).fold(Type::U32, |ty, _| Type::array(ty, u32::MAX)),
            "an array has 17179869180 bytes, at most 65536 are allowed",
        ),
    ];
    for (ty, problem) in cases {
        let expect = match problem {
            "" => "ok".into(),
            problem => format!("kernel `k`: the type of local variable `v`: {problem}"),
        };
        check(with_local(ty), &expect);
    }
}

#[test]
fn structs_of_one_name_are_one() {
    let mut kernel = with_local(structure("S", &[("a", Type::U32)], |_| ()));
    kernel.body.locals.push(Local {
        name: "w".into(),
        ty: structure("S", &[("a", Type::I32)], |_| ()),
    });
    check(
        kernel,
        "kernel `k`: two different structs are called `S`: rename one",
    );
}

#[test]
fn names_are_identifiers() {
    let mut k = KernelBuilder::new("a-b");
    k.buffer("x", Type::U32, Access::Read);
    k.param("x", Type::U32);
    k.shared("", Type::U32);
    k.local("größe", Type::U32);
    check(
        k.finish(),
        "kernel `a-b`: the name `a-b` of the kernel is not an identifier: use ASCII letters, digits and `_`, no digit first\n\
         kernel `a-b`: parameter `x` has the name of another one: rename it\n\
         kernel `a-b`: the name `` of a shared variable is not an identifier: use ASCII letters, digits and `_`, no digit first\n\
         kernel `a-b`: the name `größe` of a local variable is not an identifier: use ASCII letters, digits and `_`, no digit first",
    );
}

#[test]
fn functions_keep_to_values() -> Result<(), TypeError> {
    let mut k = KernelBuilder::new("k");
    let x = k.buffer("x", Type::F32, Access::ReadWrite);
    let _ = k.param("n", Type::U32);
    k.set_line(3);
    k.function("f", vec![("i".into(), Type::U32)], None, |k| {
        let v = k.load(Place::element(x, Value(0)))?;
        let n = k.op(Op::Len(x, Scalar::U32))?;
        let p = k.op(Op::Param(1))?;
        k.binary(BinaryOp::Add, n, p)?;
        k.store(Place::element(x, Value(0)), v)
    })?;
    let reach = "a device function takes and returns values, it cannot reach";
    let remedy = "pass the value, or inline the function";
    check(
        k.finish(),
        &format!(
            "kernel `k`, function `f`, line 3, `%1: f32 = load x[%0]`: {reach} the buffer `x`: {remedy}\n\
             kernel `k`, function `f`, line 3, `%2: u32 = len x`: {reach} the buffer `x`: {remedy}\n\
             kernel `k`, function `f`, line 3, `%3: u32 = param n`: {reach} the kernel's parameter `n`: {remedy}\n\
             kernel `k`, function `f`, line 3, `store x[%0], %1`: {reach} the buffer `x`: {remedy}"
        ),
    );
    Ok(())
}

#[test]
fn functions_call_only_earlier_ones() -> Result<(), TypeError> {
    let mut k = KernelBuilder::new("k");
    k.function("f", Vec::new(), None, |k| {
        k.push(Inst::Let(Value(0), Op::Call(0, Vec::new())));
        k.push(Inst::Let(Value(1), Op::Call(7, Vec::new())));
        Ok::<(), TypeError>(())
    })?;
    let mut kernel = k.finish();
    kernel.functions[0].body.values = vec![Type::tuple(Vec::new()); 2];
    check(
        kernel,
        "kernel `k`, function `f`, statement 0, `%0: () = call f()`: function `f` stands at or after this one: a \
         function calls only those before it, recursion is not possible\n\
         kernel `k`, function `f`, statement 1, `%1: () = call function#7()`: function 7 does not exist (there are 1)",
    );
    Ok(())
}

#[test]
fn nonsense_is_refused_without_panic() {
    let mut kernel = Kernel::new("k");
    let nonsense = Place {
        base: Base::Local(LocalId(9)),
        path: vec![Step::Field(3), Step::Index(Value(u32::MAX))],
    };
    kernel.body.block = (0..300).fold(Block::default(), |inner, _| {
        Block(vec![Stmt {
            line: 0,
            inst: Inst::Loop(inner),
        }])
    });
    check(
        kernel.clone(),
        "kernel `k`: blocks are nested more than 200 deep: move the inner ones to a function",
    );
    kernel.body.block = Block(vec![
        Stmt {
            line: 1,
            inst: Inst::Let(Value(8), Op::Load(nonsense.clone(), None)),
        },
        Stmt {
            line: 2,
            inst: Inst::Do(Effect::Store(nonsense, Value(7), None)),
        },
        Stmt {
            line: 3,
            inst: Inst::Let(
                Value(1),
                Op::Load(
                    Place {
                        base: Base::Shared(4),
                        path: Vec::new(),
                    },
                    None,
                ),
            ),
        },
        Stmt {
            line: 4,
            inst: Inst::Let(Value(1), Op::Len(Base::Buffer(4), Scalar::U32)),
        },
    ]);
    check(
        kernel,
        "kernel `k`, line 1, `%8: ? = load $local#9.3[%4294967295]`: value %8 does not exist\n\
         kernel `k`, line 2, `store $local#9.3[%4294967295], %7`: local 9 does not exist (there are 0)\n\
         kernel `k`, line 3, `%1: ? = load shared#4`: value %1 does not exist\n\
         kernel `k`, line 4, `%1: ? = len<u32> param#4`: value %1 does not exist",
    );
}

#[test]
fn barriers_tell_which_buffers_they_rely_on() -> Result<(), TypeError> {
    type Build = fn(&mut KernelBuilder, Value, Value, u32) -> Result<(), TypeError>;
    // `on[0] == 0` and `other[0] == 0`, and a function that meets the others where its argument holds.
    let check = |build: Build, expect: &[u32]| -> Result<(), TypeError> {
        let mut k = KernelBuilder::new("k");
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let (other, on) = (
            k.buffer("other", Type::U32, Access::Read),
            k.buffer("on", Type::U32, Access::Read),
        );
        let meet = k.function("meet", vec![("open".into(), Type::BOOL)], None, |k| {
            k.if_(Value(0), |k| k.effect(DeviceOp::Barrier.into()))
        })?;
        let zero = k.u32(0);
        let mut is_zero = |base| {
            let v = k.load(Place::element(base, zero))?;
            k.binary(BinaryOp::Eq, v, zero)
        };
        let (on, other) = (is_zero(on)?, is_zero(other)?);
        build(&mut k, on, other, meet)?;
        let held = k.cast(Scalar::U32, other)?;
        k.store(Place::element(out, zero), held)?;
        let verified = verify(k.finish()).map_err(|e| panic!("{e}"));
        assert_eq!(
            verified.map(|v| v.constant_buffers().to_vec()),
            Ok::<_, ()>(expect.to_vec())
        );
        Ok(())
    };
    check(|k, _, _, _| k.effect(DeviceOp::Barrier.into()), &[])?;
    check(
        |k, on, _, _| k.if_(on, |k| k.effect(DeviceOp::Barrier.into())),
        &[2],
    )?;
    check(|k, on, _, meet| k.call(meet, vec![on]).map(|_| ()), &[2])?;
    check(
        |k, on, other, _| {
            let both = k.binary(BinaryOp::And, on, other)?;
            k.if_(both, |k| k.effect(DeviceOp::Barrier.into()))
        },
        &[1, 2],
    )?;
    // By way of a variable, and of the turns of a loop.
    check(
        |k, on, _, _| {
            let again = k.local("again", Type::BOOL);
            k.store(Place::local(again), on)?;
            k.loop_(|k| {
                k.effect(DeviceOp::Barrier.into())?;
                let v = k.load(Place::local(again))?;
                k.if_(v, |k| {
                    k.break_(0);
                    Ok(())
                })
            })
        },
        &[2],
    )?;
    Ok(())
}

#[test]
fn what_lanes_load_between_barriers_is_one_value() -> Result<(), TypeError> {
    type Step = fn(&mut KernelBuilder, Base, Value) -> Result<(), TypeError>;
    // Lanes write, a barrier, `before`, a load of `total[0]`, `after`; then a barrier if the load gave zero.
    let check = |before: Step, after: Step, expect: Option<&str>| -> Result<(), TypeError> {
        let mut k = KernelBuilder::new("k");
        let total = k.shared("total", Type::array(Type::U32, 64));
        let lane = k.op(Op::Builtin(Builtin::ThreadIdx(Axis::X)))?;
        k.store(Place::element(total, lane), lane)?;
        k.effect(DeviceOp::Barrier.into())?;
        before(&mut k, total, lane)?;
        let zero = k.u32(0);
        let sum = k.load(Place::element(total, zero))?;
        after(&mut k, total, lane)?;
        let is_zero = k.binary(BinaryOp::Eq, sum, zero)?;
        k.if_(is_zero, |k| k.effect(DeviceOp::Barrier.into()))?;
        let found = verify(k.finish()).map(|_| ()).map_err(|e| e.to_string());
        match expect {
            None => assert_eq!(found, Ok(())),
            Some(cause) => assert!(found.clone().is_err_and(|e| e.contains(cause)), "{found:?}"),
        }
        Ok(())
    };
    let nothing: Step = |_, _, _| Ok(());
    let barrier: Step = |k, _, _| k.effect(DeviceOp::Barrier.into());
    let store: Step = |k, total, lane| k.store(Place::element(total, lane), lane);
    let store_behind: Step = |k, total, lane| {
        k.store(Place::element(total, lane), lane)?;
        k.effect(DeviceOp::Barrier.into())
    };
    let own: Step = |k, _, lane| {
        let own = k.local("own", Type::U32);
        k.store(Place::local(own), lane)?;
        k.effect(DeviceOp::Barrier.into())
    };
    let may_change = Some("`total` may change between the lanes' loads of it");
    check(nothing, barrier, None)?;
    check(nothing, own, None)?;
    // Nothing keeps other lanes from writing before all have read, or from still writing.
    check(nothing, nothing, may_change)?;
    check(nothing, store_behind, may_change)?;
    check(store, barrier, may_change)?;
    Ok(())
}
