//! Statements: control flow as labels and branches, effects as instructions.

use perpetua_ir::ir::{Block, DeviceOp, Effect, Inst, MemOrder, Scalar, Scope, Stmt, Sync, Value};

use super::{Capture, Frame};
use crate::builder::draft::{Arg, Line};
use crate::error::Result;
use crate::opcode::Opcode;

impl Capture<'_> {
    pub(super) fn block(&mut self, block: &Block) -> Result<()> {
        block.0.iter().try_for_each(|stmt| self.statement(stmt))
    }

    fn statement(&mut self, stmt: &Stmt) -> Result<()> {
        self.line = stmt.line;
        match &stmt.inst {
            Inst::Let(value, op) => {
                let components = self.value(*value, op)?;
                self.values.insert(value.0, components);
                Ok(())
            }
            Inst::Do(effect) => self.effect(effect),
            Inst::If(condition, then, other) => {
                let condition = self.condition(*condition)?;
                let (not, end) = (self.draft.label(), self.draft.label());
                self.branch(Some((condition, true)), not)?;
                self.block(then)?;
                if !other.0.is_empty() {
                    self.branch(None, end)?;
                }
                self.draft.put(not);
                self.block(other)?;
                self.draft.put(end);
                Ok(())
            }
            Inst::Switch {
                selector,
                cases,
                default,
            } => self.switch(*selector, cases, default),
            Inst::Loop(body) => {
                let (head, end) = (self.draft.label(), self.draft.label());
                self.draft.put(head);
                self.framed(Some(head), end, body)?;
                self.branch(None, head)?;
                self.draft.put(end);
                Ok(())
            }
            Inst::Labeled(body) => {
                let end = self.draft.label();
                self.framed(None, end, body)?;
                self.draft.put(end);
                Ok(())
            }
            Inst::Break(depth) => {
                let end = self.frame(*depth).map(|frame| frame.end);
                self.leave(end)
            }
            Inst::Continue(depth) => {
                let head = self.frame(*depth).and_then(|frame| frame.head);
                self.leave(head)
            }
            Inst::Return(_) => self.emit("exit", None, None, None, Vec::new()),
        }
    }

    fn frame(&self, depth: u32) -> Option<&Frame> {
        self.frames.iter().rev().nth(depth as usize)
    }

    fn leave(&mut self, label: Option<u32>) -> Result<()> {
        match label {
            Some(label) => self.branch(None, label),
            None => self.refuse(
                "a branch out of nothing",
                "the kernel's verifier lets none through",
            ),
        }
    }

    fn framed(&mut self, head: Option<u32>, end: u32, body: &Block) -> Result<()> {
        self.frames.push(Frame { head, end });
        let done = self.block(body);
        self.frames.pop();
        done
    }

    fn switch(&mut self, selector: Value, cases: &[(Vec<u64>, Block)], default: &Block) -> Result<()> {
        let ty = self.scalar_of(selector)?;
        let selector = self.one(selector)?;
        let end = self.draft.label();
        let labels: Vec<u32> = cases.iter().map(|_| self.draft.label()).collect();
        for ((values, _), label) in cases.iter().zip(&labels) {
            for bits in values {
                let met = self.draft.register(Scalar::Bool);
                let args = vec![Arg::Register(met), selector, Self::immediate(*bits)];
                self.emit("seteq", None, Some(ty), None, args)?;
                self.branch(Some((met, false)), *label)?;
            }
        }
        self.block(default)?;
        for ((_, body), label) in cases.iter().zip(labels) {
            self.branch(None, end)?;
            self.draft.put(label);
            self.block(body)?;
        }
        self.draft.put(end);
        Ok(())
    }

    fn effect(&mut self, effect: &Effect) -> Result<()> {
        match effect {
            Effect::Store(place, value, None) => self.store(place, *value),
            Effect::Store(_, _, Some(_)) => self.refuse(
                "an ordered store",
                "stores of programs are plain: use `atom_exchange`",
            ),
            Effect::Device(DeviceOp::Barrier, _) => self.emit("bar", None, None, None, Vec::new()),
            Effect::Device(DeviceOp::Fence(scope), _) => {
                let name = format!("fence_{}", scope.name());
                self.emit(&name, None, None, None, Vec::new())
            }
            Effect::Device(op, _) => self.device(*op),
            Effect::Print(..) => self.refuse("printing", "programs print nothing: store to a buffer"),
            Effect::Fault(kind, ..) => self.refuse(
                format!("the fault `{}`", kind.name()),
                "programs fault where they index and divide alone",
            ),
            Effect::Panic(..) => self.refuse(
                "a panic",
                "programs fault where they index and divide alone: store a flag",
            ),
        }
    }

    pub(super) fn device<T>(&self, op: DeviceOp) -> Result<T> {
        let (name, attribute) = op.row().name;
        self.refuse(
            format!("`{name}{attribute}`"),
            "programs have barriers, fences and reductions of blocks and grids alone",
        )
    }

    /// That an atomic access is ordered as those of programs.
    pub(super) fn relaxed(&self, sync: Sync) -> Result<()> {
        match sync {
            Sync {
                order: MemOrder::Relaxed,
                scope: Scope::Block | Scope::Device,
            } => Ok(()),
            _ => self.refuse(
                format!(
                    "an atomic access that is {:?} for the {}",
                    sync.order,
                    sync.scope.name()
                ),
                "those of programs are relaxed, for the device: use fences",
            ),
        }
    }

    // A condition in a predicate.
    fn condition(&mut self, value: Value) -> Result<u32> {
        let arg = self.one(value)?;
        self.in_register(arg, Scalar::Bool)
    }

    pub(super) fn in_register(&mut self, arg: Arg, ty: Scalar) -> Result<u32> {
        match arg {
            Arg::Register(register) => Ok(register),
            other => {
                let register = self.draft.register(ty);
                let args = vec![Arg::Register(register), other];
                self.emit("mov", None, Some(ty), None, args)?;
                Ok(register)
            }
        }
    }

    fn branch(&mut self, guard: Option<(u32, bool)>, label: u32) -> Result<()> {
        self.emit("bra", guard, None, None, vec![Arg::Label(label)])
    }

    pub(super) fn emit(
        &mut self,
        name: &str,
        guard: Option<(u32, bool)>,
        ty: Option<Scalar>,
        from: Option<Scalar>,
        args: Vec<Arg>,
    ) -> Result<()> {
        let Some(opcode) = Opcode::from_name(name) else {
            return self.refuse(format!("`{name}`"), "programs have no such instruction");
        };
        self.draft.lines.push(Line {
            opcode,
            ty,
            from,
            guard,
            args,
            line: self.line,
        });
        Ok(())
    }
}
