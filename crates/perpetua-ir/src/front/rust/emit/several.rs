//! Places of which run time says which is meant: what is done there is done in a branch for each.

use std::rc::Rc;
use std::sync::Arc;

use super::value::{Chosen, Slot, Src, Val};
use super::{Emitter, Result};
use crate::front::rust::error::LowerError;
use crate::ir::{Access, Base, Block, Inst, LocalId, ParamKind, Place, Type, Value};
use crate::ops::{BinaryOp, TernaryOp};

impl Emitter<'_> {
    /// What `make` makes of each of several places, without code that depends on which is meant.
    pub(super) fn one_of(
        &mut self,
        which: Value,
        all: &[Src],
        mut make: impl FnMut(&mut Self, &Src) -> Result<Src>,
    ) -> Result<Src> {
        let made = all
            .iter()
            .map(|src| make(self, src))
            .collect::<Result<Rc<[Src]>>>()?;
        Ok(Src::OneOf(which, made))
    }

    /// Does something at that of several places which is meant, and gives what it gives there: a value, or `()`.
    pub(super) fn over(
        &mut self,
        which: Value,
        all: &[Src],
        line: u32,
        act: &mut dyn FnMut(&mut Self, &Src) -> Result<Val>,
    ) -> Result<Val> {
        let Some((last, others)) = all.split_last() else {
            return Err(self.chosen_place(line));
        };
        if let Some(known) = self.known(which) {
            return act(self, others.get(known as usize).unwrap_or(last));
        }
        let tests = self.tests(which, others.len(), line)?;
        let (mut blocks, mut given) = (Vec::new(), None);
        for src in all {
            let branch = self.branch(|this| {
                let val = act(this, src)?;
                if matches!(&val, Val::Tuple(none) if none.is_empty()) {
                    return Ok(val);
                }
                let value = this.value_of(&val, line)?;
                let local = match given {
                    Some(local) => local,
                    None => {
                        let ty = this.typed(line, this.k.type_of(value))?.clone();
                        *given.insert(this.k.local("chosen", ty))
                    }
                };
                this.store(&Place::local(local), value, line)?;
                Ok(Val::unit())
            })?;
            blocks.push(branch.block);
        }
        self.cases(&tests, blocks)?;
        match given {
            Some(local) => self.load(&Src::Place(Place::local(local)), line),
            None => Ok(Val::unit()),
        }
    }

    /// Puts a value into that of the slots which has this number; a fault where there is none.
    pub(super) fn put_at(&mut self, index: Value, slots: &[Slot], val: &Val, line: u32) -> Result<()> {
        self.check_count(index, slots.len(), line)?;
        if let Some(slot) = self.known(index).and_then(|known| slots.get(known as usize)) {
            return self.put(slot, val, line);
        }
        let tests = self.tests(index, slots.len().saturating_sub(1), line)?;
        let put = |slot| {
            let branch = self.branch(|this| this.put(slot, val, line).map(|()| Val::unit()))?;
            Ok(branch.block)
        };
        let blocks = slots.iter().map(put).collect::<Result<_>>()?;
        self.cases(&tests, blocks)
    }

    /// A fault unless the index is below the number of an array's elements.
    pub(super) fn check_count(&mut self, index: Value, count: usize, line: u32) -> Result<()> {
        let usize_scalar = self.usize_scalar();
        let len = self.constant(usize_scalar, count as u64);
        self.check_below(index, len, "".into(), line)
    }

    /// That of several values whose number `which` is, else the last.
    pub(super) fn picked(&mut self, which: Value, vals: &[Val], line: u32) -> Result<Val> {
        if let Some(val) = self.known(which).and_then(|known| vals.get(known as usize)) {
            return Ok(val.clone());
        }
        let srcs: Option<Rc<[Src]>> = vals
            .iter()
            .map(|val| match val {
                Val::Ref(src) => Some(src.clone()),
                _ => None,
            })
            .collect();
        match (srcs, vals) {
            (Some(srcs), _) => return Ok(Val::Ref(Src::OneOf(which, srcs))),
            (None, [Val::Tuple(first), ..]) => {
                let parts = (0..first.len() as u32).map(|part| {
                    let parts = vals.iter().map(|val| self.component(val, part, line));
                    let parts = parts.collect::<Result<Vec<_>>>()?;
                    self.picked(which, &parts, line)
                });
                return parts.collect::<Result<_>>().map(Val::Tuple);
            }
            _ => {}
        }
        let values = vals.iter().map(|val| self.value_of(val, line));
        let mut values = values.collect::<Result<Vec<_>>>()?;
        let Some(last) = values.pop() else {
            return Err(self.chosen_place(line));
        };
        let tests = self.tests(which, values.len(), line)?;
        if matches!(self.typed(line, self.k.type_of(last))?, Type::Scalar(_)) {
            let mut chosen = last;
            for (test, value) in tests.into_iter().zip(values).rev() {
                chosen = self.ternary(TernaryOp::Select, test, value, chosen, line)?;
            }
            return Ok(Val::Value(chosen));
        }
        let place = self.spill(&Val::Value(last), line)?;
        for (test, value) in tests.into_iter().zip(values) {
            let stored = self.branch(|this| {
                this.store(&place, value, line)?;
                Ok(Val::unit())
            })?;
            self.k.push(Inst::If(test, stored.block, Block::default()));
        }
        self.load(&Src::Place(place), line)
    }

    /// Keeps what a shared reference refers to. Other lanes may change what lies in a buffer or in shared memory: of that the place
    /// is kept.
    pub(super) fn put_shared(
        &mut self,
        copy: &Slot,
        meant: &Chosen,
        locals: [LocalId; 3],
        val: &Val,
        line: u32,
    ) -> Result<()> {
        let src = match val {
            Val::Ref(src) => src,
            other => return self.put(copy, other, line),
        };
        if self.is_fixed(src) {
            let value = self.load(src, line)?;
            self.put(copy, &value, line)?;
            return match copy {
                Slot::Var(copy) => self.put_number(meant, locals[2], &Place::local(*copy), line),
                _ => Ok(()),
            };
        }
        match (src, copy) {
            (Src::OneOf(which, all), _) => {
                let put = self.over(*which, all, line, &mut |this, src| {
                    this.put_shared(copy, meant, locals, &Val::Ref(src.clone()), line)?;
                    Ok(Val::unit())
                });
                put.map(|_| ())
            }
            (_, Slot::Var(_)) => self.move_place(meant, locals, val, line),
            _ => Err(self.chosen_place(line)),
        }
    }

    /// What a kept shared reference refers to now.
    pub(super) fn kept_shared(
        &mut self,
        copy: &Slot,
        meant: &Chosen,
        locals: [LocalId; 3],
        line: u32,
    ) -> Result<Val> {
        let moves = match copy {
            Slot::Var(copy) => {
                let own = Place::local(*copy);
                meant.borrow().places.iter().any(|place| *place != own)
            }
            _ => false,
        };
        let copied = Src::Val(Box::new(self.get(copy, line)?));
        if !moves {
            let mut meant = meant.borrow_mut();
            meant.read = true;
            if let (Slot::Var(copy), true) = (copy, meant.places.is_empty()) {
                meant.places.push(Place::local(*copy));
            }
            return Ok(Val::Ref(copied));
        }
        let kept = self.kept_place(meant, locals, line)?;
        let or_copied = |src: &Src| match (src, copy) {
            (Src::Place(place), Slot::Var(copy)) if *place == Place::local(*copy) => copied.clone(),
            (src, _) => src.clone(),
        };
        Ok(match kept {
            Val::Ref(Src::OneOf(which, all)) => {
                Val::Ref(Src::OneOf(which, all.iter().map(or_copied).collect()))
            }
            kept => kept,
        })
    }

    /// Whether nobody changes what is there while a reference to it is kept.
    fn is_fixed(&mut self, src: &Src) -> bool {
        match src {
            Src::Place(place) => match place.base {
                Base::Local(_) | Base::Constant(_) => true,
                Base::Buffer(buffer) => {
                    let params = &self.k.kernel_mut().params;
                    params.get(buffer as usize).is_some_and(|param| {
                        matches!(
                            param.kind,
                            ParamKind::Buffer {
                                access: Access::Read,
                                ..
                            }
                        )
                    })
                }
                Base::Shared(_) => false,
            },
            Src::OneOf(_, all) => all.iter().all(|src| self.is_fixed(src)),
            _ => true,
        }
    }

    pub(super) fn chosen_place(&self, line: u32) -> LowerError {
        self.error(
            line,
            "which place a reference means is chosen at run time",
            "let the references be elements of an array, and choose an index there",
        )
    }

    /// Whether `which` is 0, 1 and so on.
    fn tests(&mut self, which: Value, count: usize, line: u32) -> Result<Vec<Value>> {
        let scalar = self.num_of(which, line)?;
        let test = |number: usize| {
            let number = self.constant(scalar, number as u64);
            self.binary(BinaryOp::Eq, which, number, line)
        };
        (0..count).map(test).collect()
    }

    /// The first block whose test holds, else the last.
    fn cases(&mut self, tests: &[Value], mut blocks: Vec<Block>) -> Result<()> {
        let mut otherwise = blocks.pop().unwrap_or_default();
        for (i, (test, block)) in tests.iter().zip(blocks).enumerate().rev() {
            let chosen = Inst::If(*test, block, otherwise);
            if i == 0 {
                self.k.push(chosen);
                return Ok(());
            }
            let nested = self.branch(|this| {
                this.k.push(chosen);
                Ok(Val::unit())
            })?;
            otherwise = nested.block;
        }
        Ok(())
    }

    /// The name of the memory where something lies.
    pub(super) fn name_of(&mut self, src: &Src) -> Arc<str> {
        match src {
            Src::Place(place) => self.k.name_of(place.base).into(),
            Src::Part(part) => self.k.name_of(part.whole.base).into(),
            Src::Constant(name, _) => {
                super::types::identifier(name.rsplit("::").next().unwrap_or(name)).into()
            }
            Src::OneOf(_, all) => match all.first() {
                Some(first) => self.name_of(first),
                None => "".into(),
            },
            Src::Val(_) => "".into(),
        }
    }
}
