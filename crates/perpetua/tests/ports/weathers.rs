//! Air, water and sky: saturation of moist air, fluxes of sunlight, shallow water, signals of pulsars.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

/// From `low` to `high`.
fn between(random: &mut Random, low: f32, high: f32) -> f32 {
    low + (high - low) * ((random.bits() >> 40) as f32 / 16_777_216.0)
}

// 253: saturation adjustment of moist air

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Level {
    pressure: f32,
    exner: f32,
}

/// Temperature, and liquid and frozen water in grams a kilogram.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Air {
    temperature: f32,
    liquid: f32,
    ice: f32,
}

const VAPOUR_HEAT: f32 = 2.501e6;
const ICE_HEAT: f32 = 2.834e6;
const HEAT: f32 = 1004.7;
const VAPOUR_GAS: f32 = 461.5;
const FREEZING: f32 = 273.15;

/// How much moisture air holds over a surface, and the heat of its vapour.
#[device]
trait Surface {
    const HEAT: f32;
    fn pressure(t: f32) -> f32;

    fn saturation(pressure: f32, t: f32) -> f32 {
        let vapour = Self::pressure(t);
        0.622 * vapour / (pressure - 0.378 * vapour)
    }
}

#[derive(Clone, Copy, GpuType)]
struct Water;

#[derive(Clone, Copy, GpuType)]
struct Ice;

#[device]
impl Surface for Water {
    const HEAT: f32 = VAPOUR_HEAT;

    fn pressure(t: f32) -> f32 {
        611.21 * (17.502 * (t - FREEZING) / (t - 32.18)).exp()
    }
}

#[device]
impl Surface for Ice {
    const HEAT: f32 = ICE_HEAT;

    fn pressure(t: f32) -> f32 {
        611.15 * (22.587 * (t - FREEZING) / (t + 0.71)).exp()
    }
}

/// The part of the condensate that is liquid.
#[device]
fn liquid_part(t: f32) -> f32 {
    ((t - 233.15) / 40.0).clamp(0.0, 1.0)
}

/// The saturation of both surfaces together, and the mean heat.
#[device]
fn mixed_saturation(pressure: f32, t: f32) -> (f32, f32) {
    let part = liquid_part(t);
    let mix = |water: f32, ice: f32| part * water + (1.0 - part) * ice;
    (mix(Water::saturation(pressure, t), Ice::saturation(pressure, t)), mix(Water::HEAT, Ice::HEAT))
}

#[device]
fn adjusted(level: Level, potential: f32, total: f32) -> Option<Air> {
    let first = potential * level.exner;
    let (saturation, _) = mixed_saturation(level.pressure, first);
    if total <= saturation {
        return None;
    }
    let mut t = first;
    for _ in 0..40 {
        let (saturation, heat) = mixed_saturation(level.pressure, t);
        let error = t - first - heat / HEAT * (total - saturation);
        let slope = 1.0 + heat / HEAT * saturation * heat / (VAPOUR_GAS * t * t);
        let change = error / slope;
        t -= change;
        if change.abs() < 2e-3 {
            break;
        }
    }
    let (saturation, _) = mixed_saturation(level.pressure, t);
    let (condensed, part) = (1000.0 * (total - saturation).max(0.0), liquid_part(t));
    Some(Air { temperature: t, liquid: part * condensed, ice: (1.0 - part) * condensed })
}

#[kernel]
fn saturation(size: [u32; 2], base: &[Level], potential: &[f32], total: &[f32], air: &mut [Air], cloudy: &mut [u32]) {
    let [width, depth] = size.map(|n| n as usize);
    let (x, y, z) = (global_id_x(), global_id_y(), global_id_z());
    if x >= width || y >= depth || z >= base.len() {
        return;
    }
    let i = (z * depth + y) * width + x;
    air[i] = match adjusted(base[z], potential[i], total[i]) {
        Some(air) => {
            atomic_add(&mut cloudy[z], 1);
            air
        }
        None => Air { temperature: potential[i] * base[z].exner, liquid: 0.0, ice: 0.0 },
    };
}

#[test]
fn saturation_balances_heat_and_moisture() {
    let mut random = Random(253);
    let (width, depth, height) = (13usize, 11usize, 9usize);
    let base: Vec<Level> = (0..height)
        .map(|z| {
            let pressure = 100_000.0 - 8_000.0 * z as f32;
            Level { pressure, exner: (pressure / 100_000.0).powf(0.2857) }
        })
        .collect();
    let n = width * depth * height;
    let potential: Vec<f32> = (0..n).map(|_| between(&mut random, 285.0, 300.0)).collect();
    let total: Vec<f32> = (0..n).map(|i| 0.02 * (-0.35 * (i / (width * depth)) as f32).exp() * between(&mut random, 0.3, 1.2)).collect();
    // Over water or ice, in `f64`.
    let over = |heat: [f64; 4], p: f64, t: f64| {
        let e = heat[0] * (heat[1] * (t - f64::from(FREEZING)) / (t + heat[2])).exp();
        0.622 * e / (p - 0.378 * e)
    };
    let water = [611.21, 17.502, -32.18, f64::from(VAPOUR_HEAT)];
    let ice = [611.15, 22.587, 0.71, f64::from(ICE_HEAT)];
    let part = |t: f64| ((t - 233.15) / 40.0).clamp(0.0, 1.0);
    let holds = |p: f64, t: f64| part(t) * over(water, p, t) + (1.0 - part(t)) * over(ice, p, t);
    let (mut expected, mut cloudy) = (vec![], vec![0u32; height]);
    for i in 0..n {
        let z = i / (width * depth);
        let (p, q) = (f64::from(base[z].pressure), f64::from(total[i]));
        let first = f64::from(potential[i]) * f64::from(base[z].exner);
        if q <= holds(p, first) {
            expected.extend([first, 0.0, 0.0]);
            continue;
        }
        cloudy[z] += 1;
        // By halves.
        let (mut low, mut high) = (first, first + 60.0);
        for _ in 0..60 {
            let t = (low + high) / 2.0;
            let heat = part(t) * water[3] + (1.0 - part(t)) * ice[3];
            if t - first < heat / f64::from(HEAT) * (q - holds(p, t)) {
                low = t;
            } else {
                high = t;
            }
        }
        let condensed = 1000.0 * (q - holds(p, low));
        expected.extend([low, part(low) * condensed, (1.0 - part(low)) * condensed]);
    }
    assert!(cloudy.iter().sum::<u32>() > 100 && cloudy.iter().sum::<u32>() < n as u32 - 100);
    everywhere(|run| {
        let (levels, heat, moist) = (run.upload(&base), run.upload(&potential), run.upload(&total));
        let (out, counts) = (run.zeros::<f32>(3 * n), run.zeros::<u32>(height));
        let air = out.clone().cast::<Air>().unwrap();
        let size = [width as u32, depth as u32];
        let config = LaunchConfig::volume((width as u32, depth as u32, height as u32).into(), (8, 4, 2).into());
        run.launch(saturation::kernel(), config, args![size, &levels, &heat, &moist, &air, &counts]);
        run.holds(&counts, &cloudy);
        // Temperatures are off by some 1e-4, and moisture by 1 g/kg for each kelvin of that.
        run.near(&out, &expected, 1e-3);
    });
}

// 254: fluxes of sunlight through layers

/// What a layer does with diffuse light, and with a beam that meets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Layer {
    reflected: f32,
    passed: f32,
    beam_reflected: f32,
    beam_scattered: f32,
    beam_passed: f32,
}

#[device]
impl Layer {
    fn new(depth: f32, albedo: f32, asymmetry: f32, sun: f32) -> Self {
        let gamma1 = (8.0 - albedo * (5.0 + 3.0 * asymmetry)) * 0.25;
        let gamma2 = 3.0 * albedo * (1.0 - asymmetry) * 0.25;
        let gamma3 = (2.0 - 3.0 * sun * asymmetry) * 0.25;
        let gamma4 = 1.0 - gamma3;
        let alpha1 = gamma1 * gamma4 + gamma2 * gamma3;
        let alpha2 = gamma1 * gamma3 + gamma2 * gamma4;
        let k = ((gamma1 - gamma2) * (gamma1 + gamma2)).max(1e-12).sqrt();
        let once = (-k * depth).exp();
        let twice = once * once;
        let beam_passed = (-depth / sun).exp();
        let term = (k * (1.0 + twice) + gamma1 * (1.0 - twice)).recip();
        let steep = k * sun;
        let scale = albedo * term / (1.0 - steep * steep);
        let beam_reflected = scale
            * ((1.0 - steep) * (alpha2 + k * gamma3)
                - (1.0 + steep) * (alpha2 - k * gamma3) * twice
                - 2.0 * (k * gamma3 - alpha2 * steep) * once * beam_passed);
        let beam_scattered = -scale
            * ((1.0 + steep) * (alpha1 + k * gamma4) * beam_passed
                - (1.0 - steep) * (alpha1 - k * gamma4) * twice * beam_passed
                - 2.0 * (k * gamma4 + alpha1 * steep) * once);
        Layer {
            reflected: term * gamma2 * (1.0 - twice),
            passed: term * 2.0 * k * once,
            beam_reflected,
            beam_scattered,
            beam_passed,
        }
    }
}

#[kernel]
fn two_stream<const LAYERS: usize>(suns: &[f32], grounds: &[f32], optics: &[[f32; 3]], up: &mut [f32], down: &mut [f32]) {
    let (i, columns) = (global_id_x(), suns.len());
    let Some((sun, ground)) = suns.get(i).copied().zip(grounds.get(i).copied()) else {
        return;
    };
    let layers: [Layer; LAYERS] = std::array::from_fn(|l| {
        let [depth, albedo, asymmetry] = optics[l * columns + i];
        Layer::new(depth, albedo, asymmetry, sun)
    });
    let mut beams = [0.0f32; LAYERS];
    let mut beam = 1.0;
    for (slot, layer) in beams.iter_mut().zip(&layers) {
        *slot = beam;
        beam *= layer.beam_passed;
    }
    // What is below each layer: how much it reflects, and how much comes up from there by itself.
    let mut below = [(0.0f32, 0.0f32); LAYERS];
    let (mut albedo, mut source) = (ground, ground * beam);
    for (l, layer) in layers.iter().enumerate().rev() {
        below[l] = (albedo, source);
        let many = (1.0 - layer.reflected * albedo).recip();
        source = layer.beam_reflected * beams[l]
            + layer.passed * many * (source + albedo * layer.beam_scattered * beams[l]);
        albedo = layer.reflected + layer.passed * layer.passed * albedo * many;
    }
    let mut diffuse = 0.0;
    up[i] = source;
    down[i] = 1.0;
    for (l, (layer, (albedo, source))) in layers.iter().zip(below).enumerate() {
        let many = (1.0 - layer.reflected * albedo).recip();
        diffuse = (layer.passed * diffuse + layer.reflected * source + layer.beam_scattered * beams[l]) * many;
        let at = (l + 1) * columns + i;
        up[at] = albedo * diffuse + source;
        down[at] = diffuse + beams[l] * layer.beam_passed;
    }
}

#[test]
fn two_stream_fluxes_balance() {
    const LAYERS: usize = 11;
    let mut random = Random(254);
    let columns = 203;
    let suns: Vec<f32> = (0..columns).map(|_| between(&mut random, 0.2, 0.6)).collect();
    let grounds: Vec<f32> = (0..columns).map(|_| between(&mut random, 0.05, 0.7)).collect();
    let optics: Vec<[f32; 3]> = (0..columns * LAYERS)
        .map(|_| [between(&mut random, 0.05, 1.5), between(&mut random, 0.5, 0.98), between(&mut random, 0.0, 0.85)])
        .collect();
    let (mut ups, mut downs) = (vec![0.0; columns * (LAYERS + 1)], vec![0.0; columns * (LAYERS + 1)]);
    for i in 0..columns {
        let mu = f64::from(suns[i]);
        let mut beam = [1.0f64; LAYERS + 1];
        let mut parts = vec![];
        for l in 0..LAYERS {
            let [tau, w, g] = optics[l * columns + i].map(f64::from);
            let (g1, g2) = (2.0 - w * (1.25 + 0.75 * g), 0.75 * w * (1.0 - g));
            let g3 = 0.5 - 0.75 * mu * g;
            let g4 = 1.0 - g3;
            let (a1, a2) = (g1 * g4 + g2 * g3, g1 * g3 + g2 * g4);
            let k = (g1 * g1 - g2 * g2).sqrt();
            let (sinh, cosh) = ((k * tau).sinh(), (k * tau).cosh());
            let whole = k * cosh + g1 * sinh;
            let straight = (-tau / mu).exp();
            // Everything times half of exp(k tau).
            let (grow, fall) = ((k * tau).exp() / 2.0, (-k * tau).exp() / 2.0);
            let factor = w / (whole * (1.0 - k * k * mu * mu));
            let reflected = factor
                * ((1.0 - k * mu) * (a2 + k * g3) * grow
                    - (1.0 + k * mu) * (a2 - k * g3) * fall
                    - k * (g3 - a2 * mu) * straight);
            let passed = factor
                * (k * (g4 + a1 * mu)
                    - straight * ((1.0 + k * mu) * (a1 + k * g4) * grow - (1.0 - k * mu) * (a1 - k * g4) * fall));
            parts.push([g2 * sinh / whole, k / whole, reflected * beam[l], passed * beam[l]]);
            beam[l + 1] = beam[l] * straight;
        }
        // Light that goes to and fro until nothing changes.
        let (mut up, mut down) = ([0.0; LAYERS + 1], [0.0; LAYERS + 1]);
        for _ in 0..400 {
            for l in 0..LAYERS {
                let [r, t, _, s] = parts[l];
                down[l + 1] = t * down[l] + r * up[l + 1] + s;
            }
            up[LAYERS] = f64::from(grounds[i]) * (down[LAYERS] + beam[LAYERS]);
            for l in (0..LAYERS).rev() {
                let [r, t, s, _] = parts[l];
                up[l] = t * up[l + 1] + r * down[l] + s;
            }
        }
        for l in 0..=LAYERS {
            ups[l * columns + i] = up[l];
            downs[l * columns + i] = down[l] + beam[l];
        }
    }
    everywhere(|run| {
        let (sun, ground, light) = (run.upload(&suns), run.upload(&grounds), run.upload(&optics));
        let (up, down) = (run.zeros::<f32>(ups.len()), run.zeros::<f32>(downs.len()));
        let config = LaunchConfig::linear(columns, 64);
        run.launch(two_stream::kernel::<LAYERS>(), config, args![&sun, &ground, &light, &up, &down]);
        // Fluxes of at most 1; thin layers scatter a difference that is twenty times smaller than its terms.
        run.near(&up, &ups, 5e-5);
        run.near(&down, &downs, 5e-5);
    });
}

// 255: shallow water by Kurganov and Petrova's scheme

const GRAVITY: f32 = 9.81;
const DRY: f32 = 1e-2;
const SQRT_2: f32 = std::f32::consts::SQRT_2;

#[device]
fn min_mod(a: f32, b: f32, c: f32) -> f32 {
    if a > 0.0 && b > 0.0 && c > 0.0 {
        a.min(b).min(c)
    } else if a < 0.0 && b < 0.0 && c < 0.0 {
        a.max(b).max(c)
    } else {
        0.0
    }
}

/// A periodic grid whose bottom is known at corners.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Sea {
    width: u32,
    height: u32,
    cell: f32,
    dt: f32,
}

#[device]
impl Sea {
    fn at(&self, x: usize, y: usize) -> usize {
        let (width, height) = (self.width as usize, self.height as usize);
        y % height * width + x % width
    }

    /// A number of cells further along an axis, which may be behind.
    fn moved(&self, [x, y]: [usize; 2], axis: usize, by: i32) -> [usize; 2] {
        let (width, height) = (self.width as usize, self.height as usize);
        match axis {
            0 => [(x + width).wrapping_add_signed(by as isize) % width, y],
            _ => [x, (y + height).wrapping_add_signed(by as isize) % height],
        }
    }

    /// The bottom in the middle of the face on the lower side of a cell.
    fn face(&self, bottom: &[f32], [x, y]: [usize; 2], axis: usize) -> f32 {
        let other = if axis == 0 { self.at(x, y + 1) } else { self.at(x + 1, y) };
        0.5 * (bottom[self.at(x, y)] + bottom[other])
    }

    /// A cell's values at the face on one of its sides (-1 or 1) along an axis.
    fn reconstructed(&self, bottom: &[f32], water: &[[f32; 3]], cell: [usize; 2], axis: usize, side: f32) -> [f32; 3] {
        let [before, own, after] = [-1, 0, 1].map(|by| {
            let [x, y] = self.moved(cell, axis, by);
            water[self.at(x, y)]
        });
        let mut slopes: [f32; 3] = std::array::from_fn(|k| {
            min_mod(1.3 * (own[k] - before[k]), 0.5 * (after[k] - before[k]), 1.3 * (after[k] - own[k]))
        });
        let low = self.face(bottom, cell, axis);
        let high = self.face(bottom, self.moved(cell, axis, 1), axis);
        if own[0] + 0.5 * slopes[0] < high {
            slopes[0] = 2.0 * (high - own[0]);
        }
        if own[0] - 0.5 * slopes[0] < low {
            slopes[0] = 2.0 * (own[0] - low);
        }
        std::array::from_fn(|k| own[k] + 0.5 * side * slopes[k])
    }
}

/// Depth, speeds along and across.
#[device]
fn speeds([surface, along, across]: [f32; 3], bottom: f32) -> (f32, f32, f32) {
    let depth = (surface - bottom).max(0.0);
    let fourth = depth.powi(4);
    let scale = SQRT_2 * depth / (fourth + fourth.max(DRY.powi(4))).sqrt();
    (depth, scale * along, scale * across)
}

/// Fluxes through the lower faces of the cells, along x and along y.
#[kernel]
fn kurganov_fluxes(sea: Sea, bottom: &[f32], water: &[[f32; 3]], fluxes: &mut [[f32; 3]]) {
    let (x, y, axis) = (global_id_x(), global_id_y(), global_id_z());
    if x >= sea.width as usize || y >= sea.height as usize {
        return;
    }
    let cell = [x, y];
    let turned = |[surface, a, b]: [f32; 3]| if axis == 0 { [surface, a, b] } else { [surface, b, a] };
    let floor = sea.face(bottom, cell, axis);
    let left = turned(sea.reconstructed(bottom, water, sea.moved(cell, axis, -1), axis, 1.0));
    let right = turned(sea.reconstructed(bottom, water, cell, axis, -1.0));
    let (h0, u0, v0) = speeds(left, floor);
    let (h1, u1, v1) = speeds(right, floor);
    let (c0, c1) = ((GRAVITY * h0).sqrt(), (GRAVITY * h1).sqrt());
    let fast = (u0 + c0).max(u1 + c1).max(0.0);
    let slow = (u0 - c0).min(u1 - c1).min(0.0);
    let mut flux = [0.0; 3];
    if fast - slow > 1e-6 {
        let first = [h0 * u0, h0 * u0 * u0 + 0.5 * GRAVITY * h0 * h0, h0 * u0 * v0];
        let second = [h1 * u1, h1 * u1 * u1 + 0.5 * GRAVITY * h1 * h1, h1 * u1 * v1];
        let jump = [right[0] - left[0], h1 * u1 - h0 * u0, h1 * v1 - h0 * v0];
        for (k, f) in flux.iter_mut().enumerate() {
            *f = (fast * first[k] - slow * second[k] + fast * slow * jump[k]) / (fast - slow);
        }
    }
    let plane = (sea.width * sea.height) as usize;
    fluxes[axis * plane + sea.at(x, y)] = turned(flux);
}

#[kernel]
fn kurganov(sea: Sea, bottom: &[f32], fluxes: &[[f32; 3]], water: &mut [[f32; 3]]) {
    let (x, y) = (global_id_x(), global_id_y());
    if x >= sea.width as usize || y >= sea.height as usize {
        return;
    }
    let cell = [x, y];
    let (along_x, along_y) = fluxes.split_at((sea.width * sea.height) as usize);
    let here = sea.at(x, y);
    let scale = sea.dt / sea.cell;
    let faces: [[f32; 2]; 2] = std::array::from_fn(|axis| {
        [sea.face(bottom, cell, axis), sea.face(bottom, sea.moved(cell, axis, 1), axis)]
    });
    let depth = water[here][0] - 0.5 * (faces[0][0] + faces[0][1]);
    for k in 0..3 {
        let out_x = along_x[sea.at(x + 1, y)][k] - along_x[here][k];
        let out_y = along_y[sea.at(x, y + 1)][k] - along_y[here][k];
        water[here][k] -= scale * (out_x + out_y);
    }
    for (k, [low, high]) in faces.into_iter().enumerate() {
        water[here][k + 1] -= scale * GRAVITY * depth * (high - low);
    }
}

/// A flux between two states `[w, hu, hv]`, by the book's formulas.
fn central_upwind(l: [f64; 3], r: [f64; 3], floor: f64) -> [f64; 3] {
    let g = f64::from(GRAVITY);
    let state = |q: [f64; 3]| {
        let h = (q[0] - floor).max(0.0);
        let speed = |m: f64| 2f64.sqrt() * h * m / (h.powi(4) + h.max(f64::from(DRY)).powi(4)).sqrt();
        let (u, v) = (speed(q[1]), speed(q[2]));
        ([q[0], h * u, h * v], [h * u, h * u * u + g * h * h / 2.0, h * u * v], u - (g * h).sqrt(), u + (g * h).sqrt())
    };
    let ((ql, fl, al, bl), (qr, fr, ar, br)) = (state(l), state(r));
    let (a, b) = (al.min(ar).min(0.0), bl.max(br).max(0.0));
    if b - a <= 1e-6 {
        return [0.0; 3];
    }
    std::array::from_fn(|k| (b * fl[k] - a * fr[k]) / (b - a) + a * b / (b - a) * (qr[k] - ql[k]))
}

#[test]
fn kurganov_moves_water_over_a_bottom() {
    let mut random = Random(255);
    let (width, height) = (19usize, 13usize);
    let n = width * height;
    let bottom: Vec<f32> = (0..n).map(|_| between(&mut random, 0.0, 0.9)).collect();
    let water: Vec<f32> = (0..n)
        .flat_map(|_| [between(&mut random, 1.0, 1.6), between(&mut random, -0.4, 0.4), between(&mut random, -0.4, 0.4)])
        .collect();
    let sea = Sea { width: width as u32, height: height as u32, cell: 1.0, dt: 0.05 };
    let steps = 2;

    let floor = |x: usize, y: usize| f64::from(bottom[y % height * width + x % width]);
    // Bottoms of the faces to the left of a cell and below it.
    let face = |x: usize, y: usize, axis: usize| (floor(x, y) + floor(x + axis, y + 1 - axis)) / 2.0;
    let mut q: Vec<[f64; 3]> = water.chunks(3).map(|w| [w[0], w[1], w[2]].map(f64::from)).collect();
    for _ in 0..steps {
        let mut gain = vec![[0.0f64; 3]; n];
        for axis in 0..2 {
            let (dx, dy) = (1 - axis, axis);
            for y in 0..height {
                for x in 0..width {
                    let cell = |back: usize| ((x + (width - back) * dx) % width, (y + (height - back) * dy) % height);
                    // The value of the cell `back` steps behind at its face ahead (0.5) or behind (-0.5).
                    let value = |back: usize, side: f64| {
                        let (cx, cy) = cell(back);
                        let own = q[cy * width + cx];
                        let after = q[(cy + dy) % height * width + (cx + dx) % width];
                        let before = q[(cy + (height - 1) * dy) % height * width + (cx + (width - 1) * dx) % width];
                        let (low, high) = (face(cx, cy, axis), face(cx + dx, cy + dy, axis));
                        let mut s: [f64; 3] = std::array::from_fn(|k| {
                            let d = [1.3 * (own[k] - before[k]), (after[k] - before[k]) / 2.0, 1.3 * (after[k] - own[k])];
                            let least = d.iter().fold(f64::INFINITY, |m, v| m.min(v.abs()));
                            if d.iter().all(|v| *v > 0.0) {
                                least
                            } else if d.iter().all(|v| *v < 0.0) {
                                -least
                            } else {
                                0.0
                            }
                        });
                        s[0] = s[0].max(2.0 * (high - own[0]));
                        s[0] = s[0].min(2.0 * (own[0] - low));
                        let v: [f64; 3] = std::array::from_fn(|k| own[k] + side * s[k]);
                        [v[0], v[1 + axis], v[2 - axis]]
                    };
                    let f = central_upwind(value(1, 0.5), value(0, -0.5), face(x, y, axis));
                    let f = [f[0], f[1 + axis], f[2 - axis]];
                    let (here, there) = (y * width + x, cell(1));
                    for k in 0..3 {
                        gain[here][k] += f[k];
                        gain[there.1 * width + there.0][k] -= f[k];
                    }
                    let middle = (face(x, y, 0) + face(x + 1, y, 0)) / 2.0;
                    let slope = face(x + dx, y + dy, axis) - face(x, y, axis);
                    gain[here][1 + axis] -= f64::from(GRAVITY) * (q[here][0] - middle) * slope;
                }
            }
        }
        for (state, g) in q.iter_mut().zip(&gain) {
            for k in 0..3 {
                state[k] += f64::from(sea.dt) * g[k];
            }
        }
    }
    let expected = q.concat();
    everywhere(|run| {
        let (ground, out) = (run.upload(&bottom), run.upload(&water));
        let (states, fluxes) = (out.clone().cast::<[f32; 3]>().unwrap(), run.zeros::<[f32; 3]>(2 * n));
        let size = (width as u32, height as u32);
        for _ in 0..steps {
            let config = LaunchConfig::volume((size.0, size.1, 2).into(), (16, 4, 1).into());
            run.launch(kurganov_fluxes::kernel(), config, args![sea, &ground, &states, &fluxes]);
            run.launch(kurganov::kernel(), LaunchConfig::tiled(size.0, size.1, (16, 4)), args![sea, &ground, &fluxes, &states]);
        }
        // Two steps of fluxes of some 10, off by 1e-6 of that; speeds divide by depths of 0.1.
        run.near(&out, &expected, 1e-4);
    });
}

// 259: signals dispersed between the stars

/// Adds channels, each with its delay, for each time and each dispersion. Samples are packed to words, a time's words
/// together. The best sum of a dispersion is kept with its time, the first of equal ones.
#[kernel(block_size = (64, 1))]
fn dedispersion<const BITS: u32>(
    times: usize,
    dispersions: &[f32],
    delays: &[f32],
    dead: &[u32],
    words: &[u32],
    sums: &mut [u32],
    best: &mut [u32],
) {
    let (t, trial) = (global_id_x(), global_id_y());
    let each = (32 / BITS) as usize;
    let row = delays.len().div_ceil(each);
    let mut found = 0;
    if t < times {
        let sum: u32 = delays
            .iter()
            .enumerate()
            .filter(|(channel, _)| dead[channel / 32] >> (channel % 32) & 1 == 0)
            .map(|(channel, delay)| {
                let late = (dispersions[trial] * delay).round() as usize;
                let word = words[(t + late) * row + channel / each];
                word >> (channel % each) as u32 * BITS & ((1 << BITS) - 1)
            })
            .sum();
        sums[trial * times + t] = sum;
        found = sum << 16 | (0xffff - t as u32);
    }
    let greatest = subgroup_max(found);
    if subgroup_lane() == 0 {
        atomic_max(&mut best[trial], greatest);
    }
}

#[test]
fn dedispersion_adds_what_was_sent_together() {
    let mut random = Random(259);
    let (channels, times) = (43usize, 117usize);
    // Products are exact, halves among them.
    let dispersions = [0.0f32, 0.5, 1.0, 2.5, 4.0, 7.5];
    let delays: Vec<f32> = (0..channels).map(|c| (c * c) as f32 / 512.0).collect();
    let len = times + (7.5f32 * delays[channels - 1]).round() as usize;
    let dead: Vec<u32> = (0..channels.div_ceil(32)).map(|_| (random.bits() & random.bits()) as u32).collect();
    for bits in [2u32, 8] {
        let samples: Vec<u32> = (0..len * channels).map(|_| random.bits() as u32 % (1 << bits)).collect();
        let each = (32 / bits) as usize;
        let words: Vec<u32> = samples
            .chunks(channels)
            .flat_map(|row| row.chunks(each).map(|part| part.iter().rev().fold(0, |word, s| word << bits | s)).collect::<Vec<u32>>())
            .collect();
        let (mut sums, mut best) = (vec![], vec![]);
        for dispersion in dispersions {
            let mut row = vec![0u32; times];
            for c in (0..channels).filter(|c| dead[c / 32] >> (c % 32) & 1 == 0) {
                // Half away from zero, of numbers that are not negative.
                let late = (f64::from(dispersion) * f64::from(delays[c]) + 0.5).floor() as usize;
                for (t, sum) in row.iter_mut().enumerate() {
                    *sum += samples[(t + late) * channels + c];
                }
            }
            let top = *row.iter().max().unwrap();
            let first = row.iter().position(|sum| *sum == top).unwrap();
            best.push(top << 16 | (0xffff - first as u32));
            sums.extend(row);
        }
        everywhere(|run| {
            let (trials, late, off, data) = (run.upload(&dispersions), run.upload(&delays), run.upload(&dead), run.upload(&words));
            let (out, peaks) = (run.zeros::<u32>(sums.len()), run.zeros::<u32>(best.len()));
            let kernel = if bits == 2 { dedispersion::kernel::<2>() } else { dedispersion::kernel::<8>() };
            let config = LaunchConfig::tiled(times as u32, dispersions.len() as u32, (64, 1));
            run.launch(kernel, config, args![times, &trials, &late, &off, &data, &out, &peaks]);
            run.holds(&out, &sums);
            run.holds(&peaks, &best);
        });
    }
}
