//! Memory that the lanes of a work-group share. In plain Rust each call gives memory of its own, which lives as long as
//! the program: there is no end of a launch to give it back at.

use super::element::Element;

/// An array that the work-group shares: `workgroup_array::<[f32; 256]>()`. Its content at the start is unspecified; here it
/// is zeros.
pub fn workgroup_array<A: Element>() -> &'static mut A {
    Box::leak(Box::new(A::ZEROED))
}

/// The launch's dynamic workgroup memory: `workgroup_slice::<f32>()`. In plain Rust there is none: the slice is empty.
pub fn workgroup_slice<T: Element>() -> &'static mut [T] {
    &mut []
}
