//! The text form: an assembler with labels, macros and includes, and its reverse. Reading what was printed gives the same program.
//! The specification ([`crate::specification`]) says what can be written.

mod assemble;
mod declared;
mod directives;
mod instruction;
mod lexer;
mod mnemonic;
mod print;
mod ptx;
pub(crate) mod source;

pub use assemble::Assembler;
pub(crate) use assemble::{MAX_INCLUDED, stored};
pub(crate) use directives::DIRECTIVES;
pub(crate) use mnemonic::scalar;
pub(crate) use print::{instruction_text, type_name};

use crate::diagnostic::AssembleError;
use crate::program::Program;

impl std::str::FromStr for Program {
    type Err = AssembleError;

    fn from_str(text: &str) -> Result<Program, AssembleError> {
        Assembler::new().assemble("program", text)
    }
}
