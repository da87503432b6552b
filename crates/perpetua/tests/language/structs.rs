//! Structs, enums, their methods, device functions.

use perpetua::prelude::*;

use crate::harness::{check, floats};

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Vec2 {
    x: f32,
    y: f32,
}

#[device]
impl Vec2 {
    const ORIGIN: Vec2 = Vec2 { x: 0.0, y: 0.0 };

    fn new(x: f32, y: f32) -> Vec2 {
        Vec2 { x, y }
    }

    fn dot(self, other: Vec2) -> f32 {
        self.x * other.x + self.y * other.y
    }

    fn scaled(&self, by: f32) -> Self {
        Self {
            x: self.x * by,
            ..*self
        }
    }

    fn turn(&mut self) {
        let x = self.x;
        self.x = -self.y;
        self.y = x;
    }
}

#[device]
impl std::ops::Add for Vec2 {
    type Output = Vec2;

    fn add(self, other: Vec2) -> Vec2 {
        Vec2 {
            x: self.x + other.x,
            y: self.y + other.y,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Particle {
    at: Vec2,
    speed: Vec2,
    history: [f32; 4],
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Kind {
    Free = 3,
    Bound,
    Gone = 9,
}

mod elsewhere {
    use perpetua::prelude::*;

    #[device]
    pub(crate) fn cube<T: Copy + std::ops::Mul<Output = T>>(x: T) -> T {
        x * x * x
    }

    #[device]
    pub(crate) fn mean(values: &[f32; 4], scale: &f32) -> f32 {
        let mut sum = 0.0;
        for i in 0..values.len() {
            sum += values[i];
        }
        sum * scale / 4.0
    }

    #[device]
    pub(crate) fn bump(count: &mut u32, by: u32) -> u32 {
        *count += by;
        *count
    }
}

const STEPS: [u32; 4] = [1, 5, 25, 125];

/// One step of a particle that is pulled at by another.
#[kernel]
fn moves(others: &[Vec2], ps: &mut [Particle]) {
    let dt = 0.125;
    let i = global_id_x();
    let mut p = ps[i];
    let pull = others[i].dot(p.at) + others[i].scaled(2.0).x;
    p.speed.turn();
    p.at.x += p.speed.x * dt;
    p.at.y += elsewhere::cube(p.speed.y * 0.5) * dt;
    let mut count = 1;
    for k in 0..4 {
        p.history[k] = p.history[k] * 0.5 + pull + elsewhere::bump(&mut count, STEPS[k]) as f32;
    }
    let mean = elsewhere::mean(&p.history, &dt);
    ps[i] = p;
    ps[i].speed.y = mean;
    ps[i].history[i % 4] -= 1.0;
    ps[i].kind = match p.kind {
        Kind::Free => Kind::Bound,
        Kind::Bound if mean > 0.0 => Kind::Free,
        Kind::Bound | Kind::Gone => Kind::Gone,
    };
    if p.at == p.at.clone() {
        ps[i].at = Vec2::new(p.at.x, Vec2::ORIGIN.y + p.at.y) + Vec2::ORIGIN;
    }
}

#[test]
fn particles() {
    let (a, b) = (floats(64), floats(130));
    let ps: Vec<Particle> = (0..64)
        .map(|i| Particle {
            at: Vec2::new(a[i], b[i + 60]),
            speed: Vec2::new(b[i + 31], a[i]),
            history: [a[i], 1.0, b[i + 7], 2.0],
            kind: [Kind::Free, Kind::Bound, Kind::Gone][i % 3],
        })
        .collect();
    let others: Vec<Vec2> = (0..64).map(|i| Vec2::new(a[63 - i], b[i])).collect();
    check(moves::kernel(), moves, &others, &ps);
}

/// Called like the standard library's trait, and has functions of its own.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Add {
    by: f32,
}

#[device]
impl Add {
    fn read(words: [f32; 2]) -> Add {
        Add { by: words[1] }
    }
}

#[kernel]
fn called_like_a_trait(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = Add::read([x[i], x[i] + 1.0]).by;
    }
}

#[test]
fn a_type_is_called_like_a_trait() {
    let input = floats(100);
    check(
        called_like_a_trait::kernel(),
        called_like_a_trait,
        &input,
        &[0.0; 100],
    );
}
