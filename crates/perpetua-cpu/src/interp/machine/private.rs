//! Arrays in local variables at run-time indices: each lane picks among the registers of the variable.

use super::super::mask;
use super::super::program::{PrivatePlace, Program, Reg};
use super::locate::Shape;
use super::{Machine, Next};
use crate::eval::{self, Level, Line, WORD};

/// Lanes of word `w` from one register to another.
fn copy_lanes(level: Level, size: u32, m: u64, w: usize, from: &[Line], to: &mut [Line]) {
    let words = w * size as usize..(w + 1) * size as usize;
    if let (Some(from), Some(to)) = (from.get(words.clone()), to.get_mut(words)) {
        eval::assign(level, size, &[m], from, to);
    }
}

impl Machine {
    /// The register of a lane's (or, at one index, of all lanes') value number `leaf`.
    fn element(place: &PrivatePlace, start: u64, leaf: usize) -> Option<Reg> {
        place.registers.get(start as usize + leaf).copied()
    }

    pub(super) fn private_load(&mut self, program: &Program, place: u32) -> Next {
        let place = &program.privates[place as usize];
        if let Some(start) = self.found_by_all(&place.steps, place.start.into(), 0) {
            for (leaf, (size, to)) in place.values.iter().enumerate() {
                if let Some(from) = Self::element(place, start, leaf) {
                    self.copy(*size, from, *to);
                }
            }
            return Next::On;
        }
        for reg in &place.registers {
            self.regs[*reg as usize].lanes(self.sides, self.words);
        }
        for w in 0..self.active.len() {
            let m = self.picked(program, place, w);
            for (leaf, (size, to)) in place.values.iter().enumerate() {
                let mut out = std::mem::take(self.regs[*to as usize].lanes_mut(self.sides, self.words));
                if let (Shape::Same(start), true) = (self.located.shape, m != 0) {
                    if let Some(from) = Self::element(place, start, leaf) {
                        copy_lanes(
                            self.level,
                            *size,
                            m,
                            w,
                            self.regs[from as usize].written(),
                            &mut out,
                        );
                    }
                } else {
                    for i in mask::bits(m) {
                        if let Some(from) = Self::element(place, self.located.at[i], leaf) {
                            let lane = w * WORD + i;
                            let bits = eval::get(self.regs[from as usize].written(), *size, lane);
                            eval::put(&mut out, *size, lane, bits);
                        }
                    }
                }
                self.put(*to, out);
            }
        }
        Next::Check
    }

    pub(super) fn private_store(&mut self, program: &Program, place: u32) -> Next {
        let place = &program.privates[place as usize];
        if let Some(start) = self.found_by_all(&place.steps, place.start.into(), 0) {
            for (leaf, (size, from)) in place.values.iter().enumerate() {
                if let Some(to) = Self::element(place, start, leaf) {
                    self.assign(*size, *from, to, false);
                }
            }
            return Next::On;
        }
        for reg in &place.registers {
            self.regs[*reg as usize].lanes_mut(self.sides, self.words);
        }
        for w in 0..self.active.len() {
            let m = self.picked(program, place, w);
            for (leaf, (size, from)) in place.values.iter().enumerate() {
                let value = std::mem::take(self.regs[*from as usize].lanes(self.sides, self.words));
                if let (Shape::Same(start), true) = (self.located.shape, m != 0) {
                    if let Some(to) = Self::element(place, start, leaf) {
                        let level = self.level;
                        let to = self.regs[to as usize].lanes_mut(self.sides, self.words);
                        copy_lanes(level, *size, m, w, &value, to);
                    }
                } else {
                    for i in mask::bits(m) {
                        if let Some(to) = Self::element(place, self.located.at[i], leaf) {
                            let lane = w * WORD + i;
                            let bits = eval::get(&value, *size, lane);
                            let to = self.regs[to as usize].lanes_mut(self.sides, self.words);
                            eval::put(to, *size, lane, bits);
                        }
                    }
                }
                *self.regs[*from as usize].lanes(self.sides, self.words) = value;
            }
        }
        Next::Check
    }

    /// Finds each lane's first register; the lanes whose indices are in bounds.
    fn picked(&mut self, program: &Program, place: &PrivatePlace, w: usize) -> u64 {
        if self.active[w] == 0 {
            return 0;
        }
        self.locate(program, &place.steps, place.start.into(), 0, 0, w)
    }
}
