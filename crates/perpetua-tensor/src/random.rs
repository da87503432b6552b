//! Random numbers: Philox 4x32-10 of a seed, a stream and the logical index. The same numbers on every device, in every order of computing.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use perpetua_device::Device;

use crate::dtype::DType;
use crate::node::Tensor;
use crate::node::{Op, Sources};

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
    seed: u64,
    next: AtomicU64,
    device: Device,
}

impl Random {
    /// The streams of a seed, from the first on.
    pub fn new(seed: u64, device: &Device) -> Random {
        Random {
            seed,
            next: AtomicU64::new(0),
            device: device.clone(),
        }
    }

    /// Random bits, as `u32`.
    #[track_caller]
    pub fn bits(&self, shape: impl AsRef<[usize]>) -> Tensor {
        self.bits_at(shape.as_ref(), here!())
    }

    fn bits_at(&self, shape: &[usize], at: &'static Location<'static>) -> Tensor {
        let op = Op::Random {
            seed: self.seed,
            // Relaxed: only that no two calls get the same number matters.
            stream: self.next.fetch_add(1, Ordering::Relaxed),
        };
        Tensor::record(op, Sources::new(), (shape.into(), DType::U32), &self.device, at)
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
            bits.binary(perpetua_ir::ops::BinaryOp::MulHigh, &range, at)
                .cast(DType::I32)
                + low
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
