//! Kernels with the options of `#[kernel]`, over 64 numbers: 8 rows of 8, or 4 layers of 4 rows of 4.

use perpetua::prelude::*;

#[kernel(block_size = (8, 4))]
pub(crate) fn blocks(x: &[f32], y: &mut [f32]) {
    let i = global_id_y() * 8 + global_id_x();
    y[i] = x[i] + (local_id_y() * 100 + group_id_y() * 1000) as f32;
}

#[kernel(contract)]
pub(crate) fn fused(x: &[f32], y: &mut [f32]) {
    let i = global_id_y() * 8 + global_id_x();
    y[i] = x[i] * 0.1 + x[63 - i] * x[i];
}

#[kernel(interpret, crate = ::perpetua)]
pub(crate) fn elsewhere(x: &[f32], y: &mut [f32]) {
    let i = global_id_y() * 8 + global_id_x();
    y[i] = x[63 - i];
}

#[kernel(edge = interior)]
pub(crate) fn interior(at: GridPos, x: &[f32], y: &mut [f32]) {
    y[at.idx()] = at.north(x) + 2.0 * at.east(x);
}

#[kernel(edge = clamp)]
pub(crate) fn clamp(at: GridPos, x: &[f32], y: &mut [f32]) {
    y[at.idx()] = at.north(x) + 2.0 * at.east(x);
}

#[kernel(edge = wrap)]
pub(crate) fn wrap(at: GridPos, x: &[f32], y: &mut [f32]) {
    y[at.idx()] = at.north(x) + 2.0 * at.east(x);
}

#[kernel(edge = constant(-9.5))]
pub(crate) fn constant(at: GridPos, x: &[f32], y: &mut [f32]) {
    y[at.idx()] = at.north(x) + 2.0 * at.east(x);
}

#[kernel(halo = 2, edge = clamp)]
pub(crate) fn far(at: GridPos, x: &[f32], y: &mut [f32]) {
    y[at.idx()] = at.at(x, 2, -2);
}

#[kernel(tile = (8, 4), edge = wrap)]
pub(crate) fn tiled(at: GridPos, x: &[f32], y: &mut [f32]) {
    y[at.idx()] = at.south(x) - at.west(x);
}

#[kernel(tile = (4, 2, 2), edge = constant(1))]
pub(crate) fn tiled_volume(at: volume::GridPos, x: &[f32], y: &mut [f32]) {
    y[at.idx()] = at.up(x) + at.north(x) - at.west(x);
}

#[kernel(edge = clamp)]
pub(crate) fn flat_in_a_volume(at: volume::GridPos, x: &[f32], y: &mut [f32]) {
    y[at.idx()] = at.north(x) - at.west(x);
}

#[device]
#[derive(Clone, Copy, Default, PartialEq, PartialOrd, GpuType)]
enum Shape {
    #[default]
    Nothing,
    Circle(f32),
    Rect {
        w: f32,
        h: f32,
    },
}

#[derive(Clone, Copy, GpuType)]
enum Held<T> {
    One(T),
    Two([T; 2], Shape),
}

const UNIT: Shape = Shape::Rect { h: 1.0, w: 0.5 };

#[device]
impl<T: Copy> Held<T> {
    fn first(self) -> T {
        match self {
            Self::One(v) | Held::Two([v, _], _) => v,
        }
    }
}

#[kernel]
pub(crate) fn shapes(x: &[f32], y: &mut [f32]) {
    let i = global_id_y() * 8 + global_id_x();
    let v = x[i];
    let shape = match v {
        ..-2.0 => Shape::default(),
        -2.0..2.0 => Shape::Circle(v),
        _ => UNIT,
    };
    let held = if v > 0.0 {
        Held::One(v)
    } else {
        Held::Two([1.5, v], shape)
    };
    let size = match (shape, held) {
        (Shape::Circle(r), Held::Two(_, Shape::Circle(0.0))) => r,
        (Shape::Circle(r), _) => r * 4.0,
        (Shape::Rect { w, .. }, _) => w,
        (other, _) if other < UNIT => 7.0,
        _ => -1.0,
    };
    y[i] = size + held.first();
}
