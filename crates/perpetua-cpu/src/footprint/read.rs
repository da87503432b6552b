//! Reads a kernel's program out of its IR. Knows no launch.

use std::collections::HashMap;

use super::form::number;
use super::program::{Access, Act, Fill, Index, Length, Node, Program, Slot, UNKNOWN};
use super::slice::slice;
use perpetua_ir::ir::*;
use perpetua_ir::ops::{BinaryOp, TernaryOp};

/// Device functions are written out where they are called; a kernel that gets longer than this is not looked at.
const MOST: usize = 20_000;

/// Values of a kernel in which functions are written out.
fn inlined_len(kernel: &Kernel) -> usize {
    let mut lens: Vec<usize> = Vec::new();
    let len = |body: &Body, lens: &[usize]| {
        let mut len = body.values.len();
        body.block.walk(&mut |stmt| {
            if let Inst::Let(_, Op::Call(f, _)) = stmt.inst {
                len = len.saturating_add(lens.get(f as usize).copied().unwrap_or(0));
            }
        });
        len
    };
    // Functions call only those before them.
    for function in &kernel.functions {
        let own = len(&function.body, &lens);
        lens.push(own);
    }
    len(&kernel.body, &lens)
}

impl Program {
    /// `None` for a kernel that is too long. `conditions`: the variables that the values of numbered conditions are written to, by
    /// number, where what may stop a lane is asked for, too.
    pub(super) fn of(kernel: &Kernel, conditions: Option<&[(u32, LocalId)]>) -> Option<Program> {
        if inlined_len(kernel) > MOST {
            return None;
        }
        let kernel = perpetua_ir::pass::inline_functions(kernel);
        let body = &kernel.body;
        let mut reader = Reader {
            declarations: Declarations {
                kernel: &kernel,
                body,
            },
            program: Program::default(),
            values: vec![Vec::new(); body.values.len()],
            locals: Vec::new(),
            copies: HashMap::new(),
            assigned: Vec::new(),
            builtins: HashMap::new(),
            conditions,
        };
        reader.slot(Scalar::U64);
        for param in &kernel.params {
            reader.program.elements.push(match &param.kind {
                ParamKind::Buffer { element, .. } => element.size(),
                ParamKind::Value(_) => 0,
            });
        }
        for local in &body.locals {
            let slots = reader.slots(&local.ty);
            reader.locals.push(slots);
        }
        let mut nodes = Vec::new();
        reader.block(&body.block, &mut nodes)?;
        let mut program = Program {
            nodes,
            ..reader.program
        };
        slice(&mut program);
        Some(program)
    }
}

struct Reader<'a> {
    declarations: Declarations<'a>,
    program: Program,
    /// By value and by local variable: a slot for each scalar.
    values: Vec<Vec<Slot>>,
    locals: Vec<Vec<Slot>>,
    /// Of variables that have not been written to since: what was loaded of them.
    copies: HashMap<Slot, Slot>,
    /// Variables in the order in which they are written to.
    assigned: Vec<Slot>,
    /// The slots that are builtins.
    builtins: HashMap<Slot, Builtin>,
    conditions: Option<&'a [(u32, LocalId)]>,
}

impl Reader<'_> {
    fn slot(&mut self, s: Scalar) -> Slot {
        self.program.types.push(s);
        self.program.acts.push(None);
        self.program.types.len() as Slot - 1
    }

    fn slots(&mut self, ty: &Type) -> Vec<Slot> {
        let slot = |(s, _): (Scalar, u32)| if s.is_float() { UNKNOWN } else { self.slot(s) };
        ty.leaves().into_iter().map(slot).collect()
    }

    fn value(&self, v: Value) -> &[Slot] {
        self.values.get(v.0 as usize).map_or(&[], Vec::as_slice)
    }

    fn scalar(&self, v: Value) -> Slot {
        self.value(v).first().copied().unwrap_or(UNKNOWN)
    }

    fn ty(&self, v: Value) -> Option<Scalar> {
        self.declarations.value(v).ok()?.as_scalar()
    }

    fn act(&mut self, nodes: &mut Vec<Node>, s: Scalar, act: Act) -> Slot {
        let slot = self.slot(s);
        self.program.acts[slot as usize] = Some(act);
        nodes.push(Node::Let(slot, act));
        slot
    }

    fn fill(&mut self, s: Scalar, fill: Fill) -> Slot {
        let slot = self.slot(s);
        self.program.fills.push((slot, fill));
        if let Fill::Builtin(builtin) = fill {
            self.builtins.insert(slot, builtin);
        }
        slot
    }

    /// Values of which their types say all that is known.
    fn unknown(&mut self, nodes: &mut Vec<Node>, ty: &Type) -> Vec<Slot> {
        let leaf = |(s, _): (Scalar, u32)| match s.is_float() {
            true => UNKNOWN,
            false => self.act(nodes, s, Act::Between(i64::MIN, i64::MAX)),
        };
        ty.leaves().into_iter().map(leaf).collect()
    }

    fn block(&mut self, block: &Block, nodes: &mut Vec<Node>) -> Option<()> {
        block
            .0
            .iter()
            .try_for_each(|stmt| self.statement(&stmt.inst, nodes))
    }

    fn inner(&mut self, block: &Block) -> Option<Vec<Node>> {
        let (mut nodes, before) = (Vec::new(), self.copies.clone());
        self.block(block, &mut nodes)?;
        self.copies = before;
        Some(nodes)
    }

    /// What has been written to since then is no longer as it was loaded before.
    fn forget(&mut self, since: usize) {
        let written = self.assigned.get(since..).unwrap_or_default();
        self.copies.retain(|local, _| !written.contains(local));
    }

    /// Notes what may fault, last or be seen.
    fn stops(&self, nodes: &mut Vec<Node>) {
        if self.conditions.is_some() && !matches!(nodes.last(), Some(Node::Stops)) {
            nodes.push(Node::Stops);
        }
    }

    fn statement(&mut self, inst: &Inst, nodes: &mut Vec<Node>) -> Option<()> {
        let since = self.assigned.len();
        match inst {
            Inst::Let(v, op) => {
                let slots = self.op(*v, op, nodes)?;
                *self.values.get_mut(v.0 as usize)? = slots;
            }
            Inst::Do(Effect::Store(place, v, _)) => self.store(place, *v, nodes)?,
            // A lane that has faulted does nothing more.
            Inst::Do(Effect::Fault(..) | Effect::Panic(..)) => {
                self.stops(nodes);
                nodes.push(Node::Return);
            }
            Inst::Do(Effect::Device(..) | Effect::Print(..)) => self.stops(nodes),
            Inst::If(condition, then, otherwise) => {
                let (then, otherwise) = (self.inner(then)?, self.inner(otherwise)?);
                nodes.push(Node::If(self.scalar(*condition), then, otherwise));
            }
            Inst::Switch {
                selector,
                cases,
                default,
            } => {
                let case = |(labels, block): &(Vec<u64>, Block)| Some((labels.clone(), self.inner(block)?));
                let cases = cases.iter().map(case).collect::<Option<_>>()?;
                let (ty, default) = (self.ty(*selector)?, self.inner(default)?);
                nodes.push(Node::Switch(self.scalar(*selector), ty, cases, default));
            }
            Inst::Loop(block) => {
                self.copies.clear();
                let body = self.inner(block)?;
                self.stops(nodes);
                nodes.push(Node::Loop(body));
            }
            Inst::Labeled(block) => {
                let body = self.inner(block)?;
                nodes.push(Node::Labeled(body));
            }
            Inst::Break(depth) => nodes.push(Node::Break(*depth)),
            Inst::Continue(depth) => nodes.push(Node::Continue(*depth)),
            Inst::Return(_) => nodes.push(Node::Return),
        }
        self.forget(since);
        Some(())
    }

    fn op(&mut self, v: Value, op: &Op, nodes: &mut Vec<Node>) -> Option<Vec<Slot>> {
        let ty = self.declarations.value(v).ok()?;
        let own = ty.as_scalar().filter(|s| !s.is_float());
        // Nothing is known of floats, but that a comparison of some is a `bool`.
        let one = |this: &mut Self, nodes: &mut Vec<Node>, act: Act| match own {
            Some(s) => vec![this.act(nodes, s, act)],
            None => vec![UNKNOWN],
        };
        Some(match op {
            Op::Const(s, bits) if !s.is_float() => {
                vec![self.fill(*s, Fill::Constant(number(*s, *bits)))]
            }
            Op::Const(..) => vec![UNKNOWN],
            Op::Zero(ty) => {
                let leaves = ty.leaves().into_iter();
                leaves.map(|(s, _)| self.fill(s, Fill::Constant(0))).collect()
            }
            Op::Param(i) => {
                let leaf = |(s, offset): (Scalar, u32)| match s.is_float() {
                    true => UNKNOWN,
                    false => self.fill(s, Fill::Param(*i, offset)),
                };
                ty.leaves().into_iter().map(leaf).collect()
            }
            Op::Builtin(builtin) => vec![self.fill(Scalar::U32, Fill::Builtin(*builtin))],
            Op::Len(Base::Buffer(i), s) => vec![self.fill(*s, Fill::Len(*i))],
            Op::Len(Base::Shared(i), s) => {
                let size = self.declarations.kernel.shared.get(*i as usize)?.ty.size();
                vec![self.fill(*s, Fill::DynamicLen(size))]
            }
            Op::Unary(op, a) => {
                let act = Act::Unary(*op, self.ty(*a)?, self.scalar(*a));
                one(self, nodes, act)
            }
            Op::Binary(op, a, b) => {
                if matches!(op, BinaryOp::Div | BinaryOp::Rem) {
                    self.stops(nodes);
                }
                let ((s, t), (a, b)) = ((self.ty(*a)?, self.ty(*b)?), (self.scalar(*a), self.scalar(*b)));
                one(self, nodes, Act::Binary(*op, s, a, t, b))
            }
            Op::Ternary(TernaryOp::Select, a, b, c) => {
                let (a, b, c) = (self.scalar(*a), self.value(*b).to_vec(), self.value(*c).to_vec());
                let leaves = ty.leaves().into_iter().zip(b.into_iter().zip(c));
                let leaf = |((s, _), (b, c)): ((Scalar, u32), (Slot, Slot))| match s.is_float() {
                    true => UNKNOWN,
                    false => self.act(nodes, s, Act::Ternary(TernaryOp::Select, s, [a, b, c])),
                };
                leaves.map(leaf).collect()
            }
            Op::Ternary(op, a, b, c) => {
                let act = Act::Ternary(*op, self.ty(*a)?, [*a, *b, *c].map(|v| self.scalar(v)));
                one(self, nodes, act)
            }
            Op::Cast(to, a) if let Some(builtin) = self.builtin(*a).filter(|_| to.is_int()) => {
                vec![self.fill(*to, Fill::Builtin(builtin))]
            }
            Op::Cast(to, a) => {
                let act = Act::Cast(self.ty(*a)?, *to, self.scalar(*a));
                one(self, nodes, act)
            }
            Op::Bitcast(to, a) => {
                let from = self.ty(*a)?;
                match from.is_int() && to.is_int() {
                    true => one(self, nodes, Act::Cast(from, *to, self.scalar(*a))),
                    false => self.unknown(nodes, ty),
                }
            }
            Op::Compose(_, parts) => parts.iter().flat_map(|part| self.value(*part).to_vec()).collect(),
            Op::Extract(a, i) => {
                let whole = self.declarations.value(*a).ok()?;
                let start = whole.leaf_start(*i);
                let part = self.value(*a).get(start..start + ty.leaf_count())?;
                part.to_vec()
            }
            Op::Insert(a, i, b) => {
                let (start, part) = (ty.leaf_start(*i), self.value(*b).to_vec());
                let mut whole = self.value(*a).to_vec();
                whole.get_mut(start..start + part.len())?.copy_from_slice(&part);
                whole
            }
            Op::Load(place, _) => self.load(place, ty, nodes)?,
            Op::Atomic(_, place, ..) | Op::CompareExchange { place, .. } => {
                self.access(place, true, nodes)?;
                self.unknown(nodes, ty)
            }
            Op::Len(..) => self.unknown(nodes, ty),
            Op::Device(..) | Op::Call(..) => {
                self.stops(nodes);
                self.unknown(nodes, ty)
            }
        })
    }

    /// The builtin that a value is: no launch that is looked at has one that does not fit into 31 bits.
    fn builtin(&self, v: Value) -> Option<Builtin> {
        let slot = self.scalar(v);
        let is_whole = self.program.types.get(slot as usize)?.bits() >= 32;
        self.builtins.get(&slot).copied().filter(|_| is_whole)
    }

    /// The scalars of a local variable that a path leads to, and whether it leads there whatever its indices are.
    fn part(&self, id: LocalId, path: &[Step]) -> Option<(Vec<Slot>, bool)> {
        let local = self.declarations.body.locals.get(id.0 as usize)?;
        let (mut ty, mut slots) = (local.ty.clone(), self.locals.get(id.0 as usize)?.clone());
        for step in path {
            let Step::Field(i) = step else {
                return Some((slots, false));
            };
            let (start, part) = (ty.leaf_start(*i), ty.component(*i)?);
            slots = slots.get(start..start + part.leaf_count())?.to_vec();
            ty = part;
        }
        Some((slots, true))
    }

    fn load(&mut self, place: &Place, ty: &Type, nodes: &mut Vec<Node>) -> Option<Vec<Slot>> {
        match place.base {
            Base::Local(id) => {
                let (slots, exact) = self.part(id, &place.path)?;
                if !exact {
                    self.stops(nodes);
                    return Some(self.unknown(nodes, ty));
                }
                let copy = |from: Slot| match from {
                    UNKNOWN => UNKNOWN,
                    _ => {
                        let known = self.copies.get(&from).copied();
                        let s = self.program.types[from as usize];
                        let copy = known.unwrap_or_else(|| self.act(nodes, s, Act::Copy(from)));
                        self.copies.insert(from, copy);
                        copy
                    }
                };
                Some(slots.into_iter().map(copy).collect())
            }
            Base::Constant(i) => {
                self.stops(nodes);
                let table = self.declarations.kernel.constants.get(i as usize)?;
                let s = table.element;
                let values = table.data.iter().map(|bits| number(s, *bits));
                match (values.clone().min(), values.max()) {
                    (Some(low), Some(high)) if !s.is_float() && s != Scalar::U64 => {
                        Some(vec![self.act(nodes, s, Act::Between(low, high))])
                    }
                    _ => Some(self.unknown(nodes, ty)),
                }
            }
            Base::Buffer(_) | Base::Shared(_) => {
                self.access(place, false, nodes)?;
                Some(self.unknown(nodes, ty))
            }
        }
    }

    fn store(&mut self, place: &Place, v: Value, nodes: &mut Vec<Node>) -> Option<()> {
        let Base::Local(id) = place.base else {
            return self.access(place, true, nodes);
        };
        let number = |all: &[(u32, LocalId)]| all.iter().find(|(_, local)| *local == id).map(|(n, _)| *n);
        if let Some(number) = self.conditions.and_then(number) {
            nodes.push(Node::Condition(number, self.scalar(v)));
            return Some(());
        }
        let (slots, exact) = self.part(id, &place.path)?;
        if !exact {
            self.stops(nodes);
        }
        let values = self.value(v).to_vec();
        let from = |i: usize| match exact {
            true => values.get(i).copied().unwrap_or(UNKNOWN),
            false => UNKNOWN,
        };
        let known = slots.iter().enumerate().filter(|(_, to)| **to != UNKNOWN);
        nodes.extend(known.map(|(i, to)| Node::Assign(*to, from(i))));
        self.assigned.extend(slots);
        Some(())
    }

    fn access(&mut self, place: &Place, stores: bool, nodes: &mut Vec<Node>) -> Option<()> {
        let Base::Buffer(param) = place.base else {
            self.stops(nodes);
            return Some(());
        };
        let mut ty = match &self.declarations.kernel.params.get(param as usize)?.kind {
            ParamKind::Buffer { element, .. } => element.clone(),
            ParamKind::Value(_) => return None,
        };
        let (mut indices, mut offset) = (Vec::new(), 0);
        for (i, step) in place.path.iter().enumerate() {
            let (v, length) = match step {
                Step::Field(field) => {
                    offset += ty.component_offset(*field)?;
                    ty = ty.component(*field)?;
                    continue;
                }
                Step::Index(v) if i == 0 => (*v, Length::Buffer),
                Step::Index(v) => {
                    let length = Length::Fixed(ty.component_count());
                    ty = ty.component(0)?;
                    (*v, length)
                }
            };
            indices.push(Index {
                slot: self.scalar(v),
                ty: self.ty(v)?,
                length,
                size: ty.size(),
            });
        }
        nodes.push(Node::Access(Access {
            param,
            stores,
            indices,
            offset,
            size: ty.size(),
        }));
        Some(())
    }
}
