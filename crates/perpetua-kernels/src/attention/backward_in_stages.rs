//! Launches of attention's gradients in stages: what suits them, and their instances. Must not know how a block computes its rows.

use perpetua::prelude::*;
use perpetua_device::{BackendKind, Buffer, KernelArg, Stream};
use perpetua_ir::back::Capability;
use perpetua_language::kernel::resident::U32x4;

use super::AttentionKernel;
use super::backward_staged::{self, attention_backward_staged};
use crate::element::{Element, in_pieces};
use crate::error::Result;

impl AttentionKernel {
    /// Whether gradients are to be computed in stages on this device, given these matrices: where the kernel is asked for stages, or where the device has them, and all fits.
    pub(super) fn takes_backward_stages(&self, stream: &Stream, matrices: &[&KernelArg<'_>]) -> bool {
        let device = stream.device();
        let has_them =
            device.backend() == BackendKind::Cuda && device.info().capabilities.contains(&Capability::Stages);
        let lies_right = |arg: &&KernelArg<'_>| match arg {
            KernelArg::Buffer(buffer) => buffer.ptr().place().is_multiple_of(16),
            KernelArg::Value(_) => false,
        };
        let counts = self.rows_fit() && self.queries.saturating_add(self.keys) <= i32::MAX as usize / 2;
        let wanted = self.in_stages || has_them && !self.with_lengths;
        wanted && counts && self.instance_of_backward(true).is_some() && matrices.iter().all(lies_right)
    }

    /// The instance for gradients of keys and values, or of queries, where there is one: none where scores are more than scaled products.
    pub(super) fn instance_of_backward(&self, of_keys: bool) -> Option<KernelFn> {
        macro_rules! of {
            ($T:ty, $dim:tt, $eighths:tt, $wide:tt, $others:tt, $stages:tt, $of_keys:tt) => {
                match (self.causal, self.window.is_some()) {
                    (false, false) => {
                        of!(
                            $T, $dim, $eighths, $wide, $others, $stages, $of_keys, false, false
                        )
                    }
                    (false, true) => of!(
                        $T, $dim, $eighths, $wide, $others, $stages, $of_keys, false, true
                    ),
                    (true, false) => of!(
                        $T, $dim, $eighths, $wide, $others, $stages, $of_keys, true, false
                    ),
                    (true, true) => of!(
                        $T, $dim, $eighths, $wide, $others, $stages, $of_keys, true, true
                    ),
                }
            };
            ($T:ty, $dim:tt, $eighths:tt, $wide:tt, $others:tt, $stages:tt, $of_keys:tt, $causal:tt, $banded:tt) => {
                attention_backward_staged::kernel::<
                    $T,
                    [[[$T; $dim]; 128]; $stages],
                    [[[$T; $dim]; $others]; $stages],
                    $eighths,
                    $wide,
                    $of_keys,
                    $causal,
                    $banded,
                >()
            };
        }
        if self.cap.is_some() || self.with_slopes {
            return None;
        }
        // Of 128 columns, keys' two sums take the registers that more than 64 queries a stage would need.
        Some(match (self.element, self.dim, of_keys) {
            (Element::F16, 64, true) => of!(f16, 64, 8, 8, 64, 6, true),
            (Element::F16, 64, false) => of!(f16, 64, 8, 16, 128, 4, false),
            (Element::F16, 128, true) => of!(f16, 128, 16, 8, 64, 4, true),
            (Element::F16, 128, false) => of!(f16, 128, 16, 16, 128, 2, false),
            (Element::Bf16, 64, true) => of!(bf16, 64, 8, 8, 64, 6, true),
            (Element::Bf16, 64, false) => of!(bf16, 64, 8, 16, 128, 4, false),
            (Element::Bf16, 128, true) => of!(bf16, 128, 16, 8, 64, 4, true),
            (Element::Bf16, 128, false) => of!(bf16, 128, 16, 16, 128, 2, false),
            _ => return None,
        })
    }

    /// Gradients of keys and values, or of queries, which go to `out`, whose second buffer is not written then. `read`: Q, K, V, lengths, slopes, the result's gradient.
    pub(super) fn launch_backward_in_stages(
        &self,
        stream: &Stream,
        of_keys: bool,
        read: &[KernelArg<'_>],
        logs: &KernelArg<'_>,
        means: &Buffer<f32>,
        out: [KernelArg<'_>; 2],
    ) -> Result<()> {
        // What launches it has asked for the instance, and counted.
        let (Some(mut function), [q, k, v, lengths, _, dout]) = (self.instance_of_backward(of_keys), read)
        else {
            return Ok(());
        };
        let of_queries = (self.queries, self.heads, [q, dout]);
        let of_keys_and_values = (self.keys, self.key_heads, [k, v]);
        let ((own_rows, own_heads, own), (other_rows, other_heads, other)) = match of_keys {
            true => (of_keys_and_values, of_queries),
            false => (of_queries, of_keys_and_values),
        };
        let out = out.map(|arg| in_pieces::<U32x4>(&arg).unwrap_or(arg));
        let mut all = args![
            own_rows,
            other_rows,
            own_heads,
            other_heads,
            self.heads / self.key_heads,
            self.scale,
            self.window_of(),
            self.batch * own_heads,
            own_rows * self.dim,
            self.batch * other_heads,
            other_rows * self.dim,
            self.dim
        ]
        .to_vec();
        all.extend(own.into_iter().chain(other).cloned());
        all.extend([lengths.clone(), logs.clone(), means.arg()]);
        all.extend(out);
        if stream.device().backend() == BackendKind::Cuda {
            // SAFETY: the gradients have room for a row of each key or query, with whose number rows are compared before each store; a row is a whole number of lines of 16 bytes. The
            // matrices that are read are described by their rows, which a launch compares with the buffers. There is a logarithm and a mean for each query, with whose number places are compared
            // before they are read; two lengths for each entry, where they are read; no length counts further than the shape. Indices into a lane's
            // arrays are constants, and nothing is divided but by the number of heads that share keys, which is not zero where there is something to launch.
            function = unsafe { function.unchecked() };
        }
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let tiles = number(own_rows.div_ceil(backward_staged::ROWS));
        let blocks = [tiles, number(own_heads), number(self.batch)];
        let config = LaunchConfig::new(blocks, backward_staged::LANES);
        Ok(stream.launch(&function, config, &all)?)
    }
}
