//! Faults as data: the sites of a kernel where something can go wrong, the record that a device writes, and the
//! error that a user reads. Every backend reports through these types.

use std::fmt;
use std::sync::Arc;

use crate::ir::{FaultKind, PrintPiece, Scalar};
use crate::print;

/// A place in a kernel's source that can fault. Its index in a kernel's table is its site number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FaultSite {
    /// What goes wrong there.
    pub kind: FaultKind,
    /// Source line, 0 when unknown.
    pub line: u32,
    /// What is accessed or computed: a buffer's or variable's name, or the operator.
    pub subject: String,
    /// Types of the operands, in order; at most [`record::OPERANDS`], and integers but for those of a message.
    pub operands: Vec<Scalar>,
    /// A panic's message; empty for other kinds.
    pub message: Vec<PrintPiece>,
}

impl FaultSite {
    /// A site without a message.
    pub fn new(kind: FaultKind, line: u32, subject: impl Into<String>, operands: Vec<Scalar>) -> FaultSite {
        FaultSite {
            kind,
            line,
            subject: subject.into(),
            operands,
            message: Vec::new(),
        }
    }

    /// The site of a panic.
    pub fn panic(line: u32, message: Vec<PrintPiece>, operands: Vec<Scalar>) -> FaultSite {
        FaultSite {
            message,
            ..FaultSite::new(FaultKind::Panic, line, "panic", operands)
        }
    }
}

/// Layout of the record that a faulting lane writes: [`record::WORDS`] little-endian `u32`s, all zero before. The
/// lane that changes word 0 from 0 to 1, atomically, claims it and then fills in the rest.
pub mod record {
    /// Size of a record in `u32` words.
    pub const WORDS: usize = 16;
    /// 0: no fault; 1: a fault was recorded.
    pub const CLAIM: usize = 0;
    /// Site number plus the launch's site base.
    pub const SITE: usize = 1;
    /// Index of the block, x, y, z.
    pub const BLOCK: usize = 2;
    /// Index of the lane in its block, x, y, z.
    pub const THREAD: usize = 5;
    /// The operands, each zero- or sign-extended to 64 bits by its type, low word first; of a float its bits.
    pub const FIRST: usize = 8;
    /// How many operands have room.
    pub const OPERANDS: usize = perpetua_syntax::MESSAGE_VALUES;

    /// First word of operand `i`.
    pub const fn operand(i: usize) -> usize {
        FIRST + 2 * i
    }
}

/// A fault that happened: everything a user needs to find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Kernel's name.
    pub kernel: String,
    /// Source file, empty when unknown.
    pub source: Arc<str>,
    /// Where in the kernel.
    pub site: FaultSite,
    /// Block index.
    pub block: [u32; 3],
    /// Lane index in the block.
    pub thread: [u32; 3],
    /// Operands' 64-bit values, as [`FaultSite::operands`] types them.
    pub operands: [u64; record::OPERANDS],
}

impl Fault {
    /// Reads a device's record. `lookup` gives kernel name, source and site for a global site number. `None` when
    /// the record holds no fault or an unknown site.
    pub fn from_record(
        words: &[u32; record::WORDS],
        lookup: impl FnOnce(u32) -> Option<(String, Arc<str>, FaultSite)>,
    ) -> Option<Fault> {
        if words[record::CLAIM] == 0 {
            return None;
        }
        let (kernel, source, site) = lookup(words[record::SITE])?;
        let three = |at: usize| [words[at], words[at + 1], words[at + 2]];
        let wide = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
        Some(Fault {
            kernel,
            source,
            site,
            block: three(record::BLOCK),
            thread: three(record::THREAD),
            operands: std::array::from_fn(|i| wide(record::operand(i))),
        })
    }

    /// What is divided; of an integer of two words these are the operands, the lower one unsigned.
    fn dividend(&self) -> String {
        let wide = u128::from(self.operands[1]) << 64 | u128::from(self.operands[0]);
        match (self.site.kind, &self.site.operands[..]) {
            (_, [Scalar::U64, Scalar::I64]) => (wide as i128).to_string(),
            (FaultKind::DivisionByZero, [Scalar::U64, Scalar::U64]) => wide.to_string(),
            _ => self.operand(0),
        }
    }

    fn operand(&self, i: usize) -> String {
        let bits = self.operands[i];
        match self.site.operands.get(i) {
            Some(s) if s.is_signed_int() => (bits as i64).to_string(),
            _ => bits.to_string(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = &self.site.subject;
        match self.site.kind {
            FaultKind::IndexOutOfBounds if subject.is_empty() => write!(
                f,
                "index out of bounds: the length is {} but the index is {}",
                self.operand(1),
                self.operand(0)
            )?,
            FaultKind::IndexOutOfBounds => write!(
                f,
                "index out of bounds: the length of `{subject}` is {} but the index is {}",
                self.operand(1),
                self.operand(0)
            )?,
            FaultKind::DivisionByZero => write!(f, "{subject} by zero: the dividend is {}", self.dividend())?,
            // Nothing but the least integer by -1 overflows.
            FaultKind::DivisionOverflow => {
                write!(f, "{subject} with overflow: {} by -1", self.dividend())?;
            }
            FaultKind::Unreachable => f.write_str("entered unreachable code")?,
            FaultKind::ZeroStep => f.write_str("a range in steps of zero")?,
            FaultKind::TimeLimit => f.write_str("a loop that ran on when its time was over")?,
            FaultKind::BudgetSpent => write!(
                f,
                "a loop that ran on when its budget of {} instructions was spent",
                self.operand(0)
            )?,
            FaultKind::LoopCut => write!(
                f,
                "a loop that the device's driver ended before its time: a lane's loops may take {} turns together \
                 there, so divide the work among more lanes or launches, or use another device",
                self.operand(0)
            )?,
            FaultKind::PoolExhausted => write!(f, "a pool without room for {} bytes", self.operand(0))?,
            FaultKind::NoPoolBlock => write!(
                f,
                "the pool has no block with the handle {}: it was never allocated, or has been freed",
                self.operand(0)
            )?,
            FaultKind::Panic if self.site.message.is_empty() => f.write_str("explicit panic")?,
            FaultKind::Panic => {
                f.write_str(&print::format(
                    &self.site.message,
                    &self.site.operands,
                    &self.operands,
                ))?;
            }
            FaultKind::UnreachableEnum if subject.is_empty() => {
                write!(f, "an enum has no variant with the value {}", self.operand(0))?;
            }
            FaultKind::UnreachableEnum => {
                write!(f, "`{subject}` has no variant with the value {}", self.operand(0))?;
            }
        }
        write!(f, " (kernel `{}`", self.kernel)?;
        if self.site.line != 0 {
            let source = if self.source.is_empty() {
                "line "
            } else {
                &*self.source
            };
            let colon = if self.source.is_empty() { "" } else { ":" };
            write!(f, ", {source}{colon}{}", self.site.line)?;
        }
        let [bx, by, bz] = self.block;
        let [tx, ty, tz] = self.thread;
        write!(f, ", block ({bx}, {by}, {bz}), lane ({tx}, {ty}, {tz}))")
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_as_an_error() {
        let mut words = [0u32; record::WORDS];
        words[record::CLAIM] = 1;
        words[record::SITE] = 7;
        words[record::BLOCK] = 3;
        words[record::THREAD + 1] = 2;
        words[record::FIRST] = u32::MAX;
        words[record::FIRST + 1] = u32::MAX;
        words[record::operand(1)] = 10;
        let operands = vec![Scalar::I64, Scalar::U64];
        let site = FaultSite::new(FaultKind::IndexOutOfBounds, 12, "x", operands);
        let fault = Fault::from_record(&words, |n| (n == 7).then(|| ("k".into(), "a.rs".into(), site)));
        assert_eq!(
            fault.map(|f| f.to_string()).as_deref(),
            Some(
                "index out of bounds: the length of `x` is 10 but the index is -1 (kernel `k`, a.rs:12, block (3, 0, 0), lane (0, 2, 0))"
            )
        );
    }
}
