//! Brings exits into the form that C, WGSL and MSL can write: every `break` and `continue` concerns the innermost
//! loop. Labelled blocks become `if`s where they can, loops that run once where they cannot; an exit through several
//! loops sets a flag that is asked after each. Knows nothing of how targets spell loops.
//!
//! A flag is written where the exit stood and read right after the loop, so it is as uniform as the exit was: barriers
//! stay in uniform control flow.
//!
//! One labelled block may remain: the body of a counting loop, `loop { head; 'next: { body } step }`, where leaving the
//! block means the next turn. See [`counting_step`].

use crate::ir::{
    Base, Block, Body, Effect, Inst, Kernel, Local, LocalId, Op, Place, Scalar, Stmt, Type, Value,
};

/// The kernel with single-level exits.
pub fn single_level(mut kernel: Kernel) -> Kernel {
    for function in &mut kernel.functions {
        rewrite(&mut function.body);
    }
    rewrite(&mut kernel.body);
    kernel
}

/// Whether control can leave `block` at its end. `break`s that leave the block's own enclosing construct do not count.
pub fn falls_through(block: &Block) -> bool {
    block.0.iter().all(|stmt| falls_on(&stmt.inst))
}

fn falls_on(inst: &Inst) -> bool {
    match inst {
        Inst::Break(_) | Inst::Continue(_) | Inst::Return(_) => false,
        Inst::If(_, a, b) => falls_through(a) || falls_through(b),
        Inst::Switch { cases, default, .. } => {
            falls_through(default) || cases.iter().any(|(_, b)| falls_through(b))
        }
        Inst::Loop(b) => exits(b, 0).breaks,
        Inst::Labeled(b) => falls_through(b) || exits(b, 0).breaks,
        Inst::Let(..) | Inst::Do(_) => true,
    }
}

/// Exits that concern one construct.
#[derive(Clone, Copy, Default)]
pub(crate) struct Exits {
    pub(crate) breaks: bool,
    pub(crate) continues: bool,
}

/// The exits in `block` that concern the construct `level` levels above it (0: the one whose block it is).
pub(crate) fn exits(block: &Block, level: u32) -> Exits {
    let mut found = Exits::default();
    for stmt in &block.0 {
        match &stmt.inst {
            Inst::Break(d) => found.breaks |= *d == level,
            Inst::Continue(d) => found.continues |= *d == level,
            inst => {
                let inner = level + u32::from(matches!(inst, Inst::Loop(_) | Inst::Labeled(_)));
                for b in inst.blocks() {
                    let e = exits(b, inner);
                    found.breaks |= e.breaks;
                    found.continues |= e.continues;
                }
            }
        }
    }
    found
}

/// If `body` is that of a counting loop, `head; 'next: { … } step`, the index of the labelled block. No `continue`
/// passes the step by.
pub(crate) fn counting_step(body: &Block) -> Option<usize> {
    let at = body.0.iter().position(|s| matches!(s.inst, Inst::Labeled(_)))?;
    let Inst::Labeled(inner) = &body.0.get(at)?.inst else {
        return None;
    };
    let simple = step_start(body) == Some(at + 1);
    (simple && !exits(body, 0).continues && exits(inner, 0).breaks).then_some(at)
}

/// Where the step at the end of a loop's body begins, if it can be written in the loop's head: one store to a variable
/// that it also reads, computed from values that nothing else uses, from variables that the rest of the loop
/// leaves alone, and from values that were there before the loop.
pub(crate) fn step_start(body: &Block) -> Option<usize> {
    let (last, rest) = body.0.split_last()?;
    let Inst::Do(Effect::Store(place, stored, None)) = &last.inst else {
        return None;
    };
    let Base::Local(stepped) = place.base else {
        return None;
    };
    if !place.path.is_empty() {
        return None;
    }
    let mut wanted = vec![*stored];
    let mut loaded = Vec::new();
    let mut start = rest.len();
    for (i, stmt) in rest.iter().enumerate().rev() {
        let Inst::Let(v, op) = &stmt.inst else { break };
        let Some(found) = wanted.iter().position(|w| w == v) else {
            break;
        };
        wanted.swap_remove(found);
        if wanted.contains(v) {
            return None;
        }
        match op {
            Op::Load(
                Place {
                    base: Base::Local(id),
                    path,
                },
                None,
            ) if path.is_empty() => loaded.push(*id),
            Op::Const(..) | Op::Unary(..) | Op::Binary(..) | Op::Cast(..) | Op::Param(_) => {}
            _ => return None,
        }
        op.operands(&mut |v| wanted.push(v));
        start = i;
    }
    let before = rest.get(..start)?;
    let mut apart = loaded.contains(&stepped);
    for stmt in before {
        if let Inst::Let(v, _) = &stmt.inst {
            apart &= !wanted.contains(v);
        }
    }
    let mut check = |stmt: &Stmt| {
        if let Inst::Do(Effect::Store(place, ..)) = &stmt.inst {
            apart &= !matches!(place.base, Base::Local(id) if id == stepped || loaded.contains(&id));
        }
    };
    for stmt in before {
        check(stmt);
        stmt.inst.blocks().into_iter().for_each(|b| b.walk(&mut check));
    }
    apart.then_some(start)
}

fn rewrite(body: &mut Body) {
    let mut block = std::mem::take(&mut body.block);
    unlabel(&mut block);
    let mut flags = Flags {
        body,
        frames: Vec::new(),
        loops: Vec::new(),
    };
    let block = flags.block(block);
    body.block = block;
}

/// Removes labelled blocks from `block` where exits can become `if`s, and drops what is never reached.
fn unlabel(block: &mut Block) {
    let mut out: Vec<Stmt> = Vec::with_capacity(block.0.len());
    for mut stmt in std::mem::take(&mut block.0) {
        match &mut stmt.inst {
            Inst::Labeled(b) => {
                unlabel(b);
                if !exits(b, 0).breaks || without_breaks(b) {
                    let mut b = std::mem::take(b);
                    lower(&mut b, 0);
                    out.append(&mut b.0);
                } else {
                    out.push(stmt);
                }
            }
            Inst::Loop(b) => {
                unlabel_loop(b);
                out.push(stmt);
            }
            inst => {
                inst.blocks_mut().into_iter().for_each(unlabel);
                out.push(stmt);
            }
        }
        if out.last().is_some_and(|s| !falls_on(&s.inst)) {
            break;
        }
    }
    block.0 = out;
}

fn unlabel_loop(b: &mut Block) {
    let Some(at) = counting_step(b) else {
        return unlabel(b);
    };
    // Keep the labelled body of a counting loop; clean up the pieces.
    let step = b.0.split_off(at + 1);
    let labeled = b.0.pop();
    unlabel(b);
    if !falls_through(b) {
        return;
    }
    if let Some(Stmt {
        line,
        inst: Inst::Labeled(mut inner),
    }) = labeled
    {
        unlabel(&mut inner);
        drop_tail_breaks(&mut inner, 0);
        if exits(&inner, 0).breaks {
            b.0.push(Stmt {
                line,
                inst: Inst::Labeled(inner),
            });
        } else {
            lower(&mut inner, 0);
            b.0.append(&mut inner.0);
        }
    }
    if falls_through(b) {
        b.0.extend(step);
    }
}

/// Tries to do without the `break`s that leave the labelled block `b`; whether it could.
fn without_breaks(b: &mut Block) -> bool {
    absorb(b, 0);
    drop_tail_breaks(b, 0);
    !exits(b, 0).breaks
}

/// Moves what follows an `if` that may break out of the labelled block into the branch that does not.
fn absorb(block: &mut Block, level: u32) {
    let found = block
        .0
        .iter()
        .position(|s| s.inst.blocks().iter().any(|b| exits(b, level).breaks) && is_choice(&s.inst));
    let Some(at) = found else { return };
    let rest = block.0.split_off(at + 1);
    let Some(stmt) = block.0.last_mut() else { return };
    let mut branches = stmt.inst.blocks_mut();
    let falling: Vec<usize> = branches
        .iter()
        .enumerate()
        .filter(|(_, b)| falls_through(b))
        .map(|(i, _)| i)
        .collect();
    let mut put_back = Vec::new();
    match falling.as_slice() {
        // Nothing goes on here: what follows is never reached.
        [] => {}
        [one] => {
            if let Some(branch) = branches.get_mut(*one) {
                branch.0.extend(rest);
            }
        }
        _ => put_back = rest,
    }
    if put_back.is_empty() {
        branches.into_iter().for_each(|b| absorb(b, level));
    }
    block.0.extend(put_back);
}

fn is_choice(inst: &Inst) -> bool {
    matches!(inst, Inst::If(..) | Inst::Switch { .. })
}

/// Drops `break`s at the end of the labelled block, where control leaves it anyway.
fn drop_tail_breaks(block: &mut Block, level: u32) {
    let Some(stmt) = block.0.last_mut() else { return };
    match &mut stmt.inst {
        Inst::Break(d) if *d == level => {
            block.0.pop();
        }
        inst if is_choice(inst) => {
            inst.blocks_mut()
                .into_iter()
                .for_each(|b| drop_tail_breaks(b, level));
        }
        _ => {}
    }
}

/// Renumbers exits after the construct `level` levels above `block` is gone; none concerns it.
fn lower(block: &mut Block, level: u32) {
    for stmt in &mut block.0 {
        match &mut stmt.inst {
            Inst::Break(d) | Inst::Continue(d) => *d -= u32::from(*d > level),
            inst => {
                let inner = level + u32::from(matches!(inst, Inst::Loop(_) | Inst::Labeled(_)));
                inst.blocks_mut().into_iter().for_each(|b| lower(b, inner));
            }
        }
    }
}

/// What an exit does to the loop that it concerns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Break,
    Continue,
    /// Leaves the labelled body of a counting loop.
    Next,
}

#[derive(Clone, Copy)]
struct Escape {
    /// Index into [`Flags::loops`].
    target: usize,
    action: Action,
    flag: LocalId,
}

/// An enclosing construct.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    Loop,
    /// The labelled body of a counting loop.
    Next,
}

#[derive(Default)]
struct LoopFrame {
    /// Exits that leave this loop for one further out.
    escapes: Vec<Escape>,
}

struct Flags<'a> {
    body: &'a mut Body,
    frames: Vec<Frame>,
    loops: Vec<LoopFrame>,
}

impl Flags<'_> {
    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.0.len());
        for Stmt { line, inst } in block.0 {
            let mut put = |inst| out.push(Stmt { line, inst });
            match inst {
                Inst::Loop(b) => self.loop_(line, b, false, &mut out),
                Inst::Labeled(mut b) => {
                    // A loop that runs once.
                    if falls_through(&b) {
                        b.0.push(Stmt {
                            line,
                            inst: Inst::Break(0),
                        });
                    }
                    self.loop_(line, b, true, &mut out);
                }
                Inst::If(c, a, b) => {
                    let (a, b) = (self.block(a), self.block(b));
                    put(Inst::If(c, a, b));
                }
                Inst::Switch {
                    selector,
                    cases,
                    default,
                } => {
                    let cases = cases.into_iter().map(|(l, b)| (l, self.block(b))).collect();
                    let default = self.block(default);
                    put(Inst::Switch {
                        selector,
                        cases,
                        default,
                    });
                }
                Inst::Break(d) => match self.target(d) {
                    Some((target, Frame::Loop)) => self.exit(line, target, Action::Break, &mut out),
                    Some((target, Frame::Next)) => self.exit(line, target, Action::Next, &mut out),
                    None => put(Inst::Break(d)),
                },
                Inst::Continue(d) => match self.target(d) {
                    Some((target, _)) => self.exit(line, target, Action::Continue, &mut out),
                    None => put(Inst::Continue(d)),
                },
                inst => put(inst),
            }
        }
        Block(out)
    }

    /// The loop that depth `d` leads to, and whether to itself or to its labelled body.
    fn target(&self, d: u32) -> Option<(usize, Frame)> {
        let at = self.frames.len().checked_sub(1 + d as usize)?;
        let frame = *self.frames.get(at)?;
        let loops = self
            .frames
            .iter()
            .take(at + 1)
            .filter(|f| **f == Frame::Loop)
            .count();
        Some((loops.checked_sub(1)?, frame))
    }

    fn loop_(&mut self, line: u32, b: Block, once: bool, out: &mut Vec<Stmt>) {
        let step = if once { None } else { counting_step(&b) };
        self.frames.push(Frame::Loop);
        self.loops.push(LoopFrame::default());
        let body = match step {
            None => self.block(b),
            Some(at) => {
                let mut head = b;
                let tail = head.0.split_off(at + 1);
                let labeled = head.0.pop();
                let mut all = self.block(head);
                if let Some(Stmt {
                    line,
                    inst: Inst::Labeled(inner),
                }) = labeled
                {
                    self.frames.push(Frame::Next);
                    let inner = self.block(inner);
                    self.frames.pop();
                    all.0.push(Stmt {
                        line,
                        inst: Inst::Labeled(inner),
                    });
                }
                all.0.extend(tail);
                all
            }
        };
        self.frames.pop();
        let escapes = self.loops.pop().unwrap_or_default().escapes;
        for escape in &escapes {
            self.set(line, escape.flag, false, out);
        }
        out.push(Stmt {
            line,
            inst: Inst::Loop(body),
        });
        for escape in escapes {
            let asked = self.define(line, Op::Load(Place::local(escape.flag), None), out);
            let mut leave = Vec::new();
            self.leave(line, escape, &mut leave);
            out.push(Stmt {
                line,
                inst: Inst::If(asked, Block(leave), Block::default()),
            });
        }
    }

    /// Writes an exit that concerns the loop `target`.
    fn exit(&mut self, line: u32, target: usize, action: Action, out: &mut Vec<Stmt>) {
        if target + 1 == self.loops.len() {
            self.near(line, action, out);
            return;
        }
        let known = self
            .loops
            .iter()
            .skip(target + 1)
            .flat_map(|l| &l.escapes)
            .find(|e| e.target == target && e.action == action)
            .copied();
        let escape = known.unwrap_or_else(|| {
            let name = match action {
                Action::Break => "leave",
                Action::Continue | Action::Next => "next",
            };
            self.body.locals.push(Local {
                name: name.to_owned(),
                ty: Type::BOOL,
            });
            Escape {
                target,
                action,
                flag: LocalId(self.body.locals.len() as u32 - 1),
            }
        });
        self.set(line, escape.flag, true, out);
        self.leave(line, escape, out);
    }

    /// Goes on with an exit whose flag is set: does it if its loop is the innermost, else leaves the innermost.
    fn leave(&mut self, line: u32, escape: Escape, out: &mut Vec<Stmt>) {
        if escape.target + 1 == self.loops.len() {
            self.near(line, escape.action, out);
            return;
        }
        if let Some(inner) = self.loops.last_mut()
            && !inner.escapes.iter().any(|e| e.flag == escape.flag)
        {
            inner.escapes.push(escape);
        }
        self.near(line, Action::Break, out);
    }

    /// An exit that concerns the innermost loop.
    fn near(&self, line: u32, action: Action, out: &mut Vec<Stmt>) {
        let in_next = u32::from(self.frames.last() == Some(&Frame::Next));
        let inst = match action {
            Action::Break => Inst::Break(in_next),
            Action::Continue => Inst::Continue(in_next),
            Action::Next => Inst::Break(0),
        };
        out.push(Stmt { line, inst });
    }

    fn define(&mut self, line: u32, op: Op, out: &mut Vec<Stmt>) -> Value {
        let v = Value(self.body.values.len() as u32);
        self.body.values.push(Type::BOOL);
        out.push(Stmt {
            line,
            inst: Inst::Let(v, op),
        });
        v
    }

    fn set(&mut self, line: u32, flag: LocalId, to: bool, out: &mut Vec<Stmt>) {
        let v = self.define(line, Op::Const(Scalar::Bool, to.into()), out);
        out.push(Stmt {
            line,
            inst: Inst::Do(Effect::Store(Place::local(flag), v, None)),
        });
    }
}
