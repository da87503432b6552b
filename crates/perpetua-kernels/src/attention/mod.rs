//! Attention: for each query the mean of values, weighed by the softmax of its products with the keys. Must not know models.

mod forward;
mod in_stages;
mod staged;

use perpetua_device::{KernelArg, LaunchConfig, Stream};
use perpetua_ir::back::Sm;
use perpetua_language::{KernelFn, args};

use crate::element::{Element, instance};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, ptx_of, unchecked};
use crate::operand::{Operand, check};

/// The most columns of a head.
const MOST_COLUMNS: usize = 256;

/// `softmax(scale Q K^T) V` for each head of each entry of a batch, without the matrix of scores in memory. Launched with four buffers: Q of
/// `[batch, heads, queries, dim]`, K and V of `[batch, key heads, keys, dim]`, and the result of Q's shape; with lengths with a fifth one in front
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

    /// The type of what is read and written, `f32` unless said otherwise.
    pub fn with_element(mut self, element: Element) -> AttentionKernel {
        self.element = element;
        self
    }

    /// By products in stages (`Capability::Stages`), which without this are taken where the device and the rest allow it and keys are a multiple of 128:
    /// [`Element::F16`] or [`Element::Bf16`], heads of 64 or 128 columns, no lengths, buffers that begin at multiples of 16 bytes. Else a launch
    /// says what is not so. A scale that is no positive number is left to the other kernel.
    ///
    /// Keys are read 128 at a time: where they are no multiple of that, a NaN or an infinity in the next head's V may reach queries of this one, too.
    ///
    /// Weights are rounded to the type of the values before they are multiplied with them: against exact arithmetic an element is off by up to `2^-12` (`F16`) or
    /// `2^-9` (`Bf16`) of the largest value more.
    pub fn in_stages(mut self) -> AttentionKernel {
        self.in_stages = true;
        self
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
        all.push(rows("result", self.heads, self.queries)?);
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
            (true, Some(function), 90) => ptx_of(unsafe { unchecked(function) }, Sm::of_device(9, 0)),
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
        let mut all = args![self.queries, self.keys, self.dim, self.heads, group, self.scale].to_vec();
        all.extend_from_slice(args);
        // Without lengths there is a buffer of none.
        let none = stream.device().alloc::<u32>(0)?;
        if !self.with_lengths {
            all.insert(all.len() - 1, none.arg());
        }
        Ok(stream.launch(&function, config, &all)?)
    }
}
