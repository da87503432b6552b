//! Operations that kernels of the kernel library compute: which, of what, and their launches. A choice depends on an operation's shape, type and device alone, so
//! that its rounding does. Must not know how operations are fused.

use std::fmt;

use perpetua_device::{BackendKind, Device, DynBuffer};
use perpetua_ir::back::Capability;
use perpetua_kernels::{Element, GemmKernel, Kernel as _};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::node::{Op, Tensor};
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
        tensor: &Tensor,
        value: impl Fn(usize) -> Result<&'a DynBuffer>,
        result: &DynBuffer,
    ) -> Result<()> {
        let [a, b] = self.operands.map(|stored| value(stored.number));
        let args = [a?.arg(), b?.arg(), result.arg()];
        let launched = self.kernel.launch(&tensor.device().default_stream(), &args);
        launched.map_err(|error| match error {
            perpetua_kernels::Error::Device(cause) => tensor.device_error(cause),
            other => Error::Generated {
                operation: crate::table::name_of(&tensor.0).into(),
                message: other.to_string(),
                at: tensor.0.at(),
            },
        })
    }
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
    let element = match dtype {
        DType::F32 => Element::F32,
        DType::F16 => Element::F16,
        DType::BF16 => Element::Bf16,
        _ => return None,
    };
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
