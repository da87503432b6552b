//! Makes a kernel from a tape of decisions. The kernel as a whole here; operands and operators in `value`,
//! statements with blocks in `control`, memory in `memory`, shared memory in `shared`, device functions in
//! `function`.
//!
//! A kernel has two parts. In the first one control flow is mostly uniform and barriers are possible; in the second
//! lanes may part for good and return early. At the end everything computed goes to slots that each lane owns.

mod control;
mod function;
mod memory;
mod shared;
mod value;

use std::sync::Arc;

use super::case::Case;
use super::choices::{Choices, Random};
use super::config::Config;
use super::inputs::random_bytes;
use memory::Memory;
use perpetua_ir::ir::*;
use perpetua_ir::ops::BinaryOp;

type Result<T> = std::result::Result<T, TypeError>;

/// Makes a case.
///
/// # Errors
/// Only if the generator itself is wrong: what it appended is ill-typed.
pub fn generate(config: &Config, choices: &mut Choices<'_>) -> Result<Case> {
    let block = launch_block(config, choices);
    let grid = *choices
        .pick(&[[1, 1, 1], [3, 1, 1], [2, 2, 1], [1, 1, 2], [5, 1, 1]])
        .unwrap_or(&[1, 1, 1]);
    let seed = u64::from(choices.number());
    let mut generator = Generator {
        config,
        scalars: config.scalars(),
        structs: Vec::new(),
        tables: 0,
        functions: Vec::new(),
        meet: None,
        memories: Vec::new(),
        counts: Vec::new(),
        tiles: Vec::new(),
        dynamic: None,
        block,
        grid,
        body: Body::default(),
        line: 1,
        budget: 0,
        cost: 0,
        choices,
    };
    let mut k = KernelBuilder::new("generated");
    k.set_source("generated.rs");
    generator.kernel(&mut k)?;
    let dynamic = generator.dynamic.is_some();
    let counts = generator.counts;
    let mut kernel = k.finish();
    if generator.choices.chance(1, 4) {
        kernel.block_size = Some(block);
    }
    let mut random = Random::new(seed);
    let args = kernel
        .params
        .iter()
        .zip(counts)
        .map(|(param, count)| match &param.kind {
            ParamKind::Buffer { element: ty, .. } | ParamKind::Value(ty) => {
                random_bytes(ty, count, &mut random)
            }
        })
        .collect();
    Ok(Case {
        kernel,
        grid,
        block,
        dynamic_shared: if dynamic { lanes(block) * 4 } else { 0 },
        args,
    })
}

fn lanes(block: [u32; 3]) -> u32 {
    block.iter().product()
}

fn launch_block(config: &Config, choices: &mut Choices<'_>) -> [u32; 3] {
    let all = [
        [1, 1, 1],
        [7, 1, 1],
        [32, 1, 1],
        [64, 1, 1],
        [8, 4, 1],
        [4, 2, 3],
        [3, 5, 2],
        [16, 16, 1],
    ];
    let fitting: Vec<[u32; 3]> = all.into_iter().filter(|b| lanes(*b) <= config.lanes).collect();
    *choices.pick(&fitting).unwrap_or(&[1, 1, 1])
}

/// A value that statements may read.
struct Known {
    value: Value,
    ty: Type,
}

/// A variable that is assigned and may be read.
#[derive(Clone)]
struct Variable {
    id: LocalId,
    ty: Type,
    /// Only ever assigned what is uniform, in uniform flow.
    uniform: bool,
}

/// A loop or labelled block around a statement.
#[derive(Clone, Copy)]
struct Frame {
    /// Whether `continue` may name it.
    continues: bool,
    /// Whether barriers may stand inside, so that lanes must not part across it.
    meets: bool,
}

/// What may stand at a point.
#[derive(Clone, Copy, Default)]
struct Context {
    /// All lanes are here together, and barriers may stand here.
    uniform: bool,
    /// Some lanes may return here while others go on.
    returns: bool,
    /// Blocks around.
    depth: usize,
    /// How often a statement here runs, at most.
    work: u64,
    /// Shared variable that all lanes may read here, and its type.
    tile: Option<(Base, usize)>,
}

/// The body being made.
#[derive(Default)]
struct Body {
    values: Vec<Known>,
    variables: Vec<Variable>,
    /// By number of a value: whether it is the same for all lanes of a block.
    uniform: Vec<bool>,
    frames: Vec<Frame>,
    context: Context,
    /// Result type in a function.
    result: Option<Type>,
    /// What only the kernel's own body has; `None` in functions.
    entry: Option<Entry>,
}

/// Values that the kernel computes at its start.
#[derive(Clone, Copy)]
struct Entry {
    /// Index of the lane in its block.
    lane: Value,
    /// Index of the lane in the whole launch.
    slot: Value,
    /// A `u32` variable into which results are mixed.
    mix: LocalId,
}

/// A function that can be called.
#[derive(Clone)]
struct Callable {
    index: u32,
    params: Vec<Type>,
    result: Option<Type>,
    cost: u64,
}

struct Generator<'c, 't> {
    config: &'c Config,
    choices: &'c mut Choices<'t>,
    scalars: Vec<Scalar>,
    structs: Vec<Type>,
    /// Number of constant tables.
    tables: u32,
    functions: Vec<Callable>,
    /// A function with a barrier: takes and returns a `u32`.
    meet: Option<u32>,
    memories: Vec<Memory>,
    /// For each parameter, the number of elements that its argument has.
    counts: Vec<usize>,
    /// Shared variables: one element a lane.
    tiles: Vec<(Base, Type)>,
    dynamic: Option<Base>,
    block: [u32; 3],
    grid: [u32; 3],
    body: Body,
    line: u32,
    budget: usize,
    /// Statements that a lane runs, at most, so far.
    cost: u64,
}

impl Generator<'_, '_> {
    fn kernel(&mut self, k: &mut KernelBuilder) -> Result<()> {
        self.make_structs();
        for i in 0..self.choices.below(3) {
            self.function(k, i)?;
        }
        if self.config.shared && self.choices.chance(1, 3) {
            self.meeting_function(k)?;
        }
        self.body = Body::default();
        self.body.context.work = 1;
        self.prelude(k)?;
        self.budget = self.config.statements;
        let mut ended = false;
        if self.config.shared && self.choices.chance(2, 3) {
            self.body.context.uniform = true;
            ended = self.statements(k, self.config.statements / 2)?;
        }
        self.body.context.uniform = false;
        self.body.context.returns = true;
        if !ended {
            ended = self.statements(k, self.config.statements)?;
        }
        if !ended {
            self.epilogue(k)?;
        }
        Ok(())
    }

    fn make_structs(&mut self) {
        for i in 0..self.choices.below(3) {
            let fields: Vec<Type> = (0..1 + self.choices.below(4)).map(|_| self.any_type()).collect();
            self.structs.push(if self.choices.chance(1, 4) {
                Type::tuple(fields)
            } else {
                let fields = fields
                    .into_iter()
                    .enumerate()
                    .map(|(i, ty)| (format!("f{i}"), ty))
                    .collect();
                Type::Struct(Arc::new(StructType::repr_c(format!("S{i}"), fields, 1)))
            });
        }
        // Equal tuples bear one name, and so do not differ.
        self.structs.dedup();
    }

    fn prelude(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let lane = self.linear(k, Builtin::ThreadIdx, Builtin::BlockDim)?;
        let group = self.linear(k, Builtin::BlockIdx, Builtin::GridDim)?;
        let lanes = self.number(k, lanes(self.block))?;
        let before = self.emit(k, Op::Binary(BinaryOp::Mul, group, lanes))?;
        let slot = self.define(k, Op::Binary(BinaryOp::Add, before, lane))?;
        let mix = k.local("mix", Type::U32);
        self.body.variables.push(Variable {
            id: mix,
            ty: Type::U32,
            uniform: false,
        });
        let zero = self.number(k, 0)?;
        k.store(Place::local(mix), zero)?;
        self.body.entry = Some(Entry { lane, slot, mix });
        // The first slots take the mixed results: made first, so that no limit on buffers stops it.
        self.own_memory(k, &Type::U32);
        Ok(())
    }

    /// `(z * sizes.y + y) * sizes.x + x` of an index in three dimensions.
    fn linear(
        &mut self,
        k: &mut KernelBuilder,
        index: fn(Axis) -> Builtin,
        size: fn(Axis) -> Builtin,
    ) -> Result<Value> {
        let mut at = self.define(k, Op::Builtin(index(Axis::Z)))?;
        for axis in [Axis::Y, Axis::X] {
            let size = self.define(k, Op::Builtin(size(axis)))?;
            let index = self.define(k, Op::Builtin(index(axis)))?;
            let row = self.emit(k, Op::Binary(BinaryOp::Mul, at, size))?;
            at = self.define(k, Op::Binary(BinaryOp::Add, row, index))?;
        }
        Ok(at)
    }

    /// Sends to memory what the lane has computed.
    fn epilogue(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let Some(entry) = self.body.entry else {
            return Ok(());
        };
        for variable in self.body.variables.clone() {
            if variable.id == entry.mix {
                continue;
            }
            let place = Place::local(variable.id);
            // Some arrays are read by computed indices alone, as a loop does.
            if matches!(variable.ty, Type::Array(..)) && self.choices.chance(1, 2) {
                self.mix_elements(k, place, &variable.ty)?;
            } else {
                let v = self.emit(k, Op::Load(place, None))?;
                self.mix(k, v, &variable.ty)?;
            }
        }
        for back in 0..6 {
            let at = self.body.values.len().checked_sub(1 + back);
            if let Some(Known { value, ty }) = at.and_then(|at| self.body.values.get(at)) {
                let (value, ty) = (*value, ty.clone());
                self.mix(k, value, &ty)?;
            }
        }
        let mixed = self.emit(k, Op::Load(Place::local(entry.mix), None))?;
        self.store_own(k, &Type::U32, mixed)
    }
}
