//! Random numbers: Philox 4x32-10 of a seed, a stream and the logical index. The same numbers on every device, in every order of computing.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use perpetua_device::Device;
use perpetua_ir::math::philox;
use perpetua_ir::ops::BinaryOp;

use crate::dtype::DType;
use crate::node::{Op, Sources, Tensor};
use crate::shape::count;

/// Where random tensors come from. Each call takes the next stream, at the moment of recording.
///
/// ```
/// use perpetua_device::{BackendKind, Device};
/// use perpetua_tensor::Random;
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = Random::new(7, &device).uniform([1000]);
/// let mean = x.mean(..).to_vec::<f32>()?[0];
/// assert!((mean - 0.5).abs() < 0.05);
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct Random {
    of: Streams,
    next: AtomicU64,
    device: Device,
}

#[derive(Debug)]
enum Streams {
    /// All of a seed.
    Of(u64),
    /// One that is a value: halves of a seed and of its number.
    One(Tensor),
}

/// Words of all elements are tensors. With the line that records, and one of them.
struct Words(&'static Location<'static>, Tensor);

impl philox::Words for Words {
    type Word = Tensor;
    type Error = std::convert::Infallible;

    fn constant(&mut self, word: u32) -> Tensor {
        self.1.fixed(f64::from(word), self.0)
    }

    fn product(&mut self, a: Tensor, b: Tensor) -> Result<[Tensor; 2], Self::Error> {
        Ok([BinaryOp::MulHigh, BinaryOp::Mul].map(|op| a.binary(op, &b, self.0)))
    }

    fn sum(&mut self, a: Tensor, b: Tensor) -> Result<Tensor, Self::Error> {
        Ok(a.binary(BinaryOp::Add, &b, self.0))
    }

    fn xor(&mut self, a: Tensor, b: Tensor) -> Result<Tensor, Self::Error> {
        Ok(a.binary(BinaryOp::Xor, &b, self.0))
    }
}

impl Random {
    /// The streams of a seed, from the first on.
    pub fn new(seed: u64, device: &Device) -> Random {
        Random {
            of: Streams::Of(seed),
            next: AtomicU64::new(0),
            device: device.clone(),
        }
    }

    /// The next stream as a value, four `u32`, for functions that are recorded once: see [`Random::from_stream`].
    #[track_caller]
    pub fn stream(&self) -> Tensor {
        let at = here!();
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        crate::place::inside(at, || match &self.of {
            Streams::Of(seed) => {
                let halves = [*seed, *seed >> 32, next, next >> 32].map(|half| half as u32);
                Tensor::from_slice(&halves, [4], &self.device)
            }
            Streams::One(of) => of.refuse("stream", &[], "a stream has none in it: hand in several", at),
        })
    }

    /// The random numbers of a stream that is a value, which a compiled function gets as an operand, so that each call has others. The first tensor has the numbers that the stream would have
    /// given where it comes from, each further one the next of its draws. Each takes about a hundred operations, which fuse.
    ///
    /// ```
    /// use perpetua_device::{BackendKind, Device};
    /// use perpetua_tensor::{Random, Tensor, compile};
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let noisy = compile(|x| Ok(vec![&x[0] + Random::from_stream(&x[1]).normal([4])]));
    /// let (random, x) = (Random::new(7, &device), Tensor::from_slice(&[1.0f32; 4], [4], &device));
    /// let each = || noisy.call(&[&x, &random.stream()])?[0].to_vec::<f32>();
    /// assert_ne!(each()?, each()?);
    /// assert_eq!(noisy.captures(), 1);
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    pub fn from_stream(stream: &Tensor) -> Random {
        Random {
            of: Streams::One(stream.clone()),
            next: AtomicU64::new(0),
            device: stream.device().clone(),
        }
    }

    /// Random bits, as `u32`.
    #[track_caller]
    pub fn bits(&self, shape: impl AsRef<[usize]>) -> Tensor {
        self.bits_at(shape.as_ref(), here!())
    }

    fn bits_at(&self, shape: &[usize], at: &'static Location<'static>) -> Tensor {
        // Relaxed: only that no two calls get the same number matters.
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        match &self.of {
            Streams::Of(seed) => {
                let op = Op::Random {
                    seed: *seed,
                    stream: next,
                };
                Tensor::record(op, Sources::new(), (shape.into(), DType::U32), &self.device, at)
            }
            Streams::One(stream) => crate::place::inside(at, || drawn(stream, next, shape, at)),
        }
    }

    /// Uniform from 0 (included) to 1 (not included), as `f32`: multiples of 2^-24.
    #[track_caller]
    pub fn uniform(&self, shape: impl AsRef<[usize]>) -> Tensor {
        let at = here!();
        crate::place::inside(at, || {
            self.bits_at(shape.as_ref(), at).right_shift(8).cast(DType::F32) * (1.0 / f64::from(1 << 24))
        })
    }

    /// Normally distributed with mean 0 and deviation 1, as `f32`, by Box and Muller's method.
    #[track_caller]
    pub fn normal(&self, shape: impl AsRef<[usize]>) -> Tensor {
        let at = here!();
        let shape = shape.as_ref();
        crate::place::inside(at, || {
            // Not 0, whose logarithm is infinite.
            let radius = ((1.0 - self.uniform(shape)).log() * -2.0).sqrt();
            let angle = self.uniform(shape) * std::f64::consts::TAU;
            radius * angle.cos()
        })
    }

    /// Integers from `low` to `high`, which is not among them, as `i32`; `low` everywhere if there are none. By multiplication, so that a
    /// range of `n` numbers prefers some by `n` in 2^32.
    #[track_caller]
    pub fn integers(&self, low: i32, high: i32, shape: impl AsRef<[usize]>) -> Tensor {
        let at = here!();
        crate::place::inside(at, || {
            let range = i64::from(high).saturating_sub(i64::from(low)).max(0) as u32;
            let bits = self.bits_at(shape.as_ref(), at);
            let range = crate::Operand::from(range).like(&bits, at);
            bits.binary(BinaryOp::MulHigh, &range, at).cast(DType::I32) + low
        })
    }

    /// The numbers below `count` in random order, as `i32`: the order of as many random bits. Of two whose 32 bits are equal (a pair in 2^32) the smaller
    /// one comes first. [`Tensor::index_select`] brings elements into that order.
    ///
    /// ```
    /// use perpetua_device::{BackendKind, Device};
    /// use perpetua_tensor::Random;
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let mut order = Random::new(7, &device).permutation(100).to_vec::<i32>()?;
    /// assert!(!order.is_sorted());
    /// order.sort();
    /// assert_eq!(order, (0..100).collect::<Vec<i32>>());
    /// # Ok::<(), perpetua_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn permutation(&self, count: usize) -> Tensor {
        let at = here!();
        crate::place::inside(at, || self.bits_at(&[count], at).argsort(0, false))
    }
}

// The same bits as of a recorded stream, by operations.
fn drawn(stream: &Tensor, draw: u64, shape: &[usize], at: &'static Location<'static>) -> Tensor {
    let most = i32::MAX as usize;
    if stream.dtype() != DType::U32
        || stream.shape() != [4]
        || draw > u64::from(u32::MAX)
        || count(shape) > most
    {
        let rule = format!(
            "a stream is what `Random::stream` gives, four `u32`, and each tensor of it has at most {most} elements"
        );
        return stream.refuse("random", &[], rule, at);
    }
    let all = [count(shape)];
    let half = |number: isize| stream.part_of(0, number..number + 1).expanded(&all, at);
    let index = Tensor::coordinates(all, 0, stream.device()).cast(DType::U32);
    let mut words = Words(at, index.clone());
    let place = [index, philox::Words::constant(&mut words, draw as u32)];
    let Ok(bits) = philox::philox_of(&mut words, place, [half(0), half(1)], [half(2), half(3)]);
    bits.reshaped(shape, at)
}
