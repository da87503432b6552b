//! Statements, and those among them that have blocks.

use super::{Frame, Generator, Result};
use crate::testing::inputs::edge_values;
use perpetua_ir::ir::*;
use perpetua_ir::ops::BinaryOp;

/// Deepest nesting of blocks.
const MOST_DEPTH: usize = 5;

/// Lengths of what is visible, to be restored at the end of a block.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    values: usize,
    variables: usize,
}

impl Generator<'_, '_> {
    pub(super) fn mark(&self) -> Mark {
        Mark {
            values: self.body.values.len(),
            variables: self.body.variables.len(),
        }
    }

    pub(super) fn reset(&mut self, mark: Mark) {
        self.body.values.truncate(mark.values);
        self.body.variables.truncate(mark.variables);
    }

    /// Appends up to `most` statements; gives whether the last one leaves the block.
    pub(super) fn statements(&mut self, k: &mut KernelBuilder, most: usize) -> Result<bool> {
        for _ in 0..most {
            // The end of the tape ends every block.
            let kind = self.choices.below(28);
            if kind == 0 || self.budget == 0 || !self.affords(1) {
                break;
            }
            self.budget -= 1;
            self.cost += self.body.context.work;
            self.line += 1;
            k.set_line(self.line);
            if self.statement(k, kind)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn statement(&mut self, k: &mut KernelBuilder, kind: usize) -> Result<bool> {
        let context = self.body.context;
        let entry = self.body.entry.is_some();
        match kind {
            1..=8 => {
                let before = self.body.values.len();
                self.compute(k)?;
                let last = self.body.values.get(before..).and_then(<[_]>::last);
                // Unused results are no test: a compiler drops them.
                if let Some((v, ty)) = last.map(|known| (known.value, known.ty.clone()))
                    && self.choices.chance(1, 3)
                {
                    self.mix(k, v, &ty)?;
                }
            }
            9..=11 if entry => self.buffer(k)?,
            12 if entry => self.rework(k)?,
            13 | 14 => self.variable(k)?,
            15 | 16 if context.depth < MOST_DEPTH => self.branch(k)?,
            17 | 18 if context.depth < MOST_DEPTH => self.repeat(k)?,
            19 if context.depth < MOST_DEPTH => self.switch(k)?,
            20 if context.depth < MOST_DEPTH => self.labelled(k)?,
            21 => self.choose_value(k)?,
            22 => self.call(k)?,
            23 | 24 if context.uniform && entry => {
                if self.choices.chance(1, 3) && self.config.atomics {
                    self.tally(k)?;
                } else {
                    self.exchange(k)?;
                }
            }
            25 if self.config.subgroups && entry => self.subgroup(k)?,
            26 => self.leave(k)?,
            27 if context.depth > 0 => return self.end(k),
            _ => match context.tile {
                Some((base, lanes)) => self.read_tile(k, base, lanes)?,
                None if self.config.ordering && self.choices.chance(1, 16) => {
                    k.effect(DeviceOp::Fence(Scope::Device).into())?;
                }
                None => self.compute(k)?,
            },
        }
        Ok(false)
    }

    /// A condition; the same for all lanes of a block, if `uniform` is wished.
    fn condition(&mut self, k: &mut KernelBuilder, uniform: bool) -> Result<Value> {
        // Something known, compared: constants alone would make most branches the same for all lanes.
        let known: Vec<(Value, Scalar)> = self
            .body
            .values
            .iter()
            .rev()
            .filter(|known| !uniform || self.is_uniform(known.value))
            .filter_map(|known| Some((known.value, known.ty.as_scalar()?)))
            .filter(|(_, s)| *s != Scalar::Bool)
            .take(12)
            .collect();
        let chosen = self.choices.pick(&known).copied();
        match chosen {
            Some((a, s)) if !self.choices.chance(1, 4) => {
                let ops = [
                    BinaryOp::Lt,
                    BinaryOp::Eq,
                    BinaryOp::Ge,
                    BinaryOp::Ne,
                    BinaryOp::Gt,
                    BinaryOp::Le,
                ];
                let op = self.choices.pick(&ops).copied().unwrap_or(BinaryOp::Lt);
                let b = if uniform {
                    self.uniform_operand(k, &s.into())?
                } else {
                    self.operand(k, &s.into())?
                };
                self.define(k, Op::Binary(op, a, b))
            }
            _ if uniform => self.uniform_operand(k, &Type::BOOL),
            _ => self.operand(k, &Type::BOOL),
        }
    }

    /// A block of its own: what it defines is forgotten at its end.
    fn nested(
        &mut self,
        k: &mut KernelBuilder,
        uniform: bool,
        f: impl FnOnce(&mut Self, &mut KernelBuilder) -> Result<()>,
    ) -> Result<Block> {
        let (mark, context, line) = (self.mark(), self.body.context, k.line());
        self.body.context.uniform &= uniform;
        self.body.context.depth += 1;
        k.open_block();
        let done = f(self, k);
        let block = k.close_block();
        // What has the block carries the line at which it begins.
        k.set_line(line);
        self.body.context = context;
        self.reset(mark);
        done.map(|()| block)
    }

    /// Some statements in a block of their own, the last result of which may be mixed into the lane's.
    fn inner(&mut self, k: &mut KernelBuilder, uniform: bool) -> Result<Block> {
        self.nested(k, uniform, |this, k| this.some(k))
    }

    fn some(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let before = self.body.values.len();
        let most = 1 + self.choices.below(6);
        let ended = self.statements(k, most)?;
        let last = self.body.values.get(before..).and_then(<[_]>::last);
        if let Some((v, ty)) = last.map(|known| (known.value, known.ty.clone()))
            && !ended
            && self.choices.chance(1, 2)
        {
            self.mix(k, v, &ty)?;
        }
        Ok(())
    }

    /// `if`, sometimes with `else`.
    pub(super) fn branch(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let uniform = self.body.context.uniform && self.choices.chance(1, 2);
        let c = self.condition(k, uniform)?;
        let then = self.inner(k, uniform)?;
        let otherwise = if self.choices.chance(1, 2) {
            self.inner(k, uniform)?
        } else {
            Block::default()
        };
        k.push(Inst::If(c, then, otherwise));
        Ok(())
    }

    /// A variable without a value that both branches give one.
    fn choose_value(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let ty = self.any_type();
        let c = self.condition(k, false)?;
        let name = format!("v{}", self.body.variables.len());
        let id = k.local(name, ty.clone());
        let store = |this: &mut Self, k: &mut KernelBuilder| {
            if this.choices.chance(1, 3) {
                this.compute(k)?;
            }
            let v = this.operand(k, &ty)?;
            k.store(Place::local(id), v)
        };
        let then = self.nested(k, false, store)?;
        let otherwise = self.nested(k, false, store)?;
        k.push(Inst::If(c, then, otherwise));
        self.define(k, Op::Load(Place::local(id), None))?;
        Ok(())
    }

    fn framed(
        &mut self,
        k: &mut KernelBuilder,
        frame: Frame,
        work: u64,
        f: impl FnOnce(&mut Self, &mut KernelBuilder) -> Result<()>,
    ) -> Result<Block> {
        self.body.frames.push(frame);
        let before = self.body.context.work;
        self.body.context.work = before.saturating_mul(work);
        let block = self.nested(k, frame.meets, f);
        self.body.context.work = before;
        self.body.frames.pop();
        block
    }

    /// A loop that counts: up to a bound tested first, or tested last.
    fn repeat(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let most = 1 + self.choices.below(5) as u64;
        if !self.affords(most * 8) {
            return Ok(());
        }
        let meets = self.body.context.uniform && self.choices.chance(1, 2);
        let s = self.any_integer();
        let ty = Type::from(s);
        // A bound that is known, or a few bits of some value.
        let bound = if self.choices.chance(1, 2) {
            let v = if meets {
                self.uniform_operand(k, &ty)?
            } else {
                self.operand(k, &ty)?
            };
            let mask = self.emit(k, Op::Const(s, 3))?;
            self.emit(k, Op::Binary(BinaryOp::And, v, mask))?
        } else {
            self.emit(k, Op::Const(s, most))?
        };
        let zero = self.emit(k, Op::Const(s, 0))?;
        let mark = self.mark();
        let counter = self.declare(k, ty.clone(), meets);
        // Nothing else may assign the counter: it is known to no one.
        self.body.variables.pop();
        let place = Place::local(counter);
        k.store(place.clone(), zero)?;
        let tested_first = !self.choices.chance(1, 4);
        let frame = Frame {
            continues: tested_first,
            meets,
        };
        let block = self.framed(k, frame, most.max(4) + 1, |this, k| {
            let uniform_counter = this.body.variables.len();
            this.body.variables.push(super::Variable {
                id: counter,
                ty: ty.clone(),
                uniform: meets,
            });
            let i = this.define(k, Op::Load(place.clone(), None))?;
            this.body.variables.truncate(uniform_counter);
            let one = this.emit(k, Op::Const(s, 1))?;
            let next = this.emit(k, Op::Binary(BinaryOp::Add, i, one))?;
            let stop = |this: &mut Self, k: &mut KernelBuilder| {
                let done = this.emit(k, Op::Binary(BinaryOp::Ge, i, bound))?;
                k.open_block();
                k.break_(0);
                let then = k.close_block();
                k.push(Inst::If(done, then, Block::default()));
                Ok(())
            };
            if tested_first {
                stop(this, k)?;
                k.store(place.clone(), next)?;
                this.some(k)
            } else {
                k.store(place.clone(), next)?;
                let mark = this.mark();
                let most = 1 + this.choices.below(6);
                let ended = this.statements(k, most)?;
                this.reset(mark);
                if ended { Ok(()) } else { stop(this, k) }
            }
        })?;
        self.reset(mark);
        k.push(Inst::Loop(block));
        Ok(())
    }

    /// The variable's innermost elements get something else.
    pub(super) fn each_element(&mut self, k: &mut KernelBuilder, place: Place, ty: &Type) -> Result<()> {
        self.over_elements(k, place, ty, &|this, k, place, ty| {
            let v = this.operand(k, ty)?;
            let v = match ty.as_scalar().is_some_and(Scalar::is_int) {
                true => {
                    let old = this.emit(k, Op::Load(place.clone(), None))?;
                    let op = *this
                        .choices
                        .pick(&[BinaryOp::Add, BinaryOp::Mul, BinaryOp::Xor])
                        .unwrap_or(&BinaryOp::Add);
                    this.emit(k, Op::Binary(op, old, v))?
                }
                false => v,
            };
            k.store(place, v)
        })
    }

    /// The variable's innermost elements go into what the lane has computed.
    pub(super) fn mix_elements(&mut self, k: &mut KernelBuilder, place: Place, ty: &Type) -> Result<()> {
        self.over_elements(k, place, ty, &|this, k, place, ty| {
            let v = this.emit(k, Op::Load(place, None))?;
            this.mix(k, v, ty)
        })
    }

    /// Each innermost element through loops that count over the arrays around it.
    fn over_elements(
        &mut self,
        k: &mut KernelBuilder,
        place: Place,
        ty: &Type,
        with: &dyn Fn(&mut Self, &mut KernelBuilder, Place, &Type) -> Result<()>,
    ) -> Result<()> {
        let Type::Array(element, n) = ty else {
            return with(self, k, place, ty);
        };
        let zero = self.number(k, 0)?;
        let end = self.number(k, *n)?;
        let one = self.number(k, 1)?;
        let counter = Place::local(k.local("each", Type::U32));
        k.store(counter.clone(), zero)?;
        let frame = Frame {
            continues: false,
            meets: false,
        };
        let block = self.framed(k, frame, u64::from(*n), |this, k| {
            let at = this.emit(k, Op::Load(counter.clone(), None))?;
            let done = this.emit(k, Op::Binary(BinaryOp::Ge, at, end))?;
            k.open_block();
            k.break_(0);
            let then = k.close_block();
            k.push(Inst::If(done, then, Block::default()));
            this.over_elements(k, place.clone().step(Step::Index(at)), element, with)?;
            let next = this.emit(k, Op::Binary(BinaryOp::Add, at, one))?;
            k.store(counter.clone(), next)
        })?;
        k.push(Inst::Loop(block));
        Ok(())
    }

    fn labelled(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let frame = Frame {
            continues: false,
            meets: self.body.context.uniform && self.choices.chance(1, 2),
        };
        let block = self.framed(k, frame, 1, |this, k| {
            this.leave(k)?;
            this.some(k)
        })?;
        k.push(Inst::Labeled(block));
        Ok(())
    }

    fn switch(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let s = self.any_integer();
        let uniform = self.body.context.uniform && self.choices.chance(1, 2);
        let mut selector = if uniform {
            self.uniform_operand(k, &s.into())?
        } else {
            self.operand(k, &s.into())?
        };
        if !self.choices.chance(1, 4) {
            let mask = self.emit(k, Op::Const(s, 3))?;
            selector = self.emit(k, Op::Binary(BinaryOp::And, selector, mask))?;
        }
        let edges = edge_values(s);
        let mut taken: Vec<u64> = Vec::new();
        let mut cases = Vec::new();
        for _ in 0..self.choices.below(5) {
            let mut labels = Vec::new();
            for _ in 0..1 + self.choices.below(2) {
                let label = if self.choices.chance(1, 4) {
                    self.choices.pick(&edges).copied().unwrap_or(0)
                } else {
                    self.choices.below(5) as u64
                };
                if !taken.contains(&label) {
                    taken.push(label);
                    labels.push(label);
                }
            }
            if !labels.is_empty() {
                cases.push((labels, self.inner(k, uniform)?));
            }
        }
        let default = if self.config.faults && self.choices.chance(1, 4) {
            let fault = match selector.0 % 2 {
                0 => Effect::fault(FaultKind::UnreachableEnum, vec![selector]),
                _ => {
                    let value = || PrintPiece::Arg(PrintFormat::default());
                    let pieces = vec![PrintPiece::Text("selected ".into()), value(), value(), value()];
                    Effect::Panic(pieces, vec![selector; 3])
                }
            };
            Block(vec![Stmt {
                line: k.line(),
                inst: Inst::Do(fault),
            }])
        } else if self.choices.chance(2, 3) {
            self.inner(k, uniform)?
        } else {
            Block::default()
        };
        k.push(Inst::Switch {
            selector,
            cases,
            default,
        });
        Ok(())
    }

    /// Statements that leave a construct from here, and the flow that they need to be uniform.
    fn exits(&self) -> Vec<Option<Inst>> {
        let mut exits = Vec::new();
        let mut free = true;
        for (depth, frame) in (0u32..).zip(self.body.frames.iter().rev()) {
            free &= !frame.meets;
            if free || self.body.context.uniform {
                exits.push(Some(Inst::Break(depth)));
                if frame.continues {
                    exits.push(Some(Inst::Continue(depth)));
                }
            }
        }
        if self.body.context.returns && free || self.body.context.uniform {
            exits.push(None);
        }
        exits
    }

    /// `if … { break }`, or `continue`, or `return`.
    fn leave(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let context = self.body.context;
        let framed = !self.body.frames.is_empty();
        let free = context.returns || framed;
        // Outside of loops one can only return, which is soon enough.
        if !free && !context.uniform || !framed && !self.choices.chance(1, 4) {
            return Ok(());
        }
        let c = self.condition(k, context.uniform)?;
        let then = self.nested(k, true, |this, k| this.end(k).map(|_| ()))?;
        k.push(Inst::If(c, then, Block::default()));
        Ok(())
    }

    /// `break`, `continue` or `return`; gives whether one could stand here.
    fn end(&mut self, k: &mut KernelBuilder) -> Result<bool> {
        let exits = self.exits();
        match self.choices.pick(&exits) {
            Some(Some(inst)) => k.push(inst.clone()),
            Some(None) => self.return_(k)?,
            None => return Ok(false),
        }
        Ok(true)
    }
}
