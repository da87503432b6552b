//! The reader: walks over the flat program once, following what registers hold, and functions where they are called.

use std::collections::{HashMap, HashSet};

use super::super::{MOST_OPERATIONS, Refusal};
use super::*;
use perpetua_ir::ir::DeviceOp;

pub(in super::super) fn read(program: &Program) -> Result<Tree, Refusal> {
    if !matches!(program.checks, Checks::On | Checks::Off) {
        return Err(Refusal::ChecksInStatements);
    }
    if program.stays {
        return Err(Refusal::Stays);
    }
    if program.stages.is_some() {
        return Err(Refusal::Stages);
    }
    let mut starts = HashSet::new();
    let mut assigned = HashSet::new();
    for code in &program.code {
        match code {
            Code::Repeat { start, .. } => {
                starts.insert(*start);
            }
            Code::Assign { to, .. } => {
                assigned.insert(*to);
            }
            _ => {}
        }
    }
    for place in &program.privates {
        assigned.extend(&place.registers);
    }
    let mut reader = Reader {
        program,
        starts,
        assigned,
        tree: Tree {
            nodes: Vec::new(),
            values: Vec::new(),
            frames: 0,
            choices: HashMap::new(),
            arrays: Vec::new(),
            count: 0,
            meets: false,
            exchanges: false,
        },
        names: HashMap::new(),
        targets: Vec::new(),
        at: 0,
    };
    for (number, (reg, fill)) in program.fills.iter().enumerate() {
        let v = reader.fresh(*reg);
        let info = &mut reader.tree.values[v.0 as usize];
        info.fill = Some(number as u32);
        info.bool = matches!(fill, Fill::Bool { .. });
        reader.names.insert(*reg, v);
    }
    let mut pc = program.entry;
    reader.tree.nodes = reader.block(&mut pc)?;
    simplify::simplify(&mut reader.tree);
    reader.tree.bools();
    Ok(reader.tree)
}

struct Reader<'a> {
    program: &'a Program,
    /// Where loops' bodies start.
    starts: HashSet<Pc>,
    /// Registers of variables.
    assigned: HashSet<Reg>,
    tree: Tree,
    /// What registers hold at this point.
    names: HashMap<Reg, V>,
    /// Masks that lanes may leave to.
    targets: Vec<(Mask, Option<Frame>, Leaving)>,
    at: u32,
}

impl Reader<'_> {
    fn fresh(&mut self, reg: Reg) -> V {
        let size = self.program.registers.get(reg as usize).copied().unwrap_or(8);
        self.tree.values.push(ValueInfo {
            size,
            bool: false,
            fill: None,
            array: None,
            variable: false,
        });
        V(self.tree.values.len() as u32 - 1)
    }

    fn get(&mut self, reg: Reg) -> V {
        match self.names.get(&reg) {
            Some(v) => *v,
            None => {
                let v = self.fresh(reg);
                self.tree.values[v.0 as usize].variable = self.assigned.contains(&reg);
                self.names.insert(reg, v);
                v
            }
        }
    }

    fn define(&mut self, reg: Reg) -> V {
        let v = self.fresh(reg);
        self.names.insert(reg, v);
        v
    }

    fn frame(&mut self) -> Frame {
        self.tree.frames += 1;
        self.tree.frames - 1
    }

    fn next(&mut self) -> Result<u32, Refusal> {
        self.at += 1;
        self.tree.count = self.at;
        if self.at > MOST_OPERATIONS {
            return Err(Refusal::TooLarge);
        }
        Ok(self.at)
    }

    /// The position of a construct that lanes choose in.
    fn choice(&mut self, pc: Pc) -> Result<u32, Refusal> {
        let at = self.next()?;
        self.tree.choices.insert(at, pc);
        Ok(at)
    }

    /// Reads until the operation that ends the construct around, which it passes.
    fn block(&mut self, pc: &mut Pc) -> Result<Vec<Node>, Refusal> {
        let mut nodes = Vec::new();
        loop {
            let at_pc = *pc;
            let Some(code) = self.program.code.get(at_pc as usize) else {
                return Ok(nodes);
            };
            *pc += 1;
            let node = match code {
                Code::Join { .. }
                | Code::Else { .. }
                | Code::EndCase { .. }
                | Code::Repeat { .. }
                | Code::Return { .. }
                | Code::End => return Ok(nodes),
                Code::IfThen { condition, .. } => {
                    let condition = self.get(*condition);
                    let at = self.choice(at_pc)?;
                    let then = self.block(pc)?;
                    let end = self.next()?;
                    Node::If {
                        at,
                        end,
                        condition,
                        then,
                        otherwise: Vec::new(),
                    }
                }
                Code::IfElse { condition, .. } => {
                    let condition = self.get(*condition);
                    let at = self.choice(at_pc)?;
                    let then = self.block(pc)?;
                    let otherwise = self.block(pc)?;
                    let end = self.next()?;
                    Node::If {
                        at,
                        end,
                        condition,
                        then,
                        otherwise,
                    }
                }
                Code::Switch { .. } => {
                    let at = self.choice(at_pc)?;
                    self.switch(at, pc)?
                }
                Code::Clear { mask } => {
                    let frame = self.frame();
                    let at = self.next()?;
                    if self.starts.contains(&(at_pc + 2)) {
                        let Some(Code::Clear { mask: continued }) = self.program.code.get(*pc as usize)
                        else {
                            return Err(Refusal::Unknown("a loop without its masks"));
                        };
                        *pc += 1;
                        self.targets.push((*mask, Some(frame), Leaving::Break));
                        self.targets.push((*continued, Some(frame), Leaving::Continue));
                        let body = self.block(pc)?;
                        self.targets.truncate(self.targets.len() - 2);
                        let end = self.next()?;
                        Node::Loop { at, end, frame, body }
                    } else {
                        self.targets.push((*mask, Some(frame), Leaving::Break));
                        let body = self.block(pc)?;
                        self.targets.pop();
                        let end = self.next()?;
                        Node::Labeled { at, end, frame, body }
                    }
                }
                Code::Call { entry, returned } => {
                    let frame = self.frame();
                    let at = self.next()?;
                    let mut inner = *entry;
                    self.forget(inner);
                    self.targets.push((*returned, Some(frame), Leaving::Break));
                    let body = self.block(&mut inner)?;
                    self.targets.pop();
                    let end = self.next()?;
                    Node::Labeled { at, end, frame, body }
                }
                Code::Leave { into } => {
                    self.next()?;
                    let target = self.targets.iter().rev().find(|(mask, ..)| mask == into);
                    let (frame, how) =
                        target.map_or((None, Leaving::Break), |(_, frame, how)| (*frame, *how));
                    Node::Leave { frame, how }
                }
                code => self.operation(at_pc, code)?,
            };
            nodes.push(node);
        }
    }

    /// A function's variables are new in each call.
    fn forget(&mut self, entry: Pc) {
        for code in self.program.code.iter().skip(entry as usize) {
            match code {
                Code::Assign { to, .. } => {
                    self.names.remove(to);
                }
                Code::PrivateLoad { place } | Code::PrivateStore { place } => {
                    let program = self.program;
                    for reg in &program.privates[*place as usize].registers {
                        self.names.remove(reg);
                    }
                }
                Code::Return { .. } => break,
                _ => {}
            }
        }
    }

    fn switch(&mut self, at: u32, pc: &mut Pc) -> Result<Node, Refusal> {
        let (mut cases, mut chosen) = (Vec::new(), None);
        loop {
            let code = self.program.code.get(*pc as usize);
            *pc += 1;
            match code {
                Some(Code::Case {
                    selector,
                    size,
                    labels,
                    ..
                }) => {
                    chosen = Some((self.get(*selector), *size));
                    cases.push((labels.clone(), self.block(pc)?));
                }
                Some(Code::Default { .. }) => {
                    let default = self.block(pc)?;
                    let end = self.next()?;
                    return Ok(match chosen {
                        Some((selector, size)) => Node::Switch {
                            at,
                            end,
                            selector,
                            size,
                            cases,
                            default,
                        },
                        // No case: a block, which nobody leaves by name.
                        None => Node::Labeled {
                            at,
                            end,
                            frame: self.frame(),
                            body: default,
                        },
                    });
                }
                _ => return Err(Refusal::Unknown("a switch without its end")),
            }
        }
    }

    fn all(&mut self, regs: impl IntoIterator<Item = Reg>) -> Vec<V> {
        regs.into_iter().map(|reg| self.get(reg)).collect()
    }

    fn defined(&mut self, regs: impl IntoIterator<Item = Reg>) -> Vec<V> {
        regs.into_iter().map(|reg| self.define(reg)).collect()
    }

    fn array(&mut self, place: u32) -> u32 {
        let program = self.program;
        let registers = &program.privates[place as usize].registers;
        let elements = self.all(registers.iter().copied());
        let known = elements
            .first()
            .and_then(|v| self.tree.values[v.0 as usize].array);
        if let Some((array, _)) = known {
            return array;
        }
        let array = self.tree.arrays.len() as u32;
        for (number, v) in elements.iter().enumerate() {
            self.tree.values[v.0 as usize].array = Some((array, number as u32));
        }
        self.tree.arrays.push(elements);
        array
    }

    fn operation(&mut self, pc: Pc, code: &Code) -> Result<Node, Refusal> {
        let program = self.program;
        let (act, outs) = match code {
            Code::Unary { op, s, a, out } => (Act::Unary(*op, *s, self.get(*a)), vec![self.define(*out)]),
            Code::Binary { op, s, a, b, out } => {
                let act = Act::Binary(*op, *s, self.get(*a), self.get(*b));
                (act, vec![self.define(*out)])
            }
            Code::Divide {
                op,
                s,
                a,
                b,
                out,
                site,
            } => {
                let act = Act::Divide(*op, *s, self.get(*a), self.get(*b), *site);
                (act, vec![self.define(*out)])
            }
            Code::Ternary { op, s, a, b, c, out } => {
                let act = Act::Ternary(*op, *s, self.get(*a), self.get(*b), self.get(*c));
                (act, vec![self.define(*out)])
            }
            Code::Cast { from, to, a, out } => {
                let act = Act::Cast(*from, *to, self.get(*a));
                (act, vec![self.define(*out)])
            }
            Code::Copy { from, to, .. } => (Act::Move(self.get(*from)), vec![self.define(*to)]),
            Code::Assign { from, to, .. } => (Act::Move(self.get(*from)), vec![self.get(*to)]),
            Code::Load { access } => {
                let place = &program.accesses[*access as usize];
                let index = self.all(place.steps.iter().map(|s| s.index));
                let outs = self.defined(place.leaves.iter().map(|(_, _, reg)| *reg));
                let (kind, access, values) = (AccessKind::Load, *access, Vec::new());
                (
                    Act::Access {
                        access,
                        kind,
                        index,
                        values,
                    },
                    outs,
                )
            }
            Code::Store { access } => {
                let place = &program.accesses[*access as usize];
                let index = self.all(place.steps.iter().map(|s| s.index));
                let values = self.all(place.leaves.iter().map(|(_, _, reg)| *reg));
                let (kind, access) = (AccessKind::Store, *access);
                (
                    Act::Access {
                        access,
                        kind,
                        index,
                        values,
                    },
                    Vec::new(),
                )
            }
            Code::Atomic {
                access,
                s,
                act,
                sync,
                out,
            } => {
                let place = &program.accesses[*access as usize];
                let index = self.all(place.steps.iter().map(|s| s.index));
                let (atomic, values) = match act {
                    AtomicAct::Load => (AtomicKind::Load, Vec::new()),
                    AtomicAct::Store { value } => (AtomicKind::Store, vec![self.get(*value)]),
                    AtomicAct::Update { op, value } => (AtomicKind::Update(*op), vec![self.get(*value)]),
                    AtomicAct::CompareExchange { expected, new } => (
                        AtomicKind::CompareExchange,
                        vec![self.get(*expected), self.get(*new)],
                    ),
                };
                let outs = match act {
                    AtomicAct::Store { .. } => Vec::new(),
                    _ => vec![self.define(*out)],
                };
                let (kind, access) = (AccessKind::Atomic(*s, atomic, sync.order), *access);
                (
                    Act::Access {
                        access,
                        kind,
                        index,
                        values,
                    },
                    outs,
                )
            }
            Code::LoadWords { access, .. } | Code::StoreWords { access, .. } => {
                let stores = matches!(code, Code::StoreWords { .. });
                let place = &program.accesses[*access as usize];
                let index = self.all(place.steps.iter().map(|s| s.index));
                let words = place.leaves.iter().map(|(_, _, reg)| *reg);
                let (values, outs) = match stores {
                    true => (self.all(words), Vec::new()),
                    false => (Vec::new(), self.defined(words)),
                };
                let (access, kind) = (*access, AccessKind::Words { stores });
                let act = Act::Access {
                    access,
                    kind,
                    index,
                    values,
                };
                (act, outs)
            }
            Code::PrivateLoad { place } => {
                let array = self.array(*place);
                let private = &program.privates[*place as usize];
                let index = self.all(private.steps.iter().map(|s| s.index));
                let outs = self.defined(private.values.iter().map(|(_, reg)| *reg));
                let place = *place;
                (Act::PrivateLoad { place, array, index }, outs)
            }
            Code::PrivateStore { place } => {
                let array = self.array(*place);
                let private = &program.privates[*place as usize];
                let index = self.all(private.steps.iter().map(|s| s.index));
                let values = self.all(private.values.iter().map(|(_, reg)| *reg));
                let place = *place;
                (
                    Act::PrivateStore {
                        place,
                        array,
                        index,
                        values,
                    },
                    Vec::new(),
                )
            }
            Code::Device { op, s, args, out } => match op {
                DeviceOp::Subgroup(_) | DeviceOp::Matrix(_) => {
                    let ins = self.all(args.iter().copied());
                    let outs = self.defined(out.iter().copied());
                    (Act::Exchange(*op, *s, ins), outs)
                }
                DeviceOp::FastExp2 => {
                    let x = self.all(args.iter().copied()).first().copied();
                    let x = x.ok_or(Refusal::Unknown("an operation without its operand"))?;
                    (
                        Act::Unary(UnaryOp::Exp2, *s, x),
                        self.defined(out.iter().copied()),
                    )
                }
                DeviceOp::Barrier => (Act::Barrier, Vec::new()),
                DeviceOp::Fence(_) => (Act::Fence, Vec::new()),
                DeviceOp::Clock => (Act::Clock, self.defined(out.iter().copied())),
                DeviceOp::IsDead | DeviceOp::CatchFault => return Err(Refusal::ChecksInStatements),
                DeviceOp::Converge | DeviceOp::Nap | DeviceOp::Meet => return Err(Refusal::Stays),
                DeviceOp::Stage(_) => return Err(Refusal::Stages),
            },
            Code::Print { site, args } => (Act::Print(*site, self.all(args.iter().copied())), Vec::new()),
            Code::Fault { site, operands, .. } => {
                (Act::Fault(*site, self.all(operands.iter().copied())), Vec::new())
            }
            _ => return Err(Refusal::Unknown("an operation")),
        };
        let at = self.next()?;
        Ok(Node::Op { pc, at, act, outs })
    }
}
