//! Combinations along axes that the host computes, in the order and bits of kernels: of large tensors of the CPU whose values are known, which nothing fuses with. Must not know tables.

use std::ops::Range;
use std::panic::Location;

use bytemuck::AnyBitPattern;
use perpetua_device::BackendKind;
use perpetua_ir::ops::BinaryOp;
use smallvec::{SmallVec, smallvec};

use crate::dtype::DType;
use crate::node::{Function, HostValues, OnHost, Op, Tensor};
use crate::numbers::Number;
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
        if let (true, Some(y)) = (self.of_products, operands.get(1)) {
            return Ok(match x.dtype {
                DType::F32 => self.products::<f32>([&x.seen(), &y.seen()]),
                _ => self.products::<f64>([&x.seen(), &y.seen()]),
            });
        }
        Ok(match x.dtype {
            DType::F32 => self.by(&x.seen::<f32>(), |x| x),
            DType::F64 => self.by(&x.seen::<f64>(), |x| x),
            DType::Bool if self.inner == 1 && self.how == Reduction::Sum => self.truths(x.bytes),
            DType::Bool => self.by(x.bytes, i32::from),
            DType::I32 => self.by(&x.seen::<i32>(), |x| x),
            DType::U32 => self.by(&x.seen::<u32>(), |x| x),
            DType::I64 => self.by(&x.seen::<i64>(), |x| x),
            _ => self.by(&x.seen::<u64>(), |x| x),
        })
    }
}

impl Combine {
    fn by<F: AnyBitPattern + Sync, T: Number>(
        &self,
        values: &[F],
        wide: impl Fn(F) -> T + Copy + Sync,
    ) -> Vec<u8> {
        match self.how {
            Reduction::Sum => self.all(values, wide, T::sum, T::sum),
            Reduction::Product => self.all(values, wide, T::product, T::product),
            Reduction::Max => self.all(values, wide, T::high, T::above),
            Reduction::Min => self.all(values, wide, T::low, T::below),
        }
    }

    // `quick` is `meet` where all are numbers.
    fn all<F: AnyBitPattern + Sync, T: Number>(
        &self,
        values: &[F],
        wide: impl Fn(F) -> T + Copy + Sync,
        meet: impl Fn(T, T) -> T + Copy + Sync,
        quick: impl Fn(T, T) -> T + Copy + Sync,
    ) -> Vec<u8> {
        let identity = self.identity();
        let way = Way { identity, wide, meet };
        let quick = Way {
            identity,
            wide,
            meet: quick,
        };
        let is_extreme = matches!(self.how, Reduction::Max | Reduction::Min);
        let mut parts = self.room(values.len(), identity);
        match self.inner {
            1 => self.each(size_of_val(values), &mut parts, |part| {
                let part = &values[part];
                match is_extreme && !has_nan(part, wide) {
                    true => in_row(part, self.lanes[0], quick),
                    false => in_row(part, self.lanes[0], way),
                }
            }),
            inner => {
                let some = crate::spread::at_once(bytes_of_part(size_of_val(values), parts.len(), inner));
                // Several parts, or some columns of one.
                let width = if some > 1 { some * inner } else { ABREAST };
                let pieces = parts
                    .chunks_mut(some * inner)
                    .enumerate()
                    .flat_map(|(place, own)| {
                        let columns = own.chunks_mut(width).enumerate();
                        columns.map(move |(column, own)| (place * some, column * width, own))
                    });
                crate::spread::each(size_of_val(values), pieces, |(first, begin, own)| {
                    for (number, own) in (first..).zip(own.chunks_mut(inner)) {
                        let values = &values[self.part(number)];
                        for (place, own) in own.chunks_mut(ABREAST).enumerate() {
                            let column = begin + place * ABREAST;
                            in_columns(values, [inner, column, self.lanes[0]], [0, 1], way, own);
                        }
                    }
                });
            }
        }
        self.joined(parts, way.meet)
    }

    fn identity<T: Number>(&self) -> T {
        T::from_bits_of(self.how.identity(self.dtype))
    }

    // How many parts a row has.
    fn count(&self) -> usize {
        self.along.div_ceil(self.part)
    }

    // For what the parts of so many elements give.
    fn room<T: Copy>(&self, elements: usize, identity: T) -> Vec<T> {
        vec![identity; elements / self.along * self.count()]
    }

    // The elements of a part.
    fn part(&self, number: usize) -> Range<usize> {
        let (row, begin) = (number / self.count(), number % self.count() * self.part);
        let end = self.along.min(begin + self.part);
        (row * self.along + begin) * self.inner..(row * self.along + end) * self.inner
    }

    // What each part gives, of one column.
    fn each<T: Number>(&self, bytes: usize, parts: &mut [T], given: impl Fn(Range<usize>) -> T + Sync) {
        let some = crate::spread::at_once(bytes / parts.len().max(1));
        let pieces = parts.chunks_mut(some).enumerate();
        crate::spread::each(bytes, pieces, |(place, own)| {
            for (number, own) in (place * some..).zip(own) {
                *own = given(self.part(number));
            }
        });
    }

    // What parts give, one behind the other, combined.
    fn joined<T: Number>(&self, parts: Vec<T>, meet: impl Fn(T, T) -> T + Copy) -> Vec<u8> {
        let count = self.count();
        if count == 1 {
            return bytemuck::cast_slice(&parts).to_vec();
        }
        let way = Way {
            identity: self.identity(),
            wide: |x| x,
            meet,
        };
        let mut found = vec![way.identity; parts.len() / count];
        for (own, parts) in found.chunks_mut(self.inner).zip(parts.chunks(count * self.inner)) {
            match self.inner {
                1 => own[0] = in_row(parts, self.lanes[1], way),
                inner => {
                    for (place, own) in own.chunks_mut(ABREAST).enumerate() {
                        in_columns(parts, [inner, place * ABREAST, self.lanes[1]], [0, 1], way, own);
                    }
                }
            }
        }
        bytemuck::cast_slice(&found).to_vec()
    }

    // Sums of products along the last axes. The second may have one row alone.
    fn products<T: Number>(&self, [x, y]: [&[T]; 2]) -> Vec<u8> {
        let mut parts = self.room(x.len(), self.identity());
        self.each(size_of_val(x), &mut parts, |part| {
            let begin = part.start % y.len();
            let (x, y) = (&x[part.clone()], &y[begin..begin + part.len()]);
            match self.lanes[0] {
                LANES => products_in_lanes(x, y, self.identity()),
                _ => x
                    .iter()
                    .zip(y)
                    .fold(self.identity(), |sum: T, (x, y)| sum.sum(x.product(*y))),
            }
        });
        self.joined(parts, T::sum)
    }

    // How many are true: the order in which integers are added makes no difference.
    fn truths(&self, all: &[u8]) -> Vec<u8> {
        let mut parts = self.room(all.len(), 0);
        self.each(all.len(), &mut parts, |part| truths(&all[part]));
        let found: Vec<i32> = parts.chunks(self.count()).map(|row| row.iter().sum()).collect();
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

fn in_row<F: Copy, T: Copy>(
    values: &[F],
    lanes: usize,
    way: Way<T, impl Fn(F) -> T + Copy, impl Fn(T, T) -> T + Copy>,
) -> T {
    match lanes {
        LANES => in_lanes(values, way),
        _ => values
            .iter()
            .fold(way.identity, |so_far, own| (way.meet)(so_far, (way.wide)(*own))),
    }
}

// Partial results meet in pairs: the first half with the second, until one is left.
#[inline(always)]
fn met<T: Copy>(partial: &[T; LANES], meet: impl Fn(T, T) -> T) -> T {
    macro_rules! halved {
        ($all:expr, $($half:literal)*) => {{
            let all = $all;
            $( let all: [T; $half] = std::array::from_fn(|at| meet(all[at], all[at + $half])); )*
            all[0]
        }};
    }
    halved!(partial, 128 64 32 16 8 4 2 1)
}

widest! {
    // How many are true. The order in which integers are added makes no difference.
    fn truths[](all: &[u8]) -> i32 {
        const ABREAST: usize = 128;
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

    fn has_nan[F: Copy, T: Number, W: Fn(F) -> T + Copy](values: &[F], wide: W) -> bool {
        const ABREAST: usize = 64;
        let (rows, rest) = values.as_chunks::<ABREAST>();
        let mut found = [false; ABREAST];
        for row in rows {
            for (found, own) in found.iter_mut().zip(row) {
                *found |= wide(*own).is_no_number();
            }
        }
        found.contains(&true) || rest.iter().any(|own| wide(*own).is_no_number())
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
        met(&partial, way.meet)
    }

    // Products of two rows, likewise.
    fn products_in_lanes[T: Number](x: &[T], y: &[T], identity: T) -> T {
        let mut partial = [identity; LANES];
        let (xs, x) = x.as_chunks::<LANES>();
        let (ys, y) = y.as_chunks::<LANES>();
        let (blocks, _) = partial.as_chunks_mut::<REGISTERS>();
        for (place, block) in blocks.iter_mut().enumerate() {
            let mut own = *block;
            for (x, y) in xs.iter().zip(ys) {
                for (at, own) in own.iter_mut().enumerate() {
                    *own = own.sum(x[place * REGISTERS + at].product(y[place * REGISTERS + at]));
                }
            }
            *block = own;
        }
        for (partial, (x, y)) in partial.iter_mut().zip(x.iter().zip(y)) {
            *partial = partial.sum(x.product(*y));
        }
        met(&partial, T::sum)
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

/// How many of so many bytes a part has, whose results are `inner` of all.
fn bytes_of_part(bytes: usize, results: usize, inner: usize) -> usize {
    bytes / (results / inner).max(1)
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

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_of_parts_do_not_overflow() {
        assert_eq!(super::bytes_of_part(usize::MAX, 64, 32), usize::MAX / 2);
        assert_eq!(super::bytes_of_part(4000, 0, 5), 4000);
    }
}
