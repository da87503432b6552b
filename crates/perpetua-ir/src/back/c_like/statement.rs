//! Writes statements: operations, stores, choices, exits.

use std::ops::Range;

use super::effects::writes;
use super::expr::{Expr, Reads};
use super::repeat::leaves_loop;
use super::writer::{Frame, Spot, Writer, indent, is_whole};
use crate::ir::{Base, Block, DeviceOp, Effect, Inst, Op, Place, Scalar, Stmt, Sync, Value};
use crate::ops::TernaryOp;

impl<'m> Writer<'m> {
    pub(super) fn block(&mut self, block: &'m Block) {
        self.part(block, 0..block.0.len());
    }

    /// Writes the statements of a block with these numbers.
    pub(super) fn part(&mut self, block: &'m Block, part: Range<usize>) {
        let met = block.met_loads(&self.body.values);
        let statements = block.0.iter().enumerate();
        for (i, stmt) in statements.take(part.end).skip(part.start) {
            if met.binary_search(&i).is_err() || !self.load_met(stmt) {
                self.statement(stmt);
            }
        }
    }

    /// Writes `block` between braces that follow `head`.
    fn braced(&mut self, head: &str, block: &'m Block) {
        self.write(&format!("{head} {{"));
        self.depth += 1;
        self.block(block);
        self.depth -= 1;
        self.write("}");
    }

    pub(super) fn statement(&mut self, stmt: &'m Stmt) {
        if self.uses.is_dead(stmt, &self.m.effects) {
            return;
        }
        self.line = stmt.line;
        let range = self.uses.range(stmt);
        match &stmt.inst {
            Inst::Let(v, op) => {
                let left = self.declare(range.start, &stmt.inst);
                debug_assert!(left.is_none());
                let e = self.operation(*v, op, &stmt.inst);
                self.define(*v, op, e);
            }
            Inst::Do(effect) => self.effect(stmt, effect),
            Inst::If(c, then, otherwise) => {
                let c = self.take(*c);
                self.declare(range.start, &stmt.inst);
                self.settle_before(&stmt.inst, range);
                self.if_(&c, then, otherwise);
            }
            Inst::Switch {
                selector,
                cases,
                default,
            } => {
                let s = self.scalar_of(*selector);
                let e = self.take(*selector);
                self.declare(range.start, &stmt.inst);
                self.settle_before(&stmt.inst, range);
                self.switch(s, e, cases, default);
            }
            Inst::Loop(body) => {
                self.declare(range.start, &stmt.inst);
                self.settle_before(&stmt.inst, range);
                self.loop_(body, range);
            }
            // `pass::levels` leaves none but the bodies of counting loops, which `repeat` writes.
            Inst::Labeled(_) => self.m.unsupported(stmt.line, "a labelled block"),
            Inst::Break(depth) => self.exit(stmt.line, *depth, false),
            Inst::Continue(depth) => self.exit(stmt.line, *depth, true),
            Inst::Return(v) => {
                let text = match v {
                    Some(v) => format!("return {};", self.take(*v).text),
                    None => "return;".to_owned(),
                };
                self.write(&text);
            }
        }
    }

    fn exit(&mut self, line: u32, depth: u32, continues: bool) {
        let at = self.frames.len().checked_sub(1 + depth as usize);
        let innermost = self.frames.iter().rposition(|f| *f == Frame::Loop);
        let text = match at.and_then(|at| self.frames.get(at).map(|f| (at, *f))) {
            Some((at, Frame::Loop)) if Some(at) == innermost => {
                if continues {
                    "continue;"
                } else {
                    "break;"
                }
            }
            Some((at, Frame::Next)) if innermost == at.checked_sub(1) => "continue;",
            _ => return self.m.unsupported(line, "an exit through several loops"),
        };
        self.write(text);
    }

    pub(super) fn if_(&mut self, c: &Expr, then: &'m Block, otherwise: &'m Block) {
        let is_empty = |w: &Self, b: &Block| b.0.iter().all(|s| w.uses.is_dead(s, &w.m.effects));
        if is_empty(self, then) && !is_empty(self, otherwise) {
            return self.braced(&format!("if ({})", c.negated().text), otherwise);
        }
        self.braced(&format!("if ({})", c.text), then);
        if is_empty(self, otherwise) {
            return;
        }
        // `} else {` on one line, and `else if` where the branch is nothing but another choice.
        self.reopen();
        let start = self.out.len();
        self.braced("else", otherwise);
        self.flatten_else(start, otherwise);
    }

    /// Takes back the end of the line after a closing brace.
    pub(super) fn reopen(&mut self) {
        if self.out.ends_with("}\n") {
            self.out.pop();
            self.out.push(' ');
        }
    }

    /// Turns the `else { if … }` that starts at `start` into `else if …`.
    fn flatten_else(&mut self, start: usize, otherwise: &Block) {
        let text = self.out.split_off(start);
        let text = text.trim_start();
        let only_if = matches!(
            otherwise.0.iter().filter(|s| !self.uses.is_dead(s, &self.m.effects)).collect::<Vec<_>>().as_slice(),
            [first @ .., last] if matches!(last.inst, Inst::If(..)) && first.iter().all(|s| matches!(s.inst, Inst::Let(..)))
        );
        let inner_indent = indent(self.depth + 1);
        let starts_with_if = text.strip_prefix("else {\n").and_then(|rest| {
            rest.strip_prefix(inner_indent.as_str())
                .is_some_and(|r| r.starts_with("if ("))
                .then_some(rest)
        });
        match starts_with_if {
            Some(rest) if only_if => {
                let body = rest
                    .strip_suffix(&format!("{}}}\n", indent(self.depth)))
                    .unwrap_or(rest);
                let lines: Vec<&str> = body.lines().collect();
                self.out.push_str("else ");
                for (i, line) in lines.iter().enumerate() {
                    let line = line.strip_prefix("    ").unwrap_or(line);
                    let line = if i == 0 { line.trim_start() } else { line };
                    self.out.push_str(line);
                    self.out.push('\n');
                }
            }
            _ => self.out.push_str(text),
        }
    }

    fn switch(&mut self, s: Scalar, selector: Expr, cases: &'m [(Vec<u64>, Block)], default: &'m Block) {
        let leaves = cases
            .iter()
            .map(|(_, b)| b)
            .chain([default])
            .any(|b| leaves_loop(b, self.frames.last().copied()));
        if leaves || !self.d.switches_on(s) {
            return self.chain(s, selector, cases, default);
        }
        let selector = self.natural(s, selector);
        self.write(&format!("switch ({}) {{", selector.text));
        self.depth += 1;
        for (labels, block) in cases {
            self.case(&self.d.case(self.m, s, labels), block);
        }
        if !default.0.is_empty() || !self.d.breaks_cases() {
            self.case(&self.d.case(self.m, s, &[]), default);
        }
        self.depth -= 1;
        self.write("}");
    }

    fn case(&mut self, head: &str, block: &'m Block) {
        self.write(&format!("{head} {{"));
        self.depth += 1;
        self.block(block);
        if self.d.breaks_cases() && crate::pass::falls_through(block) {
            self.write("break;");
        }
        self.depth -= 1;
        self.write("}");
    }

    /// A switch as a chain of `if`s: inside it `break` means the loop.
    fn chain(&mut self, s: Scalar, selector: Expr, cases: &'m [(Vec<u64>, Block)], default: &'m Block) {
        let selector = self.natural(s, selector);
        let selector = self.named(&s.into(), selector, "choice");
        for (i, (labels, block)) in cases.iter().enumerate() {
            let tests: Vec<String> = labels
                .iter()
                .map(|bits| {
                    let label = self.d.literal(self.m, s, *bits);
                    Expr::infix("==", super::expr::Bind::Compare, &selector, &label).text
                })
                .collect();
            let test = if tests.is_empty() {
                "false".to_owned()
            } else {
                tests.join(" || ")
            };
            if i > 0 {
                self.reopen();
                let start = self.out.len();
                self.braced(&format!("else if ({test})"), block);
                self.trim_at(start);
            } else {
                self.braced(&format!("if ({test})"), block);
            }
        }
        if default.0.is_empty() {
            return;
        }
        if cases.is_empty() {
            return self.block(default);
        }
        self.reopen();
        let start = self.out.len();
        self.braced("else", default);
        self.trim_at(start);
    }

    /// Removes the indentation of the line that starts at `start`, which continues the one before.
    fn trim_at(&mut self, start: usize) {
        let text = self.out.split_off(start);
        self.out.push_str(text.trim_start_matches(' '));
    }

    fn effect(&mut self, stmt: &'m Stmt, effect: &'m Effect) {
        let range = self.uses.range(stmt);
        let written = writes(&stmt.inst, &self.m.effects);
        match effect {
            Effect::Store(place, v, sync) => self.store(stmt, place, *v, *sync),
            Effect::Device(op, args) => {
                let statement = self.device(*op, args, &written).text;
                if !statement.is_empty() {
                    self.write(&format!("{statement};"));
                }
            }
            Effect::Print(pieces, args) => {
                let args = self.take_scalars(args);
                self.declare(range.start, &stmt.inst);
                self.d.print(self, stmt.line, pieces, &args);
            }
            Effect::Fault(.., operands) | Effect::Panic(_, operands) => {
                let operands = self.take_integers(operands);
                self.settle_reads(&written);
                self.d.fault(self, stmt.line, &operands);
            }
        }
    }

    pub(super) fn take_scalars(&mut self, values: &[Value]) -> Vec<(Scalar, Expr)> {
        values
            .iter()
            .map(|v| (self.scalar_of(*v), self.take(*v)))
            .collect()
    }

    fn store(&mut self, stmt: &'m Stmt, place: &'m Place, v: Value, sync: Option<Sync>) {
        let range = self.uses.range(stmt);
        let written = writes(&stmt.inst, &self.m.effects);
        let Base::Local(id) = place.base else {
            let value = self.take(v);
            let spot = self.spot(place);
            self.settle_reads(&written);
            return self.d.store(self, &spot, &value, sync);
        };
        let fills = self.fills(stmt, id.0) && self.flat_levels(id.0) > 0;
        let value = self.take(v);
        let spot = self.spot(place);
        self.settle_reads(&written);
        if self.declare(range.start, &stmt.inst) == Some(id.0) {
            return self.first_store(id.0, v, &value, fills);
        }
        let text = self.assignment(id.0, &spot, &value);
        self.write(&format!("{text};"));
    }

    /// Declares a variable with its first value.
    fn first_store(&mut self, local: u32, v: Value, value: &Expr, fills: bool) {
        let ty = self.type_of(v);
        let name = self.local_name(local).to_owned();
        let once = self.stores.get(local as usize) == Some(&1);
        if once && !fills && ty.as_scalar().is_some() {
            let text = self.d.constant(self.m, ty, &name, &value.text);
            return self.write(&text);
        }
        let flat = self.flat_levels(local);
        let list = if fills { self.filling(v) } else { None };
        let text = self.d.variable(
            self.m,
            ty,
            flat,
            &name,
            Some(list.as_deref().unwrap_or(&value.text)),
        );
        let start = self.out.len();
        self.write(&format!("{text};"));
        self.last_declared = Some((local, start));
    }

    /// The elements of a plain array, in braces; `None` where the dialect writes the value itself.
    fn filling(&mut self, v: Value) -> Option<String> {
        match self.definitions.get(v.0 as usize).copied().flatten() {
            Some(Op::Zero(_)) => self.d.list(&[]),
            Some(Op::Compose(_, parts)) => {
                let parts: Vec<Expr> = parts.iter().map(|p| self.take(*p)).collect();
                self.d.list(&parts)
            }
            _ => None,
        }
    }

    /// `place = value`, or `place += value` where that says the same.
    pub(super) fn assignment(&mut self, local: u32, spot: &Spot, value: &Expr) -> String {
        let place = self.local_place(local, spot).text;
        compound(&place, value).unwrap_or_else(|| format!("{place} = {}", value.text))
    }

    /// Writes an operation.
    fn operation(&mut self, v: Value, op: &'m Op, inst: &'m Inst) -> Expr {
        let ty = self.type_of(v);
        match op {
            Op::Const(s, bits) => self.d.literal(self.m, *s, *bits),
            Op::Zero(_) | Op::Compose(..) if self.is_filling(v) => Expr::whole(String::new()),
            Op::Zero(ty) => self.d.zero(self.m, ty),
            Op::Param(i) => self.d.param(self.m, *i),
            Op::Builtin(b) => self.d.builtin(self.m, *b),
            Op::Unary(op, a) => {
                let s = self.scalar_of(*a);
                let a = self.take(*a);
                let e = self.d.unary(self, *op, s, &a);
                self.known(e, op.name(), s)
            }
            Op::Binary(op, a, b) => {
                let (s, t) = (self.scalar_of(*a), self.scalar_of(*b));
                let (a, b) = (self.take(*a), self.take(*b));
                let e = self.d.binary(self, *op, (s, t), &a, &b);
                self.known(e, op.name(), s)
            }
            Op::Ternary(TernaryOp::Select, c, a, b) => {
                let (c, a, b) = (self.take(*c), self.take(*a), self.take(*b));
                self.d.select(self.m, ty, &c, &a, &b)
            }
            Op::Ternary(op, a, b, c) => {
                let s = self.scalar_of(*a);
                let (a, b, c) = (self.take(*a), self.take(*b), self.take(*c));
                let e = self.d.ternary(self, *op, s, [&a, &b, &c]);
                self.known(e, op.name(), s)
            }
            Op::Cast(to, a) => {
                let from = self.scalar_of(*a);
                let a = self.take(*a);
                if from == *to {
                    return a;
                }
                let e = self.d.cast(self, from, *to, &a);
                self.known(e, "cast", from)
            }
            Op::Bitcast(to, a) => {
                let from = self.scalar_of(*a);
                let a = self.take(*a);
                if from == *to {
                    a
                } else {
                    self.d.bitcast(self.m, from, *to, &a)
                }
            }
            Op::Compose(ty, parts) => {
                let parts: Vec<Expr> = parts.iter().map(|p| self.take(*p)).collect();
                self.d.compose(self.m, ty, &parts)
            }
            Op::Extract(a, i) => {
                let whole = self.type_of(*a);
                let a = self.take(*a);
                let text = format!(
                    "{}{}",
                    a.at(super::expr::Bind::Whole),
                    self.d.component(self.m, whole, false, *i)
                );
                Expr::whole(text).reading([&a]).at_run_time()
            }
            Op::Insert(a, i, part) => {
                let (a, part) = (self.take(*a), self.take(*part));
                let name = self.name("changed");
                let text = self.d.variable(self.m, ty, 0, &name, Some(&a.text));
                let component = self.d.component(self.m, ty, false, *i);
                self.write(&format!("{text};\n{name}{component} = {};", part.text));
                Expr::whole(name)
            }
            Op::Load(place, sync) => {
                let spot = self.spot(place);
                if sync.is_some() {
                    let written = writes(inst, &self.m.effects);
                    self.settle_reads(&written);
                }
                match place.base {
                    Base::Local(id) => self.local_place(id.0, &spot),
                    _ => self.d.load(self, &spot, *sync),
                }
            }
            Op::Len(base, s) => self.d.length(self, *base, *s),
            Op::Atomic(op, place, value, sync) => {
                let value = self.take(*value);
                let spot = self.spot(place);
                let written = writes(inst, &self.m.effects);
                self.settle_reads(&written);
                let used = self.uses.count_of(v.0) > 0;
                self.d.atomic(self, *op, &spot, &value, *sync, used)
            }
            Op::CompareExchange {
                place,
                expected,
                new,
                sync,
            } => {
                let (expected, new) = (self.take(*expected), self.take(*new));
                let spot = self.spot(place);
                let written = writes(inst, &self.m.effects);
                self.settle_reads(&written);
                let used = self.uses.count_of(v.0) > 0;
                self.d.compare_exchange(self, &spot, &expected, &new, *sync, used)
            }
            Op::Device(op, args) => {
                let written = writes(inst, &self.m.effects);
                self.device(*op, args, &written)
            }
            Op::Call(f, args) => {
                let args: Vec<Expr> = args.iter().map(|a| self.take(*a)).collect();
                let written = writes(inst, &self.m.effects);
                self.settle_reads(&written);
                self.d.call(self.m, *f, &args)
            }
        }
    }

    /// What is asked of the device: its value, or the statement for what gives none.
    fn device(&mut self, op: DeviceOp, args: &'m [Value], written: &Reads) -> Expr {
        let s = args.first().map_or(Scalar::U32, |v| self.scalar_of(*v));
        let args: Vec<Expr> = args.iter().map(|v| self.take(*v)).collect();
        self.settle_reads(written);
        let row = op.row();
        let e = match self.d.words(&row) {
            Some(words) => {
                let numbered = args.iter().enumerate();
                let text = numbered.fold(words.to_owned(), |text, (i, a)| {
                    text.replace(&format!("${i}"), &a.text)
                });
                Some(Expr::whole(text).reading(&args).at_run_time())
            }
            None => self.d.device(self, op, s, &args),
        };
        e.unwrap_or_else(|| {
            // Targets without the capability never come here.
            self.m.unsupported(self.line, format!("`{}`", row.word()));
            Expr::whole("unsupported")
        })
    }

    /// The expression, or the note that this dialect has none.
    fn known(&mut self, e: Option<Expr>, name: &str, s: Scalar) -> Expr {
        e.unwrap_or_else(|| {
            self.m.unsupported(self.line, format!("`{name}` of {s}"));
            Expr::whole("unsupported")
        })
    }
}

/// `place += rest` for a value of the form `place + rest` whose rest is a single word.
fn compound(place: &str, value: &Expr) -> Option<String> {
    let op = value.operator?;
    if !matches!(op, "+" | "-" | "*" | "/" | "&" | "|" | "^") || value.unsigned {
        return None;
    }
    let rest = value.text.strip_prefix(place)?.strip_prefix(&format!(" {op} "))?;
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    rest.chars().all(word).then(|| format!("{place} {op}= {rest}"))
}

/// Whether a store writes all of a variable.
pub(super) fn stores_whole(inst: &Inst) -> Option<(u32, Value)> {
    match inst {
        Inst::Do(Effect::Store(place, v, None)) => match place.base {
            Base::Local(id) if is_whole(place, id.0) => Some((id.0, *v)),
            _ => None,
        },
        _ => None,
    }
}
