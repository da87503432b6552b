//! Launches of attention in stages: what suits them, and their instances. Must not know how a block computes its queries.

use perpetua::prelude::*;
use perpetua_device::{BackendKind, KernelArg, Stream};
use perpetua_ir::back::Capability;
use perpetua_language::kernel::resident::U32x4;

use super::AttentionKernel;
use super::staged::{self, attention_staged};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, unchecked};

/// The greatest number of rows of a matrix that hardware counts.
const MOST_ROWS: usize = i32::MAX as usize;

impl AttentionKernel {
    /// Whether it is to be computed in stages on this device: where it is asked for, or where the device has them and all fits.
    pub(super) fn takes_stages(&self, stream: &Stream, args: &[KernelArg<'_>]) -> bool {
        let device = stream.device();
        let has_them =
            device.backend() == BackendKind::Cuda && device.info().capabilities.contains(&Capability::Stages);
        let lies_right = || {
            args.iter().all(|arg| match arg {
                KernelArg::Buffer(buffer) => {
                    self.element.is(buffer.element()) && buffer.ptr().place().is_multiple_of(16)
                }
                KernelArg::Value(_) => false,
            })
        };
        let counts = self.rows_fit() && self.scale > 0.0 && self.scale < f32::INFINITY;
        let suits = self.instance_in_stages().is_some() && !self.with_lengths && lies_right();
        // Behind the last keys of a head stand the next one's, and nothing times what is no number would be no number.
        let whole = self.keys.is_multiple_of(staged::KEYS);
        counts && (self.in_stages || has_them && suits && whole)
    }

    fn rows_fit(&self) -> bool {
        let rows = |heads: usize, rows: usize| {
            let all = self.batch.saturating_mul(heads).saturating_mul(rows);
            all > 0 && all <= MOST_ROWS
        };
        rows(self.heads, self.queries) && rows(self.key_heads, self.keys)
    }

    /// The instance, where there is one.
    pub(super) fn instance_in_stages(&self) -> Option<KernelFn> {
        macro_rules! of {
            ($T:ty, $dim:tt, $panels:tt, $eighths:tt, $stages:tt, $ahead:tt) => {
                match self.causal {
                    false => of!($T, $dim, $panels, $eighths, $stages, $ahead, false),
                    true => of!($T, $dim, $panels, $eighths, $stages, $ahead, true),
                }
            };
            ($T:ty, $dim:tt, $panels:tt, $eighths:tt, $stages:tt, $ahead:tt, $causal:tt) => {
                attention_staged::kernel::<
                    $T,
                    [[[$T; $dim]; 128]; $stages],
                    [[[$T; $dim]; 128]; $stages],
                    [[[[$T; 64]; 128]; $panels]; $stages],
                    $eighths,
                    $ahead,
                    $causal,
                >()
            };
        }
        // With 128 columns a lane has too few registers for two products under way.
        Some(match (self.element, self.dim) {
            (Element::F16, 64) => of!(f16, 64, 1, 8, 4, true),
            (Element::F16, 128) => of!(f16, 128, 2, 16, 2, false),
            (Element::Bf16, 64) => of!(bf16, 64, 1, 8, 4, true),
            (Element::Bf16, 128) => of!(bf16, 128, 2, 16, 2, false),
            _ => return None,
        })
    }

    /// `check` has found room for all four.
    pub(super) fn launch_in_stages(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let name = self.name();
        let Some(mut function) = self.instance_in_stages() else {
            return Err(match self.element {
                Element::F32 => Error::Element {
                    kernel: name,
                    element: self.element,
                    takes: "F16 and Bf16",
                },
                _ => Error::Range {
                    kernel: name,
                    what: "a head's number of columns",
                    found: self.dim,
                    needed: "64 or 128 in stages".into(),
                },
            });
        };
        let [q, k, v, KernelArg::Buffer(out)] = args else {
            return Err(Error::Range {
                kernel: name,
                what: "the number of entries with lengths of their own",
                found: self.batch,
                needed: "0 in stages: leave out `with_lengths`, or `in_stages`".into(),
            });
        };
        if !self.element.is(out.element()) {
            return Err(Error::Stored {
                kernel: name,
                operand: "result",
                found: out.element().to_string(),
                element: format!("{:?}", self.element),
            });
        }
        let q_rows = self.batch * self.heads * self.queries;
        let k_rows = self.batch * self.key_heads * self.keys;
        let mut all = args![
            self.queries,
            self.keys,
            self.heads,
            self.heads / self.key_heads,
            self.scale * std::f32::consts::LOG2_E,
            q_rows,
            k_rows,
            self.dim
        ]
        .to_vec();
        all.extend([
            q.clone(),
            k.clone(),
            v.clone(),
            KernelArg::Buffer(out.cast::<U32x4>()?),
        ]);
        if stream.device().backend() == BackendKind::Cuda {
            // SAFETY: the result has room for a row of each query, with whose number rows are compared before each store; a row is a whole number of lines
            // of 16 bytes. Q, K and V are described by their rows, which a launch compares with the buffers. Indices into a lane's arrays are
            // constants, and nothing is divided but by the numbers of heads, which are not zero where there is something to launch.
            function = unsafe { unchecked(function) };
        }
        let config = self.config(staged::QUERIES, staged::LANES);
        Ok(stream.launch(&function, config, &all)?)
    }
}
