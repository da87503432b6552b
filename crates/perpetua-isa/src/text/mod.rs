//! The text form: an assembler with labels, macros and includes, and its reverse. Reading what was printed gives the same program.
//!
//! ```text
//! .program saxpy
//! .buffer x: f32          ; read, since nothing stores to it
//! .buffer y: f32
//! .param a: f32
//!
//!     mov.u32 r0, %gid
//!     setge.u32 p0, r0, len(x)
//! @p0 exit
//!     ldg.f32 r1, x[r0]
//!     ldg.f32 r2, y[r0]
//!     fma.f32 r2, a, r1, r2
//!     stg.f32 y[r0], r2
//! ```
//!
//! One instruction a line; `;`, `#` and `//` begin a comment. `@p0` in front lets it act where p0 is true, `@!p0` where it is
//! false. `label:` names a place; `.func NAME` begins a routine for `call NAME`. Directives: `.program NAME`, `.block X, Y, Z`,
//! `.buffer NAME: TYPE [read|readwrite] [= HANDLE]`, `.param NAME: TYPE`, `.shared NAME: TYPE[LENGTH]`,
//! `.const NAME: TYPE = VALUE, …`, `.include "FILE"`, and `.macro NAME A, B` … `.endmacro`, in which `\A` is an argument and `\@` a number
//! that differs from use to use. `.include "atlas"` brings hologram's instructions of that group as macros.

mod assemble;
mod diagnostic;
mod instruction;
mod lexer;
mod print;
mod source;

pub use assemble::Assembler;
pub(crate) use assemble::stored;
pub use diagnostic::AssembleError;
pub(crate) use instruction::{nearest, scalar};
pub(crate) use print::instruction_text;

use crate::program::Program;

impl std::str::FromStr for Program {
    type Err = AssembleError;

    fn from_str(text: &str) -> Result<Program, AssembleError> {
        Assembler::new().assemble("program", text)
    }
}
