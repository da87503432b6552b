//! Puts values of a launch's scalar arguments into the kernel, with what follows from them at once: the values of operators on them, and which branches are
//! taken.

use std::collections::HashMap;

use crate::ir::{Block, Inst, Kernel, Op, ParamKind, Scalar, Stages, Stmt, Type, Value};
use crate::ops::{BinaryOp, eval};
use crate::verify::Verified;

/// The kernel for launches whose scalar arguments of these names have these values (their bits, zero-extended), without the branches that these rule out
/// (as far as that needs no look at variables). Its parameters stay, and what a launch gives for the named ones is not read; but those that describe matrices which
/// are multiplied in stages, launches read, and they are not bound. Names that no scalar parameter has do nothing.
pub fn bind_scalars(verified: &Verified, values: &[(&str, u64)]) -> Verified {
    let mut kernel = verified.kernel().clone();
    let factors = kernel.stages.iter().flat_map(Stages::factors);
    let described: Vec<u32> = factors.flat_map(|factor| factor.described()).collect();
    let constants: Vec<Option<(Scalar, u64)>> = (0u32..)
        .zip(&kernel.params)
        .map(|(i, param)| match param.kind {
            ParamKind::Value(Type::Scalar(scalar)) if !described.contains(&i) => {
                let named = values.iter().find(|(name, _)| *name == param.name);
                named.map(|(_, bits)| (scalar, *bits))
            }
            _ => None,
        })
        .collect();
    let Kernel { functions, body, .. } = &mut kernel;
    let bodies = functions.iter_mut().map(|function| &mut function.body);
    for body in bodies.chain([body]) {
        let mut binding = Binding {
            constants: &constants,
            types: &body.values,
            known: HashMap::new(),
        };
        binding.inside(&mut body.block);
    }
    verified.with_kernel(kernel)
}

struct Binding<'a> {
    constants: &'a [Option<(Scalar, u64)>],
    types: &'a [Type],
    known: HashMap<Value, u64>,
}

impl Binding<'_> {
    fn inside(&mut self, block: &mut Block) {
        let mut kept: Vec<Stmt> = Vec::with_capacity(block.0.len());
        for mut stmt in std::mem::take(&mut block.0) {
            if let Inst::Let(value, op) = &mut stmt.inst
                && let Some((scalar, bits)) = self.value_of(*value, op)
            {
                *op = Op::Const(scalar, bits);
                if self.scalar(*value).is_some() {
                    self.known.insert(*value, bits);
                }
            }
            if let Some(mut taken) = self.taken(&mut stmt.inst) {
                self.inside(&mut taken);
                kept.append(&mut taken.0);
            } else {
                for inner in stmt.inst.blocks_mut() {
                    self.inside(inner);
                }
                kept.push(stmt);
            }
            if kept.last().is_some_and(|last| leaves(&last.inst)) {
                // What follows was behind a branch that is taken always.
                break;
            }
        }
        block.0 = kept;
    }

    /// What a value always is, where that is known: a bound argument, and what follows of integers of up to 64 bits and truths.
    fn value_of(&self, value: Value, op: &Op) -> Option<(Scalar, u64)> {
        if let Op::Param(index) = op {
            return *self.constants.get(*index as usize)?;
        }
        let scalar = self.scalar(value)?;
        let known = |value: &Value| Some((self.scalar(*value)?, *self.known.get(value)?));
        let bits = match op {
            Op::Const(_, bits) => *bits,
            Op::Unary(op, a) => {
                let (of, a) = known(a)?;
                eval::eval_unary(*op, of, a)
            }
            Op::Binary(BinaryOp::And, a, b) if [a, b].iter().any(|part| self.known.get(part) == Some(&0)) => {
                0
            }
            Op::Binary(op, a, b) => {
                let ((of, a), (_, b)) = (known(a)?, known(b)?);
                eval::eval_binary(*op, of, a, b).ok()?
            }
            Op::Cast(_, a) => {
                let (from, a) = known(a)?;
                eval::eval_cast(from, scalar, a)
            }
            _ => return None,
        };
        Some((scalar, bits))
    }

    fn scalar(&self, value: Value) -> Option<Scalar> {
        match self.types.get(value.0 as usize)? {
            Type::Scalar(scalar) if scalar.bits() <= 64 && !scalar.is_float() => Some(*scalar),
            _ => None,
        }
    }

    /// The block that is always taken of a statement that chooses, taken out of it.
    fn taken(&self, inst: &mut Inst) -> Option<Block> {
        match inst {
            Inst::If(condition, yes, no) => Some(match self.known.get(condition)? {
                0 => std::mem::take(no),
                _ => std::mem::take(yes),
            }),
            Inst::Switch {
                selector,
                cases,
                default,
            } => {
                let bits = self.known.get(selector)?;
                let case = cases.iter_mut().find(|(labels, _)| labels.contains(bits));
                Some(std::mem::take(case.map_or(default, |(_, block)| block)))
            }
            _ => None,
        }
    }
}

fn leaves(inst: &Inst) -> bool {
    matches!(inst, Inst::Break(_) | Inst::Continue(_) | Inst::Return(_))
}
