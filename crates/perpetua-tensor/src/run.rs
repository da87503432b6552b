//! Runs what is recorded: kernels are found by their recipes or compiled, results get memory, launches go to the default stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use perpetua_device::{Device, DynBuffer, Graph as Replay, Kernel, KernelArg, Stream};
use perpetua_ir::ir::Type;
use perpetua_ir::verify::{Verified, verify};

use crate::anomaly::Hunt;
use crate::emit::{Group, Recipe, kernel};
use crate::error::{Error, Result};
use crate::fuse::{Plan, Ways};
use crate::graph::Graph;
use crate::memory::Lives;
use crate::node::{Argument, Op, Tensor};
use crate::step::{Step, wrong};
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
    /// Times that the kernels of a compiled function were launched at once.
    pub replayed: u64,
    /// The most bytes that results of one computation took at a time.
    pub peak: u64,
}

impl Statistics {
    /// Of a device.
    pub fn of(device: &Device) -> Statistics {
        device.attachment::<Kernels>().kept().statistics
    }

    fn count(&mut self, step: &Step) {
        self.launched += u64::from(!matches!(step, Step::Same(_) | Step::Empty));
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
    let mut values: Vec<Option<DynBuffer>> = graph.0.iter().map(|entry| entry.tensor.0.value()).collect();
    let mut hunt = Hunt::of(&graph, &values)?;
    let ways = ways(&device);
    let fuses = ways.fuses && hunt.is_none();
    let plan = Plan::of(&graph, Ways { fuses, ..ways });
    let kernels = device.attachment::<Kernels>();
    let steps = Ready::all(&device, &kernels, &graph, &plan)?;
    let lives = Lives::of(&graph, steps.iter().map(|ready| (ready.output, &ready.step)));
    let stream = device.default_stream();
    for (ready, ends) in steps.iter().zip(&lives.ends) {
        let tensor = &graph.0[ready.output].tensor;
        let result = ready.run(&stream, &values, tensor, None)?;
        kernels.kept().statistics.count(&ready.step);
        if let Some(hunt) = &mut hunt {
            hunt.look(&graph, ready.output, &result)?;
        }
        values[ready.output] = Some(result.clone());
        if lives.stays[ready.output] {
            tensor.0.settle(result);
        }
        for number in ends {
            values[*number] = None;
        }
    }
    let statistics = &mut kernels.kept().statistics;
    statistics.peak = statistics.peak.max(lives.peak());
    Ok(())
}

/// Indices have 32 bits; some are left for blocks at the end.
const MOST_ELEMENTS: usize = u32::MAX as usize - 65_536;

/// A step, whose kernel is compiled.
struct Ready {
    output: usize,
    step: Step,
    kernel: Option<Kernel>,
}

impl Ready {
    fn all(device: &Device, kernels: &Kernels, graph: &Graph, plan: &Plan) -> Result<Vec<Ready>> {
        let ready = |group: &Group| {
            let (step, output) = (Step::of(graph, plan, group)?, group.output);
            let kernel = match &step {
                Step::Launch(built) => {
                    let tensor = &graph.0[output].tensor;
                    Some(compiled(device, kernels, &built.recipe, tensor)?)
                }
                _ => None,
            };
            Ok(Ready { output, step, kernel })
        };
        plan.groups.iter().map(ready).collect()
    }

    /// Submits what computes it. `spare`: memory for it that nothing needs any more.
    fn run(
        &self,
        stream: &Stream,
        values: &[Option<DynBuffer>],
        tensor: &Tensor,
        spare: Option<DynBuffer>,
    ) -> Result<DynBuffer> {
        let value = |number: usize| {
            let value = values.get(number).and_then(Option::as_ref);
            value.ok_or_else(|| wrong(tensor, "an input has no value"))
        };
        let failed = |cause| tensor.device_error(cause);
        if let Step::Same(source) = self.step {
            return value(source).cloned();
        }
        let result = match spare {
            Some(spare) => spare,
            None => {
                let ty = Type::Scalar(tensor.dtype());
                DynBuffer::alloc(stream.device(), &ty, tensor.len() as u64).map_err(failed)?
            }
        };
        match (&self.step, &self.kernel) {
            (Step::Function(function, sources), _) => {
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
                function.launch(stream, &sources, to).map_err(failed)?;
            }
            (Step::Library(library), _) => library.launch(stream, value, &result)?.map_err(failed)?,
            (Step::Launch(built), Some(kernel)) => {
                let mut args: Vec<KernelArg<'_>> = vec![result.arg()];
                for input in &built.given.inputs {
                    args.push(value(*input)?.arg());
                }
                args.extend(built.given.sizes.iter().map(|size| KernelArg::from(*size)));
                for (dtype, bits) in &built.given.numbers {
                    let bytes = bits.to_le_bytes();
                    let value = KernelArg::value(&Type::Scalar(*dtype), &bytes[..dtype.size() as usize]);
                    args.push(value.map_err(failed)?);
                }
                stream.launch(kernel, built.config, &args).map_err(failed)?;
            }
            _ => {}
        }
        Ok(result)
    }
}

fn compiled(device: &Device, kernels: &Kernels, recipe: &Recipe, tensor: &Tensor) -> Result<Kernel> {
    if let Some(kernel) = kernels.kept().find(recipe) {
        return Ok(kernel);
    }
    let verified = generated(recipe, tensor)?;
    let kernel = device
        .compile_ir(&verified)
        .map_err(|cause| tensor.device_error(cause))?;
    kernels.kept().add(recipe.clone(), kernel.clone());
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

/// What leads from examples to results, ready to run.
pub(crate) struct Captured {
    device: Device,
    pub(crate) graph: Graph,
    steps: Vec<Ready>,
    lives: Lives,
    /// Launches at once, from their second time on; nothing where that is not worth its copies.
    at_once: Mutex<AtOnce>,
}

/// Memory of its own, which inputs are copied to and results from.
struct Fixed {
    replay: Replay,
    inputs: Vec<Option<DynBuffer>>,
    results: Vec<DynBuffer>,
}

enum AtOnce {
    Never,
    Later,
    Next,
    Now(Fixed),
}

/// So many bytes more are copied for each launch that is not made by itself: about what takes as long.
const COPIED_ON_CUDA: u64 = 4 << 20;
const COPIED: u64 = 16 << 10;
/// Fewer launches are made one by one.
const FEW: usize = 4;

impl Captured {
    /// Of results that are made of examples, all of one device.
    pub(crate) fn of(results: &[&Tensor], examples: &[Tensor], device: &Device) -> Result<Captured> {
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
        let steps = Ready::all(device, &device.attachment::<Kernels>(), &graph, &plan)?;
        let lives = Lives::of(&graph, steps.iter().map(|ready| (ready.output, &ready.step)));
        let bytes = |tensor: &Tensor| tensor.len() as u64 * u64::from(tensor.dtype().size());
        let copied: u64 = examples
            .iter()
            .map(bytes)
            .chain(results.iter().map(|x| bytes(x)))
            .sum();
        let each = match device.backend() {
            perpetua_device::BackendKind::Cuda => COPIED_ON_CUDA,
            _ => COPIED,
        };
        let is_worth = steps.len() >= FEW && copied <= each.saturating_mul(steps.len() as u64);
        Ok(Captured {
            device: device.clone(),
            lives,
            at_once: Mutex::new(if is_worth { AtOnce::Later } else { AtOnce::Never }),
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
        let inputs: Vec<Option<DynBuffer>> = inputs.iter().map(|input| input.0.value()).collect();
        // What is under the lock is whole between any two statements.
        let mut at_once = self
            .at_once
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        match *at_once {
            AtOnce::Never => {}
            AtOnce::Later => *at_once = AtOnce::Next,
            AtOnce::Next => *at_once = AtOnce::Now(self.fixed(examples, &inputs, results)?),
            AtOnce::Now(_) => {}
        }
        if let AtOnce::Now(fixed) = &*at_once {
            let values = fixed.run(&self.device, &inputs);
            self.device.attachment::<Kernels>().kept().statistics.replayed += 1;
            return values.map_err(|cause| match results.first() {
                Some(first) => first.device_error(cause),
                None => cause.into(),
            });
        }
        drop(at_once);
        let values = self.launched(&self.device.default_stream(), examples, &inputs, false)?;
        self.of_results(&values, results)
    }

    fn of_results(&self, values: &[Option<DynBuffer>], results: &[&Tensor]) -> Result<Vec<DynBuffer>> {
        let value = |result: &&Tensor| {
            let value = self.graph.place(result).and_then(|place| values[place].clone());
            value.ok_or_else(|| wrong(result, "it was not captured"))
        };
        results.iter().map(value).collect()
    }

    // Everything, one by one. `reuses`: memory that nothing needs any more is taken again by itself, since what is captured stays out of the device's pool.
    fn launched(
        &self,
        stream: &Stream,
        examples: &[Tensor],
        inputs: &[Option<DynBuffer>],
        reuses: bool,
    ) -> Result<Vec<Option<DynBuffer>>> {
        let mut values: Vec<Option<DynBuffer>> =
            self.graph.0.iter().map(|entry| entry.tensor.0.value()).collect();
        for (example, input) in examples.iter().zip(inputs) {
            if let Some(place) = self.graph.place(example) {
                values[place] = input.clone();
            }
        }
        let kernels = self.device.attachment::<Kernels>();
        let mut spare: Vec<DynBuffer> = Vec::new();
        for (at, ready) in self.steps.iter().enumerate() {
            let tensor = &self.graph.0[ready.output].tensor;
            let fits = |buffer: &DynBuffer| {
                buffer.len() == tensor.len() as u64 && *buffer.element() == Type::Scalar(tensor.dtype())
            };
            let is_new = !matches!(ready.step, Step::Same(_));
            let found = spare.iter().position(fits).filter(|_| is_new);
            let own = found.map(|place| spare.swap_remove(place));
            values[ready.output] = Some(ready.run(stream, &values, tensor, own)?);
            kernels.kept().statistics.count(&ready.step);
            for number in &self.lives.ends[at] {
                let gone = values[*number].take();
                spare.extend(gone.filter(|_| reuses && self.lives.owns(*number)));
            }
        }
        Ok(values)
    }

    // What it launches, captured.
    fn fixed(&self, examples: &[Tensor], inputs: &[Option<DynBuffer>], results: &[&Tensor]) -> Result<Fixed> {
        let failed = |cause| match results.first() {
            Some(first) => first.device_error(cause),
            None => cause.into(),
        };
        let own = |input: &Option<DynBuffer>| {
            let copy = |input: &DynBuffer| DynBuffer::alloc(&self.device, input.element(), input.len());
            input.as_ref().map(copy).transpose()
        };
        let inputs: Vec<_> = inputs
            .iter()
            .map(own)
            .collect::<perpetua_device::Result<_>>()
            .map_err(failed)?;
        let stream = self.device.create_stream().map_err(failed)?;
        let mut values = Ok(Vec::new());
        let replay = stream.capture(|stream| {
            values = self.launched(stream, examples, &inputs, true);
            Ok(())
        });
        let (values, replay) = (values?, replay.map_err(failed)?);
        Ok(Fixed {
            replay,
            results: self.of_results(&values, results)?,
            inputs,
        })
    }
}

impl Fixed {
    fn run(&self, device: &Device, inputs: &[Option<DynBuffer>]) -> perpetua_device::Result<Vec<DynBuffer>> {
        for (own, input) in self.inputs.iter().zip(inputs) {
            if let (Some(own), Some(input)) = (own, input) {
                own.copy_from(input)?;
            }
        }
        device.default_stream().launch_graph(&self.replay)?;
        let copy = |own: &DynBuffer| {
            let result = DynBuffer::alloc(device, own.element(), own.len())?;
            result.copy_from(own).map(|()| result)
        };
        self.results.iter().map(copy).collect()
    }
}
