//! Control flow: the tree of a program's structure as statements, or its blocks as a loop around a choice.

use std::collections::BTreeSet;

use perpetua_ir::ir::{Inst, Kernel, LocalId, Op, Place, Scalar, Type, TypeError, Value};
use perpetua_ir::ops::BinaryOp;

use super::Options;
use super::counted::{block_cost, cost, counted};
use super::emitter::{Emitter, Frame, Result, written_by};
use super::structure::{Node, Structure, falls};
use super::webs::Slots;
use crate::verify::{Block, Exit, Goal, Verified};

/// Writes the kernel.
pub(super) fn emit(verified: &Verified, structure: &Structure, options: Options) -> Result<Kernel> {
    let mut emitter = Emitter::new(verified, options);
    if let Structure::Nested(_) = structure {
        emitter.use_webs();
    }
    emitter.presets()?;
    if let Some(budget) = options.budget {
        emitter.zero_shared()?;
        emitter.set_budget(budget)?;
        if let Structure::Nested(nodes) = structure {
            emitter.counted = counted(&verified.flow, nodes);
        }
    }
    match structure {
        Structure::Nested(nodes) => emitter.nodes(nodes)?,
        Structure::Dispatched => emitter.dispatch()?,
    }
    Ok(emitter.finish())
}

impl Emitter<'_> {
    fn nodes(&mut self, nodes: &[Node]) -> Result {
        for node in nodes {
            match node {
                Node::Block(block) => self.block(*block)?,
                Node::If(block, acting, other) => self.condition(*block, acting, other)?,
                Node::Loop(block, body) => {
                    let changed = self.written_in(body);
                    self.known.forget(changed.iter());
                    let cost = self.price(*block, body)?;
                    let inner = self.framed(Frame::Loop(*block), body, cost)?;
                    self.k.push(Inst::Loop(inner));
                }
                Node::Labeled(block, body) => {
                    let changed = self.written_in(body);
                    let inner = self.framed(Frame::Labeled(*block), body, (0, false))?;
                    self.k.push(Inst::Labeled(inner));
                    self.known.forget(changed.iter());
                }
                Node::Break(block) => {
                    let depth = self.depth(&Frame::Labeled(*block))?;
                    self.k.push(Inst::Break(depth));
                }
                Node::Continue(block) => {
                    let depth = self.depth(&Frame::Loop(*block))?;
                    self.k.push(Inst::Continue(depth));
                }
                Node::End => self.k.push(Inst::Return(None)),
            }
        }
        Ok(())
    }

    // What each turn of a loop is charged; what is known beforehand is charged here, if not by a turn of the loop around it.
    fn price(&mut self, head: usize, body: &[Node]) -> Result<(u32, bool)> {
        let Some(all) = self.counted.get(&head).copied() else {
            let cost = cost(&self.verified.flow, body, &self.counted);
            return Ok((cost, self.meets(body)));
        };
        if !self.frames.iter().any(|frame| matches!(frame, Frame::Loop(_))) {
            self.line_of_block(head)?;
            self.charge(all, false)?;
        }
        Ok((0, false))
    }

    fn framed(&mut self, frame: Frame, body: &[Node], cost: (u32, bool)) -> Result<perpetua_ir::ir::Block> {
        self.frames.push(frame);
        let inner = self.inner(|emitter| {
            if let Some(Frame::Loop(head)) = emitter.frames.last() {
                emitter.line_of_block(*head)?;
            }
            emitter.charge(cost.0, cost.1)?;
            emitter.nodes(body)
        })?;
        self.frames.pop();
        Ok(inner)
    }

    fn depth(&self, frame: &Frame) -> Result<u32> {
        let at = self.frames.iter().rev().position(|open| open == frame);
        at.map(|at| at as u32)
            .ok_or_else(|| TypeError::Invalid("a branch leads out of the program's structure".into()))
    }

    fn condition(&mut self, block: usize, acting: &[Node], other: &[Node]) -> Result {
        let exit = self.exit(block)?;
        self.at.0 = block;
        let condition = self.exit_condition(exit)?;
        let acts = self.inner(|emitter| {
            emitter.count_down(exit)?;
            emitter.nodes(acting)
        })?;
        let not = self.inner(|emitter| emitter.nodes(other))?;
        self.k.push(Inst::If(condition, acts, not));
        let mut changed = Slots::default();
        for branch in [acting, other] {
            if falls(branch) {
                changed.add(self.written_in(branch));
            }
        }
        if let (Exit::Count(register, ..), true) = (exit, falls(acting)) {
            changed.insert(usize::from(register));
        }
        self.known.forget(changed.iter());
        Ok(())
    }

    fn exit(&self, block: usize) -> Result<Exit> {
        self.flow_block(block).map(|block| block.exit)
    }

    // Whether lanes go to the exit's first goal.
    fn exit_condition(&mut self, exit: Exit) -> Result<Value> {
        match exit {
            Exit::If(guard, ..) => self.guard(guard),
            Exit::Count(register, ..) => {
                let count = self.slot(usize::from(register), Scalar::U32)?;
                let zero = self.k.u32(0);
                self.k.binary(BinaryOp::Gt, count, zero)
            }
            Exit::To(_) => Ok(self.k.bool(true)),
        }
    }

    fn count_down(&mut self, exit: Exit) -> Result {
        let Exit::Count(register, ..) = exit else {
            return Ok(());
        };
        let slot = usize::from(register);
        let count = self.slot(slot, Scalar::U32)?;
        let one = self.k.u32(1);
        let less = self.k.binary(BinaryOp::Sub, count, one)?;
        self.write(slot, Scalar::U32, less)
    }

    // A loop around a choice of blocks.
    fn dispatch(&mut self) -> Result {
        let verified = self.verified;
        let blocks = &verified.flow.blocks;
        let written = blocks
            .iter()
            .flat_map(|block| block.code.iter().flat_map(written_by));
        let counts = blocks.iter().filter_map(|block| match block.exit {
            Exit::Count(register, ..) => Some((usize::from(register), Scalar::U32)),
            _ => None,
        });
        // What presets have written stays. They are looked at before the first zero, which would be taken for one.
        let mut zeros: BTreeSet<_> = written.chain(counts).collect();
        zeros.retain(|(slot, ty)| self.known.get(*slot).is_none_or(|(known, _)| known != *ty));
        for (slot, ty) in zeros {
            let zero = self.k.op(Op::Zero(ty.into()))?;
            self.write(slot, ty, zero)?;
        }
        self.known.clear();
        let next = self.k.local("next_block", Type::U32);
        let first = self.k.u32(0);
        self.k.store(Place::local(next), first)?;
        self.k.open_block();
        let selector = self.k.load(Place::local(next))?;
        let mut cases = Vec::new();
        let meets = self.verified.flow.blocks.iter().any(meets);
        for number in 0..self.verified.flow.blocks.len() {
            let case = self.inner(|emitter| emitter.case(number, next, meets))?;
            cases.push((vec![number as u64], case));
        }
        let default = perpetua_ir::ir::Block(vec![perpetua_ir::ir::Stmt {
            line: 0,
            inst: Inst::Return(None),
        }]);
        self.k.push(Inst::Switch {
            selector,
            cases,
            default,
        });
        let body = self.k.close_block();
        self.k.push(Inst::Loop(body));
        Ok(())
    }

    // `meets`: whether lanes of a block meet in any of the blocks.
    fn case(&mut self, number: usize, next: LocalId, meets: bool) -> Result {
        let cost = block_cost(self.flow_block(number)?);
        self.line_of_block(number)?;
        self.charge(cost, meets)?;
        self.block(number)?;
        let exit = self.exit(number)?;
        let go = |emitter: &mut Self, goal: Goal| match goal {
            Goal::End => {
                emitter.k.push(Inst::Return(None));
                Ok(())
            }
            Goal::Block(block) => {
                let block = emitter.k.u32(block as u32);
                emitter.k.store(Place::local(next), block)
            }
        };
        let (Exit::If(_, a, b) | Exit::Count(_, a, b)) = exit else {
            let Exit::To(goal) = exit else { return Ok(()) };
            return go(self, goal);
        };
        let condition = self.exit_condition(exit)?;
        let acts = self.inner(|emitter| {
            emitter.count_down(exit)?;
            go(emitter, a)
        })?;
        let not = self.inner(|emitter| go(emitter, b))?;
        self.k.push(Inst::If(condition, acts, not));
        Ok(())
    }

    // Whether lanes of a block meet in a part of the tree.
    fn meets(&self, nodes: &[Node]) -> bool {
        let mut blocks = Vec::new();
        collect(nodes, &mut blocks);
        let mut blocks = blocks
            .iter()
            .filter_map(|block| self.verified.flow.blocks.get(*block));
        blocks.any(meets)
    }

    // Slots that the blocks of a part of the tree write.
    fn written_in(&self, nodes: &[Node]) -> Slots {
        let mut blocks = Vec::new();
        collect(nodes, &mut blocks);
        let mut all = Slots::default();
        blocks
            .into_iter()
            .for_each(|block| all.add(self.uses.written(block)));
        all
    }
}

// Whether lanes of a block meet in a block of the program.
fn meets(block: &Block) -> bool {
    block.code.iter().any(|i| i.opcode.meaning().is_meeting())
}

fn collect(nodes: &[Node], blocks: &mut Vec<usize>) {
    for node in nodes {
        match node {
            Node::Block(block) => blocks.push(*block),
            Node::If(_, a, b) => {
                collect(a, blocks);
                collect(b, blocks);
            }
            Node::Loop(_, body) | Node::Labeled(_, body) => collect(body, blocks),
            Node::Break(_) | Node::Continue(_) | Node::End => {}
        }
    }
}
