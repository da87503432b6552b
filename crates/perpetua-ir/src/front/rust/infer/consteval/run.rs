//! What a `const fn` gives: its statements, loops and calls, one after another. References are what they refer to, so what changes
//! through one is refused.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::{ConstError, Evaluator, Result, as_integer, table_op};
use crate::front::rust::describe::ConstValue;
use crate::front::rust::infer::check;
use crate::front::rust::infer::tree::{
    Block, Checked, Expr, ExprKind, Loaded, LocalId, Pat, StmtKind, TargetId,
};
use crate::front::rust::infer::ty::{Generic, Len, Ty};
use crate::front::rust::resolve::FunctionKey;

/// Turns of loops and calls of one constant, and calls within each other.
const MOST_STEPS: u32 = 1 << 22;
const DEEPEST: u32 = 64;

/// A function with its generic arguments.
type InstanceKey = (FunctionKey, Vec<Generic>);

/// What all calls of one constant share.
pub(super) struct Shared {
    /// How many turns and calls are left.
    steps: Cell<u32>,
    /// Functions with their types, each once.
    checked: RefCell<HashMap<InstanceKey, Rc<Checked>>>,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            steps: Cell::new(MOST_STEPS),
            checked: RefCell::default(),
        }
    }
}

/// What leaves a block early.
#[derive(Clone, Debug)]
pub(super) enum Leave {
    Break(TargetId, ConstValue),
    Continue(TargetId),
    Return(ConstValue),
}

fn unit() -> ConstValue {
    ConstValue::Tuple(Vec::new())
}

impl Evaluator<'_> {
    fn leave<T>(&self, line: u32, leaves: Leave) -> Result<T> {
        Err(ConstError {
            line,
            cause: "a jump leads out of a constant".to_owned(),
            leaves: Some(Box::new(leaves)),
        })
    }

    fn step(&self, line: u32) -> Result<()> {
        let left = self.shared.steps.get();
        if left == 0 {
            return self.fail(line, format!("a constant takes more than {MOST_STEPS} steps"));
        }
        self.shared.steps.set(left - 1);
        Ok(())
    }

    pub(super) fn block(&self, block: &Block) -> Result<ConstValue> {
        for stmt in &block.stmts {
            match &stmt.kind {
                StmtKind::Let(pat, Some(init)) => {
                    let value = self.expr(init)?;
                    if !self.matches(pat, &value, stmt.line)? {
                        return self.fail(stmt.line, "a pattern does not match");
                    }
                }
                StmtKind::Let(_, None) => {}
                StmtKind::Expr(expr) => {
                    self.expr(expr)?;
                }
            }
        }
        match &block.value {
            Some(value) => self.expr(value),
            None => Ok(unit()),
        }
    }

    /// What a loop's body does to the loop: `Some` ends it.
    fn turn(&self, target: TargetId, body: &Block, line: u32) -> Result<Option<ConstValue>> {
        self.step(line)?;
        match self.block(body) {
            Ok(_) => Ok(None),
            Err(error) => match error.leaves.as_deref() {
                Some(Leave::Break(of, value)) if *of == target => Ok(Some(value.clone())),
                Some(Leave::Continue(of)) if *of == target => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// What an expression with control flow, or of locals, gives.
    pub(super) fn run(&self, expr: &Expr) -> Result<ConstValue> {
        let line = expr.line;
        match &expr.kind {
            ExprKind::Local(local) => match self.locals.borrow().get(local) {
                Some(value) => Ok(value.clone()),
                None => self.fail(line, "this is not computed in a constant"),
            },
            ExprKind::Assign(place, value) => {
                let value = self.expr(value)?;
                self.change(place, value)
            }
            ExprKind::CompoundAssign(op, place, value) => {
                let (_, b) = self.scalar(value)?;
                let (s, a) = self.scalar(place)?;
                let result = table_op(*op).and_then(|op| super::binary(op, self.num(s), a, b));
                match result {
                    Some(Ok(bits)) => self.change(place, self.value(s, bits)),
                    Some(Err(fault)) => {
                        self.fail(line, format!("the constant has a fault: {}", fault.name()))
                    }
                    None => self.fail(line, "this operator is not computed in a constant"),
                }
            }
            ExprKind::Loop(target, body) => loop {
                if let Some(value) = self.turn(*target, body, line)? {
                    return Ok(value);
                }
            },
            ExprKind::While(target, cond, body) => loop {
                let (_, holds) = self.scalar(cond)?;
                if holds == 0 || self.turn(*target, body, line)?.is_some() {
                    return Ok(unit());
                }
            },
            ExprKind::Block(Some(target), body) => match self.block(body) {
                Err(error) => match error.leaves.as_deref() {
                    Some(Leave::Break(of, value)) if of == target => Ok(value.clone()),
                    _ => Err(error),
                },
                value => value,
            },
            ExprKind::Break(target, value) => {
                let value = value.as_ref().map_or(Ok(unit()), |value| self.expr(value))?;
                self.leave(line, Leave::Break(*target, value))
            }
            ExprKind::Continue(target) => self.leave(line, Leave::Continue(*target)),
            ExprKind::Return(value) => {
                let value = value.as_ref().map_or(Ok(unit()), |value| self.expr(value))?;
                self.leave(line, Leave::Return(value))
            }
            ExprKind::Match(scrutinee, arms) => {
                let value = self.expr(scrutinee)?;
                for arm in arms {
                    if !self.matches(&arm.pattern, &value, arm.line)? {
                        continue;
                    }
                    let holds = match &arm.guard {
                        Some(guard) => self.scalar(guard)?.1 != 0,
                        None => true,
                    };
                    if holds {
                        return self.expr(&arm.body);
                    }
                }
                self.fail(line, "no arm matches")
            }
            ExprKind::Call(callee, generics, args) => self.call(callee, generics, args, line),
            ExprKind::Panic(..) => self.fail(line, "the constant panics"),
            ExprKind::Swap(place, a, b) => {
                let [a, b] = [self.scalar(a)?.1, self.scalar(b)?.1];
                self.change_all(place, |parts| {
                    let [a, b] = [a, b].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
                    match parts.len().checked_sub(1) {
                        Some(last) if a <= last && b <= last => {
                            parts.swap(a, b);
                            Ok(())
                        }
                        _ => Err(a.max(b)),
                    }
                })
            }
            _ => self.fail(
                line,
                "constants are computed of operators, calls, branches, loops, assignments and `swap`, and this is none of these",
            ),
        }
    }

    fn call(
        &self,
        callee: &Rc<Loaded>,
        generics: &[Generic],
        args: &[Expr],
        line: u32,
    ) -> Result<ConstValue> {
        self.step(line)?;
        if self.depth >= DEEPEST {
            return self.fail(line, format!("`{}` is called within itself", callee.tree.name));
        }
        let known = generics.iter().zip(&callee.tree.generics);
        let known = known.map(|(generic, param)| self.types.argument(generic, true).settled(param));
        let key = (callee.def.key(), known.collect::<Vec<_>>());
        let before = self.shared.checked.borrow().get(&key).cloned();
        let checked = match before {
            Some(checked) => checked,
            None => {
                let checked = check(self.program, callee, key.1.clone()).map_err(|error| ConstError {
                    line,
                    cause: format!(
                        "`{}` is not computed in a constant: {}",
                        callee.tree.name, error.cause
                    ),
                    leaves: None,
                })?;
                let checked = Rc::new(checked);
                self.shared.checked.borrow_mut().insert(key, checked.clone());
                checked
            }
        };
        let mut locals = HashMap::new();
        for (param, arg) in checked.params.iter().zip(args) {
            if matches!(self.types.deep(&arg.ty, true), Ty::Ref(true, _)) {
                return self.fail(line, "a constant is computed without `&mut`");
            }
            locals.insert(*param, self.expr(arg)?);
        }
        let inner = Evaluator {
            types: &checked.types,
            width: self.width,
            program: self.program,
            locals: locals.into(),
            shared: self.shared.clone(),
            depth: self.depth + 1,
        };
        match inner.block(&checked.body) {
            Err(error) => match error.leaves.map(|leaves| *leaves) {
                Some(Leave::Return(value)) => Ok(value),
                // Where it is called is in the function that the error is about.
                _ => self.fail(
                    line,
                    format!(
                        "in line {} of `{}`: {}",
                        error.line, callee.tree.name, error.cause
                    ),
                ),
            },
            value => value,
        }
    }

    /// The local or the constant in which a place lies, and the way there.
    fn way<'e>(&self, place: &'e Expr) -> Result<Option<(&'e Expr, Vec<usize>)>> {
        let (base, step) = match &place.kind {
            ExprKind::Local(_) | ExprKind::Constant(..) => return Ok(Some((place, Vec::new()))),
            ExprKind::Field(base, index) => (base, Some(*index as usize)),
            ExprKind::Index(base, index) | ExprKind::Element(base, index) => {
                let (_, index) = self.scalar(index)?;
                (base, Some(usize::try_from(index).unwrap_or(usize::MAX)))
            }
            ExprKind::Ref(base) | ExprKind::Deref(base) | ExprKind::Reborrow(base) => (base, None),
            _ => return Ok(None),
        };
        Ok(self.way(base)?.map(|(root, mut way)| {
            way.extend(step);
            (root, way)
        }))
    }

    /// What a place in a local or a constant has, without a copy of what is around it; `None` of other expressions.
    pub(super) fn read(&self, place: &Expr) -> Result<Option<ConstValue>> {
        let Some((root, way)) = self.way(place)? else {
            return Ok(None);
        };
        let locals = self.locals.borrow();
        let mut value = match &root.kind {
            ExprKind::Constant(_, value) => &**value,
            ExprKind::Local(local) => match locals.get(local) {
                Some(value) => value,
                None => return self.fail(place.line, "this is not computed in a constant"),
            },
            _ => return Ok(None),
        };
        for step in way {
            let (ConstValue::Array(_, parts) | ConstValue::Tuple(parts) | ConstValue::Struct(_, parts)) =
                value
            else {
                return Ok(None);
            };
            value = match parts.get(step) {
                Some(part) => part,
                None => return self.out_of_bounds(place.line, parts.len(), step),
            };
        }
        Ok(Some(value.clone()))
    }

    fn out_of_bounds<T>(&self, line: u32, len: usize, index: usize) -> Result<T> {
        self.fail(
            line,
            format!("index out of bounds: the length is {len} but the index is {index}"),
        )
    }

    /// Changes the elements of an array; where there is no element of an index, `change` gives that.
    fn change_all(
        &self,
        place: &Expr,
        change: impl FnOnce(&mut [ConstValue]) -> std::result::Result<(), usize>,
    ) -> Result<ConstValue> {
        let Some(ConstValue::Array(element, mut parts)) = self.read(place)? else {
            return self.fail(place.line, "this is not computed in a constant");
        };
        if let Err(index) = change(&mut parts) {
            return self.out_of_bounds(place.line, parts.len(), index);
        }
        self.change(place, ConstValue::Array(element, parts))
    }

    fn change(&self, place: &Expr, new: ConstValue) -> Result<ConstValue> {
        let line = place.line;
        let (root, way) = match self.way(place)? {
            Some((root, way)) if !refers(place) => (root, way),
            _ => return self.fail(line, "a constant is computed without `&mut`"),
        };
        let ExprKind::Local(local) = root.kind else {
            return self.fail(line, "only locals change");
        };
        let mut locals = self.locals.borrow_mut();
        let mut value = match (locals.get_mut(&local), way.is_empty()) {
            (Some(value), _) => value,
            // The first value of what was declared without one.
            (None, true) => {
                locals.insert(local, new);
                return Ok(unit());
            }
            (None, false) => return self.fail(line, "this is not computed in a constant"),
        };
        for step in way {
            let (ConstValue::Array(_, parts) | ConstValue::Tuple(parts) | ConstValue::Struct(_, parts)) =
                value
            else {
                return self.fail(line, "this is not computed in a constant");
            };
            let len = parts.len();
            value = match parts.get_mut(step) {
                Some(part) => part,
                None => return self.out_of_bounds(line, len, step),
            };
        }
        *value = new;
        Ok(unit())
    }

    /// Whether a pattern matches; its names get their values.
    fn matches(&self, pat: &Pat, value: &ConstValue, line: u32) -> Result<bool> {
        let bind = |local: LocalId| {
            self.locals.borrow_mut().insert(local, value.clone());
            Ok(true)
        };
        match pat {
            Pat::Wild => Ok(true),
            Pat::Binding(local) | Pat::Borrow(local) => bind(*local),
            Pat::Range(from, to) => {
                let number = match value {
                    ConstValue::Scalar(s, bits) => as_integer(*s, *bits),
                    ConstValue::Wide(_, bits) => Some(*bits as i128),
                    ConstValue::Enum(_, number) => Some(*number),
                    _ => None,
                };
                match number {
                    Some(n) => Ok(from.is_none_or(|from| from <= n) && to.is_none_or(|to| n <= to)),
                    None => self.fail(line, "this pattern is not computed in a constant"),
                }
            }
            Pat::Or(pats) => {
                for pat in pats {
                    if self.matches(pat, value, line)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Pat::Tuple(pats) => {
                let (ConstValue::Array(_, parts) | ConstValue::Tuple(parts) | ConstValue::Struct(_, parts)) =
                    value
                else {
                    return self.fail(line, "this pattern is not computed in a constant");
                };
                for (pat, part) in pats.iter().zip(parts) {
                    if !self.matches(pat, part, line)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Pat::At(name, inner) => Ok(self.matches(inner, value, line)? && self.matches(name, value, line)?),
            Pat::Deref(inner) => self.matches(inner, value, line),
            Pat::Floats(_) | Pat::Slice { .. } | Pat::BorrowMut(_) => {
                self.fail(line, "this pattern is not computed in a constant")
            }
        }
    }

    /// The number of elements of an array's type; `None` of a slice, which its value knows.
    pub(super) fn known_len(&self, ty: &Ty) -> Option<u64> {
        match self.types.deep(ty, true) {
            Ty::Array(_, Len::Known(n)) => Some(n),
            _ => None,
        }
    }
}

/// Whether a place is reached through a reference.
fn refers(place: &Expr) -> bool {
    match &place.kind {
        ExprKind::Ref(_) | ExprKind::Deref(_) | ExprKind::Reborrow(_) => true,
        ExprKind::Field(base, _) | ExprKind::Index(base, _) | ExprKind::Element(base, _) => refers(base),
        _ => false,
    }
}
