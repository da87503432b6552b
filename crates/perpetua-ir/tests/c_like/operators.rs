//! Every operator, cast, atomic and subgroup operation on every type that it takes, compiled for every target that
//! has the type.

use crate::{metal, naga_and_tint, nvrtc, verified, wgsl_targets};
use perpetua_ir::back::{CudaAbi, Target, render};
use perpetua_ir::ir::*;
use perpetua_ir::ops::{BinaryOp, Domain, Second, TernaryOp, UnaryOp};

type Built = Result<(), TypeError>;

/// Which types a target has.
#[derive(Clone, Copy)]
struct Types {
    wide: bool,
    double: bool,
}

impl Types {
    fn has(self, s: Scalar) -> bool {
        s != Scalar::F64 && s.size() < 8
            || s == Scalar::F64 && self.double
            || s.size() == 8 && s.is_int() && self.wide
    }

    fn all(self) -> impl Iterator<Item = Scalar> {
        Scalar::ALL.into_iter().filter(move |s| self.has(*s))
    }
}

/// What browsers have.
const NARROW: Types = Types {
    wide: false,
    double: false,
};
/// What Metal has.
const WIDE: Types = Types {
    wide: true,
    double: false,
};
/// Everything.
const FULL: Types = Types {
    wide: true,
    double: true,
};

fn build(name: &str, types: Types, f: impl FnOnce(&mut KernelBuilder) -> Built) -> Kernel {
    let mut k = KernelBuilder::new(name);
    if !types.wide {
        k.kernel_mut().pointer_width = 32;
    }
    f(&mut k).expect("builds");
    k.finish()
}

/// Compiles a kernel of these types for every target that has them.
fn compile(f: impl Fn(Types) -> Kernel) {
    let full = verified(f(FULL));
    for abi in [CudaAbi::Checked, CudaAbi::Plain] {
        let source = render(&full, &Target::CudaC { abi }).unwrap();
        nvrtc(&format!("{} ({abi:?})", source.entry), &source.text, &["sm_75"]);
    }
    let [browser, naga] = wgsl_targets();
    for (types, target) in [(NARROW, browser), (FULL, naga)] {
        let source = render(&verified(f(types)), &target).unwrap();
        naga_and_tint(&source.entry, &source.text);
    }
    let source = render(&verified(f(WIDE)), &Target::Msl).unwrap();
    metal(&source.entry, &source.entry, &source.text);
}

/// Element `i` of an input of each type, and an output of each type.
struct Buffers {
    i: Value,
    inputs: Vec<Base>,
    outputs: Vec<Base>,
}

impl Buffers {
    fn new(k: &mut KernelBuilder, types: Types) -> Result<Buffers, TypeError> {
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for s in Scalar::ALL {
            // Types that the target lacks have a stand-in, which nobody uses.
            let ty = if types.has(s) { s.into() } else { Type::U32 };
            inputs.push(k.buffer(format!("in_{s}"), ty.clone(), Access::Read));
            outputs.push(k.buffer(format!("out_{s}"), ty, Access::ReadWrite));
        }
        let i = k.global_id(Axis::X)?;
        Ok(Buffers { i, inputs, outputs })
    }

    fn input(&self, k: &mut KernelBuilder, s: Scalar) -> Result<Value, TypeError> {
        k.load(Place::element(self.inputs[s as usize], self.i))
    }

    fn keep(&self, k: &mut KernelBuilder, v: Value) -> Built {
        let s = k.type_of(v)?.as_scalar().expect("a scalar");
        k.store(Place::element(self.outputs[s as usize], self.i), v)
    }
}

/// All operators on one type, operands from memory and constants.
fn operators_on(s: Scalar, types: Types) -> Kernel {
    build(&format!("operators_{s}"), types, |k| {
        let buffers = Buffers::new(k, types)?;
        let a = buffers.input(k, s)?;
        let b = buffers.input(k, s)?;
        let three = k.constant(s, if s == Scalar::Bool { 1 } else { 3 });
        for &op in UnaryOp::ALL.iter().filter(|op| op.row().domain.contains(s)) {
            for x in [a, three] {
                let v = k.unary(op, x)?;
                buffers.keep(k, v)?;
            }
        }
        for &op in BinaryOp::ALL.iter().filter(|op| op.row().domain.contains(s)) {
            let seconds = match op.row().second {
                Second::Same => vec![b, three],
                Second::Amount => {
                    let mut amounts = Vec::new();
                    for t in types.all().filter(|t| t.is_int()) {
                        amounts.push(buffers.input(k, t)?);
                        amounts.push(k.constant(t, 100));
                    }
                    amounts
                }
            };
            for second in seconds {
                for first in [a, three] {
                    let v = k.binary(op, first, second)?;
                    buffers.keep(k, v)?;
                }
            }
        }
        let condition = buffers.input(k, Scalar::Bool)?;
        for &op in TernaryOp::ALL {
            let first = match op.row().domain {
                Domain::Bool => condition,
                domain if domain.contains(s) => b,
                _ => continue,
            };
            for other in [a, three] {
                let v = k.ternary(op, first, a, other)?;
                buffers.keep(k, v)?;
            }
        }
        Ok(())
    })
}

#[test]
fn operators_compile_on_every_type() {
    for s in Scalar::ALL {
        // A target without the type compiles another in its place.
        compile(|types| operators_on(if types.has(s) { s } else { Scalar::U32 }, types));
    }
}

/// Constants at which WGSL's own evaluation would err.
#[test]
fn constants_compile_on_every_type() {
    compile(|types| {
        build("constants", types, |k| {
            let buffers = Buffers::new(k, types)?;
            for s in types.all() {
                let bits = s.bits();
                let most = u64::MAX >> (64 - bits);
                let edges = if s == Scalar::Bool {
                    vec![0, 1]
                } else {
                    let (quiet, infinity) = (most >> 1, (most >> 1) - ((1 << (bits / 4)) - 1));
                    vec![0, 1, most, most >> 1, (most >> 1) + 1, quiet, infinity]
                };
                for &x in &edges {
                    let x = k.constant(s, x);
                    for &op in UnaryOp::ALL.iter().filter(|op| op.row().domain.contains(s)) {
                        let v = k.unary(op, x)?;
                        buffers.keep(k, v)?;
                    }
                    for &op in BinaryOp::ALL.iter().filter(|op| op.row().domain.contains(s)) {
                        let y = k.constant(s, edges[edges.len() - 1]);
                        let v = k.binary(op, x, y)?;
                        buffers.keep(k, v)?;
                    }
                    for to in types.all() {
                        let accepted = s == to || to != Scalar::Bool && (s != Scalar::Bool || to.is_int());
                        if accepted {
                            let v = k.cast(to, x)?;
                            buffers.keep(k, v)?;
                        }
                        if bits == to.bits() {
                            let v = k.op(Op::Bitcast(to, x))?;
                            buffers.keep(k, v)?;
                        }
                    }
                }
            }
            Ok(())
        })
    });
}

#[test]
fn casts_compile_between_all_types() {
    compile(|types| {
        build("casts", types, |k| {
            let buffers = Buffers::new(k, types)?;
            for from in types.all() {
                let a = buffers.input(k, from)?;
                for to in types.all() {
                    let accepted = from == to || to != Scalar::Bool && (from != Scalar::Bool || to.is_int());
                    if accepted {
                        let v = k.cast(to, a)?;
                        buffers.keep(k, v)?;
                    }
                    if from.bits() == to.bits() {
                        let v = k.op(Op::Bitcast(to, a))?;
                        buffers.keep(k, v)?;
                    }
                }
            }
            Ok(())
        })
    });
}

/// Every atomic operation on global and shared memory, in arrays and inside structs.
fn atomics(types: Types, relaxed: bool) -> Kernel {
    build("atomics", types, |k| {
        let buffers = Buffers::new(k, types)?;
        let orders: &[(MemOrder, Scope)] = if relaxed {
            &[
                (MemOrder::Relaxed, Scope::Device),
                (MemOrder::Relaxed, Scope::Block),
            ]
        } else {
            &[
                (MemOrder::Relaxed, Scope::Device),
                (MemOrder::AcqRel, Scope::Block),
                (MemOrder::SeqCst, Scope::Block),
            ]
        };
        for s in types.all().filter(|s| s.size() >= 4) {
            let pair = StructType::repr_c(
                format!("Pair_{s}"),
                vec![("first".into(), Scalar::U32.into()), ("second".into(), s.into())],
                1,
            );
            let x = buffers.input(k, s)?;
            let one = k.u32(1);
            let mut places = vec![Place::element(buffers.outputs[s as usize], buffers.i)];
            if s.size() == 4 {
                let pairs = k.buffer(format!("pairs_{s}"), Type::Struct(pair.into()), Access::ReadWrite);
                places.push(Place::element(pairs, buffers.i).step(Step::Field(1)));
            }
            let array = k.shared(format!("array_{s}"), Type::array(Type::array(s.into(), 4), 2));
            places.push(Place::element(array, one).step(Step::Index(one)));
            for place in places {
                for &(order, scope) in orders {
                    let sync = Sync { order, scope };
                    for op in AtomicOp::ALL {
                        let bits = matches!(op, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor);
                        if bits && !s.is_int() {
                            continue;
                        }
                        let old = k.op(Op::Atomic(op, place.clone(), x, sync))?;
                        buffers.keep(k, old)?;
                        k.op(Op::Atomic(op, place.clone(), x, sync))?;
                    }
                    if s.is_int() {
                        let old = k.op(Op::CompareExchange {
                            place: place.clone(),
                            expected: x,
                            new: x,
                            sync,
                        })?;
                        buffers.keep(k, old)?;
                    }
                    let (load, store) = match order {
                        MemOrder::AcqRel => (MemOrder::Acquire, MemOrder::Release),
                        order => (order, order),
                    };
                    let v = k.op(Op::Load(place.clone(), Some(Sync { order: load, scope })))?;
                    k.effect(Effect::Store(
                        place.clone(),
                        v,
                        Some(Sync { order: store, scope }),
                    ))?;
                }
            }
        }
        Ok(())
    })
}

#[test]
fn atomics_compile_on_every_type() {
    let full = verified(atomics(FULL, false));
    let source = render(
        &full,
        &Target::CudaC {
            abi: CudaAbi::Checked,
        },
    )
    .unwrap();
    nvrtc("atomics", &source.text, &["sm_75", "sm_90a"]);
    let [browser, naga] = wgsl_targets();
    for (types, target) in [(NARROW, browser), (FULL, naga)] {
        let source = render(&verified(atomics(types, true)), &target).unwrap();
        naga_and_tint("atomics", &source.text);
    }
    let source = render(&verified(atomics(NARROW, false)), &Target::Msl).unwrap();
    metal("atomics", &source.entry, &source.text);
}

#[test]
fn subgroup_operations_compile_on_every_type() {
    compile(|types| {
        build("subgroups", types, |k| {
            let buffers = Buffers::new(k, types)?;
            let lane = buffers.input(k, Scalar::U32)?;
            let condition = buffers.input(k, Scalar::Bool)?;
            for op in [SubgroupOp::Any, SubgroupOp::All] {
                let v = k.op(Op::subgroup(op, condition, None))?;
                buffers.keep(k, v)?;
            }
            let votes = k.op(Op::subgroup(SubgroupOp::Ballot, condition, None))?;
            let first = k.op(Op::Extract(votes, 0))?;
            buffers.keep(k, first)?;
            for b in [Builtin::SubgroupLane, Builtin::SubgroupSize] {
                let v = k.builtin(b);
                buffers.keep(k, v)?;
            }
            for s in types.all().filter(|s| s.size() >= 4) {
                let x = buffers.input(k, s)?;
                for op in [
                    SubgroupOp::Shuffle,
                    SubgroupOp::ShuffleUp,
                    SubgroupOp::ShuffleDown,
                    SubgroupOp::ShuffleXor,
                ] {
                    let v = k.op(Op::subgroup(op, x, Some(lane)))?;
                    buffers.keep(k, v)?;
                }
                let v = k.op(Op::subgroup(SubgroupOp::BroadcastFirst, x, None))?;
                buffers.keep(k, v)?;
                for r in ReduceOp::ALL {
                    if !s.is_int() && matches!(r, ReduceOp::And | ReduceOp::Or | ReduceOp::Xor) {
                        continue;
                    }
                    for op in [
                        SubgroupOp::Reduce(r),
                        SubgroupOp::InclusiveScan(r),
                        SubgroupOp::ExclusiveScan(r),
                    ] {
                        let v = k.op(Op::subgroup(op, x, None))?;
                        buffers.keep(k, v)?;
                    }
                }
            }
            Ok(())
        })
    });
}
