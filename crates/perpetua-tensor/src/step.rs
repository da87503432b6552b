//! How a kernel's result comes to be: what is launched, and what it reads. Must not know devices.

use std::sync::Arc;

use crate::copy::Copied;
use crate::dtype::DType;
use crate::emit::{Built, Group, build};
use crate::error::{Error, Result};
use crate::fuse::Plan;
use crate::graph::Graph;
use crate::library::Library;
use crate::node::{Function, OnHost, Op, Tensor};
use crate::shape::Shape;
use crate::table::name_of;

/// A value that a function reads: its number, shape and type.
pub(crate) type Source = (usize, Shape, DType);

/// How an operation's result comes to be.
pub(crate) enum Step {
    /// The same elements in the same order: the same memory.
    Same(usize),
    /// It has none.
    Empty,
    /// It has a kernel of its own, which reads these.
    Function(Arc<dyn Function>, Vec<Source>),
    /// A kernel of the library computes it.
    Library(Box<Library>),
    /// The host copies it.
    Copy(Copied),
    /// A generated kernel computes it.
    Launch(Box<Built>),
}

impl Step {
    /// What computes a graph, in the order in which it runs.
    pub(crate) fn all(graph: &Graph, plan: &Plan) -> Result<Vec<(usize, Step)>> {
        let step = |group: &Group| Ok((group.output, Step::of(graph, plan, group)?));
        plan.groups.iter().map(step).collect()
    }

    fn of(graph: &Graph, plan: &Plan, group: &Group) -> Result<Step> {
        let is_stored = |number: usize| plan.stays[number].is_some() || graph.0[number].is_known;
        let entry = &graph.0[group.output];
        let tensor = &entry.tensor;
        match (&tensor.0.op, &entry.sources[..]) {
            (
                Op::Same | Op::Variable | Op::Joined { .. } | Op::Reshape | Op::Hook(_) | Op::Checkpoint(_),
                &[source],
            ) if is_stored(source) => return Ok(Step::Same(source)),
            _ if tensor.is_empty() => return Ok(Step::Empty),
            (Op::Function(function), sources) => {
                let source = |source: &usize| {
                    let node = &graph.0[*source].tensor.0;
                    (*source, node.shape.clone(), node.dtype)
                };
                return Ok(Step::Function(
                    Arc::clone(function),
                    sources.iter().map(source).collect(),
                ));
            }
            _ => {}
        }
        if let Some(library) = plan.library.get(&group.output) {
            return Ok(Step::Library(Box::new(library.clone())));
        }
        if plan.copies
            && let Some(copied) = Copied::of(graph, group.output)
        {
            return Ok(Step::Copy(copied));
        }
        let built = build(graph, group, &is_stored).map_err(|_| wrong(tensor, "it has no recipe"))?;
        Ok(Step::Launch(Box::new(built)))
    }

    /// What computes it on the host, of which values.
    pub(crate) fn on_host(&self) -> Option<(&dyn OnHost, &[Source])> {
        match self {
            Step::Function(function, sources) => function.on_host().map(|host| (host, &sources[..])),
            _ => None,
        }
    }

    /// The values that it needs.
    pub(crate) fn reads(&self) -> Vec<usize> {
        match self {
            Step::Same(source) => vec![*source],
            Step::Empty => Vec::new(),
            Step::Function(_, sources) => sources.iter().map(|(source, ..)| *source).collect(),
            Step::Library(library) => library.reads().collect(),
            Step::Copy(copied) => copied.reads(),
            Step::Launch(built) => built.given.inputs.clone(),
        }
    }
}

/// A mistake of this library about a tensor.
pub(crate) fn wrong(tensor: &Tensor, message: &str) -> Error {
    Error::Generated {
        operation: name_of(&tensor.0).into(),
        message: message.into(),
        at: tensor.0.at(),
    }
}
