//! Runs what is recorded: kernels are found by their recipes or compiled, results get memory, launches go to the default stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use perpetua_device::{Device, DynBuffer, Kernel, KernelArg};
use perpetua_ir::ir::Type;
use perpetua_ir::verify::{Verified, verify};

use crate::emit::{Built, Recipe, build, kernel};
use crate::error::{Error, Result};
use crate::fuse::{Explanation, Plan};
use crate::graph::Graph;
use crate::node::Op;
use crate::node::Tensor;
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

/// Whether operations are fused: not if `PERPETUA_FUSION` is `off`.
fn fuses() -> bool {
    static FUSES: OnceLock<bool> = OnceLock::new();
    *FUSES.get_or_init(|| std::env::var("PERPETUA_FUSION").map_or(true, |value| value != "off"))
}

/// Computes tensors of one device, and what they need.
pub(crate) fn realize(roots: &[&Tensor]) -> Result<()> {
    realize_with(roots, fuses())
}

/// The same, fused or not.
pub(crate) fn realize_with(roots: &[&Tensor], fuses: bool) -> Result<()> {
    for root in roots {
        root.check()?;
        if root.0.is_example {
            let rule = "inside a function that `vmap` takes there are no values, only what happens to each example: look at the result of `vmap`";
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
    let plan = Plan::of(&graph, device.info().limits.max_buffers as usize, fuses);
    let kernels = device.attachment::<Kernels>();
    let mut values: Vec<Option<DynBuffer>> = graph.0.iter().map(|entry| entry.tensor.0.value()).collect();
    let is_stored = |number: usize| plan.stays[number].is_some() || graph.0[number].is_known;
    for group in &plan.groups {
        let entry = &graph.0[group.output];
        let tensor = &entry.tensor;
        // The same elements in the same order: the same memory.
        let same = match (&tensor.0.op, &entry.sources[..]) {
            (Op::Same | Op::Variable | Op::Joined { .. } | Op::Reshape, &[source]) if is_stored(source) => {
                values[source].clone()
            }
            _ => None,
        };
        let result = match same {
            Some(same) => same,
            None => launch(&device, &kernels, &values, tensor, || {
                build(&graph, group, &is_stored).ok()
            })?,
        };
        values[group.output] = Some(result.clone());
        tensor.0.settle(result);
    }
    Ok(())
}

/// Indices have 32 bits; some are left for blocks at the end.
const MOST_ELEMENTS: usize = u32::MAX as usize - 65_536;

fn launch(
    device: &Device,
    kernels: &Kernels,
    values: &[Option<DynBuffer>],
    tensor: &Tensor,
    build: impl FnOnce() -> Option<Built>,
) -> Result<DynBuffer> {
    let wrong = |message: &str| Error::Generated {
        operation: name_of(&tensor.0).into(),
        message: message.into(),
        at: tensor.0.at(),
    };
    let failed = |cause| tensor.device_error(cause);
    let ty = Type::Scalar(tensor.dtype());
    let result = DynBuffer::alloc(device, &ty, tensor.len() as u64).map_err(failed)?;
    if tensor.is_empty() {
        return Ok(result);
    }
    let Built {
        recipe,
        given,
        config,
    } = build().ok_or_else(|| wrong("it has no recipe"))?;
    let kernel = compiled(device, kernels, recipe, tensor)?;
    let mut args: Vec<KernelArg<'_>> = vec![result.arg()];
    for input in &given.inputs {
        let value = values.get(*input).and_then(Option::as_ref);
        args.push(value.ok_or_else(|| wrong("an input has no value"))?.arg());
    }
    args.extend(given.sizes.iter().map(|size| KernelArg::from(*size)));
    for (dtype, bits) in &given.numbers {
        let bytes = bits.to_le_bytes();
        let value = KernelArg::value(&Type::Scalar(*dtype), &bytes[..dtype.size() as usize]);
        args.push(value.map_err(failed)?);
    }
    device.launch(&kernel, config, &args).map_err(failed)?;
    kernels.kept().statistics.launched += 1;
    drop(args);
    Ok(result)
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

impl Tensor {
    /// What would run if this was looked at: which operations each kernel computes, and why results are stored. A tensor whose value is
    /// known needs none.
    ///
    /// ```
    /// # use perpetua_device::{BackendKind, Device};
    /// # use perpetua_tensor::{DType, Tensor};
    /// # let device = Device::new(BackendKind::Cpu, 0)?;
    /// let x = Tensor::ones([4, 1000], DType::F32, &device);
    /// let explanation = (x * 2.0).softmax(-1).explain()?;
    /// assert_eq!(explanation.kernels.len(), 1, "{explanation}");
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an operation on the way was refused.
    pub fn explain(&self) -> Result<Explanation> {
        self.check()?;
        let graph = Graph::of(&[self]);
        let plan = Plan::of(&graph, self.device().info().limits.max_buffers as usize, fuses());
        Ok(Explanation::of(&graph, &plan))
    }
}
