//! From a recipe to a kernel of the IR. Each step is computed once in the outermost block where what it depends on is known.

use std::collections::HashMap;

use perpetua_ir::ir::{
    Access, Axis, Base, Builtin, DeviceOp, Effect, Inst, Kernel, KernelBuilder, LocalId, Op, Place as Memory,
    Type, TypeError, Value,
};
use perpetua_ir::math::philox::{Words, philox_of};
use perpetua_ir::ops::{BinaryOp, TernaryOp};

use super::build::BLOCK;
use super::recipe::{Form, Id, Place, Recipe, Step};
use crate::dtype::DType;
use crate::order::Reduction;

pub(super) type Result<T> = std::result::Result<T, TypeError>;

/// Values of steps in a block, and of the places of its lanes.
#[derive(Clone, Default)]
pub(super) struct Scope {
    values: HashMap<Id, Value>,
    places: Vec<(Place, Value)>,
    reduced: Vec<Value>,
}

impl Scope {
    /// The same inside a block whose lanes have a place.
    pub(super) fn at(&self, places: &[(Place, Value)]) -> Scope {
        let mut inner = self.clone();
        inner.places.extend_from_slice(places);
        inner
    }

    /// The result of the next combination.
    pub(super) fn add_reduced(&mut self, value: Value) {
        self.reduced.push(value);
    }
}

/// A kernel being made.
pub(super) struct Emitter<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) k: KernelBuilder,
    output: Base,
    inputs: Vec<Base>,
}

/// The kernel that computes a recipe. Parameters: the result, inputs, sizes, numbers, in the recipe's order, as often as the recipe has results; then the first block of each
/// result but the first one.
pub(crate) fn kernel(recipe: &Recipe) -> Result<Kernel> {
    let mut k = KernelBuilder::new(name(recipe));
    let members: Vec<Member> = (0..recipe.times).map(|at| member(&mut k, recipe, at)).collect();
    let begins = 1..recipe.times;
    let begins: Vec<Value> = begins
        .map(|at| k.param(format!("begin_{at}"), Type::U32))
        .collect();
    let mut emitter = Emitter {
        recipe,
        k,
        output: Base::Buffer(0),
        inputs: Vec::new(),
    };
    for (at, (output, inputs, scope)) in members.into_iter().enumerate() {
        (emitter.output, emitter.inputs) = (output, inputs);
        match &recipe.form {
            Form::Elements { count } if begins.is_empty() => emitter.elements(scope, *count)?,
            Form::Elements { count } => {
                let bounds = [
                    at.checked_sub(1).map(|before| begins[before]),
                    begins.get(at).copied(),
                ];
                emitter.blocks(scope, *count, bounds)?;
            }
            Form::Rows {
                order,
                rows,
                first,
                columns,
                stages,
            } => emitter.rows(scope, *order, [*rows, *first, *columns], stages)?,
            Form::Product(product) => emitter.product(scope, product)?,
        }
    }
    Ok(emitter.k.finish())
}

/// A result's buffer, its inputs, and the values that are parameters.
type Member = (Base, Vec<Base>, Scope);

fn member(k: &mut KernelBuilder, recipe: &Recipe, at: u32) -> Member {
    // Names differ.
    let of = |name: String| match recipe.times {
        1 => name,
        _ => format!("{name}_{at}"),
    };
    let (_, ty) = recipe.steps[recipe.value as usize];
    let output = k.buffer(of("result".into()), ty.into(), Access::ReadWrite);
    let inputs = recipe.inputs.iter().enumerate();
    let inputs = inputs
        .map(|(i, ty)| k.buffer(of(format!("input{i}")), (*ty).into(), Access::Read))
        .collect();
    let mut scope = Scope::default();
    for wants_sizes in [true, false] {
        for (id, (step, ty)) in recipe.steps.iter().enumerate() {
            let name = match step {
                Step::Size(at) if wants_sizes => format!("size{at}"),
                Step::Number(at) if !wants_sizes => format!("number{at}"),
                _ => continue,
            };
            scope.values.insert(id as Id, k.param(of(name), (*ty).into()));
        }
    }
    (output, inputs, scope)
}

// For profilers: what it does, as far as there is room.
fn name(recipe: &Recipe) -> String {
    let mut name = String::from(match recipe.form {
        Form::Elements { .. } => "elements",
        Form::Rows { .. } => "rows",
        Form::Product(_) => "matmul",
    });
    if recipe.times > 1 {
        name.push_str(&recipe.times.to_string());
    }
    let words = recipe.steps.iter().filter_map(|(step, ty)| match step {
        Step::Unary(op, _) => Some(op.name()),
        Step::Binary(op, ..) if *ty != DType::U32 => Some(op.name()),
        Step::Select(..) if *ty != DType::U32 => Some("where"),
        Step::Random(..) => Some("random"),
        _ => None,
    });
    for word in words {
        if name.len() + word.len() > 60 {
            break;
        }
        name.push('_');
        name.push_str(word);
    }
    name
}

/// Random bits are made of instructions.
impl Words for Emitter<'_> {
    type Word = Value;
    type Error = TypeError;

    fn constant(&mut self, word: u32) -> Value {
        self.k.u32(word)
    }

    fn product(&mut self, a: Value, b: Value) -> Result<[Value; 2]> {
        let high = self.k.binary(BinaryOp::MulHigh, a, b)?;
        Ok([high, self.k.binary(BinaryOp::Mul, a, b)?])
    }

    fn sum(&mut self, a: Value, b: Value) -> Result<Value> {
        self.k.binary(BinaryOp::Add, a, b)
    }

    fn xor(&mut self, a: Value, b: Value) -> Result<Value> {
        self.k.binary(BinaryOp::Xor, a, b)
    }
}

impl Emitter<'_> {
    pub(super) fn step(&self, id: Id) -> (Step, DType) {
        self.recipe.steps[id as usize]
    }

    /// Computes steps, as far as what they depend on is known in this scope; those that are not wait for an inner one.
    pub(super) fn prepare(&mut self, scope: &mut Scope, wanted: &[Id]) -> Result<()> {
        let mut needed = vec![false; self.recipe.steps.len()];
        let mut open = wanted.to_vec();
        while let Some(id) = open.pop() {
            if !scope.values.contains_key(&id) && !std::mem::replace(&mut needed[id as usize], true) {
                open.extend(self.step(id).0.operands());
            }
        }
        for id in 0..needed.len() as Id {
            if needed[id as usize]
                && let Some(value) = self.compute(scope, id)?
            {
                scope.values.insert(id, value);
            }
        }
        Ok(())
    }

    /// A step's value, which everything it depends on is known for.
    pub(super) fn value(&mut self, scope: &mut Scope, id: Id) -> Result<Value> {
        self.prepare(scope, &[id])?;
        let found = scope.values.get(&id).copied();
        found.ok_or_else(|| TypeError::Invalid(format!("step {id} depends on a place that its block lacks")))
    }

    // `None`: something that it depends on is not known here.
    fn compute(&mut self, scope: &Scope, id: Id) -> Result<Option<Value>> {
        let (step, ty) = self.step(id);
        let of = |id: &Id| scope.values.get(id).copied();
        let operands: Option<Vec<Value>> = step.operands().iter().map(of).collect();
        let Some(operands) = operands else {
            return Ok(None);
        };
        let value = match (step, &operands[..]) {
            (Step::Place(place), _) => {
                let found = scope.places.iter().rev().find(|(known, _)| *known == place);
                return Ok(found.map(|(_, value)| *value));
            }
            (Step::Reduced(at), _) => return Ok(scope.reduced.get(at as usize).copied()),
            (Step::Fixed(bits), _) => self.k.constant(ty.stored(), bits),
            (Step::Load(input, _), &[at]) => self.k.load(Memory::element(self.inputs[input as usize], at))?,
            (Step::Unary(op, _), &[a]) => self.k.unary(op, a)?,
            (Step::Binary(op, ..), &[a, b]) => self.k.binary(op, a, b)?,
            (Step::Select(..), &[a, b, c]) => self.k.ternary(TernaryOp::Select, a, b, c)?,
            (Step::Cast(_), &[a]) => self.k.cast(ty.stored(), a)?,
            (Step::Bits(_), &[a]) => self.k.op(Op::Bitcast(ty.stored(), a))?,
            (Step::Random(..), &[index, a, b, c, d]) => {
                let first = self.constant(0);
                philox_of(self, [index, first], [a, b], [c, d])?
            }
            _ => return Err(TypeError::Invalid(format!("step {id} lacks operands"))),
        };
        Ok(Some(value))
    }

    pub(super) fn store(&mut self, scope: &mut Scope) -> Result<()> {
        let value = self.value(scope, self.recipe.value)?;
        let at = self.value(scope, self.recipe.index)?;
        self.k.store(Memory::element(self.output, at), value)
    }

    /// What `then` appends runs where the condition holds.
    pub(super) fn if_(&mut self, condition: Value, then: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.k.open_block();
        let done = then(self);
        let block = self.k.close_block();
        done?;
        self.k.push(Inst::If(condition, block, Default::default()));
        Ok(())
    }

    /// Turns with the numbers from `start` up to `end`, which is not among them.
    pub(super) fn count(
        &mut self,
        start: Value,
        end: Value,
        step: u32,
        turn: impl FnOnce(&mut Self, Value) -> Result<()>,
    ) -> Result<()> {
        let counter = self.k.local("at", Type::U32);
        self.k.store(Memory::local(counter), start)?;
        self.k.open_block();
        let done = self.turn(counter, end, step, turn);
        let block = self.k.close_block();
        done?;
        self.k.push(Inst::Loop(block));
        Ok(())
    }

    fn turn(
        &mut self,
        counter: LocalId,
        end: Value,
        step: u32,
        turn: impl FnOnce(&mut Self, Value) -> Result<()>,
    ) -> Result<()> {
        let at = self.k.load(Memory::local(counter))?;
        let is_over = self.k.binary(BinaryOp::Ge, at, end)?;
        self.k.if_(is_over, |k| {
            k.break_(0);
            Ok(())
        })?;
        turn(self, at)?;
        let step = self.k.u32(step);
        let next = self.k.binary(BinaryOp::Add, at, step)?;
        self.k.store(Memory::local(counter), next)
    }

    /// Two elements combined. Extremes of floats are NaN if one is.
    pub(super) fn combine(&mut self, how: Reduction, ty: DType, a: Value, b: Value) -> Result<Value> {
        let k = &mut self.k;
        let (op, takes_first) = how.binary();
        match takes_first.filter(|_| ty.is_float()) {
            None => k.binary(op, a, b),
            Some(takes_first) => {
                let first = k.binary(takes_first, a, b)?;
                let is_nan = k.unary(perpetua_ir::ops::UnaryOp::IsNan, a)?;
                let first = k.binary(BinaryOp::Or, first, is_nan)?;
                k.ternary(TernaryOp::Select, first, a, b)
            }
        }
    }

    /// All lanes of the block meet.
    pub(super) fn barrier(&mut self) {
        self.k.push(Inst::Do(Effect::from(DeviceOp::Barrier)));
    }

    pub(super) fn thread(&mut self, axis: Axis) -> Value {
        self.k.builtin(Builtin::ThreadIdx(axis))
    }

    pub(super) fn block(&mut self, axis: Axis) -> Value {
        self.k.builtin(Builtin::BlockIdx(axis))
    }

    fn elements(&mut self, scope: Scope, count: Id) -> Result<()> {
        let lane = self.k.global_id(Axis::X)?;
        self.element(scope, lane, count)
    }

    // The blocks from the first bound up to the second one have the elements.
    fn blocks(&mut self, scope: Scope, count: Id, [first, end]: [Option<Value>; 2]) -> Result<()> {
        self.k.kernel_mut().block_size = Some([BLOCK, 1, 1]);
        let block = self.block(Axis::X);
        let is_behind = first
            .map(|first| self.k.binary(BinaryOp::Ge, block, first))
            .transpose()?;
        let is_before = end
            .map(|end| self.k.binary(BinaryOp::Lt, block, end))
            .transpose()?;
        let is_own = match (is_behind, is_before) {
            (Some(a), Some(b)) => self.k.binary(BinaryOp::And, a, b)?,
            (Some(a), None) | (None, Some(a)) => a,
            (None, None) => self.k.bool(true),
        };
        self.if_(is_own, |own| {
            let block = match first {
                Some(first) => own.k.binary(BinaryOp::Sub, block, first)?,
                None => block,
            };
            let (lanes, thread) = (own.k.u32(BLOCK), own.thread(Axis::X));
            let begin = own.k.binary(BinaryOp::Mul, block, lanes)?;
            let lane = own.k.binary(BinaryOp::Add, begin, thread)?;
            own.element(scope, lane, count)
        })
    }

    fn element(&mut self, mut scope: Scope, lane: Value, count: Id) -> Result<()> {
        let count = self.value(&mut scope, count)?;
        let is_inside = self.k.binary(BinaryOp::Lt, lane, count)?;
        self.if_(is_inside, |own| {
            let mut scope = scope.at(&[(Place::Lane, lane)]);
            own.store(&mut scope)
        })
    }
}
