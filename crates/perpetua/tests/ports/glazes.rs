//! What pictures are made of: spherical harmonics, and transparent layers in any order.

use std::f32::consts::{PI, SQRT_2};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 234: colours from spherical harmonics

/// What the harmonic of this degree and order is scaled by, but for the root of 2 of orders above 0.
#[device]
fn harmonic_scale(degree: usize, order: usize) -> f32 {
    let ratio: f32 = (degree - order + 1..=degree + order).map(|k| k as f32).product();
    ((2 * degree + 1) as f32 / (4.0 * PI * ratio)).sqrt()
}

/// The real harmonics of a direction, as many degrees as `K` is the square of.
#[device]
fn harmonic_basis<const K: usize>([x, y, z]: [f32; 3]) -> [f32; K] {
    let length = (x * x + y * y + z * z).sqrt();
    let (x, y, z) = (x / length, y / length, z / length);
    let degrees = K.isqrt();
    let mut basis = [0.0; K];
    // The powers of x + i y, and Legendre's functions of z without their part in x and y.
    let (mut re, mut im, mut first) = (1.0, 0.0, 1.0);
    for order in 0..degrees {
        let (mut before, mut now) = (0.0, first);
        for degree in order..degrees {
            let value = harmonic_scale(degree, order) * now;
            let middle = degree * (degree + 1);
            if order == 0 {
                basis[middle] = value;
            } else {
                basis[middle + order] = SQRT_2 * value * re;
                basis[middle - order] = SQRT_2 * value * im;
            }
            let next = (2 * degree + 1) as f32 * z * now - (degree + order) as f32 * before;
            (before, now) = (now, next / (degree + 1 - order) as f32);
        }
        (re, im) = (x * re - y * im, x * im + y * re);
        first *= -((2 * order + 1) as f32);
    }
    basis
}

#[device]
fn seen<const K: usize>(basis: &[f32; K], coefficients: &[[f32; 3]; K], channel: usize) -> f32 {
    0.5 + basis
        .iter()
        .zip(coefficients)
        .map(|(b, c)| b * c[channel])
        .sum::<f32>()
}

#[kernel]
fn harmonics<const K: usize>(directions: &[[f32; 3]], coefficients: &[[[f32; 3]; K]], colours: &mut [f32]) {
    let i = global_id_x();
    let Some(direction) = directions.get(i) else {
        return;
    };
    let basis = harmonic_basis::<K>(*direction);
    for (channel, colour) in colours[3 * i..3 * i + 3].iter_mut().enumerate() {
        *colour = seen(&basis, &coefficients[i], channel).max(0.0);
    }
}

/// A lane a splat: what its coefficients gain from the gradient of its colour, where that is not cut off.
#[kernel]
fn harmonics_back<const K: usize>(
    directions: &[[f32; 3]],
    coefficients: &[[[f32; 3]; K]],
    by_colour: &[[f32; 3]],
    gradient: &mut [f32],
) {
    let i = global_id_x();
    if i >= directions.len() {
        return;
    }
    let basis = harmonic_basis::<K>(directions[i]);
    let by_colour: [f32; 3] = std::array::from_fn(|channel| {
        let is_cut = seen(&basis, &coefficients[i], channel) < 0.0;
        if is_cut { 0.0 } else { by_colour[i][channel] }
    });
    let own = &mut gradient[i * K * 3..(i + 1) * K * 3];
    for (gain, b) in own.chunks_exact_mut(3).zip(basis) {
        for (gain, by_colour) in gain.iter_mut().zip(by_colour) {
            *gain = b * by_colour;
        }
    }
}

#[test]
fn harmonics_are_those_of_the_books() {
    let mut random = Random(234);
    let count = 137usize;
    let mut number = || (random.bits() % 2001) as f32 / 1000.0 - 1.0;
    let directions: Vec<[f32; 3]> = (0..count).map(|_| [number(), number(), number() + 1.5]).collect();
    let coefficients: Vec<[[f32; 3]; 16]> = (0..count)
        .map(|_| [0; 16].map(|_: u8| [number(), number(), number()]))
        .collect();
    let by_colour: Vec<[f32; 3]> = (0..count).map(|_| [number(), number(), number()]).collect();
    let few: Vec<[[f32; 3]; 4]> = coefficients.iter().map(|c| [c[0], c[1], c[2], c[3]]).collect();
    let basis = |d: &[f32; 3]| -> [f64; 16] {
        let [x, y, z] = d.map(f64::from);
        let length = (x * x + y * y + z * z).sqrt();
        let (x, y, z) = (x / length, y / length, z / length);
        let (xx, yy, zz) = (x * x, y * y, z * z);
        [
            0.28209479177387814,
            -0.4886025119029199 * y,
            0.4886025119029199 * z,
            -0.4886025119029199 * x,
            1.0925484305920792 * x * y,
            -1.0925484305920792 * y * z,
            0.31539156525252005 * (2.0 * zz - xx - yy),
            -1.0925484305920792 * x * z,
            0.5462742152960396 * (xx - yy),
            -0.5900435899266435 * y * (3.0 * xx - yy),
            2.890611442640554 * x * y * z,
            -0.4570457994644658 * y * (4.0 * zz - xx - yy),
            0.3731763325901154 * z * (2.0 * zz - 3.0 * xx - 3.0 * yy),
            -0.4570457994644658 * x * (4.0 * zz - xx - yy),
            1.445305721320277 * z * (xx - yy),
            -0.5900435899266435 * x * (xx - 3.0 * yy),
        ]
    };
    let sums = |terms: usize| -> Vec<f64> {
        let mut all = vec![];
        for (direction, coefficients) in directions.iter().zip(&coefficients) {
            let basis = basis(direction);
            for channel in 0..3 {
                all.push(
                    0.5 + (0..terms)
                        .map(|k| basis[k] * f64::from(coefficients[k][channel]))
                        .sum::<f64>(),
                );
            }
        }
        all
    };
    let clear = |terms: usize| -> Vec<f64> { sums(terms).into_iter().map(|v| v.max(0.0)).collect() };
    let (all, some) = (clear(16), clear(4));
    // No colour is so near to zero that a rounding decides.
    assert!(sums(16).iter().all(|v| v.abs() > 1e-5));
    let mut gradient = vec![];
    for i in 0..count {
        for b in basis(&directions[i]) {
            for channel in 0..3 {
                let passes = all[3 * i + channel] > 0.0;
                gradient.push(if passes {
                    b * f64::from(by_colour[i][channel])
                } else {
                    0.0
                });
            }
        }
    }
    everywhere(|run| {
        let (directions, coefficients, few) = (
            run.upload(&directions),
            run.upload(&coefficients),
            run.upload(&few),
        );
        let colours = run.zeros::<f32>(count * 3);
        let config = || LaunchConfig::linear(count, 64);
        run.launch(
            harmonics::kernel::<16>(),
            config(),
            args![&directions, &coefficients, &colours],
        );
        // Sixteen terms below 3, each rounded some ten times.
        run.near(&colours, &all, 1e-5);
        run.launch(
            harmonics::kernel::<4>(),
            config(),
            args![&directions, &few, &colours],
        );
        run.near(&colours, &some, 1e-5);
        let by_colour = run.upload(&by_colour);
        let gain = run.zeros::<f32>(count * 48);
        run.launch(
            harmonics_back::kernel::<16>(),
            config(),
            args![&directions, &coefficients, &by_colour, &gain],
        );
        run.near(&gain, &gradient, 1e-5);
    });
}

// 235: transparency in any order

const LAYERS: usize = 6;

#[derive(Clone, Copy, Default, GpuType)]
#[repr(C)]
struct Fragment {
    colour: [f32; 3],
    alpha: f32,
    depth: f32,
    /// The pixel of a fragment that comes; one more than the index of the next fragment in a list.
    link: u32,
}

/// Fragments in front of what is opaque go to their pixels' lists.
#[kernel]
fn a_buffer_insert(
    fragments: &[Fragment],
    opaque: &[f32],
    count: &mut u32,
    heads: &mut [u32],
    nodes: &mut [Fragment],
) {
    let Some(fragment) = fragments.get(global_id_x()) else {
        return;
    };
    let pixel = fragment.link as usize;
    if fragment.depth >= opaque[pixel] {
        return;
    }
    let slot = atomic_add(count, 1);
    if let Some(node) = nodes.get_mut(slot as usize) {
        let link = atomic_exchange(&mut heads[pixel], slot + 1);
        *node = Fragment { link, ..*fragment };
    }
}

/// The nearest layers of each pixel, blended from behind.
#[kernel]
fn a_buffer(heads: &[u32], nodes: &[Fragment], background: [f32; 3], out: &mut [f32]) {
    let pixel = global_id_x();
    if pixel >= heads.len() {
        return;
    }
    let node = |link: u32| link.checked_sub(1).map(|index| nodes[index as usize]);
    let mut layers = [Fragment::default(); LAYERS];
    let mut count = 0;
    for fragment in std::iter::successors(node(heads[pixel]), |fragment| node(fragment.link)) {
        let place = layers[..count].partition_point(|layer| layer.depth < fragment.depth);
        if place < LAYERS {
            count = (count + 1).min(LAYERS);
            layers.copy_within(place..count - 1, place + 1);
            layers[place] = fragment;
        }
    }
    let colour = layers[..count].iter().rev().fold(background, |below, layer| {
        std::array::from_fn(|c| layer.colour[c] * layer.alpha + below[c] * (1.0 - layer.alpha))
    });
    for (out, c) in out[3 * pixel..].iter_mut().zip(colour) {
        *out = c;
    }
}

#[test]
fn layers_are_blended_in_their_order() {
    let mut random = Random(235);
    let (pixels, count) = (157usize, 1001usize);
    let opaque: Vec<f32> = (0..pixels)
        .map(|_| (random.bits() % 1000) as f32 / 1000.0 + 0.3)
        .collect();
    // All depths differ.
    let fragments: Vec<Fragment> = (0..count)
        .map(|i| Fragment {
            colour: [0; 3].map(|_: u8| (random.bits() % 256) as f32 / 255.0),
            alpha: (random.bits() % 256) as f32 / 255.0,
            depth: (i * 389 % count) as f32 / count as f32,
            link: (random.bits() % pixels as u64) as u32,
        })
        .collect();
    let background = [0.25f32, 0.5, 0.75];
    let mut expected = vec![];
    let mut kept = 0;
    for pixel in 0..pixels {
        let mut own: Vec<&Fragment> = fragments
            .iter()
            .filter(|f| f.link as usize == pixel && f.depth < opaque[pixel])
            .collect();
        own.sort_by(|a, b| a.depth.total_cmp(&b.depth));
        kept += own.len();
        own.truncate(LAYERS);
        // From the front: what still shines through.
        let mut colour = [0.0f64; 3];
        let mut through = 1.0;
        for f in own {
            for c in 0..3 {
                colour[c] += through * f64::from(f.alpha) * f64::from(f.colour[c]);
            }
            through *= 1.0 - f64::from(f.alpha);
        }
        expected.extend((0..3).map(|c| colour[c] + through * f64::from(background[c])));
    }
    everywhere(|run| {
        let (fragments, opaque) = (run.upload(&fragments), run.upload(&opaque));
        let (found, heads) = (run.zeros::<u32>(1), run.zeros::<u32>(pixels));
        let nodes = run.upload(&vec![Fragment::default(); count]);
        let config = LaunchConfig::linear(count, 64);
        run.launch(
            a_buffer_insert::kernel(),
            config,
            args![&fragments, &opaque, &found, &heads, &nodes],
        );
        run.holds(&found, &[kept as u32]);
        let out = run.zeros::<f32>(3 * pixels);
        let config = LaunchConfig::linear(pixels, 64);
        run.launch(
            a_buffer::kernel(),
            config,
            args![&heads, &nodes, background, &out],
        );
        run.near(&out, &expected, 2e-6);
    });
}
