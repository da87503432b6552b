//! Memory that the lanes of a block share. In plain Rust each call gives memory of its own, which lives as long as
//! the program: there is no end of a launch to give it back at.

use super::element::Element;

/// An array that the block shares: `shared_array::<[f32; 256]>()`. Its content at the start is unspecified; here it
/// is zeros.
pub fn shared_array<A: Element>() -> &'static mut A {
    Box::leak(Box::new(A::ZEROED))
}

/// The launch's dynamic shared memory: `shared_slice::<f32>()`. In plain Rust there is none: the slice is empty.
pub fn shared_slice<T: Element>() -> &'static mut [T] {
    &mut []
}
