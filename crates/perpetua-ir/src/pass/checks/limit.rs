//! Loops in labelled blocks whose faults are caught end when their time is over: they look at the clock now and then. Knows
//! nothing of other faults.

use crate::ir::{
    Block, Body, DeviceOp, Effect, FaultKind, Inst, Kernel, LocalId, Op, Place, Scalar, Stmt, Type, Value,
};
use crate::ops::BinaryOp;
use crate::pass::inline::with_loops_in_body;
use crate::pass::statements::{Code, new_local};

/// A loop looks at the clock once in so many turns, minus one; the turns of loops inside it count.
const TURNS: u64 = 127;

/// The kernel with loops that look at the clock; a copy where none has to.
pub(super) fn limit_loops(kernel: &Kernel) -> Kernel {
    // A device function does not know from where it was called: its loops come to where the time is known.
    let mut kernel = with_loops_in_body(kernel).into_owned();
    let block = std::mem::take(&mut kernel.body.block);
    kernel.body.block = outside(block, &mut kernel.body);
    kernel
}

/// A block around those whose faults are caught.
fn outside(block: Block, body: &mut Body) -> Block {
    let mut statements = Vec::with_capacity(block.0.len());
    let mut rest = block.0.into_iter().peekable();
    while let Some(mut stmt) = rest.next() {
        let until = match rest.peek().map(|next| &next.inst) {
            Some(Inst::Let(_, Op::Device(DeviceOp::CatchFault, args))) => args.first().copied(),
            _ => None,
        };
        match (&mut stmt.inst, until) {
            (Inst::Labeled(inner), Some(until)) => {
                let line = stmt.line;
                let mut watch = Watch {
                    body,
                    until,
                    turns: None,
                };
                watch.inside(inner);
                if let Some(turns) = watch.turns {
                    let mut zero = Code(Vec::new(), line);
                    let none = zero.constant(body, Scalar::U32, 0);
                    zero.push(Inst::Do(Effect::Store(Place::local(turns), none, None)));
                    statements.extend(zero.0);
                }
            }
            (inst, _) => {
                for inner in inst.blocks_mut() {
                    *inner = outside(std::mem::take(inner), body);
                }
            }
        }
        statements.push(stmt);
    }
    Block(statements)
}

/// What loops of one caught block need.
struct Watch<'a> {
    body: &'a mut Body,
    until: Value,
    /// Turns of all loops, where there are loops.
    turns: Option<LocalId>,
}

impl Watch<'_> {
    fn inside(&mut self, block: &mut Block) {
        for stmt in &mut block.0 {
            for inner in stmt.inst.blocks_mut() {
                self.inside(inner);
            }
            if let Inst::Loop(turn) = &mut stmt.inst {
                let mut code = self.look(stmt.line);
                code.0.append(&mut turn.0);
                *turn = Block(code.0);
            }
        }
    }

    /// Counts a turn; in some looks at the clock.
    fn look(&mut self, line: u32) -> Code {
        let body = &mut *self.body;
        let turns = *self
            .turns
            .get_or_insert_with(|| new_local(body, "turns", Type::U32));
        let mut code = Code(Vec::new(), line);
        let before = code.let_(body, Op::Load(Place::local(turns), None), Type::U32);
        let one = code.constant(body, Scalar::U32, 1);
        let after = code.let_(body, Op::Binary(BinaryOp::Add, before, one), Type::U32);
        code.push(Inst::Do(Effect::Store(Place::local(turns), after, None)));
        let mask = code.constant(body, Scalar::U32, TURNS);
        let masked = code.let_(body, Op::Binary(BinaryOp::And, after, mask), Type::U32);
        let zero = code.constant(body, Scalar::U32, 0);
        let looks = code.let_(body, Op::Binary(BinaryOp::Eq, masked, zero), Type::BOOL);
        let mut look = Code(Vec::new(), line);
        let now = look.let_(body, Op::Device(DeviceOp::Clock, Vec::new()), Type::U64);
        let over = look.let_(body, Op::Binary(BinaryOp::Gt, now, self.until), Type::BOOL);
        let fault = Stmt {
            line,
            inst: Inst::Do(Effect::fault(FaultKind::TimeLimit, Vec::new())),
        };
        look.push(Inst::If(over, Block(vec![fault]), Block::default()));
        code.push(Inst::If(looks, Block(look.0), Block::default()));
        code
    }
}
