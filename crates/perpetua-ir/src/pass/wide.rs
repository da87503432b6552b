//! Several blocks in the time of one. A lane of an element-wise kernel has one or two loads under way, and a GPU whose multiprocessors hold
//! 2,048 lanes needs two or three times as many bytes under way to keep its memory busy. Here each lane does what
//! the lanes of the same index in several neighbouring blocks would do, loads first:
//!
//! ```text
//! if all those blocks are in the grid, and every condition of every lane holds {
//!     what the lanes do, statement by statement for all of them
//! } else {
//!     for each of those blocks that is in the grid { the kernel as it was }
//! }
//! ```
//!
//! Lanes of different blocks have no order among them, so any mixture of their statements is one that may happen. The conditions are
//! index checks and the kernel's own bounds (`if i < n`); they must follow from where the lane stands, from parameters and lengths, so
//! that they can be asked before anything is loaded or stored.

use std::collections::HashMap;

use crate::ir::{
    Axis, Base, Block, Body, Builtin, Effect, Inst, Kernel, LocalId, Op, Param, ParamKind, Place, Scalar,
    Stmt, Type, Value,
};
use crate::ops::BinaryOp;

/// How many blocks a wide kernel's block stands for.
const TOGETHER: u32 = 4;
/// Most loads and stores of buffers that a lane may make. What makes more has enough of them under way, or finds its neighbours' in the
/// cache: a stencil of eight accesses lost a tenth.
const MOST_ACCESSES: usize = 4;
/// Most scalars that those may move together: all lanes' stand in registers at once.
const MOST_SCALARS: usize = 16;
/// Most statements: larger kernels compute more than they wait for memory, and want their registers for that.
const MOST_STATEMENTS: usize = 160;
/// Most bytes of a lane's variables, of which each lane needs its own.
const MOST_VARIABLES: u32 = 64;
/// Name of the parameter that says how many blocks the grid has along x.
const BLOCKS: &str = "perpetua_blocks";

/// A kernel of which one block does what [`Wide::blocks`] blocks did.
#[derive(Clone, Debug)]
pub struct Wide {
    /// The kernel. Its checks are explicit; its last parameter, a `u32`, is how many blocks the grid of the original has along x. Where
    /// the original took a grid of n blocks along x, it takes n / `blocks`, rounded up.
    pub kernel: Kernel,
    /// How many blocks of the original, neighbours along x, a block stands for.
    pub blocks: u32,
    /// The variable that holds the original's block index along x where a fault is reported.
    pub block: LocalId,
}

/// Makes the kernel wide if it is element-wise: free of barriers, atomics, prints, loops and shared memory, small, and with conditions
/// that do not depend on memory. `kernel` must have [explicit checks](crate::ir::Checks::Explicit), by which a lane that faults returns. Its
/// fault sites are those of the original, in the same order.
pub fn widen(kernel: &Kernel) -> Option<Wide> {
    let plan = Plan::of(kernel)?;
    let variables: u32 = kernel.body.locals.iter().map(|local| local.ty.size()).sum();
    let pays = (1..=MOST_ACCESSES).contains(&plan.accesses)
        && plan.scalars <= MOST_SCALARS
        && plan.statements <= MOST_STATEMENTS
        && variables <= MOST_VARIABLES;
    pays.then(|| plan.build(TOGETHER))
}

/// A statement of the way through the kernel on which all conditions hold.
enum Item<'k> {
    /// A statement, and whether it needs nothing from memory and variables.
    Plain(&'k Stmt, bool),
    /// A condition, and what it must be.
    Require(Value, bool),
}

/// What a value depends on.
#[derive(Clone, Copy, Default)]
struct Origin {
    /// On nothing but the lane's place, parameters and lengths.
    early: bool,
    /// On the block's index along x.
    moves: bool,
}

/// The kernel by so many blocks at once, whether that pays or not; `None` if that cannot be done. For tests.
#[doc(hidden)]
pub fn widen_by(kernel: &Kernel, blocks: u32) -> Option<Wide> {
    Some(Plan::of(kernel)?.build(blocks))
}

struct Plan<'k> {
    kernel: &'k Kernel,
    items: Vec<Item<'k>>,
    origins: Vec<Origin>,
    accesses: usize,
    /// How many scalars the accesses move.
    scalars: usize,
    statements: usize,
}

impl<'k> Plan<'k> {
    fn of(kernel: &'k Kernel) -> Option<Plan<'k>> {
        let functions = || kernel.functions.iter().map(|f| &f.body.block);
        if !kernel.shared.is_empty() || !functions().all(is_plain) || functions().any(asks_for_block) {
            return None;
        }
        let mut plan = Plan {
            kernel,
            items: Vec::new(),
            origins: vec![Origin::default(); kernel.body.values.len()],
            accesses: 0,
            scalars: 0,
            statements: 0,
        };
        plan.follow(&kernel.body.block)?;
        Some(plan)
    }

    /// Adds a block's statements; says whether the lane ends in it.
    fn follow(&mut self, block: &'k Block) -> Option<bool> {
        for stmt in &block.0 {
            match &stmt.inst {
                Inst::Return(None) => return Some(true),
                Inst::If(condition, then, otherwise) if !is_plain_statement(stmt) => {
                    let origin = self.origin(*condition);
                    if !origin.early {
                        return None;
                    }
                    // The way goes on where the lane does something.
                    let (holds, way) = if gives_up(then) {
                        (false, otherwise)
                    } else if gives_up(otherwise) || otherwise.0.is_empty() {
                        (true, then)
                    } else {
                        return None;
                    };
                    self.items.push(Item::Require(*condition, holds));
                    if self.follow(way)? {
                        return Some(true);
                    }
                }
                _ => self.add(stmt)?,
            }
        }
        Some(false)
    }

    fn add(&mut self, stmt: &'k Stmt) -> Option<()> {
        self.statements += size(stmt, self.kernel);
        let early = match &stmt.inst {
            Inst::Let(v, op) => {
                let mut origin = Origin {
                    early: !matches!(op, Op::Load(..)),
                    moves: matches!(op, Op::Builtin(Builtin::BlockIdx(Axis::X))),
                };
                op.operands(&mut |operand| {
                    let of = self.origin(operand);
                    origin.early &= of.early;
                    origin.moves |= of.moves;
                });
                *self.origins.get_mut(v.0 as usize)? = origin;
                origin.early
            }
            _ => false,
        };
        match &stmt.inst {
            Inst::Let(v, Op::Load(place, None)) | Inst::Do(Effect::Store(place, v, None))
                if matches!(place.base, Base::Buffer(_)) =>
            {
                self.accesses += 1;
                self.scalars += self.kernel.body.values.get(v.0 as usize)?.leaf_count();
            }
            _ if is_plain_statement(stmt) => {}
            _ => return None,
        }
        self.items.push(Item::Plain(stmt, early));
        Some(())
    }

    fn origin(&self, v: Value) -> Origin {
        self.origins.get(v.0 as usize).copied().unwrap_or_default()
    }

    fn build(&self, blocks: u32) -> Wide {
        let mut kernel = self.kernel.clone();
        let parameter = kernel.params.len() as u32;
        kernel.params.push(Param {
            name: BLOCKS.to_owned(),
            kind: ParamKind::Value(Scalar::U32.into()),
        });
        let mut build = Build {
            body: Body {
                block: Block::default(),
                ..self.kernel.body.clone()
            },
            parameter,
            grid: Value(0),
        };
        let mut code = Vec::new();
        build.grid = build.define(&mut code, Scalar::U32, Op::Param(parameter));
        let first = build.define(&mut code, Scalar::U32, Op::Builtin(Builtin::BlockIdx(Axis::X)));
        let width = build.constant(&mut code, blocks);
        // At most 2^31 - 1 blocks lie along x, so the sum fits.
        let first = build.define(&mut code, Scalar::U32, Op::Binary(BinaryOp::Mul, first, width));
        let end = build.define(&mut code, Scalar::U32, Op::Binary(BinaryOp::Add, first, width));

        let together = self.together(&mut build, first, end, blocks);
        code.push(plain(Inst::Labeled(together)));
        let block = build.local("block");
        code.push(store(block, first));
        let each = self.each(&mut build, block, end);
        code.push(plain(Inst::Loop(each)));
        kernel.body = Body {
            block: Block(code),
            ..build.body
        };
        Wide {
            kernel,
            blocks,
            block,
        }
    }

    /// The way on which every condition of every lane holds; left where one does not.
    fn together(&self, build: &mut Build, first: Value, end: Value, blocks: u32) -> Block {
        let mut code = Vec::new();
        let fits = build.define(&mut code, Scalar::Bool, Op::Binary(BinaryOp::Le, end, build.grid));
        code.push(unless(fits, true));
        let mut lanes: Vec<Lane> = Vec::new();
        for i in 0..blocks {
            let at = build.constant(&mut code, i);
            let block = build.define(&mut code, Scalar::U32, Op::Binary(BinaryOp::Add, first, at));
            let mut lane = Lane {
                block,
                // What does not depend on the block is the first lane's.
                values: lanes.first().map_or_else(HashMap::new, |lane| self.unmoved(lane)),
                locals: HashMap::new(),
            };
            for item in &self.items {
                match item {
                    Item::Plain(stmt, true) => build.again(&mut code, stmt, &mut lane),
                    Item::Require(v, holds) if i == 0 || self.origin(*v).moves => {
                        code.push(unless(lane.value(*v), *holds));
                    }
                    _ => {}
                }
            }
            lanes.push(lane);
        }
        for item in &self.items {
            if let Item::Plain(stmt, false) = item {
                for lane in &mut lanes {
                    build.again(&mut code, stmt, lane);
                }
            }
        }
        code.push(plain(Inst::Return(None)));
        Block(code)
    }

    fn unmoved(&self, lane: &Lane) -> HashMap<Value, Value> {
        let is_unmoved = |v: &Value| self.origin(*v).early && !self.origin(*v).moves;
        let values = lane.values.iter().map(|(from, to)| (*from, *to));
        values.filter(|(from, _)| is_unmoved(from)).collect()
    }

    /// One turn of the loop over blocks: the kernel as it was.
    fn each(&self, build: &mut Build, block: LocalId, end: Value) -> Block {
        let mut code = Vec::new();
        let at = build.define(&mut code, Scalar::U32, Op::Load(Place::local(block), None));
        let is_there = build.define(&mut code, Scalar::Bool, Op::Binary(BinaryOp::Lt, at, build.grid));
        code.push(unless(is_there, true));
        let mut body = self.kernel.body.block.clone();
        build.in_turn(&mut body, block, 0);
        code.push(plain(Inst::Labeled(body)));
        let one = build.constant(&mut code, 1);
        let next = build.define(&mut code, Scalar::U32, Op::Binary(BinaryOp::Add, at, one));
        code.push(store(block, next));
        let goes_on = build.define(&mut code, Scalar::Bool, Op::Binary(BinaryOp::Lt, next, end));
        code.push(unless(goes_on, true));
        Block(code)
    }
}

/// A lane's values and variables on the way that all go together, by the original's.
struct Lane {
    block: Value,
    values: HashMap<Value, Value>,
    locals: HashMap<LocalId, LocalId>,
}

impl Lane {
    fn value(&self, v: Value) -> Value {
        self.values.get(&v).copied().unwrap_or(v)
    }
}

/// The new body as it grows. Values and variables of the original keep their numbers in the loop over blocks.
struct Build {
    body: Body,
    /// How many blocks the original's grid has along x: the parameter, and its value.
    parameter: u32,
    grid: Value,
}

impl Build {
    fn new_value(&mut self, ty: Type) -> Value {
        self.body.values.push(ty);
        Value(self.body.values.len() as u32 - 1)
    }

    fn define(&mut self, code: &mut Vec<Stmt>, ty: Scalar, op: Op) -> Value {
        let v = self.new_value(ty.into());
        code.push(plain(Inst::Let(v, op)));
        v
    }

    fn constant(&mut self, code: &mut Vec<Stmt>, n: u32) -> Value {
        self.define(code, Scalar::U32, Op::Const(Scalar::U32, n.into()))
    }

    fn local(&mut self, name: &str) -> LocalId {
        self.body.locals.push(crate::ir::Local {
            name: name.to_owned(),
            ty: Scalar::U32.into(),
        });
        LocalId(self.body.locals.len() as u32 - 1)
    }

    /// A statement once more, for a lane.
    fn again(&mut self, code: &mut Vec<Stmt>, stmt: &Stmt, lane: &mut Lane) {
        if let Inst::Let(v, op) = &stmt.inst {
            let known = match op {
                Op::Builtin(Builtin::BlockIdx(Axis::X)) => Some(lane.block),
                Op::Builtin(Builtin::GridDim(Axis::X)) => Some(self.grid),
                _ => lane.values.get(v).copied(),
            };
            if let Some(known) = known {
                lane.values.insert(*v, known);
                return;
            }
        }
        let mut stmt = stmt.clone();
        self.rename(&mut stmt.inst, lane);
        code.push(stmt);
    }

    fn rename(&mut self, inst: &mut Inst, lane: &mut Lane) {
        inst.operands_mut(&mut |v| *v = lane.value(*v));
        let place = match inst {
            Inst::Let(_, op) => op.place_mut(),
            Inst::Do(effect) => effect.place_mut(),
            _ => None,
        };
        if let Some(Base::Local(local)) = place.map(|place| &mut place.base) {
            let of = *local;
            *local = *lane.locals.entry(of).or_insert_with(|| {
                let copy = self.body.locals.get(of.0 as usize).cloned();
                self.body.locals.extend(copy);
                LocalId(self.body.locals.len() as u32 - 1)
            });
        }
        for block in inst.blocks_mut() {
            for stmt in std::mem::take(&mut block.0) {
                self.again(&mut block.0, &stmt, lane);
            }
        }
        if let Inst::Let(v, _) = inst {
            let ty = self.body.values.get(v.0 as usize).cloned().unwrap_or(Type::BOOL);
            let new = self.new_value(ty);
            lane.values.insert(*v, new);
            *v = new;
        }
    }

    /// Code of the original inside the loop over blocks, `depth` loops and labels deep: the block's index is the variable's, and the
    /// lane's end is that of the turn.
    fn in_turn(&mut self, code: &mut Block, block: LocalId, depth: u32) {
        for stmt in &mut code.0 {
            match &mut stmt.inst {
                Inst::Let(_, op @ Op::Builtin(Builtin::BlockIdx(Axis::X))) => {
                    *op = Op::Load(Place::local(block), None);
                }
                Inst::Let(_, op @ Op::Builtin(Builtin::GridDim(Axis::X))) => {
                    *op = Op::Param(self.parameter);
                }
                inst @ Inst::Return(None) => *inst = Inst::Break(depth),
                inst => {
                    let depth = depth + u32::from(matches!(inst, Inst::Loop(_) | Inst::Labeled(_)));
                    for block_of in inst.blocks_mut() {
                        self.in_turn(block_of, block, depth);
                    }
                }
            }
        }
    }
}

fn plain(inst: Inst) -> Stmt {
    Stmt { line: 0, inst }
}

fn store(local: LocalId, v: Value) -> Stmt {
    plain(Inst::Do(Effect::Store(Place::local(local), v, None)))
}

/// Leaves the innermost loop or label unless the condition is as it must be.
fn unless(condition: Value, holds: bool) -> Stmt {
    let (stay, leave) = (Block::default(), Block(vec![plain(Inst::Break(0))]));
    plain(if holds {
        Inst::If(condition, stay, leave)
    } else {
        Inst::If(condition, leave, stay)
    })
}

/// Whether the lane does nothing here but end, perhaps with a fault.
fn gives_up(block: &Block) -> bool {
    let ends = matches!(block.0.last().map(|stmt| &stmt.inst), Some(Inst::Return(None)));
    let is_free = |stmt: &Stmt| match &stmt.inst {
        Inst::Let(_, op) => !matches!(op, Op::Atomic(..) | Op::CompareExchange { .. } | Op::Device(..)),
        inst => inst.faults() || matches!(inst, Inst::Return(None)),
    };
    ends && block.0.iter().all(is_free)
}

/// Whether the statements compute: no buffer, no loop, no end of the lane, nothing of the device.
fn is_plain(block: &Block) -> bool {
    block.0.iter().all(is_plain_statement)
}

fn is_plain_statement(stmt: &Stmt) -> bool {
    let is_private = |place: &Place| matches!(place.base, Base::Local(_) | Base::Constant(_));
    match &stmt.inst {
        Inst::Let(_, op) => match op {
            Op::Load(place, None) => is_private(place),
            Op::Load(_, Some(_)) | Op::Atomic(..) | Op::CompareExchange { .. } | Op::Device(..) => false,
            Op::Builtin(builtin) => !matches!(builtin, Builtin::SubgroupLane | Builtin::SubgroupSize),
            Op::Len(base, _) => matches!(base, Base::Buffer(_)),
            _ => true,
        },
        Inst::Do(Effect::Store(place, _, None)) => is_private(place),
        Inst::Do(_) | Inst::Loop(_) | Inst::Continue(_) => false,
        // Of a device function; of a kernel's body none comes here.
        Inst::Return(v) => v.is_some(),
        Inst::Break(_) => true,
        inst @ (Inst::If(..) | Inst::Switch { .. } | Inst::Labeled(_)) => {
            inst.blocks().into_iter().all(is_plain)
        }
    }
}

/// Whether the code reads what a wide kernel replaces.
fn asks_for_block(block: &Block) -> bool {
    let mut asks = false;
    block.walk(&mut |stmt| {
        asks |= matches!(
            &stmt.inst,
            Inst::Let(
                _,
                Op::Builtin(Builtin::BlockIdx(Axis::X) | Builtin::GridDim(Axis::X))
            )
        );
    });
    asks
}

/// How many statements it is with those inside it and of the functions that it calls.
fn size(stmt: &Stmt, kernel: &Kernel) -> usize {
    let inside = stmt.inst.blocks().into_iter().flat_map(|block| &block.0);
    let called = match &stmt.inst {
        Inst::Let(_, Op::Call(f, _)) => kernel.functions.get(*f as usize).map(|f| &f.body.block.0),
        _ => None,
    };
    let all = inside.chain(called.into_iter().flatten());
    1 + all.map(|stmt| size(stmt, kernel)).sum::<usize>()
}
