//! Writes loops: as `for` or `while` where their shape allows it, else endless with exits inside.

use super::expr::Expr;
use super::statement::stores_whole;
use super::uses::Range;
use super::writer::{Frame, Spot, Writer, indent, is_whole};
use crate::ir::{Base, Block, Inst, LocalId, Op, Stmt, Value};
use crate::ops::BinaryOp;
use crate::pass::{counting_step, exits, step_start};

/// Whether `block` has a `break` out of the innermost loop, which must not stand in a switch.
pub(super) fn leaves_loop(block: &Block, innermost: Option<Frame>) -> bool {
    match innermost {
        Some(Frame::Loop) => exits(block, 0).breaks,
        Some(Frame::Next) => exits(block, 1).breaks,
        None => false,
    }
}

/// How a loop's body is divided.
struct Shape<'m> {
    /// Numbers of the statements after the head, up to the step or the labelled body.
    body: std::ops::Range<usize>,
    /// The labelled body of a counting loop.
    next: Option<&'m Block>,
    step: &'m [Stmt],
}

impl<'m> Writer<'m> {
    pub(super) fn loop_(&mut self, block: &'m Block, range: Range) {
        let before = std::mem::take(&mut self.out);
        let declared = self.last_declared.take();
        self.depth += 1;
        self.frames.push(Frame::Loop);

        let head = block
            .0
            .iter()
            .take_while(|s| matches!(s.inst, Inst::Let(..)))
            .count();
        let (lets, rest) = block.0.split_at(head);
        lets.iter().for_each(|s| self.statement(s));
        let condition = if self.out.is_empty() {
            self.head(rest)
        } else {
            None
        };
        let rest = if condition.is_some() {
            rest.get(1..).unwrap_or_default()
        } else {
            rest
        };

        let mut shape = Self::shape(block, rest, condition.is_some());
        self.part(block, shape.body.clone());
        if let Some(inner) = shape.next {
            self.frames.push(Frame::Next);
            self.block(inner);
            self.frames.pop();
        }
        if self.out.is_empty() && shape.next.is_none() && condition.is_some() {
            // Nothing but the step: a `while` says that better.
            shape.step.iter().for_each(|s| self.statement(s));
            shape.step = &[];
        }
        let step = (!shape.step.is_empty()).then(|| self.step(shape.step, condition.as_ref().map(|c| c.1)));
        self.frames.pop();
        self.depth -= 1;

        let body = std::mem::replace(&mut self.out, before);
        let condition = condition.map_or(String::new(), |(e, _)| e.text);
        let head = match step {
            Some((local, step)) => {
                let first = self.first_part(local, declared, range);
                format!("for ({first}; {condition}; {step})").replace("; ;", ";;")
            }
            None if condition.is_empty() => self.d.endless().to_owned(),
            None => format!("while ({condition})"),
        };
        self.write(&format!("{head} {{"));
        self.out.push_str(&body);
        let endless = !exits(block, 0).breaks && !returns(block);
        if endless && condition.is_empty() && self.d.needs_exits() {
            self.out
                .push_str(&format!("{}if (false) {{ break; }}\n", indent(self.depth + 1)));
        }
        self.write("}");
    }

    /// If the loop begins by leaving on a condition, the condition to stay, and its value with whether that leaves.
    fn head(&mut self, rest: &'m [Stmt]) -> Option<(Expr, (Value, bool))> {
        let Inst::If(c, then, otherwise) = &rest.first()?.inst else {
            return None;
        };
        let is_break = |b: &Block| matches!(b.0.as_slice(), [s] if s.inst == Inst::Break(0));
        let leaves_when = match (is_break(then), is_break(otherwise)) {
            (true, false) if otherwise.0.is_empty() => true,
            (false, true) if then.0.is_empty() => false,
            _ => return None,
        };
        let e = self.take(*c);
        let stay = if leaves_when { e.negated() } else { e };
        Some((stay, (*c, leaves_when)))
    }

    /// Finds the step at the end of the loop's body, if it may be written in the head.
    fn shape(block: &'m Block, rest: &'m [Stmt], has_condition: bool) -> Shape<'m> {
        let head = block.0.len() - rest.len();
        let plain = Shape {
            body: head..block.0.len(),
            next: None,
            step: &[],
        };
        let Some(start) = step_start(block) else {
            return plain;
        };
        let Some(step) = block.0.get(start..).filter(|_| head <= start) else {
            return plain;
        };
        let next = counting_step(block);
        match next {
            Some(at) => match block.0.get(at).map(|s| &s.inst) {
                Some(Inst::Labeled(inner)) => Shape {
                    body: head..at,
                    next: Some(inner),
                    step,
                },
                _ => plain,
            },
            None if has_condition && !exits(block, 0).continues => Shape {
                body: head..start,
                next: None,
                step,
            },
            None => plain,
        }
    }

    /// Writes the step as an assignment; gives its variable too.
    fn step(&mut self, step: &'m [Stmt], condition: Option<(Value, bool)>) -> (u32, String) {
        let Some((last, lets)) = step.split_last() else {
            return (0, String::new());
        };
        lets.iter().for_each(|s| self.statement(s));
        let Some((local, v)) = stores_whole(&last.inst) else {
            return (0, String::new());
        };
        let value = self.take(v);
        let name = self.local_name(local).to_owned();
        if self.counts_up(local, v, condition) {
            let one = self.d.literal(self.m, self.scalar_of(v), 1).text;
            return (local, format!("{name} += {one}"));
        }
        let spot = Spot {
            base: Base::Local(LocalId(local)),
            steps: Vec::new(),
            ty: self.type_of(v).clone(),
        };
        let text = self.assignment(local, &spot, &value);
        (local, text)
    }

    /// Whether the step adds one to a variable that is known to be below something: no overflow is possible.
    fn counts_up(&self, local: u32, v: Value, condition: Option<(Value, bool)>) -> bool {
        let definition = |v: &Value| self.definitions.get(v.0 as usize).copied().flatten();
        let loads =
            |v: &Value| matches!(definition(v), Some(Op::Load(place, None)) if is_whole(place, local));
        let Some(Op::Binary(BinaryOp::Add, a, b)) = definition(&v) else {
            return false;
        };
        let Some((c, leaves)) = condition else {
            return false;
        };
        let below = match definition(&c) {
            Some(Op::Binary(BinaryOp::Lt, x, _)) if !leaves => loads(x),
            Some(Op::Binary(BinaryOp::Ge, x, _)) if leaves => loads(x),
            _ => false,
        };
        // Stored twice at most: at the start and here.
        let stores = self.stores.get(local as usize).copied().unwrap_or(0);
        below && stores <= 2 && loads(a) && matches!(definition(b), Some(Op::Const(s, 1)) if s.is_int())
    }

    /// The first part of a `for`: the declaration right before, if the variable lives no longer than the loop.
    fn first_part(&mut self, local: u32, declared: Option<(u32, usize)>, range: Range) -> String {
        let Some((known, start)) = declared else {
            return String::new();
        };
        let short = self.uses.life(local).is_some_and(|l| l.last <= range.last);
        if known != local || !short || start > self.out.len() {
            return String::new();
        }
        let text = self.out.split_off(start);
        text.trim().trim_end_matches(';').to_owned()
    }
}

fn returns(block: &Block) -> bool {
    let mut found = false;
    block.walk(&mut |s| found |= matches!(s.inst, Inst::Return(_)));
    found
}
