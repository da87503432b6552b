//! Whether blocks can run side by side as one: their lanes have nothing to do with each other, and use their indices along x only
//! for the index in the grid, so that a longer block, which begins where the first one does, means the same.

use perpetua_ir::ir::*;
use perpetua_ir::ops::BinaryOp;

/// What a value is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    Otherwise,
    Thread,
    Block,
    BlockSize,
    /// Index of the block times its size, before any cast.
    Start,
}

pub(super) fn is_mergeable(kernel: &Kernel) -> bool {
    let bodies = kernel.functions.iter().map(|f| &f.body).chain([&kernel.body]);
    kernel.shared.is_empty()
        && kernel.checks != Checks::Explicit
        && bodies.into_iter().all(|body| {
            let mut made = vec![Made::Otherwise; body.values.len()];
            block(&body.block, &mut made)
        })
}

fn block(body: &Block, made: &mut [Made]) -> bool {
    body.0.iter().all(|stmt| match &stmt.inst {
        Inst::Let(v, op) => {
            let Some(is) = of(op, made) else { return false };
            if let Some(to) = made.get_mut(v.0 as usize) {
                *to = is;
            }
            true
        }
        inst => {
            let harmless = !matches!(
                inst,
                Inst::Do(Effect::Device(..) | Effect::Print(..) | Effect::Store(_, _, Some(_)))
            );
            let mut plain = true;
            inst.operands(&mut |v| plain &= is(made, v) == Made::Otherwise || is(made, v) == Made::BlockSize);
            harmless
                && plain
                && match inst {
                    Inst::If(_, then, otherwise) => block(then, made) && block(otherwise, made),
                    Inst::Switch { cases, default, .. } => {
                        cases.iter().all(|(_, case)| block(case, made)) && block(default, made)
                    }
                    Inst::Loop(inner) | Inst::Labeled(inner) => block(inner, made),
                    _ => true,
                }
        }
    })
}

fn is(made: &[Made], v: Value) -> Made {
    made.get(v.0 as usize).copied().unwrap_or(Made::Otherwise)
}

/// What an operation makes; none if it makes something else of an index, or has to do with other lanes.
fn of(op: &Op, made: &[Made]) -> Option<Made> {
    Some(match op {
        Op::Builtin(Builtin::ThreadIdx(Axis::X)) => Made::Thread,
        Op::Builtin(Builtin::BlockIdx(Axis::X)) => Made::Block,
        Op::Builtin(Builtin::BlockDim(Axis::X)) => Made::BlockSize,
        Op::Builtin(Builtin::SubgroupLane) | Op::Device(..) | Op::Atomic(..) | Op::CompareExchange { .. } => {
            return None;
        }
        Op::Load(_, Some(_)) => return None,
        Op::Cast(to, a) | Op::Bitcast(to, a)
            if to.is_int() && to.size() >= 4 && is(made, *a) != Made::Start =>
        {
            is(made, *a)
        }
        Op::Binary(BinaryOp::Mul, a, b) => match (is(made, *a), is(made, *b)) {
            (Made::Block, Made::BlockSize) | (Made::BlockSize, Made::Block) => Made::Start,
            _ => others(op, made)?,
        },
        Op::Binary(BinaryOp::Add, a, b) => match (is(made, *a), is(made, *b)) {
            (Made::Start, Made::Thread) | (Made::Thread, Made::Start) => Made::Otherwise,
            _ => others(op, made)?,
        },
        _ => others(op, made)?,
    })
}

fn others(op: &Op, made: &[Made]) -> Option<Made> {
    let mut plain = true;
    op.operands(&mut |v| plain &= matches!(is(made, v), Made::Otherwise | Made::BlockSize));
    plain.then_some(Made::Otherwise)
}
