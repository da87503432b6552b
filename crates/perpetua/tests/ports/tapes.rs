//! Shapes as tapes of instructions.

use std::ops::{Add, Mul, Neg, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 174: Fidget's tapes

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(u8)]
enum Code {
    Axis,
    Constant,
    Copy,
    Negate,
    Absolute,
    Square,
    Root,
    Sum,
    Difference,
    Product,
    Least,
    Most,
}

/// An instruction on registers.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Op {
    code: Code,
    out: u8,
    a: u8,
    b: u8,
    constant: f32,
}

/// What tapes compute with.
#[device]
trait Value: Copy + Neg<Output = Self> + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    fn constant(value: f32) -> Self;
    fn absolute(self) -> Self;
    fn root(self) -> Self;
    fn least(self, other: Self) -> Self;

    fn square(self) -> Self {
        self * self
    }

    fn most(self, other: Self) -> Self {
        -(-self).least(-other)
    }
}

#[device]
impl Value for f32 {
    fn constant(value: f32) -> Self {
        value
    }

    fn absolute(self) -> Self {
        self.abs()
    }

    fn root(self) -> Self {
        self.sqrt()
    }

    fn least(self, other: Self) -> Self {
        self.min(other)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Bounds {
    low: f32,
    high: f32,
}

#[device]
impl Neg for Bounds {
    type Output = Self;

    fn neg(self) -> Self {
        Bounds {
            low: -self.high,
            high: -self.low,
        }
    }
}

#[device]
impl Add for Bounds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Bounds {
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }
}

#[device]
impl Sub for Bounds {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

#[device]
impl Mul for Bounds {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let corners = [self.low, self.high].map(|a| [a * other.low, a * other.high]);
        let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
        for corner in corners.iter().flatten() {
            low = low.min(*corner);
            high = high.max(*corner);
        }
        Bounds { low, high }
    }
}

#[device]
impl Value for Bounds {
    fn constant(value: f32) -> Self {
        Bounds {
            low: value,
            high: value,
        }
    }

    fn absolute(self) -> Self {
        match self {
            Bounds { low, .. } if low >= 0.0 => self,
            Bounds { high, .. } if high <= 0.0 => -self,
            Bounds { low, high } => Bounds {
                low: 0.0,
                high: high.max(-low),
            },
        }
    }

    fn root(self) -> Self {
        Bounds {
            low: self.low.max(0.0).sqrt(),
            high: self.high.max(0.0).sqrt(),
        }
    }

    fn least(self, other: Self) -> Self {
        Bounds {
            low: self.low.min(other.low),
            high: self.high.min(other.high),
        }
    }

    fn square(self) -> Self {
        let Bounds { low, high } = self.absolute();
        Bounds {
            low: low * low,
            high: high * high,
        }
    }
}

const REGISTERS: usize = 12;

#[device]
fn evaluate<V: Value>(tape: &[Op], axes: [V; 3]) -> V {
    let mut registers = [V::constant(0.0); REGISTERS];
    let mut last = 0;
    for op in tape {
        let [out, a, b] = [op.out, op.a, op.b].map(usize::from);
        let (x, y) = (registers[a], registers[b]);
        registers[out] = match op.code {
            Code::Axis => axes[a],
            Code::Constant => V::constant(op.constant),
            Code::Copy => x,
            Code::Negate => -x,
            Code::Absolute => x.absolute(),
            Code::Square => x.square(),
            Code::Root => x.root(),
            Code::Sum => x + y,
            Code::Difference => x - y,
            Code::Product => x * y,
            Code::Least => x.least(y),
            Code::Most => x.most(y),
        };
        last = out;
    }
    registers[last]
}

#[kernel]
fn at_points(tape: &[Op], places: &[[f32; 3]], values: &mut [f32]) {
    if let (Some(place), Some(value)) = (places.get(global_id_x()), values.get_mut(global_id_x())) {
        *value = evaluate(tape, *place);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(u8)]
enum Region {
    Inside,
    Outside,
    Both,
}

#[kernel]
fn in_boxes(tape: &[Op], boxes: &[[Bounds; 3]], regions: &mut [Region]) {
    let Some(axes) = boxes.get(global_id_x()) else {
        return;
    };
    let bounds = evaluate(tape, *axes);
    regions[global_id_x()] = if bounds.high < 0.0 {
        Region::Inside
    } else if bounds.low > 0.0 {
        Region::Outside
    } else {
        Region::Both
    };
}

enum Expression {
    Axis(u8),
    Number(f32),
    One(Code, Box<Expression>),
    Two(Code, Box<Expression>, Box<Expression>),
}

impl Expression {
    fn random(random: &mut Random, depth: usize) -> Self {
        let one = [Code::Negate, Code::Absolute, Code::Square, Code::Root, Code::Copy];
        let two = [
            Code::Sum,
            Code::Difference,
            Code::Product,
            Code::Least,
            Code::Most,
        ];
        match random.below(if depth == 0 { 2 } else { 6 }) {
            0 => Self::Axis(random.below(3) as u8),
            1 => Self::Number(random.between(-1.0, 1.0) as f32),
            2 => {
                let code = one[random.below(5)];
                let inner = Self::random(random, depth - 1);
                match code {
                    // No roots of negative numbers.
                    Code::Root => Self::One(code, Box::new(Self::One(Code::Absolute, Box::new(inner)))),
                    _ => Self::One(code, Box::new(inner)),
                }
            }
            _ => {
                let code = two[random.below(5)];
                let left = Self::random(random, depth - 1);
                Self::Two(code, Box::new(left), Box::new(Self::random(random, depth - 1)))
            }
        }
    }

    fn value(&self, at: [f64; 3]) -> f64 {
        match self {
            Self::Axis(a) => at[usize::from(*a)],
            Self::Number(v) => f64::from(*v),
            Self::One(code, x) => {
                let x = x.value(at);
                match code {
                    Code::Negate => -x,
                    Code::Absolute => x.abs(),
                    Code::Square => x * x,
                    Code::Root => x.sqrt(),
                    _ => x,
                }
            }
            Self::Two(code, x, y) => {
                let (x, y) = (x.value(at), y.value(at));
                match code {
                    Code::Sum => x + y,
                    Code::Difference => x - y,
                    Code::Product => x * y,
                    Code::Least => x.min(y),
                    _ => x.max(y),
                }
            }
        }
    }

    /// Writes the value to register `out`, with those behind it for what is between.
    fn compile(&self, out: u8, tape: &mut Vec<Op>) {
        let (code, a, b, constant) = match self {
            Self::Axis(a) => (Code::Axis, *a, 0, 0.0),
            Self::Number(v) => (Code::Constant, 0, 0, *v),
            Self::One(code, x) => {
                x.compile(out, tape);
                (*code, out, out, 0.0)
            }
            Self::Two(code, x, y) => {
                x.compile(out, tape);
                y.compile(out + 1, tape);
                (*code, out, out + 1, 0.0)
            }
        };
        tape.push(Op {
            code,
            out,
            a,
            b,
            constant,
        });
    }
}

#[test]
fn tapes_compute_what_their_expressions_mean() {
    let mut random = Random(174);
    for _ in 0..3 {
        let left = Expression::random(&mut random, 5);
        let right = Expression::random(&mut random, 5);
        let expression = Expression::Two(Code::Least, Box::new(left), Box::new(right));
        let mut tape = Vec::new();
        expression.compile(0, &mut tape);
        let places: Vec<[f32; 3]> = (0..100)
            .map(|_| std::array::from_fn(|_| random.between(-2.0, 2.0) as f32))
            .collect();
        let boxes: Vec<[Bounds; 3]> = places
            .iter()
            .map(|p| p.map(|low| Bounds { low, high: low + 0.1 }))
            .collect();
        let expected: Vec<f64> = places
            .iter()
            .map(|p| expression.value(p.map(f64::from)))
            .collect();
        everywhere(|run| {
            let (uploaded, points) = (run.upload(&tape), run.upload(&places));
            let values = run.zeros::<f32>(100);
            let config = LaunchConfig::linear(100, 32);
            run.launch(at_points::kernel(), config, args![&uploaded, &points, &values]);
            run.near(&values, &expected, 1e-4);
            let (parts, regions) = (run.upload(&boxes), run.zeros::<Region>(100));
            run.launch(in_boxes::kernel(), config, args![&uploaded, &parts, &regions]);
            let mut random = Random(1);
            for (part, region) in boxes.iter().zip(run.read(&regions)) {
                for _ in 0..20 {
                    let at = part.map(|b| random.between(b.low.into(), b.high.into()));
                    let value = expression.value(at);
                    match region {
                        Region::Inside => assert!(value < 1e-4, "on {}: {at:?} {value}", run.place()),
                        Region::Outside => assert!(value > -1e-4, "on {}: {at:?} {value}", run.place()),
                        Region::Both => {}
                    }
                }
            }
        });
    }
}
