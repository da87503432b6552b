//! Launches of attention in stages: what suits them, and their instances. Must not know how a block computes its queries.

use perpetua::prelude::*;
use perpetua_device::{BackendKind, KernelArg, Stream};
use perpetua_ir::back::Capability;
use perpetua_language::kernel::resident::U32x4;

use super::AttentionKernel;
use super::staged::{self, attention_staged};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// The greatest number of rows of a matrix that hardware counts.
pub(super) const MOST_ROWS: usize = i32::MAX as usize;

impl AttentionKernel {
    /// Whether it is to be computed in stages on this device: where it is asked for, or where the device has them and all fits.
    pub(super) fn takes_stages(&self, stream: &Stream, args: &[KernelArg<'_>]) -> bool {
        let device = stream.device();
        let has_them =
            device.backend() == BackendKind::Cuda && device.info().capabilities.contains(&Capability::Stages);
        // Q, K, V and the result.
        let lies_right = || {
            args.iter()
                .take(3)
                .chain(args.get(self.result_at()))
                .all(|arg| match arg {
                    KernelArg::Buffer(buffer) => {
                        self.element.is(buffer.element()) && buffer.ptr().place().is_multiple_of(16)
                    }
                    KernelArg::Value(_) => false,
                })
        };
        let counts = self.rows_fit() && self.scale > 0.0 && self.scale < f32::INFINITY;
        let suits = self.instance_in_stages().is_some() && !self.with_lengths && lies_right();
        counts && (self.in_stages || has_them && suits)
    }

    /// Which argument the result is.
    fn result_at(&self) -> usize {
        3 + usize::from(self.with_lengths) + usize::from(self.with_slopes)
    }

    pub(super) fn rows_fit(&self) -> bool {
        let rows = |heads: usize, rows: usize| {
            let all = self.batch.saturating_mul(heads).saturating_mul(rows);
            all > 0 && all <= MOST_ROWS
        };
        rows(self.heads, self.queries) && rows(self.key_heads, self.keys)
    }

    /// The instance, where there is one.
    pub(super) fn instance_in_stages(&self) -> Option<KernelFn> {
        macro_rules! of {
            ($T:ty, $dim:tt, $panels:tt, $eighths:tt, $keys:tt, $wide:tt, $stages:tt, $ahead:tt) => {
                match (self.causal, self.window.is_some()) {
                    (false, false) => of!(
                        $T, $dim, $panels, $eighths, $keys, $wide, $stages, $ahead, false, false
                    ),
                    (false, true) => of!(
                        $T, $dim, $panels, $eighths, $keys, $wide, $stages, $ahead, false, true
                    ),
                    (true, false) => of!(
                        $T, $dim, $panels, $eighths, $keys, $wide, $stages, $ahead, true, false
                    ),
                    (true, true) => of!(
                        $T, $dim, $panels, $eighths, $keys, $wide, $stages, $ahead, true, true
                    ),
                }
            };
            ($T:ty, $dim:tt, $panels:tt, $eighths:tt, $keys:tt, $wide:tt, $stages:tt, $ahead:tt, $causal:tt, $banded:tt) => {
                match (self.cap.is_some(), self.with_slopes) {
                    (false, false) => of!(
                        $T, $dim, $panels, $eighths, $keys, $wide, $stages, $ahead, $causal, $banded, false,
                        false
                    ),
                    (false, true) => of!(
                        $T, $dim, $panels, $eighths, $keys, $wide, $stages, $ahead, $causal, $banded, false,
                        true
                    ),
                    (true, false) => of!(
                        $T, $dim, $panels, $eighths, $keys, $wide, $stages, $ahead, $causal, $banded, true,
                        false
                    ),
                    (true, true) => of!(
                        $T, $dim, $panels, $eighths, $keys, $wide, $stages, $ahead, $causal, $banded, true,
                        true
                    ),
                }
            };
            ($T:ty, $dim:tt, $panels:tt, $eighths:tt, $keys:tt, $wide:tt, $stages:tt, $ahead:tt, $causal:tt, $banded:tt, $capped:tt, $sloped:tt) => {
                attention_staged::kernel::<
                    $T,
                    [[[$T; $dim]; 128]; $stages],
                    [[[$T; $dim]; $keys]; $stages],
                    [[[[$T; 64]; $keys]; $panels]; $stages],
                    $eighths,
                    $wide,
                    $ahead,
                    $causal,
                    $banded,
                    $capped,
                    $sloped,
                >()
            };
        }
        // With 256 columns a lane has too few registers for two products under way, and for more than 64 keys.
        Some(match (self.element, self.dim) {
            (Element::F16, 64) => of!(f16, 64, 1, 8, 128, 16, 4, true),
            (Element::F16, 128) => of!(f16, 128, 2, 16, 128, 16, 3, true),
            (Element::F16, 256) => of!(f16, 256, 4, 32, 64, 8, 2, false),
            (Element::Bf16, 64) => of!(bf16, 64, 1, 8, 128, 16, 4, true),
            (Element::Bf16, 128) => of!(bf16, 128, 2, 16, 128, 16, 3, true),
            (Element::Bf16, 256) => of!(bf16, 256, 4, 32, 64, 8, 2, false),
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
                    needed: "64, 128 or 256 in stages".into(),
                },
            });
        };
        // `check` has counted them, and found buffers.
        let Some(KernelArg::Buffer(out)) = args.get(self.result_at()) else {
            return Ok(());
        };
        if !self.element.is(out.element()) {
            return Err(Error::Stored {
                kernel: name,
                operand: "result",
                found: out.element().to_string(),
                element: format!("{:?}", self.element),
            });
        }
        let lines = KernelArg::Buffer(out.cast_front::<U32x4>()?);
        // Without lengths, slopes or logarithms there is a buffer of none.
        let (no_lengths, none) = (stream.device().alloc::<u32>(0)?, stream.device().alloc::<f32>(0)?);
        let mut buffers = self.all_buffers(args, no_lengths.arg(), none.arg(), Some(none.arg()));
        buffers[5] = lines;
        let mut all = args![
            self.queries,
            self.keys,
            self.heads,
            self.heads / self.key_heads,
            self.scale * std::f32::consts::LOG2_E,
            self.window_of(),
            self.cap.unwrap_or(0.0) * std::f32::consts::LOG2_E,
            self.batch * self.heads,
            self.queries * self.dim,
            self.batch * self.key_heads,
            self.keys * self.dim,
            self.dim
        ]
        .to_vec();
        all.extend(buffers);
        if stream.device().backend() == BackendKind::Cuda {
            // SAFETY: the result has room for a row of each query, with whose number rows are compared before each store, and the logarithms, where there are any, a place for it; a row is a whole number of lines
            // of 16 bytes. Q, K and V are described by their rows, which a launch compares with the buffers. `check` has found two lengths for each entry and a slope for each head,
            // where they are read; no length counts further than the shape. Indices into a lane's arrays are
            // constants, and nothing is divided but by the numbers of heads, which are not zero where there is something to launch.
            function = unsafe { function.unchecked() };
        }
        let config = self.config(staged::QUERIES, staged::LANES);
        Ok(stream.launch(&function, config, &all)?)
    }
}
