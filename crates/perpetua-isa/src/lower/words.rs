//! What the kernel's verifier finds, in a program's words.

use perpetua_ir::verify::{Cause, Divergence};

use super::at;
use crate::program::Program;

/// What is wrong with the kernel that a program becomes, as somebody who wrote the program understands it.
pub(super) fn in_words(program: &Program, cause: &Cause) -> String {
    let Cause::DivergentBarrier { line, why, .. } = cause else {
        return cause.to_string();
    };
    let Divergence {
        what, line: source, ..
    } = why;
    let reason = what
        .replace("thread_idx.", "%tid.")
        .replace("subgroup_lane", "%laneid");
    let source = at(program, *source);
    let from = match source.instruction {
        Some(_) => format!(", at {source}"),
        None => String::new(),
    };
    format!(
        "not all lanes of a block come to this barrier together: they part at {}, because {reason}{from}; let all come to it, and guard what some \
         do alone, as with `@p0`",
        at(program, *line)
    )
}
