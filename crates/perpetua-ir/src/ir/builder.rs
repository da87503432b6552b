//! Builds kernels from Rust code: each call appends one statement and types it, or says why it cannot.

use std::sync::Arc;

use super::kernel::*;
use super::operation::*;
use super::types::{Scalar, Type};
use super::typing::{Declarations, TypeError};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

type Result<T> = std::result::Result<T, TypeError>;

/// Builds one kernel. Statements go to the innermost open block; [`KernelBuilder::function`] switches to the body
/// of a device function for as long as its closure runs.
///
/// ```
/// use perpetua_ir::ir::*;
/// use perpetua_ir::ops::BinaryOp;
/// let mut k = KernelBuilder::new("scale");
/// let x = k.buffer("x", Type::F32, Access::ReadWrite);
/// let a = k.param("a", Type::F32);
/// let i = k.global_id(Axis::X)?;
/// let n = k.op(Op::Len(x, Scalar::U32))?;
/// let inside = k.binary(BinaryOp::Lt, i, n)?;
/// k.if_(inside, |k| {
///     let at = Place::element(x, i);
///     let v = k.load(at.clone())?;
///     let v = k.binary(BinaryOp::Mul, v, a)?;
///     k.store(at, v)
/// })?;
/// let kernel = k.finish();
/// assert_eq!(kernel.params.len(), 2);
/// # Ok::<(), TypeError>(())
/// ```
pub struct KernelBuilder {
    kernel: Kernel,
    /// The body being built; the kernel's own while no function is open.
    body: Body,
    /// Open blocks, outermost first; never empty.
    open: Vec<Block>,
    line: u32,
}

/// The body around a device function, while that is being built.
pub(crate) struct OuterBody {
    body: Body,
    open: Vec<Block>,
}

impl KernelBuilder {
    /// Starts a kernel called `name`.
    pub fn new(name: impl Into<String>) -> KernelBuilder {
        KernelBuilder {
            kernel: Kernel::new(name),
            body: Body::default(),
            open: vec![Block::default()],
            line: 0,
        }
    }

    /// What memory is called.
    pub fn name_of(&self, base: Base) -> &str {
        let name = match base {
            Base::Local(id) => self.body.locals.get(id.0 as usize).map(|local| &local.name),
            Base::Shared(i) => self.kernel.shared.get(i as usize).map(|shared| &shared.name),
            Base::Buffer(i) => self.kernel.params.get(i as usize).map(|param| &param.name),
            Base::Constant(i) => self.kernel.constants.get(i as usize).map(|table| &table.name),
        };
        name.map_or("", String::as_str)
    }

    /// The kernel as declared so far (its body is empty until [`KernelBuilder::finish`]).
    pub fn kernel_mut(&mut self) -> &mut Kernel {
        &mut self.kernel
    }

    /// Sets the source line that following statements carry.
    pub fn set_line(&mut self, line: u32) {
        self.line = line;
    }

    /// The source line that statements carry now.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Names the source file that lines refer to.
    pub fn set_source(&mut self, source: impl Into<Arc<str>>) {
        self.kernel.source = source.into();
    }

    /// Declares a buffer parameter.
    pub fn buffer(&mut self, name: impl Into<String>, element: Type, access: Access) -> Base {
        self.kernel.params.push(Param {
            name: name.into(),
            kind: ParamKind::Buffer { element, access },
        });
        Base::Buffer(self.kernel.params.len() as u32 - 1)
    }

    /// Declares a value parameter; gives its value at the present point of the kernel's body.
    pub fn param(&mut self, name: impl Into<String>, ty: Type) -> Value {
        self.kernel.params.push(Param {
            name: name.into(),
            kind: ParamKind::Value(ty.clone()),
        });
        let index = self.kernel.params.len() as u32 - 1;
        self.define(ty, Op::Param(index))
    }

    /// The value parameter that a value is, if it is one.
    pub fn param_of(&self, v: Value) -> Option<u32> {
        let all = self.open.iter().flat_map(|block| &block.0);
        all.filter_map(|stmt| match stmt.inst {
            Inst::Let(defined, Op::Param(i)) if defined == v => Some(i),
            _ => None,
        })
        .next()
    }

    /// Declares a shared variable.
    pub fn shared(&mut self, name: impl Into<String>, ty: Type) -> Base {
        self.kernel.shared.push(SharedVar {
            name: name.into(),
            ty,
            dynamic: false,
        });
        Base::Shared(self.kernel.shared.len() as u32 - 1)
    }

    /// Declares dynamic shared memory of `element`s.
    pub fn dynamic_shared(&mut self, name: impl Into<String>, element: Type) -> Base {
        self.kernel.shared.push(SharedVar {
            name: name.into(),
            ty: element,
            dynamic: true,
        });
        Base::Shared(self.kernel.shared.len() as u32 - 1)
    }

    /// Declares a mutable variable of the body being built.
    pub fn local(&mut self, name: impl Into<String>, ty: Type) -> LocalId {
        self.body.locals.push(Local {
            name: name.into(),
            ty,
        });
        LocalId(self.body.locals.len() as u32 - 1)
    }

    /// Type of a value.
    pub fn type_of(&self, v: Value) -> Result<&Type> {
        self.declarations().value(v)
    }

    /// Type of a place.
    pub fn place_type(&self, place: &Place) -> Result<Type> {
        Ok(self.declarations().place(place)?.ty)
    }

    fn declarations(&self) -> Declarations<'_> {
        Declarations {
            kernel: &self.kernel,
            body: &self.body,
        }
    }

    /// Appends an operation whose type the caller knows.
    pub(crate) fn define(&mut self, ty: Type, op: Op) -> Value {
        let value = Value(self.body.values.len() as u32);
        self.body.values.push(ty);
        self.push(Inst::Let(value, op));
        value
    }

    /// Appends a statement without checking it.
    pub fn push(&mut self, inst: Inst) {
        let stmt = Stmt {
            line: self.line,
            inst,
        };
        match self.open.last_mut() {
            Some(block) => block.0.push(stmt),
            None => self.open.push(Block(vec![stmt])),
        }
    }

    /// Appends an operation and gives its value.
    ///
    /// # Errors
    /// If it is ill-typed, or a call of a function without result (use [`KernelBuilder::call`]).
    pub fn op(&mut self, op: Op) -> Result<Value> {
        let ty = self
            .declarations()
            .op(&op)?
            .ok_or_else(|| TypeError::Invalid("the called function gives no value".into()))?;
        Ok(self.define(ty, op))
    }

    /// Calls a device function; `None` when it gives no value.
    pub fn call(&mut self, function: u32, args: Vec<Value>) -> Result<Option<Value>> {
        let op = Op::Call(function, args);
        match self.declarations().op(&op)? {
            Some(ty) => Ok(Some(self.define(ty, op))),
            None => {
                // A call without result still is a statement: it defines a value of the empty tuple, which nobody
                // can use.
                self.define(Type::tuple(Vec::new()), op);
                Ok(None)
            }
        }
    }

    /// Appends an effect.
    pub fn effect(&mut self, effect: Effect) -> Result<()> {
        self.declarations().effect(&effect)?;
        self.push(Inst::Do(effect));
        Ok(())
    }

    /// A scalar constant from its bits.
    pub fn constant(&mut self, s: Scalar, bits: u64) -> Value {
        self.define(s.into(), Op::Const(s, bits))
    }

    /// A `u32` constant.
    pub fn u32(&mut self, v: u32) -> Value {
        self.constant(Scalar::U32, v.into())
    }

    /// An `i32` constant.
    pub fn i32(&mut self, v: i32) -> Value {
        self.constant(Scalar::I32, u64::from(v as u32))
    }

    /// An `f32` constant.
    pub fn f32(&mut self, v: f32) -> Value {
        self.constant(Scalar::F32, v.to_bits().into())
    }

    /// A `bool` constant.
    pub fn bool(&mut self, v: bool) -> Value {
        self.constant(Scalar::Bool, v.into())
    }

    /// A value that the launch supplies.
    pub fn builtin(&mut self, b: Builtin) -> Value {
        self.define(Type::U32, Op::Builtin(b))
    }

    /// Index of the lane in the whole grid along an axis, as `u32`.
    pub fn global_id(&mut self, axis: Axis) -> Result<Value> {
        let block = self.builtin(Builtin::BlockIdx(axis));
        let dim = self.builtin(Builtin::BlockDim(axis));
        let thread = self.builtin(Builtin::ThreadIdx(axis));
        let base = self.binary(BinaryOp::Mul, block, dim)?;
        self.binary(BinaryOp::Add, base, thread)
    }

    /// An operator of one operand.
    pub fn unary(&mut self, op: UnaryOp, a: Value) -> Result<Value> {
        self.op(Op::Unary(op, a))
    }

    /// An operator of two operands.
    pub fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Result<Value> {
        self.op(Op::Binary(op, a, b))
    }

    /// An operator of three operands.
    pub fn ternary(&mut self, op: TernaryOp, a: Value, b: Value, c: Value) -> Result<Value> {
        self.op(Op::Ternary(op, a, b, c))
    }

    /// Rust's `as`.
    pub fn cast(&mut self, to: Scalar, a: Value) -> Result<Value> {
        self.op(Op::Cast(to, a))
    }

    /// A plain load.
    pub fn load(&mut self, place: Place) -> Result<Value> {
        self.op(Op::Load(place, None))
    }

    /// A plain store.
    pub fn store(&mut self, place: Place, v: Value) -> Result<()> {
        self.effect(Effect::Store(place, v, None))
    }

    /// Appends a plain store without checking it.
    #[cfg(feature = "pass")]
    pub(crate) fn push_store(&mut self, place: Place, v: Value) {
        self.push(Inst::Do(Effect::Store(place, v, None)));
    }

    /// Opens a block; what follows goes there until [`KernelBuilder::close_block`].
    pub fn open_block(&mut self) {
        self.open.push(Block::default());
    }

    /// Closes the block opened last and gives it.
    pub fn close_block(&mut self) -> Block {
        self.open.pop().unwrap_or_default()
    }

    /// Builds what `f` appends as a block of its own.
    pub fn block<E>(
        &mut self,
        f: impl FnOnce(&mut Self) -> std::result::Result<(), E>,
    ) -> std::result::Result<Block, E> {
        self.open.push(Block::default());
        let done = f(self);
        let block = self.open.pop().unwrap_or_default();
        done.map(|()| block)
    }

    /// Opens a block that [`KernelBuilder::close_block`] gave, to append to it.
    pub(crate) fn reopen_block(&mut self, block: Block) {
        self.open.push(block);
    }

    /// `if cond { then }`.
    pub fn if_(&mut self, cond: Value, then: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.if_else(cond, then, |_| Ok(()))
    }

    /// `if cond { then } else { otherwise }`.
    pub fn if_else(
        &mut self,
        cond: Value,
        then: impl FnOnce(&mut Self) -> Result<()>,
        otherwise: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let then = self.block(then)?;
        let otherwise = self.block(otherwise)?;
        self.push(Inst::If(cond, then, otherwise));
        Ok(())
    }

    /// `loop { body }`.
    pub fn loop_(&mut self, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let body = self.block(body)?;
        self.push(Inst::Loop(body));
        Ok(())
    }

    /// Leaves the innermost loop or labelled block but `depth`.
    pub fn break_(&mut self, depth: u32) {
        self.push(Inst::Break(depth));
    }

    /// Defines a device function; `f` builds its body (parameters are `Value(0)`, `Value(1)`, …). Gives its index for [`KernelBuilder::call`].
    pub fn function<E>(
        &mut self,
        name: impl Into<String>,
        params: Vec<(String, Type)>,
        result: Option<Type>,
        f: impl FnOnce(&mut Self) -> std::result::Result<(), E>,
    ) -> std::result::Result<u32, E> {
        let outer = self.begin_function(&params);
        match f(self) {
            Ok(()) => Ok(self.end_function(outer, name, params, result)),
            Err(error) => {
                self.body = outer.body;
                self.open = outer.open;
                Err(error)
            }
        }
    }

    /// Starts the body of a device function with these parameters; what is appended next goes into it, until
    /// [`KernelBuilder::end_function`].
    pub(crate) fn begin_function(&mut self, params: &[(String, Type)]) -> OuterBody {
        let body = Body {
            values: params.iter().map(|(_, ty)| ty.clone()).collect(),
            ..Body::default()
        };
        OuterBody {
            body: std::mem::replace(&mut self.body, body),
            open: std::mem::replace(&mut self.open, vec![Block::default()]),
        }
    }

    /// Ends a device function's body, and goes on with the one around it. Gives the function's index for
    /// [`KernelBuilder::call`].
    pub(crate) fn end_function(
        &mut self,
        outer: OuterBody,
        name: impl Into<String>,
        params: Vec<(String, Type)>,
        result: Option<Type>,
    ) -> u32 {
        let mut body = std::mem::replace(&mut self.body, outer.body);
        body.block = std::mem::replace(&mut self.open, outer.open)
            .pop()
            .unwrap_or_default();
        self.kernel.functions.push(Function {
            name: name.into(),
            params,
            result,
            body,
        });
        self.kernel.functions.len() as u32 - 1
    }

    /// The finished kernel. It is not verified yet.
    pub fn finish(mut self) -> Kernel {
        self.body.block = self.open.into_iter().next().unwrap_or_default();
        self.kernel.body = self.body;
        self.kernel
    }
}
