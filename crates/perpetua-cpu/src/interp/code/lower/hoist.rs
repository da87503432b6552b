//! How often an operation runs. What neither lanes, gangs nor turns of a loop make different is computed once in front of them: for
//! the launch, a row, a block, a gang, or before a loop. Such operations touch no memory and cannot fault, so it does not matter
//! whether the text would have come to them. Knows of values where they are defined and assigned, not what they are.

use std::collections::HashSet;

use super::super::tree::walk;
use super::*;
use perpetua_ir::ir::Axis;

/// The levels outside of the kernel's own loops.
pub(super) const LAUNCH: usize = 0;
pub(super) const ROW: usize = 1;
pub(super) const BLOCK: usize = 2;
pub(super) const GANG: usize = 3;

/// A value that lies in vectors too.
pub(super) struct Splat {
    of: V,
    level: usize,
    /// Blocks of the text around the place where it was made.
    depth: usize,
    regs: [R; 2],
}

/// Code that runs equally often.
#[derive(Default)]
pub(super) struct Section {
    /// What the host has put somewhere, into registers; before all else.
    given: Vec<I>,
    pub(super) code: Vec<I>,
    /// Of a loop: the variables that it assigns.
    assigned: HashSet<V>,
}

impl Section {
    /// The body of a loop.
    pub(super) fn of_loop(body: &[Node]) -> Section {
        let mut assigned = HashSet::new();
        walk(body, &mut |node| {
            if let Node::Op { outs, .. } = node {
                assigned.extend(outs);
            }
        });
        Section {
            assigned,
            ..Section::default()
        }
    }
}

impl Lower<'_> {
    /// The level of the text.
    pub(super) fn innermost(&self) -> usize {
        self.sections.len() - 1
    }

    /// From which level on a value is known.
    pub(super) fn level(&self, v: V) -> usize {
        let info = &self.tree.values[v.index()];
        if let Some(fill) = info.fill {
            return self.fill_level(fill).0;
        }
        if info.array.is_some() {
            return self.innermost();
        }
        if info.variable {
            // As it is now it stays in loops that do not assign it.
            let assigns = |level: &usize| self.sections[*level].assigned.contains(&v);
            return (GANG..=self.innermost()).rev().find(assigns).unwrap_or(GANG);
        }
        self.levels[v.index()].unwrap_or(self.innermost())
    }

    /// From which level on a fill is known, and where it lies: in the state, or in the gang's entry.
    pub(super) fn fill_level(&self, fill: u32) -> (usize, Origin) {
        let state = (self.out.layout.fills + 8 * fill as usize) as i32;
        let Some((_, Fill::Builtin(builtin))) = self.program.fills.get(fill as usize) else {
            return (LAUNCH, Origin::State(state));
        };
        let along = |axis: Axis| 8 * axis as i32;
        match builtin {
            Builtin::BlockIdx(Axis::X) => (BLOCK, Origin::State(BLOCK_X)),
            Builtin::BlockIdx(axis) => (ROW, Origin::State(BLOCK_X + along(*axis))),
            Builtin::ThreadIdx(Axis::X) | Builtin::SubgroupLane => (GANG, Origin::Gang(GANG_X)),
            Builtin::ThreadIdx(axis) => {
                let level = if self.out.by_rows { ROW } else { GANG };
                (level, Origin::Gang(GANG_X + along(*axis)))
            }
            _ => (LAUNCH, Origin::State(state)),
        }
    }

    /// What the host has put there, in a register.
    pub(super) fn given(&mut self, level: usize, given: Origin) -> R {
        if let Some((_, r)) = self.given.iter().find(|(known, _)| *known == given) {
            return *r;
        }
        let d = self.general();
        self.sections[level].given.push(match given {
            Origin::State(at) => {
                let s = G::State(at);
                I::GMov { w: true, d, s }
            }
            Origin::Gang(at) => I::GGang { d, at },
        });
        self.out.origins.insert(d, given);
        self.given.push((given, d));
        d
    }

    /// Lowers an operation on the level from which on its operands are known.
    pub(super) fn hoisted(
        &mut self,
        act: &Act,
        outs: &[V],
        lower: impl FnOnce(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let pure = matches!(
            act,
            Act::Unary(..) | Act::Binary(..) | Act::Ternary(..) | Act::Cast(..) | Act::Move(_)
        );
        let innermost = self.innermost();
        let level = act
            .reads()
            .into_iter()
            .map(|v| self.level(v))
            .max()
            .unwrap_or(LAUNCH);
        let single = outs.iter().all(|v| {
            let info = &self.tree.values[v.index()];
            !info.variable && info.array.is_none()
        });
        if !pure || !single || level >= innermost {
            lower(self)?;
            for v in outs {
                self.levels[v.index()] = Some(innermost);
            }
            return Ok(());
        }
        let (start, known) = (self.sections[level].code.len(), self.splats.len());
        self.at = level;
        let done = lower(self);
        self.at = innermost;
        done?;
        let moved = &self.sections[level].code[start..];
        let stays = moved
            .iter()
            .any(|i| matches!(i, I::Call { .. } | I::Access { .. } | I::GDivide { .. }));
        if stays {
            // The host evaluates it for lanes that are there: where the text says.
            let back = self.sections[level].code.split_off(start);
            self.sections[innermost].code.extend(back);
            self.splats.truncate(known);
        }
        for v in outs {
            self.levels[v.index()] = Some(if stays { innermost } else { level });
        }
        Ok(())
    }

    /// A value in vectors that does not change from its level on: made once, and known while the block of the text lasts.
    pub(super) fn splatted(
        &mut self,
        v: V,
        make: impl FnOnce(&mut Self) -> Result<[R; 2], Refusal>,
    ) -> Result<[R; 2], Refusal> {
        let level = self.level(v);
        if self.tree.values[v.index()].variable || level > self.at {
            return make(self);
        }
        if let Some(known) = self.splats.iter().find(|known| known.of == v) {
            return Ok(known.regs);
        }
        let at = std::mem::replace(&mut self.at, level);
        let regs = make(self);
        self.at = at;
        let regs = regs?;
        self.splats.push(Splat {
            of: v,
            level,
            depth: self.depth,
            regs,
        });
        Ok(regs)
    }

    /// Forgets vectors that were made in blocks of the text so deep or deeper, but for those that all gangs share.
    pub(super) fn forget(&mut self, depth: usize) {
        self.splats
            .retain(|known| known.level < GANG || known.depth < depth);
    }

    /// All code in order, with the loops that gangs, blocks and rows are.
    pub(super) fn assemble(&mut self, end: Label) {
        let sections = std::mem::take(&mut self.sections);
        let code = &mut self.out.code;
        for (section, begin) in sections
            .into_iter()
            .zip([None, Some(I::Row), Some(I::Block), Some(I::Gang)])
        {
            code.extend(begin);
            code.extend(section.given);
            code.extend(section.code);
        }
        code.push(I::Label(end));
        code.push(I::Next);
        let mut heads = Vec::new();
        for (at, i) in code.iter().enumerate() {
            match i {
                I::Row | I::Block | I::Gang | I::Head => heads.push(at),
                I::Tail => self.out.loops.extend(heads.pop().map(|head| (head, at))),
                I::Next => self
                    .out
                    .loops
                    .extend(heads.drain(..).rev().map(|head| (head, at))),
                _ => {}
            }
        }
    }
}
