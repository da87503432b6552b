//! The hunt for NaN: where it is on, every operation is computed by itself, and looked at.

use std::cell::Cell;

use perpetua_device::DynBuffer;

use crate::dtype::{DType, cast};
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::node::{Node, Op};
use crate::shape::text;
use crate::table::name_of;

thread_local! {
    static HUNTS: Cell<bool> = const { Cell::new(false) };
}

/// Looks for the operation that gives the first NaN: what `work` computes on this thread, gradients too, is computed operation by operation, and the first one that makes NaN of operands without
/// it is an error, which names it, the line that recorded it, and the first index. This is slow: each result is read.
///
/// ```
/// # use perpetua_device::{BackendKind, Device};
/// use perpetua_tensor::{Tensor, detect_anomaly};
/// # let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = Tensor::from_slice(&[1.0f32, -1.0, 2.0], [3], &device);
/// let error = detect_anomaly(|| (x.log() * 2.0).sum(..).to_vec::<f32>());
/// assert!(error.unwrap_err().to_string().contains("`log` of f32[3] gave NaN, first at [1]"));
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
///
/// # Errors
/// Those of `work`, and the first NaN.
pub fn detect_anomaly<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            HUNTS.set(self.0);
        }
    }
    let _back = Back(HUNTS.replace(true));
    work()
}

/// Whether a hunt is on.
pub(crate) fn is_on() -> bool {
    HUNTS.get()
}

/// What was found so far in a graph.
pub(crate) struct Hunt(Vec<bool>);

impl Hunt {
    /// Of a graph whose known values are looked at first; nothing where no hunt is on.
    pub(crate) fn of(graph: &Graph, values: &[Option<DynBuffer>]) -> Result<Option<Hunt>> {
        if !is_on() {
            return Ok(None);
        }
        let mut hunt = Hunt(vec![false; graph.0.len()]);
        for (number, (entry, value)) in graph.0.iter().zip(values).enumerate() {
            if let Op::Scalar { bits, .. } = entry.tensor.0.op {
                hunt.0[number] = is_nan(entry.tensor.dtype(), bits);
            }
            if let Some(value) = value {
                hunt.look(graph, number, value)?;
            }
        }
        Ok(Some(hunt))
    }

    /// Looks at a result.
    pub(crate) fn look(&mut self, graph: &Graph, number: usize, value: &DynBuffer) -> Result<()> {
        let entry = &graph.0[number];
        let node = &entry.tensor.0;
        if !node.dtype.is_float() {
            return Ok(());
        }
        let bytes = value.read().map_err(|cause| entry.tensor.device_error(cause))?;
        let size = node.dtype.size() as usize;
        let found = bytes.chunks_exact(size).position(|bytes| {
            let mut wide = [0; 8];
            wide[..size].copy_from_slice(bytes);
            is_nan(node.dtype, u64::from_le_bytes(wide))
        });
        let Some(place) = found else { return Ok(()) };
        self.0[number] = true;
        // What sorts fills up with NaN.
        let is_given = matches!(node.op, Op::Pad { fill, .. } if is_nan(node.dtype, fill));
        if is_given || entry.sources.iter().any(|source| self.0[*source]) {
            return Ok(());
        }
        let operands: Vec<String> = entry
            .sources
            .iter()
            .map(|source| graph.0[*source].tensor.0.describe())
            .collect();
        Err(Error::Anomaly {
            operation: name_of(node).into(),
            operands: match operands.len() {
                0 => node.describe(),
                _ => operands.join(" and "),
            },
            index: text(&index(node, place)),
            at: node.at(),
        })
    }
}

fn is_nan(dtype: DType, bits: u64) -> bool {
    dtype.is_float() && f64::from_bits(cast(dtype, DType::F64, bits)).is_nan()
}

// The place of an element along the axes.
fn index(node: &Node, mut flat: usize) -> Vec<usize> {
    let mut along: Vec<usize> = Vec::new();
    for extent in node.shape.iter().rev() {
        along.push(flat % extent);
        flat /= extent;
    }
    along.reverse();
    along
}
