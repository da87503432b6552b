//! Calls of device functions. Those that take only values become functions of the IR, once for each instance;
//! those that take references, that synchronise, or that stand in another file than the kernel (so that lines
//! stay true) are inlined.

use std::rc::Rc;

use super::value::{Slot, Val};
use super::{Emitter, InstanceKey, Result, Return, Scope, instance_name};
use crate::front::rust::describe::MOST_PARTS;
use crate::front::rust::infer;
use crate::front::rust::infer::tree::{Checked, Expr, Loaded};
use crate::front::rust::infer::ty::{Generic, Len, Ty};
use crate::ir::Inst;

/// How deep calls go, in functions; each takes some of the compiler's stack.
const DEEPEST: usize = 64;

/// How many calls of inlined functions and closures a kernel has.
const MOST_INLINED: u32 = 1 << 16;

/// How many functions a kernel has, instances of generic ones included.
const MOST_INSTANCES: usize = 4096;

impl Emitter<'_> {
    /// Generic arguments of a call in the function `f` with nothing unknown.
    fn known_generics(
        &self,
        f: &Checked,
        callee: &Loaded,
        generics: &[Generic],
        line: u32,
    ) -> Result<Vec<Generic>> {
        generics
            .iter()
            .zip(&callee.tree.generics)
            .map(|(generic, param)| {
                let known = match f.types.argument(generic, true) {
                    Generic::Type(Ty::Var(_)) | Generic::Len(Len::Var(_)) => None,
                    known => Some(known.settled(param)),
                };
                known.ok_or_else(|| {
                    let name = param.name();
                    f.loaded.error(
                        line,
                        format!(
                            "the generic argument `{name}` of `{}` cannot be inferred",
                            callee.tree.name
                        ),
                        format!("write it: `{}::<…>(…)`", callee.tree.name),
                    )
                })
            })
            .collect()
    }

    /// Checks all functions that `f` calls, and theirs, and refuses recursion.
    pub(super) fn instances(&mut self, f: &Checked) -> Result<()> {
        for (callee, generics, line) in &f.calls {
            let generics = self.known_generics(f, callee, generics, *line)?;
            let key = (callee.def.key(), generics.clone());
            if self.active.contains(&key) {
                return Err(f.loaded.error(
                    *line,
                    format!("`{}` calls itself", callee.tree.name),
                    "there is no recursion on devices: write a loop",
                ));
            }
            if self.checked.contains_key(&key) {
                continue;
            }
            self.check_extent(f, callee, &key.1, *line)?;
            let mut checked = infer::check(self.program, callee, generics)?;
            self.active.push(key.clone());
            self.instances(&checked)?;
            self.active.pop();
            let (collective, deep) = self.called(&checked)?;
            checked.collective |= collective;
            checked.deep |= deep;
            self.checked.insert(key, Rc::new(checked));
        }
        Ok(())
    }

    /// Refuses what could go on without an end, or nearly so: functions that call themselves with ever new generic arguments.
    fn check_extent(&self, f: &Checked, callee: &Loaded, generics: &[Generic], line: u32) -> Result<()> {
        let name = &callee.tree.name;
        let mut left = MOST_PARTS;
        let cause = if self.active.len() > DEEPEST {
            format!(
                "the call of `{name}` is more than {DEEPEST} calls deep, each of another function or with other generic arguments"
            )
        } else if !generics
            .iter()
            .all(|generic| f.types.argument_is_within(generic, &mut left))
        {
            format!("a generic argument of `{name}` is made of more than {MOST_PARTS} types")
        } else if self.checked.len() >= MOST_INSTANCES {
            format!(
                "with `{name}` the kernel has more than {MOST_INSTANCES} functions, where each set of generic arguments makes one"
            )
        } else {
            return Ok(());
        };
        Err(f.loaded.error(line, cause, "write a loop"))
    }

    /// Whether a function that `f` calls is collective, and whether one looks at a third dimension.
    pub(super) fn called(&self, f: &Checked) -> Result<(bool, bool)> {
        let mut found = (false, false);
        for (callee, generics, line) in &f.calls {
            let generics = self.known_generics(f, callee, generics, *line)?;
            if let Some(callee) = self.checked.get(&(callee.def.key(), generics)) {
                found.0 |= callee.collective;
                found.1 |= callee.deep;
            }
        }
        Ok(found)
    }

    /// A call.
    pub(super) fn call(
        &mut self,
        callee: &Rc<Loaded>,
        generics: &[Generic],
        args: &[Expr],
        line: u32,
    ) -> Result<Val> {
        let f = self.scope.f.clone();
        let key = (callee.def.key(), self.known_generics(&f, callee, generics, line)?);
        let Some(checked) = self.checked.get(&key).cloned() else {
            return Err(self.error(line, format!("`{}` is not known here", callee.tree.name), ""));
        };
        let vals = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>>>()?;
        self.at(line);
        if self.body.ended {
            return Ok(Val::unit());
        }
        if self.is_inlined(&checked) {
            return self.inline(key, checked, vals, line);
        }
        let index = match self.functions.get(&key) {
            Some(index) => *index,
            None => {
                let index = self.function(key.clone(), checked.clone())?;
                self.functions.insert(key, index);
                index
            }
        };
        self.at(line);
        let args = vals
            .iter()
            .map(|v| self.value_of(v, line))
            .collect::<Result<Vec<_>>>()?;
        let done = self.k.call(index, args);
        Ok(match self.typed(line, done)? {
            Some(value) => Val::Value(value),
            None => Val::unit(),
        })
    }

    /// Whether the function is inlined wherever it is called.
    pub(super) fn is_inlined(&self, f: &Checked) -> bool {
        f.collective
            || f.loaded.tree.file != self.kernel.tree.file
            || !is_passed(&f.types.deep(&f.ret, true), true)
            || f.params.iter().any(|p| {
                let ty = f.locals.get(p.0 as usize).map(|l| &l.ty);
                ty.is_none_or(|ty| !is_passed(&f.types.deep(ty, true), false))
            })
    }

    /// Emits a function of the IR; gives its index.
    pub(super) fn function(&mut self, key: InstanceKey, f: Rc<Checked>) -> Result<u32> {
        let tree = f.loaded.tree.clone();
        let stem = match f.loaded.names.self_type() {
            Some(ty) => format!("{ty}_{}", tree.name),
            None => tree.name.clone(),
        };
        let name = self.unique(&instance_name(self.program, &stem, &key.1));
        let id = self.scope_id();
        let outer_scope =
            std::mem::replace(&mut self.scope, Scope::new(id, f.clone(), Return::Function, None));
        let outer_state = std::mem::take(&mut self.body);
        let outer_line = self.k.line();
        let mut params = Vec::new();
        let mut outcome = Ok(());
        for (param, local) in tree.params.iter().zip(&f.params) {
            match self.ir_type(&self.local_type(*local), param.line) {
                Ok(ty) => params.push((super::types::identifier(&param.name), ty)),
                Err(error) => outcome = Err(error),
            }
        }
        let result = if f.ret.is_unit() {
            None
        } else {
            match self.ir_type(&f.ret, tree.line) {
                Ok(ty) => Some(ty),
                Err(error) => {
                    outcome = Err(error);
                    None
                }
            }
        };
        outcome?;
        let outer_body = self.k.begin_function(&params);
        self.active.push(key);
        let done = self.function_body(&f, result.is_some());
        self.active.pop();
        let index = self.k.end_function(outer_body, name, params, result);
        self.scope = outer_scope;
        self.body = outer_state;
        self.k.set_line(outer_line);
        done.map(|()| index)
    }

    fn function_body(&mut self, f: &Rc<Checked>, gives: bool) -> Result<()> {
        let tree = f.loaded.tree.clone();
        for (i, (param, local)) in tree.params.iter().zip(&f.params).enumerate() {
            self.at(param.line);
            self.bind(*local, Val::Value(crate::ir::Value(i as u32)), param.line)?;
        }
        let val = self.block(&f.body)?;
        if self.body.ended {
            return Ok(());
        }
        let line = tree.body.end_line;
        if !gives {
            return Ok(());
        }
        self.at(line);
        match val {
            // Behind what cannot be left: `unreachable!()`, say.
            Val::Tuple(elements) if elements.is_empty() => {
                let slot = self.slot(&f.ret, "result", line)?;
                self.put(&slot, &Val::unit(), line)?;
                let val = self.get(&slot, line)?;
                self.leave(&val, line)
            }
            val => self.leave(&val, line),
        }
    }

    /// Refuses what would never be done: code that is written again in each place that calls what calls it.
    pub(super) fn count_inlined(&mut self, line: u32) -> Result<()> {
        self.inlined += 1;
        if self.inlined > MOST_INLINED {
            return Err(self.error(
                line,
                format!("more than {MOST_INLINED} calls of closures, and of functions that take references, are inlined"),
                "write a loop in place of functions that call each other several times",
            ));
        }
        Ok(())
    }

    /// Emits a function's code in place of its call.
    fn inline(&mut self, key: InstanceKey, f: Rc<Checked>, args: Vec<Val>, line: u32) -> Result<Val> {
        self.count_inlined(line)?;
        let foreign = f.loaded.tree.file != self.kernel.tree.file;
        let lines = self.scope.line.or(foreign.then_some(line));
        let ret = self.scope.f.types.deep(&f.types.deep(&f.ret, true), true);
        let id = self.scope_id();
        let new = Scope::new(id, f.clone(), Return::Inline(0, Slot::Tuple(Vec::new())), lines);
        self.outer.push(std::mem::replace(&mut self.scope, new));
        self.active.push(key);
        let done = self.inlined_body(&f, args, &ret, line);
        self.active.pop();
        if let Some(outer) = self.outer.pop() {
            self.scope = outer;
        }
        self.at(line);
        done
    }

    fn inlined_body(&mut self, f: &Rc<Checked>, args: Vec<Val>, ret: &Ty, line: u32) -> Result<Val> {
        let tree = f.loaded.tree.clone();
        for ((param, local), val) in tree.params.iter().zip(&f.params).zip(args) {
            self.at(param.line);
            self.bind(*local, val, param.line)?;
        }
        if !f.early_return {
            return self.block(&f.body);
        }
        let slot = self.slot(ret, "returned", line)?;
        let branch = self.framed(None, |this, level| {
            this.scope.ret = Return::Inline(level, slot.clone());
            let val = this.block(&f.body)?;
            if !this.body.ended {
                this.put(&slot, &val, tree.body.end_line)?;
            }
            Ok(())
        })?;
        self.at(line);
        self.k.push(Inst::Labeled(branch.block));
        self.get(&slot, line)
    }

    /// What identifies the function being emitted.
    pub(super) fn active_instance(&self) -> InstanceKey {
        match self.active.last() {
            Some(key) => key.clone(),
            None => (self.kernel.def.key(), Vec::new()),
        }
    }
}

/// Whether a value of the type is passed to or from a function of the IR.
fn is_passed(ty: &Ty, result: bool) -> bool {
    match ty {
        Ty::Tuple(elements) if elements.is_empty() => result,
        Ty::Struct(desc) if desc.fields.is_empty() => result,
        Ty::Scalar(_) | Ty::Enum(_) | Ty::Struct(_) | Ty::Array(..) => true,
        Ty::Option(some) => is_passed(some, false),
        Ty::Result(ok, err) => is_passed(ok, false) && is_passed(err, false),
        Ty::Tuple(elements) => elements.iter().all(|e| is_passed(e, false)),
        _ => false,
    }
}
