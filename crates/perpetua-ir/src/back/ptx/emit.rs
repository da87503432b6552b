//! Registers, labels and text of one PTX function. Knows how instructions are written down, not what they are for.

use std::fmt;

use crate::ir::Scalar;

/// The register or constant that holds one scalar of a value.
///
/// Integers of 8 and 16 bits live in 32-bit registers, sign- or zero-extended by their type; f16 and bf16 as their
/// zero-extended bits; `bool` in predicates. Registers are untyped bits, so a bit cast costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Leaf {
    /// A predicate register.
    Pred(u32),
    /// A 32-bit register.
    Word(u32),
    /// A 64-bit register.
    Wide(u32),
    /// A constant: the bits that the register would hold, zero-extended.
    Imm(u64),
}

impl Leaf {
    /// This leaf as an operand of an instruction on `s`.
    pub(super) fn at(self, s: Scalar) -> Operand {
        Operand(self, s)
    }
}

impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Leaf::Pred(n) => write!(f, "%p{n}"),
            Leaf::Word(n) => write!(f, "%r{n}"),
            Leaf::Wide(n) => write!(f, "%d{n}"),
            Leaf::Imm(bits) => write!(f, "{bits}"),
        }
    }
}

/// A leaf as an operand: constants are written as the instruction's type wants them.
#[derive(Clone, Copy)]
pub(super) struct Operand(Leaf, Scalar);

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Leaf::Imm(bits) = self.0 else {
            return self.0.fmt(f);
        };
        match self.1 {
            Scalar::F32 => write!(f, "0f{:08X}", bits as u32),
            Scalar::F64 => write!(f, "0d{bits:016X}"),
            Scalar::I64 => write!(f, "{}", bits as i64),
            Scalar::I8 | Scalar::I16 | Scalar::I32 => write!(f, "{}", bits as u32 as i32),
            _ => write!(f, "{bits}"),
        }
    }
}

/// A place to jump to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(u32);

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$L{}", self.0)
    }
}

/// Writes the body of one function.
#[derive(Default)]
pub(super) struct Emitter {
    /// What runs once at the start: special registers, parameters, addresses of variables.
    prologue: String,
    code: String,
    /// What runs rarely, placed after the end.
    cold: String,
    preds: u32,
    halves: u32,
    words: u32,
    wides: u32,
    labels: u32,
    line: u32,
}

/// Where instructions go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Prologue,
    Code,
}

impl Emitter {
    pub(super) fn pred(&mut self) -> Leaf {
        self.preds += 1;
        Leaf::Pred(self.preds - 1)
    }

    pub(super) fn word(&mut self) -> Leaf {
        self.words += 1;
        Leaf::Word(self.words - 1)
    }

    pub(super) fn wide(&mut self) -> Leaf {
        self.wides += 1;
        Leaf::Wide(self.wides - 1)
    }

    /// The number of a fresh 16-bit register, `%hN`; only between two conversions.
    pub(super) fn half(&mut self) -> u32 {
        self.halves += 1;
        self.halves - 1
    }

    /// A fresh register for a scalar.
    pub(super) fn register(&mut self, s: Scalar) -> Leaf {
        match s {
            Scalar::Bool => self.pred(),
            _ if s.size() == 8 => self.wide(),
            _ => self.word(),
        }
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Appends an instruction to a section.
    pub(super) fn to(&mut self, section: Section, instruction: fmt::Arguments<'_>) {
        let text = match section {
            Section::Prologue => &mut self.prologue,
            Section::Code => &mut self.code,
        };
        text.push('\t');
        // Writing to a string does not fail.
        let _ = fmt::write(text, instruction);
        text.push_str(";\n");
    }

    pub(super) fn place(&mut self, label: Label) {
        let _ = fmt::write(&mut self.code, format_args!("{label}:\n"));
    }

    /// Places a label that has a name of its own.
    pub(super) fn place_named(&mut self, label: &str) {
        let _ = fmt::write(&mut self.code, format_args!("{label}:\n"));
    }

    /// Notes the source line of what follows.
    pub(super) fn line(&mut self, line: u32) {
        if line != 0 && line != self.line {
            self.line = line;
            let _ = fmt::write(&mut self.code, format_args!("\t// line {line}\n"));
        }
    }

    /// Starts writing rare code; gives what [`Emitter::end_cold`] needs.
    pub(super) fn begin_cold(&mut self) -> (String, u32) {
        (std::mem::take(&mut self.code), self.line)
    }

    pub(super) fn end_cold(&mut self, (code, line): (String, u32)) {
        let cold = std::mem::replace(&mut self.code, code);
        self.cold.push_str(&cold);
        self.line = line;
    }

    /// The whole body: declarations of registers and code in order.
    pub(super) fn finish(self) -> String {
        let mut text = String::with_capacity(self.prologue.len() + self.code.len() + self.cold.len() + 128);
        for (ty, name, count) in [
            ("pred", "p", self.preds),
            ("b16", "h", self.halves),
            ("b32", "r", self.words),
            ("b64", "d", self.wides),
        ] {
            if count > 0 {
                let _ = fmt::write(&mut text, format_args!("\t.reg .{ty} %{name}<{count}>;\n"));
            }
        }
        text.push_str(&self.prologue);
        text.push_str(&self.code);
        text.push_str(&self.cold);
        text
    }
}

/// Appends an instruction to the code of a renderer.
macro_rules! emit {
    ($renderer:expr, $($format:tt)*) => {
        $renderer.out.to($crate::back::ptx::emit::Section::Code, format_args!($($format)*))
    };
}
pub(super) use emit;

/// Appends an instruction to the prologue of a renderer.
macro_rules! emit_once {
    ($renderer:expr, $($format:tt)*) => {
        $renderer.out.to($crate::back::ptx::emit::Section::Prologue, format_args!($($format)*))
    };
}
pub(super) use emit_once;
