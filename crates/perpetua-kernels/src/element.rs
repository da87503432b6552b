//! How numbers are stored: kernels compute in `f32` and read and write any of these. Must not know the kernels.

use perpetua::prelude::*;
use perpetua_device::{ArgType, Buffer, KernelArg};
use perpetua_language::kernel::resident::U32x4;

/// The type of the numbers that a kernel reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Element {
    /// 32 bits.
    #[default]
    F32,
    /// 16 bits, eleven of them for digits.
    F16,
    /// 16 bits with the range of `f32`, eight of them for digits.
    Bf16,
}

impl Element {
    /// Whether a buffer's type is this one.
    pub(crate) fn is(self, ty: &ArgType) -> bool {
        match self {
            Element::F32 => ty.is::<f32>(),
            Element::F16 => ty.is::<f16>(),
            Element::Bf16 => ty.is::<bf16>(),
        }
    }

    /// Bytes of a number.
    pub(crate) fn bytes(self) -> usize {
        16 / self.piece()
    }

    /// Memory as a buffer of this type.
    pub(crate) fn of_bytes(self, bytes: &Buffer<u8>) -> KernelArg<'_> {
        let arg = bytes.arg();
        let cast = match self {
            Element::F32 => in_pieces::<f32>(&arg),
            Element::F16 => in_pieces::<f16>(&arg),
            Element::Bf16 => in_pieces::<bf16>(&arg),
        };
        cast.unwrap_or(arg)
    }

    /// Numbers in a piece of 16 bytes.
    pub(crate) fn piece(self) -> usize {
        match self {
            Element::F32 => 4,
            Element::F16 | Element::Bf16 => 8,
        }
    }

    /// A buffer of this type in such pieces, where it begins as they must.
    pub(crate) fn in_pieces<'a>(self, arg: &KernelArg<'a>) -> Option<KernelArg<'a>> {
        match arg {
            KernelArg::Buffer(buffer) if self.is(buffer.element()) => match self {
                Element::F32 => in_pieces::<F32s>(arg),
                Element::F16 => in_pieces::<F16s>(arg),
                Element::Bf16 => in_pieces::<Bf16s>(arg),
            },
            _ => None,
        }
    }
}

/// A buffer as one of larger pieces, where it begins as they must: of as many as are whole.
pub(crate) fn in_pieces<'a, P: GpuType>(arg: &KernelArg<'a>) -> Option<KernelArg<'a>> {
    match arg {
        KernelArg::Buffer(buffer) => buffer.cast_front::<P>().ok().map(KernelArg::Buffer),
        KernelArg::Value(_) => None,
    }
}

/// The instance of a generic kernel function for an [`Element`].
macro_rules! instance {
    ($element:expr, $kernel:path, $($argument:tt),*) => {{
        use $kernel as function;
        match $element {
            $crate::element::Element::F32 => function::kernel::<f32, $($argument),*>(),
            $crate::element::Element::F16 => function::kernel::<::half::f16, $($argument),*>(),
            $crate::element::Element::Bf16 => function::kernel::<::half::bf16, $($argument),*>(),
        }
    }};
}
pub(crate) use instance;

/// The instance of a kernel function that is generic over [`Piece`]s and how many numbers they have, for an [`Element`], in pieces or number by number.
macro_rules! piece_instance {
    ($element:expr, $pieces:expr, $kernel:path, $($argument:tt),*) => {{
        use $kernel as function;
        match ($element, $pieces) {
            ($crate::element::Element::F32, false) => function::kernel::<f32, 1, $($argument),*>(),
            ($crate::element::Element::F32, true) => function::kernel::<$crate::element::F32s, 4, $($argument),*>(),
            ($crate::element::Element::F16, false) => function::kernel::<::half::f16, 1, $($argument),*>(),
            ($crate::element::Element::F16, true) => function::kernel::<$crate::element::F16s, 8, $($argument),*>(),
            ($crate::element::Element::Bf16, false) => function::kernel::<::half::bf16, 1, $($argument),*>(),
            ($crate::element::Element::Bf16, true) => function::kernel::<$crate::element::Bf16s, 8, $($argument),*>(),
        }
    }};
}
pub(crate) use piece_instance;

/// A type in which kernels keep numbers that they compute with in `f32`.
#[device]
pub(crate) trait Storage: GpuType {
    /// The number.
    fn wide(self) -> f32;
    /// The nearest number of this type.
    fn narrow(x: f32) -> Self;
    /// The exponential, as exact as this type needs it.
    fn power(x: f32) -> f32;
}

#[device]
impl Storage for f32 {
    fn wide(self) -> f32 {
        self
    }

    fn narrow(x: f32) -> f32 {
        x
    }

    fn power(x: f32) -> f32 {
        x.exp()
    }
}

#[device]
impl Storage for f16 {
    fn wide(self) -> f32 {
        self.to_f32()
    }

    fn narrow(x: f32) -> f16 {
        f16::from_f32(x)
    }

    fn power(x: f32) -> f32 {
        near_power(x)
    }
}

#[device]
impl Storage for bf16 {
    fn wide(self) -> f32 {
        self.to_f32()
    }

    fn narrow(x: f32) -> bf16 {
        bf16::from_f32(x)
    }

    fn power(x: f32) -> f32 {
        near_power(x)
    }
}

/// The exponential as hardware has it, off by `2^-22` of itself and `2^-23` times `x`.
#[device]
pub(crate) fn near_power(x: f32) -> f32 {
    fast_exp2(x * std::f32::consts::LOG2_E)
}

/// A type of which two numbers lie in a word.
#[device]
pub(crate) trait Paired: Storage {
    /// The bits of one.
    fn bits(self) -> u32;
    /// The number of these bits.
    fn of(bits: u32) -> Self;
}

#[device]
impl Paired for f16 {
    fn bits(self) -> u32 {
        self.to_bits() as u32
    }

    fn of(bits: u32) -> f16 {
        f16::from_bits(bits as u16)
    }
}

#[device]
impl Paired for bf16 {
    fn bits(self) -> u32 {
        self.to_bits() as u32
    }

    fn of(bits: u32) -> bf16 {
        bf16::from_bits(bits as u16)
    }
}

/// A type of factors that tensor cores multiply.
#[device]
pub(crate) trait Factor: Paired {
    /// A lane's part of `A B + C`.
    fn multiply(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4];
}

#[device]
impl Factor for f16 {
    fn multiply(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        matrix_multiply_f16(a, b, c)
    }
}

#[device]
impl Factor for bf16 {
    fn multiply(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        matrix_multiply_bf16(a, b, c)
    }
}

/// Two numbers times `alpha`, rounded, in a word.
#[device]
pub(crate) fn pair<T: Paired>(sums: [f32; 2], alpha: f32) -> u32 {
    let low = T::narrow(alpha * sums[0]);
    let high = T::narrow(alpha * sums[1]);
    low.bits() | high.bits() << 16
}

/// Of four lanes, each with four words, lane `i` gets word `i` of each.
#[device]
pub(crate) fn turned(words: [u32; 4], lane: u32) -> [u32; 4] {
    let [a, b, c, d] = words;
    let (odd, upper) = (lane % 2 == 1, lane / 2 % 2 == 1);
    // First two lanes exchange, then two pairs of them.
    let first = subgroup_shuffle_xor(if odd { a } else { b }, 1);
    let second = subgroup_shuffle_xor(if odd { c } else { d }, 1);
    let near = if odd { [first, b] } else { [a, first] };
    let far = if odd { [second, d] } else { [c, second] };
    let third = subgroup_shuffle_xor(if upper { near[0] } else { far[0] }, 2);
    let fourth = subgroup_shuffle_xor(if upper { near[1] } else { far[1] }, 2);
    if upper {
        [third, fourth, far[0], far[1]]
    } else {
        [near[0], near[1], third, fourth]
    }
}

/// What is read at a time: a number, or those of 16 bytes.
#[device]
pub(crate) trait Piece: GpuType {
    /// Its numbers, in the first places.
    fn spread(self) -> [f32; 8];
    /// Of the first numbers, each rounded to its type.
    fn gather(numbers: [f32; 8]) -> Self;
    /// [`Storage::power`] of its numbers' type.
    fn power(x: f32) -> f32;
}

#[device]
impl<T: Storage> Piece for T {
    fn spread(self) -> [f32; 8] {
        let mut numbers = [0.0f32; 8];
        numbers[0] = self.wide();
        numbers
    }

    fn gather(numbers: [f32; 8]) -> T {
        T::narrow(numbers[0])
    }

    fn power(x: f32) -> f32 {
        T::power(x)
    }
}

/// Four numbers in 16 bytes.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
pub(crate) struct F32s {
    words: U32x4,
}

/// Eight numbers in 16 bytes.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
pub(crate) struct F16s {
    words: U32x4,
}

/// Eight numbers in 16 bytes.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
pub(crate) struct Bf16s {
    words: U32x4,
}

#[device]
impl Piece for F32s {
    fn spread(self) -> [f32; 8] {
        let U32x4 { x, y, z, w } = self.words;
        let words = [x, y, z, w];
        let mut numbers = [0.0f32; 8];
        for i in 0..4 {
            numbers[i] = f32::from_bits(words[i]);
        }
        numbers
    }

    fn gather(numbers: [f32; 8]) -> F32s {
        let [x, y, z, w, ..] = numbers;
        F32s {
            words: U32x4 {
                x: x.to_bits(),
                y: y.to_bits(),
                z: z.to_bits(),
                w: w.to_bits(),
            },
        }
    }

    fn power(x: f32) -> f32 {
        x.exp()
    }
}

/// The numbers of four words that have two each, by what the low half and the high half of a word are.
#[device]
fn halves(words: U32x4, low: impl Fn(u32) -> f32, high: impl Fn(u32) -> f32) -> [f32; 8] {
    let U32x4 { x, y, z, w } = words;
    let words = [x, y, z, w];
    let mut numbers = [0.0f32; 8];
    for i in 0..4 {
        numbers[2 * i] = low(words[i]);
        numbers[2 * i + 1] = high(words[i]);
    }
    numbers
}

/// Four words of two numbers each.
#[device]
fn words(numbers: [f32; 8], bits: impl Fn(f32) -> u32) -> U32x4 {
    let mut words = [0u32; 4];
    for i in 0..4 {
        words[i] = bits(numbers[2 * i]) | bits(numbers[2 * i + 1]) << 16;
    }
    let [x, y, z, w] = words;
    U32x4 { x, y, z, w }
}

#[device]
impl Piece for F16s {
    fn spread(self) -> [f32; 8] {
        halves(
            self.words,
            |word| f16::from_bits(word as u16).to_f32(),
            |word| f16::from_bits((word >> 16) as u16).to_f32(),
        )
    }

    fn gather(numbers: [f32; 8]) -> F16s {
        F16s {
            words: words(numbers, |x| f16::from_f32(x).to_bits() as u32),
        }
    }

    fn power(x: f32) -> f32 {
        near_power(x)
    }
}

#[device]
impl Piece for Bf16s {
    fn spread(self) -> [f32; 8] {
        // The upper half of an `f32` each.
        halves(
            self.words,
            |word| f32::from_bits(word << 16),
            |word| f32::from_bits(word & 0xffff_0000),
        )
    }

    fn gather(numbers: [f32; 8]) -> Bf16s {
        Bf16s {
            words: words(numbers, |x| bf16::from_f32(x).to_bits() as u32),
        }
    }

    fn power(x: f32) -> f32 {
        near_power(x)
    }
}
