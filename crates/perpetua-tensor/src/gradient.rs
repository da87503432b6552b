//! Reverse-mode derivatives: each operation's row says what it adds to the gradients of its operands, which is recorded like any
//! other operation.

use std::panic::Location;
use std::sync::{Mutex, MutexGuard};

use perpetua_ir::ops::{BinaryOp, UnaryOp};
use smallvec::{SmallVec, smallvec};

use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::node::Tensor;
use crate::node::{Node, Op, Recorded, Sources, no_grad, tracking};
use crate::order::Reduction;
use crate::place::inside;
use crate::shape::Axes;
use crate::table::{name_of, name_of_binary};

/// What an operation adds to the gradients of its operands; `None` where that is zero.
type Parts = SmallVec<[Option<Tensor>; 3]>;

impl Tensor {
    /// The same elements as a variable: gradients of what is made of it may be asked for. Its type must be a float's.
    #[track_caller]
    pub fn tracked(&self) -> Tensor {
        let at = here!();
        if self.0.tracked || self.error().is_some() {
            return self.clone();
        }
        match self.0.dtype.is_float() {
            true => self.of_one(Op::Variable, self.0.shape.clone(), at),
            false => self.refuse("tracked", &[], "only floats have gradients: cast it", at),
        }
    }

    /// The same elements, through which no gradients may be asked for.
    #[track_caller]
    pub fn detach(&self) -> Tensor {
        self.detached(here!())
    }

    pub(crate) fn detached(&self, at: &'static Location<'static>) -> Tensor {
        match self.0.tracked {
            true => self.of_one(Op::Same, self.0.shape.clone(), at),
            false => self.clone(),
        }
    }

    /// Whether gradients of what is made of it may be asked for.
    pub fn is_tracked(&self) -> bool {
        self.0.tracked
    }

    /// The gradients of this one number by tensors that it is made of, each in its tensor's shape. They are not tracked themselves.
    ///
    /// # Errors
    /// If this is not one float, is not made of one of the tensors by operations that are tracked, or one of those has no gradient.
    #[track_caller]
    pub fn grad(&self, by: &[&Tensor]) -> Result<Vec<Tensor>> {
        let at = here!();
        let found = inside(at, || no_grad(|| self.grad_tracked(by)))?;
        // Those of what is tracked itself.
        Ok(inside(at, || found.iter().map(Tensor::detach).collect()))
    }

    /// The same, tracked: gradients of gradients may be asked for.
    ///
    /// # Errors
    /// As [`Tensor::grad`].
    #[track_caller]
    pub fn grad_tracked(&self, by: &[&Tensor]) -> Result<Vec<Tensor>> {
        let at = here!();
        let graph = self.tracked_graph(at)?;
        let gradients = self.gradients(&graph, at)?;
        by.iter()
            .map(|tensor| {
                tensor.check()?;
                let found = graph.place(tensor).and_then(|number| gradients[number].clone());
                found.ok_or_else(|| {
                    tensor.no_gradient(match tensor.0.tracked {
                        true => "the result is not made of it",
                        false => "it is not tracked: take `tracked()` of it before it is used",
                    })
                })
            })
            .collect()
    }

    /// The same by one tensor; `None` where the derivatives of all operations on the way to it are 0.
    pub(crate) fn grad_or_none(&self, by: &Tensor, at: &'static Location<'static>) -> Result<Option<Tensor>> {
        self.check()?;
        if !self.0.tracked {
            return Ok(None);
        }
        let graph = self.tracked_graph(at)?;
        let gradients = self.gradients(&graph, at)?;
        Ok(graph.place(by).and_then(|number| gradients[number].clone()))
    }

    /// Adds the gradient of this one number to [`Tensor::gradient`] of each variable that it is made of.
    ///
    /// # Errors
    /// As [`Tensor::grad`].
    #[track_caller]
    pub fn backward(&self) -> Result<()> {
        let at = here!();
        let graph = self.tracked_graph(at)?;
        let gradients = no_grad(|| self.gradients(&graph, at))?;
        for (entry, gradient) in graph.0.iter().zip(gradients) {
            if let (Op::Variable, Some(gradient)) = (&entry.tensor.0.op, gradient) {
                let gradient = inside(at, || gradient.detach());
                let mut held = entry.tensor.0.held();
                *held = Some(gradient.added_to(held.take(), at));
            }
        }
        Ok(())
    }

    /// What [`Tensor::backward`] has added up for this variable.
    pub fn gradient(&self) -> Option<Tensor> {
        self.0.held().clone()
    }

    /// Forgets it.
    pub fn clear_gradient(&self) {
        self.0.held().take();
    }

    fn no_gradient(&self, reason: &str) -> Error {
        Error::NoGradient {
            operation: name_of(&self.0).into(),
            reason: reason.into(),
            at: self.0.at(),
        }
    }

    fn tracked_graph(&self, at: &'static Location<'static>) -> Result<Graph> {
        self.check()?;
        if self.len() != 1 {
            let rule = "gradients are asked of one number: take its sum or mean";
            self.refuse("grad", &[], rule, at).check()?;
        }
        if !self.0.tracked {
            return Err(self.no_gradient("nothing that it is made of is tracked, or only by operations without gradients, such as comparisons"));
        }
        Ok(Graph::tracked(self, &[]))
    }

    // Types differ where a float of one byte is cast to several.
    fn added_to(self, before: Option<Tensor>, at: &'static Location<'static>) -> Tensor {
        let Some(before) = before else {
            return self;
        };
        let name = name_of_binary(BinaryOp::Add, before.0.dtype);
        let (before, own) = before.meet(name, &self.into(), at);
        before.binary(BinaryOp::Add, &own, at)
    }

    // Of every operation of the graph, by its number.
    fn gradients(&self, graph: &Graph, at: &'static Location<'static>) -> Result<Vec<Option<Tensor>>> {
        let mut gradients: Vec<Option<Tensor>> = vec![None; graph.0.len()];
        if let Some(last) = gradients.last_mut() {
            *last = Some(self.fixed(1.0, at).detach());
        }
        for (number, entry) in graph.0.iter().enumerate().rev() {
            let node = &entry.tensor.0;
            let Some(gradient) = gradients[number]
                .clone()
                .filter(|_| node.tracked && node.op != Op::Variable && !entry.sources.is_empty())
            else {
                continue;
            };
            let parts = inside(node.at, || parts(&entry.tensor, &node.sources(), &gradient))?;
            for (source, part) in entry.sources.iter().zip(parts) {
                let Some(part) = part.filter(|_| graph.0[*source].tensor.0.tracked) else {
                    continue;
                };
                part.check()?;
                let sum = &mut gradients[*source];
                *sum = Some(part.added_to(sum.take(), node.at));
            }
        }
        Ok(gradients)
    }
}

impl Node {
    fn held(&self) -> MutexGuard<'_, Option<Tensor>> {
        let held = self.gradient.get_or_init(Box::default);
        Mutex::lock(held).unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn parts(result: &Tensor, sources: &Sources, gradient: &Tensor) -> Result<Parts> {
    let at = result.0.at;
    let wrong =
        || result.no_gradient("its sources are gone; this is a mistake in Perpetua, please report it");
    let source = sources.first().ok_or_else(wrong)?;
    let shape = source.shape();
    Ok(match &result.0.op {
        Op::Unary(_) | Op::Binary(_) => by_row(result, sources, gradient)?,
        Op::Select => {
            let zero = || gradient.fixed(0.0, at);
            let part = |yes: &Tensor, no: &Tensor| Some(source.select(yes, no));
            smallvec![None, part(gradient, &zero()), part(&zero(), gradient)]
        }
        // Floats of one byte have gradients of the type that is made of them.
        Op::Cast if source.dtype().is_byte_float() => smallvec![Some(gradient.clone())],
        Op::Cast => smallvec![Some(gradient.cast(source.dtype()))],
        Op::Reshape => smallvec![Some(gradient.reshaped(shape, at))],
        Op::Permute { axes } => {
            let mut back = axes.clone();
            for (place, axis) in axes.iter().enumerate() {
                back[*axis] = place;
            }
            smallvec![Some(gradient.permuted(back, at))]
        }
        Op::Expand => {
            let repeated = shape.iter().zip(result.shape()).enumerate();
            let axes: Vec<isize> = repeated
                .filter(|(_, (own, all))| own != all)
                .map(|(axis, _)| axis as isize)
                .collect();
            smallvec![Some(gradient.sum_keep(&axes[..]))]
        }
        Op::Slice { starts, steps } => {
            smallvec![Some(gradient.padded(starts.clone(), steps.clone(), shape, 0, at))]
        }
        Op::Flip { axes } => smallvec![Some(gradient.flipped(axes.clone(), at))],
        Op::Pad { starts, steps, .. } => {
            let op = Op::Slice {
                starts: starts.clone(),
                steps: steps.clone(),
            };
            smallvec![Some(gradient.of_one(op, shape.into(), at))]
        }
        Op::Reduce { how, axes } | Op::Joined { how, axes } => {
            let axes: Vec<isize> = axes.iter().map(|axis| *axis as isize).collect();
            smallvec![Some(combined(*how, &axes, result, source, gradient))]
        }
        Op::Gather { axis } => {
            let index = sources.get(1).ok_or_else(wrong)?;
            smallvec![Some(gradient.added_up(*axis, index, shape, at)), None]
        }
        Op::Segments { how } => {
            let [_, begin, end, places] = &sources[..] else {
                return Err(wrong());
            };
            let of_run = |of: &Tensor| of.rows(places);
            let part = match how {
                Reduction::Sum => of_run(gradient).cast(source.dtype()),
                Reduction::Product => {
                    return Err(result.no_gradient("of the products of runs there is none"));
                }
                Reduction::Max | Reduction::Min => {
                    let is_extreme = source.equal(of_run(result));
                    let count =
                        is_extreme
                            .cast(source.dtype())
                            .segments(Reduction::Sum, [begin, end, places], at);
                    is_extreme.select(of_run(&(gradient / count)), 0.0)
                }
            };
            smallvec![Some(part), None, None, None]
        }
        Op::Product => {
            let right = sources.get(1).ok_or_else(wrong)?;
            smallvec![
                Some(gradient.product(&right.transpose(), at)),
                Some(source.transpose().product(gradient, at))
            ]
        }
        Op::Function(function) => match function.gradient(sources, result, gradient) {
            Some(parts) if fits(&parts, sources) => parts.into_iter().collect(),
            Some(_) => {
                let reason = "its function gives other gradients than one of each operand's shape and type: see `Function::gradient`";
                return Err(result.no_gradient(reason));
            }
            None => return Err(result.no_gradient("its function gives none: see `Function::gradient`")),
        },
        Op::Hook(hook) => {
            let part = Some(hook.apply(std::slice::from_ref(gradient))?);
            if !fits(std::slice::from_ref(&part), sources) {
                let rule = "its function gives what has not the gradient's shape and type";
                gradient.refuse("with_hook", &[], rule, at).check()?;
            }
            smallvec![part]
        }
        Op::Checkpoint(function) => again(&**function, sources, gradient, at)?,
        _ => return Err(result.no_gradient("its row of the table has none")),
    })
}

// Whether each part is a gradient of its operand. What was refused tells so itself.
fn fits(parts: &[Option<Tensor>], of: &[Tensor]) -> bool {
    let fits = |(part, of): (&Option<Tensor>, &Tensor)| match part {
        Some(part) => {
            part.error().is_some()
                || part.shape() == of.shape() && (part.dtype() == of.dtype() || of.dtype().is_byte_float())
        }
        None => true,
    };
    parts.len() == of.len() && parts.iter().zip(of).all(fits)
}

// The gradients of a function that is recorded again for them.
fn again(
    function: &dyn Recorded,
    operands: &[Tensor],
    gradient: &Tensor,
    at: &'static Location<'static>,
) -> Result<Parts> {
    // New ones, where the way back ends; it does not go through the gradient that it begins with.
    let (own, total) = tracking(true, || {
        let own = operands.iter().map(|operand| match operand.0.tracked {
            true => operand.of_one(Op::Reshape, operand.shape().into(), at),
            false => operand.clone(),
        });
        let own: Vec<Tensor> = own.collect();
        let total = function.apply(&own).map(|result| (result * gradient).sum(..))?;
        total.check().map(|()| (own, total))
    })?;
    if !total.0.tracked {
        return Ok(operands.iter().map(|_| None).collect());
    }
    let ends: Vec<&Tensor> = own.iter().chain([gradient]).collect();
    let graph = Graph::tracked(&total, &ends);
    let gradients = total.gradients(&graph, at)?;
    let part = |own: &Tensor| graph.place(own).and_then(|number| gradients[number].clone());
    Ok(own.iter().map(part).collect())
}

fn combined(how: Reduction, axes: &[isize], result: &Tensor, x: &Tensor, gradient: &Tensor) -> Tensor {
    let at = result.0.at;
    let all = |of: &Tensor| of.expanded(x.shape(), at);
    match how {
        Reduction::Sum => all(gradient),
        Reduction::Product => {
            // With one zero only that element has a gradient, with more none has.
            let is_zero = x.equal(0.0);
            let zeros = is_zero.cast(x.dtype()).sum_keep(axes);
            let others = is_zero.select(1.0, x).prod_keep(axes);
            let quotient = all(result) / x;
            let alone = is_zero.logical_and(all(&zeros).equal(1.0));
            let without = all(&zeros).equal(0.0).select(quotient, 0.0);
            alone.select(all(&others), without) * all(gradient)
        }
        Reduction::Max | Reduction::Min => {
            let is_extreme = x.equal(all(result));
            let count = is_extreme.cast(x.dtype()).sum_keep(Axes::from(axes));
            is_extreme.select(all(&(gradient / count)), 0.0)
        }
    }
}

// The row's expressions, times the gradient.
fn by_row(result: &Tensor, sources: &Sources, gradient: &Tensor) -> Result<Parts> {
    let at = result.0.at;
    let texts = match &result.0.op {
        Op::Unary(op) => op.row().gradient,
        Op::Binary(op) => op.row().gradient,
        _ => &[],
    };
    if texts.len() < sources.len() {
        return Err(result.no_gradient(
            "its row of the table has none: `detach` what comes before it if it shall not count",
        ));
    }
    let names = Names { result, sources };
    let each = sources.iter().zip(texts).map(|(source, text)| {
        if !source.0.tracked {
            return Ok(None);
        }
        Ok(match *text {
            "0" => Some(gradient.fixed(0.0, at)),
            "1" => Some(gradient.clone()),
            "-1" => Some(gradient.unary(UnaryOp::Neg, at)),
            text => {
                let wrong = || result.no_gradient(&format!("its row says `{text}`, which cannot be read"));
                let (factor, rest) = names.read(text).ok_or_else(wrong)?;
                match rest.is_empty() {
                    true => Some(gradient.binary(BinaryOp::Mul, &factor, at)),
                    false => return Err(wrong()),
                }
            }
        })
    });
    each.collect()
}

/// What a derivative's expression may name.
struct Names<'a> {
    result: &'a Tensor,
    sources: &'a Sources,
}

impl Names<'_> {
    // An expression and what follows it.
    fn read<'t>(&self, text: &'t str) -> Option<(Tensor, &'t str)> {
        let at = self.result.0.at;
        let text = text.trim_start();
        let end = text
            .find(|c: char| !(c.is_alphanumeric() || "_.-".contains(c)))
            .unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let Some(mut rest) = rest.strip_prefix('(') else {
            let value = match word {
                "x" => self.sources.first()?.clone(),
                "y" => self.sources.get(1)?.clone(),
                "r" => self.result.clone(),
                number => self.result.fixed(number.parse().ok()?, at),
            };
            return Some((value, rest));
        };
        let mut arguments: SmallVec<[Tensor; 3]> = SmallVec::new();
        loop {
            let (argument, behind) = self.read(rest)?;
            arguments.push(argument);
            let behind = behind.trim_start();
            match behind.strip_prefix(',') {
                Some(next) => rest = next,
                None => {
                    rest = behind.strip_prefix(')')?;
                    break;
                }
            }
        }
        let value = match &arguments[..] {
            [x] => x.unary(UnaryOp::from_name(word)?, at),
            [x, y] => x.binary(BinaryOp::from_name(word)?, y, at),
            [condition, x, y] if word == "select" => condition.select(x, y),
            _ => return None,
        };
        Some((value, rest))
    }
}
