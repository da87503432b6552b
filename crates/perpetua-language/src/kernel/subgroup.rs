//! Operations over the lanes of a subgroup (warp, wave). In plain Rust a subgroup has one lane.

/// Numbers that lanes of a subgroup exchange and reduce: the 32- and 64-bit integers and floats.
pub trait SubgroupNumber: Copy + sealed::Sealed {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// The greatest value (for floats infinity): what a minimum of nothing is.
    const GREATEST: Self;
    /// The least value (for floats minus infinity): what a maximum of nothing is.
    const LEAST: Self;
}

/// Integers whose bits lanes of a subgroup combine.
pub trait SubgroupBits: SubgroupNumber {
    /// All bits set.
    const ONES: Self;
}

mod sealed {
    /// Keeps the traits to the types of the kernel language.
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($ty:ident $greatest:ident $least:ident $zero:literal $one:literal;)*) => { $(
        impl sealed::Sealed for $ty {}
        impl SubgroupNumber for $ty {
            const ZERO: $ty = $zero;
            const ONE: $ty = $one;
            const GREATEST: $ty = $ty::$greatest;
            const LEAST: $ty = $ty::$least;
        }
    )* };
}

numbers! {
    i32 MAX MIN 0 1;
    u32 MAX MIN 0 1;
    i64 MAX MIN 0 1;
    u64 MAX MIN 0 1;
    isize MAX MIN 0 1;
    usize MAX MIN 0 1;
    f32 INFINITY NEG_INFINITY 0.0 1.0;
    f64 INFINITY NEG_INFINITY 0.0 1.0;
}

macro_rules! bits {
    ($($ty:ident)*) => { $(
        impl SubgroupBits for $ty {
            const ONES: $ty = !0;
        }
    )* };
}

bits!(i32 u32 i64 u64 isize usize);

/// The number of lanes in a subgroup.
pub fn subgroup_size() -> u32 {
    1
}

/// The lane's index in its subgroup.
pub fn subgroup_lane() -> u32 {
    0
}

/// The subgroup's index in its block.
pub fn subgroup_id() -> u32 {
    0
}

/// The value of lane `lane`; unspecified where there is no such lane.
pub fn subgroup_shuffle<T: SubgroupNumber>(value: T, lane: u32) -> T {
    let _ = lane;
    value
}

/// The value of the lane `delta` before this one; unspecified where there is none.
pub fn subgroup_shuffle_up<T: SubgroupNumber>(value: T, delta: u32) -> T {
    let _ = delta;
    value
}

/// The value of the lane `delta` after this one; unspecified where there is none.
pub fn subgroup_shuffle_down<T: SubgroupNumber>(value: T, delta: u32) -> T {
    let _ = delta;
    value
}

/// The value of the lane whose index is this one's with the bits of `mask` flipped; unspecified where there is none.
pub fn subgroup_shuffle_xor<T: SubgroupNumber>(value: T, mask: u32) -> T {
    let _ = mask;
    value
}

/// The value of lane `lane`, which is the same for all lanes.
pub fn subgroup_broadcast<T: SubgroupNumber>(value: T, lane: u32) -> T {
    let _ = lane;
    value
}

/// The value of the lowest active lane.
pub fn subgroup_broadcast_first<T: SubgroupNumber>(value: T) -> T {
    value
}

/// Whether the condition holds in any lane.
pub fn subgroup_any(condition: bool) -> bool {
    condition
}

/// Whether the condition holds in every lane.
pub fn subgroup_all(condition: bool) -> bool {
    condition
}

/// The lanes where the condition holds: bit `i % 32` of word `i / 32` is lane `i`.
pub fn subgroup_ballot(condition: bool) -> [u32; 4] {
    [u32::from(condition), 0, 0, 0]
}

macro_rules! reductions {
    ($($bound:ident $what:literal: $all:ident, $inclusive:ident, $exclusive:ident = $nothing:ident;)*) => { $(
        #[doc = concat!($what, " over the lanes.")]
        pub fn $all<T: $bound>(value: T) -> T {
            value
        }

        #[doc = concat!($what, " over this lane and those before it.")]
        pub fn $inclusive<T: $bound>(value: T) -> T {
            value
        }

        #[doc = concat!($what, " over the lanes before this one.")]
        pub fn $exclusive<T: $bound>(value: T) -> T {
            let _ = value;
            T::$nothing
        }
    )* };
}

reductions! {
    SubgroupNumber "The sum": subgroup_add, subgroup_inclusive_add, subgroup_exclusive_add = ZERO;
    SubgroupNumber "The product": subgroup_mul, subgroup_inclusive_mul, subgroup_exclusive_mul = ONE;
    SubgroupNumber "The least value": subgroup_min, subgroup_inclusive_min, subgroup_exclusive_min = GREATEST;
    SubgroupNumber "The greatest value": subgroup_max, subgroup_inclusive_max, subgroup_exclusive_max = LEAST;
    SubgroupBits "The bitwise and": subgroup_and, subgroup_inclusive_and, subgroup_exclusive_and = ONES;
    SubgroupBits "The bitwise or": subgroup_or, subgroup_inclusive_or, subgroup_exclusive_or = ZERO;
    SubgroupBits "The bitwise exclusive or": subgroup_xor, subgroup_inclusive_xor, subgroup_exclusive_xor = ZERO;
}
