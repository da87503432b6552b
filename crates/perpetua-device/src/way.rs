//! How kernels run, for people and programs that ask.

use std::fmt;

/// How a kernel's launches run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Way {
    /// By what the device's driver made of the kernel's text.
    Driver,
    /// On the CPU, by native code: rustc compiled it with the program.
    Native,
    /// On the CPU, by machine code that was generated of the kernel's IR, for these instructions.
    MachineCode(&'static str),
    /// On the CPU, in the interpreter, and why.
    Interpreter(String),
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Driver => f.write_str("the driver's code"),
            Way::Native => f.write_str("native code"),
            Way::MachineCode(instructions) => write!(f, "machine code ({instructions})"),
            Way::Interpreter(why) => write!(f, "the interpreter ({why})"),
        }
    }
}
