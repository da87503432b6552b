//! What a kernel that stays on a device asks of it. Called as plain Rust, nothing stays: the clock is the host's, and nothing
//! faults that Rust would not panic at.

use std::mem::offset_of;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use perpetua_ir::front::rust::{ConstValue, FieldDesc, GpuConst, GpuType, GpuValue, TypeDesc};

/// Four words that are read and written at once: a relaxed atomic access moves all 16 bytes or none
/// (`atomic_load_explicit`, `atomic_store_explicit`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct U32x4 {
    /// The first word.
    pub x: u32,
    /// The second.
    pub y: u32,
    /// The third.
    pub z: u32,
    /// The last.
    pub w: u32,
}

// SAFETY: a `#[repr(C)]` struct of four words; offsets, size and alignment come from the compiler. It holds no references.
unsafe impl GpuType for U32x4 {
    fn describe() -> TypeDesc {
        let field = |name: &str, offset| FieldDesc {
            name: name.into(),
            ty: u32::describe(),
            offset,
        };
        let fields = vec![
            field("x", offset_of!(U32x4, x)),
            field("y", offset_of!(U32x4, y)),
            field("z", offset_of!(U32x4, z)),
            field("w", offset_of!(U32x4, w)),
        ];
        TypeDesc::of_struct::<U32x4>("U32x4", false, fields)
    }
}

impl GpuValue for U32x4 {
    const ZEROED: U32x4 = U32x4 {
        x: 0,
        y: 0,
        z: 0,
        w: 0,
    };
}

impl GpuConst for U32x4 {
    fn to_const(&self) -> ConstValue {
        let words = [self.x, self.y, self.z, self.w];
        ConstValue::of_struct(&U32x4::describe(), words.iter().map(GpuConst::to_const).collect())
    }

    fn const_type() -> Option<TypeDesc> {
        Some(U32x4::describe())
    }
}

/// The device's clock, in nanoseconds since a moment that stays the same while the device is in use.
pub fn clock_nanos() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// A fault, as of an index out of bounds, unless `index` is below `length`: for parts of memory that are no slices. As plain Rust a panic.
#[inline]
#[track_caller]
pub fn check_index(index: u32, length: u32) {
    assert!(
        index < length,
        "index out of bounds: the length of `span` is {length} but the index is {index}"
    );
}

/// Lets others run for about so many nanoseconds.
pub fn nap(nanoseconds: u32) {
    std::thread::sleep(Duration::from_nanos(nanoseconds.into()));
}

/// All lanes of the subgroup that have not ended come here, and go on together: what exchanges values among lanes behind a
/// condition that some of them took wants it. The only lane of a launch waits for nobody.
pub fn converge() {}

/// All lanes of the block come here, and go on together; what they wrote before, all of them see behind it. Other than
/// `sync_threads` it may stand behind conditions that come from messages, which nothing can prove to be the same for all lanes:
/// whoever writes it answers for that. Lanes that nobody meets wait for ever. The only lane of a launch waits for nobody.
pub fn meet() {}

/// Directly behind a labelled block: the fault that this lane met in it (index out of bounds, division by zero and the like),
/// as the number of its site plus one, or 0. The lane left the block where it faulted, and goes on behind it. A loop in the block
/// that still turns when [`clock_nanos`] is past `until`, a variable set before the block and never again, is a fault, too.
///
/// As plain Rust 0: there such code panics, and runs for as long as it likes.
pub fn catch_fault(_until: u64) -> u32 {
    0
}
