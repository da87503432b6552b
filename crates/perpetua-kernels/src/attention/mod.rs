//! Attention: for each query the mean of values, weighed by the softmax of its products with the keys. Must not know models.

mod backward;
mod backward_in_stages;
mod backward_staged;
mod backward_tensor;
mod decode;
mod forward;
mod gradients;
mod in_stages;
mod paged;
mod paged_staged;
mod scores;
mod staged;

use perpetua_device::{KernelArg, LaunchConfig, Stream};
use perpetua_ir::back::Sm;
use perpetua_language::{KernelFn, args};

use crate::element::{Element, instance};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, ptx_of};
use crate::operand::{Operand, check};
pub use decode::{PagedAttentionKernel, Pages};
pub use gradients::AttentionBackwardKernel;

/// The most columns of a head.
const MOST_COLUMNS: usize = 256;

/// `softmax(scale Q K^T) V` for each head of each entry of a batch, without the matrix of scores in memory. Launched with four buffers: Q of
/// `[batch, heads, queries, dim]`, K and V of `[batch, key heads, keys, dim]`, and the result of Q's shape; with lengths, and with slopes, with one more in front
/// of the result.
///
/// Heads have up to 256 columns. On devices with `Capability::Stages` what [`AttentionKernel::in_stages`] takes is computed so. Sums are in `f32`: against exact arithmetic an element is off by about `(dim + keys / 64) * 2^-23` of the largest
/// value, and by the rounding of its type. A query that sees no key gets zeros. A NaN or an infinity in V may reach queries that do not see it.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{AttentionKernel, Kernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let q = device.upload(&[1.0f32, 0.0, 0.0, 1.0])?; // one head, two queries of two columns
/// let k = device.zeros::<f32>(4)?;
/// let v = device.upload(&[1.0f32, 2.0, 3.0, 6.0])?;
/// let out = device.zeros::<f32>(4)?;
/// let attention = AttentionKernel::new(1, 1, [2, 2], 2).causal();
/// attention.launch(&device.default_stream(), args![&q, &k, &v, &out])?;
/// assert_eq!(out.read()?, [1.0, 2.0, 2.0, 4.0]); // the first query sees the first key alone
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionKernel {
    batch: usize,
    heads: usize,
    key_heads: usize,
    queries: usize,
    keys: usize,
    dim: usize,
    scale: f32,
    causal: bool,
    with_lengths: bool,
    window: Option<usize>,
    cap: Option<f32>,
    with_slopes: bool,
    with_logs: bool,
    element: Element,
    in_stages: bool,
}

impl AttentionKernel {
    /// For a batch of so many entries, each of `heads` heads with `[queries, keys]` rows of `dim` columns. Scores are divided by the root of
    /// `dim`.
    pub fn new(batch: usize, heads: usize, [queries, keys]: [usize; 2], dim: usize) -> AttentionKernel {
        AttentionKernel {
            batch,
            heads,
            key_heads: heads,
            queries,
            keys,
            dim,
            scale: 1.0 / (dim.max(1) as f32).sqrt(),
            causal: false,
            with_lengths: false,
            window: None,
            cap: None,
            with_slopes: false,
            with_logs: false,
            element: Element::F32,
            in_stages: false,
        }
    }

    /// Fewer heads of keys and values: neighbouring heads of queries share one, as many as there are for each. They must divide the heads.
    pub fn with_key_heads(mut self, key_heads: usize) -> AttentionKernel {
        self.key_heads = key_heads;
        self
    }

    /// A query sees the keys up to its own place, counted from the end: query i sees key j where `j <= i + keys - queries`.
    pub fn causal(mut self) -> AttentionKernel {
        self.causal = true;
        self
    }

    /// What products of queries and keys are multiplied with.
    pub fn with_scale(mut self, scale: f32) -> AttentionKernel {
        self.scale = scale;
        self
    }

    /// Entries of different lengths: launches take one buffer of `u32` more, of `[batch, 2]`, with the queries and keys that each entry has. Rows
    /// beyond them are neither read nor written.
    pub fn with_lengths(mut self) -> AttentionKernel {
        self.with_lengths = true;
        self
    }

    /// A sliding window: a query sees no key that is so many or more before its own place, so that with [`AttentionKernel::causal`] it sees that many, its own among them.
    pub fn with_window(mut self, keys: usize) -> AttentionKernel {
        self.window = Some(keys);
        self
    }

    /// Scores `s` become `cap * tanh(s / cap)`: a bound for them, a positive number.
    pub fn with_soft_cap(mut self, cap: f32) -> AttentionKernel {
        self.cap = Some(cap);
        self
    }

    /// Scores fall with the distance (ALiBi): launches take one buffer of `f32` more, right in front of the result, with a slope for each head. Key `j` adds `slope * (j - i - keys + queries)` to
    /// the score of query `i`.
    pub fn with_slopes(mut self) -> AttentionKernel {
        self.with_slopes = true;
        self
    }

    /// Launches take one buffer of `f32` more, behind the result: the logarithm of the sum of the exponentials of its scores for each query of each head, by which
    /// [`AttentionKernel::backward`] computes gradients; -inf where a query sees no key.
    pub fn with_logs(mut self) -> AttentionKernel {
        self.with_logs = true;
        self
    }

    /// The type of what is read and written, `f32` unless said otherwise.
    pub fn with_element(mut self, element: Element) -> AttentionKernel {
        self.element = element;
        self
    }

    /// By products in stages (`Capability::Stages`), which without this are taken where the device and the rest allow it:
    /// [`Element::F16`] or [`Element::Bf16`], heads of 64, 128 or 256 columns, no lengths, buffers that begin at multiples of 16 bytes. Else a launch
    /// says what is not so. A scale that is no positive number is left to the other kernel.
    ///
    /// With this, entries may have lengths, too. Keys are read 128 at a time (64 with 256 columns): a NaN or an infinity of V beyond an entry's length, but among the keys of the shape, may then reach its
    /// queries.
    ///
    /// Weights are rounded to the type of the values before they are multiplied with them: against exact arithmetic an element is off by up to `2^-12` (`F16`) or
    /// `2^-9` (`Bf16`) of the largest value more.
    pub fn in_stages(mut self) -> AttentionKernel {
        self.in_stages = true;
        self
    }

    /// How far a query sees, in keys: no further than all of them.
    fn window_of(&self) -> usize {
        let all = self.queries.saturating_add(self.keys);
        self.window.map_or(all, |window| window.min(all))
    }

    /// The buffers of a launch, with those that it may leave out.
    fn all_buffers<'a>(
        &self,
        args: &[KernelArg<'a>],
        no_lengths: KernelArg<'a>,
        no_slopes: KernelArg<'a>,
        no_logs: Option<KernelArg<'a>>,
    ) -> Vec<KernelArg<'a>> {
        let mut all = args.to_vec();
        if !self.with_lengths {
            all.insert(3, no_lengths);
        }
        if !self.with_slopes {
            all.insert(4, no_slopes);
        }
        if !self.with_logs {
            all.extend(no_logs);
        }
        all
    }

    /// A launch of which a block has so many queries of a head.
    fn config(&self, queries: usize, lanes: u32) -> LaunchConfig {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let tiles = number(self.queries.div_ceil(queries));
        LaunchConfig::new([tiles, number(self.heads), number(self.batch)], lanes)
    }

    fn operands(&self, kernel: &'static str) -> Result<Vec<Operand>> {
        let range = |what, found, needed| Error::Range {
            kernel,
            what,
            found,
            needed,
        };
        if self.dim > MOST_COLUMNS {
            return Err(range(
                "a head's number of columns",
                self.dim,
                "at most 256".into(),
            ));
        }
        if self.key_heads == 0 || !self.heads.is_multiple_of(self.key_heads) {
            let needed = format!("a divisor of the {} heads", self.heads);
            return Err(range("the number of key heads", self.key_heads, needed));
        }
        let rows = |name, heads: usize, rows: usize| {
            let all = self.batch.checked_mul(heads).and_then(|n| n.checked_mul(rows));
            let all = all.ok_or_else(|| Error::TooLarge {
                kernel,
                operand: name,
                shape: format!("[{}, {heads}, {rows}, {}]", self.batch, self.dim),
            });
            all.map(|all| Operand::dense(name, all, self.dim))
        };
        let mut all = vec![
            rows("Q", self.heads, self.queries)?,
            rows("K", self.key_heads, self.keys)?,
            rows("V", self.key_heads, self.keys)?,
        ];
        if self.with_lengths {
            all.push(Operand::dense("lengths", self.batch, 2));
        }
        if self.with_slopes {
            all.push(Operand::vector("slopes", self.heads));
        }
        if let Some(cap) = self.cap.filter(|cap| !(*cap > 0.0 && cap.is_finite())) {
            return Err(Error::Cap { kernel, cap });
        }
        all.push(rows("result", self.heads, self.queries)?);
        if self.with_logs {
            all.push(Operand::vector("logs", self.batch * self.heads * self.queries));
        }
        Ok(all)
    }
}

impl Kernel for AttentionKernel {
    fn function(&self) -> KernelFn {
        let element = self.element;
        match (self.dim, self.causal) {
            (0..=64, false) => instance!(element, forward::attention, 1, false),
            (0..=64, true) => instance!(element, forward::attention, 1, true),
            (65..=128, false) => instance!(element, forward::attention, 2, false),
            (65..=128, true) => instance!(element, forward::attention, 2, true),
            (_, false) => instance!(element, forward::attention, 4, false),
            (_, true) => instance!(element, forward::attention, 4, true),
        }
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        match (self.in_stages, self.instance_in_stages(), sm) {
            // The text is what CUDA runs. SAFETY: nothing is launched here; what launches it says why it may.
            (true, Some(function), 90) => ptx_of(unsafe { function.unchecked() }, Sm::of_device(9, 0)),
            _ => ptx_of(self.function(), sm),
        }
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let function = self.function();
        check(function.name(), &self.operands(function.name())?, args)?;
        let config = self.config(forward::TILE, 256);
        if config.lanes() == 0 || self.dim == 0 {
            return Ok(());
        }
        if self.takes_stages(stream, args) {
            return self.launch_in_stages(stream, args);
        }
        let group = self.heads / self.key_heads;
        let mut all = args![
            self.queries,
            self.keys,
            self.dim,
            self.heads,
            group,
            self.scale,
            self.window_of(),
            self.cap.unwrap_or(0.0)
        ]
        .to_vec();
        // Without lengths, slopes or logarithms there is a buffer of none.
        let (no_lengths, none) = (stream.device().alloc::<u32>(0)?, stream.device().alloc::<f32>(0)?);
        all.extend(self.all_buffers(args, no_lengths.arg(), none.arg(), Some(none.arg())));
        Ok(stream.launch(&function, config, &all)?)
    }
}
