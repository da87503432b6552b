//! Quantised weights in ggml's formats, byte for byte: blocks of 32 or 256 weights with a scale each, and parts of a block with scales of
//! their own. Must not know models and their files.
//!
//! On a device, blocks lie in a `Buffer<u32>`, in the order of their bytes: `buffer.cast::<u32>()` makes one of a `Buffer<u8>`.

mod decode;
mod encode;
mod product;

use perpetua_device::{KernelArg, LaunchConfig, Stream};
use perpetua_language::{KernelFn, args};

use crate::element::{Element, instance};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::operand::{Operand, check};

/// A format of quantised weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QuantFormat {
    /// 32 weights of four bits and a scale: 18 bytes.
    Q4_0,
    /// 32 weights of eight bits and a scale: 34 bytes.
    Q8_0,
    /// 256 weights of four bits, in parts of 32 with a scale and a minimum of six bits each: 144 bytes.
    Q4K,
    /// 256 weights of five bits, in parts of 32 with a scale and a minimum of six bits each: 176 bytes.
    Q5K,
    /// 256 weights of six bits, in parts of 16 with a scale of eight bits each: 210 bytes.
    Q6K,
}

impl QuantFormat {
    /// All of them.
    pub const ALL: [QuantFormat; 5] = [
        QuantFormat::Q4_0,
        QuantFormat::Q8_0,
        QuantFormat::Q4K,
        QuantFormat::Q5K,
        QuantFormat::Q6K,
    ];

    /// Its name, as ggml has it: `Q4_K`.
    pub const fn name(self) -> &'static str {
        match self {
            QuantFormat::Q4_0 => "Q4_0",
            QuantFormat::Q8_0 => "Q8_0",
            QuantFormat::Q4K => "Q4_K",
            QuantFormat::Q5K => "Q5_K",
            QuantFormat::Q6K => "Q6_K",
        }
    }

    /// Its number in GGUF files.
    pub const fn id(self) -> u32 {
        match self {
            QuantFormat::Q4_0 => decode::Q4_0,
            QuantFormat::Q8_0 => decode::Q8_0,
            QuantFormat::Q4K => decode::Q4_K,
            QuantFormat::Q5K => decode::Q5_K,
            QuantFormat::Q6K => decode::Q6_K,
        }
    }

    /// Weights of a block.
    pub const fn weights(self) -> usize {
        match self {
            QuantFormat::Q4_0 | QuantFormat::Q8_0 => 32,
            QuantFormat::Q4K | QuantFormat::Q5K | QuantFormat::Q6K => 256,
        }
    }

    /// Bytes of a block.
    pub const fn bytes(self) -> usize {
        match self {
            QuantFormat::Q4_0 => 18,
            QuantFormat::Q8_0 => 34,
            QuantFormat::Q4K => 144,
            QuantFormat::Q5K => 176,
            QuantFormat::Q6K => 210,
        }
    }

    /// Words of 32 bits that the blocks of so many weights take: the last one may be half in use.
    ///
    /// # Errors
    /// [`Error::Blocks`] where the weights are no whole number of blocks.
    pub fn words(self, weights: usize) -> Result<usize> {
        Ok((self.blocks(weights)? * self.bytes()).div_ceil(4))
    }

    /// The words of a matrix.
    fn words_of(
        self,
        kernel: &'static str,
        name: &'static str,
        rows: usize,
        columns: usize,
    ) -> Result<usize> {
        let row = self.blocks(columns)?;
        let words = rows
            .checked_mul(row)
            .and_then(|blocks| blocks.checked_mul(self.bytes()));
        let words = words.ok_or_else(|| Error::TooLarge {
            kernel,
            operand: name,
            shape: Operand::dense(name, rows, columns).to_string(),
        })?;
        Ok(words.div_ceil(4))
    }

    /// Blocks of so many weights.
    fn blocks(self, weights: usize) -> Result<usize> {
        match weights % self.weights() {
            0 => Ok(weights / self.weights()),
            _ => Err(Error::Blocks {
                format: self.name(),
                weights,
                block: self.weights(),
            }),
        }
    }
}

/// The instance of a kernel function that is generic over the format.
macro_rules! of_format {
    ($format:expr, $kernel:path) => {{
        use $kernel as function;
        match $format {
            QuantFormat::Q4_0 => function::kernel::<{ decode::Q4_0 }>(),
            QuantFormat::Q8_0 => function::kernel::<{ decode::Q8_0 }>(),
            QuantFormat::Q4K => function::kernel::<{ decode::Q4_K }>(),
            QuantFormat::Q5K => function::kernel::<{ decode::Q5_K }>(),
            QuantFormat::Q6K => function::kernel::<{ decode::Q6_K }>(),
        }
    }};
}

/// Submits a launch of so many blocks of lanes, unless there is nothing to do.
fn submit(
    function: KernelFn,
    stream: &Stream,
    config: LaunchConfig,
    sizes: &[KernelArg<'_>],
    args: &[KernelArg<'_>],
) -> Result<()> {
    if config.lanes() == 0 {
        return Ok(());
    }
    Ok(stream.launch(&function, config, &[sizes, args].concat())?)
}

/// Makes blocks of weights, as ggml's reference quantiser does. Launched with two buffers: weights of type `f32`, and blocks of type
/// `u32`, [`QuantFormat::words`] of them.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{DequantizeKernel, Kernel, QuantFormat, QuantizeKernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let stream = device.default_stream();
/// let weights: Vec<f32> = (0..256).map(|i| i as f32 / 256.0).collect();
/// let x = device.upload(&weights)?;
/// let blocks = device.zeros::<u32>(QuantFormat::Q6K.words(256)?)?;
/// QuantizeKernel::new(QuantFormat::Q6K, 256).launch(&stream, args![&x, &blocks])?;
/// let y = device.zeros::<f32>(256)?;
/// DequantizeKernel::new(QuantFormat::Q6K, 256).launch(&stream, args![&blocks, &y])?;
/// assert!(y.read()?.iter().zip(&weights).all(|(y, x)| (y - x).abs() < 0.03));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantizeKernel {
    format: QuantFormat,
    weights: usize,
}

impl QuantizeKernel {
    /// For so many weights, which must be whole blocks.
    pub fn new(format: QuantFormat, weights: usize) -> QuantizeKernel {
        QuantizeKernel { format, weights }
    }
}

impl Kernel for QuantizeKernel {
    fn function(&self) -> KernelFn {
        of_format!(self.format, encode::quantize)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let (function, blocks) = (self.function(), self.format.blocks(self.weights)?);
        let operands = [
            Operand::vector("x", self.weights),
            Operand::vector("blocks", self.format.words(self.weights)?),
        ];
        check(function.name(), &operands, args)?;
        let config = LaunchConfig::linear(blocks.div_ceil(2), 64);
        submit(function, stream, config, args![blocks], args)
    }
}

/// Makes weights of blocks: exactly what the blocks say, rounded to the result's type. Launched with two buffers: blocks of type `u32`,
/// and weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DequantizeKernel {
    format: QuantFormat,
    weights: usize,
    element: Element,
}

impl DequantizeKernel {
    /// For so many weights, which must be whole blocks.
    pub fn new(format: QuantFormat, weights: usize) -> DequantizeKernel {
        DequantizeKernel {
            format,
            weights,
            element: Element::F32,
        }
    }

    /// The type of the weights that are written, `f32` unless said otherwise.
    pub fn with_element(mut self, element: Element) -> DequantizeKernel {
        self.element = element;
        self
    }
}

impl Kernel for DequantizeKernel {
    fn function(&self) -> KernelFn {
        match self.format {
            QuantFormat::Q4_0 => instance!(self.element, product::dequantize, { decode::Q4_0 }),
            QuantFormat::Q8_0 => instance!(self.element, product::dequantize, { decode::Q8_0 }),
            QuantFormat::Q4K => instance!(self.element, product::dequantize, { decode::Q4_K }),
            QuantFormat::Q5K => instance!(self.element, product::dequantize, { decode::Q5_K }),
            QuantFormat::Q6K => instance!(self.element, product::dequantize, { decode::Q6_K }),
        }
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let (function, blocks) = (self.function(), self.format.blocks(self.weights)?);
        let operands = [
            Operand::vector("blocks", self.format.words(self.weights)?),
            Operand::vector("y", self.weights),
        ];
        check(function.name(), &operands, args)?;
        let config = LaunchConfig::linear(self.weights / 8, 256);
        submit(function, stream, config, args![blocks], args)
    }
}

/// `y = W x` with a quantised W of `rows` x `columns`. Launched with three buffers: the blocks of W row by row (`u32`), x and y (`f32`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantGemvKernel {
    format: QuantFormat,
    rows: usize,
    columns: usize,
}

impl QuantGemvKernel {
    /// For a W of this shape; a row must be whole blocks.
    pub fn new(format: QuantFormat, rows: usize, columns: usize) -> QuantGemvKernel {
        QuantGemvKernel {
            format,
            rows,
            columns,
        }
    }
}

impl Kernel for QuantGemvKernel {
    fn function(&self) -> KernelFn {
        of_format!(self.format, product::quantized_gemv)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let function = self.function();
        let words = self
            .format
            .words_of(function.name(), "W", self.rows, self.columns)?;
        let operands = [
            Operand::vector("W", words),
            Operand::vector("x", self.columns),
            Operand::vector("y", self.rows),
        ];
        check(function.name(), &operands, args)?;
        let config = LaunchConfig::linear(32 * self.rows, 256);
        submit(function, stream, config, args![self.rows, self.columns], args)
    }
}

/// `C = A W^T` with A of m x k and C of m x n in `f32`, and a quantised W of n x k: a layer with weights W, applied to m inputs. Launched with
/// three buffers: A, the blocks of W row by row (`u32`), C.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{Kernel, QuantFormat, QuantGemmKernel, QuantizeKernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let stream = device.default_stream();
/// let w = device.full(2 * 32, 0.5f32)?;
/// let blocks = device.zeros::<u32>(QuantFormat::Q8_0.words(2 * 32)?)?;
/// QuantizeKernel::new(QuantFormat::Q8_0, 2 * 32).launch(&stream, args![&w, &blocks])?;
/// let a = device.full(3 * 32, 1.0f32)?;
/// let c = device.zeros::<f32>(3 * 2)?;
/// QuantGemmKernel::new(QuantFormat::Q8_0, 3, 2, 32).launch(&stream, args![&a, &blocks, &c])?;
/// assert!(c.read()?.iter().all(|c| (c - 16.0).abs() < 0.01));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantGemmKernel {
    format: QuantFormat,
    size: [usize; 3],
}

impl QuantGemmKernel {
    /// For these sizes; k must be whole blocks.
    pub fn new(format: QuantFormat, m: usize, n: usize, k: usize) -> QuantGemmKernel {
        QuantGemmKernel {
            format,
            size: [m, n, k],
        }
    }
}

impl Kernel for QuantGemmKernel {
    fn function(&self) -> KernelFn {
        of_format!(self.format, product::quantized_gemm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let (function, [m, n, k]) = (self.function(), self.size);
        let operands = [
            Operand::dense("A", m, k),
            Operand::vector("W", self.format.words_of(function.name(), "W", n, k)?),
            Operand::dense("C", m, n),
        ];
        check(function.name(), &operands, args)?;
        let blocks = |extent: usize| u32::try_from(extent.div_ceil(64)).unwrap_or(u32::MAX);
        let config = LaunchConfig::new((blocks(m), blocks(n)), 256);
        submit(function, stream, config, args![m, n, k], args)
    }
}
