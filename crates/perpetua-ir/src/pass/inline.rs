//! Replaces calls of device functions by their code.

use crate::ir::{
    Base, Block, Body, Effect, Inst, Kernel, Local, LocalId, Op, Place, Step, Stmt, Type, Value,
};

/// A copy of `kernel` in which every device function is inlined wherever it is called and then dropped.
pub(crate) fn inline_functions(kernel: &Kernel) -> Kernel {
    // Functions call only those before them, so each is finished when a later one needs it.
    let mut bodies: Vec<Body> = Vec::new();
    for function in &kernel.functions {
        let body = expand(&function.body, kernel, &bodies);
        bodies.push(body);
    }
    let body = expand(&kernel.body, kernel, &bodies);
    Kernel {
        body,
        functions: Vec::new(),
        ..kernel.clone()
    }
}

fn expand(body: &Body, kernel: &Kernel, bodies: &[Body]) -> Body {
    let mut out = Body {
        values: body.values.clone(),
        locals: body.locals.clone(),
        block: Block::default(),
    };
    out.block = expand_block(&body.block, kernel, bodies, &mut out);
    out
}

fn expand_block(block: &Block, kernel: &Kernel, bodies: &[Body], out: &mut Body) -> Block {
    let mut statements = Vec::with_capacity(block.0.len());
    for stmt in &block.0 {
        let mut stmt = stmt.clone();
        if let Inst::Let(v, Op::Call(f, args)) = &stmt.inst {
            let index = *f as usize;
            let result = kernel.functions.get(index).and_then(|f| f.result.clone());
            if let Some(callee) = bodies.get(index) {
                paste(callee, args, result, *v, stmt.line, out, &mut statements);
                continue;
            }
        }
        for inner in stmt.inst.blocks_mut() {
            *inner = expand_block(inner, kernel, bodies, out);
        }
        statements.push(stmt);
    }
    Block(statements)
}

/// Appends `callee`'s code as a labelled block that stores its result in a fresh local, and loads that as `v`.
fn paste(
    callee: &Body,
    args: &[Value],
    result: Option<Type>,
    v: Value,
    line: u32,
    out: &mut Body,
    statements: &mut Vec<Stmt>,
) {
    let values: Vec<Value> = (0..callee.values.len())
        .map(|i| match args.get(i) {
            Some(arg) => *arg,
            None => {
                out.values.push(callee.values[i].clone());
                Value(out.values.len() as u32 - 1)
            }
        })
        .collect();
    let first_local = out.locals.len() as u32;
    out.locals.extend(callee.locals.iter().cloned());
    let slot = result.map(|ty| {
        out.locals.push(Local {
            name: "result".into(),
            ty,
        });
        LocalId(out.locals.len() as u32 - 1)
    });
    let renaming = Renaming {
        values,
        first_local,
        slot,
    };
    let code = renaming.block(&callee.block, 0);
    let push = |statements: &mut Vec<Stmt>, inst| statements.push(Stmt { line, inst });
    push(statements, Inst::Labeled(code));
    if let Some(slot) = slot {
        push(statements, Inst::Let(v, Op::Load(Place::local(slot), None)));
    }
}

struct Renaming {
    values: Vec<Value>,
    first_local: u32,
    slot: Option<LocalId>,
}

impl Renaming {
    fn value(&self, v: Value) -> Value {
        self.values.get(v.0 as usize).copied().unwrap_or(v)
    }

    fn place(&self, place: &Place) -> Place {
        Place {
            base: match place.base {
                Base::Local(id) => Base::Local(LocalId(id.0 + self.first_local)),
                other => other,
            },
            path: place
                .path
                .iter()
                .map(|step| match step {
                    Step::Index(v) => Step::Index(self.value(*v)),
                    Step::Field(i) => Step::Field(*i),
                })
                .collect(),
        }
    }

    fn all(&self, vs: &[Value]) -> Vec<Value> {
        vs.iter().map(|v| self.value(*v)).collect()
    }

    fn op(&self, op: &Op) -> Op {
        let v = |v: &Value| self.value(*v);
        match op {
            Op::Const(..)
            | Op::Zero(_)
            | Op::Param(_)
            | Op::Builtin(_)
            | Op::Len(..)
            | Op::IsDead
            | Op::Clock => op.clone(),
            Op::CatchFault(a) => Op::CatchFault(v(a)),
            Op::Unary(op, a) => Op::Unary(*op, v(a)),
            Op::Binary(op, a, b) => Op::Binary(*op, v(a), v(b)),
            Op::Ternary(op, a, b, c) => Op::Ternary(*op, v(a), v(b), v(c)),
            Op::Cast(to, a) => Op::Cast(*to, v(a)),
            Op::Bitcast(to, a) => Op::Bitcast(*to, v(a)),
            Op::Compose(ty, parts) => Op::Compose(ty.clone(), self.all(parts)),
            Op::Extract(a, i) => Op::Extract(v(a), *i),
            Op::Insert(a, i, b) => Op::Insert(v(a), *i, v(b)),
            Op::Load(place, sync) => Op::Load(self.place(place), *sync),
            Op::Atomic(op, place, a, sync) => Op::Atomic(*op, self.place(place), v(a), *sync),
            Op::CompareExchange {
                place,
                expected,
                new,
                sync,
            } => Op::CompareExchange {
                place: self.place(place),
                expected: v(expected),
                new: v(new),
                sync: *sync,
            },
            Op::Subgroup(op, a, lane) => Op::Subgroup(*op, v(a), lane.as_ref().map(v)),
            Op::Call(f, args) => Op::Call(*f, self.all(args)),
        }
    }

    fn effect(&self, effect: &Effect) -> Effect {
        match effect {
            Effect::Store(place, v, sync) => Effect::Store(self.place(place), self.value(*v), *sync),
            Effect::Barrier | Effect::Fence(_) | Effect::Converge | Effect::Meet => effect.clone(),
            Effect::Nap(v) => Effect::Nap(self.value(*v)),
            Effect::Print(pieces, args) => Effect::Print(pieces.clone(), self.all(args)),
            Effect::Fault(kind, operands) => Effect::Fault(*kind, self.all(operands)),
        }
    }

    /// `depth`: loops and labelled blocks of the callee around this block.
    fn block(&self, block: &Block, depth: u32) -> Block {
        let mut out = Vec::with_capacity(block.0.len());
        for stmt in &block.0 {
            let inst = match &stmt.inst {
                Inst::Let(v, op) => Inst::Let(self.value(*v), self.op(op)),
                Inst::Do(effect) => Inst::Do(self.effect(effect)),
                Inst::If(c, a, b) => Inst::If(self.value(*c), self.block(a, depth), self.block(b, depth)),
                Inst::Switch {
                    selector,
                    cases,
                    default,
                } => Inst::Switch {
                    selector: self.value(*selector),
                    cases: cases
                        .iter()
                        .map(|(labels, b)| (labels.clone(), self.block(b, depth)))
                        .collect(),
                    default: self.block(default, depth),
                },
                Inst::Loop(b) => Inst::Loop(self.block(b, depth + 1)),
                Inst::Labeled(b) => Inst::Labeled(self.block(b, depth + 1)),
                Inst::Break(d) => Inst::Break(*d),
                Inst::Continue(d) => Inst::Continue(*d),
                Inst::Return(v) => {
                    if let (Some(slot), Some(v)) = (self.slot, v) {
                        out.push(Stmt {
                            line: stmt.line,
                            inst: Inst::Do(Effect::Store(Place::local(slot), self.value(*v), None)),
                        });
                    }
                    Inst::Break(depth)
                }
            };
            out.push(Stmt {
                line: stmt.line,
                inst,
            });
        }
        Block(out)
    }
}
