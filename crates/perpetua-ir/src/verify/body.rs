//! Checks each statement of a body: types, scope, structure. Relies on sane declarations; knows nothing of what
//! variables hold or which lanes run.

use std::collections::HashSet;

use super::error::{Cause, Site, VerifyErrors, type_text};
use super::types::is_unit;
use crate::ir::*;
use crate::ops::{Meeting, Stands};

/// Whether a value can be read here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scoped {
    NotYet,
    Here,
    Ended,
}

/// A loop or labelled block around a statement.
struct Frame {
    is_loop: bool,
    /// Whether a statement that can run breaks out of it.
    broken: bool,
}

struct Check<'a, 'e> {
    declarations: Declarations<'a>,
    site: Site<'a>,
    /// The function and its index; `None` for the kernel's own body.
    function: Option<(usize, &'a Function)>,
    errors: &'e mut VerifyErrors,
    scope: Vec<Scoped>,
    frames: Vec<Frame>,
    number: u32,
}

pub(super) fn check(kernel: &Kernel, function: Option<(usize, &Function)>, errors: &mut VerifyErrors) {
    let body = function.map_or(&kernel.body, |(_, f)| &f.body);
    let mut check = Check {
        declarations: Declarations { kernel, body },
        site: Site {
            kernel,
            function: function.map(|(_, f)| f.name.as_str()),
            body,
        },
        function,
        errors,
        scope: vec![Scoped::NotYet; body.values.len()],
        frames: Vec::new(),
        number: 0,
    };
    let params = function.map_or(0, |(_, f)| f.params.len());
    check
        .scope
        .iter_mut()
        .take(params)
        .for_each(|s| *s = Scoped::Here);
    let falls = check.block(&body.block, true);
    if let (true, Some(ty)) = (falls, function.and_then(|(_, f)| f.result.as_ref())) {
        check
            .errors
            .declaration(check.site.function, Cause::MissingReturn(ty.to_string()));
    }
}

/// Whether lanes exchange values or wait for each other in a statement.
fn exchanges_in(inst: &Inst) -> bool {
    inst.device().is_some_and(|op| op.row().meeting != Meeting::Alone)
        || inst
            .blocks()
            .into_iter()
            .any(|b| b.0.iter().any(|stmt| exchanges_in(&stmt.inst)))
}

impl<'a> Check<'a, '_> {
    /// Checks a block; gives whether control can reach its end when it can reach its start.
    fn block(&mut self, block: &'a Block, reachable: bool) -> bool {
        let mut falls = reachable;
        let mut defined = Vec::new();
        let mut ended = None;
        let (mut after_label, mut exchanges) = (false, false);
        for stmt in &block.0 {
            let number = self.number;
            self.number += 1;
            if let Some(by) = ended {
                self.fail(number, stmt, Cause::AfterTerminator(by));
            }
            self.operands(number, stmt);
            let device = stmt.inst.device();
            if let Some(row) = device.map(DeviceOp::row)
                && row.stands == Stands::BehindBlock
                && !after_label
            {
                let misplaced = format!(
                    "`{}` stands directly behind a labelled block: write `'name: {{ … }}` before it",
                    row.word()
                );
                self.fail(number, stmt, TypeError::Invalid(misplaced));
            }
            let caught = self.site.kernel.checks == Checks::Caught;
            if caught && device == Some(DeviceOp::CatchFault) && exchanges {
                let together = "a block whose faults alone are checked must not exchange values among lanes, nor wait for them";
                self.fail(number, stmt, TypeError::Invalid(together.into()));
            }
            after_label = matches!(stmt.inst, Inst::Labeled(_));
            exchanges = after_label && exchanges_in(&stmt.inst);
            falls = self.statement(number, stmt, falls);
            match &stmt.inst {
                Inst::Let(v, _) => defined.push(*v),
                Inst::Break(_) => ended = ended.or(Some("break")),
                Inst::Continue(_) => ended = ended.or(Some("continue")),
                Inst::Return(_) => ended = ended.or(Some("return")),
                _ => {}
            }
        }
        for v in defined {
            if let Some(scope) = self.scope.get_mut(v.0 as usize) {
                *scope = Scoped::Ended;
            }
        }
        falls
    }

    fn fail(&mut self, number: u32, stmt: &Stmt, cause: impl Into<Cause>) {
        self.errors.statement(self.site, number, stmt, cause.into());
    }

    /// That the values that the statement reads can be read here. A value that does not exist at all is a type
    /// error, found later.
    fn operands(&mut self, number: u32, stmt: &Stmt) {
        let mut causes = Vec::new();
        stmt.inst.operands(&mut |v| {
            let at = v.0 as usize;
            match self.scope.get(at) {
                Some(Scoped::NotYet) => causes.push(Cause::Undefined(v.0)),
                Some(Scoped::Ended) => causes.push(Cause::OutOfScope(v.0)),
                Some(Scoped::Here) | None => {}
            }
            if self.site.body.values.get(at).is_some_and(is_unit) {
                causes.push(Cause::NoValue(v.0));
            }
        });
        // `add %1, %1` has one fault, not two.
        causes.dedup();
        for cause in causes {
            self.fail(number, stmt, cause);
        }
    }

    fn statement(&mut self, number: u32, stmt: &'a Stmt, reachable: bool) -> bool {
        match &stmt.inst {
            Inst::Let(v, op) => {
                self.define(number, stmt, *v, op);
                reachable
            }
            Inst::Do(effect) => {
                if let Err(e) = self.effect(effect) {
                    self.fail(number, stmt, e);
                }
                reachable
            }
            Inst::If(condition, then, otherwise) => {
                match self.declarations.scalar(*condition, "the condition") {
                    Ok(Scalar::Bool) => {}
                    Ok(other) => self.fail(number, stmt, expected("the condition", "bool", other)),
                    Err(e) => self.fail(number, stmt, e),
                }
                let falls = self.block(then, reachable);
                self.block(otherwise, reachable) || falls
            }
            Inst::Switch {
                selector,
                cases,
                default,
            } => {
                self.labels(number, stmt, *selector, cases);
                let mut falls = false;
                for (_, block) in cases {
                    falls |= self.block(block, reachable);
                }
                self.block(default, reachable) || falls
            }
            Inst::Loop(block) => {
                self.frames.push(Frame {
                    is_loop: true,
                    broken: false,
                });
                self.block(block, reachable);
                self.frames.pop().is_some_and(|f| f.broken)
            }
            Inst::Labeled(block) => {
                self.frames.push(Frame {
                    is_loop: false,
                    broken: false,
                });
                let falls = self.block(block, reachable);
                self.frames.pop().is_some_and(|f| f.broken) || falls
            }
            Inst::Break(depth) => {
                self.jump(number, stmt, *depth, "loop or block", |frame| {
                    frame.broken |= reachable;
                    None
                });
                false
            }
            Inst::Continue(depth) => {
                self.jump(number, stmt, *depth, "loop", |frame| {
                    (!frame.is_loop).then_some(Cause::ContinueBlock(*depth))
                });
                false
            }
            Inst::Return(value) => {
                self.returns(number, stmt, *value);
                false
            }
        }
    }

    fn jump(
        &mut self,
        number: u32,
        stmt: &Stmt,
        depth: u32,
        what: &'static str,
        act: impl FnOnce(&mut Frame) -> Option<Cause>,
    ) {
        let found = self.frames.len();
        let cause = match self.frames.iter_mut().rev().nth(depth as usize) {
            Some(frame) => act(frame),
            None => Some(Cause::NoTarget { what, depth, found }),
        };
        if let Some(cause) = cause {
            self.fail(number, stmt, cause);
        }
    }

    fn define(&mut self, number: u32, stmt: &Stmt, v: Value, op: &Op) {
        let declared = self.site.body.values.get(v.0 as usize);
        match (declared, self.op(op)) {
            (None, _) => self.fail(number, stmt, TypeError::NoSuchValue(v.0)),
            (_, Err(e)) => self.fail(number, stmt, e),
            (Some(declared), Ok(given)) => {
                let fits = match &given {
                    Some(ty) => declared == ty,
                    None => is_unit(declared),
                };
                if !fits {
                    let (declared, given) = (type_text(Some(declared)), type_text(given.as_ref()));
                    self.fail(number, stmt, Cause::Declared { declared, given });
                }
            }
        }
        match self.scope.get_mut(v.0 as usize) {
            Some(scope @ Scoped::NotYet) => *scope = Scoped::Here,
            Some(_) => self.fail(number, stmt, Cause::Redefined(v.0)),
            None => {}
        }
    }

    fn op(&self, op: &Op) -> Result<Option<Type>, Cause> {
        if let Some((index, _)) = self.function {
            match op {
                Op::Call(f, _) if *f as usize >= index => {
                    if let Some(f) = self.site.kernel.functions.get(*f as usize) {
                        return Err(Cause::CallsLater(f.name.clone()));
                    }
                }
                Op::Param(i) => {
                    let name = self.site.kernel.params.get(*i as usize).map(|p| &p.name);
                    let name = name.map_or_else(String::new, |name| format!(" `{name}`"));
                    return Err(Cause::NotInFunction(format!("the kernel's parameter{name}")));
                }
                Op::Len(base, _) => self.reaches(*base)?,
                _ => {
                    if let Some(place) = op.place() {
                        self.reaches(place.base)?;
                    }
                }
            }
        }
        Ok(self.declarations.op(op)?)
    }

    /// That code of a device function may reach memory at this base.
    fn reaches(&self, base: Base) -> Result<(), Cause> {
        let kernel = self.site.kernel;
        let (what, name) = match base {
            _ if self.function.is_none() => return Ok(()),
            Base::Buffer(i) => ("buffer", kernel.params.get(i as usize).map(|p| &p.name)),
            Base::Shared(i) => ("shared variable", kernel.shared.get(i as usize).map(|s| &s.name)),
            Base::Local(_) | Base::Constant(_) => return Ok(()),
        };
        let name = name.map_or_else(String::new, |name| format!(" `{name}`"));
        Err(Cause::NotInFunction(format!("the {what}{name}")))
    }

    fn effect(&self, effect: &Effect) -> Result<(), Cause> {
        match effect {
            Effect::Store(place, ..) => self.reaches(place.base)?,
            Effect::Fault(kind, _, operands) => {
                let expected = kind.operands();
                let words = *kind == FaultKind::DivisionByZero && operands.len() == 2;
                if operands.len() != expected && !words {
                    return Err(Cause::FaultOperands {
                        kind: kind.name(),
                        expected,
                        found: operands.len(),
                    });
                }
            }
            Effect::Device(..) | Effect::Print(..) | Effect::Panic(..) => {}
        }
        Ok(self.declarations.effect(effect)?)
    }

    fn labels(&mut self, number: u32, stmt: &Stmt, selector: Value, cases: &[(Vec<u64>, Block)]) {
        let scalar = match self.declarations.scalar(selector, "the selector") {
            Ok(s) if s.is_int() => s,
            Ok(other) => {
                return self.fail(number, stmt, expected("the selector", "an integer", other));
            }
            Err(e) => return self.fail(number, stmt, e),
        };
        let mut seen = HashSet::new();
        for (i, (labels, _)) in cases.iter().enumerate() {
            if labels.is_empty() {
                self.fail(number, stmt, Cause::NoLabels(i));
            }
            for label in labels {
                if scalar.bits() < 64 && label >> scalar.bits() != 0 {
                    let selector = scalar.to_string();
                    self.fail(
                        number,
                        stmt,
                        Cause::LabelTooWide {
                            label: *label,
                            selector,
                        },
                    );
                }
                if !seen.insert(*label) {
                    self.fail(number, stmt, Cause::LabelTwice(*label));
                }
            }
        }
    }

    fn returns(&mut self, number: u32, stmt: &Stmt, value: Option<Value>) {
        let result = self.function.and_then(|(_, f)| f.result.as_ref());
        let found = match value.map(|v| self.declarations.value(v)).transpose() {
            Ok(found) => found,
            Err(e) => return self.fail(number, stmt, e),
        };
        if found != result {
            let (expected, found) = (type_text(result), type_text(found));
            self.fail(number, stmt, Cause::Return { expected, found });
        }
    }
}

fn expected(what: &str, expected: &str, found: Scalar) -> TypeError {
    TypeError::Mismatch {
        what: what.into(),
        expected: expected.into(),
        found: found.to_string(),
    }
}
