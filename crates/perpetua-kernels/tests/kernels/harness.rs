//! Random cases, buffers in poisoned surroundings, and comparison within bounds.

use half::{bf16, f16};
use libtest_mimic::Failed;
use perpetua_device::{BackendKind, Buffer, Device, GpuType};
use perpetua_kernels::{E4m3, E5m2, Element};

/// What stands where nothing may be written.
pub(crate) const POISON: f32 = -12352.0;

/// A random case on a device.
pub(crate) struct Case {
    pub(crate) device: Device,
    /// Whether matrices begin, and their rows, where those who read 16 bytes at a time want it.
    pub(crate) aligned: bool,
    /// Whether products are so deep that it takes several stages.
    pub(crate) deep: bool,
    /// Whether they have few rows or columns.
    pub(crate) thin: bool,
    state: u64,
}

impl Case {
    pub(crate) fn new(device: &Device, seed: u64) -> Case {
        Case {
            device: device.clone(),
            aligned: false,
            deep: false,
            thin: false,
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995_9d1d_2a67,
        }
    }

    /// 64 random bits (Vigna's SplitMix64).
    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    pub(crate) fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    /// A number between -1 and 1.
    pub(crate) fn number(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// Numbers between `-size` and `size`; in one of eight cases with some that are none.
    pub(crate) fn numbers(&mut self, len: usize, size: f32) -> Vec<f32> {
        let mut all: Vec<f32> = (0..len).map(|_| size * self.number()).collect();
        if len > 0 && self.chance(8) {
            for _ in 0..1 + self.below(3) {
                let at = self.below(len);
                all[at] = self.one_of(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0]);
            }
        }
        all
    }

    /// The size of a product, in multiples of `unit` but for what there are few of.
    pub(crate) fn product(&mut self, unit: usize) -> [usize; 3] {
        const EXTENTS: [usize; 16] = [0, 1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 65, 100, 128, 131, 136];
        let mut size = [(); 3].map(|()| self.one_of(&EXTENTS).next_multiple_of(unit));
        if self.deep {
            size[2] = self.one_of(&[200, 333, 450, 600usize]).next_multiple_of(unit);
        }
        if self.thin {
            size[self.below(2)] = self.one_of(&[1, 1, 2, 4, 8, 9, 16]);
            size[2] *= self.one_of(&[1, 4]);
        }
        size
    }

    /// Where a buffer begins in its surroundings, in elements: on wgpu where bindings may begin.
    fn margin(&mut self, bytes: usize) -> usize {
        let aligned = 256 / bytes;
        match self.device.backend() {
            BackendKind::Wgpu => aligned,
            _ if self.aligned => aligned,
            _ => aligned + self.below(4),
        }
    }

    /// A matrix on the device, in surroundings of poison; what lies between its rows is poison, too.
    pub(crate) fn matrix<T: Stored>(
        &mut self,
        shape: [usize; 3],
        values: &[f32],
    ) -> Result<Guarded<T>, Failed> {
        let [rows, columns, pitch] = shape;
        let len = if rows == 0 || columns == 0 {
            0
        } else {
            (rows - 1) * pitch + columns
        };
        let margin = self.margin(size_of::<T>());
        let mut all = vec![T::of(POISON); margin + len + margin];
        for row in 0..if columns == 0 { 0 } else { rows } {
            for column in 0..columns {
                all[margin + row * pitch + column] = T::of(values[row * columns + column]);
            }
        }
        let whole = self.device.upload(&all)?;
        // A buffer may be longer than what it is used for, by any number of elements.
        let more = if len > 0 && self.chance(3) {
            self.below(8)
        } else {
            0
        };
        let part = whole.slice(margin..margin + len + more)?;
        Ok(Guarded {
            whole,
            part,
            margin,
            shape,
        })
    }
}

/// A type in which kernels keep numbers.
pub(crate) trait Stored: GpuType + Copy {
    const ELEMENT: Element;
    /// Half the distance from 1 to the next number.
    const EPSILON: f64;
    /// Half of the least number.
    const LEAST: f64;
    fn of(x: f32) -> Self;
    fn number(self) -> f32;
}

macro_rules! stored {
    ($($ty:ty: $element:ident, $epsilon:expr, $least:expr, $of:expr, $number:expr;)*) => {$(
        impl Stored for $ty {
            const ELEMENT: Element = Element::$element;
            const EPSILON: f64 = $epsilon;
            const LEAST: f64 = $least;
            fn of(x: f32) -> $ty {
                $of(x)
            }
            fn number(self) -> f32 {
                $number(self)
            }
        }
    )*};
}

stored! {
    // Devices may flush denormals of `f32`.
    f32: F32, 6e-8, 1.2e-38, |x| x, |x| x;
    f16: F16, 4.9e-4, 3e-8, f16::from_f32, f16::to_f32;
    bf16: Bf16, 4e-3, 1.2e-38, bf16::from_f32, bf16::to_f32;
    // Factors, and sums of integers.
    E4m3: F32, 0.0, 0.0, E4m3::from_f32, E4m3::to_f32;
    E5m2: F32, 0.0, 0.0, E5m2::from_f32, E5m2::to_f32;
    i8: F32, 0.0, 0.0, |x: f32| (x * 64.0) as i8, f32::from;
    i32: F32, 0.0, 0.0, |x: f32| (x * 1024.0) as i32, |x| x as f32;
}

/// A matrix in surroundings that nothing may touch.
#[derive(Clone)]
pub(crate) struct Guarded<T: GpuType> {
    whole: Buffer<T>,
    pub(crate) part: Buffer<T>,
    margin: usize,
    shape: [usize; 3],
}

impl<T: Stored> Guarded<T> {
    /// Its elements row by row, when all around them is as it was.
    pub(crate) fn read(&self) -> Result<Vec<f32>, Failed> {
        let [rows, columns, pitch] = self.shape;
        let all = self.whole.read()?;
        let poison = T::of(POISON).number();
        let mut values = Vec::new();
        for (at, value) in all.iter().map(|value| value.number()).enumerate() {
            let inside = at
                .checked_sub(self.margin)
                .filter(|_| columns > 0 && at < all.len() - self.margin);
            match inside {
                Some(at) if at % pitch < columns && at / pitch < rows => values.push(value),
                _ if value == poison => {}
                _ => return Err(format!("element {at}, outside of the matrix, became {value}").into()),
            }
        }
        Ok(values)
    }
}

/// Compares with what is expected, each with its bound.
pub(crate) fn compare<T: Stored>(
    what: &dyn std::fmt::Display,
    found: &[f32],
    expected: &[(f64, f64)],
) -> Result<(), Failed> {
    if found.len() != expected.len() {
        return Err(format!("{what}: {} elements, {} expected", found.len(), expected.len()).into());
    }
    for (at, (found, (expected, bound))) in found.iter().zip(expected).enumerate() {
        let found = f64::from(*found);
        let bound = bound + expected.abs() * T::EPSILON + T::LEAST;
        let fits = match expected.is_finite() {
            true => (found - expected).abs() <= bound,
            false => found == *expected || found.is_nan() && expected.is_nan(),
        };
        if !fits {
            let message = format!("{what}: element {at} is {found}, not {expected} within {bound:e}");
            return Err(message.into());
        }
    }
    Ok(())
}

pub(crate) fn in_f64(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}
