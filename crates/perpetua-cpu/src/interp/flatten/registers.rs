//! Hands out registers, and takes back those that nothing reads any more. Knows nothing of what they hold.

use std::collections::{BTreeMap, HashMap};

use super::super::program::{Fill, Reg};

/// All registers of a program.
#[derive(Default)]
pub(super) struct Registers {
    sizes: Vec<u32>,
    fills: Vec<(Reg, Fill)>,
    filled: HashMap<(u32, Fill), Reg>,
    /// Bits of registers that hold a constant.
    constants: HashMap<Reg, u64>,
    /// Registers in use, by the number of the statement that reads them last.
    used: BTreeMap<u32, Vec<Reg>>,
    /// Registers free to be used again, by size.
    free: HashMap<u32, Vec<Reg>>,
}

impl Registers {
    /// A register of its own, for good.
    pub(super) fn keep(&mut self, size: u32) -> Reg {
        self.sizes.push(size);
        self.sizes.len() as u32 - 1
    }

    /// A register that may be used again after the statement with number `last`.
    pub(super) fn until(&mut self, size: u32, last: u32) -> Reg {
        let reg = self.free.get_mut(&size).and_then(Vec::pop);
        let reg = reg.unwrap_or_else(|| self.keep(size));
        self.used.entry(last).or_default().push(reg);
        reg
    }

    /// The register that the launch fills so.
    pub(super) fn filled(&mut self, size: u32, fill: Fill) -> Reg {
        if let Some(reg) = self.filled.get(&(size, fill)) {
            return *reg;
        }
        let reg = self.keep(size);
        self.filled.insert((size, fill), reg);
        self.fills.push((reg, fill));
        if let Fill::Constant(bits) = fill {
            self.constants.insert(reg, bits);
        }
        reg
    }

    /// The bits that a register holds in all lanes, if it holds a constant.
    pub(super) fn constant(&self, reg: Reg) -> Option<u64> {
        self.constants.get(&reg).copied()
    }

    /// Whether the statement with number `number` is the last to read `reg`, whatever it was read for.
    pub(super) fn ends(&self, reg: Reg, number: u32) -> bool {
        self.used.get(&number).is_some_and(|regs| regs.contains(&reg))
    }

    /// The statement with number `number` is done.
    pub(super) fn done(&mut self, number: u32) {
        while let Some(entry) = self.used.first_entry() {
            if *entry.key() > number {
                break;
            }
            for reg in entry.remove() {
                if let Some(size) = self.sizes.get(reg as usize) {
                    self.free.entry(*size).or_default().push(reg);
                }
            }
        }
    }

    /// A body is done: no other one may use its registers, for it may be called from there.
    pub(super) fn end_body(&mut self) {
        self.used.clear();
        self.free.clear();
    }

    /// Sizes of all registers, and those that launches fill.
    pub(super) fn finish(self) -> (Vec<u32>, Vec<(Reg, Fill)>) {
        (self.sizes, self.fills)
    }
}
