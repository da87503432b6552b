//! Functions of tensors made into others: gradients in both directions, and the same for each of many examples.

use std::panic::Location;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::error::Result;
use crate::graph::Graph;
use crate::node::{Op, Recorded, Sources, Tensor};
use crate::shape::{Shape, count};

/// The gradients of a function's result, which is one number, by its operands.
///
/// ```
/// # use perpetua_device::{BackendKind, Device};
/// use perpetua_tensor::{Tensor, grad};
/// # let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2], &device);
/// let gradient = grad(|x| x[0].square().sum(..), &[&x])?.remove(0);
/// assert_eq!(gradient.to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
///
/// # Errors
/// As [`Tensor::grad`].
#[track_caller]
pub fn grad(f: impl FnOnce(&[Tensor]) -> Tensor, operands: &[&Tensor]) -> Result<Vec<Tensor>> {
    let applied = Applied::of(f, operands);
    applied.gradients(&applied.result)
}

/// The value of a function, and its transposed derivative times a vector: what the operands' gradients are if the result's is `cotangent`.
///
/// # Errors
/// As [`Tensor::grad`]; or if `cotangent` has not the result's shape.
#[track_caller]
pub fn vjp(
    f: impl FnOnce(&[Tensor]) -> Tensor,
    operands: &[&Tensor],
    cotangent: &Tensor,
) -> Result<(Tensor, Vec<Tensor>)> {
    let at = here!();
    let applied = Applied::of(f, operands);
    same_shape("vjp", &applied.result, cotangent, at)?;
    let gradients = applied.gradients(&(&applied.result * cotangent).sum(..))?;
    Ok((applied.left(&applied.result), gradients))
}

/// The value of a function, and its derivative times a vector: how it changes if the operands change by `tangents`.
///
/// The transposed derivative is linear in its vector, so the derivative of that is the derivative itself. What is computed is the value and
/// its change, in one pass forwards: nothing else is needed for them.
///
/// ```
/// # use perpetua_device::{BackendKind, Device};
/// use perpetua_tensor::{Tensor, jvp};
/// # let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2], &device);
/// let by = Tensor::from_slice(&[1.0f32, 10.0], [2], &device);
/// let (value, change) = jvp(|x| x[0].square(), &[&x], &[&by])?;
/// assert_eq!((value.to_vec::<f32>()?, change.to_vec::<f32>()?), (vec![1.0, 4.0], vec![2.0, 40.0]));
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
///
/// # Errors
/// As [`Tensor::grad`]; or if there are not as many tangents as operands, each in its operand's shape.
#[track_caller]
pub fn jvp(
    f: impl FnOnce(&[Tensor]) -> Tensor,
    operands: &[&Tensor],
    tangents: &[&Tensor],
) -> Result<(Tensor, Tensor)> {
    let at = here!();
    if let (true, Some(first)) = (operands.len() != tangents.len(), operands.first()) {
        let rule = format!(
            "there are {} tangents for {} operands: give each its own",
            tangents.len(),
            operands.len()
        );
        first.refuse("jvp", tangents, rule, at).check()?;
    }
    for (operand, tangent) in operands.iter().zip(tangents) {
        same_shape("jvp", operand, tangent, at)?;
    }
    let applied = Applied::of(f, operands);
    let result = &applied.result;
    result.check()?;
    let cotangent = result.fixed(1.0, at).tracked();
    let by: Vec<&Tensor> = applied.variables.iter().collect();
    let gradients = (result * &cotangent).sum(..).grad_tracked(&by)?;
    let parts = gradients.iter().zip(tangents);
    let parts = parts.map(|(gradient, tangent)| (gradient * *tangent).sum(..));
    let sum = parts.reduce(|sum, part| sum + part);
    let change = sum.map_or(Ok(None), |sum| sum.grad_or_none(&cotangent, at))?;
    // What is linear in the vector and does not depend on it is 0.
    let change = change.unwrap_or_else(|| result.fixed(0.0, at));
    Ok((applied.left(result), applied.left(&change)))
}

/// A function of one example for each of many: operands have the examples along their first axis, and so has the result. The function is
/// called once; what it records is recorded anew with an axis more, so it may take gradients, and gradients may be taken of it. All examples
/// get the same random numbers.
///
/// ```
/// # use perpetua_device::{BackendKind, Device};
/// use perpetua_tensor::{Tensor, grad, vmap};
/// # let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2], &device);
/// // Of each example a gradient of its own.
/// let f = |x: &[Tensor]| (&x[0] * &x[0] * &x[0]).sum(..);
/// let gradients = vmap(|x| grad(f, &[&x[0]]).map(|mut all| all.remove(0)), &[&x])?;
/// assert_eq!(gradients.to_vec::<f32>()?, [3.0, 12.0, 27.0, 48.0]);
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
///
/// # Errors
/// The function's own; if operands have not the same number of examples; if the function looks at a value.
#[track_caller]
pub fn vmap(f: impl FnOnce(&[Tensor]) -> Result<Tensor>, operands: &[&Tensor]) -> Result<Tensor> {
    let at = here!();
    let Some(first) = operands.first() else {
        return f(&[]);
    };
    let examples = first.shape().first().copied();
    for operand in operands {
        operand.check()?;
        if operand.rank() == 0 || operand.shape().first().copied() != examples {
            let rule = "operands have the examples along their first axis, each as many";
            first.refuse("vmap", &[operand], rule, at).check()?;
        }
    }
    let example = |operand: &&Tensor| {
        let ty = (operand.shape()[1..].into(), operand.dtype());
        Tensor::record(Op::Example, Sources::new(), ty, operand.device(), at)
    };
    let own: Vec<Tensor> = operands.iter().map(example).collect();
    let result = f(&own)?;
    result.check()?;
    let graph = Graph::whole(&result);
    let count = examples.unwrap_or(0);
    let mut all: Vec<Option<Tensor>> = Vec::with_capacity(graph.0.len());
    for entry in &graph.0 {
        let node = &entry.tensor.0;
        let given = own.iter().position(|own| std::ptr::eq(&*own.0, &**node));
        let depends = entry.sources.iter().any(|source| all[*source].is_some());
        let batched = match given {
            Some(place) => Some((*operands[place]).clone()),
            None if depends => {
                let sources = entry.sources.iter().map(|source| match &all[*source] {
                    Some(batched) => batched.clone(),
                    None => graph.0[*source].tensor.for_each(count, at),
                });
                Some(for_each(&entry.tensor, sources.collect(), count))
            }
            None => None,
        };
        if let Some(batched) = &batched {
            batched.check()?;
        }
        all.push(batched);
    }
    Ok(all.pop().flatten().unwrap_or_else(|| result.for_each(count, at)))
}

impl Tensor {
    /// The same for each example.
    fn for_each(&self, examples: usize, at: &'static Location<'static>) -> Tensor {
        self.expanded(&in_front(examples, self.shape()), at)
    }
}

fn in_front(n: usize, of: &[usize]) -> Shape {
    std::iter::once(n).chain(of.iter().copied()).collect()
}

fn behind(axes: &[usize]) -> SmallVec<[usize; 4]> {
    axes.iter().map(|axis| axis + 1).collect()
}

/// An operation with the examples as an axis in front.
fn for_each(one: &Tensor, sources: Sources, examples: usize) -> Tensor {
    let node = &one.0;
    let op = match &node.op {
        Op::Permute { axes } => {
            let mut all: SmallVec<[usize; 4]> = smallvec![0];
            all.extend(behind(axes));
            Op::Permute { axes: all }
        }
        Op::Slice { starts, steps } => Op::Slice {
            starts: in_front(0, starts),
            steps: in_front(1, steps),
        },
        Op::Flip { axes } => Op::Flip { axes: behind(axes) },
        Op::Pad { starts, steps, fill } => Op::Pad {
            starts: in_front(0, starts),
            steps: in_front(1, steps),
            fill: *fill,
        },
        Op::Gather { axis } => Op::Gather { axis: axis + 1 },
        Op::Reduce { how, axes } => Op::Reduce {
            how: *how,
            axes: behind(axes),
        },
        Op::Joined { how, axes } => Op::Joined {
            how: *how,
            axes: behind(axes),
        },
        Op::Segments { .. } => return runs_of_each(one, &sources, examples),
        Op::Function(function) if !function.is_for_each() => {
            let rule = "it does not say that it does the same for each example (`Function::is_for_each`): apply it outside of `vmap`";
            return one.refuse("vmap", &[], rule, node.at);
        }
        Op::Hook(hook) => Op::Hook(mapped(hook)),
        Op::Checkpoint(function) => Op::Checkpoint(mapped(function)),
        other => other.clone(),
    };
    let ty = (in_front(examples, &node.shape), node.dtype);
    Tensor::record(op, sources, ty, &node.device, node.at)
}

// A function that an operation holds, of all examples.
fn mapped(function: &Arc<dyn Recorded>) -> Arc<dyn Recorded> {
    let function = Arc::clone(function);
    Arc::new(move |operands: &[Tensor]| {
        let operands: Vec<&Tensor> = operands.iter().collect();
        vmap(|one| function.apply(one), &operands)
    })
}

// All examples' elements and runs in one row, each example's behind those before it.
fn runs_of_each(one: &Tensor, sources: &Sources, examples: usize) -> Tensor {
    let (node, at) = (&one.0, one.0.at);
    let (Op::Segments { how }, [x, begin, end, places]) = (&node.op, &sources[..]) else {
        return one.refuse(
            "vmap",
            &[],
            "a combination of runs lacks its bounds; this is a mistake in Perpetua, please report it",
            at,
        );
    };
    crate::place::inside(at, || {
        let (m, n) = (x.shape()[1], node.shape[0]);
        let joined = |of: &Tensor| {
            let mut shape: Shape = of.shape()[1..].into();
            shape[0] = shape[0].saturating_mul(examples);
            of.reshaped(&shape, at)
        };
        let moved = |of: &Tensor, by: usize| {
            let example = Tensor::coordinates([examples, 1], 0, of.device());
            joined(&(of + example * by as i64))
        };
        if count(&[examples, m.max(n)]) > i32::MAX as usize {
            return one.refuse(
                "vmap",
                &[],
                "its places have more than 32 bits: take fewer examples at a time",
                at,
            );
        }
        let [begin, end, places] = [moved(begin, m), moved(end, m), moved(places, n)];
        let all = joined(x).segments(*how, [&begin, &end, &places], at);
        all.reshaped(&in_front(examples, &node.shape), at)
    })
}

/// A function's result, and the variables that it was given.
struct Applied {
    result: Tensor,
    variables: Vec<Tensor>,
    /// Whether operands are tracked outside: so is what is made of them.
    is_inner: bool,
}

impl Applied {
    #[track_caller]
    fn of(f: impl FnOnce(&[Tensor]) -> Tensor, operands: &[&Tensor]) -> Applied {
        let at = here!();
        // Of a tracked operand a new one, so that other ways from it to the result do not count.
        let variable = |operand: &&Tensor| match operand.is_tracked() {
            true => operand.of_one(Op::Reshape, operand.shape().into(), at),
            false => operand.tracked(),
        };
        let variables: Vec<Tensor> = operands.iter().map(variable).collect();
        Applied {
            result: f(&variables),
            variables,
            is_inner: operands.iter().any(|operand| operand.is_tracked()),
        }
    }

    #[track_caller]
    fn gradients(&self, number: &Tensor) -> Result<Vec<Tensor>> {
        let by: Vec<&Tensor> = self.variables.iter().collect();
        match self.is_inner {
            true => number.grad_tracked(&by),
            false => number.grad(&by),
        }
    }

    fn left(&self, tensor: &Tensor) -> Tensor {
        if self.is_inner {
            tensor.clone()
        } else {
            tensor.detached(tensor.0.at)
        }
    }
}

fn same_shape(name: &'static str, a: &Tensor, b: &Tensor, at: &'static Location<'static>) -> Result<()> {
    a.check()?;
    b.check()?;
    match a.shape() == b.shape() && a.dtype() == b.dtype() {
        true => Ok(()),
        false => a
            .refuse(name, &[b], "both must have the same shape and type", at)
            .check(),
    }
}
