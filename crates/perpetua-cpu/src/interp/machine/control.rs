//! Control flow: who is active next. Each construct keeps the lanes that wait for it in masks of its own; lanes that
//! fault are in none. Knows nothing of values but conditions and selectors.

use std::sync::atomic::Ordering;

use super::super::error::InterpError;
use super::super::mask;
use super::super::program::{Code, Mask, Reg};
use super::super::race::Detector;
use super::affine::Form;
use super::{Launch, Machine, Next};
use crate::eval::{Line, WORD, Words, view};

impl Machine {
    /// The words of a mask.
    fn mask(&mut self, mask: Mask) -> &mut [u64] {
        let words = self.active.len();
        let start = mask as usize * words;
        &mut self.masks[start..start + words]
    }

    /// Splits the active lanes by a `bool`: those where it is false go to `rest`. Whether any is left; if none, all stay active and
    /// `rest` has no meaning.
    fn split(&mut self, condition: Reg, rest: Mask) -> bool {
        self.regs[condition as usize].prepare(self.sides, self.words);
        let condition = &self.regs[condition as usize];
        let words = self.active.len();
        let rest = &mut self.masks[rest as usize * words..][..words];
        if let Form::Uniform(bits) = condition.form() {
            rest.fill(0);
            return bits != 0;
        }
        let (mut yes, mut no) = (0, 0);
        for ((active, rest), bools) in self
            .active
            .iter()
            .zip(&mut *rest)
            .zip(view::<u8>(condition.operand()))
        {
            let is = if *active == 0 {
                0
            } else {
                *active & mask::from_bools(bools)
            };
            *rest = *active & !is;
            yes |= is;
            no |= *rest;
        }
        if yes != 0 && no != 0 {
            for (active, rest) in self.active.iter_mut().zip(rest) {
                *active &= !*rest;
            }
            self.whole = false;
        }
        yes != 0
    }

    /// Lanes have come.
    fn met(&mut self) {
        self.whole = self
            .active
            .iter()
            .zip(&self.all)
            .all(|(active, all)| active == all);
    }

    /// The active lanes change places with those in `mask`.
    fn exchange(&mut self, mask: Mask) {
        let words = self.active.len();
        let start = mask as usize * words;
        self.active.swap_with_slice(&mut self.masks[start..start + words]);
        self.met();
    }

    /// The active lanes go to `mask`, beside those that are there; none is left.
    fn wait(&mut self, mask: Mask) {
        let words = self.active.len();
        let start = mask as usize * words;
        for (to, active) in self.masks[start..start + words].iter_mut().zip(&mut self.active) {
            *to |= std::mem::take(active);
        }
        self.whole = false;
    }

    /// Lanes in `mask` become active, beside those that are; the mask is empty then.
    fn join(&mut self, mask: Mask) {
        let words = self.active.len();
        let start = mask as usize * words;
        let mut any = 0;
        for (from, active) in self.masks[start..start + words].iter_mut().zip(&mut self.active) {
            any |= *from;
            *active |= std::mem::take(from);
        }
        if any != 0 {
            self.met();
        }
    }

    /// Does what an operation says of who is active.
    pub(super) fn control(&mut self, code: &Code) -> Next {
        match code {
            Code::IfThen { condition, rest, end } => {
                if !self.split(*condition, *rest) {
                    return Next::To(*end);
                }
                Next::On
            }
            Code::IfElse {
                condition,
                rest,
                done,
                otherwise,
            } => {
                self.mask(*done).fill(0);
                if !self.split(*condition, *rest) {
                    return Next::To(*otherwise);
                }
                Next::On
            }
            Code::Else { rest, done, end } => {
                self.wait(*done);
                self.exchange(*rest);
                if mask::none(&self.active) {
                    return Next::To(*end);
                }
                Next::On
            }
            Code::Join { of } => {
                self.join(*of);
                Next::Check
            }
            Code::Clear { mask } => {
                self.mask(*mask).fill(0);
                Next::On
            }
            Code::Switch { rest, done } => {
                self.mask(*done).fill(0);
                self.mask(*rest).fill(0);
                self.wait(*rest);
                Next::On
            }
            Code::Case {
                selector,
                size,
                labels,
                rest,
                next,
            } => {
                let any = self.case(*selector, *size, labels, *rest);
                self.met();
                if any { Next::On } else { Next::To(*next) }
            }
            Code::Default { rest, next } => {
                self.join(*rest);
                if mask::none(&self.active) {
                    return Next::To(*next);
                }
                Next::On
            }
            Code::EndCase { done } => {
                self.wait(*done);
                Next::On
            }
            Code::Leave { into } => {
                self.wait(*into);
                Next::Check
            }
            Code::Repeat {
                continued,
                broken,
                start,
            } => {
                self.join(*continued);
                if mask::none(&self.active) {
                    self.join(*broken);
                    Next::Check
                } else {
                    Next::Back(*start)
                }
            }
            Code::Call { entry, returned } => {
                self.mask(*returned).fill(0);
                self.calls.push(self.pc);
                Next::To(*entry)
            }
            Code::Return { returned } => {
                self.join(*returned);
                match self.calls.pop() {
                    // As if the call itself had left these lanes.
                    Some(pc) => {
                        self.pc = pc;
                        Next::Check
                    }
                    None => Next::Done,
                }
            }
            _ => Next::On,
        }
    }

    /// Lanes of `rest` whose selector is one of the labels become active; whether there are any.
    fn case(&mut self, selector: Reg, size: u32, labels: &[u64], rest: Mask) -> bool {
        fn equal<T: bytemuck::Pod + PartialEq>(
            lines: &[Line],
            w: usize,
            labels: &[u64],
            narrow: impl Fn(u64) -> T,
        ) -> u64 {
            let mut equal = [0u8; WORD];
            if let Some(values) = Words::<T>::of(lines).get(w) {
                for label in labels {
                    let label = narrow(*label);
                    for i in 0..WORD {
                        equal[i] |= u8::from(values[i] == label);
                    }
                }
            }
            mask::from_bools(&equal)
        }

        let start = rest as usize * self.active.len();
        self.regs[selector as usize].prepare(self.sides, self.words);
        let lines = self.regs[selector as usize].operand();
        let mut any = 0;
        for (w, (active, rest)) in self.active.iter_mut().zip(&mut self.masks[start..]).enumerate() {
            if *rest != 0 {
                let yes = match size {
                    1 => equal(lines, w, labels, |label| label as u8),
                    2 => equal(lines, w, labels, |label| label as u16),
                    4 => equal(lines, w, labels, |label| label as u32),
                    _ => equal(lines, w, labels, |label| label),
                };
                *active = *rest & yes;
                *rest &= !yes;
                any |= *active;
            }
        }
        any != 0
    }

    /// All lanes that live must be here. They end if one is dead that others may wait for.
    pub(super) fn barrier(
        &mut self,
        launch: &Launch<'_>,
        races: Option<&mut Detector>,
    ) -> Result<Next, Box<InterpError>> {
        self.all_here(launch)?;
        if launch.program.ends_together && !mask::none(&self.dead) {
            return Ok(Next::Done);
        }
        // Lanes need none between them, this being one thread; but what a lane read atomically before the barrier
        // may be another group's word that its data is there.
        std::sync::atomic::fence(Ordering::AcqRel);
        let (barrier, met) = self.part.team.as_ref().map_or((0, true), |team| team.arrive());
        if met && let Some(races) = races {
            races.barrier();
        }
        Ok(if met { Next::On } else { Next::Wait(barrier) })
    }

    /// That all lanes that live are here.
    pub(super) fn all_here(&self, launch: &Launch<'_>) -> Result<(), Box<InterpError>> {
        let absent = self.all.iter().zip(&self.active).zip(&self.dead);
        let absent: Vec<u64> = absent.map(|((all, here), dead)| all & !here & !dead).collect();
        if let Some(lane) = mask::lanes(&absent).next() {
            return Err(Box::new(InterpError::DivergentBarrier {
                kernel: launch.program.name.clone(),
                line: launch.program.lines[self.pc as usize],
                block: self.block,
                missing: self.shape.thread(self.part.first + lane),
                arrived: mask::count(&self.active),
                lanes: mask::count(&self.active) + mask::count(&absent),
            }));
        }
        Ok(())
    }
}
