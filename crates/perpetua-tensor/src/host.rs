//! What the host computes of large tensors of the CPU sooner than generated kernels do, in the same bits: orders of elements, and what combines all elements up to each. Must not know tables.

use std::panic::Location;

use perpetua_device::BackendKind;

use crate::dtype::DType;
use crate::node::{Function, HostValues, OnHost, Tensor};
use crate::numbers::Number;
use crate::order::Reduction;
use crate::widest::widest;

/// Smaller tensors stay in kernels, among others.
const LARGE: usize = 4096;
/// Elements of a run of cumulative operators.
pub(crate) const RUN: usize = 256;

#[derive(Clone, Copy)]
enum Kind {
    Order {
        descending: bool,
    },
    Cumulative(Reduction),
    /// The first of the largest, or smallest; the first NaN if there is one.
    Place {
        largest: bool,
    },
    /// How often each number is there.
    Count {
        bins: usize,
    },
}

/// Along the last axis.
struct Along(Kind);

impl Function for Along {
    fn name(&self) -> &'static str {
        match self.0 {
            Kind::Order { .. } => "argsort",
            Kind::Cumulative(Reduction::Sum) => "cumsum",
            Kind::Cumulative(Reduction::Product) => "cumprod",
            Kind::Cumulative(Reduction::Max) => "cummax",
            Kind::Cumulative(Reduction::Min) => "cummin",
            Kind::Place { largest: true } => "argmax",
            Kind::Place { largest: false } => "argmin",
            Kind::Count { .. } => "bincount",
        }
    }

    fn result(&self, operands: &[Tensor]) -> Result<(Vec<usize>, DType), String> {
        let Some(x) = operands.first() else {
            return Err("it takes a tensor".into());
        };
        if x.dtype().is_byte_float() {
            return Err(x.dtype().for_storage());
        }
        let mut shape = x.shape().to_vec();
        let dtype = match self.0 {
            Kind::Order { .. } => DType::I32,
            Kind::Cumulative(_) => x.dtype(),
            Kind::Place { .. } => {
                shape.pop();
                DType::I32
            }
            Kind::Count { bins } => {
                shape.pop();
                shape.push(bins);
                DType::I32
            }
        };
        Ok((shape, dtype))
    }

    fn on_host(&self) -> Option<&dyn OnHost> {
        Some(self)
    }

    fn is_for_each(&self) -> bool {
        true
    }
}

impl OnHost for Along {
    fn compute(&self, operands: &[HostValues<'_>]) -> Result<Vec<u8>, String> {
        let Some(x) = operands.first() else {
            return Ok(Vec::new());
        };
        let n = x.shape.last().copied().unwrap_or(1).max(1);
        Ok(match (self.0, x.dtype) {
            (Kind::Order { descending }, _) => order(x, n, descending),
            (Kind::Place { largest }, DType::F32) => places(&x.seen::<f32>(), n, largest, place_f32),
            (Kind::Place { largest }, DType::F64) => places(&x.seen::<f64>(), n, largest, place_f64),
            (Kind::Place { largest }, DType::I32) => places(&x.seen::<i32>(), n, largest, place_i32),
            (Kind::Place { largest }, _) => places(&x.seen::<u8>(), n, largest, place_u8),
            (Kind::Count { bins }, _) => counts(&x.seen::<i32>(), n, bins)?,
            (Kind::Cumulative(how), DType::F32) => cumulative::<f32>(x, n, how),
            (Kind::Cumulative(how), DType::F64) => cumulative::<f64>(x, n, how),
            (Kind::Cumulative(how), DType::I32) => cumulative::<i32>(x, n, how),
            (Kind::Cumulative(how), DType::U32) => cumulative::<u32>(x, n, how),
            (Kind::Cumulative(how), DType::I64) => cumulative::<i64>(x, n, how),
            (Kind::Cumulative(how), _) => cumulative::<u64>(x, n, how),
        })
    }
}

fn cumulative<T: Number>(x: &HostValues<'_>, n: usize, how: Reduction) -> Vec<u8> {
    let mut all = x.values::<T>();
    let identity = T::from_bits_of(how.identity(x.dtype));
    let some = n * crate::spread::at_once(n * size_of::<T>());
    crate::spread::each(x.bytes.len(), all.chunks_mut(some), |rows| {
        rows.chunks_mut(n).for_each(|row| match how {
            Reduction::Sum => runs(row, identity, T::sum),
            Reduction::Product => runs(row, identity, T::product),
            Reduction::Max => runs(row, identity, T::high),
            Reduction::Min => runs(row, identity, T::low),
        });
    });
    bytemuck::cast_slice(&all).to_vec()
}

// As `table/along.rs` records it: in runs each element meets the one before it, then the one two before, four before, and so on; then what all runs before have.
fn runs<T: Copy>(row: &mut [T], identity: T, meet: impl Fn(T, T) -> T + Copy) {
    let mut ends = Vec::with_capacity(row.len().div_ceil(RUN));
    for run in row.chunks_mut(RUN) {
        let mut before = [identity; RUN];
        let mut by = 1;
        while by < run.len() {
            before[..run.len()].copy_from_slice(run);
            let (first, others) = run.split_at_mut(by);
            first.iter_mut().for_each(|own| *own = meet(identity, *own));
            for (own, other) in others.iter_mut().zip(&before) {
                *own = meet(*other, *own);
            }
            by *= 2;
        }
        ends.extend(run.last().copied());
    }
    if ends.len() < 2 {
        return;
    }
    runs(&mut ends, identity, meet);
    let before = std::iter::once(identity).chain(ends);
    for (run, before) in row.chunks_mut(RUN).zip(before) {
        for own in run {
            *own = meet(before, *own);
        }
    }
}

// Where the first of the largest or smallest of each row is, or the first NaN. What has an order has it as a number, too: compilers make fast loops of numbers' extremes.
macro_rules! places {
    ($($name:ident: $ty:ty as $key:ty, $of:expr, $magnitude:expr, $infinity:expr;)*) => {
        widest! { $(
            fn $name[](row: &[$ty], largest: bool) -> usize {
                // Of the smallest the complements are the largest.
                let turn: $key = if largest { 0 } else { !0 };
                let (mut best, mut most) = (<$key>::MIN, 0);
                for x in row {
                    best = best.max($of(*x) ^ turn);
                    most = most.max($magnitude(*x));
                }
                let has_nan = most > $infinity;
                let is_it = |x: &$ty| match has_nan {
                    true => $magnitude(*x) > $infinity,
                    false => $of(*x) ^ turn == best,
                };
                const ABREAST: usize = 64;
                // Runs are looked through as a whole.
                let (runs, _) = row.as_chunks::<ABREAST>();
                let run = runs.iter().position(|run| run.iter().fold(false, |found, x| found | is_it(x)));
                let begin = run.unwrap_or(runs.len()) * ABREAST;
                row[begin..].iter().position(is_it).map_or(0, |at| begin + at)
            }
        )* }
    };
}

// Both zeros have one number; negative floats count down.
const fn key32(x: f32) -> i32 {
    let bits = (x + 0.0).to_bits() as i32;
    bits ^ ((bits >> 31) as u32 >> 1) as i32
}

const fn key64(x: f64) -> i64 {
    let bits = (x + 0.0).to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

places! {
    place_f32: f32 as i32, key32, |x: f32| x.abs().to_bits(), f32::INFINITY.to_bits();
    place_f64: f64 as i64, key64, |x: f64| x.abs().to_bits(), f64::INFINITY.to_bits();
    place_i32: i32 as i32, |x: i32| x, |_| 0u32, 0;
    place_u8: u8 as i32, |x: u8| i32::from(x), |_| 0u32, 0;
}

fn places<T: Sync>(
    all: &[T],
    n: usize,
    largest: bool,
    place: impl Fn(&[T], bool) -> usize + Sync,
) -> Vec<u8> {
    let mut found = vec![0i32; all.len() / n];
    let some = crate::spread::at_once(n * size_of::<T>());
    let pieces = found.chunks_mut(some).zip(all.chunks(some * n));
    crate::spread::each(size_of_val(all), pieces, |(found, rows)| {
        for (found, row) in found.iter_mut().zip(rows.chunks_exact(n)) {
            *found = place(row, largest) as i32;
        }
    });
    bytemuck::cast_slice(&found).to_vec()
}

fn counts(all: &[i32], n: usize, bins: usize) -> Result<Vec<u8>, String> {
    let mut found = Vec::new();
    for (row, numbers) in all.chunks_exact(n).enumerate() {
        let mut counts = vec![0i32; bins];
        for (place, number) in numbers.iter().enumerate() {
            // As an index: from the end if it is negative.
            let bin = match *number {
                number if number < 0 => bins as i64 + i64::from(number),
                number => i64::from(number),
            };
            match usize::try_from(bin).ok().and_then(|bin| counts.get_mut(bin)) {
                Some(count) => *count += 1,
                None => {
                    return Err(format!(
                        "element {} is {number}, which is not among the {bins} numbers",
                        row * n + place
                    ));
                }
            }
        }
        found.extend(counts);
    }
    Ok(bytemuck::cast_slice(&found).to_vec())
}

// Indices of what comes first, second and so on in each row: by keys that compare as the elements do, and their places.
fn order(x: &HostValues<'_>, n: usize, descending: bool) -> Vec<u8> {
    let size = x.dtype.size() as usize;
    let key = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(bytes);
        let key = key(x.dtype, u64::from_le_bytes(wide));
        // NaN is last in both directions.
        match (key, descending) {
            (None, _) => u64::MAX >> (64 - 8 * size),
            (Some(key), false) => key,
            (Some(key), true) => !key & (u64::MAX >> (64 - 8 * size)),
        }
    };
    let mut found: Vec<i32> = Vec::with_capacity(x.bytes.len() / size);
    for row in x.bytes.chunks(n * size) {
        let keys = row.chunks_exact(size).map(key);
        if size <= 4 {
            let mut pairs: Vec<u64> = keys.zip(0u64..).map(|(key, place)| key << 32 | place).collect();
            pairs.sort_unstable();
            found.extend(pairs.into_iter().map(|pair| pair as i32));
        } else {
            let mut pairs: Vec<(u64, u32)> = keys.zip(0u32..).collect();
            pairs.sort_unstable();
            found.extend(pairs.into_iter().map(|(_, place)| place as i32));
        }
    }
    bytemuck::cast_slice(&found).to_vec()
}

// A number that is greater where the element is; none of NaN. Both zeros have one.
fn key(dtype: DType, bits: u64) -> Option<u64> {
    let width = dtype.bits();
    let sign = 1u64 << (width - 1);
    if !dtype.is_float() {
        return Some(if dtype.is_signed_int() { bits ^ sign } else { bits });
    }
    let infinity = match dtype {
        DType::F16 => 0x7c00,
        DType::BF16 => 0x7f80,
        DType::F32 => u64::from(f32::INFINITY.to_bits()),
        _ => f64::INFINITY.to_bits(),
    };
    match bits & !sign {
        magnitude if magnitude > infinity => None,
        0 => Some(sign),
        _ if bits & sign != 0 => Some(!bits & (u64::MAX >> (64 - width))),
        _ => Some(bits | sign),
    }
}

impl Tensor {
    fn is_for_host(&self) -> bool {
        self.len() > LARGE && self.device().backend() == BackendKind::Cpu
    }

    /// The order of the elements of rows, if the host finds it.
    pub(crate) fn order_on_host(&self, descending: bool) -> Option<Tensor> {
        self.is_for_host()
            .then(|| self.function(Along(Kind::Order { descending }), &[]))
    }

    /// Where the first of the largest or smallest elements of rows are, if the host looks: nothing fuses with what is known.
    pub(crate) fn place_on_host(&self, largest: bool, axis: usize) -> Option<Tensor> {
        let is_known = matches!(self.dtype(), DType::F32 | DType::F64 | DType::I32 | DType::U8)
            && self.is_for_host()
            && axis + 1 == self.rank()
            && self.0.value().is_some();
        is_known.then(|| self.function(Along(Kind::Place { largest }), &[]))
    }

    /// How often each number is there, if the host counts.
    pub(crate) fn count_on_host(&self, bins: usize) -> Option<Tensor> {
        let is_for_host = self.dtype() == DType::I32 && self.is_for_host() && bins > 0;
        is_for_host.then(|| self.flatten().function(Along(Kind::Count { bins }), &[]))
    }

    /// All elements up to each of rows combined, if the host does it: nobody asks for gradients then.
    pub(crate) fn cumulative_on_host(
        &self,
        how: Reduction,
        at: &'static Location<'static>,
    ) -> Option<Tensor> {
        let is_known = matches!(
            self.dtype(),
            DType::F32 | DType::F64 | DType::I32 | DType::U32 | DType::I64 | DType::U64
        );
        let done = || crate::place::inside(at, || self.function(Along(Kind::Cumulative(how)), &[]));
        (is_known && !self.is_tracked() && self.is_for_host()).then(done)
    }
}
