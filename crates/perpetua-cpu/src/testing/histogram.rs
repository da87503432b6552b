//! What a kernel contains, counted.

use std::collections::BTreeMap;

use perpetua_ir::ir::*;

/// How often each kind of statement and operation stands in a kernel, and values that are structs.
pub fn histogram(kernel: &Kernel) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    let mut count = |name| *counts.entry(name).or_insert(0) += 1;
    for body in kernel.functions.iter().map(|f| &f.body).chain([&kernel.body]) {
        let structs = body.values.iter().filter(|ty| matches!(ty, Type::Struct(_)));
        structs.for_each(|_| count("struct"));
        body.block.walk(&mut |stmt| {
            count(match &stmt.inst {
                Inst::Let(_, op) => operation(op),
                Inst::Do(effect) => match effect {
                    Effect::Store(_, _, Some(_)) => "store atomic",
                    Effect::Store(place, ..) => match place.base {
                        Base::Buffer(_) => "store buffer",
                        Base::Shared(_) => "store shared",
                        Base::Local(_) | Base::Constant(_) => "store local",
                    },
                    Effect::Device(op, _) => op.row().counted_as(),
                    Effect::Print(..) => "print",
                    Effect::Fault(..) => "fault",
                    Effect::Panic(..) => "panic",
                },
                Inst::If(..) => "if",
                Inst::Switch { .. } => "switch",
                Inst::Loop(_) => "loop",
                Inst::Labeled(_) => "block",
                Inst::Break(_) => "break",
                Inst::Continue(_) => "continue",
                Inst::Return(_) => "return",
            });
        });
    }
    counts
}

fn operation(op: &Op) -> &'static str {
    match op {
        Op::Const(..) => "const",
        Op::Zero(_) => "zero",
        Op::Param(_) => "param",
        Op::Builtin(_) => "builtin",
        Op::Unary(op, _) => op.name(),
        Op::Binary(op, ..) => op.name(),
        Op::Ternary(op, ..) => op.name(),
        Op::Cast(..) => "cast",
        Op::Bitcast(..) => "bitcast",
        Op::Compose(..) => "compose",
        Op::Extract(..) => "extract",
        Op::Insert(..) => "insert",
        Op::Load(_, Some(_)) => "load atomic",
        Op::Load(place, None) => match place.base {
            Base::Buffer(_) => "load buffer",
            Base::Shared(_) => "load shared",
            Base::Local(_) => "load local",
            Base::Constant(_) => "load constant",
        },
        Op::Len(..) => "len",
        Op::Atomic(op, ..) => match op {
            AtomicOp::Add => "atomic add",
            AtomicOp::Sub => "atomic sub",
            AtomicOp::Min => "atomic min",
            AtomicOp::Max => "atomic max",
            AtomicOp::And => "atomic and",
            AtomicOp::Or => "atomic or",
            AtomicOp::Xor => "atomic xor",
            AtomicOp::Exchange => "atomic exchange",
        },
        Op::CompareExchange { .. } => "compare exchange",
        Op::Device(op, _) => op.row().counted_as(),
        Op::Call(..) => "call",
    }
}
