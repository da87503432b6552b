//! Memory that the lanes of a block share. In plain Rust each call gives memory of its own, which lives as long as
//! the program: there is no end of a launch to give it back at.

#![allow(
    unsafe_code,
    reason = "memory of a type that is known by its description alone"
)]

use std::mem::MaybeUninit;

use perpetua_ir::front::rust::GpuType;

/// An array that the block shares: `shared_array::<[f32; 256]>()`. Its content at the start is unspecified; here it
/// is zeros.
pub fn shared_array<A: GpuType>() -> &'static mut A {
    let memory = Box::leak(Box::new(MaybeUninit::<A>::zeroed()));
    // SAFETY: `memory` is as long as an `A`, all of it was set to zero, and nothing else refers to it yet.
    let bytes = unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast::<u8>(), size_of::<A>()) };
    A::describe().make_valid(bytes);
    // SAFETY: zero is a value of every scalar, and each enum has a number that it knows: `GpuType` promises that the description names
    // all scalars and enums of the type, and that it holds nothing else.
    unsafe { memory.assume_init_mut() }
}

/// The launch's dynamic shared memory: `shared_slice::<f32>()`. In plain Rust there is none: the slice is empty.
pub fn shared_slice<T: GpuType>() -> &'static mut [T] {
    &mut []
}
