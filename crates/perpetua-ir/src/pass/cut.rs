//! For drivers that end loops before their time and say nothing: what such a kernel computes is wrong, so its lanes find out and
//! fault. Knows what llvmpipe does, which counts the turns of all loops of a subgroup together: once the count is used up, each loop
//! ends after its first turn.

use super::levels::exits;
use crate::ir::{
    Axis, Base, Block, Body, Builtin, Effect, FaultKind, Inst, Local, LocalId, Op, Place, Scalar, Stmt, Type,
    Value,
};
use crate::ops::BinaryOp;
use crate::verify::Verified;

/// The kernel with lanes that fault at their end if the driver has cut a loop of theirs, where it allows so many turns; `None` where
/// nothing is to be told, for the kernel has no loops.
///
/// A lane runs a loop of two turns then: one turn is a loop that was cut. What bounds that loop comes from the launch, so that no
/// compiler unrolls it.
pub fn tell_cut_loops(verified: &Verified, turns: u32) -> Option<Verified> {
    let kernel = verified.kernel();
    let bodies = kernel.functions.iter().map(|f| &f.body).chain([&kernel.body]);
    let first_loop = bodies.rev().find_map(|body| loop_line(&body.block))?;
    let mut kernel = kernel.clone();
    let mut block = std::mem::take(&mut kernel.body.block);
    let mut tell = Tell {
        body: &mut kernel.body,
        line: first_loop,
        turns,
        idle: None,
    };
    if has_idle_loop(&block) {
        tell.idle = Some(Place::local(tell.local("idle_turns")));
    }
    tell.inside(&mut block);
    if let Some(idle) = tell.idle.clone() {
        let mut start = Vec::new();
        let zero = tell.constant(&mut start, 0);
        tell.push(&mut start, Inst::Do(Effect::Store(idle, zero, None)));
        block.0.splice(..0, start);
    }
    if !matches!(
        block.0.last(),
        Some(Stmt {
            inst: Inst::Return(_),
            ..
        })
    ) {
        block.0.extend(tell.probe());
    }
    kernel.body.block = block;
    Some(verified.with_kernel(kernel))
}

// The line of the first loop.
fn loop_line(block: &Block) -> Option<u32> {
    block.0.iter().find_map(|stmt| match &stmt.inst {
        Inst::Loop(_) => Some(stmt.line),
        inst => inst.blocks().into_iter().find_map(loop_line),
    })
}

// Whether a loop does nothing that others see: compilers drop it if nobody reads what it computes, also if it never ends. Loops that can
// end and read memory are not taken for such ones, for what they compute is read, and what decides about their end hardly known before.
fn is_idle(turn: &Block) -> bool {
    fn acts(block: &Block, loads: bool) -> bool {
        block.0.iter().any(|stmt| match &stmt.inst {
            Inst::Let(_, Op::Load(place, None)) => loads && !matches!(place.base, Base::Local(_)),
            Inst::Let(_, op) => matches!(
                op,
                Op::Atomic(..) | Op::CompareExchange { .. } | Op::Device(..) | Op::Call(..) | Op::Load(..)
            ),
            Inst::Do(Effect::Store(place, _, None)) => !matches!(place.base, Base::Local(_)),
            Inst::Do(_) => true,
            inst => inst.blocks().into_iter().any(|block| acts(block, loads)),
        })
    }
    !acts(turn, exits(turn, 0).breaks)
}

fn has_idle_loop(block: &Block) -> bool {
    block.0.iter().any(|stmt| match &stmt.inst {
        Inst::Loop(turn) if is_idle(turn) => true,
        inst => inst.blocks().into_iter().any(has_idle_loop),
    })
}

struct Tell<'a> {
    body: &'a mut Body,
    line: u32,
    turns: u32,
    /// Counts the turns of loops that do nothing else, if there are any, so that no compiler drops them.
    idle: Option<Place>,
}

impl Tell<'_> {
    /// Looks before each return; and gives an exit to loops that have none but faults, for else compilers drop what stands behind them. So
    /// they do where they find out that the exit is never taken: a loop without effects gets one, too.
    fn inside(&mut self, block: &mut Block) {
        let mut statements = Vec::with_capacity(block.0.len());
        for mut stmt in std::mem::take(&mut block.0) {
            for inner in stmt.inst.blocks_mut() {
                self.inside(inner);
            }
            match &mut stmt.inst {
                Inst::Return(_) => statements.extend(self.probe()),
                Inst::Loop(turn) if is_idle(turn) || !exits(turn, 0).breaks => {
                    let mut exit = Vec::new();
                    if let Some(idle) = self.idle.clone().filter(|_| is_idle(turn)) {
                        let before = self.let_(&mut exit, Op::Load(idle.clone(), None), Type::U32);
                        let one = self.constant(&mut exit, 1);
                        let after = self.binary(&mut exit, BinaryOp::Add, before, one, Type::U32);
                        self.push(&mut exit, Inst::Do(Effect::Store(idle, after, None)));
                    }
                    let (blocks, zero) = (self.blocks(&mut exit), self.constant(&mut exit, 0));
                    let never = self.binary(&mut exit, BinaryOp::Eq, blocks, zero, Type::BOOL);
                    self.if_(&mut exit, never, Inst::Break(0));
                    turn.0.splice(..0, exit);
                }
                _ => {}
            }
            statements.push(stmt);
        }
        block.0 = statements;
    }

    /// A loop of two turns, and a fault if there was one.
    fn probe(&mut self) -> Vec<Stmt> {
        let turns = Place::local(self.local("turns"));
        let mut code = Vec::new();
        let (zero, one) = (self.constant(&mut code, 0), self.constant(&mut code, 1));
        let blocks = self.blocks(&mut code);
        let least = self.binary(&mut code, BinaryOp::Min, blocks, one, Type::U32);
        let two = self.binary(&mut code, BinaryOp::Add, least, one, Type::U32);
        self.push(&mut code, Inst::Do(Effect::Store(turns.clone(), zero, None)));

        let mut turn = Vec::new();
        let before = self.let_(&mut turn, Op::Load(turns.clone(), None), Type::U32);
        let all = self.binary(&mut turn, BinaryOp::Ge, before, two, Type::BOOL);
        self.if_(&mut turn, all, Inst::Break(0));
        let after = self.binary(&mut turn, BinaryOp::Add, before, one, Type::U32);
        self.push(&mut turn, Inst::Do(Effect::Store(turns.clone(), after, None)));
        self.push(&mut code, Inst::Loop(Block(turn)));

        let taken = self.let_(&mut code, Op::Load(turns, None), Type::U32);
        let cut = self.binary(&mut code, BinaryOp::Lt, taken, two, Type::BOOL);
        let cut = match self.idle.clone() {
            None => cut,
            // Never so many: that somebody asks is what keeps the loops.
            Some(idle) => {
                let counted = self.let_(&mut code, Op::Load(idle, None), Type::U32);
                let most = self.constant(&mut code, u32::MAX.into());
                let all = self.binary(&mut code, BinaryOp::Eq, counted, most, Type::BOOL);
                self.binary(&mut code, BinaryOp::Or, cut, all, Type::BOOL)
            }
        };
        let allowed = self.constant(&mut code, self.turns.into());
        self.if_(
            &mut code,
            cut,
            Inst::Do(Effect::fault(FaultKind::LoopCut, vec![allowed])),
        );
        code
    }

    fn local(&mut self, name: &str) -> LocalId {
        self.body.locals.push(Local {
            name: name.into(),
            ty: Type::U32,
        });
        LocalId(self.body.locals.len() as u32 - 1)
    }

    fn blocks(&mut self, code: &mut Vec<Stmt>) -> Value {
        self.let_(code, Op::Builtin(Builtin::GridDim(Axis::X)), Type::U32)
    }

    fn constant(&mut self, code: &mut Vec<Stmt>, bits: u64) -> Value {
        self.let_(code, Op::Const(Scalar::U32, bits), Type::U32)
    }

    fn binary(&mut self, code: &mut Vec<Stmt>, op: BinaryOp, a: Value, b: Value, ty: Type) -> Value {
        self.let_(code, Op::Binary(op, a, b), ty)
    }

    fn if_(&mut self, code: &mut Vec<Stmt>, condition: Value, then: Inst) {
        let then = Block(vec![self.stmt(then)]);
        self.push(code, Inst::If(condition, then, Block::default()));
    }

    fn let_(&mut self, code: &mut Vec<Stmt>, op: Op, ty: Type) -> Value {
        self.body.values.push(ty);
        let value = Value(self.body.values.len() as u32 - 1);
        self.push(code, Inst::Let(value, op));
        value
    }

    fn push(&self, code: &mut Vec<Stmt>, inst: Inst) {
        code.push(self.stmt(inst));
    }

    fn stmt(&self, inst: Inst) -> Stmt {
        Stmt {
            line: self.line,
            inst,
        }
    }
}
