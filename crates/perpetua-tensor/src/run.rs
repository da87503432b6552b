//! Runs what is recorded: kernels are found by their recipes or compiled, results get memory, launches go to the default stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use perpetua_device::{Device, DynBuffer, Kernel, KernelArg, LaunchConfig};
use perpetua_ir::ir::Type;
use perpetua_ir::verify::{Verified, verify};

use crate::dtype::DType;
use crate::emit::{Built, Given, Group, Recipe, build, kernel};
use crate::error::{Error, Result};
use crate::fuse::{Plan, Ways};
use crate::graph::Graph;
use crate::library::Library;
use crate::node::{Argument, Function, Op, Tensor};
use crate::shape::Shape;
use crate::table::name_of;

/// What a device has compiled for tensors, and how much.
#[derive(Default)]
struct Kernels(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// Each with the number of the launch that used it last.
    kernels: HashMap<Arc<Recipe>, (Kernel, u64)>,
    statistics: Statistics,
}

/// So many kernels are kept; with one more the half that was not used for longest goes.
const MOST_KERNELS: usize = 1024;

impl Kept {
    fn find(&mut self, recipe: &Recipe) -> Option<Kernel> {
        let now = self.statistics.launched;
        let (kernel, used) = self.kernels.get_mut(recipe)?;
        *used = now;
        Some(kernel.clone())
    }

    fn add(&mut self, recipe: Recipe, kernel: Kernel) {
        if self.kernels.len() >= MOST_KERNELS {
            let mut times: Vec<u64> = self.kernels.values().map(|(_, used)| *used).collect();
            let (_, &mut middle, _) = times.select_nth_unstable(MOST_KERNELS / 2);
            self.kernels.retain(|_, (_, used)| *used > middle);
        }
        self.statistics.compiled += 1;
        self.kernels
            .insert(Arc::new(recipe), (kernel, self.statistics.launched));
    }
}

/// What tensors have had a device do so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Kernels compiled.
    pub compiled: u64,
    /// Kernels launched.
    pub launched: u64,
}

impl Statistics {
    /// Of a device.
    pub fn of(device: &Device) -> Statistics {
        device.attachment::<Kernels>().kept().statistics
    }
}

impl Kernels {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        // What is under the lock is whole between any two statements.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Computes tensors of one device, and what they need.
pub(crate) fn realize(roots: &[&Tensor]) -> Result<()> {
    realize_with(roots, Ways::of)
}

/// The same, divided otherwise.
pub(crate) fn realize_with(roots: &[&Tensor], ways: impl FnOnce(&Device) -> Ways) -> Result<()> {
    for root in roots {
        root.check()?;
        if root.0.is_example {
            let rule = "inside a function that `vmap` or `compile` takes there are no values yet: look at what they give";
            root.refuse(name_of(&root.0), &[], rule, root.0.at).check()?;
        }
    }
    let roots: Vec<&Tensor> = roots
        .iter()
        .copied()
        .filter(|root| root.0.value().is_none())
        .collect();
    let Some(first) = roots.first() else {
        return Ok(());
    };
    let device = first.device().clone();
    let graph = Graph::of(&roots);
    if let Some(large) = graph.0.iter().find(|entry| entry.tensor.len() > MOST_ELEMENTS) {
        let rule = format!("a tensor has at most {MOST_ELEMENTS} elements: work in parts");
        return large
            .tensor
            .refuse(name_of(&large.tensor.0), &[], rule, large.tensor.0.at)
            .check();
    }
    let plan = Plan::of(&graph, ways(&device));
    let kernels = device.attachment::<Kernels>();
    let mut values: Vec<Option<DynBuffer>> = graph.0.iter().map(|entry| entry.tensor.0.value()).collect();
    for group in &plan.groups {
        let tensor = &graph.0[group.output].tensor;
        let step = Ready::of(&device, &kernels, (&graph, &plan), group)?;
        let result = step.run(&device, &kernels, &values, tensor)?;
        values[group.output] = Some(result.clone());
        tensor.0.settle(result);
    }
    Ok(())
}

/// Indices have 32 bits; some are left for blocks at the end.
const MOST_ELEMENTS: usize = u32::MAX as usize - 65_536;

/// How an operation's result comes to be.
enum Ready {
    /// The same elements in the same order: the same memory.
    Same(usize),
    /// It has none.
    Empty,
    /// It has a kernel of its own, which reads these.
    Function(Arc<dyn Function>, Vec<(usize, Shape, DType)>),
    /// A kernel of the library computes it.
    Library(Library),
    /// A kernel computes it.
    Launch {
        kernel: Kernel,
        given: Given,
        config: LaunchConfig,
    },
}

impl Ready {
    fn of(
        device: &Device,
        kernels: &Kernels,
        (graph, plan): (&Graph, &Plan),
        group: &Group,
    ) -> Result<Ready> {
        let is_stored = |number: usize| plan.stays[number].is_some() || graph.0[number].is_known;
        let entry = &graph.0[group.output];
        let tensor = &entry.tensor;
        match (&tensor.0.op, &entry.sources[..]) {
            (
                Op::Same | Op::Variable | Op::Joined { .. } | Op::Reshape | Op::Hook(_) | Op::Checkpoint(_),
                &[source],
            ) if is_stored(source) => {
                return Ok(Ready::Same(source));
            }
            _ if tensor.is_empty() => return Ok(Ready::Empty),
            _ => {}
        }
        if let Op::Function(function) = &tensor.0.op {
            let sources = entry.sources.iter().map(|source| {
                let node = &graph.0[*source].tensor.0;
                (*source, node.shape.clone(), node.dtype)
            });
            return Ok(Ready::Function(Arc::clone(function), sources.collect()));
        }
        if let Some(library) = plan.library.get(&group.output) {
            return Ok(Ready::Library(library.clone()));
        }
        let Built {
            recipe,
            given,
            config,
        } = build(graph, group, &is_stored).map_err(|_| wrong(tensor, "it has no recipe"))?;
        let kernel = compiled(device, kernels, recipe, tensor)?;
        Ok(Ready::Launch {
            kernel,
            given,
            config,
        })
    }

    fn run(
        &self,
        device: &Device,
        kernels: &Kernels,
        values: &[Option<DynBuffer>],
        tensor: &Tensor,
    ) -> Result<DynBuffer> {
        let value = |number: usize| {
            let value = values.get(number).and_then(Option::as_ref);
            value.ok_or_else(|| wrong(tensor, "an input has no value"))
        };
        let failed = |cause| tensor.device_error(cause);
        if let Ready::Same(source) = self {
            return value(*source).cloned();
        }
        let ty = Type::Scalar(tensor.dtype());
        let result = DynBuffer::alloc(device, &ty, tensor.len() as u64).map_err(failed)?;
        if let Ready::Function(function, sources) = self {
            let sources = sources.iter().map(|(source, shape, dtype)| {
                Ok(Argument {
                    shape,
                    dtype: *dtype,
                    value: value(*source)?.arg(),
                })
            });
            let sources = sources.collect::<Result<Vec<_>>>()?;
            let to = Argument {
                shape: tensor.shape(),
                dtype: tensor.dtype(),
                value: result.arg(),
            };
            let launched = function.launch(&device.default_stream(), &sources, to);
            launched.map_err(failed)?;
            kernels.kept().statistics.launched += 1;
            return Ok(result);
        }
        if let Ready::Library(library) = self {
            library
                .launch(&device.default_stream(), value, &result)?
                .map_err(failed)?;
            kernels.kept().statistics.launched += 1;
            return Ok(result);
        }
        let Ready::Launch {
            kernel,
            given,
            config,
        } = self
        else {
            return Ok(result);
        };
        let mut args: Vec<KernelArg<'_>> = vec![result.arg()];
        for input in &given.inputs {
            args.push(value(*input)?.arg());
        }
        args.extend(given.sizes.iter().map(|size| KernelArg::from(*size)));
        for (dtype, bits) in &given.numbers {
            let bytes = bits.to_le_bytes();
            let value = KernelArg::value(&Type::Scalar(*dtype), &bytes[..dtype.size() as usize]);
            args.push(value.map_err(failed)?);
        }
        device.launch(kernel, *config, &args).map_err(failed)?;
        kernels.kept().statistics.launched += 1;
        drop(args);
        Ok(result)
    }
}

fn wrong(tensor: &Tensor, message: &str) -> Error {
    Error::Generated {
        operation: name_of(&tensor.0).into(),
        message: message.into(),
        at: tensor.0.at(),
    }
}

/// What leads from examples to results, ready to run.
pub(crate) struct Captured {
    device: Device,
    graph: Graph,
    steps: Vec<(usize, Ready)>,
}

impl Captured {
    /// Of results that are made of examples, all of one device.
    pub(crate) fn of(results: &[&Tensor], device: &Device) -> Result<Captured> {
        let graph = Graph::of(results);
        for entry in &graph.0 {
            let tensor = &entry.tensor;
            let refuse = |rule: &str| tensor.refuse("compile", &[], rule, tensor.0.at).check();
            if tensor.len() > MOST_ELEMENTS {
                refuse("a tensor has at most 2^32 - 65,536 elements: work in parts")?;
            }
            if matches!(tensor.0.op, Op::Random { .. }) && !entry.is_known {
                refuse("random numbers would be the same in each call: make them outside, and hand them in")?;
            }
        }
        let plan = Plan::of(&graph, Ways::of(device));
        let kernels = device.attachment::<Kernels>();
        let step = |group: &Group| {
            let ready = Ready::of(device, &kernels, (&graph, &plan), group)?;
            Ok((group.output, ready))
        };
        let steps = plan.groups.iter().map(step).collect::<Result<_>>()?;
        Ok(Captured {
            device: device.clone(),
            steps,
            graph,
        })
    }

    /// The values of results, where examples have those of inputs.
    pub(crate) fn run(
        &self,
        examples: &[Tensor],
        inputs: &[&Tensor],
        results: &[&Tensor],
    ) -> Result<Vec<DynBuffer>> {
        realize(inputs)?;
        let mut values: Vec<Option<DynBuffer>> =
            self.graph.0.iter().map(|entry| entry.tensor.0.value()).collect();
        for (example, input) in examples.iter().zip(inputs) {
            if let Some(place) = self.graph.place(example) {
                values[place] = input.0.value();
            }
        }
        let kernels = self.device.attachment::<Kernels>();
        for (output, ready) in &self.steps {
            let tensor = &self.graph.0[*output].tensor;
            values[*output] = Some(ready.run(&self.device, &kernels, &values, tensor)?);
        }
        let value = |result: &&Tensor| {
            let value = self.graph.place(result).and_then(|place| values[place].clone());
            value.ok_or_else(|| wrong(result, "it was not captured"))
        };
        results.iter().map(value).collect()
    }
}

fn compiled(device: &Device, kernels: &Kernels, recipe: Recipe, tensor: &Tensor) -> Result<Kernel> {
    if let Some(kernel) = kernels.kept().find(&recipe) {
        return Ok(kernel);
    }
    let verified = generated(&recipe, tensor)?;
    let kernel = device
        .compile_ir(&verified)
        .map_err(|cause| tensor.device_error(cause))?;
    kernels.kept().add(recipe, kernel.clone());
    Ok(kernel)
}

/// The kernel of a recipe, which is to compute a tensor.
pub(crate) fn generated(recipe: &Recipe, tensor: &Tensor) -> Result<Verified> {
    let wrong = |message: String| Error::Generated {
        operation: name_of(&tensor.0).into(),
        message,
        at: tensor.0.at(),
    };
    let ir = kernel(recipe).map_err(|error| wrong(error.to_string()))?;
    verify(ir).map_err(|errors| wrong(errors.to_string()))
}
