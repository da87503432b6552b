//! What the macros write compiles and lowers: a sample of the language.

use perpetua::device::KernelSpec;
use perpetua::prelude::*;

/// Constants and types of the surrounding Rust.
mod surroundings {
    use perpetua::prelude::*;

    pub(crate) const DT: f32 = 0.5;
    pub(crate) const TABLE: [u32; 4] = [2, 3, 5, 7];

    #[derive(Clone, Copy, Debug, PartialEq, GpuType)]
    #[repr(C)]
    pub(crate) struct Vec2 {
        pub x: f32,
        pub y: f32,
    }

    #[device]
    impl Vec2 {
        pub(crate) const UNIT: Vec2 = Vec2 { x: 1.0, y: 0.0 };

        pub(crate) fn new(x: f32, y: f32) -> Vec2 {
            Vec2 { x, y }
        }

        pub(crate) fn dot(self, other: Vec2) -> f32 {
            self.x * other.x + self.y * other.y
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq, GpuType)]
    #[repr(u32)]
    pub(crate) enum Mode {
        Fast,
        Slow = 4,
    }

    #[device]
    pub(crate) fn half(x: f32) -> f32 {
        x * 0.5
    }
}

use surroundings::{DT, Mode, Vec2, half};

#[kernel]
fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] += a * x[i];
    }
}

#[kernel]
fn names(ps: &mut [Vec2], modes: &[Mode], n: u32) {
    let i = global_id_x();
    let p = ps[i];
    let q = Vec2::new(p.dot(Vec2::UNIT), half(p.y)).dot(p);
    match modes[i] {
        Mode::Fast => ps[i].x = q * DT,
        surroundings::Mode::Slow => {
            ps[i] = Vec2 {
                x: surroundings::TABLE[n as usize] as f32,
                ..p
            }
        }
    }
}

#[kernel(block_size = (64), contract)]
fn fill<T: Copy, const N: usize>(x: &mut [T], value: T) {
    for k in 0..N {
        x[global_id_x() * N + k] = value;
    }
}

#[kernel(tile = (16, 16), halo = 1, edge = clamp)]
fn laplacian(input: &[f32], output: &mut [f32], pos: GridPos) {
    let lap = pos.north(input) + pos.south(input) + pos.east(input) + pos.west(input);
    output[pos.idx()] = lap - 4.0 * input[pos.idx()] + pos.at(input, 1, -1);
}

fn check(kernel: KernelFn) {
    for width in [32, 64] {
        let error = kernel.verified(width).err().map(|error| error.to_string());
        assert_eq!(error, None, "{width}");
    }
}

#[test]
fn kernels_lower() {
    check(saxpy::kernel());
    check(names::kernel());
    check(fill::kernel::<f32, 4>());
    check(fill::kernel::<Vec2, 1>());
    check(laplacian::kernel());
}

#[test]
fn functions_are_plain_rust() {
    let mut y = [1.0, 2.0];
    saxpy(2.0, &[3.0, 4.0], &mut y);
    assert_eq!(y, [7.0, 2.0]);
}
