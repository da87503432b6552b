//! Atomic operations. In plain Rust the place is a `&mut`, so nobody else sees it meanwhile and each operation is
//! simply done.
//!
//! The twins with the suffix `_explicit` say the order of memory accesses and between whom; the others are relaxed.

pub use std::sync::atomic::Ordering;

/// Between whom an atomic operation orders memory accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The lanes of one block.
    Block,
    /// All lanes of the device.
    Device,
    /// The device, its peers and the host.
    System,
}

/// Numbers in memory that atomic operations work on: the 32- and 64-bit integers and floats.
pub trait AtomicNumber: Copy + sealed::Sealed {
    /// The sum; integers wrap.
    #[doc(hidden)]
    fn plus(self, other: Self) -> Self;
    /// The difference; integers wrap.
    #[doc(hidden)]
    fn minus(self, other: Self) -> Self;
    /// The lesser; of a NaN and a number the number.
    #[doc(hidden)]
    fn lesser(self, other: Self) -> Self;
    /// The greater; of a NaN and a number the number.
    #[doc(hidden)]
    fn greater(self, other: Self) -> Self;
}

/// What an atomic load or store moves at once: the numbers, and four words ([`U32x4`](super::resident::U32x4)).
pub trait AtomicWhole: Copy {}

impl<T: AtomicNumber> AtomicWhole for T {}
impl AtomicWhole for super::resident::U32x4 {}

/// Integers in memory, whose bits atomic operations combine and compare.
pub trait AtomicBits: AtomicNumber + Eq {
    #[doc(hidden)]
    fn and(self, other: Self) -> Self;
    #[doc(hidden)]
    fn or(self, other: Self) -> Self;
    #[doc(hidden)]
    fn xor(self, other: Self) -> Self;
}

mod sealed {
    /// Keeps the traits to the types of the kernel language.
    pub trait Sealed {}
}

macro_rules! integers {
    ($($ty:ident)*) => { $(
        impl sealed::Sealed for $ty {}
        impl AtomicNumber for $ty {
            fn plus(self, other: $ty) -> $ty {
                self.wrapping_add(other)
            }
            fn minus(self, other: $ty) -> $ty {
                self.wrapping_sub(other)
            }
            fn lesser(self, other: $ty) -> $ty {
                self.min(other)
            }
            fn greater(self, other: $ty) -> $ty {
                self.max(other)
            }
        }
        impl AtomicBits for $ty {
            fn and(self, other: $ty) -> $ty {
                self & other
            }
            fn or(self, other: $ty) -> $ty {
                self | other
            }
            fn xor(self, other: $ty) -> $ty {
                self ^ other
            }
        }
    )* };
}

integers!(i32 u32 i64 u64 isize usize);

macro_rules! floats {
    ($($ty:ident)*) => { $(
        impl sealed::Sealed for $ty {}
        impl AtomicNumber for $ty {
            fn plus(self, other: $ty) -> $ty {
                self + other
            }
            fn minus(self, other: $ty) -> $ty {
                self - other
            }
            fn lesser(self, other: $ty) -> $ty {
                if self < other || other.is_nan() { self } else { other }
            }
            fn greater(self, other: $ty) -> $ty {
                if self > other || other.is_nan() { self } else { other }
            }
        }
    )* };
}

floats!(f32 f64);

macro_rules! updates {
    ($($bound:ident $doc:literal $name:ident $explicit:ident = $new:expr;)*) => { $(
        #[doc = concat!($doc, "; gives the value before.")]
        pub fn $name<T: $bound>(place: &mut T, value: T) -> T {
            let new: fn(T, T) -> T = $new;
            let before = *place;
            *place = new(before, value);
            before
        }

        #[doc = concat!($doc, ", in this order and scope; gives the value before.")]
        pub fn $explicit<T: $bound>(place: &mut T, value: T, order: Ordering, scope: Scope) -> T {
            let _ = (order, scope);
            $name(place, value)
        }
    )* };
}

updates! {
    AtomicNumber "Adds; integers wrap" atomic_add atomic_add_explicit = T::plus;
    AtomicNumber "Subtracts; integers wrap" atomic_sub atomic_sub_explicit = T::minus;
    AtomicNumber "Keeps the lesser" atomic_min atomic_min_explicit = T::lesser;
    AtomicNumber "Keeps the greater" atomic_max atomic_max_explicit = T::greater;
    AtomicBits "Bitwise and" atomic_and atomic_and_explicit = T::and;
    AtomicBits "Bitwise or" atomic_or atomic_or_explicit = T::or;
    AtomicBits "Bitwise exclusive or" atomic_xor atomic_xor_explicit = T::xor;
    AtomicNumber "Stores" atomic_exchange atomic_exchange_explicit = |_, value| value;
}

/// The value of a place.
pub fn atomic_load<T: AtomicWhole>(place: &T) -> T {
    *place
}

/// The value of a place, in this order and scope.
pub fn atomic_load_explicit<T: AtomicWhole>(place: &T, order: Ordering, scope: Scope) -> T {
    let _ = (order, scope);
    *place
}

/// Stores a value.
pub fn atomic_store<T: AtomicWhole>(place: &mut T, value: T) {
    *place = value;
}

/// Stores a value, in this order and scope.
pub fn atomic_store_explicit<T: AtomicWhole>(place: &mut T, value: T, order: Ordering, scope: Scope) {
    let _ = (order, scope);
    *place = value;
}

/// Stores `new` where the value is `expected`; gives the value before.
pub fn atomic_compare_exchange<T: AtomicBits>(place: &mut T, expected: T, new: T) -> T {
    let before = *place;
    if before == expected {
        *place = new;
    }
    before
}

/// Stores `new` where the value is `expected`, in this order (on failure without its release half) and scope; gives the
/// value before.
pub fn atomic_compare_exchange_explicit<T: AtomicBits>(
    place: &mut T,
    expected: T,
    new: T,
    order: Ordering,
    scope: Scope,
) -> T {
    let _ = (order, scope);
    atomic_compare_exchange(place, expected, new)
}
