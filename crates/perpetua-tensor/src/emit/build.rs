//! From a group of a graph to the recipe of its kernel: what each lane computes, with the indices that views ask for.

use std::collections::HashMap;

use perpetua_device::{Dim3, LaunchConfig};
use perpetua_ir::ops::BinaryOp;

use super::index::{Along, Index, Indices};
use super::recipe::{Form, Given, Id, Place, Product, Recipe, Stage, Step, Steps};
use crate::dtype::{DType, accumulator};
use crate::graph::{Entry, Graph};
use crate::node::Op;
use crate::order::{LANES, Order};
use crate::shape::{Shape, count, reduced};

/// What one kernel computes: an operation whose result is stored, and combinations and a product that stay inside.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) output: usize,
    /// Combinations along the same rows, and matrix products, in the graph's order.
    pub(crate) inside: Vec<usize>,
}

/// A kernel and its launch.
pub(crate) struct Built {
    pub(crate) recipe: Recipe,
    pub(crate) given: Given,
    pub(crate) config: LaunchConfig,
}

/// A combination is asked for elsewhere than in its own row: it cannot stay inside.
#[derive(Debug)]
pub(crate) struct Elsewhere;

/// Lanes of a block that computes elements or rows one by one.
pub(super) const BLOCK: u32 = 256;
/// A block of a product has so many lanes in each direction.
pub(crate) const TILE: usize = 16;
/// From so many rows and columns on a lane of a product has several elements,
const LARGE: usize = 48;
/// if it takes no more steps than these to make the result of a sum.
const MOST_COPIED: usize = 64;

/// Builds the kernel of a group. `is_stored`: whether an operation's result is in memory when the kernel runs.
pub(crate) fn build(
    graph: &Graph,
    group: &Group,
    is_stored: &dyn Fn(usize) -> bool,
) -> Result<Built, Elsewhere> {
    let build = Build {
        graph,
        group,
        is_stored,
        steps: Steps::default(),
        indices: Indices::default(),
        inputs: Vec::new(),
        numbers: HashMap::new(),
        known: HashMap::new(),
        row: None,
        done: Vec::new(),
    };
    let inner = build.inner(group.output);
    match inner.map(|number| (&build.entry(number).tensor.0.op, number)) {
        Some((Op::Product, number)) => build.product(number),
        Some((Op::Reduce { .. }, number)) => build.rows(number),
        Some((Op::Segments { .. }, number)) => build.segments(number),
        _ => build.elements(),
    }
}

pub(super) struct Build<'a> {
    graph: &'a Graph,
    group: &'a Group,
    pub(super) is_stored: &'a dyn Fn(usize) -> bool,
    pub(super) steps: Steps,
    pub(super) indices: Indices,
    inputs: Vec<usize>,
    /// Parameters by the operation that they belong to.
    numbers: HashMap<usize, Id>,
    known: HashMap<(usize, Index), Id>,
    /// The number of the row, or of the product's element, that combinations inside are asked for.
    row: Option<Id>,
    /// Combinations whose stages are complete.
    pub(super) done: Vec<usize>,
}

impl<'a> Build<'a> {
    pub(super) fn entry(&self, number: usize) -> &'a Entry {
        &self.graph.0[number]
    }

    // The operation that gives the kernel its form: the output's own, or one that stays inside.
    fn inner(&self, output: usize) -> Option<usize> {
        let gives_form = |number: &usize| {
            let op = &self.entry(*number).tensor.0.op;
            matches!(op, Op::Reduce { .. } | Op::Segments { .. } | Op::Product)
        };
        self.group
            .inside
            .first()
            .copied()
            .or(Some(output).filter(gives_form))
    }

    pub(super) fn finish(
        self,
        form: Form,
        (value, index): (Id, Id),
        by_row: bool,
        config: LaunchConfig,
    ) -> Built {
        let recipe = Recipe {
            steps: Vec::new(),
            form,
            inputs: self
                .inputs
                .iter()
                .map(|input| self.graph.0[*input].tensor.0.dtype)
                .collect(),
            value,
            index,
            by_row,
            times: 1,
        };
        let (recipe, given) = self.steps.finish(recipe, self.inputs);
        Built {
            recipe,
            given,
            config,
        }
    }

    fn elements(mut self) -> Result<Built, Elsewhere> {
        let output = self.group.output;
        let total = self.entry(output).tensor.len();
        let lane = self.steps.place(Place::Lane);
        let count = self.steps.size(total);
        let index = Index {
            flat: Some(lane),
            along: None,
        };
        let value = self.compute(output, &index)?;
        let config = LaunchConfig::linear(total, BLOCK);
        Ok(self.finish(Form::Elements { count }, (value, lane), false, config))
    }

    fn rows(mut self, first: usize) -> Result<Built, Elsewhere> {
        let combined = self.entry(first);
        let Op::Reduce { axes, .. } = &combined.tensor.0.op else {
            return Err(Elsewhere);
        };
        let shape: Shape = self.source_shape(first, 0);
        let kept = reduced(&shape, axes, true);
        let order = Order::of(&shape, axes);
        let rows = count(&kept);
        let columns = axes.iter().map(|axis| shape[*axis]).product::<usize>();
        let row = match rows {
            1 => self.steps.size(0),
            _ => self.steps.place(Place::Row),
        };
        self.row = Some(row);
        let lane = self.steps.place(Place::Lane);
        // The element of the row, as indices along the axes and, if those lie together, as a number.
        let mut along = self.indices.divide(&mut self.steps, row, &kept);
        let over: Shape = shape
            .iter()
            .enumerate()
            .map(|(axis, n)| if axes.contains(&axis) { *n } else { 1 })
            .collect();
        let in_row = self.indices.divide(&mut self.steps, lane, &over);
        axes.iter().for_each(|axis| along[*axis] = in_row[*axis]);
        let behind = shape.iter().enumerate().rev().filter(|(_, n)| **n != 1);
        let is_last = behind
            .map(|(axis, _)| axes.contains(&axis))
            .is_sorted_by(|a, b| a >= b);
        let width = self.steps.size(columns);
        let flat = is_last.then(|| {
            let begin = self.steps.binary(BinaryOp::Mul, row, width);
            self.steps.binary(BinaryOp::Add, begin, lane)
        });
        let element = Index {
            flat,
            along: Some(along),
        };
        let mut stages = Vec::new();
        let output = self.group.output;
        let is_reduced = matches!(self.entry(output).tensor.0.op, Op::Reduce { .. });
        let own = is_reduced.then_some(output);
        for number in self.group.inside.iter().copied().chain(own) {
            let Op::Reduce { how, .. } = self.entry(number).tensor.0.op else {
                return Err(Elsewhere);
            };
            let source = self.entry(number).sources[0];
            let dtype = self.entry(source).tensor.0.dtype;
            let value = self.value(source, &element)?;
            let ty = how.accumulator(dtype);
            let value = self.steps.cast(value, ty);
            stages.push(Stage { how, value, ty });
            self.done.push(number);
        }
        let by_row = self.entry(output).tensor.len() == rows && (is_reduced || rows != rows * columns);
        let (index, at) = match by_row {
            true => (
                Index {
                    flat: Some(row),
                    along: None,
                },
                row,
            ),
            false if self.entry(output).tensor.0.shape == shape => {
                let at = self.indices.flat(&mut self.steps, &element, &shape);
                (element, at)
            }
            false => return Err(Elsewhere),
        };
        let value = match is_reduced {
            true => self.combined(output)?,
            false => self.compute(output, &index)?,
        };
        let blocks = u32::try_from(rows).unwrap_or(u32::MAX);
        let config = match order {
            Order::Serial => LaunchConfig::linear(rows, BLOCK),
            Order::Lanes => LaunchConfig::new(blocks, LANES as u32),
        };
        let form = Form::Rows {
            order,
            rows: self.steps.size(rows),
            first: self.steps.size(0),
            columns: width,
            stages,
        };
        Ok(self.finish(form, (value, at), by_row, config))
    }

    fn product(mut self, number: usize) -> Result<Built, Elsewhere> {
        let tensor = &self.entry(number).tensor;
        let dtype = tensor.0.dtype;
        let (Some(&n), Some(&m)) = (tensor.shape().last(), tensor.shape().iter().rev().nth(1)) else {
            return Err(Elsewhere);
        };
        let front: Shape = tensor.shape()[..tensor.rank() - 2].into();
        let left = self.source_shape(number, 0);
        let inner = left.last().copied().unwrap_or(0);
        let batches = count(&front);
        let batch = match batches {
            1 => self.steps.size(0),
            _ => self.steps.place(Place::Batch),
        };
        let before: Along = self.indices.divide(&mut self.steps, batch, &front);
        let places = [Place::Row, Place::Column, Place::Inner].map(|place| self.steps.place(place));
        let [row, column, between] = places;
        let extents = [m, n, inner].map(|n| self.steps.size(n));
        let element = |build: &mut Self, a: Id, b: Id, (height, width): (Id, Id)| {
            let begin = build.steps.binary(BinaryOp::Mul, batch, height);
            let line = build.steps.binary(BinaryOp::Add, begin, a);
            let far = build.steps.binary(BinaryOp::Mul, line, width);
            Index {
                flat: Some(build.steps.binary(BinaryOp::Add, far, b)),
                along: Some(before.iter().copied().chain([a, b]).collect()),
            }
        };
        let [height, width, depth] = extents;
        let of_left = element(&mut self, row, between, (height, depth));
        let of_right = element(&mut self, between, column, (depth, width));
        let of_result = element(&mut self, row, column, (height, width));
        let ty = accumulator_of_product(dtype);
        let mut operands = [0; 2];
        for (place, index) in [of_left, of_right].iter().enumerate() {
            let source = self.entry(number).sources[place];
            let value = self.value(source, index)?;
            operands[place] = self.steps.cast(value, ty);
        }
        let at = of_result.flat.unwrap_or_default();
        self.row = Some(at);
        self.done.push(number);
        let output = self.group.output;
        let value = match output == number {
            true => self.combined(number)?,
            false => {
                let same = self.entry(output).tensor.shape() == self.entry(number).tensor.shape();
                let index = Index {
                    along: of_result.along.filter(|_| same),
                    flat: of_result.flat,
                };
                if self.entry(output).tensor.len() != self.entry(number).tensor.len() {
                    return Err(Elsewhere);
                }
                self.compute(output, &index)?
            }
        };
        // Every lane's elements have their own copy of what is made of the product.
        let is_large = m.min(n) >= LARGE && self.steps.len() <= MOST_COPIED;
        let per_lane = if is_large { 4 } else { 1 };
        let tiles = |n: usize| u32::try_from(n.div_ceil(TILE * per_lane)).unwrap_or(u32::MAX);
        let blocks = u32::try_from(batches).unwrap_or(u32::MAX);
        let config = LaunchConfig::new(
            Dim3::new(tiles(n), tiles(m), blocks),
            Dim3::new(TILE as u32, TILE as u32, 1),
        );
        let form = Form::Product(Product {
            extents,
            operands,
            ty,
            per_lane: per_lane as u32,
        });
        Ok(self.finish(form, (value, at), false, config))
    }

    pub(super) fn source_shape(&self, number: usize, source: usize) -> Shape {
        let entry = self.entry(number);
        let source = entry.sources.get(source).copied().unwrap_or(number);
        self.entry(source).tensor.0.shape.clone()
    }

    // The result of a combination inside, in its own type.
    pub(super) fn combined(&mut self, number: usize) -> Result<Id, Elsewhere> {
        let place = self
            .done
            .iter()
            .position(|done| *done == number)
            .ok_or(Elsewhere)?;
        let node = &self.entry(number).tensor.0;
        let source = self.entry(number).sources.first().copied().unwrap_or(number);
        let dtype = self.entry(source).tensor.0.dtype;
        let ty = match node.op {
            Op::Reduce { how, .. } | Op::Segments { how } => how.accumulator(dtype),
            _ => accumulator_of_product(node.dtype),
        };
        let result = self.steps.push(Step::Reduced(place as u32), ty);
        Ok(self.steps.cast(result, node.dtype))
    }

    // An operation's element: loaded, or computed here.
    pub(super) fn value(&mut self, number: usize, index: &Index) -> Result<Id, Elsewhere> {
        let is_inside = self.group.inside.contains(&number);
        if !is_inside && (self.is_stored)(number) {
            return Ok(self.load(number, index));
        }
        let key = (number, index.clone());
        if let Some(id) = self.known.get(&key) {
            return Ok(*id);
        }
        let id = self.compute(number, index)?;
        self.known.insert(key, id);
        Ok(id)
    }

    fn load(&mut self, number: usize, index: &Index) -> Id {
        let node = &self.entry(number).tensor.0;
        let flat = self.indices.flat(&mut self.steps, index, &node.shape);
        self.load_at(number, flat)
    }

    pub(super) fn load_at(&mut self, number: usize, flat: Id) -> Id {
        let node = &self.entry(number).tensor.0;
        let place = self
            .inputs
            .iter()
            .position(|input| *input == number)
            .unwrap_or_else(|| {
                self.inputs.push(number);
                self.inputs.len() - 1
            });
        self.steps.push(Step::Load(place as u32, flat), node.dtype)
    }

    fn compute(&mut self, number: usize, index: &Index) -> Result<Id, Elsewhere> {
        let entry = self.entry(number);
        let node = &entry.tensor.0;
        let sources = &entry.sources;
        Ok(match &node.op {
            Op::Scalar { bits, fixed: true } => self.steps.push(Step::Fixed(*bits), node.dtype),
            Op::Scalar { bits, fixed: false } => match self.numbers.get(&number) {
                Some(id) => *id,
                None => {
                    let id = self.steps.number(node.dtype, *bits);
                    self.numbers.insert(number, id);
                    id
                }
            },
            Op::Coordinate { axis } => {
                let along = self.indices.along(&mut self.steps, index, &node.shape);
                self.steps.cast(along[*axis], node.dtype)
            }
            Op::Random { seed, stream } => {
                let flat = self.indices.flat(&mut self.steps, index, &node.shape);
                let halves = [*seed, *seed >> 32, *stream, *stream >> 32];
                let halves = halves.map(|half| self.steps.number(DType::U32, u64::from(half as u32)));
                self.steps.push(Step::Random(flat, halves), DType::U32)
            }
            Op::Unary(op) => {
                let x = self.value(sources[0], index)?;
                self.steps.unary(*op, x)
            }
            Op::Binary(op) => {
                let x = self.value(sources[0], index)?;
                let y = self.value(sources[1], index)?;
                let ty = node.dtype;
                self.steps.push(Step::Binary(*op, x, y), ty)
            }
            Op::Select => {
                let condition = self.value(sources[0], index)?;
                let yes = self.value(sources[1], index)?;
                let no = self.value(sources[2], index)?;
                self.steps.select(condition, yes, no)
            }
            Op::Cast => {
                let x = self.value(sources[0], index)?;
                self.steps.cast(x, node.dtype)
            }
            Op::Same | Op::Variable | Op::Joined { .. } | Op::Hook(_) | Op::Checkpoint(_) => {
                self.value(sources[0], index)?
            }
            Op::Reshape
            | Op::Permute { .. }
            | Op::Expand
            | Op::Slice { .. }
            | Op::Flip { .. }
            | Op::Pad { .. } => {
                let source = &self.entry(sources[0]).tensor;
                let shapes = (&node.shape[..], source.shape());
                let (index, inside) = self.indices.through(&mut self.steps, &node.op, index, shapes);
                let value = self.value(sources[0], &index)?;
                match (inside, &node.op) {
                    (Some(inside), Op::Pad { fill, .. }) => {
                        let fill = self.steps.push(Step::Fixed(*fill), node.dtype);
                        self.steps.select(inside, value, fill)
                    }
                    _ => value,
                }
            }
            Op::Gather { axis } => self.gather(number, *axis, index)?,
            Op::Segments { .. } => return Err(Elsewhere),
            Op::Reduce { .. } | Op::Product => {
                let flat = self.indices.flat(&mut self.steps, index, &node.shape);
                if self.row != Some(flat) {
                    return Err(Elsewhere);
                }
                self.combined(number)?
            }
            Op::Leaf(_) | Op::Failed(_) | Op::Example | Op::Function(_) => return Err(Elsewhere),
        })
    }
}

fn accumulator_of_product(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => accumulator(dtype),
        other => other,
    }
}
