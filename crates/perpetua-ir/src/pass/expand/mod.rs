//! Replaces operators and casts that a target lacks by calls of generated device functions over simpler ones: each
//! operator is taken apart in one place, for every target alike.
//!
//! The result calls only what `native` accepts, provided that it accepts the basis: on integers of 32 bits (and of the
//! widths that the kernel uses) sums, products, shifts, logic, comparison, `select`, casts among integers and bit casts,
//! `count_ones`, `leading_zeros` and `reverse_bits`; on f32 (and f64 where used) the four operations, `sqrt`, `trunc`,
//! comparison and casts to and from 32-bit integers. Where no expansion is known, the operation stays.

mod code;
mod convert;
mod float;
mod fma;
mod integer;

use std::collections::{HashMap, HashSet};

use crate::ir::{Block, Body, Function, Inst, Kernel, Op, Scalar, Type, Value};
use crate::ops::eval::result_scalar;
use crate::ops::{BinaryOp, Second, TernaryOp, UnaryOp};
use code::Code;

/// An operation at the types that tell its instances apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Operator on an operand of this type.
    Unary(UnaryOp, Scalar),
    /// Operator on a first operand of this type.
    Binary(BinaryOp, Scalar),
    /// Operator on a first operand of this type; `select` is [`Operation::Select`].
    Ternary(TernaryOp, Scalar),
    /// Choice between two values of this type.
    Select(Type),
    /// Rust's `as`.
    Cast {
        /// Operand's type.
        from: Scalar,
        /// Result's type.
        to: Scalar,
    },
}

impl Operation {
    fn name(&self) -> String {
        match self {
            Operation::Unary(op, s) => format!("{}_{s}", op.name()),
            Operation::Binary(op, s) => format!("{}_{s}", op.name()),
            Operation::Ternary(op, s) => format!("{}_{s}", op.name()),
            Operation::Select(ty) => {
                let ty: String = ty
                    .to_string()
                    .chars()
                    .map(|c| if c.is_alphanumeric() { c } else { '_' })
                    .collect();
                format!("select_{}", ty.trim_matches('_'))
            }
            Operation::Cast { from, to } => format!("{from}_to_{to}"),
        }
    }
}

/// The kernel with every operation that `native` refuses replaced by a call, where an expansion is known.
pub fn expand(mut kernel: Kernel, native: &dyn Fn(&Operation) -> bool) -> Kernel {
    let mut expander = Expander {
        native,
        names: kernel
            .functions
            .iter()
            .map(|f| f.name.clone())
            .chain([kernel.name.clone()])
            .collect(),
        functions: Vec::new(),
        made: HashMap::new(),
    };
    let mut bodies: Vec<&mut Body> = kernel.functions.iter_mut().map(|f| &mut f.body).collect();
    bodies.push(&mut kernel.body);
    // First find everything that is needed: generated functions come before all others.
    let mut plans = Vec::new();
    for body in &mut bodies {
        let mut plan = Vec::new();
        expander.plan(&body.block, &body.values, &mut plan);
        plans.push(plan);
    }
    let shift = expander.functions.len() as u32;
    if shift == 0 {
        return kernel;
    }
    for (body, plan) in bodies.into_iter().zip(plans) {
        let mut plan = plan.into_iter();
        rewrite(body, &mut plan, shift);
    }
    expander.functions.append(&mut kernel.functions);
    kernel.functions = expander.functions;
    kernel
}

struct Expander<'a> {
    native: &'a dyn Fn(&Operation) -> bool,
    names: HashSet<String>,
    functions: Vec<Function>,
    made: HashMap<Operation, Option<u32>>,
}

impl Expander<'_> {
    /// For each operation statement of `block`, in order, the generated function that replaces it.
    fn plan(&mut self, block: &Block, values: &[Type], plan: &mut Vec<Option<u32>>) {
        block.walk(&mut |stmt| {
            if let Inst::Let(_, op) = &stmt.inst {
                plan.push(operation(op, values).and_then(|o| self.replacement(&o)));
            }
        });
    }

    fn replacement(&mut self, operation: &Operation) -> Option<u32> {
        if (self.native)(operation) {
            return None;
        }
        if let Some(made) = self.made.get(operation) {
            return *made;
        }
        let made = self.make(operation);
        self.made.insert(operation.clone(), made);
        made
    }

    fn make(&mut self, operation: &Operation) -> Option<u32> {
        let mut name = operation.name();
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        let mut function = build(operation, name)?;
        let mut plan = Vec::new();
        self.plan(&function.body.block, &function.body.values, &mut plan);
        rewrite(&mut function.body, &mut plan.into_iter(), 0);
        self.functions.push(function);
        Some(self.functions.len() as u32 - 1)
    }
}

fn scalar(values: &[Type], v: Value) -> Option<Scalar> {
    values.get(v.0 as usize).and_then(Type::as_scalar)
}

/// What `op` is an instance of; `None` for what no expansion concerns.
fn operation(op: &Op, values: &[Type]) -> Option<Operation> {
    Some(match op {
        Op::Unary(op, a) => Operation::Unary(*op, scalar(values, *a)?),
        Op::Binary(op, a, _) => Operation::Binary(*op, scalar(values, *a)?),
        Op::Ternary(TernaryOp::Select, _, a, _) => Operation::Select(values.get(a.0 as usize)?.clone()),
        Op::Ternary(op, a, ..) => Operation::Ternary(*op, scalar(values, *a)?),
        Op::Cast(to, a) => {
            let from = scalar(values, *a)?;
            if from == *to {
                return None;
            }
            Operation::Cast { from, to: *to }
        }
        _ => return None,
    })
}

/// Replaces the planned operations of `body` by calls and moves the other calls up by `shift`.
fn rewrite(body: &mut Body, plan: &mut dyn Iterator<Item = Option<u32>>, shift: u32) {
    let mut block = std::mem::take(&mut body.block);
    rewrite_block(&mut block, &mut body.values, plan, shift);
    body.block = block;
}

fn rewrite_block(
    block: &mut Block,
    values: &mut Vec<Type>,
    plan: &mut dyn Iterator<Item = Option<u32>>,
    shift: u32,
) {
    let mut out = Vec::with_capacity(block.0.len());
    for mut stmt in std::mem::take(&mut block.0) {
        if let Inst::Let(_, op) = &mut stmt.inst {
            match (plan.next().flatten(), &mut *op) {
                (Some(f), _) => {
                    let mut args = Vec::new();
                    op.operands(&mut |v| args.push(v));
                    if let (Op::Binary(o, _, amount), Some(last)) = (&*op, args.last_mut())
                        && o.row().second == Second::Amount
                        && scalar(values, *amount) != Some(Scalar::U32)
                    {
                        // Amounts of any integer type arrive as u32: only their low bits count.
                        let narrowed = Value(values.len() as u32);
                        values.push(Type::U32);
                        out.push(crate::ir::Stmt {
                            line: stmt.line,
                            inst: Inst::Let(narrowed, Op::Cast(Scalar::U32, *amount)),
                        });
                        *last = narrowed;
                    }
                    *op = Op::Call(f, args);
                }
                (None, Op::Call(f, _)) => *f += shift,
                _ => {}
            }
        }
        for inner in stmt.inst.blocks_mut() {
            rewrite_block(inner, values, plan, shift);
        }
        out.push(stmt);
    }
    block.0 = out;
}

fn build(operation: &Operation, name: String) -> Option<Function> {
    let result = |row: &crate::ops::Row, s: Scalar| result_scalar(row.result, s);
    let mut known = true;
    // A wrong last value is never seen: `known` drops the function.
    let mut keep = |v: Option<Value>, x: Value| {
        known = v.is_some();
        v.unwrap_or(x)
    };
    let function = match operation {
        Operation::Unary(op, s) => {
            let to = result(op.row(), *s);
            Code::function(name, &[("x", (*s).into())], to.into(), |c, x| {
                let v = if s.is_float() {
                    float::unary(c, *op, x[0])
                } else {
                    integer::unary(c, *op, x[0])
                };
                keep(v, x[0])
            })
        }
        Operation::Binary(op, s) => {
            let to = result(op.row(), *s);
            let second = match op.row().second {
                Second::Same => *s,
                Second::Amount => Scalar::U32,
            };
            let names = [("x", (*s).into()), ("y", second.into())];
            Code::function(name, &names, to.into(), |c, x| {
                let v = if s.is_float() {
                    float::binary(c, *op, x[0], x[1])
                } else {
                    integer::binary(c, *op, x[0], x[1])
                };
                keep(v, x[0])
            })
        }
        Operation::Ternary(op, s) => {
            let ty = Type::Scalar(*s);
            let names = [("x", ty.clone()), ("y", ty.clone()), ("z", ty.clone())];
            Code::function(name, &names, ty, |c, x| {
                let v = float::ternary(c, *op, x[0], x[1], x[2]);
                let is_fma = *op == TernaryOp::Fma;
                let v = v.or_else(|| is_fma.then(|| fma::fma(c, x[0], x[1], x[2])));
                keep(v, x[0])
            })
        }
        Operation::Select(ty) => {
            let names = [("condition", Type::BOOL), ("x", ty.clone()), ("y", ty.clone())];
            Code::function(name, &names, ty.clone(), |c, x| {
                let then = x[1];
                c.if_(x[0], |c| c.ret(then));
                x[2]
            })
        }
        Operation::Cast { from, to } => {
            Code::function(name, &[("x", (*from).into())], (*to).into(), |c, x| {
                let v = convert::cast(c, *to, x[0]);
                keep(v, x[0])
            })
        }
    };
    known.then_some(function)
}
