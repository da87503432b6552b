//! Every operator and cast on every type that it takes.

use crate::{Built, assemble, build};
use perpetua_ir::ir::*;
use perpetua_ir::ops::{BinaryOp, Domain, Second, TernaryOp, UnaryOp};
use perpetua_vendor_tools::{nvdisasm, ptxas};

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

/// Numbers of 16 bits that share a word are rounded two at a time.
#[test]
fn halves_of_a_word_are_packed() {
    for element in [Scalar::F16, Scalar::BF16] {
        let kernel = build("packed", |k| {
            let x = k.buffer("x", Scalar::F32.into(), Access::Read);
            let y = k.buffer("y", Scalar::U32.into(), Access::ReadWrite);
            let (i, one, sixteen) = (k.global_id(Axis::X)?, k.u32(1), k.u32(16));
            let next = k.binary(BinaryOp::Add, i, one)?;
            let mut halves = Vec::new();
            for at in [i, next] {
                let number = k.load(Place::element(x, at))?;
                let rounded = k.cast(element, number)?;
                let bits = k.op(Op::Bitcast(Scalar::U16, rounded))?;
                halves.push(k.cast(Scalar::U32, bits)?);
            }
            let high = k.binary(BinaryOp::Shl, halves[1], sixteen)?;
            let both = k.binary(BinaryOp::Or, halves[0], high)?;
            k.store(Place::element(y, i), both)
        });
        let verified = perpetua_ir::verify::verify(kernel).unwrap();
        let source = perpetua_ir::back::ptx::render(&verified, 90).unwrap();
        let Some(assembled) = ptxas(&source.text, "sm_90").required("sm_90").unwrap() else {
            return;
        };
        if let Some(code) = nvdisasm(&assembled.cubin).required("sm_90").unwrap() {
            assert_eq!(code.matches("F2FP.").count(), 1, "{code}");
            assert_eq!(code.matches("F2F.").count(), 0, "{code}");
        }
    }
}

/// What is known to have 32 bits is divided so; else it is asked for.
#[test]
fn wide_numbers_are_divided_as_short_ones() {
    let kernel = |wide: bool| {
        build("divided", |k| {
            let x = k.buffer("x", Scalar::U64.into(), Access::ReadWrite);
            let n = k.param("n", Scalar::U32.into());
            let i = k.global_id(Axis::X)?;
            let (mut a, b) = (k.cast(Scalar::U64, i)?, k.cast(Scalar::U64, n)?);
            if wide {
                a = k.load(Place::element(x, i))?;
            }
            let quotient = k.binary(BinaryOp::Div, a, b)?;
            k.store(Place::element(x, i), quotient)
        })
    };
    for (wide, divisions) in [(false, [1, 0]), (true, [1, 1])] {
        let (source, _) = assemble(kernel(wide));
        let count = |what: &str| source.text.matches(what).count();
        assert_eq!([count("div.u32"), count("div.u64")], divisions, "{}", source.text);
    }
}
