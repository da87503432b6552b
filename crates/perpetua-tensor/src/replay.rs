//! What a compiled function has recorded, ready to run with other inputs: kernel by kernel, at once as a graph of the device, or, where NaN is looked for, operation by operation.

use std::sync::Mutex;

use perpetua_device::{Device, DynBuffer, Graph as Replay, Stream};
use perpetua_ir::ir::Type;

use crate::anomaly::{self, Hunt};
use crate::error::Result;
use crate::fuse::{Plan, Ways};
use crate::graph::Graph;
use crate::memory::Lives;
use crate::node::{Op, Tensor};
use crate::run::{Kernels, MOST_ELEMENTS, Ready, realize, values_of};
use crate::step::wrong;

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
                refuse(
                    "random numbers would be the same in each call: make them outside and hand them in, or a stream of them (`Random::stream`)",
                )?;
            }
        }
        let plan = Plan::of(&graph, Ways::of(device));
        let steps = Ready::all(device, &device.attachment::<Kernels>(), &graph, &plan)?;
        let lives = Lives::of(&graph, steps.iter().map(|ready| &ready.turn));
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
        let mut all = steps.iter().flat_map(|ready| &ready.turn);
        let waits = all.any(|(_, step)| step.on_host().is_some());
        let is_worth = !waits && steps.len() >= FEW && copied <= each.saturating_mul(steps.len() as u64);
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
        if anomaly::is_on() {
            return self.hunted(examples, inputs, results);
        }
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

    // What needs not be computed.
    fn known(&self, examples: &[Tensor], inputs: &[Option<DynBuffer>]) -> Vec<Option<DynBuffer>> {
        let mut values = values_of(&self.graph);
        for (example, input) in examples.iter().zip(inputs) {
            if let Some(place) = self.graph.place(example) {
                values[place] = input.clone();
            }
        }
        values
    }

    // Operation by operation, each looked at; what is put in first, by its own name.
    fn hunted(&self, examples: &[Tensor], inputs: &[&Tensor], results: &[&Tensor]) -> Result<Vec<DynBuffer>> {
        let given = Graph::of(inputs);
        Hunt::of(&given, &values_of(&given))?;
        let inputs: Vec<Option<DynBuffer>> = inputs.iter().map(|input| input.0.value()).collect();
        let mut values = self.known(examples, &inputs);
        let mut hunt = Hunt::of(&self.graph, &values)?;
        let ways = Ways {
            fuses: false,
            ..Ways::of(&self.device)
        };
        let kernels = self.device.attachment::<Kernels>();
        let plan = Plan::of(&self.graph, ways);
        for ready in Ready::all(&self.device, &kernels, &self.graph, &plan)? {
            let stream = self.device.default_stream();
            ready.run(&stream, &self.graph, &mut values, &mut |_| None)?;
            kernels.kept().statistics.count(&ready.turn);
            for (output, _) in &ready.turn {
                if let (Some(hunt), Some(result)) = (&mut hunt, &values[*output]) {
                    hunt.look(&self.graph, *output, result)?;
                }
            }
        }
        self.of_results(&values, results)
    }

    // Everything, one by one. `reuses`: memory that nothing needs any more is taken again by itself, since what is captured stays out of the device's pool.
    fn launched(
        &self,
        stream: &Stream,
        examples: &[Tensor],
        inputs: &[Option<DynBuffer>],
        reuses: bool,
    ) -> Result<Vec<Option<DynBuffer>>> {
        let mut values = self.known(examples, inputs);
        let kernels = self.device.attachment::<Kernels>();
        let mut spare: Vec<DynBuffer> = Vec::new();
        for (at, ready) in self.steps.iter().enumerate() {
            let mut find = |tensor: &Tensor| {
                let fits = |buffer: &DynBuffer| {
                    buffer.len() == tensor.len() as u64 && *buffer.element() == Type::from(tensor.dtype())
                };
                let place = spare.iter().position(fits)?;
                Some(spare.swap_remove(place))
            };
            ready.run(stream, &self.graph, &mut values, &mut find)?;
            kernels.kept().statistics.count(&ready.turn);
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
