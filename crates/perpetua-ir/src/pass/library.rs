//! Replaces the operators that targets do not compute themselves by calls of the math library's functions: those
//! spelled `Library` in the operator table, and the floating-point remainder. f16 and bf16 go by way of f32.

use std::collections::BTreeSet;

use crate::ir::{Block, Body, Inst, Kernel, Op, Scalar, Stmt, Type, Value};
pub use crate::math::Sums;
use crate::math::{LibraryOp, function};
use crate::ops::{BinaryOp, Spelling};

/// The kernel with every library operator expanded. Its functions come first, so indices of the kernel's own
/// functions move up.
pub fn expand_library(mut kernel: Kernel, sums: Sums) -> Kernel {
    let mut used = BTreeSet::new();
    let bodies = kernel.functions.iter().map(|f| &f.body).chain([&kernel.body]);
    for body in bodies {
        body.block.walk(&mut |stmt| {
            if let Inst::Let(_, op) = &stmt.inst
                && let Some((library, ..)) = library_op(body, op)
            {
                used.insert(library);
            }
        });
    }
    if used.is_empty() {
        return kernel;
    }
    let (used, functions): (Vec<LibraryOp>, Vec<_>) = used
        .into_iter()
        .filter_map(|op| Some((op, function(op, sums)?)))
        .unzip();
    for f in &mut kernel.functions {
        rewrite(&mut f.body, &used);
    }
    rewrite(&mut kernel.body, &used);
    kernel.functions.splice(0..0, functions);
    kernel
}

/// The type by way of which the library computes with floats of type `s`.
fn computed(s: Scalar) -> Scalar {
    match s {
        Scalar::F64 => Scalar::F64,
        _ => Scalar::F32,
    }
}

/// The library operator that `op` is, its operands and their type.
fn library_op(body: &Body, op: &Op) -> Option<(LibraryOp, Vec<Value>, Scalar)> {
    let scalar = |v: &Value| body.values.get(v.0 as usize).and_then(Type::as_scalar);
    match op {
        Op::Unary(op, a) if op.row().cuda == Spelling::Library => {
            let s = scalar(a)?;
            Some((LibraryOp::Unary(*op, computed(s)), vec![*a], s))
        }
        Op::Binary(BinaryOp::Rem, a, b) => {
            let s = scalar(a)?;
            s.is_float()
                .then(|| (LibraryOp::Remainder(computed(s)), vec![*a, *b], s))
        }
        Op::Binary(op, a, b) if op.row().cuda == Spelling::Library => {
            let s = scalar(a)?;
            Some((LibraryOp::Binary(*op, computed(s)), vec![*a, *b], s))
        }
        _ => None,
    }
}

fn rewrite(body: &mut Body, used: &[LibraryOp]) {
    let mut block = std::mem::take(&mut body.block);
    rewrite_block(&mut block, body, used);
    body.block = block;
}

fn rewrite_block(block: &mut Block, body: &mut Body, used: &[LibraryOp]) {
    let mut out = Vec::with_capacity(block.0.len());
    for mut stmt in std::mem::take(&mut block.0) {
        for inner in stmt.inst.blocks_mut() {
            rewrite_block(inner, body, used);
        }
        let line = stmt.line;
        if let Inst::Let(_, op) = &mut stmt.inst {
            if let Op::Call(f, _) = op {
                *f += used.len() as u32;
            } else if let Some((library, args, s)) = library_op(body, op)
                && let Some(index) = used.iter().position(|u| *u == library)
            {
                let mut define = |ty: Scalar, op: Op| {
                    let v = Value(body.values.len() as u32);
                    body.values.push(ty.into());
                    out.push(Stmt {
                        line,
                        inst: Inst::Let(v, op),
                    });
                    v
                };
                *op = if s.size() < 4 {
                    let wide = args
                        .iter()
                        .map(|a| define(Scalar::F32, Op::Cast(Scalar::F32, *a)))
                        .collect();
                    Op::Cast(s, define(Scalar::F32, Op::Call(index as u32, wide)))
                } else {
                    Op::Call(index as u32, args)
                };
            }
        }
        out.push(stmt);
    }
    block.0 = out;
}
