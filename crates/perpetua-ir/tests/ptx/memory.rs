//! Places, aggregates, shared memory, tables, parameters, limits.

use std::sync::Arc;

use crate::{assemble, build, golden};
use perpetua_ir::back::{RenderError, ptx};
use perpetua_ir::ir::*;
use perpetua_ir::ops::BinaryOp::Add;
use perpetua_ir::ops::TernaryOp;
use perpetua_ir::verify::verify;

fn particle() -> Type {
    Type::Struct(Arc::new(StructType::repr_c(
        "Particle",
        vec![
            ("position".into(), Type::Vector(Scalar::F32, 3)),
            ("charge".into(), Scalar::F64.into()),
            ("flags".into(), Type::array(Scalar::U8.into(), 3)),
            ("alive".into(), Type::BOOL),
            ("kind".into(), Scalar::F16.into()),
        ],
        1,
    )))
}

#[test]
fn aggregates_move_as_vectors_where_they_can() {
    golden(build("aggregates", |k| {
        let p = k.buffer("particles", particle(), Access::ReadWrite);
        let v = k.buffer("vectors", Type::Vector(Scalar::F32, 4), Access::ReadWrite);
        let given = k.param("given", particle());
        let i = k.param("i", Type::U64);
        let one = k.load(Place::element(p, i))?;
        let charge = k.op(Op::Extract(given, 1))?;
        let one = k.op(Op::Insert(one, 1, charge))?;
        k.store(Place::element(p, i), one)?;
        let alive = k.load(Place::element(p, i).step(Step::Field(3)))?;
        let j = k.cast(Scalar::U32, i)?;
        let flag = k.load(Place::element(p, i).step(Step::Field(2)).step(Step::Index(j)))?;
        let flag = k.cast(Scalar::F32, flag)?;
        let four = k.op(Op::Compose(
            Type::Vector(Scalar::F32, 4),
            vec![flag, flag, flag, flag],
        ))?;
        let other = k.load(Place::element(v, j))?;
        let four = k.ternary(TernaryOp::Select, alive, four, other)?;
        k.store(Place::element(v, j), four)?;
        let zero = k.op(Op::Zero(particle()))?;
        k.store(Place::element(p, j), zero)
    }));
}

#[test]
fn large_values_are_copied_past_the_registers() {
    let usage = golden(build("copies", |k| {
        // Where checks are on, one stands between the load and the store.
        k.kernel_mut().checks = Checks::Off;
        let large = Type::array(Type::U32, 1000);
        let from = k.buffer("from", large.clone(), Access::Read);
        let to = k.buffer("to", large, Access::ReadWrite);
        let (i, j) = (k.param("i", Type::U64), k.param("j", Type::U32));
        let value = k.load(Place::element(from, i))?;
        k.store(Place::element(to, j), value)
    }));
    if let Some(usage) = usage {
        assert_eq!(usage.spill_store_bytes, 0);
        assert!(usage.registers <= 32, "{} registers", usage.registers);
    }
}

#[test]
fn variables_live_in_registers_unless_indexed() {
    let usage = golden(build("variables", |k| {
        let y = k.buffer("y", Type::U32, Access::ReadWrite);
        let fixed = k.local("fixed", Type::array(Type::U32, 4));
        let indexed = k.local(
            "indexed",
            Type::array(Type::tuple(vec![Type::U32, Scalar::U8.into()]), 8),
        );
        let zero = k.op(Op::Zero(Type::array(Type::U32, 4)))?;
        k.store(Place::local(fixed), zero)?;
        let empty = k.op(Op::Zero(Type::array(
            Type::tuple(vec![Type::U32, Scalar::U8.into()]),
            8,
        )))?;
        k.store(Place::local(indexed), empty)?;
        let i = k.global_id(Axis::X)?;
        let two = k.u32(2);
        k.store(Place::element(Base::Local(fixed), two), i)?;
        let place = Place::element(Base::Local(indexed), i).step(Step::Field(0));
        k.store(place.clone(), i)?;
        let a = k.load(Place::element(Base::Local(fixed), two))?;
        let b = k.load(place)?;
        let v = k.binary(Add, a, b)?;
        k.store(Place::element(y, i), v)
    }));
    assert!(usage.is_none_or(|u| u.stack_bytes == 64));
}

/// Of a struct that is indexed in one field the others stay in registers, and a whole is moved field by field. An index's constant stands in
/// the instruction.
#[test]
fn fields_live_in_registers_unless_indexed() {
    golden(build("fields", |k| {
        let y = k.buffer("y", Type::U32, Access::ReadWrite);
        let ty = Type::tuple(vec![Type::U32, Type::array(Type::U32, 8), Type::U32]);
        let both = k.local("both", ty.clone());
        let empty = k.op(Op::Zero(ty.clone()))?;
        k.store(Place::local(both), empty)?;
        let i = k.global_id(Axis::X)?;
        let field = |n| Place::local(both).step(Step::Field(n));
        k.store(field(1).step(Step::Index(i)), i)?;
        k.store(field(2), i)?;
        let again = k.local("again", ty);
        let whole = k.load(Place::local(both))?;
        k.store(Place::local(again), whole)?;
        let a = k.load(Place::local(again).step(Step::Field(2)))?;
        let b = k.load(field(1).step(Step::Index(i)))?;
        let sum = k.binary(Add, a, b)?;
        let far = k.cast(Scalar::U64, i)?;
        let three = k.op(Op::Const(Scalar::U64, 3))?;
        let further = k.binary(Add, far, three)?;
        k.store(Place::element(y, further), sum)
    }));
}

#[test]
fn shared_memory_and_tables() {
    golden(build("shared_and_tables", |k| {
        let y = k.buffer("y", Type::F32, Access::ReadWrite);
        let grid = k.shared("grid", Type::array(Type::array(Type::F32, 18), 18));
        let more = k.dynamic_shared("more", Type::F32);
        k.kernel_mut().constants.push(ConstTable {
            name: "weights".into(),
            element: Scalar::F32,
            data: [0.25f32, 0.5, 0.25].map(|v| u64::from(v.to_bits())).to_vec(),
        });
        k.kernel_mut().constants.push(ConstTable {
            name: "steps".into(),
            element: Scalar::I64,
            data: vec![u64::MAX, 1],
        });
        let x = k.builtin(Builtin::ThreadIdx(Axis::X));
        let z = k.builtin(Builtin::ThreadIdx(Axis::Z));
        let w = k.load(Place::element(Base::Constant(0), x))?;
        k.store(Place::element(grid, x).step(Step::Index(z)), w)?;
        let n = k.op(Op::Len(more, Scalar::U32))?;
        let s = k.load(Place::element(Base::Constant(1), z))?;
        k.store(Place::element(more, s), w)?;
        k.effect(DeviceOp::Barrier.into())?;
        let far = k.load(Place::element(grid, z).step(Step::Index(x)))?;
        k.store(Place::element(y, n), far)
    }));
}

#[test]
fn every_scalar_passes_through_memory_and_parameters() {
    assemble(build("scalars", |k| {
        let mut stores = Vec::new();
        for s in Scalar::ALL {
            let p = k.param(format!("value_{s}"), s.into());
            let b = k.buffer(format!("buffer_{s}"), s.into(), Access::ReadWrite);
            let t = k.shared(format!("shared_{s}"), Type::array(s.into(), 2));
            stores.push((s, p, b, t));
        }
        let i = k.global_id(Axis::Y)?;
        for (s, p, b, t) in stores {
            let one = k.constant(s, 1);
            k.store(Place::element(b, i), p)?;
            k.store(Place::element(t, i), one)?;
            let v = k.load(Place::element(t, i))?;
            k.store(Place::element(b, i), v)?;
        }
        Ok(())
    }));
}

#[test]
fn names_that_ptx_does_not_know() {
    for (name, entry) in [("WARP_SZ", "perpetua_WARP_SZ"), ("add", "add")] {
        let (source, _) = assemble(build(name, |k| {
            let y = k.buffer("ret", Type::U32, Access::ReadWrite);
            let i = k.param("abs", Type::U32);
            k.store(Place::element(y, i), i)
        }));
        assert_eq!(source.entry, entry);
    }
}

#[test]
fn limits_are_errors() {
    let check = |sm, expected: &str, f: fn(&mut KernelBuilder)| {
        let kernel = build("k", |k| {
            f(k);
            Ok(())
        });
        let error: RenderError = ptx::render(&verify(kernel).unwrap(), sm).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(
        60,
        "kernel `k`: the device's compute capability (times ten; the oldest is the limit) is 60, PTX sm_60 allows 70",
        |_| (),
    );
    check(
        80,
        "kernel `k`: static shared memory in bytes (use dynamic memory for more) is 49156, PTX sm_80 allows 49152",
        |k| {
            k.shared("t", Type::array(Type::U32, 12289));
        },
    );
    check(
        90,
        "kernel `k`: the parameters' size in bytes is 4352, PTX sm_90 allows 4328",
        |k| {
            k.param("p", Type::array(Type::U32, 1088));
        },
    );
}
