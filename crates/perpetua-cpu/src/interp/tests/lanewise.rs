//! A second reading of the IR, as plain as can be: one lane after another, each statement by itself, values as lists
//! of bits. For kernels whose lanes have nothing to do with each other.

use crate::eval::*;
use perpetua_ir::fault::Fault;
use perpetua_ir::ir::*;

/// How a block ends.
enum Flow {
    Next,
    Break(u32),
    Continue(u32),
    Return(Vec<u64>),
    Dead,
}

/// What a lane came to.
pub(super) struct Lane<'a> {
    kernel: &'a Kernel,
    buffers: &'a mut [Vec<u32>],
    values: &'a [u32],
    pub(super) block: u32,
    pub(super) thread: u32,
    block_dim: u32,
    /// Kind, line and operands of its fault.
    pub(super) fault: Option<(FaultKind, u32, Vec<u64>)>,
}

struct Frame<'a> {
    body: &'a Body,
    values: Vec<Vec<u64>>,
    locals: Vec<Vec<u64>>,
    line: u32,
}

/// Runs every lane of a one-dimensional launch; gives those that faulted. Value parameters, which are `u32`, come
/// after the buffers, which are of `u32`.
pub(super) fn run(
    kernel: &Kernel,
    (grid, block_dim): (u32, u32),
    buffers: &mut [Vec<u32>],
    values: &[u32],
) -> Vec<(u32, u32, FaultKind, u32, Vec<u64>)> {
    let mut faults = Vec::new();
    for block in 0..grid {
        for thread in 0..block_dim {
            let mut lane = Lane {
                kernel,
                buffers,
                values,
                block,
                thread,
                block_dim,
                fault: None,
            };
            lane.body(&kernel.body, Vec::new());
            if let Some((kind, line, operands)) = lane.fault {
                faults.push((block, thread, kind, line, operands));
            }
        }
    }
    faults
}

/// Whether the interpreter's fault is one of those.
pub(super) fn among(fault: &Fault, faults: &[(u32, u32, FaultKind, u32, Vec<u64>)]) -> bool {
    faults.iter().any(|(block, thread, kind, line, operands)| {
        fault.block == [*block, 0, 0]
            && fault.thread == [*thread, 0, 0]
            && fault.site.kind == *kind
            && fault.site.line == *line
            && fault.operands[..operands.len()] == operands[..]
    })
}

fn extend(s: Scalar, bits: u64) -> u64 {
    let shift = 64 - s.size() * 8;
    if s.is_signed_int() {
        (((bits << shift) as i64) >> shift) as u64
    } else {
        bits
    }
}

impl Lane<'_> {
    fn body(&mut self, body: &Body, params: Vec<Vec<u64>>) -> Flow {
        let mut frame = Frame {
            body,
            values: vec![Vec::new(); body.values.len()],
            // Nothing reads them before they are written; should anything, it shows.
            locals: body
                .locals
                .iter()
                .map(|l| vec![0xdddd_dddd; l.ty.leaf_count()])
                .collect(),
            line: 0,
        };
        frame
            .values
            .iter_mut()
            .zip(params)
            .for_each(|(to, from)| *to = from);
        self.block(&mut frame, &body.block)
    }

    fn block(&mut self, f: &mut Frame<'_>, block: &Block) -> Flow {
        for stmt in &block.0 {
            f.line = stmt.line;
            match self.stmt(f, &stmt.inst) {
                Flow::Next => {}
                other => return other,
            }
        }
        Flow::Next
    }

    fn stmt(&mut self, f: &mut Frame<'_>, inst: &Inst) -> Flow {
        match inst {
            Inst::Let(v, op) => match self.op(f, op) {
                Some(bits) => {
                    f.values[v.0 as usize] = bits;
                    Flow::Next
                }
                None => Flow::Dead,
            },
            Inst::Do(Effect::Store(place, v, _)) => {
                let value = f.values[v.0 as usize].clone();
                match self.leaves(f, place) {
                    Some(at) => {
                        at.into_iter()
                            .zip(value)
                            .for_each(|(at, bits)| self.write(f, place.base, at, bits));
                        Flow::Next
                    }
                    None => Flow::Dead,
                }
            }
            Inst::Do(fault @ (Effect::Fault(.., operands) | Effect::Panic(_, operands))) => {
                let operands = operands
                    .iter()
                    .map(|v| extend(scalar(f, *v), one(f, *v)))
                    .collect();
                let kind = match fault {
                    Effect::Fault(kind, ..) => *kind,
                    _ => FaultKind::Panic,
                };
                self.fault = Some((kind, f.line, operands));
                Flow::Dead
            }
            Inst::Do(_) => Flow::Next,
            Inst::If(c, then, otherwise) => {
                let block = if one(f, *c) != 0 { then } else { otherwise };
                self.block(f, block)
            }
            Inst::Switch {
                selector,
                cases,
                default,
            } => {
                let selected = one(f, *selector);
                let case = cases.iter().find(|(labels, _)| labels.contains(&selected));
                self.block(f, case.map_or(default, |(_, block)| block))
            }
            Inst::Loop(block) => loop {
                match self.block(f, block) {
                    Flow::Next | Flow::Continue(0) => {}
                    Flow::Break(0) => return Flow::Next,
                    Flow::Break(n) => return Flow::Break(n - 1),
                    Flow::Continue(n) => return Flow::Continue(n - 1),
                    other => return other,
                }
            },
            Inst::Labeled(block) => match self.block(f, block) {
                Flow::Break(0) => Flow::Next,
                Flow::Break(n) => Flow::Break(n - 1),
                Flow::Continue(n) => Flow::Continue(n - 1),
                other => other,
            },
            Inst::Break(n) => Flow::Break(*n),
            Inst::Continue(n) => Flow::Continue(*n),
            Inst::Return(v) => Flow::Return(v.map_or_else(Vec::new, |v| f.values[v.0 as usize].clone())),
        }
    }

    /// `None`: the lane has faulted.
    fn op(&mut self, f: &mut Frame<'_>, op: &Op) -> Option<Vec<u64>> {
        Some(match op {
            Op::Const(_, bits) => vec![*bits],
            Op::Zero(ty) => vec![0; ty.leaf_count()],
            Op::Param(i) => vec![self.values[*i as usize - self.buffers.len()].into()],
            Op::Builtin(b) => vec![u64::from(match b {
                Builtin::ThreadIdx(Axis::X) => self.thread,
                Builtin::BlockIdx(Axis::X) => self.block,
                Builtin::BlockDim(Axis::X) => self.block_dim,
                other => panic!("{other:?} is not for lanes by themselves"),
            })],
            Op::Unary(op, a) => vec![eval_unary(*op, scalar(f, *a), one(f, *a))],
            Op::Binary(op, a, b) => {
                let (s, t) = (scalar(f, *a), scalar(f, *b));
                match eval_binary(*op, s, one(f, *a), one(f, *b)) {
                    Ok(bits) => vec![bits],
                    Err(kind) => {
                        let mut operands = vec![extend(s, one(f, *a))];
                        if kind == FaultKind::DivisionOverflow {
                            operands.push(extend(t, one(f, *b)));
                        }
                        self.fault = Some((kind, f.line, operands));
                        return None;
                    }
                }
            }
            Op::Ternary(perpetua_ir::ops::TernaryOp::Select, c, a, b) => {
                f.values[if one(f, *c) != 0 { a.0 } else { b.0 } as usize].clone()
            }
            Op::Ternary(op, a, b, c) => {
                vec![eval_ternary(
                    *op,
                    scalar(f, *a),
                    one(f, *a),
                    one(f, *b),
                    one(f, *c),
                )]
            }
            Op::Cast(to, a) => vec![eval_cast(scalar(f, *a), *to, one(f, *a))],
            Op::Bitcast(_, a) => f.values[a.0 as usize].clone(),
            Op::Compose(_, parts) => parts
                .iter()
                .flat_map(|v| f.values[v.0 as usize].clone())
                .collect(),
            Op::Extract(a, i) => {
                let ty = &f.body.values[a.0 as usize];
                let (start, n) = (ty.leaf_start(*i), ty.component(*i).unwrap().leaf_count());
                f.values[a.0 as usize][start..start + n].to_vec()
            }
            Op::Insert(a, i, part) => {
                let start = f.body.values[a.0 as usize].leaf_start(*i);
                let mut bits = f.values[a.0 as usize].clone();
                let part = f.values[part.0 as usize].clone();
                bits[start..start + part.len()].copy_from_slice(&part);
                bits
            }
            Op::Load(place, _) => {
                let at = self.leaves(f, place)?;
                at.into_iter().map(|at| self.read(f, place.base, at)).collect()
            }
            Op::Len(Base::Buffer(i), _) => vec![self.buffers[*i as usize].len() as u64],
            Op::Call(i, args) => {
                let args = args.iter().map(|v| f.values[v.0 as usize].clone()).collect();
                match self.body(&self.kernel.functions[*i as usize].body, args) {
                    Flow::Return(bits) => bits,
                    Flow::Dead => return None,
                    _ => Vec::new(),
                }
            }
            other => panic!("{other:?} is not for lanes by themselves"),
        })
    }

    /// Numbers of the leaves of a place from its base; a buffer's elements are one leaf each.
    fn leaves(&mut self, f: &Frame<'_>, place: &Place) -> Option<Vec<usize>> {
        let mut steps = place.path.iter();
        let (mut ty, mut at) = match place.base {
            Base::Local(id) => (f.body.locals[id.0 as usize].ty.clone(), 0),
            base => {
                let len = match base {
                    Base::Buffer(i) => self.buffers[i as usize].len() as u64,
                    Base::Constant(i) => self.kernel.constants[i as usize].data.len() as u64,
                    other => panic!("{other:?} is not for lanes by themselves"),
                };
                let Some(Step::Index(v)) = steps.next() else {
                    panic!("no index")
                };
                (Type::U32, self.index(f, *v, len)?)
            }
        };
        for step in steps {
            let i = match step {
                Step::Index(v) => self.index(f, *v, ty.component_count().into())? as u32,
                Step::Field(i) => *i,
            };
            at += ty.leaf_start(i);
            ty = ty.component(i).unwrap();
        }
        Some((at..at + ty.leaf_count()).collect())
    }

    fn index(&mut self, f: &Frame<'_>, v: Value, len: u64) -> Option<usize> {
        let index = extend(scalar(f, v), one(f, v));
        if index < len {
            return Some(index as usize);
        }
        self.fault = Some((FaultKind::IndexOutOfBounds, f.line, vec![index, len]));
        None
    }

    fn read(&self, f: &Frame<'_>, base: Base, at: usize) -> u64 {
        match base {
            Base::Local(id) => f.locals[id.0 as usize][at],
            Base::Buffer(i) => self.buffers[i as usize][at].into(),
            Base::Constant(i) => self.kernel.constants[i as usize].data[at],
            other => panic!("{other:?} is not for lanes by themselves"),
        }
    }

    fn write(&mut self, f: &mut Frame<'_>, base: Base, at: usize, bits: u64) {
        match base {
            Base::Local(id) => f.locals[id.0 as usize][at] = bits,
            Base::Buffer(i) => self.buffers[i as usize][at] = bits as u32,
            other => panic!("{other:?} is not for lanes by themselves"),
        }
    }
}

fn scalar(f: &Frame<'_>, v: Value) -> Scalar {
    f.body.values[v.0 as usize].as_scalar().unwrap()
}

fn one(f: &Frame<'_>, v: Value) -> u64 {
    f.values[v.0 as usize][0]
}
