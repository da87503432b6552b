//! For kernels that run other people's code where it cannot look at a clock: loops count their turns. Knows nothing of what a turn costs.

use super::inline::with_loops_in_body;
use super::statements::{Code, new_local};
use crate::ir::{
    Axis, Base, Block, Body, Builtin, Effect, FaultKind, Inst, LocalId, Op, ParamKind, Place, Scalar, Stmt,
    Type,
};
use crate::ops::BinaryOp;
use crate::verify::Verified;

/// What a lane that is out of turns adds to its word.
pub const OUT_OF_TURNS: u32 = 1 << 31;

/// The kernel with loops that end: the loops of a lane make at most so many turns, all together, as the lane's word says when it begins;
/// the word is 0 then. Where a loop would make one more turn, [`OUT_OF_TURNS`] is set in it, and the lane faults
/// ([`FaultKind::TimeLimit`]).
///
/// The lanes' words are those of the buffer `words` (`u32`, which the kernel may write to as well), by their numbers in the grid's first
/// axis; each lane of the launch has one. `None` where there is no such buffer.
pub fn limit_turns(verified: &Verified, words: &str) -> Option<Verified> {
    let kernel = verified.kernel();
    let buffer = kernel.params.iter().position(|param| {
        let of_words = matches!(&param.kind, ParamKind::Buffer { element, .. } if *element == Type::U32);
        of_words && param.name == words
    })?;
    let mut kernel = with_loops_in_body(kernel).into_owned();
    let mut block = std::mem::take(&mut kernel.body.block);
    let body = &mut kernel.body;
    let mut code = Code(Vec::new(), block.0.first().map_or(0, |stmt| stmt.line));
    let [blocks, lanes, lane] = [Builtin::BlockIdx, Builtin::BlockDim, Builtin::ThreadIdx]
        .map(|which| code.let_(body, Op::Builtin(which(Axis::X)), Type::U32));
    let before = code.let_(body, Op::Binary(BinaryOp::Mul, blocks, lanes), Type::U32);
    let lane = code.let_(body, Op::Binary(BinaryOp::Add, before, lane), Type::U32);
    let word = Place::element(Base::Buffer(buffer as u32), lane);
    let turns = code.let_(body, Op::Load(word.clone(), None), Type::U32);
    let left = new_local(body, "turns_left", Type::U32);
    code.push(Inst::Do(Effect::Store(Place::local(left), turns, None)));
    let zero = code.constant(body, Scalar::U32, 0);
    code.push(Inst::Do(Effect::Store(word.clone(), zero, None)));
    Count { body, word, left }.inside(&mut block);
    block.0.splice(..0, code.0);
    kernel.body.block = block;
    Some(verified.with_kernel(kernel))
}

struct Count<'a> {
    body: &'a mut Body,
    word: Place,
    left: LocalId,
}

impl Count<'_> {
    fn inside(&mut self, block: &mut Block) {
        for stmt in &mut block.0 {
            for inner in stmt.inst.blocks_mut() {
                self.inside(inner);
            }
            if let Inst::Loop(turn) = &mut stmt.inst {
                turn.0.splice(..0, self.turn(stmt.line));
            }
        }
    }

    /// Takes a turn from those that are left.
    fn turn(&mut self, line: u32) -> Vec<Stmt> {
        let body = &mut *self.body;
        let mut code = Code(Vec::new(), line);
        let left = code.let_(body, Op::Load(Place::local(self.left), None), Type::U32);
        let zero = code.constant(body, Scalar::U32, 0);
        let one = code.constant(body, Scalar::U32, 1);
        let none = code.let_(body, Op::Binary(BinaryOp::Eq, left, zero), Type::BOOL);
        let mut out = Code(Vec::new(), line);
        let word = out.let_(body, Op::Load(self.word.clone(), None), Type::U32);
        let mark = out.constant(body, Scalar::U32, OUT_OF_TURNS.into());
        let marked = out.let_(body, Op::Binary(BinaryOp::Or, word, mark), Type::U32);
        out.push(Inst::Do(Effect::Store(self.word.clone(), marked, None)));
        out.push(Inst::Do(Effect::fault(FaultKind::TimeLimit, Vec::new())));
        code.push(Inst::If(none, Block(out.0), Block::default()));
        let rest = code.let_(body, Op::Binary(BinaryOp::Sub, left, one), Type::U32);
        code.push(Inst::Do(Effect::Store(Place::local(self.left), rest, None)));
        code.0
    }
}
