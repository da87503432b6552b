//! Accesses to memory that lanes share: which of the fast shapes an access has.

use super::super::Refusal;
use super::super::layout::{VIEW_BYTES, VIEWS, What};
use super::super::lir::*;
use super::super::machine::Label;
use super::super::spread::Kind;
use super::super::tree::{AccessKind, AtomicKind, V};
use super::Lower;
use super::hoist::LAUNCH;
use crate::interp::program::Length;
use perpetua_ir::ir::AtomicOp;

/// What scales a gather can have: the greatest one that divides all strides.
pub(in super::super) fn scale(strides: impl Iterator<Item = u32>) -> u32 {
    let bits = strides.fold(8, |bits, stride| bits | stride);
    1 << bits.trailing_zeros()
}

impl Lower<'_> {
    #[expect(clippy::too_many_arguments, reason = "the parts of one access")]
    pub(super) fn access(
        &mut self,
        pc: u32,
        access: u32,
        kind: AccessKind,
        index: &[V],
        values: &[V],
        outs: &[V],
        skip: Label,
    ) -> Result<(), Refusal> {
        let program = self.program;
        let place = &program.accesses[access as usize];
        let what = What::Access(access, kind);
        let all: Vec<V> = index.iter().chain(values).copied().collect();
        let narrow = place.steps.iter().any(|s| s.ty.size() < 4);
        if let AccessKind::Atomic(s, act, _) = kind
            && !narrow
            && match act {
                AtomicKind::Load | AtomicKind::Store => true,
                AtomicKind::Update(AtomicOp::Exchange | AtomicOp::Add) => true,
                AtomicKind::Update(_) | AtomicKind::CompareExchange => s.is_int(),
            }
        {
            let mut ins = Vec::new();
            for v in &all {
                ins.push((Operand::Lanes(self.x(*v)?, self.parts(*v) as u32), self.size(*v)));
            }
            let mut results = Vec::new();
            for v in outs {
                let result = Operand::Lanes(self.vectors_for(*v), self.parts(*v) as u32);
                results.push((result, self.size(*v)));
            }
            self.fast(what, pc, Shape::Each, ins, results, index.len(), skip);
            return Ok(());
        }
        let plain = matches!(kind, AccessKind::Load | AccessKind::Store);
        if !plain || narrow {
            return self.call(what, pc, &all, outs, Some(skip));
        }
        let kinds: Vec<Kind> = index.iter().map(|v| self.spreads.kind(*v)).collect();
        let varying: Vec<usize> = (0..kinds.len()).filter(|i| kinds[*i] != Kind::Uniform).collect();
        let single = match place.leaves.as_slice() {
            [(s, ..)] => Some(*s),
            _ => None,
        };
        let loads = kind == AccessKind::Load;
        // What is stored by all lanes to one place is that of the last one.
        let one = varying.is_empty()
            && place.leaves.iter().all(|(s, ..)| s.size() >= 4)
            && (loads || values.iter().all(|v| self.spreads.kind(*v) == Kind::Uniform));
        let run = match (varying.as_slice(), single) {
            ([step], Some(s)) => {
                let at = &place.steps[*step];
                let fits = match at.length {
                    Length::Fixed(n) => n >= self.target.lanes,
                    Length::Region => true,
                };
                // AVX2 widens and narrows under no mask.
                let fits = fits && (s.size() >= 4 || self.target.masks_small());
                let straight = kinds[*step] == Kind::Affine(1) && at.stride == s.size() && fits;
                straight.then_some(*step)
            }
            _ => None,
        };
        let words = place.leaves.iter().all(|(s, ..)| s.size() >= 4);
        let shape = if one {
            Shape::One
        } else if let Some(step) = run {
            Shape::Run(step)
        } else {
            Shape::Each
        };
        // What is done lane by lane has all indices by lane.
        let each = !words || varying.is_empty() || !loads && !self.target.scatters();
        let mut ins = Vec::new();
        for (i, v) in index.iter().enumerate() {
            let operand = match shape {
                Shape::Each if each || varying.contains(&i) => {
                    Operand::Lanes(self.x(*v)?, self.parts(*v) as u32)
                }
                _ => self.operand(*v)?,
            };
            ins.push((operand, self.size(*v)));
        }
        for v in values {
            let operand = match shape {
                Shape::One => self.operand(*v)?,
                _ => Operand::Lanes(self.x(*v)?, self.parts(*v) as u32),
            };
            ins.push((operand, self.size(*v)));
        }
        let mut results = Vec::new();
        for v in outs {
            let result = match self.scalar_for(*v) {
                Some(d) => Operand::One(G::R(d)),
                None => Operand::Lanes(self.vectors_for(*v), self.parts(*v) as u32),
            };
            results.push((result, self.size(*v)));
        }
        self.fast(what, pc, shape, ins, results, index.len(), skip);
        Ok(())
    }

    /// An access to a lane's array in the frame.
    #[expect(clippy::too_many_arguments, reason = "the parts of one access")]
    pub(super) fn private(
        &mut self,
        pc: u32,
        place: u32,
        array: u32,
        index: &[V],
        values: &[V],
        outs: &[V],
        skip: Label,
    ) -> Result<(), Refusal> {
        let (base, bytes) = self.arrays[array as usize];
        let (base, stores) = (base as u32, outs.is_empty());
        let what = match stores {
            true => What::PrivateStore(place, base, bytes),
            false => What::PrivateLoad(place, base, bytes),
        };
        let steps = &self.program.privates[place as usize].steps;
        if steps.iter().any(|s| s.ty.size() < 4) {
            let all: Vec<V> = index.iter().chain(values).copied().collect();
            return self.call(what, pc, &all, outs, Some(skip));
        }
        let varies = index.iter().any(|v| self.spreads.kind(*v) != Kind::Uniform);
        let each = stores && varies && !self.target.scatters();
        let mut ins = Vec::new();
        for v in index {
            let operand = match self.spreads.kind(*v) {
                Kind::Uniform if !each => self.operand(*v)?,
                _ => Operand::Lanes(self.x(*v)?, self.parts(*v) as u32),
            };
            ins.push((operand, self.size(*v)));
        }
        for v in values {
            ins.push((Operand::Lanes(self.x(*v)?, self.parts(*v) as u32), self.size(*v)));
        }
        let mut results = Vec::new();
        for v in outs {
            let result = Operand::Lanes(self.vectors_for(*v), self.parts(*v) as u32);
            results.push((result, self.size(*v)));
        }
        let X::State(numbers) = self.iota(4, false, 0) else {
            return Err(Refusal::Unknown("a constant that lies nowhere"));
        };
        self.fast(what, pc, Shape::Own { numbers }, ins, results, index.len(), skip);
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one access")]
    fn fast(
        &mut self,
        what: What,
        pc: u32,
        shape: Shape,
        ins: Vec<(Operand, u32)>,
        outs: Vec<(Operand, u32)>,
        steps: usize,
        skip: Label,
    ) {
        let site = self.site(what.clone(), pc, &ins, &outs);
        let (base, limit) = match what {
            What::Access(access, _) => {
                let place = &self.program.accesses[access as usize];
                let view = VIEWS + VIEW_BYTES * place.region as usize;
                let compared = place.steps.iter().zip(&ins).position(|(step, (operand, _))| {
                    step.length == Length::Region && !matches!(operand, Operand::Lanes(..))
                });
                let mut part = |at: usize| G::R(self.given(LAUNCH, Origin::State((view + at) as i32)));
                let limit = match compared {
                    Some(number) if shape == Shape::Run(number) => part(16),
                    Some(_) => part(8),
                    None => G::Imm(0),
                };
                (part(0), limit)
            }
            _ => (G::Imm(0), G::Imm(0)),
        };
        self.put(I::Access {
            site,
            shape,
            base,
            limit,
            ins: ins.into_iter().map(|(o, _)| o).collect(),
            outs: outs.into_iter().map(|(o, _)| o).collect(),
            steps,
            skip,
        });
    }
}
