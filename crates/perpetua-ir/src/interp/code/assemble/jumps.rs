//! Jumps, and addresses of places in the code.

use super::{Assembler, Cc, Label, Mem, Rm};

impl Assembler {
    pub(in super::super) fn jmp(&mut self, to: Label) {
        self.byte(0xE9);
        self.jumps.push((self.bytes.len(), to));
        self.word(0);
    }

    pub(in super::super) fn jcc(&mut self, cc: Cc, to: Label) {
        self.byte(0x0F);
        self.byte(0x80 | cc as u8);
        self.jumps.push((self.bytes.len(), to));
        self.word(0);
    }

    /// To the address that lies there.
    pub(in super::super) fn jmp_to(&mut self, m: Mem) {
        self.gpr(&[], false, false, &[0xFF], 4, Rm::Mem(m));
    }

    /// The address of a place in the code, in rax.
    pub(in super::super) fn lea(&mut self, of: Label) {
        self.bytes.extend([0x48, 0x8D, 0x05]);
        self.jumps.push((self.bytes.len(), of));
        self.word(0);
    }

    pub(in super::super) fn call(&mut self, m: Mem) {
        self.gpr(&[], false, false, &[0xFF], 2, Rm::Mem(m));
    }
}
