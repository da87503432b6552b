//! Runs what is recorded: kernels are found by their recipes or compiled, results get memory, launches go to the default stream.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard};

use perpetua_device::{Device, DynBuffer, Kernel, KernelArg, Stream, host};
use perpetua_ir::ir::Type;
use perpetua_ir::verify::{Verified, verify};

use crate::anomaly::Hunt;
use crate::emit::{Recipe, kernel};
use crate::error::{Error, Result};
use crate::fuse::{Plan, Ways};
use crate::graph::Graph;
use crate::memory::Lives;
use crate::node::{Argument, HostValues, Tensor};
use crate::step::{Source, Step, wrong};
use crate::table::name_of;
use crate::together::{Turn, turns};

/// What a device has compiled for tensors, and how much.
#[derive(Default)]
pub(crate) struct Kernels(Mutex<Kept>);

#[derive(Default)]
pub(crate) struct Kept {
    /// Each with the number of the launch that used it last.
    kernels: HashMap<Arc<Recipe>, (Kernel, u64)>,
    pub(crate) statistics: Statistics,
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

    pub(crate) fn count(&mut self, turn: &Turn) {
        let launches = |(_, step): &(usize, Step)| !matches!(step, Step::Same(_) | Step::Empty);
        self.launched += u64::from(turn.iter().any(launches));
    }
}

impl Kernels {
    pub(crate) fn kept(&self) -> MutexGuard<'_, Kept> {
        // What is under the lock is whole between any two statements.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Computes tensors of one device, and what they need.
pub(crate) fn realize(roots: &[&Tensor]) -> Result<()> {
    realize_with(roots, |device| Ways {
        copies: true,
        ..Ways::of(device)
    })
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
    let mut values = values_of(&graph);
    let mut hunt = Hunt::of(&graph, &values)?;
    let ways = ways(&device);
    let fuses = ways.fuses && hunt.is_none();
    let copies = ways.copies && fuses;
    let plan = Plan::of(
        &graph,
        Ways {
            fuses,
            copies,
            ..ways
        },
    );
    let kernels = device.attachment::<Kernels>();
    let steps = Ready::all(&device, &kernels, &graph, &plan)?;
    let lives = Lives::of(&graph, steps.iter().map(|ready| &ready.turn));
    let stream = device.default_stream();
    for (ready, ends) in steps.iter().zip(&lives.ends) {
        ready.run(&stream, &graph, &mut values, &mut |_| None)?;
        kernels.kept().statistics.count(&ready.turn);
        for (output, _) in &ready.turn {
            let Some(result) = &values[*output] else { continue };
            if let Some(hunt) = &mut hunt {
                hunt.look(&graph, *output, result)?;
            }
            if lives.stays[*output] {
                graph.0[*output].tensor.0.settle(result.clone());
            }
        }
        for number in ends {
            values[*number] = None;
        }
    }
    let statistics = &mut kernels.kept().statistics;
    statistics.peak = statistics.peak.max(lives.peak());
    Ok(())
}

/// The values of a graph that are known.
pub(crate) fn values_of(graph: &Graph) -> Vec<Option<DynBuffer>> {
    graph.0.iter().map(|entry| entry.tensor.0.value()).collect()
}

/// Indices have 32 bits; some are left for blocks at the end.
pub(crate) const MOST_ELEMENTS: usize = u32::MAX as usize - 65_536;

/// A launch, whose kernel is compiled.
pub(crate) struct Ready {
    pub(crate) turn: Turn,
    kernel: Option<Kernel>,
}

impl Ready {
    pub(crate) fn all(device: &Device, kernels: &Kernels, graph: &Graph, plan: &Plan) -> Result<Vec<Ready>> {
        let ready = |turn: Turn| {
            let of = |(first, recipe): (usize, Cow<'_, Recipe>)| {
                compiled(device, kernels, &recipe, &graph.0[first].tensor)
            };
            let kernel = recipe(&turn).map(of).transpose()?;
            Ok(Ready { turn, kernel })
        };
        turns(graph, plan)?.into_iter().map(ready).collect()
    }

    /// Submits what computes its results, which are values then. `spare`: memory for one that nothing needs any more.
    pub(crate) fn run(
        &self,
        stream: &Stream,
        graph: &Graph,
        values: &mut [Option<DynBuffer>],
        spare: &mut dyn FnMut(&Tensor) -> Option<DynBuffer>,
    ) -> Result<()> {
        let mut results = Vec::with_capacity(self.turn.len());
        for (output, step) in &self.turn {
            let tensor = &graph.0[*output].tensor;
            results.push(match step {
                Step::Launch(_) => room(stream, tensor, spare)?,
                _ => alone(step, stream, values, tensor, spare)?,
            });
        }
        if let (Some(kernel), Some((first, Step::Launch(built)))) = (&self.kernel, self.turn.first()) {
            let tensor = &graph.0[*first].tensor;
            let failed = |cause| tensor.device_error(cause);
            let mut config = built.config;
            let mut args: Vec<KernelArg<'_>> = Vec::new();
            let mut begins: Vec<u32> = vec![0];
            for ((_, step), result) in self.turn.iter().zip(&results) {
                let Step::Launch(built) = step else { continue };
                args.push(result.arg());
                for input in &built.given.inputs {
                    let value = values.get(*input).and_then(Option::as_ref);
                    args.push(value.ok_or_else(|| wrong(tensor, "an input has no value"))?.arg());
                }
                args.extend(built.given.sizes.iter().map(|size| KernelArg::from(*size)));
                for (dtype, bits) in &built.given.numbers {
                    let bytes = bits.to_le_bytes();
                    let value = KernelArg::value(&(*dtype).into(), &bytes[..dtype.size() as usize]);
                    args.push(value.map_err(failed)?);
                }
                begins.extend(begins.last().map(|begin| begin + built.config.grid.x));
            }
            if let (&[_, ref begins @ .., end], true) = (&begins[..], self.turn.len() > 1) {
                args.extend(begins.iter().map(|begin| KernelArg::from(*begin)));
                config.grid.x = end;
            }
            stream.launch(kernel, config, &args).map_err(failed)?;
        }
        for ((output, _), result) in self.turn.iter().zip(results) {
            values[*output] = Some(result);
        }
        Ok(())
    }
}

/// The recipe of a launch's kernel, and the first of its results.
pub(crate) fn recipe(turn: &Turn) -> Option<(usize, Cow<'_, Recipe>)> {
    let [(first, Step::Launch(built)), others @ ..] = &turn[..] else {
        return None;
    };
    let recipe = match others.len() as u32 {
        0 => Cow::Borrowed(&built.recipe),
        others => Cow::Owned(Recipe {
            times: others + 1,
            ..built.recipe.clone()
        }),
    };
    Some((*first, recipe))
}

/// Memory for a result.
fn room(
    stream: &Stream,
    tensor: &Tensor,
    spare: &mut dyn FnMut(&Tensor) -> Option<DynBuffer>,
) -> Result<DynBuffer> {
    if let Some(spare) = spare(tensor) {
        return Ok(spare);
    }
    let room = DynBuffer::alloc(stream.device(), &tensor.dtype().into(), tensor.len() as u64);
    room.map_err(|cause| tensor.device_error(cause))
}

/// What is no generated kernel.
fn alone(
    step: &Step,
    stream: &Stream,
    values: &[Option<DynBuffer>],
    tensor: &Tensor,
    spare: &mut dyn FnMut(&Tensor) -> Option<DynBuffer>,
) -> Result<DynBuffer> {
    let value = |number: usize| {
        let value = values.get(number).and_then(Option::as_ref);
        value.ok_or_else(|| wrong(tensor, "an input has no value"))
    };
    let failed = |cause| tensor.device_error(cause);
    if let Step::Same(source) = *step {
        return value(source).cloned();
    }
    if let Some((function, sources)) = step.on_host() {
        let read = |(source, ..): &Source| Seen::of(value(*source)?, stream).map_err(failed);
        let seen = sources.iter().map(read).collect::<Result<Vec<_>>>()?;
        let operands = sources
            .iter()
            .zip(&seen)
            .map(|((_, shape, dtype), seen)| HostValues {
                shape,
                dtype: *dtype,
                bytes: seen.bytes(),
            });
        let found = function.compute(&operands.collect::<Vec<_>>());
        let found = found.map_err(|rule| tensor.broken(rule))?;
        if found.len() as u64 != tensor.len() as u64 * u64::from(tensor.dtype().size()) {
            return Err(
                tensor.broken("its function gives another number of elements than its result has".into())
            );
        }
        let ty: Type = tensor.dtype().into();
        return DynBuffer::upload(stream.device(), &ty, &found).map_err(failed);
    }
    let result = room(stream, tensor, spare)?;
    match step {
        Step::Copy(copied) => {
            stream.synchronize().map_err(failed)?;
            let seen = |number: usize| Ok((number, Seen::of(value(number)?, stream).map_err(failed)?));
            let seen = copied
                .reads()
                .into_iter()
                .map(seen)
                .collect::<Result<HashMap<_, _>>>()?;
            let to = match result.arg() {
                KernelArg::Buffer(buffer) => host::raw(buffer.ptr()),
                KernelArg::Value(_) => None,
            };
            let to = to.ok_or_else(|| wrong(tensor, "the host does not reach its memory"))?;
            let size = tensor.dtype().size() as usize;
            // SAFETY: the buffer has so many bytes, and nobody else knows it: what used its memory before was submitted to this stream and, as its sources, waited for.
            let all = unsafe { std::slice::from_raw_parts_mut(to.cast().as_ptr(), tensor.len() * size) };
            copied.run(|number| seen.get(&number).map_or(&[], Seen::bytes), size, all);
        }
        Step::Function(function, sources) => {
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
        Step::Library(library) => library.launch(stream, value, &result)?.map_err(failed)?,
        _ => {}
    }
    Ok(result)
}

/// A value for the host: the memory itself, or a copy of it.
enum Seen<'a> {
    There(&'a DynBuffer, NonNull<u8>),
    Copied(Vec<u8>),
}

impl Seen<'_> {
    fn of<'a>(value: &'a DynBuffer, stream: &Stream) -> perpetua_device::Result<Seen<'a>> {
        let there = match value.arg() {
            KernelArg::Buffer(buffer) => host::raw(buffer.ptr()),
            KernelArg::Value(_) => None,
        };
        match there {
            Some(there) => stream.synchronize().map(|()| Seen::There(value, there)),
            None => value.read().map(Seen::Copied),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Seen::There(value, there) => {
                let size = value.len() as usize * value.element().size() as usize;
                // SAFETY: `raw` gives the first of the buffer's bytes in the host's memory, which is initialised and stays as long as the buffer. Work that writes there was waited for: a tensor's
                // value is written by the one launch that makes it, on the stream of all others, and by nobody once it is made.
                unsafe { std::slice::from_raw_parts(there.as_ptr(), size) }
            }
            Seen::Copied(bytes) => bytes,
        }
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
