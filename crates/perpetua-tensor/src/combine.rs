//! Combinations along axes that the host computes, in the order and bits of kernels: of large tensors of the CPU whose values are known, which nothing fuses with. Must not know tables.

use std::hint::select_unpredictable;
use std::panic::Location;

use bytemuck::AnyBitPattern;
use perpetua_device::BackendKind;
use perpetua_ir::ops::BinaryOp;
use smallvec::{SmallVec, smallvec};

use crate::dtype::DType;
use crate::node::{Function, HostValues, OnHost, Op, Tensor};
use crate::order::{LANES, Order, Parts, Reduction};
use crate::shape::{Shape, reduced};
use crate::widest::widest;

/// Smaller tensors are left to kernels.
const LARGE: usize = 16_384;
/// So many columns are combined at a time.
const ABREAST: usize = 512;
/// So many partial results are in registers at a time.
const REGISTERS: usize = 64;

/// Elements as rows of `along` times `inner`, which are combined along `along`, at once or in parts that are combined then.
struct Combine {
    how: Reduction,
    kept: Shape,
    dtype: DType,
    along: usize,
    inner: usize,
    part: usize,
    lanes: [usize; 2],
    /// Whether it is a sum of products, whose factors are the operands. The second one may have a row alone, which is that of all.
    of_products: bool,
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
                    |a, b| select_unpredictable((a >= b) | a.is_nan(), a, b),
                    |a, b| select_unpredictable((a <= b) | a.is_nan(), a, b),
                )
            };
        }
        let identity = self.how.identity(self.dtype);
        if let (true, Some(y)) = (self.of_products, operands.get(1)) {
            return Ok(match x.dtype {
                DType::F32 => self.products::<f32>([&x.seen(), &y.seen()], f32::from_bits(identity as u32)),
                _ => self.products::<f64>([&x.seen(), &y.seen()], f64::from_bits(identity)),
            });
        }
        Ok(match (x.dtype, self.dtype) {
            (DType::F32, _) => floats!(f32, f32::from_bits(identity as u32)),
            (DType::F64, _) => floats!(f64, f64::from_bits(identity)),
            (DType::Bool, _) if self.inner == 1 && self.how == Reduction::Sum => {
                let rows = x.bytes.chunks_exact(self.along);
                let counts: Vec<i32> = rows.map(truths).collect();
                bytemuck::cast_slice(&counts).to_vec()
            }
            (DType::Bool, _) => integers!(u8, i32),
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
            Reduction::Sum => self.all(
                values,
                Way {
                    identity,
                    wide,
                    meet: sum,
                },
            ),
            Reduction::Product => self.all(
                values,
                Way {
                    identity,
                    wide,
                    meet: product,
                },
            ),
            Reduction::Max => self.all(
                values,
                Way {
                    identity,
                    wide,
                    meet: high,
                },
            ),
            Reduction::Min => self.all(
                values,
                Way {
                    identity,
                    wide,
                    meet: low,
                },
            ),
        };
        bytemuck::cast_slice(&found).to_vec()
    }

    fn all<F: AnyBitPattern, T: Copy>(
        &self,
        values: &[F],
        way: Way<T, impl Fn(F) -> T + Copy, impl Fn(T, T) -> T + Copy>,
    ) -> Vec<T> {
        let mut found = Vec::new();
        for row in values.chunks_exact(self.along * self.inner) {
            // What parts give, one behind the other.
            let mut parts = Vec::new();
            for part in row.chunks(self.part * self.inner) {
                combined(part, [self.inner, self.lanes[0]], way, &mut parts);
            }
            self.join(parts, way.identity, way.meet, &mut found);
        }
        found
    }

    fn join<T: Copy>(
        &self,
        mut parts: Vec<T>,
        identity: T,
        meet: impl Fn(T, T) -> T + Copy,
        found: &mut Vec<T>,
    ) {
        let way = Way {
            identity,
            wide: |x| x,
            meet,
        };
        match self.part < self.along {
            false => found.append(&mut parts),
            true => combined(&parts, [self.inner, self.lanes[1]], way, found),
        }
    }

    // Sums of products along the last axes.
    fn products<T: Copy + std::ops::Add<Output = T> + std::ops::Mul<Output = T> + bytemuck::NoUninit>(
        &self,
        [x, y]: [&[T]; 2],
        identity: T,
    ) -> Vec<u8> {
        let way = Way {
            identity,
            wide: |x| x,
            meet: |a, b| a + b,
        };
        let (mut found, mut both) = (Vec::new(), Vec::with_capacity(self.part));
        for (x, y) in x.chunks_exact(self.along).zip(y.chunks_exact(self.along).cycle()) {
            let mut parts = Vec::new();
            for (x, y) in x.chunks(self.part).zip(y.chunks(self.part)) {
                both.clear();
                times(x, y, &mut both);
                combined(&both, [1, self.lanes[0]], way, &mut parts);
            }
            self.join(parts, identity, way.meet, &mut found);
        }
        bytemuck::cast_slice(&found).to_vec()
    }
}

/// How elements are combined: what is before them, what becomes of each, and what two of them give.
#[derive(Clone, Copy)]
struct Way<T, W, M> {
    identity: T,
    wide: W,
    meet: M,
}

// Rows of `inner` elements, combined: every so many-th in one partial result, which then meet in pairs.
fn combined<F: Copy, T: Copy>(
    values: &[F],
    [inner, lanes]: [usize; 2],
    way: Way<T, impl Fn(F) -> T + Copy, impl Fn(T, T) -> T + Copy>,
    found: &mut Vec<T>,
) {
    match (inner, lanes) {
        (1, LANES) => found.push(in_lanes(values, way)),
        (1, _) => found.push(
            values
                .iter()
                .fold(way.identity, |so_far, own| (way.meet)(so_far, (way.wide)(*own))),
        ),
        _ => {
            for column in (0..inner).step_by(ABREAST) {
                let mut all = [way.identity; ABREAST];
                let own = &mut all[..ABREAST.min(inner - column)];
                in_columns(values, [inner, column, lanes], [0, 1], way, own);
                found.extend_from_slice(own);
            }
        }
    }
}

widest! {
    fn times[T: Copy + std::ops::Mul<Output = T>](x: &[T], y: &[T], both: &mut Vec<T>) -> () {
        both.extend(x.iter().zip(y).map(|(x, y)| *x * *y));
    }

    // How many are true. The order in which integers are added makes no difference.
    fn truths[](all: &[u8]) -> i32 {
        const ABREAST: usize = 256;
        let mut found = 0i32;
        // So many that sums fit in bytes.
        for part in all.chunks(ABREAST * 255) {
            let (rows, rest) = part.as_chunks::<ABREAST>();
            let mut sums = [0u8; ABREAST];
            for row in rows {
                for (sum, own) in sums.iter_mut().zip(row) {
                    *sum += own;
                }
            }
            found += sums.iter().chain(rest).map(|own| i32::from(*own)).sum::<i32>();
        }
        found
    }

    // A row in `LANES` partial results.
    fn in_lanes[F: Copy, T: Copy, W: Fn(F) -> T + Copy, M: Fn(T, T) -> T + Copy](values: &[F], way: Way<T, W, M>) -> T {
        let mut partial = [way.identity; LANES];
        let (rows, rest) = values.as_chunks::<LANES>();
        // So many at a time stay in registers.
        let (blocks, _) = partial.as_chunks_mut::<REGISTERS>();
        for (place, block) in blocks.iter_mut().enumerate() {
            let mut own = *block;
            for row in rows {
                for (at, own) in own.iter_mut().enumerate() {
                    *own = (way.meet)(*own, (way.wide)(row[place * REGISTERS + at]));
                }
            }
            *block = own;
        }
        for (partial, own) in partial.iter_mut().zip(rest) {
            *partial = (way.meet)(*partial, (way.wide)(*own));
        }
        let mut left = LANES;
        while left > 1 {
            left /= 2;
            let (low, high) = partial.split_at_mut(left);
            for (low, high) in low.iter_mut().zip(high) {
                *low = (way.meet)(*low, *high);
            }
        }
        partial[0]
    }

    // Columns, from one on: the partial result `lane` of `left` that are left where those beyond have met, which is made of this one and the one `left` further of twice as many.
    fn in_columns[F: Copy, T: Copy, W: Fn(F) -> T + Copy, M: Fn(T, T) -> T + Copy](
        values: &[F],
        place: [usize; 3],
        meeting: [usize; 2],
        way: Way<T, W, M>,
        own: &mut [T],
    ) -> () {
        let ([inner, column, lanes], [lane, left]) = (place, meeting);
        if left < lanes {
            let (mut first, mut second) = ([way.identity; ABREAST], [way.identity; ABREAST]);
            let (first, second) = (&mut first[..own.len()], &mut second[..own.len()]);
            in_columns(values, place, [lane, 2 * left], way, first);
            in_columns(values, place, [lane + left, 2 * left], way, second);
            for (own, (first, second)) in own.iter_mut().zip(first.iter().zip(second)) {
                *own = (way.meet)(*first, *second);
            }
            return;
        }
        let mut rows = values.chunks_exact(inner).skip(lane).step_by(lanes).map(|row| &row[column..]);
        // Two at a time: what is chosen of memory and one other value is stored in part, which is slow.
        while let Some(first) = rows.next() {
            match rows.next() {
                Some(second) => {
                    for (own, (first, second)) in own.iter_mut().zip(first.iter().zip(second)) {
                        *own = (way.meet)((way.meet)(*own, (way.wide)(*first)), (way.wide)(*second));
                    }
                }
                None => {
                    for (own, first) in own.iter_mut().zip(first) {
                        *own = (way.meet)(*own, (way.wide)(*first));
                    }
                }
            }
        }
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
        if !(is_here && in_turn && has_type) {
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
        let inner: usize = shape[last + 1..].iter().product();
        let factors = match self.0.value() {
            Some(_) => None,
            None => Some(
                self.known_factors(along)
                    .filter(|_| how == Reduction::Sum && inner == 1)?,
            ),
        };
        let combine = Combine {
            how,
            kept: kept.clone(),
            dtype,
            along,
            inner,
            part,
            lanes,
            of_products: factors.is_some(),
        };
        let found = crate::place::inside(at, || match &factors {
            None => self.detached(at).function(combine, &[]),
            Some([x, y]) => x.detached(at).function(combine, &[&y.detached(at)]),
        });
        let op = Op::Joined {
            how,
            axes: axes.clone(),
        };
        let sources = smallvec![found, self.clone()];
        Some(Tensor::record(op, sources, (kept, dtype), &self.0.device, at))
    }

    // Of products of floats the factors, if their values are known: the second one as it is, or the one row that is repeated.
    fn known_factors(&self, row: usize) -> Option<[Tensor; 2]> {
        let is_float = matches!(self.dtype(), DType::F32 | DType::F64);
        let sources = self.0.sources();
        let ([x, y], Op::Binary(BinaryOp::Mul), true) = (&sources[..], &self.0.op, is_float) else {
            return None;
        };
        let is_known = |of: &Tensor| of.0.value().is_some();
        let repeated = |of: &Tensor| -> Option<Tensor> {
            let mut of = of.clone();
            while !is_known(&of) && matches!(of.0.op, Op::Expand | Op::Reshape) {
                let below = of.0.sources().first()?.clone();
                // A row is repeated by the axes in front alone.
                let is_last = |shape: &[usize]| shape.last() == Some(&row);
                if !is_last(of.shape()) || !is_last(below.shape()) {
                    return None;
                }
                of = below;
            }
            (is_known(&of) && of.len() == row).then_some(of)
        };
        match (is_known(x), is_known(y)) {
            (true, true) => Some([x.clone(), y.clone()]),
            (true, false) => Some([x.clone(), repeated(y)?]),
            (false, true) => Some([y.clone(), repeated(x)?]),
            _ => None,
        }
    }
}
