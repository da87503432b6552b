//! Aggregates, constants, references and calls.

use super::super::lanes::*;

const WIDTH: usize = 2 * 3 + 2;
const WEIGHTS: [f32; 5] = [0.0625, 0.25, 0.375, 0.25, 0.0625];
const TABLE: [[i32; 3]; 2] = [[1, 2, 3], [40, 50, 60]];
const CORNERS: &[(i32, i32)] = &[(0, 1), (1, 0), (0, -1), (-1, 0)];
const ORIGIN: Point = Point {
    x: 1.5,
    y: -2.0,
    id: LIMIT as u8,
};
const LIMIT: u32 = if WIDTH > 4 { 1 << 5 } else { 0 };
const FACTOR: f32 = -2.0 * 0.5 + std::f32::consts::FRAC_1_SQRT_2;

#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(any(), derive(GpuType))]
#[repr(C)]
pub struct Point {
    pub x: f32,
    pub y: f32,
    pub id: u8,
}

#[derive(Clone, Copy)]
#[cfg_attr(any(), derive(GpuType))]
#[repr(C)]
pub struct Body {
    at: Point,
    mode: Mode,
    history: [f32; 3],
}

#[derive(Clone, Copy)]
#[cfg_attr(any(), derive(GpuType))]
#[repr(C)]
struct Pair(i32, u64);

#[derive(Clone, Copy, PartialEq, PartialOrd)]
#[cfg_attr(any(), derive(GpuType))]
#[repr(i16)]
pub enum Mode {
    Still = -3,
    Moving,
    Lost = 9,
}

impl Point {
    const UNIT: f32 = 4.0;

    #[cfg_attr(any(), device)]
    fn new(x: f32, y: f32) -> Self {
        Self { x, y, id: 3 }
    }

    #[cfg_attr(any(), device)]
    fn dot(&self, other: &Point) -> f32 {
        self.x * other.x + self.y * other.y
    }

    #[cfg_attr(any(), device)]
    fn scaled(self, by: f32) -> Point {
        Point {
            x: self.x * by,
            y: self.y * by,
            ..self
        }
    }

    #[cfg_attr(any(), device)]
    fn shift(&mut self, by: f32) {
        if by < 0.0 {
            self.id = 0;
            return;
        }
        self.x += by * Self::UNIT;
        self.id = self.id.wrapping_add(1);
    }
}

mod shapes {
    pub const HALF: f32 = super::WEIGHTS[1] * 2.0;

    #[cfg_attr(any(), device)]
    pub fn average(a: f32, b: f32) -> f32 {
        (a + b) * HALF
    }

    pub mod inner {
        #[cfg_attr(any(), device)]
        pub fn twice(a: f32) -> f32 {
            super::average(a, a) + super::super::shapes::average(a, a)
        }
    }
}

use shapes::inner;

#[cfg_attr(any(), device)]
fn largest<T: Copy + PartialOrd, const N: usize>(values: &[T; N]) -> T {
    let mut best = values[0];
    for k in 1..N {
        if values[k] > best {
            best = values[k];
        }
    }
    best
}

#[cfg_attr(any(), device)]
fn sum(values: &[f32], from: usize, to: usize) -> f32 {
    let mut s = 0.0;
    for k in from..to {
        if k >= values.len() {
            return s;
        }
        s += values[k];
    }
    s
}

#[cfg_attr(any(), device)]
fn add_to(values: &mut [f32], at: usize, by: f32) -> f32 {
    let old = values[at];
    values[at] += by;
    old
}

#[cfg_attr(any(), device)]
fn min_max(a: f32, b: f32) -> (f32, f32) {
    if a < b {
        return (a, b);
    }
    (b, a)
}

#[cfg_attr(any(), device)]
fn bump(counter: &mut u32, by: u32) {
    *counter += by;
}

#[cfg_attr(any(), device)]
fn classify(v: f32) -> Mode {
    if v > 10.0 {
        Mode::Lost
    } else if v > 1.0 {
        Mode::Moving
    } else {
        Mode::Still
    }
}

#[cfg_attr(any(), device)]
fn blur<const RADIUS: usize, const WEIGHTED: bool>(x: &[f32], at: usize) -> f32 {
    let mut s = 0.0;
    for k in 0..2 * RADIUS + 1 {
        let j = (at + k + x.len() - RADIUS) % x.len();
        s += if WEIGHTED { x[j] * WEIGHTS[k % 5] } else { x[j] };
    }
    s
}

#[cfg_attr(any(), kernel)]
pub fn arrays(x: &[f32], out: &mut [f32]) {
    let i = global_id_x();
    let v = x[i];
    let mut window = [0.0; WIDTH];
    for k in 0..WIDTH {
        window[k] = v * k as f32;
    }
    let fixed = [v, 1.0, 2.0];
    let mut grid = [[0.0f32; 3]; 2];
    grid[1][i % 3] = v;
    grid[i % 2] = [1.0, 2.0, v];
    let row = grid[1];
    let filled = [v + 1.0; 40];
    window.swap(0, WIDTH - 1);
    let mut ones = [2.5; 20];
    ones[3] = 1.0;
    let mut s = window[0] + window[WIDTH - 1] + fixed[i % 3] + row[2] + filled[39] + ones[i % 20];
    for k in 0..window.len() {
        s += window[k] * WEIGHTS[k % WEIGHTS.len()];
    }
    s += TABLE[i % 2][(i / 2) % 3] as f32 + TABLE[1][2] as f32;
    let (dx, dy) = CORNERS[i % 4];
    s += (dx * 3 + dy) as f32 + CORNERS.len() as f32;
    window.fill(0.5);
    out[i] = s + sum(&window, 1, 100) + add_to(&mut window, 2, 4.0) + window[2] + FACTOR;
}

#[cfg_attr(any(), kernel)]
pub fn structs(x: &[f32], out: &mut [f32]) {
    let i = global_id_x();
    let v = x[i];
    let mut p = Point::new(v, 2.0);
    let q = p.scaled(3.0);
    p.shift(v);
    p.y -= q.x;
    let mut pair = Pair(3, 4);
    pair.1 += i as u64;
    let b = Body {
        at: p,
        mode: classify(v),
        history: [v, 1.0, 2.0],
    };
    let mut c = b;
    c.history[i % 3] += 10.0;
    c.at.shift(0.5);
    let same = b.at == c.at;
    let code = match b.mode {
        Mode::Still => 1.0,
        Mode::Moving => 2.0,
        Mode::Lost => 3.0,
    };
    let t = (c.at, v);
    out[i] = p.dot(&q)
        + code
        + c.history[0]
        + c.history[2]
        + t.0.x
        + t.1
        + pair.0 as f32
        + pair.1 as f32
        + (b.mode as i16) as f32
        + (b.mode == Mode::Moving) as u32 as f32
        + (b.mode < Mode::Lost) as u32 as f32
        + same as u32 as f32
        + ORIGIN.dot(&p)
        + ORIGIN.id as f32;
}

#[cfg_attr(any(), kernel)]
pub fn calls(x: &[f32], out: &mut [f32]) {
    let i = global_id_x();
    let (lo, hi) = min_max(x[i], x[(i + 1) % x.len()]);
    let mut count = 0;
    bump(&mut count, 3);
    {
        let r = &mut count;
        *r += 1;
        bump(r, LIMIT);
    }
    let (reals, whole) = ([lo, hi, 3.0], 4);
    let numbers = [1, 5, whole, 2i32];
    let best = largest(&reals) + largest(&numbers) as f32;
    let place = &x[i / 2];
    out[i] = 0.0;
    let cell = &mut out[i];
    *cell += *place * 2.0 + inner::twice(lo) + shapes::average(hi, 1.0);
    *cell += count as f32 + best + sum(x, i, i + 5);
    *cell += blur::<1, false>(x, i) + blur::<{ 1 + 1 }, true>(x, i) + blur::<WIDTH, true>(x, i);
}
