//! Device functions and their calls.

use super::{Body, Callable, Generator, Known, Result};
use perpetua_ir::ir::*;

/// Most statements that a lane runs: calls and loops that would pass it are not made.
const MOST_COST: u64 = 30_000;

impl Generator<'_, '_> {
    /// Makes device function number `i`.
    pub(super) fn function(&mut self, k: &mut KernelBuilder, i: usize) -> Result<()> {
        let params: Vec<Type> = (0..self.choices.below(4)).map(|_| self.any_type()).collect();
        let result = (!self.choices.chance(1, 6)).then(|| self.any_type());
        let named = params
            .iter()
            .enumerate()
            .map(|(i, ty)| (format!("a{i}"), ty.clone()))
            .collect();
        self.budget = self.config.statements / 4;
        self.cost = 0;
        self.body = Body {
            values: (0u32..)
                .zip(&params)
                .map(|(i, ty)| Known {
                    value: Value(i),
                    ty: ty.clone(),
                })
                .collect(),
            result: result.clone(),
            ..Body::default()
        };
        self.body.context.returns = true;
        self.body.context.work = 1;
        let index = k.function(format!("f{i}"), named, result.clone(), |k| {
            if !self.statements(k, self.config.statements / 4)? {
                self.return_(k)?;
            }
            Ok::<(), TypeError>(())
        })?;
        self.functions.push(Callable {
            index,
            params,
            result,
            cost: self.cost + 1,
        });
        self.cost = 0;
        Ok(())
    }

    /// Makes the function that has a barrier.
    pub(super) fn meeting_function(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let index = k.function("meet", vec![("x".into(), Type::U32)], Some(Type::U32), |k| {
            k.effect(DeviceOp::Barrier.into())?;
            k.push(Inst::Return(Some(Value(0))));
            Ok::<(), TypeError>(())
        })?;
        self.meet = Some(index);
        Ok(())
    }

    /// Ends the body, with a result where it needs one; a lane of a kernel leaves what it has mixed so far.
    pub(super) fn return_(&mut self, k: &mut KernelBuilder) -> Result<()> {
        if let Some(entry) = self.body.entry {
            let mixed = self.emit(k, Op::Load(Place::local(entry.mix), None))?;
            self.store_own(k, &Type::U32, mixed)?;
        }
        let v = match self.body.result.clone() {
            Some(ty) => Some(self.operand(k, &ty)?),
            None => None,
        };
        k.push(Inst::Return(v));
        Ok(())
    }

    /// Whether `cost` more statements are allowed here.
    pub(super) fn affords(&self, cost: u64) -> bool {
        self.cost
            .saturating_add(cost.saturating_mul(self.body.context.work))
            <= MOST_COST
    }

    /// Calls a function.
    pub(super) fn call(&mut self, k: &mut KernelBuilder) -> Result<()> {
        if let (Some(f), true) = (self.meet, self.body.context.uniform && self.choices.chance(1, 2)) {
            let v = self.operand(k, &Type::U32)?;
            return self.define(k, Op::Call(f, vec![v])).map(|_| ());
        }
        let Some(f) = self.choices.pick(&self.functions).cloned() else {
            return Ok(());
        };
        if !self.affords(f.cost) {
            return Ok(());
        }
        self.cost += f.cost * self.body.context.work;
        let mut args = Vec::new();
        for ty in &f.params {
            args.push(self.operand(k, ty)?);
        }
        if f.result.is_some() {
            self.define(k, Op::Call(f.index, args))?;
        } else {
            k.call(f.index, args)?;
        }
        Ok(())
    }
}
