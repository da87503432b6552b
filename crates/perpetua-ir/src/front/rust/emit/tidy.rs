//! Leaves out what a body computes and nobody reads, and numbers values in the order of their definition. Keeps
//! the meaning, faults included.

use std::collections::HashMap;

use crate::ir::{Base, Block, Body, Inst, Kernel, Op, Step, Type, Value};
use crate::ops::BinaryOp;

/// The name of the variables that say which of several places a reference means. Where it means only one, nobody reads them.
pub(super) const WHICH: &str = "which";

/// Tidies the kernel's body and its functions'.
pub(super) fn tidy(kernel: &mut Kernel) {
    tidy_body(&mut kernel.body, 0);
    for function in &mut kernel.functions {
        let params = function.params.len();
        tidy_body(&mut function.body, params);
    }
}

fn tidy_body(body: &mut Body, params: usize) {
    if body.locals.iter().any(|local| local.name == WHICH) {
        drop_unread(body);
    }
    let mut uses = vec![0usize; body.values.len()];
    body.block.walk(&mut |stmt| {
        stmt.inst.operands(&mut |v| {
            if let Some(n) = uses.get_mut(v.0 as usize) {
                *n += 1;
            }
        });
    });
    sweep(&mut body.block, &mut uses);
    let mut numbers = HashMap::new();
    let mut values: Vec<Type> = body.values.iter().take(params).cloned().collect();
    for i in 0..params as u32 {
        numbers.insert(Value(i), Value(i));
    }
    renumber(&mut body.block, &body.values, &mut values, &mut numbers);
    body.values = values;
}

/// Removes the variables called [`WHICH`] that nobody reads, and the stores to them.
fn drop_unread(body: &mut Body) {
    let mut read = vec![false; body.locals.len()];
    body.block.walk(&mut |stmt| {
        if let Inst::Let(_, op) = &stmt.inst
            && let Some(Base::Local(id)) = op.place().map(|place| place.base)
            && let Some(read) = read.get_mut(id.0 as usize)
        {
            *read = true;
        }
    });
    let names = body.locals.iter().map(|local| local.name != WHICH);
    let kept: Vec<bool> = names.zip(read).map(|(other, read)| other || read).collect();
    let mut next = 0..;
    let numbers: Vec<Option<u32>> = kept
        .iter()
        .map(|kept| kept.then(|| next.next()).flatten())
        .collect();
    number_locals(&mut body.block, &numbers);
    let mut kept = kept.into_iter();
    body.locals.retain(|_| kept.next() == Some(true));
}

/// Numbers the variables anew, and drops the stores to those that have no number.
fn number_locals(block: &mut Block, numbers: &[Option<u32>]) {
    block.0.retain_mut(|stmt| {
        for inner in stmt.inst.blocks_mut() {
            number_locals(inner, numbers);
        }
        let place = match &mut stmt.inst {
            Inst::Let(_, op) => op.place_mut(),
            Inst::Do(effect) => effect.place_mut(),
            _ => None,
        };
        let Some(Base::Local(id)) = place.map(|place| &mut place.base) else {
            return true;
        };
        let number = numbers.get(id.0 as usize).copied().flatten();
        id.0 = number.unwrap_or(id.0);
        number.is_some()
    });
}

/// Removes unread values, last to first, so that what only they read goes with them.
fn sweep(block: &mut Block, uses: &mut [usize]) {
    let stmts = std::mem::take(&mut block.0);
    let mut kept = Vec::with_capacity(stmts.len());
    for mut stmt in stmts.into_iter().rev() {
        if let Inst::Let(v, op) = &stmt.inst
            && uses.get(v.0 as usize) == Some(&0)
            && is_idle(op)
        {
            op.operands(&mut |v| {
                if let Some(n) = uses.get_mut(v.0 as usize) {
                    *n -= 1;
                }
            });
            continue;
        }
        for inner in stmt.inst.blocks_mut() {
            sweep(inner, uses);
        }
        kept.push(stmt);
    }
    kept.reverse();
    block.0 = kept;
}

/// Whether an operation can be left out if nobody reads its value: it neither acts nor faults.
fn is_idle(op: &Op) -> bool {
    match op {
        Op::Const(..)
        | Op::Zero(_)
        | Op::Param(_)
        | Op::Builtin(_)
        | Op::Unary(..)
        | Op::Ternary(..)
        | Op::Cast(..)
        | Op::Bitcast(..)
        | Op::Compose(..)
        | Op::Extract(..)
        | Op::Insert(..)
        | Op::Len(..) => true,
        Op::Binary(op, ..) => !matches!(op, BinaryOp::Div | BinaryOp::Rem),
        Op::Load(place, None) => {
            matches!(place.base, Base::Local(_))
                && place.path.iter().all(|step| matches!(step, Step::Field(_)))
        }
        _ => false,
    }
}

fn renumber(block: &mut Block, old: &[Type], new: &mut Vec<Type>, numbers: &mut HashMap<Value, Value>) {
    for stmt in &mut block.0 {
        stmt.inst.operands_mut(&mut |v| {
            if let Some(n) = numbers.get(v) {
                *v = *n;
            }
        });
        if let Inst::Let(v, _) = &mut stmt.inst {
            let n = Value(new.len() as u32);
            if let Some(ty) = old.get(v.0 as usize) {
                new.push(ty.clone());
                numbers.insert(*v, n);
                *v = n;
            }
        }
        for inner in stmt.inst.blocks_mut() {
            renumber(inner, old, new, numbers);
        }
    }
}
