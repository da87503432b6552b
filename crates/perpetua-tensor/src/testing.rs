//! What kernels must compute, computed plainly: operation by operation, element by element, with the IR's own meaning of each operator, and
//! each combination in its documented order.

use perpetua_device::Device;
use perpetua_ir::back::{Capabilities, Target, render};
use perpetua_ir::math::philox::philox;
use perpetua_ir::ops::eval::{eval_binary, eval_ternary, eval_unary};
use perpetua_ir::ops::{BinaryOp, TernaryOp, UnaryOp};

use crate::dtype::DType;
use crate::error::Result;
use crate::fuse::{Plan, Ways};
use crate::graph::{Entry, Graph};
use crate::library::Use;
use crate::node::Tensor;
use crate::node::{HostValues, OnHost, Op};
use crate::order::{LANES, Order, Reduction};
use crate::run::{generated, realize_with, recipe};
use crate::shape::{Shape, count};
use crate::step::{Step, wrong};
use crate::together::turns;

/// A tensor's elements by plain evaluation of what is recorded: their bits, zero-extended. Computes nothing on the device, reads known values.
///
/// # Errors
/// If an operation on the way was refused, divides an integer by zero, or a known value cannot be read.
pub fn evaluate(tensor: &Tensor) -> Result<Vec<u64>> {
    tensor.check()?;
    let graph = Graph::of(&[tensor]);
    let mut values: Vec<Vec<u64>> = Vec::new();
    for entry in &graph.0 {
        let value = match entry.tensor.0.value() {
            Some(_) => bits(&entry.tensor)?,
            None => {
                let plain = Plain {
                    graph: &graph,
                    entry,
                    values: &values,
                };
                let node = &entry.tensor.0;
                plain
                    .evaluate()
                    .ok_or_else(|| {
                        entry.tensor.device_error(perpetua_device::Error::InvalidState {
                            operation: "plain evaluation",
                            cause: "an integer was divided by zero, or an operand is missing",
                            remedy: "see the operation",
                        })
                    })
                    .inspect(|value| debug_assert_eq!(value.len(), count(&node.shape)))?
            }
        };
        values.push(value);
    }
    Ok(values.pop().unwrap_or_default())
}

/// A tensor's elements, computed by its device, as bits, zero-extended.
///
/// # Errors
/// As [`Tensor::to_vec`].
pub fn bits(tensor: &Tensor) -> Result<Vec<u64>> {
    let size = tensor.dtype().size() as usize;
    let bytes = tensor.to_bytes()?;
    let each = bytes.chunks_exact(size).map(|bytes| {
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(bytes);
        u64::from_le_bytes(wide)
    });
    Ok(each.collect())
}

/// An element's bits as another type, by the types' definitions.
pub fn cast(from: DType, to: DType, bits: u64) -> u64 {
    crate::dtype::cast(from, to, bits)
}

/// Computes tensors, every operation by a kernel of its own.
///
/// # Errors
/// As [`Tensor::realize`].
pub fn realize_unfused(tensors: &[&Tensor]) -> Result<()> {
    let unfused = |device: &Device| Ways {
        fuses: false,
        ..Ways::of(device)
    };
    realize_with(tensors, unfused)
}

/// Computes tensors, with the kernel library wherever it can, fused or not, and says how many operations it computed.
///
/// # Errors
/// As [`Tensor::realize`].
#[cfg(feature = "cuda")]
pub fn realize_by_library(tensors: &[&Tensor], fuses: bool) -> Result<usize> {
    let ways = |device: &Device| Ways {
        fuses,
        library: Use::Always,
        ..Ways::of(device)
    };
    let Some(first) = tensors.first() else {
        return Ok(0);
    };
    let count = Plan::of(&Graph::of(tensors), ways(first.device())).library.len();
    realize_with(tensors, ways)?;
    Ok(count)
}

/// Attention by the kernel library, which then need not be sooner; `None` for what it does not take.
#[cfg(feature = "cuda")]
#[track_caller]
pub fn attention_by_library(operands: [&Tensor; 3], causal: bool) -> Option<Tensor> {
    crate::library::attention(operands, causal, Use::Always)
}

/// The kernels that a tensor takes, as WGSL for devices without extensions.
///
/// # Errors
/// If an operation on the way was refused, or needs what WGSL lacks.
pub fn wgsl(tensor: &Tensor) -> Result<Vec<String>> {
    let ways = Ways {
        fuses: true,
        most_buffers: 8,
        library: Use::Sooner,
        copies: false,
        together: 0,
    };
    texts(&[tensor], ways, |block| Target::Wgsl {
        capabilities: Capabilities::new(),
        block,
        dynamic_shared: 0,
        distinct: true,
        exact_fma: true,
    })
}

/// The kernels that tensors of one device take, as PTX for compute capability 9.0: as many as there are launches.
///
/// # Errors
/// If an operation on the way was refused.
pub fn ptx(tensors: &[&Tensor]) -> Result<Vec<String>> {
    let Some(first) = tensors.first() else {
        return Ok(Vec::new());
    };
    texts(tensors, Ways::of(first.device()), |_| Target::Ptx {
        sm: 90.into(),
    })
}

fn texts(tensors: &[&Tensor], ways: Ways, target: impl Fn([u32; 3]) -> Target) -> Result<Vec<String>> {
    tensors.iter().try_for_each(|tensor| tensor.check())?;
    let graph = Graph::of(tensors);
    let mut texts = Vec::new();
    for turn in turns(&graph, &Plan::of(&graph, ways))? {
        let (Some((first, recipe)), Some((_, Step::Launch(built)))) = (recipe(&turn), turn.first()) else {
            continue;
        };
        let tensor = &graph.0[first].tensor;
        let rendered = render(
            &generated(&recipe, tensor)?,
            &target(built.config.block.to_array()),
        );
        texts.push(rendered.map_err(|error| wrong(tensor, &error.to_string()))?.text);
    }
    Ok(texts)
}

fn combine(how: Reduction, ty: DType, a: u64, b: u64) -> Option<u64> {
    let (op, takes_first) = how.binary();
    match takes_first.filter(|_| ty.is_float()) {
        None => eval_binary(op, ty.stored(), a, b).ok(),
        Some(takes_first) => {
            let first = eval_binary(takes_first, ty.stored(), a, b).ok()?
                | eval_unary(UnaryOp::IsNan, ty.stored(), a);
            Some(eval_ternary(TernaryOp::Select, ty.stored(), first, a, b))
        }
    }
}

struct Plain<'a> {
    graph: &'a Graph,
    entry: &'a Entry,
    values: &'a [Vec<u64>],
}

// Indices along axes of a number in row-major order.
fn along(shape: &[usize], mut flat: usize) -> Shape {
    let mut indices: Shape = shape.iter().map(|_| 0).collect();
    for (index, extent) in indices.iter_mut().zip(shape).rev() {
        *index = flat % extent;
        flat /= extent;
    }
    indices
}

fn flat(shape: &[usize], indices: &[usize]) -> usize {
    shape
        .iter()
        .zip(indices)
        .fold(0, |flat, (extent, index)| flat * extent + index)
}

impl Plain<'_> {
    fn source(&self, place: usize) -> Option<(&[u64], &Tensor)> {
        let number = *self.entry.sources.get(place)?;
        Some((&self.values[number], &self.graph.0[number].tensor))
    }

    fn on_host(&self, function: &dyn OnHost) -> Option<Vec<u64>> {
        let size = |dtype: DType| dtype.size() as usize;
        let bytes = |place: &usize| -> Vec<u8> {
            let dtype = self.graph.0[*place].tensor.dtype();
            let each = self.values[*place].iter();
            each.flat_map(|bits| bits.to_le_bytes().into_iter().take(size(dtype)))
                .collect()
        };
        let bytes: Vec<Vec<u8>> = self.entry.sources.iter().map(bytes).collect();
        let operands = self
            .entry
            .sources
            .iter()
            .zip(&bytes)
            .map(|(place, bytes)| HostValues {
                shape: self.graph.0[*place].tensor.shape(),
                dtype: self.graph.0[*place].tensor.dtype(),
                bytes,
            });
        let found = function.compute(&operands.collect::<Vec<_>>()).ok()?;
        let each = found.chunks_exact(size(self.entry.tensor.dtype())).map(|bytes| {
            let mut wide = [0; 8];
            wide[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(wide)
        });
        Some(each.collect())
    }

    fn evaluate(&self) -> Option<Vec<u64>> {
        let node = &self.entry.tensor.0;
        let all = 0..count(&node.shape);
        match &node.op {
            Op::Leaf(_) | Op::Failed(_) | Op::Example => None,
            Op::Function(function) => self.on_host(function.on_host()?),
            Op::Scalar { bits, .. } => Some(vec![*bits; all.len()]),
            Op::Coordinate { axis } => Some(all.map(|i| along(&node.shape, i)[*axis] as u64).collect()),
            Op::Random { seed, stream } => {
                Some(all.map(|i| u64::from(philox(*seed, *stream, i as u32))).collect())
            }
            Op::Unary(op) => {
                let (x, of) = self.source(0)?;
                Some(
                    x.iter()
                        .map(|x| eval_unary(*op, of.dtype().stored(), *x))
                        .collect(),
                )
            }
            Op::Binary(op) => {
                let ((x, of), (y, _)) = (self.source(0)?, self.source(1)?);
                let pairs = x.iter().zip(y);
                pairs
                    .map(|(x, y)| eval_binary(*op, of.dtype().stored(), *x, *y).ok())
                    .collect()
            }
            Op::Select => {
                let [(c, _), (x, _), (y, _)] = [self.source(0)?, self.source(1)?, self.source(2)?];
                Some(all.map(|i| if c[i] != 0 { x[i] } else { y[i] }).collect())
            }
            Op::Cast => {
                let (x, of) = self.source(0)?;
                Some(x.iter().map(|x| cast(of.dtype(), node.dtype, *x)).collect())
            }
            Op::Same | Op::Variable | Op::Joined { .. } | Op::Reshape | Op::Hook(_) | Op::Checkpoint(_) => {
                Some(self.source(0)?.0.to_vec())
            }
            Op::Reduce { how, axes } => self.reduce(*how, axes),
            Op::Product => self.product(),
            Op::Gather { axis } => self.gather(*axis),
            Op::Segments { how } => self.segments(*how),
            _ => self.view(),
        }
    }

    fn view(&self) -> Option<Vec<u64>> {
        let node = &self.entry.tensor.0;
        let (x, source) = self.source(0)?;
        let from = source.shape();
        let place = |i: usize| -> Option<Shape> {
            let own = along(&node.shape, i);
            let mut at: Shape = from.iter().map(|_| 0).collect();
            for axis in 0..own.len() {
                match &node.op {
                    Op::Permute { axes } => at[axes[axis]] = own[axis],
                    Op::Expand => at[axis] = if from[axis] == 1 { 0 } else { own[axis] },
                    Op::Slice { starts, steps } => at[axis] = starts[axis] + own[axis] * steps[axis],
                    Op::Flip { axes } if axes.contains(&axis) => at[axis] = from[axis] - 1 - own[axis],
                    Op::Pad { starts, steps, .. } => {
                        let distance = own[axis].checked_sub(starts[axis])?;
                        let inside = distance % steps[axis] == 0 && distance / steps[axis] < from[axis];
                        at[axis] = inside.then(|| distance / steps[axis])?;
                    }
                    _ => at[axis] = own[axis],
                }
            }
            Some(at)
        };
        let fill = match node.op {
            Op::Pad { fill, .. } => fill,
            _ => 0,
        };
        Some(
            (0..count(&node.shape))
                .map(|i| place(i).map_or(fill, |at| x[flat(from, &at)]))
                .collect(),
        )
    }

    fn gather(&self, axis: usize) -> Option<Vec<u64>> {
        let shape = &self.entry.tensor.0.shape;
        let ((x, source), (index, by)) = (self.source(0)?, self.source(1)?);
        let repeated = |own: &[usize], extents: &[usize]| -> Shape {
            own.iter()
                .zip(extents)
                .map(|(i, n)| if *n == 1 { 0 } else { *i })
                .collect()
        };
        let element = |i: usize| -> Option<u64> {
            let own = along(shape, i);
            let place = index[flat(by.shape(), &repeated(&own, by.shape()))] as u32 as i32;
            let n = source.shape()[axis] as i32;
            let place = usize::try_from(if place < 0 { place + n } else { place }).ok()?;
            let mut at = repeated(&own, source.shape());
            at[axis] = Some(place).filter(|place| *place < n as usize)?;
            Some(x[flat(source.shape(), &at)])
        };
        (0..count(shape)).map(element).collect()
    }

    fn segments(&self, how: Reduction) -> Option<Vec<u64>> {
        let node = &self.entry.tensor.0;
        let ((x, source), (begin, _), (end, _)) = (self.source(0)?, self.source(1)?, self.source(2)?);
        let ty = how.accumulator(source.dtype());
        let element = |i: usize| -> Option<u64> {
            let mut at = along(&node.shape, i);
            let run = at[0];
            let mut sum = how.identity(ty);
            for place in begin[run]..end[run] {
                at[0] = place as usize;
                let x = cast(source.dtype(), ty, x[flat(source.shape(), &at)]);
                sum = combine(how, ty, sum, x)?;
            }
            Some(cast(ty, node.dtype, sum))
        };
        (0..count(&node.shape)).map(element).collect()
    }

    fn reduce(&self, how: Reduction, axes: &[usize]) -> Option<Vec<u64>> {
        let node = &self.entry.tensor.0;
        let (x, source) = self.source(0)?;
        let (from, dtype) = (source.shape(), source.dtype());
        let ty = how.accumulator(dtype);
        let mut rows: Vec<Vec<u64>> = vec![Vec::new(); count(&node.shape)];
        for (i, x) in x.iter().enumerate() {
            let mut at = along(from, i);
            axes.iter().for_each(|axis| at[*axis] = 0);
            rows[flat(&node.shape, &at)].push(cast(dtype, ty, *x));
        }
        let combine = |a, b| combine(how, ty, a, b);
        let identity = how.identity(ty);
        let order = Order::of(from, axes);
        let row = |row: &Vec<u64>| -> Option<u64> {
            let lanes = match order {
                Order::Serial => 1,
                Order::Lanes => LANES,
            };
            let mut partial = vec![identity; lanes];
            for (i, x) in row.iter().enumerate() {
                partial[i % lanes] = combine(partial[i % lanes], *x)?;
            }
            while partial.len() > 1 {
                let half = partial.len() / 2;
                for i in 0..half {
                    partial[i] = combine(partial[i], partial[i + half])?;
                }
                partial.truncate(half);
            }
            Some(cast(ty, node.dtype, partial[0]))
        };
        rows.iter().map(row).collect()
    }

    fn product(&self) -> Option<Vec<u64>> {
        let node = &self.entry.tensor.0;
        let ((x, left), (y, _)) = (self.source(0)?, self.source(1)?);
        let inner = *left.shape().last()?;
        let &[.., m, n] = &node.shape[..] else { return None };
        let ty = match node.dtype {
            DType::F16 | DType::BF16 => DType::F32,
            other => other,
        };
        let wide = |bits: u64| cast(node.dtype, ty, bits);
        let element = |i: usize| -> Option<u64> {
            let (batch, row, column) = (i / (m * n), i / n % m, i % n);
            let mut sum = 0;
            for k in 0..inner {
                let a = wide(x[(batch * m + row) * inner + k]);
                let b = wide(y[(batch * inner + k) * n + column]);
                let product = eval_binary(BinaryOp::Mul, ty.stored(), a, b).ok()?;
                sum = eval_binary(BinaryOp::Add, ty.stored(), sum, product).ok()?;
            }
            Some(cast(ty, node.dtype, sum))
        };
        (0..count(&node.shape)).map(element).collect()
    }
}
