//! Refused: gpu types.

#![allow(warnings)]

use perpetua::prelude::*;

#[derive(Clone, Copy, GpuType)]
struct Unordered {
    x: f32,
}

#[derive(Clone, Copy, GpuType)]
#[repr(C, packed)]
struct Packed {
    x: f32,
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Empty<const N: usize>;

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Generic<T: Copy + Ord, U = f32> {
    x: T,
    y: U,
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Turned<A, B> {
    a: A,
    b: B,
}

/// The other way round.
type Reversed<A, B> = Turned<B, A>;

#[device]
fn first(of: Reversed<f32, u32>) -> u32 {
    of.a
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Referring {
    x: &'static f32,
}

/// Compared by its first field alone, which kernels do not know.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Keyed {
    key: u32,
    value: f32,
}

impl PartialEq for Keyed {
    fn eq(&self, other: &Keyed) -> bool {
        self.key == other.key
    }
}

#[derive(Clone, Copy, GpuType)]
enum NoRepr {
    A,
}

#[derive(Clone, Copy, GpuType)]
enum Data {
    A(f32),
    B,
}

#[kernel]
fn in_memory(x: &[Data], y: &mut [f32]) {
    if let Data::A(v) = x[0] {
        y[0] = v;
    }
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Holds {
    data: Data,
}

#[derive(Clone, Copy, GpuType)]
enum Nested {
    A(Option<&'static f32>),
    B(&'static f32),
}

/// Compared by its variant alone, which kernels do not know.
#[derive(Clone, Copy, GpuType)]
enum Loose {
    A(f32),
    B,
}

impl PartialEq for Loose {
    fn eq(&self, other: &Loose) -> bool {
        matches!((self, other), (Loose::A(_), Loose::A(_)) | (Loose::B, Loose::B))
    }
}

#[derive(Clone, Copy, GpuType)]
#[repr(u32)]
enum Computed {
    A = 1 + 1,
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
union Either {
    x: f32,
}

fn main() {}
