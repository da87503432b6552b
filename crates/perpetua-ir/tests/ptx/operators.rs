//! Every operator and cast on every type that it takes.

use crate::{Built, assemble, build};
use perpetua_ir::ir::*;
use perpetua_ir::ops::{BinaryOp, Domain, Second, TernaryOp, UnaryOp};

/// Stores a scalar where the assembler cannot see that nobody reads it.
fn keep(k: &mut KernelBuilder, out: &[Base], i: Value, v: Value) -> Built {
    let s = k.type_of(v)?.as_scalar().expect("a scalar");
    k.store(Place::element(out[s as usize], i), v)
}

/// Element `i` of an input of each type, and an output of each type.
fn buffers(k: &mut KernelBuilder) -> Result<(Value, Vec<Base>, Vec<Base>), TypeError> {
    let mut inputs = Vec::new();
    let mut outputs = Vec::new();
    for s in Scalar::ALL {
        inputs.push(k.buffer(format!("in_{s}"), s.into(), Access::Read));
        outputs.push(k.buffer(format!("out_{s}"), s.into(), Access::ReadWrite));
    }
    let i = k.global_id(Axis::X)?;
    Ok((i, inputs, outputs))
}

fn input(k: &mut KernelBuilder, inputs: &[Base], i: Value, s: Scalar) -> Result<Value, TypeError> {
    k.load(Place::element(inputs[s as usize], i))
}

/// All operators on one type, each operand once from memory and, where there are two, once a constant.
fn operators_on(s: Scalar) -> Kernel {
    build(&format!("operators_{s}"), |k| {
        let (i, inputs, outputs) = buffers(k)?;
        let a = input(k, &inputs, i, s)?;
        let one = k.u32(1);
        let next = k.binary(BinaryOp::Add, i, one)?;
        let b = input(k, &inputs, next, s)?;
        let three = k.constant(s, if s == Scalar::Bool { 1 } else { 3 });
        for &op in UnaryOp::ALL {
            if op.row().domain.contains(s) {
                let v = k.unary(op, a)?;
                keep(k, &outputs, i, v)?;
                let v = k.unary(op, three)?;
                keep(k, &outputs, i, v)?;
            }
        }
        for &op in BinaryOp::ALL {
            if !op.row().domain.contains(s) {
                continue;
            }
            let amounts: Vec<Value> = match op.row().second {
                Second::Same => vec![b, three],
                Second::Amount => {
                    let mut amounts = vec![three];
                    for t in Scalar::ALL.into_iter().filter(|t| t.is_int()) {
                        amounts.push(input(k, &inputs, i, t)?);
                    }
                    amounts
                }
            };
            for amount in amounts {
                let v = k.binary(op, a, amount)?;
                keep(k, &outputs, i, v)?;
                if op.row().second == Second::Same {
                    let v = k.binary(op, amount, a)?;
                    keep(k, &outputs, i, v)?;
                }
            }
            let v = k.binary(op, three, three)?;
            keep(k, &outputs, i, v)?;
        }
        let condition = input(k, &inputs, i, Scalar::Bool)?;
        for &op in TernaryOp::ALL {
            let first = match op.row().domain {
                Domain::Bool => condition,
                domain if domain.contains(s) => b,
                _ => continue,
            };
            for other in [a, three] {
                let v = k.ternary(op, first, a, other)?;
                keep(k, &outputs, i, v)?;
            }
        }
        Ok(())
    })
}

#[test]
fn operators_assemble_on_every_type() {
    for s in Scalar::ALL {
        assemble(operators_on(s));
    }
}

#[test]
fn casts_assemble_between_all_types() {
    let kernel = build("casts", |k| {
        let (i, inputs, outputs) = buffers(k)?;
        for from in Scalar::ALL {
            let a = input(k, &inputs, i, from)?;
            let seven = k.constant(from, if from == Scalar::Bool { 1 } else { 0x77 });
            for to in Scalar::ALL {
                let accepted = from == to || to != Scalar::Bool && (from != Scalar::Bool || to.is_int());
                for v in [a, seven] {
                    if accepted {
                        let v = k.cast(to, v)?;
                        keep(k, &outputs, i, v)?;
                    }
                    if from.bits() == to.bits() {
                        let v = k.op(Op::Bitcast(to, v))?;
                        keep(k, &outputs, i, v)?;
                    }
                }
            }
        }
        Ok(())
    });
    assemble(kernel);
}

/// They are rounded twice on the way, as the interpreter does and the tables say.
#[test]
fn wide_numbers_become_halves_by_way_of_f32() {
    for (from, to) in [
        (Scalar::U32, Scalar::BF16),
        (Scalar::I64, Scalar::BF16),
        (Scalar::U64, Scalar::BF16),
        (Scalar::F64, Scalar::BF16),
        (Scalar::F64, Scalar::F16),
    ] {
        let kernel = build("narrow", |k| {
            let (i, inputs, outputs) = buffers(k)?;
            let a = input(k, &inputs, i, from)?;
            let v = k.cast(to, a)?;
            keep(k, &outputs, i, v)
        });
        let (source, _) = assemble(kernel);
        let [first, second] = [from, to].map(|s| match s {
            Scalar::I64 => "s64".into(),
            _ => s.to_string(),
        });
        let steps = [format!("cvt.rn.f32.{first}"), format!("cvt.rn.{second}.f32")];
        let found: Vec<&str> = source
            .text
            .split_whitespace()
            .filter(|word| word.starts_with("cvt.rn."))
            .collect();
        assert_eq!(found, steps, "{}", source.text);
    }
}

#[test]
fn contraction_is_allowed_only_when_asked_for() {
    let kernel = |contract| {
        build("axpy", |k| {
            k.kernel_mut().contract = contract;
            let y = k.buffer("y", Type::F32, Access::ReadWrite);
            let a = k.param("a", Type::F32);
            let i = k.global_id(Axis::X)?;
            let v = k.load(Place::element(y, i))?;
            let v = k.binary(BinaryOp::Mul, a, v)?;
            let v = k.binary(BinaryOp::Add, v, a)?;
            k.store(Place::element(y, i), v)
        })
    };
    let (exact, _) = assemble(kernel(false));
    let (contracted, _) = assemble(kernel(true));
    assert!(exact.text.contains("mul.rn.f32") && exact.text.contains("add.rn.f32"));
    assert!(!contracted.text.contains("mul.rn.f32") && !contracted.text.contains("add.rn.f32"));
}
