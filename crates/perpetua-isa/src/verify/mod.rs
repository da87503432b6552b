//! The verifier of programs: what it passes can be lowered, whoever wrote it.
//!
//! In the order in which a program is checked: `declarations` looks at what it declares, `check` at each instruction by itself, `expand` writes routines out where they are
//! called, `flow` cuts the code into blocks and follows what each register holds, by `state`. That all lanes of a block come to a barrier
//! is a rule of the kernel that a program becomes, and checked there.

mod accesses;
mod check;
mod declarations;
mod expand;
mod flow;
mod state;

use std::sync::Arc;

use perpetua_ir::plain::plain;

use crate::error::{At, Error, Result, VerifyError};
use crate::fault::Fault;
use crate::program::Program;
use crate::text::instruction_text;

pub use crate::declaration::{MAX_DECLARATIONS, MAX_INSTRUCTIONS};
pub(crate) use accesses::{Access, accesses};
pub(crate) use flow::{Block, Exit, Flow, Goal, index_type};
pub(crate) use state::{Holds, REGISTER_SLOTS, State, predicate_slot, slot};

/// Deepest nesting of calls.
pub const MAX_CALL_DEPTH: usize = 32;

/// A program that the verifier has passed. Only [`verify`] makes one.
#[derive(Clone, Debug)]
pub struct Verified {
    program: Arc<Program>,
    pub(crate) flow: Arc<Flow>,
    /// How many instructions it is with calls, tiles and runs of registers written out.
    pub(crate) size: usize,
}

impl Verified {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What a lane's way through all of its code weighs in a budget.
    pub(crate) fn cost(&self) -> u64 {
        let blocks = self.flow.blocks.iter().map(flow::Block::cost);
        blocks.fold(0, u64::saturating_add)
    }

    /// Whether a lane may run more than its code once: there are loops, its own or an instruction's.
    pub(crate) fn has_loops(&self) -> bool {
        // Blocks stand in the order of the text, so each loop has a way back.
        self.flow.blocks.iter().enumerate().any(|(number, block)| {
            let goes_back = block.exit.blocks().any(|next| next <= number);
            goes_back || block.code.iter().any(|i| i.opcode.meaning().has_loop())
        })
    }
}

/// Checks a program.
///
/// # Errors
/// The first thing that is wrong with it: [`Error::Verify`].
pub fn verify(program: &Program) -> Result<Verified> {
    let found = check::check(program)
        .and_then(|()| expand::calls(program))
        .and_then(|()| expand::expand(program))
        .and_then(|(steps, size)| Ok((flow::flow(program, &steps)?, size)));
    match found {
        Ok((flow, size)) => Ok(Verified {
            program: Arc::new(program.clone()),
            flow: Arc::new(flow),
            size,
        }),
        Err(wrong) => Err(Error::from(Box::new(VerifyError {
            program: plain(&program.name).into_owned(),
            at: place(program, wrong.at),
            fault: *wrong.fault,
        }))),
    }
}

/// A routine's number and an instruction's in it.
pub(crate) type Where = (usize, usize);

/// What is wrong, and where.
pub(crate) struct Wrong {
    at: Option<Where>,
    fault: Box<Fault>,
}

impl Wrong {
    fn at(at: Where, fault: Fault) -> Wrong {
        Wrong {
            at: Some(at),
            fault: Box::new(fault),
        }
    }
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Wrong {
        Wrong {
            at: None,
            fault: Box::new(fault),
        }
    }
}

/// An instruction of a program for a message.
pub(crate) fn place(program: &Program, at: Option<Where>) -> At {
    let found = at.and_then(|(routine, i)| Some((program.routines.get(routine)?, i)));
    let Some((routine, i)) = found else {
        return At {
            routine: String::new(),
            instruction: None,
            file: plain(&program.source).into_owned(),
            line: 0,
            text: String::new(),
        };
    };
    let text = routine
        .code
        .get(i)
        .map(|instruction| instruction_text(program, routine, instruction));
    At {
        routine: routine.name.clone(),
        instruction: Some(i),
        file: plain(&program.source).into_owned(),
        line: routine.lines.get(i).copied().unwrap_or(0),
        text: plain(&text.unwrap_or_default()).into_owned(),
    }
}
