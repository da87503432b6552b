//! Operations that kernels of the kernel library compute: which, of what, and their launches. A choice depends on an operation's shape, type and device alone, so
//! that its rounding does. Must not know how operations are fused.

use std::fmt;

use perpetua_device::{BackendKind, Device, DynBuffer, Stream};
use perpetua_ir::back::Capability;
use perpetua_kernels::{AttentionKernel, Element, GemmKernel, Kernel as _};

use crate::dtype::DType;
use crate::error::Result;
use crate::graph::Graph;
use crate::node::{Argument, Function, Op, Tensor};
use crate::shape::count;

/// What the library computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// What it computes sooner than a generated kernel.
    Sooner,
    /// Whatever it can: for tests on devices where that is nothing.
    #[cfg(feature = "testing")]
    Always,
}

/// So many products of two numbers are worth a launch that fuses with nothing: by tensor cores, and of `f32`.
const WORTH: usize = 1 << 21;
const WORTH_OF_F32: usize = 1 << 27;
/// Products of `f32` with fewer rows or columns leave the library's tiles empty.
const WIDE: usize = 96;
/// So many blocks keep a large device busy.
const BUSY: usize = 100;

/// An operand of a product: the stored tensor, whether that is its transpose, and elements from one matrix to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stored {
    number: usize,
    transposed: bool,
    apart: usize,
}

/// An operation, as the library computes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Library {
    kernel: GemmKernel,
    operands: [Stored; 2],
    views: Vec<usize>,
    batch: usize,
}

impl Library {
    /// For an operation of a graph, if the library computes it.
    pub(crate) fn of(graph: &Graph, number: usize, which: Use) -> Option<Library> {
        let entry = &graph.0[number];
        let node = &entry.tensor.0;
        let (Op::Product, &[left, right], &[ref front @ .., m, n]) =
            (&node.op, &entry.sources[..], &node.shape[..])
        else {
            return None;
        };
        let &k = graph.0[left].tensor.shape().last()?;
        let batch = count(front);
        let kernel = product(&node.device, node.dtype, [batch, m, n, k], which)?;
        let mut views = Vec::new();
        let operands = [(left, m * k), (right, k * n)]
            .map(|(number, elements)| Stored::of(graph, number, elements, &mut views));
        let [a, b] = operands;
        let kernel = kernel.with_transposed(a.transposed, b.transposed);
        Some(Library {
            kernel: match batch {
                1 => kernel,
                _ => kernel.with_batch(batch, [a.apart, b.apart, m * n]),
            },
            operands,
            views,
            batch,
        })
    }

    /// The tensors that it reads.
    pub(crate) fn reads(&self) -> impl Iterator<Item = usize> {
        self.operands.iter().map(|stored| stored.number)
    }

    /// Views of these, which a launch describes instead.
    pub(crate) fn views(&self) -> &[usize] {
        &self.views
    }

    /// Submits it. `value`: the value of a tensor that it reads.
    pub(crate) fn launch<'a>(
        &self,
        stream: &Stream,
        value: impl Fn(usize) -> Result<&'a DynBuffer>,
        result: &DynBuffer,
    ) -> Result<perpetua_device::Result<()>> {
        let [a, b] = self.operands.map(|stored| value(stored.number));
        let args = [a?.arg(), b?.arg(), result.arg()];
        Ok(of_device(self.kernel.launch(stream, &args)))
    }
}

// Shapes were looked at before.
fn of_device(launched: perpetua_kernels::Result<()>) -> perpetua_device::Result<()> {
    launched.map_err(|error| match error {
        perpetua_kernels::Error::Device(cause) => cause,
        _ => perpetua_device::Error::InvalidState {
            operation: "a kernel of the library",
            cause: "its operands are not what was recorded",
            remedy: "please report it",
        },
    })
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of the kernel library", self.kernel.name())?;
        match self.batch {
            1 => Ok(()),
            batch => write!(f, ", {batch} at once"),
        }
    }
}

impl Stored {
    // An operand of matrices of so many elements, behind views that a launch can describe.
    fn of(graph: &Graph, number: usize, elements: usize, views: &mut Vec<usize>) -> Stored {
        let mut stored = Stored {
            number,
            transposed: false,
            apart: elements,
        };
        loop {
            let entry = &graph.0[stored.number];
            let (false, Some(&source)) = (entry.is_known, entry.sources.first()) else {
                return stored;
            };
            let (own, from) = (entry.tensor.shape(), graph.0[source].tensor.shape());
            let (Some((front, matrix)), Some((front_from, matrix_from))) = (parted(own), parted(from)) else {
                return stored;
            };
            match &entry.tensor.0.op {
                Op::Reshape if matrix == matrix_from => {}
                Op::Expand if matrix == matrix_from && count(front_from) == 1 => stored.apart = 0,
                Op::Permute { axes } if turns(axes, front.len()) => stored.transposed ^= true,
                _ => return stored,
            }
            views.push(stored.number);
            stored.number = source;
        }
    }
}

// Axes in front, and the matrix.
fn parted(shape: &[usize]) -> Option<(&[usize], &[usize])> {
    shape.split_at_checked(shape.len().checked_sub(2)?)
}

// Whether the last two axes are exchanged, and nothing else.
fn turns(axes: &[usize], front: usize) -> bool {
    let stay = axes.iter().take(front).enumerate().all(|(axis, of)| axis == *of);
    stay && axes[front..] == [front + 1, front]
}

fn element(dtype: DType) -> Option<Element> {
    Some(match dtype {
        DType::F32 => Element::F32,
        DType::F16 => Element::F16,
        DType::BF16 => Element::Bf16,
        _ => return None,
    })
}

// The kernel for products of a type and shape on a device.
fn product(device: &Device, dtype: DType, [batch, m, n, k]: [usize; 4], which: Use) -> Option<GemmKernel> {
    let has = |capability| device.info().capabilities.contains(&capability);
    let work = [batch, m, n, k]
        .iter()
        .fold(1usize, |all, n| all.saturating_mul(*n));
    let is_cuda = device.backend() == BackendKind::Cuda;
    let is_sooner = match dtype {
        DType::F32 => is_cuda && work >= WORTH_OF_F32 && m.min(n) >= WIDE,
        _ => is_cuda && work >= WORTH,
    };
    if which == Use::Sooner && !is_sooner {
        return None;
    }
    let element = element(dtype)?;
    let kernel = match element {
        // These come one at a time.
        Element::F32 if batch != 1 => return None,
        Element::F32 => {
            let blocks = m.div_ceil(128).saturating_mul(n.div_ceil(128));
            GemmKernel::tiled(m, n, k, if blocks >= BUSY { 128 } else { 64 })
        }
        _ if has(Capability::Stages) => GemmKernel::staged(m, n, k),
        _ if has(Capability::Matrices) && batch == 1 => GemmKernel::tensor_core(m, n, k),
        _ => return None,
    };
    Some(kernel.with_element(element))
}

/// Attention of so many queries and keys is worth a kernel that keeps no scores.
const WORTH_OF_SCORES: usize = 1 << 14;

/// Scaled dot product attention by the library's kernel, of `[.., queries, n]` with keys and values that have the same axes in front; where that is sooner.
pub(crate) fn attention([q, k, v]: [&Tensor; 3], causal: bool, which: Use) -> Option<Tensor> {
    let (Some((front, &[queries, n])), Some((front_of_k, &[keys, n_of_k]))) =
        (parted(q.shape()), parted(k.shape()))
    else {
        return None;
    };
    let dtype = element(q.dtype()).map(|_| q.dtype())?;
    let fits = [q, k, v].iter().all(|x| x.error().is_none() && x.dtype() == dtype)
        && front == front_of_k
        && k.shape() == v.shape()
        && n == n_of_k
        && count(q.shape()) > 0
        && keys > 0
        // A grid's further axes end there.
        && front.last().is_none_or(|heads| *heads <= 65_535 && count(front) / (*heads).max(1) <= 65_535)
        // The composition gives NaN where a query sees nothing, the kernel zeros.
        && (!causal || keys >= queries);
    let is_sooner = q.device().backend() == BackendKind::Cuda
        && dtype != DType::F32
        && [64, 128, 256].contains(&n)
        && queries.saturating_mul(keys) >= WORTH_OF_SCORES;
    (fits && n <= 256 && (is_sooner || which != Use::Sooner))
        .then(|| q.function(Attention { causal }, &[k, v]))
}

struct Attention {
    causal: bool,
}

impl Function for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn result(&self, operands: &[Tensor]) -> std::result::Result<(Vec<usize>, DType), String> {
        let q = operands.first().ok_or("it takes queries, keys and values")?;
        Ok((q.shape().to_vec(), q.dtype()))
    }

    fn launch(
        &self,
        stream: &Stream,
        operands: &[Argument<'_>],
        result: Argument<'_>,
    ) -> perpetua_device::Result<()> {
        let [q, k, v] = operands else {
            return Ok(());
        };
        let (Some((front, &[queries, n])), Some((_, &[keys, _]))) = (parted(q.shape), parted(k.shape)) else {
            return Ok(());
        };
        let heads = front.last().copied().unwrap_or(1);
        let batch = count(front) / heads.max(1);
        let element = element(q.dtype).unwrap_or(Element::F32);
        let kernel = AttentionKernel::new(batch, heads, [queries, keys], n).with_element(element);
        let kernel = if self.causal { kernel.causal() } else { kernel };
        let args = [q, k, v].map(|x| x.value.clone());
        of_device(kernel.launch(stream, &[&args[..], &[result.value]].concat()))
    }

    fn gradient(&self, operands: &[Tensor], _: &Tensor, gradient: &Tensor) -> Option<Vec<Option<Tensor>>> {
        let [q, k, v] = operands else { return None };
        let scale = 1.0 / (*q.shape().last()? as f64).sqrt();
        let scores = q.matmul(k.transpose()) * scale;
        let weights = match self.causal {
            true => scores.seen().softmax(-1),
            false => scores.softmax(-1),
        };
        let by_weights = gradient.matmul(v.transpose());
        let mean = (&by_weights * &weights).sum_keep(-1);
        let by_scores = (by_weights - mean) * &weights * scale;
        Some(vec![
            Some(by_scores.matmul(k)),
            Some(by_scores.transpose().matmul(q)),
            Some(weights.transpose().matmul(gradient)),
        ])
    }

    fn is_for_each(&self) -> bool {
        true
    }
}
