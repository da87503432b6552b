//! Enums with data: made, matched, compared, passed to functions, in arrays and loops, generic.

use perpetua::prelude::*;

use crate::harness::{check, floats};

/// Values of kernels; no memory takes them.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
enum Shape {
    Empty,
    Circle(f32),
    Rect { w: f32, h: f32 },
    Polygon(u32, [f32; 2], (f32, bool)),
    Coloured(Colour, Corner),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(u32)]
enum Colour {
    Red = 3,
    Green = 7,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Corner {
    x: f32,
    y: f32,
}

#[device]
impl Shape {
    const UNIT: f32 = 2.0;

    fn of(i: usize, x: f32) -> Shape {
        match i % 6 {
            0 => Shape::Empty,
            1 => Self::Circle(x),
            // The fields are computed in the order written.
            2 => Shape::Rect { h: x + 1.0, w: x },
            3 => Shape::Polygon(i as u32, [x, 2.0], (x * 0.5, x > 0.0)),
            n => Shape::Coloured(
                if n == 4 { Colour::Red } else { Colour::Green },
                Corner { x, y: -x },
            ),
        }
    }

    fn area(&self) -> f32 {
        match *self {
            Self::Empty => 0.0,
            Self::Circle(r) => r * r * Self::UNIT,
            Shape::Rect { w, .. } if w < 0.0 => -w,
            Shape::Rect { w, h } => w * h,
            Shape::Polygon(n @ ..=20, .., (half, true)) => half + n as f32,
            Shape::Polygon(_, [a, b], _) => a - b,
            Shape::Coloured(Colour::Red, Corner { x, .. }) => x,
            Shape::Coloured(colour, corner) => corner.y + colour as u32 as f32,
        }
    }

    fn grow(&mut self) {
        match self {
            Shape::Circle(r) => *r += 1.0,
            Shape::Rect { w, h } => (*w, *h) = (*h, *w + 0.5),
            Shape::Coloured(_, corner) => corner.x *= 2.0,
            other => *other = Shape::Circle(0.25),
        }
    }
}

#[device]
fn radius(shape: Shape) -> Option<f32> {
    let Shape::Circle(r) = shape else {
        return None;
    };
    Some(r)
}

#[kernel]
fn shapes(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    if i >= y.len() {
        return;
    }
    let mut shape = Shape::of(i, x[i]);
    let mut sum = shape.area() + radius(shape).unwrap_or(0.5);
    shape.grow();
    sum += shape.area() * 2.0;
    if let Shape::Rect { w, h: 1.0.. } = shape {
        sum += w;
    } else if matches!(shape, Shape::Circle(r) if r > 2.0) {
        sum += 4.0;
    }
    if shape == Shape::Circle(0.25) || shape != Shape::of(i, x[i]) {
        sum -= 8.0;
    }
    let mut kept = [Shape::Empty; 3];
    kept[i % 3] = shape;
    kept[(i + 1) % 3] = Shape::Circle(1.0);
    for (at, one) in kept.iter().enumerate() {
        sum += one.area() * at as f32;
    }
    let made = [x[i]].map(Shape::Circle);
    let none = kept.iter().all(|one| matches!(one, Shape::Empty));
    sum += made[0].area() + if none { 16.0 } else { 0.0 };
    y[i] = sum;
}

#[test]
fn enums_with_data_are_values() {
    check(shapes::kernel(), shapes, &floats(100), &[0.0f32; 100]);
}

/// A stack machine: what a step does is data.
#[derive(Clone, Copy, GpuType)]
enum Step {
    Push(i32),
    Add,
    Jump { by: usize, unless: i32 },
    Stop,
}

const PROGRAM: [Step; 6] = [
    Step::Push(3),
    Step::Push(4),
    Step::Add,
    Step::Jump { by: 2, unless: 12 },
    Step::Push(-40),
    Step::Add,
];

#[device]
fn step(at: usize) -> Step {
    if at < PROGRAM.len() {
        PROGRAM[at]
    } else {
        Step::Stop
    }
}

#[kernel]
fn programs(x: &[i32], y: &mut [i32]) {
    let i = global_id_x();
    let mut stack = [x[i], 0, 0, 0];
    let (mut top, mut at) = (0usize, 0usize);
    while let step @ (Step::Push(_) | Step::Add | Step::Jump { .. }) = step(at) {
        at += 1;
        match step {
            Step::Push(value) => {
                top += 1;
                stack[top] = value;
            }
            Step::Add => {
                stack[top - 1] += stack[top];
                top -= 1;
            }
            Step::Jump { by, unless } if stack[top] != unless => at += by,
            Step::Jump { .. } => stack[top] += 1,
            Step::Stop => {}
        }
        if top == 0 {
            break;
        }
    }
    y[i] = stack[0] * 10 + stack[top] + at as i32;
}

#[test]
fn a_program_of_variants() {
    let input: Vec<i32> = (0..64).map(|i| i % 9 - 3).collect();
    check(programs::kernel(), programs, &input, &[0; 64]);
}

/// Compared, ordered and made as derived.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, GpuType)]
enum Grade {
    #[default]
    Open,
    Points(i32),
    Share {
        of: i32,
        part: f32,
    },
}

#[device]
fn grade(n: i32, x: f32) -> Grade {
    match n.rem_euclid(3) {
        0 => Grade::default(),
        1 => Grade::Points(n),
        _ => Grade::Share { of: n % 4, part: x },
    }
}

#[kernel]
fn grades(x: &[f32], y: &mut [i32]) {
    let i = global_id_x();
    let (a, b) = (grade(x[i] as i32, x[i]), grade(x[i + 1] as i32, x[i + 2]));
    let mut all = (a < b) as i32 + (a <= b) as i32 * 2 + (a == b) as i32 * 4 + (a != a) as i32 * 8;
    all += match a.partial_cmp(&b) {
        Some(order) => order as i32 * 16,
        None => 64,
    };
    y[i] = all;
}

#[test]
fn variants_that_derive_their_order() {
    let mut x = floats(66);
    x[20] = f32::NAN;
    check(grades::kernel(), grades, &x, &[0i32; 64]);
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
enum Tree<T, const N: usize> {
    Leaf(T),
    Node { left: T, rest: [T; N] },
    Gone,
}

#[device]
impl<T: Copy + std::ops::Add<Output = T>, const N: usize> Tree<T, N> {
    fn sum(self, zero: T) -> T {
        match self {
            Self::Leaf(value) => value,
            Tree::Node { left, rest } => {
                let mut sum = left;
                for k in 0..N {
                    sum = sum + rest[k];
                }
                sum
            }
            Tree::Gone => zero,
        }
    }

    fn cut(&self) -> Self {
        match *self {
            Self::Node { left, .. } => Tree::Leaf(left),
            _ => Self::Gone,
        }
    }
}

#[device]
fn either<T: Copy, const N: usize>(first: bool, a: T, b: T) -> Tree<T, N> {
    if first {
        Tree::Leaf(a)
    } else {
        Tree::Node {
            rest: [b; N],
            left: a,
        }
    }
}

#[kernel]
fn trees(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let mut tree = either::<f32, 2>(i % 3 == 0, x[i], 1.5);
    let mut sum = tree.sum(0.0);
    let number: Tree<u32, 3> = if i % 2 == 0 {
        Tree::Gone
    } else {
        either(false, i as u32, 2)
    };
    sum += number.sum(7) as f32 + number.cut().sum(1) as f32;
    let mut turns = 0;
    while tree != Tree::Gone && turns < 5 {
        tree = tree.cut();
        turns += 1;
    }
    if let Tree::Leaf(nested) = Tree::<Tree<u32, 3>, 1>::Leaf(number)
        && nested == number
    {
        turns += 8;
    }
    y[i] = sum + turns as f32;
}

#[test]
fn enums_with_data_are_generic() {
    check(trees::kernel(), trees, &floats(64), &[0.0f32; 64]);
}

/// What variants hold may itself be missing.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
enum Answer<T> {
    Nothing,
    Perhaps(Option<T>, u32),
    Tried {
        result: Result<T, u32>,
        both: Option<(T, [u8; 2])>,
    },
}

#[derive(Clone, Copy, PartialEq, GpuType)]
enum Plain {
    Some(Option<f32>),
    Either(Result<[f32; 2], Option<bool>>),
}

const FIRST: Plain = Plain::Some(Some(1.5));
const SECOND: Plain = Plain::Either(Err(Some(true)));
const LIMIT: Option<f32> = Some(3.0);
const NO_LIMIT: Result<u32, f32> = Err(-1.0);

#[device]
impl<T: Copy> Answer<T> {
    const WORDS: usize = 4;

    fn of(i: usize, value: T) -> Self {
        match i % 4 {
            0 => Answer::Nothing,
            1 => Answer::Perhaps(None, 7),
            2 => Answer::Perhaps(Some(value), i as u32),
            _ => Answer::Tried {
                result: if i % 8 == 3 { Ok(value) } else { Err(i as u32) },
                both: Some((value, [i as u8, 2])),
            },
        }
    }

    fn value(&self) -> Option<T> {
        match *self {
            Self::Nothing => None,
            Self::Perhaps(held, _) => held,
            Self::Tried {
                result: Ok(value), ..
            } => Some(value),
            Self::Tried { both, .. } => both.map(|(value, _)| value),
        }
    }
}

#[kernel]
fn answers(x: &[f32], y: &mut [[f32; 4]]) {
    let i = global_id_x();
    let mut answer = Answer::of(i, x[i]);
    let first = answer.value().unwrap_or(-20.0);
    if let Answer::Perhaps(held, count) = &mut answer {
        *held = held.map(|v| v + 1.0).or(LIMIT);
        *count += 1;
    }
    let count = match answer {
        Answer::Perhaps(_, count) => count as f32,
        Answer::Tried {
            result: Err(code), ..
        } => code as f32,
        _ => Answer::<f32>::WORDS as f32,
    };
    let plain = if i % 2 == 0 { FIRST } else { SECOND };
    let shown = match plain {
        Plain::Some(held) => held.map_or(0.0, |v| v * 2.0),
        Plain::Either(Err(Some(known))) => known as u32 as f32 + NO_LIMIT.unwrap_or(9) as f32,
        Plain::Either(_) => -1.0,
    };
    let same = answer == Answer::of(i, x[i]) || plain == Plain::Some(Some(1.5));
    y[i] = [
        first,
        count,
        shown,
        answer.value().unwrap_or(0.5) + same as u32 as f32,
    ];
}

#[test]
fn variants_hold_options() {
    check(answers::kernel(), answers, &floats(64), &[[0.0f32; 4]; 64]);
}

/// Variants whose names are written like constants, and constants of the type.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[expect(clippy::upper_case_acronyms, reason = "they are what is tested")]
enum Space<T> {
    RGB,
    HSV,
    XYZ(T),
}

#[device]
impl<T: Copy> Space<T> {
    const USUAL: Self = Self::HSV;
    const COUNT: u32 = 3;

    fn of(i: usize, value: T) -> Self {
        match i % 3 {
            0 => Space::RGB,
            1 => Space::USUAL,
            _ => Space::XYZ(value),
        }
    }
}

#[kernel]
fn spaces(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let mut space = Space::of(i, x[i]);
    let first = match space {
        Space::RGB => 1.0,
        Space::HSV => 2.0,
        Space::XYZ(value) => value,
    };
    let other: Space<u32> = if i % 2 == 0 { Space::RGB } else { Space::USUAL };
    let second = match other {
        Space::XYZ(count) => count,
        Space::HSV => 10 + Space::<u32>::COUNT,
        Space::RGB => 20,
    };
    if first > 1.5 {
        space = Space::RGB;
    }
    y[i] = first + second as f32 + matches!(space, Space::RGB) as u32 as f32;
}

#[test]
fn variants_and_constants_of_generic_enums_may_be_written_in_capitals() {
    check(spaces::kernel(), spaces, &floats(64), &[0.0f32; 64]);
}

/// As [`Space`], of one type.
#[allow(
    clippy::upper_case_acronyms,
    reason = "a name without a small letter is what is tested"
)]
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
enum Code {
    NOP,
    Add(i32),
    HALT,
}

const NOTHING: Option<i32> = None;
const FIVE: Code = Code::Add(5);

#[kernel]
fn codes(x: &[i32], y: &mut [[i32; 3]]) {
    let i = global_id_x();
    let code = match i % 4 {
        0 => Code::NOP,
        1 => Code::Add(x[i]),
        2 => FIVE,
        _ => Code::HALT,
    };
    let number = match code {
        Code::NOP => 1,
        Code::Add(v) => v,
        Code::HALT => -1,
    };
    let five = match code {
        FIVE => 1,
        Code::HALT => 2,
        Code::NOP | Code::Add(_) => 3,
    };
    // What was there before it was left out is nothing that a constant is compared with.
    let kept = match Some(x[i]).filter(|v| *v % 2 == 0) {
        NOTHING => -3,
        Some(v) => v,
    };
    y[i] = [number, five, kept];
}

#[test]
fn constants_of_enums_cover_their_variants() {
    let x: Vec<i32> = (0..32).collect();
    check(codes::kernel(), codes, &x, &[[0i32; 3]; 32]);
}
