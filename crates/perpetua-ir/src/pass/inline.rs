//! Replaces calls of device functions by their code.

use std::borrow::Cow;

use crate::ir::{Base, Block, Body, Effect, Inst, Kernel, Local, LocalId, Op, Place, Stmt, Type, Value};

/// The kernel, its functions inlined if one of them has a loop: for passes that change loops by what only the kernel's body knows.
pub(super) fn with_loops_in_body(kernel: &Kernel) -> Cow<'_, Kernel> {
    let mut loops = false;
    for function in &kernel.functions {
        let block = &function.body.block;
        block.walk(&mut |stmt| loops |= matches!(stmt.inst, Inst::Loop(_)));
    }
    match loops {
        true => Cow::Owned(inline_functions(kernel)),
        false => Cow::Borrowed(kernel),
    }
}

/// A copy of `kernel` in which every device function is inlined wherever it is called and then dropped.
pub fn inline_functions(kernel: &Kernel) -> Kernel {
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

    /// The callee's variables stand behind those of the body.
    fn place(&self, place: Option<&mut Place>) {
        if let Some(Place {
            base: Base::Local(id),
            ..
        }) = place
        {
            id.0 += self.first_local;
        }
    }

    /// `depth`: loops and labelled blocks of the callee around this block.
    fn block(&self, block: &Block, depth: u32) -> Block {
        let mut out = Vec::with_capacity(block.0.len());
        for stmt in &block.0 {
            let inst = match &stmt.inst {
                Inst::Let(v, op) => {
                    let mut op = op.clone();
                    op.operands_mut(&mut |v| *v = self.value(*v));
                    self.place(op.place_mut());
                    Inst::Let(self.value(*v), op)
                }
                Inst::Do(effect) => {
                    let mut effect = effect.clone();
                    effect.operands_mut(&mut |v| *v = self.value(*v));
                    self.place(effect.place_mut());
                    Inst::Do(effect)
                }
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
