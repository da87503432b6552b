//! Fourier transforms of rows that the host computes, by `rustfft`: on the CPU in the place of products with matrices. Must not know tables.

use std::sync::{Arc, Mutex, PoisonError};

use num_complex::Complex;
use perpetua_device::BackendKind;
use realfft::{RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};

use crate::dtype::DType;
use crate::node::{Function, HostValues, OnHost, Tensor};
use crate::numbers::Number;
use crate::shape::Shape;

/// So many plans are kept; with one more all are made anew.
const PLANS: usize = 32;

/// Rows are transformed, each of which is what the shape has in its last axis, or last two.
#[derive(Clone, Copy)]
pub(crate) enum Transform {
    /// Pairs, to as many, or back, not divided by the length.
    Pairs { back: bool },
    /// Real numbers, to half the pairs and one, of which the others are the mirror.
    Real,
}

/// Plans for one type.
struct Plans<T: FftNum> {
    pairs: FftPlanner<T>,
    real: RealFftPlanner<T>,
    lengths: Vec<usize>,
}

/// A type whose rows are transformed.
trait Wave: Number + FftNum {
    /// All plans. Those who wait for a new one wait for a fraction of a transform.
    fn plans() -> &'static Mutex<Option<Plans<Self>>>;

    fn planned<P>(n: usize, plan: impl FnOnce(&mut Plans<Self>) -> P) -> P {
        // What is under the lock is whole, or none.
        let mut kept = Self::plans().lock().unwrap_or_else(PoisonError::into_inner);
        let mut plans = kept
            .take()
            .filter(|plans| plans.lengths.len() < PLANS)
            .unwrap_or_else(|| Plans {
                pairs: FftPlanner::new(),
                real: RealFftPlanner::new(),
                lengths: Vec::new(),
            });
        if !plans.lengths.contains(&n) {
            plans.lengths.push(n);
        }
        let found = plan(&mut plans);
        *kept = Some(plans);
        found
    }
}

macro_rules! waves {
    ($($ty:ty)*) => { $(
        impl Wave for $ty {
            fn plans() -> &'static Mutex<Option<Plans<$ty>>> {
                static PLANS: Mutex<Option<Plans<$ty>>> = Mutex::new(None);
                &PLANS
            }
        }
    )* };
}
waves!(f32 f64);

impl Function for Transform {
    fn name(&self) -> &'static str {
        match self {
            Transform::Pairs { back: false } => "fft",
            Transform::Pairs { back: true } => "ifft",
            Transform::Real => "rfft",
        }
    }

    fn result(&self, operands: &[Tensor]) -> Result<(Vec<usize>, DType), String> {
        let Some(x) = operands.first() else {
            return Err("it takes a tensor".into());
        };
        let mut shape = x.shape().to_vec();
        if let (Transform::Real, Some(last)) = (self, shape.last_mut()) {
            *last = *last / 2 + 1;
            shape.push(2);
        }
        Ok((shape, x.dtype()))
    }

    fn on_host(&self) -> Option<&dyn OnHost> {
        Some(self)
    }

    // Of pairs that of a transform in the other direction: the matrix is its own mirror, and that of the other one conjugated.
    fn gradient(&self, operands: &[Tensor], _: &Tensor, gradient: &Tensor) -> Option<Vec<Option<Tensor>>> {
        let at = here!();
        Some(vec![Some(match self {
            Transform::Pairs { back } => gradient.function(Transform::Pairs { back: !back }, &[]),
            Transform::Real => {
                // The pairs that are not given count as zeros; of the result the first of each pair.
                let rank = gradient.rank();
                let mut whole: Shape = gradient.shape().into();
                whole[rank - 2] = *operands.first()?.shape().last()?;
                let (starts, steps) = whole.iter().map(|_| (0, 1)).unzip();
                let all = gradient.padded(starts, steps, &whole, 0, at);
                let back = all.function(Transform::Pairs { back: true }, &[]);
                back.part_of(rank - 1, ..1)
                    .reshaped(operands.first()?.shape(), at)
            }
        })])
    }

    fn is_for_each(&self) -> bool {
        true
    }
}

impl OnHost for Transform {
    fn compute(&self, operands: &[HostValues<'_>]) -> Result<Vec<u8>, String> {
        match operands {
            [x] if x.dtype == DType::F64 => self.of::<f64>(x),
            [x] => self.of::<f32>(x),
            _ => Ok(Vec::new()),
        }
    }
}

impl Transform {
    fn of<T: Wave>(self, x: &HostValues<'_>) -> Result<Vec<u8>, String>
    where
        Complex<T>: bytemuck::Pod,
    {
        match (self, x.shape) {
            (Transform::Pairs { back }, &[.., n, 2]) => {
                let direction = match back {
                    false => FftDirection::Forward,
                    true => FftDirection::Inverse,
                };
                let plan: Arc<dyn Fft<T>> = T::planned(n, |plans| plans.pairs.plan_fft(n, direction));
                let mut all = x.values::<Complex<T>>();
                let some = n * crate::spread::at_once(n * size_of::<Complex<T>>());
                crate::spread::each(x.bytes.len(), all.chunks_mut(some), |rows| plan.process(rows));
                Ok(bytemuck::cast_slice(&all).to_vec())
            }
            (Transform::Real, &[.., n]) => {
                let plan: Arc<dyn RealToComplex<T>> = T::planned(n, |plans| plans.real.plan_fft_forward(n));
                let (all, half) = (x.seen::<T>(), n / 2 + 1);
                let mut found = vec![Complex::new(T::zero(), T::zero()); all.len() / n * half];
                let some = crate::spread::at_once(n * size_of::<T>());
                let pieces = all.chunks(some * n).zip(found.chunks_mut(some * half));
                crate::spread::each(x.bytes.len(), pieces, |(rows, found)| {
                    let (mut own, mut scratch) = (plan.make_input_vec(), plan.make_scratch_vec());
                    for (row, found) in rows.chunks_exact(n).zip(found.chunks_exact_mut(half)) {
                        own.copy_from_slice(row);
                        // Lengths are those of the plan.
                        let _ = plan.process_with_scratch(&mut own, found, &mut scratch);
                    }
                });
                Ok(bytemuck::cast_slice(&found).to_vec())
            }
            _ => Err("complex numbers are pairs along the last axis".into()),
        }
    }
}

impl Tensor {
    /// Whether the host transforms its rows.
    pub(crate) fn is_transformed_by_host(&self) -> bool {
        self.device().backend() == BackendKind::Cpu && matches!(self.dtype(), DType::F32 | DType::F64)
    }
}
