//! Every row of the table of device operations: read and printed, typed, rendered for each target or refused by the
//! capability that the row names, and run. A new row is tested by being there.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used)]

use perpetua_cpu::interp::{Interpreter, LaunchConfig};
use perpetua_ir::back::{Capabilities, Capability, CudaAbi, RenderError, Target, render};
use perpetua_ir::ir::{
    Access, Base, Checks, DeviceOp, Effect, Factor, Inst, Kernel, KernelBuilder, Op, Place, Scalar,
    StageElement, StageOp, Stages, Type, TypeError, Value,
};
use perpetua_ir::ops::{Gives, Stands, Takes};
use perpetua_ir::verify::verify;

fn operand(k: &mut KernelBuilder, takes: Takes) -> Value {
    match takes {
        Takes::Exactly(s) => k.constant(s, 1),
        Takes::Number | Takes::Integer => k.u32(1),
        Takes::Array(s, n) => k.op(Op::Zero(Type::array(s.into(), n))).unwrap(),
        Takes::Sums => {
            let each = Type::array(Type::array(Type::F32, 2), 2);
            k.op(Op::Zero(Type::array(each, 8))).unwrap()
        }
    }
}

/// A kernel that does nothing else, and may keep the value.
fn only(op: DeviceOp, keep: bool) -> Result<Kernel, TypeError> {
    if let DeviceOp::Stage(stage) = op {
        return only_stage(stage);
    }
    let row = op.row();
    let mut k = KernelBuilder::new("only");
    // Some need whole subgroups.
    k.kernel_mut().block_size = Some([64, 1, 1]);
    let args: Vec<Value> = row
        .operands
        .iter()
        .map(|(takes, _)| operand(&mut k, *takes))
        .collect();
    match row.stands {
        Stands::Anywhere => {}
        Stands::BehindBlock => {
            let block = k.block(|_| Ok::<(), TypeError>(()))?;
            k.push(Inst::Labeled(block));
        }
        Stands::ExplicitChecks => k.kernel_mut().checks = Checks::Explicit,
    }
    if row.gives == Gives::Nothing {
        k.effect(Effect::Device(op, args))?;
        return Ok(k.finish());
    }
    let v = k.op(Op::Device(op, args))?;
    if keep {
        let scalar = match row.gives {
            Gives::Array(..) => k.op(Op::Extract(v, 0))?,
            _ => v,
        };
        let base = k.buffer("out", scalar_of(row.gives).into(), Access::ReadWrite);
        let zero = k.u32(0);
        k.store(Place::element(base, zero), scalar)?;
    }
    Ok(k.finish())
}

/// A kernel with stages that does nothing else, asking who does what.
fn only_stage(op: StageOp) -> Result<Kernel, TypeError> {
    let mut k = KernelBuilder::new("only");
    let read =
        |k: &mut KernelBuilder, name: &str| match k.buffer(name, Type::Scalar(Scalar::F16), Access::Read) {
            Base::Buffer(i) => i,
            _ => 0,
        };
    let buffers = [read(&mut k, "a"), read(&mut k, "b")];
    k.param("n", Type::U32);
    let factor = |buffer| Factor {
        buffer,
        shape: [2; 3],
        layers: (op == StageOp::FillOf).then_some([2; 2]),
        extent: 64,
        across: false,
    };
    let [left, right] = buffers.map(factor);
    let third = (op == StageOp::Weigh).then(|| Factor {
        across: true,
        ..right.clone()
    });
    k.kernel_mut().block_size = Some([256, 1, 1]);
    let twins =
        matches!(op, StageOp::MultiplyTwin | StageOp::WeighTwin).then(|| [left.clone(), right.clone()]);
    k.kernel_mut().stages = Some(Stages {
        count: 2,
        element: StageElement::F16,
        left,
        right,
        third,
        twins,
        depth: StageElement::F16.depth(),
        pairs: false,
    });
    let args: Vec<Value> = DeviceOp::Stage(op)
        .row()
        .operands
        .iter()
        .map(|(takes, _)| operand(&mut k, *takes))
        .collect();
    let produces = k.op(Op::Device(DeviceOp::Stage(StageOp::Produces), Vec::new()))?;
    k.if_else(
        produces,
        |k| match op {
            StageOp::Fill | StageOp::FillOf => k.effect(Effect::Device(DeviceOp::Stage(op), args.clone())),
            _ => Ok(()),
        },
        |k| match op {
            StageOp::Multiply | StageOp::MultiplyTwin | StageOp::Weigh | StageOp::WeighTwin => {
                k.op(Op::Device(DeviceOp::Stage(op), args.clone())).map(|_| ())
            }
            _ => Ok(()),
        },
    )?;
    Ok(k.finish())
}

const fn scalar_of(gives: Gives) -> Scalar {
    match gives {
        Gives::Exactly(s) | Gives::Array(s, _) => s,
        Gives::Nothing | Gives::First => Scalar::U32,
    }
}

fn targets() -> Vec<Target> {
    let all = [
        Capability::Int64,
        Capability::Subgroups,
        Capability::DynamicShared,
    ];
    vec![
        Target::Ptx { sm: 70.into() },
        Target::Ptx { sm: 90.into() },
        Target::CudaC {
            abi: CudaAbi::Checked,
        },
        Target::CudaC { abi: CudaAbi::Plain },
        Target::Msl,
        Target::Wgsl {
            capabilities: Capabilities::from(all),
            block: [64, 1, 1],
            dynamic_shared: 0,
            distinct: false,
            exact_fma: true,
        },
    ]
}

#[test]
fn rows_read_as_they_print() {
    for op in DeviceOp::all() {
        let kernel = only(op, true).unwrap();
        let text = kernel.to_string();
        assert_eq!(text.parse::<Kernel>().as_ref(), Ok(&kernel), "{op:?}:\n{text}");
    }
}

#[test]
fn a_wrong_number_of_operands_is_an_error() {
    for op in DeviceOp::all() {
        let row = op.row();
        let mut k = KernelBuilder::new("wrong");
        let one = k.u32(1);
        let args = vec![one; row.operands.len() + 1];
        let error = match row.gives {
            Gives::Nothing => k.effect(Effect::Device(op, args)).unwrap_err(),
            _ => k.op(Op::Device(op, args)).unwrap_err(),
        };
        assert!(matches!(error, TypeError::Arity { .. }), "{op:?}: {error}");
        // What gives a value is no effect, and the other way round.
        let args: Vec<Value> = row
            .operands
            .iter()
            .map(|(takes, _)| operand(&mut k, *takes))
            .collect();
        k.kernel_mut().checks = Checks::Explicit;
        let error = match row.gives {
            Gives::Nothing => k.op(Op::Device(op, args)).unwrap_err(),
            _ => k.effect(Effect::Device(op, args)).unwrap_err(),
        };
        assert!(matches!(error, TypeError::Invalid(_)), "{op:?}: {error}");
    }
}

#[test]
fn targets_render_rows_or_lack_what_they_need() {
    for op in DeviceOp::all() {
        let verified = verify(only(op, true).unwrap()).unwrap();
        assert!(verified.facts().asks(op));
        for target in targets() {
            match render(&verified, &target) {
                Ok(source) => {
                    // PTX has such names for its labels.
                    let is_ptx = matches!(target, Target::Ptx { .. });
                    assert!(is_ptx || !source.text.contains('$'), "{op:?}:\n{}", source.text);
                }
                Err(RenderError::Lacks { capability, .. }) => {
                    assert_eq!(Some(capability), op.row().needs, "{op:?} on {target:?}");
                }
                Err(e) => panic!("{op:?} on {target:?}: {e}"),
            }
        }
    }
}

#[test]
fn the_interpreter_runs_every_row() {
    for op in DeviceOp::all() {
        // Those need matrices and each other: `stages.rs` runs them.
        if matches!(op, DeviceOp::Stage(_)) {
            continue;
        }
        let verified = verify(only(op, false).unwrap()).unwrap();
        let interpreter = Interpreter::new(&verified).unwrap();
        let config = LaunchConfig::new([1, 1, 1], [64, 1, 1], &[]);
        interpreter.launch(&config).unwrap();
    }
}
