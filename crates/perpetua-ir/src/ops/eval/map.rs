//! What an operator is applied to: one scalar's bits here, many lanes side by side where an interpreter has them. Knows nothing of operators.

use bytemuck::Pod;

/// Where an operator's operands come from and its result goes: of many lanes, or of one.
pub trait Map: Sized {
    /// Of one operand.
    fn map1<A: Pod, R: Pod>(self, f: impl Fn(A) -> R);
    /// Of two.
    fn map2<A: Pod, B: Pod, R: Pod>(self, f: impl Fn(A, B) -> R);
    /// Of three.
    fn map3<A: Pod, B: Pod, C: Pod, R: Pod>(self, f: impl Fn(A, B, C) -> R);
}

/// One lane: bits in, zero-extended, and bits out.
pub(super) struct One<'a, const N: usize> {
    pub(super) operands: [u64; N],
    pub(super) out: &'a mut u64,
}

/// The scalar with these bits.
#[inline(always)]
fn from_bits<T: Pod>(bits: u64) -> T {
    match size_of::<T>() {
        1 => bytemuck::cast(bits as u8),
        2 => bytemuck::cast(bits as u16),
        4 => bytemuck::cast(bits as u32),
        _ => bytemuck::cast(bits),
    }
}

/// A scalar's bits, zero-extended.
#[inline(always)]
fn to_bits<T: Pod>(value: T) -> u64 {
    match size_of::<T>() {
        1 => bytemuck::cast::<T, u8>(value).into(),
        2 => bytemuck::cast::<T, u16>(value).into(),
        4 => bytemuck::cast::<T, u32>(value).into(),
        _ => bytemuck::cast(value),
    }
}

impl<const N: usize> Map for One<'_, N> {
    #[inline(always)]
    fn map1<A: Pod, R: Pod>(self, f: impl Fn(A) -> R) {
        *self.out = to_bits(f(from_bits(self.operands[0])));
    }

    #[inline(always)]
    fn map2<A: Pod, B: Pod, R: Pod>(self, f: impl Fn(A, B) -> R) {
        *self.out = to_bits(f(from_bits(self.operands[0]), from_bits(self.operands[1])));
    }

    #[inline(always)]
    fn map3<A: Pod, B: Pod, C: Pod, R: Pod>(self, f: impl Fn(A, B, C) -> R) {
        let [a, b, c] = [0, 1, 2].map(|i| self.operands[i]);
        *self.out = to_bits(f(from_bits(a), from_bits(b), from_bits(c)));
    }
}
