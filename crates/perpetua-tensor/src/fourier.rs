//! Fourier transforms of complex numbers, which are pairs along the last axis. On the CPU the host computes them; elsewhere they are products with small matrices where the length divides, and otherwise
//! (Bluestein) a convolution by longer ones whose length does.

use std::panic::Location;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::node::Tensor;
use crate::shape::{Axes, Shape, count};
use crate::spectrum::Transform;

/// Lengths up to this one are one product, as are primes up to the second.
const RADIX: usize = 32;
const PRIME: usize = 64;
/// Places are counted in 32 bits, with room for twice as many.
const LONGEST: usize = 1 << 28;

impl Tensor {
    /// The transform along an axis of pairs, or back (not divided by the length).
    pub(crate) fn transformed(
        &self,
        name: &'static str,
        axis: isize,
        back: bool,
        at: &'static Location<'static>,
    ) -> Tensor {
        if self.error().is_some() {
            return self.clone();
        }
        if self.rank() < 2 || self.shape().last() != Some(&2) {
            let rule = "complex numbers are pairs along the last axis: of real ones take `rfft`, or `stack` them with zeros";
            return self.refuse(name, &[], rule, at);
        }
        let place = match Axes::from(axis).of(self.rank() - 1) {
            Ok(axes) => axes[0],
            Err(rule) => return self.refuse(name, &[], rule, at),
        };
        let n = self.shape()[place];
        if n > LONGEST {
            return self.refuse(
                name,
                &[],
                format!("an axis has {n} elements; at most {LONGEST} are transformed"),
                at,
            );
        }
        if self.dtype().is_byte_float() {
            return self.for_storage(name, at);
        }
        let wide = self.real(at);
        let wide = wide.cast_at(crate::dtype::accumulator(wide.dtype()), at);
        if n < 2 || self.is_empty() {
            return wide.cast_at(self.real(at).dtype(), at);
        }
        // The axis behind the others.
        let last = self.rank() - 1;
        let mut order: SmallVec<[usize; 4]> = (0..last).filter(|own| *own != place).collect();
        order.extend([place, last]);
        let brought = wide.permuted(order.clone(), at);
        let done = if brought.is_transformed_by_host() {
            crate::place::inside(at, || brought.function(Transform::Pairs { back }, &[]))
        } else {
            let rows = count(brought.shape()) / (2 * n);
            pairs(&brought.reshaped(&[rows, n, 2], at), back, at).reshaped(brought.shape(), at)
        };
        done.permuted(inverse(&order), at)
            .cast_at(self.real(at).dtype(), at)
    }

    /// The first half of the transform of real numbers along an axis, if the host computes it.
    pub(crate) fn half_transformed(&self, axis: isize, at: &'static Location<'static>) -> Option<Tensor> {
        let place = *Axes::from(axis).of(self.rank()).ok()?.first()?;
        let n = self.shape()[place];
        let real = self.real(at);
        let wide = real.cast_at(crate::dtype::accumulator(real.dtype()), at);
        if !wide.is_transformed_by_host() || self.is_empty() || !(2..=LONGEST).contains(&n) {
            return None;
        }
        let mut order: SmallVec<[usize; 4]> = (0..self.rank()).filter(|own| *own != place).collect();
        order.push(place);
        let brought = wide.permuted(order.clone(), at);
        let done = crate::place::inside(at, || brought.function(Transform::Real, &[]));
        // Pairs stay behind all.
        order.push(self.rank());
        Some(done.permuted(inverse(&order), at).cast_at(real.dtype(), at))
    }

    /// Real numbers as pairs.
    pub(crate) fn paired(&self, at: &'static Location<'static>) -> Tensor {
        let real = self.real(at);
        let mut shape: Shape = real.shape().into();
        shape.push(1);
        let one = real.reshaped(&shape, at);
        let (starts, steps) = shape.iter().map(|_| (0, 1)).unzip();
        if let Some(last) = shape.last_mut() {
            *last = 2;
        }
        one.padded(starts, steps, &shape, 0, at)
    }
}

// The order that undoes one.
fn inverse(order: &[usize]) -> SmallVec<[usize; 4]> {
    let mut inverse = SmallVec::from_slice(order);
    order
        .iter()
        .enumerate()
        .for_each(|(new, old)| inverse[*old] = new);
    inverse
}

// Of `[rows, n, 2]`, with n of at least 2.
fn pairs(x: &Tensor, back: bool, at: &'static Location<'static>) -> Tensor {
    let &[rows, n, _] = x.shape() else {
        return x.clone();
    };
    let radix = (2..=RADIX).rev().find(|r| n.is_multiple_of(*r));
    match radix {
        _ if n <= RADIX || radix.is_none() && n <= PRIME => x
            .reshaped(&[rows, 2 * n], at)
            .product(&matrix(x, n, back, at), at)
            .reshaped(&[rows, n, 2], at),
        None => convolved(x, back, at),
        Some(r) => {
            // Elements m apart are transformed, turned, and then those beside each other.
            let m = n / r;
            let exchange = |of: &Tensor| of.permuted(SmallVec::from_slice(&[0, 2, 1, 3]), at);
            let apart = exchange(&x.reshaped(&[rows, r, m, 2], at)).reshaped(&[rows * m, 2 * r], at);
            let first = apart
                .product(&matrix(x, r, back, at), at)
                .reshaped(&[rows, m, r, 2], at);
            let place = |axis| Tensor::coordinates([m, r], axis, x.device());
            let turns = place(0) * place(1);
            // Angles between -pi and pi are the most exact.
            let nearest = turns.greater((n / 2) as i64).select(&turns - n as i64, &turns);
            let sign = if back { 1.0 } else { -1.0 };
            let angle = nearest.cast(x.dtype()) / n as f64 * (sign * std::f64::consts::TAU);
            let turned = times(
                &first,
                &angle.cos().reshaped(&[m, r, 1], at),
                &angle.sin().reshaped(&[m, r, 1], at),
                at,
            );
            let beside = exchange(&turned).reshaped(&[rows * r, m, 2], at);
            exchange(&pairs(&beside, back, at).reshaped(&[rows, r, m, 2], at)).reshaped(&[rows, n, 2], at)
        }
    }
}

// Pairs times other complex numbers.
fn times(x: &Tensor, real: &Tensor, imaginary: &Tensor, at: &'static Location<'static>) -> Tensor {
    let last = x.rank() - 1;
    let is_second = Tensor::coordinates(x.shape(), last, x.device()).equal(1);
    let other = x.flipped(SmallVec::from_slice(&[last]), at) * imaginary;
    x * real + is_second.select(&other, -&other)
}

// The matrix of a transform, as one of real numbers.
fn matrix(x: &Tensor, n: usize, back: bool, at: &'static Location<'static>) -> Tensor {
    let sign = if back { 1.0 } else { -1.0 };
    let mut all = vec![0.0; 4 * n * n];
    for from in 0..n {
        for to in 0..n {
            let (sin, cos) = (sign * std::f64::consts::TAU * (from * to % n) as f64 / n as f64).sin_cos();
            let row = |part: usize| (2 * from + part) * 2 * n + 2 * to;
            (all[row(0)], all[row(0) + 1]) = (cos, sin);
            (all[row(1)], all[row(1) + 1]) = (-sin, cos);
        }
    }
    constant(&all, &[2 * n, 2 * n], x, at)
}

fn constant(values: &[f64], shape: &[usize], like: &Tensor, at: &'static Location<'static>) -> Tensor {
    crate::place::inside(at, || match like.dtype() {
        DType::F64 => Tensor::from_slice(values, shape, like.device()),
        dtype => {
            let narrow: Vec<f32> = values.iter().map(|x| *x as f32).collect();
            Tensor::from_slice(&narrow, shape, like.device()).cast(dtype)
        }
    })
}

// By Bluestein's identity: j k = (j^2 + k^2 - (k - j)^2) / 2 makes the transform a convolution with a chirp.
fn convolved(x: &Tensor, back: bool, at: &'static Location<'static>) -> Tensor {
    let &[rows, n, _] = x.shape() else {
        return x.clone();
    };
    let long = (2 * n - 1).next_power_of_two();
    let sign = if back { 1.0 } else { -1.0 };
    let chirp = |k: usize| {
        let turns = (k as u128 * k as u128 % (2 * n as u128)) as f64;
        (sign * std::f64::consts::PI * turns / n as f64).sin_cos()
    };
    let (mut own, mut other) = (vec![0.0; 2 * n], vec![0.0; 2 * long]);
    for k in 0..n {
        let (sin, cos) = chirp(k);
        (own[2 * k], own[2 * k + 1]) = (cos, sin);
        for place in [k, (long - k) % long] {
            (other[2 * place], other[2 * place + 1]) = (cos, -sin);
        }
    }
    let own = constant(&own, &[n, 2], x, at);
    let other = constant(&other, &[1, long, 2], x, at);
    let by = |of: &Tensor, factor: &Tensor| {
        let part = |place: isize| factor.part_of(factor.rank() - 1, place..place + 1);
        times(of, &part(0), &part(1), at)
    };
    let (starts, steps): (Shape, Shape) = ([0; 3].into_iter().collect(), [1; 3].into_iter().collect());
    let filled = by(x, &own).padded(starts, steps, &[rows, long, 2], 0, at);
    let product = by(&pairs(&filled, false, at), &pairs(&other, false, at));
    let all = pairs(&product, true, at) / long as f64;
    by(&all.part_of(1, ..n as isize), &own)
}
