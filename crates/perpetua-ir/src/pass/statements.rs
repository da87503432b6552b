//! What passes add to a kernel: statements of one line, and variables. Must not know what for.

use crate::ir::{Body, Inst, Local, LocalId, Op, Scalar, Stmt, Type, Value};

/// A variable that the body did not have.
pub(super) fn new_local(body: &mut Body, name: &str, ty: Type) -> LocalId {
    body.locals.push(Local {
        name: name.into(),
        ty,
    });
    LocalId(body.locals.len() as u32 - 1)
}

/// Statements of one line.
pub(super) struct Code(pub(super) Vec<Stmt>, pub(super) u32);

impl Code {
    pub(super) fn push(&mut self, inst: Inst) {
        self.0.push(Stmt { line: self.1, inst });
    }

    pub(super) fn let_(&mut self, body: &mut Body, op: Op, ty: Type) -> Value {
        body.values.push(ty);
        let value = Value(body.values.len() as u32 - 1);
        self.push(Inst::Let(value, op));
        value
    }

    pub(super) fn constant(&mut self, body: &mut Body, s: Scalar, bits: u64) -> Value {
        self.let_(body, Op::Const(s, bits), s.into())
    }
}
