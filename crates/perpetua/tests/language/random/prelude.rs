//! What random kernels use: types, a trait, functions. A text to the test, which rustc and the kernel language read.

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Pair {
    a: i32,
    b: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
enum Shape {
    Empty,
    One(i32),
    Two { a: i32, b: u32 },
    Held(Option<i32>, (i32, u32)),
}

#[device]
trait Mix: Copy {
    const START: Self;

    fn mix(self, other: Self) -> Self;

    fn twice(self) -> Self {
        self.mix(Self::START).mix(self)
    }
}

#[device]
impl Mix for i32 {
    const START: i32 = 17;

    fn mix(self, other: i32) -> i32 {
        (self ^ other).rotate_left(3) - other
    }
}

#[device]
impl Mix for u32 {
    const START: u32 = 40;

    fn mix(self, other: u32) -> u32 {
        self * 5 + other
    }

    fn twice(self) -> u32 {
        self * 2
    }
}

#[device]
impl Mix for Pair {
    const START: Pair = Pair { a: -1, b: 2 };

    fn mix(self, other: Pair) -> Pair {
        Pair {
            a: self.a.mix(other.a),
            b: self.b.mix(other.b),
        }
    }
}

#[device]
impl std::ops::Add for Pair {
    type Output = Pair;

    fn add(self, other: Pair) -> Pair {
        Pair {
            a: self.a + other.a,
            b: self.b + other.b,
        }
    }
}

#[device]
impl Pair {
    fn folded(&self) -> i32 {
        self.a ^ self.b as i32
    }
}

#[device]
impl Shape {
    fn of(a: i32, b: u32) -> Shape {
        match a & 3 {
            0 => Self::Empty,
            1 => Shape::One(a),
            2 => Shape::Two { b, a },
            _ => Shape::Held(halved(a + 1), (a, b)),
        }
    }

    fn weight(&self) -> u32 {
        match *self {
            Shape::Empty => 1,
            Shape::One(v) | Shape::Held(Some(v), _) => v as u32,
            Shape::Two { a, b } if b > 7 => a as u32 ^ b,
            Shape::Two { .. } => 5,
            Shape::Held(None, (a, b)) => a as u32 + b,
        }
    }

    fn grow(&mut self) {
        match self {
            Shape::One(v) => *v *= 3,
            Shape::Two { a, .. } => *a -= 1,
            Shape::Held(held, _) => *held = held.map(|v| v + 1),
            other => *other = Shape::One(4),
        }
    }
}

#[device]
fn halved(x: i32) -> Option<i32> {
    (x & 1 == 0).then_some(x >> 1)
}

#[device]
fn twice_halved(x: i32) -> Option<i32> {
    let once = halved(x)?;
    halved(once).or(Some(once - 1))
}

#[device]
fn attempt(x: i32, code: u32) -> Result<i32, u32> {
    let once = halved(x).ok_or(code)?;
    if once > 1000 { Err(code + 1) } else { Ok(once) }
}

#[device]
fn apply(x: i32, f: impl Fn(i32) -> i32) -> i32 {
    f(f(x) ^ 1)
}

#[device]
fn mixed<T: Mix + PartialEq>(a: T, b: T, c: T) -> T {
    if a == b { c.twice() } else { a.mix(b).mix(c) }
}
