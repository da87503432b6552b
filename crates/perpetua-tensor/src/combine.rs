//! Combinations along axes that the host computes, in the order and bits of kernels: of large tensors of the CPU whose values are known, which nothing fuses with. Must not know tables.

use std::panic::Location;

use bytemuck::AnyBitPattern;
use perpetua_device::BackendKind;
use smallvec::{SmallVec, smallvec};

use crate::dtype::DType;
use crate::node::{Function, HostValues, OnHost, Op, Tensor};
use crate::order::{LANES, Order, Parts, Reduction};
use crate::shape::{Shape, reduced};

/// Smaller tensors are left to kernels.
const LARGE: usize = 16_384;
/// So many columns are combined at a time.
const ABREAST: usize = 64;

/// Elements as rows of `along` times `inner`, which are combined along `along`, at once or in parts that are combined then.
struct Combine {
    how: Reduction,
    kept: Shape,
    dtype: DType,
    along: usize,
    inner: usize,
    part: usize,
    lanes: [usize; 2],
}

impl Function for Combine {
    fn name(&self) -> &'static str {
        self.how.name()
    }

    fn result(&self, _: &[Tensor]) -> Result<(Vec<usize>, DType), String> {
        Ok((self.kept.to_vec(), self.dtype))
    }

    fn on_host(&self) -> Option<&dyn OnHost> {
        Some(self)
    }
}

impl OnHost for Combine {
    fn compute(&self, operands: &[HostValues<'_>]) -> Result<Vec<u8>, String> {
        let Some(x) = operands.first() else {
            return Ok(Vec::new());
        };
        macro_rules! integers {
            ($from:ty, $ty:ty) => {
                self.by::<$from, $ty>(
                    &x.seen(),
                    self.how.identity(self.dtype) as $ty,
                    |x| x as $ty,
                    |a, b| a.wrapping_add(b),
                    |a, b| a.wrapping_mul(b),
                    |a, b| a.max(b),
                    |a, b| a.min(b),
                )
            };
        }
        macro_rules! floats {
            ($ty:ty, $identity:expr) => {
                self.by::<$ty, $ty>(
                    &x.seen(),
                    $identity,
                    |x| x,
                    |a, b| a + b,
                    |a, b| a * b,
                    |a, b| if a >= b || a.is_nan() { a } else { b },
                    |a, b| if a <= b || a.is_nan() { a } else { b },
                )
            };
        }
        let identity = self.how.identity(self.dtype);
        Ok(match (x.dtype, self.dtype) {
            (DType::F32, _) => floats!(f32, f32::from_bits(identity as u32)),
            (DType::F64, _) => floats!(f64, f64::from_bits(identity)),
            (DType::Bool, _) | (DType::U8, DType::I32) => integers!(u8, i32),
            (DType::I32, _) => integers!(i32, i32),
            (DType::U32, _) => integers!(u32, u32),
            (DType::I64, _) => integers!(i64, i64),
            _ => integers!(u64, u64),
        })
    }
}

impl Combine {
    #[expect(clippy::too_many_arguments, reason = "an operator each")]
    fn by<F: AnyBitPattern, T: Copy + bytemuck::NoUninit>(
        &self,
        values: &[F],
        identity: T,
        wide: impl Fn(F) -> T + Copy,
        sum: impl Fn(T, T) -> T + Copy,
        product: impl Fn(T, T) -> T + Copy,
        high: impl Fn(T, T) -> T + Copy,
        low: impl Fn(T, T) -> T + Copy,
    ) -> Vec<u8> {
        let found = match self.how {
            Reduction::Sum => self.all(values, identity, wide, sum),
            Reduction::Product => self.all(values, identity, wide, product),
            Reduction::Max => self.all(values, identity, wide, high),
            Reduction::Min => self.all(values, identity, wide, low),
        };
        bytemuck::cast_slice(&found).to_vec()
    }

    fn all<F: AnyBitPattern, T: Copy>(
        &self,
        values: &[F],
        identity: T,
        wide: impl Fn(F) -> T + Copy,
        meet: impl Fn(T, T) -> T + Copy,
    ) -> Vec<T> {
        let mut found = Vec::new();
        for row in values.chunks_exact(self.along * self.inner) {
            // What parts give, one behind the other.
            let mut parts = Vec::new();
            for part in row.chunks(self.part * self.inner) {
                combined(
                    part,
                    [self.inner, self.lanes[0]],
                    identity,
                    wide,
                    meet,
                    &mut parts,
                );
            }
            match self.part < self.along {
                false => found.append(&mut parts),
                true => combined(
                    &parts,
                    [self.inner, self.lanes[1]],
                    identity,
                    |x| x,
                    meet,
                    &mut found,
                ),
            }
        }
        found
    }
}

// Rows of `inner` elements, combined: every so many-th in one partial result, which then meet in pairs.
fn combined<F: Copy, T: Copy>(
    values: &[F],
    [inner, lanes]: [usize; 2],
    identity: T,
    wide: impl Fn(F) -> T + Copy,
    meet: impl Fn(T, T) -> T + Copy,
    found: &mut Vec<T>,
) {
    let add = |partial: &mut [T], own: &[F]| {
        for (partial, own) in partial.iter_mut().zip(own) {
            *partial = meet(*partial, wide(*own));
        }
    };
    let mut into = |mut partial: Vec<T>, width: usize| {
        let mut left = lanes;
        while left > 1 {
            left /= 2;
            let (low, high) = partial.split_at_mut(left * width);
            for (low, high) in low.iter_mut().zip(high) {
                *low = meet(*low, *high);
            }
        }
        found.extend_from_slice(&partial[..width]);
    };
    if inner == 1 {
        let mut partial = vec![identity; lanes];
        for own in values.chunks(lanes) {
            add(&mut partial, own);
        }
        return into(partial, 1);
    }
    for column in (0..inner).step_by(ABREAST) {
        let width = ABREAST.min(inner - column);
        let mut partial = vec![identity; lanes * width];
        for (at, row) in values.chunks_exact(inner).enumerate() {
            let lane = &mut partial[at % lanes * width..][..width];
            add(lane, &row[column..column + width]);
        }
        into(partial, width);
    }
}

fn lanes(order: Order) -> usize {
    match order {
        Order::Serial => 1,
        Order::Lanes => LANES,
    }
}

impl Tensor {
    /// A combination along axes with extent 1, if the host makes it.
    pub(crate) fn combined_on_host(
        &self,
        how: Reduction,
        axes: &SmallVec<[usize; 4]>,
        at: &'static Location<'static>,
    ) -> Option<Tensor> {
        let dtype = how.result(self.dtype());
        let is_here = self.len() > LARGE && self.device().backend() == BackendKind::Cpu;
        let (&first, &last) = (axes.first()?, axes.last()?);
        let in_turn = axes.iter().zip(first..).all(|(axis, place)| *axis == place);
        let has_type = match self.dtype() {
            DType::F32 | DType::F64 | DType::I32 | DType::U32 | DType::I64 | DType::U64 => true,
            DType::Bool => dtype == DType::I32,
            _ => false,
        };
        if !(is_here && in_turn && has_type) || self.0.value().is_none() {
            return None;
        }
        let shape = self.shape();
        let kept = reduced(shape, axes, true);
        let along: usize = shape[first..=last].iter().product();
        let (part, lanes) = match Parts::of(shape, axes) {
            None => (along, [lanes(Order::of(shape, axes)), 1]),
            Some(parts) if parts.axis == first => {
                let mut whole: Shape = shape.into();
                whole[first] = parts.len;
                whole.insert(first, parts.count);
                let within: SmallVec<[usize; 4]> = axes.iter().map(|axis| axis + 1).collect();
                let mut then = reduced(&whole, &within, true);
                then[first] = parts.count;
                let rest: usize = shape[first + 1..=last].iter().product();
                let both = [
                    lanes(Order::of(&whole, &within)),
                    lanes(Order::of(&then, &[first])),
                ];
                (parts.len * rest, both)
            }
            Some(_) => return None,
        };
        let combine = Combine {
            how,
            kept: kept.clone(),
            dtype,
            along,
            inner: shape[last + 1..].iter().product(),
            part,
            lanes,
        };
        let found = crate::place::inside(at, || self.detached(at).function(combine, &[]));
        let op = Op::Joined {
            how,
            axes: axes.clone(),
        };
        let sources = smallvec![found, self.clone()];
        Some(Tensor::record(op, sources, (kept, dtype), &self.0.device, at))
    }
}
