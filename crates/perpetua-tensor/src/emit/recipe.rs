//! A kernel before it is one: steps, each of which computes one value of others, with all that differs between launches of one structure
//! (sizes, numbers, buffers) apart. Equal recipes are equal kernels.

use std::collections::HashMap;

use perpetua_ir::ops::eval::result_scalar;
use perpetua_ir::ops::{BinaryOp, UnaryOp};
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::order::{Order, Reduction};

/// Number of a step in its recipe.
pub(crate) type Id = u32;

/// One value of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// Where the lane is, as `u32`.
    Place(Place),
    /// A size of this launch, as `u32`.
    Size(u32),
    /// A number of this launch.
    Number(u32),
    /// A constant's bits.
    Fixed(u64),
    /// The result of a combination.
    Reduced(u32),
    /// An element of an input.
    Load(u32, Id),
    Unary(UnaryOp, Id),
    Binary(BinaryOp, Id, Id),
    Select(Id, Id, Id),
    Cast(Id),
    /// The same bits.
    Bits(Id),
    /// Random bits of an index, by the seed's and the stream's halves.
    Random(Id, [Id; 4]),
}

/// The coordinates that lanes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// Of elements one by one: the element. Of rows: the place along what is combined.
    Lane,
    /// The row; of products, of the left matrix and the result.
    Row,
    /// Of products: the column of the result.
    Column,
    /// Of products: the place along the axis that is summed.
    Inner,
    /// Of products: which one.
    Batch,
}

impl Step {
    /// The steps that it is computed of.
    pub(crate) fn operands(&self) -> SmallVec<[Id; 5]> {
        match *self {
            Step::Place(_) | Step::Size(_) | Step::Number(_) | Step::Fixed(_) | Step::Reduced(_) => {
                SmallVec::new()
            }
            Step::Load(_, a) | Step::Unary(_, a) | Step::Cast(a) | Step::Bits(a) => {
                SmallVec::from_slice(&[a])
            }
            Step::Binary(_, a, b) => SmallVec::from_slice(&[a, b]),
            Step::Select(a, b, c) => SmallVec::from_slice(&[a, b, c]),
            Step::Random(a, [b, c, d, e]) => SmallVec::from_slice(&[a, b, c, d, e]),
        }
    }

    fn renumbered(self, of: impl Fn(Id) -> Id) -> Step {
        match self {
            Step::Load(input, a) => Step::Load(input, of(a)),
            Step::Unary(op, a) => Step::Unary(op, of(a)),
            Step::Cast(a) => Step::Cast(of(a)),
            Step::Bits(a) => Step::Bits(of(a)),
            Step::Binary(op, a, b) => Step::Binary(op, of(a), of(b)),
            Step::Select(a, b, c) => Step::Select(of(a), of(b), of(c)),
            Step::Random(a, rest) => Step::Random(of(a), rest.map(of)),
            other => other,
        }
    }
}

/// What lanes are there for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// A lane an element: `count` of them.
    Elements { count: Id },
    /// A lane, or a block of lanes, a row; each stage combines one value an element, from `first` up to `columns`. Of lanes each may have its own
    /// bounds, blocks begin with 0.
    Rows {
        order: Order,
        rows: Id,
        first: Id,
        columns: Id,
        stages: Vec<Stage>,
    },
    /// Matrix products.
    Product(Product),
}

/// Matrix products: `m` by `inner` times `inner` by `n`, summed in `ty`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Product {
    pub(crate) extents: [Id; 3],
    pub(crate) operands: [Id; 2],
    pub(crate) ty: DType,
    /// A lane has so many rows and columns of the result.
    pub(crate) per_lane: u32,
}

/// One combination along rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stage {
    pub(crate) how: Reduction,
    pub(crate) value: Id,
    pub(crate) ty: DType,
}

/// What a kernel computes, but for sizes and numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Recipe {
    pub(crate) steps: Vec<(Step, DType)>,
    pub(crate) form: Form,
    pub(crate) inputs: Vec<DType>,
    /// The result's value and where it is stored. `by_row`: one a row, not one an element.
    pub(crate) value: Id,
    pub(crate) index: Id,
    pub(crate) by_row: bool,
    /// So many results, each of its own inputs, sizes and numbers, has a launch; of elements one by one more than one.
    pub(crate) times: u32,
}

/// What a launch adds to a recipe.
pub(crate) struct Given {
    pub(crate) sizes: Vec<u32>,
    pub(crate) numbers: Vec<(DType, u64)>,
    /// Numbers of the inputs in their graph.
    pub(crate) inputs: Vec<usize>,
}

/// Steps as they are collected: equal ones are one.
#[derive(Default)]
pub(crate) struct Steps {
    all: Vec<(Step, DType)>,
    known: HashMap<(Step, DType), Id>,
    sizes: Vec<u32>,
    numbers: Vec<(DType, u64)>,
}

impl Steps {
    pub(crate) fn push(&mut self, step: Step, ty: DType) -> Id {
        if let Some(id) = self.known.get(&(step, ty)) {
            return *id;
        }
        let id = self.all.len() as Id;
        self.all.push((step, ty));
        self.known.insert((step, ty), id);
        id
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn ty(&self, id: Id) -> DType {
        self.all.get(id as usize).map_or(DType::U32, |(_, ty)| *ty)
    }

    pub(crate) fn place(&mut self, place: Place) -> Id {
        self.push(Step::Place(place), DType::U32)
    }

    /// A size of the launch. 0 and 1 are part of the structure.
    pub(crate) fn size(&mut self, value: usize) -> Id {
        if value <= 1 {
            return self.push(Step::Fixed(value as u64), DType::U32);
        }
        let value = value as u32;
        let at = self
            .sizes
            .iter()
            .position(|size| *size == value)
            .unwrap_or_else(|| {
                self.sizes.push(value);
                self.sizes.len() - 1
            });
        self.push(Step::Size(at as u32), DType::U32)
    }

    /// A number of the launch, by the operation that it belongs to.
    pub(crate) fn number(&mut self, ty: DType, bits: u64) -> Id {
        self.numbers.push((ty, bits));
        self.push(Step::Number(self.numbers.len() as u32 - 1), ty)
    }

    pub(crate) fn unary(&mut self, op: UnaryOp, a: Id) -> Id {
        let ty = result_scalar(op.row().result, self.ty(a).stored()).into();
        self.push(Step::Unary(op, a), ty)
    }

    pub(crate) fn binary(&mut self, op: BinaryOp, a: Id, b: Id) -> Id {
        if let Some(simple) = self.simple(op, a, b) {
            return simple;
        }
        let ty = result_scalar(op.row().result, self.ty(a).stored()).into();
        self.push(Step::Binary(op, a, b), ty)
    }

    // Of indices: what zeros and ones leave.
    fn simple(&mut self, op: BinaryOp, a: Id, b: Id) -> Option<Id> {
        if self.ty(a) != DType::U32 {
            return None;
        }
        let fixed = |id: Id| match self.all.get(id as usize) {
            Some((Step::Fixed(bits), _)) => Some(*bits),
            _ => None,
        };
        match (op, fixed(a), fixed(b)) {
            (BinaryOp::Add, Some(0), _) => Some(b),
            (BinaryOp::Add | BinaryOp::Sub, _, Some(0)) => Some(a),
            (BinaryOp::Mul, Some(1), _) => Some(b),
            (BinaryOp::Mul | BinaryOp::Div, _, Some(1)) => Some(a),
            (BinaryOp::Mul, Some(0), _) => Some(a),
            (BinaryOp::Mul, _, Some(0)) => Some(b),
            (BinaryOp::Rem, _, Some(1)) => Some(self.push(Step::Fixed(0), DType::U32)),
            _ => None,
        }
    }

    pub(crate) fn select(&mut self, condition: Id, yes: Id, no: Id) -> Id {
        let ty = self.ty(yes);
        self.push(Step::Select(condition, yes, no), ty)
    }

    pub(crate) fn cast(&mut self, a: Id, ty: DType) -> Id {
        let own = self.ty(a);
        match own == ty {
            true => a,
            false if let Some(float) = own.byte_float() => {
                let wide = self.widened(float, a);
                self.cast(wide, ty)
            }
            false if let Some(float) = ty.byte_float() => {
                let wide = self.cast_to_odd(a);
                self.narrowed(float, wide, ty)
            }
            // As in Rust, by way of an integer.
            false if own == DType::Bool && ty.is_float() => {
                let whole = self.push(Step::Cast(a), DType::U32);
                self.push(Step::Cast(whole), ty)
            }
            false => self.push(Step::Cast(a), ty),
        }
    }

    /// The recipe of the steps that its results need, and what a launch adds.
    pub(crate) fn finish(self, mut recipe: Recipe, inputs: Vec<usize>) -> (Recipe, Given) {
        let mut needed = vec![false; self.all.len()];
        let mut open: Vec<Id> = recipe.roots();
        while let Some(id) = open.pop() {
            let Some(seen) = needed.get_mut(id as usize) else {
                continue;
            };
            if !std::mem::replace(seen, true) {
                open.extend(self.all[id as usize].0.operands());
            }
        }
        let mut numbers: Vec<Id> = vec![0; self.all.len()];
        let (mut sizes, mut values): (Vec<u32>, Vec<(DType, u64)>) = Default::default();
        for (id, (step, ty)) in self.all.into_iter().enumerate() {
            if !needed[id] {
                continue;
            }
            numbers[id] = recipe.steps.len() as Id;
            let step = match step {
                Step::Size(at) => {
                    sizes.push(self.sizes[at as usize]);
                    Step::Size(sizes.len() as u32 - 1)
                }
                Step::Number(at) => {
                    values.push(self.numbers[at as usize]);
                    Step::Number(values.len() as u32 - 1)
                }
                other => other.renumbered(|id| numbers[id as usize]),
            };
            recipe.steps.push((step, ty));
        }
        recipe.renumber(|id| numbers[id as usize]);
        let given = Given {
            sizes,
            numbers: values,
            inputs,
        };
        (recipe, given)
    }
}

impl Recipe {
    /// Whether lanes compute elements one by one.
    pub(crate) fn is_of_elements(&self) -> bool {
        matches!(self.form, Form::Elements { .. })
    }

    /// The steps that it is there for.
    fn roots(&self) -> Vec<Id> {
        let mut roots = vec![self.value, self.index];
        match &self.form {
            Form::Elements { count } => roots.push(*count),
            Form::Rows {
                rows,
                first,
                columns,
                stages,
                ..
            } => {
                roots.extend([*rows, *first, *columns]);
                roots.extend(stages.iter().map(|stage| stage.value));
            }
            Form::Product(product) => {
                roots.extend(product.extents);
                roots.extend(product.operands);
            }
        }
        roots
    }

    fn renumber(&mut self, of: impl Fn(Id) -> Id) {
        self.value = of(self.value);
        self.index = of(self.index);
        match &mut self.form {
            Form::Elements { count } => *count = of(*count),
            Form::Rows {
                rows,
                first,
                columns,
                stages,
                ..
            } => {
                (*rows, *first, *columns) = (of(*rows), of(*first), of(*columns));
                stages.iter_mut().for_each(|stage| stage.value = of(stage.value));
            }
            Form::Product(product) => {
                let ids = product.extents.iter_mut().chain(&mut product.operands);
                ids.for_each(|id| *id = of(*id));
            }
        }
    }
}
