//! Loops whose turns are known beforehand: where a budget is counted, they are paid for at once and turn without asking.
//!
//! Such a loop has one way out, which every turn comes by, and leaves there by a counter: a `loop` instruction's, or a register that starts
//! at a constant, grows by a constant in every turn and is compared with a constant. The turns are counted by going through them,
//! with the registers' own wrapping arithmetic; a loop of more turns than are worth that is not known.

use std::collections::HashMap;

use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::BinaryOp;

use super::emitter::written_by;
use super::structure::Node;
use crate::instruction::{Guard, Instruction, Operand};
use crate::opcode::Meaning;
use crate::verify::{Block, Exit, Flow, predicate_slot};

/// Most turns of a loop that are counted.
const MOST_TURNS: u32 = 1024;
/// Most instructions that are paid for at once.
const MOST_COST: u32 = 1 << 16;

/// What loops that are known cost, all turns together, by their heads.
pub(super) type Counted = HashMap<usize, u32>;

/// Finds them in a program's structure.
pub(super) fn counted(flow: &Flow, nodes: &[Node]) -> Counted {
    let mut found = Counted::new();
    look(flow, nodes, None, &mut found);
    found
}

/// What a turn through a part of the tree costs: its blocks, and the loops that are known. Other loops charge for themselves.
pub(super) fn cost(flow: &Flow, nodes: &[Node], counted: &Counted) -> u32 {
    let each = nodes.iter().map(|node| match node {
        Node::Block(block) => flow.blocks.get(*block).map_or(1, block_cost),
        Node::If(_, a, b) => cost(flow, a, counted).saturating_add(cost(flow, b, counted)),
        Node::Labeled(_, body) => cost(flow, body, counted),
        Node::Loop(head, _) => counted.get(head).copied().unwrap_or(0),
        Node::Break(_) | Node::Continue(_) | Node::End => 0,
    });
    each.fold(0, u32::saturating_add)
}

/// What going through a block costs.
pub(super) fn block_cost(block: &Block) -> u32 {
    u32::try_from(block.cost()).unwrap_or(u32::MAX)
}

// `before`: the block that lanes come from.
fn look(flow: &Flow, nodes: &[Node], mut before: Option<usize>, found: &mut Counted) {
    for node in nodes {
        match node {
            Node::Block(block) => {
                before = Some(*block);
                continue;
            }
            Node::If(_, a, b) => {
                look(flow, a, None, found);
                look(flow, b, None, found);
            }
            Node::Labeled(_, body) => look(flow, body, before, found),
            Node::Loop(head, body) => {
                look(flow, body, None, found);
                let before = before.and_then(|block| flow.blocks.get(block));
                if let Some(turns) = before.and_then(|before| turns(flow, before, *head, body))
                    && let Some(all) = cost(flow, body, found).checked_mul(turns)
                    && all <= MOST_COST
                {
                    found.insert(*head, all);
                }
            }
            Node::Break(_) | Node::Continue(_) | Node::End => {}
        }
        before = None;
    }
}

// How often lanes come to the loop's way out, each time by a turn of it.
fn turns(flow: &Flow, before: &Block, head: usize, body: &[Node]) -> Option<u32> {
    let (test, acts_stays) = way_out(head, body)?;
    match flow.blocks.get(test)?.exit {
        Exit::Count(register, ..) if acts_stays => {
            // Nothing but the loop's own exit counts it down.
            let is_own = writes_to(flow, body, usize::from(register)) == 1;
            let count = start(before, register, Scalar::U32).filter(|_| is_own)?;
            u32::try_from(count)
                .ok()?
                .checked_add(1)
                .filter(|turns| *turns <= MOST_TURNS)
        }
        Exit::If(guard, ..) => {
            let (compared, comparison) = comparison(flow.blocks.get(test)?, guard)?;
            let at = body.iter().position(|node| *node == Node::Block(test))?;
            let (step_at, step) = step(flow, body, &comparison)?;
            // A predicate that acts where it is false.
            let stays = acts_stays != guard.negated;
            comparison.turns(before, stays, step, step_at < (at, compared))
        }
        _ => None,
    }
}

// The only way out: its block, and whether lanes stay where the block's exit acts.
fn way_out(head: usize, body: &[Node]) -> Option<(usize, bool)> {
    let again = Node::Continue(head);
    let leaves = |nodes: &[Node]| matches!(nodes, [Node::Break(_) | Node::End]);
    let mut way = None;
    let mut rest = body.iter().peekable();
    while let Some(node) = rest.next() {
        match node {
            _ if stays_inside(std::slice::from_ref(node)) => {}
            _ if *node == again && rest.peek().is_none() => {}
            Node::If(block, acting, other) if way.is_none() => {
                let is_last = rest.peek().is_none();
                let goes_on = |nodes: &[Node]| match nodes {
                    [] => true,
                    [only] => is_last && *only == again,
                    _ => false,
                };
                way = match (acting.as_slice(), other.as_slice()) {
                    (out, stay) if leaves(out) && goes_on(stay) => Some((*block, false)),
                    (stay, out) if leaves(out) && goes_on(stay) => Some((*block, true)),
                    // Lanes that do not go round again leave.
                    ([only], []) if *only == again => {
                        rest.next().filter(|next| leaves(std::slice::from_ref(*next)))?;
                        Some((*block, true))
                    }
                    _ => return None,
                };
            }
            _ => return None,
        }
    }
    way
}

// Whether code leads nowhere but to its end: neither out of the loop around it nor to its next turn.
fn stays_inside(nodes: &[Node]) -> bool {
    fn inside(nodes: &[Node], open: &mut Vec<usize>) -> bool {
        nodes.iter().all(|node| match node {
            Node::Block(_) => true,
            Node::If(_, a, b) => inside(a, open) && inside(b, open),
            Node::Loop(block, body) | Node::Labeled(block, body) => {
                open.push(*block);
                let fine = inside(body, open);
                open.pop();
                fine
            }
            Node::Break(block) | Node::Continue(block) => open.contains(block),
            Node::End => false,
        })
    }
    inside(nodes, &mut Vec::new())
}

/// A register compared with a constant.
struct Comparison {
    op: BinaryOp,
    ty: Scalar,
    register: u8,
    limit: u64,
}

// The last instruction of a block that writes the predicate, and its place.
fn comparison(block: &Block, guard: Guard) -> Option<(usize, Comparison)> {
    let slot = predicate_slot(guard.predicate);
    let writes = |i: &Instruction| written_by(i).iter().any(|(written, _)| *written == slot);
    let (at, last) = block.code.iter().enumerate().rfind(|(_, i)| writes(i))?;
    let (Meaning::Compare(op, bits), None, Some(ty)) = (last.opcode.meaning(), last.guard, last.ty) else {
        return None;
    };
    match last.operands.as_slice() {
        [_, Operand::Register(register), Operand::Immediate(limit)] if ty.is_int() => Some((
            at,
            Comparison {
                op,
                ty: if bits { ty.to_unsigned() } else { ty },
                register: *register,
                limit: *limit,
            },
        )),
        _ => None,
    }
}

// By what the register grows in every turn, and where: in which node of the body, and the instruction's place in its block.
fn step(flow: &Flow, body: &[Node], comparison: &Comparison) -> Option<((usize, usize), u64)> {
    let slot = usize::from(comparison.register);
    if writes_to(flow, body, slot) != 1 {
        return None;
    }
    let mut all = body.iter().enumerate().filter_map(|(at, node)| match node {
        Node::Block(block) => Some((at, flow.blocks.get(*block)?)),
        _ => None,
    });
    let (at, instruction, i) = all.find_map(|(at, block)| {
        let writes = |i: &Instruction| written_by(i).iter().any(|(written, _)| *written == slot);
        let (i, instruction) = block.code.iter().enumerate().find(|(_, i)| writes(i))?;
        Some((at, instruction, i))
    })?;
    let same = Operand::Register(comparison.register);
    let is_own =
        instruction.guard.is_none() && instruction.ty.map(Scalar::bits) == Some(comparison.ty.bits());
    match (instruction.opcode.meaning(), instruction.operands.as_slice()) {
        (Meaning::Binary(BinaryOp::Add), [_, from, Operand::Immediate(step)]) if is_own && *from == same => {
            Some(((at, i), *step))
        }
        (Meaning::Binary(BinaryOp::Sub), [_, from, Operand::Immediate(step)]) if is_own && *from == same => {
            Some(((at, i), step.wrapping_neg()))
        }
        _ => None,
    }
}

// How many instructions of a part of the tree write to a slot, `loop` as such not counted.
fn writes_to(flow: &Flow, nodes: &[Node], slot: usize) -> usize {
    let each = nodes.iter().map(|node| match node {
        Node::Block(block) => {
            let code = flow.blocks.get(*block).map_or(&[][..], |block| &block.code);
            let writes = code.iter().flat_map(written_by);
            writes.filter(|(written, _)| *written == slot).count()
        }
        Node::If(block, a, b) => {
            let exit = flow.blocks.get(*block).map(|block| block.exit);
            // The counter of another `loop`.
            let counts = matches!(exit, Some(Exit::Count(register, ..)) if usize::from(register) == slot);
            usize::from(counts) + writes_to(flow, a, slot) + writes_to(flow, b, slot)
        }
        Node::Loop(_, body) | Node::Labeled(_, body) => writes_to(flow, body, slot),
        Node::Break(_) | Node::Continue(_) | Node::End => 0,
    });
    each.sum()
}

// What a register holds at a block's end, if a constant was moved there.
fn start(block: &Block, register: u8, ty: Scalar) -> Option<u64> {
    let slot = usize::from(register);
    let writes = |i: &&Instruction| written_by(i).iter().any(|(written, _)| *written == slot);
    let last = block.code.iter().rfind(writes)?;
    match last.operands.as_slice() {
        [_, Operand::Immediate(bits)]
            if last.opcode.meaning() == Meaning::Move
                && last.guard.is_none()
                && last.ty.is_some_and(|own| own.is_int() && own.bits() == ty.bits()) =>
        {
            Some(*bits)
        }
        _ => None,
    }
}

impl Comparison {
    // `stays`: the outcome with which lanes stay; `is_first`: whether the register grows before it is compared.
    fn turns(&self, before: &Block, stays: bool, step: u64, is_first: bool) -> Option<u32> {
        let mut value = start(before, self.register, self.ty)?;
        let mask = u64::MAX >> (64 - self.ty.bits());
        for turn in 1..=MOST_TURNS {
            if is_first {
                value = value.wrapping_add(step) & mask;
            }
            if self.holds(value)? != stays {
                return Some(turn);
            }
            if !is_first {
                value = value.wrapping_add(step) & mask;
            }
        }
        None
    }

    fn holds(&self, value: u64) -> Option<bool> {
        let number = |bits: u64| match self.ty.is_signed_int() {
            true => {
                let unused = 64 - self.ty.bits();
                i128::from((bits << unused) as i64 >> unused)
            }
            false => i128::from(bits),
        };
        let (a, b) = (number(value), number(self.limit));
        Some(match self.op {
            BinaryOp::Lt => a < b,
            BinaryOp::Le => a <= b,
            BinaryOp::Gt => a > b,
            BinaryOp::Ge => a >= b,
            BinaryOp::Eq => a == b,
            BinaryOp::Ne => a != b,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::Graph;
    use super::super::structure::{Structure, structure};
    use super::*;
    use crate::program::Program;
    use crate::verify::verify;

    // What the known loops of a program cost, least first.
    fn known(text: &str) -> Vec<u32> {
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
        let verified = verify(&program).unwrap_or_else(|error| panic!("{error}"));
        let Structure::Nested(nodes) = structure(&verified.flow, &Graph::new(&verified.flow)) else {
            return Vec::new();
        };
        let mut all: Vec<u32> = counted(&verified.flow, &nodes).into_values().collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn turns_are_those_that_a_lane_makes() {
        let up = "mov.u32 r9, 0\na: add.u32 r9, r9, 1\n setlt.u32 p0, r9, 16\n@p0 bra a";
        assert_eq!(known(up), [16 * 3]);
        // The test comes first: 10, 7, 4, 1, -2.
        let down = "mov.i32 r9, 10\na: setle.i32 p0, r9, -2\n@p0 bra b\n sub.i32 r9, r9, 3\n bra a\nb: nop";
        assert_eq!(known(down), [5 * 4]);
        let negated =
            "mov.i32 r9, 10\na: setgt.i32 p0, r9, -2\n@!p0 bra b\n sub.i32 r9, r9, 3\n bra a\nb: nop";
        assert_eq!(known(negated), [5 * 4]);
        // The test sees what was before the step: 0 to 16.
        let behind = "mov.u32 r9, 0\na: setlt.u32 p0, r9, 16\n add.u32 r9, r9, 1\n@p0 bra a";
        assert_eq!(known(behind), [17 * 3]);
        // By way of 255 and 0.
        let wraps = "mov.u8 r9, 250\na: add.u8 r9, r9, 1\n setne.u8 p0, r9, 3\n@p0 bra a";
        assert_eq!(known(wraps), [9 * 3]);
        let counts = "mov.u32 r1, 0\n mov.u32 r9, 5\na: add.u32 r1, r1, 1\n loop r9, a";
        assert_eq!(known(counts), [6 * 2]);
        // A loop in a loop costs its turns in each of the outer one's.
        let nested = "mov.u32 r8, 3\na: mov.u32 r9, 1\nb: add.u32 r1, r252, 1\n loop r9, b\n loop r8, a";
        assert_eq!(known(nested), [2 * 2, 4 * (2 + 4 + 1)]);
        // An inner choice leads nowhere else.
        let choice = "mov.u32 r9, 0\na: setlt.u32 p1, r252, 3\n@p1 bra c\n add.u32 r1, r252, 1\nc: add.u32 r9, r9, 1\n \
            setlt.u32 p0, r9, 4\n@p0 bra a";
        assert_eq!(known(choice).len(), 1);
    }

    #[test]
    fn what_may_turn_on_is_not_known() {
        for text in [
            // It steps over its limit.
            "mov.u32 r9, 1\na: add.u32 r9, r9, 2\n setne.u32 p0, r9, 4\n@p0 bra a",
            "mov.u32 r9, 0\na: add.u32 r9, r9, 0\n setlt.u32 p0, r9, 4\n@p0 bra a",
            // More turns than are gone through.
            "mov.u32 r9, 0\na: add.u32 r9, r9, 1\n setlt.u32 p0, r9, 4000\n@p0 bra a",
            "mov.u32 r9, 4000000000\na: add.u32 r1, r252, 1\n loop r9, a",
            // Somebody else writes the counter, the predicate, or steps only now and then.
            "mov.u32 r9, 0\na: add.u32 r9, r9, 1\n setlt.u32 p1, r252, 3\n@p1 mov.u32 r9, 0\n setlt.u32 p0, r9, 4\n@p0 bra a",
            "mov.u32 r9, 0\na: setlt.u32 p1, r252, 3\n@p1 add.u32 r9, r9, 1\n setlt.u32 p0, r9, 4\n@p0 bra a",
            "mov.u32 r9, 0\na: add.u32 r9, r9, 1\n setlt.u32 p0, r9, 4\n@p0 mov.pred p0, true\n@p0 bra a",
            "mov.u32 r9, 3\na: mov.u32 r9, 3\n add.u32 r1, r252, 1\n loop r9, a",
            "mov.u32 r9, 3\na: add.u32 r1, r252, 1\nb: loop r9, b\n loop r9, a",
            // The step is passed by.
            "mov.u32 r9, 0\na: setlt.u32 p1, r252, 3\n@p1 bra a\n add.u32 r9, r9, 1\n setlt.u32 p0, r9, 4\n@p0 bra a",
            "mov.u32 r9, 0\na: setlt.u32 p1, r252, 3\n@p1 bra c\n add.u32 r9, r9, 1\nc: setlt.u32 p0, r9, 4\n@p0 bra a",
            // Two ways out: paying for all would be too much.
            "mov.u32 r9, 0\na: setlt.u32 p1, r252, 3\n@p1 bra e\n add.u32 r9, r9, 1\n setlt.u32 p0, r9, 4\n@p0 bra a\ne: nop",
            // Nobody knows where it starts.
            "a: add.u32 r252, r252, 1\n setlt.u32 p0, r252, 4\n@p0 bra a",
            "mov.u32 r9, 0\n setlt.u32 p1, r252, 3\n@p1 mov.u32 r9, 2\na: add.u32 r9, r9, 1\n setlt.u32 p0, r9, 4\n@p0 bra a",
        ] {
            assert_eq!(
                known(text).iter().filter(|cost| **cost > 4 * 2).count(),
                0,
                "{text}"
            );
        }
    }
}
