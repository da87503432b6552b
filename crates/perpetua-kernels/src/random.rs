//! Random numbers and dropout: Philox 4x32-10 (J. Salmon and others, SC 2011) of a seed, a stream and an index, the same numbers on every device, and those of tensors. Must not know what they are for.

use perpetua::prelude::*;
use perpetua_device::{KernelArg, LaunchConfig, Stream};
use perpetua_ir::math::philox::{MULTIPLIERS, ROUNDS, WEYL};
use perpetua_language::{KernelFn, args};

use crate::element::{Element, Piece, piece_instance};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, number, ptx_unchecked, unchecked_on};
use crate::operand::{Operand, check, check_held, check_type};

/// The random bits of an index: the first word of Philox's block of the counter `index`, in a stream of a seed; those of [`perpetua_ir::math::philox::philox`], whose rounds in the kernel language these are.
///
/// ```
/// // Of the authors' own test vectors: a counter and a key of nothing but zeros.
/// assert_eq!(perpetua::kernels::philox(0, 0, 0), 0x6627_e8d5);
/// ```
#[device]
pub fn philox(seed: u64, stream: u64, index: u32) -> u32 {
    let mut counter = [index, 0, stream as u32, (stream >> 32) as u32];
    let mut key = [seed as u32, (seed >> 32) as u32];
    for _ in 0..ROUNDS {
        let near = MULTIPLIERS[0] as u64 * counter[0] as u64;
        let far = MULTIPLIERS[1] as u64 * counter[2] as u64;
        counter = [
            (far >> 32) as u32 ^ counter[1] ^ key[0],
            far as u32,
            (near >> 32) as u32 ^ counter[3] ^ key[1],
            near as u32,
        ];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter[0]
}

/// From 0 to below 1: multiples of 2^-24.
#[device]
fn uniform(bits: u32) -> f32 {
    (bits >> 8) as f32 * (1.0 / 16777216.0)
}

/// Random bits of the numbers from `first` on.
#[kernel(block_size = 256, interpret)]
fn random_bits(count: usize, seed: u64, stream: u64, first: u32, y: &mut [u32]) {
    let at = global_id_x();
    if at < count {
        y[at] = philox(seed, stream, first.wrapping_add(at as u32));
    }
}

/// Uniform numbers, or normal ones by two streams (G. Box, M. Muller, 1958).
#[kernel(block_size = 256, interpret)]
fn random<M: Piece, const N: usize, const NORMAL: bool>(
    count: usize,
    seed: u64,
    stream: u64,
    first: u32,
    y: &mut [M],
) {
    let piece = global_id_x();
    if piece < count {
        let mut numbers = [0.0f32; 8];
        for j in 0..N {
            let index = first.wrapping_add((piece * N + j) as u32);
            let mut number = uniform(philox(seed, stream, index));
            if NORMAL {
                // Not 0, whose logarithm is infinite.
                let radius = ((1.0 - number).ln() * -2.0).sqrt();
                let angle = uniform(philox(seed, stream.wrapping_add(1), index)) * std::f32::consts::TAU;
                number = radius * angle.cos();
            }
            numbers[j] = number;
        }
        y[piece] = M::gather(numbers);
    }
}

/// `x` times `scale` where the uniform number of its index is not below `share`, else 0.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
fn dropout<M: Piece, const N: usize>(
    count: usize,
    seed: u64,
    stream: u64,
    first: u32,
    share: f32,
    scale: f32,
    x: &[M],
    y: &mut [M],
) {
    let piece = global_id_x();
    if piece < count {
        let mut numbers = x[piece].spread();
        for j in 0..N {
            let index = first.wrapping_add((piece * N + j) as u32);
            numbers[j] = if uniform(philox(seed, stream, index)) < share {
                0.0
            } else {
                numbers[j] * scale
            };
        }
        y[piece] = M::gather(numbers);
    }
}

/// Which numbers of which stream, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    count: usize,
    seed: u64,
    stream: u64,
    first: u32,
}

impl Numbers {
    /// Indices are 32 bits wide, and none comes twice.
    fn check(&self, kernel: &'static str) -> Result<()> {
        let most = (1u64 << 32) - u64::from(self.first);
        match self.count as u64 <= most {
            true => Ok(()),
            false => Err(Error::Range {
                kernel,
                what: "how many numbers",
                found: self.count,
                needed: format!("at most {most}: take another stream for more"),
            }),
        }
    }
}

/// What is made of random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distribution {
    Bits,
    Uniform,
    Normal,
}

/// Random numbers: Philox 4x32-10 of a seed, a stream and a number's index, so that they are the same on every device and in every order of computing. Launched with one buffer, `y`: of `u32` for bits, else of
/// the kernel's type.
///
/// These are the numbers of `perpetua::tensor::Random` with the same seed, whose calls take the streams from 0 on.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{Kernel, RandomKernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let y = device.zeros::<f32>(1000)?;
/// RandomKernel::uniform(1000, 7, 0).launch(&device.default_stream(), args![&y])?;
/// let tensor = perpetua::tensor::Random::new(7, &device).uniform([1000]);
/// assert_eq!(y.read()?, tensor.to_vec::<f32>()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomKernel {
    numbers: Numbers,
    distribution: Distribution,
    element: Element,
}

impl RandomKernel {
    fn new(distribution: Distribution, count: usize, seed: u64, stream: u64) -> RandomKernel {
        RandomKernel {
            numbers: Numbers {
                count,
                seed,
                stream,
                first: 0,
            },
            distribution,
            element: Element::F32,
        }
    }

    /// Random bits, `u32`.
    pub fn bits(count: usize, seed: u64, stream: u64) -> RandomKernel {
        RandomKernel::new(Distribution::Bits, count, seed, stream)
    }

    /// Uniform from 0 (included) to 1 (not included): multiples of 2^-24, which types of 16 bits round, to 1, too.
    pub fn uniform(count: usize, seed: u64, stream: u64) -> RandomKernel {
        RandomKernel::new(Distribution::Uniform, count, seed, stream)
    }

    /// Normally distributed with mean 0 and deviation 1, by Box and Muller's method, of this stream and the next. Other devices may round a logarithm or a cosine in another way.
    pub fn normal(count: usize, seed: u64, stream: u64) -> RandomKernel {
        RandomKernel::new(Distribution::Normal, count, seed, stream)
    }

    /// The numbers of the stream from this index on.
    pub fn starting_at(mut self, index: u32) -> RandomKernel {
        self.numbers.first = index;
        self
    }

    /// The type of what is written, `f32` unless said otherwise; bits are `u32`.
    pub fn with_element(mut self, element: Element) -> RandomKernel {
        self.element = element;
        self
    }

    fn instance(&self, pieces: bool) -> KernelFn {
        match self.distribution {
            Distribution::Bits => random_bits::kernel(),
            Distribution::Uniform => piece_instance!(self.element, pieces, random, false),
            Distribution::Normal => piece_instance!(self.element, pieces, random, true),
        }
    }
}

impl Kernel for RandomKernel {
    fn function(&self) -> KernelFn {
        self.instance(self.numbers.count.is_multiple_of(self.element.piece()))
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let name = self.function().name();
        let Numbers {
            count,
            seed,
            stream: of,
            first,
        } = self.numbers;
        self.numbers.check(name)?;
        check(name, &[Operand::vector("y", count)], args)?;
        let [y] = args else {
            // `check` has counted them.
            return Ok(());
        };
        let is_bits = self.distribution == Distribution::Bits;
        match is_bits {
            true => check_type::<u32>(name, "y", y)?,
            false => check_held(name, "y", y, self.element)?,
        }
        let unit = self.element.piece();
        let pieces = match self.element.in_pieces(y) {
            Some(pieces) if !is_bits && count.is_multiple_of(unit) => Some(pieces),
            _ => None,
        };
        let unit = if pieces.is_some() { unit } else { 1 };
        // SAFETY: a lane's place is compared with how many numbers, or whole pieces, there are, for which `check` has found room. Indices into variables are constants.
        let function = unsafe { unchecked_on(stream, self.instance(pieces.is_some())) };
        let lanes = count / unit;
        if lanes == 0 {
            return Ok(());
        }
        let all = args![lanes, seed, of, first, pieces.unwrap_or(y.clone())];
        Ok(stream.launch(
            &function,
            LaunchConfig::new(number(lanes.div_ceil(256)), 256),
            all,
        )?)
    }
}

/// Dropout: each number is 0 with a probability, else divided by one less that. Launched with two buffers: `x` and `y`, which may be the same. The gradient is the same kernel, given that of the result.
///
/// What is dropped is what `RandomKernel::uniform` with the same seed and stream has below the probability.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::kernels::{DropoutKernel, Kernel};
/// use perpetua::prelude::*;
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = device.full(1000, 3.0f32)?;
/// DropoutKernel::new(1000, 0.25, 7, 0).launch(&device.default_stream(), args![&x, &x])?;
/// let y = x.read()?;
/// assert!(y.iter().all(|y| *y == 0.0 || *y == 4.0));
/// assert!((200..300).contains(&y.iter().filter(|y| **y == 0.0).count()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DropoutKernel {
    numbers: Numbers,
    share: f32,
    element: Element,
}

impl DropoutKernel {
    /// Of so many numbers, each with this probability, by a stream of a seed.
    pub fn new(count: usize, probability: f32, seed: u64, stream: u64) -> DropoutKernel {
        DropoutKernel {
            numbers: Numbers {
                count,
                seed,
                stream,
                first: 0,
            },
            share: probability,
            element: Element::F32,
        }
    }

    /// The first number's index in the stream, 0 unless said otherwise.
    pub fn starting_at(mut self, index: u32) -> DropoutKernel {
        self.numbers.first = index;
        self
    }

    /// The type of what is read and written, `f32` unless said otherwise.
    pub fn with_element(mut self, element: Element) -> DropoutKernel {
        self.element = element;
        self
    }

    fn is_whole(&self) -> bool {
        self.numbers.count.is_multiple_of(self.element.piece())
    }
}

impl Kernel for DropoutKernel {
    fn function(&self) -> KernelFn {
        piece_instance!(self.element, self.is_whole(), dropout,)
    }

    fn ptx_for(&self, sm: u32) -> Result<String> {
        ptx_unchecked(self.function(), sm)
    }

    fn launch(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Result<()> {
        let name = self.function().name();
        let Numbers {
            count,
            seed,
            stream: of,
            first,
        } = self.numbers;
        self.numbers.check(name)?;
        if !(0.0..1.0).contains(&self.share) {
            return Err(Error::Probability {
                kernel: name,
                probability: self.share,
            });
        }
        check(
            name,
            &[Operand::vector("x", count), Operand::vector("y", count)],
            args,
        )?;
        let [x, y] = args else {
            // `check` has counted them.
            return Ok(());
        };
        check_held(name, "x", x, self.element)?;
        check_held(name, "y", y, self.element)?;
        let [in_pieces, out_pieces] =
            [x, y].map(|arg| self.element.in_pieces(arg).filter(|_| self.is_whole()));
        let (pieces, x, y) = match in_pieces.zip(out_pieces) {
            Some((x, y)) => (true, x, y),
            None => (false, x.clone(), y.clone()),
        };
        let lanes = count / if pieces { self.element.piece() } else { 1 };
        if lanes == 0 {
            return Ok(());
        }
        // SAFETY: a lane's place is compared with how many numbers, or whole pieces, there are, for which `check` has found room. Indices into variables are constants.
        let function = unsafe { unchecked_on(stream, piece_instance!(self.element, pieces, dropout,)) };
        let all = args![lanes, seed, of, first, self.share, 1.0 / (1.0 - self.share), x, y];
        Ok(stream.launch(
            &function,
            LaunchConfig::new(number(lanes.div_ceil(256)), 256),
            all,
        )?)
    }
}
